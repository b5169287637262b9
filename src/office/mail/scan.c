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
#include "message/message.h"
#include "message/type.h"
#include "office/mail/index.h"
#include "office/types/types.h"

#define SCAN_TRIES 20
#define LOOKED_EVERY 1000
#define KEPT_MAX 64 /* of whose headers a copy is kept, where nothing more will be shown */

/* ---- Candidates ---- */

bool
candidates_add(struct candidates *c, const struct mr_message *msg)
{
	if (!array_grow(&c->v, c->n, &c->cap, sizeof(*c->v))) {
		c->failed = true;
		return false;
	}
	c->v[c->n] =
	    (struct candidate){ .priority = msg->priority, .folder = msg->folder, .released_ms = msg->released_ms };
	(void)snprintf(c->v[c->n++].id, MR_ID_LEN + 1, "%s", msg->id);
	return true;
}

static int
by_urgency(const struct candidate *a, const struct candidate *b)
{
	if (a->handoff != b->handoff)
		return a->handoff ? -1 : 1;
	return (a->priority < b->priority) - (a->priority > b->priority);
}

static int
by_priority(const void *va, const void *vb)
{
	const struct candidate *a = va, *b = vb;
	int urgency = by_urgency(a, b);

	return urgency ? urgency : strcmp(b->id, a->id);
}

static int
by_work_order(const void *va, const void *vb)
{
	const struct candidate *a = va, *b = vb;
	int urgency = by_urgency(a, b);

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

/* ---- Small questions ---- */

void
scan_sweep(struct mr_room *room, const char *agent)
{
	(void)room->driver->sweep(room, agent, IGNORED);
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
	bool any = false;

	(void)office_scan(room, agent, &want, stop_at_any, &any, IGNORED);
	return any;
}

/* Control messages, by which programs steer each other, are no mail: they wait for a patrol and are never shown to an
 * agent as text. One of them that no program can use is shown, for it would be lost otherwise. */
bool
mr_is_control(struct mr_room *room, const char *agent, const struct mr_message *msg, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message whole = { 0 };
	struct type_values values = { 0 };
	struct mr_error broken = { 0 };

	*err = (struct mr_error){ 0 };
	/* The types are files, and reading them all costs more than looking at a mailbox: most mail has no type. */
	if (!*msg->type && type_word(str_of(msg->subject)).len == 0 &&
	    !(msg->body && control_is((struct mr_str){ msg->body, msg->body_len })))
		return false;
	const struct type_def *def = types_of(room, msg);

	if (!def || !def->routed)
		return false;
	if (!msg->body) {
		if (room->driver->fetch(room, agent, msg->id, msg->folder, SCAN_BODIES, &whole, IGNORED) != MR_OK)
			return true; /* gone meanwhile, or nobody can read it: that is told elsewhere */
		msg = &whole;
	}
	enum mr_rc rc = types_usable(room, agent, msg, &values, &broken);

	type_values_done(&values);
	if (rc == MR_OK)
		return true;
	*err = broken;
	(void)mr_wrap(err, "type '%s'", def->name);
	return false;
}

struct counting {
	struct mr_room *room;
	const char *agent;
	size_t n;
};

static bool
count_mail(void *ctx, const struct mr_message *msg)
{
	struct counting *c = ctx;

	c->n += !(msg->flags & MR_SEEN) && !mr_is_control(c->room, c->agent, msg, IGNORED);
	return true;
}

enum mr_rc
mr_check_all(struct mr_room *room, const char *agent, mr_trouble_fn *trouble, void *ctx, size_t *ret_unread,
    struct mr_error *err)
{
	struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true, .trouble = trouble, .trouble_ctx = ctx
	};
	struct counting c = { .room = room, .agent = agent };

	scan_sweep(room, agent);
	TRY(office_scan(room, agent, &want, count_mail, &c, err));
	*ret_unread = c.n;
	return MR_OK;
}

enum mr_rc
mr_check(struct mr_room *room, const char *agent, size_t *ret_unread, struct mr_error *err)
{
	return mr_check_all(room, agent, NULL, NULL, ret_unread, err);
}

/* ---- Scanning ---- */

struct scanning {
	struct mr_room *room;
	const char *agent;
	const struct mr_scan *scan;
	struct matcher matcher;
	mr_message_fn *fn;
	void *ctx;
	size_t shown, looked;
	uint64_t judged;          /* which ids were shown, or refused by the filter: the sum of their hashes */
	bool again;               /* trouble was told the first time */
	struct mr_names told;     /* ids that an index found */
	bool keeps;               /* however many: what was shown once is not fetched again */
	struct candidates sorted; /* only for the orders by priority */
};

static void
scanning_done(struct scanning *s)
{
	candidates_done(&s->sorted);
	mr_names_done(&s->told);
	matcher_done(&s->matcher);
}

static bool
sum_names(void *ctx, const struct mr_message *msg)
{
	*(uint64_t *)ctx += hash_bytes(str_of(msg->id));
	return true;
}

/* Nothing was shown. Is that so, or did mail come while what was listed left (send --replace-key puts a new
 * message in the place of an old one)? "None" is said when the mailbox holds just what was judged, or what it
 * held at the last look: mail that cannot be read is never judged. */
static bool
is_certain(const struct scanning *s, const struct scan_request *want, uint64_t *last)
{
	struct scan_request names = { .folders = want->folders, .depth = SCAN_NAMES, .unread_only = want->unread_only };
	uint64_t now = 0;

	(void)office_scan(s->room, s->agent, &names, sum_names, &now, IGNORED);
	bool certain = now == s->judged || now == *last;

	*last = now;
	return certain;
}

static bool
wants_more(const struct scanning *s)
{
	return s->scan->limit == 0 || s->shown < s->scan->limit;
}

/* What the index found. It is remembered, for the index may turn out to be torn in the middle. */
static bool
tell_indexed(void *ctx, const struct mr_message *msg)
{
	struct scanning *s = ctx;

	s->shown++;
	return names_add(&s->told, str_of(msg->id)) && s->fn(s->ctx, msg) && wants_more(s);
}

static bool
stream_one(void *ctx, const struct mr_message *msg)
{
	struct scanning *s = ctx;

	(void)sum_names(&s->judged, msg);
	if (++s->looked % LOOKED_EVERY == 0 && s->scan->looked)
		s->scan->looked(s->ctx, s->looked);
	if (!matcher_fits(&s->matcher, msg) || names_has(&s->told, msg->id))
		return true;
	s->shown++;
	return s->fn(s->ctx, msg) && wants_more(s);
}

static bool
collect_one(void *ctx, const struct mr_message *msg)
{
	struct scanning *s = ctx;

	if (!matcher_fits(&s->matcher, msg))
		return sum_names(&s->judged, msg);
	if (!candidates_add(&s->sorted, msg))
		return false;
	struct candidate *c = &s->sorted.v[s->sorted.n - 1];

	c->handoff = successor_is_own(msg, s->agent);
	if (!s->keeps && (s->scan->bodies || msg->body || s->sorted.n > KEPT_MAX))
		return true;
	c->copy = calloc(1, sizeof(*c->copy));
	s->sorted.failed |= !c->copy || message_copy(msg, c->copy, IGNORED) != MR_OK;
	return !s->sorted.failed;
}

static void
pass_trouble(void *ctx, const char *path, const struct mr_error *trouble)
{
	struct scanning *s = ctx;

	if (s->scan->trouble && !s->again)
		s->scan->trouble(s->ctx, path, trouble);
}

static enum mr_rc
show_sorted(struct scanning *s, struct mr_error *err)
{
	enum scan_depth depth = s->scan->bodies ? SCAN_BODIES : SCAN_HEADERS;

	if (s->sorted.failed)
		return mr_nomem(err);
	candidates_sort(&s->sorted, s->scan->order);
	for (size_t i = 0; i < s->sorted.n && wants_more(s); i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct candidate *c = &s->sorted.v[i];
		struct mr_error trouble = { 0 };
		enum mr_rc rc = MR_OK;

		if (c->copy) {
			msg = *c->copy;
			*c->copy = (struct mr_message){ 0 };
		} else {
			rc = s->room->driver->fetch(s->room, s->agent, c->id, c->folder, depth, &msg, &trouble);
		}
		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc == MR_NOTFOUND) /* moved on since, no longer what was asked for */
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

enum mr_rc
mr_scan(struct mr_room *room, const char *agent, const struct mr_scan *scan, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(scanning_done) struct scanning s = { .room = room, .agent = agent, .scan = scan, .fn = fn, .ctx = ctx };
	unsigned folders = scan->filter.folders ? scan->filter.folders : MR_INBOX, abilities = room->driver->abilities;
	bool newest = scan->order == MR_NEWEST_FIRST || scan->order == MR_BY_PRIORITY;
	bool streams =
	    scan->order == MR_OLDEST_FIRST || scan->order == MR_NEWEST_FIRST || !(abilities & ROOM_PRIORITIES);
	uint64_t last = 0;
	enum mr_rc rc = MR_UNSUPPORTED;

	TRY(mr_room_folders(room, folders, err));
	TRY(matcher_init(&s.matcher, room, agent, &scan->filter, err));
	if (folders & MR_INBOX)
		scan_sweep(room, agent);
	s.keeps = !(abilities & ROOM_HOLDS);
	bool bodies = s.matcher.depth == SCAN_BODIES || (scan->bodies && (streams || s.keeps));
	struct scan_request want = {
		.folders = folders,
		.depth = bodies ? SCAN_BODIES : SCAN_HEADERS,
		.order = streams && newest ? SCAN_NEWEST : SCAN_OLDEST,
		.unread_only = scan->filter.unread,
		.since_ms = s.matcher.since_ms,
		.before_ms =
		    s.matcher.before_ms ? s.matcher.before_ms + 1000 : 0, /* dates are whole seconds, cut off */
		.trouble = pass_trouble,
		.trouble_ctx = &s,
	};
	struct index_scan by_index = { .agent = agent,
		.matcher = &s.matcher,
		.folders = folders,
		.depth = want.depth,
		.newest_first = newest,
		.fn = tell_indexed,
		.trouble = pass_trouble,
		.ctx = &s };

	if (scan->order == MR_NEWEST_FIRST || scan->order == MR_OLDEST_FIRST)
		rc = index_scan(room, &by_index, err);
	if (rc != MR_UNSUPPORTED)
		return rc;
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
