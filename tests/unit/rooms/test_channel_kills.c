/* SPDX-License-Identifier: MIT */
/* Posts and retention killed, or refused by the kernel, at every call. */
#include "support/sys_fault.h"
#include "posts.h"

struct blow {
	struct sys_plan plan;
	char id[MR_ID_LEN + 1];
	uint64_t below; /* for a drop */
};

static void
work_post_with_blow(struct box *b, void *arg)
{
	const struct blow *blow = arg;
	struct mr_error err = { 0 };

	sys_plan_set(&blow->plan);
	enum mr_rc rc = send_post(b, blow->id, true, &err);
	bool hit = sys_plan_hit();

	sys_plan_set(NULL);
	_exit(hit ? rc == MR_OK ? 2 : rc == MR_INDOUBT ? 3 : 4 : 0);
}

/* The status that it ended with; -1: killed. */
static int
end_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static size_t
bobs_copies(struct box *b, const char *id)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	mr_auto(listing_done) struct listing l = { 0 };

	EXPECT(MR_OK, list_folders(&box, MR_INBOX, false, id, &l, &err));
	return l.n;
}

static void
post_with_every_blow(struct box *b, struct sys_plan plan)
{
	struct reading before = read_all(b);
	size_t expected = before.n;
	int end = 1;

	mr_names_done(&before.ids);

	for (plan.at = 1; end != 0; plan.at++) {
		struct blow blow = { .plan = plan };
		char id[MR_ID_LEN + 1];

		id_new(blow.id);
		end = end_of(box_fork(b, work_post_with_blow, &blow));
		EXPECT(MR_OK, maildir_sweep(&b->room, NULL, &err));
		post(b, id);
		struct reading r = read_all(b); /* no hole, nothing twice */
		bool posted = names_has(&r.ids, blow.id);

		assert_true(names_has(&r.ids, id));
		assert_int_equal(posted, bobs_copies(b, blow.id)); /* both or neither */
		if (end == 0 || end == 2 || end == 3)
			assert_true(posted);
		if (end == 4 && posted)
			fail_msg("refused at call %lu, but posted", plan.at);
		expected += 1 + posted;
		assert_int_equal(r.n, expected);
		assert_int_equal(r.last, expected);
		mr_names_done(&r.ids);
	}
	assert_true(plan.at > 20); /* a harness that injects nothing also passes */
}

static void
a_post_killed_anywhere_leaves_no_hole_and_no_double(void **state)
{
	post_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE });
	post_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER });
}

static void
a_post_that_the_kernel_refuses_anywhere_leaves_no_hole_and_no_double(void **state)
{
	post_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_ERRNO, .error = EIO });
}

static void
work_drop_with_blow(struct box *b, void *arg)
{
	const struct blow *blow = arg;
	struct mr_error err = { 0 };
	size_t removed = 0;

	sys_plan_set(&blow->plan);
	(void)maildir_remove(
	    &b->room, &(struct removal){ .what = REMOVE_POSTS, .box = "news", .below = blow->below }, &removed, &err);
	bool hit = sys_plan_hit();

	sys_plan_set(NULL);
	_exit(hit ? 2 : 0);
}

static void
drop_with_every_blow(struct box *b, struct sys_plan plan, bool all)
{
	struct reading before = read_all(b);
	uint64_t last = before.last;
	int end = 1;

	mr_names_done(&before.ids);

	for (plan.at = 1; end != 0; plan.at++) {
		post_some(b, 4);
		last += 4;
		struct blow blow = { .plan = plan, .below = all ? last + 1 : last - 1 };

		end = end_of(box_fork(b, work_drop_with_blow, &blow));
		post_some(b, 1);
		last++;
		struct reading r = read_all(b);

		assert_int_equal(r.last, last); /* the next number, whatever is left */
		mr_names_done(&r.ids);
	}
	assert_true(plan.at > 10);
}

static void
retention_killed_anywhere_leaves_no_hole_and_no_number_to_be_used_again(void **state)
{
	drop_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE }, false);
	drop_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER }, true);
	drop_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_ERRNO, .error = EIO }, true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_post_killed_anywhere_leaves_no_hole_and_no_double),
		CASE(a_post_that_the_kernel_refuses_anywhere_leaves_no_hole_and_no_double),
		CASE(retention_killed_anywhere_leaves_no_hole_and_no_number_to_be_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
