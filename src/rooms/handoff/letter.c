/* SPDX-License-Identifier: MIT */
/*
 * letter.c - the bytes of a message.
 *
 *	---
 *	from: lead-01
 *	msg_id: 3b1f9c02-77aa-4c1e-9d5e-0a1b2c3d4e5f
 *	subject: Parser: next steps
 *	reply_to: ...                 only in an answer
 *	to: worker-7
 *	---
 *	                              one empty line, then the body byte for byte
 *
 * Agents look at it with `head -8`: no field more. Nothing is quoted, a value is the rest of its line; so what would
 * end the line is refused.
 */
#include "rooms/handoff/handoff.h"

#include "message/front.h"

/* ---- Reading ---- */

/* As the original finds a field: the first line of the whole file that begins so. */
static bool
first_line(struct mr_str text, const char *prefix, struct mr_str *ret)
{
	struct mr_str line;

	while (front_line(&text, &line))
		if (str_starts(line, prefix)) {
			size_t n = strlen(prefix);

			*ret = str_trim((struct mr_str){ line.ptr + n, line.len - n });
			return true;
		}
	return false;
}

bool
letter_parse(struct mr_str text, struct letter *ret)
{
	struct letter l = { .body = text };
	struct front front;
	struct mr_str rest, line;

	if (front_split(text, &front)) {
		l.head = front.head;
		(void)front_get(front.head, "from", &l.from);
		(void)front_get(front.head, "msg_id", &l.msg_id);
		(void)front_get(front.head, "subject", &l.subject);
		(void)front_get(front.head, "reply_to", &l.reply_to);
		(void)front_get(front.head, "to", &l.to);
		l.body = rest = front.body;
		if (front_line(&rest, &line) && line.len == 0)
			l.body = rest;
	} else {
		bool from = first_line(text, "from: ", &l.from);
		bool msg_id = first_line(text, "msg_id: ", &l.msg_id);

		if (!from && !msg_id)
			return false;
		(void)first_line(text, "subject: ", &l.subject);
		(void)first_line(text, "reply_to: ", &l.reply_to);
		(void)first_line(text, "to: ", &l.to);
	}
	*ret = l;
	return true;
}

/* ---- Writing ---- */

static enum mr_rc
add_field(struct buf *out, const char *key, struct mr_str value, struct mr_error *err)
{
	for (size_t i = 0; i < value.len; i++)
		if ((unsigned char)value.ptr[i] < 0x20 || value.ptr[i] == 0x7f)
			return mr_fail(err, MR_REFUSED,
			    "the %s of a message has a control character in it\n"
			    "a field is one line here: leave line ends and tabs out of it",
			    key);
	buf_addf(out, "%s: ", key);
	buf_add(out, value);
	buf_addc(out, '\n');
	return MR_OK;
}

enum mr_rc
letter_write(const struct letter *letter, struct buf *out, struct mr_error *err)
{
	buf_adds(out, "---\n");
	if (add_field(out, "from", letter->from, err) != MR_OK ||
	    add_field(out, "msg_id", letter->msg_id, err) != MR_OK ||
	    add_field(out, "subject", letter->subject, err) != MR_OK ||
	    (letter->reply_to.len > 0 && add_field(out, "reply_to", letter->reply_to, err) != MR_OK) ||
	    add_field(out, "to", letter->to, err) != MR_OK)
		return err->code;
	buf_adds(out, "---\n\n");
	buf_add(out, letter->body);
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

/* ---- As a message ---- */

static const char *
keep(struct arena **own, struct mr_str s, bool *failed)
{
	const char *kept = s.len ? arena_dup(own, s) : "";

	*failed |= kept == NULL;
	return kept;
}

static const char *
keep_address(struct arena **own, const struct registry *r, struct mr_str id, bool *failed)
{
	char address[MR_ADDRESS_MAX + 1] = "";

	if (id.len == 0 || !handoff_address_of(r, id, address))
		return "";
	return keep(own, str_of(address), failed);
}

static bool
is_own_field(struct mr_str key)
{
	static const char *const own[] = { "from", "msg_id", "subject", "reply_to", "to" };

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (str_eq(key, str_of(own[i])))
			return true;
	return false;
}

/* The format's own id, and fields that we do not know. */
static void
keep_headers(struct arena **own, const struct letter *letter, struct mr_message *msg, bool *failed)
{
	struct mr_str rest = letter->head, key, value;
	size_t n = letter->msg_id.len > 0;

	while (front_next(&rest, &key, &value))
		n += !is_own_field(key);
	if (n == 0)
		return;
	struct mr_header *v = arena_alloc(own, n * sizeof *v);

	*failed |= v == NULL;
	if (!v)
		return;
	msg->headers = v;
	if (letter->msg_id.len > 0)
		v[msg->headers_n++] = (struct mr_header){ "Message-ID", keep(own, letter->msg_id, failed) };
	rest = letter->head;
	while (front_next(&rest, &key, &value))
		if (!is_own_field(key))
			v[msg->headers_n++] = (struct mr_header){ keep(own, key, failed), keep(own, value, failed) };
}

enum mr_rc
letter_to_message(const struct letter *letter, const struct letter_at *at, const struct registry *r, bool body,
    struct mr_message *ret, struct mr_error *err)
{
	struct arena *own = NULL;
	bool failed = false;
	struct mr_message msg = { .type = "", .replace_key = "" };
	char path[HANDOFF_ID_MAX + 300];

	handoff_message_id(at->name, at->mtime_ms, msg.id);
	msg.from = keep_address(&own, r, letter->from, &failed);
	msg.subject = keep(&own, letter->subject, &failed);
	msg.reply_to = keep(&own, letter->reply_to, &failed);
	msg.thread = keep(&own, str_of(msg.id), &failed);
	msg.date_ms = at->mtime_ms;
	msg.folder = at->folder;
	msg.flags = at->folder == MR_ARCHIVE ? MR_SEEN : 0;
	(void)snprintf(path, sizeof path, "%s/%s/%s", at->mailbox, handoff_folder(at->folder), at->name);
	msg.path = keep(&own, str_of(path), &failed);
	msg.to.v = arena_alloc(&own, sizeof *msg.to.v);
	if (msg.to.v && (msg.to.v[0] = arena_dup(&own, str_of(at->agent))))
		msg.to.n = 1;
	keep_headers(&own, letter, &msg, &failed);
	if (body) {
		msg.body = arena_dup(&own, letter->body);
		msg.body_len = letter->body.len;
		failed |= msg.body == NULL;
	}
	if (failed || msg.to.n == 0) {
		arena_free(own);
		return mr_nomem(err);
	}
	msg.own = own;
	*ret = msg;
	return MR_OK;
}
