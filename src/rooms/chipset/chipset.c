/* SPDX-License-Identifier: MIT */
/*
 * chipset.c - the driver of kind 'chipset', and all that is not mail: opening, mailboxes as folders, agents, nudges,
 * the doctor.
 *
 * Mailboxes are mail/<id> and mail/<id>/archive below <state>. They appear with the first message. A folder that we
 * make is readable for those for whom the folder around it is: the other programs may run under another account.
 * Nobody registers: an agent with a mailbox in mail/ or an identity in agents/ is listed, and every name that can be
 * one may be written to.
 */
#include "rooms/chipset/chipset.h"

#include "base/error.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/foreign.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#define IDENTITY_MAX ((size_t)1 << 20)
#define STAND_IN ".mailroom-stand-in" /* in a mailbox that was made for an agent of another room: its role */

/* ---- Mailboxes ---- */

/* Each time anew: the folder may be deleted and made again, and must not leave us with the old one. */
enum mr_rc
chipset_open_below(struct chipset *cs, const char *path, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root = -1;

	TRY(dir_open(AT_FDCWD, cs->path, &root, err));
	return dir_open(root, path, ret_fd, err);
}

enum mr_rc
chipset_box_open(struct chipset *cs, const char *id, enum mr_folder folder, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	chipset_box_path(&path, id, folder);
	return buf_ok(&path) ? chipset_open_below(cs, buf_z(&path), ret_fd, err) : mr_nomem(err);
}

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

/* <state> itself, with the mode of the nearest folder above it that is there. */
static enum mr_rc
make_state(struct chipset *cs, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf above = BUF_INIT;
	mr_auto(sys_close_fd) int around = -1;
	enum mr_rc rc = dir_open(AT_FDCWD, cs->path, ret_fd, err);

	if (rc != MR_NOTFOUND)
		return rc;
	buf_adds(&above, cs->path);
	while (rc == MR_NOTFOUND && above.len > 1) {
		struct mr_str last = kit_last_part(buf_str(&above));

		above.len = kit_trim_slashes((struct mr_str){ above.ptr, (size_t)(last.ptr - above.ptr) }).len;
		above.ptr[above.len] = '\0';
		rc = dir_open(AT_FDCWD, buf_z(&above), &around, err);
	}
	return rc == MR_OK ? dir_make(AT_FDCWD, cs->path, folder_mode(around), true, ret_fd, err) : rc;
}

static enum mr_rc
make_within(int around_fd, const char *name, int *ret_fd, struct mr_error *err)
{
	enum mr_rc rc = dir_open(around_fd, name, ret_fd, err);

	return rc == MR_NOTFOUND ? dir_make(around_fd, name, folder_mode(around_fd), true, ret_fd, err) : rc;
}

static enum mr_rc
make_mail(struct chipset *cs, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int state = -1;

	TRY(make_state(cs, &state, err));
	return make_within(state, "mail", ret_fd, err);
}

enum mr_rc
chipset_box_make(struct chipset *cs, const char *id, enum mr_folder folder, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int mail = -1, box = -1;
	enum mr_rc rc = chipset_box_open(cs, id, folder, ret_fd, err);

	if (rc != MR_NOTFOUND)
		return rc;
	TRY(make_mail(cs, &mail, err));
	if (folder != MR_ARCHIVE)
		return make_within(mail, id, ret_fd, err);
	TRY(make_within(mail, id, &box, err));
	return make_within(box, "archive", ret_fd, err);
}

/* ---- Opening ---- */

enum mr_rc
chipset_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct chipset *cs = calloc(1, sizeof *cs);
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_str path = kit_trim_slashes(str_of(where));

	TRY(mr_got(cs, err));
	room->state = cs;
	cs->path = strndup(path.ptr, path.len);
	TRY(mr_got(cs->path, err));
	TRY(kit_set_name(room, STR("chipset"), "chipset", err));
	if (where[0] != '/')
		return mr_fail(err, MR_REFUSED,
		    "'%s' is no absolute path\na chipset room is chipset:PATH, PATH being its state folder", cs->path);
	/* The folder need not be there, unless that is asked for: a mailbox appears with its first message. */
	enum mr_rc rc = dir_open(AT_FDCWD, cs->path, &fd, err);

	if (rc == MR_NOTFOUND && room->must_exist)
		return mr_fail(err, MR_NOTFOUND, "no folder '%s'", cs->path);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return mr_wrap(err, "cannot open room '%s'", cs->path);
	return kit_set_spec(room, cs->path, err);
}

enum mr_rc
chipset_make_box(struct mr_room *room, const char *box, struct mr_error *err)
{
	(void)box; /* there are no others than the room itself */
	mr_auto(sys_close_fd) int fd = -1;

	return make_state(chipset_of(room), &fd, err);
}

void
chipset_close(struct mr_room *room)
{
	struct chipset *cs = chipset_of(room);

	if (!cs)
		return;
	mr_names_done(&cs->dirty);
	kit_known_done(&cs->known);
	free(cs->path);
	free(cs);
	room->state = NULL;
}

enum mr_rc
chipset_flush(struct mr_room *room, struct mr_error *err)
{
	return kit_flush(&chipset_of(room)->dirty, err);
}

enum mr_rc
chipset_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char id[CHIPSET_ID_MAX + 1];

	TRY(chipset_id(agent, id, err));
	buf_addf(&path, "%s/mail/%s", chipset_of(room)->path, id);
	return buf_ok(&path) ? kit_watch(buf_z(&path), NULL, ret_watch, err) : mr_nomem(err);
}

/* ---- Agents ---- */

struct gathering {
	struct mr_names *names;
	bool identities; /* NAME.json in agents/, else folders in mail/ */
	bool failed;
};

static bool
gather(void *ctx, const struct dir_entry *entry)
{
	struct gathering *g = ctx;
	struct mr_str name = str_of(entry->name);

	if (name.ptr[0] == '.' || (entry->type == DT_DIR) == g->identities)
		return true;
	if (g->identities && !str_ends(name, ".json"))
		return true;
	name.len -= g->identities ? strlen(".json") : 0;
	g->failed = name.len > 0 && !names_add(g->names, name);
	return !g->failed;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Ids in the order of names, also those that no address can hold. */
static enum mr_rc
add_names(struct chipset *cs, const char *folder, bool identities, struct mr_names *names, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct gathering g = { names, identities, false };
	enum mr_rc rc = chipset_open_below(cs, folder, &fd, err);

	if (rc == MR_OK)
		rc = dir_each_once(fd, gather, &g, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	TRY(mr_got(!g.failed, err));
	if (names->n > 1)
		qsort(names->v, names->n, sizeof *names->v, by_name);
	return MR_OK;
}

/* What its mailbox or its identity file says of it, if there is one. */
static const char *
role_of(struct chipset *cs, const char *id, struct arena **own)
{
	mr_auto(sys_close_fd) int fd = -1, box = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, role = BUF_INIT, name = BUF_INIT;
	struct json_value object;
	const char *problem, *copy = "";

	buf_addf(&name, "%s.json", id);
	if (chipset_box_open(cs, id, MR_INBOX, &box, IGNORED) == MR_OK)
		copy = kit_note(box, STAND_IN, own);
	if (!copy[0] && chipset_open_below(cs, "agents", &fd, IGNORED) == MR_OK &&
	    file_read(fd, buf_z(&name), IDENTITY_MAX, &text, IGNORED) == MR_OK &&
	    json_whole(buf_str(&text), &object, &problem) && json_find_text(object, "role", &role))
		copy = arena_dup(own, buf_str(&role));
	return copy ? copy : "";
}

enum mr_rc
chipset_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	char id[CHIPSET_ID_MAX + 1], address[MR_ADDRESS_MAX + 1];
	struct arena *own = NULL;

	TRY(chipset_id(name, id, err));
	TRY(foreign_to_address(str_of(id), address, err));
	if (!ret)
		return MR_OK;
	*ret = kit_agent(address);
	ret->role = role_of(chipset_of(room), id, &own);
	ret->own = own;
	return MR_OK;
}

/* Names that cannot be an agent's are for the doctor to tell. */
enum mr_rc
chipset_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	TRY(add_names(chipset_of(room), "mail", false, &names, err));
	TRY(add_names(chipset_of(room), "agents", true, &names, err));
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
	struct chipset *cs = chipset_of(room);
	mr_auto(sys_close_fd) int fd = -1, mail = -1;
	char id[CHIPSET_ID_MAX + 1];

	TRY(chipset_id(agent->name, id, err));
	enum mr_rc rc = chipset_box_open(cs, id, MR_INBOX, &fd, err);

	if (rc == MR_OK)
		rc = MR_EXISTS;
	else if (rc == MR_NOTFOUND && !(agent->role && agent->role[0]))
		rc = chipset_box_make(cs, id, MR_INBOX, &fd, err);
	else if (rc == MR_NOTFOUND) { /* it says from its first moment what it is for */
		rc = make_mail(cs, &mail, err);
		if (rc == MR_OK)
			rc = dir_publish(mail, id, folder_mode(mail), STAND_IN, str_of(agent->role), NULL, err);
	}
	return rc == MR_EXISTS ? mr_fail(err, MR_EXISTS, "'%s' has a mailbox already", agent->name) : rc;
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
		    "a chipset room knows no nudge of kind '%.60s'\n"
		    "health_check, stall_warning, priority_change, abort, sync_request or nudge_response",
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
	TRY(dir_open(AT_FDCWD, chipset_of(room)->path, &root_fd, err));
	TRY(dir_make(root_fd, buf_z(&path), folder_mode(root_fd), true, &fd, err));
	return file_replace(fd, LATEST, buf_str(&text), chipset_file_mode(fd), err);
}

static const char *
keep_text(struct json_value object, const char *key, struct arena **own)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	(void)json_find_text(object, key, &text);
	return text.failed ? NULL : arena_dup(own, str_of(buf_z(&text)));
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

	TRY(chipset_id(agent, id, err));
	buf_addf(&path, "nudge/%s", id);
	TRY(mr_got(buf_ok(&path), err));
	TRY(chipset_open_below(chipset_of(room), buf_z(&path), &fd, err));
	TRY(file_read(fd, LATEST, CHIPSET_READ_MAX, &text, err));
	TRY(chipset_object(buf_str(&text), &object, err));
	if (!json_find_text(object, "timestamp", &stamp) || !time_parse_rfc3339(buf_str(&stamp), &n.at_ms))
		return mr_fail(err, MR_CORRUPT, "'%s/" LATEST "' has no timestamp", buf_z(&path));
	/* "from" may be anything that another program wrote there. */
	if (!json_find_text(object, "from", &from) || memchr(buf_z(&from), '\0', from.len) ||
	    foreign_to_address(buf_str(&from), sender, IGNORED) != MR_OK)
		(void)snprintf(sender, sizeof sender, "unknown");
	n.from = arena_dup(own, str_of(sender));
	n.text = keep_text(object, "message", own);
	n.kind = keep_text(object, "type", own);
	n.answer_wanted = json_find(object, "requires_response", &wanted) && json_truthy(wanted);
	TRY(mr_got(n.from && n.text && n.kind, err));
	*ret = n;
	return MR_OK;
}

/* ---- Evidence and care ---- */

static void
describe_place(const struct mr_message *msg, struct buf *evidence)
{
	buf_addf(evidence, "it is %s, which says that it was %sread", msg->path, msg->flags & MR_SEEN ? "" : "not ");
}

enum mr_rc
chipset_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	return kit_places(room, id, describe_place, fn, ctx, err);
}

/* All names of ours; the format's own temporary names are everybody's, and left alone. */
static bool
is_leftover(const char *name)
{
	return str_ends(str_of(name), ".tmp") &&
	       (str_starts(str_of(name), ".mailroom-") || str_starts(str_of(name), "mr-"));
}

static bool
look_for_note(void *ctx, const struct mr_message *msg)
{
	const char *note = mr_message_header(msg, "Mailroom-Note");

	if (note)
		findings_say(ctx,
		    &(struct mr_finding){ MR_PROBLEM, "mail", msg->path, NULL,
			"two senders wrote through one temporary file", "ask both to send again", false },
		    "%s: %s", msg->path, note);
	return true;
}

static enum mr_rc
inspect_box(struct mr_room *room, struct findings *f, const char *box, struct mr_error *err)
{
	static const enum mr_folder folders[] = { MR_INBOX, MR_ARCHIVE };
	const struct scan_request want = {
		.folders = CHIPSET_FOLDERS, .depth = SCAN_HEADERS, .trouble = kit_tell_trouble, .trouble_ctx = f
	};
	const char *problem = chipset_id_problem(str_of(box));
	char address[MR_ADDRESS_MAX + 1];

	if (problem) {
		mr_auto(buf_done) struct buf shown = BUF_INIT;

		text_clean_line(&shown, str_of(box));
		findings_say(f,
		    &(struct mr_finding){ MR_PROBLEM, "names", buf_z(&shown), NULL,
			"no mail can be read from it or sent to it", "rename the folder", false },
		    "mail/%s is nobody's mailbox here: the name %s", buf_z(&shown), problem);
		return MR_OK;
	}
	for (size_t i = 0; i < 2; i++) {
		mr_auto(buf_done) struct buf path = BUF_INIT;
		mr_auto(sys_close_fd) int fd = -1;

		chipset_box_path(&path, box, folders[i]);
		if (chipset_open_below(chipset_of(room), buf_z(&path), &fd, IGNORED) == MR_OK)
			kit_leftovers(f, fd, buf_z(&path), is_leftover);
	}
	TRY(foreign_to_address(str_of(box), address, err));
	return chipset_scan(room, address, &want, look_for_note, f, err);
}

/* What is odd is somebody's mail and is left alone; only our own temporary files are taken away. */
enum mr_rc
chipset_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root = -1;
	mr_auto(mr_names_done) struct mr_names boxes = { 0 };
	mr_auto(findings_end) struct findings f = findings_begin(fix, fn, ctx);

	findings_keep_in_state(&f, room->state_dir);
	TRY(add_names(chipset_of(room), "mail", false, &boxes, err));
	for (size_t i = 0; i < boxes.n; i++)
		TRY(inspect_box(room, &f, boxes.v[i], err));
	if (chipset_open_below(chipset_of(room), "mail", &root, IGNORED) == MR_OK)
		findings_space(&f, root);
	if (f.told == 0)
		findings_say(
		    &f, &(struct mr_finding){ .severity = MR_FINE, .code = "mail" }, "every message can be read");
	return MR_OK;
}

const struct room_driver room_chipset = {
	.kind = "chipset",
	.abilities = ROOM_READ_STATE | ROOM_PRIORITIES | ROOM_ARCHIVE | ROOM_TYPES | ROOM_OPEN_BOXES | ROOM_RAW,
	.open = chipset_open,
	.close = chipset_close,
	.make_box = chipset_make_box,
	.storage = kit_storage,
	.each_agent = chipset_each_agent,
	.find_agent = chipset_find_agent,
	.add_agent = chipset_add_agent,
	.spell = chipset_spell,
	.unsupported = chipset_unsupported,
	.deliver = chipset_deliver,
	.settle_ticket = chipset_settle_ticket,
	.scan = chipset_scan,
	.fetch = chipset_fetch,
	.mark = chipset_mark,
	.flush = chipset_flush,
	.watch = chipset_watch,
	.watch_wait = kit_watch_wait,
	.watch_close = kit_watch_close,
	.each_place = chipset_each_place,
	.inspect = chipset_inspect,
	.face = &(const struct room_face){ .nudge_put = chipset_nudge_put, .nudge_get = chipset_nudge_get },
};
