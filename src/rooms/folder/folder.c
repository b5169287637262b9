/* SPDX-License-Identifier: MIT */
/*
 * folder.c - a plain Maildir of some other program, to be read only: for imports. It is one agent's, who has no name in
 * it; what he is called here is the name of the folder. Subfolders .Archive* are his archive, other ones are left
 * alone. Nothing is moved from new/ to cur/, nothing is marked, nothing is locked.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/foreign.h"
#include "rooms/folder/folder.h"
#include <fcntl.h>

static bool
has(int fd, const char *name, mode_t kind)
{
	struct stat st;

	return sys_stat(fd, name, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

static enum mr_rc
name_it(struct mr_room *room, struct folder *f, const char *where, struct mr_error *err)
{
	size_t len = strlen(where);
	struct mr_error ignored = { 0 };

	while (len > 1 && where[len - 1] == '/')
		len--;
	const char *slash = memrchr(where, '/', len);
	struct mr_str base =
	    slash ? (struct mr_str){ slash + 1, (size_t)(where + len - slash - 1) } : (struct mr_str){ where, len };

	if (foreign_to_address(base, f->owner, &ignored) != MR_OK)
		(void)snprintf(f->owner, sizeof(f->owner), "mail");
	room->name = strdup(f->owner);
	return room->name ? MR_OK : mr_nomem(err);
}

static enum mr_rc
folder_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct folder *f = calloc(1, sizeof(*f));

	if (!f)
		return mr_nomem(err);
	room->state = f;
	f->fd = sys_open(AT_FDCWD, where, O_RDONLY | O_DIRECTORY, 0);
	if (f->fd < 0)
		return mr_fail_errno(err, "cannot open the folder '%s'", where);
	if (!has(f->fd, "cur", S_IFDIR) || !has(f->fd, "new", S_IFDIR))
		return mr_fail(err, MR_NOTFOUND,
		    "'%s' is no Maildir: it has no folders cur and new\ngive the folder that has cur, new and tmp in it",
		    where);
	if (has(f->fd, "agent", S_IFREG))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is an agent's mailbox of a room\nname the room that it is in, and the agent", where);
	return name_it(room, f, where, err);
}

static void
folder_close(struct mr_room *room)
{
	struct folder *f = room->state;

	if (f)
		sys_close_fd(&f->fd);
	free(f);
}

static const char *
folder_owner(struct mr_room *room)
{
	return folder_of(room)->owner;
}

static enum mr_rc
folder_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err)
{
	struct folder *f = folder_of(room);

	if (strcmp(name, f->owner) != 0)
		return mr_fail(err, MR_NOTFOUND, "'%s' has no mailbox here: all mail is of '%s'", name, f->owner);
	if (!ret)
		return MR_OK;
	*ret = (struct mr_agent){ .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	memcpy(ret->name, f->owner, sizeof(ret->name));
	return MR_OK;
}

static enum mr_rc
folder_each_agent(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err)
{
	struct mr_agent agent;
	enum mr_rc rc = folder_find_agent(room, folder_of(room)->owner, &agent, err);

	if (rc == MR_OK)
		(void)fn(ctx, &agent);
	return rc;
}

static enum mr_rc
folder_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	(void)what;
	(void)ret;
	return mr_fail(err, MR_UNSUPPORTED,
	    "'%s' is a folder of another program: it is only read\n"
	    "copy its mail into a room: mailroom import --from folder:PATH --agent NAME",
	    room->name);
}

const struct room_driver room_folder = {
	.kind = "folder",
	.abilities = ROOM_ARCHIVE | ROOM_THREADS | ROOM_PRIORITIES | ROOM_TYPES,
	.open = folder_open,
	.close = folder_close,
	.owner = folder_owner,
	.each_agent = folder_each_agent,
	.find_agent = folder_find_agent,
	.deliver = folder_deliver,
	.scan = folder_scan,
	.fetch = folder_fetch,
};
