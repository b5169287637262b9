/* SPDX-License-Identifier: MIT */
/* Work queues of the native driver: the life of a piece of work, exact order, a cost that does not grow. */
#include "support/sys_fault.h"
#include "work.h"
#include "rooms/maildir/maildir.h"

/* ---- Life of a piece of work ---- */

static void
work_is_claimed_read_and_done(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];
	struct mr_message msg = { 0 };
	struct claim found = { 0 };

	send_work(b, MR_HIGH, id);
	struct claim hold = claim(b, false);
	assert_string_equal(hold.id, id);
	assert_string_equal(hold.box, "queue:jobs");
	assert_int_equal(hold.attempt, 1);
	EXPECT(MR_OK, maildir_queue_fetch(&b->room, "jobs", id, SCAN_BODIES, &msg, &err));
	assert_string_equal(msg.subject, "build it");
	assert_string_equal(msg.token, hold.token);
	assert_int_equal(msg.priority, MR_HIGH);
	mr_message_done(&msg);
	EXPECT(MR_OK, maildir_find_claim(&b->room, hold.token, &found, &err));
	assert_string_equal(found.box, "queue:jobs");
	assert_string_equal(found.agent, "bob");
	assert_int_equal(found.life, 1);
	assert_false(found.over);
	assert_true(found.since_ms > 0);
	claims_nothing(b);
	EXPECT(MR_OK, maildir_settle(&b->room, &found, SETTLE_DONE, &err));
	assert_int_equal(count(b).done, 1);
	assert_int_equal(total(count(b)), 1);
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &hold, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, maildir_find_claim(&b->room, hold.token, &found, &err));
	EXPECT(MR_OK, maildir_queue_fetch(&b->room, "jobs", id, SCAN_BODIES, &msg, &err));
	mr_message_done(&msg);
}

struct told {
	unsigned n;
	char reason[64], only_for[64];
};

static void
note_past(void *ctx, const struct past_claim *past)
{
	struct told *t = ctx;

	t->n++;
	(void)snprintf(t->reason, sizeof(t->reason), "%s", past->claim->reason != NULL ? past->claim->reason : "");
	(void)snprintf(
	    t->only_for, sizeof(t->only_for), "%s", past->claim->only_for != NULL ? past->claim->only_for : "");
}

static void
a_release_that_is_tried_again_says_what_it_says_last(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];
	struct told told = { 0 };

	send_work(b, MR_NORMAL, id);
	struct claim hold = claim(b, false);
	hold.reason = "a first reason";
	hold.only_for = "alice";
	hold.only_until_ms = clock_now_ms() + 60000;
	EXPECT(MR_OK, token_note(b->room.state, &hold, &err)); /* the rename failed */
	hold.reason = "another";
	hold.only_for = NULL;
	EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_LATER, &err));
	EXPECT(MR_OK, maildir_each_past(&b->room, "queue:jobs", id, NULL, 0, note_past, &told, &err));
	assert_int_equal(told.n, 1);
	assert_string_equal(told.reason, "another");
	assert_string_equal(told.only_for, "");
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &hold, SETTLE_LATER, &err));
}

static void
a_late_done_of_an_earlier_claim_is_refused(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];

	send_work(b, MR_NORMAL, id);
	struct claim first = claim(b, false);
	EXPECT(MR_OK, maildir_settle(&b->room, &first, SETTLE_BACK, &err));
	struct claim second = claim(b, false);
	assert_string_equal(second.id, id);
	assert_int_equal(second.attempt, 2);
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &first, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, maildir_extend(&b->room, &first, 1000, &err));
	struct claim guessed = second;
	memcpy(guessed.token, first.token, sizeof(guessed.token));
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &guessed, SETTLE_DONE, &err));
	EXPECT(MR_OK, maildir_settle(&b->room, &second, SETTLE_DEAD, &err));
	assert_int_equal(count(b).failed, 1);
	assert_int_equal(total(count(b)), 1);
}

/* One token serves all holds of a process: there the attempt tells an old claim from a new one. */
static void
a_process_cannot_finish_its_own_earlier_claim(void **state)
{
	struct box *b = *state;
	struct claim_terms terms = terms_of("bob", 0);
	struct claim first = { 0 }, second = { 0 };
	char id[MR_ID_LEN + 1];

	terms.kind = CLAIM_HANDLE;
	send_work(b, MR_NORMAL, id);
	EXPECT(MR_OK, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &first, &err));
	EXPECT(MR_OK, maildir_settle(&b->room, &first, SETTLE_BACK, &err));
	EXPECT(MR_OK, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &second, &err));
	assert_string_equal(first.token, second.token);
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &first, SETTLE_DONE, &err));
	EXPECT(MR_OK, maildir_settle(&b->room, &second, SETTLE_DONE, &err));
}

static void
a_claim_is_over_when_its_time_is_up_and_lasts_when_extended(void **state)
{
	struct box *b = *state;
	struct claim_terms terms = terms_of("bob", 1);
	struct claim hold = { 0 }, seen = { 0 };
	char id[MR_ID_LEN + 1];

	send_work(b, MR_LOW, id);
	EXPECT(MR_OK, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err));
	usleep(3000);
	EXPECT(MR_OK, maildir_each_claim(&b->room, "queue:jobs", QUEUE_CLAIMED, remember_hold, &seen, &err));
	assert_true(seen.over);
	assert_string_equal(seen.agent, "bob");
	EXPECT(MR_OK, maildir_extend(&b->room, &hold, 3600 * 1000, &err));
	EXPECT(MR_OK, maildir_each_claim(&b->room, "queue:jobs", QUEUE_CLAIMED, remember_hold, &seen, &err));
	assert_false(seen.over);
	/* Setting the clock ends no claim: within one boot another clock counts. */
	clock_shift_ms(INT64_C(2) * 3600 * 1000);
	EXPECT(MR_OK, maildir_each_claim(&b->room, "queue:jobs", QUEUE_CLAIMED, remember_hold, &seen, &err));
	assert_false(seen.over);
	clock_shift_ms(0);
	assert_int_equal(seen.deadline_ms, hold.deadline_ms);
	EXPECT(MR_OK, maildir_settle(&b->room, &seen, SETTLE_BACK, &err));
	struct claim again = claim(b, true);
	assert_int_equal(again.attempt, 2);
}

static void
claim_by_process(struct box *b, void *arg)
{
	struct claim_terms terms = terms_of("bob", 0);
	struct claim hold = { 0 };

	(void)arg;
	terms.kind = CLAIM_HANDLE;
	EXPECT(MR_OK, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err));
	(void)kill(getpid(), SIGKILL);
}

static void
the_claim_of_a_killed_process_is_over(void **state)
{
	struct box *b = *state;
	struct claim seen = { 0 };
	char id[MR_ID_LEN + 1];
	int status;

	send_work(b, MR_NORMAL, id);
	assert_true(waitpid(box_fork(b, claim_by_process, NULL), &status, 0) > 0);
	assert_true(WIFSIGNALED(status));
	EXPECT(MR_OK, maildir_each_claim(&b->room, "queue:jobs", QUEUE_CLAIMED, remember_hold, &seen, &err));
	assert_true(seen.over);
	struct claim found = { 0 };
	EXPECT(MR_OK, maildir_find_claim(&b->room, seen.token, &found, &err));
	assert_string_equal(found.id, id);
}

static void
delayed_work_waits_for_its_time(void **state)
{
	struct box *b = *state;
	char later[MR_ID_LEN + 1], now[MR_ID_LEN + 1];
	struct letter l = { .not_before_ms = clock_now_ms() + 3600 * 1000, .priority = MR_URGENT };

	EXPECT(MR_OK, try_send(b, &l, later, &err));
	send_work(b, MR_NORMAL, now);
	assert_int_equal(count(b).delayed, 1);
	assert_string_equal(claim(b, true).id, now);
	claims_nothing(b);
	clock_shift_ms(INT64_C(2) * 3600 * 1000);
	struct claim hold = claim(b, true);
	clock_shift_ms(0);
	assert_string_equal(hold.id, later);
	assert_int_equal(count(b).delayed, 0);
}

/* ---- Order ---- */

static void
one_claimer_gets_the_oldest_first_whatever_its_priority(void **state)
{
	struct box *b = *state;
	static const enum mr_priority mixed[] = { MR_NORMAL, MR_URGENT, MR_LOW, MR_HIGH };
	char ids[100][MR_ID_LEN + 1];

	for (size_t i = 0; i < 100; i++)
		send_work(b, mixed[i % 4], ids[i]);
	for (size_t i = 0; i < 100; i++) {
		struct claim hold = claim(b, false);
		assert_string_equal(hold.id, ids[i]);
		/* What is given back is next. */
		if (i % 7 == 0) {
			EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_BACK, &err));
			hold = claim(b, false);
			assert_string_equal(hold.id, ids[i]);
		}
	}
	claims_nothing(b);
}

static void
by_priority_the_most_urgent_comes_first(void **state)
{
	struct box *b = *state;
	static const enum mr_priority mixed[] = { MR_LOW, MR_NORMAL, MR_URGENT, MR_HIGH };
	static const size_t order[] = { 2, 3, 1, 0 };
	char ids[40][MR_ID_LEN + 1];

	for (size_t i = 0; i < 40; i++)
		send_work(b, mixed[i % 4], ids[i]);
	for (size_t i = 0; i < 40; i++)
		assert_string_equal(claim(b, true).id, ids[(i % 10) * 4 + order[i / 10]]);
	claims_nothing(b);
}

static void
many_messages_fill_several_buckets_and_leave_in_order(void **state)
{
	struct box *b = *state;
	static char ids[2000][MR_ID_LEN + 1];

	for (size_t i = 0; i < 2000; i++)
		send_work(b, MR_NORMAL, ids[i]);
	assert_true(buckets_of(b, 2) >= 2);
	for (size_t i = 0; i < 2000; i++) {
		struct claim hold = claim(b, i % 2);
		assert_string_equal(hold.id, ids[i]);
		if (i % 100 == 0) {
			EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_BACK, &err));
			hold = claim(b, i % 2);
			assert_string_equal(hold.id, ids[i]);
		}
		EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_DONE, &err));
	}
	claims_nothing(b);
	assert_int_equal(buckets_of(b, 2), 1);
	assert_int_equal(count(b).done, 2000);
}

struct late_put {
	struct box *b;
	unsigned calls;
};

/* Between the choice of a bucket and the link another emptied it, and removed it. */
static enum mr_rc
put_late(void *ctx, int bucket_fd, struct mr_error *err)
{
	struct late_put *late = ctx;

	if (late->calls++ == 0) {
		assert_int_equal(mkdir(box_path(late->b, "queues/jobs/ready/1/00000001"), 0700), 0);
		assert_int_equal(rmdir(box_path(late->b, "queues/jobs/ready/1/00000000")), 0);
	}
	if (sys_link(AT_FDCWD, box_path(late->b, "room"), bucket_fd, "1.x") == 0)
		return MR_OK;
	return errno == ENOENT ? mr_fail(err, MR_NOTFOUND, "gone") : mr_fail_errno(err, "link");
}

static void
who_finds_its_bucket_removed_takes_the_next(void **state)
{
	struct box *b = *state;
	struct late_put late = { .b = b };
	mr_auto(queue_done) struct queue q = QUEUE_INIT;

	EXPECT(MR_OK, queue_open(&q, maildir_of(&b->room), "jobs", &err));
	EXPECT(MR_OK, bucket_put(&q, 1, BUCKET_HIGHEST, put_late, &late, NULL, &err));
	assert_int_equal(late.calls, 2);
	assert_true(box_has(b, "queues/jobs/ready/1/00000001/1.x"));
}

/* The calls of one claim with that much waiting. */
static unsigned long
cost_with(struct box *b, size_t waiting)
{
	char id[MR_ID_LEN + 1];

	for (size_t i = count(b).ready; i < waiting; i++)
		send_work(b, MR_NORMAL, id);
	sys_plan_set(NULL);
	struct claim hold = claim(b, false);
	unsigned long calls = sys_calls();
	EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_DONE, &err));
	return calls;
}

static void
the_cost_of_a_claim_does_not_grow_with_the_backlog(void **state)
{
	struct box *b = *state;
	unsigned long few = cost_with(b, 100), many = cost_with(b, BACKLOG);

	print_message("# calls of a claim: %lu with 100 waiting, %lu with 10,000\n", few, many);
	assert_true(few > 5);
	assert_true(many <= few * 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN_QUEUE(work_is_claimed_read_and_done),
		IN_QUEUE(a_release_that_is_tried_again_says_what_it_says_last),
		IN_QUEUE(a_late_done_of_an_earlier_claim_is_refused),
		IN_QUEUE(a_process_cannot_finish_its_own_earlier_claim),
		IN_QUEUE(a_claim_is_over_when_its_time_is_up_and_lasts_when_extended),
		IN_QUEUE(the_claim_of_a_killed_process_is_over),
		IN_QUEUE(delayed_work_waits_for_its_time),
		IN_QUEUE(one_claimer_gets_the_oldest_first_whatever_its_priority),
		IN_QUEUE(by_priority_the_most_urgent_comes_first),
		IN_QUEUE(many_messages_fill_several_buckets_and_leave_in_order),
		IN_QUEUE(who_finds_its_bucket_removed_takes_the_next),
		IN_QUEUE(the_cost_of_a_claim_does_not_grow_with_the_backlog),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
