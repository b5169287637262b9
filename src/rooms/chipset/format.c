/* SPDX-License-Identifier: MIT */
/*
 * format.c - the bytes of the format: names of agents and files, a message file as a message and back, the change of
 * "read" in somebody's bytes.
 *
 * These files are written by agents with a recipe, so much is let through: any order of keys, missing and unknown ones,
 * and the second dialect, which has "payload" and "channel" instead of body, subject and type. The fields count, not
 * the name: one of the recipes' defects puts one sender's message under the name of another; a header Mailroom-Note
 * says so.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "message/address.h"
#include "message/message.h"
#include "rooms/chipset/chipset.h"
#include <stdio.h>

/* ---- Agents ---- */

const char *
chipset_id_problem(struct mr_str id)
{
	if (id.len == 0)
		return "is empty";
	if (id.len > CHIPSET_ID_MAX)
		return "has more than 64 bytes";
	if (id.ptr[0] == '.')
		return "begins with '.'";
	if (str_eq(id, STR("archive")))
		return "is the name of the folder for archived mail";
	return kit_is_plain(id) ? NULL : "has a character that is not allowed";
}

enum mr_rc
chipset_id(const char *address, char ret[CHIPSET_ID_MAX + 1], struct mr_error *err)
{
	mr_auto(buf_done) struct buf id = BUF_INIT;

	foreign_from_address(address, &id);
	if (!buf_ok(&id) && address[0])
		return mr_nomem(err);
	const char *problem = chipset_id_problem(buf_str(&id));

	if (!problem) {
		memcpy(ret, id.ptr, id.len + 1);
		return MR_OK;
	}
	return mr_fail(err, MR_REFUSED,
	    "'%.60s' cannot be an agent of a chipset room: it %s\n"
	    "a name there has 1 to 64 of A-Z a-z 0-9 . _ - and does not begin with '.'",
	    buf_z(&id), problem);
}

void
chipset_box_path(struct buf *out, const char *id, enum mr_folder folder)
{
	buf_addf(out, "mail/%s%s", id, folder == MR_ARCHIVE ? "/archive" : "");
}

/* ---- Names of files: the time of the message, a dash, its sender, ".json" ---- */

static size_t
digits_at(struct mr_str s, size_t at)
{
	size_t n = 0;

	while (at + n < s.len && ascii_digit(s.ptr[at + n]))
		n++;
	return n;
}

static bool
is_any(struct mr_str s, size_t at, const char *of)
{
	return at < s.len && s.ptr[at] != '\0' && strchr(of, s.ptr[at]) != NULL;
}

/* Where the zone ends that begins there, written with a dash or a colon or nothing between hours and minutes; 0: it is
 * none. *ret_text is how RFC 3339 has it. */
static size_t
zone_end(struct mr_str name, size_t at, char ret_text[7])
{
	if (is_any(name, at, "Zz")) {
		(void)snprintf(ret_text, 7, "Z");
		return at + 1;
	}
	if (!is_any(name, at, "+-") || digits_at(name, at + 1) < 2)
		return 0;
	size_t minutes = at + 3 + is_any(name, at + 3, "-:");

	if (digits_at(name, minutes) < 2)
		return 0;
	(void)snprintf(ret_text, 7, "%.3s:%.2s", name.ptr + at, name.ptr + minutes);
	return minutes + 2;
}

/* Length of the time at the start, 0 if there is none. Senders have dashes themselves, so it ends behind the zone. */
static size_t
take_stamp(struct mr_str name, int64_t *ret_ms)
{
	char text[48], zone[7];
	size_t at = 19;

	if (name.len > 10 && name.ptr[10] == '-')
		return time_parse_rfc3339((struct mr_str){ name.ptr, 10 }, ret_ms) ? 10 : 0;
	if (name.len <= at || name.ptr[10] != 'T' || !is_any(name, 13, "-:") || !is_any(name, 16, "-:"))
		return 0;
	size_t digits = name.ptr[at] == '.' ? digits_at(name, at + 1) : 0;

	if (digits > 9 || (name.ptr[at] == '.' && digits == 0))
		return 0;
	at += digits > 0 ? digits + 1 : 0;
	size_t end = zone_end(name, at, zone);
	int n = snprintf(text, sizeof text, "%.13s:%.2s:%.2s%.*s%s", name.ptr, name.ptr + 14, name.ptr + 17,
	    (int)(at - 19), name.ptr + 19, end > 0 ? zone : "");

	return end > 0 && time_parse_rfc3339((struct mr_str){ text, (size_t)n }, ret_ms) ? end : 0;
}

bool
chipset_name_parse(struct mr_str name, struct chipset_name *ret)
{
	const size_t ending = strlen(".json");

	if (name.len > CHIPSET_NAME_MAX || !str_ends(name, ".json") || memchr(name.ptr, '\0', name.len))
		return false;
	int64_t ms = 0;
	size_t at = take_stamp(name, &ms);

	if (at == 0 || at + 1 + ending >= name.len || name.ptr[at] != '-')
		return false;
	*ret = (struct chipset_name){ ms, { name.ptr + at + 1, name.len - at - 1 - ending } };
	return true;
}

void
chipset_name_make(int64_t ms, const char *sender, char ret[CHIPSET_NAME_MAX + 1])
{
	char stamp[RFC3339_LEN + 1];

	time_rfc3339(ms, stamp);
	for (char *c = stamp; *c; c++)
		if (*c == ':')
			*c = '-';
	(void)snprintf(ret, CHIPSET_NAME_MAX + 1, "%s-%s.json", stamp, sender);
}

bool
chipset_name_plain(struct mr_str name)
{
	if (name.len > CHIPSET_NAME_MAX || !str_ends(name, ".json") || !utf8_valid(name))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f || name.ptr[i] == '/')
			return false;
	return true;
}

bool
chipset_name_id(struct mr_str name, char ret_id[MR_ID_LEN + 1])
{
	struct chipset_name parts;

	if (!chipset_name_parse(name, &parts))
		return false;
	id_from_name(parts.ms, name, ret_id);
	return true;
}

/* ---- From bytes to a message ---- */

enum mr_rc
chipset_object(struct mr_str text, struct json_value *ret, struct mr_error *err)
{
	const char *problem = "is empty";
	struct json_value value;

	if (text.len == 0 || !json_whole(text, &value, &problem))
		return mr_fail(err, MR_CORRUPT, "not a message: the JSON %s", problem);
	if (value.kind != JSON_OBJECT)
		return mr_fail(err, MR_CORRUPT, "not a message: the JSON is not an object");
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

/* A string as text; another value as it is written, with U+FFFD for bytes that are no UTF-8. */
static void
add_value(struct json_value object, const char *key, struct buf *out)
{
	struct json_value value;

	if (!json_find(object, key, &value) || value.kind == JSON_NULL)
		return;
	if (value.kind == JSON_STRING) {
		json_text(value, out);
		return;
	}
	for (size_t n; value.raw.len > 0; value.raw = str_from(value.raw, n > 0 ? n : 1)) {
		uint32_t cp = 0xfffd;

		n = utf8_next(value.raw, &cp);
		utf8_add(out, cp);
	}
}

static const char *
keep_line(struct kit_message *m, struct json_value object, const char *key)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, clean = BUF_INIT;

	add_value(object, key, &text);
	m->failed |= text.failed;
	header_clean(&clean, buf_str(&text));
	return kit_keep_buf(m, &clean);
}

static void
add_note(struct buf *notes, const char *text)
{
	buf_addf(notes, "%s%s", notes->len > 0 ? "; " : "", text);
}

/* The name as an address, or "" with a note. `otherwise` is used where there is none. */
static const char *
keep_agent(struct kit_message *m, struct json_value object, const char *key, struct mr_str otherwise, struct buf *notes)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (!json_find_text(object, key, &text) || text.len == 0)
		buf_add(&text, otherwise);
	m->failed |= text.failed;
	const char *address = kit_keep_address(m, buf_str(&text));

	if (text.len > 0 && !address[0])
		add_note(notes, "a name in it cannot be an agent");
	return address;
}

/* "DONE: t-1" is about DONE; a text without such a word is its own first line. */
static void
fill_second_dialect(struct kit_message *m, struct json_value object)
{
	mr_auto(buf_done) struct buf payload = BUF_INIT, subject = BUF_INIT;

	if (!m->msg.type[0])
		m->msg.type = keep_line(m, object, "channel");
	if (m->msg.subject[0])
		return;
	(void)json_find_text(object, "payload", &payload);
	size_t n = strcspn(buf_z(&payload), ": \t\r\n");

	if (n > 0 && buf_z(&payload)[n] == ':')
		header_clean(&subject, (struct mr_str){ payload.ptr, n });
	else
		subject_from_body(&subject, buf_str(&payload));
	m->failed |= payload.failed;
	m->msg.subject = kit_keep_buf(m, &subject);
}

static void
fill_fields(struct kit_message *m, struct json_value object, const struct chipset_origin *at, bool second)
{
	mr_auto(buf_done) struct buf notes = BUF_INIT, name = BUF_INIT, word = BUF_INIT;
	struct chipset_name parts = { 0 };
	char answered[MR_ID_LEN + 1], named[MR_ADDRESS_MAX + 1];

	(void)chipset_name_parse(str_of(at->name), &parts);
	m->msg.from = keep_agent(m, object, "from", parts.sender, &notes);
	const char *to = keep_agent(m, object, "to", str_of(at->box), &notes);

	if (parts.sender.len > 0 && foreign_to_address(parts.sender, named, IGNORED) == MR_OK &&
	    strcmp(named, m->msg.from) != 0)
		add_note(&notes, "the file's name says another sender");
	if (foreign_to_address(str_of(at->box), named, IGNORED) == MR_OK && strcmp(named, to) != 0)
		add_note(&notes, "it is addressed to another agent");
	if (to[0])
		kit_to(m, to);
	m->msg.subject = keep_line(m, object, "subject");
	m->msg.type = keep_line(m, object, "type");
	if (second)
		fill_second_dialect(m, object);
	m->msg.thread = kit_keep(m, str_of(m->msg.id));
	if (json_find_text(object, "priority", &word))
		(void)mr_priority_parse(buf_z(&word), &m->msg.priority, IGNORED);
	header_clean(&name, str_of(at->name));
	kit_header(m, "Message-ID", kit_keep_buf(m, &name));
	/* The id of what it answers, which is what its sender was told; a name without a time stays a name. */
	m->msg.reply_to = keep_line(m, object, "in_reply_to");
	if (m->msg.reply_to[0])
		kit_header(m, "In-Reply-To", m->msg.reply_to);
	if (chipset_name_id(str_of(m->msg.reply_to), answered))
		m->msg.reply_to = kit_keep(m, str_of(answered));
	if (notes.len > 0)
		kit_header(m, "Mailroom-Note", kit_keep_buf(m, &notes));
}

enum mr_rc
chipset_letter(struct mr_str text, const struct chipset_origin *at, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT, body = BUF_INIT;
	struct json_value object, ignored;
	struct chipset_name parts;
	char id[MR_ID_LEN + 1];

	TRY(chipset_object(text, &object, err));
	chipset_message_id(at->name, &object, id);
	struct kit_message m = kit_message(id, at->folder, chipset_is_read(object) ? MR_SEEN : 0);
	bool second = !json_find(object, "body", &ignored) && json_find(object, "payload", &ignored);

	m.msg.size_bytes = text.len;
	if (!find_time(object, &m.msg.date_ms))
		m.msg.date_ms = chipset_name_parse(str_of(at->name), &parts) ? parts.ms : at->mtime_ms;
	chipset_box_path(&path, at->box, at->folder);
	buf_addf(&path, "/%s", at->name);
	m.msg.path = kit_keep_buf(&m, &path);
	if (depth != SCAN_NAMES)
		fill_fields(&m, object, at, second);
	if (depth == SCAN_BODIES) {
		add_value(object, second ? "payload" : "body", &body);
		m.failed |= body.failed;
		kit_body(&m, buf_str(&body));
	}
	return kit_message_end(&m, ret, err);
}

/* ---- From a message to bytes: keys in ascending order, two spaces, one line end ---- */

void
chipset_member(struct buf *out, const char *key, struct mr_str value)
{
	buf_addf(out, "%s  \"%s\": ", out->len > 2 ? ",\n" : "", key);
	json_stringify(out, value);
}

void
chipset_write(struct buf *out, const struct mr_message *msg, const struct chipset_words *words)
{
	/* The format has no word for "high": chipset_unsupported tells, and what is nearest is written all the same. */
	const char *priority = msg->priority == MR_LOW ? "low" : msg->priority == MR_URGENT ? "urgent" : "normal";
	char stamp[RFC3339_LEN + 1];

	time_rfc3339(words->ms, stamp);
	buf_adds(out, "{\n");
	chipset_member(out, "body", kit_text(msg));
	chipset_member(out, "from", str_of(words->from));
	if (msg->reply_to[0])
		chipset_member(out, "in_reply_to", str_of(msg->reply_to));
	if (words->imported[0])
		chipset_member(out, "mailroom_id", str_of(words->imported));
	chipset_member(out, "priority", str_of(priority));
	buf_addf(out, ",\n  \"read\": %s", words->read ? "true" : "false");
	chipset_member(out, "subject", str_of(msg->subject));
	chipset_member(out, "timestamp", str_of(stamp));
	chipset_member(out, "to", str_of(words->to));
	chipset_member(out, "type", str_of(msg->type[0] ? msg->type : "coordination"));
	buf_adds(out, "\n}\n");
}

bool
chipset_set_read(struct mr_str text, struct json_value object, bool read, struct buf *out)
{
	return kit_set_flag(text, object, "read", read, KIT_LIKE_LAST, out);
}
