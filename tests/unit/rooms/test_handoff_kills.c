/* SPDX-License-Identifier: MIT */
/* Kills and failed calls in a room of the mailbox skill. */
#include "support/sys_fault.h"
#include "skill.h"

static void
a_failed_call_leaves_nothing_or_all(void **state)
{
	struct place *p = *state;
	size_t before = 0, points = 0;

	add(p, "alice");
	add(p, "bob");
	for (bool hit = true; hit; points++) {
		struct delivered done = { 0 };
		struct mr_error err = { 0 };

		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = points + 1, .error = EIO });
		enum mr_rc rc = try_send(p, (struct sent){ 0 }, &done, &err);

		hit = sys_plan_hit();
		sys_plan_set(NULL);
		size_t now = look(p, "bob", BOTH).n;

		assert_int_equal(now, before + (rc == MR_OK));
		before = now;
	}
	assert_true(points > 5);
}

/* In a child that is killed at its n-th call. True: it was. */
static bool
killed_at(
    struct place *p, enum sys_fault how, unsigned long n, void (*work)(struct place *p, const char *id), const char *id)
{
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		sys_plan_set(&(struct sys_plan){ .fault = how, .at = n });
		work(p, id);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

static void
work_send(struct place *p, const char *id)
{
	struct delivered done = { 0 };
	struct mr_error err = { 0 };

	(void)id;
	(void)try_send(p, (struct sent){ 0 }, &done, &err);
}

static void
work_mark(struct place *p, const char *id)
{
	struct mr_error err = { 0 };

	(void)p->ops->mark(p->room, "bob", id, MR_SEEN, 0, 0, &err);
}

static void
work_register(struct place *p, const char *id)
{
	struct mr_error err = { 0 };

	(void)id;
	(void)try_add(p, "carol", &err);
}

static void
a_kill_tears_and_loses_nothing(void **state)
{
	struct place *p = *state;
	struct mr_error err = { 0 };
	unsigned long n = 0;

	add(p, "alice");
	add(p, "bob");
	struct delivered done = send(p, (struct sent){ 0 });
	size_t before = 1;

	for (n = 1; killed_at(p, SYS_FAULT_KILL_AFTER, n, work_send, ""); n++) {
		struct seen seen = look(p, "bob", MR_INBOX);

		assert_int_equal(seen.troubles, 0);
		assert_true(seen.n == before || seen.n == before + 1);
		before = seen.n;
	}
	assert_true(n > 5);
	before = look(p, "bob", BOTH).n;
	for (n = 1; killed_at(p, SYS_FAULT_KILL_AFTER, n, work_mark, done.id); n++) {
		assert_int_equal(look(p, "bob", BOTH).n, before);
		assert_int_equal(p->ops->mark(p->room, "bob", done.id, 0, MR_SEEN, 0, &err), MR_OK);
	}
	assert_true(n > 3);
}

static void
a_killed_registration_is_whole_or_not_there(void **state)
{
	struct place *p = *state;
	struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };
	unsigned long n = 1;

	add(p, "alice");
	for (; killed_at(p, SYS_FAULT_KILL_AFTER, n, work_register, ""); n++) {
		size_t dead = 0;

		assert_int_equal(p->ops->find_agent(p->room, "alice", &agent, &err), MR_OK);
		mr_agent_done(&agent);
		if (p->ops->find_agent(p->room, "carol", &agent, &err) != MR_OK)
			continue;
		mr_agent_done(&agent);
		send(p, (struct sent){ .to = "carol" }); /* also when its folders were not made yet */
		assert_int_equal(p->ops->remove_box(p->room, "carol", true, &dead, &err), MR_OK);
	}
	assert_true(n > 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_failed_call_leaves_nothing_or_all),
		TEST(a_kill_tears_and_loses_nothing),
		TEST(a_killed_registration_is_whole_or_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
