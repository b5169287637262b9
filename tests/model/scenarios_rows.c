/* SPDX-License-Identifier: MIT */
/*
 * scenarios_rows.c - several operations in a row. What one of them leaves unsynced (holds, copies for the sender, half
 * of a move) is still open while the next ones work, and a cut may take any of it. Each step is told when it returns:
 * digit 4 + number; the digits below say which of the three messages were shown.
 */
#include "more.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define HOUR_MS (3600 * 1000)
#define STEPS_MAX 6

enum step { END, SEND, FAN_OUT, KEYED, BATCH, DRAIN, MARK, ARCHIVE, RECV, DONE, RELEASE };
/* How far a message of the three is, at least, when that step has returned. */
enum level { UNREAD, HELD, SEEN, FILED };

static const char *const to_bob[] = { "bob", NULL }, *const to_both[] = { "bob", "carol", NULL };

/* ---- The steps ---- */

static enum mr_rc
send_number(struct mr_room *room, enum step how, unsigned number, struct mr_error *err)
{
	static const char *const subjects[] = { "r0", "r1", "r2", "r3", "r4", "r5" };
	struct mr_self self = more_self(room, "alice");
	struct mr_draft draft = { .to = how == FAN_OUT ? to_both : to_bob,
		.subject = how == KEYED ? "keyed" : subjects[number],
		.key = how == KEYED ? "row" : NULL,
		.body = BODY,
		.body_len = strlen(BODY) };
	struct mr_receipt receipt = { 0 };
	enum mr_rc rc = mr_send(room, &self, &draft, &receipt, err);

	mr_receipt_done(&receipt);
	return rc;
}

static enum mr_rc
send_five(struct mr_room *room, unsigned number)
{
	struct mr_self self = more_self(room, "alice");
	struct mr_draft drafts[5] = { 0 };
	struct mr_sent sent[5];
	char subjects[5][8];
	enum mr_rc rc = MR_OK;

	for (unsigned i = 0; i < 5; i++) {
		(void)snprintf(subjects[i], sizeof(subjects[i]), "r%u.%u", number, i);
		drafts[i] =
		    (struct mr_draft){ .to = to_bob, .subject = subjects[i], .body = BODY, .body_len = strlen(BODY) };
	}
	mr_send_many(room, &self, drafts, 5, sent);
	for (unsigned i = 0; i < 5; i++) {
		rc = rc == MR_OK ? sent[i].rc : rc;
		mr_receipt_done(&sent[i].receipt);
	}
	return rc;
}

static enum mr_rc
drain_three(struct world *w, struct mr_room *room, int tell, struct mr_error *err)
{
	struct mr_self self = more_self(room, "bob");
	struct mr_show *show = NULL;
	enum mr_rc rc = mr_show_open(room, &self, NULL, &show, err);

	for (unsigned i = 0; rc == MR_OK && i < WORK; i++) {
		struct mr_message msg = { 0 };

		rc = mr_show_take(show, w->ids[i], &msg, err);
		if (rc == MR_OK)
			tell_char(tell, (char)('0' + i));
		mr_message_done(&msg);
	}
	if (rc == MR_OK)
		rc = mr_show_finish(show, true, NULL, err);
	mr_show_close(show);
	return rc;
}

static enum mr_rc
change_three(struct world *w, struct mr_room *room, enum step how, struct mr_error *err)
{
	struct mr_self self = more_self(room, "bob");
	enum mr_rc rc = MR_OK;

	for (unsigned i = 0; rc == MR_OK && i < WORK; i++)
		rc = how == ARCHIVE ? mr_archive(room, &self, w->ids[i], err)
				    : mr_mark(room, &self, w->ids[i], MR_SEEN, 0, err);
	return rc == MR_OK ? mr_flush(room, err) : rc;
}

/* The first of the three: nothing else is unread and older. */
static enum mr_rc
work_on_first(struct world *w, struct mr_room *room, enum step how, struct mr_error *err)
{
	struct mr_self self = more_self(room, "bob");
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	if (how == DONE)
		return mr_claim_done(room, &self, w->token, NULL, id, NULL, err);
	if (how == RELEASE)
		return mr_claim_release(room, &self, w->token, &(struct mr_release){ .unseen = true }, id, err);
	enum mr_rc rc = mr_recv(room, &self, NULL, HOUR_MS, &claim, &msg, err);
	if (rc == MR_OK)
		memcpy(w->token, claim.token, sizeof(claim.token));
	if (rc == MR_OK && strcmp(msg.id, w->ids[0]) != 0)
		rc = MR_CORRUPT;
	mr_message_done(&msg);
	return rc;
}

static enum mr_rc
take_step(struct world *w, enum step step, unsigned number, int tell)
{
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);
	enum mr_rc rc = MR_IO;

	if (room == NULL)
		return rc;
	switch (step) {
	case SEND:
	case FAN_OUT:
	case KEYED:
		rc = send_number(room, step, number, &err);
		break;
	case BATCH:
		rc = send_five(room, number);
		break;
	case DRAIN:
		rc = drain_three(w, room, tell, &err);
		break;
	case MARK:
	case ARCHIVE:
		rc = change_three(w, room, step, &err);
		break;
	case RECV:
	case DONE:
	case RELEASE:
		rc = work_on_first(w, room, step, &err);
		break;
	case END:
		break;
	}
	mr_room_close(room);
	return rc;
}

static enum mr_rc
run_row(struct world *w, int tell, const enum step *steps)
{
	enum mr_rc rc = MR_OK;

	for (unsigned i = 0; rc == MR_OK && steps[i] != END; i++) {
		rc = take_step(w, steps[i], i, tell);
		if (rc == MR_OK)
			tell_char(tell, (char)('4' + i));
	}
	return rc;
}

/* ---- What was promised ---- */

struct counting {
	const char *subject;
	size_t copies;
};

static bool
count_subject(void *ctx, const struct mr_message *msg)
{
	struct counting *c = ctx;

	if (strcmp(msg->subject, c->subject) != 0)
		return true;
	c->copies++;
	assert_int_equal(msg->body_len, strlen(BODY));
	assert_memory_equal(msg->body, BODY, msg->body_len);
	return true;
}

static void
trouble(void *ctx, const char *path, const struct mr_error *err)
{
	(void)ctx;
	fail_msg("%s: %s", path, err->message);
}

static size_t
copies_of(struct mr_room *room, const char *agent, const char *subject)
{
	struct counting c = { .subject = subject };
	struct mr_scan scan = { .bodies = true, .trouble = trouble };
	struct mr_error err = { 0 };

	scan.filter.folders = MR_INBOX | MR_HELD | MR_ARCHIVE;
	assert_int_equal(mr_scan(room, agent, &scan, count_subject, &c, &err), MR_OK);
	return c.copies;
}

/* Whole and once, or not at all; there, when that was told. */
static void
check_new(struct mr_room *room, enum step step, unsigned number, bool told)
{
	char subject[16];

	if (step == BATCH)
		for (unsigned i = 0; i < 5; i++) {
			(void)snprintf(subject, sizeof(subject), "r%u.%u", number, i);
			size_t n = copies_of(room, "bob", subject);
			assert_true(n == 1 || (n == 0 && !told));
		}
	if (step != SEND && step != FAN_OUT && step != KEYED)
		return;
	(void)snprintf(subject, sizeof(subject), "r%u", number);
	size_t n = copies_of(room, "bob", step == KEYED ? "keyed" : subject);
	assert_true(n == 1 || (n == 0 && !told));
	if (step == FAN_OUT)
		assert_int_equal(copies_of(room, "carol", subject), n);
}

static enum level
level_of(struct mr_room *room, const char *id)
{
	struct places p = more_places(room, "bob", id);

	assert_int_equal(p.all, 1);
	return p.archive ? FILED : p.held ? HELD : p.unread ? UNREAD : SEEN;
}

/* Not less than was told, and not consumed by any step but those that were asked to, or showed it. */
static void
check_three(struct world *w, struct mr_room *room, const enum step *steps)
{
	enum level least[WORK] = { UNREAD };
	bool consumed_unseen = false;

	for (unsigned i = 0; steps[i] != END; i++) {
		bool told = w->shown & (1u << (4 + i)), begun = i == 0 || (w->shown & (1u << (3 + i)));

		consumed_unseen |= begun && (steps[i] == MARK || steps[i] == ARCHIVE || steps[i] == DONE);
		for (unsigned m = 0; m < WORK; m++) {
			if (steps[i] == RELEASE && begun && m == 0)
				least[m] = UNREAD;
			if (!told)
				continue;
			if (steps[i] == DRAIN || steps[i] == ARCHIVE || (steps[i] == DONE && m == 0))
				least[m] = FILED;
			else if (steps[i] == MARK && least[m] < SEEN)
				least[m] = SEEN;
			else if (steps[i] == RECV && m == 0)
				least[m] = HELD;
		}
	}
	for (unsigned m = 0; m < WORK; m++) {
		enum level level = level_of(room, w->ids[m]);

		assert_true(level >= least[m]);
		if (level >= SEEN)
			assert_true(consumed_unseen || (w->shown & (1u << m)));
	}
}

static void
check_row(struct world *w, const enum step *steps)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; steps[i] != END; i++)
		check_new(room, steps[i], i, w->shown & (1u << (4 + i)));
	check_three(w, room, steps);
	mr_room_close(room);
	for (unsigned i = 0; steps[i] != END; i++)
		if (steps[i] == KEYED) { /* whatever happened: the retry makes one of it */
			assert_int_equal(take_step(w, KEYED, i, -1), MR_OK);
			room = world_open(w, true);
			assert_int_equal(copies_of(room, "bob", "keyed"), 1);
			mr_room_close(room);
		}
}

/* ---- The rows ---- */

#define ROW(name, ...)                                                                                                 \
	static const enum step row_##name[STEPS_MAX + 1] = { __VA_ARGS__, END };                                       \
	static enum mr_rc run_##name(struct world *w, int tell)                                                        \
	{                                                                                                              \
		return run_row(w, tell, row_##name);                                                                   \
	}                                                                                                              \
	static void check_##name(struct world *w)                                                                      \
	{                                                                                                              \
		check_row(w, row_##name);                                                                              \
	}
ROW(sends, SEND, SEND, SEND, SEND, SEND, SEND)
ROW(drain_send, DRAIN, SEND, SEND)
ROW(send_drain, SEND, DRAIN, SEND)
ROW(mark_archive, MARK, SEND, ARCHIVE, SEND)
ROW(recv_done, RECV, DONE, SEND)
ROW(recv_release, RECV, RELEASE, RECV, DONE)
ROW(fan_outs, FAN_OUT, SEND, FAN_OUT)
ROW(keys, KEYED, SEND, KEYED)
ROW(batches, BATCH, SEND, BATCH)
ROW(day, FAN_OUT, DRAIN, BATCH, KEYED, SEND)

const struct scenario row_scenarios[] = {
	{ "send six times", setup_three, run_sends, check_sends, 20, 0 },
	{ "drain, send, send", setup_three, run_drain_send, check_drain_send, 20, 0 },
	{ "send, drain, send", setup_three, run_send_drain, check_send_drain, 20, 0 },
	{ "mark, send, archive, send", setup_three, run_mark_archive, check_mark_archive, 20, 0 },
	{ "recv, done, send", setup_three, run_recv_done, check_recv_done, 20, 0 },
	{ "recv, release, recv, done", setup_three, run_recv_release, check_recv_release, 20, 0 },
	{ "fan-out, send, fan-out", setup_three, run_fan_outs, check_fan_outs, 20, 0 },
	{ "send --key, send, again", setup_three, run_keys, check_keys, 20, 0 },
	{ "batch, send, batch", setup_three, run_batches, check_batches, 20, 0 },
	{ "five kinds of work", setup_three, run_day, check_day, 20, 0 },
};
const size_t row_scenarios_n = sizeof(row_scenarios) / sizeof(row_scenarios[0]);
