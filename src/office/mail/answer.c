/* SPDX-License-Identifier: MIT */
/*
 * answer.c - the answer to a message whose sender has no mailbox here: it is put into a folder that the sender named.
 * Which folder, and what the room calls the message, is remembered outside the room, one small file a message:
 *
 *	<state>/replies/<id>    Room:, Dir:, Called:
 *
 * The answer is removed only by mr_answer_taken, after it was shown; cut off in between, it is shown again.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/sys.h"
#include "office/who/who.h"
#include <fcntl.h>
#include <poll.h>

#define NOTE_MAX 8192
#define PAUSE_FIRST_MS 20
#define PAUSE_MAX_MS 250

static enum mr_rc
open_notes(const struct mr_room *room, bool make, int *ret_fd, struct mr_error *err)
{
	if (!room->state_dir)
		return mr_fail(err, MR_NOTFOUND, "there is no folder for what mailroom remembers");
	return dir_below(room->state_dir, "replies", make, true, ret_fd, err);
}

enum mr_rc
answer_expect(struct mr_room *room, const char *id, const char *spoken, const char *dir, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int notes = -1;

	TRY(header_add(&text, "Room", str_of(room->spec), err));
	TRY(header_add(&text, "Dir", str_of(dir), err));
	TRY(header_add(&text, "Called", str_of(*spoken ? spoken : id), err));
	if (!buf_ok(&text))
		return mr_nomem(err);
	TRY(open_notes(room, true, &notes, err));
	return file_replace(notes, id, buf_str(&text), 0600, err);
}

struct expected { /* borrows from note */
	struct record note;
	const char *dir, *called;
};

static void
expected_done(struct expected *e)
{
	record_done(&e->note);
}

static enum mr_rc
load_note(struct mr_room *room, const char *id, struct record *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int notes = -1;
	enum mr_rc rc = strchr(id, '/') ? mr_fail(err, MR_NOTFOUND, "'%.60s' is no message id", id)
					: open_notes(room, false, &notes, err);

	if (rc == MR_OK)
		rc = file_read(notes, id, NOTE_MAX, &text, err);
	if (rc == MR_OK)
		rc = record_parse(buf_str(&text), ret, err);
	const char *where = rc == MR_OK ? record_get(ret, "Room") : NULL;

	if (rc == MR_OK && (!where || strcmp(where, room->spec) != 0))
		rc = mr_fail(err, MR_NOTFOUND, "'%.60s' was sent in another room", id);
	return rc;
}

/* Where to look. What is not remembered has to be given. */
static enum mr_rc
find_expected(struct mr_room *room, const char *id, const char *dir, struct expected *ret, struct mr_error *err)
{
	struct mr_error unknown = { 0 };

	if (!ROOM_HAS(room, fetch_answer))
		return office_lacks(room, "reply paths", err);
	enum mr_rc rc = load_note(room, id, &ret->note, &unknown);

	ret->called = rc == MR_OK ? record_get(&ret->note, "Called") : NULL;
	ret->dir = dir ? dir : rc == MR_OK ? record_get(&ret->note, "Dir") : NULL;
	if (!ret->called)
		ret->called = id;
	if (ret->dir)
		return MR_OK;
	return mr_fail(err, MR_NOTFOUND,
	    "no message '%.60s' was sent with a reply path\n"
	    "give the id that `mailroom send --reply-path` printed, or the folder with --reply-path",
	    id);
}

bool
mr_answer_expected(struct mr_room *room, const char *id)
{
	mr_auto(record_done) struct record note = { 0 };
	struct mr_error ignored = { 0 };

	return ROOM_HAS(room, fetch_answer) && load_note(room, id, &note, &ignored) == MR_OK;
}

enum mr_rc
mr_answer_wait(struct mr_room *room, const char *id, const char *dir, int64_t timeout_ms, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(expected_done) struct expected e = { 0 };
	int64_t deadline_ms = clock_boot_ms() + timeout_ms, pause_ms = PAUSE_FIRST_MS;
	enum mr_rc rc = find_expected(room, id, dir, &e, err);

	if (rc != MR_OK)
		return rc;
	for (;;) {
		rc = room->driver->fetch_answer(room, e.dir, e.called, false, ret, err);
		if (rc != MR_NOTFOUND)
			return rc;
		int64_t rest_ms = deadline_ms - clock_boot_ms();

		if (rest_ms <= 0)
			return mr_fail(err, MR_EMPTY, "no answer to '%.60s' came in time", id);
		(void)poll(NULL, 0, (int)(rest_ms < pause_ms ? rest_ms : pause_ms));
		pause_ms = 2 * pause_ms < PAUSE_MAX_MS ? 2 * pause_ms : PAUSE_MAX_MS;
		*err = (struct mr_error){ 0 };
	}
}

enum mr_rc
mr_answer_taken(struct mr_room *room, const char *id, const char *dir, struct mr_error *err)
{
	mr_auto(expected_done) struct expected e = { 0 };
	mr_auto(mr_message_done) struct mr_message answer = { 0 };
	mr_auto(sys_close_fd) int notes = -1;
	struct mr_error ignored = { 0 };
	enum mr_rc rc = find_expected(room, id, dir, &e, err);

	if (rc == MR_OK)
		rc = room->driver->fetch_answer(room, e.dir, e.called, true, &answer, err);
	/* A note that stays behind only says where an answer was. */
	if (rc == MR_OK && e.note.n > 0 && open_notes(room, false, &notes, &ignored) == MR_OK)
		(void)sys_unlink(notes, id);
	return rc;
}
