/* SPDX-License-Identifier: MIT */
/* teams.c - the driver of kind 'teams': inbox files of Claude Code agent teams. */
#include "base/error.h"
#include "room/room.h"

static enum mr_rc
teams_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	(void)room;
	return mr_fail(err, MR_UNSUPPORTED, "cannot open '%s' yet", where);
}

static void
teams_close(struct mr_room *room)
{
	free(room->state);
}

const struct room_driver room_teams = {
	.kind = "teams",
	.open = teams_open,
	.close = teams_close,
};
