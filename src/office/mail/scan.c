/* SPDX-License-Identifier: MIT */
/*
 * scan.c - reading a mailbox; never consumes. By time a scan streams from the driver. By priority the names are listed
 * in their order, and each message is opened in its turn, some of them together: messages that an earlier version
 * delivered have no priority in their names and find their place among those. Mail whose name says that it must be
 * looked into is opened first.
 *
 * In rooms of other programs finding one message may cost as much as reading all of them (one file with everything in
 * it, names without ids), and no other command holds mail there: the scanned messages are kept and not fetched again.
 * Without priorities, an order by priority is one by time.
 */
#include "base/error.h"
#include "message/message.h"
#include "message/type.h"
#include "office/mail/index.h"
#include "office/types/types.h"

#define SCAN_TRIES 20
#define LOOKED_EVERY 1000

/* ---- Candidates ---- */

bool
candidates_add(struct candidates *c, const struct mr_message *msg)
{
	if (!array_grow(&c->v, c->n, &c->cap, sizeof(*c->v))) {
		c->failed = true;
		return false;
	}
	c->v[c->n] = (struct candidate){
		.priority = msg->priority, .folder = msg->folder, .released_ms = msg->released_ms, .look = msg->look
	};
	memcpy(c->v[c->n++].id, msg->id, sizeof(msg->id));
	return true;
}

enum mr_rc
candidate_open(struct mr_room *room, const char *agent, struct candidate *c, enum scan_depth depth, bool unread_only,
    struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	if (c->copy)
		return MR_OK;
	TRY(room->driver->fetch(room, agent, c->id, c->folder, depth, &msg, err));
	if (unread_only && (msg.flags & MR_SEEN))
		return mr_fail(err, MR_NOTFOUND, "'%s' was read meanwhile", c->id);
	c->copy = malloc(sizeof *c->copy);
	TRY(mr_got(c->copy, err));
	*c->copy = msg;
	msg = (struct mr_message){ 0 };
	c->priority = c->copy->priority;
	c->handoff = successor_is_own(c->copy, agent);
	return MR_OK;
}

void
candidate_close(struct candidate *c)
{
	if (!c->copy)
		return;
	mr_message_done(c->copy);
	free(c->copy);
	c->copy = NULL;
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

	if ((a->released_ms > 0) != (b->released_ms > 0)) /* released work comes after everything else */
		return a->released_ms > 0 ? 1 : -1;
	if (urgency)
		return urgency;
	if (a->released_ms != b->released_ms)
		return a->released_ms < b->released_ms ? -1 : 1;
	return strcmp(a->id, b->id);
}

void
candidates_sort(struct candidate *v, size_t n, enum mr_order order)
{
	if (n > 1)
		qsort(v, n, sizeof(*v), order == MR_BY_PRIORITY ? by_priority : by_work_order);
}

void
candidates_done(struct candidates *c)
{
	for (size_t i = 0; i < c->n; i++)
		candidate_close(&c->v[i]);
	free(c->v);
	*c = (struct candidates){ 0 };
}

/* ---- Small questions ---- */

void
scan_sweep(struct mr_room *room, const char *agent)
{
	(void)room->driver->sweep(room, agent, IGNORED);
}

/* Control messages, by which programs steer each other, are not mail: they wait for a patrol and are never shown to an
 * agent as text. One that no program can use is shown, because it would be lost otherwise. */
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
			return true; /* gone meanwhile or unreadable: that is reported elsewhere */
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

static bool
note_look(void *ctx, const struct mr_message *msg)
{
	return !msg->look || candidates_add(ctx, msg);
}

/* Names tell how many there are, and which may be control messages. A few are opened all the same, because only then it
 * is known that they are readable. */
enum mr_rc
mr_check(struct mr_room *room, const char *agent, mr_trouble_fn *trouble, void *ctx, size_t *ret_unread,
    struct mr_error *err)
{
	mr_auto(candidates_done) struct candidates looks = { 0 };
	struct counting c = { .room = room, .agent = agent };
	size_t total = 0;
	struct scan_request want = { .folders = MR_INBOX,
		.unread_only = true,
		.order = SCAN_URGENCY,
		.most = 1,
		.glance = !(room->driver->abilities & ROOM_NAMES),
		.ret_total = &total,
		.trouble = trouble,
		.trouble_ctx = ctx };

	scan_sweep(room, agent);
	if (room->driver->abilities & ROOM_NAMES)
		TRY(office_scan(room, agent, &want, note_look, &looks, err));
	TRY(mr_got(!looks.failed, err));
	if (total <= LOOK_MAX) {
		want.depth = SCAN_HEADERS;
		want.order = SCAN_OLDEST;
		want.most = 0;
		want.ret_total = NULL;
		TRY(office_scan(room, agent, &want, count_mail, &c, err));
		total = c.n;
	}
	for (size_t i = 0; i < looks.n && total > LOOK_MAX; i++) {
		struct mr_error why = { 0 };
		enum mr_rc rc = candidate_open(room, agent, &looks.v[i], SCAN_HEADERS, true, &why);

		if (rc != MR_OK || mr_is_control(room, agent, looks.v[i].copy, IGNORED))
			total--;
		if (rc != MR_OK && rc != MR_NOTFOUND && trouble)
			trouble(ctx, looks.v[i].id, &why);
		candidate_close(&looks.v[i]);
	}
	*ret_unread = total;
	return MR_OK;
}

/* ---- Scanning ---- */

struct scanning {
	struct mr_room *room;
	const char *agent;
	const struct mr_scan *scan;
	struct matcher matcher;
	mr_message_fn *fn;
	void *ctx;
	size_t shown, limit; /* limit 0: all */
	size_t looked;
	size_t total;             /* as names tell it */
	bool counted;             /* the caller wants that number */
	bool may_count;           /* or may get it from a driver without names before its first message */
	uint64_t judged;          /* ids that were shown or refused by the filter: the sum of their hashes */
	bool again;               /* trouble was reported in the first pass */
	struct mr_names told;     /* ids that the index found */
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

/* Nothing was shown. Is the mailbox empty, or did mail come while listed mail left (send --replace-key delivers a new
 * message, then retires the old one)? "None" is certain if the mailbox holds exactly the judged messages, or those of
 * the last look: unreadable mail is never judged. */
static bool
is_certain(const struct scanning *s, const struct scan_request *want, uint64_t *last)
{
	struct scan_request names = { .folders = want->folders,
		.depth = SCAN_NAMES,
		.unread_only = want->unread_only,
		.since_ms = want->since_ms,
		.before_ms = want->before_ms };
	uint64_t now = 0;

	(void)office_scan(s->room, s->agent, &names, sum_names, &now, IGNORED);
	bool certain = now == s->judged || now == *last;

	*last = now;
	return certain;
}

static bool
wants_more(const struct scanning *s)
{
	return s->limit == 0 || s->shown < s->limit;
}

/* Shows a message from the index and remembers it, because the index may turn out to be damaged in the middle. */
static bool
tell_indexed(void *ctx, const struct mr_message *msg)
{
	struct scanning *s = ctx;

	s->shown++;
	return names_add(&s->told, str_of(msg->id)) && s->fn(s->ctx, msg) && wants_more(s);
}

/* The caller shows no more than fit on its screen, and counts the rest. */
static void
tell_total(struct scanning *s)
{
	const struct mr_scan *scan = s->scan;

	*scan->ret_total = scan->limit && scan->limit < s->total ? scan->limit : s->total;
	if (!scan->limit || scan->screen < scan->limit)
		s->limit = scan->screen;
}

static bool
stream_one(void *ctx, const struct mr_message *msg)
{
	struct scanning *s = ctx;

	if (s->may_count && s->looked == 0 && s->total > 0)
		tell_total(s);
	(void)sum_names(&s->judged, msg);
	if (++s->looked % LOOKED_EVERY == 0 && s->scan->looked)
		s->scan->looked(s->ctx, s->looked);
	if (!matcher_fits(&s->matcher, msg) || names_has(&s->told, msg->id))
		return true;
	s->shown++;
	return s->fn(s->ctx, msg) && wants_more(s);
}

static bool
collect_name(void *ctx, const struct mr_message *msg)
{
	return candidates_add(&((struct scanning *)ctx)->sorted, msg);
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
	if ((s->room->driver->abilities & ROOM_FETCH) && (s->scan->bodies || msg->body || s->sorted.n > LOOK_MAX))
		return true; /* it is quickly fetched again when its turn comes */
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

/* Opens some of them, and drops those that do not match; *n is the number that is left. */
static enum mr_rc
open_some(struct scanning *s, struct candidate *v, size_t *n, struct mr_error *err)
{
	enum scan_depth depth = s->scan->bodies || s->matcher.depth == SCAN_BODIES ? SCAN_BODIES : SCAN_HEADERS;
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++) {
		struct mr_error trouble = { 0 };
		bool fresh = !v[i].copy;
		enum mr_rc rc = candidate_open(s->room, s->agent, &v[i], depth, s->scan->filter.unread, &trouble);
		bool fits = rc == MR_OK && (!fresh || matcher_fits(&s->matcher, v[i].copy));

		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc != MR_OK && rc != MR_NOTFOUND) /* not found: it has moved, and does not match any more */
			pass_trouble(s, v[i].id, &trouble);
		if (rc == MR_OK && fresh && !fits)
			s->judged += hash_bytes(str_of(v[i].id));
		struct candidate c = v[i];

		v[i].copy = NULL;
		if (fits)
			v[kept++] = c;
		else
			candidate_close(&c);
	}
	*n = kept;
	return MR_OK;
}

static enum mr_rc
show_sorted(struct scanning *s, struct mr_error *err)
{
	struct candidates *all = &s->sorted;
	size_t looks = 0, rest = 0;
	bool more = true;

	TRY(mr_got(!all->failed, err));
	/* Those come first: see SCAN_URGENCY. */
	while (looks < all->n && all->v[looks].look)
		looks++;
	size_t opened = looks;

	TRY(open_some(s, all->v, &opened, err));
	if (opened < looks)
		memmove(all->v + opened, all->v + looks, (all->n - looks) * sizeof *all->v);
	all->n -= looks - opened;
	s->total -= looks - opened;
	if (s->counted)
		tell_total(s);
	candidates_sort(all->v, all->n, s->scan->order);
	bool names = s->scan->names && s->matcher.by_name && !s->scan->filter.seen && all->n > LOOK_MAX;

	for (size_t i = 0; i < all->n && more && wants_more(s); i += rest) {
		size_t n = s->scan->bodies ? 1 : LOOK_MAX, left = s->limit - s->shown;

		n = s->limit && left < n ? left : n;
		rest = all->n - i < n ? all->n - i : n;
		n = rest;
		if (!names) {
			TRY(open_some(s, all->v + i, &n, err));
			candidates_sort(all->v + i, n, s->scan->order);
		}
		for (size_t k = 0; k < n && more && wants_more(s); k++) {
			struct candidate *c = &all->v[i + k];
			struct mr_message name = { .from = "",
				.subject = "",
				.type = "",
				.thread = "",
				.reply_to = "",
				.replace_key = "",
				.path = "",
				.priority = c->priority,
				.folder = c->folder };

			memcpy(name.id, c->id, sizeof(name.id));
			s->shown++;
			more = s->fn(s->ctx, c->copy ? c->copy : &name);
			candidate_close(c);
		}
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
	/* Mail to oneself is in two folders under one id; the driver notices that only in the order of ids. */
	bool by_name = !streams && (abilities & ROOM_NAMES) && !(folders & (MR_SENT | MR_DEAD));
	uint64_t last = 0;
	enum mr_rc rc = MR_UNSUPPORTED;

	TRY(mr_room_folders(room, folders, err));
	TRY(matcher_init(&s.matcher, room, agent, &scan->filter, err));
	if (folders & MR_INBOX)
		scan_sweep(room, agent);
	bool known = s.matcher.by_name && !scan->filter.seen; /* by names, except some of older versions */

	s.counted = by_name && known && scan->ret_total;
	s.may_count = streams && known && scan->ret_total && !(abilities & ROOM_NAMES);
	s.limit = s.counted && (!scan->limit || scan->screen < scan->limit) ? scan->screen : scan->limit;
	struct scan_request want = {
		.folders = folders,
		.depth = by_name                                          ? SCAN_NAMES
			 : scan->bodies || s.matcher.depth == SCAN_BODIES ? SCAN_BODIES
									  : SCAN_HEADERS,
		.order = by_name             ? scan->order == MR_BY_PRIORITY ? SCAN_URGENCY : SCAN_WORK
			 : streams && newest ? SCAN_NEWEST
					     : SCAN_OLDEST,
		.unread_only = scan->filter.unread,
		.most = known && s.limit ? s.limit + LOOK_MAX : 0,
		.ret_total = s.counted || s.may_count ? &s.total : NULL,
		.wants = scan->wants,
		.wants_ctx = ctx,
		.trouble = pass_trouble,
		.trouble_ctx = &s,
	};
	struct index_scan by_index = { .agent = agent,
		.matcher = &s.matcher,
		.folders = folders,
		.depth = want.depth,
		.newest_first = newest,
		.wants = scan->wants,
		.wants_ctx = ctx,
		.fn = tell_indexed,
		.trouble = pass_trouble,
		.ctx = &s };

	if (scan->order == MR_NEWEST_FIRST || scan->order == MR_OLDEST_FIRST)
		rc = index_scan(room, &by_index, err);
	if (rc != MR_UNSUPPORTED)
		return rc;
	matcher_span(&s.matcher, &want);
	if (scan->ids_since_ms > want.since_ms)
		want.since_ms = scan->ids_since_ms;
	for (int tries = 0; tries < SCAN_TRIES; tries++) {
		s.judged = 0;
		s.again = tries > 0;
		rc = office_scan(room, agent, &want,
		    by_name   ? collect_name
		    : streams ? stream_one
			      : collect_one,
		    &s, err);
		if (rc == MR_OK && !streams)
			rc = show_sorted(&s, err);
		candidates_done(&s.sorted);
		if (rc != MR_OK || s.shown > 0 || scan->wants || is_certain(&s, &want, &last))
			break;
		want.most = 0;
	}
	return rc;
}
