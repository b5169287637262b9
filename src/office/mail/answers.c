/* SPDX-License-Identifier: MIT */
/*
 * answers.c - answers that a sender waits for.
 *
 * An answer that is wanted by a time (send --by) is a record of kind "due", durable before the message is sent, because
 * an answer can come and drop it a moment later. If the message was never sent, or the answer came by another way (a
 * mail client), that is found when the time is up.
 *
 * The answer to a sender without a mailbox is put into a folder that the sender named (send --reply-path). The folder,
 * and the room's id of the message, are recorded outside the room, one small file a message:
 *
 *	<state>/replies/<id>    Room:, Dir:, Called:
 *
 * The answer is removed only by mr_answer_taken, after it was shown; if that is cut off in between, it is shown again.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/sys.h"
#include "office/mail/mail.h"
#include "office/types/types.h"

#define DUE "due"
#define NOTES "replies" /* folder */
#define NOTE_MAX 8192

/* ---- Answers by a time ---- */

struct due { /* a record */
	int64_t by_ms;
	const char *to, *subject;
};
static const struct record_field due_fields[] = {
	{ "By", RECORD_TIME, offsetof(struct due, by_ms) },
	{ "To", RECORD_TEXT, offsetof(struct due, to) },
	{ "Subject", RECORD_TEXT, offsetof(struct due, subject) },
};

enum mr_rc
due_put(struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct due due = { msg->by_ms, msg->to.n > 0 ? msg->to.v[0] : "", msg->subject };

	if (!ROOM_HAS(room, record_put))
		return room_lacks(room, "memory for answers that are due", err);
	record_write(&text, RECORD_FIELDS(due_fields), &due);
	TRY(mr_got(buf_ok(&text), err));
	return room->driver->record_put(room, DUE, sender, msg->id, buf_str(&text), err);
}

void
due_drop(struct mr_room *room, const char *sender, const char *id)
{
	(void)room->driver->record_drop(room, DUE, sender, id, IGNORED);
}

static bool
stop_at_answer(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	*(bool *)ctx = true;
	return false;
}

/* The copy in the sender's folder is not synced, so its absence proves nothing: ask for any copy. */
bool
due_settled(struct mr_room *room, const char *agent, const char *id)
{
	struct mr_scan answers = { .filter = { .folders = MR_INBOX | MR_HELD, .reply_to = id }, .limit = 1 };
	mr_auto(mr_list_done) struct places places = { 0 };
	bool answered = false;

	if (office_places(room, id, &places, IGNORED) == MR_OK && places.n == 0)
		return true;
	(void)mr_scan(room, agent, &answers, stop_at_answer, &answered, IGNORED);
	return answered;
}

enum mr_rc
due_list(struct mr_room *room, const char *sender, bool overdue, struct mr_dues *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };

	*ret = (struct mr_dues){ 0 };
	if (ROOM_HAS(room, record_each) && ROOM_HAS(room, record_get)) /* else no answer can be wanted */
		TRY(office_records(room, DUE, sender, &ids, err));
	if (ids.n == 0)
		return MR_OK;
	mr_auto(roll_done) struct roll r = { 0 };

	for (size_t i = 0; i < ids.n; i++) {
		mr_auto(record_done) struct record record = { 0 };
		struct due due = { 0 };
		enum mr_rc rc = office_record(room, DUE, sender, ids.v[i], &record, err);

		if (rc == MR_NOTFOUND || rc == MR_CORRUPT) /* answered just now, or unreadable */
			continue;
		TRY(rc);
		record_read(&record, RECORD_FIELDS(due_fields), &due);
		if (due.by_ms == 0 || (overdue && due.by_ms > clock_now_ms()))
			continue;
		if (overdue && due_settled(room, sender, ids.v[i])) {
			due_drop(room, sender, ids.v[i]);
			continue;
		}
		struct mr_due *one = roll_add(&r, sizeof(*one));

		TRY(mr_got(one, err));
		*one = (struct mr_due){
			.to = roll_str(&r, due.to), .subject = roll_str(&r, due.subject), .by_ms = due.by_ms
		};
		(void)snprintf(one->id, sizeof(one->id), "%s", ids.v[i]);
	}
	*err = (struct mr_error){ 0 };
	return mr_got(roll_give(&r, ret), err);
}

enum mr_rc
mr_overdue(struct mr_room *room, const struct mr_self *self, struct mr_dues *ret, struct mr_error *err)
{
	return due_list(room, self->agent, true, ret, err);
}

void
mr_overdue_told(struct mr_room *room, const struct mr_self *self, const char *id)
{
	due_drop(room, self->agent, id);
}

/* ---- Answers in a folder ---- */

enum mr_rc
answer_expect(struct mr_room *room, const char *id, const char *native, const char *dir, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int notes = -1;

	TRY(header_add(&text, "Room", str_of(room->spec), err));
	TRY(header_add(&text, "Dir", str_of(dir), err));
	TRY(header_add(&text, "Called", str_of(*native ? native : id), err));
	TRY(mr_got(buf_ok(&text), err));
	TRY(office_state(room, NOTES, true, &notes, err));
	return file_replace(notes, id, buf_str(&text), 0600, err);
}

/* False: there is none, or it belongs to another room. */
static bool
load_note(struct mr_room *room, const char *id, struct record *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int notes = -1;

	return !strchr(id, '/') && office_state(room, NOTES, false, &notes, IGNORED) == MR_OK &&
	       file_read(notes, id, NOTE_MAX, &text, IGNORED) == MR_OK &&
	       record_parse(buf_str(&text), ret, IGNORED) == MR_OK && record_has(ret, "Room", room->spec);
}

/* The folder, and the message's id there. The caller must give what is not recorded. */
static enum mr_rc
find_expected(struct mr_room *room, const char **id, const char **dir, struct record *ret_note, struct mr_error *err)
{
	if (!ROOM_FACE_HAS(room, fetch_answer))
		return room_lacks(room, "reply paths", err);
	bool known = load_note(room, *id, ret_note);
	const char *called = known ? record_get(ret_note, "Called") : NULL;

	*dir = *dir || !known ? *dir : record_get(ret_note, "Dir");
	if (*dir) {
		*id = called ? called : *id;
		return MR_OK;
	}
	return mr_fail(err, MR_NOTFOUND,
	    "no message '%.60s' was sent with a reply path\n"
	    "give the id that `mailroom send --reply-path` printed, or the folder with --reply-path",
	    *id);
}

bool
mr_answer_expected(struct mr_room *room, const char *id)
{
	mr_auto(record_done) struct record note = { 0 };

	return ROOM_FACE_HAS(room, fetch_answer) && load_note(room, id, &note);
}

enum mr_rc
mr_answer_wait(struct mr_room *room, const char *id, const char *dir, int64_t timeout_ms, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(record_done) struct record note = { 0 };
	const char *called = id;

	TRY(find_expected(room, &called, &dir, &note, err));
	mr_auto(waiter_end) struct waiter waiter = waiter_begin(room, NULL, timeout_ms > 0 ? timeout_ms : 0);
	for (;;) {
		enum mr_rc rc = room->driver->face->fetch_answer(room, dir, called, false, ret, err);

		if (rc == MR_OK)
			types_give(room, ret);
		if (rc != MR_NOTFOUND)
			return rc;
		*err = (struct mr_error){ 0 };
		if (!waiter_pause(&waiter))
			return mr_fail(err, MR_EMPTY, "no answer to '%.60s' came in time", id);
	}
}

enum mr_rc
mr_answer_taken(struct mr_room *room, const char *id, const char *dir, struct mr_error *err)
{
	mr_auto(record_done) struct record note = { 0 };
	mr_auto(mr_message_done) struct mr_message answer = { 0 };
	mr_auto(sys_close_fd) int notes = -1;
	const char *called = id;

	TRY(find_expected(room, &called, &dir, &note, err));
	TRY(room->driver->face->fetch_answer(room, dir, called, true, &answer, err));
	/* A note that stays behind only tells where an answer was. */
	if (note.n > 0 && office_state(room, NOTES, false, &notes, IGNORED) == MR_OK)
		(void)sys_unlink(notes, id);
	return MR_OK;
}
