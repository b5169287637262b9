/* SPDX-License-Identifier: MIT */
/* stubs.c - what stands in for the slots that a driver leaves out, so that no caller asks whether a slot is there. */
#include "base/error.h"
#include "room/room.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

enum mr_rc
room_lacks(const struct mr_room *room, const char *what, struct mr_error *err)
{
	return mr_fail(err, MR_UNSUPPORTED, "a %s room has no %s", room->driver->kind, what);
}

struct room_box
room_box(const char *kind, const char *name)
{
	struct room_box box;

	(void)snprintf(box.z, sizeof(box.z), "%s:%s", kind, name);
	return box;
}

#define SLOT(name, params, args, missing, ...)                                                                         \
	static enum mr_rc missing_##name params                                                                        \
	{                                                                                                              \
		return missing;                                                                                        \
	}
#define SLOT_VOID(name, params, args, ...)                                                                             \
	static void missing_##name params                                                                              \
	{                                                                                                              \
	}
#define SLOT_VALUE(type, name, params, args, missing, ...)                                                             \
	static type missing_##name params                                                                              \
	{                                                                                                              \
		return missing;                                                                                        \
	}
#include "room/slots.h"

const struct room_driver room_missing = {
#define SLOT(slot, ...) .slot = missing_##slot,
#define SLOT_VOID(slot, ...) .slot = missing_##slot,
#define SLOT_VALUE(type, slot, ...) .slot = missing_##slot,
#include "room/slots.h"
};

void
room_fill(struct room_driver *ret, const struct room_driver *driver)
{
	*ret = *driver;
#define FILL(slot)                                                                                                     \
	if (!ret->slot)                                                                                                \
		ret->slot = room_missing.slot;
#define SLOT(slot, ...) FILL(slot)
#define SLOT_VOID(slot, ...) FILL(slot)
#define SLOT_VALUE(type, slot, ...) FILL(slot)
#include "room/slots.h"
}
