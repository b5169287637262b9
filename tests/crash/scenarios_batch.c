/* SPDX-License-Identifier: MIT */
/* scenarios_batch.c - many messages made durable together: each for itself is there, whole, or it is not; those that
 * were told as sent are there, those that were told as refused are not. */
#include "crash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define MESSAGES 6

static const char *const to_bob[] = { "bob", NULL }, *const to_carol[] = { "carol", NULL },
			 *const to_dave[] = { "dave", NULL }, *const to_both[] = { "erin", "frank", NULL };
static const char *const *const lists[MESSAGES] = { to_bob, to_carol, to_bob, to_dave, to_bob, to_both };

void
setup_batch(struct world *w)
{
	world_new(w, (const char *const[]){ "alice", "bob", "carol", "dave", "erin", "frank", NULL });
}

/* Tells a digit for each that was sent, a capital letter for each that was refused. */
enum mr_rc
run_batch(struct world *w, int tell)
{
	static const char *const subjects[MESSAGES] = { "m0", "m1", "m2", "m3", "m4", "m5" };
	struct mr_draft drafts[MESSAGES] = { 0 };
	struct mr_sent sent[MESSAGES];
	struct mr_error err = { 0 };
	struct mr_self self = { 0 };
	struct mr_room *room = world_open(w, true);
	enum mr_rc rc = MR_OK;

	if (room == NULL || mr_self_named(room, "alice", &self, &err) != MR_OK) {
		mr_room_close(room);
		return MR_IO;
	}
	for (size_t i = 0; i < MESSAGES; i++)
		drafts[i] =
		    (struct mr_draft){ .to = lists[i], .subject = subjects[i], .body = BODY, .body_len = strlen(BODY) };
	mr_send_many(room, &self, drafts, MESSAGES, sent);
	for (size_t i = 0; i < MESSAGES; i++) {
		bool there = sent[i].rc == MR_OK || sent[i].rc == MR_INDOUBT;

		tell_char(tell, (char)((there ? '0' : 'A') + (char)i));
		rc = rc == MR_OK ? sent[i].rc : rc;
		mr_receipt_done(&sent[i].receipt);
	}
	mr_room_close(room);
	return rc;
}

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

void
check_batch_message(const struct world *w, struct mr_room *room, unsigned i, const char *const *to)
{
	struct mr_scan scan = { .bodies = true, .trouble = trouble };
	struct mr_error err = { 0 };
	char subject[8];
	size_t have = 0, want = 0;

	(void)snprintf(subject, sizeof(subject), "m%u", i);
	for (; to[want]; want++) {
		struct counting c = { .subject = subject };

		assert_int_equal(mr_scan(room, to[want], &scan, count_subject, &c, &err), MR_OK);
		assert_true(c.copies <= 1);
		have += c.copies;
	}
	assert_true(have == 0 || have == want);
	if (w->accepted || (w->shown & (1u << i)))
		assert_int_equal(have, want);
	if (w->denied & (1u << i))
		assert_int_equal(have, 0);
}

void
check_batch(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < MESSAGES; i++)
		check_batch_message(w, room, i, lists[i]);
	mr_room_close(room);
}
