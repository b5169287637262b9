/* SPDX-License-Identifier: MIT */
/* room_fault.h - a driver around a driver that fails on plan, for tests of what stands on top of a room. */
#ifndef SUPPORT_ROOM_FAULT_H
#define SUPPORT_ROOM_FAULT_H

#include "room/room.h"

struct room_fault {
	unsigned long fail_at; /* the call to fail: 1 is the first; 0 none */
	bool for_good;         /* that call and all later ones */
	enum mr_rc code;
	unsigned long calls; /* counted here */
};
/* Call after open; close goes through. The plan is borrowed. */
void room_wrap_fault(struct mr_room *room, struct room_fault *plan);

#endif
