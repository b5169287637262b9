/* SPDX-License-Identifier: MIT */
#include "support/sys_fault.h"
#include "scratch.h"

#define TEXT STR("the whole message\nin two lines\n")

struct publish { /* one file_publish into box/new with its temporaries in box/tmp */
	int dir_fd, tmp_fd;
	const char *name;
};

static void
publish_setup(struct scratch *s, struct publish *p)
{
	p->name = "m";
	assert_int_equal(mkdirat(s->fd, "new", 0700), 0);
	assert_int_equal(mkdirat(s->fd, "tmp", 0700), 0);
	p->dir_fd = sys_open(s->fd, "new", O_RDONLY | O_DIRECTORY, 0);
	p->tmp_fd = sys_open(s->fd, "tmp", O_RDONLY | O_DIRECTORY, 0);
}

static void
publish_done(struct publish *p)
{
	sys_close_fd(&p->dir_fd);
	sys_close_fd(&p->tmp_fd);
}

static enum mr_rc
publish(const struct publish *p, struct mr_error *err)
{
	return file_publish(p->dir_fd, p->tmp_fd, p->name, TEXT, 0400, PUBLISH_FULL, err);
}

static int
publish_in_child(void *ctx)
{
	struct mr_error err = { 0 };

	return publish(ctx, &err) == MR_OK ? 0 : 1;
}

static void
clear(const struct publish *p)
{
	(void)unlinkat(p->dir_fd, p->name, 0);
	assert_int_equal(entries_in(p->dir_fd), 0);
}

static void
publishing_writes_the_whole_file_with_its_mode_and_syncs_it_twice_and_its_folder(void **state)
{
	struct scratch *s = *state;
	mr_auto(publish_done) struct publish p;
	struct mr_error err = { 0 };

	publish_setup(s, &p);
	sys_plan_set(NULL);
	assert_int_equal(publish(&p, &err), MR_OK);
	assert_int_equal(sys_syncs(), 3);
	assert_holds(p.dir_fd, "m", TEXT);
	assert_int_equal(mode_of(p.dir_fd, "m"), 0400);
	assert_int_equal(entries_in(p.dir_fd), 1);
	assert_int_equal(entries_in(p.tmp_fd), 0);
}

static void
publishing_never_overwrites(void **state)
{
	struct scratch *s = *state;
	mr_auto(publish_done) struct publish p;
	struct mr_error err = { 0 };

	publish_setup(s, &p);
	write_plainly(p.dir_fd, "m", "old");
	assert_int_equal(publish(&p, &err), MR_EXISTS);
	assert_int_equal(err.sys_errno, EEXIST);
	assert_holds(p.dir_fd, "m", STR("old"));
	assert_int_equal(entries_in(p.tmp_fd), 0);
}

static void
a_kill_at_any_point_of_publishing_leaves_all_or_nothing(void **state)
{
	struct scratch *s = *state;
	mr_auto(publish_done) struct publish p;
	static const enum sys_fault kills[] = { SYS_FAULT_KILL_BEFORE, SYS_FAULT_KILL_AFTER };
	unsigned kill_points = 0, nothing = 0, all = 0;

	publish_setup(s, &p);
	for (size_t k = 0; k < 2; k++) {
		int ended = -SIGKILL;
		for (unsigned long at = 1; ended == -SIGKILL; at++) {
			sys_plan_set(&(struct sys_plan){ .fault = kills[k], .at = at });
			ended = in_child(publish_in_child, &p);
			sys_plan_set(NULL);
			bool there = exists(p.dir_fd, "m");
			if (there)
				assert_holds(p.dir_fd, "m", TEXT);
			if (ended == -SIGKILL) {
				kill_points++;
				all += there;
				nothing += !there;
			} else {
				assert_int_equal(ended, 0);
				assert_true(there);
			}
			clear(&p);
		}
	}
	assert_true(kill_points >= 12); /* open, write, fsync, link, fsync, fsync: before and after */
	assert_true(nothing >= 6 && all >= 4);
}

static void
check_publish_failure(const struct publish *p, const struct sys_plan *plan)
{
	struct mr_error err = { 0 };

	sys_plan_set(plan);
	enum mr_rc rc = publish(p, &err);
	bool hit = sys_plan_hit();
	sys_plan_set(NULL);
	bool there = exists(p->dir_fd, "m");

	if (there)
		assert_holds(p->dir_fd, "m", TEXT);
	/* visible means accepted or in doubt; refused means invisible */
	assert_int_equal(there, rc == MR_OK || rc == MR_INDOUBT);
	if (rc != MR_OK) {
		assert_true(hit);
		assert_int_equal(rc, err.code);
		assert_true(err.message[0] != '\0');
		assert_int_equal(err.sys_errno, plan->error);
	}
	if (!plan->for_good)
		assert_int_not_equal(rc, MR_INDOUBT);
	clear(p);
}

static void
a_failure_at_any_point_of_publishing_is_said_and_leaves_nothing_visible(void **state)
{
	struct scratch *s = *state;
	mr_auto(publish_done) struct publish p;
	struct mr_error err = { 0 };
	static const int errors[] = { EIO, ENOSPC, EDQUOT, EMFILE, EACCES, EROFS };

	publish_setup(s, &p);
	sys_plan_set(NULL);
	assert_int_equal(publish(&p, &err), MR_OK);
	unsigned long calls = sys_calls();
	clear(&p);
	for (unsigned long at = 1; at <= calls; at++) {
		for (size_t e = 0; e < sizeof(errors) / sizeof(errors[0]); e++) {
			struct sys_plan plan = { .fault = SYS_FAULT_ERRNO, .at = at, .error = errors[e] };
			check_publish_failure(&p, &plan);
			plan.for_good = true;
			check_publish_failure(&p, &plan);
		}
	}
}

static void
a_name_that_cannot_be_made_durable_nor_taken_back_is_in_doubt(void **state)
{
	struct scratch *s = *state;
	mr_auto(publish_done) struct publish p;
	struct mr_error err = { 0 };

	publish_setup(s, &p);
	sys_plan_set(NULL);
	assert_int_equal(publish(&p, &err), MR_OK);
	/* the last call: the folder's sync, or before the removal of a temporary name */
	unsigned long at = sys_calls();
	clear(&p);
	for (enum mr_rc rc = MR_OK; rc == MR_OK; at--) {
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EIO, .for_good = true });
		rc = publish(&p, &err);
		sys_plan_set(NULL);
		assert_true(rc == MR_OK || rc == MR_INDOUBT);
		clear(&p);
	}
	assert_int_equal(err.code, MR_INDOUBT);
	assert_int_equal(err.sys_errno, EIO);
	assert_non_null(strstr(err.message, "visible"));
}

static void
interruptions_and_short_writes_do_not_disturb_publishing(void **state)
{
	struct scratch *s = *state;
	mr_auto(publish_done) struct publish p;
	struct mr_error err = { 0 };

	publish_setup(s, &p);
	for (unsigned long at = 1; at <= 12; at++) {
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EINTR });
		assert_int_equal(publish(&p, &err), MR_OK);
		assert_holds(p.dir_fd, "m", TEXT);
		clear(&p);
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_SHORT, .at = at, .for_good = true });
		assert_int_equal(publish(&p, &err), MR_OK);
		sys_plan_set(NULL);
		assert_holds(p.dir_fd, "m", TEXT);
		clear(&p);
	}
}

static void
one_staged_file_is_linked_into_many_folders(void **state)
{
	struct scratch *s = *state;
	mr_auto(publish_done) struct publish p;
	mr_auto(stage_done) struct staged staged = STAGED_INIT;
	struct mr_error err = { 0 };
	struct stat st;

	publish_setup(s, &p);
	assert_int_equal(stage_open(&staged, p.dir_fd, p.tmp_fd, 0400, &err), MR_OK);
	assert_int_equal(stage_write(&staged, TEXT, &err), MR_OK);
	assert_int_equal(stage_sync(&staged, &err), MR_OK);
	assert_int_equal(stage_link(&staged, p.dir_fd, "one", &err), MR_OK);
	assert_int_equal(stage_link(&staged, s->fd, "two", &err), MR_OK);
	/* the same file is there already: a fan-out that is being completed */
	assert_int_equal(stage_link(&staged, p.dir_fd, "one", &err), MR_OK);
	write_plainly(s->fd, "other", "x");
	assert_int_equal(stage_link(&staged, s->fd, "other", &err), MR_EXISTS);
	stage_done(&staged);
	assert_int_equal(fstatat(s->fd, "two", &st, 0), 0);
	assert_int_equal(st.st_nlink, 2);
	assert_int_equal(entries_in(p.tmp_fd), 0);
	assert_holds(s->fd, "other", STR("x"));
}

#ifndef MR_PORTABLE
static void
where_an_unnamed_file_cannot_be_named_its_bytes_move_to_a_temporary_one(void **state)
{
	struct scratch *s = *state;
	mr_auto(publish_done) struct publish p;
	mr_auto(stage_done) struct staged staged = STAGED_INIT;
	struct mr_error err = { 0 };

	publish_setup(s, &p);
	assert_int_equal(stage_open(&staged, p.dir_fd, p.tmp_fd, 0400, &err), MR_OK);
	if (staged.name[0] != '\0')
		skip(); /* no unnamed files on this file system */
	assert_int_equal(stage_write(&staged, TEXT, &err), MR_OK);
	sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = 1, .error = EOPNOTSUPP });
	assert_int_equal(stage_link(&staged, p.dir_fd, "m", &err), MR_OK);
	assert_int_equal(sys_syncs(), 1); /* the copy is flushed before it has its name */
	sys_plan_set(NULL);
	assert_int_equal(entries_in(p.tmp_fd), 1);
	assert_int_equal(strncmp(staged.name, "mr-", 3), 0);
	assert_true(str_ends(str_of(staged.name), ".tmp"));
	stage_done(&staged);
	assert_int_equal(entries_in(p.tmp_fd), 0);
	assert_holds(p.dir_fd, "m", TEXT);
	assert_int_equal(mode_of(p.dir_fd, "m"), 0400);
}

static void
the_reason_why_a_link_failed_reaches_the_caller(void **state)
{
	struct scratch *s = *state;
	mr_auto(stage_done) struct staged staged = STAGED_INIT;
	struct mr_error err = { 0 };
	static const int errors[] = { EXDEV, EMLINK };

	assert_int_equal(stage_open(&staged, s->fd, s->fd, 0400, &err), MR_OK);
	for (size_t i = 0; i < 2; i++) {
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = 1, .error = errors[i] });
		assert_int_equal(stage_link(&staged, s->fd, "m", &err), MR_IO);
		assert_int_equal(err.sys_errno, errors[i]);
	}
}
#endif

static int
replace_in_child(void *ctx)
{
	const struct scratch *s = ctx;
	struct mr_error err = { 0 };

	return file_replace(s->fd, "f", STR("the new text"), 0600, &err) == MR_OK ? 0 : 1;
}

static void
a_kill_at_any_point_of_replacing_leaves_the_old_or_the_new_version(void **state)
{
	struct scratch *s = *state;
	unsigned old = 0, new = 0;
	int ended = -SIGKILL;

	for (unsigned long at = 1; ended == -SIGKILL; at++) {
		mr_auto(buf_done) struct buf got = BUF_INIT;
		struct mr_error err = { 0 };
		write_plainly(s->fd, "f", "old");
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE, .at = at });
		ended = in_child(replace_in_child, s);
		sys_plan_set(NULL);
		assert_int_equal(file_read(s->fd, "f", 100, &got, &err), MR_OK);
		if (strcmp(buf_z(&got), "old") == 0)
			old++;
		else
			new ++;
		assert_true(strcmp(buf_z(&got), "old") == 0 || strcmp(buf_z(&got), "the new text") == 0);
	}
	assert_true(old >= 4 && new >= 2);
}

static void
a_failed_replace_keeps_the_old_version_and_no_leftovers(void **state)
{
	struct scratch *s = *state;
	struct mr_error err = { 0 };

	for (unsigned long at = 1; at <= 4; at++) { /* open, write, fsync, rename */
		write_plainly(s->fd, "f", "old");
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = ENOSPC });
		assert_int_equal(file_replace(s->fd, "f", STR("new"), 0600, &err), MR_FULL);
		sys_plan_set(NULL);
		assert_holds(s->fd, "f", STR("old"));
		assert_int_equal(entries_in(s->fd), 1);
	}
	assert_int_equal(file_replace(s->fd, "f", STR("new"), 0640, &err), MR_OK);
	assert_holds(s->fd, "f", STR("new"));
	assert_int_equal(mode_of(s->fd, "f"), 0640);
}

static void
reading_stops_at_the_limit_and_takes_only_regular_files(void **state)
{
	struct scratch *s = *state;
	mr_auto(buf_done) struct buf got = BUF_INIT;
	struct mr_error err = { 0 };

	write_plainly(s->fd, "f", "12345");
	write_plainly(s->fd, "empty", "");
	assert_int_equal(symlinkat("f", s->fd, "link"), 0);
	assert_int_equal(mkfifoat(s->fd, "pipe", 0600), 0);
	buf_adds(&got, "kept ");
	assert_int_equal(file_read(s->fd, "f", 4, &got, &err), MR_REFUSED);
	assert_int_equal(file_read(s->fd, "none", 4, &got, &err), MR_NOTFOUND);
	assert_int_equal(file_read(s->fd, "link", 9, &got, &err), MR_REFUSED);
	assert_int_equal(file_read(s->fd, "pipe", 9, &got, &err), MR_REFUSED);
	assert_int_equal(file_read(s->fd, ".", 9, &got, &err), MR_REFUSED);
	assert_int_equal(file_read(s->fd, "../x", 9, &got, &err), MR_REFUSED);
	assert_string_equal(buf_z(&got), "kept ");
	assert_int_equal(file_read(s->fd, "empty", 0, &got, &err), MR_OK);
	assert_int_equal(file_read(s->fd, "f", 5, &got, &err), MR_OK);
	assert_string_equal(buf_z(&got), "kept 12345");
}

static void
a_pipe_is_read_to_its_end_or_to_the_limit(void **state)
{
	(void)state;
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf got = BUF_INIT;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "abcdef", 6), 6);
	assert_int_equal(file_read_fd(ends[0], 3, &got, &err), MR_REFUSED);
	assert_int_equal(got.len, 0);
	assert_int_equal(write(ends[1], "xyz", 3), 3);
	(void)close(ends[1]);
	assert_int_equal(file_read_fd(ends[0], 3, &got, &err), MR_OK);
	assert_string_equal(buf_z(&got), "xyz");
	(void)close(ends[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		in_scratch(publishing_writes_the_whole_file_with_its_mode_and_syncs_it_twice_and_its_folder),
		in_scratch(publishing_never_overwrites),
		in_scratch(a_kill_at_any_point_of_publishing_leaves_all_or_nothing),
		in_scratch(a_failure_at_any_point_of_publishing_is_said_and_leaves_nothing_visible),
		in_scratch(a_name_that_cannot_be_made_durable_nor_taken_back_is_in_doubt),
		in_scratch(interruptions_and_short_writes_do_not_disturb_publishing),
		in_scratch(one_staged_file_is_linked_into_many_folders),
#ifndef MR_PORTABLE
		in_scratch(where_an_unnamed_file_cannot_be_named_its_bytes_move_to_a_temporary_one),
		in_scratch(the_reason_why_a_link_failed_reaches_the_caller),
#endif
		in_scratch(a_kill_at_any_point_of_replacing_leaves_the_old_or_the_new_version),
		in_scratch(a_failed_replace_keeps_the_old_version_and_no_leftovers),
		in_scratch(reading_stops_at_the_limit_and_takes_only_regular_files),
		in_scratch(a_pipe_is_read_to_its_end_or_to_the_limit),
	};

	return cmocka_run_group_tests_name("base/file", tests, NULL, NULL);
}
