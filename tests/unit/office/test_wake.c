/* SPDX-License-Identifier: MIT */
/* What an idle agent is woken for, how often, and what keeps one from going idle. */
#include "base/clock.h"
#include "office/nudge/nudge.h"
#include "office/tell/tell.h"
#include "office/who/who.h"
#include "town.h"

static size_t notices;
/* Ids of one process only grow: after a test that moved the clock, the next one begins later. */
static int64_t today_ms;

static struct town
town_later(void **state)
{
	today_ms += (int64_t)4 * 3600 * 1000;
	clock_shift_ms(today_ms);
	return town_new(state);
}

static void
count_notice(void *ctx, const struct mr_receipt *receipt, const char *subject)
{
	(void)ctx;
	(void)subject;
	assert_true(receipt->to.n == 1 && strcmp(receipt->to.v[0], OPERATOR) == 0);
	notices++;
}

static bool
leave(void *ctx)
{
	(void)ctx;
	return false;
}

static char rung[MR_RING_MAX];

static enum mr_rc
note_ring(void *ctx, const char *text, struct mr_error *err)
{
	(void)snprintf(rung, sizeof rung, "%s", text);
	return *(const bool *)ctx ? MR_OK : mr_fail(err, MR_REFUSED, "no door");
}

static const struct mr_wake_options options = { .stay = leave, .told = count_notice };

/* Its text, or NULL: not woken. The caller frees it. */
static char *
woken(struct town *t, const struct mr_self *self)
{
	struct mr_wake *wake = NULL;
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_wake_wait(t->room, self, &options, &err);

	if (rc == MR_EMPTY) {
		assert_rc(mr_wake_open(t->room, self, &options, false, &wake, &err), MR_EMPTY);
		return NULL;
	}
	assert_ok(rc);
	assert_ok(mr_wake_open(t->room, self, &options, false, &wake, &err));
	char *text = strdup(mr_wake_text(wake));
	bool takes = true;

	assert_ok(mr_wake_ring(wake, "test-hook", true, note_ring, &takes, &err));
	mr_wake_close(wake);
	return text;
}

static void
assert_woken(struct town *t, const struct mr_self *self, const char *what)
{
	char *text = woken(t, self);

	if (what == NULL ? text != NULL : text == NULL || strstr(text, what) == NULL)
		fail_msg("wanted '%s', got: %s", what ? what : "no wake", text ? text : "no wake");
	free(text);
}

static void
mail_wakes_once(void **state)
{
	struct town t = town_new(state);
	struct mr_wake *wake = NULL;
	struct mr_error err = { 0 };

	assert_woken(&t, &t.bob, NULL);
	town_send(&t, &t.alice, "bob", "hello", NULL);
	assert_woken(&t, &t.carol, NULL);
	/* What was not told is told later. */
	assert_ok(mr_wake_open(t.room, &t.bob, &options, false, &wake, &err));
	mr_wake_close(wake);
	assert_woken(&t, &t.bob, "from alice: hello");
	assert_woken(&t, &t.bob, NULL);
	town_send(&t, &t.alice, "bob", "again", NULL);
	assert_woken(&t, &t.bob, "from alice: again");
	town_register(&t, "bob", true, &t.bob);
	assert_woken(&t, &t.bob, "hello");
	town_done(&t);
}

static void
nudges_wake(void **state)
{
	struct town t = town_new(state);
	struct mr_nudge nudge = { .text = "come", .kind = "" }, notice = { .text = "you have mail", .kind = "mail" };
	struct mr_nudge_options how = { .mode = MR_NUDGE_QUEUE };
	struct mr_nudged done = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_nudge_send(t.room, &t.alice, "bob", &notice, &how, &done, &err));
	assert_woken(&t, &t.bob, NULL);
	assert_ok(mr_nudge_send(t.room, &t.alice, "bob", &nudge, &how, &done, &err));
	assert_woken(&t, &t.bob, "come");
	assert_woken(&t, &t.bob, NULL);
	assert_ok(mr_dnd_set(t.room, "bob", true, &err));
	nudge.text = "please";
	how.force = true;
	assert_ok(mr_nudge_send(t.room, &t.alice, "bob", &nudge, &how, &done, &err));
	assert_woken(&t, &t.bob, NULL);
	assert_ok(mr_dnd_set(t.room, "bob", false, &err));
	assert_woken(&t, &t.bob, "please");
	/* One who nudges all the time is slowed down, too. */
	for (int i = 0; i < WAKE_LIMIT - 2; i++) {
		char text[20];

		(void)snprintf(text, sizeof text, "nudge %d", i);
		nudge.text = text;
		assert_ok(mr_nudge_send(t.room, &t.alice, "bob", &nudge, &how, &done, &err));
		assert_woken(&t, &t.bob, text);
	}
	nudge.text = "too much";
	assert_ok(mr_nudge_send(t.room, &t.alice, "bob", &nudge, &how, &done, &err));
	assert_woken(&t, &t.bob, NULL);
	assert_ok(mr_nudge_send(t.room, &t.carol, "bob", &nudge, &how, &done, &err));
	assert_woken(&t, &t.bob, "too much");
	town_done(&t);
}

static void
work_wakes_who_may_claim_it(void **state)
{
	struct town t = town_new(state);
	struct mr_queue queue = { .name = "jobs", .claimers = "bob", .attempts = 3, .lease_ms = 60000 };
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_claim claim = { 0 };
	char id[MR_ID_LEN + 1];
	struct mr_error err = { 0 };

	assert_ok(mr_queue_create(t.room, &t.alice, &queue, &err));
	assert_woken(&t, &t.bob, NULL);
	town_send(&t, &t.alice, "queue:jobs", "build it", NULL);
	assert_woken(&t, &t.carol, NULL);
	assert_woken(&t, &t.bob, "mailroom recv queue:jobs");
	assert_woken(&t, &t.bob, NULL);
	assert_ok(mr_queue_recv(t.room, &t.bob, "jobs", 0, 0, &claim, &msg, &err));
	town_send(&t, &t.alice, "queue:jobs", "more", NULL);
	assert_woken(&t, &t.bob, NULL); /* its hands are full */
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err));
	assert_woken(&t, &t.bob, "jobs");
	/* What came back after it was claimed is offered again. */
	mr_message_done(&msg);
	assert_ok(mr_queue_recv(t.room, &t.bob, "jobs", 0, 0, &claim, &msg, &err));
	assert_ok(mr_claim_release(t.room, &t.bob, claim.token, NULL, id, &err));
	assert_woken(&t, &t.bob, "jobs");
	assert_ok(mr_queue_set_status(t.room, "jobs", MR_QUEUE_PAUSED, &err));
	town_send(&t, &t.alice, "queue:jobs", "later", NULL);
	assert_woken(&t, &t.bob, NULL);
	town_done(&t);
}

/* ---- Too often ---- */

static void
answer(struct town *t, const struct mr_self *self, const char *id, char *ret_id)
{
	struct mr_draft draft = draft_to(NULL, "thank you");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_reply(t->room, self, id, &draft, false, &receipt, &err));
	memcpy(ret_id, receipt.id, MR_ID_LEN + 1);
	mr_receipt_done(&receipt);
}

static void
each_direction_of_a_thread_has_its_limit(void **state)
{
	struct town t = town_later(state);
	char id[MR_ID_LEN + 1], other[MR_ID_LEN + 1];
	char why[MR_WAKE_WHY_MAX] = "";
	struct mr_error err = { 0 };

	notices = 0;
	town_send(&t, &t.alice, "bob", "hello", id);
	assert_false(mr_wake_limited(t.room, "bob", id, why));
	for (int i = 0; i < 2 * WAKE_LIMIT; i++) {
		const struct mr_self *self = i % 2 ? &t.alice : &t.bob;

		assert_woken(&t, self, i > 0 ? "Re: hello" : "hello");
		answer(&t, self, id, id);
	}
	assert_woken(&t, &t.bob, NULL);
	assert_int_equal(notices, 1);
	assert_int_equal(town_count(&t, OPERATOR, MR_INBOX), 1);
	assert_woken(&t, &t.bob, NULL);
	assert_int_equal(notices, 1);
	assert_rc(mr_wake_by_mail(t.room, &t.alice, "bob", id, &options, &err), MR_REFUSED);
	assert_int_equal(notices, 1);
	assert_true(mr_wake_limited(t.room, "bob", id, why));
	assert_non_null(strstr(why, "wakes of this thread are limited until "));
	/* The other direction is the other's. */
	answer(&t, &t.bob, id, id);
	assert_woken(&t, &t.alice, NULL);
	assert_int_equal(notices, 1);
	/* Another thread is another matter. */
	town_send(&t, &t.alice, "bob", "something else", other);
	assert_ok(mr_wake_by_mail(t.room, &t.alice, "bob", other, &options, &err));
	assert_woken(&t, &t.bob, "something else");
	town_done(&t);
}

static void
what_was_too_much_wakes_later(void **state)
{
	struct town t = town_later(state);
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "hello", id);
	for (int i = 0; i < 2 * WAKE_LIMIT; i++) {
		const struct mr_self *self = i % 2 ? &t.alice : &t.bob;

		assert_woken(&t, self, "hello");
		answer(&t, self, id, id);
	}
	assert_woken(&t, &t.bob, NULL);
	clock_shift_ms(today_ms + WAKE_WINDOW_MS - 60000);
	assert_woken(&t, &t.bob, NULL);
	clock_shift_ms(today_ms + WAKE_WINDOW_MS + 60000);
	assert_woken(&t, &t.bob, "hello");
	answer(&t, &t.bob, id, id);
	assert_woken(&t, &t.alice, "hello");
	town_done(&t);
}

static void
many_in_a_long_time_are_not_too_many(void **state)
{
	struct town t = town_later(state);
	char id[MR_ID_LEN + 1];

	notices = 0;
	town_send(&t, &t.alice, "bob", "hello", id);
	for (int i = 0; i < 3 * WAKE_LIMIT; i++) {
		const struct mr_self *self = i % 2 ? &t.alice : &t.bob;

		clock_shift_ms(today_ms + i * (WAKE_WINDOW_MS / (2 * (WAKE_LIMIT - 1)) + 1));
		assert_woken(&t, self, "hello");
		answer(&t, self, id, id);
	}
	assert_int_equal(notices, 0);
	town_done(&t);
}

static void
automatic_mail_wakes_once_in_a_thread(void **state)
{
	struct town t = town_later(state);
	struct mr_draft draft = draft_to(TO("bob"), "out of office");
	char id[MR_ID_LEN + 1], why[MR_WAKE_WHY_MAX];

	draft.headers = &(struct mr_header){ .name = "Auto-Submitted", .value = "auto-replied" };
	draft.headers_n = 1;
	draft.thread = "deploy";
	town_send_draft(&t, &t.alice, &draft, id);
	assert_woken(&t, &t.bob, "out of office");
	town_send_draft(&t, &t.alice, &draft, id);
	assert_woken(&t, &t.bob, NULL);
	assert_true(mr_wake_limited(t.room, "bob", id, why));
	clock_shift_ms(today_ms + 2 * WAKE_WINDOW_MS);
	assert_woken(&t, &t.bob, NULL);
	draft.headers_n = 0;
	town_send_draft(&t, &t.alice, &draft, id);
	assert_woken(&t, &t.bob, "out of office");
	town_done(&t);
}

static void
a_limit_is_a_number_and_a_time(void **state)
{
	struct wake_rule rule;

	(void)state;
	assert_true(wake_rule_parse("3/20s", &rule));
	assert_true(rule.limit == 3 && rule.window_ms == 20000);
	assert_true(wake_rule_parse(NULL, &rule));
	assert_true(rule.limit == WAKE_LIMIT && rule.window_ms == WAKE_WINDOW_MS);
	assert_false(wake_rule_parse("0/20s", &rule));
	assert_false(wake_rule_parse("101/20s", &rule));
	assert_false(wake_rule_parse("3", &rule));
	assert_false(wake_rule_parse("3/soon", &rule));
	assert_true(rule.limit == WAKE_LIMIT);
}

/* ---- Stop ---- */

static char *
held_up(struct town *t, const struct mr_self *self, bool told)
{
	struct mr_injection *stop = NULL;
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_inject_open(t->room, self, MR_INJECT_STOP, MR_INJECT_REMINDER, &stop, &err);

	if (rc == MR_EMPTY)
		return NULL;
	assert_ok(rc);
	char *text = strdup(mr_inject_text(stop));

	if (told)
		assert_ok(mr_inject_shown(stop, "stop", &err));
	mr_inject_close(stop);
	return text;
}

static void
assert_held_up(struct town *t, const struct mr_self *self, bool told, const char *what)
{
	char *text = held_up(t, self, told);

	if (what == NULL ? text != NULL : text == NULL || strstr(text, what) == NULL)
		fail_msg("wanted '%s', got: %s", what ? what : "nothing", text ? text : "nothing");
	free(text);
}

static void
a_stop_is_held_up_once_for_each_reason(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob"), "fire");
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_error err = { 0 };

	town_send(&t, &t.alice, "bob", "no hurry", NULL);
	assert_held_up(&t, &t.bob, true, NULL);
	draft.priority = MR_URGENT;
	town_send_draft(&t, &t.alice, &draft, NULL);
	assert_held_up(&t, &t.bob, false, "fire"); /* stdout did not take it */
	assert_held_up(&t, &t.bob, true, "fire");
	assert_held_up(&t, &t.bob, true, NULL);
	draft.body = "flood";
	draft.body_len = 5;
	town_send_draft(&t, &t.alice, &draft, NULL);
	assert_held_up(&t, &t.bob, true, "flood");
	assert_ok(mr_recv(t.room, &t.bob, NULL, 60000, &claim, &msg, &err));
	assert_held_up(&t, &t.bob, true, claim.token);
	assert_held_up(&t, &t.bob, true, NULL);
	assert_held_up(&t, &t.alice, true, NULL);
	town_done(&t);
}

static bool
note_deadline(void *ctx, const struct queue_item *item)
{
	*(int64_t *)ctx = item->claim->deadline_ms;
	return true;
}

static void
leases_are_renewed_when_half_is_over(void **state)
{
	struct town t = town_later(state);
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_claim claim = { 0 };
	int64_t first = 0, second = 0;
	struct mr_error err = { 0 };

	assert_ok(mr_claims_keep(t.room, &t.bob, &err));
	town_send(&t, &t.alice, "bob", "work", NULL);
	assert_ok(mr_recv(t.room, &t.bob, NULL, 60000, &claim, &msg, &err));
	assert_ok(mr_claims_keep(t.room, &t.bob, &err));
	assert_ok(t.room->driver->each_claim(t.room, "bob", QUEUE_CLAIMED, note_deadline, &first, &err));
	assert_true(first > claim.deadline_ms + 500000);
	clock_shift_ms(today_ms + 60000);
	assert_ok(mr_claims_keep(t.room, &t.bob, &err));
	assert_ok(t.room->driver->each_claim(t.room, "bob", QUEUE_CLAIMED, note_deadline, &second, &err));
	assert_true(second == first);
	town_done(&t);
}

/* ---- Urgent only ---- */

static void
in_between_only_what_is_urgent_and_new(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob"), "fire");
	struct mr_injection *inj = NULL;
	struct mr_error err = { 0 };

	town_send(&t, &t.alice, "bob", "no hurry", NULL);
	assert_rc(mr_inject_open(t.room, &t.bob, MR_INJECT_URGENT, MR_INJECT_REMINDER, &inj, &err), MR_EMPTY);
	draft.priority = MR_URGENT;
	town_send_draft(&t, &t.alice, &draft, NULL);
	assert_ok(mr_inject_open(t.room, &t.bob, MR_INJECT_URGENT, MR_INJECT_REMINDER, &inj, &err));
	assert_non_null(strstr(mr_inject_text(inj), "fire"));
	assert_null(strstr(mr_inject_text(inj), "no hurry"));
	assert_ok(mr_inject_shown(inj, "test", &err));
	mr_inject_close(inj);
	assert_rc(mr_inject_open(t.room, &t.bob, MR_INJECT_URGENT, MR_INJECT_REMINDER, &inj, &err), MR_EMPTY);
	/* The rest is told as if nothing had been. */
	assert_ok(mr_inject_open(t.room, &t.bob, MR_INJECT_ALL, MR_INJECT_REMINDER, &inj, &err));
	assert_non_null(strstr(mr_inject_text(inj), "no hurry"));
	mr_inject_close(inj);
	town_done(&t);
}

static void
what_was_only_counted_wakes_nobody_and_is_listed_later(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("bob"), "fire");
	struct mr_injection *inj = NULL;
	char fire[MR_ID_LEN + 1], flood[MR_ID_LEN + 1];
	struct mr_error err = { 0 };

	draft.priority = MR_URGENT;
	town_send(&t, &t.alice, "bob", "no hurry", NULL);
	for (int i = 0; i < INJECT_LIST_MAX; i++)
		town_send(&t, &t.alice, "bob", "another", NULL);
	town_send_draft(&t, &t.alice, &draft, fire);
	/* "fire", ten others, and one more: at the start of a session, say, beside its waiter. */
	assert_ok(mr_inject_open(t.room, &t.bob, MR_INJECT_ALL, MR_INJECT_REMINDER, &inj, &err));
	assert_null(strstr(mr_inject_text(inj), "no hurry"));
	assert_ok(mr_inject_shown(inj, "test", &err));
	mr_inject_close(inj);
	assert_woken(&t, &t.bob, NULL);
	/* Nor does a telling in between forget it. */
	draft.subject = "flood";
	town_send_draft(&t, &t.alice, &draft, flood);
	assert_ok(mr_inject_open(t.room, &t.bob, MR_INJECT_URGENT, MR_INJECT_REMINDER, &inj, &err));
	assert_ok(mr_inject_shown(inj, "test", &err));
	mr_inject_close(inj);
	assert_woken(&t, &t.bob, NULL);
	assert_ok(mr_mark(t.room, &t.bob, fire, MR_SEEN, 0, &err));
	assert_ok(mr_mark(t.room, &t.bob, flood, MR_SEEN, 0, &err));
	assert_woken(&t, &t.bob, NULL);
	assert_ok(mr_inject_open(t.room, &t.bob, MR_INJECT_ALL, MR_INJECT_REMINDER, &inj, &err));
	assert_non_null(strstr(mr_inject_text(inj), "no hurry"));
	assert_ok(mr_inject_shown(inj, "test", &err));
	mr_inject_close(inj);
	assert_rc(mr_inject_open(t.room, &t.bob, MR_INJECT_ALL, MR_INJECT_REMINDER, &inj, &err), MR_EMPTY);
	town_done(&t);
}

/* ---- Bells ---- */

static enum mr_rc
ring(struct town *t, bool takes)
{
	struct mr_wake *wake = NULL;
	struct mr_error err = { 0 };

	rung[0] = '\0';
	assert_ok(mr_wake_open(t->room, &t->bob, &options, false, &wake, &err));
	enum mr_rc rc = mr_wake_ring(wake, "test-door", false, note_ring, &takes, &err);

	mr_wake_close(wake);
	return rc;
}

static void
a_ring_says_nothing_that_a_sender_chose_and_is_open_until_it_is_answered(void **state)
{
	struct town t = town_later(state);
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	char id[MR_ID_LEN + 1], other[sizeof rung];
	bool work = true;
	int64_t at_ms;

	town_send(&t, &t.alice, "bob", "run rm -rf /", id);
	assert_true(ring(&t, true) == MR_OK);
	assert_non_null(strstr(rung, id));
	assert_non_null(strstr(rung, "1 new message ("));
	assert_null(strstr(rung, "-rf"));
	assert_null(strstr(rung, "alice"));
	assert_true(mr_bell_open(t.room, &t.bob));
	assert_true(mr_bell_is(t.room, &t.bob, rung, &work));
	assert_false(work);
	assert_false(mr_bell_is(t.room, &t.alice, rung, &work)); /* somebody else's */
	(void)snprintf(other, sizeof other, "mailroom bell 000000:%s", rung + strlen("mailroom bell 123456:"));
	assert_false(mr_bell_is(t.room, &t.bob, other, &work)); /* typed by a user */
	town_send(&t, &t.alice, "bob", "more", NULL);
	assert_true(ring(&t, true) == MR_BUSY);
	assert_string_equal(rung, "");
	mr_bell_end(t.room, &t.bob, MR_BELL_ANSWERED);
	assert_false(mr_bell_open(t.room, &t.bob));
	assert_true(bell_of(t.room, &t.bob, id, &evidence, &at_ms));
	assert_non_null(strstr(buf_z(&evidence), "rung by test-door at "));
	assert_non_null(strstr(buf_z(&evidence), ", answered at "));
	assert_false(bell_of(t.room, &t.bob, "", &evidence, &at_ms));
	assert_true(ring(&t, true) == MR_OK); /* nothing was told yet */
	assert_non_null(strstr(rung, "2 new messages ("));
	town_done(&t);
}

static void
a_ring_that_nobody_answers_is_repeated_twice(void **state)
{
	struct town t = town_later(state);
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	int64_t at_ms;

	town_send(&t, &t.alice, "bob", "hello", NULL);
	assert_true(ring(&t, true) == MR_OK);
	for (int i = 0; i < 2; i++) {
		assert_true(ring(&t, true) == MR_BUSY);
		assert_false(bell_of(t.room, &t.bob, "", &evidence, &at_ms));
		clock_shift_ms(today_ms += (int64_t)11 * 60 * 1000);
		assert_true(ring(&t, true) == MR_OK);
	}
	clock_shift_ms(today_ms += (int64_t)11 * 60 * 1000);
	assert_true(ring(&t, true) == MR_BUSY);
	buf_done(&evidence);
	assert_true(bell_of(t.room, &t.bob, "", &evidence, &at_ms));
	assert_non_null(strstr(buf_z(&evidence), "for the 3. time, not answered yet"));
	town_done(&t);
}

static void
a_door_that_does_not_take_it_leaves_no_open_ring(void **state)
{
	struct town t = town_later(state);
	bool work;

	town_send(&t, &t.alice, "bob", "hello", NULL);
	assert_true(ring(&t, false) == MR_REFUSED);
	assert_false(mr_bell_open(t.room, &t.bob));
	assert_false(mr_bell_is(t.room, &t.bob, rung, &work));
	assert_woken(&t, &t.bob, "hello"); /* and nothing counts as told */
	town_done(&t);
}

static void
where_somebody_waits_it_is_not_unattended(void **state)
{
	struct town t = town_later(state);
	struct mr_wake *wake = NULL;
	struct mr_error err = { 0 };
	void *lock = NULL;

	town_send(&t, &t.alice, "bob", "hello", NULL);
	assert_ok(t.room->driver->record_lock(t.room, NUDGE, "bob", NUDGE_WAITER, 0, &lock, &err));
	assert_true(mr_wake_open(t.room, &t.bob, &options, true, &wake, &err) == MR_BUSY);
	t.room->driver->record_unlock(t.room, lock);
	err = (struct mr_error){ 0 };
	assert_ok(mr_wake_open(t.room, &t.bob, &options, true, &wake, &err));
	assert_true(t.room->driver->record_lock(t.room, NUDGE, "bob", NUDGE_WAITER, 0, &lock, &err) == MR_BUSY);
	mr_wake_close(wake);
	err = (struct mr_error){ 0 };
	assert_ok(t.room->driver->record_lock(t.room, NUDGE, "bob", NUDGE_WAITER, 0, &lock, &err));
	t.room->driver->record_unlock(t.room, lock);
	town_done(&t);
}

/* What a killed ringer leaves: a ring that is noted as begun. */
static void
a_ring_that_a_kill_cut_off_is_rung_again_at_once(void **state)
{
	struct town t = town_later(state);
	mr_auto(mr_names_done) struct mr_names lines = { 0 };
	char first[sizeof rung];
	bool keep = true;
	void *lock = NULL;
	struct mr_error err = { 0 };

	town_send(&t, &t.alice, "bob", "hello", NULL);
	assert_true(ring(&t, true) == MR_OK);
	memcpy(first, rung, sizeof first);
	told_words(t.room, &t.bob, "bell", &lines);
	mr_auto(buf_done) struct buf begun = BUF_INIT;

	buf_addf(&begun, "%.6s ringing %s", lines.v[0], strstr(lines.v[0], " rung ") + strlen(" rung "));
	mr_names_done(&lines);
	assert_true(names_add(&lines, buf_str(&begun)));
	assert_ok(told_put_words(t.room, &t.bob, "bell", &lines, &err));
	assert_ok(t.room->driver->record_lock(t.room, "bell", "bob", "ringer", 0, &lock, &err));
	assert_true(mr_bell_open(t.room, &t.bob)); /* it lives */
	assert_true(ring(&t, true) == MR_BUSY);
	t.room->driver->record_unlock(t.room, lock);
	assert_false(mr_bell_open(t.room, &t.bob));
	assert_true(ring(&t, true) == MR_OK);
	assert_memory_equal(rung, first, strlen("mailroom bell 123456:")); /* if both come through, both are known */
	assert_true(mr_bell_open(t.room, &t.bob));
	mr_bell_end(t.room, &t.bob, MR_BELL_STALE);
	assert_true(mr_bell_is(t.room, &t.bob, rung, &keep));
	assert_false(keep);
	town_done(&t);
}

static void
a_prompt_whose_start_just_told_the_mail_is_kept(void **state)
{
	struct town t = town_later(state);
	bool keep = false;

	town_send(&t, &t.alice, "bob", "hello", NULL);
	assert_true(ring(&t, true) == MR_OK);
	mr_bell_end(t.room, &t.bob, MR_BELL_ANSWERED);
	assert_true(mr_bell_is(t.room, &t.bob, rung, &keep));
	assert_true(keep);
	clock_shift_ms(today_ms += 60000);
	assert_true(mr_bell_is(t.room, &t.bob, rung, &keep));
	assert_false(keep);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mail_wakes_once),
		ON_BOTH(nudges_wake),
		ON_BOTH(work_wakes_who_may_claim_it),
		ON_BOTH(automatic_mail_wakes_once_in_a_thread),
		ON_BOTH(a_limit_is_a_number_and_a_time),
		ON_BOTH(each_direction_of_a_thread_has_its_limit),
		ON_BOTH(what_was_too_much_wakes_later),
		ON_BOTH(many_in_a_long_time_are_not_too_many),
		ON_BOTH(a_stop_is_held_up_once_for_each_reason),
		ON_BOTH(leases_are_renewed_when_half_is_over),
		ON_BOTH(in_between_only_what_is_urgent_and_new),
		ON_BOTH(what_was_only_counted_wakes_nobody_and_is_listed_later),
		ON_BOTH(a_ring_says_nothing_that_a_sender_chose_and_is_open_until_it_is_answered),
		ON_BOTH(a_ring_that_nobody_answers_is_repeated_twice),
		ON_BOTH(a_door_that_does_not_take_it_leaves_no_open_ring),
		ON_BOTH(a_ring_that_a_kill_cut_off_is_rung_again_at_once),
		ON_BOTH(a_prompt_whose_start_just_told_the_mail_is_kept),
		ON_BOTH(where_somebody_waits_it_is_not_unattended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
