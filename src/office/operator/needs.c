/* SPDX-License-Identifier: MIT */
/* needs.c - one need of attention.c: the message that it is about, the evidence as `mailroom why` gives it, and what a
 * person can do about it. */
#include "office/operator/operator.h"

/* ---- Words ---- */

static const char *
kept(struct needs *g, struct buf *text)
{
	const char *copy = arena_dup(&g->own, buf_str(text));

	g->failed |= !copy || !buf_ok(text);
	return copy ? copy : "";
}

static void
act(struct needs *g, struct mr_need *need, const char *label, bool text, const char *w1, const char *w2, const char *w3)
{
	struct mr_action *action = &need->actions[need->actions_n++];
	const char *words[] = { w1, w2, w3 };

	*action = (struct mr_action){ .label = label, .text = text };
	for (size_t i = 0; i < 3 && words[i]; i++) {
		action->words[i] = arena_dup(&g->own, str_of(words[i]));
		g->failed |= !action->words[i];
	}
}

/* "3h", "0s" for what is yet to come */
static void
add_span(struct buf *out, int64_t ms)
{
	char text[24];

	duration_text(ms > 0 ? ms : 0, text);
	buf_adds(out, text);
}

/* "an answer is wanted by 2026-11-16T10:30:00.000Z, 2h ago" */
static void
add_deadline(const struct needs *g, struct buf *out, const char *what, int64_t at_ms)
{
	char at[RFC3339_LEN + 1];

	time_rfc3339(at_ms, at);
	buf_addf(out, "%s %s, ", what, at);
	if (at_ms > g->now_ms)
		buf_adds(out, "in ");
	add_span(out, at_ms > g->now_ms ? at_ms - g->now_ms : g->now_ms - at_ms);
	if (at_ms <= g->now_ms)
		buf_adds(out, " ago");
}

/* ---- The message ---- */

static bool
take_message(struct needs *g, struct need *need, const char *box, unsigned folders, struct mr_message *ret)
{
	bool work = box_queue(box);
	enum mr_rc rc = g->room->driver->fetch(
	    g->room, box, need->is.id, folders, work ? SCAN_BODIES : SCAN_HEADERS, ret, &need->err);

	if (rc == MR_NOTFOUND || rc == MR_BUSY)
		return false;
	if (rc != MR_OK) {
		need->is.kind = MR_NEED_UNREADABLE;
		need->is.actions_n = 0;
		return true;
	}
	need->is.from = arena_dup(&g->own, str_of(ret->from));
	need->is.subject = arena_dup(&g->own, str_of(ret->subject));
	need->is.thread = arena_dup(&g->own, str_of(*ret->thread ? ret->thread : ret->id));
	need->is.priority = ret->priority;
	if (need->is.from && need->is.subject && need->is.thread)
		return true;
	need->is.from = need->is.subject = need->is.thread = "";
	return !(g->failed = true);
}

static bool
unreadable(struct needs *g, struct need *need)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;

	buf_adds(&why, need->err.message);
	need->is.why = kept(g, &why);
	act(g, &need->is, "doctor", false, "doctor", NULL, NULL);
	return true;
}

/* ---- Kinds ---- */

static bool
describe_answer(struct needs *g, struct need *need)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_need *is = &need->is;

	if (!take_message(g, need, OPERATOR, MR_INBOX | MR_HELD | MR_ARCHIVE, &msg))
		return false;
	if (is->kind == MR_NEED_UNREADABLE)
		return unreadable(g, need);
	if (msg.flags & (MR_REPLIED | MR_ACKED))
		return false;
	is->due_ms = is->due_ms ? is->due_ms : msg.by_ms;
	is->pressing = msg.priority == MR_URGENT || (is->due_ms > 0 && is->due_ms <= g->now_ms);
	buf_adds(&why, msg.flags & MR_SEEN ? "read and not answered, sent " : "unread for ");
	add_span(&why, g->now_ms - is->since_ms);
	buf_adds(&why, msg.flags & MR_SEEN ? " ago" : "");
	if (is->due_ms)
		add_deadline(g, &why, "; an answer is wanted by", is->due_ms);
	is->agent = OPERATOR;
	is->why = kept(g, &why);
	act(g, is, "reply", true, "reply", is->id, NULL);
	act(g, is, "read", false, "read", is->id, NULL);
	return true;
}

static bool
describe_overdue(struct needs *g, struct need *need)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_need *is = &need->is;

	format_addf(&why, "'%s' asked '%s'", is->agent, need->to);
	add_deadline(g, &why, ", and wanted an answer by", is->due_ms);
	why_presence(&why, g->room, need->to);
	is->why = kept(g, &why);
	act(g, is, "nudge", true, "nudge", need->to, NULL);
	act(g, is, "why", false, "why", is->id, NULL);
	return true;
}

static void
add_mail(const struct needs *g, struct buf *out, const struct mr_need *is)
{
	buf_addf(out, "%zu unread, the oldest for ", is->count);
	add_span(out, g->now_ms - is->since_ms);
}

static bool
describe_unread(struct needs *g, struct need *need)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf why = BUF_INIT, told = BUF_INIT;
	struct mr_need *is = &need->is;
	char limit[MR_WAKE_WHY_MAX];
	int64_t told_ms;

	if (!take_message(g, need, is->agent, MR_INBOX, &msg))
		return false;
	if (is->kind == MR_NEED_UNREADABLE)
		return unreadable(g, need);
	add_mail(g, &why, is);
	why_presence(&why, g->room, is->agent);
	if (why_announced(&told, g->room, is->agent, is->id, &told_ms))
		buf_addf(&why, "; %s", buf_z(&told));
	if (mr_wake_limited(g->room, is->agent, is->id, limit))
		buf_addf(&why, "; %s", limit);
	is->why = kept(g, &why);
	act(g, is, "nudge", true, "nudge", is->agent, NULL);
	act(g, is, "why", false, "why", is->id, NULL);
	return true;
}

static bool
describe_gone(struct needs *g, struct need *need)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_need *is = &need->is;

	if (is->id[0] && !take_message(g, need, is->agent, MR_INBOX, &msg))
		return false;
	if (is->kind == MR_NEED_UNREADABLE)
		return unreadable(g, need);
	if (is->count > 0)
		add_mail(g, &why, is);
	else
		buf_adds(&why, "it has work in its hands");
	why_presence(&why, g->room, is->agent);
	is->why = kept(g, &why);
	act(g, is, "look", false, "inbox", "--as", is->agent);
	act(g, is, "prune", false, "prune", is->agent, NULL);
	return true;
}

static bool
describe_claim(struct needs *g, struct need *need)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_need *is = &need->is;
	bool work = *is->queue;

	if (!take_message(g, need, work ? room_box("queue", is->queue).z : is->agent, work ? 0 : MR_HELD, &msg))
		return false;
	if (is->kind == MR_NEED_UNREADABLE)
		return unreadable(g, need);
	format_addf(&why, "claimed by '%s' ", *is->agent ? is->agent : "?");
	add_span(&why, g->now_ms - is->since_ms);
	buf_addf(&why, " ago, attempt %u", need->attempt);
	if (need->attempts > 0)
		buf_addf(&why, " of %u", need->attempts);
	add_deadline(g, &why, is->due_ms > g->now_ms ? "; its lease ends at" : "; its lease ended at", is->due_ms);
	if (need->over)
		buf_adds(&why, "; that claim is over, and the next claim puts it back");
	else if (*is->agent)
		why_presence(&why, g->room, is->agent);
	is->why = kept(g, &why);
	if (*is->agent)
		act(g, is, "nudge", true, "nudge", is->agent, NULL);
	if (work && !need->over)
		act(g, is, "release", false, "release", need->token, NULL);
	else
		act(g, is, "why", false, "why", is->id, NULL);
	return true;
}

struct last_past {
	struct buf *why;
	int64_t *since_ms;
};

static void
note_past(void *ctx, const struct past_claim *past)
{
	struct last_past *last = ctx;

	buf_clear(last->why);
	(void)why_past_claim(last->why, past);
	*last->since_ms = past->ended_ms;
}

static bool
describe_dead(struct needs *g, struct need *need)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_need *is = &need->is;
	struct room_box box = room_box("queue", is->queue);
	bool work = *is->queue;

	if (!take_message(g, need, work ? box.z : OPERATOR, work ? 0 : MR_DEAD, &msg))
		return false;
	(void)g->room->driver->each_past(
	    g->room, work ? box.z : "", is->id, NULL, note_past, &(struct last_past){ &why, &is->since_ms }, IGNORED);
	if (is->kind == MR_NEED_UNREADABLE)
		return unreadable(g, need);
	if (why.len == 0 && work)
		format_addf(&why, "it failed in the queue '%s'", is->queue);
	else if (why.len == 0)
		format_addf(
		    &why, "to '%s', who had not read it when it was given up", msg.to.n > 0 ? msg.to.v[0] : "?");
	is->why = kept(g, &why);
	act(g, is, "retry", false, "dead", "retry", is->id);
	act(g, is, "drop", false, "dead", "drop", is->id);
	return true;
}

static bool
describe_link(struct needs *g, struct need *need)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_need *is = &need->is;

	if (is->count > 0) {
		buf_addf(&why, "%zu wait%s to be carried, the oldest for ", is->count, is->count == 1 ? "s" : "");
		add_span(&why, g->now_ms - is->since_ms);
	}
	if (need->err.code != MR_OK)
		buf_addf(&why, "%s%s", why.len > 0 ? "; " : "", need->err.message);
	is->why = kept(g, &why);
	act(g, is, "carry", false, "carry", is->link, NULL);
	act(g, is, "doctor", false, "doctor", NULL, NULL);
	return true;
}

bool
need_describe(struct needs *g, struct need *need)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;

	switch (need->is.kind) {
	case MR_NEED_ANSWER:
		return describe_answer(g, need);
	case MR_NEED_OVERDUE:
		return describe_overdue(g, need);
	case MR_NEED_UNREAD:
		return describe_unread(g, need);
	case MR_NEED_LEASE:
	case MR_NEED_ATTEMPT:
		return describe_claim(g, need);
	case MR_NEED_FAILED:
	case MR_NEED_DEAD:
		return describe_dead(g, need);
	case MR_NEED_GONE:
		return describe_gone(g, need);
	case MR_NEED_LINK:
		return describe_link(g, need);
	case MR_NEED_THROTTLED:
		buf_adds(&why, "its mail woke agents too often: it is stored, and wakes nobody for a while");
		need->is.why = kept(g, &why);
		act(g, &need->is, "thread", false, "thread", need->is.thread, NULL);
		return true;
	case MR_NEED_UNREADABLE:
	case MR_NEED_KINDS:
		break;
	}
	return unreadable(g, need);
}
