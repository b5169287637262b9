/* SPDX-License-Identifier: MIT */
/* queues.c - work queues: one claimant, order, limits, and what becomes of a claim. */
#include "suite.h"
#include "base/clock.h"
#include "base/id.h"
#include <unistd.h>

static void
make_queue(struct world *w, const char *name)
{
	EXPECT(MR_OK, w->ops->make_box(w->room, room_box("queue", name).z, &err));
	EXPECT(MR_OK, w->ops->record_put(w->room, "queue", "", name, STR("Status: active\n"), &err));
	EXPECT(MR_OK, w->ops->make_box(w->room, room_box("queue", name).z, &err)); /* once more is no harm */
}

static void
send_work(struct world *w, const char *to, enum mr_priority priority, int64_t not_before_ms, char ret_id[MR_ID_LEN + 1])
{
	struct mr_message msg = { .from = "alice",
		.subject = "work",
		.date_ms = clock_now_ms(),
		.type = "task",
		.priority = priority,
		.not_before_ms = not_before_ms,
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.body = "do it\n",
		.body_len = 6 };
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct delivered done = { 0 };

	assert_true(names_add(&names, str_of(to)));
	id_new(msg.id);
	msg.thread = msg.id;
	msg.to = names;
	struct delivery what = { .msg = &msg, .to = &names, .sender = "" };

	EXPECT(MR_OK, w->ops->deliver(w->room, &what, &done, &err));
	mr_names_done(&done.missing);
	memcpy(ret_id, done.id, sizeof done.id);
}

static const struct claim_terms lasting = { .kind = CLAIM_LEASE, .lease_ms = 60000, .session = "", .claimer = "bob" };
static const struct claim_terms fleeting = { .kind = CLAIM_LEASE, .lease_ms = 1, .session = "", .claimer = "bob" };

static struct claim
claim_ok(struct world *w, const char *queue, const struct claim_terms *terms)
{
	struct claim hold = { 0 };

	EXPECT(MR_OK, w->ops->claim(w->room, room_box("queue", queue).z, NULL, terms, &hold, &err));
	return hold;
}

static void
claim_none(struct world *w, const char *queue, const struct claim_terms *terms, enum mr_rc why)
{
	struct claim hold = { 0 };

	EXPECT(why, w->ops->claim(w->room, room_box("queue", queue).z, NULL, terms, &hold, &err));
	assert_int_equal(hold.id[0], '\0');
}

struct census {
	size_t ready, delayed, claimed, done, failed, over;
	struct queue_item last; /* hold is not kept */
	struct claim hold;      /* of the last claim */
};

static bool
count_item(void *ctx, const struct queue_item *item)
{
	struct census *c = ctx;

	c->ready += item->state == QUEUE_READY;
	c->delayed += item->state == QUEUE_DELAYED;
	c->claimed += item->state == QUEUE_CLAIMED;
	c->done += item->state == QUEUE_DONE;
	c->failed += item->state == QUEUE_FAILED;
	assert_true((item->state == QUEUE_CLAIMED) == (item->claim != NULL));
	if (item->claim) {
		c->over += item->claim->over;
		c->hold = *item->claim;
	}
	c->last = *item;
	c->last.claim = NULL;
	return true;
}

static struct census
count_work(struct world *w, const char *queue, unsigned states)
{
	struct census c = { 0 };

	EXPECT(MR_OK, w->ops->each_claim(w->room, room_box("queue", queue).z, states, count_item, &c, &err));
	return c;
}
#define EVERYTHING ((unsigned)QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED | QUEUE_DONE | QUEUE_FAILED)

static void
each_work_has_one_claimant(void **state)
{
	struct world *w = *state;
	char ids[2][MR_ID_LEN + 1];

	make_queue(w, "builds");
	claim_none(w, "builds", &lasting, MR_EMPTY);
	send_work(w, "queue:builds", MR_NORMAL, 0, ids[0]);
	send_work(w, "queue:builds", MR_NORMAL, 0, ids[1]);
	struct claim first = claim_ok(w, "builds", &lasting), second = claim_ok(w, "builds", &lasting);

	assert_string_equal(first.id, ids[0]);
	assert_string_equal(second.id, ids[1]);
	assert_string_equal(first.agent, "bob");
	assert_string_equal(first.box, "queue:builds");
	assert_int_equal(first.attempt, 1);
	assert_int_equal(strlen(first.token), MR_TOKEN_LEN);
	assert_true(first.deadline_ms > clock_now_ms() + 50000);
	assert_string_not_equal(first.token, second.token);
	claim_none(w, "builds", &lasting, MR_EMPTY);
	EXPECT(MR_OK, w->ops->settle(w->room, &first, SETTLE_DONE, &err));
	EXPECT(MR_OK, w->ops->settle(w->room, &second, SETTLE_DEAD, &err));
	struct census c = count_work(w, "builds", EVERYTHING);

	assert_int_equal(c.ready + c.delayed + c.claimed, 0);
	assert_int_equal(c.done, 1);
	assert_int_equal(c.failed, 1);
	claim_none(w, "builds", &lasting, MR_EMPTY);
	struct claim none = { 0 };

	EXPECT(MR_NOTFOUND, w->ops->claim(w->room, "queue:no-such", NULL, &lasting, &none, &err));
}

static void
first_in_first_out_whatever_the_priority(void **state)
{
	struct world *w = *state;
	static const enum mr_priority sent[] = { MR_LOW, MR_URGENT, MR_NORMAL, MR_HIGH, MR_LOW };
	char ids[5][MR_ID_LEN + 1];

	make_queue(w, "builds");
	for (size_t i = 0; i < 5; i++)
		send_work(w, "queue:builds", sent[i], 0, ids[i]);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(claim_ok(w, "builds", &lasting).id, ids[i]);
}

static void
the_most_urgent_first_and_among_equals_the_oldest(void **state)
{
	struct world *w = *state;
	static const enum mr_priority sent[] = { MR_LOW, MR_URGENT, MR_NORMAL, MR_HIGH, MR_NORMAL, MR_URGENT };
	static const size_t order[] = { 1, 5, 3, 2, 4, 0 };
	struct claim_terms terms = lasting;
	char ids[6][MR_ID_LEN + 1];

	terms.by_priority = true;
	make_queue(w, "builds");
	for (size_t i = 0; i < 6; i++)
		send_work(w, "queue:builds", sent[i], 0, ids[i]);
	for (size_t i = 0; i < 6; i++)
		assert_string_equal(claim_ok(w, "builds", &terms).id, ids[order[i]]);
}

static void
no_more_claims_than_allowed_are_live(void **state)
{
	struct world *w = *state;
	struct claim_terms two = lasting, short_two = fleeting;
	char id[MR_ID_LEN + 1];

	two.max_claims = short_two.max_claims = 2;
	make_queue(w, "builds");
	for (size_t i = 0; i < 5; i++)
		send_work(w, "queue:builds", MR_NORMAL, 0, id);
	struct claim first = claim_ok(w, "builds", &two);

	(void)claim_ok(w, "builds", &short_two);
	(void)usleep(5000);
	struct claim third = claim_ok(w, "builds", &two); /* the one that ran out does not count */

	claim_none(w, "builds", &two, MR_BUSY);
	EXPECT(MR_OK, w->ops->settle(w->room, &first, SETTLE_DONE, &err));
	(void)claim_ok(w, "builds", &two);
	claim_none(w, "builds", &two, MR_BUSY);
	EXPECT(MR_OK, w->ops->settle(w->room, &third, SETTLE_BACK, &err));
	(void)claim_ok(w, "builds", &two);
	claim_none(w, "builds", &two, MR_BUSY);
}

static void
work_that_came_back_has_its_attempt_counted(void **state)
{
	struct world *w = *state;
	char ids[2][MR_ID_LEN + 1];

	make_queue(w, "builds");
	send_work(w, "queue:builds", MR_NORMAL, 0, ids[0]);
	send_work(w, "queue:builds", MR_NORMAL, 0, ids[1]);
	for (unsigned attempt = 1; attempt <= 3; attempt++) {
		struct claim hold = claim_ok(w, "builds", &lasting);

		assert_string_equal(hold.id, ids[0]); /* back in its place, before what came later */
		assert_int_equal(hold.attempt, attempt);
		EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_BACK, &err));
		struct mr_message msg = { 0 };

		EXPECT(MR_OK, room_fetch_work(w->room, "builds", ids[0], &msg, &err));
		assert_int_equal(msg.attempt, attempt);
		mr_message_done(&msg);
	}
	assert_int_equal(count_work(w, "builds", QUEUE_READY).ready, 2);
}

static void
released_work_goes_behind_the_rest(void **state)
{
	struct world *w = *state;
	struct claim_terms other = lasting;
	char ids[2][MR_ID_LEN + 1];

	add_agent(w, "bob");
	add_agent(w, "carol");
	other.claimer = "carol";
	make_queue(w, "builds");
	send_work(w, "queue:builds", MR_NORMAL, 0, ids[0]);
	send_work(w, "queue:builds", MR_NORMAL, 0, ids[1]);
	(void)usleep(2000);
	struct claim hold = claim_ok(w, "builds", &lasting);
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_LATER, &err));
	hold = claim_ok(w, "builds", &lasting);
	assert_string_equal(hold.id, ids[1]);
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
	hold = claim_ok(w, "builds", &lasting); /* nothing else is left */
	assert_string_equal(hold.id, ids[0]);
	assert_int_equal(hold.attempt, 1); /* a release is none */
	hold.only_for = "carol";
	hold.only_until_ms = clock_now_ms() + 60000;
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_LATER, &err));
	claim_none(w, "builds", &lasting, MR_EMPTY);
	hold = claim_ok(w, "builds", &other);
	assert_string_equal(hold.id, ids[0]);
	hold.only_for = "bob";
	hold.only_until_ms = clock_now_ms() - 2000; /* its time is over */
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_LATER, &err));
	(void)claim_ok(w, "builds", &other);
}

static void
a_claim_that_passed_to_another_is_over(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];

	make_queue(w, "builds");
	send_work(w, "queue:builds", MR_NORMAL, 0, id);
	struct claim late = claim_ok(w, "builds", &lasting);

	EXPECT(MR_OK, w->ops->settle(w->room, &late, SETTLE_BACK, &err));
	struct claim next = claim_ok(w, "builds", &lasting);

	assert_int_equal(next.attempt, 2);
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &late, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &late, SETTLE_BACK, &err));
	EXPECT(MR_NOTFOUND, w->ops->extend(w->room, &late, 60000, &err));
	assert_int_equal(count_work(w, "builds", EVERYTHING).claimed, 1);
	EXPECT(MR_OK, w->ops->settle(w->room, &next, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &next, SETTLE_DONE, &err));
	assert_int_equal(count_work(w, "builds", EVERYTHING).done, 1);
}

static void
a_claim_that_ran_out_is_reported_and_anyone_can_put_it_back(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];

	make_queue(w, "builds");
	send_work(w, "queue:builds", MR_NORMAL, 0, id);
	struct claim hold = claim_ok(w, "builds", &fleeting);

	(void)usleep(5000);
	struct census c = count_work(w, "builds", QUEUE_CLAIMED);

	assert_int_equal(c.claimed, 1);
	assert_int_equal(c.over, 1);
	claim_none(w, "builds", &lasting, MR_EMPTY); /* until then it is nobody else's */
	EXPECT(MR_OK, w->ops->settle(w->room, &c.hold, SETTLE_BACK, &err));
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
	assert_int_equal(claim_ok(w, "builds", &lasting).attempt, 2);
}

static void
a_claim_lasts_when_extended_and_whatever_the_wall_clock_says(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];

	make_queue(w, "builds");
	send_work(w, "queue:builds", MR_NORMAL, 0, id);
	struct claim hold = claim_ok(w, "builds", &fleeting);

	EXPECT(MR_OK, w->ops->extend(w->room, &hold, 60000, &err));
	assert_true(hold.deadline_ms > clock_now_ms() + 50000);
	(void)usleep(5000);
	clock_shift_ms(3600000);
	struct census c = count_work(w, "builds", QUEUE_CLAIMED);

	clock_shift_ms(0);
	assert_int_equal(c.claimed, 1);
	assert_int_equal(c.over, 0);
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
}

static void
work_cannot_be_claimed_before_its_time(void **state)
{
	struct world *w = *state;
	int64_t then_ms = clock_now_ms() + 3600000;
	char later[MR_ID_LEN + 1], now[MR_ID_LEN + 1];

	make_queue(w, "builds");
	send_work(w, "queue:builds", MR_URGENT, then_ms, later);
	claim_none(w, "builds", &lasting, MR_EMPTY);
	struct census c = count_work(w, "builds", EVERYTHING);

	assert_int_equal(c.delayed, 1);
	assert_int_equal(c.last.not_before_ms / 1000, then_ms / 1000);
	assert_int_equal(c.last.priority, MR_URGENT);
	send_work(w, "queue:builds", MR_LOW, clock_now_ms() - 1000, now);
	assert_string_equal(claim_ok(w, "builds", &lasting).id, now);
	claim_none(w, "builds", &lasting, MR_EMPTY);
	clock_shift_ms(3601000);
	struct claim hold = { 0 };
	struct mr_error error = { 0 };
	enum mr_rc rc = w->ops->claim(w->room, "queue:builds", NULL, &lasting, &hold, &error);

	clock_shift_ms(0);
	check_rc(rc, MR_OK, &error, "claim", __FILE__, __LINE__);
	assert_string_equal(hold.id, later);
}

static void
a_queue_with_work_in_it_is_not_removed_by_accident(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "queue:builds" } };
	char ids[4][MR_ID_LEN + 1];
	size_t dead = 99;

	make_queue(w, "builds");
	for (size_t i = 0; i < 3; i++)
		send_work(w, "queue:builds", MR_NORMAL, 0, ids[i]);
	send_work(w, "queue:builds", MR_NORMAL, clock_now_ms() + 3600000, ids[3]);
	struct claim done = claim_ok(w, "builds", &lasting), claimed = claim_ok(w, "builds", &lasting);

	EXPECT(MR_OK, w->ops->settle(w->room, &done, SETTLE_DONE, &err));
	EXPECT(MR_REFUSED, w->ops->remove_box(w->room, "queue:builds", false, &dead, &err));
	assert_int_equal(count_work(w, "builds", EVERYTHING).claimed, 1);
	EXPECT(MR_OK, w->ops->remove_box(w->room, "queue:builds", true, &dead, &err));
	assert_int_equal(dead, 3); /* ready, claimed, delayed */
	assert_int_equal(count_in(w, "", MR_DEAD), 3);
	for (size_t i = 1; i < 4; i++) {
		struct mr_message msg = fetch_ok(w, "", ids[i], MR_DEAD);

		mr_message_done(&msg);
	}
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &claimed, SETTLE_DONE, &err));
	struct mr_error ignored = { 0 };

	(void)w->ops->record_drop(w->room, "queue", "", "builds", &ignored); /* may be gone with the queue */
	EXPECT(MR_NOTFOUND, try_send(w, &letter, NULL, &err));
	make_queue(w, "builds");
	assert_int_equal(count_work(w, "builds", QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED).ready, 0);
}

static void
an_idle_queue_is_removed(void **state)
{
	struct world *w = *state;
	struct claim none = { 0 };
	char id[MR_ID_LEN + 1];
	size_t dead = 99;

	make_queue(w, "builds");
	send_work(w, "queue:builds", MR_NORMAL, 0, id);
	struct claim hold = claim_ok(w, "builds", &lasting);

	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
	EXPECT(MR_OK, w->ops->remove_box(w->room, "queue:builds", false, &dead, &err));
	assert_int_equal(dead, 0);
	struct mr_error ignored = { 0 };

	(void)w->ops->record_drop(w->room, "queue", "", "builds", &ignored);
	EXPECT(MR_NOTFOUND, w->ops->claim(w->room, "queue:builds", NULL, &lasting, &none, &err));
}

static void
a_claim_is_found_by_its_token_in_whatever_queue(void **state)
{
	struct world *w = *state;
	struct claim found = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(w, "builds");
	make_queue(w, "rig/builds");
	send_work(w, "queue:builds", MR_NORMAL, 0, id);
	send_work(w, "queue:rig/builds", MR_NORMAL, 0, id);
	(void)claim_ok(w, "builds", &lasting);
	struct claim hold = claim_ok(w, "rig/builds", &lasting);

	assert_string_equal(hold.id, id);
	EXPECT(MR_OK, w->ops->find_claim(w->room, hold.token, &found, &err));
	assert_string_equal(found.box, "queue:rig/builds");
	assert_string_equal(found.id, id);
	assert_string_equal(found.agent, "bob");
	assert_string_equal(found.token, hold.token);
	assert_int_equal(found.attempt, 1);
	assert_false(found.over);
	EXPECT(MR_OK, w->ops->settle(w->room, &found, SETTLE_DONE, &err)); /* it is enough to settle with */
	EXPECT(MR_NOTFOUND, w->ops->find_claim(w->room, hold.token, &found, &err));
	EXPECT(MR_NOTFOUND, w->ops->find_claim(w->room, "000000000000", &found, &err));
}

static void
work_can_be_read_in_any_state(void **state)
{
	struct world *w = *state;
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(w, "builds");
	send_work(w, "queue:builds", MR_HIGH, 0, id);
	EXPECT(MR_OK, room_fetch_work(w->room, "builds", id, &msg, &err));
	assert_string_equal(msg.id, id);
	assert_string_equal(msg.from, "alice");
	assert_int_equal(msg.body_len, 6);
	assert_int_equal(msg.attempt, 0);
	mr_message_done(&msg);
	struct claim hold = claim_ok(w, "builds", &lasting);

	EXPECT(MR_OK, room_fetch_work(w->room, "builds", id, &msg, &err));
	assert_string_equal(msg.token, hold.token);
	assert_int_equal(msg.attempt, 1);
	mr_message_done(&msg);
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_DEAD, &err));
	EXPECT(MR_OK, room_fetch_work(w->room, "builds", id, &msg, &err));
	mr_message_done(&msg);
	EXPECT(MR_NOTFOUND, room_fetch_work(w->room, "builds", "01k9w3b7zq8m4c2v6t1x5n0prs", &msg, &err));
	EXPECT(MR_OK,
	    w->ops->remove(w->room, &(struct removal){ .what = REMOVE_DEAD, .box = "builds", .id = id }, NULL, &err));
	EXPECT(MR_NOTFOUND, room_fetch_work(w->room, "builds", id, &msg, &err));
}

struct numbered {
	uint64_t last;
	char id[MR_ID_LEN + 1];
};

static bool
note_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct numbered *n = ctx;

	n->last = number;
	memcpy(n->id, msg->id, sizeof n->id);
	return true;
}

static void
one_send_reaches_an_agent_a_queue_and_a_channel(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "bob", "queue:builds", "channel:news", "carol" } };
	struct delivered done = { 0 };
	struct numbered post = { 0 };

	add_agent(w, "alice");
	add_agent(w, "bob");
	add_agent(w, "carol");
	make_queue(w, "builds");
	EXPECT(MR_OK, w->ops->make_box(w->room, "channel:news", &err));
	EXPECT(MR_OK, try_send(w, &letter, &done, &err));
	assert_int_equal(count_unread(w, "bob"), 1);
	assert_int_equal(count_unread(w, "carol"), 1);
	assert_int_equal(count_in(w, "alice", MR_SENT), 1);
	assert_string_equal(claim_ok(w, "builds", &lasting).id, done.id);
	EXPECT(MR_OK, w->ops->channel_scan(w->room, "news", 0, SCAN_HEADERS, note_post, &post, &err));
	assert_int_equal(post.last, 1);
	assert_string_equal(post.id, done.id);
}

static void
a_send_to_a_queue_or_channel_that_is_not_there_is_refused_for_all(void **state)
{
	struct world *w = *state;
	static const char *const missing[] = { "queue:none", "channel:none", "queue:../agents", "channel:.x" };

	add_agent(w, "bob");
	for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
		struct letter both = { .to = { "bob", missing[i] }, .make_mailboxes = true };
		struct letter alone = { .to = { missing[i] }, .make_mailboxes = true };

		EXPECT(MR_NOTFOUND, try_send(w, &both, NULL, &err));
		EXPECT(MR_NOTFOUND, try_send(w, &alone, NULL, &err));
	}
	assert_int_equal(count_unread(w, "bob"), 0);
}

const struct suite_case queue_cases[] = {
	CASE(each_work_has_one_claimant, ROOM_QUEUES),
	CASE(first_in_first_out_whatever_the_priority, ROOM_QUEUES),
	CASE(the_most_urgent_first_and_among_equals_the_oldest, ROOM_QUEUES),
	CASE(no_more_claims_than_allowed_are_live, ROOM_QUEUES),
	CASE(work_that_came_back_has_its_attempt_counted, ROOM_QUEUES),
	CASE(released_work_goes_behind_the_rest, ROOM_QUEUES),
	CASE(a_claim_that_passed_to_another_is_over, ROOM_QUEUES),
	CASE(a_claim_that_ran_out_is_reported_and_anyone_can_put_it_back, ROOM_QUEUES),
	CASE(a_claim_lasts_when_extended_and_whatever_the_wall_clock_says, ROOM_QUEUES),
	CASE(work_cannot_be_claimed_before_its_time, ROOM_QUEUES),
	CASE(a_queue_with_work_in_it_is_not_removed_by_accident, ROOM_QUEUES),
	CASE(an_idle_queue_is_removed, ROOM_QUEUES),
	CASE(a_claim_is_found_by_its_token_in_whatever_queue, ROOM_QUEUES),
	CASE(work_can_be_read_in_any_state, ROOM_QUEUES),
	CASE(one_send_reaches_an_agent_a_queue_and_a_channel, ROOM_REGISTER | ROOM_QUEUES | ROOM_CHANNELS | ROOM_SENT),
	CASE(a_send_to_a_queue_or_channel_that_is_not_there_is_refused_for_all,
	    ROOM_REGISTER | ROOM_QUEUES | ROOM_CHANNELS),
	{ 0 },
};
