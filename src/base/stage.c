/* SPDX-License-Identifier: MIT */
/*
 * stage.c - a complete file that has no place yet.
 *
 * Unnamed (O_TMPFILE) wherever the system can later give it a name: a crash then leaves nothing
 * behind. Otherwise it has a temporary name `mr-<seconds>-<random>.tmp` in a folder that is swept.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/sys_break.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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

#define COPY_CHUNK ((size_t)64 << 10)

static enum mr_rc
copy_bytes(int from_fd, int to_fd, struct mr_error *err)
{
	mr_auto(free_ptr) char *chunk = malloc(COPY_CHUNK);
	off_t at = 0;

	if (chunk == NULL)
		return mr_nomem(err);
	for (;;) {
		ssize_t got = sys_pread(from_fd, chunk, COPY_CHUNK, at);
		if (got < 0)
			return mr_fail_errno(err, "cannot read the temporary file");
		if (got == 0)
			return MR_OK;
		if (sys_write_all(to_fd, chunk, (size_t)got) < 0)
			return mr_fail_errno(err, "cannot write the temporary file");
		at += got;
	}
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
	TRY(copy_bytes(s->fd, copy.fd, err));
	TRY(stage_sync(&copy, err));
	stage_done(s);
	*s = copy;
	copy = STAGED_INIT;
	return MR_OK;
}

/* ---- Giving it a place ---- */

/* The name is taken: by this very file (a delivery that is being completed), or by another? */
static enum mr_rc
judge_taken_name(const struct staged *s, int dir_fd, const char *name, struct mr_error *err)
{
	struct stat there, ours;

	if (sys_stat_fd(s->fd, &ours) < 0)
		return mr_fail_errno(err, "cannot look at the temporary file");
	if (sys_stat(dir_fd, name, &there) < 0) {
		if (errno != ENOENT)
			return mr_fail_errno(err, "cannot look at '%s'", name);
	} else if (there.st_dev == ours.st_dev && there.st_ino == ours.st_ino) {
		return MR_OK;
	}
	(void)mr_fail(err, MR_EXISTS, "'%s' exists already", name);
	err->sys_errno = EEXIST;
	return MR_EXISTS;
}

enum mr_rc
stage_link(struct staged *s, int dir_fd, const char *name, struct mr_error *err)
{
	int result = -1;

	if (s->name[0] == '\0') {
		result = sys_break_is(BREAK_NAME_BEFORE_BYTES) ? sys_break_link_empty(s->fd, dir_fd, name)
							       : sys_link_unnamed(s->fd, dir_fd, name);
		/* Once it has a name somewhere, a copy would be another file: say what is wrong. */
		if (result < 0 && errno == EOPNOTSUPP && !s->linked && copy_to_named(s, err) != MR_OK)
			return err->code;
	}
	if (result < 0 && s->name[0] != '\0')
		result = sys_link(s->tmp_fd, s->name, dir_fd, name);
	if (result < 0 && errno != EEXIST)
		return mr_fail_errno(err, "cannot publish '%s'", name);
	if (result < 0 && judge_taken_name(s, dir_fd, name, err) != MR_OK)
		return err->code;
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
