/* SPDX-License-Identifier: MIT */
/* state.c - changing a message's state, and what every change asks first: can this room do that, and is this
 * life still the agent's newest. */
#include "base/error.h"
#include "message/foreign.h"
#include "office/office.h"

enum mr_rc
office_lacks(const struct mr_room *room, const char *what, struct mr_error *err)
{
	return mr_fail(err, MR_UNSUPPORTED, "a %s room has no %s", room->driver->kind, what);
}

bool
office_has_lives(const struct mr_room *room)
{
	return ROOM_HAS(room, take_life);
}

void
office_name(const struct mr_room *room, const char *address, struct buf *out)
{
	if (office_has_lives(room))
		buf_adds(out, address);
	else
		foreign_from_address(address, out);
}

bool
office_shares_room(const struct mr_room *room)
{
	const char *share = mr_room_setting(room, "Share");

	return share && ascii_caseeq(share, "group");
}

const char *
mr_room_lead(const struct mr_room *room)
{
	return room->driver->lead;
}

bool
mr_room_has_lives(const struct mr_room *room)
{
	return office_has_lives(room);
}

bool
mr_room_registers(const struct mr_room *room)
{
	return (room->driver->abilities & ROOM_REGISTER) && ROOM_HAS(room, add_agent);
}

unsigned
office_folders(const struct mr_room *room, unsigned folders)
{
	const struct room_driver *driver = room->driver;

	if (!(driver->abilities & ROOM_HOLDS))
		folders &= ~(unsigned)MR_HELD;
	if (!(driver->abilities & ROOM_SENT))
		folders &= ~(unsigned)MR_SENT;
	if (!ROOM_HAS(room, dead_drop))
		folders &= ~(unsigned)MR_DEAD;
	return folders;
}

enum mr_rc
mr_room_folders(const struct mr_room *room, unsigned folders, struct mr_error *err)
{
	bool only_archive = folders == MR_ARCHIVE && !(room->driver->abilities & ROOM_ARCHIVE);

	if (office_folders(room, folders) != 0 && !only_archive)
		return MR_OK;
	return office_lacks(room,
	    folders & MR_SENT   ? "copies of sent mail"
	    : folders & MR_DEAD ? "dead letters"
	    : only_archive      ? "archive"
				: "claims on mail",
	    err);
}

enum mr_rc
office_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	struct scan_request there = *want;
	enum mr_rc rc;

	there.folders = office_folders(room, want->folders);
	if (there.folders == 0)
		return MR_OK;
	rc = room->driver->scan(room, agent, &there, fn, ctx, err);
	if (rc != MR_NOTFOUND || !(room->driver->abilities & ROOM_OPEN_BOXES))
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

enum mr_rc
office_not_fenced(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	if (self->life == 0 || !ROOM_HAS(room, check_life))
		return MR_OK;
	return room->driver->check_life(room, self->agent, self->life, NULL, err);
}

enum mr_rc
office_flush(struct mr_room *room, struct mr_error *err)
{
	return room->driver->flush(room, err);
}

/* Where mail has no marks, having been read is having left the inbox. */
static enum mr_rc
mark_by_place(struct mr_room *room, const struct mr_self *self, const char *id, unsigned set, unsigned clear,
    struct mr_error *err)
{
	char full[MR_ID_LEN + 1];
	enum mr_rc rc;

	if ((set | clear) != MR_SEEN || !ROOM_HAS(room, move) || !(room->driver->abilities & ROOM_ARCHIVE))
		return office_lacks(room, "marks on mail", err);
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = mr_resolve_id(room, self->agent, id, MR_INBOX | MR_ARCHIVE, full, err);
	if (rc == MR_OK)
		rc = room->driver->move(room, self->agent, full, set ? MR_ARCHIVE : MR_INBOX, err);
	return rc;
}

enum mr_rc
mr_mark(struct mr_room *room, const struct mr_self *self, const char *id, unsigned set, unsigned clear,
    struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = { 0 };
	char full[MR_ID_LEN + 1];
	enum mr_rc rc;

	relief_begin(&relief, room);
	if (!ROOM_HAS(room, mark) || !(room->driver->abilities & ROOM_READ_STATE))
		return mark_by_place(room, self, id, set, clear, err);
	if (((set | clear) & MR_PINNED) && !(room->driver->abilities & ROOM_PIN))
		return office_lacks(room, "pinned mail", err);
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = mr_resolve_id(room, self->agent, id, MR_INBOX | MR_HELD | MR_ARCHIVE, full, err);
	if (rc == MR_OK)
		rc = room->driver->mark(room, self->agent, full, set, clear, err);
	return rc;
}

enum mr_rc
mr_archive(struct mr_room *room, const struct mr_self *self, const char *id, struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = { 0 };
	char full[MR_ID_LEN + 1];
	enum mr_rc rc;

	relief_begin(&relief, room);
	if (!ROOM_HAS(room, move) || !(room->driver->abilities & ROOM_ARCHIVE))
		return office_lacks(room, "archive", err);
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = mr_resolve_id(room, self->agent, id, MR_INBOX | MR_HELD | MR_ARCHIVE, full, err);
	if (rc == MR_OK)
		rc = room->driver->move(room, self->agent, full, MR_ARCHIVE, err);
	return rc;
}

enum mr_rc
mr_clear(struct mr_room *room, const struct mr_self *self, size_t *ret_removed, struct mr_error *err)
{
	size_t removed = 0;
	enum mr_rc rc;

	if (!ROOM_HAS(room, clear)) {
		(void)office_lacks(room, "way to clear an inbox", err);
		return mr_hint(err, room->driver->abilities & ROOM_ARCHIVE
					? "`mailroom archive --all-read` takes mail out of the inbox and keeps it"
					: "`mailroom mark read --all` marks it all read");
	}
	rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = room->driver->clear(room, self->agent, &removed, err);
	if (rc == MR_NOTFOUND && (room->driver->abilities & ROOM_OPEN_BOXES)) {
		*err = (struct mr_error){ 0 };
		rc = MR_OK;
	}
	if (rc == MR_OK && ret_removed)
		*ret_removed = removed;
	return rc;
}

enum mr_rc
mr_flush(struct mr_room *room, struct mr_error *err)
{
	mr_auto(relief_end) struct relief relief = { 0 };

	relief_begin(&relief, room);
	return office_flush(room, err);
}

/* ---- Retiring what a newer message replaces ---- */

struct retiring {
	const struct mr_message *msg;
	const char *id; /* of the message that replaces them */
	struct candidates old;
};

static bool
note_if_replaced(void *ctx, const struct mr_message *msg)
{
	struct retiring *r = ctx;

	if (strcmp(msg->replace_key, r->msg->replace_key) != 0 || strcmp(msg->from, r->msg->from) != 0)
		return true;
	/* Only smaller ids: of two sends at once the larger id stays, whoever looks last, so never none. */
	return strcmp(msg->id, r->id) >= 0 || candidates_add(&r->old, msg);
}

/* Mail that someone holds is being read or worked on: scan does not see it, mark and move refuse it. */
static size_t
retire_from(struct mr_room *room, const struct mr_message *msg, const char *agent, const char *id)
{
	struct retiring r = { .msg = msg, .id = id };
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_HEADERS, .unread_only = true };
	struct mr_error ignored = { 0 };
	size_t retired = 0;

	(void)room->driver->scan(room, agent, &want, note_if_replaced, &r, &ignored);
	for (size_t i = 0; i < r.old.n; i++) {
		if (room->driver->mark(room, agent, r.old.v[i].id, MR_SEEN, 0, &ignored) != MR_OK)
			continue;
		retired++;
		(void)room->driver->move(room, agent, r.old.v[i].id, MR_ARCHIVE, &ignored);
	}
	candidates_done(&r.old);
	return retired;
}

size_t
state_retire(struct mr_room *room, const struct mr_message *msg, const struct mr_names *agents, const char *id)
{
	struct mr_error ignored = { 0 };
	size_t retired = 0;

	if (!*msg->replace_key || !ROOM_HAS(room, mark) || !ROOM_HAS(room, move))
		return 0;
	for (size_t i = 0; i < agents->n; i++)
		if (!strchr(agents->v[i], ':')) /* what waits in a queue or stands in a channel is not replaced */
			retired += retire_from(room, msg, agents->v[i], id);
	if (retired > 0) /* lost in a power cut, old status mail is unread again: no harm */
		(void)office_flush(room, &ignored);
	return retired;
}
