/* SPDX-License-Identifier: MIT */
/*
 * trace.c - a driver around a driver that tells what it is asked and what comes of it, one line a call:
 *
 *	deliver 01k9w3b7zq8m4c2v6t1x5n0prs from 'alice' to 3: ok 812us
 *	fetch 'bob' 01k9w3b7zq8m4c2v6t1x5n0prs: not-found 40us: no message '01k9...'
 *
 * Bodies, subjects and record texts are never in it: a trace is pasted into bug reports.
 * A call that waited for a lock says how long: "... 20311us, 20104 of them for locks".
 *
 * A wrapped room's table is a copy of the inner one with the slots replaced; NULL stays NULL.
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

/* The words come after the call: a delivery may get another id on the way. */
#define TRACED(slot, params, args, ...)                                                                                \
	static enum mr_rc traced_##slot params                                                                         \
	{                                                                                                              \
		int64_t start_ns = clock_now_ns();                                                                     \
		enum mr_rc rc = room->inner->slot args;                                                                \
                                                                                                                       \
		say(room, start_ns, rc, err, __VA_ARGS__);                                                             \
		return rc;                                                                                             \
	}
#define TRACED_VOID(slot, params, args, ...)                                                                           \
	static void traced_##slot params                                                                               \
	{                                                                                                              \
		int64_t start_ns = clock_now_ns();                                                                     \
                                                                                                                       \
		room->inner->slot args;                                                                                \
		say(room, start_ns, MR_OK, NULL, __VA_ARGS__);                                                         \
	}

/* Slots that cannot fail and answer with a value. */
#define TRACED_VALUE(type, slot, params, args, ...)                                                                    \
	static type traced_##slot params                                                                               \
	{                                                                                                              \
		int64_t start_ns = clock_now_ns();                                                                     \
		type value = room->inner->slot args;                                                                   \
                                                                                                                       \
		say(room, start_ns, MR_OK, NULL, __VA_ARGS__);                                                         \
		return value;                                                                                          \
	}

static const char *
folder_word(enum mr_folder folder)
{
	switch (folder) {
	case MR_INBOX:
		return "inbox";
	case MR_HELD:
		return "held";
	case MR_ARCHIVE:
		return "archive";
	case MR_SENT:
		return "sent";
	case MR_DEAD:
		return "dead";
	}
	return "?";
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
	static const char *const words[] = { "names", "headers", "bodies" };

	return words[depth];
}

TRACED_VOID(close, (struct mr_room * room), (room), "close %s", room->spec)
TRACED(make, (struct mr_room * room, struct mr_error *err), (room, err), "make")
TRACED(recover, (struct mr_room * room, struct mr_error *err), (room, err), "recover")
TRACED(storage, (struct mr_room * room, struct mr_storage *ret, struct mr_error *err), (room, ret, err), "storage")
TRACED(each_agent, (struct mr_room * room, mr_agent_fn *fn, void *ctx, struct mr_error *err), (room, fn, ctx, err),
    "each_agent")
TRACED(has_agent, (struct mr_room * room, const char *name, struct mr_error *err), (room, name, err), "has_agent '%s'",
    name)
TRACED(newest_life, (struct mr_room * room, const char *name, unsigned *ret, struct mr_error *err),
    (room, name, ret, err), "newest_life '%s'", name)
TRACED(find_agent, (struct mr_room * room, const char *name, struct mr_agent *ret, struct mr_error *err),
    (room, name, ret, err), "find_agent '%s'", name)
TRACED(add_agent, (struct mr_room * room, const struct mr_agent *agent, struct mr_error *err), (room, agent, err),
    "add_agent '%s'", agent->name)
TRACED(take_life, (struct mr_room * room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err),
    (room, agent, ret_returned, err), "take_life '%s' %u", agent->name, agent->life)
TRACED(update_life, (struct mr_room * room, const struct mr_agent *agent, struct mr_error *err), (room, agent, err),
    "update_life '%s' %u", agent->name, agent->life)
TRACED(check_life, (struct mr_room * room, const char *name, unsigned life, const char *session, struct mr_error *err),
    (room, name, life, session, err), "check_life '%s' %u", name, life)
TRACED_VOID(
    seen, (struct mr_room * room, const char *name, unsigned life), (room, name, life), "seen '%s' %u", name, life)
TRACED(remove_agent, (struct mr_room * room, const char *name, bool force, size_t *ret_dead, struct mr_error *err),
    (room, name, force, ret_dead, err), "remove_agent '%s'", name)
TRACED(spell, (struct mr_room * room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err),
    (room, given, ret, err), "spell '%.60s'", given)
TRACED(settle_ticket, (struct mr_room * room, const char *ticket, bool *ret_published, struct mr_error *err),
    (room, ticket, ret_published, err), "settle_ticket '%.100s'", ticket)
TRACED(clear, (struct mr_room * room, const char *agent, size_t *ret_removed, struct mr_error *err),
    (room, agent, ret_removed, err), "clear '%s'", agent)
TRACED(deliver, (struct mr_room * room, struct delivery *what, struct delivered *ret, struct mr_error *err),
    (room, what, ret, err), "deliver %s from '%s' to %zu", what->msg->id, what->sender, what->to->n)
TRACED(scan,
    (struct mr_room * room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
	struct mr_error *err),
    (room, agent, want, fn, ctx, err), "scan '%s' folders %u %s%s%s", agent, want->folders, depth_word(want->depth),
    want->unread_only ? " unread" : "", want->newest_first ? " newest" : "")
TRACED(fetch,
    (struct mr_room * room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
	struct mr_message *ret, struct mr_error *err),
    (room, agent, id, folders, depth, ret, err), "fetch '%s' %s folders %u %s", agent, id, folders, depth_word(depth))
TRACED(fetch_raw, (struct mr_room * room, const char *agent, const char *id, struct buf *ret, struct mr_error *err),
    (room, agent, id, ret, err), "fetch_raw '%s' %s", agent, id)
TRACED(mark,
    (struct mr_room * room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err),
    (room, agent, id, set, clear, err), "mark '%s' %s +%u -%u", agent, id, set, clear)
TRACED(move, (struct mr_room * room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err),
    (room, agent, id, to, err), "move '%s' %s to %s", agent, id, folder_word(to))
TRACED(flush, (struct mr_room * room, struct mr_error *err), (room, err), "flush")
TRACED(hold,
    (struct mr_room * room, const char *agent, const char *id, const struct hold_terms *terms, struct hold *ret,
	struct mr_error *err),
    (room, agent, id, terms, ret, err), "hold '%s' %s life %u %s", agent, id, terms->life,
    terms->kind == HOLD_LEASE ? "lease" : "process")
TRACED(settle, (struct mr_room * room, const struct hold *hold, enum settle how, struct mr_error *err),
    (room, hold, how, err), "settle '%s' %s token %s %s", hold->agent, hold->id, hold->token, settle_word(how))
TRACED(extend, (struct mr_room * room, struct hold *hold, int64_t lease_ms, struct mr_error *err),
    (room, hold, lease_ms, err), "extend '%s' %s token %s by %lldms", hold->agent, hold->id, hold->token,
    (long long)lease_ms)
TRACED(each_hold,
    (struct mr_room * room, const char *agent, bool (*fn)(void *ctx, const struct hold *hold), void *ctx,
	struct mr_error *err),
    (room, agent, fn, ctx, err), "each_hold '%s'", agent)
TRACED(sweep, (struct mr_room * room, const char *agent, struct mr_error *err), (room, agent, err), "sweep '%s'", agent)
TRACED(watch, (struct mr_room * room, const char *agent, void **ret_watch, struct mr_error *err),
    (room, agent, ret_watch, err), "watch '%s'", agent)
TRACED_VOID(watch_wait, (struct mr_room * room, void *watch, int64_t timeout_ms), (room, watch, timeout_ms),
    "watch_wait up to %lldms", (long long)timeout_ms)
TRACED(record_put,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, struct mr_str text,
	struct mr_error *err),
    (room, kind, owner, name, text, err), "record_put %s '%s' '%s' %zu bytes", kind, owner, name, text.len)
TRACED(record_get,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, struct buf *ret,
	struct mr_error *err),
    (room, kind, owner, name, ret, err), "record_get %s '%s' '%s'", kind, owner, name)
TRACED(record_drop,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, struct mr_error *err),
    (room, kind, owner, name, err), "record_drop %s '%s' '%s'", kind, owner, name)
TRACED(record_each,
    (struct mr_room * room, const char *kind, const char *owner, bool (*fn)(void *ctx, const char *name), void *ctx,
	struct mr_error *err),
    (room, kind, owner, fn, ctx, err), "record_each %s '%s'", kind, owner)
TRACED(record_change,
    (struct mr_room * room, const char *kind, const char *owner, const char *name,
	enum mr_rc (*edit)(void *ctx, bool exists, struct buf *text, struct mr_error *err), void *ctx,
	struct mr_error *err),
    (room, kind, owner, name, edit, ctx, err), "record_change %s '%s' '%s'", kind, owner, name)
TRACED(record_lock,
    (struct mr_room * room, const char *kind, const char *owner, const char *name, int64_t wait_ms, void **ret_lock,
	struct mr_error *err),
    (room, kind, owner, name, wait_ms, ret_lock, err), "record_lock %s '%s' '%s' up to %lldms", kind, owner, name,
    (long long)wait_ms)
TRACED_VOID(record_unlock, (struct mr_room * room, void *lock), (room, lock), "record_unlock")
TRACED(nudge_put, (struct mr_room * room, const char *to, const struct mr_nudge *nudge, struct mr_error *err),
    (room, to, nudge, err), "nudge_put '%s'", to)
TRACED(nudge_get,
    (struct mr_room * room, const char *agent, struct mr_nudge *ret, struct arena **own, struct mr_error *err),
    (room, agent, ret, own, err), "nudge_get '%s'", agent)
TRACED(queue_make, (struct mr_room * room, const char *queue, struct mr_error *err), (room, queue, err),
    "queue_make '%s'", queue)
TRACED(queue_remove, (struct mr_room * room, const char *queue, bool to_dead, size_t *ret_dead, struct mr_error *err),
    (room, queue, to_dead, ret_dead, err), "queue_remove '%s'", queue)
TRACED(queue_claim,
    (struct mr_room * room, const char *queue, const struct claim_terms *terms, struct hold *ret, struct mr_error *err),
    (room, queue, terms, ret, err), "queue_claim '%s' for '%s'%s%s", queue, terms->claimer, rc == MR_OK ? " " : "",
    rc == MR_OK ? ret->id : "")
TRACED(queue_settle, (struct mr_room * room, const struct hold *hold, enum settle how, struct mr_error *err),
    (room, hold, how, err), "queue_settle '%s' %s token %s %s", hold->queue, hold->id, hold->token, settle_word(how))
TRACED(queue_extend, (struct mr_room * room, struct hold *hold, int64_t lease_ms, struct mr_error *err),
    (room, hold, lease_ms, err), "queue_extend '%s' %s token %s by %lldms", hold->queue, hold->id, hold->token,
    (long long)lease_ms)
TRACED(queue_each,
    (struct mr_room * room, const char *queue, unsigned states, bool (*fn)(void *ctx, const struct queue_item *item),
	void *ctx, struct mr_error *err),
    (room, queue, states, fn, ctx, err), "queue_each '%s' states %u", queue, states)
TRACED(queue_fetch,
    (struct mr_room * room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err),
    (room, queue, id, ret, err), "queue_fetch '%s' %s", queue, id)
TRACED(queue_find_claim, (struct mr_room * room, const char *token, struct hold *ret, struct mr_error *err),
    (room, token, ret, err), "queue_find_claim %s", token)
TRACED(queue_past,
    (struct mr_room * room, const char *queue, const char *id, const char *token,
	void (*fn)(void *ctx, const struct past_claim *past), void *ctx, struct mr_error *err),
    (room, queue, id, token, fn, ctx, err), "queue_past %s", id ? id : token)
TRACED(channel_make, (struct mr_room * room, const char *channel, struct mr_error *err), (room, channel, err),
    "channel_make '%s'", channel)
TRACED(channel_remove, (struct mr_room * room, const char *channel, struct mr_error *err), (room, channel, err),
    "channel_remove '%s'", channel)
TRACED(channel_scan,
    (struct mr_room * room, const char *channel, uint64_t after, enum scan_depth depth,
	bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err),
    (room, channel, after, depth, fn, ctx, err), "channel_scan '%s' after %llu %s", channel, (unsigned long long)after,
    depth_word(depth))
TRACED(channel_range,
    (struct mr_room * room, const char *channel, uint64_t *ret_first, uint64_t *ret_last, size_t *ret_count,
	struct mr_error *err),
    (room, channel, ret_first, ret_last, ret_count, err), "channel_range '%s'", channel)
TRACED(channel_drop,
    (struct mr_room * room, const char *channel, uint64_t below, size_t *ret_removed, struct mr_error *err),
    (room, channel, below, ret_removed, err), "channel_drop '%s' below %llu", channel, (unsigned long long)below)
TRACED(fetch_answer,
    (struct mr_room * room, const char *dir, const char *id, bool take, struct mr_message *ret, struct mr_error *err),
    (room, dir, id, take, ret, err), "fetch_answer '%.100s' %.100s", dir, id)
TRACED(face,
    (struct mr_room * room, const char *verb, const char *const *args, struct mr_str input, struct buf *out,
	struct mr_error *err),
    (room, verb, args, input, out, err), "face '%.40s'", verb)
TRACED_VOID(deliver_many, (struct mr_room * room, struct parcel *parcels, size_t n), (room, parcels, n),
    "deliver_many %zu from '%s'", n, n > 0 ? parcels[0].what.sender : "")
TRACED_VOID(watch_close, (struct mr_room * room, void *watch), (room, watch), "watch_close")
TRACED_VALUE(bool, watch_saw_mail, (struct mr_room * room, void *watch, struct mr_message *ret), (room, watch, ret),
    "watch_saw_mail %s", value ? ret->id : "no")
TRACED_VALUE(bool, spend_reserve, (struct mr_room * room), (room), "spend_reserve %s", value ? "yes" : "no")
TRACED_VALUE(uint64_t, removals, (struct mr_room * room), (room), "removals %llu", (unsigned long long)value)
TRACED_VALUE(bool, once, (struct mr_room * room, const char *name, unsigned life, const char *what),
    (room, name, life, what), "once '%s' %u %s %s", name, life, what, value ? "yes" : "no")
TRACED_VALUE(const char *, owner, (struct mr_room * room), (room), "owner '%.100s'", value ? value : "")
TRACED_VALUE(unsigned, lacks, (struct mr_room * room, const struct mr_message *msg), (room, msg), "lacks %u", value)
TRACED(set_role, (struct mr_room * room, const char *name, const char *role, struct mr_error *err),
    (room, name, role, err), "set_role '%s'", name)
TRACED(each_place, (struct mr_room * room, const char *id, place_fn *fn, void *ctx, struct mr_error *err),
    (room, id, fn, ctx, err), "each_place %s", id)
TRACED(dead_drop, (struct mr_room * room, const char *queue, const char *id, struct mr_error *err),
    (room, queue, id, err), "dead_drop '%s' %s", queue, id)
TRACED(purge, (struct mr_room * room, const char *id, size_t *ret_removed, struct mr_error *err),
    (room, id, ret_removed, err), "purge %s", id)
TRACED(inspect, (struct mr_room * room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err),
    (room, fix, fn, ctx, err), "inspect%s", fix ? " and fix" : "")

#define REPLACE(slot)                                                                                                  \
	do {                                                                                                           \
		if (table->slot)                                                                                       \
			table->slot = traced_##slot;                                                                   \
	} while (0)

static void
replace_slots(struct room_driver *table)
{
	REPLACE(close);
	REPLACE(make);
	REPLACE(recover);
	REPLACE(storage);
	REPLACE(each_agent);
	REPLACE(find_agent);
	REPLACE(has_agent);
	REPLACE(newest_life);
	REPLACE(add_agent);
	REPLACE(take_life);
	REPLACE(update_life);
	REPLACE(check_life);
	REPLACE(seen);
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
	REPLACE(watch_wait);
	REPLACE(record_put);
	REPLACE(record_get);
	REPLACE(record_drop);
	REPLACE(record_each);
	REPLACE(record_change);
	REPLACE(record_lock);
	REPLACE(record_unlock);
	REPLACE(nudge_put);
	REPLACE(nudge_get);
	REPLACE(queue_make);
	REPLACE(queue_remove);
	REPLACE(queue_claim);
	REPLACE(queue_settle);
	REPLACE(queue_extend);
	REPLACE(queue_each);
	REPLACE(queue_fetch);
	REPLACE(queue_find_claim);
	REPLACE(queue_past);
	REPLACE(channel_make);
	REPLACE(channel_remove);
	REPLACE(channel_scan);
	REPLACE(channel_range);
	REPLACE(channel_drop);
	REPLACE(fetch_answer);
	REPLACE(face);
	REPLACE(deliver_many);
	REPLACE(watch_close);
	REPLACE(watch_saw_mail);
	REPLACE(spend_reserve);
	REPLACE(removals);
	REPLACE(once);
	REPLACE(owner);
	REPLACE(lacks);
	REPLACE(set_role);
	REPLACE(each_place);
	REPLACE(dead_drop);
	REPLACE(purge);
	REPLACE(inspect);
}

void
room_wrap_trace(struct mr_room *room)
{
	struct room_driver *table = malloc(sizeof *table);

	if (!table || !room->trace || room->wrap_state) {
		free(table); /* nobody listens, or no memory: the room works the same without */
		return;
	}
	*table = *room->driver;
	replace_slots(table);
	room->inner = room->driver;
	room->wrap_state = table;
	room->driver = table;
}
