/* SPDX-License-Identifier: MIT */
/*
 * queue_claim.c - taking work out of a queue: one rename, so one winner (hold.c tells why that is safe).
 *
 * A claimer reads the lowest bucket of a priority that has something in it, never more than one bucket each, and keeps
 * the few smallest of what it read. It tries the very smallest first, so a single claimer sees the exact order. Who
 * loses that race does not try the second, which is what all the other losers do: it goes on at a random place
 * among the next sixteen, and reads again only when the others have taken all that it remembered.
 *
 * Released work comes again by the time of its release. Who released it gets it only when nothing else is ready; while
 * it is reserved for one agent, nobody else gets it at all.
 *
 * A limit on live claims needs a lock: between counting and taking nobody else may take.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/holding.h"
#include "rooms/maildir/queue.h"
#include <stdio.h>

#define KEPT 32u     /* of what was read */
#define SPREAD 16u   /* losers start somewhere among as many */
#define CROWDED 512u /* a highest bucket that its senders should have followed by another */
#define ROUNDS_MAX 10000
#define LOCK_WAIT_MS 10000

struct candidate {
	char id[MR_ID_LEN + 1];
	int64_t at_ms; /* since when it waits */
	unsigned p;
	char name[NAME_LEN]; /* in its bucket */
};

struct claiming {
	struct queue q;
	const struct claim_terms *terms;
	struct hold hold; /* what the caller will get */
	bool has_token;
	int claimed_fd;
	int bucket_fd[QUEUE_PRIORITIES]; /* of the candidates */
	unsigned p;                      /* being read */
	size_t seen;                     /* entries of that bucket */
	bool usable;                     /* one of them is a candidate */
	bool own_too;                    /* also what this claimer released itself */
	bool own_skipped;
	struct mr_names agents;       /* of the room, once work is met that is for one of them alone */
	char who[NAME_WHO_LEN + 1];   /* the claimer, in names of released work; "": not needed so far */
	struct candidate pool[KEPT];  /* unordered: they are too large to be moved about */
	struct candidate *best[KEPT]; /* in order */
	size_t n;
};

static void
close_buckets(struct claiming *c)
{
	for (unsigned p = 0; p < QUEUE_PRIORITIES; p++) {
		sys_close_fd(&c->bucket_fd[p]);
		c->bucket_fd[p] = -1;
	}
	c->n = 0;
}

static void
claiming_done(struct claiming *c)
{
	close_buckets(c);
	sys_close_fd(&c->claimed_fd);
	mr_names_done(&c->agents);
	queue_done(&c->q);
}

/* ---- Work whose time has come ---- */

struct due {
	int64_t now_ms;
	struct mr_names names;
	bool failed;
};

static bool
note_due(void *ctx, const struct dir_entry *entry)
{
	struct due *due = ctx;
	struct work_name n;

	if (work_parse(QUEUE_DELAYED, str_of(entry->name), &n) && n.not_before_ms <= due->now_ms)
		due->failed = !names_add(&due->names, str_of(entry->name));
	return !due->failed;
}

struct arrival {
	struct maildir *md;
	int from_fd;
	const char *name;
	const struct file_name *parts;
};

static enum mr_rc
move_in(void *ctx, int bucket_fd, struct mr_error *err)
{
	const struct arrival *a = ctx;

	return mark_rename(a->md, a->from_fd, a->name, bucket_fd, a->parts, a->parts->attempt, 0, false, err);
}

static enum mr_rc
release_due(struct claiming *c, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct due due = { .now_ms = clock_now_ms() };

	enum mr_rc rc = dir_open(c->q.fd, "delayed", &fd, err);
	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc == MR_OK)
		rc = dir_each(fd, note_due, &due, err);
	if (rc == MR_OK && due.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; i < due.names.n && rc == MR_OK; i++) {
		struct work_name n;
		if (!work_parse(QUEUE_DELAYED, str_of(due.names.v[i]), &n))
			continue;
		struct arrival a = { c->q.md, fd, due.names.v[i], &n.file };
		rc = bucket_put(&c->q, n.p, BUCKET_HIGHEST, move_in, &a, NULL, err);
		if (rc == MR_NOTFOUND) /* another claimer was faster */
			rc = MR_OK;
	}
	mr_names_done(&due.names);
	return rc;
}

/* ---- Choosing ---- */

/* By age alone: where priorities count, only the most urgent that there is was read. */
static bool
comes_before(int64_t at_ms, const char *id, const struct candidate *other)
{
	return at_ms != other->at_ms ? at_ms < other->at_ms : memcmp(id, other->id, MR_ID_LEN) < 0;
}

/* Is released work for this claimer now? Others may still be meant. */
static bool
is_for_us(struct claiming *c, const struct released *r)
{
	char agent[MR_ADDRESS_MAX + 1];

	if (c->who[0] == '\0')
		name_who(c->terms->claimer, c->who);
	if (strcmp(r->only_for, c->who) != 0 && queue_only_for(c->q.md, &c->agents, r, agent))
		return false;
	if (c->own_too || strcmp(r->by, c->who) != 0)
		return true;
	c->own_skipped = true;
	return false;
}

static bool
consider(void *ctx, const struct dir_entry *entry)
{
	struct claiming *c = ctx;
	struct candidate *new = c->n < KEPT ? &c->pool[c->n] : c->best[KEPT - 1];
	struct released r;
	struct work_name n;

	if (!work_parse(QUEUE_READY, str_of(entry->name), &n))
		return true;
	c->seen++;
	bool released = name_released(&n.file, &r);
	if (released && !is_for_us(c, &r))
		return true;
	c->usable = true;
	int64_t at_ms = released ? r.at_ms : id_time_ms(n.file.id);
	if (c->n == KEPT && !comes_before(at_ms, n.file.id, new))
		return true;
	new->p = c->p;
	new->at_ms = at_ms;
	memcpy(new->id, n.file.id, sizeof(new->id));
	(void)snprintf(new->name, sizeof(new->name), "%s", entry->name);
	size_t at = c->n < KEPT ? c->n++ : KEPT - 1;
	for (; at > 0 && comes_before(at_ms, new->id, c->best[at - 1]); at--)
		c->best[at] = c->best[at - 1];
	c->best[at] = new;
	return true;
}

/* MR_NOTFOUND: emptied and removed by another. */
static enum mr_rc
read_bucket(struct claiming *c, const struct buckets *b, size_t i, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	c->seen = 0;
	enum mr_rc rc = bucket_open(b, i, &fd, err);
	if (rc == MR_OK)
		rc = dir_each(fd, consider, c, err);
	if (rc == MR_OK && c->usable) {
		c->bucket_fd[c->p] = fd;
		fd = -1;
	}
	return rc;
}

/* From the lowest on, the first with something for us in it; what is empty goes. */
static enum mr_rc
read_buckets(struct claiming *c, struct mr_error *err)
{
	mr_auto(buckets_done) struct buckets b = BUCKETS_INIT;

	enum mr_rc rc = buckets_read(&c->q, c->p, false, &b, err);
	for (size_t i = 0; i < b.n && rc == MR_OK && !c->usable; i++) {
		rc = read_bucket(c, &b, i, err);
		if (rc == MR_OK && c->seen == 0 && i + 1 < b.n)
			bucket_remove(&b, i);
		if (rc == MR_NOTFOUND)
			rc = MR_OK;
		if (c->seen > 0 && i == 0)
			bucket_note(&c->q, &b, BUCKET_LOWEST, b.v[0]);
		if (c->seen > CROWDED && i + 1 == b.n)
			bucket_rotate(&c->q, &b);
	}
	return rc;
}

static enum mr_rc
read_priority(struct claiming *c, unsigned p, struct mr_error *err)
{
	mr_auto(buckets_done) struct buckets lowest = BUCKETS_INIT;

	c->p = p;
	c->seen = 0;
	c->usable = false;
	enum mr_rc rc = bucket_end(&c->q, p, BUCKET_LOWEST, false, &lowest, err);
	if (rc != MR_OK || lowest.n == 0)
		return rc;
	rc = read_bucket(c, &lowest, 0, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	return c->usable && c->seen <= CROWDED ? MR_OK : read_buckets(c, err);
}

static enum mr_rc
gather_once(struct claiming *c, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	close_buckets(c);
	for (unsigned p = 0; p < QUEUE_PRIORITIES && rc == MR_OK; p++) {
		rc = read_priority(c, p, err);
		if (c->terms->by_priority && c->n > 0)
			break;
	}
	return rc;
}

static enum mr_rc
gather(struct claiming *c, struct mr_error *err)
{
	c->own_too = c->own_skipped = false;
	enum mr_rc rc = gather_once(c, err);
	if (rc != MR_OK || c->n > 0 || !c->own_skipped)
		return rc;
	c->own_too = true;
	return gather_once(c, err);
}

/* ---- Taking ---- */

static enum mr_rc
take_token(struct claiming *c, struct mr_error *err)
{
	const struct hold_terms *terms = &c->terms->hold;
	int64_t lease_ms = hold_clamp_lease(terms->lease_ms);

	if (c->has_token)
		return MR_OK;
	enum mr_rc rc =
	    terms->kind == HOLD_PROCESS
		? token_for_process(c->q.md, c->terms->claimer, terms, c->hold.token, err)
		: token_for_lease(c->q.md, c->terms->claimer, c->q.name, terms, lease_ms, c->hold.token, err);
	if (rc != MR_OK)
		return rc;
	c->hold.deadline_ms = terms->kind == HOLD_PROCESS ? 0 : hold_deadline_s(lease_ms) * 1000;
	c->hold.since_ms = clock_now_ms();
	c->has_token = true;
	return MR_OK;
}

/* MR_NOTFOUND: another was faster. */
static enum mr_rc
take(struct claiming *c, const struct candidate *want, struct mr_error *err)
{
	struct work_name n;
	char name[NAME_LEN];

	if (!work_parse(QUEUE_READY, str_of(want->name), &n))
		return mr_fail(err, MR_CORRUPT, "'%s' is no name of work", want->name);
	c->hold.attempt = n.file.attempt + 1;
	if (!work_claimed_name(c->hold.token, c->hold.deadline_ms / 1000, c->hold.attempt, want->p, want->name, name))
		return mr_fail(err, MR_REFUSED,
		    "the file name '%.60s...' is too long to be claimed\nrename the file: its name may have at most 200 bytes",
		    want->name);
	enum mr_rc rc = commit_move(c->q.md, c->bucket_fd[want->p], want->name, c->claimed_fd, name, err);
	if (rc == MR_OK)
		memcpy(c->hold.id, want->id, sizeof(c->hold.id));
	return rc;
}

static enum mr_rc
take_any(struct claiming *c, struct mr_error *err)
{
	unsigned char dice = 0;

	enum mr_rc rc = take(c, c->best[0], err);
	if (rc != MR_NOTFOUND || c->n < 2)
		return rc;
	random_bytes(&dice, sizeof(dice));
	size_t others = c->n - 1;
	size_t start = dice % (others < SPREAD ? others : SPREAD);
	for (size_t i = 0; i < others && rc == MR_NOTFOUND; i++)
		rc = take(c, c->best[1 + (start + i) % others], err);
	return rc;
}

static enum mr_rc
claim(struct claiming *c, struct mr_error *err)
{
	for (int round = 0; round < ROUNDS_MAX; round++) {
		enum mr_rc rc = gather(c, err);
		if (rc == MR_OK && c->n == 0)
			return mr_fail(err, MR_EMPTY, "nothing is ready in queue '%s'", c->q.name);
		if (rc == MR_OK)
			rc = take_token(c, err);
		if (rc == MR_OK)
			rc = take_any(c, err);
		if (rc != MR_NOTFOUND)
			return rc;
	}
	return mr_fail(err, MR_BUSY, "others take all work of queue '%s' first", c->q.name);
}

/* ---- A limit on live claims ---- */

struct live {
	struct mr_names names;
	bool failed;
};

static bool
note_claim(void *ctx, const struct dir_entry *entry)
{
	struct live *live = ctx;

	live->failed = !names_add(&live->names, str_of(entry->name));
	return !live->failed;
}

static enum mr_rc
check_limit(struct claiming *c, struct mr_error *err)
{
	struct live live = { 0 };
	unsigned count = 0;

	enum mr_rc rc = dir_each(c->claimed_fd, note_claim, &live, err);
	if (rc == MR_OK && live.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; i < live.names.n && rc == MR_OK && count < c->terms->max_claims; i++) {
		struct work_name n;
		count += work_parse(QUEUE_CLAIMED, str_of(live.names.v[i]), &n) && !token_is_over(c->q.md, &n.file);
	}
	mr_names_done(&live.names);
	if (rc == MR_OK && count >= c->terms->max_claims)
		return mr_fail(err, MR_BUSY,
		    "queue '%s' has %u live claims, which is its limit\ntry again when one of them is done", c->q.name,
		    count);
	return rc;
}

enum mr_rc
maildir_queue_claim(
    struct mr_room *room, const char *queue, const struct claim_terms *terms, struct hold *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int lock_fd = -1; /* let go after everything else */
	mr_auto(claiming_done) struct claiming c = {
		.q = QUEUE_INIT, .terms = terms, .claimed_fd = -1, .bucket_fd = { -1, -1, -1, -1 }
	};

	(void)snprintf(c.hold.agent, sizeof(c.hold.agent), "%s", terms->claimer);
	(void)snprintf(c.hold.queue, sizeof(c.hold.queue), "%s", queue);
	c.hold.kind = terms->hold.kind;
	c.hold.life = terms->hold.life;
	enum mr_rc rc = queue_open(&c.q, maildir_of(room), queue, err);
	if (rc == MR_OK)
		rc = queue_folder(&c.q, "claimed", &c.claimed_fd, err);
	if (rc == MR_OK && terms->max_claims > 0) {
		rc = lock_take(c.q.fd, ".lock", c.q.md->file_mode, LOCK_WAIT_MS, &lock_fd, err);
		if (rc == MR_OK)
			rc = check_limit(&c, err);
	}
	if (rc == MR_OK)
		rc = release_due(&c, err);
	if (rc == MR_OK)
		rc = claim(&c, err);
	if (rc == MR_OK)
		*ret = c.hold;
	else if (c.has_token && terms->hold.kind == HOLD_LEASE)
		token_drop(c.q.md, c.hold.token);
	return rc;
}
