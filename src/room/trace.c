/* SPDX-License-Identifier: MIT */
/*
 * trace.c - a wrapper around a driver that reports each call and its result in one line:
 *
 *	deliver 01k9w3b7zq8m4c2v6t1x5n0prs from 'alice' to 3: ok 812us
 *	fetch 'bob' 01k9w3b7zq8m4c2v6t1x5n0prs: not-found 40us: no message '01k9...'
 *
 * Bodies, subjects and record texts are never shown, because users paste traces into bug reports.
 * A call that waited for a lock says how long: "... 20311us, 20104 of them for locks".
 *
 * A wrapped room's table is a copy of the inner one in which the slots that the driver has are replaced.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "room/room.h"
#include <stdarg.h>

static void say(struct mr_room *room, int64_t start_ns, enum mr_rc rc, const struct mr_error *err, const char *fmt, ...)
    MR_PRINTF(5, 6);

static void
say(struct mr_room *room, int64_t start_ns, enum mr_rc rc, const struct mr_error *err, const char *fmt, ...)
{
	int64_t took_us = (clock_now_ns() - start_ns) / 1000, locks_us = lock_waited_us();
	char what[500];
	char line[900], waited[48] = "";
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(what, sizeof what, fmt, args);
	va_end(args);
	bool failed = rc != MR_OK && err && err->message[0] != '\0';

	if (locks_us > 0)
		(void)snprintf(waited, sizeof waited, ", %lld of them for locks", (long long)locks_us);
	(void)snprintf(line, sizeof line, "%s: %s %lldus%s%s%s", what, mr_rc_word(rc),
	    (long long)(took_us > 0 ? took_us : 0), waited, failed ? ": " : "", failed ? err->message : "");
	room->trace(room->trace_ctx, line);
}

static const char *
folder_word(enum mr_folder folder)
{
	static const char *const words[] = {
		[MR_INBOX] = "inbox",
		[MR_HELD] = "held",
		[MR_ARCHIVE] = "archive",
		[MR_SENT] = "sent",
		[MR_DEAD] = "dead",
	};

	return words[folder];
}

static const char *
settle_word(enum settle how)
{
	static const char *const words[] = {
		[SETTLE_BACK] = "back",
		[SETTLE_LATER] = "later",
		[SETTLE_SEEN] = "seen",
		[SETTLE_ARCHIVE] = "archive",
		[SETTLE_DONE] = "done",
		[SETTLE_DEAD] = "dead",
	};

	return words[how];
}

static const char *
depth_word(enum scan_depth depth)
{
	static const char *const words[] = { "names", "headers", "bodies", "raw" };

	return words[depth];
}

#define SLOT(slot, params, args, missing, ...)                                                                         \
	static enum mr_rc traced_##slot params                                                                         \
	{                                                                                                              \
		int64_t start_ns = clock_now_ns();                                                                     \
		enum mr_rc rc = room->inner->slot args;                                                                \
                                                                                                                       \
		say(room, start_ns, rc, err, __VA_ARGS__);                                                             \
		return rc;                                                                                             \
	}
#define SLOT_VOID(slot, params, args, ...)                                                                             \
	static void traced_##slot params                                                                               \
	{                                                                                                              \
		int64_t start_ns = clock_now_ns();                                                                     \
                                                                                                                       \
		room->inner->slot args;                                                                                \
		say(room, start_ns, MR_OK, NULL, __VA_ARGS__);                                                         \
	}
#define SLOT_VALUE(type, slot, params, args, missing, ...)                                                             \
	static type traced_##slot params                                                                               \
	{                                                                                                              \
		int64_t start_ns = clock_now_ns();                                                                     \
		type value = room->inner->slot args;                                                                   \
                                                                                                                       \
		say(room, start_ns, MR_OK, NULL, __VA_ARGS__);                                                         \
		return value;                                                                                          \
	}
#include "room/slots.h"

void
room_wrap_trace(struct mr_room *room)
{
	struct room_driver *table = malloc(sizeof *table);

	if (!table || !room->trace || room->wrap_state) {
		free(table); /* no listener or no memory: the room works without a trace */
		return;
	}
	*table = *room->driver;
#define WRAP(slot)                                                                                                     \
	if (ROOM_HAS(room, slot))                                                                                      \
		table->slot = traced_##slot;
#define SLOT(slot, ...) WRAP(slot)
#define SLOT_VOID(slot, ...) WRAP(slot)
#define SLOT_VALUE(type, slot, ...) WRAP(slot)
#include "room/slots.h"
	room->inner = room->driver;
	room->wrap_state = table;
	room->driver = table;
}
