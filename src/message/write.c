/* SPDX-License-Identifier: MIT */
/*
 * write.c - a message as RFC 5322 bytes.
 *
 * Everything is checked before the first byte is written: a value with a line break would be a header
 * of its own (promise 7), so it is refused and never folded in or escaped.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/address.h"
#include "message/header.h"
#include "message/message.h"
#include "message/mime.h"

enum { LINE_SOFT_MAX = 900, BASE64_LINE = 76 };

static const char *
or_empty(const char *z)
{
	return z ? z : "";
}

/* ---- Checks ---- */

/* One line; with `what`, one word. */
static enum mr_rc
check_value(const char *field, const char *value, const char *what, struct mr_error *err)
{
	const char *problem = header_value_problem(str_of(or_empty(value)));
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	if (problem)
		return mr_fail(err, MR_REFUSED,
		    "%s %s\na header is one line of UTF-8 text; longer text goes into the body", field, problem);
	if (!what || address_plain(str_of(value)))
		return MR_OK;
	text_clean_line(&shown, utf8_cut(str_of(value), 60));
	return mr_fail(err, MR_REFUSED,
	    "%s '%s' is not %s\nit cannot be empty and has no spaces, commas, quotes or brackets", field, buf_z(&shown),
	    what);
}

bool
message_header_reserved(struct mr_str name)
{
	return str_is_among(name, "From To Cc Subject Date Message-ID In-Reply-To", " ") ||
	       str_casestarts(name, "Mailroom-") || str_casestarts(name, "MIME-") || str_casestarts(name, "Content-");
}

static enum mr_rc
check_message(const struct mr_message *msg, const char *room, struct mr_error *err)
{
	const struct {
		const char *field, *value;
	} values[] = {
		{ "subject", msg->subject },
		{ "type", msg->type },
		{ "thread", msg->thread },
		{ "replace-key", msg->replace_key },
	};

	TRY(check_value("room name", room, "usable after an @", err));
	if (or_empty(msg->from)[0])
		TRY(check_value("from", msg->from, "an address", err));
	for (size_t i = 0; i < msg->to.n; i++)
		TRY(check_value("to", msg->to.v[i], "an address", err));
	for (size_t i = 0; i < msg->cc.n; i++)
		TRY(check_value("cc", msg->cc.v[i], "an address", err));
	if (or_empty(msg->reply_to)[0])
		TRY(check_value("reply-to", msg->reply_to, "a message id", err));
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++)
		TRY(check_value(values[i].field, values[i].value, NULL, err));
	for (size_t i = 0; i < msg->headers_n; i++) {
		struct mr_str name = str_of(or_empty(msg->headers[i].name));
		mr_auto(buf_done) struct buf shown = BUF_INIT;
		char field[128];

		text_clean_line(&shown, utf8_cut(name, 60));
		if (!header_name_valid(name))
			return mr_fail(err, MR_REFUSED,
			    "header name '%s' is not valid\nuse 1-76 printable ASCII characters without space and colon",
			    buf_z(&shown));
		if (message_header_reserved(name))
			return mr_fail(err, MR_REFUSED,
			    "header '%s' is written by mailroom itself\n"
			    "use the option for it, or a name of your own such as 'X-%s'",
			    name.ptr, name.ptr);
		(void)snprintf(field, sizeof(field), "header '%s'", name.ptr);
		TRY(check_value(field, msg->headers[i].value, NULL, err));
	}
	if (!id_valid(str_of(msg->id)))
		return mr_fail(err, MR_REFUSED, "message id '%s' is not an id", msg->id);
	return MR_OK;
}

/* ---- Headers ---- */

/* For values that were checked: only memory can fail, and the buffer remembers that. */
static void
add(struct buf *out, const char *name, const char *value)
{
	if (str_trim(str_of(or_empty(value))).len > 0)
		(void)header_add(out, name, str_of(value), IGNORED);
}

/* Free text is raw UTF-8, unless a reader would take it for encoded words and show something else. */
static void
add_text(struct buf *out, const char *name, const char *value)
{
	mr_auto(buf_done) struct buf decoded = BUF_INIT, encoded = BUF_INIT;

	value = or_empty(value);
	if (strstr(value, "=?"))
		encoded_words_decode(&decoded, str_of(value));
	if (!strstr(value, "=?") || str_eq(buf_str(&decoded), str_of(value))) {
		add(out, name, value);
		return;
	}
	encoded_words_encode(&encoded, str_trim(str_of(value)));
	add(out, name, buf_z(&encoded));
	out->failed |= !buf_ok(&decoded) || !buf_ok(&encoded);
}

static void
add_address(struct buf *out, const char *address, const char *room)
{
	buf_adds(out, address);
	buf_adds(out, strchr(address, '@') ? "" : "@");
	buf_adds(out, strchr(address, '@') ? "" : room);
}

static void
add_names(struct buf *out, const char *name, const struct mr_names *names, const char *room)
{
	size_t line_start = out->len;

	if (names->n == 0)
		return;
	buf_adds(out, name);
	buf_adds(out, ": ");
	for (size_t i = 0; i < names->n; i++) {
		bool full = out->len - line_start + strlen(names->v[i]) + strlen(room) + 4 > LINE_SOFT_MAX;
		if (i > 0)
			buf_adds(out, full ? ",\n " : ", ");
		if (i > 0 && full)
			line_start = out->len - 1;
		add_address(out, names->v[i], room);
	}
	buf_addc(out, '\n');
}

static void
add_msgid(struct buf *out, const char *id, const char *room)
{
	bool ours = id_valid(str_of(id));

	buf_addc(out, '<');
	buf_adds(out, id);
	buf_adds(out, ours ? "@" : "");
	buf_adds(out, ours ? room : "");
	buf_addc(out, '>');
}

static void
add_own_headers(struct buf *out, const struct mr_message *msg, const char *room)
{
	mr_auto(buf_done) struct buf references = BUF_INIT, answered = BUF_INIT;
	const char *reply_to = or_empty(msg->reply_to), *given = or_empty(mr_message_header(msg, "References"));
	struct mr_str thread = str_trim(str_of(or_empty(msg->thread))), derived;
	char text[40];

	time_rfc5322(msg->date_ms, text);
	add(out, "Date", text);
	buf_adds(out, "Message-ID: ");
	add_msgid(out, msg->id, room);
	buf_addc(out, '\n');
	if (reply_to[0])
		add_msgid(&answered, reply_to, room);
	add(out, "In-Reply-To", buf_z(&answered));
	/* References: the caller's, else the start of the thread and the answered message. */
	buf_adds(&references, given);
	if (!given[0] && id_valid(str_of(or_empty(msg->thread))) && strcmp(msg->thread, msg->id) != 0)
		add_msgid(&references, msg->thread, room);
	if (!given[0] && reply_to[0] && (references.len == 0 || strcmp(msg->thread, reply_to) != 0)) {
		buf_adds(&references, references.len > 0 ? " " : "");
		buf_add(&references, buf_str(&answered));
	}
	add(out, "References", buf_z(&references));
	out->failed |= !buf_ok(&answered) || !buf_ok(&references);
	add(out, "Mailroom-Type", msg->type);
	if (msg->priority != MR_NORMAL)
		add(out, "Mailroom-Priority", mr_priority_word(msg->priority));
	/* A reader takes the thread from References, so Mailroom-Thread is written only if that would give another
	 * one. */
	derived = references.len > 0 ? msgid_inner(buf_str(&references), room) : STR("");
	if (derived.len == 0)
		derived = str_of(reply_to[0] ? reply_to : msg->id);
	if (!str_eq(thread, derived))
		add(out, "Mailroom-Thread", msg->thread);
	if (msg->sender_life > 0) {
		(void)text_number(text, msg->sender_life, 0);
		add(out, "Mailroom-Life", text);
	}
	if (msg->by_ms != 0) {
		time_rfc3339(msg->by_ms, text);
		add(out, "Mailroom-By", text);
	}
	if (msg->not_before_ms != 0) {
		time_rfc3339(msg->not_before_ms, text);
		add(out, "Mailroom-Not-Before", text);
	}
	add(out, "Mailroom-Replace-Key", msg->replace_key);
}

/* ---- The whole message ---- */

void
message_write_text(struct buf *out, struct mr_str body)
{
	bool text = utf8_text(body);

	buf_adds(out, "Content-Type: text/markdown; charset=utf-8\n");
	buf_adds(out, text ? "Content-Transfer-Encoding: 8bit\n\n" : "Content-Transfer-Encoding: base64\n\n");
	if (text)
		buf_add(out, body);
	else
		base64_encode(out, body, BASE64_LINE);
	if (text && body.len > 0 && body.ptr[body.len - 1] != '\n')
		buf_addc(out, '\n');
}

enum mr_rc
message_write(const struct mr_message *msg, const char *room, struct buf *out, struct mr_error *err)
{
	size_t body_len = msg->body ? msg->body_len : 0;

	TRY(check_message(msg, room, err));
	(void)buf_reserve(out, (msg->content ? 0 : body_len) + 1024);
	if (or_empty(msg->from)[0]) {
		buf_adds(out, "From: ");
		add_address(out, msg->from, room);
		buf_addc(out, '\n');
	}
	add_names(out, "To", &msg->to, room);
	add_names(out, "Cc", &msg->cc, room);
	add_text(out, "Subject", msg->subject);
	add_own_headers(out, msg, room);
	for (size_t i = 0; i < msg->headers_n; i++)
		if (!ascii_caseeq(msg->headers[i].name, "References"))
			add_text(out, msg->headers[i].name, msg->headers[i].value);
	buf_adds(out, "MIME-Version: 1.0\n");
	if (msg->content) {
		add(out, "Content-Type", msg->content->type);
		add(out, "Content-Transfer-Encoding", msg->content->encoding);
		buf_addc(out, '\n');
	} else {
		message_write_text(out, (struct mr_str){ msg->body, body_len });
	}
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

enum mr_rc
message_write_content(const struct mr_message *msg, bytes_fn *to, void *ctx, struct mr_error *err)
{
	const struct mr_content *content = msg->content;

	if (!content)
		return MR_OK;
	return content->read ? content->read(content, content->at, UINT64_MAX, to, ctx, err)
			     : content->write(content, msg, to, ctx, err);
}
