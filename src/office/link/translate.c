/* SPDX-License-Identifier: MIT */
/*
 * translate.c - a message as another kind of room can hold it. Pure: no clock, no chance, so that whoever repeats a
 * delivery after a crash has the same bytes.
 *
 *	prose      a control message of some program becomes text about it
 *	encode     a body that is no text becomes base64 where a format is text
 *	state      what the format has no field for becomes lines at the end of the body
 */
#include "office/link/translate.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "message/address.h"
#include "message/message.h"
#include "message/mime.h"
#include "office/types/control.h"

enum { BASE64_LINE = 76 };

/* A body may grow by what others said of it; strings that end up in the message live in t->own. */
static enum mr_rc
keep_text(struct translated *t, struct buf *text, const char **ret, struct mr_error *err)
{
	const char *copy = buf_ok(text) ? arena_dup(&t->own, buf_str(text)) : NULL;

	if (!copy)
		return mr_nomem(err);
	*ret = copy;
	return MR_OK;
}

static enum mr_rc
keep_body(struct translated *t, struct buf *text, struct mr_error *err)
{
	enum mr_rc rc = keep_text(t, text, &t->msg.body, err);

	if (rc == MR_OK)
		t->msg.body_len = text->len;
	return rc;
}

static struct mr_str
body_of(const struct mr_message *msg)
{
	return (struct mr_str){ msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
}

/* ---- The body ---- */

static enum mr_rc
make_prose(struct translated *t, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	control_as_prose(&text, t->msg.from, body_of(&t->msg));
	return keep_body(t, &text, err);
}

static enum mr_rc
encode_body(struct translated *t, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "The body is no text; these are its %zu bytes in base64:\n\n", t->msg.body_len);
	base64_encode(&text, body_of(&t->msg), BASE64_LINE);
	return keep_body(t, &text, err);
}

/* ---- Stating ---- */

static void
state(struct buf *lines, const char *name, const char *value)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;
	struct mr_error ignored = { 0 }; /* a cleaned value is not refused; memory is checked at the end */

	if (!value || !value[0])
		return;
	header_clean(&clean, str_of(value));
	lines->failed |= !buf_ok(&clean);
	if (header_name_valid(str_of(name))) {
		(void)header_add(lines, name, buf_str(&clean), &ignored);
	} else { /* a name that is none is text, like its value */
		mr_auto(buf_done) struct buf both = BUF_INIT;

		header_clean(&both, str_of(name));
		buf_addf(&both, " = %s", buf_z(&clean));
		lines->failed |= !buf_ok(&both);
		(void)header_add(lines, "Header", buf_str(&both), &ignored);
	}
}

static void
state_names(struct buf *lines, const char *name, const struct mr_names *names)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;

	for (size_t i = 0; i < names->n; i++)
		buf_addf(&list, "%s%s", i > 0 ? ", " : "", names->v[i]);
	lines->failed |= !buf_ok(&list);
	state(lines, name, buf_z(&list));
}

static void
state_time(struct buf *lines, const char *name, int64_t ms)
{
	char text[RFC3339_LEN + 1];

	if (ms == 0)
		return;
	time_rfc3339(ms, text);
	state(lines, name, text);
}

/* A subject that was made of the body's first line says nothing new. */
static bool
says_more(const char *subject, struct mr_str body)
{
	mr_auto(buf_done) struct buf derived = BUF_INIT;

	subject_from_body(&derived, body);
	return !buf_ok(&derived) || strcmp(subject, buf_z(&derived)) != 0;
}

static bool
own_thread(const struct mr_message *msg)
{
	return !msg->thread || !msg->thread[0] || strcmp(msg->thread, msg->id) == 0;
}

/* `said` is the body as its sender wrote it. */
static void
state_fields(struct translated *t, unsigned lacks, struct mr_str said, struct buf *lines)
{
	struct mr_message *msg = &t->msg;

	if ((lacks & FIELD_SUBJECT) && says_more(msg->subject, said))
		state(lines, "Subject", msg->subject);
	if (lacks & FIELD_TO)
		state_names(lines, "To", &msg->to);
	if (lacks & FIELD_CC)
		state_names(lines, "Cc", &msg->cc);
	if (lacks & FIELD_TYPE)
		state(lines, "Type", msg->type);
	if ((lacks & FIELD_PRIORITY) && msg->priority != MR_NORMAL)
		state(lines, "Priority", mr_priority_word(msg->priority));
	if ((lacks & FIELD_THREAD) && !own_thread(msg))
		state(lines, "Thread", msg->thread);
	if (lacks & FIELD_REPLY_TO)
		state(lines, "Reply-To", msg->reply_to);
	if (lacks & FIELD_BY)
		state_time(lines, "By", msg->by_ms);
}

static void
clear_fields(struct mr_message *msg, unsigned lacks)
{
	if (lacks & FIELD_SUBJECT)
		msg->subject = "";
	if (lacks & FIELD_TO)
		msg->to = (struct mr_names){ 0 };
	if (lacks & FIELD_CC)
		msg->cc = (struct mr_names){ 0 };
	if (lacks & FIELD_TYPE)
		msg->type = "";
	if (lacks & FIELD_PRIORITY)
		msg->priority = MR_NORMAL;
	if (lacks & FIELD_REPLY_TO)
		msg->reply_to = "";
	if (lacks & FIELD_BY)
		msg->by_ms = 0;
}

/* ---- Extra headers ---- */

/* Of all that a reader gives, only what is no field of its own, and not the path through the thread: its ends are
 * fields, and the names in between mean nothing in another format. */
static bool
is_extra(struct mr_room *to, const struct mr_header *header)
{
	if (ascii_caseeq(header->name, "References"))
		return !ROOM_HAS(to, lacks);
	return !message_header_reserved(str_of(header->name));
}

static bool
can_hold(struct mr_room *to, const struct mr_header *header)
{
	struct mr_message alone = { .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = "",
		.path = "",
		.headers = header,
		.headers_n = 1 };

	return header_name_valid(str_of(header->name)) &&
	       (!ROOM_HAS(to, lacks) || !(to->driver->lacks(to, &alone) & FIELD_HEADERS));
}

/* Each header by itself: one that can be held is not stated because of another that cannot. */
static enum mr_rc
sort_headers(struct mr_room *to, struct translated *t, struct buf *lines, struct mr_error *err)
{
	const struct mr_message *msg = &t->msg;
	struct mr_header *held = arena_alloc(&t->own, (msg->headers_n + 1) * sizeof(*held));
	size_t n = 0;

	if (!held)
		return mr_nomem(err);
	for (size_t i = 0; i < msg->headers_n; i++) {
		mr_auto(buf_done) struct buf clean = BUF_INIT;
		const struct mr_header *header = &msg->headers[i];

		if (!is_extra(to, header))
			continue;
		if (!can_hold(to, header)) {
			state(lines, header->name, header->value);
			continue;
		}
		header_clean(&clean, str_of(header->value));
		held[n].name = header->name;
		TRY(keep_text(t, &clean, &held[n].value, err));
		n++;
	}
	t->msg.headers = held;
	t->msg.headers_n = n;
	return MR_OK;
}

/* ---- The whole ---- */

/* Other programs put line breaks where a header has none. */
static enum mr_rc
clean_value(struct translated *t, const char **value, struct mr_error *err)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	if (!*value || header_value_valid(str_of(*value))) {
		*value = *value ? *value : "";
		return MR_OK;
	}
	header_clean(&clean, str_of(*value));
	return keep_text(t, &clean, value, err);
}

static enum mr_rc
clean_values(struct translated *t, struct mr_error *err)
{
	struct mr_message *msg = &t->msg;

	msg->from = msg->from ? msg->from : "";
	TRY(clean_value(t, &msg->subject, err));
	TRY(clean_value(t, &msg->type, err));
	TRY(clean_value(t, &msg->thread, err));
	TRY(clean_value(t, &msg->reply_to, err));
	return clean_value(t, &msg->replace_key, err);
}

static enum mr_rc
append_lines(struct translated *t, struct buf *lines, struct mr_error *err)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;

	if (!buf_ok(lines))
		return mr_nomem(err);
	if (lines->len == 0)
		return MR_OK;
	buf_add(&body, body_of(&t->msg));
	if (body.len > 0 && body.ptr[body.len - 1] != '\n')
		buf_addc(&body, '\n');
	buf_adds(&body, "-- \n");
	buf_add(&body, buf_str(lines));
	return keep_body(t, &body, err);
}

static enum mr_rc
translate_all(struct mr_room *to, struct translated *t, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT, extra = BUF_INIT;
	struct mr_str said = body_of(&t->msg);
	enum mr_rc rc = clean_values(t, err);

	if (rc == MR_OK)
		rc = sort_headers(to, t, &extra, err);
	if (rc != MR_OK)
		return rc;
	unsigned lacks = ROOM_HAS(to, lacks) ? to->driver->lacks(to, &t->msg) : 0;

	if (t->msg.reply_to[0] && !address_plain(str_of(t->msg.reply_to))) /* no id of anybody's */
		lacks |= FIELD_REPLY_TO;
	state_fields(t, lacks, said, &lines);
	buf_add(&lines, buf_str(&extra));
	lines.failed |= !buf_ok(&extra);
	clear_fields(&t->msg, lacks);
	if (own_thread(&t->msg) || (lacks & FIELD_THREAD)) {
		t->msg.thread = arena_dup(&t->own, str_of(t->msg.id));
		if (!t->msg.thread)
			return mr_nomem(err);
	}
	if (lacks & FIELD_BINARY)
		rc = encode_body(t, err);
	else if (control_is(said))
		rc = make_prose(t, err);
	return rc == MR_OK ? append_lines(t, &lines, err) : rc;
}

enum mr_rc
translate(struct mr_room *to, const struct mr_message *msg, struct translated *ret, struct mr_error *err)
{
	struct translated t = { .msg = *msg };
	enum mr_rc rc;

	t.msg.own = NULL; /* the original stays its owner's */
	t.msg.sender_life = 0;
	if (msg->type_by_subject) { /* it says so over there, too; and which types are known must not change the bytes
				     */
		t.msg.type = "";
		t.msg.type_by_subject = false;
	}
	t.msg.token[0] = '\0';
	rc = translate_all(to, &t, err);
	if (rc != MR_OK) {
		translated_done(&t);
		return rc;
	}
	*ret = t;
	return MR_OK;
}

void
translated_done(struct translated *t)
{
	if (!t)
		return;
	arena_free(t->own);
	*t = (struct translated){ 0 };
}
