/* SPDX-License-Identifier: MIT */
/* Publishing in two steps: which names are left must tell whether it was published, whatever failed in between. */
#include "support/sys_fault.h"
#include "scratch.h"

#define TEXT STR("the whole message\n")
#define TEMPORARY FILE_CARRY "0123.tmp"
#define VOIDED FILE_VOID "0123.tmp"

struct folders {
	int tmp_fd, dir_fd;
};

static void
folders_done(struct folders *f)
{
	sys_close_fd(&f->tmp_fd);
	sys_close_fd(&f->dir_fd);
}

static void
folders_make(const struct scratch *s, struct folders *f)
{
	struct mr_error err = { 0 };

	assert_int_equal(dir_make(s->fd, "tmp", 0700, false, &f->tmp_fd, &err), MR_OK);
	assert_int_equal(dir_make(s->fd, "new", 0700, false, &f->dir_fd, &err), MR_OK);
	assert_int_equal(file_prepare(f->tmp_fd, TEMPORARY, TEXT, 0600, 0, &err), MR_OK);
}

static enum mr_rc
publish(const struct folders *f, struct mr_error *err)
{
	return file_prepared_publish(f->tmp_fd, TEMPORARY, f->dir_fd, "m", err);
}

static void
a_failed_sync_takes_the_name_back(void **state)
{
	mr_auto(folders_done) struct folders f = { -1, -1 };
	unsigned failures = 0, doubts = 0;
	bool hit = true;

	folders_make(*state, &f);
	for (unsigned long at = 1; hit; at++)
		for (int for_good = 0; for_good < 2; for_good++) {
			struct mr_error err = { 0 };

			sys_plan_set(&(struct sys_plan){
			    .fault = SYS_FAULT_ERRNO, .at = at, .error = EIO, .for_good = for_good == 1 });
			enum mr_rc rc = publish(&f, &err);

			hit = sys_plan_hit();
			sys_plan_set(NULL);
			assert_int_equal(exists(f.dir_fd, "m"), rc == MR_OK || rc == MR_INDOUBT);
			assert_int_equal(exists(f.tmp_fd, TEMPORARY), !exists(f.dir_fd, "m"));
			failures += rc != MR_OK;
			doubts += rc == MR_INDOUBT;
			if (exists(f.dir_fd, "m"))
				assert_int_equal(renameat(f.dir_fd, "m", f.tmp_fd, TEMPORARY), 0);
		}
	assert_true(failures >= 5);
	assert_true(doubts >= 1 && doubts < failures);
}

static bool
is_published(const struct folders *f)
{
	struct mr_error err = { 0 };
	bool published = false;

	assert_int_equal(file_prepared_void(f->tmp_fd, TEMPORARY, &published, &err), MR_OK);
	return published;
}

static int
ask_in_child(void *ctx)
{
	const struct folders *f = ctx;

	return is_published(f) ? 1 : 0;
}

static void
a_kill_while_asking_changes_no_answer(void **state)
{
	mr_auto(folders_done) struct folders f = { -1, -1 };
	static const enum sys_fault kills[] = { SYS_FAULT_KILL_BEFORE, SYS_FAULT_KILL_AFTER };

	folders_make(*state, &f);
	for (size_t k = 0; k < 2; k++) {
		int ended = -SIGKILL;

		for (unsigned long at = 1; ended == -SIGKILL; at++) {
			sys_plan_set(&(struct sys_plan){ .fault = kills[k], .at = at });
			ended = in_child(ask_in_child, &f);
			sys_plan_set(NULL);
			assert_int_not_equal(ended, 1);
			assert_false(is_published(&f));
			assert_int_equal(renameat(f.tmp_fd, VOIDED, f.tmp_fd, TEMPORARY), 0);
		}
	}
}

static void
both_names_mean_no_and_neither_means_yes(void **state)
{
	mr_auto(folders_done) struct folders f = { -1, -1 };
	struct mr_error err = { 0 };
	bool published = false;

	folders_make(*state, &f);
	write_plainly(f.tmp_fd, VOIDED, "from before a power cut");
	assert_false(is_published(&f));
	assert_false(exists(f.tmp_fd, TEMPORARY));
	assert_int_not_equal(publish(&f, &err), MR_OK);
	assert_int_equal(unlinkat(f.tmp_fd, VOIDED, 0), 0);
	assert_true(is_published(&f));
	assert_int_equal(file_prepared_void(f.tmp_fd, "m", &published, &err), MR_CORRUPT);
	assert_int_equal(file_prepared_void(f.tmp_fd, FILE_CARRY "/../m", &published, &err), MR_CORRUPT);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		in_scratch(a_failed_sync_takes_the_name_back),
		in_scratch(a_kill_while_asking_changes_no_answer),
		in_scratch(both_names_mean_no_and_neither_means_yes),
	};

	return cmocka_run_group_tests_name("base/prepared", tests, NULL, NULL);
}
