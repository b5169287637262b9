/* SPDX-License-Identifier: MIT */
/* file.c - whole files: staged, published, replaced, read. */
#include "base/file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- A complete file without a name yet ----
 *
 * Unnamed (O_TMPFILE) if the system can name it later: a crash then leaves nothing behind. Otherwise it has a temporary
 * name `mr-<seconds>-<random>.tmp` in a folder that is swept. */

static enum mr_rc
open_named(int tmp_fd, mode_t mode, char ret_name[64], int *ret_fd, struct mr_error *err)
{
	char random[13];
	char name[64];

	for (;;) {
		random_hex(random, 12);
		(void)snprintf(name, sizeof(name), "mr-%" PRId64 "-%s.tmp", clock_now_ms() / 1000, random);
		int fd = sys_open(tmp_fd, name, O_RDWR | O_CREAT | O_EXCL, mode);
		if (fd >= 0) {
			memcpy(ret_name, name, sizeof(name));
			*ret_fd = fd;
			return MR_OK;
		}
		if (errno != EEXIST)
			return mr_fail_errno(err, "cannot make temporary file '%s'", name);
	}
}

enum mr_rc
stage_open(struct staged *s, int dir_fd, int tmp_fd, mode_t mode, struct mr_error *err)
{
	struct staged fresh = STAGED_INIT;

	fresh.tmp_fd = tmp_fd >= 0 ? tmp_fd : dir_fd;
	fresh.fd = sys_open_unnamed(dir_fd, mode);
	if (fresh.fd < 0 && errno != EOPNOTSUPP)
		return mr_fail_errno(err, "cannot make an unnamed file");
	if (fresh.fd < 0 && open_named(fresh.tmp_fd, mode, fresh.name, &fresh.fd, err) != MR_OK)
		return err->code;
	*s = fresh;
	return MR_OK;
}

enum mr_rc
stage_write(struct staged *s, struct mr_str bytes, struct mr_error *err)
{
	if (sys_write_all(s->fd, bytes.ptr, bytes.len) < 0)
		return mr_fail_errno(err, "cannot write the temporary file");
	return MR_OK;
}

enum mr_rc
stage_sync(struct staged *s, struct mr_error *err)
{
	if (sys_fsync(s->fd) < 0)
		return mr_fail_errno(err, "cannot flush the temporary file");
	return MR_OK;
}

/* ---- When the unnamed file cannot get a name here ---- */

static enum mr_rc
copy_bytes(int from_fd, const struct stat *from, struct staged *to, struct mr_error *err)
{
	if (sys_copy(from_fd, to->fd, (size_t)from->st_size) < 0)
		return mr_fail_errno(err, "cannot write the temporary file");
	return MR_OK;
}

enum mr_rc
stage_copy(struct staged *s, int dir_fd, const char *name, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct stat st;

	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read '%s'", name);
	return copy_bytes(fd, &st, s, err);
}

static enum mr_rc
copy_to_named(struct staged *s, struct mr_error *err)
{
	mr_auto(stage_done) struct staged copy = STAGED_INIT;
	struct stat st;

	if (sys_stat_fd(s->fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at the temporary file");
	copy.tmp_fd = s->tmp_fd;
	TRY(open_named(s->tmp_fd, st.st_mode & 07777, copy.name, &copy.fd, err));
	TRY(copy_bytes(s->fd, &st, &copy, err));
	TRY(stage_sync(&copy, err));
	stage_done(s);
	*s = copy;
	copy = STAGED_INIT;
	return MR_OK;
}

/* ---- Giving it a name ---- */

enum mr_rc
stage_link(struct staged *s, int dir_fd, const char *name, struct mr_error *err)
{
	int result = -1;

	if (s->name[0] == '\0') {
		result = sys_break_is(BREAK_NAME_BEFORE_BYTES) ? sys_break_link_empty(s->fd, dir_fd, name)
							       : sys_link_unnamed(s->fd, dir_fd, name);
		/* When it has a name, a copy would be another file: report the error. */
		if (result < 0 && errno == EOPNOTSUPP && !s->linked && copy_to_named(s, err) != MR_OK)
			return err->code;
	}
	if (result < 0 && s->name[0] != '\0')
		result = sys_link(s->tmp_fd, s->name, dir_fd, name);
	if (result < 0 && errno != EEXIST)
		return mr_fail_errno(err, "cannot publish '%s'", name);
	if (result < 0) { /* is it this very file (a delivery that is being completed), or another? */
		struct stat there, ours;

		if (sys_stat_fd(s->fd, &ours) < 0)
			return mr_fail_errno(err, "cannot look at the temporary file");
		bool seen = sys_stat(dir_fd, name, &there) == 0;

		if (!seen && errno != ENOENT)
			return mr_fail_errno(err, "cannot look at '%s'", name);
		if (!seen || there.st_dev != ours.st_dev || there.st_ino != ours.st_ino) {
			(void)mr_fail(err, MR_EXISTS, "'%s' already exists", name);
			err->sys_errno = EEXIST;
			return MR_EXISTS;
		}
	}
	s->linked = true;
	return MR_OK;
}

void
stage_done(struct staged *s)
{
	if (s == NULL)
		return;
	if (s->name[0] != '\0')
		(void)sys_unlink(s->tmp_fd, s->name);
	sys_close_fd(&s->fd);
	*s = STAGED_INIT;
}

/* ---- Publishing ---- */

/* The name exists but may not be durable. "Refused" must mean that nothing is visible, so the name is removed; if that
 * fails (or a reader was faster), the result is "in doubt". */
static enum mr_rc
in_doubt(const char *name, struct mr_error *err)
{
	int error = err->sys_errno;
	struct mr_error first = *err;
	(void)mr_fail(err, MR_INDOUBT, "'%s' is visible but may not survive a power cut, and cannot be taken back: %s",
	    name, first.message);
	err->sys_errno = error;
	return mr_hint(err, "check the disk; the file is whole: do not repeat a send without --key");
}

enum mr_rc
stage_publish(struct staged *s, int dir_fd, const char *name, enum publish_sync sync, struct mr_error *err)
{
	if (sync == PUBLISH_FULL && stage_sync(s, err) != MR_OK)
		return mr_wrap(err, "cannot write '%s'", name);
	TRY(stage_link(s, dir_fd, name, err));
	/* The file once more: without a journal its link count is in its inode, and must be on the disk before the
	 * folder's entry. Then the folder. */
	if (sync != PUBLISH_FULL || (sys_fsync(s->fd) == 0 && sys_fsync(dir_fd) == 0))
		return MR_OK;
	(void)mr_fail_errno(err, "cannot make '%s' durable", name);
	if (sys_unlink(dir_fd, name) < 0)
		return in_doubt(name, err);
	(void)sys_fsync(dir_fd);
	return err->code;
}

enum mr_rc
file_publish(int dir_fd, int tmp_fd, const char *name, struct mr_str bytes, mode_t mode, enum publish_sync sync,
    struct mr_error *err)
{
	mr_auto(stage_done) struct staged s = STAGED_INIT;

	if (stage_open(&s, dir_fd, tmp_fd, mode, err) != MR_OK || stage_write(&s, bytes, err) != MR_OK)
		return mr_wrap(err, "cannot write '%s'", name);
	return stage_publish(&s, dir_fd, name, sync, err);
}

enum mr_rc
file_publish_copy(int from_fd, const char *from, int dir_fd, int tmp_fd, const char *name, mode_t mode,
    enum publish_sync sync, struct mr_error *err)
{
	mr_auto(stage_done) struct staged s = STAGED_INIT;

	if (stage_open(&s, dir_fd, tmp_fd, mode, err) != MR_OK || stage_copy(&s, from_fd, from, err) != MR_OK)
		return mr_wrap(err, "cannot write '%s'", name);
	return stage_publish(&s, dir_fd, name, sync, err);
}

/* ---- Publishing in two steps ---- */

enum mr_rc
file_prepare(
    int dir_fd, const char *temporary, struct mr_str bytes, mode_t mode, int64_t mtime_ns, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL, mode);

	if (fd < 0 && errno == EEXIST)
		return mr_fail(err, MR_EXISTS, "'%s' already exists", temporary);
	if (fd < 0)
		return mr_fail_errno(err, "cannot make '%s'", temporary);
	if (sys_write_all(fd, bytes.ptr, bytes.len) == 0 && (mtime_ns == 0 || sys_set_mtime(fd, mtime_ns) == 0) &&
	    sys_fsync(fd) == 0 && sys_fsync(dir_fd) == 0)
		return MR_OK;
	(void)mr_fail_errno(err, "cannot write");
	(void)sys_unlink(dir_fd, temporary);
	return mr_wrap(err, "'%s'", temporary);
}

enum mr_rc
file_prepared_publish(int tmp_fd, const char *temporary, int dir_fd, const char *name, struct mr_error *err)
{
	if (sys_rename_new(tmp_fd, temporary, dir_fd, name) < 0) {
		if (errno == EEXIST)
			return mr_fail(err, MR_EXISTS, "'%s' already exists", name);
		return mr_fail_errno(err, "cannot publish '%s'", name);
	}
	if (sys_fsync(dir_fd) < 0 || (tmp_fd != dir_fd && sys_fsync(tmp_fd) < 0)) {
		(void)mr_fail_errno(err, "cannot make '%s' durable", name);
		/* Back under its temporary name, because its absence would mean that the file was published. */
		if (sys_rename_new(dir_fd, name, tmp_fd, temporary) == 0) {
			(void)sys_fsync(dir_fd);
			return err->code;
		}
		return in_doubt(name, err);
	}
	return MR_OK;
}

#define VOID_AGE_MS ((int64_t)7 * 24 * 3600 * 1000)

enum mr_rc
file_prepared_void(int tmp_fd, const char *temporary, bool *ret_published, struct mr_error *err)
{
	mr_auto(buf_done) struct buf voided = BUF_INIT;
	struct stat st;

	if (!str_starts(str_of(temporary), FILE_CARRY) || strchr(temporary, '/'))
		return mr_fail(err, MR_CORRUPT, "'%.80s' is not the name of a prepared file", temporary);
	buf_addf(&voided, "%s%s", FILE_VOID, temporary + strlen(FILE_CARRY));
	TRY(mr_got(buf_ok(&voided), err));
	/* Both names exist, after a power cut without a journal: it was published, or the other name is enough. */
	if (sys_stat(tmp_fd, temporary, &st) == 0 && st.st_nlink > 1 && sys_unlink(tmp_fd, temporary) == 0) {
		*ret_published = true;
		return MR_OK;
	}
	if (sys_rename_new(tmp_fd, temporary, tmp_fd, buf_z(&voided)) == 0 ||
	    (errno == EEXIST && sys_unlink(tmp_fd, temporary) == 0)) {
		*ret_published = false;
		(void)sys_fsync(tmp_fd); /* if a power cut loses this, the old name says the same */
		return MR_OK;
	}
	if (errno != ENOENT)
		return mr_fail_errno(err, "cannot put '%s' aside", temporary);
	bool there = sys_stat(tmp_fd, buf_z(&voided), &st) == 0;

	if (!there && errno != ENOENT)
		return mr_fail_errno(err, "cannot look for '%s'", buf_z(&voided));
	*ret_published = !there;
	return MR_OK;
}

/* By the time of the rename: an imported message has its own date. */
bool
file_void_is_old(int tmp_fd, const char *name)
{
	struct stat st;

	return str_starts(str_of(name), FILE_VOID) && sys_stat(tmp_fd, name, &st) == 0 && S_ISREG(st.st_mode) &&
	       clock_now_ms() - (int64_t)st.st_ctim.tv_sec * 1000 > VOID_AGE_MS;
}

void
file_void_clean(int tmp_fd)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	(void)dir_names(tmp_fd, &names, IGNORED);
	for (size_t i = 0; i < names.n; i++)
		if (file_void_is_old(tmp_fd, names.v[i]))
			(void)sys_unlink(tmp_fd, names.v[i]);
}

/* ---- Replacing ---- */

enum mr_rc
file_replace(int dir_fd, const char *name, struct mr_str bytes, mode_t mode, struct mr_error *err)
{
	mr_auto(buf_done) struct buf temporary = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	char random[13];

	do {
		random_hex(random, 12);
		buf_clear(&temporary);
		buf_addf(&temporary, ".%s.%s.tmp", name, random);
		TRY(mr_got(buf_ok(&temporary), err));
		fd = sys_open(dir_fd, buf_z(&temporary), O_RDWR | O_CREAT | O_EXCL, mode);
	} while (fd < 0 && errno == EEXIST);
	if (fd < 0) {
		(void)mr_fail_errno(err, "cannot make '%s'", buf_z(&temporary));
		return mr_wrap(err, "cannot write '%s'", name);
	}
	if (sys_write_all(fd, bytes.ptr, bytes.len) < 0 || sys_fsync(fd) < 0)
		(void)mr_fail_errno(err, "cannot write '%s'", name);
	else if (sys_rename(dir_fd, buf_z(&temporary), dir_fd, name) < 0)
		(void)mr_fail_errno(err, "cannot replace '%s'", name);
	else if (sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot make '%s' durable", name);
	else
		return MR_OK;
	(void)sys_unlink(dir_fd, buf_z(&temporary));
	return err->code;
}

/* ---- Reading ---- */

/* All or nothing. */
enum mr_rc
file_read_sized(int fd, off_t size, size_t limit, struct buf *ret, struct mr_error *err)
{
	const size_t step = (size_t)64 << 10, first = (size_t)4 << 10; /* most files are small */
	size_t before = ret->len, expected = size < 0 ? SIZE_MAX : (size_t)size;
	size_t want = size < 0 ? first : expected + 1;
	bool large = size >= 0 && (uintmax_t)size > limit;
	enum mr_rc rc = MR_OK;

	while (!large && rc == MR_OK) {
		ssize_t got = buf_reserve(ret, want) ? sys_read(fd, ret->ptr + ret->len, want) : -1;

		if (got < 0) {
			rc = ret->failed ? mr_nomem(err) : mr_fail_errno(err, "cannot read");
			break;
		}
		buf_cut(ret, ret->len + (size_t)got);
		large = ret->len - before > limit;
		if (!large && (got == 0 || ret->len - before == expected))
			return MR_OK;
		want -= (size_t)got; /* usually only the end follows, for which there is room */
		want = want < first / 2 ? step : want;
	}
	buf_cut(ret, before);
	return large ? mr_fail(err, MR_REFUSED, "larger than the limit of %zu bytes", limit) : rc;
}

enum mr_rc
file_read_stat(int dir_fd, const char *name, size_t limit, struct buf *ret, struct stat *ret_st, struct mr_error *err)
{
	struct stat st;

	/* O_NONBLOCK: a pipe planted in the room must not block us before its type is known. */
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "no file '%s'", name);
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR || errno == EXDEV || errno == ENXIO))
		return mr_fail(err, MR_REFUSED, "'%s' is not a regular file beneath its folder", name);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot open '%s'", name);
	if (!S_ISREG(st.st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is not a regular file beneath its folder", name);
	if (file_read_sized(fd, st.st_size, limit, ret, err) != MR_OK)
		return mr_wrap(err, "cannot read '%s'", name);
	if (ret_st)
		*ret_st = st;
	return MR_OK;
}

bool
file_is_same(int a_fd, const char *a, int b_fd, const char *b)
{
	struct stat sa, sb;

	return (a ? sys_stat(a_fd, a, &sa) : sys_stat_fd(a_fd, &sa)) == 0 &&
	       (b ? sys_stat(b_fd, b, &sb) : sys_stat_fd(b_fd, &sb)) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

#define CHUNK ((size_t)64 << 10)

enum mr_rc
file_equals(int a_fd, const char *a, int b_fd, const char *b, bool *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int one = sys_open(a_fd, a, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	mr_auto(sys_close_fd) int two = sys_open(b_fd, b, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	mr_auto(free_ptr) char *chunk = malloc(2 * CHUNK);

	TRY(mr_got(chunk, err));
	for (off_t at = 0;;) {
		ssize_t n = one < 0 ? -1 : sys_pread(one, chunk, CHUNK, at);
		ssize_t m = two < 0 ? -1 : sys_pread(two, chunk + CHUNK, CHUNK, at);

		if (n < 0 || m < 0)
			return mr_fail_errno(err, "cannot read '%s'", n < 0 ? a : b);
		*ret = n == m && memcmp(chunk, chunk + CHUNK, (size_t)n) == 0;
		if (!*ret || n == 0)
			return MR_OK;
		at += n;
	}
}

/* ---- Paths ---- */

char *
path_join(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s%s%s", folder, str_ends(str_of(folder), "/") ? "" : "/", name) < 0 ? NULL : path;
}

char *
path_full(const char *cwd, const char *path)
{
	char *joined = path[0] == '/' ? strdup(path) : path_join(cwd, path);
	char *real = joined ? realpath(joined, NULL) : NULL;

	if (!real)
		return joined;
	free(joined);
	return real;
}

char *
path_parent(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash != path ? strndup(path, (size_t)(slash - path)) : strdup("/");
}

const char *
path_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
