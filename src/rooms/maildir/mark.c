/* SPDX-License-Identifier: MIT */
/*
 * mark.c - marks and moves. A mark is a rename to a name with other letters, a move a rename into another folder;
 * the file itself never changes (promise 3). Nobody locks anything: who finds that the name it
 * wanted to rename is gone looks the message up again and decides anew.
 *
 * Filing. Reading a folder costs 0.4 us an entry, so cur/ is kept small: a listing that finds more than 128
 * messages there that are seen and not pinned says so in md->crowded, and the next flush (a write path; looking
 * never moves anything) files the oldest of them into the archive of their month until 64 are left.
 * A larger limit would make each look at the inbox slower, a smaller one would file more often.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <stdio.h>

#define MOVE_TRIES 20
#define NAME_TRIES 4
#define FILE_DOWN_TO 64

enum mr_rc
mark_rename(struct maildir *md, int from_fd, const char *from, int to_fd, const struct file_name *n, unsigned attempt,
    unsigned flags, bool with_info, struct mr_error *err)
{
	struct file_name named = *n;
	char tail[NAME_LEN], to[NAME_LEN], random[9];
	enum mr_rc rc = MR_EXISTS;

	for (int tries = 0; tries < NAME_TRIES && rc == MR_EXISTS; tries++) {
		if (tries > 0) {
			random_hex(random, 8);
			(void)snprintf(tail, sizeof(tail), "%.*s,D=%s", (int)n->tail.len, n->tail.ptr, random);
			named.tail = str_of(tail);
		}
		if (!name_build(&named, attempt, flags, with_info, to))
			return mr_fail(err, MR_REFUSED,
			    "the file name '%.60s...' is too long to be changed\n"
			    "rename the file: its name without flags may have at most 180 bytes",
			    from);
		rc = commit_move(md, from_fd, from, to_fd, to, err);
	}
	return rc;
}

unsigned
mark_carry_acked(struct mailbox *box, const char *from, const char *to, struct file_name *n)
{
	if (n->flags.len == 0 || memchr(n->flags.ptr, 'a', n->flags.len) == NULL)
		return 0;
	enum keyword there = mailbox_keyword(box, to);
	if (mailbox_keyword(box, from) == KEYWORD_FOREIGN) {
		n->a_is_ours = there == KEYWORD_OURS; /* then it would read as "done": left behind */
		return 0;
	}
	n->a_is_ours = true;
	return there == KEYWORD_FOREIGN ? 0 : MR_ACKED;
}

enum mr_rc
mark_to_dead(struct maildir *md, int from_fd, const char *from, const struct file_name *n, unsigned attempt,
    struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	int to_fd = -1;

	enum mr_rc rc = mailbox_open_dead(&dead, md, err);
	if (rc == MR_OK)
		rc = mailbox_folder(&dead, n->has_info ? BOX_CUR : BOX_NEW, &to_fd, err);
	if (rc == MR_OK)
		rc = mark_rename(md, from_fd, from, to_fd, n, attempt, name_flags(n, false), n->has_info, err);
	return rc;
}

/* ---- One message, found and opened ---- */

struct found {
	struct mailbox *box;
	struct listed at;
	struct file_name parts; /* points into at.name */
	int fd;                 /* its folder */
	struct arena *own;
};

static void
found_done(struct found *f)
{
	sys_close_fd(&f->fd);
	f->fd = -1;
	arena_free(f->own);
	f->own = NULL;
}

static enum mr_rc
find_movable(struct found *f, const char *id, unsigned folders, struct mr_error *err)
{
	TRY(list_find(f->box, id, folders | MR_HELD, &f->own, &f->at, err));
	if (f->at.folder == MR_HELD)
		return mr_fail(err, MR_BUSY,
		    "message '%s' is being shown or worked on\ntry again when it is done or released", id);
	if (!name_parse(str_of(f->at.name), &f->parts))
		return mr_fail(err, MR_CORRUPT, "'%s' is no name of a message", f->at.name);
	return list_open_folder(f->box, &f->at, &f->fd, err);
}

static const char *
subfolder_of(const struct listed *at)
{
	return at->subfolder != NULL ? at->subfolder : "";
}

/* Another program may rename the file at any moment: `step` is tried with the name it has now. */
static enum mr_rc
until_moved(struct mailbox *box, const char *id, unsigned folders,
    enum mr_rc (*step)(struct found *f, const void *want, struct mr_error *err), const void *want, struct mr_error *err)
{
	for (int tries = 0; tries < MOVE_TRIES; tries++) {
		mr_auto(found_done) struct found f = { .box = box, .fd = -1 };
		enum mr_rc rc = find_movable(&f, id, folders, err);
		if (rc != MR_OK)
			return rc;
		rc = step(&f, want, err);
		if (rc != MR_NOTFOUND)
			return rc;
	}
	return mr_fail(err, MR_BUSY,
	    "message '%s' is renamed by others all the time\n"
	    "try again; if it goes on, look for a mail client that works on this mailbox",
	    id);
}

/* ---- Marks ---- */

struct mark {
	unsigned set, clear;
};

static enum mr_rc
apply_mark(struct found *f, const void *want, struct mr_error *err)
{
	const struct mark *mark = want;
	const char *sub = subfolder_of(&f->at);
	mr_auto(sys_close_fd) int own_fd = -1;
	int cur_fd = -1;

	unsigned flags = (f->at.flags | mark->set) & ~mark->clear;
	if ((flags & MR_ACKED) && !(f->at.flags & MR_ACKED) && !mailbox_map_acked(f->box, sub))
		flags &= ~(unsigned)MR_ACKED; /* the letter is another program's here */
	if (flags == f->at.flags)
		return MR_OK;
	f->parts.a_is_ours = ((f->at.flags | flags) & MR_ACKED) != 0;
	enum mr_rc rc;
	if (f->at.subfolder != NULL) {
		rc = mailbox_subfolder(f->box, sub, false, &own_fd, err);
		cur_fd = own_fd;
	} else {
		rc = mailbox_folder(f->box, BOX_CUR, &cur_fd, err);
	}
	if (rc != MR_OK)
		return rc;
	return mark_rename(f->box->md, f->fd, f->at.name, cur_fd, &f->parts, f->parts.attempt, flags, true, err);
}

/* Only a listing notices that cur/ is crowded, and who reads by full ids makes none: one in 32 looks. */
void
mark_look_for_crowd(struct mailbox *box, const char *id)
{
	mr_auto(listing_done) struct listing unread = { 0 };
	struct mr_error ignored = { 0 };

	if (id[MR_ID_LEN - 1] != '0' || box->md->looked_for_crowd)
		return;
	box->md->looked_for_crowd = true;
	(void)list_folders(box, MR_INBOX, true, NULL, &unread, &ignored);
}

enum mr_rc
maildir_mark(
    struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct mark mark = { set, clear };

	enum mr_rc rc = mailbox_open(&box, maildir_of(room), agent, err);
	if (rc == MR_OK)
		rc = until_moved(&box, id, MR_INBOX | MR_ARCHIVE, apply_mark, &mark, err);
	if (rc == MR_OK && (set & MR_SEEN))
		mark_look_for_crowd(&box, id);
	return rc;
}

/* ---- Moves ---- */

static enum mr_rc
to_archive(struct found *f, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char month[24];

	name_month(f->at.id, month);

	TRY(mailbox_subfolder(f->box, month, true, &fd, err));
	unsigned acked = mark_carry_acked(f->box, "", month, &f->parts);
	return mark_rename(f->box->md, f->fd, f->at.name, fd, &f->parts, f->parts.attempt,
	    name_flags(&f->parts, false) | acked, true, err);
}

static enum mr_rc
to_inbox(struct found *f, struct mr_error *err)
{
	int fd = -1;

	TRY(mailbox_folder(f->box, BOX_CUR, &fd, err));
	unsigned acked = mark_carry_acked(f->box, subfolder_of(&f->at), "", &f->parts);
	return mark_rename(f->box->md, f->fd, f->at.name, fd, &f->parts, f->parts.attempt,
	    name_flags(&f->parts, false) | acked, true, err);
}

static enum mr_rc
apply_move(struct found *f, const void *want, struct mr_error *err)
{
	enum mr_folder to = *(const enum mr_folder *)want;

	if (f->at.folder == to)
		return MR_OK;
	if (to == MR_ARCHIVE)
		return to_archive(f, err);
	if (to == MR_INBOX)
		return to_inbox(f, err);
	return mark_to_dead(f->box->md, f->fd, f->at.name, &f->parts, f->parts.attempt, err);
}

enum mr_rc
maildir_move(struct mr_room *room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;

	if (to != MR_INBOX && to != MR_ARCHIVE && to != MR_DEAD)
		return mr_fail(err, MR_UNSUPPORTED, "messages cannot be moved to that folder");
	enum mr_rc rc = mailbox_open(&box, maildir_of(room), agent, err);
	if (rc == MR_OK)
		rc = until_moved(&box, id, MR_INBOX | MR_ARCHIVE, apply_move, &to, err);
	return rc;
}

/* ---- Filing, and making it all durable ---- */

static enum mr_rc
file_oldest(struct mailbox *box, struct mr_error *err)
{
	mr_auto(listing_done) struct listing l = { 0 };
	size_t seen = 0;

	enum mr_rc rc = list_folders(box, MR_INBOX, false, NULL, &l, err);
	for (size_t i = 0; i < l.n; i++) {
		if (l.v[i].box == BOX_CUR && (l.v[i].flags & (MR_SEEN | MR_PINNED)) == MR_SEEN)
			l.v[seen++] = l.v[i];
	}
	l.n = seen;
	listing_sort(&l, false);
	for (size_t i = 0; i + FILE_DOWN_TO < seen && rc == MR_OK; i++) {
		mr_auto(found_done) struct found f = { .box = box, .at = l.v[i], .fd = -1 };
		if (!name_parse(str_of(f.at.name), &f.parts))
			continue;
		rc = list_open_folder(box, &f.at, &f.fd, err);
		if (rc == MR_OK)
			rc = to_archive(&f, err);
		if (rc == MR_NOTFOUND) /* someone else moved it: also good */
			rc = MR_OK;
	}
	return rc;
}

enum mr_rc
maildir_flush(struct mr_room *room, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct mr_error ignored = { 0 };
	char agent[MR_ADDRESS_MAX + 1];

	if (md->crowded[0] != '\0') {
		memcpy(agent, md->crowded, sizeof(agent));
		/* Housekeeping must not make a command fail: what is not filed now is filed another time. */
		if (mailbox_open(&box, md, agent, &ignored) == MR_OK)
			(void)file_oldest(&box, &ignored);
		md->crowded[0] = '\0';
	}
	enum mr_rc rc = commit_flush(md, err);

	reserve_keep(md);
	return rc;
}
