/* SPDX-License-Identifier: MIT */
/* scratch.h - what the tests of base/ share: a folder of their own, and work in a child process. */
#ifndef TESTS_UNIT_BASE_SCRATCH_H
#define TESTS_UNIT_BASE_SCRATCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "support/sys_fault.h"

struct scratch {
	char path[256];
	int fd;
};

static inline int
scratch_setup(void **state)
{
	struct scratch *s = calloc(1, sizeof(*s));
	const char *top = getenv("TMPDIR");

	if (s == NULL)
		return -1;
	(void)snprintf(s->path, sizeof(s->path), "%s/mailroom-base-XXXXXX", top != NULL ? top : "/tmp");
	if (mkdtemp(s->path) == NULL)
		return -1;
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = s;
	return s->fd >= 0 ? 0 : -1;
}

static inline int
scratch_remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static inline int
scratch_teardown(void **state)
{
	struct scratch *s = *state;

	sys_plan_set(NULL);
	(void)close(s->fd);
	int result = nftw(s->path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(s);
	return result;
}

#define in_scratch(test) cmocka_unit_test_setup_teardown(test, scratch_setup, scratch_teardown)

static inline bool
count_entry(void *ctx, const struct dir_entry *entry)
{
	(void)entry;
	*(size_t *)ctx += 1;
	return true;
}

static inline size_t
entries_in(int dir_fd)
{
	struct mr_error err = { 0 };
	size_t count = 0;

	assert_int_equal(dir_each(dir_fd, count_entry, &count, &err), MR_OK);
	return count;
}

static inline void
write_plainly(int dir_fd, const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static inline bool
exists(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline mode_t
mode_of(int dir_fd, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st.st_mode & 07777;
}

static inline void
assert_holds(int dir_fd, const char *name, struct mr_str want)
{
	mr_auto(buf_done) struct buf got = BUF_INIT;
	struct mr_error err = { 0 };

	assert_int_equal(file_read(dir_fd, name, SIZE_MAX / 2, &got, &err), MR_OK);
	assert_int_equal(got.len, want.len);
	assert_memory_equal(buf_z(&got), want.ptr, want.len);
}

/* Runs work in a child. Returns its exit status, or minus the signal that ended it. */
static inline int
in_child(int (*work)(void *ctx), void *ctx)
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(work(ctx));
	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
