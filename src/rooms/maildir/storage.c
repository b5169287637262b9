/* SPDX-License-Identifier: MIT */
/* storage.c - what may become of the mail in this room when the power goes. */
#include "base/storage.h"
#include "rooms/maildir/maildir.h"

enum mr_rc
maildir_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	struct mr_storage found = { 0 };

	if (storage_of(md->root_fd, md->path, &found, err) != MR_OK)
		return err->code;
	if (!md->sync) {
		found.power_safe = false;
		(void)snprintf(found.reason, sizeof found.reason,
		    "the room's settings say Sync: none, so mail is accepted before it is on the disk");
	}
	*ret = found;
	return MR_OK;
}
