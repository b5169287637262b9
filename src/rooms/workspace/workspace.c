/* SPDX-License-Identifier: MIT */
/*
 * workspace.c - the driver of kind 'workspace': the mailboxes of the workspace mailbox skill. What WHERE is:
 *
 *	it has .mailbox                        one agent's workspace; the yard is the folder above
 *	else it is empty, or a folder in it
 *	has .mailbox                           the yard itself, nobody's own
 *	else                                   a workspace to be: .mailbox is made when it is first needed
 *
 * An agent is a folder of the yard that has an inbox, or one that was named by its path. The last parts of the paths of
 * inbox and scratch are never links: what is in them decides where we write.
 */
#include "rooms/workspace/workspace.h"

#include "base/error.h"
#include "base/sys.h"
#include "message/address.h"
#include "message/foreign.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define STAND_IN ".mailroom-stand-in" /* in a .mailbox that was made for an agent of another room: its role */

/* ---- Opening ---- */

enum mr_rc
workspace_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct workspace *ws = calloc(1, sizeof *ws);
	mr_auto(sys_close_fd) int fd = -1;
	bool yard = false;

	room->state = ws;
	TRY(mr_got(ws, err));
	ws->busy_ms = WORKSPACE_BUSY_MS;
	ws->yard = where[0] == '/' ? realpath(where, NULL) : NULL;
	fd = ws->yard ? sys_open(AT_FDCWD, ws->yard, O_RDONLY | O_DIRECTORY, 0) : -1;
	if (fd < 0)
		return mr_fail(err, MR_NOTFOUND,
		    "no workspace in '%s': no such folder\n"
		    "give the absolute path of an agent's working folder, or of the folder above several",
		    where);
	struct mr_str path = str_of(ws->yard), last = kit_last_part(path);

	if (memo_value_problem(path))
		return mr_fail(err, MR_REFUSED, "the path of this workspace %s", memo_value_problem(path));
	/* A folder without .mailbox is a yard if it is empty, or a folder in it has one. */
	mr_auto(sys_close_fd) int own_fd = sys_open(fd, ".mailbox", O_RDONLY | O_DIRECTORY, 0);
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_error doubt = { 0 };

	/* A look that fails proves nothing: a yard taken for a workspace would get the mail of its workspaces. */
	if (own_fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		return mr_fail_errno(err, "cannot look at '%s/.mailbox'", ws->yard);
	if (own_fd < 0) {
		TRY(dir_names(fd, &names, err));
		yard = names.n == 0;
	}
	for (size_t i = 0; i < names.n && !yard; i++) {
		mr_auto(buf_done) struct buf below = BUF_INIT;

		buf_addf(&below, "%s/.mailbox", names.v[i]);
		mr_auto(sys_close_fd) int box = sys_open(fd, buf_z(&below), O_RDONLY | O_DIRECTORY, 0);

		yard = box >= 0;
		if (!yard && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
			(void)mr_fail_errno(&doubt, "cannot look at '%s/%s'", ws->yard, buf_z(&below));
			(void)mr_hint(
			    &doubt, "if '%s' is itself a workspace, make the folder .mailbox in it", ws->yard);
		}
	}
	if (!yard && doubt.code != MR_OK) {
		*err = doubt;
		return err->code;
	}
	TRY(kit_set_name(room, last, "workspaces", err));
	TRY(kit_set_spec(room, ws->yard, err));
	if (yard) {
		if (last.len == 0)
			ws->yard[0] = '\0';
		return MR_OK;
	}
	if (last.len == 0)
		return mr_fail(err, MR_REFUSED, "the root folder is no workspace");
	TRY(foreign_to_address(last, ws->owner, err));
	room->owner = ws->owner;
	ws->own = ws->yard;
	ws->yard = strndup(ws->own, path.len - last.len - 1);
	return ws->yard ? MR_OK : mr_nomem(err);
}

void
workspace_close(struct mr_room *room)
{
	struct workspace *ws = workspace_of(room);

	if (!ws)
		return;
	for (size_t i = 0; i < ws->peers_n; i++)
		free(ws->peers[i].path);
	free(ws->peers);
	free(ws->settled);
	kit_known_done(&ws->known);
	mr_names_done(&ws->dirty);
	free(ws->reply_path);
	free(ws->yard);
	free(ws->own);
	free(ws);
	room->state = NULL;
}

static const char *
yard_path(const struct workspace *ws)
{
	return ws->yard[0] ? ws->yard : "/";
}

enum mr_rc
workspace_flush(struct mr_room *room, struct mr_error *err)
{
	return kit_flush(&workspace_of(room)->dirty, err);
}

enum mr_rc
workspace_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(buf_done) struct buf path = BUF_INIT;

	TRY(box_open(&box, workspace_of(room), agent, BOX_MAKE_OWN, err));
	buf_addf(&path, "%s/.mailbox/inbox", box.path);
	return buf_ok(&path) ? kit_watch(buf_z(&path), NULL, ret_watch, err) : mr_nomem(err);
}

static enum mr_rc
workspace_expect_answer(struct mr_room *room, const char *folder, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	struct mr_str path = kit_trim_slashes(str_of(folder));

	free(ws->reply_path);
	ws->reply_path = strndup(path.ptr, path.len);
	return ws->reply_path ? MR_OK : mr_nomem(err);
}

/* ---- Names and places ---- */

bool
workspace_in_path(struct mr_str path, struct mr_str *ret)
{
	static const char inbox[] = "/.mailbox/inbox";
	const size_t len = sizeof inbox - 1;

	path = kit_trim_slashes(path);
	if (!str_ends(path, inbox)) {
		size_t name = kit_last_part(path).len;

		if (path.len <= name)
			return false;
		path.len -= name + 1;
	}
	if (!str_ends(path, inbox) || path.len == len || path.ptr[0] != '/')
		return false;
	*ret = (struct mr_str){ path.ptr, path.len - len };
	return ret->ptr[ret->len - 1] != '/';
}

void
workspace_address_in(struct mr_str path, char ret[MR_ADDRESS_MAX + 1])
{
	struct mr_str found;

	if (!workspace_in_path(path, &found) || foreign_to_address(kit_last_part(found), ret, IGNORED) != MR_OK)
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", CLIENT);
}

static const struct peer *
find_peer(const struct workspace *ws, const char *address)
{
	for (size_t i = 0; i < ws->peers_n; i++)
		if (strcmp(ws->peers[i].address, address) == 0)
			return &ws->peers[i];
	return NULL;
}

enum mr_rc
workspace_path(struct workspace *ws, const char *address, struct buf *ret, struct mr_error *err)
{
	const struct peer *peer = find_peer(ws, address);
	mr_auto(buf_done) struct buf name = BUF_INIT;

	if (ws->own && strcmp(address, ws->owner) == 0) {
		buf_adds(ret, ws->own);
		return MR_OK;
	}
	if (peer && peer->path[0]) {
		buf_adds(ret, peer->path);
		return MR_OK;
	}
	/* As a folder's name: no way out of the yard, no line of its own in a message. */
	foreign_from_address(address, &name);
	struct mr_str s = buf_str(&name);

	TRY(mr_got(buf_ok(&name), err));
	if (s.len == 0 || memchr(s.ptr, '/', s.len) || memo_value_problem(s) || str_eq(s, STR(".")) ||
	    str_eq(s, STR("..")))
		return mr_fail(err, MR_REFUSED,
		    "'%s' cannot be the name of a workspace's folder\n"
		    "a workspace is called like its folder: one name without a slash",
		    address);
	buf_addf(ret, "%s/%s", ws->yard, buf_z(&name));
	return MR_OK;
}

static bool
has_inbox(struct workspace *ws, const char *address)
{
	mr_auto(box_done) struct box box = BOX_INIT;

	return box_open(&box, ws, address, BOX_AS_IT_IS, IGNORED) == MR_OK;
}

/* The path is what a message says: an agent of that name in the yard stays the one that is meant, or any message could
 * draw its mail elsewhere. */
void
workspace_remember(struct workspace *ws, const char *address, struct mr_str path)
{
	size_t yard = strlen(ws->yard);
	bool in_yard =
	    path.len > 0 && path.len == yard + 1 + kit_last_part(path).len && memcmp(path.ptr, ws->yard, yard) == 0;

	if (find_peer(ws, address) || strcmp(address, ws->owner) == 0 || in_yard || has_inbox(ws, address))
		return;
	struct peer *grown = realloc(ws->peers, (ws->peers_n + 1) * sizeof *grown);

	if (!grown)
		return; /* then it is not found later, and that is said */
	ws->peers = grown;
	char *copy = strndup(path.len > 0 ? path.ptr : "", path.len);

	if (!copy)
		return;
	struct peer *peer = &ws->peers[ws->peers_n++];

	(void)snprintf(peer->address, sizeof peer->address, "%s", address);
	peer->path = copy;
}

/* "/srv/agents/lead", also with /.mailbox or /.mailbox/inbox behind it. */
static enum mr_rc
spell_path(struct workspace *ws, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(free_ptr) char *real = realpath(given, NULL);
	mr_auto(buf_done) struct buf here = BUF_INIT;
	struct mr_str path = real ? str_of(real) : STR(""), found;

	if (!real)
		return mr_fail(err, MR_REFUSED, "no folder '%s'\ngive the path of a workspace, or of its inbox", given);
	if (workspace_in_path(path, &found))
		path = found;
	else if (str_ends(path, "/.mailbox"))
		path.len -= strlen("/.mailbox");
	TRY(foreign_to_address(kit_last_part(path), ret, err));
	TRY(workspace_path(ws, ret, &here, err));
	if (str_eq(buf_str(&here), path))
		return MR_OK;
	if (find_peer(ws, ret) || has_inbox(ws, ret))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is also the name of '%s'\nuse the room workspace:PATH of a folder next to the one that you mean",
		    given, buf_z(&here));
	workspace_remember(ws, ret, path);
	return MR_OK;
}

enum mr_rc
workspace_spell(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(buf_done) struct buf folder = BUF_INIT;
	struct mr_str name = str_of(given);
	struct stat st;

	if (given[0] == '/' || str_starts(name, "./") || str_starts(name, "../"))
		return spell_path(ws, given, ret, err);
	if (strchr(given, '/'))
		return mr_fail(err, MR_REFUSED, "'%s' cannot be the name of a workspace's folder\nwrite a path as ./%s",
		    given, given);
	/* As mailroom shows it, unless a folder is really called "100%20". */
	buf_addf(&folder, "%s/%s", ws->yard, given);
	bool called_so = strchr(given, '%') && buf_ok(&folder) && sys_stat(AT_FDCWD, buf_z(&folder), &st) == 0;

	if (address_check(name, IGNORED) == MR_OK && !called_so)
		return address_normal(name, ret, err);
	return foreign_to_address(name, ret, err);
}

/* ---- Agents ---- */

static enum mr_rc
describe(const char *address, const struct box *box, struct mr_agent *ret, struct mr_error *err)
{
	struct mr_agent agent = kit_agent(address);
	struct arena *own = NULL;
	struct stat st;

	agent.worktree = arena_dup(&own, str_of(box->path ? box->path : ""));
	TRY(mr_got(agent.worktree, err));
	if (box->inbox_fd >= 0 && sys_stat_fd(box->inbox_fd, &st) == 0)
		agent.created_ms = kit_mtime_ns(&st) / 1000000;
	if (box->fd >= 0)
		agent.role = kit_note(box->fd, ".mailbox/" STAND_IN, &own);
	agent.own = own;
	*ret = agent;
	return MR_OK;
}

enum mr_rc
workspace_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box box = BOX_INIT;
	const struct peer *peer = find_peer(ws, name);

	if (box_open(&box, ws, name, BOX_AS_IT_IS, err) == MR_OK)
		return ret ? describe(name, &box, ret, err) : MR_OK;
	if (peer && !peer->path[0]) /* a client: it asked, so it can be answered */
		return ret ? describe(name, &BOX_INIT, ret, err) : MR_OK;
	return err->code;
}

/* The owner first; other folders of the yard count where they have an inbox. */
enum mr_rc
workspace_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(sys_close_fd) int fd = sys_open(AT_FDCWD, yard_path(ws), O_RDONLY | O_DIRECTORY, 0);
	mr_auto(mr_names_done) struct mr_names folders = { 0 };

	(void)names_only;
	if (fd < 0)
		return mr_fail_errno(err, "cannot open '%s'", ws->yard);
	TRY(dir_names(fd, &folders, err));
	for (size_t i = ws->own ? 0 : 1; i <= folders.n; i++) {
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		char address[MR_ADDRESS_MAX + 1];

		if (i > 0 && (foreign_to_address(str_of(folders.v[i - 1]), address, IGNORED) != MR_OK ||
				 strcmp(address, ws->owner) == 0))
			continue;
		if (workspace_find_agent(room, i == 0 ? ws->owner : address, &agent, IGNORED) == MR_OK &&
		    !fn(ctx, &agent))
			break;
	}
	return MR_OK;
}

/* The inbox decides who has the name. */
enum mr_rc
workspace_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	static const char *const below[] = { "inbox", NULL };
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = box_open(&box, ws, agent->name, BOX_AS_IT_IS, err);

	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	if (rc == MR_OK && box.inbox_fd >= 0)
		rc = MR_EXISTS;
	else if (agent->role && agent->role[0]) { /* it says from its first moment what it is for */
		TRY(workspace_path(ws, agent->name, &path, err));
		TRY(mr_got(buf_ok(&path), err));
		TRY(dir_make(AT_FDCWD, buf_z(&path), 0700, true, &fd, err));
		rc = dir_publish(fd, ".mailbox", 0700, STAND_IN, str_of(agent->role), below, err);
	} else {
		box_done(&box);
		rc = box_open(&box, ws, agent->name, BOX_MAKE_ANY, err);
	}
	return rc == MR_EXISTS ? mr_fail(err, MR_EXISTS, "cannot add agent '%s': it has an inbox already", agent->name)
			       : rc;
}

/* ---- One agent's folders ---- */

static enum mr_rc
open_folders(struct box *box, struct mr_error *err)
{
	struct mr_error missing = { 0 };

	box->fd = sys_open(AT_FDCWD, box->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (box->fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		return mr_fail_errno(err, "cannot open workspace '%s'", box->path);
	enum mr_rc rc = box->fd < 0 ? MR_NOTFOUND : dir_open(box->fd, ".mailbox/inbox", &box->inbox_fd, err);

	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND,
		    "no workspace of '%s' with an inbox here\n"
		    "'mailroom who' lists those there are; another one is named by its path",
		    box->address);
	if (rc == MR_OK && dir_open(box->fd, ".mailbox/scratch", &box->scratch_fd, &missing) == MR_REFUSED) {
		*err = missing;
		return missing.code;
	}
	return rc;
}

enum mr_rc
box_open(struct box *box, struct workspace *ws, const char *address, enum box_make make, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	bool own = ws->own && strcmp(address, ws->owner) == 0;

	*box = BOX_INIT;
	box->ws = ws;
	(void)snprintf(box->address, sizeof box->address, "%s", address);
	box->kit = (struct kit_box){ &workspace_reader, &ws->known, box->address };
	TRY(workspace_path(ws, address, &path, err));
	box->path = buf_take(&path);
	TRY(mr_got(box->path, err));
	enum mr_rc rc = open_folders(box, err);

	if (rc != MR_NOTFOUND)
		return rc;
	if (make != BOX_MAKE_ANY && !(own && make == BOX_MAKE_OWN))
		return own ? MR_OK : rc; /* the owner is there, with or without mail */
	/* Scratch first: a sender that sees the inbox may send at once. The workspace itself is made for other agents
	 * only. */
	sys_close_fd(&box->fd);
	box->fd = -1;
	if (dir_make(AT_FDCWD, box->path, 0700, true, &box->fd, err) != MR_OK)
		return mr_wrap(err, "cannot make the workspace of '%s'", box->address);
	if (dir_make(box->fd, ".mailbox/scratch", 0700, true, &box->scratch_fd, err) != MR_OK ||
	    dir_make(box->fd, ".mailbox/inbox", 0700, true, &box->inbox_fd, err) != MR_OK)
		return mr_wrap(err, "cannot make the mailbox of '%s'", box->address);
	return MR_OK;
}

enum mr_rc
box_need_scratch(struct box *box, struct mr_error *err)
{
	return box->scratch_fd >= 0 ? MR_OK : dir_make(box->fd, ".mailbox/scratch", 0700, true, &box->scratch_fd, err);
}

void
box_done(struct box *box)
{
	sys_close_fd(&box->fd);
	sys_close_fd(&box->inbox_fd);
	sys_close_fd(&box->scratch_fd);
	free(box->path);
	*box = BOX_INIT;
}

bool
box_scratch_named(const struct box *box, struct mr_str text)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s/.mailbox/scratch", box->path);
	return buf_ok(&path) && text.len > 0 && memmem(text.ptr, text.len, path.ptr, path.len) != NULL;
}

/* ---- The doctor ---- */

struct inspection {
	struct mr_room *room;
	struct findings f;
	struct mr_error *err;
	enum mr_rc rc;
};

/* .NAME.tmp-<hex> of a delivery, .mailroom-*.tmp of a carrier. */
static bool
is_leftover(const char *name)
{
	return name[0] == '.' && (str_starts(str_of(name), ".mailroom-") || strstr(name, ".tmp-"));
}

static bool
inspect_agent(void *ctx, const struct mr_agent *agent)
{
	struct inspection *x = ctx;
	mr_auto(box_done) struct box box = BOX_INIT;
	const struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_HEADERS, .trouble = kit_tell_trouble, .trouble_ctx = &x->f
	};

	x->rc = box_open(&box, workspace_of(x->room), agent->name, BOX_AS_IT_IS, x->err);
	for (int scratch = 0; scratch < 2 && x->rc == MR_OK; scratch++) {
		mr_auto(buf_done) struct buf path = BUF_INIT;
		int fd = scratch ? box.scratch_fd : box.inbox_fd;

		buf_addf(&path, "%s/.mailbox/%s", agent->name, scratch ? "scratch" : "inbox");
		if (fd >= 0)
			kit_leftovers(&x->f, fd, buf_z(&path), is_leftover);
	}
	if (x->rc == MR_OK)
		x->rc = workspace_scan(x->room, agent->name, &want, kit_pass_over, NULL, x->err);
	if (x->rc == MR_NOTFOUND) { /* it went while we look */
		x->rc = MR_OK;
		*x->err = (struct mr_error){ 0 };
	}
	return x->rc == MR_OK;
}

enum mr_rc
workspace_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct inspection x = { .room = room, .f = findings_begin(fix, fn, ctx), .err = err };
	mr_auto(sys_close_fd) int yard = sys_open(AT_FDCWD, yard_path(workspace_of(room)), O_RDONLY | O_DIRECTORY, 0);

	findings_keep_in_state(&x.f, room->state_dir);
	if (yard >= 0)
		findings_space(&x.f, yard);
	enum mr_rc rc = workspace_each_agent(room, false, inspect_agent, &x, err);

	if (rc == MR_OK)
		rc = x.rc;
	if (rc == MR_OK && x.f.told == 0)
		findings_say(
		    &x.f, &(struct mr_finding){ .severity = MR_FINE, .code = "mail" }, "every message can be read");
	findings_end(&x.f);
	return rc;
}

const struct room_driver room_workspace = {
	.kind = "workspace",
	.abilities = ROOM_READ_STATE | ROOM_THREADS | ROOM_SENT | ROOM_REPLY_PATHS | ROOM_RAW,
	.open = workspace_open,
	.close = workspace_close,
	.storage = kit_storage,
	.each_agent = workspace_each_agent,
	.find_agent = workspace_find_agent,
	.add_agent = workspace_add_agent,
	.spell = workspace_spell,
	.unsupported = workspace_unsupported,
	.deliver = workspace_deliver,
	.settle_ticket = workspace_settle_ticket,
	.scan = workspace_scan,
	.fetch = workspace_fetch,
	.mark = workspace_mark,
	.flush = workspace_flush,
	.watch = workspace_watch,
	.watch_wait = kit_watch_wait,
	.watch_close = kit_watch_close,
	.each_place = kit_each_place,
	.inspect = workspace_inspect,
	.face = &(
	    const struct room_face){ .expect_answer = workspace_expect_answer, .fetch_answer = workspace_fetch_answer },
};
