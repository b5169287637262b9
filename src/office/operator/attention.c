/* SPDX-License-Identifier: MIT */
/*
 * attention.c - the list of things that need a person now.
 *
 * First everything is judged by names: folders of mailboxes and queues, records of questions, links. Of each kind the
 * `limit` most pressing are kept and the others only counted, so that five thousand stale mailboxes do not hide the one
 * question to the operator. Only the kept ones are opened (needs.c). The presence of an agent costs two files, so it is
 * checked only for the agents with the oldest unread mail.
 */
#include "office/address/address.h"
#include "office/operator/operator.h"
#include "office/link/link.h"
#include "office/tell/tell.h"
#include "office/who/who.h"

#define UNREAD_MS ((int64_t)10 * 60 * 1000)
#define LIMIT 20
#define LIMIT_MAX 200
#define MINUTE_MS ((int64_t)60 * 1000)
#define ANSWERS_SOUGHT 200            /* messages of a mailbox, at most, that are searched for an answer */
#define THROTTLED_MS (60 * MINUTE_MS) /* a throttled thread is listed for so long */

const char *
mr_need_word(enum mr_need_kind kind)
{
	static const char *const words[] = { "answer", "overdue", "unread", "lease", "attempt", "failed", "dead",
		"gone", "link", "throttled", "unreadable" };

	return kind < MR_NEED_KINDS ? words[kind] : "";
}

/* ---- Keeping the most pressing ---- */

/* Compares struct mr_need. */
static int
by_need(const void *va, const void *vb)
{
	const struct mr_need *a = va, *b = vb;

	/* Dead letters: the newest first. */
	bool news = a->kind == MR_NEED_DEAD || a->kind == MR_NEED_FAILED;

	return ORDER(b->pressing, a->pressing) ?: ORDER(a->kind, b->kind) ?: ORDER(a->due_ms == 0, b->due_ms == 0)
		?: ORDER(a->due_ms, b->due_ms) ?: ORDER(b->priority, a->priority)
		?: news ? ORDER(b->since_ms, a->since_ms) : ORDER(a->since_ms, b->since_ms);
}

/* Counts it, and keeps it if it is one of the most pressing of its kind. Its strings must outlive the gathering. */
static void
needs_add(struct needs *g, const struct need *need)
{
	enum mr_need_kind kind = need->is.kind;
	struct need *v = g->kept[kind];
	size_t at = g->n[kind]++;

	g->total[kind]++;
	if (at == g->limit) {
		g->n[kind]--;
		at--;
		if (by_need(&need->is, &v[at].is) >= 0)
			return;
	}
	for (; at > 0 && by_need(&need->is, &v[at - 1].is) < 0; at--)
		v[at] = v[at - 1];
	v[at] = *need;
}

static struct need
need_of(enum mr_need_kind kind, const char *id, int64_t since_ms)
{
	struct need need = { .is = { .kind = kind,
				 .since_ms = since_ms,
				 .agent = "",
				 .queue = "",
				 .link = "",
				 .thread = "",
				 .path = "",
				 .from = "",
				 .subject = "",
				 .why = "" },
		.to = "",
		.token = "" };

	(void)snprintf(need.is.id, sizeof need.is.id, "%s", id);
	return need;
}

/* ---- Mailboxes ---- */

struct boxes {
	struct needs *g;
	struct mr_attention *out;
	struct mr_box *box; /* the current one */
};

static bool
count_name(void *ctx, const struct mr_message *msg)
{
	struct boxes *b = ctx;
	int64_t at_ms = id_time_ms(msg->id);
	bool unread = !(msg->flags & MR_SEEN), fresh = at_ms > b->g->now_ms - MINUTE_MS && at_ms <= b->g->now_ms;

	b->out->came += fresh;
	b->box->came += fresh;
	if (msg->folder == MR_HELD) {
		b->box->held++;
		return true;
	}
	b->out->seen += fresh && !unread;
	b->box->seen += fresh && !unread;
	if (!unread)
		return true;
	b->box->unread++;
	b->box->urgent += msg->priority == MR_URGENT;
	if (b->box->unread == 1 || strcmp(msg->id, b->box->oldest) < 0) {
		b->box->oldest_ms = at_ms;
		(void)snprintf(b->box->oldest, sizeof b->box->oldest, "%s", msg->id);
	}
	return true;
}

static bool
count_put_away(void *ctx, const struct mr_message *msg)
{
	struct boxes *b = ctx;
	bool fresh = id_time_ms(msg->id) > b->g->now_ms - MINUTE_MS;

	b->box->archived += fresh && msg->folder == MR_ARCHIVE;
	b->box->sent += fresh && msg->folder == MR_SENT;
	return true;
}

static void
note_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct boxes *b = ctx;
	struct need need = need_of(MR_NEED_UNREADABLE, "", 0);

	need.is.agent = b->box->agent;
	need.is.path = roll_str(&b->g->own, path);
	need.err = *err;
	needs_add(b->g, &need);
}

static enum mr_rc
count_boxes(struct needs *g, struct mr_attention *out, bool minute, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct boxes b = { g, out, NULL };
	struct scan_request want = { .folders = MR_INBOX | MR_HELD,
		.depth = SCAN_NAMES,
		.glance = true,
		.trouble = note_trouble,
		.trouble_ctx = &b };
	const struct scan_request put_away = { .folders = MR_ARCHIVE | MR_SENT,
		.depth = SCAN_NAMES,
		.order = SCAN_NEWEST,
		.since_ms = g->now_ms - MINUTE_MS };

	TRY(office_agents(g->room, &names, err));
	names_sort(&names);
	out->boxes = arena_alloc(&g->own.own, (names.n + 1) * sizeof *out->boxes);
	TRY(mr_got(out->boxes, err));
	for (size_t i = 0; i < names.n; i++) {
		struct mr_error why = { 0 };

		b.box = &out->boxes[out->boxes_n++];
		b.box->agent = roll_str(&g->own, names.v[i]);
		if (minute)
			(void)office_scan(g->room, names.v[i], &put_away, count_put_away, &b, IGNORED);
		if (office_scan(g->room, names.v[i], &want, count_name, &b, &why) == MR_OK || why.code == MR_NOTFOUND)
			continue; /* not found: pruned meanwhile */
		note_trouble(&b, names.v[i], &why);
	}
	return MR_OK;
}

static int
by_agent(const void *name, const void *box)
{
	return strcmp(name, ((const struct mr_box *)box)->agent);
}

static struct mr_box *
box_named(struct mr_attention *out, const char *agent)
{
	return bsearch(agent, out->boxes, out->boxes_n, sizeof *out->boxes, by_agent);
}

/* ---- Questions ---- */

static void
gather_questions(struct needs *g, const struct mr_attention *out)
{
	for (size_t i = 0; i < out->boxes_n; i++) {
		mr_auto(mr_list_done) struct mr_dues dues = { 0 };
		const struct mr_box *box = &out->boxes[i];

		(void)due_list(g->room, box->agent, false, &dues, IGNORED);
		for (const struct mr_due *due = dues.v; due < dues.v + dues.n; due++) {
			bool to_operator = strcmp(due->to, OPERATOR) == 0, late = due->by_ms <= g->now_ms;
			struct need need =
			    need_of(to_operator ? MR_NEED_ANSWER : MR_NEED_OVERDUE, due->id, id_time_ms(due->id));

			/* A reply drops the record; an answer from a mail client is found only by searching the
			 * mail. */
			if ((!late && !to_operator) ||
			    (late && box->unread < ANSWERS_SOUGHT && due_settled(g->room, box->agent, due->id)))
				continue;
			need.is.pressing = late;
			need.is.due_ms = due->by_ms;
			need.is.agent = need.is.from = box->agent;
			need.to = roll_str(&g->own, due->to);
			need.is.subject = roll_str(&g->own, due->subject);
			needs_add(g, &need);
		}
	}
}

/* ---- The operator's mail ---- */

struct inbox {
	struct needs *g;
	size_t seen;  /* messages that were read and not answered */
	size_t told;  /* unread ones that the driver reported */
	size_t twice; /* of those, the ones that are counted as questions already */
};

static bool
has_answer_need(const struct needs *g, const char *id)
{
	for (size_t i = 0; i < g->n[MR_NEED_ANSWER]; i++)
		if (strcmp(g->kept[MR_NEED_ANSWER][i].is.id, id) == 0)
			return true;
	return false;
}

static bool
note_operators(void *ctx, const struct mr_message *msg)
{
	struct inbox *in = ctx;
	struct need need = need_of(MR_NEED_ANSWER, msg->id, id_time_ms(msg->id));

	in->told++;
	if (has_answer_need(in->g, msg->id))
		return ++in->twice;
	need.is.agent = OPERATOR;
	need.is.priority = msg->priority;
	need.is.pressing = msg->priority == MR_URGENT;
	needs_add(in->g, &need);
	return true;
}

/* Read, and the sender wanted an answer: its record is dropped as soon as the sender was told that none came. */
static bool
note_read(void *ctx, const struct mr_message *name)
{
	struct inbox *in = ctx;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct need need = need_of(MR_NEED_ANSWER, name->id, id_time_ms(name->id));

	if (!(name->flags & MR_SEEN) || (name->flags & (MR_REPLIED | MR_ACKED | MR_TRASHED)) ||
	    has_answer_need(in->g, name->id))
		return true;
	if (in->g->room->driver->fetch(in->g->room, OPERATOR, name->id, MR_INBOX, SCAN_HEADERS, &msg, IGNORED) ==
		MR_OK &&
	    msg.by_ms > 0) {
		need.is.agent = OPERATOR;
		need.is.due_ms = msg.by_ms;
		need.is.pressing = msg.by_ms <= in->g->now_ms;
		needs_add(in->g, &need);
	}
	return ++in->seen < LIMIT;
}

static void
gather_operators(struct needs *g, const struct mr_box *box)
{
	struct inbox in = { .g = g };
	struct scan_request unread = { .folders = MR_INBOX,
		.depth = SCAN_NAMES,
		.unread_only = true,
		.order = g->room->driver->abilities & ROOM_NAMES ? SCAN_WORK : SCAN_OLDEST,
		.most = g->limit };
	struct scan_request all = { .folders = MR_INBOX, .depth = SCAN_NAMES, .order = SCAN_NEWEST };

	size_t questions = g->total[MR_NEED_ANSWER];

	(void)office_scan(g->room, OPERATOR, &unread, note_operators, &in, IGNORED);
	/* Unread mail that the driver did not report because of the limit; questions with a time are counted
	 * already. */
	if (box->unread - in.told > questions - in.twice && box->unread > in.told)
		g->total[MR_NEED_ANSWER] += box->unread - in.told - (questions - in.twice);
	(void)office_scan(g->room, OPERATOR, &all, note_read, &in, IGNORED);
}

/* ---- Agents with mail or work ---- */

static int
by_oldest(const void *va, const void *vb)
{
	const struct mr_box *a = *(struct mr_box *const *)va, *b = *(struct mr_box *const *)vb;

	return ORDER(a->oldest_ms == 0, b->oldest_ms == 0) ?: ORDER(a->oldest_ms, b->oldest_ms)
		?: strcmp(a->agent, b->agent);
}

static void
judge_box(struct needs *g, const struct mr_box *box, bool late)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	bool lives = office_has_lives(g->room);
	bool known = lives && g->room->driver->find_agent(g->room, box->agent, &agent, IGNORED) == MR_OK;
	bool gone = known && mr_agent_presence(&agent) == MR_GONE;
	struct need need = need_of(gone ? MR_NEED_GONE : MR_NEED_UNREAD, box->oldest, box->oldest_ms);

	if ((lives && !known) || (!gone && !late)) /* not known: pruned meanwhile */
		return;
	if (gone && box->oldest_ms == 0)
		need.is.since_ms = agent.seen_ms;
	need.is.agent = box->agent;
	need.is.count = box->unread;
	need.is.pressing = box->urgent > 0 && late;
	needs_add(g, &need);
}

static enum mr_rc
gather_agents(struct needs *g, struct mr_attention *out, struct mr_error *err)
{
	struct mr_box **waiting = calloc(out->boxes_n + 1, sizeof *waiting);
	size_t n = 0, looks = 4 * g->limit;

	TRY(mr_got(waiting, err));
	for (size_t i = 0; i < out->boxes_n; i++)
		if ((out->boxes[i].unread > 0 || out->boxes[i].held > 0) && strcmp(out->boxes[i].agent, OPERATOR) != 0)
			waiting[n++] = &out->boxes[i];
	qsort(waiting, n, sizeof *waiting, by_oldest);
	for (size_t i = 0; i < n; i++) {
		bool late = waiting[i]->unread > 0 && g->now_ms - waiting[i]->oldest_ms >= g->unread_ms;

		/* Younger than all that are listed: counted as the more probable kind. */
		if (i < looks && (g->n[MR_NEED_UNREAD] < g->limit || g->n[MR_NEED_GONE] < g->limit))
			judge_box(g, waiting[i], late);
		else
			g->total[MR_NEED_UNREAD] += late;
	}
	free(waiting);
	return MR_OK;
}

/* ---- Work ---- */

struct work {
	struct needs *g;
	struct mr_attention *out;
	const char *queue; /* "": an agent's own mail */
	unsigned attempts;
};

static void
note_claim(struct work *w, const struct claim *claim)
{
	struct needs *g = w->g;
	int64_t left = claim->deadline_ms - g->now_ms, lease = claim->deadline_ms - claim->since_ms;
	bool near = claim->since_ms > 0 && left<lease / 5, last = w->attempts> 0 && claim->attempt >= w->attempts;
	struct need need = need_of(near || left <= 0 ? MR_NEED_LEASE : MR_NEED_ATTEMPT, claim->id,
	    claim->since_ms ? claim->since_ms : id_time_ms(claim->id));
	struct mr_box *box = *w->queue ? box_named(w->out, claim->agent) : NULL;

	if (box)
		box->held++;
	if (claim->kind != CLAIM_LEASE || (need.is.kind == MR_NEED_ATTEMPT && !last))
		return;
	need.over = office_claim_over(g->room, claim);
	need.is.pressing = left <= 0;
	need.is.due_ms = claim->deadline_ms;
	need.is.queue = w->queue;
	need.is.agent = box ? box->agent : roll_str(&g->own, claim->agent);
	need.token = roll_str(&g->own, claim->token);
	need.attempt = claim->attempt;
	need.attempts = w->attempts;
	needs_add(g, &need);
}

static bool
note_work(void *ctx, const struct queue_item *item)
{
	struct work *w = ctx;
	struct need need = need_of(MR_NEED_FAILED, item->id, id_time_ms(item->id));

	if (item->claim) {
		note_claim(w, item->claim);
		return true;
	}
	need.is.queue = w->queue;
	needs_add(w->g, &need);
	return true;
}

static void
gather_work(struct needs *g, struct mr_attention *out)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	struct work w = { g, out, "", 0 };

	for (size_t i = 0; i < out->boxes_n; i++) /* without claims nothing is held */
		if (out->boxes[i].held > 0)
			(void)g->room->driver->each_claim(
			    g->room, out->boxes[i].agent, QUEUE_CLAIMED, note_work, &w, IGNORED);
	if (settings_names(g->room, "queue", &queues, IGNORED) != MR_OK)
		return;
	for (size_t i = 0; i < queues.n; i++) {
		mr_auto(mr_queue_done) struct mr_queue queue = { 0 };

		if (mr_queue_get(g->room, queues.v[i], &queue, IGNORED) != MR_OK)
			continue; /* deleted just now, or broken: doctor reports it */
		w.queue = roll_str(&g->own, queue.name);
		w.attempts = queue.attempts;
		(void)g->room->driver->each_claim(g->room, room_box("queue", queue.name).z,
		    (unsigned)QUEUE_CLAIMED | QUEUE_FAILED, note_work, &w, IGNORED);
	}
}

static bool
note_dead(void *ctx, const struct mr_message *msg)
{
	struct need need = need_of(MR_NEED_DEAD, msg->id, id_time_ms(msg->id));

	needs_add(ctx, &need);
	return true;
}

/* ---- Links, threads ---- */

static void
note_link(struct needs *g, const struct mr_link *link)
{
	struct mr_room *there = NULL;
	struct need need = need_of(MR_NEED_LINK, "", 0);
	enum mr_rc rc = link_open(g->room, link, &there, &need.err);

	mr_room_close(there);
	need.is.count = link_waiting(g->room, link->name, &need.is.since_ms);
	bool late = need.is.count > 0 && g->now_ms - need.is.since_ms >= g->unread_ms;

	/* A link that is not allowed and carries nothing is not pressing: doctor reports it. */
	if (!late && (rc == MR_OK || !mr_link_allowed(g->room, link)))
		return;
	need.is.link = roll_str(&g->own, link->name);
	needs_add(g, &need);
}

/* ---- The whole list ---- */

static void
needs_done(struct needs *g)
{
	for (size_t i = 0; i < MR_NEED_KINDS; i++)
		free(g->kept[i]);
	roll_done(&g->own);
}

static enum mr_rc
describe_all(struct needs *g, struct mr_attention *out, struct mr_error *err)
{
	size_t n = 0;

	for (size_t k = 0; k < MR_NEED_KINDS; k++)
		n += g->n[k];
	out->needs = arena_alloc(&g->own.own, (n + 1) * sizeof *out->needs);
	TRY(mr_got(out->needs, err));
	for (size_t k = 0; k < MR_NEED_KINDS; k++) {
		for (size_t i = 0; i < g->n[k]; i++) {
			struct need *need = &g->kept[k][i];

			g->total[k]--;
			if (!need_describe(g, need))
				continue;
			g->total[need->is.kind]++; /* its kind changed because it could not be read */
			out->needs[out->n++] = need->is;
		}
	}
	qsort(out->needs, out->n, sizeof *out->needs, by_need);
	for (size_t k = 0; k < MR_NEED_KINDS; k++) {
		out->total[k] = g->total[k];
		out->more += g->total[k];
	}
	out->more -= out->n;
	out->dead = out->total[MR_NEED_DEAD] + out->total[MR_NEED_FAILED];
	for (size_t i = 0; i < out->boxes_n; i++) {
		const struct mr_box *box = &out->boxes[i];

		out->unread += box->unread;
		out->held += box->held;
		if (box->oldest_ms > 0 && (out->oldest_ms == 0 || box->oldest_ms < out->oldest_ms))
			out->oldest_ms = box->oldest_ms;
	}
	return MR_OK;
}

enum mr_rc
mr_attention(
    struct mr_room *room, const struct mr_attention_options *options, struct mr_attention *ret, struct mr_error *err)
{
	static const struct mr_attention_options usual;
	const struct mr_attention_options *o = options ? options : &usual;
	mr_auto(needs_done) struct needs g = { .room = room,
		.now_ms = clock_now_ms(),
		.unread_ms = o->unread_ms > 0 ? o->unread_ms : UNREAD_MS,
		.limit = o->limit == 0          ? LIMIT
			 : o->limit < LIMIT_MAX ? o->limit
						: LIMIT_MAX };
	mr_auto(mr_list_done) struct mr_links links = { 0 };
	struct mr_attention out = { .at_ms = g.now_ms };
	struct scan_request dead = { .folders = MR_DEAD, .depth = SCAN_NAMES, .order = SCAN_NEWEST };

	for (size_t i = 0; i < MR_NEED_KINDS; i++)
		g.own.failed |= !(g.kept[i] = calloc(g.limit, sizeof **g.kept));
	TRY(mr_got(!g.own.failed, err));
	TRY(count_boxes(&g, &out, o->minute, err));
	const struct mr_box *operators = box_named(&out, OPERATOR);

	gather_questions(&g, &out);
	if (operators)
		gather_operators(&g, operators);
	gather_work(&g, &out);
	TRY(gather_agents(&g, &out, err));
	(void)office_scan(room, OPERATOR, &dead, note_dead, &g, IGNORED);
	if (link_able(room, IGNORED) == MR_OK)
		(void)mr_link_list(room, &links, IGNORED);
	for (size_t i = 0; i < links.n; i++)
		note_link(&g, &links.v[i]);
	mr_auto(wakes_done) struct wakes wakes = { 0 };

	wakes_load(g.room, &wakes);
	for (size_t i = 0; i < wakes.n; i++) {
		const struct wake_thread *t = &wakes.v[i];
		struct need need = need_of(MR_NEED_THROTTLED, "", t->n > 0 ? t->at_ms[t->n - 1] : 0);

		if (!t->told || !t->name[0] || need.is.since_ms <= g.now_ms - THROTTLED_MS)
			continue;
		need.is.thread = roll_str(&g.own, t->name);
		needs_add(&g, &need);
	}
	TRY(describe_all(&g, &out, err));
	TRY(mr_got(!g.own.failed, err));
	out.own = roll_take(&g.own);
	*ret = out;
	return MR_OK;
}

void
mr_attention_done(struct mr_attention *attention)
{
	if (!attention)
		return;
	arena_free(attention->own);
	*attention = (struct mr_attention){ 0 };
}
