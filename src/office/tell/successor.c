/* SPDX-License-Identifier: MIT */
/*
 * successor.c - an agent's note to its next life (`handoff`): a message to itself, pinned. It is on stable storage
 * before anything else is done, because usually the writer's life ends next. Notes that were read are archived by the
 * next note; an unread one stays.
 *
 * With --collect the note also has what the next life will need and a note often omits: the state of its git worktree
 * (worktree.c), held work, unread mail, and open questions on both sides.
 */
#include "base/clock.h"
#include "base/fence.h"
#include "base/text.h"
#include "message/message.h"
#include "message/type.h"
#include "office/mail/mail.h"
#include "office/tell/tell.h"

#define SIGN "\xF0\x9F\xA4\x9D " /* a handshake */
#define SUBJECT_CHARS 120
#define LINES_SHOWN 10
#define LOOK_BACK 500 /* messages on either side, the newest */
#define TEXT_LOOKED_AT ((size_t)64 << 10)

bool
mr_handoff_is_own(const struct mr_self *self, const struct mr_message *msg)
{
	return successor_is_own(msg, self->agent);
}

/* ---- Mail in the note ---- */

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
	if (msg->by_ms > 0)
		buf_addf(l->out, ", by %.16sZ", time_text(msg->by_ms).z);
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

struct word { /* a message of one side: what it answers, or to whom in which thread */
	const char *reply_to, *thread, *peer;
	int64_t at_ms;
};
struct questions {
	struct listing list;
	const struct mr_self *self;
	struct roll answers; /* struct word */
};

static bool
keep_word(struct questions *q, const struct mr_message *msg, const char *peer)
{
	struct word *word = roll_add(&q->answers, sizeof(*word));

	if (word)
		*word = (struct word){ roll_str(&q->answers, msg->reply_to), roll_str(&q->answers, msg->thread),
			roll_str(&q->answers, peer), msg->date_ms };
	q->list.out->failed |= q->answers.failed;
	return !q->answers.failed;
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
is_answered(const struct questions *q, const struct mr_message *question, const char *peer)
{
	for (const struct word *w = q->answers.v, *end = w + q->answers.n; w < end; w++)
		if (strcmp(w->reply_to, question->id) == 0 ||
		    (*question->thread && strcmp(w->thread, question->thread) == 0 && w->at_ms > question->date_ms &&
			strcmp(w->peer, peer) == 0))
			return true;
	return false;
}

/* A question mark at the end of a word, outside of quoted text. */
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

/* The subject of an answer is ignored: it is that of the question. */
static bool
asks(const struct mr_message *msg)
{
	size_t len = msg->body_len < TEXT_LOOKED_AT ? msg->body_len : TEXT_LOOKED_AT;

	return msg->by_ms > 0 || (!*msg->reply_to && has_question_mark(str_of(msg->subject))) ||
	       (msg->body && has_question_mark((struct mr_str){ msg->body, len }));
}

static bool
add_asked(void *ctx, const struct mr_message *msg)
{
	struct questions *q = ctx;

	for (size_t i = 0; i < msg->to.n; i++)
		if (strcmp(msg->to.v[i], q->self->agent) == 0 || is_answered(q, msg, msg->to.v[i]))
			return true;
	return asks(msg) ? add_mail(&q->list, msg) : true;
}

static bool
add_to_answer(void *ctx, const struct mr_message *msg)
{
	struct questions *q = ctx;

	if ((msg->flags & (MR_REPLIED | MR_ACKED)) || strcmp(msg->from, q->self->agent) == 0 || !asks(msg) ||
	    is_answered(q, msg, msg->from))
		return true;
	return add_mail(&q->list, msg);
}

/* Adds the messages of `wanted` that ask something and that no message of `answers` answers. */
static void
add_questions(struct mr_room *room, const struct mr_self *self, struct buf *out, const char *heading,
    const struct mr_scan *answers, mr_message_fn *note, const struct mr_scan *wanted, mr_message_fn *add,
    const char *command)
{
	struct questions q = { .list = { out, heading, 0 }, .self = self };

	(void)mr_scan(room, self->agent, answers, note, &q, IGNORED);
	(void)mr_scan(room, self->agent, wanted, add, &q, IGNORED);
	end_listing(&q.list, command);
	roll_done(&q.answers);
}

/* The open matters of the agent, as sections after the text. Best effort. */
static void
collect(struct mr_room *room, const struct mr_self *self, const char *dir, struct buf *out)
{
	unsigned everywhere = office_folders(room, MR_INBOX | MR_HELD | MR_ARCHIVE);
	struct listing held = { .out = out, .heading = "\n## In hand\n\n" };
	struct listing inbox = { .out = out, .heading = "\n## Inbox\n\n" };
	struct mr_scan in_hand = { .filter = { .folders = MR_HELD } };
	struct mr_scan unread = { .filter = { .unread = true }, .order = MR_BY_PRIORITY };
	struct mr_scan heard = { .filter = { .folders = everywhere }, .order = MR_NEWEST_FIRST, .limit = LOOK_BACK };
	struct mr_scan said = { .filter = { .folders = MR_SENT }, .order = MR_NEWEST_FIRST, .limit = LOOK_BACK };
	struct mr_scan read = { .filter = { .seen = true, .no_control = true },
		.order = MR_NEWEST_FIRST,
		.bodies = true,
		.limit = LOOK_BACK };
	struct mr_scan asked = said;

	asked.bodies = true;
	worktree_describe(out, dir);
	if (office_folders(room, MR_HELD))
		(void)mr_scan(room, self->agent, &in_hand, add_mail, &held, IGNORED);
	(void)mr_queue_held(room, self->agent, NULL, add_mail, &held, IGNORED);
	end_listing(&held, "mailroom claims");
	(void)mr_scan(room, self->agent, &unread, add_mail, &inbox, IGNORED);
	end_listing(&inbox, "mailroom inbox");
	if (!(room->driver->abilities & ROOM_THREADS) || !office_folders(room, MR_SENT))
		return; /* nothing there identifies an answer */
	add_questions(room, self, out, "\n## Asked, and not answered yet\n\n", &heard, note_heard, &asked, add_asked,
	    "mailroom sent");
	add_questions(room, self, out, "\n## Read, and not answered by you\n\n", &said, note_said, &read, add_to_answer,
	    "mailroom inbox --all");
}

/* ---- The note ---- */

/* The first line that is not a heading. */
static struct mr_str
first_words(struct mr_str text)
{
	struct mr_str line;

	while (str_cut(&text, '\n', &line)) {
		line = str_trim(line);
		if (line.len > 0 && line.ptr[0] != '\r' && line.ptr[0] != '#')
			return line;
	}
	return (struct mr_str){ "", 0 };
}

static void
compose_subject(struct buf *out, const struct mr_self *self, const struct mr_handoff *what)
{
	const char *subject = what->subject ? what->subject : "";
	struct mr_str given = *subject ? str_of(subject) : first_words(str_of(what->text ? what->text : ""));

	if (strstr(subject, SUCCESSOR_TYPE)) {
		text_clean_line(out, given);
		return;
	}
	buf_adds(out, SIGN SUCCESSOR_TYPE ": ");
	if (given.len > 0)
		text_clean_line(out, utf8_cut(given, SUBJECT_CHARS));
	else
		buf_addf(out, "life %u of %s ends", self->life, self->agent);
}

struct earlier {
	const char *agent, *id;
	struct mr_names old;
};

static bool
note_earlier(void *ctx, const struct mr_message *msg)
{
	struct earlier *e = ctx;

	if (!(msg->flags & MR_SEEN) || strcmp(msg->id, e->id) >= 0 || !successor_is_own(msg, e->agent))
		return true;
	return names_add(&e->old, str_of(msg->id));
}

static void
put_earlier_away(struct mr_room *room, const struct mr_self *self, const char *id)
{
	const struct room_driver *driver = room->driver;
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS };
	struct earlier e = { .agent = self->agent, .id = id };

	if (!ROOM_HAS(room, mark) || !(driver->abilities & ROOM_ARCHIVE))
		return;
	(void)office_scan(room, self->agent, &want, note_earlier, &e, IGNORED);
	unsigned pin = driver->abilities & ROOM_PIN ? MR_PINNED : 0;

	for (size_t i = 0; i < e.old.n; i++)
		(void)driver->mark(room, self->agent, e.old.v[i], 0, pin, MR_ARCHIVE, IGNORED);
	mr_names_done(&e.old);
}

enum mr_rc
mr_handoff(struct mr_room *room, const struct mr_self *self, const struct mr_handoff *what, struct mr_receipt *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;

	compose_subject(&subject, self, what);
	/* In a format without a type, the subject shows it, or else the text. */
	struct mr_message probe = message_new("", buf_z(&subject), STR("x"));

	probe.type = SUCCESSOR_TYPE;
	probe.priority = MR_HIGH;
	unsigned missing = room->driver->unsupported(room, &probe);

	if (missing & FIELD_SUBJECT)
		buf_addf(&body, "%s\n\n", buf_z(&subject));
	if (what->text && *what->text)
		buf_adds(&body, what->text);
	else
		buf_addf(&body, "## Context\n\n%s left no note.\n", self->agent);
	if (body.len > 0 && body.ptr[body.len - 1] != '\n')
		buf_addc(&body, '\n');
	if (what->collect)
		collect(room, self, what->dir, &body);
	TRY(mr_got(buf_ok(&subject) && buf_ok(&body), err));
	struct mr_draft draft = { .to = (const char *[]){ self->agent, NULL },
		.subject = missing & FIELD_SUBJECT ? NULL : buf_z(&subject),
		.body = body.ptr,
		.body_len = body.len,
		.type = missing & FIELD_TYPE ? NULL : SUCCESSOR_TYPE,
		.priority = missing & FIELD_PRIORITY ? MR_NORMAL : MR_HIGH,
		.dry_run = what->dry_run };

	TRY(mr_send(room, self, &draft, ret, err));
	if (what->dry_run)
		return MR_OK;
	/* It is accepted: an error from here on only costs a mark. */
	if (room->driver->abilities & ROOM_PIN)
		(void)room->driver->mark(room, self->agent, ret->id, MR_PINNED, 0, 0, IGNORED);
	put_earlier_away(room, self, ret->id);
	if (self->life > 0)
		announced_own(room, self, ret->id);
	(void)room->driver->flush(room, IGNORED);
	return MR_OK;
}
