/* SPDX-License-Identifier: MIT */
/* bounce.c - telling a sender that its message failed, and the references that keep an answer in its thread.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "message/address.h"
#include "office/office.h"

#define REFERENCES_MAX 20
#define BOUNCE_TYPE "bounce"

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

/* A bounce never bounces, and nobody writes to itself that it failed. */
static bool
wants_bounce(struct mr_room *room, const struct mr_self *self, const struct mr_message *failed)
{
	mr_auto(mr_agent_done) struct mr_agent sender = { 0 };
	struct mr_error ignored = { 0 };

	if (strcmp(failed->type, BOUNCE_TYPE) == 0 || strcmp(failed->from, self->agent) == 0)
		return false;
	if (address_check(str_of(failed->from), &ignored) != MR_OK)
		return false;
	return !room->driver->find_agent ||
	       room->driver->find_agent(room, failed->from, &sender, &ignored) == MR_OK;
}

static void
write_body(struct buf *out, const struct mr_self *self, const struct mr_message *failed, const char *reason)
{
	char date[RFC3339_LEN + 1];

	time_rfc3339(failed->date_ms, date);
	buf_addf(
	    out, "%s could not do what this message asked, and it will not be tried again.\n\n", self->agent);
	buf_addf(out, "Reason: %s\n", *reason ? reason : "none given");
	buf_addf(out, "Message: %s\nSubject: %s\nSent: %s\n", failed->id, failed->subject, date);
	buf_adds(out, "\nThe message is kept in the dead letters of the room.\n");
}

enum mr_rc
bounce_send(struct mr_room *room, const struct mr_self *self, const struct mr_message *failed,
    const char *reason, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT, references = BUF_INIT;
	char sender[MR_ADDRESS_MAX + 1];
	char *name = sender;
	struct mr_names to = { &name, 1 };
	struct delivered got = { 0 };
	enum mr_rc rc;

	if (!wants_bounce(room, self, failed))
		return MR_OK;
	(void)snprintf(sender, sizeof(sender), "%s", failed->from);
	buf_addf(&subject, "Failed: %s", failed->subject);
	write_body(&body, self, failed, reason);
	references_of(&references, room, failed);
	if (!buf_ok(&subject) || !buf_ok(&body) || !buf_ok(&references))
		return mr_nomem(err);
	struct mr_header header = { "References", buf_z(&references) };
	struct mr_message msg = {
		.from = self->agent,
		.to = to,
		.subject = buf_z(&subject),
		.date_ms = clock_now_ms(),
		.type = BOUNCE_TYPE,
		.priority = failed->priority,
		.thread = failed->thread,
		.reply_to = failed->id,
		.replace_key = "",
		.sender_life = self->life,
		.body = buf_z(&body),
		.body_len = body.len,
		.headers = &header,
		.headers_n = 1,
		.path = "",
	};
	struct delivery what = { .msg = &msg, .to = &to, .sender = self->agent };

	id_new(msg.id);
	rc = room->driver->deliver(room, &what, &got, err);
	mr_names_done(&got.missing);
	/* In doubt: durable, and any later command completes it. Not found: pruned since we looked. */
	if (rc == MR_OK || rc == MR_INDOUBT || rc == MR_NOTFOUND)
		return MR_OK;
	return mr_wrap(err, "bounce to '%s'", sender);
}
