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
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define STAND_IN ".mailroom-stand-in" /* in a .mailbox that was made for an agent of another room: its role */

/* ---- Opening ---- */

enum mr_rc
workspace_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	mr_auto(free_ptr) char *real = where[0] == '/' ? realpath(where, NULL) : NULL;
	mr_auto(sys_close_fd) int fd = real ? sys_open(AT_FDCWD, real, O_RDONLY | O_DIRECTORY, 0) : -1;
	bool yard = false;

	if (fd < 0)
		return mr_fail(err, MR_NOTFOUND,
		    "no workspace in '%s': no such folder\n"
		    "give the absolute path of an agent's working folder, or of the folder above several",
		    where);
	struct mr_str path = str_of(real), last = kit_last_part(path);

	if (memo_value_problem(path))
		return mr_fail(err, MR_REFUSED, "the path of this workspace %s", memo_value_problem(path));
	/* A folder without .mailbox is a yard if it is empty, or a folder in it has one. */
	mr_auto(sys_close_fd) int own_fd = sys_open(fd, ".mailbox", O_RDONLY | O_DIRECTORY, 0);
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_error doubt = { 0 };

	/* A look that fails proves nothing: a yard taken for a workspace would get the mail of its workspaces. */
	if (own_fd < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
		return mr_fail_errno(err, "cannot look at '%s/.mailbox'", real);
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
			(void)mr_fail_errno(&doubt, "cannot look at '%s/%s'", real, buf_z(&below));
			(void)mr_hint(&doubt, "if '%s' is itself a workspace, make the folder .mailbox in it", real);
		}
	}
	if (!yard && doubt.code != MR_OK) {
		*err = doubt;
		return err->code;
	}
	TRY(kit_open(room, sizeof(struct workspace), &workspace_format, path, err));
	TRY(kit_set_name(room, last, "workspaces", err));
	struct workspace *ws = workspace_of(room);

	ws->busy_ms = WORKSPACE_BUSY_MS;
	if (!yard && last.len == 0)
		return mr_fail(err, MR_REFUSED, "the root folder is not a workspace");
	if (!yard)
		TRY(foreign_to_address(last, ws->owner, err));
	room->owner = yard ? NULL : ws->owner;
	ws->yard = strndup(path.ptr, last.len == 0 ? 0 : yard ? path.len : path.len - last.len - 1);
	return mr_got(ws->yard, err);
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
	free(ws->reply_path);
	free(ws->yard);
	kit_close(room);
}

static enum mr_rc
workspace_expect_answer(struct mr_room *room, const char *folder, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	struct mr_str path = kit_trim_slashes(str_of(folder));

	free(ws->reply_path);
	ws->reply_path = strndup(path.ptr, path.len);
	return mr_got(ws->reply_path, err);
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

	if ((ws->owner[0] && strcmp(address, ws->owner) == 0) || (peer && peer->path[0])) {
		buf_adds(ret, peer && peer->path[0] ? peer->path : ws->kit.path);
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
has_inbox(struct mr_room *room, const char *address)
{
	mr_auto(kit_box_close) struct kit_box *box = NULL;

	return kit_box_open(room, address, BOX_AS_IT_IS, &box, IGNORED) == MR_OK;
}

/* The path is what a message says: an agent of that name in the yard has precedence, or any message could
 * draw its mail elsewhere. */
void
workspace_remember(struct mr_room *room, const char *address, struct mr_str path)
{
	struct workspace *ws = workspace_of(room);
	size_t yard = strlen(ws->yard);
	bool in_yard =
	    path.len > 0 && path.len == yard + 1 + kit_last_part(path).len && memcmp(path.ptr, ws->yard, yard) == 0;

	if (find_peer(ws, address) || strcmp(address, ws->owner) == 0 || in_yard || has_inbox(room, address))
		return;
	struct peer peer = { .path = strndup(path.len > 0 ? path.ptr : "", path.len) };

	/* Without memory it is not found later, and that is said. */
	if (!peer.path || !array_grow(&ws->peers, ws->peers_n, &ws->peers_cap, sizeof peer)) {
		free(peer.path);
		return;
	}
	(void)snprintf(peer.address, sizeof peer.address, "%s", address);
	ws->peers[ws->peers_n++] = peer;
}

/* "/srv/agents/lead", also with /.mailbox or /.mailbox/inbox behind it. */
static enum mr_rc
spell_path(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
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
	if (find_peer(ws, ret) || has_inbox(room, ret))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is also the name of '%s'\nuse the room workspace:PATH of a folder next to the one that you mean",
		    given, buf_z(&here));
	workspace_remember(room, ret, path);
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
		return spell_path(room, given, ret, err);
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

enum mr_rc
workspace_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	mr_auto(kit_box_close) struct kit_box *box = NULL;
	const struct peer *peer = find_peer(workspace_of(room), name);
	enum mr_rc rc = kit_box_open(room, name, BOX_AS_IT_IS, &box, err);
	struct arena *own = NULL;
	struct stat st;

	if (rc != MR_OK && peer && !peer->path[0]) /* a client: it asked, so it can be answered */
		kit_box_close(&box);
	else if (rc != MR_OK)
		return rc;
	if (!ret)
		return MR_OK;
	*ret = kit_agent(name);
	if (!box)
		return MR_OK;
	ret->worktree = arena_dup(&own, str_of(box_of(box)->path));
	if (box->inbox_fd >= 0 && sys_stat_fd(box->inbox_fd, &st) == 0)
		ret->created_ms = kit_mtime_ns(&st) / 1000000;
	if (box_of(box)->fd >= 0)
		ret->role = kit_note(box_of(box)->fd, ".mailbox/" STAND_IN, &own);
	ret->own = own;
	return mr_got(ret->worktree, err);
}

/* The owner first; other folders of the yard count where they have an inbox. */
enum mr_rc
workspace_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	const struct workspace *ws = workspace_of(room);
	mr_auto(sys_close_fd) int fd = sys_open(AT_FDCWD, ws->yard[0] ? ws->yard : "/", O_RDONLY | O_DIRECTORY, 0);
	mr_auto(mr_names_done) struct mr_names folders = { 0 };

	(void)names_only;
	if (fd < 0)
		return mr_fail_errno(err, "cannot open '%s'", ws->yard);
	TRY(dir_names(fd, &folders, err));
	for (size_t i = ws->owner[0] ? 0 : 1; i <= folders.n; i++) {
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
	mr_auto(kit_box_close) struct kit_box *box = NULL;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = kit_box_open(room, agent->name, BOX_AS_IT_IS, &box, err);

	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	if (rc == MR_OK && box->inbox_fd >= 0)
		rc = MR_EXISTS;
	else if (agent->role && agent->role[0]) { /* it says from its first moment what it is for */
		TRY(workspace_path(workspace_of(room), agent->name, &path, err));
		TRY(mr_got(buf_ok(&path), err));
		TRY(dir_make(AT_FDCWD, buf_z(&path), 0700, true, &fd, err));
		rc = dir_publish(fd, ".mailbox", 0700, STAND_IN, str_of(agent->role), below, err);
	} else {
		kit_box_close(&box);
		rc = kit_box_open(room, agent->name, BOX_MAKE_ANY, &box, err);
	}
	return rc == MR_EXISTS ? mr_fail(err, MR_EXISTS, "cannot add agent '%s': it already has an inbox", agent->name)
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
	enum mr_rc rc = box->fd < 0 ? MR_NOTFOUND : dir_open(box->fd, ".mailbox/inbox", &box->kit.inbox_fd, err);

	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND,
		    "no workspace of '%s' with an inbox here\n"
		    "'mailroom who' lists those there are; another one is named by its path",
		    box->kit.agent);
	if (rc == MR_OK && dir_open(box->fd, ".mailbox/scratch", &box->kit.other_fd, &missing) == MR_REFUSED) {
		*err = missing;
		return missing.code;
	}
	return rc;
}

enum mr_rc
box_open(struct kit_box *kit, struct mr_error *err)
{
	struct workspace *ws = workspace_of(kit->room);
	struct box *box = box_of(kit);
	mr_auto(buf_done) struct buf path = BUF_INIT;
	bool own = ws->owner[0] && strcmp(kit->agent, ws->owner) == 0; /* a yard has no owner */

	box->fd = -1;
	TRY(workspace_path(ws, kit->agent, &path, err));
	box->path = buf_take(&path);
	TRY(mr_got(box->path, err));
	enum mr_rc rc = open_folders(box, err);

	if (rc != MR_NOTFOUND)
		return rc;
	if (kit->how != BOX_MAKE_ANY && !(own && kit->how == BOX_MAKE_OWN))
		return own ? MR_OK : rc; /* the owner is there, with or without mail */
	/* Scratch first: a sender that sees the inbox may send at once. The workspace itself is made for other agents
	 * only. */
	sys_close_fd(&box->fd);
	box->fd = -1;
	if (dir_make(AT_FDCWD, box->path, 0700, true, &box->fd, err) != MR_OK)
		return mr_wrap(err, "cannot make the workspace of '%s'", kit->agent);
	if (dir_make(box->fd, ".mailbox/scratch", 0700, true, &kit->other_fd, err) != MR_OK ||
	    dir_make(box->fd, ".mailbox/inbox", 0700, true, &kit->inbox_fd, err) != MR_OK)
		return mr_wrap(err, "cannot make the mailbox of '%s'", kit->agent);
	return MR_OK;
}

void
box_close(struct kit_box *kit)
{
	sys_close_fd(&box_of(kit)->fd);
	free(box_of(kit)->path);
}

enum mr_rc
box_need_scratch(struct kit_box *kit, struct mr_error *err)
{
	return kit->other_fd >= 0 ? MR_OK
				  : dir_make(box_of(kit)->fd, ".mailbox/scratch", 0700, true, &kit->other_fd, err);
}

void
box_path(struct kit_box *kit, enum mr_folder folder, struct buf *out)
{
	buf_addf(out, "%s/.mailbox/%s", box_of(kit)->path, folder == MR_INBOX ? "inbox" : "scratch");
}

bool
box_scratch_named(struct kit_box *kit, struct mr_str text)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	box_path(kit, MR_ARCHIVE, &path);
	return buf_ok(&path) && text.len > 0 && memmem(text.ptr, text.len, path.ptr, path.len) != NULL;
}

const struct room_driver room_workspace = {
	.kind = "workspace",
	.abilities = ROOM_READ_STATE | ROOM_THREADS | ROOM_SENT | ROOM_REPLY_PATHS | ROOM_RAW | ROOM_PLAIN_NAMES,
	.open = workspace_open,
	.close = workspace_close,
	.storage = kit_storage,
	.each_agent = workspace_each_agent,
	.find_agent = workspace_find_agent,
	.add_agent = workspace_add_agent,
	.spell = workspace_spell,
	.unsupported = workspace_unsupported,
	.deliver = workspace_deliver,
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
	.face = &(
	    const struct room_face){ .expect_answer = workspace_expect_answer, .fetch_answer = workspace_fetch_answer },
};
