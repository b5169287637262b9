/* SPDX-License-Identifier: MIT */
/*
 * handoff.c - an agent's note to its next life: a message to itself, pinned. It is on stable storage before anything
 * else is done, because what comes next is usually the end of the one who wrote it. Hand-offs that were read are put
 * away by the next one; one that nobody read stays.
 */
#include "office/mail/handoff.h"

#include "base/error.h"
#include "base/text.h"
#include "message/type.h"
#include "office/tell/inject.h"

#define SIGN "\xF0\x9F\xA4\x9D " /* a handshake */
#define SUBJECT_CHARS 120

bool
handoff_is_own(const struct mr_message *msg, const char *agent)
{
	/* In a room that users share anybody may write in our name: that is no note of ours. */
	if (strcmp(msg->from, agent) != 0 || msg->proof == MR_UNPROVEN)
		return false;
	if (*msg->type)
		return ascii_caseeq(msg->type, HANDOFF);
	return str_eq(type_word(str_of(msg->subject)), STR(HANDOFF));
}

bool
mr_handoff_is_own(const struct mr_self *self, const struct mr_message *msg)
{
	return handoff_is_own(msg, self->agent);
}

/* ---- Composing ---- */

static struct mr_str
first_words(struct mr_str text)
{
	while (text.len > 0) {
		const char *lf = memchr(text.ptr, '\n', text.len);
		struct mr_str line = str_trim((struct mr_str){ text.ptr, lf ? (size_t)(lf - text.ptr) : text.len });

		while (line.len > 0 && line.ptr[0] == '\r')
			line.len = 0;
		if (line.len > 0 && line.ptr[0] != '#')
			return line;
		if (!lf)
			break;
		text.len -= (size_t)(lf - text.ptr) + 1;
		text.ptr = lf + 1;
	}
	return (struct mr_str){ "", 0 };
}

static void
compose_subject(struct buf *out, const struct mr_self *self, const struct mr_handoff *what)
{
	struct mr_str given = str_of(what->subject ? what->subject : "");

	if (given.len == 0)
		given = first_words(str_of(what->text ? what->text : ""));
	if (strstr(what->subject ? what->subject : "", HANDOFF)) {
		text_clean_line(out, given);
		return;
	}
	buf_adds(out, SIGN HANDOFF ": ");
	if (given.len > 0)
		text_clean_line(out, utf8_cut(given, SUBJECT_CHARS));
	else
		buf_addf(out, "life %u of %s ends", self->life, self->agent);
}

/* Which of a hand-off's fields can this room not hold? */
static unsigned
lacks(struct mr_room *room, const char *subject)
{
	struct mr_message probe = { .from = "",
		.subject = subject,
		.type = HANDOFF,
		.priority = MR_HIGH,
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = "x",
		.body_len = 1,
		.path = "" };

	return ROOM_HAS(room, lacks) ? room->driver->lacks(room, &probe) : 0;
}

static void
compose_body(struct buf *out, struct mr_room *room, const struct mr_self *self, const struct mr_handoff *what)
{
	if (what->text && *what->text)
		buf_adds(out, what->text);
	else
		buf_addf(out, "## Context\n\n%s left no note.\n", self->agent);
	if (out->len > 0 && out->ptr[out->len - 1] != '\n')
		buf_addc(out, '\n');
	if (what->collect)
		handoff_collect(room, self, what->dir, out);
}

/* ---- Afterwards ---- */

struct earlier {
	const char *agent, *id;
	struct candidates old;
};

static bool
note_earlier(void *ctx, const struct mr_message *msg)
{
	struct earlier *e = ctx;

	if (!(msg->flags & MR_SEEN) || strcmp(msg->id, e->id) >= 0 || !handoff_is_own(msg, e->agent))
		return true;
	return candidates_add(&e->old, msg);
}

static void
put_earlier_away(struct mr_room *room, const struct mr_self *self, const char *id)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS };
	struct earlier e = { .agent = self->agent, .id = id };
	struct mr_error ignored = { 0 };

	if (!ROOM_HAS(room, mark) || !ROOM_HAS(room, move) || !(room->driver->abilities & ROOM_ARCHIVE))
		return;
	(void)office_scan(room, self->agent, &want, note_earlier, &e, &ignored);
	for (size_t i = 0; i < e.old.n; i++) {
		if (room->driver->abilities & ROOM_PIN)
			(void)room->driver->mark(room, self->agent, e.old.v[i].id, 0, MR_PINNED, &ignored);
		(void)room->driver->move(room, self->agent, e.old.v[i].id, MR_ARCHIVE, &ignored);
	}
	candidates_done(&e.old);
}

enum mr_rc
mr_handoff(struct mr_room *room, const struct mr_self *self, const struct mr_handoff *what, struct mr_receipt *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	struct mr_error ignored = { 0 };
	enum mr_rc rc;

	compose_subject(&subject, self, what);
	unsigned missing = lacks(room, buf_z(&subject));

	if (missing & FIELD_SUBJECT)
		buf_addf(&body, "%s\n\n", buf_z(&subject));
	compose_body(&body, room, self, what);
	if (!buf_ok(&subject) || !buf_ok(&body))
		return mr_nomem(err);
	/* Where the type of a message cannot be held, its subject says it, and else its text. */
	struct mr_draft draft = { .to = (const char *[]){ self->agent, NULL },
		.subject = missing & FIELD_SUBJECT ? NULL : buf_z(&subject),
		.body = body.ptr,
		.body_len = body.len,
		.type = missing & FIELD_TYPE ? NULL : HANDOFF,
		.priority = missing & FIELD_PRIORITY ? MR_NORMAL : MR_HIGH,
		.dry_run = what->dry_run };

	rc = mr_send(room, self, &draft, ret, err);
	if (rc != MR_OK || what->dry_run)
		return rc;
	/* It is accepted: whatever goes wrong from here on costs a mark. */
	if (ROOM_HAS(room, mark) && (room->driver->abilities & ROOM_PIN))
		(void)room->driver->mark(room, self->agent, ret->id, MR_PINNED, 0, &ignored);
	put_earlier_away(room, self, ret->id);
	if (self->life > 0)
		announced_own(room, self, ret->id);
	(void)office_flush(room, &ignored);
	return MR_OK;
}
