/* SPDX-License-Identifier: MIT */
/*
 * entry.c - one entry of an inbox, read and written. Not all generations of the original give it an id, so ours follows
 * from what it takes for the same message: sender, time and text, and msg_id where there is one. We write as the first
 * generation does, byte for byte like JSON.stringify.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/foreign.h"
#include "message/message.h"
#include "rooms/teams/teams.h"
#include <stddef.h>

#define DATE_MAX_MS (((int64_t)1 << 48) - 1) /* what an id can hold */

/* ---- Reading ---- */

/* The last member of a name counts, as in JavaScript. */
void
entry_parse(struct json_value value, struct entry *ret)
{
	static const struct {
		const char *name;
		size_t offset;
	} known[] = {
		{ "from", offsetof(struct entry, from) },
		{ "text", offsetof(struct entry, text) },
		{ "summary", offsetof(struct entry, summary) },
		{ "timestamp", offsetof(struct entry, timestamp) },
		{ "color", offsetof(struct entry, color) },
		{ "msg_id", offsetof(struct entry, msg_id) },
		{ "read", offsetof(struct entry, read) },
	};
	struct json_value key, member;

	*ret = (struct entry){ .raw = value.raw };
	for (size_t at = 0; json_member(value, &at, &key, &member);)
		for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
			if (json_key_is(key, known[i].name))
				memcpy((char *)ret + known[i].offset, &member, sizeof member);
	if (value.kind != JSON_OBJECT)
		ret->problem = "is no object";
	else if (!ret->from.raw.ptr || ret->from.kind != JSON_STRING)
		ret->problem = "has no sender";
	else if (!ret->text.raw.ptr || ret->text.kind != JSON_STRING)
		ret->problem = "has no text";
	ret->seen = ret->read.raw.ptr && json_truthy(ret->read);
}

/* Returns the date. */
static int64_t
make_id(struct mr_str from, struct mr_str timestamp, struct mr_str text, struct mr_str msg_id, unsigned nth,
    struct buf *name, char ret[MR_ID_LEN + 1])
{
	int64_t ms = 0;

	if (!time_parse_rfc3339(timestamp, &ms) || ms < 0)
		ms = 0;
	ms = ms < DATE_MAX_MS ? ms : DATE_MAX_MS;
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
	id_from_name(ms, buf_str(name), ret);
	return ms;
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
	e->date_ms = make_id(buf_str(&from), buf_str(&timestamp), buf_str(&text), buf_str(&msg_id), nth, &name, e->id);
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
	if (!json_whole(body, &all, &problem))
		return problem == json_too_deep; /* deeper than we look, but not than they do */
	return json_find_text(all, "type", ret_type);
}

/* ---- As a message ---- */

static void
add_line(struct kit_message *m, const char *name, struct json_value value)
{
	mr_auto(buf_done) struct buf raw = BUF_INIT, line = BUF_INIT;

	if (!value.raw.ptr || value.kind != JSON_STRING)
		return;
	json_text(value, &raw);
	m->failed |= raw.failed;
	text_clean_line(&line, buf_str(&raw));
	kit_header(m, name, kit_keep_buf(m, &line));
}

enum mr_rc
entry_message(const struct entry *e, const char *agent, const char *path, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf from = BUF_INIT, summary = BUF_INIT, text = BUF_INIT, type = BUF_INIT;
	struct kit_message m = kit_message(e->id, MR_INBOX, e->seen ? MR_SEEN : 0);

	m.msg.date_ms = e->date_ms;
	m.msg.size_bytes = e->raw.len;
	m.msg.path = kit_keep(&m, str_of(path));
	m.msg.thread = kit_keep(&m, str_of(e->id));
	if (depth == SCAN_NAMES)
		return kit_message_end(&m, ret, err);
	json_text(e->from, &from);
	json_text(e->text, &text);
	if (e->summary.raw.ptr && e->summary.kind == JSON_STRING)
		json_text(e->summary, &summary);
	m.failed |= from.failed || text.failed;
	kit_to(&m, agent);
	m.msg.from = kit_keep_address(&m, buf_str(&from)); /* "": nobody who could be answered */
	add_line(&m, "Message-ID", e->msg_id);
	add_line(&m, "Color", e->color);
	if (entry_control_type(buf_str(&text), &type))
		m.msg.type = kit_keep_buf(&m, &type);
	else if (summary.len == 0) /* without a summary the first line says what it is about */
		subject_from_body(&summary, buf_str(&text));
	m.msg.subject = kit_keep_buf(&m, &summary);
	if (depth == SCAN_BODIES)
		kit_body(&m, buf_str(&text));
	return kit_message_end(&m, ret, err);
}

/* ---- Its bytes with another mark ---- */

bool
entry_add(const struct entry *e, struct buf *out)
{
	mr_auto(buf_done) struct buf with = BUF_INIT;
	const char *word = e->mark == ENTRY_SEEN ? "true" : "false", *end = e->raw.ptr + 1;
	bool is = e->read.raw.ptr && json_truthy(e->read);

	if (e->mark == ENTRY_AS_IS || (e->mark == ENTRY_SEEN) == is) {
		buf_add(out, e->raw);
		return false;
	}
	if (e->read.raw.ptr) {
		kit_splice(e->raw, e->read.raw.ptr, e->read.raw.ptr + e->read.raw.len, str_of(word), out);
		return true;
	}
	/* As the last member, laid out like the first. */
	struct json_value object = { JSON_OBJECT, e->raw }, key, value;
	size_t space = json_skip_space(e->raw, 1) - 1;

	for (size_t at = 0; json_member(object, &at, &key, &value);)
		end = value.raw.ptr + value.raw.len;
	buf_addc(&with, ',');
	buf_add(&with, (struct mr_str){ e->raw.ptr + 1, space });
	buf_addf(&with, "\"read\":%s%s", space > 0 ? " " : "", word);
	out->failed |= with.failed;
	kit_splice(e->raw, end, end, buf_str(&with), out);
	return true;
}

/* ---- What we write ---- */

/* A team acts on bodies of this form without asking who sent them. */
static enum mr_rc
check_body(const struct delivery *what, struct mr_str body, bool *ret_control, struct mr_error *err)
{
	mr_auto(buf_done) struct buf type = BUF_INIT, shown = BUF_INIT;

	if (!utf8_valid(body))
		return mr_fail(err, MR_REFUSED,
		    "a team's inbox holds text only, and this body is not UTF-8\n"
		    "put it in a file that the recipient can read, and mail the path");
	*ret_control = entry_control_type(body, &type);
	if (!*ret_control)
		return MR_OK;
	if (type.failed)
		return mr_nomem(err);
	if (!what->carried && type.len > 0 && strcmp(what->msg->type, buf_z(&type)) == 0)
		return MR_OK;
	text_clean_line(&shown, utf8_cut(buf_str(&type), 40));
	(void)mr_fail(err, MR_REFUSED, "a team would take this body for a control message of type '%s'", buf_z(&shown));
	return what->carried
		   ? mr_hint(err, "from another room it can come only as prose")
		   : mr_hint(err, "--type '%s' says that you mean it; prose needs a word before the {", buf_z(&shown));
}

/* Bytes that would break what the model is shown go: quotes, angle brackets; line breaks become spaces. */
static void
add_attribute(struct buf *out, struct mr_str value)
{
	for (size_t i = 0; i < value.len; i++) {
		char c = value.ptr[i];

		if (c == '\n' || c == '\r')
			buf_addc(out, ' ');
		else if (c == '"')
			buf_addc(out, '\'');
		else if (c == '<' || c == '>')
			buf_adds(out, c == '<' ? "\u2039" : "\u203a");
		else
			buf_addc(out, c);
	}
}

/* The first generation shows a model the text as it is, between tags: what would close its block early gets a
 * backslash, as later generations do it. A control message is no text for a model. */
static void
add_text(struct buf *out, struct mr_str body, bool control)
{
	static const char tag[] = "</teammate-message";

	for (size_t i = 0; i < body.len; i++) {
		buf_addc(out, body.ptr[i]);
		if (!control && body.ptr[i] == '<' && body.len - i >= sizeof(tag) - 1 &&
		    strncasecmp(body.ptr + i, tag, sizeof(tag) - 1) == 0)
			buf_addc(out, '\\');
	}
}

enum mr_rc
letter_make(struct letter *l, const struct delivery *what, struct mr_error *err)
{
	const struct mr_message *msg = what->msg;
	const char *color = mr_message_header(msg, "Color");
	mr_auto(buf_done) struct buf raw = BUF_INIT;
	bool control = false;

	TRY(check_body(what, kit_text(msg), &control, err));
	*l = (struct letter){ 0 };
	foreign_from_address(msg->from, &raw);
	add_attribute(&l->from, buf_str(&raw));
	add_attribute(&l->summary, str_trim(str_of(msg->subject)));
	add_attribute(&l->color, str_trim(str_of(color ? color : "")));
	add_text(&l->text, kit_text(msg), control);
	if (raw.failed || l->from.failed || l->summary.failed || l->color.failed || l->text.failed) {
		letter_done(l);
		return mr_nomem(err);
	}
	if (l->from.len == 0 || !str_eq(buf_str(&l->from), buf_str(&raw))) {
		letter_done(l);
		return mr_fail(err, MR_REFUSED,
		    "'%s' cannot be the sender of a message to a team\n"
		    "a name without quotes, angle brackets and line breaks is needed",
		    msg->from);
	}
	if (what->keep) {
		/* An import is the same message however often it is repeated, and another than one that reads alike: it
		 * is written as the newest generation does it, with an id, which follows from the one it had. */
		char hex[65];

		sha256_hex(str_of(msg->id), hex);
		hex[12] = '8'; /* of our own making, as RFC 9562 numbers it */
		hex[16] = "89ab"[hex[16] & 3];
		(void)snprintf(l->msg_id, sizeof l->msg_id, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
		    hex + 16, hex + 20);
	}
	letter_date(l, msg->date_ms);
	return MR_OK;
}

void
letter_date(struct letter *l, int64_t date_ms)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	char when[RFC3339_LEN + 1];

	l->date_ms = date_ms;
	time_rfc3339(date_ms, when);
	(void)make_id(buf_str(&l->from), str_of(when), buf_str(&l->text), str_of(l->msg_id), 0, &name, l->id);
}

void
letter_add(const struct letter *l, struct buf *out)
{
	char when[RFC3339_LEN + 1];
	const struct {
		const char *key;
		struct mr_str value;
		bool always;
	} members[] = {
		{ "from", buf_str(&l->from), true },
		{ "text", buf_str(&l->text), true },
		{ "summary", buf_str(&l->summary), false },
		{ "timestamp", { when, RFC3339_LEN }, true },
		{ "color", buf_str(&l->color), false },
		{ "msg_id", str_of(l->msg_id), false },
	};

	time_rfc3339(l->date_ms, when);
	buf_adds(out, "  {\n");
	for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
		if (!members[i].always && members[i].value.len == 0)
			continue;
		buf_addf(out, "%s    \"%s\": ", strcmp(members[i].key, "msg_id") == 0 ? "    \"msgV\": 1,\n" : "",
		    members[i].key);
		json_stringify(out, members[i].value);
		buf_adds(out, ",\n");
	}
	buf_addf(out, "%s    \"read\": false\n  }", l->msg_id[0] ? "    \"type\": \"message\",\n" : "");
}

void
letter_done(struct letter *l)
{
	buf_done(&l->from);
	buf_done(&l->text);
	buf_done(&l->summary);
	buf_done(&l->color);
}
