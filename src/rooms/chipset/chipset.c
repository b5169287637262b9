/* SPDX-License-Identifier: MIT */
/* chipset.c - the driver of kind 'chipset': the mail folders of the mail-async skill. */
#include "base/error.h"
#include "room/room.h"

static enum mr_rc
chipset_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	(void)room;
	return mr_fail(err, MR_UNSUPPORTED, "cannot open '%s' yet", where);
}

static void
chipset_close(struct mr_room *room)
{
	free(room->state);
}

const struct room_driver room_chipset = {
	.kind = "chipset",
	.open = chipset_open,
	.close = chipset_close,
};
