/* SPDX-License-Identifier: MIT */
/* Work queues: sending to one, claiming, finishing. */
#include "crash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define HOUR_MS (3600 * 1000)

static struct mr_self
self_of(struct mr_room *room, const char *agent)
{
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };

	if (mr_self_named(room, agent, &self, &err) != MR_OK)
		memset(&self, 0, sizeof(self));
	return self;
}

static struct mr_queue_counts
count(struct mr_room *room)
{
	struct mr_queue_counts n = { 0 };
	struct mr_error err = { 0 };

	if (mr_queue_count(room, "builds", &n, &err) != MR_OK)
		fail_msg("count: %s", err.message);
	return n;
}

static size_t
total(struct mr_queue_counts n)
{
	return n.ready + n.delayed + n.claimed + n.done + n.failed;
}

/* One piece of work, whole, done. */
static void
work_off(struct mr_room *room)
{
	struct mr_self self = self_of(room, "bob");
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	if (mr_queue_recv(room, &self, "builds", HOUR_MS, 0, &claim, &msg, &err) != MR_OK)
		fail_msg("recv: %s", err.message);
	assert_int_equal(msg.body_len, strlen(BODY));
	mr_message_done(&msg);
	assert_int_equal(mr_claim_done(room, &self, claim.token, NULL, id, NULL, &err), MR_OK);
}

/* ---- Sending ---- */

void
setup_queue(struct world *w)
{
	static const char *const pair[] = { "alice", "bob", NULL };
	struct mr_queue settings = { .name = "builds" };
	struct mr_error err = { 0 };

	world_new(w, pair);
	struct mr_room *room = world_open(w, true);
	struct mr_self self = self_of(room, "alice");
	if (mr_queue_create(room, &self, &settings, &err) != MR_OK)
		fail_msg("create: %s", err.message);
	mr_room_close(room);
}

static enum mr_rc
send_to(struct world *w, const char *const *to)
{
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_room *room = world_open(w, true);

	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "alice");
	struct mr_draft draft = { .to = to, .body = BODY, .body_len = strlen(BODY) };
	enum mr_rc rc = mr_send(room, &self, &draft, &receipt, &err);
	mr_receipt_done(&receipt);
	mr_room_close(room);
	return rc;
}

enum mr_rc
run_queue_send(struct world *w, int tell)
{
	static const char *const to[] = { "queue:builds", NULL };

	(void)tell;
	return send_to(w, to);
}

enum mr_rc
run_queue_fan_out(struct world *w, int tell)
{
	static const char *const to[] = { "queue:builds", "bob", NULL };

	(void)tell;
	return send_to(w, to);
}

/* Whole or not at all, each once. */
static void
check_sent(struct world *w, bool bob_too)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	struct mr_queue_counts n = count(room);
	assert_true(total(n) <= 1);
	assert_int_equal(n.ready, total(n));
	if (w->accepted || w->doubted)
		assert_int_equal(n.ready, 1);
	if (w->refused)
		assert_int_equal(n.ready, 0);
	if (bob_too)
		assert_int_equal(world_count(room, "bob", NULL).copies, n.ready);
	if (n.ready == 1)
		work_off(room);
	mr_room_close(room);
}

void
check_queue_sent(struct world *w)
{
	check_sent(w, false);
}

void
check_queue_fan_out(struct world *w)
{
	check_sent(w, true);
}

/* ---- Claiming ---- */

void
setup_queue_work(struct world *w)
{
	setup_queue(w);
	struct mr_room *room = world_open(w, true);
	for (size_t i = 0; i < WORK; i++)
		world_send(room, "alice", "queue:builds", w->ids[i]);
	mr_room_close(room);
}

static enum mr_rc
take(struct world *w, int64_t lease_ms)
{
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_room *room = world_open(w, true);

	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	enum mr_rc rc = mr_queue_recv(room, &self, "builds", lease_ms, 0, &claim, &msg, &err);
	if (rc == MR_OK)
		memcpy(w->token, claim.token, sizeof(claim.token));
	mr_message_done(&msg);
	mr_room_close(room);
	return rc;
}

enum mr_rc
run_queue_recv(struct world *w, int tell)
{
	(void)tell;
	return take(w, 1);
}

/* The lease of 1 ms is over: all of it can be claimed again. */
void
check_queue_received(struct world *w)
{
	usleep(3000);
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	assert_int_equal(total(count(room)), WORK);
	for (size_t i = 0; i < WORK; i++)
		work_off(room);
	assert_int_equal(count(room).done, WORK);
	assert_int_equal(total(count(room)), WORK);
	mr_room_close(room);
}

/* ---- Finishing ---- */

void
setup_queue_claimed(struct world *w)
{
	setup_queue_work(w);
	assert_int_equal(take(w, HOUR_MS), MR_OK);
}

enum mr_rc
run_queue_done(struct world *w, int tell)
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

/* Done or still claimed; what is still claimed can be finished, what is done cannot be done again. */
void
check_queue_done(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	struct mr_queue_counts n = count(room);
	assert_int_equal(n.done + n.claimed, 1);
	assert_int_equal(total(n), WORK);
	if (w->accepted)
		assert_int_equal(n.done, 1);
	mr_room_close(room);
	assert_int_equal(run_queue_done(w, -1), n.claimed == 1 ? MR_OK : MR_NOTFOUND);
}

/* ---- Finishing with a result ---- */

enum mr_rc
run_queue_answer(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_draft result = { .body = "all 214 pass", .body_len = 12 };
	char id[MR_ID_LEN + 1], answer[MR_ID_LEN + 1];
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	enum mr_rc rc = mr_claim_done(room, &self, w->token, &result, id, answer, &err);
	mr_room_close(room);
	return rc;
}

/* Wherever it was cut off, the same command once more finishes it, and the sender has one answer. */
void
check_queue_answer(struct world *w)
{
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	struct mr_queue_counts n = count(room);
	size_t answers = world_count(room, "alice", NULL).unread;
	assert_int_equal(n.done + n.claimed, 1);
	assert_int_equal(total(n), WORK);
	assert_true(answers <= 1);
	if (w->accepted)
		assert_int_equal(n.done, 1);
	if (n.done == 1)
		assert_int_equal(answers, 1);
	mr_room_close(room);
	assert_int_equal(run_queue_answer(w, -1), n.claimed == 1 ? MR_OK : MR_NOTFOUND);
	room = world_open(w, true);
	assert_int_equal(count(room).done, 1);
	assert_int_equal(world_count(room, "alice", NULL).unread, 1);
	mr_room_close(room);
}

/* ---- Releasing ---- */

enum mr_rc
run_queue_release(struct world *w, int tell)
{
	struct mr_error err = { 0 };
	struct mr_release how = { .reason = "no compiler", .to = "alice" };
	char id[MR_ID_LEN + 1];
	struct mr_room *room = world_open(w, true);

	(void)tell;
	if (room == NULL)
		return MR_IO;
	struct mr_self self = self_of(room, "bob");
	enum mr_rc rc = mr_claim_release(room, &self, w->token, &how, id, &err);
	mr_room_close(room);
	return rc;
}

/* Still claimed, or ready and only for alice. */
void
check_queue_release(struct world *w)
{
	struct mr_queue_left left = { 0 };
	struct mr_error err = { 0 };
	struct mr_room *room = world_open(w, true);

	assert_non_null(room);
	assert_int_equal(mr_queue_left(room, "bob", "builds", &left, &err), MR_OK);
	assert_int_equal(left.ready, WORK - 1);
	assert_int_equal(left.claimed + left.reserved, 1);
	if (w->accepted)
		assert_int_equal(left.reserved, 1);
	mr_room_close(room);
	assert_int_equal(run_queue_release(w, -1), left.claimed == 1 ? MR_OK : MR_NOTFOUND);
}
