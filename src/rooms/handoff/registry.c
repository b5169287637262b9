/* SPDX-License-Identifier: MIT */
/*
 * registry.c - registry.json: its bytes, the file, and the mailbox behind a name, an id and an address.
 *
 * The original reads it line by line with an expression, drops every line that it does not know when it next writes,
 * and is broken by jq. So we read any JSON, take out of a file that is none whatever entries are whole in it, and
 * always write the one layout that the original reads.
 */
#include "rooms/handoff/handoff.h"

#include "base/sys.h"
#include "base/text.h"
#include "message/foreign.h"
#include "message/json_read.h"
#include <stddef.h>

#define REGISTRY "registry.json"
#define LOCK ".registry.lock"
#define REGISTRY_MAX ((size_t)4 << 20)
#define LOCK_WAIT_MS 10000

void
registry_done(struct registry *r)
{
	free(r->v);
	arena_free(r->own);
	*r = (struct registry){ 0 };
}

/* The members of an entry that are strings, in the order of the file; `pid`, a number, stands before the last. */
static const struct {
	const char *key;
	size_t offset;
} members[] = {
	{ "id", offsetof(struct registry_entry, id) },
	{ "harness", offsetof(struct registry_entry, harness) },
	{ "inbox", offsetof(struct registry_entry, inbox) },
	{ "created", offsetof(struct registry_entry, created) },
};
#define MEMBERS (sizeof members / sizeof members[0])

static const char **
member_of(struct registry_entry *e, size_t i)
{
	return (const char **)((char *)e + members[i].offset);
}

/* ---- Reading ---- */

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
keep(struct registry *r, const struct buf *text)
{
	if (text->failed)
		return NULL;
	return text->len ? arena_dup(&r->own, buf_str(text)) : "";
}

static bool
append(struct registry *r, const struct registry_entry *e)
{
	if (!e->name || !e->id || !e->harness || !e->inbox || !e->created || !e->pid || !e->more)
		return false;
	if (r->n % 16 == 0) {
		struct registry_entry *grown = realloc(r->v, (r->n + 16) * sizeof *grown);

		if (!grown)
			return false;
		r->v = grown;
	}
	r->v[r->n++] = *e;
	return true;
}

/* False: out of memory. What has no id is passed over. */
static bool
take_entry(struct registry *r, struct json_value name_value, struct json_value object)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, more = BUF_INIT;
	struct json_value key, value, pid;
	struct registry_entry e = { .pid = "0" };

	if (object.kind != JSON_OBJECT)
		return true;
	json_text(name_value, &name);
	e.name = keep(r, &name);
	for (size_t i = 0; i < MEMBERS; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		(void)json_find_text(object, members[i].key, &text);
		*member_of(&e, i) = keep(r, &text);
	}
	if (json_find(object, "pid", &pid) && pid.kind == JSON_NUMBER)
		e.pid = arena_dup(&r->own, pid.raw);
	for (size_t at = 0; json_member(object, &at, &key, &value);) {
		bool known = json_key_is(key, "pid");

		for (size_t i = 0; i < MEMBERS; i++)
			known |= json_key_is(key, members[i].key);
		if (known)
			continue;
		buf_addc(&more, ',');
		buf_add(&more, key.raw);
		buf_addc(&more, ':');
		add_compact(&more, value.raw);
	}
	e.more = keep(r, &more);
	return (e.id && e.id[0] == '\0') || append(r, &e);
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
	struct registry r = { 0 };
	struct json_value all, key, value;
	const char *problem;
	bool fine = true;

	if (json_whole(text, &all, &problem) && all.kind == JSON_OBJECT) {
		for (size_t at = 0; fine && json_member(all, &at, &key, &value);)
			fine = take_entry(&r, key, value);
	} else if (json_skip_space(text, 0) < text.len) {
		r.broken = true;
		fine = salvage(&r, text);
	}
	if (!fine) {
		registry_done(&r);
		return mr_nomem(err);
	}
	*ret = r;
	return MR_OK;
}

/* ---- Writing, looking, changing ---- */

void
registry_write(const struct registry *r, const char *root, struct buf *out)
{
	buf_adds(out, r->n ? "{\n" : "{}\n");
	for (size_t i = 0; i < r->n; i++) {
		struct registry_entry e = r->v[i];
		mr_auto(buf_done) struct buf inbox = BUF_INIT;

		buf_addf(&inbox, "%s/%s/inbox", root, e.id);
		e.harness = e.harness[0] ? e.harness : "unknown";
		e.inbox = e.inbox[0] ? e.inbox : buf_z(&inbox);
		buf_adds(out, "  ");
		json_stringify(out, str_of(e.name));
		for (size_t m = 0; m < MEMBERS; m++) {
			if (m + 1 == MEMBERS)
				buf_addf(out, ",\"pid\":%s", e.pid);
			buf_addf(out, "%s\"%s\":", m == 0 ? ": {" : ",", members[m].key);
			json_stringify(out, str_of(*member_of(&e, m)));
		}
		buf_addf(out, "%s}%s\n", e.more, i + 1 < r->n ? "," : "");
		out->failed |= inbox.failed;
	}
	if (r->n)
		buf_adds(out, "}\n");
}

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

enum mr_rc
registry_add(struct registry *r, const struct registry_entry *entry, struct mr_error *err)
{
	struct registry_entry e = *entry;
	const char **const texts[] = { &e.name, &e.id, &e.harness, &e.inbox, &e.created, &e.pid, &e.more };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		*texts[i] = arena_dup(&r->own, str_of(*texts[i]));
	return append(r, &e) ? MR_OK : mr_nomem(err);
}

void
registry_remove(struct registry *r, const struct registry_entry *entry)
{
	size_t at = (size_t)(entry - r->v);

	memmove(&r->v[at], &r->v[at + 1], (r->n - at - 1) * sizeof *r->v);
	r->n--;
}

/* ---- On disk ---- */

enum mr_rc
handoff_registry_read(struct handoff *h, struct registry *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	int root_fd = -1;
	enum mr_rc rc = handoff_root(h, false, &root_fd, err);

	if (rc == MR_OK)
		rc = file_read(root_fd, REGISTRY, REGISTRY_MAX, &text, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	return registry_parse(buf_str(&text), ret, err);
}

enum mr_rc
handoff_registry_lock(struct handoff *h, int *ret_lock, struct registry *ret, struct mr_error *err)
{
	int root_fd = -1;

	TRY(handoff_root(h, true, &root_fd, err));
	/* The original locks the same file with flock(1); it is never removed. */
	if (lock_take(root_fd, LOCK, 0600, LOCK_WAIT_MS, ret_lock, err) != MR_OK) {
		if (err->code == MR_BUSY)
			(void)mr_hint(err, "another process has held %s/%s for 10 s: try again", h->path, LOCK);
		return mr_wrap(err, "cannot change the registry");
	}
	return handoff_registry_read(h, ret, err);
}

enum mr_rc
handoff_registry_store(struct handoff *h, const struct registry *r, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	int root_fd = -1;

	TRY(handoff_root(h, false, &root_fd, err));
	registry_write(r, h->path, &out);
	return buf_ok(&out) ? file_replace(root_fd, REGISTRY, buf_str(&out), 0600, err) : mr_nomem(err);
}

/* ---- Ids, names and addresses ---- */

bool
handoff_id_ok(struct mr_str id)
{
	return id.len > 0 && id.len <= HANDOFF_ID_MAX && id.ptr[0] != '.' && !str_eq(id, STR(REGISTRY)) &&
	       kit_is_plain(id);
}

enum mr_rc
handoff_id_check(const char *id, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	if (handoff_id_ok(str_of(id)))
		return MR_OK;
	text_clean_line(&shown, utf8_cut(str_of(id), 60));
	return mr_fail(err, MR_REFUSED,
	    "'%s' cannot be the id of a mailbox\n"
	    "an id has 1 to %d of the characters A-Z a-z 0-9 . _ - and does not begin with a dot",
	    buf_z(&shown), HANDOFF_ID_MAX);
}

enum mr_rc
handoff_name_check(struct mr_str name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;
	bool fine = name.len > 0 && name.ptr[0] != '-' && !str_eq(name, STR("collision")) && utf8_valid(name);

	for (size_t i = 0; fine && i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		fine = c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
	}
	if (fine)
		return MR_OK;
	text_clean_line(&shown, utf8_cut(name, 60));
	return mr_fail(err, MR_REFUSED,
	    "'%s' cannot be a registered name\nno quote, backslash or control character, no dash in front, not 'collision'",
	    buf_z(&shown));
}

bool
handoff_has_mailbox(struct handoff *h, const char *id)
{
	struct stat st;
	int root_fd = -1;

	return handoff_id_ok(str_of(id)) && handoff_root(h, false, &root_fd, IGNORED) == MR_OK &&
	       sys_stat(root_fd, id, &st) == 0 && S_ISDIR(st.st_mode);
}

void
handoff_inbox_path(const struct handoff *h, const char *id, struct buf *out)
{
	buf_addf(out, "%s/%s/inbox", h->path, id);
}

bool
handoff_is_elsewhere(const struct handoff *h, const struct registry_entry *e)
{
	mr_auto(buf_done) struct buf here = BUF_INIT;

	handoff_inbox_path(h, e->id, &here);
	return e->inbox[0] && strcmp(e->inbox, buf_z(&here)) != 0;
}

enum mr_rc
handoff_mailbox_of(struct handoff *h, const struct registry *r, const char *address, char ret_id[HANDOFF_ID_MAX + 1],
    const struct registry_entry **ret_entry, struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	foreign_from_address(address, &name);
	if (!buf_ok(&name) && address[0])
		return mr_nomem(err);
	const struct registry_entry *entry = registry_named(r, buf_str(&name));
	const char *id = entry ? entry->id : buf_z(&name);

	if (entry && !handoff_id_ok(str_of(id))) {
		return mr_fail(err, MR_REFUSED,
		    "'%s' is registered with an id that is no folder of this room\n"
		    "somebody wrote that into %s/" REGISTRY "; look at it, and register again",
		    address, h->path);
	}
	if (!entry && !handoff_has_mailbox(h, id))
		return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room", address);
	(void)snprintf(ret_id, HANDOFF_ID_MAX + 1, "%s", id);
	if (ret_entry)
		*ret_entry = entry;
	return MR_OK;
}
