/* SPDX-License-Identifier: MIT */
/* handoff.c - the driver of kind 'handoff': the mailboxes of the mailbox skill. */
#include "base/error.h"
#include "room/room.h"

static enum mr_rc
handoff_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	(void)room;
	return mr_fail(err, MR_UNSUPPORTED, "cannot open '%s' yet", where);
}

static void
handoff_close(struct mr_room *room)
{
	free(room->state);
}

const struct room_driver room_handoff = {
	.kind = "handoff",
	.open = handoff_open,
	.close = handoff_close,
};
