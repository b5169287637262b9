/* SPDX-License-Identifier: MIT */
/*
 * scan.c - looking through a mailbox. Never consumes. By time a scan streams from the driver; by priority the
 * headers are gone through once, ids and priorities are kept and sorted, and then each message is fetched
 * when its turn comes, so that memory grows with the number of messages and not with their size; only what fits on a
 * screen is kept and not read a second time.
 *
 * In the rooms of other programs finding one message may cost as much as going through all of them (one file with
 * everything in it, names that say nothing of an id), and nobody else holds mail there: what the scan showed is kept
 * and not fetched again. Where there are no priorities, an order by priority is one by time.
 */
#include "base/error.h"
#include "message/message.h"
#include "office/mail/handoff.h"
#include "office/office.h"

#define SCAN_TRIES 20
#define KEPT_MAX 64 /* of whose headers a copy is kept, where nothing more will be shown */

/* ---- Candidates ---- */

bool
candidates_add(struct candidates *c, const struct mr_message *msg)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 64;
		struct candidate *v = reallocarray(c->v, cap, sizeof(*v));

		if (!v) {
			c->failed = true;
			return false;
		}
		c->v = v;
		c->cap = cap;
	}
	c->v[c->n] =
	    (struct candidate){ .priority = msg->priority, .folder = msg->folder, .released_ms = msg->released_ms };
	(void)snprintf(c->v[c->n++].id, MR_ID_LEN + 1, "%s", msg->id);
	return true;
}

static int
compare_urgency(const struct candidate *a, const struct candidate *b)
{
	if (a->handoff != b->handoff)
		return a->handoff ? -1 : 1;
	return (a->priority < b->priority) - (a->priority > b->priority);
}

static int
by_priority(const void *va, const void *vb)
{
	const struct candidate *a = va, *b = vb;
	int urgency = compare_urgency(a, b);

	return urgency ? urgency : strcmp(b->id, a->id);
}

static int
by_work_order(const void *va, const void *vb)
{
	const struct candidate *a = va, *b = vb;
	int urgency = compare_urgency(a, b);

	if ((a->released_ms > 0) != (b->released_ms > 0)) /* what was released comes after everything else */
		return a->released_ms > 0 ? 1 : -1;
	if (urgency)
		return urgency;
	if (a->released_ms != b->released_ms)
		return a->released_ms < b->released_ms ? -1 : 1;
	return strcmp(a->id, b->id);
}

void
candidates_sort(struct candidates *c, enum mr_order order)
{
	if (c->n > 1)
		qsort(c->v, c->n, sizeof(*c->v), order == MR_BY_PRIORITY ? by_priority : by_work_order);
}

/* With what the scan showed of it. */
static bool
candidates_keep(struct candidates *c, const struct mr_message *msg)
{
	struct mr_message *copy = calloc(1, sizeof(*copy));
	struct mr_error ignored = { 0 };

	if (copy && message_copy(msg, copy, &ignored) == MR_OK && candidates_add(c, msg)) {
		c->v[c->n - 1].copy = copy;
		return true;
	}
	mr_message_done(copy);
	free(copy);
	c->failed = true;
	return false;
}

void
candidates_done(struct candidates *c)
{
	for (size_t i = 0; i < c->n; i++) {
		mr_message_done(c->v[i].copy);
		free(c->v[i].copy);
	}
	free(c->v);
	*c = (struct candidates){ 0 };
}

/* ---- Scanning ---- */

struct scanning {
	struct mr_room *room;
	const char *agent;
	const struct mr_scan *scan;
	struct matcher *matcher;
	mr_message_fn *fn;
	void *ctx;
	size_t shown;
	uint64_t judged;          /* which ids were shown, or refused by the filter: the sum of their hashes */
	bool again;               /* trouble was told the first time */
	bool keeps;               /* however many: what was shown once is not fetched again */
	struct candidates sorted; /* only for the orders by priority */
};

void
scan_sweep(struct mr_room *room, const char *agent)
{
	struct mr_error ignored = { 0 };

	if (ROOM_HAS(room, sweep))
		(void)room->driver->sweep(room, agent, &ignored);
}

static bool
stop_at_any(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	*(bool *)ctx = true;
	return false;
}

bool
scan_finds_names(struct mr_room *room, const char *agent, unsigned folders, bool unread_only)
{
	struct scan_request want = {
		.folders = folders, .depth = SCAN_NAMES, .unread_only = unread_only, .one_is_enough = true
	};
	struct mr_error ignored = { 0 };
	bool any = false;

	(void)office_scan(room, agent, &want, stop_at_any, &any, &ignored);
	return any;
}

/* Sums of these tell sets of ids apart without keeping them. */
static uint64_t
hash_id(const char *id)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * UINT64_C(1099511628211);
	return h ^ (h >> 29);
}

static bool
sum_names(void *ctx, const struct mr_message *msg)
{
	*(uint64_t *)ctx += hash_id(msg->id);
	return true;
}

/* Nothing was shown. Is that so, or did mail come while what was listed left (send --replace-key puts a new
 * message in the place of an old one)? "None" is said when the mailbox holds just what was judged, or what it
 * held at the last look: mail that cannot be read is never judged. */
static bool
is_certain(const struct scanning *s, const struct scan_request *want, uint64_t *last)
{
	struct scan_request names = { .folders = want->folders, .depth = SCAN_NAMES, .unread_only = want->unread_only };
	struct mr_error ignored = { 0 };
	uint64_t now = 0;

	(void)office_scan(s->room, s->agent, &names, sum_names, &now, &ignored);
	bool certain = now == s->judged || now == *last;

	*last = now;
	return certain;
}

static bool
stream_one(void *ctx, const struct mr_message *msg)
{
	struct scanning *s = ctx;

	s->judged += hash_id(msg->id);
	if (!matcher_fits(s->matcher, msg))
		return true;
	s->shown++;
	return s->fn(s->ctx, msg) && (s->scan->limit == 0 || s->shown < s->scan->limit);
}

static bool
collect_one(void *ctx, const struct mr_message *msg)
{
	struct scanning *s = ctx;

	if (!matcher_fits(s->matcher, msg)) {
		s->judged += hash_id(msg->id);
		return true;
	}
	bool keep = s->keeps || (!s->scan->bodies && !msg->body && s->sorted.n < KEPT_MAX);

	if (!(keep ? candidates_keep(&s->sorted, msg) : candidates_add(&s->sorted, msg)))
		return false;
	s->sorted.v[s->sorted.n - 1].handoff = handoff_is_own(msg, s->agent);
	return true;
}

static void
pass_trouble(void *ctx, const char *path, const struct mr_error *trouble)
{
	struct scanning *s = ctx;

	if (s->scan->trouble && !s->again)
		s->scan->trouble(s->ctx, path, trouble);
}

/* MR_NOTFOUND: moved on since, no longer what was asked for. */
static enum mr_rc
turn_of(struct scanning *s, struct candidate *c, struct mr_message *ret, struct mr_error *err)
{
	enum scan_depth depth = s->scan->bodies ? SCAN_BODIES : SCAN_HEADERS;

	if (!c->copy)
		return s->room->driver->fetch(s->room, s->agent, c->id, c->folder, depth, ret, err);
	*ret = *c->copy;
	*c->copy = (struct mr_message){ 0 };
	return MR_OK;
}

static enum mr_rc
show_sorted(struct scanning *s, struct mr_error *err)
{
	if (s->sorted.failed)
		return mr_nomem(err);
	candidates_sort(&s->sorted, s->scan->order);
	for (size_t i = 0; i < s->sorted.n && (s->scan->limit == 0 || s->shown < s->scan->limit); i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct candidate *c = &s->sorted.v[i];
		struct mr_error trouble = { 0 };
		enum mr_rc rc = turn_of(s, c, &msg, &trouble);

		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc == MR_NOTFOUND)
			continue;
		if (rc != MR_OK) {
			pass_trouble(s, c->id, &trouble);
			continue;
		}
		s->shown++;
		if (!s->fn(s->ctx, &msg))
			break;
	}
	return MR_OK;
}

static bool
shows_newest_first(const struct mr_scan *scan)
{
	return scan->order == MR_NEWEST_FIRST || scan->order == MR_BY_PRIORITY;
}

static bool
is_by_time(const struct mr_room *room, const struct mr_scan *scan)
{
	return scan->order == MR_OLDEST_FIRST || scan->order == MR_NEWEST_FIRST ||
	       !(room->driver->abilities & ROOM_PRIORITIES);
}

static enum scan_depth
depth_of(const struct matcher *m, const struct mr_scan *scan, bool at_once)
{
	if (m->depth == SCAN_BODIES || (scan->bodies && at_once))
		return SCAN_BODIES;
	return SCAN_HEADERS;
}

enum mr_rc
mr_scan(struct mr_room *room, const char *agent, const struct mr_scan *scan, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(matcher_done) struct matcher matcher = { 0 };
	struct scanning s = { .room = room, .agent = agent, .scan = scan, .matcher = &matcher, .fn = fn, .ctx = ctx };
	bool streams = is_by_time(room, scan);
	unsigned folders = scan->filter.folders ? scan->filter.folders : MR_INBOX;
	enum mr_rc rc = mr_room_folders(room, folders, err);

	if (rc == MR_OK)
		rc = matcher_init(&matcher, room, agent, &scan->filter, err);
	if (rc != MR_OK)
		return rc;
	if (folders & MR_INBOX)
		scan_sweep(room, agent);
	s.keeps = !(room->driver->abilities & ROOM_HOLDS);
	struct scan_request want = {
		.folders = folders,
		.depth = depth_of(&matcher, scan, streams || s.keeps),
		.newest_first = streams && shows_newest_first(scan),
		.unread_only = scan->filter.unread,
		.trouble = pass_trouble,
		.trouble_ctx = &s,
	};

	uint64_t last = 0;

	for (int tries = 0; tries < SCAN_TRIES; tries++) {
		s.judged = 0;
		s.again = tries > 0;
		rc = office_scan(room, agent, &want, streams ? stream_one : collect_one, &s, err);
		if (rc == MR_OK && !streams)
			rc = show_sorted(&s, err);
		candidates_done(&s.sorted);
		if (rc != MR_OK || s.shown > 0 || is_certain(&s, &want, &last))
			break;
	}
	return rc;
}
