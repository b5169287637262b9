/* SPDX-License-Identifier: MIT */
/* What needs a person: each kind, its order, its evidence, what can be done, and that looking changes nothing. */
#include "base/clock.h"
#include "base/process.h"
#include "jobs.h"
#include "office/mail/mail.h"
#include "office/tell/tell.h"

#define MINUTE ((int64_t)60 * 1000)

/* Ids of one process only grow: after a test that moved the clock, the next one begins later. */
static int64_t today_ms;

static struct town
town_later(void **state)
{
	today_ms += 48 * 60 * MINUTE;
	clock_shift_ms(today_ms);
	return town_new(state);
}

static void
pass(int64_t ms)
{
	today_ms += ms;
	clock_shift_ms(today_ms);
}

static struct mr_attention
look(struct town *t)
{
	struct mr_attention a = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_attention(t->room, NULL, &a, &err));
	for (size_t i = 0; i < a.n; i++) {
		const struct mr_need *need = &a.needs[i];

		assert_true(need->agent && need->queue && need->link && need->thread && need->path && need->from &&
			    need->subject && need->why[0] && need->actions_n >= 1);
	}
	return a;
}

/* The only need, of that kind, whose evidence says that. */
static void
assert_only(struct town *t, enum mr_need_kind kind, bool pressing, const char *evidence)
{
	struct mr_attention a = look(t);

	for (size_t i = 0; i < a.n; i++)
		if (a.needs[i].kind != kind || a.needs[i].pressing != pressing || !strstr(a.needs[i].why, evidence))
			fail_msg(
			    "%s%s: %s", mr_need_word(a.needs[i].kind), a.needs[i].pressing ? "!" : "", a.needs[i].why);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.total[kind], 1);
	assert_int_equal(a.more, 0);
	mr_attention_done(&a);
}

static void
assert_quiet(struct town *t)
{
	struct mr_attention a = look(t);

	if (a.n > 0)
		fail_msg("%s: %s", mr_need_word(a.needs[0].kind), a.needs[0].why);
	mr_attention_done(&a);
}

static void
live(struct town *t, const char *agent, struct mr_process process, struct mr_self *ret)
{
	struct mr_env env = { .process = process };
	struct mr_registration got = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_register(t->room, agent, &env, NULL, &got, &err));
	*ret = (struct mr_self){ .life = got.life };
	(void)snprintf(ret->agent, sizeof ret->agent, "%s", agent);
}

/* ---- The operator's mail ---- */

static void
mail_to_the_operator_waits_until_it_is_answered(void **state)
{
	struct town t = town_later(state);
	struct mr_draft draft = draft_to(TO(OPERATOR), "which colour?"), answer = draft_to(NULL, "green");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	assert_quiet(&t);
	draft.by_ms = clock_now_ms() + 30 * MINUTE;
	town_send_draft(&t, &t.alice, &draft, id);
	assert_only(&t, MR_NEED_ANSWER, false, "unread for 0s; an answer is wanted by ");
	struct mr_attention a = look(&t);

	assert_string_equal(a.needs[0].from, "alice");
	assert_string_equal(a.needs[0].subject, "which colour?");
	assert_string_equal(a.needs[0].id, id);
	assert_int_equal(a.needs[0].due_ms, draft.by_ms);
	assert_string_equal(a.needs[0].actions[0].words[0], "reply");
	assert_string_equal(a.needs[0].actions[0].words[1], id);
	assert_null(a.needs[0].actions[0].words[2]);
	assert_true(a.needs[0].actions[0].text);
	assert_int_equal(a.came, 1);
	assert_int_equal(a.seen, 0);
	mr_attention_done(&a);
	pass(31 * MINUTE);
	assert_only(&t, MR_NEED_ANSWER, true, "1m ago");
	/* Read is not answered; nor is it when the sender was told that no answer came. */
	assert_ok(mr_mark(t.room, &t.operator, id, MR_SEEN, 0, &err));
	assert_only(&t, MR_NEED_ANSWER, true, "read and not answered");
	due_drop(t.room, "alice", id);
	assert_only(&t, MR_NEED_ANSWER, true, "read and not answered");
	assert_ok(mr_reply(t.room, &t.operator, id, &answer, false, &receipt, &err));
	mr_receipt_done(&receipt);
	assert_quiet(&t);
	town_done(&t);
}

static void
deadlines_come_first_and_urgent_mail_before_the_rest(void **state)
{
	struct town t = town_later(state);
	struct mr_draft old = draft_to(TO(OPERATOR), "old"), urgent = draft_to(TO(OPERATOR), "urgent"),
			by = draft_to(TO(OPERATOR), "by"), later = draft_to(TO(OPERATOR), "later");

	town_send_draft(&t, &t.alice, &old, NULL);
	urgent.priority = MR_URGENT;
	town_send_draft(&t, &t.alice, &urgent, NULL);
	later.by_ms = clock_now_ms() + 60 * MINUTE;
	town_send_draft(&t, &t.bob, &later, NULL);
	by.by_ms = clock_now_ms() + 30 * MINUTE;
	town_send_draft(&t, &t.bob, &by, NULL);
	struct mr_attention a = look(&t);
	static const char *const order[] = { "urgent", "by", "later", "old" };

	assert_int_equal(a.n, 4);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(a.needs[i].subject, order[i]);
	mr_attention_done(&a);
	town_done(&t);
}

/* ---- Agents ---- */

static void
a_question_between_agents_is_a_need_when_it_is_late(void **state)
{
	struct town t = town_later(state);
	struct mr_draft draft = draft_to(TO("bob"), "ready?"), answer = draft_to(NULL, "yes");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	draft.by_ms = clock_now_ms() + 5 * MINUTE;
	town_send_draft(&t, &t.alice, &draft, id);
	assert_quiet(&t);
	pass(6 * MINUTE);
	assert_only(&t, MR_NEED_OVERDUE, true, "'alice' asked 'bob', and wanted an answer by ");
	/* To have looked is not to have told. */
	assert_only(&t, MR_NEED_OVERDUE, true, "life 1 of 'bob' is unknown");
	assert_ok(mr_reply(t.room, &t.bob, id, &answer, false, &receipt, &err));
	mr_receipt_done(&receipt);
	assert_ok(mr_mark(t.room, &t.bob, id, MR_SEEN, 0, &err));
	assert_quiet(&t);
	town_done(&t);
}

static void
mail_that_waits_is_told_with_its_agent(void **state)
{
	struct town t = town_later(state);
	struct mr_process here = { 0 }, gone = { 0 };
	struct mr_self dave, erin;

	assert_true(process_describe(getpid(), &here));
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(process_describe(child, &gone));
	live(&t, "dave", here, &dave);
	live(&t, "erin", gone, &erin);
	town_send(&t, &t.alice, "dave", "one", NULL);
	town_send(&t, &t.alice, "dave", "two", NULL);
	assert_quiet(&t);
	pass(11 * MINUTE);
	assert_only(&t, MR_NEED_UNREAD, false, "2 unread, the oldest for 11m; life 1 of 'dave' is live, last seen ");
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	town_send(&t, &t.alice, "erin", "anybody?", NULL); /* an agent that is gone reads nothing, however new */
	struct mr_attention a = look(&t);

	assert_int_equal(a.n, 2);
	assert_int_equal(a.needs[0].kind, MR_NEED_UNREAD);
	assert_string_equal(a.needs[0].subject, "one");
	assert_int_equal(a.needs[0].count, 2);
	assert_int_equal(a.needs[1].kind, MR_NEED_GONE);
	assert_string_equal(a.needs[1].agent, "erin");
	assert_non_null(strstr(a.needs[1].why, "life 1 of 'erin' is gone"));
	assert_int_equal(a.unread, 3);
	mr_attention_done(&a);
	town_done(&t);
}

/* ---- Work ---- */

static void
a_claim_is_a_need_near_and_past_its_lease_and_at_its_last_attempt(void **state)
{
	struct town t = town_later(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 2, .lease_ms = 10 * MINUTE });
	town_send(&t, &t.alice, "queue:builds", "job", id);
	(void)take(&t, &t.bob, "job");
	assert_quiet(&t);
	pass(9 * MINUTE);
	assert_only(&t, MR_NEED_LEASE, false, "claimed by 'bob' 9m ago, attempt 1 of 2; its lease ends at ");
	pass(3 * MINUTE);
	assert_only(&t, MR_NEED_LEASE, true, "; life 1 of 'bob' is unknown, ");
	town_register(&t, "bob", true, &t.bob); /* the work of the old life goes back */
	assert_quiet(&t);
	struct mr_claim last = take(&t, &t.carol, "job");

	assert_only(&t, MR_NEED_ATTEMPT, false, "claimed by 'carol' 0s ago, attempt 2 of 2");
	struct mr_attention a = look(&t);

	assert_int_equal(a.held, 1);
	mr_attention_done(&a);
	assert_ok(mr_claim_fail(t.room, &t.carol, last.token, "no compiler", id, &err));
	assert_ok(mr_mark(t.room, &t.alice, town_unread(&t, "alice").ids[0], MR_SEEN, 0, &err)); /* its bounce */
	assert_only(&t, MR_NEED_FAILED, false, strcmp(*state, KIND_MEM) == 0 ? "failed in" : "failed at ");
	a = look(&t);
	assert_string_equal(a.needs[0].queue, "builds");
	assert_string_equal(a.needs[0].actions[0].words[1], "retry");
	assert_int_equal(a.dead, 1);
	mr_attention_done(&a);
	assert_ok(mr_dead_drop(t.room, &t.operator, id, &err));
	assert_quiet(&t);
	town_done(&t);
}

static void
a_dead_letter_is_a_need_until_it_is_dropped(void **state)
{
	struct town t = town_later(state);
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.bob, "alice", "do it", id);
	assert_ok(mr_recv(t.room, &t.alice, NULL, MINUTE, &claim, &msg, &err));
	mr_message_done(&msg);
	pass(5 * MINUTE);
	assert_only(&t, MR_NEED_LEASE, true, "attempt 1; its lease ended at ");
	assert_ok(mr_claim_fail(t.room, &t.alice, claim.token, "cannot", id, &err));
	assert_only(&t, MR_NEED_DEAD, false, "failed at ");
	assert_ok(mr_dead_drop(t.room, &t.operator, id, &err));
	assert_quiet(&t);
	town_done(&t);
}

/* ---- Threads, broken files, many ---- */

static void
a_throttled_thread_is_named_for_an_hour(void **state)
{
	struct town t = town_later(state);
	struct mr_error err = { 0 };
	char *key = (char[]){ "thread\n01k9w3b7zq8m4c2v6t1x5n0prs" };

	assert_ok(wakes_note(t.room, &(struct mr_names){ &key, 1 }, true, &err));
	assert_only(&t, MR_NEED_THROTTLED, false, "wakes no agent for a while");
	struct mr_attention a = look(&t);

	assert_string_equal(a.needs[0].thread, "01k9w3b7zq8m4c2v6t1x5n0prs");
	mr_attention_done(&a);
	pass(61 * MINUTE);
	assert_quiet(&t);
	town_done(&t);
}

static void
a_file_that_is_no_message_is_told(void **state)
{
	struct town t = town_later(state);
	char path[300], id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, OPERATOR, "hello", id);
	(void)snprintf(path, sizeof path,
	    "chmod u+w %s/.mailroom/agents/operator/new/* && : > $(echo %s/.mailroom/agents/operator/new/*)", t.dir,
	    t.dir);
	assert_int_equal(system(path), 0); // NOLINT: the tests' own words
	struct mr_attention a = look(&t);

	assert_int_equal(a.n, 1);
	assert_int_equal(a.needs[0].kind, MR_NEED_UNREADABLE);
	assert_string_equal(a.needs[0].actions[0].words[0], "doctor");
	assert_int_equal(a.total[MR_NEED_ANSWER], 0);
	assert_int_equal(a.more, 0);
	mr_attention_done(&a);
	town_done(&t);
}

static void
many_of_a_kind_are_counted_and_hide_no_other(void **state)
{
	struct town t = town_later(state);
	struct mr_attention_options few = { .limit = 3 };
	struct mr_attention a = { 0 };
	struct mr_error err = { 0 };

	for (size_t i = 0; i < 10; i++) {
		char name[16];
		struct mr_self self;

		(void)snprintf(name, sizeof name, "agent%zu", i);
		town_register(&t, name, false, &self);
		town_send(&t, &t.alice, name, name, NULL);
		town_send(&t, &t.alice, OPERATOR, name, NULL);
		pass(MINUTE);
	}
	pass(10 * MINUTE);
	assert_ok(mr_attention(t.room, &few, &a, &err));
	assert_int_equal(a.n, 6);
	assert_int_equal(a.total[MR_NEED_ANSWER], 10);
	assert_int_equal(a.total[MR_NEED_UNREAD], 10);
	assert_int_equal(a.more, 14);
	for (size_t i = 0; i < 6; i++) { /* the oldest of each */
		char name[16];

		(void)snprintf(name, sizeof name, "agent%zu", i % 3);
		assert_string_equal(a.needs[i].subject, name);
		assert_int_equal(a.needs[i].kind, i < 3 ? MR_NEED_ANSWER : MR_NEED_UNREAD);
	}
	assert_int_equal(a.boxes_n, 14);
	mr_attention_done(&a);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mail_to_the_operator_waits_until_it_is_answered),
		ON_BOTH(deadlines_come_first_and_urgent_mail_before_the_rest),
		ON_BOTH(a_question_between_agents_is_a_need_when_it_is_late),
		ON_BOTH(mail_that_waits_is_told_with_its_agent),
		ON_BOTH(a_claim_is_a_need_near_and_past_its_lease_and_at_its_last_attempt),
		ON_MAILDIR(a_dead_letter_is_a_need_until_it_is_dropped),
		ON_BOTH(a_throttled_thread_is_named_for_an_hour),
		ON_MAILDIR(a_file_that_is_no_message_is_told),
		ON_BOTH(many_of_a_kind_are_counted_and_hide_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
