/* SPDX-License-Identifier: MIT */
/* records.c - changing a record, on top of a driver's lock, get and put. */
#include "base/error.h"
#include "room/room.h"

#define LOCK_WAIT_MS 10000

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
