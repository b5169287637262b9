/* SPDX-License-Identifier: MIT */
/*
 * letter.c - a message file as a message. Who writes these files is an agent with a recipe, so much is let through:
 * any order of keys, missing and unknown ones, and the second dialect, which has "payload" and "channel" instead of
 * body, subject and type. The fields count, not the name: one of the recipes' defects puts one sender's message under
 * the name of another, which a header Mailroom-Note says.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/foreign.h"
#include "message/header.h"
#include "message/message.h"
#include "rooms/chipset/chipset.h"

#define HEADERS_MAX 3

enum mr_rc
chipset_object(struct mr_str text, struct json_value *ret, struct mr_error *err)
{
	const char *problem = "is empty";
	struct json_value value;

	if (text.len == 0 || !json_whole(text, &value, &problem))
		return mr_fail(err, MR_CORRUPT, "no message: the JSON %s", problem);
	if (value.kind != JSON_OBJECT)
		return mr_fail(err, MR_CORRUPT, "no message: the JSON is no object");
	*ret = value;
	return MR_OK;
}

static bool
find_time(struct json_value object, int64_t *ret_ms)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	return json_find_text(object, "timestamp", &text) && time_parse_rfc3339(buf_str(&text), ret_ms);
}

void
chipset_message_id(const char *name, const struct json_value *object, char ret[MR_ID_LEN + 1])
{
	int64_t ms = 0;

	if (chipset_name_id(str_of(name), ret))
		return;
	if (!object || !find_time(*object, &ms))
		ms = 0; /* not the file's own time: a mark by another program changes that */
	id_from_name(ms, str_of(name), ret);
}

bool
chipset_is_read(struct json_value object)
{
	struct json_value read;

	return json_find(object, "read", &read) && json_truthy(read);
}

/* ---- One field after the other ---- */

struct maker { /* sticky: out of memory is seen at the end */
	struct json_value object;
	const struct chipset_origin *at;
	struct mr_message *msg;
	struct arena *own;
	struct buf note; /* what is odd about it */
	struct mr_header *headers;
	bool second; /* the second dialect */
	bool failed;
};

static const char *
keep(struct maker *m, const struct buf *text)
{
	const char *copy = text->failed ? NULL : arena_dup(&m->own, buf_str(text));

	m->failed |= !copy;
	return copy ? copy : "";
}

static void
note(struct maker *m, const char *text)
{
	buf_addf(&m->note, "%s%s", m->note.len > 0 ? "; " : "", text);
}

/* A value of one line; one that is no string is shown as it stands. */
static const char *
keep_line(struct maker *m, const char *key)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, clean = BUF_INIT;
	struct json_value value;

	if (!json_find(m->object, key, &value) || value.kind == JSON_NULL)
		return "";
	if (value.kind == JSON_STRING)
		json_text(value, &text);
	else
		buf_add(&text, value.raw);
	header_clean(&clean, buf_str(&text));
	m->failed |= text.failed;
	return keep(m, &clean);
}

/* The name as an address, or "" with a note. `otherwise` is used where there is none. */
static const char *
keep_agent(struct maker *m, const char *key, struct mr_str otherwise)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };
	char address[MR_ADDRESS_MAX + 1] = "";

	if (!json_find_text(m->object, key, &text) || text.len == 0)
		buf_add(&text, otherwise);
	m->failed |= text.failed;
	if (text.len > 0 &&
	    (memchr(text.ptr, '\0', text.len) || foreign_to_address(buf_str(&text), address, &ignored) != MR_OK)) {
		address[0] = '\0';
		note(m, "a name in it is no agent's");
	}
	const char *copy = arena_dup(&m->own, str_of(address));

	m->failed |= !copy;
	return copy ? copy : "";
}

static void
make_names(struct maker *m)
{
	struct chipset_name parts = { 0 };
	char owner[MR_ADDRESS_MAX + 1] = "", sender[MR_ADDRESS_MAX + 1] = "";
	struct mr_error ignored = { 0 };

	(void)chipset_name_parse(str_of(m->at->name), &parts);
	m->msg->from = keep_agent(m, "from", parts.sender);
	const char *to = keep_agent(m, "to", str_of(m->at->box));

	if (parts.sender.len > 0 && foreign_to_address(parts.sender, sender, &ignored) == MR_OK &&
	    strcmp(sender, m->msg->from) != 0)
		note(m, "the file's name says another sender");
	if (foreign_to_address(str_of(m->at->box), owner, &ignored) == MR_OK && strcmp(owner, to) != 0)
		note(m, "it is addressed to another agent");
	m->msg->to.v = arena_alloc(&m->own, sizeof(char *));
	m->failed |= !m->msg->to.v;
	if (m->msg->to.v && to[0]) {
		m->msg->to.v[0] = arena_dup(&m->own, str_of(to));
		m->failed |= !m->msg->to.v[0];
		m->msg->to.n = 1;
	}
}

/* "DONE: t-1" is about DONE; a text without such a word is its own first line. */
static const char *
subject_of_payload(struct maker *m)
{
	mr_auto(buf_done) struct buf payload = BUF_INIT, subject = BUF_INIT;

	(void)json_find_text(m->object, "payload", &payload);
	size_t n = strcspn(buf_z(&payload), ": \t\r\n");

	if (n > 0 && buf_z(&payload)[n] == ':')
		header_clean(&subject, (struct mr_str){ payload.ptr, n });
	else
		subject_from_body(&subject, buf_str(&payload));
	m->failed |= payload.failed;
	return keep(m, &subject);
}

/* As json_text does: bytes that are no UTF-8 become U+FFFD. */
static void
add_utf8(struct buf *out, struct mr_str s)
{
	for (size_t at = 0, n; at<s.len; at += n> 0 ? n : 1) {
		uint32_t cp;

		n = utf8_next((struct mr_str){ s.ptr + at, s.len - at }, &cp);
		buf_add(out, n > 0 ? (struct mr_str){ s.ptr + at, n } : STR("\xef\xbf\xbd"));
	}
}

static void
make_body(struct maker *m)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json_value value;

	if (json_find(m->object, m->second ? "payload" : "body", &value) && value.kind != JSON_NULL) {
		if (value.kind == JSON_STRING)
			json_text(value, &text);
		else
			add_utf8(&text, value.raw);
	}
	m->msg->body = keep(m, &text);
	m->msg->body_len = text.len;
}

static void
make_priority(struct maker *m)
{
	mr_auto(buf_done) struct buf word = BUF_INIT;
	struct mr_error ignored = { 0 };
	enum mr_priority priority;

	if (json_find_text(m->object, "priority", &word) &&
	    mr_priority_parse(buf_z(&word), &priority, &ignored) == MR_OK)
		m->msg->priority = priority;
}

static void
add_header(struct maker *m, const char *name, const char *value)
{
	if (m->headers)
		m->headers[m->msg->headers_n++] = (struct mr_header){ name, value };
}

/* The id of what it answers, which is what its sender was told; a name without a time stays a name. */
static void
make_answered(struct maker *m)
{
	const char *name = keep_line(m, "in_reply_to");
	char id[MR_ID_LEN + 1];

	m->msg->reply_to = name;
	if (!name[0])
		return;
	add_header(m, "In-Reply-To", name);
	if (chipset_name_id(str_of(name), id)) {
		m->msg->reply_to = arena_dup(&m->own, str_of(id));
		m->failed |= !m->msg->reply_to;
	}
}

static void
make_headers(struct maker *m)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	m->headers = arena_alloc(&m->own, HEADERS_MAX * sizeof *m->headers);
	m->failed |= !m->headers;
	header_clean(&name, str_of(m->at->name));
	add_header(m, "Message-ID", keep(m, &name));
	make_answered(m);
	if (m->note.len > 0)
		add_header(m, "Mailroom-Note", keep(m, &m->note));
	m->msg->headers = m->headers;
}

static void
make_date(struct maker *m)
{
	struct chipset_name parts;

	if (find_time(m->object, &m->msg->date_ms))
		return;
	m->msg->date_ms = chipset_name_parse(str_of(m->at->name), &parts) ? parts.ms : m->at->mtime_ms;
}

static void
make_path(struct maker *m)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	chipset_box_path(&path, m->at->box, m->at->folder);
	buf_addf(&path, "/%s", m->at->name);
	m->msg->path = keep(m, &path);
}

static void
make_fields(struct maker *m, enum scan_depth depth)
{
	struct json_value ignored;

	m->second = !json_find(m->object, "body", &ignored) && json_find(m->object, "payload", &ignored);
	make_path(m);
	make_date(m);
	if (depth == SCAN_NAMES)
		return;
	make_names(m);
	m->msg->subject = keep_line(m, "subject");
	m->msg->type = keep_line(m, "type");
	if (m->second && !m->msg->subject[0])
		m->msg->subject = subject_of_payload(m);
	if (m->second && !m->msg->type[0])
		m->msg->type = keep_line(m, "channel");
	m->msg->thread = arena_dup(&m->own, str_of(m->msg->id));
	m->failed |= !m->msg->thread;
	make_priority(m);
	make_headers(m);
	if (depth == SCAN_BODIES)
		make_body(m);
}

enum mr_rc
chipset_letter(struct mr_str text, const struct chipset_origin *at, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	struct mr_message msg = { .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.folder = at->folder,
		.size_bytes = text.len };
	struct maker m = { .at = at, .msg = &msg };

	TRY(chipset_object(text, &m.object, err));
	chipset_message_id(at->name, &m.object, msg.id);
	msg.flags = chipset_is_read(m.object) ? MR_SEEN : 0;
	make_fields(&m, depth);
	m.failed |= m.note.failed;
	buf_done(&m.note);
	if (m.failed) {
		arena_free(m.own);
		return mr_nomem(err);
	}
	msg.own = m.own;
	*ret = msg;
	return MR_OK;
}
