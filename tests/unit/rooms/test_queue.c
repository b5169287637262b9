/* SPDX-License-Identifier: MIT */
/* Work queues of the native driver: one winner, exact order, nothing lost or doubled, a cost that does not grow. */
#include "box.h"
#include "base/clock.h"
#include "rooms/maildir/queue.h"
#include <sys/mman.h>

#define CLAIMERS 8
#if defined(__SANITIZE_ADDRESS__) || defined(MR_PORTABLE)
#define CONTESTED 250
#define BACKLOG 3000
#else
#define CONTESTED 1000
#define BACKLOG 10000
#endif

/* ---- A queue, mail for it, claims ---- */

static int
queue_setup(void **state)
{
	if (box_setup(state) != 0)
		return -1;
	struct box *b = *state;
	EXPECT(MR_OK, maildir_record_put(&b->room, "queue", "", "jobs", STR("Name: jobs\n"), &err));
	return 0;
}

/* Durable like a real one: what the kill tests are about. */
static void
sync_fully(struct box *b)
{
	box_close(b);
	box_write(b, "room", "Format: 1\nName: town\nSync: full\n");
	box_open(b);
}

struct letter {
	const char *queue; /* "queue:jobs" unless told */
	enum mr_priority priority;
	int64_t not_before_ms;
	const char *also; /* a second recipient */
	const char *key;
};

static enum mr_rc
try_send(struct box *b, const struct letter *l, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	char first[64], second[64];
	char *to[] = { first, second };
	struct mr_names names = { .v = to, .n = l->also != NULL ? 2 : 1 };
	struct mr_message msg = { .from = "bob",
		.to = names,
		.subject = "build it",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = "make all\n",
		.body_len = 9,
		.date_ms = clock_now_ms(),
		.priority = l->priority,
		.not_before_ms = l->not_before_ms };
	struct delivery what = { .msg = &msg, .to = &names, .sender = "", .key = l->key };
	struct delivered got = { 0 };

	(void)snprintf(first, sizeof(first), "%s", l->queue != NULL ? l->queue : "queue:jobs");
	(void)snprintf(second, sizeof(second), "%s", l->also != NULL ? l->also : "");
	enum mr_rc rc = maildir_deliver(&b->room, &what, &got, err);
	mr_names_done(&got.missing);
	memcpy(ret_id, got.id, sizeof(got.id));
	return rc;
}

static void
send_work(struct box *b, enum mr_priority priority, char ret_id[MR_ID_LEN + 1])
{
	struct letter l = { .priority = priority };

	EXPECT(MR_OK, try_send(b, &l, ret_id, &err));
}

static struct claim_terms
terms_of(const char *who, int64_t lease_ms)
{
	return (struct claim_terms){ .claimer = who,
		.hold = { .kind = HOLD_LEASE, .life = 1, .lease_ms = lease_ms, .session = "" } };
}

static struct hold
claim(struct box *b, bool by_priority)
{
	struct claim_terms terms = terms_of("bob", 60000);
	struct hold hold = { 0 };

	terms.by_priority = by_priority;
	EXPECT(MR_OK, maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err));
	return hold;
}

static void
claims_nothing(struct box *b)
{
	struct claim_terms terms = terms_of("bob", 60000);
	struct hold hold = { 0 };

	EXPECT(MR_EMPTY, maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err));
}

struct counts {
	size_t ready, delayed, claimed, done, failed;
};

static bool
count_item(void *ctx, const struct queue_item *item)
{
	struct counts *n = ctx;

	n->ready += item->state == QUEUE_READY;
	n->delayed += item->state == QUEUE_DELAYED;
	n->claimed += item->state == QUEUE_CLAIMED;
	n->done += item->state == QUEUE_DONE;
	n->failed += item->state == QUEUE_FAILED;
	return true;
}

static struct counts
count(struct box *b)
{
	struct counts n = { 0 };

	EXPECT(MR_OK, maildir_queue_each(&b->room, "jobs", QUEUE_ANY, count_item, &n, &err));
	return n;
}

static size_t
total(struct counts n)
{
	return n.ready + n.delayed + n.claimed + n.done + n.failed;
}

static size_t
buckets_of(struct box *b, unsigned p)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(buckets_done) struct buckets list = BUCKETS_INIT;

	EXPECT(MR_OK, queue_open(&q, maildir_of(&b->room), "jobs", &err));
	EXPECT(MR_OK, buckets_read(&q, p, false, &list, &err));
	return list.n;
}

/* ---- Life of a piece of work ---- */

static void
work_is_claimed_read_and_done(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];
	struct mr_message msg = { 0 };
	struct hold found = { 0 };

	send_work(b, MR_HIGH, id);
	struct hold hold = claim(b, false);
	assert_string_equal(hold.id, id);
	assert_string_equal(hold.queue, "jobs");
	assert_int_equal(hold.attempt, 1);
	EXPECT(MR_OK, maildir_queue_fetch(&b->room, "jobs", id, &msg, &err));
	assert_string_equal(msg.subject, "build it");
	assert_string_equal(msg.token, hold.token);
	assert_int_equal(msg.priority, MR_HIGH);
	mr_message_done(&msg);
	EXPECT(MR_OK, maildir_queue_find_claim(&b->room, hold.token, &found, &err));
	assert_string_equal(found.queue, "jobs");
	assert_string_equal(found.agent, "bob");
	assert_int_equal(found.life, 1);
	assert_false(found.over);
	assert_true(found.since_ms > 0);
	claims_nothing(b);
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &found, SETTLE_DONE, &err));
	assert_int_equal(count(b).done, 1);
	assert_int_equal(total(count(b)), 1);
	EXPECT(MR_NOTFOUND, maildir_queue_settle(&b->room, &hold, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, maildir_queue_find_claim(&b->room, hold.token, &found, &err));
	EXPECT(MR_OK, maildir_queue_fetch(&b->room, "jobs", id, &msg, &err));
	mr_message_done(&msg);
}

static void
a_late_done_of_an_earlier_claim_is_refused(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];

	send_work(b, MR_NORMAL, id);
	struct hold first = claim(b, false);
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &first, SETTLE_BACK, &err));
	struct hold second = claim(b, false);
	assert_string_equal(second.id, id);
	assert_int_equal(second.attempt, 2);
	EXPECT(MR_NOTFOUND, maildir_queue_settle(&b->room, &first, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, maildir_queue_extend(&b->room, &first, 1000, &err));
	struct hold guessed = second;
	memcpy(guessed.token, first.token, sizeof(guessed.token));
	EXPECT(MR_NOTFOUND, maildir_queue_settle(&b->room, &guessed, SETTLE_DONE, &err));
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &second, SETTLE_DEAD, &err));
	assert_int_equal(count(b).failed, 1);
	assert_int_equal(total(count(b)), 1);
}

/* One token serves all holds of a process: there the attempt tells an old claim from a new one. */
static void
a_process_cannot_finish_its_own_earlier_claim(void **state)
{
	struct box *b = *state;
	struct claim_terms terms = terms_of("bob", 0);
	struct hold first = { 0 }, second = { 0 };
	char id[MR_ID_LEN + 1];

	terms.hold.kind = HOLD_PROCESS;
	send_work(b, MR_NORMAL, id);
	EXPECT(MR_OK, maildir_queue_claim(&b->room, "jobs", &terms, &first, &err));
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &first, SETTLE_BACK, &err));
	EXPECT(MR_OK, maildir_queue_claim(&b->room, "jobs", &terms, &second, &err));
	assert_string_equal(first.token, second.token);
	EXPECT(MR_NOTFOUND, maildir_queue_settle(&b->room, &first, SETTLE_DONE, &err));
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &second, SETTLE_DONE, &err));
}

static bool
remember_hold(void *ctx, const struct queue_item *item)
{
	*(struct hold *)ctx = *item->hold;
	return false;
}

static void
a_claim_is_over_when_its_time_is_up_and_lasts_when_extended(void **state)
{
	struct box *b = *state;
	struct claim_terms terms = terms_of("bob", 1);
	struct hold hold = { 0 }, seen = { 0 };
	char id[MR_ID_LEN + 1];

	send_work(b, MR_LOW, id);
	EXPECT(MR_OK, maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err));
	usleep(3000);
	EXPECT(MR_OK, maildir_queue_each(&b->room, "jobs", QUEUE_CLAIMED, remember_hold, &seen, &err));
	assert_true(seen.over);
	assert_string_equal(seen.agent, "bob");
	EXPECT(MR_OK, maildir_queue_extend(&b->room, &hold, 3600 * 1000, &err));
	EXPECT(MR_OK, maildir_queue_each(&b->room, "jobs", QUEUE_CLAIMED, remember_hold, &seen, &err));
	assert_false(seen.over);
	/* Whoever sets the clock ends no claim: within one boot another clock counts. */
	clock_shift_ms(INT64_C(2) * 3600 * 1000);
	EXPECT(MR_OK, maildir_queue_each(&b->room, "jobs", QUEUE_CLAIMED, remember_hold, &seen, &err));
	assert_false(seen.over);
	clock_shift_ms(0);
	assert_int_equal(seen.deadline_ms, hold.deadline_ms);
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &seen, SETTLE_BACK, &err));
	struct hold again = claim(b, true);
	assert_int_equal(again.attempt, 2);
}

static void
claim_by_process(struct box *b, void *arg)
{
	struct claim_terms terms = terms_of("bob", 0);
	struct hold hold = { 0 };

	(void)arg;
	terms.hold.kind = HOLD_PROCESS;
	EXPECT(MR_OK, maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err));
	(void)kill(getpid(), SIGKILL);
}

static void
the_claim_of_a_killed_process_is_over(void **state)
{
	struct box *b = *state;
	struct hold seen = { 0 };
	char id[MR_ID_LEN + 1];
	int status;

	send_work(b, MR_NORMAL, id);
	assert_true(waitpid(box_fork(b, claim_by_process, NULL), &status, 0) > 0);
	assert_true(WIFSIGNALED(status));
	EXPECT(MR_OK, maildir_queue_each(&b->room, "jobs", QUEUE_CLAIMED, remember_hold, &seen, &err));
	assert_true(seen.over);
	struct hold found = { 0 };
	EXPECT(MR_OK, maildir_queue_find_claim(&b->room, seen.token, &found, &err));
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
	struct hold hold = claim(b, true);
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
		struct hold hold = claim(b, false);
		assert_string_equal(hold.id, ids[i]);
		/* What is given back is next. */
		if (i % 7 == 0) {
			EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, SETTLE_BACK, &err));
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
		struct hold hold = claim(b, i % 2);
		assert_string_equal(hold.id, ids[i]);
		if (i % 100 == 0) {
			EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, SETTLE_BACK, &err));
			hold = claim(b, i % 2);
			assert_string_equal(hold.id, ids[i]);
		}
		EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, SETTLE_DONE, &err));
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
	struct hold hold = claim(b, false);
	unsigned long calls = sys_calls();
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, SETTLE_DONE, &err));
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

/* ---- Several claimers ---- */

struct shared { /* by all processes */
	unsigned got[CONTESTED];
	char ids[CONTESTED][MR_ID_LEN + 1];
	int live, most;
};

static struct shared *
share(void)
{
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(s != MAP_FAILED);
	return s;
}

static void
note_got(struct shared *s, const char *id)
{
	for (size_t i = 0; i < CONTESTED; i++)
		if (strcmp(s->ids[i], id) == 0)
			(void)__atomic_add_fetch(&s->got[i], 1, __ATOMIC_SEQ_CST);
}

static void
claim_until_empty(struct box *b, void *arg)
{
	struct shared *s = arg;

	for (;;) {
		struct claim_terms terms = terms_of("bob", 60000);
		struct mr_error err = { 0 };
		struct hold hold = { 0 };
		enum mr_rc rc = maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err);
		if (rc == MR_EMPTY)
			return;
		if (rc != MR_OK)
			_exit(2);
		note_got(s, hold.id);
		if (maildir_queue_settle(&b->room, &hold, SETTLE_DONE, &err) != MR_OK)
			_exit(3);
	}
}

static void
of_eight_claimers_exactly_one_gets_each_message(void **state)
{
	struct box *b = *state;
	struct shared *s = share();
	pid_t pids[CLAIMERS];

	for (size_t i = 0; i < CONTESTED; i++)
		send_work(b, i % 3 ? MR_NORMAL : MR_HIGH, s->ids[i]);
	for (size_t i = 0; i < CLAIMERS; i++)
		pids[i] = box_fork(b, claim_until_empty, s);
	for (size_t i = 0; i < CLAIMERS; i++)
		box_join(pids[i]);
	for (size_t i = 0; i < CONTESTED; i++)
		assert_int_equal(s->got[i], 1);
	assert_int_equal(count(b).done, CONTESTED);
	assert_int_equal(total(count(b)), CONTESTED);
	(void)munmap(s, sizeof(*s));
}

static void
send_hundreds(struct box *b, void *arg)
{
	char id[MR_ID_LEN + 1];

	(void)arg;
	for (size_t i = 0; i < 700; i++)
		send_work(b, MR_NORMAL, id);
}

/* Buckets are made and removed under the senders' hands all the time. */
static void
nothing_is_lost_while_buckets_come_and_go(void **state)
{
	struct box *b = *state;
	pid_t senders[4];
	size_t done = 0;

	for (size_t i = 0; i < 4; i++)
		senders[i] = box_fork(b, send_hundreds, NULL);
	while (done < 4 * 700) {
		struct claim_terms terms = terms_of("bob", 60000);
		struct mr_error why = { 0 };
		struct hold hold = { 0 };
		enum mr_rc rc = maildir_queue_claim(&b->room, "jobs", &terms, &hold, &why);
		if (rc == MR_EMPTY)
			continue;
		assert_int_equal(rc, MR_OK);
		enum settle how = hold.attempt == 1 && done % 5 == 0 ? SETTLE_BACK : SETTLE_DONE;
		EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, how, &err));
		done += how == SETTLE_DONE;
		/* A full bucket for every 40 messages instead of 128: rotation at full speed. */
		if (done % 40 == 0) {
			mr_auto(queue_done) struct queue q = QUEUE_INIT;
			mr_auto(buckets_done) struct buckets list = BUCKETS_INIT;
			EXPECT(MR_OK, queue_open(&q, maildir_of(&b->room), "jobs", &err));
			EXPECT(MR_OK, buckets_read(&q, 2, false, &list, &err));
			bucket_rotate(&q, &list);
		}
	}
	for (size_t i = 0; i < 4; i++)
		box_join(senders[i]);
	claims_nothing(b);
	assert_int_equal(count(b).done, 4 * 700);
	assert_int_equal(total(count(b)), 4 * 700);
}

static void
claim_two_at_most(struct box *b, void *arg)
{
	struct shared *s = arg;

	for (size_t done = 0; done < 25;) {
		struct claim_terms terms = terms_of("bob", 60000);
		struct mr_error err = { 0 };
		struct hold hold = { 0 };
		terms.max_claims = 2;
		enum mr_rc rc = maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err);
		if (rc == MR_BUSY) {
			usleep(200);
			continue;
		}
		if (rc != MR_OK)
			_exit(2);
		int live = __atomic_add_fetch(&s->live, 1, __ATOMIC_SEQ_CST);
		int most = __atomic_load_n(&s->most, __ATOMIC_SEQ_CST);
		while (live > most &&
		       !__atomic_compare_exchange_n(&s->most, &most, live, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			continue;
		usleep(100);
		(void)__atomic_sub_fetch(&s->live, 1, __ATOMIC_SEQ_CST);
		if (maildir_queue_settle(&b->room, &hold, SETTLE_DONE, &err) != MR_OK)
			_exit(3);
		done++;
	}
}

static void
a_limit_of_two_claims_is_never_exceeded(void **state)
{
	struct box *b = *state;
	struct shared *s = share();
	char id[MR_ID_LEN + 1];
	pid_t pids[CLAIMERS];

	for (size_t i = 0; i < CLAIMERS * 25; i++)
		send_work(b, MR_NORMAL, id);
	for (size_t i = 0; i < CLAIMERS; i++)
		pids[i] = box_fork(b, claim_two_at_most, s);
	for (size_t i = 0; i < CLAIMERS; i++)
		box_join(pids[i]);
	assert_int_equal(s->most, 2);
	assert_int_equal(count(b).done, CLAIMERS * 25);
	(void)munmap(s, sizeof(*s));
}

static void
a_claim_that_is_over_does_not_count_against_the_limit(void **state)
{
	struct box *b = *state;
	struct claim_terms terms = terms_of("bob", 1);
	struct hold hold = { 0 };
	char id[MR_ID_LEN + 1];

	send_work(b, MR_NORMAL, id);
	send_work(b, MR_NORMAL, id);
	terms.max_claims = 1;
	EXPECT(MR_OK, maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err));
	usleep(3000);
	terms.hold.lease_ms = 60000;
	EXPECT(MR_OK, maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err));
	EXPECT(MR_BUSY, maildir_queue_claim(&b->room, "jobs", &terms, &hold, &err));
}

/* ---- Killed at every call ---- */

struct victim { /* by both processes */
	struct letter letter;
	enum settle how;
	struct hold hold;
	unsigned long at;
	bool after, accepted;
};

static void
plan_death(const struct victim *v)
{
	struct sys_plan plan = { .fault = v->after ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, .at = v->at };

	sys_plan_set(&plan);
}

static void
die_sending(struct box *b, void *arg)
{
	struct victim *v = arg;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	plan_death(v);
	v->accepted = try_send(b, &v->letter, id, &err) == MR_OK;
}

static void
die_claiming(struct box *b, void *arg)
{
	struct victim *v = arg;
	struct claim_terms terms = terms_of("bob", 1);
	struct mr_error err = { 0 };

	plan_death(v);
	terms.max_claims = v->how == SETTLE_DONE ? 3 : 0;
	v->accepted = maildir_queue_claim(&b->room, "jobs", &terms, &v->hold, &err) == MR_OK;
}

static void
die_settling(struct box *b, void *arg)
{
	struct victim *v = arg;
	struct mr_error err = { 0 };

	plan_death(v);
	v->accepted =
	    maildir_queue_settle(&b->room, &v->hold, v->how, &err) == MR_OK && maildir_flush(&b->room, &err) == MR_OK;
}

/* Runs it with death at call `at`. False: it came through. */
static bool
dies(struct box *b, void (*work)(struct box *, void *), struct victim *v)
{
	int status = 0;
	pid_t pid = box_fork(b, work, v);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static struct victim *
new_victim(void)
{
	struct victim *v = mmap(NULL, sizeof(*v), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(v != MAP_FAILED);
	return v;
}

static size_t
in_inbox(struct box *b)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	mr_auto(listing_done) struct listing l = { 0 };

	EXPECT(MR_OK, list_folders(&box, MR_INBOX, false, NULL, &l, &err));
	return l.n;
}

/* Whatever waits is claimed and done: so everything there is whole. Returns how much there was. */
static size_t
work_off(struct box *b)
{
	struct counts n = count(b);

	for (size_t i = 0; i < n.ready; i++) {
		struct hold hold = claim(b, false);
		struct mr_message msg = { 0 };
		EXPECT(MR_OK, maildir_queue_fetch(&b->room, "jobs", hold.id, &msg, &err));
		assert_int_equal(msg.body_len, 9);
		mr_message_done(&msg);
		EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, SETTLE_DONE, &err));
	}
	claims_nothing(b);
	return n.ready;
}

static void
kill_sends(struct box *b, const struct letter *letter, unsigned long least)
{
	struct victim *v = new_victim();
	size_t all = 0;

	sync_fully(b);
	for (int after = 0; after < 2; after++) {
		bool died = true;
		for (v->at = 1; died; v->at++) {
			v->letter = *letter;
			v->after = after;
			v->accepted = false;
			died = dies(b, die_sending, v);
			EXPECT(MR_OK, maildir_recover(&b->room, &err));
			size_t here = work_off(b);
			all += here;
			assert_true(here <= 1);
			if (v->accepted)
				assert_int_equal(here, 1);
			if (letter->also != NULL)
				assert_int_equal(in_inbox(b), all);
		}
		assert_true(v->at > least);
	}
	assert_int_equal(total(count(b)), all);
	(void)munmap(v, sizeof(*v));
}

static void
a_killed_send_to_a_queue_is_whole_or_nothing(void **state)
{
	kill_sends(*state, &(struct letter){ .priority = MR_NORMAL }, 8);
}

static void
a_killed_fan_out_with_a_queue_reaches_both_or_none(void **state)
{
	kill_sends(*state, &(struct letter){ .priority = MR_HIGH, .also = "bob" }, 20);
}

static void
a_fan_out_that_was_claimed_before_its_sender_was_completed_is_not_doubled(void **state)
{
	struct box *b = *state;
	struct victim *v = new_victim();
	bool died = true;
	size_t sent = 0;

	sync_fully(b);
	for (v->at = 1; died; v->at++) {
		v->letter = (struct letter){ .also = "bob", .key = NULL };
		died = dies(b, die_sending, v);
		/* Someone works on it, and finishes, before anybody completes the send. */
		(void)work_off(b);
		EXPECT(MR_OK, maildir_recover(&b->room, &err));
		(void)work_off(b);
		struct counts n = count(b);
		assert_int_equal(n.done, total(n));
		assert_true(n.done == sent || n.done == sent + 1);
		sent = n.done;
		assert_int_equal(in_inbox(b), sent);
	}
	(void)munmap(v, sizeof(*v));
}

static void
kill_claims(struct box *b, enum settle how, unsigned long least)
{
	struct victim *v = new_victim();
	char id[MR_ID_LEN + 1];

	sync_fully(b);
	for (int after = 0; after < 2; after++) {
		bool died = true;
		for (v->at = 1; died; v->at++) {
			v->how = how;
			v->after = after;
			v->accepted = false;
			send_work(b, MR_NORMAL, id);
			size_t had = total(count(b));
			died = dies(b, die_claiming, v);
			struct counts n = count(b);
			assert_int_equal(total(n), had);
			assert_int_equal(n.ready + n.claimed, 1);
			if (v->accepted)
				assert_int_equal(n.claimed, 1);
			/* The lease was 1 ms: whoever claimed and died has lost it. */
			usleep(2000);
			struct hold hold = { 0 };
			if (n.claimed == 1) {
				EXPECT(MR_OK,
				    maildir_queue_each(&b->room, "jobs", QUEUE_CLAIMED, remember_hold, &hold, &err));
				assert_true(hold.over);
				EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, SETTLE_BACK, &err));
			}
			hold = claim(b, false);
			assert_string_equal(hold.id, id);
			assert_int_equal(hold.attempt, n.claimed + 1);
			EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, SETTLE_DONE, &err));
		}
		assert_true(v->at > least);
	}
	(void)munmap(v, sizeof(*v));
}

static void
a_killed_claim_loses_nothing(void **state)
{
	kill_claims(*state, SETTLE_BACK, 10);
}

static void
a_killed_claim_under_a_limit_loses_nothing(void **state)
{
	kill_claims(*state, SETTLE_DONE, 12);
}

static void
a_killed_settle_is_done_or_still_claimed(void **state)
{
	struct box *b = *state;
	static const enum settle ends[] = { SETTLE_DONE, SETTLE_DEAD, SETTLE_BACK };
	struct victim *v = new_victim();
	char id[MR_ID_LEN + 1];

	sync_fully(b);
	for (size_t e = 0; e < 3; e++) {
		bool died = true;
		for (v->at = 1; died; v->at++) {
			send_work(b, MR_NORMAL, id);
			v->how = ends[e];
			v->after = v->at % 2;
			v->accepted = false;
			v->hold = claim(b, false);
			size_t had = total(count(b));
			died = dies(b, die_settling, v);
			struct counts n = count(b);
			assert_int_equal(total(n), had);
			if (v->accepted)
				assert_int_equal(n.claimed, 0);
			if (n.claimed == 1)
				EXPECT(MR_OK, maildir_queue_settle(&b->room, &v->hold, SETTLE_DONE, &err));
			else
				EXPECT(MR_NOTFOUND, maildir_queue_settle(&b->room, &v->hold, SETTLE_DONE, &err));
			(void)work_off(b);
		}
		assert_true(v->at > 5);
	}
	(void)munmap(v, sizeof(*v));
}

/* ---- Delivery together with others, keys, removal ---- */

static void
a_key_makes_a_retry_safe(void **state)
{
	struct box *b = *state;
	char first[MR_ID_LEN + 1], second[MR_ID_LEN + 1];
	struct letter l = { .key = "nightly", .priority = MR_URGENT };

	EXPECT(MR_OK, try_send(b, &l, first, &err));
	EXPECT(MR_OK, try_send(b, &l, second, &err));
	assert_string_equal(first, second);
	assert_int_equal(total(count(b)), 1);
	char id[MR_ID_LEN + 1];
	send_work(b, MR_NORMAL, id);
	assert_string_equal(claim(b, true).id, first); /* urgent, also by way of the spool */
}

static void
delay_and_queue_of_a_rig_survive_the_spool(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];
	struct letter l = { .queue = "queue:rig/builds", .also = "bob", .not_before_ms = clock_now_ms() + 3600 * 1000 };
	struct counts n = { 0 };

	EXPECT(MR_NOTFOUND, try_send(b, &l, id, &err));
	assert_int_equal(in_inbox(b), 0);
	EXPECT(MR_OK, maildir_record_put(&b->room, "queue", "", "rig/builds", STR("Name: rig/builds\n"), &err));
	EXPECT(MR_OK, try_send(b, &l, id, &err));
	EXPECT(MR_OK, maildir_queue_each(&b->room, "rig/builds", QUEUE_ANY, count_item, &n, &err));
	assert_int_equal(n.delayed, 1);
	assert_true(box_has(b, "queues/rig%2Fbuilds/settings"));
	assert_int_equal(in_inbox(b), 1);
}

static void
a_queue_with_work_is_removed_only_by_force(void **state)
{
	struct box *b = *state;
	char ids[4][MR_ID_LEN + 1];
	struct letter later = { .not_before_ms = clock_now_ms() + 3600 * 1000 };
	struct mr_message msg = { 0 };
	size_t dead = 7;

	for (size_t i = 0; i < 3; i++)
		send_work(b, MR_NORMAL, ids[i]);
	EXPECT(MR_OK, try_send(b, &later, ids[3], &err));
	struct hold done = claim(b, false), open = claim(b, false);
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &done, SETTLE_DONE, &err));
	EXPECT(MR_REFUSED, maildir_queue_remove(&b->room, "jobs", false, &dead, &err));
	assert_int_equal(total(count(b)), 4);
	EXPECT(MR_OK, maildir_queue_remove(&b->room, "jobs", true, &dead, &err));
	assert_int_equal(dead, 3);
	for (size_t i = 1; i < 4; i++) {
		EXPECT(MR_OK, maildir_fetch(&b->room, "", ids[i], MR_DEAD, SCAN_NAMES, &msg, &err));
		mr_message_done(&msg);
	}
	EXPECT(MR_NOTFOUND, maildir_queue_settle(&b->room, &open, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, try_send(b, &(struct letter){ 0 }, ids[0], &err));
	assert_false(box_has(b, "queues/jobs/settings"));
	assert_false(box_has(b, "queues/jobs/ready"));
	/* What was worked off is no dead letter; a queue made again finds it. */
	EXPECT(MR_OK, maildir_record_put(&b->room, "queue", "", "jobs", STR("Name: jobs\n"), &err));
	assert_int_equal(count(b).done, 1);
	assert_int_equal(total(count(b)), 1);
	send_work(b, MR_NORMAL, ids[0]);
	assert_int_equal(work_off(b), 1);
}

static void
an_empty_queue_leaves_no_folder(void **state)
{
	struct box *b = *state;
	size_t dead = 7;

	EXPECT(MR_OK, maildir_queue_remove(&b->room, "jobs", false, &dead, &err));
	assert_int_equal(dead, 0);
	assert_false(box_has(b, "queues/work"));
	EXPECT(MR_NOTFOUND, maildir_queue_remove(&b->room, "jobs", false, &dead, &err));
	EXPECT(MR_NOTFOUND, maildir_queue_remove(&b->room, "..", false, &dead, &err));
}

static void
note_state(void *ctx, const struct place_of *place)
{
	(void)snprintf(ctx, 32, "%s", place->state);
	assert_non_null(strstr(place->evidence, "queue 'jobs'"));
}

static void
evidence_and_purge_know_work(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1], word[32] = "";
	size_t removed = 0;

	send_work(b, MR_NORMAL, id);
	EXPECT(MR_OK, maildir_each_place(&b->room, id, note_state, word, &err));
	assert_string_equal(word, "ready");
	struct hold hold = claim(b, false);
	EXPECT(MR_OK, maildir_each_place(&b->room, id, note_state, word, &err));
	assert_string_equal(word, "claimed");
	EXPECT(MR_OK, maildir_queue_settle(&b->room, &hold, SETTLE_DONE, &err));
	EXPECT(MR_OK, maildir_each_place(&b->room, id, note_state, word, &err));
	assert_string_equal(word, "done");
	EXPECT(MR_OK, maildir_purge(&b->room, id, &removed, &err));
	assert_int_equal(removed, 1);
	assert_int_equal(total(count(b)), 0);
}

static void
count_finding(void *ctx, const struct mr_finding *finding)
{
	*(size_t *)ctx += finding->severity == MR_PROBLEM && strstr(finding->what, "no such queue") != NULL;
}

static void
doctor_keeps_the_record_of_a_claim_and_buries_work_without_a_queue(void **state)
{
	struct box *b = *state;
	struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	char id[MR_ID_LEN + 1], rest[64];
	size_t problems = 0;

	send_work(b, MR_NORMAL, id);
	struct hold hold = claim(b, false);
	(void)snprintf(rest, sizeof(rest), "holds/%s", hold.token);
	assert_int_equal(utimensat(AT_FDCWD, box_path(b, rest), long_ago, 0), 0);
	EXPECT(MR_OK, maildir_inspect(&b->room, true, count_finding, &problems, &err));
	assert_true(box_has(b, rest));
	assert_int_equal(problems, 0);
	assert_int_equal(unlink(box_path(b, "queues/jobs/settings")), 0);
	EXPECT(MR_OK, maildir_inspect(&b->room, true, count_finding, &problems, &err));
	assert_int_equal(problems, 1);
	struct mr_message msg = { 0 };
	EXPECT(MR_OK, maildir_fetch(&b->room, "", id, MR_DEAD, SCAN_NAMES, &msg, &err));
	mr_message_done(&msg);
}

static void
names_of_work_are_parsed_back(void **state)
{
	char name[NAME_LEN], id[MR_ID_LEN + 1], file[NAME_LEN];
	struct work_name n;

	(void)state;
	id_new(id);
	name_for_id(id, file);
	assert_true(work_claimed_name("0123456789ab", 1772706600, 3, 1, file, name));
	assert_true(work_parse(QUEUE_CLAIMED, str_of(name), &n));
	assert_string_equal(n.file.id, id);
	assert_int_equal(n.p, 1);
	assert_int_equal(work_attempt(&n), 3);
	assert_int_equal(n.file.deadline_s, 1772706600);
	assert_true(work_delayed_name(1772706600123, 3, file, name));
	assert_true(work_parse(QUEUE_DELAYED, str_of(name), &n));
	assert_string_equal(n.file.id, id);
	assert_int_equal(n.p, 3);
	assert_true(n.not_before_ms == 1772706600123);
	static const char *const bad[] = { "", ".", "p2.x", "h.0123456789ab.1.1.x", "h.0123456789ab.1.1.p4.x",
		"h.0123456789ab.1.1.p1.", "1.p9.x", "x.p1.y", "99999999999999999999.p1.y", "1.p1." };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(work_parse(QUEUE_CLAIMED, str_of(bad[i]), &n));
		assert_false(work_parse(QUEUE_DELAYED, str_of(bad[i]), &n));
	}
}

#define IN_QUEUE(test) cmocka_unit_test_setup_teardown(test, queue_setup, box_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_work_are_parsed_back),
		IN_QUEUE(work_is_claimed_read_and_done),
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
		IN_QUEUE(of_eight_claimers_exactly_one_gets_each_message),
		IN_QUEUE(nothing_is_lost_while_buckets_come_and_go),
		IN_QUEUE(a_limit_of_two_claims_is_never_exceeded),
		IN_QUEUE(a_claim_that_is_over_does_not_count_against_the_limit),
		IN_QUEUE(a_killed_send_to_a_queue_is_whole_or_nothing),
		IN_QUEUE(a_killed_fan_out_with_a_queue_reaches_both_or_none),
		IN_QUEUE(a_fan_out_that_was_claimed_before_its_sender_was_completed_is_not_doubled),
		IN_QUEUE(a_killed_claim_loses_nothing),
		IN_QUEUE(a_killed_claim_under_a_limit_loses_nothing),
		IN_QUEUE(a_killed_settle_is_done_or_still_claimed),
		IN_QUEUE(a_key_makes_a_retry_safe),
		IN_QUEUE(delay_and_queue_of_a_rig_survive_the_spool),
		IN_QUEUE(a_queue_with_work_is_removed_only_by_force),
		IN_QUEUE(an_empty_queue_leaves_no_folder),
		IN_QUEUE(evidence_and_purge_know_work),
		IN_QUEUE(doctor_keeps_the_record_of_a_claim_and_buries_work_without_a_queue),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
