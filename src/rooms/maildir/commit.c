/* SPDX-License-Identifier: MIT */
/*
 * commit.c - the one module that makes changes of mail durable.
 *
 * A new message:
 *
 *	full   write - fsync - link - fsync - fsync of the folder
 *	fast   write - sync_file_range - link - fsync of the folder     one commit
 *	none   write - link
 *
 * Sync: auto, the default, is fast where bytes that were written out are safe when the journal has the name, and full
 * in doubt. A process checks this once, when it delivers its first mail.
 *
 * Every later change of state is a rename. A rename touches two folders, and a file system without a journal may write
 * them in any order; if the loss of the old name reached the disk and the new name did not, a power cut would lose the
 * message. So the folder that gained the name is synced first, then the one that lost it. Syncing costs a thousand
 * times more than renaming: a command that marks two hundred messages touches three folders, and syncs these three
 * once, at its end.
 *
 * Between rename and flush a power cut may undo a mark. Then mail that was shown comes again, which promise 9 allows.
 * Mail that is consumed without having been shown, which it forbids, cannot result.
 */
#include "base/storage.h"
#include "base/fault.h"
#include "rooms/maildir/maildir.h"

#define DIRTY_MAX 64

/* ---- New messages ---- */

bool
commit_is_fast(struct maildir *md, int fd)
{
	struct stat st;

	if (md->fast == FAST_UNKNOWN) {
		md->fast = FAST_NO;
		if (md->wants_fast && sys_stat_fd(md->root_fd, &st) == 0 && !storage_order_doubt(md->root_fd)) {
			md->fast = FAST_YES;
			md->fast_dev = st.st_dev;
		}
	}
	/* A folder in the room may be another file system. */
	return md->fast == FAST_YES && sys_stat_fd(fd, &st) == 0 && st.st_dev == md->fast_dev;
}

enum mr_rc
commit_bytes(struct maildir *md, struct staged *file, struct mr_error *err)
{
	if (!md->sync)
		return MR_OK;
	if (!commit_is_fast(md, file->fd))
		return stage_sync(file, err);
	if (sys_write_out(file->fd) == 0)
		return MR_OK;
	/* A failed write is reported only once: a second sync would succeed. */
	if (errno != ENOSYS && errno != EPERM && errno != EINVAL && errno != EOPNOTSUPP)
		return mr_fail_errno(err, "cannot flush the temporary file");
	md->fast = FAST_NO; /* a sandbox */
	return stage_sync(file, err);
}

int
commit_name(struct maildir *md, int file_fd, int folder_fd)
{
	if (!md->sync)
		return 0;
	/* The second sync of the file writes its link count where no journal does. */
	return (!commit_is_fast(md, file_fd) && sys_fsync(file_fd) < 0) || sys_fsync(folder_fd) < 0 ? -1 : 0;
}

/* ---- Renames ---- */

static void
sync_folder(struct maildir *md, int fd)
{
	/* The kernel reports a failed write-back once, and a second sync would succeed. So the first error is kept for
	 * the caller's flush. */
	if (sys_fsync(fd) < 0 && md->dirty_errno == 0)
		md->dirty_errno = errno;
}

static void
sync_all(struct maildir *md)
{
	/* Pure targets, then folders that mail entered and left, then pure sources. */
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < md->dirty_n; i++) {
			const struct dirty *d = &md->dirty[i];
			int turn = !d->target ? 2 : d->source ? 1 : 0;

			if (turn == (sys_break_is(BREAK_SOURCE_FIRST) ? 2 - round : round))
				sync_folder(md, d->fd);
		}
	}
	commit_forget(md);
}

/* False: it could not be noted (descriptors or memory ran out), so it has to be synced now. */
static bool
note(struct maildir *md, int fd, bool target)
{
	struct stat st;
	size_t i = 0;

	if (sys_stat_fd(fd, &st) < 0)
		return false;
	while (i < md->dirty_n && (md->dirty[i].ino != st.st_ino || md->dirty[i].dev != st.st_dev))
		i++;
	if (i == md->dirty_n) {
		int own =
		    array_grow(&md->dirty, i, &md->dirty_cap, sizeof *md->dirty) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

		if (own < 0)
			return false;
		md->dirty[md->dirty_n++] = (struct dirty){ .fd = own, .dev = st.st_dev, .ino = st.st_ino };
	}
	md->dirty[i].target |= target;
	md->dirty[i].source |= !target;
	return true;
}

enum mr_rc
commit_move(struct maildir *md, int from_fd, const char *from, int to_fd, const char *to, struct mr_error *err)
{
	struct stat st;

	if (sys_rename_new(from_fd, from, to_fd, to) < 0) {
		if (errno == ENOENT && sys_stat_fd(to_fd, &st) == 0 && st.st_nlink == 0) /* by retain.c or renew.c */
			return mr_fail(
			    err, MR_BUSY, "the folder for '%s' was removed meanwhile\nrepeat the command", to);
		if (errno == ENOENT)
			return mr_fail(err, MR_NOTFOUND, "'%s' no longer exists", from);
		if (errno != EEXIST)
			return mr_fail_errno(err, "cannot rename '%s' to '%s'", from, to);
		return mr_fail(err, MR_EXISTS, "cannot rename '%s': '%s' is taken", from, to);
	}
	if (!md->sync)
		return MR_OK;
	if (md->dirty_n + 2 > DIRTY_MAX)
		sync_all(md);
	if (!note(md, to_fd, true) || !note(md, from_fd, false)) {
		sync_folder(md, to_fd);
		sync_all(md);
		sync_folder(md, from_fd);
	}
	return MR_OK;
}

enum mr_rc
commit_flush(struct maildir *md, struct mr_error *err)
{
	sync_all(md);
	if (md->dirty_errno == 0)
		return MR_OK;
	errno = md->dirty_errno;
	md->dirty_errno = 0;
	(void)mr_fail_errno(err, "cannot make marks and moves durable");
	err->code = MR_IO;
	return mr_hint(err, "they are done but a power cut may undo them; check the disk, then repeat the command");
}

void
commit_forget(struct maildir *md)
{
	for (size_t i = 0; i < md->dirty_n; i++)
		sys_close_fd(&md->dirty[i].fd);
	md->dirty_n = 0;
}

/* ---- What a power cut may do to the mail in this room ---- */

enum mr_rc
maildir_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	const char *doubt = md->wants_fast ? storage_order_doubt(md->root_fd) : NULL;
	struct mr_storage found = { 0 };

	TRY(storage_of(md->root_fd, md->path, &found, err));
	bool fast = md->wants_fast && !doubt;
	(void)snprintf(found.sync, sizeof found.sync, "%s", !md->sync ? "none" : fast ? "fast" : "full");
	(void)snprintf(found.sync_reason, sizeof found.sync_reason, "%s%s", fast ? found.file_system : "",
	    fast    ? " keeps bytes and names in order here"
	    : doubt ? doubt
		    : "");
	if (!md->sync) {
		found.power_safe = false;
		(void)snprintf(found.reason, sizeof found.reason,
		    "the room's settings say Sync: none, so mail is accepted before it is on the disk");
	}
	*ret = found;
	return MR_OK;
}
