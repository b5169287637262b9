/* SPDX-License-Identifier: MIT */
/*
 * translate.c - converts a message into a form that another kind of room can store. Pure: no clock, no random numbers,
 * so that a delivery that is repeated after a crash has the same bytes.
 *
 *	prose      a control message of some program becomes text about it
 *	encode     a body that is not text becomes base64 in a text format
 *	state      fields that the format lacks become lines at the end of the body
 */
#include "base/clock.h"
#include "base/error.h"
#include "message/address.h"
#include "message/message.h"
#include "message/mime.h"
#include "office/link/link.h"
#include "office/types/types.h"
#include <inttypes.h>

enum { BASE64_LINE = 76 };

/* t->own holds the strings of the message. */
static enum mr_rc
keep_text(struct translated *t, struct buf *text, const char **ret, struct mr_error *err)
{
	const char *copy = buf_ok(text) ? arena_dup(&t->own, buf_str(text)) : NULL;

	TRY(mr_got(copy, err));
	*ret = copy;
	return MR_OK;
}

/* ---- Stating fields in the body ---- */

static void
state(struct buf *lines, const char *name, const char *value)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT, both = BUF_INIT;

	if (!value || !value[0])
		return;
	header_clean(&clean, str_of(value));
	if (!header_name_valid(str_of(name))) { /* an invalid name is text, like its value */
		header_clean(&both, str_of(name));
		buf_addf(&both, " = %s", buf_z(&clean));
	}
	lines->failed |= clean.failed || both.failed;
	/* A cleaned value is not refused; memory is checked at the end. */
	if (both.len > 0)
		(void)header_add(lines, "Header", buf_str(&both), IGNORED);
	else
		(void)header_add(lines, name, buf_str(&clean), IGNORED);
}

static void
state_names(struct buf *lines, const char *name, const struct mr_names *names)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;

	for (size_t i = 0; i < names->n; i++)
		buf_addf(&list, "%s%s", i > 0 ? ", " : "", names->v[i]);
	lines->failed |= list.failed;
	state(lines, name, buf_z(&list));
}

static bool
own_thread(const struct mr_message *msg)
{
	return !msg->thread || !msg->thread[0] || strcmp(msg->thread, msg->id) == 0;
}

/* States the fields that the format lacks, and removes them from the message. */
static void
state_fields(struct mr_message *msg, unsigned lacks, struct buf *lines)
{
	mr_auto(buf_done) struct buf derived = BUF_INIT;

	if (lacks & FIELD_SUBJECT) {
		subject_from_body(&derived, (struct mr_str){ msg->body, msg->body_len });
		/* A subject made from the body's first line is not repeated. */
		if (!buf_ok(&derived) || strcmp(msg->subject, buf_z(&derived)) != 0)
			state(lines, "Subject", msg->subject);
		msg->subject = "";
	}
	if (lacks & FIELD_TO) {
		state_names(lines, "To", &msg->to);
		msg->to = (struct mr_names){ 0 };
	}
	if (lacks & FIELD_CC) {
		state_names(lines, "Cc", &msg->cc);
		msg->cc = (struct mr_names){ 0 };
	}
	if (lacks & FIELD_TYPE) {
		state(lines, "Type", msg->type);
		msg->type = "";
	}
	if (lacks & FIELD_PRIORITY) {
		if (msg->priority != MR_NORMAL)
			state(lines, "Priority", mr_priority_word(msg->priority));
		msg->priority = MR_NORMAL;
	}
	if ((lacks & FIELD_THREAD) && !own_thread(msg))
		state(lines, "Thread", msg->thread);
	if (lacks & FIELD_REPLY_TO) {
		state(lines, "Reply-To", msg->reply_to);
		msg->reply_to = "";
	}
	for (size_t i = 0; (lacks & FIELD_ATTACHMENTS) && i < msg->attachments_n; i++) {
		mr_auto(buf_done) struct buf line = BUF_INIT;
		const struct mr_attachment *a = &msg->attachments[i];

		buf_addf(&line, "%s (%s, %" PRIu64 " bytes), left behind in %s",
		    a->name[0] ? a->name : "without a name", a->type, a->size_bytes, msg->id);
		state(lines, "Attachment", buf_z(&line));
		lines->failed |= line.failed;
	}
	if ((lacks & FIELD_BY) && msg->by_ms != 0) {
		state(lines, "By", time_text(msg->by_ms).z);
		msg->by_ms = 0;
	}
}

/* ---- Extra headers ---- */

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

	return header_name_valid(str_of(header->name)) && !(to->driver->unsupported(to, &alone) & FIELD_HEADERS);
}

/* Each header by itself: a header that can be stored stays one, even if another cannot. */
static enum mr_rc
sort_headers(struct mr_room *to, struct translated *t, struct buf *lines, struct mr_error *err)
{
	const struct mr_message *msg = &t->msg;
	struct mr_header *held = arena_alloc(&t->own, (msg->headers_n + 1) * sizeof(*held));
	size_t n = 0;

	TRY(mr_got(held, err));
	for (size_t i = 0; i < msg->headers_n; i++) {
		mr_auto(buf_done) struct buf clean = BUF_INIT;
		const struct mr_header *header = &msg->headers[i];

		/* Without headers that are fields, and without the path through the thread: its ends are fields, and
		 * the ids in between mean nothing in another format. */
		if (ascii_caseeq(header->name, "References") ? ROOM_HAS(to, unsupported)
							     : message_header_reserved(str_of(header->name)))
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

/* ---- The whole message ---- */

/* Other programs put line breaks where a header has none. */
static enum mr_rc
clean_values(struct translated *t, struct mr_error *err)
{
	struct mr_message *msg = &t->msg;
	const char **values[] = { &msg->subject, &msg->type, &msg->thread, &msg->reply_to, &msg->replace_key };

	msg->from = msg->from ? msg->from : "";
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		mr_auto(buf_done) struct buf clean = BUF_INIT;

		*values[i] = *values[i] ? *values[i] : "";
		if (!header_value_problem(str_of(*values[i])))
			continue;
		header_clean(&clean, str_of(*values[i]));
		TRY(keep_text(t, &clean, values[i], err));
	}
	return MR_OK;
}

/* Builds the body in the form of the format, and the lines after it. */
static enum mr_rc
make_body(struct translated *t, unsigned lacks, const struct buf *lines, struct mr_error *err)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct mr_str said = { t->msg.body, t->msg.body_len };
	bool changed = true;

	if (lacks & FIELD_BINARY) {
		buf_addf(&body, "The body is not text; these are its %zu bytes in base64:\n\n", said.len);
		base64_encode(&body, said, BASE64_LINE);
	} else if (control_is(said)) {
		control_as_prose(&body, t->msg.from, said);
	} else {
		changed = lines->len > 0;
		buf_add(&body, said);
	}
	if (lines->len > 0) {
		if (body.len > 0 && body.ptr[body.len - 1] != '\n')
			buf_addc(&body, '\n');
		buf_adds(&body, "-- \n");
		buf_add(&body, buf_str(lines));
	}
	if (!changed || t->msg.content) /* MIME stays unchanged, with its text */
		return MR_OK;
	t->msg.body_len = body.len;
	return keep_text(t, &body, &t->msg.body, err);
}

enum mr_rc
translate(struct mr_room *to, const struct mr_message *msg, struct translated *ret, struct mr_error *err)
{
	mr_auto(translated_done) struct translated t = { .msg = *msg };
	mr_auto(buf_done) struct buf lines = BUF_INIT, extra = BUF_INIT;

	t.msg.own = NULL; /* the original still belongs to its owner */
	t.msg.sender_life = 0;
	t.msg.token[0] = '\0';
	if (msg->type_by_subject) { /* the bytes must not depend on which types are known; the subject shows it */
		t.msg.type = "";
		t.msg.type_by_subject = false;
	}
	if (!t.msg.body) {
		t.msg.body = "";
		t.msg.body_len = 0;
	}
	TRY(clean_values(&t, err));
	TRY(sort_headers(to, &t, &extra, err));
	unsigned lacks = room_cannot_hold(to, &t.msg);

	if (t.msg.reply_to[0] && !address_plain(str_of(t.msg.reply_to))) /* it is not an id */
		lacks |= FIELD_REPLY_TO;
	state_fields(&t.msg, lacks, &lines);
	if (!(to->driver->abilities & ROOM_ATTACHMENTS)) {
		t.msg.attachments_n = 0;
		t.msg.content = NULL;
	}
	buf_add(&lines, buf_str(&extra));
	TRY(mr_got(!lines.failed && !extra.failed, err));
	if (own_thread(&t.msg) || (lacks & FIELD_THREAD)) {
		t.msg.thread = arena_dup(&t.own, str_of(t.msg.id));
		TRY(mr_got(t.msg.thread, err));
	}
	TRY(make_body(&t, lacks, &lines, err));
	*ret = t;
	t = (struct translated){ 0 };
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
