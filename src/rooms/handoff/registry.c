/* SPDX-License-Identifier: MIT */
/*
 * registry.c - the bytes of registry.json.
 *
 * The original reads it line by line with an expression, drops every line that it does not know when it next writes,
 * and is broken by jq. So we read any JSON, take out of a file that is none whatever entries are whole in it, and
 * always write the one layout that the original reads.
 */
#include "rooms/handoff/handoff.h"

#include "message/json_read.h"

void
registry_done(struct registry *r)
{
	free(r->v);
	arena_free(r->own);
	*r = (struct registry){ 0 };
}

/* ---- Reading ---- */

static const char *const known_keys[] = { "id", "harness", "inbox", "pid", "created" };

static bool
is_known(struct json_value key)
{
	for (size_t i = 0; i < sizeof known_keys / sizeof known_keys[0]; i++)
		if (json_key_is(key, known_keys[i]))
			return true;
	return false;
}

/* Without white space between its parts, so that it fits on the entry's one line. */
static void
add_compact(struct buf *out, struct mr_str raw)
{
	bool in_string = false;

	for (size_t i = 0; i < raw.len; i++) {
		char c = raw.ptr[i];

		if (in_string && c == '\\' && i + 1 < raw.len) {
			buf_addc(out, c);
			c = raw.ptr[++i];
		} else if (c == '"') {
			in_string = !in_string;
		} else if (!in_string && strchr(" \t\r\n", c)) {
			continue;
		}
		buf_addc(out, c);
	}
}

static const char *
text_of(struct registry *r, struct json_value object, const char *key)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (!json_find_text(object, key, &text) || text.len == 0)
		return "";
	return buf_ok(&text) ? arena_dup(&r->own, buf_str(&text)) : NULL;
}

static const char *
more_of(struct registry *r, struct json_value object)
{
	mr_auto(buf_done) struct buf more = BUF_INIT;
	struct json_value key, value;

	for (size_t at = 0; json_member(object, &at, &key, &value);) {
		if (is_known(key))
			continue;
		buf_addc(&more, ',');
		buf_add(&more, key.raw);
		buf_addc(&more, ':');
		add_compact(&more, value.raw);
	}
	if (more.failed)
		return NULL;
	return more.len ? arena_dup(&r->own, buf_str(&more)) : "";
}

static bool
append(struct registry *r, const struct registry_entry *entry)
{
	if (r->n % 16 == 0) {
		struct registry_entry *grown = realloc(r->v, (r->n + 16) * sizeof *grown);

		if (!grown)
			return false;
		r->v = grown;
	}
	r->v[r->n++] = *entry;
	return true;
}

/* False: out of memory. What has no id is passed over. */
static bool
take_entry(struct registry *r, struct json_value key, struct json_value object)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct json_value pid;
	struct registry_entry e = { .pid = "0" };

	if (object.kind != JSON_OBJECT)
		return true;
	json_text(key, &name);
	e.name = name.len ? arena_dup(&r->own, buf_str(&name)) : "";
	e.id = text_of(r, object, "id");
	e.harness = text_of(r, object, "harness");
	e.inbox = text_of(r, object, "inbox");
	e.created = text_of(r, object, "created");
	e.more = more_of(r, object);
	if (json_find(object, "pid", &pid) && pid.kind == JSON_NUMBER)
		e.pid = arena_dup(&r->own, pid.raw);
	if (name.failed || !e.name || !e.id || !e.harness || !e.inbox || !e.created || !e.more || !e.pid)
		return false;
	return e.id[0] == '\0' || append(r, &e);
}

/* Every line that begins with a name and a colon, and whatever object follows, be it on that line or on many. */
static bool
salvage(struct registry *r, struct mr_str text)
{
	for (size_t at = 0; at < text.len;) {
		struct json_value key, object;
		const char *problem;
		size_t here = json_skip_space(text, at);

		if (here < text.len && (text.ptr[here] == '{' || text.ptr[here] == ','))
			here = json_skip_space(text, here + 1);
		if (here < text.len && text.ptr[here] == '"' && json_value_at(text, &here, &key, &problem)) {
			here = json_skip_space(text, here);
			if (here < text.len && text.ptr[here] == ':' && here++ < text.len &&
			    json_value_at(text, &here, &object, &problem) && object.kind == JSON_OBJECT) {
				if (!take_entry(r, key, object))
					return false;
				at = here;
				continue;
			}
		}
		const char *end = memchr(text.ptr + at, '\n', text.len - at);

		/* From here the next line, also when white space made us look further: that line gets its own try. */
		at = end ? (size_t)(end - text.ptr) + 1 : text.len;
	}
	return true;
}

enum mr_rc
registry_parse(struct mr_str text, struct registry *ret, struct mr_error *err)
{
	mr_auto(registry_done) struct registry r = { 0 };
	struct json_value all, key, value;
	const char *problem;
	bool fine = true;

	if (json_skip_space(text, 0) == text.len) {
		*ret = r;
		return MR_OK;
	}
	if (json_whole(text, &all, &problem) && all.kind == JSON_OBJECT) {
		for (size_t at = 0; fine && json_member(all, &at, &key, &value);)
			fine = take_entry(&r, key, value);
	} else {
		r.broken = true;
		fine = salvage(&r, text);
	}
	if (!fine)
		return mr_nomem(err);
	*ret = r;
	r = (struct registry){ 0 };
	return MR_OK;
}

/* ---- Writing ---- */

static void
add_member(struct buf *out, const char *key, const char *value)
{
	buf_addf(out, "\"%s\":", key);
	json_stringify(out, str_of(value));
}

void
registry_write(const struct registry *r, const char *root, struct buf *out)
{
	buf_adds(out, r->n ? "{\n" : "{}\n");
	for (size_t i = 0; i < r->n; i++) {
		const struct registry_entry *e = &r->v[i];
		mr_auto(buf_done) struct buf inbox = BUF_INIT;

		buf_addf(&inbox, "%s/%s/inbox", root, e->id);
		buf_adds(out, "  ");
		json_stringify(out, str_of(e->name));
		buf_adds(out, ": {");
		add_member(out, "id", e->id);
		buf_addc(out, ',');
		add_member(out, "harness", e->harness[0] ? e->harness : "unknown");
		buf_addc(out, ',');
		add_member(out, "inbox", e->inbox[0] ? e->inbox : buf_z(&inbox));
		buf_addf(out, ",\"pid\":%s,", e->pid);
		add_member(out, "created", e->created);
		buf_addf(out, "%s}%s\n", e->more, i + 1 < r->n ? "," : "");
		out->failed |= inbox.failed;
	}
	if (r->n)
		buf_adds(out, "}\n");
}

/* ---- Looking and changing ---- */

const struct registry_entry *
registry_named(const struct registry *r, struct mr_str name)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(str_of(r->v[i].name), name))
			return &r->v[i];
	return NULL;
}

const struct registry_entry *
registry_with_id(const struct registry *r, struct mr_str id)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(str_of(r->v[i].id), id))
			return &r->v[i];
	return NULL;
}

static const char *
copy(struct registry *r, const char *z)
{
	return z[0] ? arena_dup(&r->own, str_of(z)) : "";
}

enum mr_rc
registry_add(struct registry *r, const struct registry_entry *entry, struct mr_error *err)
{
	struct registry_entry e = { copy(r, entry->name), copy(r, entry->id), copy(r, entry->harness),
		copy(r, entry->inbox), copy(r, entry->created), copy(r, entry->pid), copy(r, entry->more) };

	if (!e.name || !e.id || !e.harness || !e.inbox || !e.created || !e.pid || !e.more || !append(r, &e))
		return mr_nomem(err);
	return MR_OK;
}

void
registry_remove(struct registry *r, const struct registry_entry *entry)
{
	size_t at = (size_t)(entry - r->v);

	memmove(&r->v[at], &r->v[at + 1], (r->n - at - 1) * sizeof *r->v);
	r->n--;
}
