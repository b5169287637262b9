/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "base/clock.h"

#include <sys/file.h>

/* A child that takes the lock, says so through a pipe, and keeps it until it is killed. */
static pid_t
start_holder(int dir_fd)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct mr_error err = { 0 };
		int fd;
		(void)alarm(20); /* a failed test leaves nobody behind for long */
		if (lock_take(dir_fd, "lock", 0600, 0, &fd, &err) != MR_OK || write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			(void)pause();
	}
	(void)close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	(void)close(ends[0]);
	return pid;
}

static void
end_holder(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
a_lock_keeps_others_out_until_its_holder_is_killed(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	mr_auto(sys_close_fd) int fd = -1;

	assert_false(lock_is_held(s->fd, "lock"));
	assert_false(exists(s->fd, "lock"));
	pid_t holder = start_holder(s->fd);
	assert_true(lock_is_held(s->fd, "lock"));
	assert_int_equal(lock_take(s->fd, "lock", 0600, 0, &fd, &err), MR_BUSY);
	assert_int_equal(fd, -1);
	end_holder(holder);
	assert_false(lock_is_held(s->fd, "lock"));
	assert_int_equal(lock_take(s->fd, "lock", 0600, 0, &fd, &err), MR_OK);
	assert_true(lock_is_held(s->fd, "lock"));
	sys_close_fd(&fd);
	assert_false(lock_is_held(s->fd, "lock"));
}

static void
waiting_for_a_lock_ends_when_the_time_is_up(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	int fd = -1;
	pid_t holder = start_holder(s->fd);
	int64_t began_ms = clock_boot_ms();

	assert_int_equal(lock_take(s->fd, "lock", 0600, 60, &fd, &err), MR_BUSY);
	int64_t took_ms = clock_boot_ms() - began_ms;
	end_holder(holder);
	assert_true(took_ms >= 60 && took_ms < 10000);
}

static void
a_waiter_gets_the_lock_when_its_holder_dies(void **state)
{
	struct scratch *s = *state;
	static const int64_t waits[] = { 20000, -1 };

	for (size_t i = 0; i < 2; i++) {
		struct mr_error err = { 0 };
		int fd = -1;
		pid_t holder = start_holder(s->fd);
		pid_t killer = fork();
		assert_true(killer >= 0);
		if (killer == 0) {
			(void)usleep(30000);
			_exit(kill(holder, SIGKILL) == 0 ? 0 : 1);
		}
		assert_int_equal(lock_take(s->fd, "lock", 0600, waits[i], &fd, &err), MR_OK);
		sys_close_fd(&fd);
		assert_int_equal(waitpid(killer, NULL, 0), killer);
		assert_int_equal(waitpid(holder, NULL, 0), holder);
	}
}

/* The waiter sleeps on the old file; by the time it gets that lock, the name leads elsewhere. */
static void
a_lock_on_a_file_that_lost_its_name_is_not_taken_for_the_lock(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	pid_t holder = start_holder(s->fd);
	pid_t replacer = fork();

	assert_true(replacer >= 0);
	if (replacer == 0) {
		(void)usleep(30000);
		if (unlinkat(s->fd, "lock", 0) != 0 || mknodat(s->fd, "lock", S_IFREG | 0600, 0) != 0)
			_exit(1);
		_exit(kill(holder, SIGKILL) == 0 ? 0 : 1);
	}
	assert_int_equal(lock_take(s->fd, "lock", 0600, -1, &fd, &err), MR_OK);
	struct stat ours, named;
	assert_int_equal(fstat(fd, &ours), 0);
	assert_int_equal(fstatat(s->fd, "lock", &named, 0), 0);
	assert_int_equal(ours.st_ino, named.st_ino);
	assert_int_equal(waitpid(replacer, NULL, 0), replacer);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
}

static void
looking_whether_a_lock_is_held_does_not_lock_anyone_out(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };

	write_plainly(s->fd, "lock", "");
	pid_t prober = fork();
	assert_true(prober >= 0);
	if (prober == 0) {
		for (int i = 0; i < 300; i++)
			(void)lock_is_held(s->fd, "lock");
		_exit(0);
	}
	for (int i = 0; i < 50; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		assert_int_equal(lock_take(s->fd, "lock", 0600, 1000, &fd, &err), MR_OK);
	}
	assert_int_equal(waitpid(prober, NULL, 0), prober);
}

static void
what_cannot_be_a_lock_is_refused_and_counts_as_held(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	int fd = -1;

	write_plainly(s->fd, "target", "");
	assert_int_equal(symlinkat("target", s->fd, "link"), 0);
	assert_int_equal(mkfifoat(s->fd, "pipe", 0600), 0);
	assert_int_equal(lock_take(s->fd, "link", 0600, 0, &fd, &err), MR_IO);
	assert_int_equal(err.sys_errno, ELOOP);
	assert_int_equal(lock_take(s->fd, "pipe", 0600, 0, &fd, &err), MR_REFUSED);
	assert_true(lock_is_held(s->fd, "link"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		in_scratch(a_lock_keeps_others_out_until_its_holder_is_killed),
		in_scratch(waiting_for_a_lock_ends_when_the_time_is_up),
		in_scratch(a_waiter_gets_the_lock_when_its_holder_dies),
		in_scratch(a_lock_on_a_file_that_lost_its_name_is_not_taken_for_the_lock),
		in_scratch(looking_whether_a_lock_is_held_does_not_lock_anyone_out),
		in_scratch(what_cannot_be_a_lock_is_refused_and_counts_as_held),
	};

	return cmocka_run_group_tests_name("base/lock", tests, NULL, NULL);
}
