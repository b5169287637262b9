/* SPDX-License-Identifier: MIT */
/*
 * queue_claim.c - taking work out of a queue: one rename, so one winner (claim.c tells why that is safe).
 *
 * A claimer reads the lowest bucket of a priority that has something in it, never more than one bucket each, and keeps
 * the few smallest of what it read. It tries the very smallest first, so a single claimer sees the exact order. A
 * claimer that loses that race does not try the second, which is what all the other losers do: it goes on at a random
 * place among the next sixteen, and reads again only when the others have taken all that it remembered.
 *
 * Released work comes again by the time of its release. The agent that released it gets it only when nothing else is
 * ready; while it is reserved for one agent, nobody else gets it at all.
 *
 * A limit on live claims needs a lock: between counting and taking nobody else may take.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/claim.h"
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
	struct claim *claim; /* what the caller will get */
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
forget_candidates(struct claiming *c)
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
	forget_candidates(c);
	sys_close_fd(&c->claimed_fd);
	mr_names_done(&c->agents);
	queue_done(&c->q);
}

/* ---- Work whose time has come ---- */

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

static bool
note_due(void *ctx, const struct dir_entry *entry)
{
	struct work_name n;

	return !work_parse(QUEUE_DELAYED, str_of(entry->name), &n) || n.not_before_ms > clock_now_ms() ||
	       names_add(ctx, str_of(entry->name));
}

static enum mr_rc
release_due(struct claiming *c, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	enum mr_rc rc = dir_open(c->q.fd, "delayed", &fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	TRY(dir_each(fd, note_due, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		struct work_name n;

		if (!work_parse(QUEUE_DELAYED, str_of(names.v[i]), &n))
			continue;
		struct arrival a = { c->q.md, fd, names.v[i], &n.file };
		rc = bucket_put(&c->q, n.p, BUCKET_HIGHEST, move_in, &a, NULL, err);
		if (rc != MR_OK && rc != MR_NOTFOUND) /* not found: another claimer was faster */
			return rc;
	}
	return MR_OK;
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
		name_who(c->claim->agent, c->who);
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

/* One that another emptied and removed is empty. */
static enum mr_rc
read_bucket(struct claiming *c, const struct buckets *b, size_t i, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	c->seen = 0;
	enum mr_rc rc = bucket_open(b, i, &fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	TRY(dir_each(fd, consider, c, err));
	if (c->usable) {
		c->bucket_fd[c->p] = fd;
		fd = -1;
	} else if (c->seen == 0 && i + 1 < b->n) {
		bucket_remove(b, i);
	}
	return MR_OK;
}

/* The lowest bucket alone; if there is nothing for us in it, or far too much, all of them: the first with something for
 * us, and what is empty goes. */
static enum mr_rc
read_priority(struct claiming *c, unsigned p, struct mr_error *err)
{
	mr_auto(buckets_done) struct buckets lowest = BUCKETS_INIT, all = BUCKETS_INIT;

	c->p = p;
	c->usable = false;
	TRY(bucket_end(&c->q, p, BUCKET_LOWEST, false, &lowest, err));
	if (lowest.n == 0)
		return MR_OK;
	TRY(read_bucket(c, &lowest, 0, err));
	if (c->usable && c->seen <= CROWDED)
		return MR_OK;
	TRY(buckets_read(&c->q, p, false, &all, err));
	size_t at = 0;
	for (; at < all.n && !c->usable; at++) {
		TRY(read_bucket(c, &all, at, err));
		if (c->seen > 0 && at == 0)
			bucket_note(&c->q, &all, BUCKET_LOWEST, all.v[0]);
	}
	if (c->seen > CROWDED && (at == all.n || all.n == 1))
		bucket_rotate(&c->q, &all);
	return MR_OK;
}

/* What the claimer released itself only when there is nothing else. */
static enum mr_rc
gather(struct claiming *c, struct mr_error *err)
{
	c->own_too = c->own_skipped = false;
	do {
		c->own_too = c->own_skipped;
		forget_candidates(c);
		for (unsigned p = 0; p < QUEUE_PRIORITIES && !(c->terms->by_priority && c->n > 0); p++)
			TRY(read_priority(c, p, err));
	} while (c->n == 0 && c->own_skipped && !c->own_too);
	return MR_OK;
}

/* ---- Taking ---- */

/* MR_NOTFOUND: another was faster. */
static enum mr_rc
take(struct claiming *c, const struct candidate *want, struct mr_error *err)
{
	struct claim *claim = c->claim;
	struct work_name n;
	char name[NAME_LEN];

	if (!work_parse(QUEUE_READY, str_of(want->name), &n))
		return mr_fail(err, MR_CORRUPT, "'%s' is no name of work", want->name);
	claim->attempt = n.file.attempt + 1;
	if (!work_claimed_name(claim->token, claim->deadline_ms / 1000, claim->attempt, want->p, want->name, name))
		return mr_fail(err, MR_REFUSED,
		    "the file name '%.60s...' is too long to be claimed\nrename the file: its name may have at most 200 bytes",
		    want->name);
	TRY(commit_move(c->q.md, c->bucket_fd[want->p], want->name, c->claimed_fd, name, err));
	memcpy(claim->id, want->id, sizeof(claim->id));
	return MR_OK;
}

static enum mr_rc
take_any(struct claiming *c, struct mr_error *err)
{
	unsigned char dice = 0;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		TRY(gather(c, err));
		if (c->n == 0)
			return mr_fail(err, MR_EMPTY, "nothing is ready in queue '%s'", c->q.name);
		if (c->claim->token[0] == '\0')
			TRY(token_take(c->q.md, c->terms, c->claim, err));
		enum mr_rc rc = take(c, c->best[0], err);
		size_t others = c->n - 1;
		if (rc == MR_NOTFOUND && others > 0)
			random_bytes(&dice, sizeof(dice));
		for (size_t i = 0; i < others && rc == MR_NOTFOUND; i++)
			rc = take(c, c->best[1 + (dice % SPREAD + i) % others], err);
		if (rc != MR_NOTFOUND)
			return rc;
	}
	return mr_fail(err, MR_BUSY, "others take all work of queue '%s' first", c->q.name);
}

static enum mr_rc
check_limit(struct claiming *c, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	unsigned live = 0;

	TRY(names_in(c->claimed_fd, &names, err));
	for (size_t i = 0; i < names.n && live < c->terms->max_claims; i++) {
		struct work_name n;

		live += work_parse(QUEUE_CLAIMED, str_of(names.v[i]), &n) && !token_is_over(c->q.md, &n.file);
	}
	if (live < c->terms->max_claims)
		return MR_OK;
	return mr_fail(err, MR_BUSY,
	    "queue '%s' has %u live claims, which is its limit\ntry again when one of them is done", c->q.name, live);
}

enum mr_rc
queue_claim_next(
    struct maildir *md, const char *queue, const struct claim_terms *terms, struct claim *claim, struct mr_error *err)
{
	mr_auto(sys_close_fd) int lock_fd = -1; /* let go after everything else */
	mr_auto(claiming_done) struct claiming c = {
		.q = QUEUE_INIT, .terms = terms, .claim = claim, .claimed_fd = -1, .bucket_fd = { -1, -1, -1, -1 }
	};

	TRY(queue_open(&c.q, md, queue, err));
	TRY(queue_folder(&c.q, "claimed", &c.claimed_fd, err));
	if (terms->max_claims > 0) {
		TRY(lock_take(c.q.fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err));
		TRY(check_limit(&c, err));
	}
	TRY(release_due(&c, err));
	return take_any(&c, err);
}
