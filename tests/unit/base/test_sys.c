/* SPDX-License-Identifier: MIT */
#include "support/sys_fault.h"
#include "scratch.h"

#include <sys/file.h>

static void
open_refuses_links_on_the_way_and_at_the_end(void **state)
{
	struct scratch *s = *state;

	assert_int_equal(mkdirat(s->fd, "real", 0700), 0);
	write_plainly(s->fd, "real/file", "x");
	assert_int_equal(symlinkat("real", s->fd, "folder-link"), 0);
	assert_int_equal(symlinkat("real/file", s->fd, "file-link"), 0);

	int fd = sys_open(s->fd, "real/file", O_RDONLY, 0);
	assert_true(fd >= 0);
	(void)sys_close(fd);
	assert_int_equal(sys_open(s->fd, "folder-link/file", O_RDONLY, 0), -1);
	assert_true(errno == ELOOP || errno == ENOTDIR);
	assert_int_equal(sys_open(s->fd, "file-link", O_RDONLY, 0), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(sys_open(s->fd, "folder-link", O_RDONLY | O_DIRECTORY, 0), -1);
	assert_int_equal(sys_open(s->fd, "folder-link/new", O_WRONLY | O_CREAT, 0600), -1);
	assert_false(exists(s->fd, "real/new"));
}

static void
open_refuses_to_leave_the_folder(void **state)
{
	struct scratch *s = *state;
	static const char *const paths[] = { "..", "../x", "a/../../x", "/etc/passwd", "a/..", "./../x" };

	assert_int_equal(mkdirat(s->fd, "a", 0700), 0);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_int_equal(sys_open(s->fd, paths[i], O_RDONLY, 0), -1);
		assert_int_equal(errno, EXDEV);
	}
	/* two dots are an ordinary part of a longer name */
	write_plainly(s->fd, "a/..b", "x");
	int fd = sys_open(s->fd, "a/..b", O_RDONLY, 0);
	assert_true(fd >= 0);
	(void)sys_close(fd);
}

static void
open_takes_an_absolute_path_only_without_a_folder(void **state)
{
	struct scratch *s = *state;

	int fd = sys_open(AT_FDCWD, s->path, O_RDONLY | O_DIRECTORY, 0);
	assert_true(fd >= 0);
	assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	(void)sys_close(fd);
}

static void
files_and_folders_get_exactly_their_mode_whatever_the_umask(void **state)
{
	struct scratch *s = *state;
	static const mode_t masks[] = { 0, 022, 077, 0777 };

	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		char name[16];
		mode_t before = umask(masks[i]);
		(void)snprintf(name, sizeof(name), "f%zu", i);
		int fd = sys_open(s->fd, name, O_RDWR | O_CREAT | O_EXCL, 0640);
		(void)snprintf(name, sizeof(name), "l%zu", i);
		int lax = sys_open(s->fd, name, O_RDWR | O_CREAT, 0660);
		(void)snprintf(name, sizeof(name), "d%zu", i);
		int made = sys_mkdir(s->fd, name, 02770);
		int unnamed = sys_open_unnamed(s->fd, 0440);
		struct stat st = { .st_mode = 0440 };
		assert_true(unnamed < 0 ? errno == EOPNOTSUPP : fstat(unnamed, &st) == 0);
		(void)umask(before);

		assert_true(fd >= 0 && lax >= 0 && made == 0);
		assert_int_equal(mode_of(s->fd, name), 02770);
		(void)snprintf(name, sizeof(name), "f%zu", i);
		assert_int_equal(mode_of(s->fd, name), 0640);
		(void)snprintf(name, sizeof(name), "l%zu", i);
		assert_int_equal(mode_of(s->fd, name), 0660);
		assert_int_equal(st.st_mode & 07777, 0440);
		sys_close_fd(&fd);
		sys_close_fd(&lax);
		sys_close_fd(&unnamed);
	}
}

static void
opening_an_existing_file_leaves_its_mode_alone(void **state)
{
	struct scratch *s = *state;

	write_plainly(s->fd, "f", "x");
	int fd = sys_open(s->fd, "f", O_RDWR | O_CREAT, 0644);
	assert_true(fd >= 0);
	(void)sys_close(fd);
	assert_int_equal(mode_of(s->fd, "f"), 0600);
}

static void
an_unnamed_file_gets_a_name_once_and_never_overwrites(void **state)
{
	struct scratch *s = *state;

	mr_auto(sys_close_fd) int fd = sys_open_unnamed(s->fd, 0400);
	if (fd < 0) {
		assert_int_equal(errno, EOPNOTSUPP);
		skip();
	}
	write_plainly(s->fd, "taken", "old");
	assert_int_equal(sys_write_all(fd, "new", 3), 0);
	assert_int_equal(sys_link_unnamed(fd, s->fd, "taken"), -1);
	assert_int_equal(errno, EEXIST);
	assert_holds(s->fd, "taken", STR("old"));
	assert_int_equal(sys_link_unnamed(fd, s->fd, "free"), 0);
	assert_holds(s->fd, "free", STR("new"));
	assert_int_equal(sys_link_unnamed(fd, s->fd, "again"), 0);
}

static void
a_vanished_folder_is_not_mistaken_for_a_system_without_unnamed_files(void **state)
{
	struct scratch *s = *state;

	mr_auto(sys_close_fd) int fd = sys_open_unnamed(s->fd, 0400);
	if (fd < 0)
		skip();
	assert_int_equal(mkdirat(s->fd, "gone", 0700), 0);
	mr_auto(sys_close_fd) int gone = sys_open(s->fd, "gone", O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(sys_rmdir(s->fd, "gone"), 0);
	assert_int_equal(sys_link_unnamed(fd, gone, "x"), -1);
	assert_int_equal(errno, ENOENT);
}

static void
rename_new_never_overwrites(void **state)
{
	struct scratch *s = *state;

	write_plainly(s->fd, "a", "a");
	write_plainly(s->fd, "b", "b");
	assert_int_equal(sys_rename_new(s->fd, "a", s->fd, "b"), -1);
	assert_int_equal(errno, EEXIST);
	assert_holds(s->fd, "a", STR("a"));
	assert_holds(s->fd, "b", STR("b"));
	assert_int_equal(sys_rename_new(s->fd, "a", s->fd, "c"), 0);
	assert_false(exists(s->fd, "a"));
	assert_holds(s->fd, "c", STR("a"));
}

/* EINVAL is what a file system without RENAME_NOREPLACE says. */
static void
rename_new_falls_back_to_a_look_and_a_rename(void **state)
{
	struct scratch *s = *state;

	write_plainly(s->fd, "a", "a");
	write_plainly(s->fd, "b", "b");
#ifndef MR_PORTABLE
	struct sys_plan plan = { .fault = SYS_FAULT_ERRNO, .at = 1, .error = EINVAL };
#else
	struct sys_plan plan = { 0 };
#endif
	sys_plan_set(&plan);
	assert_int_equal(sys_rename_new(s->fd, "a", s->fd, "b"), -1);
	assert_int_equal(errno, EEXIST);
	sys_plan_set(&plan);
	assert_int_equal(sys_rename_new(s->fd, "a", s->fd, "c"), 0);
	assert_false(exists(s->fd, "a"));
	assert_holds(s->fd, "b", STR("b"));
	assert_holds(s->fd, "c", STR("a"));
}

static void
a_short_write_is_continued(void **state)
{
	struct scratch *s = *state;
	static const char text[] = "0123456789";
	struct sys_plan plan = { .fault = SYS_FAULT_SHORT, .at = 2, .for_good = true };

	sys_plan_set(&plan);
	mr_auto(sys_close_fd) int fd = sys_open(s->fd, "f", O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(sys_write_all(fd, text, 10), 0);
	assert_true(sys_plan_hit());
	assert_true(sys_calls() > 3);
	assert_int_equal(sys_pwrite_all(fd, "abcdef", 6, 2), 0);
	sys_plan_set(NULL);
	assert_holds(s->fd, "f", STR("01abcdef89"));
}

static int
interrupted_work(int dir_fd)
{
	char byte;
	struct stat st;
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, "f", O_RDWR | O_CREAT, 0600);

	if (fd < 0 || sys_flock(fd, LOCK_EX | LOCK_NB) < 0 || sys_write_all(fd, "x", 1) < 0 || sys_fsync(fd) < 0 ||
	    sys_pread(fd, &byte, 1, 0) != 1 || sys_read(fd, &byte, 1) != 0 || sys_stat(dir_fd, "f", &st) < 0 ||
	    sys_link(dir_fd, "f", dir_fd, "g") < 0 || sys_rename(dir_fd, "g", dir_fd, "h") < 0 ||
	    sys_touch(dir_fd, "h", 0) < 0 || sys_unlink(dir_fd, "h") < 0 || sys_fsync(dir_fd) < 0 ||
	    sys_mkdir(dir_fd, "d", 0700) < 0)
		return -1;
	return sys_rmdir(dir_fd, "d");
}

static void
an_interrupted_call_is_repeated(void **state)
{
	struct scratch *s = *state;

	sys_plan_set(NULL);
	assert_int_equal(interrupted_work(s->fd), 0);
	unsigned long calls = sys_calls();
	assert_int_equal(sys_syncs(), 2);
	assert_true(calls >= 14);
	for (unsigned long at = 1; at <= calls; at++) {
		struct sys_plan plan = { .fault = SYS_FAULT_ERRNO, .at = at, .error = EINTR, .for_good = true };
		sys_plan_set(&plan);
		assert_int_equal(interrupted_work(s->fd), 0);
		assert_true(sys_plan_hit());
		assert_int_equal(sys_calls(), calls + 1);
	}
}

static void
a_planned_error_comes_once_or_for_good(void **state)
{
	struct scratch *s = *state;
	struct sys_plan plan = { .fault = SYS_FAULT_ERRNO, .at = 2, .error = EIO };

	sys_plan_set(&plan);
	assert_int_equal(sys_fsync(s->fd), 0);
	assert_int_equal(sys_fsync(s->fd), -1);
	assert_int_equal(errno, EIO);
	assert_int_equal(sys_fsync(s->fd), 0);
	plan.for_good = true;
	sys_plan_set(&plan);
	assert_int_equal(sys_fsync(s->fd), 0);
	assert_int_equal(sys_fsync(s->fd), -1);
	assert_int_equal(sys_fsync(s->fd), -1);
}

static void
only_for_a_folder_is_an_impossible_sync_no_failure(void **state)
{
	struct scratch *s = *state;
	struct sys_plan plan = { .fault = SYS_FAULT_ERRNO, .at = 1, .error = EINVAL };

	write_plainly(s->fd, "f", "x");
	mr_auto(sys_close_fd) int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	mr_auto(sys_close_fd) int file = openat(s->fd, "f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(sys_fsync(fd), -1);
	assert_int_equal(errno, EINVAL);
	sys_plan_set(&plan);
	assert_int_equal(sys_fsync(s->fd), 0);
	sys_plan_set(&plan);
	assert_int_equal(sys_fsync(file), -1);
}

static int
unlink_under_plan(void *ctx)
{
	const struct scratch *s = ctx;

	return sys_unlink(s->fd, "f");
}

static void
a_kill_comes_before_or_after_the_call(void **state)
{
	struct scratch *s = *state;
	struct sys_plan plan = { .fault = SYS_FAULT_KILL_BEFORE, .at = 1 };

	write_plainly(s->fd, "f", "x");
	sys_plan_set(&plan);
	assert_int_equal(in_child(unlink_under_plan, s), -SIGKILL);
	assert_true(exists(s->fd, "f"));
	plan.fault = SYS_FAULT_KILL_AFTER;
	sys_plan_set(&plan);
	assert_int_equal(in_child(unlink_under_plan, s), -SIGKILL);
	assert_false(exists(s->fd, "f"));
}

struct helper {
	unsigned asked, has;
};

static bool
free_some(void *ctx)
{
	struct helper *h = ctx;
	struct stat st;

	assert_int_equal(sys_stat(AT_FDCWD, "/none", &st), -1); /* its own calls do not ask for it */
	h->asked++;
	return h->has > 0 && h->has--;
}

static void
a_call_without_space_is_tried_again_while_some_is_freed(void **state)
{
	struct scratch *s = *state;
	struct helper h = { .has = 1 };
	struct sys_relief relief = { .free_some = free_some, .ctx = &h };

	assert_null(sys_relief_set(&relief));
	sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = 1, .error = ENOSPC });
	assert_int_equal(sys_mkdir(s->fd, "made", 0700), 0);
	assert_int_equal(h.asked, 1);
	sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = 1, .for_good = true, .error = ENOSPC });
	h = (struct helper){ .has = 3 };
	assert_int_equal(sys_mkdir(s->fd, "not", 0700), -1);
	assert_int_equal(errno, ENOSPC);
	assert_int_equal(h.asked, 4); /* the last time there was nothing left */
	sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = 1, .error = EIO });
	assert_int_equal(sys_mkdir(s->fd, "not", 0700), -1);
	assert_int_equal(h.asked, 4);
	sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = 1, .error = ENOSPC });
	h.has = 1;
	assert_int_equal(sys_fsync(s->fd), -1); /* what it did not write is lost */
	assert_int_equal(h.asked, 4);
	sys_plan_set(NULL);
	assert_ptr_equal(sys_relief_set(NULL), &relief);
}

static void
allocated_space_is_there(void **state)
{
	struct scratch *s = *state;
	struct stat st;
	char byte = 'x';

	int fd = sys_open(s->fd, "space", O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_int_equal(sys_write_all(fd, "abc", 3), 0);
	assert_int_equal(sys_allocate(fd, 16384), 0);
	assert_int_equal(sys_stat_fd(fd, &st), 0);
	assert_int_equal(st.st_size, 16384);
	assert_true(st.st_blocks * 512 >= 16384);
	assert_int_equal(sys_pread(fd, &byte, 1, 2), 1);
	assert_int_equal(byte, 'c');
	assert_int_equal(sys_pread(fd, &byte, 1, 16383), 1);
	assert_int_equal(byte, 0);
	(void)sys_close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: sys.c remembers which way of naming works */
		in_scratch(a_vanished_folder_is_not_mistaken_for_a_system_without_unnamed_files),
		in_scratch(open_refuses_links_on_the_way_and_at_the_end),
		in_scratch(open_refuses_to_leave_the_folder),
		in_scratch(open_takes_an_absolute_path_only_without_a_folder),
		in_scratch(files_and_folders_get_exactly_their_mode_whatever_the_umask),
		in_scratch(opening_an_existing_file_leaves_its_mode_alone),
		in_scratch(an_unnamed_file_gets_a_name_once_and_never_overwrites),
		in_scratch(rename_new_never_overwrites),
		in_scratch(rename_new_falls_back_to_a_look_and_a_rename),
		in_scratch(a_short_write_is_continued),
		in_scratch(an_interrupted_call_is_repeated),
		in_scratch(a_planned_error_comes_once_or_for_good),
		in_scratch(only_for_a_folder_is_an_impossible_sync_no_failure),
		in_scratch(a_kill_comes_before_or_after_the_call),
		in_scratch(a_call_without_space_is_tried_again_while_some_is_freed),
		in_scratch(allocated_space_is_there),
	};

	return cmocka_run_group_tests_name("base/sys", tests, NULL, NULL);
}
