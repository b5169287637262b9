/* SPDX-License-Identifier: MIT */
/* records.c - changing a record, on top of a driver's lock, get and put. */
#include "base/error.h"
#include "room/room.h"

#define LOCK_WAIT_MS 10000

enum mr_rc
room_record_change(struct mr_room *room, const char *kind, const char *owner, const char *name, room_edit_fn *edit,
    void *ctx, struct mr_error *err)
{
	const struct room_driver *d = room->driver;
	mr_auto(buf_done) struct buf text = BUF_INIT, before = BUF_INIT;
	void *lock = NULL;

	if (d->record_lock(room, kind, owner, "", LOCK_WAIT_MS, &lock, err) != MR_OK)
		return err->code == MR_UNSUPPORTED ? err->code
						   : mr_wrap(err, "cannot change record '%s/%s'", kind, name);
	enum mr_rc rc = d->record_get(room, kind, owner, name, &text, err);
	bool exists = rc == MR_OK;

	if (rc == MR_OK || rc == MR_NOTFOUND) {
		*err = (struct mr_error){ 0 };
		buf_add(&before, buf_str(&text));
		rc = edit(ctx, exists, &text, err);
	}
	if (rc == MR_OK && (!buf_ok(&text) || !buf_ok(&before)))
		rc = mr_nomem(err);
	if (rc == MR_OK && !(exists && str_eq(buf_str(&text), buf_str(&before))))
		rc = d->record_put(room, kind, owner, name, buf_str(&text), err);
	d->record_unlock(room, lock);
	return rc;
}
