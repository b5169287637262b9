/* SPDX-License-Identifier: MIT */
/* bounce.c - telling a sender that its message failed, and the references that keep an answer in its thread.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "message/address.h"
#include "office/office.h"

#define REFERENCES_MAX 20

/* ---- References ---- */

static void
add_reference(struct buf *out, struct mr_str reference)
{
	if (out->len > 0)
		buf_addc(out, ' ');
	buf_add(out, reference);
}

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

static size_t
count_references(struct mr_str value)
{
	size_t n = 0;

	while (next_reference(&value).len > 0)
		n++;
	return n;
}

void
references_of(struct buf *out, const struct mr_room *room, const struct mr_message *original)
{
	const char *value = mr_message_header(original, "References");
	struct mr_str rest = str_of(value ? value : "");
	size_t n = count_references(rest);
	/* The first one names the thread's root for every mail program: when some must go, it stays. */
	size_t skip = n >= REFERENCES_MAX ? n - (REFERENCES_MAX - 1) : 0;

	for (size_t i = 0; i < n; i++) {
		struct mr_str reference = next_reference(&rest);

		if (i == 0 || i > skip)
			add_reference(out, reference);
	}
	/* Mail of another program has a Message-ID that its own readers know; ours is made of the id anyway.
	 */
	value = mr_message_header(original, "Message-ID");
	rest = str_of(value ? value : "");
	struct mr_str last = next_reference(&rest);

	if (last.len > 0) {
		add_reference(out, last);
		return;
	}
	if (out->len > 0)
		buf_addc(out, ' ');
	buf_addf(out, "<%s@%s>", original->id, room->name);
}

/* ---- Bounces ---- */

/* A bounce never bounces, and nobody is told who is not there any more: then the letter is only kept. A sender that
 * cannot be looked up now (an I/O error) is not gone: the delivery to it decides, and its error is told. */
static bool
wants_bounce(struct mr_room *room, const struct mr_message *failed)
{
	mr_auto(mr_agent_done) struct mr_agent sender = { 0 };
	struct mr_error ignored = { 0 };

	if (strcmp(failed->type, BOUNCE_TYPE) == 0 || address_check(str_of(failed->from), &ignored) != MR_OK)
		return false;
	return !ROOM_HAS(room, find_agent) ||
	       room->driver->find_agent(room, failed->from, &sender, &ignored) != MR_NOTFOUND;
}

bool
bounce_sender_gone(struct mr_room *room, const struct mr_message *failed)
{
	struct mr_error ignored = { 0 };

	return strcmp(failed->type, BOUNCE_TYPE) != 0 && *failed->from &&
	       address_check(str_of(failed->from), &ignored) == MR_OK && !wants_bounce(room, failed);
}

/* Nothing in it depends on when it is written: with a key, who tells it again tells the same. */
static void
write_body(struct buf *out, const struct bounce *bounce, const struct mr_message *failed)
{
	char date[RFC3339_LEN + 1];

	time_rfc3339(failed->date_ms, date);
	buf_addf(out, "%s\n\n", bounce->story);
	buf_addf(out, "Reason: %s\n", *bounce->reason ? bounce->reason : "none given");
	buf_addf(out, "Message: %s\nSubject: %s\nSent: %s\n", failed->id, failed->subject, date);
	buf_adds(out, "\nThe message is kept: mailroom dead list\n");
}

enum mr_rc
bounce_deliver(struct mr_room *room, const struct bounce *bounce, const struct mr_message *failed, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT, references = BUF_INIT;
	char sender[MR_ADDRESS_MAX + 1];
	char *name = sender;
	struct mr_names to = { &name, 1 };
	struct delivered got = { 0 };
	enum mr_rc rc;

	if (!wants_bounce(room, failed))
		return MR_OK;
	(void)snprintf(sender, sizeof(sender), "%s", failed->from);
	buf_addf(&subject, "Failed: %s", failed->subject);
	write_body(&body, bounce, failed);
	references_of(&references, room, failed);
	if (!buf_ok(&subject) || !buf_ok(&body) || !buf_ok(&references))
		return mr_nomem(err);
	struct mr_header header = { "References", buf_z(&references) };
	struct mr_message msg = {
		.from = bounce->from,
		.to = to,
		.subject = buf_z(&subject),
		.date_ms = clock_now_ms(),
		.type = BOUNCE_TYPE,
		.priority = failed->priority,
		.thread = failed->thread,
		.reply_to = failed->id,
		.replace_key = "",
		.sender_life = bounce->life,
		.body = buf_z(&body),
		.body_len = body.len,
		.headers = &header,
		.headers_n = 1,
		.path = "",
	};
	struct delivery what = { .msg = &msg, .to = &to, .sender = bounce->from };

	if (room->driver->abilities & ROOM_KEYS)
		what.key = bounce->key;
	id_new(msg.id);
	rc = room->driver->deliver(room, &what, &got, err);
	mr_names_done(&got.missing);
	/* In doubt: durable, and any later command completes it. Not found: pruned since we looked. */
	if (rc == MR_OK || rc == MR_INDOUBT || rc == MR_NOTFOUND)
		return MR_OK;
	return mr_wrap(err, "bounce to '%s'", sender);
}

enum mr_rc
bounce_send(struct mr_room *room, const struct mr_self *self, const struct mr_message *failed, const char *reason,
    const char *key, struct mr_error *err)
{
	mr_auto(buf_done) struct buf story = BUF_INIT;

	if (strcmp(failed->from, self->agent) == 0)
		return MR_OK;
	buf_addf(&story, "%s could not do what this message asked, and it will not be tried again.", self->agent);
	if (!buf_ok(&story))
		return mr_nomem(err);
	struct bounce bounce = {
		.from = self->agent,
		.life = self->life,
		.story = buf_z(&story),
		.reason = reason,
		.key = key,
	};

	return bounce_deliver(room, &bounce, failed, err);
}

/* ---- The mail of an agent who leaves ---- */

static bool
note_unread(void *ctx, const struct mr_message *msg)
{
	return candidates_add(ctx, msg);
}

static enum mr_rc
return_one(struct mr_room *room, const char *agent, const struct candidate *c, const struct mr_names *leaving,
    struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf story = BUF_INIT;
	struct mr_error ignored = { 0 };
	char key[16 + MR_ID_LEN];

	/* Gone meanwhile, or not readable: then there is nobody to tell. */
	if (room->driver->fetch(room, agent, c->id, c->folder, SCAN_HEADERS, &msg, &ignored) != MR_OK ||
	    strcmp(msg.from, agent) == 0 || names_has(leaving, msg.from))
		return MR_OK;
	buf_addf(&story, "%s was taken off the room and had not read this message.", agent);
	if (!buf_ok(&story))
		return mr_nomem(err);
	(void)snprintf(key, sizeof(key), "pruned-%s", msg.id);
	struct bounce bounce = { .from = agent, .story = buf_z(&story), .reason = "the agent was pruned", .key = key };

	return bounce_deliver(room, &bounce, &msg, err);
}

enum mr_rc
bounce_unread(struct mr_room *room, const char *agent, const struct mr_names *leaving, struct mr_error *err)
{
	struct candidates unread = { 0 };
	struct scan_request want = { .folders = MR_INBOX | MR_HELD, .depth = SCAN_NAMES, .unread_only = true };
	enum mr_rc rc = room->driver->scan(room, agent, &want, note_unread, &unread, err);

	if (rc == MR_OK && unread.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; i < unread.n && rc == MR_OK; i++)
		rc = return_one(room, agent, &unread.v[i], leaving, err);
	candidates_done(&unread);
	return rc;
}
