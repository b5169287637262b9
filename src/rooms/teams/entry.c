/* SPDX-License-Identifier: MIT */
/*
 * entry.c - one entry of an inbox. Not all generations of the original give it an id, so ours follows from what it
 * takes for the same message: sender, time and text, and msg_id where there is one.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/foreign.h"
#include "message/message.h"
#include "rooms/teams/teams.h"

#define DATE_MAX_MS (((int64_t)1 << 48) - 1) /* what an id can hold */

/* ---- Reading ---- */

/* The last member of a name counts, as in JavaScript. */
void
entry_parse(struct json_value value, struct entry *ret)
{
	struct json_value key, member;

	*ret = (struct entry){ .raw = value.raw };
	if (value.kind != JSON_OBJECT)
		ret->problem = "is no object";
	for (size_t at = 0; json_member(value, &at, &key, &member);) {
		const struct {
			const char *name;
			struct json_value *place;
		} known[] = { { "from", &ret->from }, { "text", &ret->text }, { "summary", &ret->summary },
			{ "timestamp", &ret->timestamp }, { "color", &ret->color }, { "msg_id", &ret->msg_id },
			{ "read", &ret->read } };

		for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
			if (json_key_is(key, known[i].name))
				*known[i].place = member;
	}
	if (!ret->problem && (!ret->from.raw.ptr || ret->from.kind != JSON_STRING))
		ret->problem = "has no sender";
	if (!ret->problem && (!ret->text.raw.ptr || ret->text.kind != JSON_STRING))
		ret->problem = "has no text";
	ret->seen = ret->read.raw.ptr && json_truthy(ret->read);
}

static int64_t
date_of(struct mr_str timestamp)
{
	int64_t ms = 0;

	if (!time_parse_rfc3339(timestamp, &ms) || ms < 0)
		return 0;
	return ms < DATE_MAX_MS ? ms : DATE_MAX_MS;
}

static void
make_id(struct mr_str from, struct mr_str timestamp, struct mr_str text, struct mr_str msg_id, unsigned nth,
    struct buf *name, char ret[MR_ID_LEN + 1])
{
	buf_add(name, from);
	buf_addc(name, '\0');
	buf_add(name, timestamp);
	buf_addc(name, '\0');
	buf_add(name, text);
	if (msg_id.len > 0) {
		buf_addc(name, '\0');
		buf_add(name, msg_id);
	}
	if (nth > 0) { /* the very same once more */
		buf_addc(name, '\0');
		buf_addf(name, "%u", nth);
	}
	id_from_name(date_of(timestamp), buf_str(name), ret);
}

void
entry_id(struct mr_str from, struct mr_str timestamp, struct mr_str text, struct mr_str msg_id, unsigned nth,
    char ret[MR_ID_LEN + 1])
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	make_id(from, timestamp, text, msg_id, nth, &name, ret);
}

bool
entry_identify(struct entry *e, unsigned nth)
{
	mr_auto(buf_done) struct buf from = BUF_INIT, timestamp = BUF_INIT, text = BUF_INIT, name = BUF_INIT;
	mr_auto(buf_done) struct buf msg_id = BUF_INIT;

	json_text(e->from, &from);
	if (e->timestamp.raw.ptr)
		json_text(e->timestamp, &timestamp);
	json_text(e->text, &text);
	if (e->msg_id.raw.ptr)
		json_text(e->msg_id, &msg_id);
	make_id(buf_str(&from), buf_str(&timestamp), buf_str(&text), buf_str(&msg_id), nth, &name, e->id);
	e->date_ms = date_of(buf_str(&timestamp));
	return !from.failed && !timestamp.failed && !text.failed && !msg_id.failed && !name.failed;
}

bool
entry_control_type(struct mr_str body, struct buf *ret_type)
{
	struct json_value all = { 0 };
	const char *problem = "";
	size_t at = json_skip_space(body, 0);

	if (at >= body.len || body.ptr[at] != '{')
		return false;
	if (!json_whole(body, &all, &problem)) /* deeper than we look, but not than they do */
		return strcmp(problem, "is nested too deep") == 0;
	return json_find_text(all, "type", ret_type);
}

/* ---- As a message ---- */

struct builder {
	struct arena *own;
	bool failed;
};

static const char *
keep(struct builder *b, struct mr_str s)
{
	const char *kept = s.len > 0 ? arena_dup(&b->own, s) : "";

	b->failed |= kept == NULL;
	return kept ? kept : "";
}

static const char *
keep_text(struct builder *b, struct json_value value)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (!value.raw.ptr || value.kind != JSON_STRING)
		return "";
	json_text(value, &text);
	b->failed |= text.failed;
	return keep(b, buf_str(&text));
}

static const char *
keep_address(struct builder *b, struct json_value value)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct mr_error ignored = { 0 };
	char address[MR_ADDRESS_MAX + 1];

	json_text(value, &name);
	b->failed |= name.failed;
	if (foreign_to_address(buf_str(&name), address, &ignored) != MR_OK)
		return ""; /* nobody who could be answered */
	return keep(b, str_of(address));
}

static void
add_headers(struct builder *b, const struct entry *e, struct mr_message *msg)
{
	struct mr_header *headers = arena_alloc(&b->own, 2 * sizeof *headers);
	const struct json_value *const values[] = { &e->msg_id, &e->color };
	static const char *const names[] = { "Message-ID", "Color" };

	b->failed |= headers == NULL;
	for (size_t i = 0; headers && i < 2; i++) {
		mr_auto(buf_done) struct buf raw = BUF_INIT, line = BUF_INIT;

		if (!values[i]->raw.ptr || values[i]->kind != JSON_STRING)
			continue;
		json_text(*values[i], &raw);
		text_clean_line(&line, buf_str(&raw));
		b->failed |= raw.failed || line.failed;
		headers[msg->headers_n++] = (struct mr_header){ names[i], keep(b, buf_str(&line)) };
	}
	msg->headers = headers;
}

static void
add_body(struct builder *b, const struct entry *e, enum scan_depth depth, struct mr_message *msg)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, type = BUF_INIT;

	json_text(e->text, &text);
	b->failed |= text.failed;
	if (entry_control_type(buf_str(&text), &type)) {
		msg->type = keep(b, buf_str(&type));
	} else if (!msg->subject[0]) { /* without a summary the first line says what it is about */
		mr_auto(buf_done) struct buf first = BUF_INIT;

		subject_from_body(&first, buf_str(&text));
		b->failed |= first.failed;
		msg->subject = keep(b, buf_str(&first));
	}
	if (depth != SCAN_BODIES)
		return;
	msg->body = keep(b, buf_str(&text));
	msg->body_len = text.len;
}

enum mr_rc
entry_message(const struct entry *e, const char *agent, const char *path, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	struct builder b = { 0 };
	struct mr_message msg = { .from = "",
		.subject = "",
		.date_ms = e->date_ms,
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.flags = e->seen ? MR_SEEN : 0,
		.folder = MR_INBOX,
		.size_bytes = e->raw.len,
		.path = "" };

	memcpy(msg.id, e->id, sizeof msg.id);
	msg.path = keep(&b, str_of(path));
	msg.thread = keep(&b, str_of(e->id));
	if (depth != SCAN_NAMES) {
		char **to = arena_alloc(&b.own, sizeof *to);

		if (to)
			*to = arena_dup(&b.own, str_of(agent));
		b.failed |= !to || !*to;
		msg.to = (struct mr_names){ to, 1 };
		msg.from = keep_address(&b, e->from);
		msg.subject = keep_text(&b, e->summary);
		add_headers(&b, e, &msg);
		add_body(&b, e, depth, &msg);
	}
	msg.own = b.own;
	if (b.failed) {
		mr_message_done(&msg);
		return mr_nomem(err);
	}
	*ret = msg;
	return MR_OK;
}
