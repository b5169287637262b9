/* SPDX-License-Identifier: MIT */
/*
 * queue_work.c - the work of a queue: taking it, ending claims that are over, counting, listing, waiting.
 *
 * The driver decides which claimer gets a message: one rename, which succeeds for one. This file does what comes
 * before: may this agent claim, is the queue open, and are there claims whose holder is gone. A claim is over if the
 * driver says so (its time is up, its process died) or if a newer life of its holder has begun: the new life does not
 * know of it, and the old one is fenced. No process has to run for that: every claimer checks first.
 *
 * After the last attempt the sender is told before the work is put aside. After a kill in between, the next claimer
 * tells it again with the same key, and the driver delivers it once.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/address/address.h"
#include "office/mail/mail.h"
#include "office/work/work.h"

#define BROKEN_MAX 100 /* unreadable messages that one call puts aside */
#define OPEN_WORK ((unsigned)QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED)

/* ---- Claims that are over ---- */

static enum mr_rc
tell_sender(struct mr_room *room, const struct mr_queue *queue, const struct claim *claim)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char key[16 + MR_TOKEN_LEN];
	struct bounce bounce = { claim->agent, claim->life, "attempts used up", key };
	enum mr_rc rc = claim_message(room, claim, &msg, IGNORED);

	if (rc != MR_OK) /* unreadable: nobody can be told. Gone: settling it will notice */
		return rc == MR_CORRUPT || rc == MR_NOTFOUND ? MR_OK : rc;
	(void)snprintf(key, sizeof(key), "bounce-%s", claim->token);
	return bounce_deliver(room, &bounce, &msg, IGNORED,
	    "This message was taken from the queue '%s' %u time%s and never finished. It will not be tried again. "
	    "The last to take it was %s.",
	    queue->name, claim->attempt, claim->attempt == 1 ? "" : "s", claim->agent);
}

/* Ends the claims of `agent` (NULL: any agent) that are over; returns how many are ready again. */
static size_t
end_claims(struct mr_room *room, const struct mr_queue *queue, const char *agent, bool dry_run)
{
	mr_auto(claims_done) struct claims claims = { 0 };
	size_t back = 0;
	bool ended = false;

	(void)claims_in(room, room_box("queue", queue->name).z, &claims, IGNORED);
	for (const struct claim *c = claims.v; c < claims.v + claims.n; c++) {
		bool again = queue->attempts == 0 || c->attempt < queue->attempts;

		if (agent && strcmp(c->agent, agent) != 0)
			continue;
		if (dry_run) {
			back += again;
			continue;
		}
		if (!office_claim_over(room, c))
			continue;
		ended = true;
		/* Telling failed: the next claimer does it; until then the work stays claimed. */
		if (!again && tell_sender(room, queue, c) != MR_OK)
			continue;
		/* Not found: another process was faster, or it was settled in the last moment. */
		back += room->driver->settle(room, c, again ? SETTLE_BACK : SETTLE_DEAD, IGNORED) == MR_OK && again;
	}
	if (ended) /* if a power cut loses this, the claim ends once more: no harm */
		(void)office_flush(room, IGNORED);
	return back;
}

void
office_queue_sweep(struct mr_room *room, const struct mr_queue *queue)
{
	(void)end_claims(room, queue, NULL, false);
}

size_t
office_return_work(struct mr_room *room, const char *agent, bool dry_run)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	size_t back = 0;

	(void)settings_names(room, "queue", &queues, IGNORED);
	for (size_t i = 0; i < queues.n; i++) {
		mr_auto(mr_queue_done) struct mr_queue queue = { 0 };

		if (mr_queue_get(room, queues.v[i], &queue, IGNORED) == MR_OK)
			back += end_claims(room, &queue, agent, dry_run);
	}
	return back;
}

/* ---- Counting ---- */

struct counting {
	const struct mr_queue *queue;
	struct mr_queue_counts counts;
};

static bool
count_item(void *ctx, const struct queue_item *item)
{
	struct mr_queue_counts *n = &((struct counting *)ctx)->counts;

	n->ready += item->state == QUEUE_READY;
	n->delayed += item->state == QUEUE_DELAYED;
	n->claimed += item->state == QUEUE_CLAIMED;
	n->done += item->state == QUEUE_DONE;
	n->failed += item->state == QUEUE_FAILED;
	return true;
}

static bool
count_claimer(void *ctx, const struct mr_agent *agent)
{
	struct counting *c = ctx;
	bool lets = office_lets_claim(c->queue->claimers, agent->name);
	enum mr_presence presence = lets ? mr_agent_presence(agent) : MR_GONE;

	c->counts.claimers += presence == MR_LIVE;
	c->counts.claimers_unknown += presence == MR_UNKNOWN;
	return true;
}

enum mr_rc
mr_queue_count(struct mr_room *room, const char *name, struct mr_queue_counts *ret, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct counting c = { .queue = &queue };

	TRY(mr_queue_get(room, name, &queue, err));
	office_queue_sweep(room, &queue);
	TRY(room->driver->each_claim(
	    room, room_box("queue", queue.name).z, OPEN_WORK | QUEUE_DONE | QUEUE_FAILED, count_item, &c, err));
	TRY(room->driver->each_agent(room, false, count_claimer, &c, err));
	*ret = c.counts;
	return MR_OK;
}

struct leaving {
	const char *agent;
	struct mr_queue_left left;
};

static bool
count_left(void *ctx, const struct queue_item *item)
{
	struct leaving *l = ctx;

	if (item->state == QUEUE_DELAYED)
		l->left.delayed++;
	else if (item->state == QUEUE_CLAIMED)
		l->left.claimed++;
	else if (item->only_for[0] && (!l->agent || strcmp(item->only_for, l->agent) != 0))
		l->left.reserved++;
	else
		l->left.ready++;
	l->left.mine += item->claim && l->agent && strcmp(item->claim->agent, l->agent) == 0;
	return true;
}

enum mr_rc
mr_queue_left(
    struct mr_room *room, const char *agent, const char *name, struct mr_queue_left *ret, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct leaving l = { .agent = agent };

	TRY(mr_queue_get(room, name, &queue, err));
	office_queue_sweep(room, &queue);
	TRY(room->driver->each_claim(room, room_box("queue", queue.name).z, OPEN_WORK, count_left, &l, err));
	*ret = l.left;
	return MR_OK;
}

/* ---- Listing: the holder, the time, and the subject ---- */

/* The states in the order of the list, and their words. */
static const struct {
	enum queue_state state;
	const char *word;
} ranks[] = { { QUEUE_CLAIMED, "claimed" }, { QUEUE_READY, "ready" }, { QUEUE_READY, "reserved" },
	{ QUEUE_DELAYED, "delayed" }, { QUEUE_FAILED, "failed" }, { QUEUE_DONE, "done" } };
enum { RESERVED = 2, RANK_OVER = 4 };

struct listing_tasks {
	struct mr_room *room;
	struct roll *tasks;
	bool by_priority;
};

static bool
add_task(void *ctx, const struct queue_item *item)
{
	struct listing_tasks *l = ctx;
	struct mr_queue_task *task = roll_add(l->tasks, sizeof(*task));
	const struct claim *claim = item->claim;
	size_t rank = 0;

	if (!task)
		return false;
	while (ranks[rank].state != item->state)
		rank++;
	*task = (struct mr_queue_task){
		.attempt = item->attempt, .since_ms = id_time_ms(item->id), .from = "", .subject = ""
	};
	(void)snprintf(task->id, sizeof(task->id), "%s", item->id);
	(void)snprintf(task->who, sizeof(task->who), "%s", claim ? claim->agent : item->only_for);
	task->state = ranks[item->state == QUEUE_READY && *task->who ? RESERVED : rank].word;
	if (l->by_priority && item->state == QUEUE_READY)
		task->priority = item->priority;
	if (claim) {
		task->since_ms = claim->since_ms;
		task->until_ms = claim->deadline_ms;
		task->over = office_claim_over(l->room, claim);
	} else if (item->released_ms > 0) {
		task->since_ms = item->released_ms;
		task->until_ms = item->only_until_ms;
	} else if (item->state == QUEUE_DELAYED) {
		task->until_ms = item->not_before_ms;
	}
	return true;
}

static size_t
rank_of(const struct mr_queue_task *task)
{
	size_t i = 0;

	while (strcmp(ranks[i].word, task->state) != 0)
		i++;
	return i;
}

/* Claimed work first, then the next to be claimed; finished work last, its newest first. */
static int
by_turn(const void *va, const void *vb)
{
	const struct mr_queue_task *a = va, *b = vb;
	size_t ra = rank_of(a), rb = rank_of(b);

	ra -= ra == RESERVED; /* reserved work has its place among ready work */
	rb -= rb == RESERVED;
	if (ra != rb)
		return ra < rb ? -1 : 1;
	if (ra >= RANK_OVER)
		return strcmp(b->id, a->id);
	if (a->priority != b->priority)
		return a->priority > b->priority ? -1 : 1;
	if (a->since_ms != b->since_ms)
		return a->since_ms < b->since_ms ? -1 : 1;
	return strcmp(a->id, b->id);
}

/* The agent of the last claim ended it, at that time. */
static void
note_end(void *ctx, const struct past_claim *past)
{
	struct mr_queue_task *task = ctx;

	(void)snprintf(task->who, sizeof(task->who), "%s", past->claim->agent);
	task->since_ms = past->ended_ms;
}

enum mr_rc
mr_queue_tasks(
    struct mr_room *room, const char *name, bool done, size_t limit, struct mr_queue_tasks *ret, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	mr_auto(roll_done) struct roll tasks = { 0 };
	struct listing_tasks l = { .room = room, .tasks = &tasks };
	unsigned states = OPEN_WORK | QUEUE_FAILED | (done ? (unsigned)QUEUE_DONE : 0);

	TRY(mr_queue_get(room, name, &queue, err));
	struct room_box box = room_box("queue", queue.name);

	l.by_priority = queue.by_priority;
	TRY(room->driver->each_claim(room, box.z, states, add_task, &l, err));
	TRY(mr_got(!tasks.failed, err));
	struct mr_queue_task *v = tasks.v;
	size_t all = tasks.n, n = 0, listed[sizeof ranks / sizeof ranks[0]] = { 0 };

	if (all > 1)
		qsort(v, all, sizeof(*v), by_turn);
	for (size_t i = 0; i < all; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		size_t rank = rank_of(&v[i]);

		if (rank > 0 && listed[rank]++ >= limit)
			continue;
		v[n] = v[i];
		if (room_fetch_work(room, queue.name, v[n].id, &msg, IGNORED) == MR_OK) {
			v[n].from = roll_str(&tasks, msg.from);
			v[n].subject = roll_str(&tasks, msg.subject);
		}
		if (rank >= RANK_OVER)
			(void)room->driver->each_past(room, box.z, v[n].id, NULL, 0, note_end, &v[n], IGNORED);
		n++;
	}
	TRY(mr_got(!tasks.failed, err));
	*ret = (struct mr_queue_tasks){ .v = v, .n = n, .more = all - n, .own = roll_take(&tasks) };
	return MR_OK;
}

/* ---- Pace ---- */

struct pacing {
	struct mr_queue_pace *pace;
	int64_t since_ms;
};

static bool
note_coming(void *ctx, const struct queue_item *item)
{
	const struct pacing *p = ctx;

	p->pace->came += id_time_ms(item->id) >= p->since_ms;
	return true;
}

static void
note_going(void *ctx, const struct past_claim *past)
{
	const struct pacing *p = ctx;

	p->pace->done += past->how == SETTLE_DONE;
	p->pace->failed += past->how == SETTLE_DEAD;
}

enum mr_rc
mr_queue_pace(struct mr_room *room, const char *name, int64_t since_ms, struct mr_queue_pace *ret, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct mr_queue_pace pace = { 0 };
	struct pacing p = { &pace, since_ms };

	TRY(mr_queue_get(room, name, &queue, err));
	struct room_box box = room_box("queue", queue.name);

	TRY(room->driver->each_claim(room, box.z, OPEN_WORK | QUEUE_DONE | QUEUE_FAILED, note_coming, &p, err));
	TRY(room->driver->each_past(room, box.z, NULL, NULL, since_ms, note_going, &p, err));
	*ret = pace;
	return MR_OK;
}

/* ---- Waiting ---- */

/* A queue is drained when nothing is ready, delayed or claimed: while a claim exists, its work may come back. The end
 * of a claim is seen only by looking; new work also raises an event. */
enum mr_rc
mr_queue_wait(struct mr_room *room, const char *name, bool drained, int64_t timeout_ms, struct mr_queue_left *ret,
    struct mr_error *err)
{
	const char *queue = box_queue(name);

	mr_auto(waiter_end) struct waiter waiter = waiter_begin(
	    room, drained ? NULL : room_box("queue", queue ? queue : name).z, timeout_ms > 0 ? timeout_ms : 0);
	do {
		TRY(mr_queue_left(room, NULL, name, ret, err));
		size_t open = ret->ready + ret->reserved;
		if (drained ? open + ret->delayed + ret->claimed == 0 : open > 0)
			return MR_OK;
	} while (waiter_pause(&waiter));
	return MR_EMPTY;
}

/* ---- Taking work ---- */

struct taking {
	struct mr_room *room;
	const struct mr_self *self;
	const char *name;
	struct claim_terms terms; /* lease_ms 0: the queue's */
	struct mr_claim claim;
	struct mr_message msg;
	struct claims unreadable; /* claimed in this try, to be put back after it */
	size_t skipped;
	char first_skipped[160]; /* why */
};

/* A sentence, or "". */
static void
say_skipped(const struct taking *t, char *ret, size_t size)
{
	ret[0] = '\0';
	if (t->skipped == 1)
		(void)snprintf(ret, size, "skipped what cannot be read: %s", t->first_skipped);
	else if (t->skipped > 1)
		(void)snprintf(
		    ret, size, "skipped %zu that cannot be read, the first is %s", t->skipped, t->first_skipped);
}

/* MR_CORRUPT: the claimed work cannot be read; take another. Broken work is put aside as failed. Work that only cannot
 * be read now stays claimed until this try is over, so that it does not come again and block the rest. */
static enum mr_rc
show_claimed(struct taking *t, const struct mr_queue *queue, const struct claim *claim, struct mr_error *err)
{
	struct mr_room *room = t->room;
	enum mr_rc rc = claim_message(room, claim, &t->msg, err);

	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc == MR_OK) {
		claim_fill(claim, &t->claim);
		t->claim.attempts = queue->attempts;
		return MR_OK;
	}
	mr_message_done(&t->msg);
	if (rc == MR_NOTFOUND) /* removed at this moment: purged, or the queue was deleted */
		return MR_CORRUPT;
	if (rc != MR_NOMEM && t->skipped++ == 0)
		(void)snprintf(t->first_skipped, sizeof(t->first_skipped), "%s (%.110s)", claim->id, err->message);
	if (rc == MR_CORRUPT || rc == MR_NOMEM || !claims_add(&t->unreadable, claim)) {
		(void)room->driver->settle(room, claim, rc == MR_CORRUPT ? SETTLE_DEAD : SETTLE_BACK, IGNORED);
		(void)office_flush(room, IGNORED);
		return rc;
	}
	return MR_CORRUPT;
}

/* One try. Reads the settings again, because a queue may be paused during the wait. */
static enum mr_rc
take_once(struct taking *t, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct claim_terms terms = t->terms;
	enum mr_rc rc = MR_CORRUPT;

	TRY(mr_queue_get(t->room, t->name, &queue, err));
	if (queue.status == MR_QUEUE_PAUSED)
		return mr_fail(err, MR_REFUSED,
		    "the queue '%s' is paused\nmail to it waits; `mailroom queue resume %s` lets it be claimed",
		    queue.name, queue.name);
	if (queue.status == MR_QUEUE_CLOSED)
		return mr_fail(err, MR_REFUSED, "the queue '%s' is closed\n`mailroom queue resume %s` opens it",
		    queue.name, queue.name);
	TRY(office_check_claimer(&queue, t->self->agent, err));
	TRY(office_not_fenced(t->room, t->self, err));
	office_queue_sweep(t->room, &queue); /* may write to senders: not from the reserve */
	mr_auto(relief_end) struct relief relief = relief_begin(t->room);
	terms.by_priority = queue.by_priority;
	terms.max_claims = queue.max_claims;
	terms.lease_ms = terms.lease_ms ? terms.lease_ms : queue.lease_ms;
	for (int broken = 0; broken < BROKEN_MAX && rc == MR_CORRUPT; broken++) {
		struct claim claim = { 0 };

		rc = t->room->driver->claim(t->room, room_box("queue", queue.name).z, NULL, &terms, &claim, err);
		if (rc == MR_OK)
			rc = show_claimed(t, &queue, &claim, err);
	}
	for (size_t i = 0; i < t->unreadable.n; i++)
		(void)t->room->driver->settle(t->room, &t->unreadable.v[i], SETTLE_BACK, IGNORED);
	if (t->unreadable.n > 0)
		(void)office_flush(t->room, IGNORED);
	claims_done(&t->unreadable);
	if (rc == MR_EMPTY)
		return mr_fail(err, MR_EMPTY, "no work is waiting in the queue '%s'", queue.name);
	if (rc == MR_BUSY)
		return mr_fail(err, MR_BUSY,
		    "%u %s live in the queue '%s': no more are allowed\n"
		    "try again with --wait; `mailroom queue show %s` shows who holds them",
		    queue.max_claims, queue.max_claims == 1 ? "claim is" : "claims are", queue.name, queue.name);
	return rc;
}

enum mr_rc
mr_queue_recv(struct mr_room *room, const struct mr_self *self, const char *name, int64_t lease_ms, int64_t wait_ms,
    struct mr_claim *ret_claim, struct mr_message *ret_msg, struct mr_error *err)
{
	struct taking t = { .room = room, .self = self };
	char local[MR_ADDRESS_MAX + 1];
	enum mr_rc rc;

	TRY(target_name(room, "queue", name, local, err));
	TRY(lease_check(lease_ms, err));
	t.name = local;
	t.terms = claim_terms_of(room, self, lease_ms);
	mr_auto(waiter_end) struct waiter waiter = waiter_begin(room, room_box("queue", local).z, wait_ms);
	do {
		*err = (struct mr_error){ 0 };
		rc = take_once(&t, err);
	} while ((rc == MR_EMPTY || rc == MR_BUSY) && waiter_pause(&waiter));
	if (rc == MR_BUSY && wait_ms != 0) { /* it waited, and the time is up for any reason */
		err->code = rc = MR_EMPTY;
		err->hint[0] = '\0';
	}
	if (rc == MR_OK) {
		say_skipped(&t, t.claim.skipped, sizeof(t.claim.skipped));
		*ret_claim = t.claim;
		*ret_msg = t.msg;
	} else if (rc == MR_EMPTY) {
		if (t.skipped > 0)
			say_skipped(&t, err->hint, sizeof(err->hint));
		*ret_claim = (struct mr_claim){ 0 };
		(void)mr_queue_left(room, self->agent, local, &ret_claim->left, IGNORED);
	}
	return rc;
}
