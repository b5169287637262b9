/* SPDX-License-Identifier: MIT */
/*
 * target.c - what is no agent and still gets mail, or stands for those who do: which names groups, queues and channels
 * may have, where their settings are read, and whether mail may go to them now. Then the groups themselves: named lists
 * of addresses. A group is one small record of header lines; every change goes through record_edit_begin, which
 * reads, edits and writes under a lock: of any number of joins at once none is lost.
 */
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "message/address.h"
#include "office/link/link.h"

#define GROUP "group"
#define GROUP_BYTES_MAX ((size_t)1 << 20)
#define UNKNOWN_MAX 20 /* a longer list of them is a wrong file */
#define MEMBER_LEN (MR_ADDRESS_MAX + 16)

/* ---- Names ---- */

static bool
is_valid_name(const char *kind, const char *name)
{
	const char *slash = strcmp(kind, "queue") == 0 ? strchr(name, '/') : NULL;

	if (slash && address_check((struct mr_str){ name, (size_t)(slash - name) }, IGNORED) != MR_OK)
		return false;
	struct mr_str plain = str_of(slash ? slash + 1 : name);

	for (size_t i = 0; i < plain.len; i++) {
		char c = plain.ptr[i];
		bool alnum = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		if (!alnum && (i == 0 || (c != '_' && c != '-')))
			return false;
	}
	return plain.len > 0 && plain.len <= MR_NAME_MAX;
}

enum mr_rc
target_name_check(const char *kind, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	if (is_valid_name(kind, name))
		return MR_OK;
	text_clean_line(&shown, utf8_cut(str_of(name), 60));
	return mr_fail(err, MR_REFUSED,
	    "'%s' cannot name a %s\n1 to %d of a-z 0-9 _ -, beginning with a letter or digit%s", buf_z(&shown), kind,
	    MR_NAME_MAX, strcmp(kind, "queue") == 0 ? "; of a rig: RIG/NAME" : "");
}

enum mr_rc
target_name_free(struct mr_room *room, const char *kind, const char *name, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names patterns = { 0 };
	struct mr_error unknown = { 0 };

	if (!pattern_names(room, &patterns))
		return mr_nomem(err);
	if (names_has(&patterns, name) || address_is_operator(str_of(name)))
		return mr_fail(err, MR_REFUSED,
		    "cannot make a %s '%s': '@%s' has a meaning already\n"
		    "pick another name; `mailroom resolve @%s` says who is meant",
		    kind, name, name, name);
	if (!ROOM_HAS(room, find_agent)) /* a kind without registration */
		return MR_OK;
	enum mr_rc rc = agent_exists(room, name, &unknown);

	if (rc == MR_OK)
		return mr_fail(err, MR_REFUSED,
		    "cannot make a %s '%s': an agent is called so\n"
		    "with both, mail to '%s' would be ambiguous; pick another name, such as %ss",
		    kind, name, name, name);
	if (rc == MR_NOTFOUND)
		return MR_OK;
	*err = unknown;
	return rc;
}

/* ---- Settings ---- */

enum mr_rc
target_supported(const struct mr_room *room, const char *kind, struct mr_error *err)
{
	unsigned abilities = room->driver->abilities;

	if (strcmp(kind, "queue") == 0 && !(abilities & ROOM_QUEUES))
		return office_lacks(room, "queues", err);
	if (strcmp(kind, "channel") == 0 && !(abilities & ROOM_CHANNELS))
		return office_lacks(room, "channels", err);
	if (!ROOM_HAS(room, record_get) || !ROOM_HAS(room, record_each) || !ROOM_HAS(room, record_put))
		return office_lacks(room, "groups", err);
	return MR_OK;
}

enum mr_rc
target_settings(struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err)
{
	enum mr_rc rc;

	TRY(target_supported(room, kind, err));
	TRY(target_name_check(kind, name, err));
	rc = office_record(room, kind, "", name, ret, err);
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no %s '%s' in room '%s'", kind, name, room->name);
	/* What a crash or an editor emptied must not pass for one with the default settings. */
	if (rc == MR_OK && ret->n == 0)
		rc = mr_fail(err, MR_CORRUPT, "its settings have no line");
	return rc == MR_OK ? MR_OK : mr_wrap(err, "%s '%s'", kind, name);
}

bool
target_exists(struct mr_room *room, const char *kind, const char *name)
{
	mr_auto(record_done) struct record settings = { 0 };

	if (!is_valid_name(kind, name))
		return false;
	enum mr_rc rc = target_settings(room, kind, name, &settings, IGNORED);

	return rc != MR_NOTFOUND && rc != MR_UNSUPPORTED;
}

enum mr_rc
target_check(struct mr_room *room, const char *target, struct mr_error *err)
{
	mr_auto(record_done) struct record settings = { 0 };
	const char *kind = str_starts(str_of(target), "queue:")     ? "queue"
			   : str_starts(str_of(target), "channel:") ? "channel"
								    : NULL;

	if (!kind)
		return MR_OK;
	const char *name = strchr(target, ':') + 1, *status;

	TRY(target_settings(room, kind, name, &settings, err));
	status = record_get(&settings, "Status");
	if (!status || !ascii_caseeq(status, "closed"))
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "%s '%s' is closed: it takes no mail\n`mailroom %s show %s` tells more", kind,
	    name, kind, name);
}

/* ---- Groups: reading ---- */

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
	enum mr_rc rc = target_settings(room, GROUP, name, &lines, err);
	const char *by = record_get(&lines, "Created-By");

	if (rc == MR_NOTFOUND)
		return mr_hint(err, "`mailroom group list` lists them, `mailroom group create %s` makes it", name);
	TRY(rc);
	for (size_t i = 0; i < lines.n; i++)
		if (ascii_caseeq(lines.lines[i].name, "Member") && *lines.lines[i].value &&
		    !names_add(&group.members, str_of(lines.lines[i].value)))
			return mr_nomem(err);
	(void)snprintf(group.name, sizeof(group.name), "%s", name);
	group.created_ms = record_time(&lines, "Created");
	group.created_by = by ? by : "";
	group.own = lines.own;
	lines.own = NULL; /* the strings are the group's now */
	*ret = group;
	group = (struct mr_group){ 0 };
	return MR_OK;
}

enum mr_rc
mr_group_each(struct mr_room *room, mr_group_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_error first = { 0 }; /* trouble with one group does not hide the others */

	TRY(target_supported(room, GROUP, err));
	TRY(office_records(room, GROUP, "", &names, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(mr_group_done) struct mr_group group = { 0 };
		struct mr_error one = { 0 };
		enum mr_rc rc = mr_group_get(room, names.v[i], &group, &one);

		if (rc == MR_OK && !fn(ctx, &group))
			break;
		if (rc != MR_OK && rc != MR_NOTFOUND && first.code == MR_OK) /* deleted meanwhile is no trouble */
			first = one;
	}
	if (first.code != MR_OK)
		*err = first;
	return first.code;
}

/* ---- Groups: members ---- */

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

/* A member need not exist yet, but it must be an address. ret is how it is kept: "list:x" as "group:x", "announce:x" as
 * "channel:x", so that a member is there once. */
static enum mr_rc
check_member(struct mr_room *room, const char *given, char ret[MEMBER_LEN], struct mr_error *err)
{
	static const char *const kinds[][2] = { { "group:", "group" }, { "list:", "group" }, { "queue:", "queue" },
		{ "channel:", "channel" }, { "announce:", "channel" } };
	struct mr_str member, at;

	(void)snprintf(ret, MEMBER_LEN, "%s", given);
	if (*given == '@')
		return address_check(str_of(given + 1), err);
	address_split(str_of(given), &member, &at);
	if (at.len > 0 && !str_eq(at, str_of(room->name))) { /* who that is, is asked over there when mail is sent */
		if (!link_exists(room, at.ptr) || strlen(given) > MR_ADDRESS_MAX)
			return mr_fail(err, MR_REFUSED, "no link to the room of '%.160s'", given);
		return check_agent_member(member, err);
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t skip = strlen(kinds[i][0]), len = member.len - skip;

		if (!str_starts(member, kinds[i][0]))
			continue;
		(void)snprintf(
		    ret, MEMBER_LEN, "%s:%.*s", kinds[i][1], (int)(len < MR_ADDRESS_MAX ? len : 0), member.ptr + skip);
		return target_name_check(kinds[i][1], strchr(ret, ':') + 1, err);
	}
	(void)snprintf(ret, MEMBER_LEN, "%.*s", (int)(member.len < MEMBER_LEN ? member.len : 0), member.ptr);
	return check_agent_member(member, err);
}

/* ---- Groups: changing ---- */

static enum mr_rc
refuse_unknown(struct mr_room *room, const char *name, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no group '%s' in room '%s'\n`mailroom group create %s` makes it", name,
	    room->name, name);
}

struct group_edit {
	struct mr_room *room;
	const char *name;
	const char *by;          /* create */
	struct mr_names members; /* as they are kept; borrowed */
	bool remove;
	bool *changed; /* one for each of members; NULL: create */
};

/* A member, however many times it is given, is appended once. */
static enum mr_rc
append_members(struct group_edit *e, struct nameset *have, struct mr_names *old, struct buf *text, struct mr_error *err)
{
	if (text->len > 0 && text->ptr[text->len - 1] != '\n')
		buf_addc(text, '\n');
	for (size_t i = 0; i < e->members.n; i++) {
		bool is_new = !nameset_has(have, e->members.v[i]);

		if (e->changed)
			e->changed[i] = is_new;
		if (!is_new)
			continue;
		buf_addf(text, "Member: %s\n", e->members.v[i]);
		if (!buf_ok(text) || !nameset_add_once(have, old, e->members.v[i]))
			return mr_nomem(err);
		if (text->len > GROUP_BYTES_MAX)
			return mr_fail(err, MR_REFUSED,
			    "the group has no room for '%s': its record is at most 1 MiB\n"
			    "make a second group and add it as group:NAME",
			    e->members.v[i]);
	}
	return MR_OK;
}

/* All in one pass over the lines, so that thousands of members cost thousands of lookups. Leaves every byte of other
 * lines: people write into these files too, so anything may stand there. */
static enum mr_rc
change_members(struct group_edit *e, struct buf *text, struct mr_error *err)
{
	mr_auto(nameset_done) struct nameset have = { 0 }, gone = { 0 };
	mr_auto(mr_names_done) struct mr_names old = { 0 }, cut = { 0 };
	struct mr_str rest = buf_str(text), line;
	char *to = text->ptr;

	for (size_t i = 0; e->remove && i < e->members.n; i++) {
		e->changed[i] = !nameset_has(&gone, e->members.v[i]); /* given twice: removed once */
		if (!nameset_add_once(&gone, &cut, e->members.v[i]))
			return mr_nomem(err);
	}
	for (const char *from = rest.ptr; str_cut(&rest, '\n', &line); from = rest.ptr) {
		size_t len = (size_t)(rest.ptr - from); /* with its line break */
		struct header_cursor c = header_begin((struct mr_str){ from, len });
		mr_auto(buf_done) struct buf member = BUF_INIT;
		struct header_line header;

		if (header_next(&c, &header) && str_caseeq(header.name, STR("Member"))) {
			buf_add(&member, header.raw);
			if (!buf_ok(&member) || !nameset_add_once(&have, &old, buf_z(&member)))
				return mr_nomem(err);
			if (nameset_has(&gone, buf_z(&member)))
				continue;
		}
		memmove(to, from, len);
		to += len;
	}
	if (!e->remove)
		return append_members(e, &have, &old, text, err);
	text->len = text->ptr ? (size_t)(to - text->ptr) : 0;
	for (size_t i = 0; i < e->members.n; i++)
		e->changed[i] = e->changed[i] && nameset_has(&have, e->members.v[i]);
	return MR_OK;
}

/* Every member is checked before the record is touched. With e->by the group is created. */
static enum mr_rc
change(struct group_edit *e, const char *const *members, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit edit = { 0 };
	mr_auto(mr_names_done) struct mr_names kept = { 0 };
	char member[MEMBER_LEN], now[RFC3339_LEN + 1];

	TRY(target_supported(e->room, GROUP, err));
	TRY(target_name_check(GROUP, e->name, err));
	for (size_t i = 0; members && members[i]; i++) {
		TRY(check_member(e->room, members[i], member, err));
		TRY(mr_got(names_add(&kept, str_of(member)), err));
	}
	e->members = kept;
	TRY(record_edit_begin(&edit, e->room, GROUP, "", e->name, err));
	if (!edit.exists && !e->by)
		return refuse_unknown(e->room, e->name, err);
	if (edit.exists && e->by)
		return mr_fail(err, MR_EXISTS,
		    "the group '%s' exists already\n`mailroom group add %s MEMBER` adds to it", e->name, e->name);
	time_rfc3339(clock_now_ms(), now);
	if (e->by)
		buf_addf(&edit.text, "Name: %s\nCreated: %s\nCreated-By: %s\n", e->name, now, e->by);
	TRY(change_members(e, &edit.text, err));
	return record_edit_save(&edit, err);
}

enum mr_rc
mr_group_create(struct mr_room *room, const struct mr_self *self, const char *name, const char *const *members,
    struct mr_error *err)
{
	struct group_edit e = { .room = room, .name = name, .by = self->agent };

	TRY(office_not_fenced(room, self, err));
	TRY(target_supported(room, GROUP, err));
	TRY(target_name_check(GROUP, name, err));
	TRY(target_name_free(room, GROUP, name, err));
	return change(&e, members, err);
}

enum mr_rc
mr_group_add(
    struct mr_room *room, const char *name, const char *const *members, bool *ret_changed, struct mr_error *err)
{
	return change(&(struct group_edit){ room, name, .changed = ret_changed }, members, err);
}

enum mr_rc
mr_group_remove(
    struct mr_room *room, const char *name, const char *const *members, bool *ret_changed, struct mr_error *err)
{
	return change(&(struct group_edit){ room, name, .remove = true, .changed = ret_changed }, members, err);
}

enum mr_rc
mr_group_check(struct mr_room *room, const char *const *members, struct mr_names *ret_trouble, struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients out = { 0 };
	mr_auto(resolver_done) struct resolver r;

	resolver_init(&r, room, "", false, &out);
	resolver_expect_many(&r, SIZE_MAX);
	r.depth = 1; /* near names are looked for by a sender who writes the name */
	for (; *members; members++) {
		struct mr_error why = { 0 };

		if (resolver_take(&r, *members, &why) == MR_OK)
			continue;
		mr_auto(buf_done) struct buf text = BUF_INIT;
		bool enough = ret_trouble->n == UNKNOWN_MAX;

		format_addf(&text,
		    enough ? "others of them may reach nobody, too" : "member '%.160s' reaches nobody yet: %s",
		    *members, why.message);
		if (!buf_ok(&text) || !names_add(ret_trouble, buf_str(&text)))
			return mr_nomem(err);
		if (enough)
			break;
	}
	return MR_OK;
}

enum mr_rc
mr_group_delete(struct mr_room *room, const char *name, struct mr_error *err)
{
	TRY(target_supported(room, GROUP, err));
	TRY(target_name_check(GROUP, name, err));
	enum mr_rc rc = room->driver->record_drop(room, GROUP, "", name, err);

	return rc == MR_NOTFOUND ? refuse_unknown(room, name, err) : rc;
}
