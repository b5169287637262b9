/* SPDX-License-Identifier: MIT */
/* workspace.c - the driver of kind 'workspace': the mailboxes of the workspace mailbox skill. */
#include "base/error.h"
#include "room/room.h"

static enum mr_rc
workspace_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	(void)room;
	return mr_fail(err, MR_UNSUPPORTED, "cannot open '%s' yet", where);
}

static void
workspace_close(struct mr_room *room)
{
	free(room->state);
}

const struct room_driver room_workspace = {
	.kind = "workspace",
	.open = workspace_open,
	.close = workspace_close,
};
