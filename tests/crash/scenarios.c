/* SPDX-License-Identifier: MIT */
#include "crash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const everyone[] = { "alice", "bob", "carol", "dave", "erin", "frank", NULL };
static const char *const five[] = { "bob", "carol", "dave", "erin", "frank", NULL };
static const char *const pair[] = { "alice", "bob", NULL };

static struct mr_self
self_of(struct mr_room *room, const char *agent)
{
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };

	if (mr_self_named(room, agent, &self, &err) != MR_OK)
		memset(&self, 0, sizeof(self));
	return self;
}

/* ---- sending: one, several, with a key ---- */

static void
setup_six(struct world *w)
{
	world_new(w, everyone);
}

static enum mr_rc
send_to(struct world *w, const char *const *to, const char *key)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_room *room = world_open(w, true);

	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "alice");
	struct mr_draft draft = { .to = to, .body = BODY, .body_len = strlen(BODY), .key = key };
	enum mr_rc rc = mr_send(room, &self, &draft, &receipt, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

static enum mr_rc
run_send_one(struct world *w, int tell)
{
	static const char *const bob[] = { "bob", NULL };

	(void)tell;
	return send_to(w, bob, NULL);
}

static enum mr_rc
run_fan_out(struct world *w, int tell)
{
	(void)tell;
	return send_to(w, five, NULL);
}

static enum mr_rc
run_keyed(struct world *w, int tell)
{
	(void)tell;
	return send_to(w, five, "deploy-42");
}

/* Whole or not at all, each once; refused: nobody. `whole` is how many have it when anybody has. */
static void
check_sent(struct world *w, const char *const *to)
{
	struct mr_room *room = world_open(w, true);
	size_t have = 0, want = 0;

	assert_non_null(room);
	for (; to[want] != NULL; want++) {
		struct census c = world_count(room, to[want], NULL);
		assert_int_equal(c.torn, 0);
		assert_true(c.copies <= 1);
		have += c.copies;
	}
	assert_true(have == 0 || have == want);
	if (w->accepted || w->doubted)
		assert_int_equal(have, want);
	if (w->refused)
		assert_int_equal(have, 0);
	mr_room_close(room);
}

static void
check_one(struct world *w)
{
	static const char *const bob[] = { "bob", NULL };

	check_sent(w, bob);
}

static void
check_five(struct world *w)
{
	check_sent(w, five);
}

/* The same key again, after whatever happened: one message for everybody, never two. */
static void
check_keyed(struct world *w)
{
	check_sent(w, five);
	assert_int_equal(send_to(w, five, "deploy-42"), MR_OK);
	struct mr_room *room = world_open(w, true);
	for (size_t i = 0; five[i] != NULL; i++)
		assert_int_equal(world_count(room, five[i], NULL).copies, 1);
	mr_room_close(room);
}

/* ---- consuming: read, drain, recv, done, archive ---- */

static void
setup_work(struct world *w)
{
	world_new(w, pair);
	struct mr_room *room = world_open(w, true);
	for (size_t i = 0; i < WORK; i++)
		world_send(room, "alice", "bob", w->ids[i]);
	mr_room_close(room);
}

static enum mr_rc
show_all(struct world *w, int tell, bool archive)
{
	struct mr_error err = { 0 };
	struct mr_show *show = NULL;
	struct mr_room *room = world_open(w, true);

	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	enum mr_rc rc = mr_show_open(room, &self, NULL, &show, &err);
	for (unsigned i = 0; rc == MR_OK && i < WORK; i++) {
		struct mr_message msg = { 0 };
		rc = mr_show_take(show, w->ids[i], &msg, &err);
		if (rc == MR_OK)
			tell_char(tell, (char)('0' + i));
		mr_message_done(&msg);
	}
	if (rc == MR_OK)
		rc = mr_show_finish(show, archive, NULL, &err);
	mr_show_close(show);
	mr_room_close(room);
	return rc;
}

static enum mr_rc
run_read(struct world *w, int tell)
{
	return show_all(w, tell, false);
}

static enum mr_rc
run_drain(struct world *w, int tell)
{
	return show_all(w, tell, true);
}

/* Every message exactly once, none held by the dead, none seen that was not shown. */
static void
check_shown(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct census c = world_count(room, "bob", w->ids[i]);
		assert_int_equal(c.torn, 0);
		assert_int_equal(c.copies, 1);
		assert_int_equal(c.held, 0);
		if (c.seen)
			assert_true(w->shown & (1u << i));
		if (w->accepted)
			assert_int_equal(c.seen, 1);
	}
	mr_room_close(room);
}

static enum mr_rc
run_recv(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	enum mr_rc rc = mr_recv(room, &self, NULL, 1, &claim, &msg, &err);
	mr_message_done(&msg);
	mr_room_close(room);
	return rc;
}

/* The lease of 1 ms is over: everything is unread in the inbox again. */
static void
check_received(struct world *w)
{
	usleep(3000); /* longer than the lease of 1 ms */
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct census c = world_count(room, "bob", w->ids[i]);
		assert_int_equal(c.torn, 0);
		assert_int_equal(c.copies, 1);
		assert_int_equal(c.seen, 0);
	}
	mr_room_close(room);
}

static void
setup_claimed(struct world *w)
{
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };

	setup_work(w);
	struct mr_room *room = world_open(w, true);
	struct mr_self self = self_of(room, "bob");
	assert_int_equal(mr_recv(room, &self, NULL, 3600 * 1000, &claim, &msg, &err), MR_OK);
	memcpy(w->token, claim.token, sizeof(claim.token));
	mr_message_done(&msg);
	mr_room_close(room);
}

static enum mr_rc
run_done(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	enum mr_rc rc = mr_claim_done(room, &self, w->token, NULL, id, NULL, &err);
	mr_room_close(room);
	return rc;
}

static void
check_done(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct census c = world_count(room, "bob", w->ids[i]);
		assert_int_equal(c.torn, 0);
		assert_int_equal(c.copies, 1);
		if (i == 0 && w->accepted)
			assert_int_equal(c.acked, 1);
		if (i == 0)
			assert_int_equal(c.acked + c.held, 1);
		else
			assert_int_equal(c.unread, 1);
	}
	mr_room_close(room);
}

static enum mr_rc
run_archive(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);
	enum mr_rc rc = MR_OK;

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	for (unsigned i = 0; rc == MR_OK && i < WORK; i++)
		rc = mr_archive(room, &self, w->ids[i], &err);
	if (rc == MR_OK)
		rc = mr_flush(room, &err);
	mr_room_close(room);
	return rc;
}

static void
check_once_each(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	for (unsigned i = 0; i < WORK; i++) {
		struct census c = world_count(room, "bob", w->ids[i]);
		assert_int_equal(c.torn, 0);
		assert_int_equal(c.copies, 1);
	}
	mr_room_close(room);
}

/* ---- names: register, takeover ---- */

static enum mr_rc
claim_name(struct world *w, const char *name, bool takeover)
{
	struct mr_error err = { 0 };
	struct mr_env nobody = { 0 };
	struct mr_registration reg = { 0 };
	struct mr_register_options options = { .takeover = takeover };
	struct mr_room *room = world_open(w, true);

	if (room == NULL)
		return MR_IO;
	enum mr_rc rc = mr_register(room, name, &nobody, &options, &reg, &err);
	mr_room_close(room);
	return rc;
}

static enum mr_rc
run_register(struct world *w, int tell)
{
	(void)tell;
	return claim_name(w, "rig/polecats/nux", false);
}

/* Whatever was left, the name can be had, and mail to it arrives. */
static void
check_registered(struct world *w)
{
	char id[MR_ID_LEN + 1];

	assert_int_equal(claim_name(w, "rig/polecats/nux", true), MR_OK);
	struct mr_room *room = world_open(w, true);
	world_send(room, "alice", "rig/polecats/nux", id);
	assert_int_equal(world_count(room, "rig/polecats/nux", id).unread, 1);
	mr_room_close(room);
}

static enum mr_rc
run_takeover(struct world *w, int tell)
{
	(void)tell;
	return claim_name(w, "bob", true);
}

/* The held message is the new life's; the old life's token is worth nothing after an accepted takeover. */
static void
check_taken_over(struct world *w)
{
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	check_once_each(w);
	assert_int_equal(claim_name(w, "bob", true), MR_OK);
	struct mr_room *room = world_open(w, true);
	struct mr_self old = self_of(room, "bob");
	old.life = 1;
	assert_int_not_equal(mr_claim_done(room, &old, w->token, NULL, id, NULL, &err), MR_OK);
	for (unsigned i = 0; i < WORK; i++) {
		struct census c = world_count(room, "bob", w->ids[i]);
		assert_int_equal(c.unread, 1);
		assert_int_equal(c.copies, 1);
	}
	mr_room_close(room);
}

const struct scenario scenarios[] = {
	{ "send", setup_six, run_send_one, check_one, 8, 0 },
	{ "fan-out", setup_six, run_fan_out, check_five, 25, 0 },
	{ "send --key", setup_six, run_keyed, check_keyed, 25, 0 },
	{ "send --batch", setup_batch, run_batch, check_batch, 40, 0 },
	{ "read", setup_work, run_read, check_shown, 12, 0 },
	{ "drain", setup_work, run_drain, check_shown, 12, 0 },
	{ "recv", setup_work, run_recv, check_received, 8, 0 },
	{ "done", setup_claimed, run_done, check_done, 6, 0 },
	{ "archive", setup_work, run_archive, check_once_each, 8, 0 },
	{ "register", setup_work, run_register, check_registered, 10, 0 },
	{ "takeover", setup_claimed, run_takeover, check_taken_over, 8, 0 },
	{ "send queue:", setup_queue, run_queue_send, check_queue_sent, 15, 0 },
	{ "send queue: and bob", setup_queue, run_queue_fan_out, check_queue_fan_out, 25, 0 },
	{ "recv queue:", setup_queue_work, run_queue_recv, check_queue_received, 15, 0 },
	{ "done queue:", setup_queue_claimed, run_queue_done, check_queue_done, 10, 0 },
	{ "done -m queue:", setup_queue_claimed, run_queue_answer, check_queue_answer, 25, 0 },
	{ "release queue:", setup_queue_claimed, run_queue_release, check_queue_release, 15, 0 },
};
const size_t scenarios_n = sizeof(scenarios) / sizeof(scenarios[0]);
