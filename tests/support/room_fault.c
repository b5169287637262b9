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

#define FAULTY(slot, params, args)                                                                                     \
	static enum mr_rc faulty_##slot params                                                                         \
	{                                                                                                              \
		if (strikes(room, err))                                                                                \
			return err->code;                                                                              \
		return room->inner->slot args;                                                                         \
	}

FAULTY(make, (struct mr_room * room, struct mr_error *err), (room, err))
FAULTY(recover, (struct mr_room * room, struct mr_error *err), (room, err))
FAULTY(storage, (struct mr_room * room, struct mr_storage *ret, struct mr_error *err), (room, ret, err))
FAULTY(each_agent, (struct mr_room * room, mr_agent_fn *fn, void *ctx, struct mr_error *err), (room, fn, ctx, err))
FAULTY(has_agent, (struct mr_room * room, const char *name, struct mr_error *err), (room, name, err))
FAULTY(
    newest_life, (struct mr_room * room, const char *name, unsigned *ret, struct mr_error *err), (room, name, ret, err))
FAULTY(find_agent, (struct mr_room * room, const char *name, struct mr_agent *ret, struct mr_error *err),
    (room, name, ret, err))
FAULTY(add_agent, (struct mr_room * room, const struct mr_agent *agent, struct mr_error *err), (room, agent, err))
FAULTY(set_role, (struct mr_room * room, const char *name, const char *role, struct mr_error *err),
    (room, name, role, err))
FAULTY(take_life, (struct mr_room * room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err),
    (room, agent, ret_returned, err))
FAULTY(update_life, (struct mr_room * room, const struct mr_agent *agent, struct mr_error *err), (room, agent, err))
FAULTY(check_life, (struct mr_room * room, const char *name, unsigned life, const char *session, struct mr_error *err),
    (room, name, life, session, err))
FAULTY(remove_agent, (struct mr_room * room, const char *name, bool force, size_t *ret_dead, struct mr_error *err),
    (room, name, force, ret_dead, err))
FAULTY(spell, (struct mr_room * room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err),
    (room, given, ret, err))
FAULTY(settle_ticket, (struct mr_room * room, const char *ticket, bool *ret_published, struct mr_error *err),
    (room, ticket, ret_published, err))
FAULTY(clear, (struct mr_room * room, const char *agent, size_t *ret_removed, struct mr_error *err),
    (room, agent, ret_removed, err))
FAULTY(deliver, (struct mr_room * room, struct delivery *what, struct delivered *ret, struct mr_error *err),
    (room, what, ret, err))
FAULTY(scan,
    (struct mr_room * room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
	struct mr_error *err),
    (room, agent, want, fn, ctx, err))
FAULTY(fetch,
    (struct mr_room * room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
	struct mr_message *ret, struct mr_error *err),
    (room, agent, id, folders, depth, ret, err))
FAULTY(fetch_raw, (struct mr_room * room, const char *agent, const char *id, struct buf *ret, struct mr_error *err),
    (room, agent, id, ret, err))
FAULTY(mark,
    (struct mr_room * room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err),
    (room, agent, id, set, clear, err))
FAULTY(move, (struct mr_room * room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err),
    (room, agent, id, to, err))
FAULTY(flush, (struct mr_room * room, struct mr_error *err), (room, err))
FAULTY(hold,
    (struct mr_room * room, const char *agent, const char *id, const struct hold_terms *terms, struct hold *ret,
	struct mr_error *err),
    (room, agent, id, terms, ret, err))
FAULTY(settle, (struct mr_room * room, const struct hold *hold, enum settle how, struct mr_error *err),
    (room, hold, how, err))
FAULTY(extend, (struct mr_room * room, struct hold *hold, int64_t lease_ms, struct mr_error *err),
    (room, hold, lease_ms, err))
FAULTY(each_hold,
    (struct mr_room * room, const char *agent, bool (*fn)(void *ctx, const struct hold *hold), void *ctx,
	struct mr_error *err),
    (room, agent, fn, ctx, err))
FAULTY(sweep, (struct mr_room * room, const char *agent, struct mr_error *err), (room, agent, err))
FAULTY(watch, (struct mr_room * room, const char *agent, void **ret_watch, struct mr_error *err),
    (room, agent, ret_watch, err))
FAULTY(record_put,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, struct mr_str text,
	struct mr_error *err),
    (room, kind, owner, name, text, err))
FAULTY(record_get,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, struct buf *ret,
	struct mr_error *err),
    (room, kind, owner, name, ret, err))
FAULTY(record_drop,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, struct mr_error *err),
    (room, kind, owner, name, err))
FAULTY(record_each,
    (struct mr_room * room, const char *kind, const char *owner, bool (*fn)(void *ctx, const char *name), void *ctx,
	struct mr_error *err),
    (room, kind, owner, fn, ctx, err))
FAULTY(each_place, (struct mr_room * room, const char *id, place_fn *fn, void *ctx, struct mr_error *err),
    (room, id, fn, ctx, err))
FAULTY(
    dead_drop, (struct mr_room * room, const char *queue, const char *id, struct mr_error *err), (room, queue, id, err))
FAULTY(purge, (struct mr_room * room, const char *id, size_t *ret_removed, struct mr_error *err),
    (room, id, ret_removed, err))
FAULTY(inspect, (struct mr_room * room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err),
    (room, fix, fn, ctx, err))

#define REPLACE(slot)                                                                                                  \
	do {                                                                                                           \
		if (faulty->table.slot)                                                                                \
			faulty->table.slot = faulty_##slot;                                                            \
	} while (0)

static void
replace_slots(struct faulty *faulty)
{
	REPLACE(make);
	REPLACE(recover);
	REPLACE(storage);
	REPLACE(each_agent);
	REPLACE(find_agent);
	REPLACE(has_agent);
	REPLACE(newest_life);
	REPLACE(add_agent);
	REPLACE(set_role);
	REPLACE(take_life);
	REPLACE(update_life);
	REPLACE(check_life);
	REPLACE(remove_agent);
	REPLACE(spell);
	REPLACE(settle_ticket);
	REPLACE(clear);
	REPLACE(deliver);
	REPLACE(scan);
	REPLACE(fetch);
	REPLACE(fetch_raw);
	REPLACE(mark);
	REPLACE(move);
	REPLACE(flush);
	REPLACE(hold);
	REPLACE(settle);
	REPLACE(extend);
	REPLACE(each_hold);
	REPLACE(sweep);
	REPLACE(watch);
	REPLACE(record_put);
	REPLACE(record_get);
	REPLACE(record_drop);
	REPLACE(record_each);
	REPLACE(each_place);
	REPLACE(dead_drop);
	REPLACE(purge);
	REPLACE(inspect);
}

void
room_wrap_fault(struct mr_room *room, struct room_fault *plan)
{
	struct faulty *faulty = malloc(sizeof *faulty);

	if (!faulty || room->wrap_state)
		abort(); /* a test that injects nothing would pass: never go on without the wrapper */
	faulty->table = *room->driver;
	faulty->plan = plan;
	replace_slots(faulty);
	room->inner = room->driver;
	room->wrap_state = faulty;
	room->driver = &faulty->table;
}
