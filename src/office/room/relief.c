/* SPDX-License-Identifier: MIT */
/*
 * relief.c - a way out of a full disk. What empties a mailbox (showing, claiming, settling, marking, archiving,
 * purging) runs between relief_begin and relief_end: there a call that finds no space is tried again after the room
 * gave back a part of its reserve. What fills mailboxes runs outside, and is refused whole.
 */
#include "office/office.h"

static bool
free_some(void *ctx)
{
	struct mr_room *room = ctx;

	return room->driver->spend_reserve(room);
}

void
relief_begin(struct relief *r, struct mr_room *room)
{
	*r = (struct relief){ .how = { .free_some = free_some, .ctx = room } };
	r->before = sys_relief_set(ROOM_HAS(room, spend_reserve) ? &r->how : NULL);
}

void
relief_end(struct relief *r)
{
	if (r->how.ctx)
		(void)sys_relief_set(r->before);
}
