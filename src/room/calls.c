/* SPDX-License-Identifier: MIT */
/* calls.c - stand-ins for the slots that a driver leaves out, so that no caller checks for a slot; calls that combine
 * slots; and code that drivers share. */
#include "base/clock.h"
#include "base/error.h"
#include "room/room.h"

#define LOCK_WAIT_MS 10000

unsigned
room_cannot_hold(struct mr_room *room, const struct mr_message *msg)
{
	bool lacks = msg->attachments_n > 0 && !(room->driver->abilities & ROOM_ATTACHMENTS);

	return (ROOM_HAS(room, unsupported) ? room->driver->unsupported(room, msg) : 0) |
	       (lacks ? FIELD_ATTACHMENTS : 0);
}

struct mr_agent
room_agent(const char *name)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

	text_join(agent.name, sizeof agent.name, name, NULL);
	return agent;
}

enum mr_rc
room_fetch_work(struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err)
{
	return room->driver->fetch(room, room_box("queue", queue).z, id, 0, SCAN_BODIES, ret, err);
}

void
delivered_done(struct delivered *got)
{
	mr_names_done(&got->missing);
	mr_names_done(&got->warnings);
}

/* ---- Changing a record, on top of a driver's lock, get and put ---- */

enum mr_rc
record_edit_begin(struct record_edit *e, struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct mr_error *err)
{
	const struct room_driver *d = room->driver;

	*e = (struct record_edit){ .room = room, .kind = kind, .owner = owner, .name = name };
	if (d->record_lock(room, kind, owner, "", LOCK_WAIT_MS, &e->lock, err) != MR_OK)
		return err->code == MR_UNSUPPORTED ? err->code
						   : mr_wrap(err, "cannot change record '%s/%s'", kind, name);
	e->locked = true;
	enum mr_rc rc = d->record_get(room, kind, owner, name, &e->text, err);

	e->exists = rc == MR_OK;
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	buf_add(&e->before, buf_str(&e->text));
	return MR_OK;
}

enum mr_rc
record_edit_save(struct record_edit *e, struct mr_error *err)
{
	enum mr_rc rc = mr_got(buf_ok(&e->text) && buf_ok(&e->before), err);

	if (rc == MR_OK && !(e->exists && str_eq(buf_str(&e->text), buf_str(&e->before))))
		rc = e->room->driver->record_put(e->room, e->kind, e->owner, e->name, buf_str(&e->text), err);
	record_edit_done(e);
	return rc;
}

void
record_edit_done(struct record_edit *e)
{
	if (e->locked)
		e->room->driver->record_unlock(e->room, e->lock);
	buf_done(&e->text);
	buf_done(&e->before);
	*e = (struct record_edit){ 0 };
}

/* ---- What a room keeps ---- */

const struct room_shelf_name room_shelves[ROOM_SHELVES] = {
	[SHELF_ARCHIVE] = { "Keep-Archive", "archive", "the archives" },
	[SHELF_SENT] = { "Keep-Sent", "sent", "sent mail" },
	[SHELF_DONE] = { "Keep-Done", "done", "done work" },
	[SHELF_DEAD] = { "Keep-Dead", "dead", "the dead letters" },
};

#define YEAR_MS ((int64_t)366 * 24 * 3600 * 1000)

const struct room_over room_overs[ROOM_OVERS] = {
	{ "escalation", "closed", ROOM_OVER_MS }, /* office/tell/escalate.c */
	{ "redispatch", "", ROOM_OVER_MS },       /* office/patrol/dispatch.c */
	{ "dead-done", "", YEAR_MS },             /* office/mail/dead.c */
	{ "purged", "", YEAR_MS },                /* office/mail/purge.c */
};

bool
room_is_over(const char *kind, const char *owner)
{
	for (unsigned i = 0; i < ROOM_OVERS; i++)
		if (strcmp(kind, room_overs[i].kind) == 0 && strcmp(owner, room_overs[i].owner) == 0)
			return true;
	return false;
}

bool
room_keep_parse(const char *value, struct room_keep *ret)
{
	static const char sizes[] = "KMGT";
	struct mr_str s = str_trim(str_of(value ? value : ""));
	char unit = s.len > 0 ? s.ptr[s.len - 1] : '\0';
	const char *size = unit ? strchr(sizes, unit) : NULL;
	uint64_t n = 0;

	*ret = (struct room_keep){ 0 };
	if (s.len == 0 || (s.len == 3 && strncasecmp(s.ptr, "all", 3) == 0))
		return true;
	if (unit == 'h' || unit == 'd' || unit == 'w') {
		struct room_keep time = { .by = KEEP_TIME };

		if (!duration_parse(s, &time.limit) || time.limit < (int64_t)24 * 3600 * 1000)
			return false;
		*ret = time;
		return true;
	}
	s.len -= size != NULL;
	if (!str_to_u64(s, &n) || n == 0 || n > (size ? (uint64_t)1 << 22 : (uint64_t)1 << 40))
		return false;
	*ret = (struct room_keep){ size ? KEEP_SIZE : KEEP_COUNT, (int64_t)n };
	for (const char *at = sizes; size && at <= size; at++)
		ret->limit *= 1024;
	return true;
}

/* ---- Stand-ins ---- */

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
