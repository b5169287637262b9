/* SPDX-License-Identifier: MIT */
/* state.c - changing a message's state, and what every change asks first: can this room do that, and is this
 * life still the agent's newest. */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"

enum mr_rc
office_lacks(const struct mr_room *room, const char *what, struct mr_error *err)
{
	return mr_fail(err, MR_UNSUPPORTED, "a %s room has no %s", room->driver->kind, what);
}

enum mr_rc
office_not_fenced(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	if (self->life == 0 || !room->driver->check_life)
		return MR_OK;
	return room->driver->check_life(room, self->agent, self->life, err);
}

enum mr_rc
office_flush(struct mr_room *room, struct mr_error *err)
{
	return room->driver->flush ? room->driver->flush(room, err) : MR_OK;
}

enum mr_rc
mr_mark(struct mr_room *room, const struct mr_self *self, const char *id, unsigned set, unsigned clear,
    struct mr_error *err)
{
	char full[MR_ID_LEN + 1];
	enum mr_rc rc;

	if (!room->driver->mark || !(room->driver->abilities & ROOM_READ_STATE))
		return office_lacks(room, "marks on mail", err);
	if (((set | clear) & MR_PINNED) && !(room->driver->abilities & ROOM_PIN))
		return office_lacks(room, "pinned mail", err);
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = mr_resolve_id(room, self->agent, id, MR_INBOX | MR_HELD | MR_ARCHIVE, full, err);
	if (rc == MR_OK)
		rc = room->driver->mark(room, self->agent, full, set, clear, err);
	return rc;
}

enum mr_rc
mr_archive(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err)
{
	char full[MR_ID_LEN + 1];
	enum mr_rc rc;

	if (!room->driver->move || !(room->driver->abilities & ROOM_ARCHIVE))
		return office_lacks(room, "archive", err);
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = mr_resolve_id(room, self->agent, id, MR_INBOX | MR_HELD | MR_ARCHIVE, full, err);
	if (rc == MR_OK)
		rc = room->driver->move(room, self->agent, full, MR_ARCHIVE, err);
	return rc;
}

enum mr_rc
mr_flush(struct mr_room *room, struct mr_error *err)
{
	return office_flush(room, err);
}

/* ---- Purging ---- */

static void
count_copy(void *ctx, const struct place_of *place)
{
	size_t *copies = ctx;

	/* A fan-out under way counts: purging must reach it before it makes more copies. */
	if (place->folder != 0 || strcmp(place->state, "pending") == 0)
		++*copies;
}

/* Durable before the first copy goes: a purge that is cut off still explains what is missing. */
static enum mr_rc
put_tombstone(struct mr_room *room, const struct mr_self *self, const char *id, const char *reason,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char now[RFC3339_LEN + 1];
	enum mr_rc rc;

	if (!room->driver->record_put)
		return MR_OK;
	time_rfc3339(clock_now_ms(), now);
	rc = header_add(&text, "By", str_of(self->agent), err);
	if (rc == MR_OK && *reason)
		rc = header_add(&text, "Reason", str_of(reason), err);
	if (rc == MR_OK)
		rc = header_add(&text, "At", str_of(now), err);
	if (rc != MR_OK)
		return rc;
	if (!buf_ok(&text))
		return mr_nomem(err);
	return room->driver->record_put(room, "purged", "", id, buf_str(&text), err);
}

enum mr_rc
mr_purge(struct mr_room *room, const struct mr_self *self, const char *id, const char *reason,
    size_t *ret_removed, struct mr_error *err)
{
	char full[MR_ID_LEN + 1];
	size_t copies = 0, removed = 0;
	enum mr_rc rc;

	if (!room->driver->purge || !(room->driver->abilities & ROOM_PURGE))
		return office_lacks(room, "way to purge mail", err);
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = lookup_anywhere(room, self->agent, id, full, err);
	if (rc == MR_OK && room->driver->each_place)
		rc = room->driver->each_place(room, full, count_copy, &copies, err);
	if (rc != MR_OK)
		return rc;
	if (room->driver->each_place && copies == 0) {
		(void)mr_fail(err, MR_NOTFOUND, "no copy of '%s' anywhere in room '%s'", full, room->name);
		return mr_hint(err, "`mailroom why %s` tells what is known of it", full);
	}
	rc = put_tombstone(room, self, full, reason ? reason : "", err);
	if (rc == MR_OK)
		rc = room->driver->purge(room, full, &removed, err);
	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc == MR_OK && ret_removed)
		*ret_removed = removed;
	return rc;
}
