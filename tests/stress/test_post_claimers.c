/* SPDX-License-Identifier: MIT */
/* Claimers that are killed at any moment, and limits that all try to exceed. */
#include "stress/post.h"

/* ---- Claimers that are killed ---- */

struct plant {
	struct crowd room;
	unsigned messages, attempts, claimed;
	atomic_bool over;
	pid_t parent;
	atomic_uint killed, late;
	pid_t claimer[CLAIMERS];
	char id[WORK_MAX][MR_ID_LEN + 1];
	atomic_uchar effects[WORK_MAX]; /* how often `done` was accepted */
	atomic_uchar claims[WORK_MAX];
	atomic_bool slow[WORK_MAX];                     /* its `done` came when the lease was over, or nearly */
	unsigned char done[WORK_MAX], failed[WORK_MAX]; /* files of that id, counted at the end */
	unsigned char bounces[WORK_MAX];
};

/* With a limit on attempts every fifth kills who takes it, each time. */
static bool
is_deadly(const struct plant *p, unsigned number)
{
	return p->attempts > 0 && number % 5 == 0;
}

static enum mr_rc
work_once(struct plant *p, struct mr_room *room, const struct mr_self *self)
{
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];
	int64_t begin_ms = clock_boot_ms();
	enum mr_rc rc = mr_queue_recv(room, self, "jobs", 0, 0, &claim, &msg, &err);

	if (rc == MR_EMPTY)
		return rc;
	if (rc != MR_OK)
		crowd_die("mr_queue_recv", &err);
	unsigned number = (unsigned)strtoul(msg.body, NULL, 10) % WORK_MAX;

	mr_message_done(&msg);
	atomic_fetch_add(&p->claims[number], 1);
	if (is_deadly(p, number))
		(void)raise(SIGKILL);
	crowd_nap_us(number % 4 * 1000); /* the work itself */
	rc = mr_claim_done(room, self, claim.token, NULL, id, NULL, &err);
	if (clock_boot_ms() - begin_ms > LEASE_MS / 2)
		atomic_store(&p->slow[number], true);
	if (rc == MR_OK)
		atomic_fetch_add(&p->effects[number], 1);
	else if (rc == MR_NOTFOUND)
		atomic_fetch_add(&p->late, 1);
	else
		crowd_die("mr_claim_done", &err);
	return MR_OK;
}

static void
claim_all_day(void *ctx, unsigned number)
{
	struct plant *p = ctx;
	struct mr_room *room = crowd_open(&p->room);
	struct mr_self self = self_number(room, "worker", number);

	while (goes_on(&p->over, p->parent))
		if (work_once(p, room, &self) == MR_EMPTY)
			crowd_nap_us(5000);
	mr_room_close(room);
}

/* Those that killed themselves, and one more if `victim` says so; each gets a successor at once. */
static void
replace_dead(struct plant *p, unsigned victim)
{
	for (unsigned i = 0; i < CLAIMERS; i++) {
		int status = 0;

		if (i == victim)
			(void)kill(p->claimer[i], SIGKILL);
		if (waitpid(p->claimer[i], &status, i == victim ? 0 : WNOHANG) != p->claimer[i])
			continue;
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* else it had failed by itself */
		p->killed++;
		p->claimer[i] = crowd_spawn(claim_all_day, p, i);
	}
}

static void
run_plant(struct plant *p)
{
	struct mr_room *room = crowd_open(&p->room);
	struct mr_self alice = crowd_self(room, "alice");
	struct mr_queue_counts n = { 0 };
	uint64_t dice = (uint64_t)getpid();

	make_queue(room, &alice, (struct mr_queue){ .attempts = p->attempts, .lease_ms = LEASE_MS });
	for (unsigned i = 0; i < p->messages; i++)
		send_number(room, &alice, "queue:jobs", i, p->id[i]);
	for (unsigned i = 0; i < CLAIMERS; i++)
		p->claimer[i] = crowd_spawn(claim_all_day, p, i);
	int64_t end_ms = clock_boot_ms() + 120000;

	/* Work that is given back while it is counted may be missed; what is finished is not. */
	for (unsigned i = 0; n.done + n.failed < p->messages && clock_boot_ms() < end_ms; i++) {
		crowd_nap_us(500 + crowd_dice(&dice) % 4000);
		replace_dead(p, crowd_dice(&dice) % (p->attempts > 0 ? 8 * CLAIMERS : CLAIMERS));
		if (i % 8 == 7)
			n = count_work(room);
	}
	atomic_store(&p->over, true);
	assert_int_equal(crowd_wait(p->claimer, CLAIMERS), 0);
	n = count_work(room);
	assert_int_equal(n.ready + n.claimed + n.delayed, 0);
	assert_int_equal(n.done + n.failed, p->messages);
	mr_room_close(room);
}

/* ---- What became of it, by the names of the files ---- */

static struct plant *counted; /* nftw has no context */

static unsigned
number_of(const struct plant *p, const char *id)
{
	unsigned i = 0;

	while (i < p->messages && memcmp(p->id[i], id, MR_ID_LEN) != 0)
		i++;
	if (i == p->messages)
		fail_msg("nobody sent '%s'", id);
	return i;
}

static int
count_name(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *id = strchr(path + ftw->base, '.');

	(void)st;
	if (type != FTW_F || !id || strlen(id) < MR_ID_LEN + 1)
		return 0;
	unsigned char *seen = strstr(path, "/done/") ? counted->done : counted->failed;

	seen[number_of(counted, id + 1)]++;
	return 0;
}

static bool
count_bounce(void *ctx, const struct mr_message *msg)
{
	struct plant *p = ctx;

	p->bounces[number_of(p, msg->reply_to)]++;
	return true;
}

static struct plant *
work_in_danger(unsigned messages, unsigned attempts)
{
	struct plant *p = crowd_share(sizeof(*p));
	struct mr_error err = { 0 };
	struct mr_scan scan = { .filter = { .type = "bounce" } };
	char path[128];

	p->parent = getpid();
	p->room = post_room("none", "worker", CLAIMERS);
	p->messages = messages;
	p->attempts = attempts;
	run_plant(p);
	counted = p;
	(void)snprintf(path, sizeof(path), "%s/queues/jobs/done", p->room.path);
	assert_int_equal(nftw(path, count_name, 8, FTW_PHYS), 0);
	(void)snprintf(path, sizeof(path), "%s/queues/jobs/failed", p->room.path);
	assert_int_equal(nftw(path, count_name, 8, FTW_PHYS), 0);
	struct mr_room *room = crowd_open(&p->room);

	assert_int_equal(mr_scan(room, "alice", &scan, count_bounce, p, &err), MR_OK);
	mr_room_close(room);
	for (unsigned i = 0; i < messages; i++)
		p->claimed += p->claims[i];
	print_message("# %u messages, %u claims, %u claimers killed, %u times too late\n", messages, p->claimed,
	    p->killed, p->late);
	return p;
}

static void
close_plant(struct plant *p)
{
	crowd_done(&p->room);
	(void)munmap(p, sizeof(*p));
}

static void
work_of_killed_claimers_is_done_exactly_once_and_none_is_lost(void **state)
{
	(void)state;
	struct plant *p = work_in_danger(so_many(WORK_MAX, 400), 0);
	unsigned effects = 0;

	for (unsigned i = 0; i < p->messages; i++) {
		assert_int_equal(p->done[i], 1);
		assert_int_equal(p->failed[i], 0);
		assert_int_equal(p->bounces[i], 0);
		assert_in_range(p->effects[i], 0, 1);
		effects += p->effects[i];
	}
	/* Killed between the accepted `done` and its note: at most one each. */
	assert_true(effects + p->killed >= p->messages);
	assert_true(CROWD_SLOW || p->claimed > p->messages); /* work did come back */
	close_plant(p);
}

static void
work_that_kills_each_claimer_is_failed_after_two_and_its_sender_told_once(void **state)
{
	(void)state;
	struct plant *p = work_in_danger(so_many(1000, 120), 2);

	for (unsigned i = 0; i < p->messages; i++) {
		assert_int_equal(p->done[i] + p->failed[i], 1);
		assert_in_range(p->effects[i], 0, 1);
		assert_in_range(p->claims[i], 0, 2);
		if (is_deadly(p, i)) {
			assert_int_equal(p->failed[i], 1);
			assert_int_equal(p->effects[i], 0);
		}
		/* Only who was slow, or killed right behind its `done`, can finish what has just bounced. */
		if (p->failed[i] || (!p->slow[i] && p->effects[i]))
			assert_int_equal(p->bounces[i], p->failed[i]);
		assert_in_range(p->bounces[i], 0, 1);
	}
	close_plant(p);
}

static void
try_late_done(void *ctx, unsigned number)
{
	struct plant *p = ctx;
	struct mr_room *room = crowd_open(&p->room);
	struct mr_self self = crowd_self(room, "worker0");
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	(void)number;
	MUST(mr_queue_recv(room, &self, "jobs", 30, 0, &claim, &msg, &err));
	memcpy(p->id[0], claim.id, sizeof(claim.id));
	mr_message_done(&msg);
	atomic_store(&p->effects[0], 1);
	while (goes_on(&p->over, p->parent))
		crowd_nap_us(500);
	if (mr_claim_done(room, &self, claim.token, NULL, id, NULL, &err) != MR_NOTFOUND)
		crowd_die("a late done was not refused", &err);
	mr_room_close(room);
}

static void
a_late_done_of_an_earlier_claim_of_the_same_agent_is_refused(void **state)
{
	(void)state;
	struct plant *p = crowd_share(sizeof(*p));
	struct mr_error err = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	p->parent = getpid();
	p->room = post_room("none", "worker", 1);
	struct mr_room *room = crowd_open(&p->room);
	struct mr_self self = crowd_self(room, "worker0"), alice = crowd_self(room, "alice");

	make_queue(room, &alice, (struct mr_queue){ .attempts = 0 });
	send_number(room, &alice, "queue:jobs", 0, id);
	p->claimer[0] = crowd_spawn(try_late_done, p, 0);
	while (!atomic_load(&p->effects[0]))
		crowd_nap_us(500);
	assert_int_equal(mr_queue_recv(room, &self, "jobs", 60000, 10000, &claim, &msg, &err), MR_OK);
	mr_message_done(&msg);
	assert_string_equal(claim.id, p->id[0]);
	assert_int_equal(claim.attempt, 2);
	atomic_store(&p->over, true);
	assert_int_equal(crowd_wait(p->claimer, 1), 0);
	assert_int_equal(count_work(room).claimed, 1);
	assert_int_equal(mr_claim_done(room, &self, claim.token, NULL, id, NULL, &err), MR_OK);
	mr_room_close(room);
	close_plant(p);
}

/* ---- A limit on live claims ---- */

struct limited {
	struct crowd room;
	atomic_uint live, most, done;
	atomic_bool over;
	pid_t parent;
};

static void
press_against_the_limit(void *ctx, unsigned number)
{
	struct limited *l = ctx;
	struct mr_room *room = crowd_open(&l->room);
	struct mr_self self = self_number(room, "worker", number);
	struct mr_error err = { 0 };

	while (goes_on(&l->over, l->parent)) {
		struct mr_claim claim = { 0 };
		struct mr_message msg = { 0 };
		char id[MR_ID_LEN + 1];
		enum mr_rc rc = mr_queue_recv(room, &self, "jobs", 60000, 0, &claim, &msg, &err);

		if (rc == MR_BUSY || rc == MR_EMPTY) {
			crowd_nap_us(100);
			continue;
		}
		if (rc != MR_OK)
			crowd_die("mr_queue_recv", &err);
		unsigned now = atomic_fetch_add(&l->live, 1) + 1, most = atomic_load(&l->most);

		while (now > most && !atomic_compare_exchange_weak(&l->most, &most, now))
			;
		mr_message_done(&msg);
		crowd_nap_us(300);
		atomic_fetch_sub(&l->live, 1);
		MUST(mr_claim_done(room, &self, claim.token, NULL, id, NULL, &err));
		atomic_fetch_add(&l->done, 1);
	}
	mr_room_close(room);
}

static void
a_limit_of_two_live_claims_holds_against_eight_claimers(void **state)
{
	(void)state;
	struct limited *l = crowd_share(sizeof(*l));
	pid_t claimer[CLAIMERS];
	unsigned rounds = so_many(200, 60);
	int64_t end_ms = clock_boot_ms() + 120000;

	l->parent = getpid();
	l->room = post_room("none", "worker", CLAIMERS);
	struct mr_room *room = crowd_open(&l->room);
	struct mr_self alice = crowd_self(room, "alice");

	make_queue(room, &alice, (struct mr_queue){ .max_claims = 2 });
	for (unsigned i = 0; i < CLAIMERS; i++)
		claimer[i] = crowd_spawn(press_against_the_limit, l, i);
	/* Each round there is one for each of them, and the next comes when all are done. */
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < CLAIMERS; i++)
			send_number(room, &alice, "queue:jobs", i, NULL);
		while (atomic_load(&l->done) < (round + 1) * CLAIMERS && clock_boot_ms() < end_ms)
			crowd_nap_us(200);
	}
	atomic_store(&l->over, true);
	assert_int_equal(crowd_wait(claimer, CLAIMERS), 0);
	assert_int_equal(count_work(room).done, rounds * CLAIMERS);
	assert_int_equal(l->most, 2);
	mr_room_close(room);
	crowd_done(&l->room);
	(void)munmap(l, sizeof(*l));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_of_killed_claimers_is_done_exactly_once_and_none_is_lost),
		cmocka_unit_test(work_that_kills_each_claimer_is_failed_after_two_and_its_sender_told_once),
		cmocka_unit_test(a_late_done_of_an_earlier_claim_of_the_same_agent_is_refused),
		cmocka_unit_test(a_limit_of_two_live_claims_holds_against_eight_claimers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
