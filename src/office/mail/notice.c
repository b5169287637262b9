/* SPDX-License-Identifier: MIT */
/*
 * notice.c - mail that the post office writes itself: a bounce tells a sender that its message failed; other notices
 * report an action. And the references that keep an answer in its thread.
 */
#include "base/clock.h"
#include "message/address.h"
#include "message/message.h"
#include "office/mail/mail.h"
#include <stdarg.h>

#define REFERENCES_MAX 20

/* ---- References ---- */

/* Takes the next "<...>" of a References value; an empty result is the end. */
static struct mr_str
next_reference(struct mr_str *rest)
{
	const char *open = memchr(rest->ptr, '<', rest->len);
	const char *shut = open ? memchr(open, '>', rest->len - (size_t)(open - rest->ptr)) : NULL;

	if (!shut) {
		rest->len = 0;
		return (struct mr_str){ "", 0 };
	}
	rest->len -= (size_t)(shut + 1 - rest->ptr);
	rest->ptr = shut + 1;
	return (struct mr_str){ open, (size_t)(shut + 1 - open) };
}

void
references_of(struct buf *out, const struct mr_room *room, const struct mr_message *original)
{
	const char *value = mr_message_header(original, "References");
	struct mr_str all = str_of(value ? value : ""), rest = all;
	size_t n = 0;

	while (next_reference(&rest).len > 0)
		n++;
	/* The first one names the thread's root for every mail program, so it is kept when others must go. */
	size_t skip = n >= REFERENCES_MAX ? n - (REFERENCES_MAX - 1) : 0;

	rest = all;
	for (size_t i = 0; i < n; i++) {
		struct mr_str reference = next_reference(&rest);

		if (i == 0 || i > skip)
			buf_addf(out, "%s%.*s", out->len > 0 ? " " : "", (int)reference.len, reference.ptr);
	}
	/* Mail of another program has a Message-ID that its own readers know; ours is made of the id anyway. */
	value = mr_message_header(original, "Message-ID");
	rest = str_of(value ? value : "");
	struct mr_str last = next_reference(&rest);

	buf_adds(out, out->len > 0 ? " " : "");
	if (last.len > 0)
		buf_add(out, last);
	else
		buf_addf(out, "<%s@%s>", original->id, room->name);
}

/* ---- Any notice ---- */

enum mr_rc
notice_deliver(struct mr_room *room, const struct office_notice *n, struct mr_error *err)
{
	mr_auto(buf_done) struct buf references = BUF_INIT;
	struct mr_message msg = message_new(n->from, buf_z(n->subject), buf_str(n->body));
	struct mr_header header = { "References", "" };
	struct delivery what = { .msg = &msg, .to = n->to, .sender = n->from };
	struct delivered got = { 0 };

	if (n->id)
		(void)snprintf(msg.id, sizeof(msg.id), "%s", n->id);
	msg.to = *n->to;
	msg.type = n->type;
	msg.sender_life = n->life;
	if (n->about) {
		msg.priority = n->about->priority;
		msg.thread = n->about->thread;
		msg.reply_to = n->about->id;
		references_of(&references, room, n->about);
		header.value = buf_z(&references);
		msg.headers = &header;
		msg.headers_n = 1;
	} else {
		msg.thread = msg.id;
	}
	TRY(mr_got(buf_ok(n->subject) && buf_ok(n->body) && buf_ok(&references), err));
	if (room->driver->abilities & ROOM_KEYS)
		what.key = n->key;
	enum mr_rc rc = room->driver->deliver(room, &what, &got, err);

	delivered_done(&got);
	/* in doubt: durable, and any later command completes it */
	return mr_unless(rc, MR_INDOUBT, err);
}

/* ---- Bounces ---- */

/* A bounce never bounces. */
static bool
may_bounce(const struct mr_message *failed)
{
	return strcmp(failed->type, BOUNCE_TYPE) != 0 && address_check(str_of(failed->from), IGNORED) == MR_OK;
}

/* If the sender cannot be looked up now (an I/O error) it is not gone: the delivery to it decides, and its error is
 * returned. */
bool
bounce_sender_gone(struct mr_room *room, const struct mr_message *failed)
{
	return may_bounce(failed) && agent_exists(room, failed->from, IGNORED) == MR_NOTFOUND;
}

enum mr_rc
bounce_deliver(struct mr_room *room, const struct bounce *bounce, const struct mr_message *failed, struct mr_error *err,
    const char *fmt, ...)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	char date[RFC3339_LEN + 1], story[2 * MR_ADDRESS_MAX + 200];
	va_list args;

	if (!may_bounce(failed) || bounce_sender_gone(room, failed)) /* then the mail is only kept */
		return MR_OK;
	va_start(args, fmt);
	(void)vsnprintf(story, sizeof(story), fmt, args);
	va_end(args);
	/* The text does not depend on when it is written: with a key, a second bounce is the same. */
	time_rfc3339(failed->date_ms, date);
	buf_addf(&subject, "Failed: %s", failed->subject);
	buf_addf(&body, "%s\n\nReason: %s\n", story, *bounce->reason ? bounce->reason : "none given");
	buf_addf(&body, "Message: %s\nSubject: %s\nSent: %s\n", failed->id, failed->subject, date);
	buf_adds(&body, "\nThe message is kept: mailroom dead list\n");
	TRY(mr_got(names_add(&to, str_of(failed->from)), err));
	struct office_notice notice = {
		.from = bounce->from,
		.life = bounce->life,
		.to = &to,
		.subject = &subject,
		.body = &body,
		.type = BOUNCE_TYPE,
		.about = failed,
		.key = bounce->key,
	};
	enum mr_rc rc = notice_deliver(room, &notice, err);

	if (rc == MR_OK || rc == MR_NOTFOUND) /* pruned since we looked */
		return MR_OK;
	return mr_wrap(err, "bounce to '%s'", failed->from);
}

enum mr_rc
bounce_send(struct mr_room *room, const struct mr_self *self, const struct mr_message *failed, const char *reason,
    const char *key, struct mr_error *err)
{
	struct bounce bounce = { .from = self->agent, .life = self->life, .reason = reason, .key = key };

	if (strcmp(failed->from, self->agent) == 0)
		return MR_OK;
	return bounce_deliver(room, &bounce, failed, err,
	    "%s could not do what this message asked, and it will not be tried again.", self->agent);
}

/* ---- Mail of an agent that leaves ---- */

static bool
note_unread(void *ctx, const struct mr_message *msg)
{
	return candidates_add(ctx, msg);
}

enum mr_rc
bounce_unread(struct mr_room *room, const char *agent, const struct mr_names *leaving, struct mr_error *err)
{
	mr_auto(candidates_done) struct candidates unread = { 0 };
	struct scan_request want = { .folders = MR_INBOX | MR_HELD, .depth = SCAN_NAMES, .unread_only = true };
	struct bounce bounce = { .from = agent, .reason = "the agent was pruned" };

	TRY(room->driver->scan(room, agent, &want, note_unread, &unread, err));
	TRY(mr_got(!unread.failed, err));
	for (size_t i = 0; i < unread.n; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		char key[16 + MR_ID_LEN];

		/* Gone meanwhile, or unreadable: then there is nobody to tell. */
		if (room->driver->fetch(room, agent, unread.v[i].id, want.folders, SCAN_HEADERS, &msg, IGNORED) !=
			MR_OK ||
		    strcmp(msg.from, agent) == 0 || names_has(leaving, msg.from))
			continue;
		(void)snprintf(key, sizeof(key), "pruned-%s", msg.id);
		bounce.key = key;
		TRY(bounce_deliver(
		    room, &bounce, &msg, err, "%s was taken off the room and had not read this message.", agent));
	}
	return MR_OK;
}
