/* SPDX-License-Identifier: MIT */
/*
 * queue_recv.c - taking work from a queue, and what becomes of claims that are over.
 *
 * The driver decides who gets a message: one rename, one winner. Here is what comes before it: may this agent
 * claim, is the queue open, and are there claims whose holder is gone. A claim is over when the driver says
 * so (its time is up, its process died) or when a newer life of its holder has begun: the new life knows
 * nothing of it, and the old one is fenced. Nobody has to run for that: whoever comes to claim looks first.
 *
 * After the last attempt the sender is told before the work is put aside. Killed in between, it is told again
 * by the next to look, with the same key: the driver then delivers nothing twice.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/mail/mail.h"
#include "office/office.h"
#include <poll.h>

#define POLL_MAX_MS 2000       /* with a watch */
#define BLIND_POLL_FIRST_MS 50 /* without one */
#define BLIND_POLL_MAX_MS 1000
#define BROKEN_MAX 100 /* messages that cannot be read, put aside in one call */

/* ---- Claims that are over ---- */

void
claims_done(struct claims *c)
{
	free(c->v);
	*c = (struct claims){ 0 };
}

bool
claims_add(struct claims *c, const struct hold *hold)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;
		struct hold *v = reallocarray(c->v, cap, sizeof(*v));

		if (!v) {
			c->failed = true;
			return false;
		}
		c->v = v;
		c->cap = cap;
	}
	c->v[c->n++] = *hold;
	return true;
}

static bool
note_claim(void *ctx, const struct queue_item *item)
{
	return !item->hold || claims_add(ctx, item->hold);
}

/* A record that a power cut took names no holder: then only the time counts. */
bool
office_claim_over(struct mr_room *room, const struct hold *hold)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };
	enum mr_rc rc;

	if (hold->over || hold->agent[0] == '\0' || !ROOM_HAS(room, find_agent))
		return hold->over;
	rc = room->driver->find_agent(room, hold->agent, &agent, &ignored);
	if (rc == MR_NOTFOUND)
		return true;
	return rc == MR_OK && hold->life > 0 && hold->life < agent.life;
}

static enum mr_rc
tell_sender(struct mr_room *room, const struct mr_queue *queue, const struct hold *hold)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf story = BUF_INIT;
	struct mr_error err = { 0 };
	char key[16 + MR_TOKEN_LEN];
	enum mr_rc rc = room->driver->queue_fetch(room, queue->name, hold->id, &msg, &err);

	if (rc != MR_OK) /* not readable: nobody can be told. Gone: the settling will notice */
		return rc == MR_CORRUPT || rc == MR_NOTFOUND ? MR_OK : rc;
	buf_addf(&story,
	    "This message was taken from the queue '%s' %u time%s and never finished. It will not be"
	    " tried again. The last to take it was %s.",
	    queue->name, hold->attempt, hold->attempt == 1 ? "" : "s", hold->agent);
	if (!buf_ok(&story))
		return MR_NOMEM;
	(void)snprintf(key, sizeof(key), "bounce-%s", hold->token);
	struct bounce bounce = {
		.from = hold->agent,
		.life = hold->life,
		.story = buf_z(&story),
		.reason = "attempts used up",
		.key = key,
	};

	return bounce_deliver(room, &bounce, &msg, &err);
}

static bool
is_tried_again(const struct mr_queue *queue, const struct hold *hold)
{
	return queue->attempts == 0 || hold->attempt < queue->attempts;
}

/* True: it is ready again. */
static bool
end_claim(struct mr_room *room, const struct mr_queue *queue, const struct hold *hold)
{
	struct mr_error ignored = { 0 };
	bool again = is_tried_again(queue, hold);

	if (!again && tell_sender(room, queue, hold) != MR_OK)
		return false; /* told later, by whoever looks next: until then it stays claimed */
	/* Not found: another was quicker, or it was settled in the last moment. */
	return room->driver->queue_settle(room, hold, again ? SETTLE_BACK : SETTLE_DEAD, &ignored) == MR_OK && again;
}

void
office_queue_sweep(struct mr_room *room, const struct mr_queue *queue)
{
	mr_auto(claims_done) struct claims claims = { 0 };
	struct mr_error ignored = { 0 };
	bool ended = false;

	(void)room->driver->queue_each(room, queue->name, QUEUE_CLAIMED, note_claim, &claims, &ignored);
	for (size_t i = 0; i < claims.n; i++) {
		if (!office_claim_over(room, &claims.v[i]))
			continue;
		(void)end_claim(room, queue, &claims.v[i]);
		ended = true;
	}
	if (ended) /* lost in a power cut, the claim is over again: no harm */
		(void)office_flush(room, &ignored);
}

static size_t
return_from(struct mr_room *room, const struct mr_queue *queue, const char *agent, bool dry_run)
{
	mr_auto(claims_done) struct claims claims = { 0 };
	struct mr_error ignored = { 0 };
	size_t back = 0;

	(void)room->driver->queue_each(room, queue->name, QUEUE_CLAIMED, note_claim, &claims, &ignored);
	for (size_t i = 0; i < claims.n; i++) {
		const struct hold *hold = &claims.v[i];

		if (strcmp(hold->agent, agent) != 0)
			continue;
		if (dry_run)
			back += is_tried_again(queue, hold);
		else if (office_claim_over(room, hold))
			back += end_claim(room, queue, hold);
	}
	return back;
}

size_t
office_return_work(struct mr_room *room, const char *agent, bool dry_run)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct mr_error ignored = { 0 };
	size_t back = 0;

	if (office_queue_able(room, &ignored) != MR_OK || settings_names(room, "queue", &queues, &ignored) != MR_OK)
		return 0;
	for (size_t i = 0; i < queues.n; i++) {
		mr_auto(mr_queue_done) struct mr_queue queue = { 0 };

		if (mr_queue_get(room, queues.v[i], &queue, &ignored) == MR_OK)
			back += return_from(room, &queue, agent, dry_run);
	}
	if (back > 0 && !dry_run)
		(void)office_flush(room, &ignored);
	return back;
}

/* ---- Counting ---- */

struct counting {
	struct mr_room *room;
	const struct mr_queue *queue;
	struct mr_queue_counts counts;
	mr_queue_claim_fn *fn;
	void *ctx;
};

static bool
count_item(void *ctx, const struct queue_item *item)
{
	struct counting *c = ctx;

	switch (item->state) {
	case QUEUE_READY:
		c->counts.ready++;
		break;
	case QUEUE_DELAYED:
		c->counts.delayed++;
		break;
	case QUEUE_DONE:
		c->counts.done++;
		break;
	case QUEUE_FAILED:
		c->counts.failed++;
		break;
	case QUEUE_CLAIMED:
		c->counts.claimed++;
		break;
	}
	if (item->state != QUEUE_CLAIMED || !item->hold || !c->fn)
		return true;
	struct mr_queue_claim claim = {
		.id = item->id,
		.holder = item->hold->agent,
		.token = item->hold->token,
		.attempt = item->hold->attempt,
		.since_ms = item->hold->since_ms,
		.deadline_ms = item->hold->deadline_ms,
		.live = !office_claim_over(c->room, item->hold),
	};

	c->fn(c->ctx, &claim);
	return true;
}

static bool
count_claimer(void *ctx, const struct mr_agent *agent)
{
	struct counting *c = ctx;

	if (!office_lets_claim(c->queue->claimers, agent->name))
		return true;
	enum mr_presence presence = mr_agent_presence(agent);

	c->counts.claimers += presence == MR_LIVE;
	c->counts.claimers_unknown += presence == MR_UNKNOWN;
	return true;
}

enum mr_rc
mr_queue_count(struct mr_room *room, const char *name, struct mr_queue_counts *ret, mr_queue_claim_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct counting c = { .room = room, .queue = &queue, .fn = fn, .ctx = ctx };
	unsigned all = QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED | QUEUE_DONE | QUEUE_FAILED;
	enum mr_rc rc = mr_queue_get(room, name, &queue, err);

	if (rc != MR_OK)
		return rc;
	office_queue_sweep(room, &queue);
	rc = room->driver->queue_each(room, queue.name, all, count_item, &c, err);
	if (rc == MR_OK && ROOM_HAS(room, each_agent))
		rc = room->driver->each_agent(room, count_claimer, &c, err);
	if (rc == MR_OK)
		*ret = c.counts;
	return rc;
}

/* ---- Taking work ---- */

struct taking {
	struct mr_room *room;
	const struct mr_self *self;
	const char *name;
	int64_t lease_ms; /* 0: the queue's */
	struct hold_terms holder;
	struct mr_claim claim;
	struct mr_message msg;
	struct claims unreadable; /* claimed in this try, and to be put back after it */
	size_t skipped;
	char first_skipped[160]; /* why */
};

static enum mr_rc
check_open(const struct mr_queue *queue, const struct mr_self *self, struct mr_error *err)
{
	if (queue->status == MR_QUEUE_PAUSED) {
		return mr_fail(err, MR_REFUSED,
		    "the queue '%s' is paused\nmail to it waits; `mailroom queue resume %s` lets it be claimed",
		    queue->name, queue->name);
	}
	if (queue->status == MR_QUEUE_CLOSED)
		return mr_fail(err, MR_REFUSED, "the queue '%s' is closed", queue->name);
	if (office_lets_claim(queue->claimers, self->agent))
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%s' may not claim from the queue '%s'\nits claimers are '%.120s'",
	    self->agent, queue->name, queue->claimers);
}

static void
note_skipped(struct taking *t, const struct hold *hold, const struct mr_error *why)
{
	if (t->skipped++ == 0)
		(void)snprintf(t->first_skipped, sizeof(t->first_skipped), "%s (%.110s)", hold->id, why->message);
}

/* A sentence, or "". ret has room for sizeof(mr_claim.skipped). */
static void
say_skipped(const struct taking *t, char *ret, size_t room)
{
	ret[0] = '\0';
	if (t->skipped == 1)
		(void)snprintf(ret, room, "skipped what cannot be read: %s", t->first_skipped);
	else if (t->skipped > 1)
		(void)snprintf(
		    ret, room, "skipped %zu that cannot be read, the first is %s", t->skipped, t->first_skipped);
}

/* MR_CORRUPT: what was claimed cannot be read; take another. What is broken is put aside as failed. What only cannot
 * be read now stays claimed until this try is over, so that it does not come again and keep us from all the rest. */
static enum mr_rc
show_claimed(struct taking *t, const struct mr_queue *queue, const struct hold *hold, struct mr_error *err)
{
	struct mr_error ignored = { 0 };
	enum mr_rc rc = t->room->driver->queue_fetch(t->room, queue->name, hold->id, &t->msg, err);

	if (rc == MR_OK)
		rc = office_flush(t->room, err);
	if (rc == MR_OK) {
		t->msg.folder = MR_HELD;
		t->msg.attempt = hold->attempt;
		(void)snprintf(t->msg.token, sizeof(t->msg.token), "%s", hold->token);
		claim_fill(hold, &t->claim);
		t->claim.attempts = queue->attempts;
		return MR_OK;
	}
	mr_message_done(&t->msg);
	if (rc == MR_NOTFOUND) /* taken away this very moment: purged, or the queue deleted */
		return MR_CORRUPT;
	if (rc != MR_NOMEM)
		note_skipped(t, hold, err);
	if (rc == MR_CORRUPT || rc == MR_NOMEM || !claims_add(&t->unreadable, hold)) {
		(void)t->room->driver->queue_settle(
		    t->room, hold, rc == MR_CORRUPT ? SETTLE_DEAD : SETTLE_BACK, &ignored);
		(void)office_flush(t->room, &ignored);
		return rc;
	}
	return MR_CORRUPT;
}

static void
put_back_unreadable(struct taking *t)
{
	struct mr_error ignored = { 0 };

	for (size_t i = 0; i < t->unreadable.n; i++)
		(void)t->room->driver->queue_settle(t->room, &t->unreadable.v[i], SETTLE_BACK, &ignored);
	if (t->unreadable.n > 0)
		(void)office_flush(t->room, &ignored);
	claims_done(&t->unreadable);
}

/* One try. The settings are read anew: a queue may be paused while we wait. */
static enum mr_rc
take_once(struct taking *t, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	mr_auto(relief_end) struct relief relief = { 0 };
	enum mr_rc rc = mr_queue_get(t->room, t->name, &queue, err);

	if (rc == MR_OK)
		rc = check_open(&queue, t->self, err);
	if (rc == MR_OK)
		rc = office_not_fenced(t->room, t->self, err);
	if (rc != MR_OK)
		return rc;
	office_queue_sweep(t->room, &queue); /* may write to senders: no reserve for that */
	relief_begin(&relief, t->room);
	struct claim_terms terms = {
		.hold = t->holder,
		.claimer = t->self->agent,
		.by_priority = queue.by_priority,
		.max_claims = queue.max_claims,
	};

	terms.hold.lease_ms = t->lease_ms ? t->lease_ms : queue.lease_ms;
	for (int broken = 0; broken < BROKEN_MAX; broken++) {
		struct hold hold = { 0 };

		rc = t->room->driver->queue_claim(t->room, queue.name, &terms, &hold, err);
		if (rc == MR_OK)
			rc = show_claimed(t, &queue, &hold, err);
		if (rc != MR_CORRUPT)
			break;
	}
	put_back_unreadable(t);
	if (rc == MR_EMPTY)
		return mr_fail(err, MR_EMPTY, "no work is waiting in the queue '%s'", queue.name);
	if (rc == MR_BUSY) {
		return mr_fail(err, MR_BUSY,
		    "%u %s live in the queue '%s': no more are allowed\n"
		    "try again with --wait; `mailroom queue show %s` tells who holds them",
		    queue.max_claims, queue.max_claims == 1 ? "claim is" : "claims are", queue.name, queue.name);
	}
	return rc;
}

static void
pause_for(struct taking *t, void *watch, int64_t rest_ms, int64_t *pause_ms)
{
	int64_t longest = watch ? POLL_MAX_MS : *pause_ms;
	int64_t ms = rest_ms < 0 || rest_ms > longest ? longest : rest_ms;

	if (watch) {
		t->room->driver->watch_wait(t->room, watch, ms);
		return;
	}
	(void)poll(NULL, 0, (int)ms);
	*pause_ms = 2 * *pause_ms < BLIND_POLL_MAX_MS ? 2 * *pause_ms : BLIND_POLL_MAX_MS;
}

static enum mr_rc
take_until(struct taking *t, void *watch, int64_t wait_ms, struct mr_error *err)
{
	int64_t deadline_ms = clock_boot_ms() + wait_ms, pause_ms = BLIND_POLL_FIRST_MS;

	for (;;) {
		*err = (struct mr_error){ 0 };
		enum mr_rc rc = take_once(t, err);

		if ((rc != MR_EMPTY && rc != MR_BUSY) || wait_ms == 0)
			return rc;
		int64_t rest_ms = wait_ms < 0 ? -1 : deadline_ms - clock_boot_ms();

		if (wait_ms >= 0 && rest_ms <= 0) {
			err->code = MR_EMPTY; /* it waited, and the time is up: whatever for */
			err->hint[0] = '\0';
			return MR_EMPTY;
		}
		/* A free place among max_claims rings no bell of its own. */
		pause_for(t, rc == MR_BUSY ? NULL : watch, rest_ms, &pause_ms);
	}
}

enum mr_rc
mr_queue_recv(struct mr_room *room, const struct mr_self *self, const char *name, int64_t lease_ms, int64_t wait_ms,
    struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err)
{
	const struct room_driver *driver = room->driver;
	struct taking t = { .room = room, .self = self, .lease_ms = lease_ms };
	char local[MR_ADDRESS_MAX + 1], watched[MR_ADDRESS_MAX + 16];
	struct mr_error ignored = { 0 };
	void *watch = NULL;
	enum mr_rc rc = office_queue_able(room, err);

	if (rc == MR_OK && (lease_ms < 0 || lease_ms > LEASE_MAX_MS))
		rc = mr_fail(err, MR_REFUSED, "a lease is more than nothing and at most 366 days");
	if (rc == MR_OK)
		rc = settings_name("queue", name, local, err);
	if (rc != MR_OK)
		return rc;
	t.name = local;
	t.holder = (struct hold_terms){ .kind = HOLD_LEASE, .life = self->life, .session = self->session };
	claim_describe_holder(room, self, &t.holder);
	(void)snprintf(watched, sizeof(watched), "queue:%s", local);
	/* Armed before the first look. A fleet can run out of watches: then the poll alone has to do. */
	if (wait_ms != 0 && DRIVER_HAS(driver, watch) && driver->watch(room, watched, &watch, &ignored) != MR_OK)
		watch = NULL;
	rc = take_until(&t, watch, wait_ms, err);
	if (watch)
		driver->watch_close(room, watch);
	if (rc == MR_OK) {
		say_skipped(&t, t.claim.skipped, sizeof(t.claim.skipped));
		*ret_claim = t.claim;
		*ret_msg = t.msg;
	} else if (rc == MR_EMPTY) {
		if (t.skipped > 0)
			say_skipped(&t, err->hint, sizeof(err->hint));
		*ret_claim = (struct mr_claim){ 0 };
		(void)mr_queue_left(room, self->agent, local, &ret_claim->left, &ignored);
	}
	return rc;
}
