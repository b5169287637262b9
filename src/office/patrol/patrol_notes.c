/* SPDX-License-Identifier: MIT */
/*
 * patrol_notes.c - what a patrol knows. In a native room these are records. We put no files into the room of another
 * program; there it is
 *
 *	<state>/patrol/<hash of the room>/<kind>/<hash of the owner>/<name>
 *
 * outside the room; patrols that share their notes there must run under one user.
 *
 * The note of a message has its state and its history:
 *
 *	State: handled
 *	At: 2026-03-05T10:30:00.123Z
 *	First: 2026-03-05T10:29:00.000Z    start of its handler
 *	Attempt: 2
 *	Failures: 1
 *	Process: ...                       of its handler, while it runs
 *	Until: ...                         its time limit
 *	Type: MERGED
 *	From: gp/refinery
 *	Handler: ./on-merged nux
 *	Result: exit 0
 *	Did: 2026-03-05T10:29:00.000Z 1 failed exit 3: no such branch
 *	Did: 2026-03-05T10:30:00.123Z 2 handled exit 0
 *
 * Notes are durable before anything is acknowledged, so the log, which is read from them, is complete. Events that
 * concern no message are kept as lines of one record, the newest of them.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "office/patrol/patrol.h"
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define NOTE_MAX ((size_t)1 << 20)
#define LOCK_NAME "patrol"
#define STORY_MAX 40 /* lines */
#define EVENT_KIND "patrol"
#define EVENTS "events"
#define EVENTS_MAX 300
#define EVENT_WAIT_MS 2000

/* ---- Where notes are kept ---- */

static bool
has_records(const struct mr_room *room)
{
	return ROOM_HAS(room, record_put);
}

enum mr_rc
notes_able(const struct mr_room *room, struct mr_error *err)
{
	if (has_records(room) || room->state_dir)
		return MR_OK;
	(void)room_lacks(room, "folder in which a patrol could record what it did", err);
	return mr_hint(err, "set HOME or XDG_STATE_HOME: the record is kept below it");
}

/* Opens a folder outside the room. */
static enum mr_rc
open_folder(
    const struct mr_room *room, const char *kind, const char *owner, bool make, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "patrol/%s/%s/%s", hash_name_short("%s", room->spec).z, kind, hash_name_short("%s", owner).z);
	return buf_ok(&path) ? dir_below(room->state_dir, buf_z(&path), make, true, ret_fd, err) : mr_nomem(err);
}

enum mr_rc
notes_put(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	if (has_records(room))
		return room->driver->record_put(room, kind, owner, name, text, err);
	TRY(open_folder(room, kind, owner, true, &fd, err));
	return file_replace(fd, name, text, 0600, err);
}

enum mr_rc
notes_load(struct mr_room *room, const char *kind, const char *owner, const char *name, struct record *ret,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = has_records(room) ? room->driver->record_get(room, kind, owner, name, &text, err)
					  : open_folder(room, kind, owner, false, &fd, err);

	if (rc == MR_OK && fd >= 0)
		rc = file_read(fd, name, NOTE_MAX, &text, err);
	if (rc == MR_OK)
		rc = record_parse(buf_str(&text), ret, err);
	return mr_unless(mr_unless(rc, MR_NOTFOUND, err), MR_CORRUPT, err);
}

enum mr_rc
notes_lock(struct mr_room *room, const char *kind, const char *owner, int64_t wait_ms, struct notes_lock *ret,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder_fd = -1;

	*ret = (struct notes_lock){ .room = room, .fd = -1 };
	if (has_records(room))
		return room->driver->record_lock(room, kind, owner, LOCK_NAME, wait_ms, &ret->held, err);
	TRY(open_folder(room, kind, owner, true, &folder_fd, err));
	return lock_take(folder_fd, "." LOCK_NAME ".lock", 0600, wait_ms, &ret->fd, err);
}

void
notes_unlock(struct notes_lock *lock)
{
	if (lock->held)
		lock->room->driver->record_unlock(lock->room, lock->held);
	sys_close_fd(&lock->fd);
	lock->held = NULL;
}

/* The ids of all messages that have a note, in order. */
static enum mr_rc
noted_ids(struct mr_room *room, const char *agent, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	mr_auto(sys_close_fd) int fd = -1;

	if (has_records(room))
		return office_records(room, NOTE_KIND, agent, ret, err);
	enum mr_rc rc = open_folder(room, NOTE_KIND, agent, false, &fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	TRY(dir_names(fd, &all, err));
	for (size_t i = 0; i < all.n; i++)
		TRY(mr_got(all.v[i][0] == '.' || names_add(ret, str_of(all.v[i])), err));
	names_sort(ret);
	return MR_OK;
}

/* ---- The state of a message ---- */

static const char *const states[] = {
	[NOTE_NEW] = "new",
	[NOTE_RUNNING] = "running",
	[NOTE_HANDLED] = "handled",
	[NOTE_FAILED] = "failed",
	[NOTE_ASIDE] = "set-aside",
	[NOTE_BROKEN] = "broken",
	[NOTE_DEAD] = "dead",
	NULL,
};

static const struct record_field note_fields[] = {
	{ "At", RECORD_TIME, offsetof(struct note, at_ms) },
	{ "First", RECORD_TIME, offsetof(struct note, first_ms) },
	{ "Attempt", RECORD_COUNT, offsetof(struct note, attempt) },
	{ "Failures", RECORD_COUNT, offsetof(struct note, failures) },
	{ "Process", RECORD_PROCESS, offsetof(struct note, process) },
	{ "Until", RECORD_TIME, offsetof(struct note, until_ms) },
	{ "Type", RECORD_TEXT, offsetof(struct note, type) },
	{ "From", RECORD_TEXT, offsetof(struct note, from) },
	{ "Handler", RECORD_TEXT, offsetof(struct note, handler) },
	{ "Result", RECORD_TEXT, offsetof(struct note, result) },
};

void
note_done(struct note *note)
{
	mr_names_done(&note->did);
	record_done(&note->lines);
	*note = (struct note){ 0 };
}

/* A note without content (a power cut on unsafe storage) counts as one that was never written: the handler runs again,
 * which it must tolerate anyway. */
enum mr_rc
note_load(struct mr_room *room, const char *agent, const char *id, struct note *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };

	TRY(notes_load(room, NOTE_KIND, agent, id, &lines, err));
	note_done(ret);
	record_read(&lines, RECORD_FIELDS(note_fields), ret);
	ret->state = (enum note_state)record_word(&lines, "State", states, NOTE_NEW);
	for (size_t i = 0; i < lines.n; i++)
		if (ascii_caseeq(lines.lines[i].name, "Did"))
			(void)names_add(&ret->did, str_of(lines.lines[i].value));
	ret->lines = lines;
	lines = (struct record){ 0 };
	return MR_OK;
}

enum mr_rc
note_save(struct mr_room *room, const char *agent, const char *id, const struct note *note, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct note now = *note;

	if (note->state != NOTE_RUNNING) {
		now.process = (struct mr_process){ 0 };
		now.until_ms = 0;
	}
	record_add(&text, "State", states[note->state]);
	record_write(&text, RECORD_FIELDS(note_fields), &now);
	for (size_t i = note->did.n > STORY_MAX ? note->did.n - STORY_MAX : 0; i < note->did.n; i++)
		record_add(&text, "Did", note->did.v[i]);
	TRY(mr_got(buf_ok(&text), err));
	return notes_put(room, NOTE_KIND, agent, id, buf_str(&text), err);
}

enum mr_rc
note_turn(struct note *note, enum note_state state, const char *word, const char *result, struct mr_error *err)
{
	note->state = state;
	note->at_ms = clock_now_ms();
	note->result = arena_dup(&note->lines.own, str_of(result));
	return mr_got(note->result &&
			  names_addf(&note->did, "%s %u %s %s", time_text(note->at_ms).z, note->attempt, word, result),
	    err);
}

static bool
may_be_forgotten(struct mr_room *room, const char *agent, const char *id, int64_t before_ms)
{
	mr_auto(note_done) struct note note = { 0 };
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	if (note_load(room, agent, id, &note, IGNORED) != MR_OK || note.at_ms > before_ms || note.state == NOTE_RUNNING)
		return false;
	/* A message that could be taken for new mail is remembered as long as it exists. */
	return room->driver->fetch(
		   room, agent, id, office_folders(room, MR_INBOX | MR_HELD), SCAN_NAMES, &msg, IGNORED) == MR_NOTFOUND;
}

void
patrol_forget_old(struct patrol *p)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	const char *agent = p->self->agent;
	int64_t before_ms = clock_now_ms() - p->set.keep_ms;

	if (p->set.keep_ms <= 0 || noted_ids(p->room, agent, &ids, IGNORED) != MR_OK)
		return;
	/* Ids begin with their time: the first recent one ends the loop. */
	for (size_t i = 0; i < ids.n && id_time_ms(ids.v[i]) < before_ms; i++) {
		if (!may_be_forgotten(p->room, agent, ids.v[i], before_ms))
			continue;
		if (has_records(p->room))
			(void)p->room->driver->record_drop(p->room, NOTE_KIND, agent, ids.v[i], IGNORED);
		else if (fd >= 0 || open_folder(p->room, NOTE_KIND, agent, false, &fd, IGNORED) == MR_OK)
			(void)sys_unlink(fd, ids.v[i]);
	}
}

/* ---- Events ---- */

void
patrol_event(struct patrol *p, const char *what, const char *type, const char *fmt, ...)
{
	mr_auto(free_ptr) char *result = NULL;
	mr_auto(record_done) struct record lines = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT, line = BUF_INIT;
	const char *agent = p->self->agent;
	mr_auto(notes_unlock) struct notes_lock lock = { .fd = -1 };
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&result, fmt, args) < 0)
		result = NULL;
	va_end(args);
	p->count.cared++;
	patrol_tell(p, (struct mr_patrol_step){ .what = what, .type = type, .result = result });
	if (p->options->dry_run || notes_lock(p->room, EVENT_KIND, agent, EVENT_WAIT_MS, &lock, IGNORED) != MR_OK)
		return;
	buf_addf(&line, "%s %s %s %s", time_text(clock_now_ms()).z, what, *type ? type : "-", result ? result : "");
	if (notes_load(p->room, EVENT_KIND, agent, EVENTS, &lines, IGNORED) == MR_OK) {
		for (size_t i = lines.n > EVENTS_MAX - 1 ? lines.n - (EVENTS_MAX - 1) : 0; i < lines.n; i++)
			record_add(&text, lines.lines[i].name, lines.lines[i].value);
		record_add(&text, "Did", buf_z(&line));
		if (buf_ok(&text))
			(void)notes_put(p->room, EVENT_KIND, agent, EVENTS, buf_str(&text), IGNORED);
	}
}

/* ---- The log ---- */

struct entry {
	struct mr_patrol_step step;
	size_t place; /* order of recording: several events may fall in one millisecond */
};
/* A line of a note, "TIME ATTEMPT WORD TEXT", or with note NULL of the events, "TIME WORD TYPE TEXT". */
static void
log_add(struct roll *log, const char *line, const char *id, const struct note *note)
{
	char *rest = arena_dup(&log->own, str_of(line));
	const char *at = strsep(&rest, " "), *second = strsep(&rest, " "), *third = strsep(&rest, " ");
	struct entry new = { .place = log->n }, *e;
	uint64_t attempt = 0;

	if (!third || !time_parse_rfc3339(str_of(at), &new.step.at_ms) ||
	    (note && !str_to_u64(str_of(second), &attempt)) || !(e = roll_add(log, sizeof(*e))))
		return;
	new.step.id = id;
	new.step.result = rest ? rest : "";
	new.step.attempt = (unsigned)attempt;
	new.step.what = note ? third : second;
	new.step.type = note ? roll_str(log, note->type) : strcmp(third, "-") == 0 ? "" : third;
	new.step.from = note ? roll_str(log, note->from) : "";
	new.step.handler = note ? roll_str(log, note->handler) : "";
	*e = new;
}

static int
by_time(const void *va, const void *vb)
{
	const struct entry *a = va, *b = vb;

	return ORDER(a->step.at_ms, b->step.at_ms) ?: ORDER(a->place, b->place);
}

enum mr_rc
mr_patrol_log(struct mr_room *room, const char *agent, size_t limit, mr_patrol_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(roll_done) struct roll log = { 0 };
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	mr_auto(record_done) struct record events = { 0 };

	TRY(notes_able(room, err));
	TRY(noted_ids(room, agent, &ids, err));
	for (size_t i = 0; i < ids.n; i++) {
		mr_auto(note_done) struct note note = { 0 };

		TRY(note_load(room, agent, ids.v[i], &note, err));
		for (size_t k = 0; k < note.did.n; k++)
			log_add(&log, note.did.v[k], ids.v[i], &note);
	}
	TRY(notes_load(room, EVENT_KIND, agent, EVENTS, &events, err));
	for (size_t i = 0; i < events.n; i++)
		log_add(&log, events.lines[i].value, "", NULL);
	TRY(mr_got(!log.failed, err));
	const struct entry *all = log.v;

	if (log.n > 1)
		qsort(log.v, log.n, sizeof(*all), by_time);
	for (size_t i = limit > 0 && log.n > limit ? log.n - limit : 0; i < log.n; i++)
		fn(ctx, &all[i].step);
	return MR_OK;
}
