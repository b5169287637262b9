/* SPDX-License-Identifier: MIT */
#include "support/sys_fault.h"
#include "scratch.h"

#include <dirent.h>

static void
making_a_path_makes_every_missing_folder_with_its_mode(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	mode_t before = umask(077);

	sys_plan_set(NULL);
	assert_int_equal(dir_make(s->fd, "a/b/c", 0750, true, &fd, &err), MR_OK);
	assert_int_equal(sys_syncs(), 6); /* for each folder made, itself and its parent */
	(void)umask(before);
	assert_int_equal(mode_of(s->fd, "a"), 0750);
	assert_int_equal(mode_of(s->fd, "a/b/c"), 0750);
	write_plainly(fd, "inside", "x");
	assert_true(exists(s->fd, "a/b/c/inside"));
	sys_close_fd(&fd);
	sys_plan_set(NULL);
	assert_int_equal(dir_make(s->fd, "a/b/c/", 0700, true, &fd, &err), MR_OK);
	assert_int_equal(sys_syncs(), 0);
	assert_int_equal(mode_of(s->fd, "a/b/c"), 0750);
}

static void
an_absolute_path_can_be_made_where_there_is_no_folder_to_stay_in(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/x//y/", s->path);
	assert_int_equal(dir_make(AT_FDCWD, path, 0700, false, &fd, &err), MR_OK);
	assert_true(exists(s->fd, "x/y"));
	sys_close_fd(&fd);
	assert_int_equal(dir_make(s->fd, path, 0700, false, &fd, &err), MR_REFUSED);
	assert_int_equal(dir_make(s->fd, "../z", 0700, false, &fd, &err), MR_REFUSED);
	assert_int_equal(dir_make(s->fd, "", 0700, false, &fd, &err), MR_NOTFOUND);
}

static void
a_link_in_the_place_of_a_folder_is_refused(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	int fd = -7;

	assert_int_equal(mkdirat(s->fd, "real", 0700), 0);
	assert_int_equal(symlinkat("real", s->fd, "link"), 0);
	assert_int_equal(symlinkat("nowhere", s->fd, "dangling"), 0);
	write_plainly(s->fd, "file", "x");
	assert_int_equal(dir_open(s->fd, "link", &fd, &err), MR_REFUSED);
	assert_int_equal(dir_open(s->fd, "file", &fd, &err), MR_REFUSED);
	assert_int_equal(dir_open(s->fd, "none", &fd, &err), MR_NOTFOUND);
	assert_int_equal(dir_make(s->fd, "link/new", 0700, false, &fd, &err), MR_REFUSED);
	assert_int_equal(dir_make(s->fd, "dangling", 0700, false, &fd, &err), MR_REFUSED);
	assert_int_equal(dir_make(s->fd, "file/new", 0700, false, &fd, &err), MR_REFUSED);
	assert_int_equal(fd, -7);
	assert_false(exists(s->fd, "real/new"));
}

static int
make_same_path(void *ctx)
{
	const struct scratch *s = ctx;
	struct mr_error err = { 0 };
	int fd;

	return dir_make(s->fd, "p/q/r", 0700, false, &fd, &err) == MR_OK ? 0 : 1;
}

static void
many_may_make_the_same_path_at_once(void **state)
{
	struct scratch *s = *state;
	pid_t pids[8];

	/* slow, so that they do meet between looking and making */
	sys_plan_set(&(struct sys_plan){ .delay_us = 2000 });
	for (size_t i = 0; i < 8; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			_exit(make_same_path(s));
	}
	for (size_t i = 0; i < 8; i++) {
		int status = 1;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

struct seen {
	size_t count, stop_after;
	bool dots, is_file;
};

static bool
see(void *ctx, const struct dir_entry *entry)
{
	struct seen *seen = ctx;

	seen->count++;
	seen->dots |= strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0;
	seen->is_file |= entry->type == DT_REG || entry->type == DT_UNKNOWN;
	return seen->count != seen->stop_after;
}

static void
a_folder_is_read_whole_and_again_and_until_told_to_stop(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };

	for (int i = 0; i < 3000; i++) { /* more than one chunk */
		char name[64];
		(void)snprintf(name, sizeof(name), "a-rather-long-name-to-fill-the-buffer-%d", i);
		assert_int_equal(mknodat(s->fd, name, S_IFREG | 0600, 0), 0);
	}
	for (int round = 0; round < 2; round++) {
		struct seen seen = { 0 };
		assert_int_equal(dir_each(s->fd, see, &seen, &err), MR_OK);
		assert_int_equal(seen.count, 3000);
		assert_false(seen.dots);
		assert_true(seen.is_file);
	}
	struct seen few = { .stop_after = 5 };
	assert_int_equal(dir_each(s->fd, see, &few, &err), MR_OK);
	assert_int_equal(few.count, 5);
}

static void
a_removed_folder_reads_as_empty(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	struct seen seen = { 0 };

	assert_int_equal(mkdirat(s->fd, "d", 0700), 0);
	mr_auto(sys_close_fd) int fd = sys_open(s->fd, "d", O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(sys_rmdir(s->fd, "d"), 0);
	assert_int_equal(dir_each(fd, see, &seen, &err), MR_OK);
	assert_int_equal(seen.count, 0);
}

static void
a_tree_is_removed_and_what_its_links_lead_to_is_not(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };
	mr_auto(sys_close_fd) int fd = -1;

	assert_int_equal(dir_make(s->fd, "d/e/f", 0700, false, &fd, &err), MR_OK);
	assert_int_equal(mkdirat(s->fd, "kept", 0700), 0);
	write_plainly(s->fd, "kept/file", "x");
	write_plainly(s->fd, "d/file", "x");
	write_plainly(fd, "file", "x");
	assert_int_equal(symlinkat("../../kept", s->fd, "d/e/link"), 0);
	dir_remove_tree(s->fd, "d");
	assert_false(exists(s->fd, "d"));
	assert_true(exists(s->fd, "kept/file"));
	assert_int_equal(symlinkat("kept", s->fd, "link"), 0);
	dir_remove_tree(s->fd, "link");
	dir_remove_tree(s->fd, "none");
	assert_false(exists(s->fd, "link"));
	assert_true(exists(s->fd, "kept/file"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		in_scratch(making_a_path_makes_every_missing_folder_with_its_mode),
		in_scratch(an_absolute_path_can_be_made_where_there_is_no_folder_to_stay_in),
		in_scratch(a_link_in_the_place_of_a_folder_is_refused),
		in_scratch(many_may_make_the_same_path_at_once),
		in_scratch(a_folder_is_read_whole_and_again_and_until_told_to_stop),
		in_scratch(a_removed_folder_reads_as_empty),
		in_scratch(a_tree_is_removed_and_what_its_links_lead_to_is_not),
	};

	return cmocka_run_group_tests_name("base/dir", tests, NULL, NULL);
}
