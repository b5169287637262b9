/* SPDX-License-Identifier: MIT */
/* needs.c - one need of attention.c: its message, the evidence as `mailroom why` gives it, and the commands that
 * help. */
#include "office/operator/operator.h"

/* ---- Words ---- */

static void
act(struct needs *g, struct mr_need *need, const char *label, bool text, const char *w1, const char *w2, const char *w3)
{
	struct mr_action *action = &need->actions[need->actions_n++];
	const char *words[] = { w1, w2, w3 };

	*action = (struct mr_action){ .label = label, .text = text };
	for (size_t i = 0; i < 3 && words[i]; i++)
		action->words[i] = roll_str(&g->own, words[i]);
}

/* "3h"; "0s" if it is in the future */
static void
add_span(struct buf *out, int64_t ms)
{
	buf_adds(out, span_text(ms).z);
}

/* "an answer is wanted by 2026-11-16T10:30:00.000Z, 2h ago" */
static void
add_deadline(const struct needs *g, struct buf *out, const char *what, int64_t at_ms)
{
	bool ahead = at_ms > g->now_ms;

	buf_addf(out, "%s %s, %s%s%s", what, time_text(at_ms).z, ahead ? "in " : "",
	    span_text(ahead ? at_ms - g->now_ms : g->now_ms - at_ms).z, ahead ? "" : " ago");
}

/* ---- Kinds: evidence and actions ---- */

typedef void describe_fn(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why);

static void
describe_answer(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why)
{
	struct mr_need *is = &need->is;

	is->due_ms = is->due_ms ? is->due_ms : msg->by_ms;
	is->pressing = msg->priority == MR_URGENT || (is->due_ms > 0 && is->due_ms <= g->now_ms);
	buf_adds(why, msg->flags & MR_SEEN ? "read and not answered, sent " : "unread for ");
	add_span(why, g->now_ms - is->since_ms);
	buf_adds(why, msg->flags & MR_SEEN ? " ago" : "");
	if (is->due_ms)
		add_deadline(g, why, "; an answer is wanted by", is->due_ms);
	is->agent = OPERATOR;
	act(g, is, "reply", true, "reply", is->id, NULL);
	act(g, is, "read", false, "read", is->id, NULL);
}

static void
describe_overdue(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why)
{
	struct mr_need *is = &need->is;

	(void)msg;
	format_addf(why, "'%s' asked '%s'", is->agent, need->to);
	add_deadline(g, why, ", and wanted an answer by", is->due_ms);
	why_presence(why, g->room, need->to);
	act(g, is, "nudge", true, "nudge", need->to, NULL);
	act(g, is, "why", false, "why", is->id, NULL);
}

/* Waiting mail, also of an agent that is gone. */
static void
describe_unread(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why)
{
	mr_auto(buf_done) struct buf told = BUF_INIT;
	struct mr_need *is = &need->is;
	char limit[MR_WAKE_WHY_MAX];
	int64_t told_ms;

	(void)msg;
	if (is->count > 0) {
		buf_addf(why, "%zu unread, the oldest for ", is->count);
		add_span(why, g->now_ms - is->since_ms);
	} else {
		buf_adds(why, "it has work in its hands");
	}
	why_presence(why, g->room, is->agent);
	if (is->kind == MR_NEED_GONE) {
		act(g, is, "look", false, "inbox", "--as", is->agent);
		act(g, is, "prune", false, "prune", is->agent, NULL);
		return;
	}
	if (why_announced(&told, g->room, is->agent, is->id, &told_ms))
		buf_addf(why, "; %s", buf_z(&told));
	if (mr_wake_limited(g->room, is->agent, is->id, limit))
		buf_addf(why, "; %s", limit);
	act(g, is, "nudge", true, "nudge", is->agent, NULL);
	act(g, is, "why", false, "why", is->id, NULL);
}

static void
describe_claim(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why)
{
	struct mr_need *is = &need->is;

	(void)msg;
	format_addf(why, "claimed by '%s' ", *is->agent ? is->agent : "?");
	add_span(why, g->now_ms - is->since_ms);
	buf_addf(why, " ago, attempt %u", need->attempt);
	if (need->attempts > 0)
		buf_addf(why, " of %u", need->attempts);
	add_deadline(g, why, is->due_ms > g->now_ms ? "; its lease ends at" : "; its lease ended at", is->due_ms);
	if (need->over)
		buf_adds(why, "; that claim is over, and the next claim puts it back");
	else if (*is->agent)
		why_presence(why, g->room, is->agent);
	if (*is->agent)
		act(g, is, "nudge", true, "nudge", is->agent, NULL);
	if (*is->queue && !need->over)
		act(g, is, "release", false, "release", need->token, NULL);
	else
		act(g, is, "why", false, "why", is->id, NULL);
}

static void
describe_dead(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why)
{
	struct mr_need *is = &need->is;

	if (why->len == 0 && *is->queue)
		format_addf(why, "it failed in the queue '%s'", is->queue);
	else if (why->len == 0)
		format_addf(why, "to '%s', which had not read it when delivery was given up",
		    msg->to.n > 0 ? msg->to.v[0] : "?");
	act(g, is, "retry", false, "dead", "retry", is->id);
	act(g, is, "drop", false, "dead", "drop", is->id);
}

static void
describe_link(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why)
{
	struct mr_need *is = &need->is;

	(void)msg;
	if (is->count > 0) {
		buf_addf(why, "%zu wait%s to be carried, the oldest for ", is->count, is->count == 1 ? "s" : "");
		add_span(why, g->now_ms - is->since_ms);
	}
	if (need->err.code != MR_OK)
		buf_addf(why, "%s%s", why->len > 0 ? "; " : "", need->err.message);
	act(g, is, "carry", false, "carry", is->link, NULL);
	act(g, is, "doctor", false, "doctor", NULL, NULL);
}

static void
describe_throttled(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why)
{
	(void)msg;
	buf_adds(why, "its mail woke agents too often: it is stored, and wakes no agent for a while");
	act(g, &need->is, "thread", false, "thread", need->is.thread, NULL);
}

static void
describe_unreadable(struct needs *g, struct need *need, const struct mr_message *msg, struct buf *why)
{
	(void)msg;
	buf_adds(why, need->err.message);
	act(g, &need->is, "doctor", false, "doctor", NULL, NULL);
}

static const struct {
	describe_fn *describe;
	unsigned folders; /* folders of the message, or of the work of its queue; 0: it is not opened */
} kinds[MR_NEED_KINDS] = {
	[MR_NEED_ANSWER] = { describe_answer, (unsigned)MR_INBOX | MR_HELD | MR_ARCHIVE },
	[MR_NEED_OVERDUE] = { describe_overdue, 0 },
	[MR_NEED_UNREAD] = { describe_unread, MR_INBOX },
	[MR_NEED_LEASE] = { describe_claim, MR_HELD },
	[MR_NEED_ATTEMPT] = { describe_claim, MR_HELD },
	[MR_NEED_FAILED] = { describe_dead, MR_DEAD },
	[MR_NEED_DEAD] = { describe_dead, MR_DEAD },
	[MR_NEED_GONE] = { describe_unread, MR_INBOX },
	[MR_NEED_LINK] = { describe_link, 0 },
	[MR_NEED_THROTTLED] = { describe_throttled, 0 },
	[MR_NEED_UNREADABLE] = { describe_unreadable, 0 },
};

/* ---- The message ---- */

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

/* False: it is gone or settled. */
static bool
take_message(struct needs *g, struct need *need, struct mr_message *msg, struct buf *why)
{
	struct mr_need *is = &need->is;
	struct room_box queue = room_box("queue", is->queue);
	bool work = *is->queue, dead = kinds[is->kind].folders == MR_DEAD;
	const char *box = work ? queue.z : dead || is->kind == MR_NEED_ANSWER ? OPERATOR : is->agent;
	enum mr_rc rc = g->room->driver->fetch(g->room, box, is->id, work ? 0 : kinds[is->kind].folders,
	    work ? SCAN_BODIES : SCAN_HEADERS, msg, &need->err);

	if (rc == MR_NOTFOUND || rc == MR_BUSY)
		return false;
	if (dead)
		(void)g->room->driver->each_past(g->room, work ? box : "", is->id, NULL, 0, note_past,
		    &(struct last_past){ why, &is->since_ms }, IGNORED);
	if (rc != MR_OK) {
		is->kind = MR_NEED_UNREADABLE;
		buf_clear(why);
		return true;
	}
	is->from = roll_str(&g->own, msg->from);
	is->subject = roll_str(&g->own, msg->subject);
	is->thread = roll_str(&g->own, *msg->thread ? msg->thread : msg->id);
	is->priority = msg->priority;
	return is->kind != MR_NEED_ANSWER || !(msg->flags & (MR_REPLIED | MR_ACKED));
}

bool
need_describe(struct needs *g, struct need *need)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf why = BUF_INIT;

	if (kinds[need->is.kind].folders && need->is.id[0] && !take_message(g, need, &msg, &why))
		return false;
	kinds[need->is.kind].describe(g, need, &msg, &why);
	need->is.why = roll_str(&g->own, buf_z(&why));
	g->own.failed |= !buf_ok(&why);
	return true;
}
