/* SPDX-License-Identifier: MIT */
/*
 * move.c - between inbox and archive, which is all the read state that there is: unread mail is in the inbox, read mail
 * in the archive. The original renames over what is there; we never do. Each move is durable when it returns.
 */
#include "rooms/handoff/handoff.h"

#include "base/sys.h"
#include <errno.h>
#include <stdio.h>

#define NUMBERS 100 /* x.md.1, x.md.2, ... */

struct ends {
	int from_fd, to_fd;
};

static void
ends_done(struct ends *e)
{
	sys_close_fd(&e->from_fd);
	sys_close_fd(&e->to_fd);
}

static enum mr_rc
open_ends(struct handoff *h, const char *mailbox, enum mr_folder from, struct ends *e, struct mr_error *err)
{
	const enum mr_folder to = from == MR_INBOX ? MR_ARCHIVE : MR_INBOX;
	char path[HANDOFF_ID_MAX + 16];
	int root_fd = -1;

	TRY(handoff_id_check(mailbox, err));
	TRY(handoff_root(h, false, &root_fd, err));
	(void)snprintf(path, sizeof path, "%s/%s", mailbox, handoff_folder(from));
	TRY(dir_open(root_fd, path, &e->from_fd, err));
	(void)snprintf(path, sizeof path, "%s/%s", mailbox, handoff_folder(to));
	return dir_make(root_fd, path, 0700, true, &e->to_fd, err);
}

static bool
same_bytes(const struct ends *e, const char *name)
{
	mr_auto(buf_done) struct buf here = BUF_INIT, there = BUF_INIT;
	struct mr_error ignored = { 0 };

	return file_read(e->from_fd, name, HANDOFF_FILE_MAX, &here, &ignored) == MR_OK &&
	       file_read(e->to_fd, name, HANDOFF_FILE_MAX, &there, &ignored) == MR_OK &&
	       str_eq(buf_str(&here), buf_str(&there));
}

/* 0, or -1 and errno. */
static int
move_to_free_name(const struct ends *e, const char *name)
{
	char numbered[300];

	if (sys_rename_new(e->from_fd, name, e->to_fd, name) == 0)
		return 0;
	if (errno != EEXIST)
		return -1;
	if (same_bytes(e, name)) /* a copy: the original's archive, interrupted by hand or by a backup */
		return sys_unlink(e->from_fd, name);
	for (int i = 1; i <= NUMBERS; i++) {
		(void)snprintf(numbered, sizeof numbered, "%s.%d", name, i);
		if (sys_rename_new(e->from_fd, name, e->to_fd, numbered) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

enum mr_rc
handoff_move_file(struct handoff *h, const char *mailbox, const char *name, enum mr_folder from, struct mr_error *err)
{
	mr_auto(ends_done) struct ends e = { -1, -1 };

	TRY(open_ends(h, mailbox, from, &e, err));
	/* A number behind the name says that another message has the name; and with it nobody would list it. */
	if (from == MR_ARCHIVE && !handoff_name_is_mail(name, MR_INBOX))
		return mr_fail(err, MR_REFUSED, "'%s' cannot go back: its name was taken by another message", name);
	if (move_to_free_name(&e, name) < 0) {
		if (errno == ENOENT)
			return mr_fail(err, MR_NOTFOUND, "'%s' is not in the %s", name, handoff_folder(from));
		return mr_fail_errno(err, "cannot move '%s'", name);
	}
	/* The new place first: a power cut in between leaves two names, not none. */
	if (sys_fsync(e.to_fd) < 0 || sys_fsync(e.from_fd) < 0)
		return mr_fail_errno(err, "cannot make the move of '%s' durable", name);
	return MR_OK;
}

static enum mr_rc
move_message(struct mr_room *room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	mr_auto(handoff_list_done) struct handoff_list list = { 0 };
	char mailbox[HANDOFF_ID_MAX + 1];

	TRY(handoff_registry_read(h, &r, err));
	TRY(handoff_mailbox_of(h, &r, agent, mailbox, NULL, err));
	TRY(handoff_list_one(h, mailbox, MR_INBOX | MR_ARCHIVE, id, &list, err));
	if (list.n == 0)
		return mr_fail(err, MR_NOTFOUND, "no message '%s' in the mailbox of '%s'", id, agent);
	if (to == 0 || list.v[0].folder == to)
		return MR_OK;
	enum mr_rc rc = handoff_move_file(h, mailbox, list.v[0].name, list.v[0].folder, err);

	/* Moved by another meanwhile: to where we want it, as there is no third place. */
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

enum mr_rc
handoff_mark(
    struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err)
{
	enum mr_folder to = 0;

	if (set & (MR_PINNED | MR_TRASHED))
		return mr_fail(err, MR_UNSUPPORTED,
		    "a message in a handoff room is read or unread, nothing else\n"
		    "mark it read, or archive it, which is the same here");
	if (set & MR_SEEN)
		to = MR_ARCHIVE;
	else if (clear & MR_SEEN)
		to = MR_INBOX;
	return move_message(room, agent, id, to, err);
}

enum mr_rc
handoff_move(struct mr_room *room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err)
{
	if (to != MR_INBOX && to != MR_ARCHIVE)
		return mr_fail(err, MR_UNSUPPORTED, "a handoff room has an inbox and an archive, nothing else");
	return move_message(room, agent, id, to, err);
}
