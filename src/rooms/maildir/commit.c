/* SPDX-License-Identifier: MIT */
/*
 * commit.c - the one module that makes changes of mail durable.
 *
 * Every change of state is a rename. A rename touches two folders, and a file system without a
 * journal may write them in any order; if the loss of the old name reached the disk and the new name did
 * not, a power cut would lose the message. So the folder that gained the name is synced first, then
 * the one that lost it. Syncing costs a thousand times more than renaming: a command that marks
 * two hundred messages touches three folders, and syncs these three once, at its end.
 *
 * Between rename and flush a power cut may undo a mark. Then mail that was shown comes again, which
 * promise 9 allows; what it forbids, mail that is consumed without having been shown, cannot
 * come of it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/sys_break.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <fcntl.h>

#define DIRTY_MAX (sizeof(((struct maildir *)0)->dirty) / sizeof(struct dirty))

static void
sync_folder(struct maildir *md, int fd)
{
	/* The kernel reports a failed write-back once. Asking again would answer "fine", so the first
	 * answer is kept for the flush that the caller makes. */
	if (sys_fsync(fd) < 0 && md->dirty_errno == 0)
		md->dirty_errno = errno;
}

static void
sync_all(struct maildir *md)
{
	/* Pure targets, then those that mail came into and left again, then pure sources. */
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

static struct dirty *
find_dirty(struct maildir *md, const struct stat *st)
{
	for (size_t i = 0; i < md->dirty_n; i++)
		if (md->dirty[i].ino == st->st_ino && md->dirty[i].dev == st->st_dev)
			return &md->dirty[i];
	return NULL;
}

/* False: it could not be noted (descriptors ran out), so it has to be synced now. */
static bool
note(struct maildir *md, int fd, bool target)
{
	struct stat st;

	if (sys_stat_fd(fd, &st) < 0)
		return false;
	struct dirty *d = find_dirty(md, &st);
	if (d == NULL) {
		int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (own < 0)
			return false;
		d = &md->dirty[md->dirty_n++];
		*d = (struct dirty){ .fd = own, .dev = st.st_dev, .ino = st.st_ino };
	}
	d->target |= target;
	d->source |= !target;
	return true;
}

static void
note_move(struct maildir *md, int from_fd, int to_fd)
{
	if (!md->sync)
		return;
	if (md->dirty_n + 2 > DIRTY_MAX)
		sync_all(md);
	if (!note(md, to_fd, true) || !note(md, from_fd, false)) {
		sync_folder(md, to_fd);
		sync_all(md);
		sync_folder(md, from_fd);
	}
}

enum mr_rc
commit_move(struct maildir *md, int from_fd, const char *from, int to_fd, const char *to, struct mr_error *err)
{
	if (sys_rename_new(from_fd, from, to_fd, to) < 0) {
		if (errno == ENOENT)
			return mr_fail(err, MR_NOTFOUND, "'%s' is not there any more", from);
		if (errno != EEXIST)
			return mr_fail_errno(err, "cannot rename '%s' to '%s'", from, to);
		return mr_fail(err, MR_EXISTS, "cannot rename '%s': '%s' is taken", from, to);
	}
	note_move(md, from_fd, to_fd);
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
	return mr_hint(err, "they are done but a power cut may undo them; look at the disk, then repeat the command");
}

void
commit_forget(struct maildir *md)
{
	for (size_t i = 0; i < md->dirty_n; i++)
		sys_close_fd(&md->dirty[i].fd);
	md->dirty_n = 0;
}
