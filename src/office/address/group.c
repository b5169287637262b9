/* SPDX-License-Identifier: MIT */
/*
 * group.c - named lists of addresses. A group is one small record of header lines; every change goes through
 * driver->record_change, which reads, edits and writes under a lock: of any number of joins at once none is
 * lost.
 */
#include "base/clock.h"
#include "base/text.h"
#include "message/address.h"
#include "office/link/link.h"
#include "office/address/targets.h"

#define GROUP_BYTES_MAX ((size_t)1 << 20)
#define KIND "group"

/* ---- Reading ---- */

void
mr_group_done(struct mr_group *group)
{
	if (!group)
		return;
	mr_names_done(&group->members);
	arena_free(group->own);
	*group = (struct mr_group){ 0 };
}

enum mr_rc
mr_group_get(struct mr_room *room, const char *name, struct mr_group *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	enum mr_rc rc = target_settings(room, KIND, name, &lines, err);

	if (rc == MR_NOTFOUND)
		return mr_hint(err, "`mailroom group list` lists them, `mailroom group create %s` makes it", name);
	if (rc != MR_OK)
		return rc;
	for (size_t i = 0; i < lines.n; i++)
		if (ascii_caseeq(lines.lines[i].name, "Member") && *lines.lines[i].value &&
		    !names_add(&group.members, str_of(lines.lines[i].value)))
			return mr_nomem(err);
	const char *by = record_get(&lines, "Created-By"), *at = record_get(&lines, "Created");
	struct arena *own = NULL;

	group.created_by = arena_dup(&own, str_of(by ? by : ""));
	group.own = own;
	if (!group.created_by)
		return mr_nomem(err);
	if (!at || !time_parse_rfc3339(str_of(at), &group.created_ms))
		group.created_ms = 0;
	(void)snprintf(group.name, sizeof(group.name), "%s", name);
	*ret = group;
	group = (struct mr_group){ 0 };
	return MR_OK;
}

struct group_walk {
	struct mr_room *room;
	mr_group_fn *fn;
	void *ctx;
	struct mr_error first; /* trouble with one group does not hide the others */
};

static bool
show_group(void *ctx, const char *name)
{
	struct group_walk *walk = ctx;
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_group_get(walk->room, name, &group, &err);

	if (rc == MR_OK)
		return walk->fn(walk->ctx, &group);
	if (rc != MR_NOTFOUND && walk->first.code == MR_OK) /* deleted meanwhile is no trouble */
		walk->first = err;
	return true;
}

enum mr_rc
mr_group_each(struct mr_room *room, mr_group_fn *fn, void *ctx, struct mr_error *err)
{
	struct group_walk walk = { .room = room, .fn = fn, .ctx = ctx };
	enum mr_rc rc = target_supported(room, KIND, err);

	if (rc == MR_OK)
		rc = room->driver->record_each(room, KIND, "", show_group, &walk, err);
	if (rc == MR_OK && walk.first.code != MR_OK) {
		*err = walk.first;
		rc = err->code;
	}
	return rc;
}

/* ---- Members ---- */

#define MEMBER_LEN (MR_ADDRESS_MAX + 16)

/* "list:x" is kept as "group:x", "announce:x" as "channel:x": one spelling, so that a member is there once.
 */
static const char *
kind_of_prefix(struct mr_str member, struct mr_str *ret_name)
{
	static const char *const kinds[][2] = { { "group:", "group" }, { "list:", "group" }, { "queue:", "queue" },
		{ "channel:", "channel" }, { "announce:", "channel" } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t skip = strlen(kinds[i][0]);

		if (str_starts(member, kinds[i][0])) {
			*ret_name = (struct mr_str){ member.ptr + skip, member.len - skip };
			return kinds[i][1];
		}
	}
	return NULL;
}

static enum mr_rc
check_agent_member(struct mr_str member, struct mr_error *err)
{
	size_t skip = str_starts(member, "agent:") ? sizeof("agent:") - 1 : 0;
	struct mr_str address = { member.ptr + skip, member.len - skip };
	char normal[MR_ADDRESS_MAX + 1];

	if (memchr(address.ptr, '*', address.len))
		return pattern_check(address, err);
	return address_normal(address, normal, err);
}

/* A member need not exist yet, but it must be an address. ret is how it is kept. */
static enum mr_rc
check_member(struct mr_room *room, const char *given, char ret[MEMBER_LEN], struct mr_error *err)
{
	struct mr_str member = str_of(given), at = { 0 }, name;
	const char *kind;

	if (*given == '@') {
		(void)snprintf(ret, MEMBER_LEN, "%s", given);
		return address_check(str_of(given + 1), err);
	}
	address_split(str_of(given), &member, &at);
	if (at.len > 0 && !str_eq(at, str_of(room->name))) { /* who that is, is asked over there when mail is sent */
		if (!link_exists(room, at.ptr) || strlen(given) > MR_ADDRESS_MAX)
			return mr_fail(err, MR_REFUSED, "no link to the room of '%.160s'", given);
		(void)snprintf(ret, MEMBER_LEN, "%s", given);
		return check_agent_member(member, err);
	}
	kind = kind_of_prefix(member, &name);
	if (!kind) {
		(void)snprintf(ret, MEMBER_LEN, "%.*s", (int)(member.len < MEMBER_LEN ? member.len : 0), member.ptr);
		return check_agent_member(member, err);
	}
	(void)snprintf(ret, MEMBER_LEN, "%s:%.*s", kind, (int)(name.len < MR_ADDRESS_MAX ? name.len : 0), name.ptr);
	return target_name_check(kind, strchr(ret, ':') + 1, err);
}

/* The next line of the record, line break and all; people write into these files too, so anything may stand
 * there. */
static struct mr_str
take_line(struct mr_str *rest)
{
	const char *end = memchr(rest->ptr, '\n', rest->len);
	size_t len = end ? (size_t)(end - rest->ptr) + 1 : rest->len;
	struct mr_str line = { rest->ptr, len };

	rest->ptr += len;
	rest->len -= len;
	return line;
}

static bool
is_member_line(struct mr_str text, const char *member)
{
	struct header_cursor c = header_begin(text);
	struct header_line line;

	return header_next(&c, &line) && str_caseeq(line.name, STR("Member")) && str_eq(line.raw, str_of(member));
}

static bool
has_member(const struct buf *text, const char *member)
{
	for (struct mr_str rest = buf_str(text); rest.len > 0;)
		if (is_member_line(take_line(&rest), member))
			return true;
	return false;
}

static enum mr_rc
append_member(struct buf *text, const char *member, struct mr_error *err)
{
	if (text->len > 0 && text->ptr[text->len - 1] != '\n')
		buf_addc(text, '\n');
	buf_addf(text, "Member: %s\n", member);
	if (!buf_ok(text))
		return mr_nomem(err);
	if (text->len <= GROUP_BYTES_MAX)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "the group has no room for '%s': its record is at most 1 MiB\nmake a second group and add it as group:NAME",
	    member);
}

/* ---- Changing ---- */

struct group_edit {
	struct mr_room *room;
	const char *name;
	const char *by;             /* create */
	const char *const *members; /* create; NULL-terminated or NULL */
	char member[MEMBER_LEN];    /* add, remove */
	bool changed;
};

static enum mr_rc
edit_create(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	const struct group_edit *e = ctx;
	char now[RFC3339_LEN + 1], member[MEMBER_LEN];
	enum mr_rc rc = MR_OK;

	if (exists)
		return mr_fail(err, MR_EXISTS,
		    "the group '%s' exists already\n`mailroom group add %s MEMBER` adds to it", e->name, e->name);
	time_rfc3339(clock_now_ms(), now);
	buf_clear(text);
	buf_addf(text, "Name: %s\nCreated: %s\nCreated-By: %s\n", e->name, now, e->by);
	for (size_t i = 0; rc == MR_OK && e->members && e->members[i]; i++) {
		rc = check_member(e->room, e->members[i], member, err);
		if (rc == MR_OK && !has_member(text, member))
			rc = append_member(text, member, err);
	}
	return rc == MR_OK && !buf_ok(text) ? mr_nomem(err) : rc;
}

static enum mr_rc
no_group(const struct group_edit *e, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no group '%s' in room '%s'\n`mailroom group create %s` makes it", e->name,
	    e->room->name, e->name);
}

static enum mr_rc
edit_add(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	struct group_edit *e = ctx;

	if (!exists)
		return no_group(e, err);
	e->changed = !has_member(text, e->member);
	return e->changed ? append_member(text, e->member, err) : MR_OK;
}

/* Takes out the lines of that member and leaves every other byte. */
static enum mr_rc
edit_remove(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	struct group_edit *e = ctx;
	mr_auto(buf_done) struct buf kept = BUF_INIT;

	if (!exists)
		return no_group(e, err);
	for (struct mr_str rest = buf_str(text); rest.len > 0;) {
		struct mr_str line = take_line(&rest);

		if (is_member_line(line, e->member))
			e->changed = true;
		else
			buf_add(&kept, line);
	}
	buf_clear(text);
	buf_add(text, buf_str(&kept));
	return buf_ok(&kept) && buf_ok(text) ? MR_OK : mr_nomem(err);
}

typedef enum mr_rc edit_fn(void *ctx, bool exists, struct buf *text, struct mr_error *err);

static enum mr_rc
change(struct mr_room *room, struct group_edit *e, edit_fn *edit, struct mr_error *err)
{
	enum mr_rc rc = target_supported(room, KIND, err);

	if (rc == MR_OK)
		rc = target_name_check(KIND, e->name, err);
	return rc == MR_OK ? room->driver->record_change(room, KIND, "", e->name, edit, e, err) : rc;
}

enum mr_rc
mr_group_create(struct mr_room *room, const struct mr_self *self, const char *name, const char *const *members,
    struct mr_error *err)
{
	struct group_edit e = { .room = room, .name = name, .by = self->agent, .members = members };
	enum mr_rc rc = office_not_fenced(room, self, err);

	if (rc == MR_OK)
		rc = target_supported(room, KIND, err);
	if (rc == MR_OK)
		rc = target_name_check(KIND, name, err);
	if (rc == MR_OK)
		rc = target_name_free(room, KIND, name, err);
	return rc == MR_OK ? change(room, &e, edit_create, err) : rc;
}

static enum mr_rc
change_member(
    struct mr_room *room, const char *name, const char *member, edit_fn *edit, bool *ret_changed, struct mr_error *err)
{
	struct group_edit e = { .room = room, .name = name };
	enum mr_rc rc = check_member(room, member, e.member, err);

	if (rc == MR_OK)
		rc = change(room, &e, edit, err);
	if (rc == MR_OK)
		*ret_changed = e.changed;
	return rc;
}

enum mr_rc
mr_group_add(struct mr_room *room, const char *name, const char *member, bool *ret_changed, struct mr_error *err)
{
	return change_member(room, name, member, edit_add, ret_changed, err);
}

enum mr_rc
mr_group_remove(struct mr_room *room, const char *name, const char *member, bool *ret_changed, struct mr_error *err)
{
	return change_member(room, name, member, edit_remove, ret_changed, err);
}

enum mr_rc
mr_group_delete(struct mr_room *room, const char *name, struct mr_error *err)
{
	struct group_edit e = { .room = room, .name = name };
	enum mr_rc rc = target_supported(room, KIND, err);

	if (rc == MR_OK)
		rc = target_name_check(KIND, name, err);
	if (rc == MR_OK)
		rc = room->driver->record_drop(room, KIND, "", name, err);
	return rc == MR_NOTFOUND ? no_group(&e, err) : rc;
}
