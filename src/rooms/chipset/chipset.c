/* SPDX-License-Identifier: MIT */
/*
 * chipset.c - the driver of kind 'chipset', and all that is not mail: opening, mailboxes as folders, agents, nudges.
 *
 * Mailboxes are mail/<id> and mail/<id>/archive below <state>. They appear with the first message. A folder that we
 * make has the read permissions of the folder around it: the other programs may run under another account.
 * Nobody registers: an agent with a mailbox in mail/ or an identity in agents/ is listed, and every name that can be
 * one may be written to.
 */
#include "rooms/chipset/chipset.h"

#include "base/error.h"
#include "base/sys.h"
#include "message/address.h"
#include <fcntl.h>

#define IDENTITY_MAX ((size_t)1 << 20)
#define STAND_IN ".mailroom-stand-in" /* in a mailbox that was made for an agent of another room: its role */

/* ---- Folders ---- */

static mode_t
folder_mode(int around_fd)
{
	struct stat st;

	return sys_stat_fd(around_fd, &st) == 0 ? 0700 | (st.st_mode & 0055) : 0700;
}

mode_t
chipset_file_mode(int box_fd)
{
	return folder_mode(box_fd) & 0644;
}

/* What is missing on the way gets the mode of the nearest folder that is there. */
static enum mr_rc
make_folder(int dir_fd, const char *path, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int around = -1;
	const char *slash = strrchr(path, '/');
	enum mr_rc rc = dir_open(dir_fd, path, ret_fd, err);

	if (rc != MR_NOTFOUND)
		return rc;
	mr_auto(free_ptr) char *above = slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1) : strdup(".");

	TRY(mr_got(above, err));
	TRY(make_folder(dir_fd, above, &around, err));
	return dir_make(dir_fd, path, folder_mode(around), true, ret_fd, err);
}

/* A folder below <state>. <state> is opened each time: it may be deleted and made again. */
static enum mr_rc
open_below(struct mr_room *room, const char *path, bool make, int *ret_fd, struct mr_error *err)
{
	const char *state = kit_room(room)->path;
	mr_auto(sys_close_fd) int fd = -1;

	TRY(make ? make_folder(AT_FDCWD, state, &fd, err) : dir_open(AT_FDCWD, state, &fd, err));
	return make ? make_folder(fd, path, ret_fd, err) : dir_open(fd, path, ret_fd, err);
}

enum mr_rc
chipset_folder(
    struct mr_room *room, const char *id, enum mr_folder folder, bool make, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	chipset_box_path(&path, id, folder);
	return buf_ok(&path) ? open_below(room, buf_z(&path), make, ret_fd, err) : mr_nomem(err);
}

/* ---- Opening ---- */

enum mr_rc
chipset_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_str path = kit_trim_slashes(str_of(where));

	if (where[0] != '/')
		return mr_fail(err, MR_REFUSED,
		    "'%s' is not an absolute path\na chipset room is chipset:PATH, PATH being its state folder", where);
	TRY(kit_open(room, sizeof(struct kit_room), &chipset_format, path, err));
	TRY(kit_set_name(room, STR("chipset"), "chipset", err));
	/* The folder need not be there, unless that is asked for: a mailbox appears with its first message. */
	enum mr_rc rc = dir_open(AT_FDCWD, kit_room(room)->path, &fd, err);

	if (rc == MR_NOTFOUND && room->must_exist)
		return mr_fail(err, MR_NOTFOUND, "no folder '%s'", kit_room(room)->path);
	return rc == MR_OK || rc == MR_NOTFOUND ? MR_OK : mr_wrap(err, "cannot open room '%s'", kit_room(room)->path);
}

enum mr_rc
chipset_make_box(struct mr_room *room, const char *box, struct mr_error *err)
{
	(void)box; /* there are no others than the room itself */
	mr_auto(sys_close_fd) int fd = -1;

	return make_folder(AT_FDCWD, kit_room(room)->path, &fd, err);
}

/* ---- Agents ---- */

/* Ids in the order of names, also those that no address can hold: of NAME.json in agents/, or of folders in mail/. */
static enum mr_rc
add_names(struct mr_room *room, bool identities, struct mr_names *names, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names found = { 0 };
	enum mr_rc rc = open_below(room, identities ? "agents" : "mail", false, &fd, err);
	struct stat st;

	if (rc == MR_OK)
		rc = dir_names(fd, &found, err);
	for (size_t i = 0; i < found.n; i++) {
		struct mr_str name = str_of(found.v[i]);

		if (name.ptr[0] == '.' || (identities && !str_ends(name, ".json")) || sys_stat(fd, name.ptr, &st) < 0 ||
		    S_ISDIR(st.st_mode) == identities)
			continue;
		name.len -= identities ? strlen(".json") : 0;
		TRY(mr_got(names_add(names, name), err));
	}
	names_sort(names);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* Its role is what its mailbox says of it, or its identity file. */
enum mr_rc
chipset_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1, box = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, file = BUF_INIT;
	char id[CHIPSET_ID_MAX + 1], address[MR_ADDRESS_MAX + 1];
	struct arena *own = NULL;
	struct json_value object;
	const char *problem;

	TRY(chipset_id(name, id, err));
	TRY(foreign_to_address(str_of(id), address, err));
	if (!ret)
		return MR_OK;
	*ret = kit_agent(address);
	buf_addf(&file, "%s.json", id);
	if (chipset_folder(room, id, MR_INBOX, false, &box, IGNORED) == MR_OK)
		ret->role = kit_note(box, STAND_IN, &own);
	if (!ret->role[0] && open_below(room, "agents", false, &fd, IGNORED) == MR_OK &&
	    file_read(fd, buf_z(&file), IDENTITY_MAX, &text, IGNORED) == MR_OK &&
	    json_whole(buf_str(&text), &object, &problem))
		ret->role = kit_json_text(object, "role", &own, &(bool){ false });
	ret->own = own;
	return MR_OK;
}

/* Names that cannot be an agent's are for the doctor to tell. */
enum mr_rc
chipset_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	TRY(add_names(room, false, &names, err));
	TRY(add_names(room, true, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		char address[MR_ADDRESS_MAX + 1];

		if ((i > 0 && strcmp(names.v[i], names.v[i - 1]) == 0) || chipset_id_problem(str_of(names.v[i])))
			continue;
		TRY(foreign_to_address(str_of(names.v[i]), address, err));
		agent = kit_agent(address);
		if (!names_only)
			TRY(chipset_find_agent(room, address, &agent, err));
		if (!fn(ctx, &agent))
			break;
	}
	return MR_OK;
}

enum mr_rc
chipset_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1, mail = -1;
	char id[CHIPSET_ID_MAX + 1];

	TRY(chipset_id(agent->name, id, err));
	enum mr_rc rc = chipset_folder(room, id, MR_INBOX, false, &fd, err);

	if (rc == MR_OK)
		rc = MR_EXISTS;
	else if (rc == MR_NOTFOUND && !(agent->role && agent->role[0]))
		rc = chipset_folder(room, id, MR_INBOX, true, &fd, err);
	else if (rc == MR_NOTFOUND) { /* it says from its first moment what it is for */
		TRY(open_below(room, "mail", true, &mail, err));
		rc = dir_publish(mail, id, folder_mode(mail), STAND_IN, str_of(agent->role), NULL, err);
	}
	return rc == MR_EXISTS ? mr_fail(err, MR_EXISTS, "'%s' already has a mailbox", agent->name) : rc;
}

enum mr_rc
chipset_spell(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	char id[CHIPSET_ID_MAX + 1];

	(void)room;
	TRY(chipset_id(given, id, err));
	return foreign_to_address(str_of(id), ret, err);
}

/* ---- Nudges: nudge/<id>/latest.json. The last one wins; that loss is the format's intent. ---- */

#define LATEST "latest.json"

/* Written beside and renamed over, under a name of our own: the format's ".nudge.tmp" is shared by all. */
static enum mr_rc
chipset_nudge_put(struct mr_room *room, const char *to, const struct mr_nudge *nudge, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root_fd = -1, fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, path = BUF_INIT;
	static const char *const types[] = { "", "health_check", "stall_warning", "priority_change", "abort",
		"sync_request", "nudge_response" };
	char from_id[CHIPSET_ID_MAX + 1], to_id[CHIPSET_ID_MAX + 1], stamp[RFC3339_LEN + 1];
	bool known = false;

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
		known |= strcmp(types[i], nudge->kind) == 0;
	if (!known)
		return mr_fail(err, MR_UNSUPPORTED,
		    "a chipset room has no nudge of kind '%.60s'\n"
		    "use health_check, stall_warning, priority_change, abort, sync_request or nudge_response",
		    nudge->kind);
	if (nudge->priority == MR_URGENT || nudge->thread[0] || nudge->expires_ms || nudge->not_before_ms)
		return mr_fail(err, MR_UNSUPPORTED,
		    "a nudge in a chipset room has no urgency, no thread and no time to live\n"
		    "send it as mail: mailroom send");
	TRY(chipset_id(nudge->from, from_id, err));
	TRY(chipset_id(to, to_id, err));
	time_rfc3339(nudge->at_ms, stamp);
	buf_adds(&text, "{\n");
	chipset_member(&text, "from", str_of(from_id));
	chipset_member(&text, "message", str_of(nudge->text));
	buf_addf(&text, ",\n  \"requires_response\": %s", nudge->answer_wanted ? "true" : "false");
	chipset_member(&text, "timestamp", str_of(stamp));
	chipset_member(&text, "to", str_of(to_id));
	chipset_member(&text, "type", str_of(nudge->kind[0] ? nudge->kind : "sync_request"));
	buf_adds(&text, "\n}\n");
	buf_addf(&path, "nudge/%s", to_id);
	TRY(mr_got(buf_ok(&text) && buf_ok(&path), err));
	TRY(dir_open(AT_FDCWD, kit_room(room)->path, &root_fd, err));
	TRY(dir_make(root_fd, buf_z(&path), folder_mode(root_fd), true, &fd, err));
	return file_replace(fd, LATEST, buf_str(&text), chipset_file_mode(fd), err);
}

static enum mr_rc
chipset_nudge_get(
    struct mr_room *room, const char *agent, struct mr_nudge *ret, struct arena **own, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, path = BUF_INIT, stamp = BUF_INIT, from = BUF_INIT;
	char id[CHIPSET_ID_MAX + 1], sender[MR_ADDRESS_MAX + 1];
	struct json_value object, wanted;
	struct mr_nudge n = { .thread = "", .times = 1 };
	bool failed = false;

	TRY(chipset_id(agent, id, err));
	buf_addf(&path, "nudge/%s", id);
	TRY(mr_got(buf_ok(&path), err));
	TRY(open_below(room, buf_z(&path), false, &fd, err));
	TRY(file_read(fd, LATEST, CHIPSET_READ_MAX, &text, err));
	TRY(chipset_object(buf_str(&text), &object, err));
	if (!json_find_text(object, "timestamp", &stamp) || !time_parse_rfc3339(buf_str(&stamp), &n.at_ms))
		return mr_fail(err, MR_CORRUPT, "'%s/" LATEST "' has no timestamp", buf_z(&path));
	/* "from" may be anything that another program wrote there. */
	if (!json_find_text(object, "from", &from) || memchr(buf_z(&from), '\0', from.len) ||
	    foreign_to_address(buf_str(&from), sender, IGNORED) != MR_OK)
		(void)snprintf(sender, sizeof sender, "unknown");
	n.from = arena_keep(own, str_of(sender), &failed);
	n.text = kit_json_text(object, "message", own, &failed);
	n.kind = kit_json_text(object, "type", own, &failed);
	n.answer_wanted = json_find(object, "requires_response", &wanted) && json_truthy(wanted);
	TRY(mr_got(!failed, err));
	*ret = n;
	return MR_OK;
}

/* ---- The doctor ---- */

enum mr_rc
chipset_inspect_names(struct mr_room *room, struct findings *f, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names boxes = { 0 };

	TRY(add_names(room, false, &boxes, err));
	for (size_t i = 0; i < boxes.n; i++) {
		const char *problem = chipset_id_problem(str_of(boxes.v[i]));

		if (problem)
			findings_say(f,
			    &(struct mr_finding){ MR_PROBLEM, "names", boxes.v[i], NULL,
				"no mail can be read from it or sent to it", "rename the folder", false },
			    "mail/%s cannot be a mailbox here: the name %s", boxes.v[i], problem);
	}
	return MR_OK;
}

const struct room_driver room_chipset = {
	.kind = "chipset",
	.abilities = ROOM_READ_STATE | ROOM_PRIORITIES | ROOM_ARCHIVE | ROOM_TYPES | ROOM_OPEN_BOXES | ROOM_RAW |
		     ROOM_PLAIN_NAMES,
	.open = chipset_open,
	.close = kit_close,
	.make_box = chipset_make_box,
	.storage = kit_storage,
	.each_agent = chipset_each_agent,
	.find_agent = chipset_find_agent,
	.add_agent = chipset_add_agent,
	.spell = chipset_spell,
	.unsupported = chipset_unsupported,
	.deliver = chipset_deliver,
	.settle_ticket = kit_settle_ticket,
	.scan = kit_scan,
	.fetch = kit_fetch,
	.mark = kit_mark,
	.flush = kit_flush,
	.watch = kit_watch_agent,
	.watch_wait = kit_watch_wait,
	.watch_close = kit_watch_close,
	.each_place = kit_each_place,
	.inspect = kit_inspect,
	.face = &(const struct room_face){ .nudge_put = chipset_nudge_put, .nudge_get = chipset_nudge_get },
};
