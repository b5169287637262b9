/* SPDX-License-Identifier: MIT */
/*
 * target.c - groups, queues, channels and links: their allowed names, and their settings, a few header lines under a
 * name. Then the groups themselves: named lists of addresses. Every change is made under the record's lock, on the
 * current lines, so that no concurrent change is lost.
 */
#include "base/clock.h"
#include "base/format.h"
#include "base/text.h"
#include "message/address.h"
#include "office/address/address.h"

#define GROUP "group"
#define RECORD_MAX ((size_t)1 << 20)
#define UNKNOWN_MAX 20 /* a longer list means a wrong file */
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

	TRY(mr_got(pattern_names(room, &patterns), err));
	if (names_has(&patterns, name) || address_is_operator(str_of(name)))
		return mr_fail(err, MR_REFUSED,
		    "cannot make a %s '%s': '@%s' already has a meaning\n"
		    "pick another name; `mailroom resolve @%s` shows the agents that it means",
		    kind, name, name, name);
	if (!ROOM_HAS(room, find_agent)) /* a kind without registration */
		return MR_OK;
	enum mr_rc rc = agent_exists(room, name, err);

	if (rc == MR_OK)
		return mr_fail(err, MR_REFUSED,
		    "cannot make a %s '%s': an agent has that name\n"
		    "with both, mail to '%s' would be ambiguous; pick another name, such as %ss",
		    kind, name, name, name);
	return mr_unless(rc, MR_NOTFOUND, err);
}

/* ---- Settings ---- */

enum mr_rc
target_supported(const struct mr_room *room, const char *kind, struct mr_error *err)
{
	bool queue = strcmp(kind, "queue") == 0, channel = strcmp(kind, "channel") == 0;
	unsigned needed = queue ? ROOM_QUEUES : channel ? ROOM_CHANNELS : 0;

	if ((room->driver->abilities & needed) == needed && ROOM_HAS(room, record_put))
		return MR_OK;
	return room_lacks(room, queue ? "work queues" : channel ? "channels" : "groups", err);
}

enum mr_rc
target_name(
    const struct mr_room *room, const char *kind, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	size_t prefix = strlen(kind);
	const char *name = str_starts(str_of(given), kind) && given[prefix] == ':' ? given + prefix + 1 : given;

	TRY(target_supported(room, kind, err));
	TRY(target_name_check(kind, name, err));
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", name);
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
	/* Mailroom never writes an empty record; a power cut on unsafe storage or an editor may leave one. Defaults
	 * would hide that a limit, or a closed queue, is lost. */
	if (rc == MR_OK && ret->n == 0)
		rc = mr_fail(err, MR_CORRUPT,
		    "the file is empty\nwrite its lines again, or remove that file and create it anew: its mail stays");
	return rc == MR_OK ? MR_OK : mr_wrap(err, "settings of %s '%s'", kind, name);
}

/* MR_NOTFOUND, with similar names if there are some. */
static enum mr_rc
unknown(struct mr_room *room, const char *kind, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	struct near near = { .wanted = name, .prefix = "" };

	(void)room->driver->record_each(room, kind, "", near_offer, &near, IGNORED);
	near_list(&near, &list);
	(void)mr_fail(err, MR_NOTFOUND, "no %s '%s' in room '%s'", kind, name, room->name);
	if (near.n > 0)
		return mr_hint(err, "did you mean %s?", buf_z(&list));
	return mr_hint(err, "`mailroom %s list` shows them, `mailroom %s create %s` makes it", kind, kind, name);
}

enum mr_rc
settings_load(struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err)
{
	enum mr_rc rc = target_settings(room, kind, name, ret, err);

	return rc == MR_NOTFOUND ? unknown(room, kind, name, err) : rc;
}

enum mr_rc
settings_get(struct mr_room *room, const char *kind, const char *name, settings_read_fn *read, void *ret,
    void **ret_own, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	char local[MR_ADDRESS_MAX + 1];

	TRY(target_name(room, kind, name, local, err));
	TRY(settings_load(room, kind, local, &lines, err));
	TRY(mr_got(read(ret, local, &lines), err));
	*ret_own = lines.own;
	lines.own = NULL;
	return MR_OK;
}

enum mr_rc
settings_names(struct mr_room *room, const char *kind, struct mr_names *ret, struct mr_error *err)
{
	TRY(target_supported(room, kind, err));
	TRY(office_records(room, kind, "", ret, err));
	names_sort(ret);
	return MR_OK;
}

enum mr_rc
settings_list(
    struct mr_room *room, const char *kind, size_t item, settings_read_fn *read, void *ret_list, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(roll_done) struct roll r = { 0 };
	struct mr_error first = { 0 };

	TRY(settings_names(room, kind, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(record_done) struct record lines = { 0 };
		struct mr_error one = { 0 };
		enum mr_rc rc = target_settings(room, kind, names.v[i], &lines, &one);
		void *at = rc == MR_OK ? roll_add(&r, item) : NULL;

		TRY(mr_got(rc != MR_OK || (at && read(at, names.v[i], &lines)), err));
		roll_join(&r, lines.own);
		lines.own = NULL;
		if (rc != MR_OK && rc != MR_NOTFOUND && first.code == MR_OK) /* deleted meanwhile is no trouble */
			first = one;
	}
	(void)roll_give(&r, ret_list);
	if (first.code != MR_OK)
		*err = first;
	return first.code;
}

bool
settings_values(struct record *lines, const char *field, struct mr_names *ret)
{
	*ret = (struct mr_names){ .v = arena_alloc(&lines->own, (lines->n + 1) * sizeof(*ret->v)) };
	for (size_t i = 0; ret->v && i < lines->n; i++) {
		if (!ascii_caseeq(lines->lines[i].name, field) || !*lines->lines[i].value)
			continue;
		ret->v[ret->n] = arena_dup(&lines->own, str_of(lines->lines[i].value));
		if (!ret->v[ret->n++])
			return false;
	}
	return ret->v;
}

const char *
settings_text(const struct record *lines, const char *field)
{
	const char *value = record_get(lines, field);

	return value ? value : "";
}

bool
target_exists(struct mr_room *room, const char *kind, const char *name)
{
	mr_auto(record_done) struct record settings = { 0 };
	enum mr_rc rc = target_settings(room, kind, name, &settings, IGNORED);

	return rc != MR_NOTFOUND && rc != MR_UNSUPPORTED && rc != MR_REFUSED; /* refused: it cannot be a name */
}

enum mr_rc
target_check(struct mr_room *room, const char *target, struct mr_error *err)
{
	mr_auto(record_done) struct record settings = { 0 };
	struct mr_str rest = str_of(target);
	const char *kind = address_kind(&rest), *name = rest.ptr;

	if (!kind)
		return MR_OK;
	TRY(target_settings(room, kind, name, &settings, err));
	if (!ascii_caseeq(settings_text(&settings, "Status"), "closed"))
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "%s '%s' is closed: it takes no mail\n`mailroom %s show %s` shows more", kind,
	    name, kind, name);
}

/* ---- Changing settings ---- */

/* One pass over the lines, so that thousands of values cost thousands of lookups. Other lines stay byte for byte,
 * because people edit these files, too. */
static enum mr_rc
edit_lines(
    struct buf *text, const char *kind, const struct settings_edit *edit, bool *ret_changed, struct mr_error *err)
{
	mr_auto(nameset_done) struct nameset have = { 0 }, given = { 0 };
	mr_auto(mr_names_done) struct mr_names old = { 0 }, all = { 0 };
	struct mr_str rest = buf_str(text), line;
	bool sets = edit->how == SETTINGS_SET, removes = edit->how == SETTINGS_REMOVE;
	char *to = text->ptr;

	for (size_t i = 0; i < edit->values.n; i++) {
		ret_changed[i] = !nameset_has(&given, edit->values.v[i]); /* given twice: changed once */
		TRY(mr_got(nameset_add_once(&given, &all, edit->values.v[i]), err));
	}
	for (const char *from = rest.ptr; str_cut(&rest, '\n', &line); from = rest.ptr) {
		size_t len = (size_t)(rest.ptr - from); /* with its line break */
		struct header_cursor c = header_begin((struct mr_str){ from, len });
		mr_auto(buf_done) struct buf value = BUF_INIT;
		struct header_line header;

		if (header_next(&c, &header) && str_caseeq(header.name, str_of(edit->field))) {
			buf_add(&value, header.raw);
			TRY(mr_got(buf_ok(&value) && nameset_add_once(&have, &old, buf_z(&value)), err));
			if ((sets || removes) && nameset_has(&given, buf_z(&value)) == removes)
				continue;
		}
		memmove(to, from, len);
		to += len;
	}
	text->len = text->ptr ? (size_t)(to - text->ptr) : 0;
	if (text->len > 0 && text->ptr[text->len - 1] != '\n')
		buf_addc(text, '\n');
	for (size_t i = 0; i < edit->values.n; i++) {
		ret_changed[i] &= nameset_has(&have, edit->values.v[i]) == removes;
		if (removes || !ret_changed[i])
			continue;
		TRY(header_add(text, edit->field, str_of(edit->values.v[i]), err));
		if (text->len > RECORD_MAX)
			return mr_fail(err, MR_REFUSED, "the %s has no space for '%s': its record is at most 1 MiB\n%s",
			    kind, edit->values.v[i],
			    strcmp(kind, GROUP) == 0 ? "make a second group and add it as group:NAME"
						     : "make a second one");
	}
	return mr_got(buf_ok(text), err);
}

enum mr_rc
settings_create(struct mr_room *room, const char *kind, const char *name, const char *by, struct buf *lines,
    const struct settings_edit *more, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(free_ptr) bool *changed = more ? calloc(more->values.n + 1, sizeof(*changed)) : NULL;
	char now[RFC3339_LEN + 1];

	TRY(target_supported(room, kind, err));
	time_rfc3339(clock_now_ms(), now);
	TRY(header_add(lines, "Created", str_of(now), err));
	TRY(header_add(lines, "Created-By", str_of(by), err));
	TRY(mr_got(buf_ok(lines) && (changed || !more), err));
	TRY(record_edit_begin(&e, room, kind, "", name, err));
	if (e.exists)
		return mr_fail(err, MR_EXISTS, "there is already a %s '%s'\n`mailroom %s show %s` shows it", kind, name,
		    kind, name);
	buf_add(&e.text, buf_str(lines));
	if (more)
		TRY(edit_lines(&e.text, kind, more, changed, err));
	return record_edit_save(&e, err);
}

enum mr_rc
settings_change(struct mr_room *room, const char *kind, const char *name, const struct settings_edit *edit,
    bool *ret_changed, struct mr_error *err)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };
	mr_auto(record_done) struct record lines = { 0 };

	TRY(target_supported(room, kind, err));
	TRY(record_edit_begin(&e, room, kind, "", name, err));
	if (!e.exists)
		return unknown(room, kind, name, err);
	TRY(target_settings(room, kind, name, &lines, err));
	TRY(edit_lines(&e.text, kind, edit, ret_changed, err));
	return record_edit_save(&e, err);
}

enum mr_rc
settings_set(struct mr_room *room, const char *kind, const char *name, const char *field, const char *value,
    struct mr_error *err)
{
	char text[MR_ADDRESS_MAX + 1], *values[] = { text };
	bool changed;

	(void)snprintf(text, sizeof(text), "%s", value);
	return settings_change(
	    room, kind, name, &(struct settings_edit){ SETTINGS_SET, field, { values, 1 } }, &changed, err);
}

/* ---- Groups ---- */

void
mr_group_done(struct mr_group *group)
{
	if (!group)
		return;
	arena_free(group->own);
	*group = (struct mr_group){ 0 };
}

static bool
read_group(void *ret, const char *name, struct record *lines)
{
	struct mr_group *group = ret;

	(void)snprintf(group->name, sizeof(group->name), "%s", name);
	group->created_ms = record_time(lines, "Created");
	group->created_by = settings_text(lines, "Created-By");
	return settings_values(lines, "Member", &group->members);
}

enum mr_rc
mr_group_get(struct mr_room *room, const char *name, struct mr_group *ret, struct mr_error *err)
{
	return settings_get(room, GROUP, name, read_group, ret, &ret->own, err);
}

enum mr_rc
mr_group_list(struct mr_room *room, struct mr_groups *ret, struct mr_error *err)
{
	return settings_list(room, GROUP, sizeof(*ret->v), read_group, ret, err);
}

static enum mr_rc
check_agent_member(struct mr_str agent, struct mr_error *err)
{
	char normal[MR_ADDRESS_MAX + 1];

	return memchr(agent.ptr, '*', agent.len) ? pattern_check(agent, err) : address_normal(agent, normal, err);
}

/* A member need not exist yet, but it must be an address. ret is its stored form: "list:x" becomes "group:x",
 * "announce:x" becomes "channel:x", so that no member is stored twice. */
static enum mr_rc
check_member(struct mr_room *room, const char *given, char ret[MEMBER_LEN], struct mr_error *err)
{
	struct mr_str member, at;

	(void)snprintf(ret, MEMBER_LEN, "%s", given);
	if (*given == '@')
		return address_check(str_of(given + 1), err);
	address_split(str_of(given), &member, &at);
	struct mr_str name = member;
	const char *kind = address_kind(&name);
	bool agent = !kind || strcmp(kind, "agent") == 0;

	if (at.len > 0 && !str_eq(at, str_of(room->name))) { /* the other room is asked when mail is sent */
		if (!target_exists(room, "link", at.ptr) || strlen(given) > MR_ADDRESS_MAX)
			return mr_fail(err, MR_REFUSED,
			    "no link to the room of '%.160s'\n`mailroom link list` shows the links", given);
		return check_agent_member(agent ? name : member, err);
	}
	if (!agent) {
		(void)snprintf(
		    ret, MEMBER_LEN, "%s:%.*s", kind, (int)(name.len < MR_ADDRESS_MAX ? name.len : 0), name.ptr);
		return target_name_check(kind, strchr(ret, ':') + 1, err);
	}
	(void)snprintf(ret, MEMBER_LEN, "%.*s", (int)(member.len < MEMBER_LEN ? member.len : 0), member.ptr);
	return check_agent_member(name, err);
}

/* Every member is checked before the record is touched. */
static enum mr_rc
check_members(struct mr_room *room, const char *const *members, struct mr_names *ret, struct mr_error *err)
{
	char member[MEMBER_LEN];

	for (size_t i = 0; members && members[i]; i++) {
		TRY(check_member(room, members[i], member, err));
		TRY(mr_got(names_add(ret, str_of(member)), err));
	}
	return MR_OK;
}

enum mr_rc
mr_group_create(struct mr_room *room, const struct mr_self *self, const char *name, const char *const *members,
    struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names kept = { 0 };
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	char local[MR_ADDRESS_MAX + 1];

	TRY(office_not_fenced(room, self, err));
	TRY(target_name(room, GROUP, name, local, err));
	TRY(target_name_free(room, GROUP, local, err));
	TRY(check_members(room, members, &kept, err));
	TRY(header_add(&lines, "Name", str_of(local), err));
	return settings_create(
	    room, GROUP, local, self->agent, &lines, &(struct settings_edit){ SETTINGS_ADD, "Member", kept }, err);
}

enum mr_rc
mr_group_change(struct mr_room *room, const char *name, bool add, const char *const *members, bool *ret_changed,
    struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names kept = { 0 };
	char local[MR_ADDRESS_MAX + 1];

	TRY(target_name(room, GROUP, name, local, err));
	TRY(check_members(room, members, &kept, err));
	struct settings_edit edit = { add ? SETTINGS_ADD : SETTINGS_REMOVE, "Member", kept };

	return settings_change(room, GROUP, local, &edit, ret_changed, err);
}

enum mr_rc
mr_group_check(struct mr_room *room, const char *const *members, struct mr_names *ret_trouble, struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients out = { 0 };
	mr_auto(resolver_done) struct resolver r;

	resolver_init(&r, room, "", false, &out);
	r.many = true;
	r.depth = 1; /* only a sender who writes the name gets similar names */
	for (; *members; members++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		bool enough = ret_trouble->n == UNKNOWN_MAX;
		struct mr_error why = { 0 };

		if (resolver_take(&r, *members, &why) == MR_OK)
			continue;
		format_addf(&text,
		    enough ? "other members may reach nobody, too" : "member '%.160s' reaches nobody yet: %s", *members,
		    why.message);
		TRY(mr_got(buf_ok(&text) && names_add(ret_trouble, buf_str(&text)), err));
		if (enough)
			break;
	}
	return MR_OK;
}

enum mr_rc
mr_group_delete(struct mr_room *room, const char *name, struct mr_error *err)
{
	char local[MR_ADDRESS_MAX + 1];

	TRY(target_name(room, GROUP, name, local, err));
	enum mr_rc rc = room->driver->record_drop(room, GROUP, "", local, err);

	return rc == MR_NOTFOUND ? unknown(room, GROUP, local, err) : rc;
}
