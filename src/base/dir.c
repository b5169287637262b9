/* SPDX-License-Identifier: MIT */
/* dir.c - opening, making and reading folders. */
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <stdalign.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static enum mr_rc
opened(int fd, const char *path, int *ret_fd, struct mr_error *err)
{
	if (fd >= 0) {
		*ret_fd = fd;
		return MR_OK;
	}
	if (errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "no folder '%s'", path);
	if (errno == ELOOP || errno == ENOTDIR || errno == EXDEV)
		return mr_fail(err, MR_REFUSED, "'%s' is not a folder, or is reached through a symbolic link", path);
	return mr_fail_errno(err, "cannot open folder '%s'", path);
}

enum mr_rc
dir_open(int dir_fd, const char *path, int *ret_fd, struct mr_error *err)
{
	return opened(sys_open(dir_fd, path, O_RDONLY | O_DIRECTORY, 0), path, ret_fd, err);
}

enum mr_rc
dir_reach(int dir_fd, const char *path, int *ret_fd, struct mr_error *err)
{
	return opened(sys_open_reach(dir_fd, path), path, ret_fd, err);
}

/* ---- Making ---- */

enum mr_rc
dir_make(int dir_fd, const char *path, mode_t mode, bool durable, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT, parent = BUF_INIT;
	mr_auto(sys_close_fd) int parent_fd = -1, fd = -1;
	size_t len = strlen(path);

	enum mr_rc rc = dir_open(dir_fd, path, ret_fd, err);
	if (rc != MR_NOTFOUND || len == 0)
		return rc;
	while (len > 1 && path[len - 1] == '/')
		len--;
	buf_add(&whole, (struct mr_str){ path, len });
	while (len > 0 && path[len - 1] != '/')
		len--;
	const char *name = buf_z(&whole) + len;

	while (len > 1 && path[len - 1] == '/')
		len--;
	buf_add(&parent, (struct mr_str){ path, len }); /* "" for a single name, "/" for a name in the root */
	TRY(mr_got(buf_ok(&whole) && buf_ok(&parent), err));
	if (parent.len == 0)
		TRY(dir_open(dir_fd, ".", &parent_fd, err));
	else
		TRY(dir_make(dir_fd, buf_z(&parent), mode, durable, &parent_fd, err));
	if (sys_mkdir(parent_fd, name, mode) < 0 && errno != EEXIST)
		return mr_fail_errno(err, "cannot make folder '%s'", name);
	TRY(dir_open(parent_fd, name, &fd, err));
	/* Also if another process was faster, because it may not have synced yet. The folder itself first: without a
	 * journal its first block may reach the disk later than its name, and then fsck considers it damaged. */
	if (durable && (sys_fsync(fd) < 0 || sys_fsync(parent_fd) < 0))
		return mr_fail_errno(err, "cannot make folder '%s' durable", name);
	*ret_fd = fd;
	fd = -1;
	return MR_OK;
}

enum mr_rc
dir_below(const char *root, const char *path, bool make, bool durable, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	TRY(make ? dir_make(AT_FDCWD, root, 0700, durable, &fd, err) : dir_reach(AT_FDCWD, root, &fd, err));
	return make ? dir_make(fd, path, 0700, durable, ret_fd, err) : dir_open(fd, path, ret_fd, err);
}

enum mr_rc
dir_publish(int dir_fd, const char *name, mode_t mode, const char *note, struct mr_str text, const char *const *below,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char random[17], temporary[48];
	enum mr_rc rc;

	random_hex(random, sizeof(random) - 1);
	(void)snprintf(temporary, sizeof(temporary), ".mailroom-new-%s", random);
	if (sys_mkdir(dir_fd, temporary, mode) < 0)
		return mr_fail_errno(err, "cannot make the folder '%s'", name);
	rc = dir_open(dir_fd, temporary, &fd, err);
	if (rc == MR_OK)
		rc = file_publish(fd, fd, note, text, mode & 0666, PUBLISH_FULL, err);
	for (; rc == MR_OK && below && *below; below++) {
		mr_auto(sys_close_fd) int made = -1;

		rc = dir_make(fd, *below, mode, true, &made, err);
	}
	if (rc == MR_OK && sys_fsync(fd) < 0)
		rc = mr_fail_errno(err, "cannot make the folder durable");
	if (rc == MR_OK && sys_rename_new(dir_fd, temporary, dir_fd, name) < 0)
		rc = errno == EEXIST || errno == ENOTEMPTY ? mr_fail(err, MR_EXISTS, "'%s' already exists", name)
							   : mr_fail_errno(err, "cannot make the folder '%s'", name);
	if (rc == MR_OK && sys_fsync(dir_fd) < 0)
		return mr_fail_errno(err, "cannot make '%s' durable", name);
	if (rc != MR_OK)
		dir_remove_tree(dir_fd, temporary);
	return rc;
}

/* ---- Reading ---- */

#ifndef MR_PORTABLE

struct kernel_entry { /* the format of getdents64 */
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

enum mr_rc
dir_each_once(int fd, dir_fn *fn, void *ctx, struct mr_error *err)
{
	alignas(8) char chunk[(size_t)4 << 10]; /* a larger buffer reads no faster, and touches more of the stack */

	for (;;) {
		ssize_t n = sys_getdents(fd, chunk, sizeof(chunk));

		if (n < 0 && errno != ENOENT) /* removed meanwhile: it was empty */
			return mr_fail_errno(err, "cannot read folder");
		if (n <= 0)
			return MR_OK;
		for (ssize_t at = 0; at < n;) {
			const struct kernel_entry *e = (const void *)(chunk + at);

			if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0 &&
			    !fn(ctx, &(struct dir_entry){ e->name, e->type }))
				return MR_OK;
			at += e->length;
		}
	}
}

#else

static void
close_stream(DIR **stream)
{
	if (*stream != NULL)
		(void)closedir(*stream);
}

enum mr_rc
dir_each_once(int fd, dir_fn *fn, void *ctx, struct mr_error *err)
{
	int own = dup(fd);
	mr_auto(close_stream) DIR *stream = own >= 0 ? fdopendir(own) : NULL;

	if (stream == NULL) {
		(void)mr_fail_errno(err, "cannot read folder");
		sys_close_fd(&own);
		return err->code;
	}
	for (;;) {
		errno = 0;
		const struct dirent *e = readdir(stream);
		if (e == NULL && errno != 0)
			return mr_fail_errno(err, "cannot read folder");
		if (e == NULL)
			return MR_OK;
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    !fn(ctx, &(struct dir_entry){ e->d_name, e->d_type }))
			return MR_OK;
	}
}

#endif

enum mr_rc
dir_each(int dir_fd, dir_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	/* A descriptor of our own: the caller's may be shared with a forked process, including its position. */
	TRY(dir_open(dir_fd, ".", &fd, err));
	return dir_each_once(fd, fn, ctx, err);
}

struct gathering {
	struct mr_names *names;
	bool failed;
};

static bool
note_name(void *ctx, const struct dir_entry *entry)
{
	struct gathering *g = ctx;

	g->failed = !names_add(g->names, str_of(entry->name));
	return !g->failed;
}

enum mr_rc
dir_open_names(int dir_fd, const char *path, int *ret_fd, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct gathering g = { .names = ret };

	TRY(dir_open(dir_fd, path, &fd, err));
	TRY(dir_each_once(fd, note_name, &g, err));
	TRY(mr_got(!g.failed, err));
	if (ret_fd != NULL)
		*ret_fd = sys_take_fd(&fd);
	return MR_OK;
}

enum mr_rc
dir_names_in(int dir_fd, const char *path, struct mr_names *ret, struct mr_error *err)
{
	return dir_open_names(dir_fd, path, NULL, ret, err);
}

enum mr_rc
dir_names(int dir_fd, struct mr_names *ret, struct mr_error *err)
{
	return dir_names_in(dir_fd, ".", ret, err);
}

/* ---- Removing ---- */

#define DEEPEST 16 /* our own folders are never so deep */

static void
remove_below(int dir_fd, const char *name, unsigned depth)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;

	if (sys_unlink(dir_fd, name) == 0)
		return;
	if (depth < DEEPEST && dir_open(dir_fd, name, &fd, IGNORED) == MR_OK)
		(void)dir_names(fd, &names, IGNORED);
	for (size_t i = 0; i < names.n; i++)
		remove_below(fd, names.v[i], depth + 1);
	(void)sys_rmdir(dir_fd, name);
}

void
dir_remove_tree(int dir_fd, const char *name)
{
	remove_below(dir_fd, name, 0);
}
