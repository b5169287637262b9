/* SPDX-License-Identifier: MIT */
/* Several claimers of one queue: one winner, nothing lost, limits kept. */
#include "work.h"

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
		struct claim hold = { 0 };
		enum mr_rc rc = maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err);
		if (rc == MR_EMPTY)
			return;
		if (rc != MR_OK)
			_exit(2);
		note_got(s, hold.id);
		if (maildir_settle(&b->room, &hold, SETTLE_DONE, &err) != MR_OK)
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
		struct claim hold = { 0 };
		enum mr_rc rc = maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &why);
		if (rc == MR_EMPTY)
			continue;
		assert_int_equal(rc, MR_OK);
		enum settle how = hold.attempt == 1 && done % 5 == 0 ? SETTLE_BACK : SETTLE_DONE;
		EXPECT(MR_OK, maildir_settle(&b->room, &hold, how, &err));
		done += how == SETTLE_DONE;
		/* A full bucket for every 40 messages instead of 128: rotation at full speed. */
		if (done % 40 == 0) {
			mr_auto(queue_done) struct queue q = QUEUE_INIT;
			mr_auto(buckets_done) struct buckets list = BUCKETS_INIT;
			EXPECT(MR_OK, queue_open(&q, maildir_of(&b->room), "jobs", &err));
			EXPECT(MR_OK, buckets_read(&q, 2, &list, &err));
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
		struct claim hold = { 0 };
		terms.max_claims = 2;
		enum mr_rc rc = maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err);
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
		if (maildir_settle(&b->room, &hold, SETTLE_DONE, &err) != MR_OK)
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
	struct claim hold = { 0 };
	char id[MR_ID_LEN + 1];

	send_work(b, MR_NORMAL, id);
	send_work(b, MR_NORMAL, id);
	terms.max_claims = 1;
	EXPECT(MR_OK, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err));
	usleep(3000);
	terms.lease_ms = 60000;
	EXPECT(MR_OK, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err));
	EXPECT(MR_BUSY, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN_QUEUE(of_eight_claimers_exactly_one_gets_each_message),
		IN_QUEUE(nothing_is_lost_while_buckets_come_and_go),
		IN_QUEUE(a_limit_of_two_claims_is_never_exceeded),
		IN_QUEUE(a_claim_that_is_over_does_not_count_against_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
