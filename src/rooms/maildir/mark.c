/* SPDX-License-Identifier: MIT */
/*
 * mark.c - marks and moves. A mark is a rename to a name with other letters, a move a rename into another folder; the
 * file itself never changes (promise 3). There are no locks: if the name that a command wants to rename is gone, the
 * command looks the message up again and decides again.
 *
 * Filing. Reading a folder costs 0.4 us an entry, so cur/ is kept small: the flush of a command that made mail seen
 * there (reading never moves anything) counts the files that are seen and not pinned. If there are more than 128, it
 * moves the oldest into the archive of their month until 64 are left. A larger limit would make each look at the inbox
 * slower, a smaller one would move files more often. Then folders that a backlog left large are replaced (renew.c).
 */
#include "rooms/maildir/maildir.h"

#define MOVE_TRIES 20
#define NAME_TRIES 4
#define CROWDED_AT 128
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
		n->a_is_ours = there == KEYWORD_OURS; /* it would mean "done" there: dropped */
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

/* Moves it into the archive of its month, from `sub` ("": the inbox). */
static enum mr_rc
archive(struct mailbox *box, int from_fd, const char *from, const char *sub, struct file_name *n, struct mr_error *err)
{
	char month[24];
	int fd = -1;

	name_month(ARCHIVE_FOLDER, id_time_ms(n->id), month);
	TRY(mailbox_subfolder(box, month, true, &fd, err));
	unsigned acked = mark_carry_acked(box, sub, month, n);

	return mark_rename(box->md, from_fd, from, fd, n, n->attempt, name_flags(n, false) | acked, true, err);
}

/* ---- Marking and moving one message ---- */

struct found {
	struct mailbox *box;
	struct listed at;
	struct file_name parts; /* points into at.name */
	int fd;                 /* its folder */
	const char *sub;        /* ".Archive.2026-11"; "": the inbox */
	struct arena *own;
};

static void
found_done(struct found *f)
{
	sys_close_fd(&f->fd);
	arena_free(f->own);
}

static enum mr_rc
apply_mark(struct found *f, unsigned set, unsigned clear, struct mr_error *err)
{
	const char *sub = f->sub;
	int cur_fd = -1;
	unsigned flags = (f->at.flags | set) & ~clear;

	if ((flags & MR_ACKED) && !(f->at.flags & MR_ACKED) && !mailbox_map_acked(f->box, sub))
		flags &= ~(unsigned)MR_ACKED; /* the letter belongs to another program here */
	if (flags == f->at.flags)
		return MR_OK;
	f->parts.a_is_ours = ((f->at.flags | flags) & MR_ACKED) != 0;
	if (sub[0] != '\0')
		TRY(mailbox_subfolder(f->box, sub, false, &cur_fd, err));
	else
		TRY(mailbox_folder(f->box, BOX_CUR, &cur_fd, err));
	return mark_rename(f->box->md, f->fd, f->at.name, cur_fd, &f->parts, f->parts.attempt, flags, true, err);
}

static enum mr_rc
apply_move(struct found *f, enum mr_folder to, struct mr_error *err)
{
	if (f->at.folder == to)
		return MR_OK;
	if (to == MR_DEAD)
		return mark_to_dead(f->box->md, f->fd, f->at.name, &f->parts, f->parts.attempt, err);
	if (to == MR_ARCHIVE)
		return archive(f->box, f->fd, f->at.name, f->sub, &f->parts, err);
	int fd = -1;

	TRY(mailbox_folder(f->box, BOX_CUR, &fd, err));
	unsigned acked = mark_carry_acked(f->box, f->sub, "", &f->parts);

	return mark_rename(f->box->md, f->fd, f->at.name, fd, &f->parts, f->parts.attempt,
	    name_flags(&f->parts, false) | acked, true, err);
}

/* to 0: it is marked where it is. */
static enum mr_rc
change(struct mailbox *box, const char *id, unsigned set, unsigned clear, enum mr_folder to, struct mr_error *err)
{
	/* Another program may rename the file at any moment: then try again with its new name. */
	for (int tries = 0; tries < MOVE_TRIES; tries++) {
		mr_auto(found_done) struct found f = { .box = box, .fd = -1 };

		TRY(list_find(box, id, MR_INBOX | MR_ARCHIVE | MR_HELD, &f.own, &f.at, err));
		if (f.at.folder == MR_HELD)
			return mr_fail(err, MR_BUSY,
			    "message '%s' is being shown or worked on\ntry again when it is done or released", id);
		if (!name_parse(str_of(f.at.name), &f.parts))
			return mr_fail(err, MR_CORRUPT, "'%s' is not the name of a message", f.at.name);
		f.sub = f.at.folder == MR_ARCHIVE ? f.at.subfolder : "";
		TRY(list_open_folder(box, &f.at, &f.fd, err));
		enum mr_rc rc = to ? apply_move(&f, to, err) : apply_mark(&f, set, clear, err);

		if (rc != MR_NOTFOUND && rc != MR_BUSY) /* busy: the target folder was removed */
			return rc;
		(void)mailbox_refresh(box);
	}
	return mr_fail(err, MR_BUSY,
	    "message '%s' keeps being renamed by other programs\n"
	    "try again; if it goes on, look for a mail client that works on this mailbox",
	    id);
}

void
mark_note(struct mailbox *box, bool seen)
{
	struct maildir *md = box->md;

	if (strcmp(md->moved, box->agent) != 0) {
		text_join(md->moved, sizeof md->moved, box->agent, NULL);
		md->moved_n = 0;
		md->moved_seen = false;
	}
	md->moved_n++;
	md->moved_seen |= seen;
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
		TRY(change(&box, id, set, clear, 0, err));
	mark_note(&box, (set & MR_SEEN) && !to);
	if (!to)
		return MR_OK;
	/* Otherwise it could leave the archive while that is packed, and be in both places. */
	mr_auto(pack_unlock) void *lock = NULL;

	if (to == MR_INBOX && pack_lock(room, &lock, err) == MR_BUSY)
		return err->code;
	return change(&box, id, 0, 0, to, err);
}

/* ---- Filing, and making it all durable ---- */

static bool
note_seen(void *ctx, const struct dir_entry *entry)
{
	struct file_name parts;

	if (!name_parse(str_of(entry->name), &parts) || (name_flags(&parts, false) & (MR_SEEN | MR_PINNED)) != MR_SEEN)
		return true;
	return names_add(ctx, str_of(entry->name));
}

/* Best effort: the rest is filed another time. Names begin with their time. */
static void
file_oldest(struct mailbox *box)
{
	mr_auto(mr_names_done) struct mr_names seen = { 0 };
	int cur_fd = -1;

	if (mailbox_folder(box, BOX_CUR, &cur_fd, IGNORED) != MR_OK ||
	    dir_each(cur_fd, note_seen, &seen, IGNORED) != MR_OK || seen.n <= CROWDED_AT)
		return;
	names_sort(&seen);
	for (size_t i = 0; i + FILE_DOWN_TO < seen.n; i++) {
		struct file_name parts;

		if (!name_parse(str_of(seen.v[i]), &parts))
			continue;
		enum mr_rc rc = archive(box, cur_fd, seen.v[i], "", &parts, IGNORED);

		if (rc != MR_OK && rc != MR_NOTFOUND) /* another process moved it: fine */
			return;
	}
}

enum mr_rc
maildir_flush(struct mr_room *room, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	bool open = md->moved[0] != '\0' && mailbox_open(&box, md, md->moved, IGNORED) == MR_OK;
	size_t moved = md->moved_n;

	if (open && md->moved_seen)
		file_oldest(&box);
	md->moved[0] = '\0';
	enum mr_rc rc = commit_flush(md, err);

	if (rc == MR_OK && open)
		rc = renew_folders(&box, moved, err);
	reserve_refill(md);
	retain_some(room, false);
	return rc;
}
