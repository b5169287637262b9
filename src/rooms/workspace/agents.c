/* SPDX-License-Identifier: MIT */
/* agents.c - names and places: an agent is a folder of the yard that has an inbox, or one that was named by its path.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/address.h"
#include "message/foreign.h"
#include "rooms/workspace/workspace.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define NOTE_MAX ((size_t)4 << 10)

/* ---- Places ---- */

static struct mr_str
last_part(struct mr_str path)
{
	size_t at = path.len;

	while (at > 0 && path.ptr[at - 1] != '/')
		at--;
	return (struct mr_str){ path.ptr + at, path.len - at };
}

bool
workspace_in_path(struct mr_str path, struct mr_str *ret)
{
	static const char inbox[] = "/.mailbox/inbox";
	const size_t len = sizeof inbox - 1;
	struct mr_str name = last_part(path);

	while (path.len > 1 && path.ptr[path.len - 1] == '/')
		path.len--;
	if (!str_ends(path, inbox)) {
		name = last_part(path);
		if (path.len <= name.len)
			return false;
		path.len -= name.len + 1;
	}
	if (!str_ends(path, inbox) || path.len == len || path.ptr[0] != '/')
		return false;
	*ret = (struct mr_str){ path.ptr, path.len - len };
	return last_part(*ret).len > 0;
}

void
workspace_address_in(struct mr_str path, char ret[MR_ADDRESS_MAX + 1])
{
	struct mr_error ignored = { 0 };
	struct mr_str found;

	if (!workspace_in_path(path, &found) || foreign_to_address(last_part(found), ret, &ignored) != MR_OK)
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", CLIENT);
}

const struct peer *
workspace_peer(const struct workspace *ws, const char *address)
{
	for (size_t i = 0; i < ws->peers_n; i++)
		if (strcmp(ws->peers[i].address, address) == 0)
			return &ws->peers[i];
	return NULL;
}

/* A name as an address has it, as a folder's name: no way out of the yard, no line of its own in a message. */
static enum mr_rc
folder_of(const char *address, struct buf *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	foreign_from_address(address, &name);
	struct mr_str s = buf_str(&name);

	if (!buf_ok(&name))
		return mr_nomem(err);
	if (s.len == 0 || memchr(s.ptr, '/', s.len) || memo_value_problem(s) || str_eq(s, STR(".")) ||
	    str_eq(s, STR("..")))
		return mr_fail(err, MR_REFUSED,
		    "'%s' cannot be the name of a workspace's folder\n"
		    "a workspace is called like its folder: one name without a slash",
		    address);
	buf_add(ret, s);
	return MR_OK;
}

enum mr_rc
workspace_path(struct workspace *ws, const char *address, struct buf *ret, struct mr_error *err)
{
	const struct peer *peer = workspace_peer(ws, address);

	if (ws->own && strcmp(address, ws->owner) == 0) {
		buf_adds(ret, ws->own);
		return MR_OK;
	}
	if (peer && peer->path[0]) {
		buf_adds(ret, peer->path);
		return MR_OK;
	}
	buf_addf(ret, "%s/", ws->yard);
	return folder_of(address, ret, err);
}

static bool
in_yard(const struct workspace *ws, struct mr_str path)
{
	struct mr_str name = last_part(path), yard = str_of(ws->yard);

	return path.len == yard.len + 1 + name.len && memcmp(path.ptr, yard.ptr, yard.len) == 0;
}

static bool
has_inbox(struct workspace *ws, const char *address)
{
	mr_auto(box_done) struct box box = BOX_INIT;
	struct mr_error ignored = { 0 };

	return box_open(&box, ws, address, BOX_AS_IT_IS, &ignored) == MR_OK;
}

/* The path is what a message says: whoever is called so in the yard stays the one who is meant, or any message could
 * draw his mail elsewhere. */
void
workspace_remember(struct workspace *ws, const char *address, struct mr_str path)
{
	if (workspace_peer(ws, address) || strcmp(address, ws->owner) == 0 || (path.len > 0 && in_yard(ws, path)) ||
	    has_inbox(ws, address))
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

/* ---- Spelling ---- */

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
	TRY(foreign_to_address(last_part(path), ret, err));
	TRY(workspace_path(ws, ret, &here, err));
	if (str_eq(buf_str(&here), path))
		return MR_OK;
	if (workspace_peer(ws, ret) || has_inbox(ws, ret))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is also the name of '%s'\nuse the room workspace:PATH of a folder next to the one that you mean",
		    given, buf_z(&here));
	workspace_remember(ws, ret, path);
	return MR_OK;
}

static bool
folder_exists(const struct workspace *ws, const char *name)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct stat st;

	buf_addf(&path, "%s/%s", ws->yard, name);
	return buf_ok(&path) && sys_stat(AT_FDCWD, buf_z(&path), &st) == 0;
}

enum mr_rc
workspace_spell(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	struct mr_str name = str_of(given);
	struct mr_error ignored = { 0 };

	if (given[0] == '/' || str_starts(name, "./") || str_starts(name, "../"))
		return spell_path(ws, given, ret, err);
	if (strchr(given, '/'))
		return mr_fail(err, MR_REFUSED, "'%s' cannot be the name of a workspace's folder\nwrite a path as ./%s",
		    given, given);
	/* As mailroom shows it, unless a folder is really called "100%20". */
	if (address_check(name, &ignored) == MR_OK && !(strchr(given, '%') && folder_exists(ws, given)))
		return address_normal(name, ret, err);
	return foreign_to_address(name, ret, err);
}

/* ---- Who is there ---- */

/* What it was made for, if a link made it. */
static const char *
note_of(const char *path, struct arena **own)
{
	mr_auto(buf_done) struct buf file = BUF_INIT, text = BUF_INIT;
	struct mr_error ignored = { 0 };

	buf_addf(&file, "%s/.mailbox/" WORKSPACE_NOTE, path);
	if (!path[0] || !buf_ok(&file) || file_read(AT_FDCWD, buf_z(&file), NOTE_MAX, &text, &ignored) != MR_OK)
		return "";
	const char *copy = arena_dup(own, buf_str(&text));

	return copy ? copy : "";
}

static enum mr_rc
describe(const char *address, const char *path, int fd, struct mr_agent *ret, struct mr_error *err)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct arena *own = NULL;
	struct stat st;

	(void)snprintf(agent.name, sizeof agent.name, "%s", address);
	agent.worktree = arena_dup(&own, str_of(path));
	agent.own = own;
	if (!agent.worktree)
		return mr_nomem(err);
	if (fd >= 0 && sys_stat_fd(fd, &st) == 0)
		agent.created_ms = mtime_of(&st) / 1000000;
	agent.role = note_of(path, &own);
	agent.own = own;
	*ret = agent;
	return MR_OK;
}

enum mr_rc
workspace_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box box = BOX_INIT;
	const struct peer *peer = workspace_peer(ws, name);

	if (box_open(&box, ws, name, BOX_AS_IT_IS, err) == MR_OK)
		return describe(name, box.path, box.inbox_fd, ret, err);
	if (peer && !peer->path[0]) /* a client: it asked, so it can be answered */
		return describe(name, "", -1, ret, err);
	return err->code;
}

struct yard_walk {
	struct mr_room *room;
	mr_agent_fn *fn;
	void *ctx;
	bool over;
};

static bool
show_agent(struct yard_walk *w, const char *address)
{
	struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };

	if (workspace_find_agent(w->room, address, &agent, &ignored) != MR_OK)
		return true; /* a folder like any other */
	w->over = !w->fn(w->ctx, &agent);
	mr_agent_done(&agent);
	return !w->over;
}

static bool
visit_folder(void *ctx, const struct dir_entry *entry)
{
	struct yard_walk *w = ctx;
	const struct workspace *ws = workspace_of(w->room);
	char address[MR_ADDRESS_MAX + 1];
	struct mr_error ignored = { 0 };

	if (foreign_to_address(str_of(entry->name), address, &ignored) != MR_OK || strcmp(address, ws->owner) == 0)
		return true;
	return show_agent(w, address);
}

enum mr_rc
workspace_each_agent(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	struct yard_walk w = { .room = room, .fn = fn, .ctx = ctx };
	mr_auto(sys_close_fd) int fd = sys_open(AT_FDCWD, ws->yard[0] ? ws->yard : "/", O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return mr_fail_errno(err, "cannot open '%s'", ws->yard);
	if (ws->own && !show_agent(&w, ws->owner))
		return MR_OK;
	return dir_each(fd, visit_folder, &w, err);
}

/* The one who makes the inbox has the name. */
enum mr_rc
workspace_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err)
{
	struct workspace *ws = workspace_of(room);
	mr_auto(box_done) struct box box = BOX_INIT;
	struct mr_error first = { 0 };
	enum mr_rc rc = box_open(&box, ws, agent->name, BOX_AS_IT_IS, &first);

	if (rc == MR_OK && box.inbox_fd >= 0)
		return mr_fail(err, MR_EXISTS, "cannot add agent '%s': it has an inbox already", agent->name);
	if (rc != MR_OK && rc != MR_NOTFOUND) {
		*err = first;
		return rc;
	}
	box_done(&box);
	if (agent->role && agent->role[0])
		rc = box_publish(ws, agent->name, str_of(agent->role), err);
	else
		rc = box_open(&box, ws, agent->name, BOX_MAKE_ANY, err);
	return rc == MR_EXISTS ? mr_fail(err, MR_EXISTS, "cannot add agent '%s': it has an inbox already", agent->name)
			       : rc;
}
