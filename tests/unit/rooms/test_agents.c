/* SPDX-License-Identifier: MIT */
/* Agents: lives that fence each other, names, and what becomes of a removed agent's mail. */
#include "support/sys_fault.h"
#include "rooms/maildir/maildir.h"
#include "station.h"

static void
a_newer_life_fences_the_older(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_agent agent = { .name = "a", .life = 1, .worktree = "/w", .session = "s-1", .host = "h" };
	struct mr_error err = { 0 };
	struct mr_agent found = { 0 };
	size_t returned = 99;

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
	assert_int_equal(returned, 0);
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_EXISTS);
	assert_int_equal(maildir_check_life(&s.room, "a", 1, NULL, NULL, &err), MR_OK);
	for (agent.life = 2; agent.life <= 20; agent.life++)
		assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
	agent.life = 7;
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_EXISTS);
	assert_int_equal(maildir_check_life(&s.room, "a", 1, NULL, NULL, &err), MR_REFUSED);
	assert_int_equal(maildir_check_life(&s.room, "a", 3, NULL, NULL, &err), MR_REFUSED); /* next one forgotten */
	assert_int_equal(maildir_check_life(&s.room, "a", 19, NULL, NULL, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "is now life 20"));
	assert_int_equal(maildir_check_life(&s.room, "a", 20, NULL, NULL, &err), MR_OK);
	assert_int_equal(maildir_find_agent(&s.room, "a", &found, &err), MR_OK);
	assert_int_equal(found.life, 20);
	assert_string_equal(found.worktree, "/w");
	assert_string_equal(found.session, "s-1");
	arena_free(found.own);
	assert_int_equal(count_in(&s, "agents/a/lives"), 16);
}

static void
held_mail_of_an_older_life_comes_back_and_its_marks_fail(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_agent agent = { .name = "a", .life = 1, .worktree = "", .session = "", .host = "" };
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .lease_ms = 60000, .session = "" };
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	struct claim hold;
	size_t returned = 99;

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
	assert_int_equal(maildir_claim(&s.room, "a", got.id, &terms, &hold, &err), MR_OK);
	assert_int_equal(copies_of(&s, "a"), 0);
	agent.life = 2;
	assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
	assert_int_equal(returned, 1);
	assert_int_equal(copies_of(&s, "a"), 1);
	assert_int_equal(maildir_settle(&s.room, &hold, SETTLE_DONE, &err), MR_NOTFOUND);
	assert_int_equal(copies_of(&s, "a"), 1);
	assert_int_equal(count_in(&s, "agents/a/held"), 0);
}

static void
take_second_life(struct scratch *s)
{
	struct mr_agent agent = { .name = "a", .life = 2, .worktree = "", .session = "", .host = "" };
	struct mr_error err = { 0 };
	size_t returned;

	_exit(maildir_take_life(&s->room, &agent, &returned, &err) == MR_OK ? 0 : 1);
}

static void
a_takeover_killed_anywhere_loses_no_held_mail(void **state)
{
	unsigned long points = 0;

	(void)state;
	for (bool hit = true; hit; points++) {
		mr_auto(scratch_done) struct scratch s;
		struct mr_agent agent = { .name = "a", .life = 1, .worktree = "", .session = "", .host = "" };
		struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .lease_ms = 60000, .session = "" };
		struct delivered got = { 0 };
		struct mr_error err = { 0 };
		struct claim hold;
		size_t returned;

		scratch_new(&s);
		assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
		assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
		assert_int_equal(maildir_claim(&s.room, "a", got.id, &terms, &hold, &err), MR_OK);
		hit = killed_at(&s, SYS_FAULT_KILL_AFTER, points + 1, take_second_life);
		recover(&s);
		agent.life = maildir_check_life(&s.room, "a", 1, NULL, NULL, &err) == MR_OK ? 2 : 3;
		assert_int_equal(maildir_take_life(&s.room, &agent, &returned, &err), MR_OK);
		assert_int_equal(messages_of(&s, "a"), 1);
		assert_int_equal(count_in(&s, "agents/a/held"), 0);
	}
	assert_true(points > 15);
}

static void
names_that_differ_only_in_case_clash_on_every_level(void **state)
{
	static const char *const clashing[] = { "A", "Rig/x", "rig/E", "RIG" };
	mr_auto(scratch_done) struct scratch s;
	struct mr_agent agent = { .role = "", .wake = "" };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	for (size_t i = 0; i < sizeof clashing / sizeof clashing[0]; i++) {
		(void)snprintf(agent.name, sizeof agent.name, "%s", clashing[i]);
		assert_int_equal(maildir_add_agent(&s.room, &agent, &err), MR_REFUSED);
	}
	(void)snprintf(agent.name, sizeof agent.name, "rig");
	assert_int_equal(maildir_add_agent(&s.room, &agent, &err), MR_OK);
	assert_int_equal(maildir_add_agent(&s.room, &agent, &err), MR_EXISTS);
}

static void
a_pruned_agents_unread_mail_becomes_dead_letters(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	struct mr_agent found;
	size_t dead = 0;

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, 2, &got, &err), MR_OK);
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_OK);
	assert_int_equal(maildir_remove_box(&s.room, "a", false, &dead, &err), MR_OK);
	assert_int_equal(dead, 2);
	assert_int_equal(count_in(&s, "dead/new"), 2);
	assert_int_equal(copies_of(&s, "a"), 0);
	assert_int_equal(maildir_find_agent(&s.room, "a", &found, &err), MR_NOTFOUND);
	assert_int_equal(maildir_remove_box(&s.room, "b", false, &dead, &err), MR_OK);
	assert_int_equal(count_in(&s, "dead/new"), 2); /* the same message, the same file */
	assert_int_equal(send_plain(&s, 1, &got, &err), MR_NOTFOUND);
}

#define PRUNE_FIRST (-1) /* before the send begins */
#define SEND_FIRST (-2)  /* when it has ended */

/* A slow send and the removal of its last recipient after so many ms. Did it arrive? Nothing may stay where nobody
 * looks. */
static bool
sent_while_pruned(size_t recipients, int wait_ms)
{
	mr_auto(scratch_done) struct scratch s;
	const char *pruned = everyone[recipients - 1];
	struct mr_error err = { 0 };
	size_t dead = 0;
	int status = -1;

	scratch_new(&s);
	if (wait_ms == PRUNE_FIRST)
		assert_int_equal(maildir_remove_box(&s.room, pruned, false, &dead, &err), MR_OK);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct delivered got = { 0 };

		reopen(&s);
		sys_plan_set(&(struct sys_plan){ .delay_us = 1000 });
		enum mr_rc rc = send_plain(&s, recipients, &got, &err);

		_exit(rc == MR_OK ? 0 : rc == MR_NOTFOUND ? 5 : 1);
	}
	if (wait_ms > 0)
		(void)usleep((unsigned)wait_ms * 1000);
	if (wait_ms == SEND_FIRST)
		assert_int_equal(waitpid(pid, &status, 0), pid);
	if (wait_ms != PRUNE_FIRST)
		assert_int_equal(maildir_remove_box(&s.room, pruned, false, &dead, &err), MR_OK);
	if (wait_ms != SEND_FIRST)
		assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 1);
	assert_int_equal(copies_of(&s, pruned), 0);
	if (WEXITSTATUS(status) == 0)
		assert_int_equal(count_in(&s, "dead/new"), 1);
	return WEXITSTATUS(status) == 0;
}

/* What wins in between is up to the machine: a busy one may let every send win, or none. tests/race goes through all
 * orders of the calls. */
static void
prune_while_sending(size_t recipients)
{
	assert_false(sent_while_pruned(recipients, PRUNE_FIRST));
	for (int wait_ms = 0; wait_ms < 60; wait_ms += (int)recipients + STRIDE / 2)
		(void)sent_while_pruned(recipients, wait_ms);
	assert_true(sent_while_pruned(recipients, SEND_FIRST));
}

static void
mail_to_an_agent_that_is_just_being_pruned_is_dead_or_refused(void **state)
{
	(void)state;
	prune_while_sending(1);
	prune_while_sending(2);
	looked_up = false;
	prune_while_sending(2);
	looked_up = true;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_newer_life_fences_the_older),
		cmocka_unit_test(held_mail_of_an_older_life_comes_back_and_its_marks_fail),
		cmocka_unit_test(a_takeover_killed_anywhere_loses_no_held_mail),
		cmocka_unit_test(names_that_differ_only_in_case_clash_on_every_level),
		cmocka_unit_test(a_pruned_agents_unread_mail_becomes_dead_letters),
		cmocka_unit_test(mail_to_an_agent_that_is_just_being_pruned_is_dead_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
