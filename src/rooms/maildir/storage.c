/* SPDX-License-Identifier: MIT */
/*
 * storage.c - what may become of the mail in this room when the power goes, and the syncs that keep it.
 *
 *	full   write - fsync - link - fsync - fsync of the folder
 *	fast   write - sync_file_range - link - fsync of the folder     one commit
 *	none   write - link
 *
 * fast is right only where bytes that were written out are there when the journal has the name: whether it is so is
 * asked once, when the first mail is delivered, and in doubt it is full.
 */
#include "base/error.h"
#include "base/storage.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>

static void
look_once(struct maildir *md)
{
	struct stat st;

	if (md->fast != FAST_UNKNOWN)
		return;
	md->fast = FAST_NO;
	if (!md->sync || !md->wants_fast || sys_stat_fd(md->root_fd, &st) < 0 || storage_order_doubt(md->root_fd))
		return;
	md->fast = FAST_YES;
	md->fast_dev = st.st_dev;
}

/* A folder in the room may be another file system. */
bool
maildir_is_fast(struct maildir *md, int fd)
{
	struct stat st;

	look_once(md);
	return md->fast == FAST_YES && sys_stat_fd(fd, &st) == 0 && st.st_dev == md->fast_dev;
}

enum mr_rc
maildir_settle_bytes(struct maildir *md, struct staged *file, struct mr_error *err)
{
	if (!md->sync)
		return MR_OK;
	if (!maildir_is_fast(md, file->fd))
		return stage_sync(file, err);
	if (sys_write_out(file->fd) == 0)
		return MR_OK;
	/* A write that failed is told once: a sync that is asked now would answer "fine". */
	if (errno != ENOSYS && errno != EPERM && errno != EINVAL && errno != EOPNOTSUPP)
		return mr_fail_errno(err, "cannot flush the temporary file");
	md->fast = FAST_NO; /* a sandbox */
	return stage_sync(file, err);
}

int
maildir_settle_name(struct maildir *md, int file_fd, int folder_fd)
{
	if (!md->sync)
		return 0;
	/* The second sync of the file writes its link count where no journal does. */
	return (!maildir_is_fast(md, file_fd) && sys_fsync(file_fd) < 0) || sys_fsync(folder_fd) < 0 ? -1 : 0;
}

static void
tell_sync(struct maildir *md, struct mr_storage *ret)
{
	const char *doubt = md->wants_fast ? storage_order_doubt(md->root_fd) : NULL;

	(void)snprintf(ret->sync, sizeof ret->sync, "%s",
	    !md->sync                  ? "none"
	    : md->wants_fast && !doubt ? "fast"
				       : "full");
	if (doubt)
		(void)snprintf(ret->sync_reason, sizeof ret->sync_reason, "%s", doubt);
}

enum mr_rc
maildir_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	struct mr_storage found = { 0 };

	TRY(storage_of(md->root_fd, md->path, &found, err));
	tell_sync(md, &found);
	if (!md->sync) {
		found.power_safe = false;
		(void)snprintf(found.reason, sizeof found.reason,
		    "the room's settings say Sync: none, so mail is accepted before it is on the disk");
	}
	*ret = found;
	return MR_OK;
}
