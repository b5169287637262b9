/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/id.h"
#include "town.h"
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* ---- Short ways ---- */

static void
make_queue(struct town *t, const char *name, struct mr_queue settings)
{
	struct mr_error err = { 0 };

	(void)snprintf(settings.name, sizeof(settings.name), "%s", name);
	assert_ok(mr_queue_create(t->room, &t->alice, &settings, &err));
}

static struct mr_claim
take_for(struct town *t, const struct mr_self *self, const char *queue, int64_t lease_ms, const char *subject)
{
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_queue_recv(t->room, self, queue, lease_ms, 0, &claim, &msg, &err));
	assert_string_equal(msg.subject, subject);
	assert_string_equal(msg.id, claim.id);
	assert_string_equal(msg.token, claim.token);
	assert_int_equal(msg.attempt, claim.attempt);
	assert_int_equal(msg.folder, MR_HELD);
	assert_non_null(msg.body);
	mr_message_done(&msg);
	return claim;
}

static struct mr_claim
take(struct town *t, const struct mr_self *self, const char *subject)
{
	return take_for(t, self, "builds", 0, subject);
}

#define assert_no_work(t, self, why)                                                                                   \
	do {                                                                                                           \
		struct mr_claim none = { 0 };                                                                          \
		struct mr_message no_msg = { 0 };                                                                      \
		assert_rc(mr_queue_recv((t)->room, (self), "builds", 0, 0, &none, &no_msg, &err), why);                \
	} while (0)

static struct mr_queue_counts
count(struct town *t, const char *queue)
{
	struct mr_queue_counts counts = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_queue_count(t->room, queue, &counts, NULL, NULL, &err));
	return counts;
}

static void
send_urgently(struct town *t, const char *body, enum mr_priority priority)
{
	struct mr_draft draft = draft_to(TO("queue:builds"), body);

	draft.priority = priority;
	town_send_draft(t, &t->alice, &draft, NULL);
}

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
	assert_ok(mr_claim_done(t.room, &t.bob, first.token, id, &err));
	assert_string_equal(id, first.id);
	assert_rc(mr_claim_done(t.room, &t.bob, first.token, id, &err), MR_NOTFOUND);
	assert_ok(mr_claim_done(t.room, &t.carol, second.id, id, &err)); /* the bare id of the one claim */
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

	assert_rc(mr_claim_release(t.room, &t.carol, claim.token, id, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "bob"));
	assert_rc(mr_claim_done(t.room, &t.carol, claim.token, id, &err), MR_REFUSED);
	assert_rc(mr_claim_fail(t.room, &t.carol, claim.token, "mine", id, &err), MR_REFUSED);
	assert_rc(mr_claim_extend(t.room, &t.carol, claim.token, 1000, &extended, &err), MR_REFUSED);
	assert_rc(mr_claim_done(t.room, &t.carol, claim.id, id, &err), MR_NOTFOUND);
	assert_int_equal(town_unread(&t, "alice").n, 0);
	assert_ok(mr_claim_release(t.room, &t.bob, claim.token, id, &err));
	struct mr_claim again = take(&t, &t.carol, "one");

	assert_int_equal(again.attempt, 2);
	assert_string_not_equal(again.token, claim.token);
	assert_rc(mr_claim_done(t.room, &t.bob, claim.token, id, &err), MR_NOTFOUND);
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
	assert_ok(mr_claim_done(t.room, &t.bob, first.token, id, &err));
	(void)take(&t, &t.bob, "work");
	(void)usleep(1050 * 1000); /* carol's lease is over: its place is free */
	(void)take(&t, &t.bob, "work");
	assert_no_work(&t, &t.bob, MR_BUSY);
	town_done(&t);
}

/* ---- Leases ---- */

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
	assert_rc(mr_claim_done(t.room, &t.bob, late.token, id, &err), MR_NOTFOUND);
	assert_rc(mr_claim_release(t.room, &t.bob, late.token, id, &err), MR_NOTFOUND);
	assert_rc(mr_claim_fail(t.room, &t.bob, late.token, "late", id, &err), MR_NOTFOUND);
	assert_int_equal(town_unread(&t, "alice").n, 0);
	assert_ok(mr_claim_done(t.room, &t.bob, next.token, id, &err));
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
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, id, &err));
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
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, id, &err));
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
	assert_rc(mr_claim_done(t.room, &t.bob, old.token, id, &err), MR_REFUSED);     /* fenced */
	assert_rc(mr_claim_done(t.room, &new_life, old.token, id, &err), MR_NOTFOUND); /* over: it is back */
	assert_no_work(&t, &t.bob, MR_REFUSED);
	struct mr_claim claim = take(&t, &t.carol, "work");

	assert_string_equal(claim.id, old.id);
	assert_int_equal(claim.attempt, 2);
	assert_ok(mr_claim_done(t.room, &t.carol, claim.token, id, &err));
	town_done(&t);
}

static void
assert_bounce(struct town *t, const char *agent, const char *id, const char *from, const char *reason)
{
	struct mr_message bounce = { 0 };
	struct mr_error err = { 0 };
	struct seen unread = town_unread(t, agent);

	assert_int_equal(unread.n, 1);
	assert_ok(mr_fetch(t->room, agent, unread.ids[0], &bounce, &err));
	assert_string_equal(bounce.type, "bounce");
	assert_string_equal(bounce.from, from);
	assert_string_equal(bounce.reply_to, id);
	assert_non_null(strstr(bounce.body, reason));
	mr_message_done(&bounce);
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
	assert_rc(mr_claim_done(t.room, &t.bob, last.token, id, &err), MR_NOTFOUND);
	town_done(&t);
}

static enum mr_rc
settle_dies(struct mr_room *room, const struct hold *hold, enum settle how, struct mr_error *err)
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
	dying.queue_settle = settle_dies;
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
	assert_ok(mr_prune(t.room, &prune, NULL, NULL, &err));
	struct mr_claim claim = take(&t, &t.bob, "work");

	assert_ok(mr_claim_fail(t.room, &t.bob, claim.token, "", id, &err));
	assert_non_null(strstr(err.hint, "carol"));
	assert_int_equal(count(&t, "builds").failed, 1);
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
	size_t returned = 0;
	struct mr_prune_options prune = { .names = TO("bob"), .force = true, .ret_returned = &returned };
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	(void)take(&t, &t.bob, "work");
	assert_ok(mr_prune(t.room, &prune, NULL, NULL, &err));
	assert_int_equal(returned, 1);
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

/* ---- Status and settings ---- */

static void
a_paused_queue_takes_mail_and_gives_nothing_out(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	assert_ok(mr_queue_set_status(t.room, "builds", MR_QUEUE_PAUSED, &err));
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	assert_no_work(&t, &t.bob, MR_REFUSED);
	assert_non_null(strstr(err.message, "paused"));
	assert_ok(mr_queue_set_status(t.room, "queue:builds", MR_QUEUE_ACTIVE, &err));
	(void)take(&t, &t.bob, "work");
	town_done(&t);
}

static void
a_closed_queue_refuses_both_and_lets_running_claims_finish(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("queue:builds"), "more");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	town_send(&t, &t.alice, "queue:builds", "two", NULL);
	struct mr_claim claim = take(&t, &t.bob, "one");

	assert_ok(mr_queue_set_status(t.room, "builds", MR_QUEUE_CLOSED, &err));
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	assert_no_work(&t, &t.bob, MR_REFUSED);
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, id, &err));
	assert_int_equal(count(&t, "builds").done, 1);
	assert_int_equal(count(&t, "builds").ready, 1);
	town_done(&t);
}

static void
settings_come_back_as_they_were_given(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	struct mr_error err = { 0 };

	make_queue(&t, "greenplace/builds-2",
	    (struct mr_queue){ .claimers = "greenplace/crew/*",
		.by_priority = true,
		.max_claims = 7,
		.lease_ms = 90 * 1000,
		.attempts = 5 });
	assert_ok(mr_queue_get(t.room, "queue:greenplace/builds-2", &q, &err));
	assert_string_equal(q.name, "greenplace/builds-2");
	assert_string_equal(q.claimers, "greenplace/crew/*");
	assert_true(q.by_priority);
	assert_int_equal(q.max_claims, 7);
	assert_int_equal(q.lease_ms, 90 * 1000);
	assert_int_equal(q.attempts, 5);
	assert_int_equal(q.status, MR_QUEUE_ACTIVE);
	assert_string_equal(q.created_by, "alice");
	assert_true(q.created_ms > 0);
	town_send(&t, &t.alice, "queue:greenplace/builds-2", "work", NULL);
	assert_int_equal(count(&t, "greenplace/builds-2").ready, 1);
	struct mr_queue again = { .name = "greenplace/builds-2" };

	assert_rc(mr_queue_create(t.room, &t.bob, &again, &err), MR_EXISTS);
	town_done(&t);
}

static void
names_and_patterns_that_are_none_are_refused(void **state)
{
	static const char *const names[] = { "", "Builds", "a b", "../x", "-x", "a/b/c", "rig/", "/x", "a.b" };
	static const char *const patterns[] = { "", "rig/cr*", "rig//x", "a b", "../*" };
	struct town t = town_new(state);
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	struct mr_error err = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct mr_queue bad = { 0 };

		(void)snprintf(bad.name, sizeof(bad.name), "%s", names[i]);
		assert_rc(mr_queue_create(t.room, &t.alice, &bad, &err), MR_REFUSED);
	}
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct mr_queue bad = { .name = "builds", .claimers = patterns[i] };

		assert_rc(mr_queue_create(t.room, &t.alice, &bad, &err), MR_REFUSED);
	}
	assert_rc(mr_queue_get(t.room, "builds", &q, &err), MR_NOTFOUND);
	make_queue(&t, "builds", (struct mr_queue){ 0 });
	assert_rc(mr_queue_get(t.room, "bulids", &q, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.hint, "'builds'"));
	assert_no_work(&t, &t.bob, MR_EMPTY);
	town_done(&t);
}

static void
claim_patterns_match_whole_parts_in_any_spelling(void **state)
{
	(void)state;
	assert_true(office_lets_claim("*", "rig/crew/max"));
	assert_true(office_lets_claim("bob", "bob"));
	assert_false(office_lets_claim("bob", "bobby"));
	assert_true(office_lets_claim("rig/crew/*", "rig/crew/max"));
	assert_false(office_lets_claim("rig/crew/*", "rig/polecats/max"));
	assert_false(office_lets_claim("rig/crew/*", "gir/crew/max"));
	assert_true(office_lets_claim("*/witness", "rig/witness"));
	assert_false(office_lets_claim("*/witness", "rig/refinery"));
	assert_true(office_lets_claim("mayor/", "mayor"));
	assert_true(office_lets_claim("rig/mayor", "mayor"));
	assert_true(office_lets_claim("rig/max", "rig/polecats/max"));
	assert_true(office_lets_claim("rig/crew/max", "rig/max"));
	assert_true(office_lets_claim("rig/*", "rig/polecats/max"));
	assert_false(office_lets_claim("rig/*", "gir/max"));
	assert_false(office_lets_claim("rig/*", "rig"));
}

static void
only_claimers_may_claim_and_the_live_ones_are_counted(void **state)
{
	struct town t = town_new(state);
	struct mr_self max = { 0 };
	struct mr_error err = { 0 };

	town_register(&t, "rig/crew/max", false, &max);
	make_queue(&t, "builds", (struct mr_queue){ .claimers = "rig/crew/*", .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	assert_no_work(&t, &t.bob, MR_REFUSED);
	assert_non_null(strstr(err.hint, "rig/crew/*"));
	assert_int_equal(count(&t, "builds").claimers, 1);
	(void)take(&t, &max, "work");
	make_queue(&t, "others", (struct mr_queue){ .claimers = "*" });
	assert_int_equal(count(&t, "others").claimers, 4);
	town_done(&t);
}

struct shown {
	size_t n;
	char id[MR_ID_LEN + 1], holder[64];
	unsigned attempt;
	bool live;
	int64_t since_ms;
};

static void
note_claim(void *ctx, const struct mr_queue_claim *claim)
{
	struct shown *shown = ctx;

	shown->n++;
	(void)snprintf(shown->id, sizeof(shown->id), "%s", claim->id);
	(void)snprintf(shown->holder, sizeof(shown->holder), "%s", claim->holder);
	shown->attempt = claim->attempt;
	shown->live = claim->live;
	shown->since_ms = claim->since_ms;
}

static void
counting_tells_who_holds_what(void **state)
{
	struct town t = town_new(state);
	struct mr_queue_counts counts = { 0 };
	struct shown shown = { 0 };
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	town_send(&t, &t.alice, "queue:builds", "two", NULL);
	struct mr_claim claim = take(&t, &t.bob, "one");

	assert_ok(mr_queue_count(t.room, "builds", &counts, note_claim, &shown, &err));
	assert_int_equal(counts.claimed, 1);
	assert_int_equal(counts.ready, 1);
	assert_int_equal(shown.n, 1);
	assert_string_equal(shown.id, claim.id);
	assert_string_equal(shown.holder, "bob");
	assert_int_equal(shown.attempt, 1);
	assert_true(shown.live);
	assert_true(shown.since_ms > clock_now_ms() - 60000 && shown.since_ms <= clock_now_ms());
	town_done(&t);
}

static void
a_queue_with_work_is_deleted_only_by_force_and_senders_are_told(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	struct mr_error err = { 0 };
	char sent[MR_ID_LEN + 1], id[MR_ID_LEN + 1];
	size_t dead = 99;

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	town_send(&t, &t.carol, "queue:builds", "two", sent);
	struct mr_claim done = take(&t, &t.bob, "one"), claim = take(&t, &t.bob, "two");

	assert_ok(mr_claim_done(t.room, &t.bob, done.token, id, &err));
	assert_rc(mr_queue_delete(t.room, "builds", false, &dead, &err), MR_REFUSED);
	assert_int_equal(town_unread(&t, "carol").n, 0);
	assert_ok(mr_queue_get(t.room, "builds", &q, &err));
	assert_int_equal(q.status, MR_QUEUE_ACTIVE);
	assert_ok(mr_queue_delete(t.room, "builds", true, &dead, &err));
	assert_int_equal(dead, 1);
	assert_rc(mr_queue_delete(t.room, "builds", true, &dead, &err), MR_NOTFOUND);
	assert_rc(mr_claim_done(t.room, &t.bob, claim.token, id, &err), MR_NOTFOUND);
	assert_int_equal(town_count(&t, "bob", MR_DEAD), 1);
	assert_bounce(&t, "carol", sent, "carol", "deleted");
	assert_int_equal(town_unread(&t, "alice").n, 0);
	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	assert_int_equal(count(&t, "builds").ready + count(&t, "builds").claimed, 0);
	assert_ok(mr_queue_delete(t.room, "builds", false, &dead, &err));
	town_done(&t);
}

static bool
note_letter(void *ctx, const char *queue, const struct mr_message *msg)
{
	(void)msg;
	assert_string_equal(queue, "");
	++*(size_t *)ctx;
	return true;
}

static void
failed_work_of_a_deleted_queue_stays_a_dead_letter(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];
	size_t dead = 99, letters = 0;

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	struct mr_claim claim = take(&t, &t.bob, "one");

	assert_ok(mr_claim_fail(t.room, &t.bob, claim.token, "cannot", id, &err));
	assert_ok(mr_queue_delete(t.room, "builds", false, &dead, &err));
	assert_int_equal(dead, 0);
	assert_ok(mr_dead_each(t.room, note_letter, &letters, &err));
	assert_int_equal(letters, 1);
	assert_int_equal(town_unread(&t, "alice").n, 1); /* told when it failed, not again */
	town_done(&t);
}

static bool
note_name(void *ctx, const struct mr_queue *queue)
{
	return names_add(ctx, str_of(queue->name));
}

static void
all_queues_are_listed(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_queue_each(t.room, note_name, &names, &err));
	assert_int_equal(names.n, 0);
	make_queue(&t, "builds", (struct mr_queue){ 0 });
	make_queue(&t, "rig/builds", (struct mr_queue){ 0 });
	make_queue(&t, "rig", (struct mr_queue){ 0 });
	assert_ok(mr_queue_each(t.room, note_name, &names, &err));
	assert_int_equal(names.n, 3);
	assert_true(names_has(&names, "builds") && names_has(&names, "rig/builds") && names_has(&names, "rig"));
	town_done(&t);
}

/* ---- Several processes ---- */

static pid_t
in_child(struct town *t, void (*work)(struct mr_room *room, struct town *t, void *ctx), void *ctx)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct mr_room *room = NULL;
		struct mr_error err = { 0 };

		if (mr_room_open(mr_room_spec(t->room), NULL, &room, &err) != MR_OK)
			_exit(255);
		work(room, t, ctx);
		_exit(0);
	}
	return pid;
}

static void
send_soon(struct mr_room *room, struct town *t, void *ctx)
{
	struct mr_draft draft = draft_to(TO("queue:builds"), "work");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	(void)ctx;
	(void)usleep(150 * 1000);
	if (mr_send(room, &t->alice, &draft, &receipt, &err) != MR_OK)
		_exit(1);
	mr_receipt_done(&receipt);
}

static void
waiting_ends_when_work_comes(void **state)
{
	struct town t = town_new(state);
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	int status = 1;

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	int64_t begin_ms = clock_boot_ms();

	assert_rc(mr_queue_recv(t.room, &t.bob, "builds", 0, 120, &claim, &msg, &err), MR_EMPTY);
	assert_in_range(clock_boot_ms() - begin_ms, 100, 2000);
	pid_t child = in_child(&t, send_soon, NULL);

	assert_ok(mr_queue_recv(t.room, &t.bob, "builds", 0, 20000, &claim, &msg, &err));
	assert_true(clock_boot_ms() - begin_ms < 10000);
	mr_message_done(&msg);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	town_done(&t);
}

static void
work_until_nothing_is_left(struct mr_room *room, struct town *t, void *ctx)
{
	struct mr_queue_counts counts = { 0 };
	char line[MR_ID_LEN + 2], id[MR_ID_LEN + 1];

	for (;;) {
		struct mr_claim claim = { 0 };
		struct mr_message msg = { 0 };
		struct mr_error err = { 0 };
		enum mr_rc rc = mr_queue_recv(room, &t->bob, "builds", 400, 0, &claim, &msg, &err);

		if (rc == MR_OK) {
			mr_message_done(&msg);
			if (mr_claim_done(room, &t->bob, claim.token, id, &err) != MR_OK)
				continue; /* too slow: it went to another */
			(void)snprintf(line, sizeof(line), "%s\n", id);
			if (write(*(int *)ctx, line, MR_ID_LEN + 1) != MR_ID_LEN + 1)
				_exit(1);
		} else if (rc != MR_EMPTY) {
			_exit(2);
		} else if (mr_queue_count(room, "builds", &counts, NULL, NULL, &err) != MR_OK ||
			   counts.ready + counts.claimed == 0) {
			_exit(0);
		} else {
			(void)usleep(5000);
		}
	}
}

static int
by_line(const void *a, const void *b)
{
	return strncmp(a, b, MR_ID_LEN + 1);
}

static void
killed_claimers_lose_nothing_and_nothing_is_done_twice(void **state)
{
	enum { MESSAGES = 300, WORKERS = 8, KILLS = 40 };
	struct town t = town_new(state);
	pid_t workers[WORKERS];
	char path[128];
	static char lines[(MESSAGES + 1) * (MR_ID_LEN + 1)];

	(void)snprintf(path, sizeof(path), "%s/done", t.dir);
	int log = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);

	assert_true(log >= 0);
	make_queue(&t, "builds", (struct mr_queue){ .attempts = 0 });
	for (int i = 0; i < MESSAGES; i++)
		town_send(&t, &t.alice, "queue:builds", "work", NULL);
	for (int w = 0; w < WORKERS; w++)
		workers[w] = in_child(&t, work_until_nothing_is_left, &log);
	for (int i = 0; i < KILLS; i++) {
		unsigned char dice = 0;

		random_bytes(&dice, 1);
		(void)usleep(2000 + 40u * dice);
		pid_t *victim = &workers[dice % WORKERS];

		(void)kill(*victim, SIGKILL);
		(void)waitpid(*victim, NULL, 0);
		*victim = in_child(&t, work_until_nothing_is_left, &log);
	}
	for (int w = 0; w < WORKERS; w++) {
		int status = 1;

		assert_int_equal(waitpid(workers[w], &status, 0), workers[w]);
		assert_int_equal(status, 0);
	}
	struct mr_queue_counts counts = count(&t, "builds");

	assert_int_equal(counts.done, MESSAGES);
	assert_int_equal(counts.ready + counts.claimed + counts.failed + counts.delayed, 0);
	ssize_t got = pread(log, lines, sizeof(lines), 0);
	size_t n = (size_t)got / (MR_ID_LEN + 1);

	/* A worker killed between `done` and its note leaves no line; none may be there twice. */
	assert_true(got > 0 && n <= MESSAGES && n + KILLS >= MESSAGES);
	qsort(lines, n, MR_ID_LEN + 1, by_line);
	for (size_t i = 1; i < n; i++)
		assert_int_not_equal(by_line(lines + (i - 1) * (MR_ID_LEN + 1), lines + i * (MR_ID_LEN + 1)), 0);
	(void)close(log);
	town_done(&t);
}

struct shared {
	_Atomic int live, most, rounds;
};

static void
work_and_watch_the_limit(struct mr_room *room, struct town *t, void *ctx)
{
	struct shared *shared = ctx;

	while (shared->rounds < 200) {
		struct mr_claim claim = { 0 };
		struct mr_message msg = { 0 };
		struct mr_error err = { 0 };
		char id[MR_ID_LEN + 1];
		enum mr_rc rc = mr_queue_recv(room, &t->bob, "builds", 60000, 0, &claim, &msg, &err);

		if (rc == MR_BUSY || rc == MR_EMPTY)
			continue;
		if (rc != MR_OK)
			_exit(2);
		int now = ++shared->live, most = shared->most;

		while (now > most && !atomic_compare_exchange_weak(&shared->most, &most, now))
			;
		mr_message_done(&msg);
		shared->live--;
		shared->rounds++;
		if (mr_claim_release(room, &t->bob, claim.token, id, &err) != MR_OK)
			_exit(3);
	}
}

static void
a_limit_of_two_holds_against_eight_claimers(void **state)
{
	enum { WORKERS = 8 };
	struct town t = town_new(state);
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t workers[WORKERS];

	assert_ptr_not_equal(shared, MAP_FAILED);
	make_queue(&t, "builds", (struct mr_queue){ .attempts = 0, .max_claims = 2 });
	for (int i = 0; i < 8; i++)
		town_send(&t, &t.alice, "queue:builds", "work", NULL);
	for (int w = 0; w < WORKERS; w++)
		workers[w] = in_child(&t, work_and_watch_the_limit, shared);
	for (int w = 0; w < WORKERS; w++) {
		int status = 1;

		assert_int_equal(waitpid(workers[w], &status, 0), workers[w]);
		assert_int_equal(status, 0);
	}
	assert_true(shared->rounds >= 200);
	assert_in_range(shared->most, 1, 2);
	(void)munmap(shared, sizeof(*shared));
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
		ON_BOTH(an_expired_lease_returns_the_work_and_a_late_done_is_refused),
		ON_BOTH(an_extended_claim_is_kept),
		ON_BOTH(a_clock_stepped_by_an_hour_voids_no_live_lease),
		ON_BOTH(a_takeover_returns_the_work_of_the_old_life_at_once),
		ON_BOTH(after_the_last_attempt_it_is_failed_and_its_sender_told_once),
		ON_BOTH(a_sweep_cut_off_after_the_bounce_does_not_bounce_again),
		ON_BOTH(work_whose_sender_cannot_be_told_is_not_put_aside),
		ON_BOTH(failing_is_final_and_a_bounce_never_bounces),
		ON_BOTH(work_of_a_sender_who_is_gone_is_only_kept),
		ON_BOTH(claimed_work_is_found_by_its_holder_alone),
		ON_BOTH(a_prune_returns_the_work_of_the_agent_at_once),
		ON_BOTH(waiting_for_a_place_among_the_claims_ends_empty),
		ON_BOTH(a_paused_queue_takes_mail_and_gives_nothing_out),
		ON_BOTH(a_closed_queue_refuses_both_and_lets_running_claims_finish),
		ON_BOTH(settings_come_back_as_they_were_given),
		ON_BOTH(names_and_patterns_that_are_none_are_refused),
		cmocka_unit_test(claim_patterns_match_whole_parts_in_any_spelling),
		ON_BOTH(only_claimers_may_claim_and_the_live_ones_are_counted),
		ON_BOTH(counting_tells_who_holds_what),
		ON_BOTH(a_queue_with_work_is_deleted_only_by_force_and_senders_are_told),
		ON_BOTH(failed_work_of_a_deleted_queue_stays_a_dead_letter),
		ON_BOTH(all_queues_are_listed),
		ON_MAILDIR(waiting_ends_when_work_comes),
		ON_MAILDIR(killed_claimers_lose_nothing_and_nothing_is_done_twice),
		ON_MAILDIR(a_limit_of_two_holds_against_eight_claimers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
