/* SPDX-License-Identifier: MIT */
/*
 * mark.c - marks and moves. A mark is a rename to a name with other letters, a move a rename into another folder;
 * the file itself never changes (promise 3). Nobody locks anything: a command that finds the name it
 * wanted to rename gone looks the message up again and decides anew.
 *
 * Filing. Reading a folder costs 0.4 us an entry, so cur/ is kept small: a listing that finds more than 128
 * messages there that are seen and not pinned says so in md->crowded, and the next flush (a write path; looking
 * never moves anything) files the oldest of them into the archive of their month until 64 are left.
 * A larger limit would make each look at the inbox slower, a smaller one would file more often.
 */
#include "rooms/maildir/maildir.h"

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

	TRY(mailbox_open_dead(&dead, md, err));
	TRY(mailbox_folder(&dead, n->has_info ? BOX_CUR : BOX_NEW, &to_fd, err));
	return mark_rename(md, from_fd, from, to_fd, n, attempt, name_flags(n, false), n->has_info, err);
}

/* ---- Marking and moving one message ---- */

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
	arena_free(f->own);
}

struct change {
	unsigned set, clear;
	enum mr_folder to; /* 0: it stays where it is */
};

static enum mr_rc
apply_mark(struct found *f, const struct change *want, struct mr_error *err)
{
	const char *sub = f->at.subfolder ? f->at.subfolder : "";
	mr_auto(sys_close_fd) int own_fd = -1;
	int cur_fd = -1;
	unsigned flags = (f->at.flags | want->set) & ~want->clear;

	if ((flags & MR_ACKED) && !(f->at.flags & MR_ACKED) && !mailbox_map_acked(f->box, sub))
		flags &= ~(unsigned)MR_ACKED; /* the letter is another program's here */
	if (flags == f->at.flags)
		return MR_OK;
	f->parts.a_is_ours = ((f->at.flags | flags) & MR_ACKED) != 0;
	if (f->at.subfolder) {
		TRY(mailbox_subfolder(f->box, sub, false, &own_fd, err));
		cur_fd = own_fd;
	} else {
		TRY(mailbox_folder(f->box, BOX_CUR, &cur_fd, err));
	}
	return mark_rename(f->box->md, f->fd, f->at.name, cur_fd, &f->parts, f->parts.attempt, flags, true, err);
}

/* To the archive, or to the inbox. */
static enum mr_rc
move_between(struct found *f, enum mr_folder to, struct mr_error *err)
{
	mr_auto(sys_close_fd) int own_fd = -1;
	char month[24] = "";
	int fd = -1;

	if (to == MR_ARCHIVE) {
		name_month(f->at.id, month);
		TRY(mailbox_subfolder(f->box, month, true, &own_fd, err));
		fd = own_fd;
	} else {
		TRY(mailbox_folder(f->box, BOX_CUR, &fd, err));
	}
	unsigned acked = mark_carry_acked(f->box, f->at.subfolder ? f->at.subfolder : "", month, &f->parts);

	return mark_rename(f->box->md, f->fd, f->at.name, fd, &f->parts, f->parts.attempt,
	    name_flags(&f->parts, false) | acked, true, err);
}

static enum mr_rc
apply(struct found *f, const struct change *want, struct mr_error *err)
{
	if (want->to == 0)
		return apply_mark(f, want, err);
	if (f->at.folder == want->to)
		return MR_OK;
	if (want->to == MR_DEAD)
		return mark_to_dead(f->box->md, f->fd, f->at.name, &f->parts, f->parts.attempt, err);
	return move_between(f, want->to, err);
}

static enum mr_rc
change(struct mailbox *box, const char *id, const struct change *want, struct mr_error *err)
{
	/* Another program may rename the file at any moment: then it is tried with the name it has now. */
	for (int tries = 0; tries < MOVE_TRIES; tries++) {
		mr_auto(found_done) struct found f = { .box = box, .fd = -1 };

		TRY(list_find(box, id, MR_INBOX | MR_ARCHIVE | MR_HELD, &f.own, &f.at, err));
		if (f.at.folder == MR_HELD)
			return mr_fail(err, MR_BUSY,
			    "message '%s' is being shown or worked on\ntry again when it is done or released", id);
		if (!name_parse(str_of(f.at.name), &f.parts))
			return mr_fail(err, MR_CORRUPT, "'%s' is no name of a message", f.at.name);
		TRY(list_open_folder(box, &f.at, &f.fd, err));
		enum mr_rc rc = apply(&f, want, err);

		if (rc != MR_NOTFOUND)
			return rc;
	}
	return mr_fail(err, MR_BUSY,
	    "message '%s' is renamed by others all the time\n"
	    "try again; if it goes on, look for a mail client that works on this mailbox",
	    id);
}

/* Only a listing notices that cur/ is crowded, and a reader by full ids makes none: one in 32 looks. */
void
mark_look_for_crowd(struct mailbox *box, const char *id)
{
	mr_auto(listing_done) struct listing unread = { 0 };

	if (id[MR_ID_LEN - 1] != '0' || box->md->looked_for_crowd)
		return;
	box->md->looked_for_crowd = true;
	(void)list_folders(box, MR_INBOX, true, NULL, &unread, IGNORED);
}

enum mr_rc
maildir_mark(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, enum mr_folder to,
    struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;

	if (to && to != MR_INBOX && to != MR_ARCHIVE && to != MR_DEAD)
		return mr_fail(err, MR_UNSUPPORTED, "messages cannot be moved to that folder");
	TRY(mailbox_open(&box, maildir_of(room), agent, err));
	if (set || clear || !to)
		TRY(change(&box, id, &(struct change){ .set = set, .clear = clear }, err));
	if (set & MR_SEEN)
		mark_look_for_crowd(&box, id);
	return to ? change(&box, id, &(struct change){ .to = to }, err) : MR_OK;
}

/* ---- Filing, and making it all durable ---- */

/* Best effort: what is not filed now is filed another time. */
static void
file_oldest(struct mailbox *box)
{
	mr_auto(listing_done) struct listing l = { 0 };
	size_t seen = 0;

	if (list_folders(box, MR_INBOX, false, NULL, &l, IGNORED) != MR_OK)
		return;
	for (size_t i = 0; i < l.n; i++)
		if (l.v[i].box == BOX_CUR && (l.v[i].flags & (MR_SEEN | MR_PINNED)) == MR_SEEN)
			l.v[seen++] = l.v[i];
	l.n = seen;
	listing_sort(&l, SCAN_OLDEST);
	for (size_t i = 0; i + FILE_DOWN_TO < seen; i++) {
		mr_auto(found_done) struct found f = { .box = box, .at = l.v[i], .fd = -1 };

		if (!name_parse(str_of(f.at.name), &f.parts))
			continue;
		enum mr_rc rc = list_open_folder(box, &f.at, &f.fd, IGNORED);

		if (rc == MR_OK)
			rc = move_between(&f, MR_ARCHIVE, IGNORED);
		if (rc != MR_OK && rc != MR_NOTFOUND) /* moved by another: also good */
			return;
	}
}

enum mr_rc
maildir_flush(struct mr_room *room, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;

	if (md->crowded[0] != '\0') {
		if (mailbox_open(&box, md, md->crowded, IGNORED) == MR_OK)
			file_oldest(&box);
		md->crowded[0] = '\0';
	}
	enum mr_rc rc = commit_flush(md, err);

	reserve_refill(md);
	retain_some(room);
	return rc;
}
