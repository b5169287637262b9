/* SPDX-License-Identifier: MIT */
/*
 * renew.c - replaces folders that grew large. A folder never shrinks: if new/ once held 100,000 messages, every later
 * listing reads all of that space. So the flush of a command that took mail out of new/ or cur/ exchanges a large
 * folder with few entries for an empty one, while others deliver into it and read it. held/<N> is simpler: when it is
 * large and empty it is removed, and the next claim makes it again.
 *
 * A is the large folder, B the new one, R random.
 *
 *	1 locked      A is flocked. Its name still refers to it, and there is no held/.gone.*: one renewal at a time.
 *	2 made        B is held/.gone.new.R, flocked, with an empty file `.moving.R` in it; B and held/ are synced.
 *	3 exchanged   new/ is B, held/.gone.new.R is A: one rename (RENAME_EXCHANGE); held/ and the mailbox are synced.
 *	4 emptied     the mail in A is renamed into B, B and A are synced. Repeated if mail came into A meanwhile.
 *	5 removed     A is removed, which succeeds only while it is empty; then `.moving.R` is.
 *
 * Kills and power cuts. In 2, B holds only `.moving.R`. From 3 on, mail may be in A. In every case the next sweep of
 * the mailbox finds held/.gone.new.R (renew_finish) with a free lock and goes on at 4, which is right for A and for B.
 * An older mailroom also puts back the mail in held/.gone.*. After 5 at most `.moving.R` is left; a listing that finds
 * no folder for it removes it. Power cut in 3: with a journal the exchange is done or not done. B has a durable name in
 * held/ before anybody can deliver into it, and A keeps one of the two names. Without a journal only one of the two
 * changes may reach the disk, and mail would be lost; so there, and if the kernel cannot exchange, folders are not
 * replaced.
 *
 * Readers. A listing that finds `.moving.R` in new/ or cur/ reads held/.gone.new.R as well, and does not count such a
 * pass as exact (list.c): mail in A is always visible, even while the renewing process sleeps. Messages found there are
 * opened, marked and claimed there.
 *
 * Senders. A sender that opened A before the exchange links into it. Before 5 that mail keeps A from being removed and
 * is moved to B; its sync of A also covers the rename that followed. After 5 its link fails with ENOENT, because a
 * removed folder accepts no names; then it opens new/ again and links the same file. The same holds for marks and for
 * mail that is put back (mailbox_refresh).
 *
 * Waiters. inotify reports that A was moved; the waiter then watches the current new/ (watch.c).
 */
#include "base/storage.h"
#include "base/fault.h"
#include "rooms/maildir/maildir.h"
#include <sys/file.h>

#define LARGE ((off_t)64 << 10)
#define BYTES_AN_ENTRY 1024 /* at most a sixteenth full: ext4 takes some 64 bytes for a name of ours */
#define ROUNDS 10
#define MANY 32 /* messages moved by one command */

/* "new", "cur"; NULL: not a leftover of ours. */
static const char *
folder_of(const char *gone, const char **ret_random)
{
	for (unsigned which = BOX_NEW; which <= BOX_CUR; which++) {
		char prefix[16];

		text_join(prefix, sizeof prefix, GONE_PREFIX, mailbox_folder_name(which), ".", NULL);
		*ret_random = gone + strlen(prefix);
		if (str_starts(str_of(gone), prefix))
			return mailbox_folder_name(which);
	}
	return NULL;
}

bool
renew_is_leftover(const char *gone)
{
	const char *random;

	return folder_of(gone, &random) != NULL;
}

/* ---- State 4 and 5 ---- */

/* If the name is taken by the same file, a move was cut off and is repeated; another file gets another name. */
static enum mr_rc
move_one(struct maildir *md, int from_fd, const char *name, int to_fd, struct mr_error *err)
{
	struct file_name parts;
	enum mr_rc rc = commit_move(md, from_fd, name, to_fd, name, err);

	if (rc == MR_EXISTS && file_is_same(from_fd, name, to_fd, name))
		return sys_unlink(from_fd, name) == 0 || errno == ENOENT ? MR_OK : mr_fail_errno(err, "'%s'", name);
	if (rc == MR_EXISTS && name_parse(str_of(name), &parts)) {
		parts.a_is_ours = false; /* keep the letter as it is */
		rc = mark_rename(
		    md, from_fd, name, to_fd, &parts, parts.attempt, name_flags(&parts, false), parts.has_info, err);
	}
	return rc == MR_NOTFOUND ? MR_OK : rc; /* a reader was faster */
}

/* gone_fd is locked by us. */
static enum mr_rc
empty_and_remove(struct mailbox *box, int held_fd, const char *gone, int gone_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int live_fd = -1;
	const char *random, *name = folder_of(gone, &random);
	char marker[NAME_LEN];

	TRY(dir_open(box->fd, name, &live_fd, err));
	for (int round = 0; round < ROUNDS; round++) {
		mr_auto(mr_names_done) struct mr_names names = { 0 };

		TRY(dir_names(gone_fd, &names, err));
		for (size_t i = 0; i < names.n; i++) {
			if (str_starts(str_of(names.v[i]), MOVING_PREFIX))
				(void)sys_unlink(gone_fd, names.v[i]);
			else
				TRY(move_one(box->md, gone_fd, names.v[i], live_fd, err));
		}
		TRY(commit_flush(box->md, err));
		if (sys_rmdir(held_fd, gone) == 0 || errno == ENOENT) {
			text_join(marker, sizeof marker, MOVING_PREFIX, random, NULL);
			(void)sys_unlink(live_fd, marker);
			return MR_OK;
		}
	}
	return MR_OK; /* a stream of late mail, or a file that cannot be moved: left to the next sweep */
}

enum mr_rc
renew_finish(struct mailbox *box, int held_fd, const char *gone, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	enum mr_rc rc = dir_open(held_fd, gone, &fd, err);
	if (rc == MR_NOTFOUND || rc == MR_REFUSED)
		return MR_OK;
	TRY(rc);
	/* Locked: its process lives. Another folder: the exchange came between the two calls. */
	if (sys_flock(fd, LOCK_EX | LOCK_NB) < 0 || !file_is_same(fd, NULL, held_fd, gone))
		return MR_OK;
	return empty_and_remove(box, held_fd, gone, fd, err);
}

/* ---- States 1 to 3 ---- */

struct count {
	size_t n, max;
	bool gone;
};

static bool
count_entry(void *ctx, const struct dir_entry *entry)
{
	struct count *count = ctx;

	count->gone |= str_starts(str_of(entry->name), GONE_PREFIX);
	return ++count->n <= count->max;
}

/* A folder with many entries wastes nothing; on most other file systems the size follows the number of entries. */
static bool
is_worth_it(int fd, const struct stat *st)
{
	struct count count = { .max = (size_t)st->st_size / BYTES_AN_ENTRY };

	return sys_break_renews() || (dir_each(fd, count_entry, &count, IGNORED) == MR_OK && count.n <= count.max);
}

static bool
keeps_renames_whole(struct maildir *md)
{
	struct mr_storage storage;

	return sys_break_renews() || !md->sync ||
	       (storage_of(md->root_fd, md->path, &storage, IGNORED) == MR_OK && storage.power_safe);
}

/* State 2; *ret_fd is B. */
static bool
make_empty(struct maildir *md, int held_fd, const char *gone, const char *marker, int *ret_fd)
{
	if (sys_mkdir(held_fd, gone, md->dir_mode) < 0 || dir_open(held_fd, gone, ret_fd, IGNORED) != MR_OK ||
	    sys_flock(*ret_fd, LOCK_EX | LOCK_NB) < 0)
		return false;
	mr_auto(sys_close_fd) int fd = sys_open(*ret_fd, marker, O_WRONLY | O_CREAT | O_EXCL, md->file_mode);

	return fd >= 0 && (!md->sync || (sys_fsync(*ret_fd) == 0 && sys_fsync(held_fd) == 0));
}

static enum mr_rc
renew(struct mailbox *box, enum box_folder which, bool many, struct mr_error *err)
{
	mr_auto(sys_close_fd) int a_fd = -1, b_fd = -1, box_fd = -1;
	const char *name = mailbox_folder_name(which);
	char random[9], gone[32], marker[32];
	struct count held = { .max = SIZE_MAX };
	struct maildir *md = box->md;
	int held_fd = -1;
	struct stat st;

	/* Counting takes as long as reading the folder, so a command that moved little does it only now and then. */
	if (sys_stat(box->fd, name, &st) < 0 || (st.st_size <= LARGE && !sys_break_renews()) ||
	    (!many && clock_now_ns() / 1000 % MANY != 0 && !sys_break_renews()) ||
	    dir_open(box->fd, name, &a_fd, IGNORED) != MR_OK || !is_worth_it(a_fd, &st) || !keeps_renames_whole(md) ||
	    dir_open(box->fd, ".", &box_fd, IGNORED) != MR_OK ||
	    mailbox_folder(box, BOX_HELD, &held_fd, IGNORED) != MR_OK || sys_flock(a_fd, LOCK_EX | LOCK_NB) < 0 ||
	    !file_is_same(a_fd, NULL, box->fd, name) || dir_each(held_fd, count_entry, &held, IGNORED) != MR_OK ||
	    held.gone)
		return MR_OK;
	random_hex(random, sizeof random - 1);
	text_join(gone, sizeof gone, GONE_PREFIX, name, ".", random, NULL);
	text_join(marker, sizeof marker, MOVING_PREFIX, random, NULL);
	if (!make_empty(md, held_fd, gone, marker, &b_fd) || sys_rename_exchange(box->fd, name, held_fd, gone) < 0) {
		if (b_fd >= 0)
			(void)sys_unlink(b_fd, marker);
		(void)sys_rmdir(held_fd, gone);
		return MR_OK;
	}
	sys_close_fd(&box->folder[which]);
	if (md->sync && (sys_fsync(held_fd) < 0 || sys_fsync(box_fd) < 0))
		return mr_fail_errno(err, "cannot make the new folder '%s' durable", name);
	return empty_and_remove(box, held_fd, gone, a_fd, err);
}

enum mr_rc
renew_folders(struct mailbox *box, size_t moved, struct mr_error *err)
{
	TRY(renew(box, BOX_NEW, moved >= MANY, err));
	TRY(renew(box, BOX_CUR, moved >= MANY, err));
	if (moved < MANY && !sys_break_renews())
		return MR_OK;
	/* A drain holds the next thousand at once, and would make the folder again, with two syncs. */
	if (box->md->process_token[0] != '\0')
		box->md->held_many = true;
	else
		renew_held(box);
	return MR_OK;
}

void
renew_held(struct mailbox *box)
{
	mr_auto(mr_names_done) struct mr_names lives = { 0 };
	int held_fd = -1;
	unsigned life;
	struct stat st;

	if (mailbox_folder(box, BOX_HELD, &held_fd, IGNORED) != MR_OK || dir_names(held_fd, &lives, IGNORED) != MR_OK)
		return;
	for (size_t i = 0; i < lives.n; i++)
		if (life_number(lives.v[i], &life) && sys_stat(held_fd, lives.v[i], &st) == 0 && S_ISDIR(st.st_mode) &&
		    (st.st_size > LARGE || sys_break_renews()))
			(void)sys_rmdir(held_fd, lives.v[i]); /* fails while it is not empty */
}
