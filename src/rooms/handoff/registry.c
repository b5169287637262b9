/* SPDX-License-Identifier: MIT */
/*
 * registry.c - registry.json: its bytes, the file, and the mailbox behind a name, an id and an address; registering,
 * finding and removing agents. An agent is a mailbox: one with several names is listed under the first, and found under
 * each. A folder that nobody registered a name for is listed by its id.
 *
 * The original reads it line by line with an expression, drops every line that it does not know when it next writes,
 * and is broken by jq. So we read any JSON, take out of a file that is none whatever entries are whole in it, and
 * always write the one layout that the original reads.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/address.h"
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#define REGISTRY "registry.json"
#define LOCK ".registry.lock"
#define REGISTRY_MAX ((size_t)4 << 20)
#define LOCK_WAIT_MS 10000

void
registry_done(struct registry *r)
{
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

static void
append(struct registry *r, const struct registry_entry *e)
{
	r->failed |= !arena_grow(&r->own, &r->v, r->n, &r->cap, sizeof *r->v);
	if (!r->failed)
		r->v[r->n++] = *e;
}

/* What has no id is passed over. */
static void
take_entry(struct registry *r, struct json_value name_value, struct json_value object)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, more = BUF_INIT;
	struct registry_entry e = { .id = "", .harness = "", .inbox = "", .created = "", .pid = "0" };
	struct json_value key, value;

	if (object.kind != JSON_OBJECT)
		return;
	for (size_t at = 0; json_member(object, &at, &key, &value);) { /* the last of a name counts */
		mr_auto(buf_done) struct buf text = BUF_INIT;
		size_t i = 0;

		while (i < MEMBERS && !json_key_is(key, members[i].key))
			i++;
		if (i < MEMBERS) {
			if (value.kind == JSON_STRING)
				json_text(value, &text);
			*member_of(&e, i) = arena_keep(&r->own, buf_str(&text), &r->failed);
			r->failed |= text.failed;
		} else if (json_key_is(key, "pid")) {
			e.pid = value.kind == JSON_NUMBER ? arena_keep(&r->own, value.raw, &r->failed) : "0";
		} else {
			buf_addc(&more, ',');
			buf_add(&more, key.raw);
			buf_addc(&more, ':');
			add_compact(&more, value.raw);
		}
	}
	json_text(name_value, &name);
	e.name = arena_keep(&r->own, buf_str(&name), &r->failed);
	e.more = arena_keep(&r->own, buf_str(&more), &r->failed);
	r->failed |= name.failed || more.failed;
	if (e.id[0])
		append(r, &e);
}

/* Every line that begins with a name and a colon, and whatever object follows, be it on that line or on many. */
static void
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
				take_entry(r, key, object);
				at = here;
				continue;
			}
		}
		const char *end = memchr(text.ptr + at, '\n', text.len - at);

		/* From here the next line, also when white space made us look further: that line gets its own try. */
		at = end ? (size_t)(end - text.ptr) + 1 : text.len;
	}
}

enum mr_rc
registry_parse(struct mr_str text, struct registry *ret, struct mr_error *err)
{
	struct registry r = { 0 };
	struct json_value all, key, value;
	const char *problem;

	if (json_whole(text, &all, &problem) && all.kind == JSON_OBJECT) {
		for (size_t at = 0; json_member(all, &at, &key, &value);)
			take_entry(&r, key, value);
	} else if (json_skip_space(text, 0) < text.len) {
		r.broken = true;
		salvage(&r, text);
	}
	if (r.failed) {
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
		*texts[i] = arena_keep(&r->own, str_of(*texts[i]), &r->failed);
	append(r, &e);
	return mr_got(!r->failed, err);
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
	enum mr_rc rc = handoff_root(h, false, err);

	if (rc == MR_OK)
		rc = file_read(h->root_fd, REGISTRY, REGISTRY_MAX, &text, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	return registry_parse(buf_str(&text), ret, err);
}

enum mr_rc
handoff_registry_lock(struct handoff *h, int *ret_lock, struct registry *ret, struct mr_error *err)
{
	TRY(handoff_root(h, true, err));
	/* The original locks the same file with flock(1); it is never removed. */
	if (lock_take(h->root_fd, LOCK, 0600, LOCK_WAIT_MS, ret_lock, err) != MR_OK) {
		if (err->code == MR_BUSY)
			(void)mr_hint(err, "another process has held %s/%s for 10 s: try again", h->kit.path, LOCK);
		return mr_wrap(err, "cannot change the registry");
	}
	return handoff_registry_read(h, ret, err);
}

enum mr_rc
handoff_registry_store(struct handoff *h, const struct registry *r, struct mr_error *err)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	TRY(handoff_root(h, false, err));
	registry_write(r, h->kit.path, &out);
	return buf_ok(&out) ? file_replace(h->root_fd, REGISTRY, buf_str(&out), 0600, err) : mr_nomem(err);
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
	if (handoff_id_ok(str_of(id)))
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%.60s' cannot be the id of a mailbox\n"
	    "an id has 1 to %d of the characters A-Z a-z 0-9 . _ - and does not begin with a dot",
	    id, HANDOFF_ID_MAX);
}

enum mr_rc
handoff_name_check(struct mr_str name, struct mr_error *err)
{
	bool fine = name.len > 0 && name.ptr[0] != '-' && !str_eq(name, STR("collision")) && utf8_valid(name);

	for (size_t i = 0; fine && i < name.len; i++) {
		unsigned char c = (unsigned char)name.ptr[i];

		fine = c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
	}
	if (fine)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%.*s' cannot be a registered name\nno quote, backslash or control character, no dash in front, not 'collision'",
	    (int)(name.len < 60 ? name.len : 60), name.ptr);
}

bool
handoff_has_mailbox(struct handoff *h, const char *id)
{
	struct stat st;

	return handoff_id_ok(str_of(id)) && handoff_root(h, false, IGNORED) == MR_OK &&
	       sys_stat(h->root_fd, id, &st) == 0 && S_ISDIR(st.st_mode);
}

void
handoff_inbox_path(const struct handoff *h, const char *id, struct buf *out)
{
	buf_addf(out, "%s/%s/inbox", h->kit.path, id);
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
		    "'%s' is registered with an id that is not a folder of this room\n"
		    "somebody wrote that into %s/" REGISTRY "; look at it, and register again",
		    address, h->kit.path);
	}
	if (!entry && !handoff_has_mailbox(h, id))
		return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room", address);
	(void)snprintf(ret_id, HANDOFF_ID_MAX + 1, "%s", id);
	if (ret_entry)
		*ret_entry = entry;
	return MR_OK;
}

/* ---- Agents ---- */

/* life stays 0 and process empty: the pid that the registry has is of some shell that may be long gone. */
static enum mr_rc
describe(
    const char *address, const char *id, const struct registry_entry *entry, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = kit_agent(address);
	struct arena *own = NULL;
	bool failed = false;

	agent.session = arena_keep(&own, str_of(id), &failed);
	agent.role = arena_keep(&own, str_of(entry ? entry->harness : ""), &failed);
	agent.own = own;
	TRY(mr_got(!failed, err));
	if (entry)
		(void)time_parse_rfc3339(str_of(entry->created), &agent.created_ms);
	agent.stray = entry == NULL;
	*ret = agent;
	agent = (struct mr_agent){ 0 };
	return MR_OK;
}

enum mr_rc
handoff_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(mr_names_done) struct mr_names folders = { 0 };
	enum mr_rc rc = handoff_root(h, false, err);

	(void)names_only;
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	TRY(handoff_registry_read(h, &r, err));
	TRY(dir_names(h->root_fd, &folders, err));
	for (size_t i = 0; i < r.n + folders.n; i++) {
		const struct registry_entry *e = i < r.n ? &r.v[i] : NULL;
		const char *id = e ? e->id : folders.v[i - r.n];
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		char address[MR_ADDRESS_MAX + 1];

		if (e && (registry_with_id(&r, str_of(id)) != e || registry_named(&r, str_of(e->name)) != e ||
			     !handoff_id_ok(str_of(id))))
			continue;
		/* A name that leads elsewhere hides a folder of that id. */
		if (!e &&
		    (registry_with_id(&r, str_of(id)) || registry_named(&r, str_of(id)) || !handoff_has_mailbox(h, id)))
			continue;
		if (foreign_to_address(str_of(e ? e->name : id), address, IGNORED) != MR_OK)
			continue;
		TRY(describe(address, id, e, &agent, err));
		if (!fn(ctx, &agent))
			break;
	}
	return MR_OK;
}

enum mr_rc
handoff_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	const struct registry_entry *entry = NULL;
	char id[HANDOFF_ID_MAX + 1];

	TRY(handoff_registry_read(h, &r, err));
	TRY(handoff_mailbox_of(h, &r, name, id, &entry, err));
	return ret ? describe(name, id, entry, ret, err) : MR_OK;
}

enum mr_rc
handoff_spell(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	TRY(handoff_registry_read(h, &r, err));
	foreign_from_address(given, &plain); /* an address is taken, too */
	const struct registry_entry *entry = registry_named(&r, str_of(given));

	if (!entry)
		entry = registry_named(&r, buf_str(&plain));
	if (!entry)
		entry = registry_with_id(&r, str_of(given));
	if (entry)
		return foreign_to_address(str_of(entry->name), ret, err);
	if (!handoff_has_mailbox(h, given))
		TRY(handoff_name_check(buf_str(&plain), err));
	return foreign_to_address(buf_str(&plain), ret, err);
}

/* ---- Registering ---- */

enum mr_rc
handoff_register(struct handoff *h, const struct registering *who, struct mr_error *err)
{
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(buf_done) struct buf inbox = BUF_INIT;
	mr_auto(sys_close_fd) int lock = -1;
	const char *name = who->name;
	char created[RFC3339_LEN + 1], pid[24];

	TRY(handoff_name_check(str_of(name), err));
	TRY(handoff_id_check(who->id, err));
	TRY(handoff_registry_lock(h, &lock, &r, err));
	if (registry_named(&r, str_of(name)))
		return mr_fail(err, MR_EXISTS, "cannot register '%s': the name is taken", name);
	for (size_t i = 0; who->strict && i < r.n; i++)
		if (ascii_caseeq(r.v[i].name, name))
			return mr_fail(err, MR_REFUSED,
			    "cannot register '%s': it differs from '%s' only in case\nuse '%s', or pick another name",
			    name, r.v[i].name, r.v[i].name);
	if (who->strict && strcmp(name, who->id) != 0 && handoff_has_mailbox(h, name))
		return mr_fail(err, MR_REFUSED,
		    "cannot register '%s': it is the id of another mailbox\nmail for that id would go to you: pick another name",
		    name);
	time_rfc3339(clock_now_ms(), created);
	memcpy(created + 19, "Z", 2); /* whole seconds */
	(void)snprintf(pid, sizeof pid, "%" PRId64, who->pid);
	handoff_inbox_path(h, who->id, &inbox);
	TRY(mr_got(buf_ok(&inbox), err));
	TRY(registry_add(&r,
	    &(struct registry_entry){ .name = name,
		.id = who->id,
		.harness = who->harness[0] ? who->harness : "unknown",
		.inbox = buf_z(&inbox),
		.created = created,
		.pid = pid,
		.more = "" },
	    err));
	return handoff_registry_store(h, &r, err);
}

enum mr_rc
handoff_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(buf_done) struct buf name = BUF_INIT;
	char fresh[HANDOFF_UUID_LEN + 1];

	foreign_from_address(agent->name, &name);
	TRY(mr_got(buf_ok(&name), err));
	handoff_uuid(fresh);
	const char *id = agent->session && agent->session[0] ? agent->session : fresh;
	struct registering who = { buf_z(&name), id, agent->role ? agent->role : "", agent->process.pid,
		.strict = true };
	/* The name first: of many who want it one wins, and only that one makes folders. Killed in between, the first
	 * delivery makes them. */
	TRY(handoff_register(h, &who, err));
	return handoff_make_mailbox(h, id, err);
}

/* ---- Removing ---- */

/* Counts the mail in a folder, and removes all that is in it unless `keep`. A missing folder has nothing. */
static enum mr_rc
empty_folder(struct handoff *h, const char *id, const char *folder, bool keep, size_t *ret_mail, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = handoff_dir(h, id, folder, false, &fd, err);

	if (rc == MR_OK)
		rc = dir_names(fd, &names, err);
	for (size_t i = 0; i < names.n; i++) {
		*ret_mail += handoff_name_is_mail(names.v[i], MR_INBOX);
		if (!keep)
			(void)sys_unlink(fd, names.v[i]); /* what stays is told when the folder cannot be removed */
	}
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* Read mail goes, too: that is what removing a mailbox means here. Without force the inbox goes only while it is
 * empty, for with its id mail can still be sent to it. */
static enum mr_rc
remove_tree(struct handoff *h, const char *id, bool force, size_t *ret_unread, struct mr_error *err)
{
	static const char *const folders[] = { "inbox", "tmp", "archive" };
	mr_auto(sys_close_fd) int box_fd = -1;
	enum mr_rc rc = handoff_root(h, false, err);

	if (rc == MR_OK)
		rc = dir_open(h->root_fd, id, &box_fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	for (size_t i = 0; i < 3; i++) {
		size_t mail = 0;

		TRY(empty_folder(h, id, folders[i], i == 0 && !force, &mail, err));
		if (i == 0)
			*ret_unread = mail;
		if (sys_rmdir(box_fd, folders[i]) < 0 && errno != ENOENT)
			return mr_fail_errno(err, "cannot remove '%s/%s'", id, folders[i]);
	}
	if (sys_rmdir(h->root_fd, id) < 0 || sys_fsync(h->root_fd) < 0)
		return mr_fail_errno(err, "cannot remove '%s'", id);
	return MR_OK;
}

/* The entry goes under the lock, the folders afterwards. */
enum mr_rc
handoff_remove_box(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(sys_close_fd) int lock = -1;
	const struct registry_entry *entry = NULL;
	char id[HANDOFF_ID_MAX + 1];
	size_t unread = 0;

	if (handoff_root(h, false, err) != MR_OK)
		return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room", name);
	TRY(handoff_registry_lock(h, &lock, &r, err));
	TRY(handoff_mailbox_of(h, &r, name, id, &entry, err));
	if (entry)
		registry_remove(&r, entry);
	bool shared = registry_with_id(&r, str_of(id)) != NULL; /* the mailbox has another name */

	if (!shared)
		TRY(empty_folder(h, id, "inbox", true, &unread, err));
	if (unread > 0 && !force)
		return mr_fail(err, MR_REFUSED,
		    "'%s' has %zu unread %s\nread it first; --force deletes it with the mailbox", name, unread,
		    unread == 1 ? "message" : "messages");
	TRY(handoff_registry_store(h, &r, err));
	sys_close_fd(&lock);
	lock = -1;
	*ret_dead = 0;
	if (!shared && remove_tree(h, id, force, ret_dead, err) != MR_OK)
		return mr_wrap(err, "the name '%s' is free now, but its mailbox is still there", name);
	return MR_OK;
}
