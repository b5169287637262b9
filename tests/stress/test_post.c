/* SPDX-License-Identifier: MIT */
/*
 * test_post.c - the post office in a crowd: claimers that are killed at any moment, limits that all try to exceed,
 * settings that all change at once, a channel with many posters, a fan-out killed at each of its steps.
 */
#include "base/clock.h"
#include "stress/crowd.h"
#include <limits.h>

#define CLAIMERS 8u
#define WORK_MAX 5000u
#define LEASE_MS 300

/* How much of it: the full number only when a long run was asked for. */
static unsigned
so_many(unsigned full, unsigned quick)
{
	return crowd_long() ? full : CROWD_SLOW ? quick / 4 : quick;
}

/* A process that works until it is told to stop also stops when the test is gone. */
static bool
goes_on(const atomic_bool *over, pid_t parent)
{
	return !atomic_load(over) && getppid() == parent;
}

/* ---- The room: in memory, so that a sync is a call like any other ---- */

static struct crowd
post_room(const char *sync, const char *prefix, unsigned agents)
{
	struct crowd c = { 0 };
	struct mr_error err = { 0 };
	struct mr_init_options options = { .name = "town", .sync = sync };
	char *path = NULL, name[32];

	(void)snprintf(
	    c.dir, sizeof(c.dir), "%s/mailroom-post-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(c.dir));
	MUST(mr_room_init(c.dir, c.dir, &options, &path, &err));
	(void)snprintf(c.path, sizeof(c.path), "%s", path);
	free(path);
	struct mr_room *room = crowd_open(&c);

	for (unsigned i = 0; i <= agents; i++) {
		struct mr_registration got = { 0 };

		(void)snprintf(name, sizeof(name), "%s%u", prefix, i);
		MUST(mr_register(room, i < agents ? name : "alice", &(struct mr_env){ 0 },
		    &(struct mr_register_options){ 0 }, &got, &err));
	}
	mr_room_close(room);
	return c;
}

static struct mr_self
self_number(struct mr_room *room, const char *prefix, unsigned number)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s%u", prefix, number);
	return crowd_self(room, name);
}

static void
send_number(struct mr_room *room, const struct mr_self *self, const char *to, unsigned number, char *ret_id)
{
	struct mr_error err = { 0 };
	char body[32];

	(void)snprintf(body, sizeof(body), "%u", number);
	MUST(crowd_send(room, self, (struct mr_draft){ .to = TO(to), .body = body }, ret_id, &err));
}

static void
make_queue(struct mr_room *room, const struct mr_self *self, struct mr_queue settings)
{
	struct mr_error err = { 0 };

	(void)snprintf(settings.name, sizeof(settings.name), "jobs");
	MUST(mr_queue_create(room, self, &settings, &err));
}

static struct mr_queue_counts
count_work(struct mr_room *room)
{
	struct mr_queue_counts n = { 0 };
	struct mr_error err = { 0 };

	MUST(mr_queue_count(room, "jobs", &n, NULL, NULL, &err));
	return n;
}

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
	rc = mr_claim_done(room, self, claim.token, id, &err);
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
	if (mr_claim_done(room, &self, claim.token, id, &err) != MR_NOTFOUND)
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
	assert_int_equal(mr_claim_done(room, &self, claim.token, id, &err), MR_OK);
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
		MUST(mr_claim_done(room, &self, claim.token, id, &err));
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

/* ---- Settings that all change at once ---- */

#define FIFTY 50u

/* NULL-terminated, and as long as the program. */
static const char *const *
fifty_names(void)
{
	static char names[FIFTY][16];
	static const char *list[FIFTY + 1];

	for (unsigned i = 0; i < FIFTY; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "agent%u", i);
		list[i] = names[i];
	}
	return list;
}

struct changes {
	struct crowd room;
	atomic_uint waiting;
};

static void
change_everything(void *ctx, unsigned number)
{
	struct changes *c = ctx;
	struct mr_room *room = crowd_open(&c->room);
	struct mr_self self = self_number(room, "agent", number);
	struct mr_error err = { 0 };
	bool changed = false;

	atomic_fetch_add(&c->waiting, 1);
	while (atomic_load(&c->waiting) < FIFTY)
		crowd_nap_us(200);
	MUST(mr_channel_subscribe(room, "news", self.agent, true, &changed, &err));
	if (!changed)
		crowd_die("subscribed before", NULL);
	MUST(mr_group_add(room, "joined", self.agent, &changed, &err));
	if (!changed)
		crowd_die("member before", NULL);
	MUST(mr_group_remove(room, "left", self.agent, &changed, &err));
	if (!changed)
		crowd_die("no member before", NULL);
	MUST(mr_queue_set_status(room, "jobs", number % 2 ? MR_QUEUE_PAUSED : MR_QUEUE_ACTIVE, &err));
	mr_room_close(room);
}

static bool
has_name(const struct mr_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->v[i], name) == 0)
			return true;
	return false;
}

static void
check_changes(struct mr_room *room)
{
	struct mr_error err = { 0 };
	struct mr_channel news = { 0 };
	struct mr_group joined = { 0 }, left = { 0 };
	struct mr_queue work = { 0 };

	assert_int_equal(mr_channel_get(room, "news", &news, &err), MR_OK);
	assert_int_equal(mr_group_get(room, "joined", &joined, &err), MR_OK);
	assert_int_equal(mr_group_get(room, "left", &left, &err), MR_OK);
	assert_int_equal(mr_queue_get(room, "jobs", &work, &err), MR_OK);
	assert_int_equal(news.subscribers.n, FIFTY);
	assert_int_equal(news.retain_count, 77);
	assert_int_equal(joined.members.n, FIFTY);
	assert_int_equal(left.members.n, 0);
	for (unsigned i = 0; i < FIFTY; i++) {
		struct mr_self self = self_number(room, "agent", i);

		assert_true(has_name(&news.subscribers, self.agent));
		assert_true(has_name(&joined.members, self.agent));
	}
	assert_int_equal(work.max_claims, 5);
	assert_int_equal(work.attempts, 7);
	assert_int_equal(work.lease_ms, 90000);
	assert_true(work.by_priority);
	assert_string_equal(work.claimers, "agent1");
	assert_in_range(work.status, MR_QUEUE_ACTIVE, MR_QUEUE_PAUSED);
	mr_channel_done(&news);
	mr_group_done(&joined);
	mr_group_done(&left);
	mr_queue_done(&work);
}

static void
fifty_subscribe_join_leave_and_change_settings_at_once_and_nothing_is_lost(void **state)
{
	(void)state;
	struct changes *c = crowd_share(sizeof(*c));
	struct mr_error err = { 0 };

	c->room = post_room("none", "agent", FIFTY);
	struct mr_room *room = crowd_open(&c->room);
	struct mr_self alice = crowd_self(room, "alice");

	assert_int_equal(mr_channel_create(room, &alice, "news", 77, 0, &err), MR_OK);
	assert_int_equal(mr_group_create(room, &alice, "joined", (const char *const[]){ NULL }, &err), MR_OK);
	assert_int_equal(mr_group_create(room, &alice, "left", fifty_names(), &err), MR_OK);
	make_queue(room, &alice,
	    (struct mr_queue){
		.claimers = "agent1", .by_priority = true, .max_claims = 5, .lease_ms = 90000, .attempts = 7 });
	assert_int_equal(crowd_run(FIFTY, change_everything, c), 0);
	check_changes(room);
	mr_room_close(room);
	crowd_done(&c->room);
	(void)munmap(c, sizeof(*c));
}

/* ---- A channel ---- */

#define POSTERS 8u
#define POSTS 50u

struct press {
	struct crowd room;
	unsigned each;
};

static void
post_all(struct press *p, struct mr_room *room, unsigned poster)
{
	struct mr_self self = self_number(room, "agent", poster);

	for (unsigned i = 0; i < p->each; i++)
		send_number(room, &self, "channel:news", poster * POSTS + i, NULL);
}

struct following {
	uint64_t last;
	unsigned n, gaps;
	unsigned char seen[POSTERS * POSTS];
	unsigned next[POSTERS];
};

static bool
note_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct following *f = ctx;
	unsigned what = (unsigned)strtoul(msg->body, NULL, 10) % (POSTERS * POSTS);

	if (number <= f->last)
		crowd_die("a number came again", NULL);
	if (f->seen[what]++ > 0)
		crowd_die("a post came again", NULL);
	if (what % POSTS != f->next[what / POSTS]++)
		crowd_die("a poster's posts came out of order", NULL);
	f->gaps += number != f->last + 1;
	f->last = number;
	f->n++;
	return true;
}

static void
follow(struct press *p, struct mr_room *room)
{
	struct following f = { 0 }, again = { 0 };
	struct mr_error err = { 0 };

	while (f.n < POSTERS * p->each) {
		MUST(mr_channel_wait(room, "news", f.last, 60000, &err));
		MUST(mr_channel_read(room, "news", f.last, true, note_post, &f, &err));
	}
	if (mr_channel_wait(room, "news", f.last, 50, &err) != MR_EMPTY)
		crowd_die("more was posted than was sent", NULL);
	MUST(mr_channel_read(room, "news", 0, true, note_post, &again, &err));
	if (again.n != f.n || again.last != f.last || f.gaps > 0)
		crowd_die("the follower saw something else than is there", NULL);
}

static void
post_or_follow(void *ctx, unsigned number)
{
	struct press *p = ctx;
	struct mr_room *room = crowd_open(&p->room);

	if (number < POSTERS)
		post_all(p, room, number);
	else
		follow(p, room);
	mr_room_close(room);
}

static bool
note_delivery(void *ctx, const struct mr_message *msg)
{
	struct following *f = ctx;

	f->seen[strtoul(msg->body, NULL, 10) % (POSTERS * POSTS)]++;
	f->n++;
	return true;
}

static void
a_follower_sees_every_post_of_eight_posters_once_and_in_order(void **state)
{
	(void)state;
	struct press p = { .each = so_many(POSTS, 20) };
	struct following got = { 0 };
	struct mr_error err = { 0 };
	bool changed = false;

	p.room = post_room("none", "agent", POSTERS);
	struct mr_room *room = crowd_open(&p.room);
	struct mr_self alice = crowd_self(room, "alice");

	assert_int_equal(mr_channel_create(room, &alice, "news", 0, 0, &err), MR_OK);
	assert_int_equal(mr_channel_subscribe(room, "news", "alice", true, &changed, &err), MR_OK);
	assert_int_equal(crowd_run(POSTERS + 2, post_or_follow, &p), 0);
	assert_int_equal(mr_scan(room, "alice", &(struct mr_scan){ .bodies = true }, note_delivery, &got, &err), MR_OK);
	assert_int_equal(got.n, POSTERS * p.each);
	for (unsigned i = 0; i < POSTERS * POSTS; i++)
		assert_int_equal(got.seen[i], i % POSTS < p.each);
	mr_room_close(room);
	crowd_done(&p.room);
}

/* ---- A fan-out killed at each of its steps ---- */

#define READERS 3u
#define POINTS_MAX 2000u

struct fan {
	struct crowd room;
	atomic_bool over;
	pid_t parent;
	atomic_ulong calls;                       /* of a whole send */
	atomic_uchar consumed[FIFTY][POINTS_MAX]; /* shown and marked, by message */
	unsigned char copies[FIFTY][POINTS_MAX];
	bool accepted[POINTS_MAX];
	atomic_bool purged[POINTS_MAX];
	atomic_uint shown;
};

struct unread {
	char id[16][MR_ID_LEN + 1];
	unsigned n;
};

static bool
note_unread(void *ctx, const struct mr_message *msg)
{
	struct unread *u = ctx;

	memcpy(u->id[u->n++], msg->id, MR_ID_LEN + 1);
	return u->n < sizeof(u->id) / sizeof(u->id[0]);
}

/* The first to get one in five takes it back from all, while its sender is still at it or just dead. */
static void
purge_some(struct fan *f, struct mr_room *room, const struct mr_self *self, const char *id, unsigned number)
{
	struct mr_error err = { 0 };
	enum mr_rc rc;

	if (strcmp(self->agent, "agent0") != 0 || number % 5 != 3)
		return;
	atomic_store(&f->purged[number], true);
	do
		rc = mr_purge(room, self, id, "a mistake", NULL, &err);
	while (rc == MR_BUSY);
	if (rc != MR_OK)
		crowd_die("mr_purge", &err);
}

/* As a command does it: reads, and leaves it, or archives it now, or later. */
static void
consume_one(struct fan *f, struct mr_room *room, unsigned recipient, const char *id, uint32_t mood)
{
	struct mr_self self = self_number(room, "agent", recipient);
	struct mr_error err = { 0 };
	struct mr_show *show = NULL;
	struct mr_message msg = { 0 };

	MUST(mr_show_open(room, &self, &show, &err));
	enum mr_rc rc = mr_show_take(show, id, &msg, &err);
	unsigned number = rc == MR_OK ? (unsigned)strtoul(msg.body, NULL, 10) % POINTS_MAX : 0;

	mr_message_done(&msg);
	if (rc == MR_OK)
		rc = mr_show_finish(show, mood % 3 == 1, NULL, &err);
	mr_show_close(show);
	if (rc == MR_NOTFOUND || (rc == MR_REFUSED && atomic_load(&f->purged[number])))
		return; /* purged; if it was not, then the count will tell */
	if (rc != MR_OK)
		crowd_die("show", &err);
	atomic_fetch_add(&f->consumed[recipient][number], 1);
	atomic_fetch_add(&f->shown, 1);
	if (mood % 3 == 2 && mr_archive(room, &self, id, &err) != MR_OK && !atomic_load(&f->purged[number]))
		crowd_die("mr_archive", &err);
	MUST(mr_flush(room, &err));
	purge_some(f, room, &self, id, number);
}

static void
consume(struct fan *f, unsigned recipient, uint32_t mood)
{
	struct mr_error err = { 0 };
	struct unread unread = { 0 };
	struct mr_room *room = NULL;

	/* It must find what a killed sender left, not complete it. */
	MUST(mr_room_open(f->room.path, &(struct mr_room_options){ .no_recover = true }, &room, &err));
	struct mr_self self = self_number(room, "agent", recipient);

	MUST(mr_scan(room, self.agent, &(struct mr_scan){ .filter = { .unread = true } }, note_unread, &unread, &err));
	for (unsigned i = 0; i < unread.n; i++)
		consume_one(f, room, recipient, unread.id[i], mood);
	mr_room_close(room);
}

static void
read_all_day(void *ctx, unsigned number)
{
	struct fan *f = ctx;
	uint64_t dice = (uint64_t)getpid() * 7919 + number;

	while (goes_on(&f->over, f->parent))
		for (unsigned i = number; i < FIFTY && goes_on(&f->over, f->parent); i += READERS)
			consume(f, i, crowd_dice(&dice));
}

/* Message `number` to all, killed before call `at`; true: it was not reached, and the message is accepted. */
static bool
send_and_die(struct fan *f, unsigned number, unsigned long at)
{
	struct mr_error err = { 0 };
	char body[32];
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		struct mr_room *room = crowd_open(&f->room);
		struct mr_self alice = crowd_self(room, "alice");

		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE, .at = at, .delay_us = 1 });
		(void)snprintf(body, sizeof(body), "%u", number);
		MUST(crowd_send(room, &alice, (struct mr_draft){ .to = fifty_names(), .body = body }, NULL, &err));
		atomic_store(&f->calls, sys_calls());
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(WEXITSTATUS(status), 0);
	crowd_nap_us(number % 3 * 10000);    /* for those who have it to read it */
	mr_room_close(crowd_open(&f->room)); /* the next command completes what was left */
	return !WIFSIGNALED(status);
}

static bool
note_copy(void *ctx, const struct mr_message *msg)
{
	((unsigned char *)ctx)[strtoul(msg->body, NULL, 10) % POINTS_MAX]++;
	return true;
}

static void
check_fan(struct fan *f, unsigned sent)
{
	struct mr_room *room = crowd_open(&f->room);
	struct mr_scan scan = { .filter = { .folders = MR_INBOX | MR_HELD | MR_ARCHIVE }, .bodies = true };
	struct mr_error err = { 0 };
	unsigned arrived = 0, purged = 0;

	for (unsigned i = 0; i < FIFTY; i++)
		consume(f, i, 0);
	for (unsigned i = 0; i < FIFTY; i++) {
		struct mr_self self = self_number(room, "agent", i);

		assert_int_equal(mr_scan(room, self.agent, &scan, note_copy, f->copies[i], &err), MR_OK);
	}
	for (unsigned n = 0; n < sent; n++) {
		unsigned each = f->consumed[0][n];

		assert_in_range(each, f->accepted[n], 1);
		arrived += each;
		purged += f->purged[n];
		for (unsigned i = 0; i < FIFTY; i++) {
			assert_int_equal(f->copies[i][n], f->purged[n] ? 0 : each);
			assert_in_range(f->consumed[i][n], f->purged[n] ? 0 : each, each);
		}
	}
	print_message(
	    "# %u sends, all but 2 killed: %u reached everybody, %u of them were purged\n", sent, arrived, purged);
	mr_room_close(room);
}

static void
a_fan_out_killed_at_any_step_reaches_each_of_fifty_readers_once(void **state)
{
	(void)state;
	struct fan *f = crowd_share(sizeof(*f));
	pid_t reader[READERS];
	unsigned sent = 0, meanwhile = 0;

	f->parent = getpid();
	f->room = post_room("full", "agent", FIFTY);
	f->accepted[sent++] = send_and_die(f, 0, ULONG_MAX);
	unsigned long calls = f->calls, points = so_many(POINTS_MAX, 25);

	points = points < calls ? points : calls;
	assert_in_range(calls, 2 * FIFTY, POINTS_MAX - 2);
	for (unsigned i = 0; i < READERS; i++)
		reader[i] = crowd_spawn(read_all_day, f, i);
	for (unsigned long i = 0; i < points; i++, sent++) {
		unsigned before = f->shown;

		f->accepted[sent] = send_and_die(f, sent, 1 + i * calls / points);
		meanwhile += f->shown > before;
	}
	f->accepted[sent] = send_and_die(f, sent, ULONG_MAX);
	sent++;
	atomic_store(&f->over, true);
	assert_int_equal(crowd_wait(reader, READERS), 0);
	assert_true(f->accepted[0] && f->accepted[sent - 1]);
	check_fan(f, sent);
	assert_true(meanwhile > 0);
	crowd_done(&f->room);
	(void)munmap(f, sizeof(*f));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_of_killed_claimers_is_done_exactly_once_and_none_is_lost),
		cmocka_unit_test(work_that_kills_each_claimer_is_failed_after_two_and_its_sender_told_once),
		cmocka_unit_test(a_late_done_of_an_earlier_claim_of_the_same_agent_is_refused),
		cmocka_unit_test(a_limit_of_two_live_claims_holds_against_eight_claimers),
		cmocka_unit_test(fifty_subscribe_join_leave_and_change_settings_at_once_and_nothing_is_lost),
		cmocka_unit_test(a_follower_sees_every_post_of_eight_posters_once_and_in_order),
		cmocka_unit_test(a_fan_out_killed_at_any_step_reaches_each_of_fifty_readers_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
