/* SPDX-License-Identifier: MIT */
/*
 * room_fault.c - a driver around a driver that fails on plan, for tests of what stands on top of a room.
 *
 * Each call of a slot that can fail counts; the planned one returns plan->code without reaching the
 * inner driver. A wrapped room's table is a copy of the inner one with those slots replaced, so a
 * slot that is NULL stays NULL and one that cannot fail goes straight through.
 */
#include "base/error.h"
#include "support/room_fault.h"

struct faulty { /* room->wrap_state */
	struct room_driver table;
	struct room_fault *plan;
};

static bool
strikes(struct mr_room *room, struct mr_error *err)
{
	struct faulty *faulty = room->wrap_state;
	struct room_fault *plan = faulty->plan;

	plan->calls++;
	if (plan->fail_at == 0 || plan->calls < plan->fail_at || (plan->calls > plan->fail_at && !plan->for_good))
		return false;
	(void)mr_fail(err, plan->code, "call %lu of the room failed on plan", plan->calls);
	return true;
}

#define SLOT(slot, params, args, missing, ...)                                                                         \
	static enum mr_rc faulty_##slot params                                                                         \
	{                                                                                                              \
		if (strikes(room, err))                                                                                \
			return err->code;                                                                              \
		return room->inner->slot args;                                                                         \
	}
#define SLOT_VOID(...)
#define SLOT_VALUE(...)
#include "room/slots.h"

void
room_wrap_fault(struct mr_room *room, struct room_fault *plan)
{
	struct faulty *faulty = malloc(sizeof *faulty);

	if (!faulty || room->wrap_state)
		abort(); /* a test that injects nothing would pass: never go on without the wrapper */
	faulty->table = *room->driver;
	faulty->plan = plan;
#define SLOT(slot, ...)                                                                                                \
	if (ROOM_HAS(room, slot))                                                                                      \
		faulty->table.slot = faulty_##slot;
#define SLOT_VOID(...)
#define SLOT_VALUE(...)
#include "room/slots.h"
	room->inner = room->driver;
	room->wrap_state = faulty;
	room->driver = &faulty->table;
}
