/* SPDX-License-Identifier: MIT */
/* attic.c - keeping what a repair takes away. */
#include "base/attic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "base/text.h"
#include <errno.h>
#include <fcntl.h>

#define NAME_BYTES 200 /* of the name there, before a number */
#define NUMBERS 1000

static enum mr_rc
open_day(struct attic *a, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char now[RFC3339_LEN + 1];

	if (a->fd >= 0)
		return MR_OK;
	if (!a->home)
		return mr_fail(err, MR_UNSUPPORTED, "there is no folder to keep it in");
	time_rfc3339(clock_now_ms(), now);
	(void)snprintf(a->day, sizeof a->day, "%.10s", now);
	buf_addf(&path, "%s%s" ATTIC "/%s", a->home, a->home[0] ? "/" : "", a->day);
	if (!buf_ok(&path))
		return mr_nomem(err);
	return dir_make(a->home_fd, buf_z(&path), a->dir_mode, true, &a->fd, err);
}

/* One file name made of a path; of a long one the end tells more. */
static void
flatten(struct buf *out, const char *path)
{
	size_t len = strlen(path);

	for (const char *c = len > NAME_BYTES / 3 ? path + len - NAME_BYTES / 3 : path; *c; c++)
		if (*c == '/')
			buf_adds(out, "%2F");
		else
			buf_addc(out, *c);
}

/* Another file system: a durable copy first. Folders stay where they are. */
static int
copy_over(int dir_fd, const char *name, int to_fd, const char *to, mode_t mode)
{
	mr_auto(sys_close_fd) int from = sys_open(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	mr_auto(sys_close_fd) int copy = -1;
	struct stat st;

	if (from < 0 || sys_stat_fd(from, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EXDEV;
		return -1;
	}
	copy = sys_open(to_fd, to, O_WRONLY | O_CREAT | O_EXCL, mode);
	if (copy < 0)
		return -1;
	if (sys_copy(from, 0, copy, (size_t)st.st_size) == 0 && sys_fsync(copy) == 0 && sys_fsync(to_fd) == 0 &&
	    sys_unlink(dir_fd, name) == 0)
		return 0;
	int failed = errno;

	(void)sys_unlink(to_fd, to);
	errno = failed;
	return -1;
}

static int
move_over(struct attic *a, int dir_fd, const char *name, const char *to)
{
	if (sys_rename_new(dir_fd, name, a->fd, to) == 0)
		return 0;
	return errno == EXDEV ? copy_over(dir_fd, name, a->fd, to, a->file_mode) : -1;
}

static enum mr_rc
move_to_free_name(
    struct attic *a, int dir_fd, const char *name, const char *path, struct buf *ret_name, struct mr_error *err)
{
	for (int i = 1; i <= NUMBERS; i++) {
		buf_clear(ret_name);
		flatten(ret_name, path);
		if (i > 1)
			buf_addf(ret_name, ".%d", i);
		if (!buf_ok(ret_name))
			return mr_nomem(err);
		if (move_over(a, dir_fd, name, buf_z(ret_name)) == 0)
			return MR_OK;
		if (errno != EEXIST)
			return mr_fail_errno(err, "cannot move '%s' to the attic", path);
	}
	return mr_fail(err, MR_EXISTS, "the attic has %d of the name '%s'", NUMBERS, path);
}

/* Best effort: the name of the file there says where it was. */
static void
note(struct attic *a, const char *path, const char *code, const char *why, const char *place)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, file = BUF_INIT;
	char now[RFC3339_LEN + 1];

	time_rfc3339(clock_now_ms(), now);
	buf_addf(&line, "%s %s ", now, code);
	text_clean_line(&line, str_of(path));
	buf_adds(&line, " -> ");
	text_clean_line(&line, str_of(place));
	buf_adds(&line, ": ");
	text_clean_line(&line, str_of(why));
	buf_addc(&line, '\n');
	buf_addf(&file, "%s%s" ATTIC "/log", a->home, a->home[0] ? "/" : "");
	mr_auto(sys_close_fd) int fd =
	    buf_ok(&line) && buf_ok(&file)
		? sys_open(a->home_fd, buf_z(&file), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, a->file_mode)
		: -1;

	if (fd >= 0)
		(void)sys_write_all(fd, line.ptr, line.len);
}

enum mr_rc
attic_take(struct attic *a, int dir_fd, const char *name, const char *path, const char *code, const char *why,
    struct buf *ret_place, struct mr_error *err)
{
	mr_auto(buf_done) struct buf flat = BUF_INIT;
	enum mr_rc rc = open_day(a, err);

	if (rc == MR_OK)
		rc = move_to_free_name(a, dir_fd, name, path, &flat, err);
	if (rc != MR_OK)
		return rc;
	/* Where it is gained first: a cut in between leaves it in both places or in the old one. */
	(void)sys_fsync(a->fd);
	(void)sys_fsync(dir_fd);
	buf_clear(ret_place);
	buf_addf(
	    ret_place, "%s%s" ATTIC "/%s/%s", a->home[0] ? a->home : "", a->home[0] ? "/" : "", a->day, buf_z(&flat));
	note(a, path, code, why, buf_z(ret_place));
	return MR_OK;
}

void
attic_done(struct attic *a)
{
	sys_close_fd(&a->fd);
	a->fd = -1;
}
