/* SPDX-License-Identifier: MIT */
/*
 * workspace.c - the driver of kind 'workspace': the mailboxes of the workspace mailbox skill. What WHERE is:
 *
 *	it has .mailbox                        one agent's workspace; the yard is the folder above
 *	else it is empty, or a folder in it
 *	has .mailbox                           the yard itself, nobody's own
 *	else                                   a workspace to be: .mailbox is made when it is first needed
 */
#include "base/error.h"
#include "base/storage.h"
#include "base/sys.h"
#include "message/foreign.h"
#include "room/places.h"
#include "rooms/workspace/workspace.h"
#include <fcntl.h>
#include <stdlib.h>

struct contents {
	int fd;
	bool any, mailboxes;
};

static bool
look_into(void *ctx, const struct dir_entry *entry)
{
	struct contents *c = ctx;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;

	c->any = true;
	buf_addf(&path, "%s/.mailbox", entry->name);
	fd = sys_open(c->fd, buf_z(&path), O_RDONLY | O_DIRECTORY, 0);
	c->mailboxes = fd >= 0;
	return !c->mailboxes;
}

static enum mr_rc
is_yard(int fd, bool *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int own = sys_open(fd, ".mailbox", O_RDONLY | O_DIRECTORY, 0);
	struct contents c = { .fd = fd };

	if (own < 0 && dir_each(fd, look_into, &c, err) != MR_OK)
		return err->code;
	*ret = own < 0 && (!c.any || c.mailboxes);
	return MR_OK;
}

/* The folder above, and the owner's name, of a workspace. */
static enum mr_rc
know_owner(struct workspace *ws, struct mr_error *err)
{
	const char *slash = strrchr(ws->yard, '/');

	if (!slash || !slash[1])
		return mr_fail(err, MR_REFUSED, "the root folder is no workspace");
	TRY(foreign_to_address(str_of(slash + 1), ws->owner, err));
	ws->own = ws->yard;
	ws->yard = strndup(ws->own, (size_t)(slash - ws->yard));
	return ws->yard ? MR_OK : mr_nomem(err);
}

static enum mr_rc
name_room(struct mr_room *room, const char *path, struct mr_error *err)
{
	char name[MR_ADDRESS_MAX + 1] = "workspaces";
	const char *slash = strrchr(path, '/');
	struct buf spec = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (slash && slash[1])
		(void)foreign_to_address(str_of(slash + 1), name, &ignored);
	buf_addf(&spec, "workspace:%s", path);
	char *whole = buf_take(&spec);

	room->name = strdup(name);
	if (!room->name || !whole) {
		free(whole);
		return mr_nomem(err);
	}
	free(room->spec);
	room->spec = whole;
	return MR_OK;
}

static enum mr_rc
workspace_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct workspace *ws = calloc(1, sizeof *ws);
	mr_auto(sys_close_fd) int fd = -1;
	bool yard = false;

	room->state = ws;
	if (!ws)
		return mr_nomem(err);
	ws->busy_ms = WORKSPACE_BUSY_MS;
	ws->yard = where[0] == '/' ? realpath(where, NULL) : NULL;
	fd = ws->yard ? sys_open(AT_FDCWD, ws->yard, O_RDONLY | O_DIRECTORY, 0) : -1;
	if (fd < 0)
		return mr_fail(err, MR_NOTFOUND,
		    "no workspace in '%s': no such folder\n"
		    "give the absolute path of an agent's working folder, or of the folder above several",
		    where);
	if (memo_value_problem(str_of(ws->yard)))
		return mr_fail(err, MR_REFUSED, "the path of this workspace %s", memo_value_problem(str_of(ws->yard)));
	TRY(is_yard(fd, &yard, err));
	TRY(name_room(room, ws->yard, err));
	if (!yard)
		return know_owner(ws, err);
	if (strcmp(ws->yard, "/") == 0)
		ws->yard[0] = '\0';
	return MR_OK;
}

static void
workspace_close(struct mr_room *room)
{
	struct workspace *ws = workspace_of(room);

	if (!ws)
		return;
	for (size_t i = 0; i < ws->peers_n; i++)
		free(ws->peers[i].path);
	free(ws->peers);
	free(ws->settled);
	known_done(&ws->known);
	mr_names_done(&ws->dirty);
	free(ws->yard);
	free(ws->own);
	free(ws);
	room->state = NULL;
}

static const char *
workspace_owner(struct mr_room *room)
{
	const struct workspace *ws = workspace_of(room);

	return ws->owner[0] ? ws->owner : NULL;
}

static enum mr_rc
workspace_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	const struct workspace *ws = workspace_of(room);

	if (ws->own)
		return storage_of_path(ws->own, ret, err);
	return storage_of_path(ws->yard[0] ? ws->yard : "/", ret, err);
}

const struct room_driver room_workspace = {
	.kind = "workspace",
	.abilities = ROOM_READ_STATE | ROOM_THREADS | ROOM_SENT | ROOM_REPLY_PATHS,
	.open = workspace_open,
	.close = workspace_close,
	.storage = workspace_storage,
	.each_agent = workspace_each_agent,
	.find_agent = workspace_find_agent,
	.add_agent = workspace_add_agent,
	.spell = workspace_spell,
	.owner = workspace_owner,
	.lacks = workspace_lacks,
	.deliver = workspace_deliver,
	.settle_ticket = workspace_settle_ticket,
	.fetch_answer = workspace_fetch_answer,
	.scan = workspace_scan,
	.fetch = workspace_fetch,
	.fetch_raw = workspace_fetch_raw,
	.mark = workspace_mark,
	.flush = workspace_flush,
	.watch = workspace_watch,
	.watch_wait = workspace_watch_wait,
	.watch_close = workspace_watch_close,
	.each_place = room_search_places,
	.inspect = workspace_inspect,
};
