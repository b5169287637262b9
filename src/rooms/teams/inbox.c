/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - one entry of an inbox, read and written, and the file with all of them.
 *
 * Not all generations of the original give an entry an id, so ours follows from what it takes for the same message:
 * sender, time and text, and msg_id where there is one. We write as the first generation does, byte for byte like
 * JSON.stringify.
 *
 * A file is walked once from the front, entry by entry, so that a file that was cut gives up
 * all that is whole before the cut. Its next version keeps every byte of a good file but those of a changed `read` and
 * of the new entry, whatever its layout; of a damaged one the whole entries are put together anew.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/address.h"
#include "message/message.h"
#include "rooms/teams/teams.h"
#define PATIENCE_MS 320

#define DATE_MAX_MS (((int64_t)1 << 48) - 1) /* what an id can hold */

/* ---- An entry ---- */

enum field { FROM, TEXT, SUMMARY, TIMESTAMP, COLOR, MSG_ID, READ, FIELDS };
static const char *const field_names[FIELDS] = { "from", "text", "summary", "timestamp", "color", "msg_id", "read" };
struct fields {
	struct json_value v[FIELDS]; /* raw.ptr NULL: it has none */
};

/* The last member of a name counts, as in JavaScript. */
static void
take_field(struct fields *f, struct json_value key, struct json_value value)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (json_key_is(key, field_names[i])) {
			f->v[i] = value;
			return;
		}
}

static struct fields
fields_of(const struct entry *e)
{
	struct json_value object = { JSON_OBJECT, e->raw }, key, value;
	struct fields f = { 0 };

	for (size_t at = 0; json_member(object, &at, &key, &value);)
		take_field(&f, key, value);
	return f;
}

static int64_t
date_of(struct mr_str timestamp)
{
	int64_t ms = 0;

	if (!time_parse_rfc3339(timestamp, &ms) || ms < 0)
		ms = 0;
	return ms < DATE_MAX_MS ? ms : DATE_MAX_MS;
}

/* An id is made of the date, and of sender, time, text and msg_id with NULs between them. nth: among those with the
 * same; 0 for the first. False: out of memory. */
static bool
entry_identify(struct entry *e, unsigned nth)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, msg_id = BUF_INIT;
	const struct fields f = fields_of(e);

	json_text(f.v[FROM], &name);
	buf_addc(&name, '\0');
	if (f.v[TIMESTAMP].raw.ptr)
		json_text(f.v[TIMESTAMP], &name);
	buf_addc(&name, '\0');
	json_text(f.v[TEXT], &name);
	if (f.v[MSG_ID].raw.ptr)
		json_text(f.v[MSG_ID], &msg_id);
	if (msg_id.len > 0) {
		buf_addc(&name, '\0');
		buf_add(&name, buf_str(&msg_id));
	}
	if (nth > 0) /* the very same once more */
		buf_addf(&name, "%c%u", '\0', nth);
	id_from_name(e->date_ms, buf_str(&name), e->id);
	return !name.failed && !msg_id.failed;
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
	const struct fields f = fields_of(e);

	json_text(f.v[FROM], &from);
	json_text(f.v[TEXT], &text);
	if (f.v[SUMMARY].raw.ptr && f.v[SUMMARY].kind == JSON_STRING)
		json_text(f.v[SUMMARY], &summary);
	m.failed |= from.failed || text.failed;
	kit_to(&m, agent);
	m.msg.from = kit_keep_address(&m, buf_str(&from)); /* "": the sender cannot be answered */
	add_line(&m, "Message-ID", f.v[MSG_ID]);
	add_line(&m, "Color", f.v[COLOR]);
	if (entry_control_type(buf_str(&text), &type))
		m.msg.type = kit_keep_buf(&m, &type);
	else if (summary.len == 0) /* without a summary the first line says what it is about */
		subject_from_body(&summary, buf_str(&text));
	m.msg.subject = kit_keep_buf(&m, &summary);
	if (depth == SCAN_BODIES)
		kit_body(&m, buf_str(&text));
	return kit_message_end(&m, ret, err);
}

/* ---- What we write ---- */

/* A team acts on bodies of this form without asking who sent them. */
static enum mr_rc
check_body(const struct delivery *what, struct mr_str body, bool *ret_control, struct mr_error *err)
{
	mr_auto(buf_done) struct buf type = BUF_INIT;

	if (!utf8_valid(body))
		return mr_fail(err, MR_REFUSED,
		    "a team's inbox holds text only, and this body is not UTF-8\n"
		    "put it in a file that the recipient can read, and mail the path");
	*ret_control = entry_control_type(body, &type);
	if (!*ret_control)
		return MR_OK;
	TRY(mr_got(!type.failed, err));
	if (!what->carried && type.len > 0 && strcmp(what->msg->type, buf_z(&type)) == 0)
		return MR_OK;
	(void)mr_fail(
	    err, MR_REFUSED, "a team would take this body for a control message of type '%.40s'", buf_z(&type));
	return what->carried
		   ? mr_hint(err, "from another room it can come only as prose")
		   : mr_hint(err, "give --type '%.40s' if you mean it; prose needs a word before the {", buf_z(&type));
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

enum mr_rc
letter_make(struct letter *l, const struct delivery *what, struct mr_error *err)
{
	const struct mr_message *msg = what->msg;
	const char *color = mr_message_header(msg, "Color");
	mr_auto(buf_done) struct buf raw = BUF_INIT;
	bool control = false;

	TRY(check_body(what, kit_text(msg), &control, err));
	foreign_from_address(msg->from, &raw);
	add_attribute(&l->from, buf_str(&raw));
	add_attribute(&l->summary, str_trim(str_of(msg->subject)));
	add_attribute(&l->color, str_trim(str_of(color ? color : "")));
	/* The first generation shows a model the text as it is, between tags: what would close its block early gets a
	 * backslash, as later generations do it. A control message is no text for a model. */
	struct mr_str body = kit_text(msg);

	static const char tag[] = "</teammate-message";

	for (size_t i = 0; i < body.len; i++) {
		buf_addc(&l->text, body.ptr[i]);
		if (!control && body.ptr[i] == '<' && body.len - i >= sizeof(tag) - 1 &&
		    strncasecmp(body.ptr + i, tag, sizeof(tag) - 1) == 0)
			buf_addc(&l->text, '\\');
	}
	TRY(mr_got(!(raw.failed || l->from.failed || l->summary.failed || l->color.failed || l->text.failed), err));
	if (l->from.len == 0 || !str_eq(buf_str(&l->from), buf_str(&raw)))
		return mr_fail(err, MR_REFUSED,
		    "'%s' cannot be the sender of a message to a team\n"
		    "a name without quotes, angle brackets and line breaks is needed",
		    msg->from);
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
	buf_addf(&name, "%s%c%s%c", buf_z(&l->from), '\0', when, '\0');
	buf_add(&name, buf_str(&l->text));
	if (l->msg_id[0])
		buf_addf(&name, "%c%s", '\0', l->msg_id);
	id_from_name(date_of(str_of(when)), buf_str(&name), l->id);
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

/* ---- The file ---- */

struct inbox *
inbox_new(const char *agent)
{
	struct inbox *in = calloc(1, sizeof *in);

	if (in) {
		in->refs = 1;
		(void)snprintf(in->agent, sizeof in->agent, "%s", agent);
	}
	return in;
}

static void
forget_entries(struct inbox *in)
{
	free(in->v);
	free(in->order);
	in->v = NULL;
	in->order = NULL;
	in->n = in->order_n = 0;
}

void
inbox_unref(struct inbox **ref)
{
	struct inbox *in = *ref;

	*ref = NULL;
	if (!in || --in->refs > 0)
		return;
	buf_done(&in->text);
	forget_entries(in);
	free(in);
}

/* ---- Parsing ---- */

/* Behind an entry: a comma (true), the end of the array, or nothing good. */
static bool
goes_on(struct inbox *in, struct mr_str text, size_t *at)
{
	*at = json_skip_space(text, *at);
	if (*at < text.len && text.ptr[*at] == ',') {
		++*at;
		return true;
	}
	if (*at >= text.len || text.ptr[*at] != ']') {
		in->state = INBOX_TORN;
		in->problem = *at >= text.len ? "ends within its array" : "lacks a comma";
		return false;
	}
	in->state = json_skip_space(text, *at + 1) >= text.len ? INBOX_GOOD : INBOX_CLEARED;
	return false;
}

/* Two letters tell most prose from a word in capitals, from an object and from a "Re:". */
static bool
begins_plainly(struct json_value text)
{
	const char *s = text.raw.ptr;

	if (!s || text.kind != JSON_STRING || text.raw.len < 4 || !ascii_alnum(s[1]) || (s[1] | 32) == 'r')
		return false;
	return (s[1] >= 'a' && s[1] <= 'z') || (s[2] >= 'a' && s[2] <= 'z') || s[2] == ' ';
}

/* The entry at *at, in one pass over its bytes. False: it is not whole. */
static bool
entry_parse(struct mr_str text, size_t *at, struct entry *ret, const char **ret_problem)
{
	char first[64];
	mr_auto(buf_done) struct buf timestamp = BUF_IN(first);
	struct json_value key, value;
	struct fields f = { 0 };
	size_t from = *at = json_skip_space(text, *at);
	const char *problem = NULL;
	bool object = from < text.len && text.ptr[from] == '{';

	if (object)
		while (json_member_at(text, at, &key, &value, &problem))
			take_field(&f, key, value);
	else
		(void)json_value_at(text, at, &value, &problem);
	if (problem) {
		*ret_problem = problem;
		return false;
	}
	*ret = (struct entry){ .raw = { text.ptr + from, *at - from } };
	if (!object)
		ret->problem = "is not an object";
	else if (!f.v[FROM].raw.ptr || f.v[FROM].kind != JSON_STRING)
		ret->problem = "has no sender";
	else if (!f.v[TEXT].raw.ptr || f.v[TEXT].kind != JSON_STRING)
		ret->problem = "has no text";
	ret->seen = f.v[READ].raw.ptr && json_truthy(f.v[READ]);
	ret->plain = begins_plainly(f.v[TEXT]) && (!f.v[SUMMARY].raw.ptr || begins_plainly(f.v[SUMMARY]));
	if (f.v[TIMESTAMP].raw.ptr)
		json_text(f.v[TIMESTAMP], &timestamp);
	ret->date_ms = timestamp.failed ? -1 : date_of(buf_str(&timestamp));
	return true;
}

static enum mr_rc
walk(struct inbox *in, struct mr_error *err)
{
	struct mr_str text = buf_str(&in->text);
	bool bom = str_starts(text, "\xEF\xBB\xBF"), more = true;
	size_t at = json_skip_space(text, bom ? 3 : 0), cap = 0;
	struct json_value value;

	if (at >= text.len ||
	    text.ptr[at] != '[') { /* a whole value was meant by its writer; anything else is damage */
		in->problem = "";
		in->state = json_value_at(text, &at, &value, &in->problem) ? INBOX_ALIEN : INBOX_TORN;
		if (in->state == INBOX_ALIEN)
			in->problem = "is not an array";
		return MR_OK;
	}
	size_t first = json_skip_space(text, ++at);

	if (first < text.len && text.ptr[first] == ']') {
		at = first;
		more = goes_on(in, text, &at);
	}
	while (more) {
		TRY(mr_got(array_grow(&in->v, in->n, &cap, sizeof *in->v), err));
		if (!entry_parse(text, &at, &in->v[in->n], &in->problem)) {
			in->state = in->problem == json_too_deep ? INBOX_ALIEN : INBOX_TORN;
			return MR_OK;
		}
		in->n++;
		more = goes_on(in, text, &at);
	}
	if (bom && in->state == INBOX_GOOD) { /* the original cannot read it at all */
		in->state = INBOX_TORN;
		in->problem = "begins with a byte order mark";
	}
	return MR_OK;
}

/*
 * An id begins with the date, so the order of ids is that of the dates and, within one moment, that of what follows.
 * The dates are read of all entries. The rest of an id is a hash of sender, time and text: it is made of the entries of
 * a moment when one of them is asked for, because most looks want a few of many.
 */
static int
by_date_and_id(const void *a, const void *b)
{
	const struct entry *left = *(struct entry *const *)a, *right = *(struct entry *const *)b;
	int order = (left->date_ms > right->date_ms) - (left->date_ms < right->date_ms);

	order = order ? order : strcmp(left->id, right->id);
	return order ? order : (left > right) - (left < right); /* of the same id: by their places in the array */
}

enum mr_rc
inbox_parse(struct inbox *in, struct mr_error *err)
{
	bool sorted = true;

	TRY(walk(in, err));
	in->order = calloc(in->n + 1, sizeof(*in->order));
	TRY(mr_got(in->order, err));
	for (size_t i = 0; i < in->n; i++) {
		if (in->v[i].problem)
			continue;
		if (in->v[i].date_ms < 0)
			return mr_nomem(err);
		sorted &= in->order_n == 0 || in->order[in->order_n - 1]->date_ms <= in->v[i].date_ms;
		in->order[in->order_n++] = &in->v[i];
	}
	if (!sorted)
		qsort(in->order, in->order_n, sizeof(*in->order), by_date_and_id);
	return MR_OK;
}

enum mr_rc
inbox_moment(struct inbox *in, size_t at, size_t *ret_first, size_t *ret_n, struct mr_error *err)
{
	size_t first = at, end = at + 1;
	bool twins = false, fine = true;

	while (first > 0 && in->order[first - 1]->date_ms == in->order[at]->date_ms)
		first--;
	while (end < in->order_n && in->order[end]->date_ms == in->order[at]->date_ms)
		end++;
	*ret_first = first;
	*ret_n = end - first;
	if (in->order[first]->id[0]) /* made before */
		return MR_OK;
	for (size_t i = first; i < end; i++)
		fine &= entry_identify(in->order[i], 0);
	qsort(in->order + first, *ret_n, sizeof(*in->order), by_date_and_id);
	/* Entries that are the same in every respect are told apart by counting. */
	for (size_t i = first, n = 0; i + 1 < end; i++) {
		bool twin = strcmp(in->order[i - n]->id, in->order[i + 1]->id) == 0;

		n = twin ? n + 1 : 0;
		if (twin)
			fine &= entry_identify(in->order[i + 1], (unsigned)n);
		twins |= twin;
	}
	if (twins)
		qsort(in->order + first, *ret_n, sizeof(*in->order), by_date_and_id);
	return mr_got(fine, err);
}

struct entry *
inbox_find(struct inbox *in, const char *id)
{
	size_t low = 0, high = in->order_n, n = 0;
	int64_t date_ms = id_time_ms(id);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (in->order[middle]->date_ms < date_ms)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == in->order_n || in->order[low]->date_ms != date_ms ||
	    inbox_moment(in, low, &low, &n, IGNORED) != MR_OK)
		return NULL;
	for (size_t i = low; i < low + n; i++)
		if (strcmp(in->order[i]->id, id) == 0)
			return in->order[i];
	return NULL;
}

void
inbox_mark(const struct teams *t, struct inbox *in)
{
	for (size_t i = 0; i < t->marks_n; i++) {
		struct entry *e = strcmp(t->marks[i].agent, in->agent) == 0 ? inbox_find(in, t->marks[i].id) : NULL;

		if (e) {
			e->seen = t->marks[i].seen;
			e->marked = true;
		}
	}
}

enum mr_rc
inbox_corrupt(const struct inbox *in, struct mr_error *err)
{
	(void)mr_fail(err, MR_CORRUPT, "the inbox of '%s' %s", in->agent, in->problem ? in->problem : "is damaged");
	if (in->state == INBOX_ALIEN)
		return mr_hint(
		    err, "it is left as it is; an inbox is a JSON array of objects: find out which program wrote it");
	return mr_hint(err, "the whole messages at its beginning can be read; the next change saves the rest aside");
}

/* ---- Reading ---- */

static enum mr_rc
read_once(struct inbox *in, int dir_fd, const char *file, struct mr_error *err)
{
	buf_clear(&in->text);
	forget_entries(in);
	in->state = INBOX_GOOD;
	in->read_ns = clock_now_ns();
	enum mr_rc rc = file_read_stat(dir_fd, file, INBOX_MAX, &in->text, &in->st, err);

	if (rc == MR_NOTFOUND) {
		in->state = INBOX_MISSING;
		return mr_unless(rc, MR_NOTFOUND, err);
	}
	if (rc == MR_REFUSED)
		return mr_hint(err,
		    "an inbox is a regular file of at most %zu MB; a larger one is no longer read: save what matters and empty it",
		    INBOX_MAX / 1000000);
	return rc == MR_OK ? inbox_parse(in, err) : rc;
}

enum mr_rc
inbox_read(struct inbox *in, int dir_fd, const char *file, unsigned patience_ms, struct mr_error *err)
{
	for (unsigned pause_ms = 5;; pause_ms *= 2) {
		TRY(read_once(in, dir_fd, file, err));
		/* A file unchanged for two seconds is not being written. */
		bool settled = clock_now_ns() - kit_mtime_ns(&in->st) > 2000000000;

		if (in->state != INBOX_TORN || settled || pause_ms > patience_ms)
			return MR_OK;
		lock_pause_us(pause_ms * 1000);
	}
}

/* Is the file as it was read? A change within the grain of the kernel's clock cannot be seen. */
static bool
still_same(const struct inbox *in, int dir_fd, const char *file)
{
	const int64_t grain_ns = 50000000;
	struct stat st;

	if (in->state == INBOX_MISSING || sys_stat(dir_fd, file, &st) < 0)
		return false;
	return st.st_ino == in->st.st_ino && st.st_size == in->st.st_size &&
	       kit_mtime_ns(&st) == kit_mtime_ns(&in->st) && in->read_ns - kit_mtime_ns(&st) > grain_ns;
}

enum mr_rc
inbox_load(struct teams *t, const char *agent, bool cached, struct inbox **ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	mr_auto(inbox_unref) struct inbox *in = NULL;
	char file[TEAM_NAME_LEN];
	enum mr_rc rc = teams_open_dir(t, t->inboxes, &dir_fd, err);

	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	teams_inbox_name(agent, file);
	if (rc == MR_OK && cached && t->cache && strcmp(t->cache->agent, agent) == 0 &&
	    still_same(t->cache, dir_fd, file)) {
		*ret = t->cache;
		t->cache->refs++;
		return MR_OK;
	}
	in = inbox_new(agent);
	TRY(mr_got(in, err));
	if (rc == MR_OK) {
		TRY(inbox_read(in, dir_fd, file, PATIENCE_MS, err));
		inbox_mark(t, in);
		inbox_unref(&t->cache);
		t->cache = in;
		in->refs++;
	}
	*ret = in;
	in = NULL;
	return MR_OK;
}

/* ---- The next version ---- */

enum mr_rc
edit_inbox(const struct inbox *in, const struct letter *more, struct buf *ret, bool *ret_changed, struct mr_error *err)
{
	bool good = in->state == INBOX_GOOD && in->n > 0, changed = in->state != INBOX_GOOD || more != NULL;
	const char *at = good ? in->text.ptr : NULL; /* up to here it is copied */

	for (size_t i = 0; i < in->n; i++) {
		const struct entry *e = &in->v[i];

		if (good)
			buf_add(ret, (struct mr_str){ at, (size_t)(e->raw.ptr - at) });
		else
			buf_adds(ret, i == 0 ? "[\n  " : ",\n  ");
		if (e->marked && kit_set_flag(e->raw, (struct json_value){ JSON_OBJECT, e->raw }, "read", e->seen,
				     KIT_LIKE_FIRST, ret))
			changed = true;
		else
			buf_add(ret, e->raw);
		at = e->raw.ptr + e->raw.len;
	}
	if (more) {
		buf_adds(ret, in->n == 0 ? "[\n" : ",\n");
		letter_add(more, ret);
	}
	if (good)
		buf_add(ret, (struct mr_str){ at, (size_t)(in->text.ptr + in->text.len - at) });
	else
		buf_adds(ret, in->n == 0 && !more ? "[]" : "\n]");
	TRY(mr_got(buf_ok(ret), err));
	*ret_changed = changed;
	return MR_OK;
}
