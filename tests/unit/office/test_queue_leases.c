/* SPDX-License-Identifier: MIT */
/* Leases that run out, attempts, and what a sender is told of failed work. */
#include "jobs.h"

static void
an_expired_lease_returns_the_work_and_a_late_done_is_refused(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	struct mr_claim late = take_for(&t, &t.bob, "builds", 1, "work");

	(void)usleep(20 * 1000);
	struct mr_claim next = take(&t, &t.bob, "work"); /* the same agent: the token tells the claims apart */

	assert_string_equal(next.id, late.id);
	assert_int_equal(next.attempt, 2);
	assert_rc(mr_claim_done(t.room, &t.bob, late.token, NULL, id, NULL, &err), MR_NOTFOUND);
	assert_rc(mr_claim_release(t.room, &t.bob, late.token, NULL, id, &err), MR_NOTFOUND);
	assert_rc(mr_claim_fail(t.room, &t.bob, late.token, "late", id, &err), MR_NOTFOUND);
	assert_int_equal(town_unread(&t, "alice").n, 0);
	assert_ok(mr_claim_done(t.room, &t.bob, next.token, NULL, id, NULL, &err));
	town_done(&t);
}

static void
an_extended_claim_is_kept(void **state)
{
	struct town t = town_new(state);
	struct mr_claim longer = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	struct mr_claim claim = take_for(&t, &t.bob, "builds", 150, "work");

	assert_ok(mr_claim_extend(t.room, &t.bob, claim.token, 3600 * 1000, &longer, &err));
	assert_string_equal(longer.token, claim.token);
	(void)usleep(200 * 1000);
	assert_no_work(&t, &t.carol, MR_EMPTY);
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err));
	town_done(&t);
}

static void
a_clock_stepped_by_an_hour_voids_no_live_lease(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	struct mr_claim claim = take_for(&t, &t.bob, "builds", 600 * 1000, "work");

	clock_shift_ms(3600 * 1000);
	assert_no_work(&t, &t.carol, MR_EMPTY);
	assert_int_equal(count(&t, "builds").claimed, 1);
	clock_shift_ms(-3600 * 1000);
	assert_no_work(&t, &t.carol, MR_EMPTY);
	clock_shift_ms(0);
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err));
	town_done(&t);
}

static void
a_takeover_returns_the_work_of_the_old_life_at_once(void **state)
{
	struct town t = town_new(state);
	struct mr_self new_life = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	struct mr_claim old = take_for(&t, &t.bob, "builds", 3600 * 1000, "work");

	town_register(&t, "bob", true, &new_life);
	assert_rc(mr_claim_done(t.room, &t.bob, old.token, NULL, id, NULL, &err), MR_REFUSED); /* fenced */
	assert_rc(
	    mr_claim_done(t.room, &new_life, old.token, NULL, id, NULL, &err), MR_NOTFOUND); /* over: it is back */
	assert_no_work(&t, &t.bob, MR_REFUSED);
	struct mr_claim claim = take(&t, &t.carol, "work");

	assert_string_equal(claim.id, old.id);
	assert_int_equal(claim.attempt, 2);
	assert_ok(mr_claim_done(t.room, &t.carol, claim.token, NULL, id, NULL, &err));
	town_done(&t);
}

static void
after_the_last_attempt_it_is_failed_and_its_sender_told_once(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char sent[MR_ID_LEN + 1], id[MR_ID_LEN + 1];
	struct mr_claim last = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 2 });
	town_send(&t, &t.alice, "queue:builds", "work", sent);
	for (unsigned attempt = 1; attempt <= 2; attempt++) {
		last = take_for(&t, &t.bob, "builds", 1, "work");
		assert_int_equal(last.attempt, attempt);
		(void)usleep(20 * 1000);
	}
	assert_no_work(&t, &t.carol, MR_EMPTY);
	assert_int_equal(count(&t, "builds").failed, 1);
	assert_int_equal(count(&t, "builds").ready, 0);
	assert_no_work(&t, &t.carol, MR_EMPTY);
	assert_bounce(&t, "alice", sent, "bob", "attempts used up");
	assert_rc(mr_claim_done(t.room, &t.bob, last.token, NULL, id, NULL, &err), MR_NOTFOUND);
	town_done(&t);
}

static enum mr_rc
settle_dies(struct mr_room *room, const struct claim *hold, enum settle how, struct mr_error *err)
{
	(void)room;
	(void)hold;
	(void)how;
	return mr_fail(err, MR_IO, "killed");
}

static void
a_sweep_cut_off_after_the_bounce_does_not_bounce_again(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver dying = *real;
	struct mr_error err = { 0 };
	char sent[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 1 });
	town_send(&t, &t.alice, "queue:builds", "work", sent);
	(void)take_for(&t, &t.bob, "builds", 1, "work");
	(void)usleep(20 * 1000);
	dying.settle = settle_dies;
	t.room->driver = &dying;
	assert_no_work(&t, &t.carol, MR_EMPTY);
	t.room->driver = real;
	assert_no_work(&t, &t.carol, MR_EMPTY);
	assert_int_equal(count(&t, "builds").failed, 1);
	assert_bounce(&t, "alice", sent, "bob", "attempts used up");
	town_done(&t);
}

static enum mr_rc
deliver_fails(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	(void)room;
	(void)what;
	(void)ret;
	return mr_fail(err, MR_FULL, "the disk is full");
}

static void
work_whose_sender_cannot_be_told_is_not_put_aside(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver full = *real;
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 1 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	(void)take_for(&t, &t.bob, "builds", 1, "work");
	(void)usleep(20 * 1000);
	full.deliver = deliver_fails;
	t.room->driver = &full;
	assert_no_work(&t, &t.carol, MR_EMPTY);
	assert_int_equal(count(&t, "builds").failed, 0);
	t.room->driver = real;
	assert_int_equal(count(&t, "builds").failed, 1);
	assert_int_equal(town_unread(&t, "alice").n, 1);
	town_done(&t);
}

static void
failing_is_final_and_a_bounce_never_bounces(void **state)
{
	struct town t = town_new(state);
	struct mr_draft bounce = draft_to(TO("queue:builds"), "a bounce");
	struct mr_error err = { 0 };
	char sent[MR_ID_LEN + 1], id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", sent);
	struct mr_claim claim = take(&t, &t.bob, "work");

	assert_ok(mr_claim_fail(t.room, &t.bob, claim.token, "no such branch", id, &err));
	assert_string_equal(id, sent);
	assert_bounce(&t, "alice", sent, "bob", "no such branch");
	assert_int_equal(count(&t, "builds").failed, 1);
	bounce.type = "bounce";
	town_send_draft(&t, &t.carol, &bounce, NULL);
	claim = take(&t, &t.bob, "a bounce");
	assert_ok(mr_claim_fail(t.room, &t.bob, claim.token, "", id, &err));
	assert_int_equal(town_unread(&t, "carol").n, 0);
	assert_int_equal(count(&t, "builds").failed, 2);
	town_done(&t);
}

static void
work_of_a_sender_who_is_gone_is_only_kept(void **state)
{
	struct town t = town_new(state);
	struct mr_prune_options prune = { .names = TO("carol"), .force = true };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.carol, "queue:builds", "work", NULL);
	assert_ok(mr_prune(t.room, &prune, NULL, &err));
	struct mr_claim claim = take(&t, &t.bob, "work");

	assert_ok(mr_claim_fail(t.room, &t.bob, claim.token, "", id, &err));
	assert_non_null(strstr(err.hint, "carol"));
	assert_int_equal(count(&t, "builds").failed, 1);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(an_expired_lease_returns_the_work_and_a_late_done_is_refused),
		ON_BOTH(an_extended_claim_is_kept),
		ON_BOTH(a_clock_stepped_by_an_hour_voids_no_live_lease),
		ON_BOTH(a_takeover_returns_the_work_of_the_old_life_at_once),
		ON_BOTH(after_the_last_attempt_it_is_failed_and_its_sender_told_once),
		ON_BOTH(a_sweep_cut_off_after_the_bounce_does_not_bounce_again),
		ON_BOTH(work_whose_sender_cannot_be_told_is_not_put_aside),
		ON_BOTH(failing_is_final_and_a_bounce_never_bounces),
		ON_BOTH(work_of_a_sender_who_is_gone_is_only_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
