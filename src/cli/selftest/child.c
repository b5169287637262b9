/* SPDX-License-Identifier: MIT */
/* child.c - our own program as a child that may be killed at any moment. */
#include "base/clock.h"
#include "base/sys.h"
#include "cli/selftest/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 24
#define HANGS_US ((int64_t)120 * 1000000) /* no command takes that long: something is wrong */

uint64_t
random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static int64_t
now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void
become(const char *const *args, int out_fd)
{
	char *argv[ARGS_MAX + 2];
	int nothing = sys_open(AT_FDCWD, "/dev/null", O_RDWR, 0);
	size_t n = 0;

	argv[n++] = strdup("mailroom");
	for (size_t i = 0; args[i] && n <= ARGS_MAX; i++)
		argv[n++] = strdup(args[i]);
	argv[n] = NULL;
	if (nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(out_fd, 1) >= 0 && dup2(nothing, 2) >= 0)
		(void)execv("/proc/self/exe", argv);
	_exit(127);
}

/* Until it closes its end; killed when its time is up. A killed child closes it, too. */
static bool
gather(int fd, pid_t pid, int64_t begin_us, int64_t kill_us, struct buf *out)
{
	char chunk[8192];
	int64_t limit_us = kill_us < 0 ? HANGS_US : kill_us;
	bool killed = false;

	for (;;) {
		int64_t left = begin_us + limit_us - now_us();
		struct timespec wait = { .tv_sec = left / 1000000, .tv_nsec = (left % 1000000) * 1000 };
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (!killed && left <= 0) {
			(void)kill(pid, SIGKILL);
			killed = true;
		}
		int n = ppoll(&p, 1, killed ? NULL : &wait, NULL);

		if (n == 0 || (n < 0 && errno == EINTR))
			continue;
		ssize_t got = read(fd, chunk, sizeof chunk);

		if (got <= 0)
			return killed;
		buf_add(out, (struct mr_str){ chunk, (size_t)got });
	}
}

enum mr_rc
child_run(const char *const *args, int64_t kill_us, struct child *ret, struct mr_error *err)
{
	int64_t begin = now_us();
	int ends[2], status = 0;

	*ret = (struct child){ 0 };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return mr_fail_errno(err, "cannot make a pipe");
	pid_t pid = fork();

	if (pid == 0)
		become(args, ends[1]);
	(void)close(ends[1]);
	if (pid < 0) {
		(void)close(ends[0]);
		return mr_fail_errno(err, "cannot start a process");
	}
	bool killed = gather(ends[0], pid, begin, kill_us, &ret->out);

	(void)close(ends[0]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ret->took_us = now_us() - begin;
	/* It may have ended before the signal reached it: then its answer counts. */
	ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	if (killed && kill_us < 0)
		return mr_fail(err, MR_BUSY, "'mailroom %s' does not end", args[0]);
	if (!killed && ret->exit_code == -1)
		return mr_fail(err, MR_CORRUPT, "'mailroom %s' died of signal %d", args[0], WTERMSIG(status));
	if (ret->exit_code == 127)
		return mr_fail(err, MR_NOTFOUND, "cannot start this program again: '/proc/self/exe' is not there");
	return buf_ok(&ret->out) ? MR_OK : mr_nomem(err);
}

void
child_done(struct child *c)
{
	buf_done(&c->out);
}
