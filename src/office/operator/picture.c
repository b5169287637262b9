/* SPDX-License-Identifier: MIT */
/*
 * picture.c - who told whom: the messages of a thread, or of a span of time, from the mailboxes of the agents involved.
 *
 * A thread is followed from mailbox to mailbox: an agent that a message names is asked next, so in a room of five
 * thousand agents the cost is that of the few in the thread. A span of time is found by names, and each message is
 * opened once. The copies show which agents have read it; past claims show how work ended.
 */
#include "office/operator/operator.h"
#include "message/address.h"
#include "office/who/who.h"

#define LIMIT 200
#define LIMIT_MAX 1000
#define LANES_MAX 24
#define SINCE_MS ((int64_t)3600 * 1000)
#define COPIES ((unsigned)MR_INBOX | MR_HELD | MR_ARCHIVE)

struct copy { /* a copy in a mailbox */
	const char *agent;
	bool read, held, acked;
	struct copy *next;
};
struct entry { /* a message */
	struct mr_arrow arrow;
	const char *from;
	const char *box;  /* a mailbox that has it */
	unsigned folders; /* in these folders */
	const char **to;  /* the addresses as it names them */
	size_t to_n, copies_n;
	size_t *lanes; /* arrow.to and arrow.read, while they are built */
	bool *read;
	struct copy *copies, *last; /* in the order in which they were found */
};
struct drawing { /* finish with drawing_done */
	struct mr_room *room;
	const char *thread; /* or NULL */
	int64_t since_ms;
	struct roll own; /* owns the strings, and notes if memory ran out */
	struct entry *v; /* by id */
	size_t n, cap;
	struct mr_names agents; /* agents whose mailboxes are asked, in this order */
	struct nameset known;
	const char *asked; /* the owner of the current mailbox */
	struct mr_picture out;
	struct mr_lane *lanes; /* before some are merged */
	size_t lanes_n, lanes_cap, bars_cap;
	size_t lane; /* the last one that was asked for */
};

static void
drawing_done(struct drawing *d)
{
	nameset_done(&d->known);
	mr_names_done(&d->agents);
	roll_done(&d->own);
}

/* ---- Messages ---- */

/* The entry of that id; makes it if it is missing. NULL: out of memory. Ids mostly come in order. */
static struct entry *
entry_of(struct drawing *d, const char *id)
{
	size_t low = 0, high = d->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(d->v[middle].arrow.id, id);

		if (order == 0)
			return &d->v[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	d->own.failed |= !arena_grow(&d->own.own, &d->v, d->n, &d->cap, sizeof *d->v);
	if (d->own.failed)
		return NULL;
	memmove(&d->v[low + 1], &d->v[low], (d->n++ - low) * sizeof *d->v);
	d->v[low] = (struct entry){ 0 };
	(void)snprintf(d->v[low].arrow.id, sizeof d->v->arrow.id, "%s", id);
	return &d->v[low];
}

static bool
note_copy(void *ctx, const struct mr_message *msg)
{
	struct drawing *d = ctx;
	struct entry *e = entry_of(d, msg->id);
	struct copy *copy = e && msg->folder != MR_SENT ? arena_alloc(&d->own.own, sizeof *copy) : NULL;

	if (!e)
		return false;
	if (!e->box) {
		e->box = d->asked;
		e->folders = msg->folder;
	}
	if (copy) {
		*copy = (struct copy){ .agent = d->asked,
			.read = (msg->flags & MR_SEEN) || msg->folder != MR_INBOX,
			.held = msg->folder == MR_HELD,
			.acked = msg->flags & MR_ACKED };
		*(e->last ? &e->last->next : &e->copies) = copy;
		e->last = copy;
		e->copies_n++;
	}
	d->own.failed |= !copy && msg->folder != MR_SENT;
	return !d->own.failed;
}

static void
ask_next(struct drawing *d, const char *name)
{
	char local[MR_ADDRESS_MAX + 1];

	if (*name && address_normal(str_of(name), local, IGNORED) == MR_OK)
		d->own.failed |= !nameset_add_once(&d->known, &d->agents, local);
}

static void
fill(struct drawing *d, struct entry *e, const struct mr_message *msg)
{
	const struct mr_names *lists[] = { &msg->to, &msg->cc };

	e->from = roll_str(&d->own, msg->from);
	e->arrow.subject = roll_str(&d->own, msg->subject);
	e->arrow.type = roll_str(&d->own, msg->type);
	e->arrow.thread = roll_str(&d->own, *msg->thread ? msg->thread : msg->id);
	e->arrow.priority = msg->priority;
	/* A date has only seconds; the id of our own mail has milliseconds. */
	e->arrow.at_ms = id_time_ms(msg->id);
	if (msg->date_ms && msg->date_ms / 1000 != e->arrow.at_ms / 1000)
		e->arrow.at_ms = msg->date_ms;
	e->arrow.answer = *msg->reply_to;
	e->arrow.question = msg->by_ms > 0;
	e->to = arena_alloc(&d->own.own, (msg->to.n + msg->cc.n + 1) * sizeof *e->to);
	d->own.failed |= !e->to;
	for (size_t i = 0; i < 2 && e->to; i++)
		for (size_t k = 0; k < lists[i]->n; k++)
			e->to[e->to_n++] = roll_str(&d->own, lists[i]->v[k]);
}

/* ---- A thread ---- */

static bool
note_message(void *ctx, const struct mr_message *msg)
{
	struct drawing *d = ctx;

	if (!note_copy(d, msg))
		return false;
	struct entry *e = entry_of(d, msg->id);

	if (!e->from)
		fill(d, e, msg);
	ask_next(d, msg->from);
	for (size_t i = 0; i < e->to_n; i++)
		ask_next(d, e->to[i]);
	return !d->own.failed;
}

/* By any message of it, in any mailbox; or by its word, which is looked for in every mailbox. */
static enum mr_rc
find_thread(struct drawing *d, const char *agent, const char *given, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];

	d->thread = given;
	if (lookup_is_id(d->room, given)) {
		enum mr_rc rc = lookup_anywhere(d->room, agent, given, id, err);

		if (rc == MR_OK)
			rc = lookup_anyones(d->room, id, &msg, err);
		if (rc != MR_OK && rc != MR_NOTFOUND)
			return rc;
		if (rc == MR_OK) {
			d->thread = roll_str(&d->own, *msg.thread ? msg.thread : id);
			ask_next(d, msg.from);
			for (size_t i = 0; i < msg.to.n; i++)
				ask_next(d, msg.to.v[i]);
		}
		*err = (struct mr_error){ 0 };
	}
	return d->agents.n > 0 ? MR_OK : office_agents(d->room, &d->agents, err);
}

static enum mr_rc
follow_thread(struct drawing *d, struct mr_error *err)
{
	struct mr_scan scan = { .filter = {
				    .folders = COPIES | MR_SENT, .thread = d->thread, .since_ms = d->since_ms } };

	for (size_t i = 0; i < d->agents.n; i++) {
		struct mr_error why = { 0 };

		d->asked = roll_str(&d->own, d->agents.v[i]);
		enum mr_rc rc = mr_scan(d->room, d->asked, &scan, note_message, d, &why);

		if (rc == MR_OK || rc == MR_NOTFOUND || rc == MR_REFUSED) /* not an agent of this room */
			continue;
		*err = why;
		return rc;
	}
	if (d->n == 0)
		return mr_fail(err, MR_NOTFOUND, "no thread '%.80s' in room '%s'\n`mailroom search` finds messages",
		    d->thread, d->room->name);
	return MR_OK;
}

/* ---- A span of time ---- */

static enum mr_rc
find_since(struct drawing *d, size_t limit, struct mr_error *err)
{
	struct scan_request want = { .folders = COPIES | MR_SENT, .depth = SCAN_NAMES, .since_ms = d->since_ms };
	size_t kept = 0;

	TRY(office_agents(d->room, &d->agents, err));
	for (size_t i = 0; i < d->agents.n; i++) {
		d->asked = roll_str(&d->own, d->agents.v[i]);
		(void)office_scan(d->room, d->asked, &want, note_copy, d, IGNORED); /* pruned, or closed by its user */
	}
	/* Cut before anything is opened; if names tell no time, all are opened. */
	if (d->n > limit && (d->room->driver->abilities & ROOM_NAMES)) {
		d->out.left_out = d->n - limit;
		d->v += d->n - limit;
		d->n = limit;
	}
	for (size_t i = 0; i < d->n; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct entry *e = &d->v[i];

		if (d->room->driver->fetch(d->room, e->box, e->arrow.id, e->folders, SCAN_HEADERS, &msg, IGNORED) !=
			MR_OK &&
		    d->room->driver->fetch(d->room, e->box, e->arrow.id, 0, SCAN_HEADERS, &msg, IGNORED) != MR_OK)
			continue; /* gone meanwhile, or unreadable: mr_attention reports it */
		if (id_time_ms(msg.id) < d->since_ms && msg.date_ms < d->since_ms)
			continue;
		fill(d, e, &msg);
		d->v[kept++] = *e;
	}
	d->n = kept;
	return MR_OK;
}

/* ---- Lanes ---- */

static size_t
lane_of(struct drawing *d, const char *name)
{
	/* Mail to all names the recipients in the same order each time, so try the next lane first. */
	if (d->lane + 1 < d->lanes_n && strcmp(d->lanes[d->lane + 1].name, name) == 0)
		return ++d->lane;
	for (size_t i = 0; i < d->lanes_n; i++)
		if (strcmp(d->lanes[i].name, name) == 0)
			return d->lane = i;
	d->own.failed |= !arena_grow(&d->own.own, &d->lanes, d->lanes_n, &d->lanes_cap, sizeof *d->lanes);
	if (d->own.failed)
		return 0;
	d->lanes[d->lanes_n] = (struct mr_lane){ .name = roll_str(&d->own, name) };
	return d->lane = d->lanes_n++;
}

/* Is this recipient a place of its own, besides the mailboxes that have a copy? */
static bool
is_place(struct drawing *d, const char *name)
{
	return str_starts(str_of(name), "queue:") || str_starts(str_of(name), "channel:") ||
	       (name[0] != '@' && strchr(name, '@')) ||
	       (address_check(str_of(name), IGNORED) == MR_OK && agent_exists(d->room, name, IGNORED) == MR_OK);
}

static void
add_to(struct drawing *d, struct entry *e, const char *name, bool read)
{
	size_t lane = lane_of(d, name), n = e->arrow.to_n;

	for (size_t i = 0; i < n; i++)
		if (e->lanes[i] == lane)
			return;
	e->lanes[n] = lane;
	e->read[n] = read;
	e->arrow.to_n++;
}

static void
aim(struct drawing *d, struct entry *e)
{
	struct mr_arrow *a = &e->arrow;
	size_t most = e->to_n + e->copies_n + 1;

	a->to = e->lanes = arena_alloc(&d->own.own, most * sizeof *e->lanes);
	a->read = e->read = arena_alloc(&d->own.own, most * sizeof *e->read);
	d->own.failed |= !a->to || !a->read;
	if (d->own.failed)
		return;
	a->from = lane_of(d, *e->from ? e->from : "?");
	for (struct copy *c = e->copies; c; c = c->next)
		add_to(d, e, c->agent, c->read);
	for (size_t i = 0; i < e->to_n; i++) /* without a copy nothing is known to wait there */
		if (is_place(d, e->to[i]))
			add_to(d, e, e->to[i], !str_starts(str_of(e->to[i]), "queue:"));
	if (a->to_n == 0)
		add_to(d, e, e->to_n > 0 ? e->to[0] : "?", true);
}

/* ---- Held work ---- */

struct holding {
	struct drawing *d;
	struct entry *e;
};

static void
add_bar(struct drawing *d, const char *id, const char *agent, int64_t from_ms, int64_t to_ms, const char *how)
{
	if (!*agent || from_ms == 0)
		return;
	d->own.failed |= !arena_grow(&d->own.own, &d->out.bars, d->out.bars_n, &d->bars_cap, sizeof *d->out.bars);
	if (d->own.failed)
		return;
	struct mr_bar *bar = &d->out.bars[d->out.bars_n++];

	*bar = (struct mr_bar){ .lane = lane_of(d, agent), .from_ms = from_ms, .to_ms = to_ms, .how = how };
	(void)snprintf(bar->id, sizeof bar->id, "%s", id);
}

static void
mark_read(struct drawing *d, struct entry *e, const char *name)
{
	for (size_t i = 0; i < e->arrow.to_n; i++)
		e->read[i] |= strcmp(d->lanes[e->lanes[i]].name, name) == 0;
}

static void
note_past(void *ctx, const struct past_claim *past)
{
	static const char *const ends[] = {
		[SETTLE_LATER] = "released", [SETTLE_DONE] = "done", [SETTLE_DEAD] = "failed"
	};
	struct holding *h = ctx;
	bool known = past->how < sizeof ends / sizeof ends[0] && ends[past->how];

	add_bar(h->d, h->e->arrow.id, past->claim->agent, past->claim->since_ms, past->ended_ms,
	    known ? ends[past->how] : "came back");
	if (past->how == SETTLE_DONE || past->how == SETTLE_DEAD)
		mark_read(h->d, h->e, past->claim->box);
}

static void
find_bars(struct drawing *d)
{
	mr_auto(mr_names_done) struct mr_names boxes = { 0 }; /* boxes with held messages */

	if (!(d->room->driver->abilities & ROOM_HOLDS))
		return;
	for (size_t i = 0; i < d->n; i++) {
		struct entry *e = &d->v[i];
		struct holding h = { d, e };
		bool acked = false;

		for (struct copy *c = e->copies; c; c = c->next) {
			acked |= c->acked;
			if (c->held)
				(void)names_add_once(&boxes, c->agent);
		}
		if (acked)
			(void)d->room->driver->each_past(d->room, "", e->arrow.id, NULL, 0, note_past, &h, IGNORED);
		for (size_t k = 0; k < e->to_n; k++) {
			if (!str_starts(str_of(e->to[k]), "queue:"))
				continue;
			(void)names_add_once(&boxes, e->to[k]);
			(void)d->room->driver->each_past(
			    d->room, e->to[k], e->arrow.id, NULL, 0, note_past, &h, IGNORED);
		}
	}
	for (size_t i = 0; i < boxes.n; i++) {
		mr_auto(claims_done) struct claims held = { 0 };

		(void)claims_in(d->room, boxes.v[i], &held, IGNORED);
		for (const struct claim *c = held.v; c < held.v + held.n; c++)
			for (struct entry *e = d->v; e < d->v + d->n; e++)
				if (strcmp(e->arrow.id, c->id) == 0) {
					add_bar(d, c->id, c->agent, c->since_ms, 0, "held");
					mark_read(d, e, c->box);
				}
	}
}

/* ---- The picture ---- */

static void
find_lives(struct drawing *d)
{
	for (size_t i = 0; i < d->out.lanes_n; i++) {
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		struct mr_lane *lane = &d->out.lanes[i];

		if (!office_has_lives(d->room) || address_check(str_of(lane->name), IGNORED) != MR_OK ||
		    d->room->driver->find_agent(d->room, lane->name, &agent, IGNORED) != MR_OK ||
		    !agent_has_life(&agent))
			continue;
		lane->life = agent.life;
		lane->born_ms = agent.started_ms;
		if (mr_agent_presence(&agent) != MR_GONE)
			continue;
		lane->died_ms = agent.seen_ms > agent.started_ms ? agent.seen_ms : agent.started_ms;
		for (size_t k = 0; k < d->out.arrows_n; k++)
			if (d->out.arrows[k].from == i && d->out.arrows[k].at_ms > lane->died_ms)
				lane->died_ms = d->out.arrows[k].at_ms;
	}
}

struct use { /* of a lane */
	size_t lane, sent, got;
};

static int
by_use(const void *va, const void *vb)
{
	const struct use *a = va, *b = vb;

	return ORDER(b->sent, a->sent) ?: ORDER(b->got, a->got) ?: ORDER(a->lane, b->lane);
}

/* Chooses the lanes to draw, in their order; place[] is the new place of each. The lanes with the fewest messages share
 * the last one. */
static enum mr_rc
choose_lanes(struct drawing *d, size_t *place, struct mr_error *err)
{
	mr_auto(free_ptr) struct use *uses = calloc(d->lanes_n + 1, sizeof *uses);
	size_t kept = d->lanes_n > LANES_MAX ? LANES_MAX - 1 : d->lanes_n;
	char others[40];

	d->out.lanes = arena_alloc(&d->own.own, (LANES_MAX + 1) * sizeof *d->out.lanes);
	TRY(mr_got(uses && d->out.lanes, err));
	for (size_t i = 0; i < d->lanes_n; i++)
		uses[i].lane = i;
	for (size_t i = 0; i < d->n; i++) {
		uses[d->v[i].arrow.from].sent++;
		for (size_t k = 0; k < d->v[i].arrow.to_n; k++)
			uses[d->v[i].arrow.to[k]].got++;
	}
	qsort(uses, d->lanes_n, sizeof *uses, by_use);
	for (size_t i = 0; i < d->lanes_n; i++)
		place[uses[i].lane] = i < kept ? 0 : SIZE_MAX;
	for (size_t i = 0; i < d->lanes_n; i++)
		if (place[i] == 0) {
			place[i] = d->out.lanes_n;
			d->out.lanes[d->out.lanes_n++] = d->lanes[i];
		}
	for (size_t i = 0; i < d->lanes_n; i++)
		place[i] = place[i] == SIZE_MAX ? kept : place[i];
	if (kept == d->lanes_n)
		return MR_OK;
	(void)snprintf(others, sizeof others, "%zu others", d->lanes_n - kept);
	d->out.lanes[d->out.lanes_n++] = (struct mr_lane){ .name = roll_str(&d->own, others) };
	return MR_OK;
}

static int
by_time(const void *va, const void *vb)
{
	const struct entry *a = va, *b = vb;

	return ORDER(a->arrow.at_ms, b->arrow.at_ms) ?: strcmp(a->arrow.id, b->arrow.id);
}

static enum mr_rc
compose(struct drawing *d, size_t limit, struct mr_error *err)
{
	if (d->n > 1)
		qsort(d->v, d->n, sizeof *d->v, by_time);
	if (d->n > limit) {
		d->out.left_out += d->n - limit;
		d->v += d->n - limit;
		d->n = limit;
	}
	for (size_t i = 0; i < d->n && !d->own.failed; i++)
		aim(d, &d->v[i]);
	if (!d->own.failed)
		find_bars(d);
	TRY(mr_got(!d->own.failed, err));
	/* From here on messages and bars refer to drawn lanes; mail for a lane that shares the last one waits there. */
	mr_auto(free_ptr) size_t *place = calloc(d->lanes_n + 1, sizeof *place);

	TRY(mr_got(place, err));
	TRY(choose_lanes(d, place, err));
	for (size_t i = 0; i < d->n; i++) {
		struct mr_arrow *a = &d->v[i].arrow;
		size_t *to = d->v[i].lanes, kept = 0;
		bool *read = d->v[i].read;

		a->from = place[a->from];
		for (size_t k = 0; k < a->to_n; k++) {
			size_t at = 0, lane = place[to[k]];

			while (at < kept && to[at] != lane)
				at++;
			to[at] = lane;
			read[at] = at < kept ? read[at] && read[k] : read[k];
			kept += at == kept;
		}
		a->to_n = kept;
	}
	for (size_t i = 0; i < d->out.bars_n; i++)
		d->out.bars[i].lane = place[d->out.bars[i].lane];
	d->out.arrows = arena_alloc(&d->own.own, (d->n + 1) * sizeof *d->out.arrows);
	TRY(mr_got(d->out.arrows, err));
	for (size_t i = 0; i < d->n; i++)
		d->out.arrows[d->out.arrows_n++] = d->v[i].arrow;
	find_lives(d);
	return MR_OK;
}

enum mr_rc
mr_picture(struct mr_room *room, const char *agent, const struct mr_picture_options *options, struct mr_picture *ret,
    struct mr_error *err)
{
	mr_auto(drawing_done) struct drawing d = { .room = room, .since_ms = options->since_ms };
	size_t limit = options->limit == 0 ? LIMIT : options->limit < LIMIT_MAX ? options->limit : LIMIT_MAX;

	d.out.title = "";
	d.out.to_ms = clock_now_ms();
	if (options->thread) {
		TRY(find_thread(&d, agent, options->thread, err));
		TRY(follow_thread(&d, err));
	} else {
		d.since_ms = d.since_ms ? d.since_ms : d.out.to_ms - SINCE_MS;
		TRY(find_since(&d, limit, err));
	}
	TRY(compose(&d, limit, err));
	d.out.from_ms = d.out.arrows_n > 0 ? d.out.arrows[0].at_ms : d.since_ms;
	if (options->thread && d.out.arrows_n > 0)
		d.out.title = d.out.arrows[0].subject;
	TRY(mr_got(!d.own.failed, err));
	*ret = d.out;
	ret->own = roll_take(&d.own);
	return MR_OK;
}

void
mr_picture_done(struct mr_picture *picture)
{
	if (!picture)
		return;
	arena_free(picture->own);
	*picture = (struct mr_picture){ 0 };
}
