/* SPDX-License-Identifier: MIT */
/* file.c - whole files: published, replaced, read. */
#include "base/file.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Publishing ---- */

/* The name is there but not known to be durable. Refused must mean that nothing is visible, so it
 * goes again; when it cannot go (or a reader was faster), only "in doubt" is true. */
static enum mr_rc
in_doubt(const char *name, struct mr_error *err)
{
	int error = err->sys_errno;
	struct mr_error first = *err;
	(void)mr_fail(err, MR_INDOUBT, "'%s' is visible but may not survive a power cut, and cannot be taken back: %s",
	    name, first.message);
	err->sys_errno = error;
	return mr_hint(err, "look at the disk; the file is whole: do not send it again without a key");
}

static enum mr_rc
take_back(int dir_fd, const char *name, struct mr_error *err)
{
	if (sys_unlink(dir_fd, name) < 0)
		return in_doubt(name, err);
	(void)sys_fsync(dir_fd);
	return err->code;
}

/* Once more the file: without a journal, the link count belongs to its inode, and must be on the
 * disk before the folder's entry is relied on. Then the folder. */
static enum mr_rc
make_durable(struct staged *s, int dir_fd, const char *name, struct mr_error *err)
{
	if (sys_fsync(s->fd) < 0 || sys_fsync(dir_fd) < 0) {
		(void)mr_fail_errno(err, "cannot make '%s' durable", name);
		return take_back(dir_fd, name, err);
	}
	return MR_OK;
}

enum mr_rc
file_publish(int dir_fd, int tmp_fd, const char *name, struct mr_str bytes, mode_t mode, enum publish_sync sync,
    struct mr_error *err)
{
	mr_auto(stage_done) struct staged s = STAGED_INIT;

	if (stage_open(&s, dir_fd, tmp_fd, mode, err) != MR_OK || stage_write(&s, bytes, err) != MR_OK ||
	    (sync == PUBLISH_FULL && stage_sync(&s, err) != MR_OK))
		return mr_wrap(err, "cannot write '%s'", name);
	TRY(stage_link(&s, dir_fd, name, err));
	return sync == PUBLISH_FULL ? make_durable(&s, dir_fd, name, err) : MR_OK;
}

/* ---- Publishing in two steps ---- */

static enum mr_rc
write_prepared(int fd, int dir_fd, struct mr_str bytes, int64_t mtime_ns, struct mr_error *err)
{
	if (sys_write_all(fd, bytes.ptr, bytes.len) < 0 || (mtime_ns != 0 && sys_set_mtime(fd, mtime_ns) < 0) ||
	    sys_fsync(fd) < 0 || sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot write");
	return MR_OK;
}

enum mr_rc
file_prepare(
    int dir_fd, const char *temporary, struct mr_str bytes, mode_t mode, int64_t mtime_ns, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, temporary, O_RDWR | O_CREAT | O_EXCL, mode);

	if (fd < 0 && errno == EEXIST)
		return mr_fail(err, MR_EXISTS, "'%s' is there already", temporary);
	if (fd < 0)
		return mr_fail_errno(err, "cannot make '%s'", temporary);
	if (write_prepared(fd, dir_fd, bytes, mtime_ns, err) == MR_OK)
		return MR_OK;
	(void)sys_unlink(dir_fd, temporary);
	return mr_wrap(err, "'%s'", temporary);
}

enum mr_rc
file_prepared_publish(int tmp_fd, const char *temporary, int dir_fd, const char *name, struct mr_error *err)
{
	if (sys_rename_new(tmp_fd, temporary, dir_fd, name) < 0) {
		if (errno == EEXIST)
			return mr_fail(err, MR_EXISTS, "'%s' is there already", name);
		return mr_fail_errno(err, "cannot publish '%s'", name);
	}
	if (sys_fsync(dir_fd) < 0 || (tmp_fd != dir_fd && sys_fsync(tmp_fd) < 0)) {
		(void)mr_fail_errno(err, "cannot make '%s' durable", name);
		/* Under its temporary name again, or the name that is gone would say that it is there. */
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
		return mr_fail(err, MR_CORRUPT, "'%.80s' is no name of a prepared file", temporary);
	buf_addf(&voided, "%s%s", FILE_VOID, temporary + strlen(FILE_CARRY));
	if (!buf_ok(&voided))
		return mr_nomem(err);
	/* Both names, after a power cut without a journal: it was published, or the other says enough. */
	if (sys_stat(tmp_fd, temporary, &st) == 0 && st.st_nlink > 1 && sys_unlink(tmp_fd, temporary) == 0) {
		*ret_published = true;
		return MR_OK;
	}
	if (sys_rename_new(tmp_fd, temporary, tmp_fd, buf_z(&voided)) == 0 ||
	    (errno == EEXIST && sys_unlink(tmp_fd, temporary) == 0)) {
		*ret_published = false;
		(void)sys_fsync(tmp_fd); /* lost by a power cut, the old name says the same */
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

static bool
remove_if_old(void *ctx, const struct dir_entry *entry)
{
	int tmp_fd = *(int *)ctx;

	if (file_void_is_old(tmp_fd, entry->name))
		(void)sys_unlink(tmp_fd, entry->name);
	return true;
}

void
file_void_clean(int tmp_fd)
{
	struct mr_error ignored = { 0 };

	(void)dir_each(tmp_fd, remove_if_old, &tmp_fd, &ignored);
}

/* ---- Replacing ---- */

struct beside { /* the new version before it takes the name */
	int fd, dir_fd;
	char *name; /* NULL: nothing to remove */
};

static void
beside_done(struct beside *b)
{
	sys_close_fd(&b->fd);
	if (b->name != NULL)
		(void)sys_unlink(b->dir_fd, b->name);
	free(b->name);
	b->name = NULL;
}

static enum mr_rc
beside_open(struct beside *b, const char *name, mode_t mode, struct mr_error *err)
{
	mr_auto(buf_done) struct buf temporary = BUF_INIT;
	char random[13];

	do {
		random_hex(random, 12);
		buf_clear(&temporary);
		buf_addf(&temporary, ".%s.%s.tmp", name, random);
		if (!buf_ok(&temporary))
			return mr_nomem(err);
		b->fd = sys_open(b->dir_fd, buf_z(&temporary), O_RDWR | O_CREAT | O_EXCL, mode);
	} while (b->fd < 0 && errno == EEXIST);
	if (b->fd < 0)
		return mr_fail_errno(err, "cannot make '%s'", buf_z(&temporary));
	b->name = buf_take(&temporary);
	return MR_OK;
}

enum mr_rc
file_replace(int dir_fd, const char *name, struct mr_str bytes, mode_t mode, struct mr_error *err)
{
	mr_auto(beside_done) struct beside fresh = { .fd = -1, .dir_fd = dir_fd };

	if (beside_open(&fresh, name, mode, err) != MR_OK)
		return mr_wrap(err, "cannot write '%s'", name);
	if (sys_write_all(fresh.fd, bytes.ptr, bytes.len) < 0 || sys_fsync(fresh.fd) < 0)
		return mr_fail_errno(err, "cannot write '%s'", name);
	if (sys_rename(dir_fd, fresh.name, dir_fd, name) < 0)
		return mr_fail_errno(err, "cannot replace '%s'", name);
	free_ptr(&fresh.name);
	if (sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot make '%s' durable", name);
	return MR_OK;
}

/* ---- Reading ---- */

static enum mr_rc
too_large(size_t limit, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED, "larger than the limit of %zu bytes", limit);
}

/* expected: the size if it is known, so that one read is enough; SIZE_MAX: read until the end */
static enum mr_rc
read_to_end(int fd, size_t expected, size_t limit, struct buf *ret, struct mr_error *err)
{
	const size_t step = (size_t)64 << 10, first = (size_t)4 << 10; /* most files are small */
	size_t before = ret->len;
	size_t want = expected < SIZE_MAX ? expected + 1 : first;

	for (;;) {
		if (!buf_reserve(ret, want))
			return mr_nomem(err);
		ssize_t got = sys_read(fd, ret->ptr + ret->len, want);
		if (got < 0)
			return mr_fail_errno(err, "cannot read");
		ret->len += (size_t)got;
		ret->ptr[ret->len] = '\0';
		if (ret->len - before > limit)
			return too_large(limit, err);
		if (got == 0 || ret->len - before == expected)
			return MR_OK;
		want -= (size_t)got; /* mostly only the end is to come, for which there is room */
		want = want < first / 2 ? step : want;
	}
}

static enum mr_rc
read_or_nothing(int fd, size_t expected, size_t limit, struct buf *ret, struct mr_error *err)
{
	size_t before = ret->len;
	enum mr_rc rc = read_to_end(fd, expected, limit, ret, err);

	if (rc != MR_OK) {
		ret->len = before;
		if (ret->ptr != NULL)
			ret->ptr[before] = '\0';
	}
	return rc;
}

enum mr_rc
file_read_fd(int fd, size_t limit, struct buf *ret, struct mr_error *err)
{
	return read_or_nothing(fd, SIZE_MAX, limit, ret, err);
}

enum mr_rc
file_read_sized(int fd, off_t size, size_t limit, struct buf *ret, struct mr_error *err)
{
	if (size < 0 || (uintmax_t)size > limit)
		return too_large(limit, err);
	return read_or_nothing(fd, (size_t)size, limit, ret, err);
}

enum mr_rc
file_read(int dir_fd, const char *name, size_t limit, struct buf *ret, struct mr_error *err)
{
	struct stat ignored;

	return file_read_stat(dir_fd, name, limit, ret, &ignored, err);
}

enum mr_rc
file_read_stat(int dir_fd, const char *name, size_t limit, struct buf *ret, struct stat *ret_st, struct mr_error *err)
{
	struct stat st;

	/* O_NONBLOCK: a pipe planted in the room must not hold us up before we see what it is. */
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

/* ---- Paths ---- */

char *
path_join(const char *folder, const char *name)
{
	struct buf path = BUF_INIT;

	buf_adds(&path, folder);
	if (path.len == 0 || path.ptr[path.len - 1] != '/')
		buf_addc(&path, '/');
	buf_adds(&path, name);
	return buf_take(&path);
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
