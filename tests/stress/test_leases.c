/* SPDX-License-Identifier: MIT */
/*
 * test_leases.c - receivers that work, sleep past their lease, or are killed at any moment: every message is
 * finished exactly once, and a `done` that comes too late is refused.
 */
#include "stress/crowd.h"

#define RECEIVERS 4u
#define MESSAGES 200u
#define LEASE_MS 250

struct plant {
	struct crowd room;
	unsigned messages;
	atomic_bool over;
	atomic_uchar finished[MESSAGES]; /* how often `done` was accepted for number i */
	atomic_uint late, killed, claims;
	pid_t receiver[RECEIVERS];
};

static enum mr_rc
work_once(struct plant *p, struct mr_room *room, const struct mr_self *bob, uint64_t *dice)
{
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];
	enum mr_rc rc = mr_recv(room, bob, &(struct mr_filter){ 0 }, LEASE_MS, &claim, &msg, &err);

	if (rc == MR_EMPTY)
		return rc;
	if (rc != MR_OK)
		crowd_die("mr_recv", &err);
	atomic_fetch_add(&p->claims, 1);
	unsigned long number = strtoul(msg.body, NULL, 10);
	uint32_t mood = crowd_dice(dice) % 32;

	mr_message_done(&msg);
	if (mood == 0)
		crowd_nap_us((LEASE_MS + 200) * 1000); /* someone else gets it meanwhile */
	else
		crowd_nap_us(mood * 300);
	rc = mr_claim_done(room, bob, claim.token, NULL, id, NULL, &err);
	if (rc == MR_OK)
		atomic_fetch_add(&p->finished[number % MESSAGES], 1);
	else if (rc == MR_NOTFOUND)
		atomic_fetch_add(&p->late, 1);
	else
		crowd_die("mr_claim_done", &err);
	return MR_OK;
}

static void
receive(void *ctx, unsigned number)
{
	struct plant *p = ctx;
	struct mr_room *room = crowd_open(&p->room);
	struct mr_self bob = crowd_self(room, "bob");
	uint64_t dice = (uint64_t)getpid() * 7919 + number;

	while (!atomic_load(&p->over))
		if (work_once(p, room, &bob, &dice) == MR_EMPTY)
			crowd_nap_us(2000);
	mr_room_close(room);
}

/* Kills one of them now and then, and starts another in its place. */
static void
kill_one(struct plant *p, uint64_t *dice)
{
	unsigned i = crowd_dice(dice) % RECEIVERS;
	int status = 0;

	(void)kill(p->receiver[i], SIGKILL);
	(void)waitpid(p->receiver[i], &status, 0);
	assert_true(WIFSIGNALED(status)); /* else it had failed by itself */
	atomic_fetch_add(&p->killed, 1);
	p->receiver[i] = crowd_spawn(receive, p, i);
}

static size_t
left_over(struct mr_room *room)
{
	return crowd_count(room, "bob", (struct mr_filter){ .folders = MR_INBOX | MR_HELD });
}

static bool
count_acked(void *ctx, const struct mr_message *msg)
{
	*(unsigned *)ctx += (msg->flags & MR_ACKED) != 0;
	return true;
}

static void
run_plant(struct plant *p)
{
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&p->room);
	struct mr_self alice = crowd_self(room, "alice");
	uint64_t dice = (uint64_t)getpid();

	for (unsigned i = 0; i < p->messages; i++) {
		char body[32];

		(void)snprintf(body, sizeof(body), "%u", i);
		assert_int_equal(
		    crowd_send(room, &alice, (struct mr_draft){ .to = TO("bob"), .body = body }, NULL, &err), MR_OK);
	}
	for (unsigned i = 0; i < RECEIVERS; i++)
		p->receiver[i] = crowd_spawn(receive, p, i);
	for (unsigned i = 0; left_over(room) > 0 && i < 4000; i++) {
		crowd_nap_us(1000 + crowd_dice(&dice) % 12000);
		kill_one(p, &dice);
	}
	atomic_store(&p->over, true);
	assert_int_equal(crowd_wait(p->receiver, RECEIVERS), 0);
	mr_room_close(room);
}

static void
work_of_killed_receivers_comes_back_and_is_done_exactly_once(void **state)
{
	(void)state;
	struct plant *p = crowd_share(sizeof(*p));
	struct mr_error err = { 0 };
	struct mr_scan scan = { .filter = { .folders = MR_ARCHIVE } };
	unsigned acked = 0, twice = 0, done = 0;

	p->room = crowd_new("none", TO("alice", "bob"));
	p->messages = CROWD_SLOW ? MESSAGES / 4 : MESSAGES;
	run_plant(p);
	for (unsigned i = 0; i < p->messages; i++) {
		twice += p->finished[i] > 1;
		done += p->finished[i] == 1;
	}
	struct mr_room *room = crowd_open(&p->room);

	assert_int_equal(left_over(room), 0);
	assert_int_equal(mr_scan(room, "bob", &scan, count_acked, &acked, &err), MR_OK);
	assert_int_equal(acked, p->messages);
	assert_int_equal(twice, 0);
	/* Killed between the accepted `done` and telling us: few, and each is in the archive all the same. */
	assert_true(done + p->killed >= p->messages);
	assert_true(p->killed > 5);
	assert_true(p->claims >= p->messages);
	mr_room_close(room);
	crowd_done(&p->room);
	(void)munmap(p, sizeof(*p));
}

static void
a_done_after_the_lease_ran_out_and_another_took_the_work_is_refused(void **state)
{
	(void)state;
	struct crowd c = crowd_new("none", TO("alice", "bob"));
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&c);
	struct mr_self alice = crowd_self(room, "alice"), bob = crowd_self(room, "bob");
	struct mr_claim first = { 0 }, second = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	assert_int_equal(
	    crowd_send(room, &alice, (struct mr_draft){ .to = TO("bob"), .body = "work" }, NULL, &err), MR_OK);
	assert_int_equal(mr_recv(room, &bob, &(struct mr_filter){ 0 }, 50, &first, &msg, &err), MR_OK);
	mr_message_done(&msg);
	crowd_nap_us(80000);
	assert_int_equal(mr_recv(room, &bob, &(struct mr_filter){ 0 }, 60000, &second, &msg, &err), MR_OK);
	mr_message_done(&msg);
	assert_string_equal(first.id, second.id);
	assert_int_equal(second.attempt, first.attempt + 1);
	assert_int_equal(mr_claim_done(room, &bob, first.token, NULL, id, NULL, &err), MR_NOTFOUND);
	assert_int_equal(mr_claim_done(room, &bob, second.token, NULL, id, NULL, &err), MR_OK);
	mr_room_close(room);
	crowd_done(&c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_of_killed_receivers_comes_back_and_is_done_exactly_once),
		cmocka_unit_test(a_done_after_the_lease_ran_out_and_another_took_the_work_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
