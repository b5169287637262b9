/* SPDX-License-Identifier: MIT */
/* marks.c - marks that an agent sets itself, the archive and its packs, and retiring mail that a newer message
 * replaces. */
#include "office/mail/mail.h"

/* ---- Marks of one's own ---- */

static enum mr_rc
mark(struct mr_room *room, const struct mr_self *self, const char *id, unsigned folders, unsigned set, unsigned clear,
    enum mr_folder to, struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = relief_begin(room);
	char full[MR_ID_LEN + 1];

	TRY(office_not_fenced(room, self, err));
	TRY(mr_resolve_id(room, self->agent, id, folders, full, err));
	return room->driver->mark(room, self->agent, full, set, clear, to, err);
}

enum mr_rc
mr_mark(struct mr_room *room, const struct mr_self *self, const char *id, unsigned set, unsigned clear,
    struct mr_error *err)
{
	unsigned abilities = room->driver->abilities;

	if (!(abilities & ROOM_READ_STATE)) {
		/* In a format without marks, read mail is mail outside of the inbox. */
		if ((set | clear) != MR_SEEN || !(abilities & ROOM_ARCHIVE))
			return room_lacks(room, "marks on mail", err);
		return mark(room, self, id, MR_INBOX | MR_ARCHIVE, 0, 0, set ? MR_ARCHIVE : MR_INBOX, err);
	}
	if (((set | clear) & MR_PINNED) && !(abilities & ROOM_PIN))
		return room_lacks(room, "pinned mail", err);
	return mark(room, self, id, MR_INBOX | MR_HELD | MR_ARCHIVE, set, clear, 0, err);
}

enum mr_rc
mr_archive(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err)
{
	if (!(room->driver->abilities & ROOM_ARCHIVE))
		return room_lacks(room, "archive", err);
	return mark(room, self, id, MR_INBOX | MR_HELD | MR_ARCHIVE, 0, 0, MR_ARCHIVE, err);
}

enum mr_rc
mr_pack(struct mr_room *room, const struct mr_self *self, const char *month, bool unpack, struct mr_packed *ret,
    struct mr_error *err)
{
	TRY(office_not_fenced(room, self, err));
	if (!room->driver->files)
		return room_lacks(room, "way to pack an archive", err);
	return room->driver->files->pack(room, self->agent, month, unpack, ret, err);
}

enum mr_rc
mr_clear(struct mr_room *room, const struct mr_self *self, size_t *ret_removed, struct mr_error *err)
{
	size_t removed = 0;

	if (!(room->driver->abilities & ROOM_CLEAR)) {
		(void)room_lacks(room, "way to clear an inbox", err);
		return mr_hint(err, room->driver->abilities & ROOM_ARCHIVE
					? "`mailroom archive --all-read` takes mail out of the inbox and keeps it"
					: "`mailroom mark read --all` marks it all read");
	}
	TRY(office_not_fenced(room, self, err));
	enum mr_rc rc =
	    room->driver->remove(room, &(struct removal){ .what = REMOVE_INBOX, .box = self->agent }, &removed, err);

	if (room->driver->abilities & ROOM_OPEN_BOXES)
		rc = mr_unless(rc, MR_NOTFOUND, err);
	if (rc == MR_OK && ret_removed)
		*ret_removed = removed;
	return rc;
}

enum mr_rc
mr_flush(struct mr_room *room, struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = relief_begin(room);
	return room->driver->flush(room, err);
}

/* ---- Retiring what a newer message replaces ---- */

struct retiring {
	const struct mr_message *msg;
	const char *id; /* of the message that replaces them */
	struct mr_names old;
};

static bool
note_if_replaced(void *ctx, const struct mr_message *msg)
{
	struct retiring *r = ctx;

	if (strcmp(msg->replace_key, r->msg->replace_key) != 0 || strcmp(msg->from, r->msg->from) != 0)
		return true;
	/* Only smaller ids: of two sends at once the larger id stays, whichever looks last, so one always stays. */
	return strcmp(msg->id, r->id) >= 0 || names_add(&r->old, str_of(msg->id));
}

size_t
mail_retire(struct mr_room *room, const struct mr_message *msg, const struct mr_names *agents, const char *id)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true };
	const struct room_driver *driver = room->driver;
	size_t retired = 0;

	for (size_t i = 0; i < agents->n; i++) {
		struct retiring r = { .msg = msg, .id = id };
		const char *agent = agents->v[i];

		if (strchr(agent, ':')) /* mail in a queue or a channel is not replaced */
			continue;
		/* Held mail is being read or worked on: scan does not return it, mark and move refuse it. */
		(void)driver->scan(room, agent, &want, note_if_replaced, &r, IGNORED);
		for (size_t j = 0; j < r.old.n; j++)
			retired += driver->mark(room, agent, r.old.v[j], MR_SEEN, 0, MR_ARCHIVE, IGNORED) == MR_OK;
		mr_names_done(&r.old);
	}
	if (retired > 0) /* if a power cut loses this, old status mail is unread again: no harm */
		(void)driver->flush(room, IGNORED);
	return retired;
}
