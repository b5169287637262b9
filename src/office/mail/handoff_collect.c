/* SPDX-License-Identifier: MIT */
/* handoff_collect.c - what the next life will want to know and the last one forgets to write: the state of its git
 * worktree, the work in its hands, unread mail, and questions that are open on either side. */
#include "base/clock.h"
#include "base/fence.h"
#include "office/mail/handoff.h"
#include "office/who/who.h"

#define LINES_SHOWN 10
#define LOOK_BACK 500 /* messages on either side, the newest */
#define TEXT_LOOKED_AT ((size_t)64 << 10)

struct listing {
	struct buf *out;
	const char *heading;
	size_t n;
};

static bool
add_mail(void *ctx, const struct mr_message *msg)
{
	struct listing *l = ctx;
	bool sent = msg->folder == MR_SENT;

	if (l->n++ == 0)
		buf_adds(l->out, l->heading);
	if (l->n > LINES_SHOWN)
		return true;
	fence_addf(
	    l->out, "- %s %s %s", msg->id, sent ? "to" : "from", sent && msg->to.n > 0 ? msg->to.v[0] : msg->from);
	if (sent && msg->to.n > 1)
		buf_addf(l->out, " and %zu more", msg->to.n - 1);
	if (msg->by_ms > 0) {
		char by[RFC3339_LEN + 1];

		time_rfc3339(msg->by_ms, by);
		buf_addf(l->out, ", by %.16sZ", by);
	}
	fence_addf(l->out, ": %.100s\n", msg->subject);
	return true;
}

static void
end_listing(const struct listing *l, const char *command)
{
	if (l->n > LINES_SHOWN)
		buf_addf(l->out, "- and %zu more: %s\n", l->n - LINES_SHOWN, command);
}

/* ---- Open questions ---- */

struct word { /* that one side said: what it answers, or to whom in which thread */
	char *reply_to, *thread, *peer;
	int64_t at_ms;
};
struct words {
	struct word *v;
	size_t n;
	bool failed;
};

static void
words_done(struct words *w)
{
	for (size_t i = 0; i < w->n; i++) {
		free(w->v[i].reply_to);
		free(w->v[i].thread);
		free(w->v[i].peer);
	}
	free(w->v);
}

static bool
keep_word(struct words *w, const struct mr_message *msg, const char *peer)
{
	struct word *v = realloc(w->v, (w->n + 1) * sizeof *v);

	w->failed = !v;
	if (!v)
		return false;
	w->v = v;
	v += w->n++;
	*v = (struct word){ strdup(msg->reply_to), strdup(msg->thread), strdup(peer), msg->date_ms };
	w->failed = !v->reply_to || !v->thread || !v->peer;
	return !w->failed;
}

static bool
note_heard(void *ctx, const struct mr_message *msg)
{
	return keep_word(ctx, msg, msg->from);
}

static bool
note_said(void *ctx, const struct mr_message *msg)
{
	for (size_t i = 0; i < msg->to.n; i++)
		if (!keep_word(ctx, msg, msg->to.v[i]))
			return false;
	return true;
}

/* By an answer to it, or by later mail in its thread. */
static bool
is_answered(const struct words *w, const struct mr_message *question, const char *peer)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->v[i].reply_to, question->id) == 0 ||
		    (*question->thread && strcmp(w->v[i].thread, question->thread) == 0 &&
			w->v[i].at_ms > question->date_ms && strcmp(w->v[i].peer, peer) == 0))
			return true;
	return false;
}

/* A question mark at the end of a word, not in what is quoted; the subject of an answer is that of its question. */
static bool
has_question_mark(struct mr_str text)
{
	bool quoted = false;

	for (size_t i = 0; i < text.len; i++) {
		if (i == 0 || text.ptr[i - 1] == '\n')
			quoted = text.ptr[i] == '>';
		if (text.ptr[i] == '?' && !quoted && (i + 1 == text.len || strchr(" \t\r\n\"')]*_", text.ptr[i + 1])))
			return true;
	}
	return false;
}

static bool
asks(const struct mr_message *msg)
{
	size_t len = msg->body_len < TEXT_LOOKED_AT ? msg->body_len : TEXT_LOOKED_AT;

	return msg->by_ms > 0 || (!*msg->reply_to && has_question_mark(str_of(msg->subject))) ||
	       has_question_mark((struct mr_str){ msg->body ? msg->body : "", msg->body ? len : 0 });
}

struct questions {
	struct listing list;
	const struct mr_self *self;
	struct words answers;
};

static bool
add_asked(void *ctx, const struct mr_message *msg)
{
	struct questions *q = ctx;

	for (size_t i = 0; i < msg->to.n; i++)
		if (strcmp(msg->to.v[i], q->self->agent) == 0 || is_answered(&q->answers, msg, msg->to.v[i]))
			return true;
	return asks(msg) ? add_mail(&q->list, msg) : true;
}

static bool
add_to_answer(void *ctx, const struct mr_message *msg)
{
	struct questions *q = ctx;

	if ((msg->flags & (MR_REPLIED | MR_ACKED)) || strcmp(msg->from, q->self->agent) == 0 || !asks(msg) ||
	    is_answered(&q->answers, msg, msg->from))
		return true;
	return add_mail(&q->list, msg);
}

static void
add_questions(struct mr_room *room, const struct mr_self *self, struct buf *out)
{
	unsigned everywhere = office_folders(room, MR_INBOX | MR_HELD | MR_ARCHIVE);
	struct mr_scan heard = { .filter = { .folders = everywhere }, .order = MR_NEWEST_FIRST, .limit = LOOK_BACK };
	struct mr_scan said = { .filter = { .folders = MR_SENT }, .order = MR_NEWEST_FIRST, .limit = LOOK_BACK };
	struct mr_scan read = { .filter = { .seen = true, .no_control = true },
		.order = MR_NEWEST_FIRST,
		.bodies = true,
		.limit = LOOK_BACK };
	struct questions asked = { { out, "\n## Asked, and not answered yet\n\n", 0 }, self, { 0 } };
	struct questions mine = { { out, "\n## Read, and not answered by you\n\n", 0 }, self, { 0 } };
	struct mr_error ignored = { 0 };

	if (!(room->driver->abilities & ROOM_THREADS) || !office_folders(room, MR_SENT))
		return; /* nothing there tells an answer */
	(void)mr_scan(room, self->agent, &heard, note_heard, &asked.answers, &ignored);
	(void)mr_scan(room, self->agent, &said, note_said, &mine.answers, &ignored);
	said.bodies = true;
	(void)mr_scan(room, self->agent, &said, add_asked, &asked, &ignored);
	end_listing(&asked.list, "mailroom sent");
	(void)mr_scan(room, self->agent, &read, add_to_answer, &mine, &ignored);
	end_listing(&mine.list, "mailroom inbox --all");
	out->failed |= asked.answers.failed || mine.answers.failed;
	words_done(&asked.answers);
	words_done(&mine.answers);
}

void
handoff_collect(struct mr_room *room, const struct mr_self *self, const char *dir, struct buf *out)
{
	struct listing held = { .out = out, .heading = "\n## In hand\n\n" };
	struct listing inbox = { .out = out, .heading = "\n## Inbox\n\n" };
	struct mr_scan in_hand = { .filter = { .folders = MR_HELD } };
	struct mr_scan unread = { .filter = { .unread = true }, .order = MR_BY_PRIORITY };
	struct mr_error ignored = { 0 };

	handoff_git(out, dir);
	if (office_folders(room, MR_HELD))
		(void)mr_scan(room, self->agent, &in_hand, add_mail, &held, &ignored);
	(void)mr_queue_held(room, self->agent, NULL, add_mail, &held, &ignored);
	end_listing(&held, "mailroom claims");
	(void)mr_scan(room, self->agent, &unread, add_mail, &inbox, &ignored);
	end_listing(&inbox, "mailroom inbox");
	add_questions(room, self, out);
}
