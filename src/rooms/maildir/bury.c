/* SPDX-License-Identifier: MIT */
/*
 * bury.c - removing an agent. The name goes first, so that nobody sends to it any more; then its unread mail goes to
 * the dead letters. A crash in between leaves unread mail in a folder that is nobody's: doctor finds it, and
 * finishes the move with --fix; so does whoever registers the name again, to whom the mail belongs then.
 */
#include "base/error.h"
#include "base/sys.h"
#include "base/sys_break.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>

#define LOCK_WAIT_MS 10000

/* Two pruned agents may have had the same message: one inode, one dead letter. Another file under that
 * name (a copy across file systems) gets a name of its own. */
static enum mr_rc
move_to_dead(struct maildir *md, struct mailbox *dead, int from_fd, const struct listed *at, struct mr_error *err)
{
	int to_fd;
	struct file_name parts;
	bool info = name_parse(str_of(at->name), &parts) && parts.has_info;

	TRY(mailbox_folder(dead, info ? BOX_CUR : BOX_NEW, &to_fd, err));
	enum mr_rc rc = commit_move(md, from_fd, at->name, to_fd, at->name, err);

	if (rc != MR_EXISTS)
		return rc;
	struct stat here, there;

	if (sys_stat(from_fd, at->name, &here) == 0 && sys_stat(to_fd, at->name, &there) == 0 &&
	    here.st_ino == there.st_ino && here.st_dev == there.st_dev) {
		if (sys_unlink(from_fd, at->name) < 0 && errno != ENOENT)
			return mr_fail_errno(err, "cannot remove '%s'", at->name);
		return MR_OK;
	}
	return mark_to_dead(md, from_fd, at->name, &parts, parts.attempt, err);
}

/* One pass over the unread mail. *ret counts what was moved. */
static enum mr_rc
bury_unread(struct mailbox *box, struct mailbox *dead, size_t *ret, struct mr_error *err)
{
	struct listing list = { 0 };
	enum mr_rc rc = list_folders(box, MR_INBOX, true, NULL, &list, err);

	for (size_t i = 0; rc == MR_OK && i < list.n; i++) {
		mr_auto(sys_close_fd) int from_fd = -1;

		rc = list_open_folder(box, &list.v[i], &from_fd, err);
		if (rc == MR_OK)
			rc = move_to_dead(box->md, dead, from_fd, &list.v[i], err);
		if (rc == MR_OK)
			++*ret;
		else if (rc == MR_NOTFOUND)
			rc = MR_OK; /* someone marked it meanwhile; the next pass looks again */
	}
	listing_done(&list);
	return rc;
}

/* A sender that opened the folder before the name went may still deliver into it: look until two
 * passes in a row find nothing. */
static enum mr_rc
bury_all(struct mailbox *box, size_t *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;

	TRY(mailbox_open_dead(&dead, box->md, err));
	for (unsigned quiet = 0; quiet < 2;) {
		size_t before = *ret, returned = 0;

		TRY(life_fence(box, UINT32_MAX, &returned, err));
		TRY(bury_unread(box, &dead, ret, err));
		quiet = *ret == before && returned == 0 ? quiet + 1 : 0;
	}
	return commit_flush(box->md, err);
}

/* For those who are sending to many just now and do not look at each of them again behind their links, but at this
 * (spool.c). It is written before the mail is looked for: so either they see it, or we see their mail. */
static enum mr_rc
tell_senders(int lock_fd, struct mr_error *err)
{
	struct stat st;

	if (sys_break_is(BREAK_UNTOLD_REMOVAL))
		return MR_OK;
	if (sys_stat_fd(lock_fd, &st) < 0 || sys_pwrite_all(lock_fd, ".", 1, st.st_size) < 0)
		return mr_fail_errno(err, "cannot note that an agent is removed");
	return MR_OK;
}

enum mr_rc
bury_leftovers(struct maildir *md, const char *name, size_t *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1;
	struct stat st;

	TRY(lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err));
	TRY(mailbox_open_any(&box, md, name, err));
	if (sys_stat(box.fd, "agent", &st) == 0)
		return MR_OK; /* registered again meanwhile: it is that agent's mail now */
	return tell_senders(lock_fd, err) == MR_OK ? bury_all(&box, ret, err) : err->code;
}

enum mr_rc
maildir_remove_agent(struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err)
{
	(void)force; /* nothing is lost: the mail goes to the dead letters */
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;
	struct maildir *md = maildir_of(room);
	size_t moved = 0;

	/* The lock keeps a new agent of this name from losing its first mail to us. */
	TRY(lock_take(md->agents_fd, ".lock", md->file_mode, LOCK_WAIT_MS, &lock_fd, err));
	TRY(mailbox_open(&box, md, name, err));
	TRY(dir_open(box.fd, ".", &fd, err));
	if (tell_senders(lock_fd, err) != MR_OK) /* also before: a full disk is noticed while nothing is done */
		return mr_wrap(err, "cannot remove agent '%s'", name);
	if (sys_unlink(fd, "agent") < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove agent '%s'", name);
	if (md->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of agent '%s' durable", name);
	if (tell_senders(lock_fd, err) != MR_OK || bury_all(&box, &moved, err) != MR_OK)
		return mr_wrap(err, "agent '%s' is removed, but not all its mail is moved", name);
	*ret_dead = moved;
	return MR_OK;
}
