/* SPDX-License-Identifier: MIT */
/* Claims of work: who gets what in which order, and in whose hands it is. */
#include "jobs.h"

/* ---- Claims ---- */

static void
of_two_claimers_each_gets_another_message(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	town_send(&t, &t.alice, "queue:builds", "two", NULL);
	struct mr_claim first = take(&t, &t.bob, "one"), second = take(&t, &t.carol, "two");

	assert_no_work(&t, &t.bob, MR_EMPTY);
	assert_int_equal(first.attempt, 1);
	assert_ok(mr_claim_done(t.room, &t.bob, first.token, NULL, id, NULL, &err));
	assert_string_equal(id, first.id);
	assert_rc(mr_claim_done(t.room, &t.bob, first.token, NULL, id, NULL, &err), MR_NOTFOUND);
	assert_ok(mr_claim_done(t.room, &t.carol, second.id, NULL, id, NULL, &err)); /* the bare id of the one claim */
	struct mr_queue_counts counts = count(&t, "queue:builds");

	assert_int_equal(counts.done, 2);
	assert_int_equal(counts.ready + counts.delayed + counts.claimed + counts.failed, 0);
	assert_int_equal(town_count(&t, "bob", MR_INBOX | MR_HELD | MR_ARCHIVE), 0);
	town_done(&t);
}

static void
a_stranger_cannot_settle_a_claim(void **state)
{
	struct town t = town_new(state);
	struct mr_claim extended = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	struct mr_claim claim = take(&t, &t.bob, "one");

	assert_rc(mr_claim_release(t.room, &t.carol, claim.token, NULL, id, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "bob"));
	assert_rc(mr_claim_done(t.room, &t.carol, claim.token, NULL, id, NULL, &err), MR_REFUSED);
	assert_rc(mr_claim_fail(t.room, &t.carol, claim.token, "mine", id, &err), MR_REFUSED);
	assert_rc(mr_claim_extend(t.room, &t.carol, claim.token, 1000, &extended, &err), MR_REFUSED);
	assert_rc(mr_claim_done(t.room, &t.carol, claim.id, NULL, id, NULL, &err), MR_REFUSED);
	assert_int_equal(town_unread(&t, "alice").n, 0);
	assert_ok(mr_claim_release(t.room, &t.bob, claim.token, NULL, id, &err));
	struct mr_claim again = take(&t, &t.carol, "one");

	assert_int_equal(again.attempt, 1);
	assert_string_not_equal(again.token, claim.token);
	assert_rc(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err), MR_NOTFOUND);
	town_done(&t);
}

static void
first_in_first_out_whatever_the_priority(void **state)
{
	struct town t = town_new(state);

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	send_urgently(&t, "first", MR_LOW);
	send_urgently(&t, "second", MR_URGENT);
	send_urgently(&t, "third", MR_NORMAL);
	(void)take(&t, &t.bob, "first");
	(void)take(&t, &t.bob, "second");
	(void)take(&t, &t.bob, "third");
	town_done(&t);
}

static void
by_priority_the_urgent_comes_first_then_the_oldest(void **state)
{
	struct town t = town_new(state);

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3, .by_priority = true });
	send_urgently(&t, "low", MR_LOW);
	send_urgently(&t, "normal 1", MR_NORMAL);
	send_urgently(&t, "high", MR_HIGH);
	send_urgently(&t, "normal 2", MR_NORMAL);
	send_urgently(&t, "urgent", MR_URGENT);
	(void)take(&t, &t.bob, "urgent");
	(void)take(&t, &t.bob, "high");
	(void)take(&t, &t.bob, "normal 1");
	(void)take(&t, &t.bob, "normal 2");
	(void)take(&t, &t.bob, "low");
	town_done(&t);
}

static void
delayed_work_cannot_be_claimed_before_its_time(void **state)
{
	struct town t = town_new(state);
	struct mr_draft later = draft_to(TO("queue:builds"), "later");
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	later.not_before_ms = clock_now_ms() + 3600 * 1000;
	town_send_draft(&t, &t.alice, &later, NULL);
	town_send(&t, &t.alice, "queue:builds", "now", NULL);
	assert_int_equal(count(&t, "builds").delayed, 1);
	assert_int_equal(count(&t, "builds").ready, 1);
	(void)take(&t, &t.bob, "now");
	assert_no_work(&t, &t.bob, MR_EMPTY);
	clock_shift_ms(3601 * 1000);
	(void)take(&t, &t.bob, "later");
	clock_shift_ms(0);
	town_done(&t);
}

static void
a_limit_on_live_claims_is_kept_and_freed(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 0, .max_claims = 2 });
	for (int i = 0; i < 4; i++)
		town_send(&t, &t.alice, "queue:builds", "work", NULL);
	struct mr_claim first = take(&t, &t.bob, "work");

	(void)take_for(&t, &t.carol, "builds", 1000, "work");
	assert_no_work(&t, &t.bob, MR_BUSY);
	assert_ok(mr_claim_done(t.room, &t.bob, first.token, NULL, id, NULL, &err));
	(void)take(&t, &t.bob, "work");
	(void)usleep(1050 * 1000); /* carol's lease is over: its place is free */
	(void)take(&t, &t.bob, "work");
	assert_no_work(&t, &t.bob, MR_BUSY);
	town_done(&t);
}

/* ---- In somebody's hands ---- */

static bool
note_held(void *ctx, const struct mr_message *msg)
{
	assert_int_equal(msg->folder, MR_HELD);
	(void)snprintf(ctx, MR_TOKEN_LEN + 1, "%s", msg->token);
	return true;
}

static void
claimed_work_is_found_by_its_holder_alone(void **state)
{
	struct town t = town_new(state);
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char full[MR_ID_LEN + 1], token[MR_TOKEN_LEN + 1] = "";

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	struct mr_claim claim = take(&t, &t.bob, "work");

	assert_ok(mr_resolve_id(t.room, "bob", claim.id + MR_ID_LEN - 6, 0, full, &err));
	assert_string_equal(full, claim.id);
	assert_ok(mr_fetch(t.room, "bob", full, &msg, &err));
	assert_string_equal(msg.token, claim.token);
	mr_message_done(&msg);
	assert_rc(mr_resolve_id(t.room, "carol", claim.id + MR_ID_LEN - 6, 0, full, &err), MR_NOTFOUND);
	assert_rc(mr_fetch(t.room, "carol", claim.id, &msg, &err), MR_NOTFOUND);
	assert_ok(mr_queue_held(t.room, "carol", NULL, note_held, token, &err));
	assert_string_equal(token, "");
	assert_ok(mr_queue_held(t.room, "bob", NULL, note_held, token, &err));
	assert_string_equal(token, claim.token);
	town_done(&t);
}

static void
a_prune_returns_the_work_of_the_agent_at_once(void **state)
{
	struct town t = town_new(state);
	struct mr_prune_options prune = { .names = TO("bob"), .force = true };
	struct mr_prunings gone = { 0 };
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	(void)take(&t, &t.bob, "work");
	assert_ok(mr_prune(t.room, &prune, &gone, &err));
	assert_int_equal(gone.n, 1);
	assert_int_equal(gone.v[0].returned, 1);
	mr_list_done(&gone);
	assert_int_equal(count(&t, "builds").ready, 1);
	town_done(&t);
}

static void
waiting_for_a_place_among_the_claims_ends_empty(void **state)
{
	struct town t = town_new(state);
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 0, .max_claims = 1 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	town_send(&t, &t.alice, "queue:builds", "two", NULL);
	(void)take(&t, &t.bob, "one");
	assert_no_work(&t, &t.carol, MR_BUSY);
	assert_rc(mr_queue_recv(t.room, &t.carol, "builds", 0, 100, &claim, &msg, &err), MR_EMPTY);
	assert_int_equal(err.code, MR_EMPTY);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(of_two_claimers_each_gets_another_message),
		ON_BOTH(a_stranger_cannot_settle_a_claim),
		ON_BOTH(first_in_first_out_whatever_the_priority),
		ON_BOTH(by_priority_the_urgent_comes_first_then_the_oldest),
		ON_BOTH(delayed_work_cannot_be_claimed_before_its_time),
		ON_BOTH(a_limit_on_live_claims_is_kept_and_freed),
		ON_BOTH(claimed_work_is_found_by_its_holder_alone),
		ON_BOTH(a_prune_returns_the_work_of_the_agent_at_once),
		ON_BOTH(waiting_for_a_place_among_the_claims_ends_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
