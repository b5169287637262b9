/* SPDX-License-Identifier: MIT */
/*
 * reserve.c - space and inodes that the room reserves for a full disk.
 *
 *	reserve/00 ... reserve/31    16 KiB each, really allocated: an inode and some blocks to give back
 *
 * Taking mail out of an inbox needs a little of both: a file in holds/, a folder for a new month, a block for a folder
 * that grows. The commands that empty a mailbox (purge, drain, read, recv, archive, done) may spend the reserve, one
 * file at a time and only when a call has failed because the disk was full (sys_relief); a send never does. One archive
 * folder takes 6 inodes and 5 blocks, and a drain into it a few more: 32 files are enough for the first drain of three
 * or four mailboxes. They are larger than that needs because xfs makes no folder while less than some 40 blocks are
 * free.
 *
 * The files carry no state, and nothing depends on what a kill leaves of them: missing files are made again.
 *
 * A command that spent some files makes as many as fit again as soon as it is done, so that the space it freed goes to
 * the reserve before the next send can take it. Otherwise (in a room of an older mailroom, or with a reserve that was
 * used up) the first command that moves mail or registers an agent makes the files, if there is plenty of space, so
 * that the reserve does not fill a small disk. To know that none is missing takes one look at the last file, which is
 * the first to be spent; a send, or a hook without mail, does not even look.
 */
#include "base/storage.h"
#include "rooms/maildir/maildir.h"

/*
 * On btrfs there is no reserve. It keeps space for removals itself, and removing a file there frees nothing before the
 * next commit. (The files also made the two names after a power cut, see claim.c, more frequent.)
 */

#define RESERVE "reserve"
#define FILE_BYTES 16384
#define PLENTY 2 /* times the size of the reserve */
#define ABOUT                                                                                                          \
	"Space that mailroom keeps for a full disk: purge, drain, read, recv, archive and done use it up,\n"           \
	"and it is made again. See mailroom-maildir(5).\n"

static void
name_of(unsigned i, char ret[4])
{
	(void)snprintf(ret, 4, "%02u", i % 100);
}

bool
reserve_spend(void *ctx)
{
	struct maildir *md = ctx;
	mr_auto(sys_close_fd) int fd = sys_open_reach(md->root_fd, RESERVE);
	char name[4];

	for (unsigned i = RESERVE_FILES; fd >= 0 && i-- > 0;) {
		name_of(i, name);
		if (sys_unlink(fd, name) == 0)
			return md->reserve_spent = true;
	}
	return false;
}

size_t
reserve_missing(struct maildir *md)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	if (storage_is_btrfs(md->root_fd))
		return 0;
	(void)names_in(md->root_fd, RESERVE, NULL, &names, IGNORED);
	return names.n < RESERVE_FILES ? RESERVE_FILES - names.n : 0;
}

static enum mr_rc
make_file(struct maildir *md, int fd, const char *name, struct mr_error *err)
{
	mr_auto(stage_done) struct staged s = STAGED_INIT;

	TRY(stage_open(&s, fd, fd, md->file_mode, err));
	TRY(stage_write(&s, STR(ABOUT), err));
	if (sys_allocate(s.fd, FILE_BYTES) < 0)
		return mr_fail_errno(err, "cannot allocate '%s'", name);
	enum mr_rc rc = stage_link(&s, fd, name, err);

	return rc == MR_EXISTS ? MR_OK : rc;
}

/* One sync of the folder is enough: files that a power cut loses are made again. */
enum mr_rc
reserve_make(struct maildir *md, struct mr_error *err)
{
	const struct sys_relief *relief = sys_relief_set(NULL); /* a file must not be made from the space of another */
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = dir_make(md->root_fd, RESERVE, md->dir_mode, md->sync, &fd, err);
	struct stat st;
	char name[4];
	bool made = false;

	for (unsigned i = 0; i < RESERVE_FILES && rc == MR_OK; i++) {
		name_of(i, name);
		if (sys_stat(fd, name, &st) == 0)
			continue;
		rc = make_file(md, fd, name, err);
		made |= rc == MR_OK;
	}
	if (made && md->sync)
		(void)sys_fsync(fd);
	(void)sys_relief_set(relief);
	return rc;
}

void
reserve_refill(struct maildir *md)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct stat st;
	char last[sizeof RESERVE + 4];

	if (md->reserve_spent) {
		md->reserve_spent = reserve_make(md, IGNORED) != MR_OK;
		return;
	}
	if (md->reserve_looked)
		return;
	md->reserve_looked = true;
	(void)snprintf(last, sizeof last, RESERVE "/%02u", RESERVE_FILES - 1);
	if (sys_stat(md->root_fd, last, &st) < 0 && dir_open(md->root_fd, ".", &fd, IGNORED) == MR_OK &&
	    !storage_is_btrfs(fd) && storage_has_free(fd, PLENTY * RESERVE_FILES * FILE_BYTES, PLENTY * RESERVE_FILES))
		(void)reserve_make(md, IGNORED);
}
