/* SPDX-License-Identifier: MIT */
/*
 * lock.c - flock on a named file.
 *
 * The file may be removed or replaced while we wait for it; a lock on a file that has lost its name excludes no other
 * process. So after getting the lock we check that the name still refers to our file.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>

#define FIRST_PAUSE_US 1000U
#define LONGEST_PAUSE_US 20000U
/* lock_is_held() briefly takes the lock itself, so a process that fails at that moment tries again. */
#define PROBE_PAUSE_US 200U
#define PROBE_TRIES 3

static _Thread_local int64_t waited_us;

void
lock_pause_us(unsigned us)
{
	struct timespec t = { .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 };
	int64_t start_ns = clock_now_ns();

	(void)nanosleep(&t, NULL);
	waited_us += (clock_now_ns() - start_ns) / 1000;
}

int64_t
lock_waited_us(void)
{
	int64_t us = waited_us;

	waited_us = 0;
	return us;
}

int
lock_within(int fd, int how, int64_t wait_ms)
{
	if (wait_ms < 0)
		return sys_flock(fd, how);

	int64_t deadline_ms = clock_boot_ms() + wait_ms;
	unsigned pause = wait_ms == 0 ? PROBE_PAUSE_US : FIRST_PAUSE_US;
	for (int tries = 1;; tries++) {
		if (sys_flock(fd, how | LOCK_NB) == 0)
			return 0;
		bool over = wait_ms == 0 ? tries >= PROBE_TRIES : clock_boot_ms() >= deadline_ms;
		if (errno != EWOULDBLOCK || over)
			return -1;
		lock_pause_us(pause);
		if (wait_ms > 0)
			pause = pause * 2 < LONGEST_PAUSE_US ? pause * 2 : LONGEST_PAUSE_US;
	}
}

enum mr_rc
lock_take(int dir_fd, const char *name, mode_t mode, int64_t wait_ms, int *ret_fd, struct mr_error *err)
{
	int64_t deadline_ms = wait_ms > 0 ? clock_boot_ms() + wait_ms : 0;

	for (;;) {
		struct stat ours, there;
		mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDWR | O_CREAT | O_NONBLOCK, mode);

		if (fd < 0)
			return mr_fail_errno(err, "cannot open lock '%s'", name);
		if (lock_within(fd, LOCK_EX, wait_ms) < 0) {
			if (errno != EWOULDBLOCK)
				return mr_fail_errno(err, "cannot lock '%s'", name);
			return mr_fail(err, MR_BUSY,
			    "'%s' is locked by another process\n"
			    "try again in a moment; the lock ends with that process",
			    name);
		}
		if (sys_stat_fd(fd, &ours) < 0)
			return mr_fail_errno(err, "cannot look at lock '%s'", name);
		if (!S_ISREG(ours.st_mode))
			return mr_fail(err, MR_REFUSED, "cannot lock '%s': not a regular file", name);
		bool has_name = sys_stat(dir_fd, name, &there) == 0;

		if (!has_name && errno != ENOENT)
			return mr_fail_errno(err, "cannot look at lock '%s'", name);
		if (has_name && ours.st_dev == there.st_dev && ours.st_ino == there.st_ino) {
			*ret_fd = fd;
			fd = -1;
			return MR_OK;
		}
		if (wait_ms > 0) {
			int64_t left_ms = deadline_ms - clock_boot_ms();
			wait_ms = left_ms > 0 ? left_ms : 0;
		}
	}
}

bool
lock_is_held(int dir_fd, const char *name)
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_RDONLY | O_NONBLOCK, 0);

	/* An error does not mean that the holder is gone. */
	if (fd < 0)
		return errno != ENOENT;
	return sys_flock(fd, LOCK_SH | LOCK_NB) < 0;
}
