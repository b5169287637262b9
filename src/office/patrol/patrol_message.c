/* SPDX-License-Identifier: MIT */
/*
 * patrol_message.c - one message: look at it, take it, act on it. Everything that can be judged before taking it is, so
 * that waiting mail is not taken and put back in every round (each time counts as an attempt). What other processes may
 * have changed is judged again after taking it: from then on nobody else changes its note.
 *
 * A taken message is claimed as long as this process lives, so that a killed patrol gives it back at once. In a room
 * without claims the lock of the whole patrol has that role (patrol.c), and acknowledging means marking as read.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "base/text.h"
#include "office/mail/mail.h"
#include "office/patrol/patrol.h"
#include <signal.h>

#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS 60000
/* A handler that kills its patrol does it each time; a person who kills patrols does not go on for so long. */
#define CUT_OFFS_MAX 10
#define CUT_OFFS_MS ((int64_t)5 * 60 * 1000)
#define KILL_GRACE_MS 5000 /* the patrol that started it ends it itself, if it lives */
#define COOLDOWN "cooldown"

static void
errand_done(struct errand *e)
{
	mr_message_done(&e->msg);
	type_values_done(&e->values);
	buf_done(&e->line);
	note_done(&e->note);
}

static void
tell(const struct errand *e, const char *what, const char *result)
{
	patrol_tell(e->p, (struct mr_patrol_step){ .what = what,
			      .id = e->msg.id,
			      .type = e->def->name,
			      .from = e->msg.from,
			      .handler = e->note.handler,
			      .result = result,
			      .attempt = e->note.attempt });
}

/* Changes the note, durably, and reports it. */
static enum mr_rc
turn(struct errand *e, enum note_state state, const char *word, const char *result, struct mr_error *err)
{
	e->note.type = e->def->name;
	e->note.from = e->msg.from;
	TRY(note_turn(&e->note, state, word, result, err));
	TRY(note_save(e->p->room, e->p->self->agent, e->msg.id, &e->note, err));
	tell(e, word, result);
	return MR_OK;
}

/* ---- Cooldown ----
 *
 * A type may be handled at most once in a time span, for each value of its key (a bead that is dispatched again and
 * again). The time of the last start counts, whether it succeeded or not; a patrol that was killed in between may
 * finish what it began. The records belong to the whole room: two mailboxes with the same type share them. */

static enum mr_rc
cooldown_name(const struct errand *e, struct hash_name *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "%s\n", e->def->name);
	if (e->def->cooldown_key)
		type_fill(&text, e->def->cooldown_key, &e->values);
	TRY(mr_got(buf_ok(&text), err));
	*ret = hash_name_short("%s", buf_z(&text));
	return MR_OK;
}

/* The time until the type may be handled again with that key; 0: now. */
static int64_t
cooldown_left(const struct errand *e)
{
	mr_auto(record_done) struct record last = { 0 };
	struct hash_name name;

	if (e->def->cooldown_ms <= 0 || cooldown_name(e, &name, IGNORED) != MR_OK ||
	    notes_load(e->p->room, COOLDOWN, "", name.z, &last, IGNORED) != MR_OK)
		return 0;
	const char *id = record_get(&last, "Id");
	int64_t since = clock_now_ms() - record_time(&last, "At");
	if (!id || since < 0 || since >= e->def->cooldown_ms ||
	    (strcmp(id, e->msg.id) == 0 && e->note.state == NOTE_RUNNING))
		return 0;
	return e->def->cooldown_ms - since;
}

/* Takes the cooldown for this message; only one process succeeds. MR_BUSY: another did just now. */
static enum mr_rc
cooldown_take(const struct errand *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct hash_name name;
	mr_auto(notes_unlock) struct notes_lock lock = { .fd = -1 };

	if (e->def->cooldown_ms <= 0)
		return MR_OK;
	TRY(cooldown_name(e, &name, err));
	TRY(notes_lock(e->p->room, COOLDOWN, "", NOTES_WAIT_MS, &lock, err));
	if (cooldown_left(e) > 0)
		return MR_BUSY;
	buf_addf(&text, "Type: %s\nAt: %s\nId: %s\n", e->def->name, time_text(clock_now_ms()).z, e->msg.id);
	TRY(mr_got(buf_ok(&text), err));
	return notes_put(e->p->room, COOLDOWN, "", name.z, buf_str(&text), err);
}

/* ---- Judging ---- */

enum verdict { ACT_RUN, ACT_WAIT, ACT_FINISH, ACT_ASIDE, ACT_GIVE_UP };

/* The number of failures after which a message is given up; 0: never. */
static unsigned
patience(const struct errand *e)
{
	return e->def->escalate_after > 0 ? e->def->escalate_after : (unsigned)e->p->set.escalate_after;
}

static bool
is_over(const struct note *note)
{
	return note->state == NOTE_HANDLED || note->state == NOTE_ASIDE || note->state == NOTE_DEAD;
}

/* Was its handler cut off so often and for so long, this time included, that it may be what ends the patrols? */
static bool
is_deadly(const struct note *note)
{
	return note->state == NOTE_RUNNING && note->attempt >= note->failures + CUT_OFFS_MAX &&
	       clock_now_ms() - note->first_ms >= CUT_OFFS_MS;
}

/* Does the handler that a dead patrol started still run? If it is far beyond its time, it is ended here (may_end). */
static bool
still_runs(const struct errand *e, bool may_end)
{
	const struct note *note = &e->note;
	int64_t late_ms = clock_now_ms() - note->until_ms;
	char entry[sizeof "MAILROOM_ID=" + MR_ID_LEN];

	if (note->state != NOTE_RUNNING || note->process.pid <= 1)
		return false;
	switch (process_state(&note->process)) {
	case PROCESS_DEAD:
		return false;
	case PROCESS_ALIVE:
		/* The note is in the room and could name any process of this user. A handler has the id of its message
		 * in its environment, which nobody else can write. */
		(void)snprintf(entry, sizeof(entry), "MAILROOM_ID=%s", e->msg.id);
		if (late_ms > KILL_GRACE_MS && may_end && spawned_with(&note->process, entry))
			(void)kill(-(pid_t)note->process.pid, SIGKILL);
		return true; /* also if it was ended just now: the next round finds it gone */
	case PROCESS_UNKNOWN:
		break;
	}
	return late_ms <= CLOCK_GRACE_MS; /* in another container or machine, whose patrol ends it */
}

static bool
is_backing_off(const struct errand *e)
{
	int64_t pause = BACKOFF_FIRST_MS;

	if (e->note.state != NOTE_FAILED || !e->p->options->patient)
		return false;
	for (unsigned i = 1; i < e->note.failures && pause < BACKOFF_MAX_MS; i++)
		pause *= 2;
	return clock_now_ms() < e->note.at_ms + (pause < BACKOFF_MAX_MS ? pause : BACKOFF_MAX_MS);
}

/* A report of an earlier life of its sender describes an old state: acting on it now could undo the work of the new
 * life. 0: it is not stale; else the newest life. */
static unsigned
newer_life(const struct errand *e)
{
	mr_auto(mr_agent_done) struct mr_agent sender = { 0 };
	struct mr_room *room = e->p->room;
	const struct mr_names *guarded = &e->p->set.stale_guard;
	bool is_guarded = (names_has(guarded, "all") && !e->def->any_life) || names_has(guarded, e->def->name);

	if (e->msg.sender_life == 0 || !is_guarded || !ROOM_HAS(room, find_agent) ||
	    room->driver->find_agent(room, e->msg.from, &sender, IGNORED) != MR_OK)
		return 0;
	return sender.life > e->msg.sender_life ? sender.life : 0;
}

/* `why` is the reason why it waits or is set aside. */
static enum verdict
judge(const struct errand *e, struct buf *why)
{
	const struct note *note = &e->note;
	unsigned life;
	int64_t left;

	if (is_over(note))
		return ACT_FINISH;
	if (still_runs(e, !e->p->options->dry_run)) {
		buf_adds(why, "its handler still runs");
		return ACT_WAIT;
	}
	if (patience(e) > 0 && (note->failures >= patience(e) || is_deadly(note)))
		return ACT_GIVE_UP;
	if ((life = newer_life(e)) > 0) {
		buf_addf(why, "sent by life %u of its sender, which is at life %u now", e->msg.sender_life, life);
		return ACT_ASIDE;
	}
	if (is_backing_off(e)) {
		buf_adds(why, "it failed a moment ago");
		return ACT_WAIT;
	}
	if ((left = cooldown_left(e)) > 0) {
		buf_addf(why, "cooldown, for %s", span_text(left).z);
		return ACT_WAIT;
	}
	return ACT_RUN;
}

/* ---- Taking and ending ---- */

/* MR_EMPTY: another process was faster. */
static enum mr_rc
take(struct errand *e, struct mr_error *err)
{
	const struct mr_self *self = e->p->self;
	struct mr_room *room = e->p->room;
	struct claim_terms terms = { .kind = CLAIM_HANDLE, .life = self->life, .session = self->session };

	if (room->driver->abilities & ROOM_HOLDS) {
		enum mr_rc rc = room->driver->claim(room, self->agent, e->msg.id, &terms, &e->claim, err);
		if (rc != MR_OK)
			return rc == MR_BUSY || rc == MR_NOTFOUND ? MR_EMPTY : rc;
	}
	e->taken = true;
	TRY(note_load(room, self->agent, e->msg.id, &e->note, err));
	if (e->line.len > 0)
		e->note.handler = buf_z(&e->line);
	return MR_OK;
}

/* Ends the claim, or marks the mail read. The note is durable and says the same, so if a power cut undoes this, it is
 * only done again. */
static enum mr_rc
settle(struct errand *e, enum settle how, struct mr_error *err)
{
	struct mr_room *room = e->p->room;
	enum mr_rc rc;

	e->taken = false;
	if (room->driver->abilities & ROOM_HOLDS)
		rc = room->driver->settle(room, &e->claim, how, err);
	else
		rc = how == SETTLE_BACK ? MR_OK : mr_mark(room, e->p->self, e->msg.id, MR_SEEN, 0, err);
	return mr_unless(rc, MR_NOTFOUND, err); /* a new life has it, or its reader moved it; the note stays valid */
}

/* ---- Giving up ----
 *
 * The escalation address and the sender are told, then the message goes to dead letters. All these texts follow from
 * the note, which is durable, and are sent under a key: after a cut-off the next patrol sends the same again and it
 * arrives once. In a room without keys it may arrive twice. */

static const char *
ear_of(const struct errand *e)
{
	return e->def->escalate_to && *e->def->escalate_to ? e->def->escalate_to : e->p->set.escalate_to;
}

static enum mr_rc
send_escalation(const struct errand *e, const char *to, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	char key[16 + MR_ID_LEN];

	(void)snprintf(key, sizeof(key), "escalate-%s", e->msg.id);
	buf_addf(&subject, "ESCALATION: %s from %s failed %u times", e->def->name, e->msg.from, e->note.failures);
	buf_addf(&body, "%s could not handle this message, and it will not be tried again.\n\n", e->p->self->agent);
	buf_addf(&body, "Type: %s\nMessage: %s\nFrom: %s\nSubject: %s\n", e->def->name, e->msg.id, e->msg.from,
	    e->msg.subject);
	buf_addf(&body, "Failures: %u\nLast: %s\n", e->note.failures, e->note.result);
	if (office_folders(e->p->room, MR_DEAD))
		buf_adds(&body, "\nThe message is kept: mailroom dead list\n");
	return patrol_send(e->p->room, e->p->self, to, MR_HIGH, key, &subject, &body, err);
}

/* An address that cannot be reached must not hide the failure: then the operator is told, if there is one. */
static enum mr_rc
escalate(struct errand *e, struct mr_error *err)
{
	const char *to = ear_of(e);

	if (!*to)
		return MR_OK;
	enum mr_rc rc = send_escalation(e, to, err);
	if (rc != MR_OK && office_has_lives(e->p->room) && strcmp(to, OPERATOR) != 0) {
		patrol_event(e->p, "trouble", e->def->name, "cannot escalate to '%s' (%s): the operator is told", to,
		    err->message);
		to = OPERATOR;
		*err = (struct mr_error){ 0 };
		rc = send_escalation(e, to, err);
	}
	if (rc == MR_OK)
		patrol_event(
		    e->p, "escalated", e->def->name, "%s told %s after %u failures", e->msg.id, to, e->note.failures);
	return rc;
}

static enum mr_rc
give_up(struct errand *e, struct mr_error *err)
{
	struct mr_room *room = e->p->room;
	mr_auto(buf_done) struct buf last = BUF_INIT;
	char key[16 + MR_ID_LEN];

	if (is_deadly(&e->note)) { /* so far only the number of attempts shows this */
		e->note.failures = e->note.attempt;
		e->note.result = "cut off each time: the patrol ended before its handler did";
	}
	TRY(escalate(e, err));
	(void)snprintf(key, sizeof(key), "gave-up-%s", e->msg.id);
	buf_adds(&last, e->note.result);
	if (office_has_lives(room) && strcmp(e->msg.from, ear_of(e)) != 0)
		TRY(bounce_send(room, e->p->self, &e->msg, buf_z(&last), key, err));
	TRY(turn(e, NOTE_DEAD, "dead", buf_z(&last), err));
	TRY(settle(e, SETTLE_DEAD, err));
	e->p->count.dead++;
	return MR_OK;
}

/* ---- Acting ---- */

static enum mr_rc
run(struct errand *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf result = BUF_INIT;
	bool succeeded = false;
	enum mr_rc rc = cooldown_take(e, err);

	if (rc == MR_BUSY) {
		e->p->count.waiting++;
		return settle(e, SETTLE_BACK, err);
	}
	TRY(rc);
	TRY(patrol_run(e, &succeeded, &result, err));
	TRY(mr_got(buf_ok(&result), err));
	if (succeeded) {
		TRY(turn(e, NOTE_HANDLED, "handled", buf_z(&result), err));
		TRY(settle(e, SETTLE_DONE, err));
		e->p->count.handled++;
		return MR_OK;
	}
	e->note.failures++;
	rc = turn(e, NOTE_FAILED, "failed", buf_z(&result), err);
	if (rc == MR_OK && patience(e) > 0 && e->note.failures >= patience(e))
		return give_up(e, err);
	e->p->count.failed++;
	return rc == MR_OK ? settle(e, SETTLE_BACK, err) : rc;
}

static enum mr_rc
act(struct errand *e, struct mr_error *err)
{
	static const struct {
		const char *word;
		enum settle how;
	} ended[] = {
		[NOTE_HANDLED] = { "handled", SETTLE_DONE },
		[NOTE_ASIDE] = { "set-aside", SETTLE_ARCHIVE },
		[NOTE_DEAD] = { "dead", SETTLE_DEAD },
	};
	mr_auto(buf_done) struct buf why = BUF_INIT;

	switch (judge(e, &why)) {
	case ACT_RUN:
		return run(e, err);
	case ACT_WAIT:
		e->p->count.waiting++;
		return settle(e, SETTLE_BACK, err);
	case ACT_FINISH:
		tell(e, ended[e->note.state].word, "it was, before a patrol ended: now acknowledged");
		return settle(e, ended[e->note.state].how, err);
	case ACT_ASIDE:
		TRY(turn(e, NOTE_ASIDE, "set-aside", buf_z(&why), err));
		TRY(settle(e, SETTLE_ARCHIVE, err));
		e->p->count.aside++;
		return MR_OK;
	case ACT_GIVE_UP:
		return give_up(e, err);
	}
	return MR_OK;
}

/* Prepares the fields, and the words of the command. MR_EMPTY: the message is broken. That is reported once, and
 * checked again each time, because its type may be corrected. It is noted only while we hold it, because another patrol
 * with other settings may be handling it. */
static enum mr_rc
prepare(struct errand *e, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = { 0 };
	struct mr_error wrong = { 0 };
	enum mr_rc rc = types_usable(e->p->room, e->p->self->agent, &e->msg, &e->values, &wrong);

	if (rc == MR_OK)
		rc = patrol_words(e, &words, &wrong);
	if (rc == MR_CORRUPT || rc == MR_REFUSED) {
		e->p->count.broken++;
		if (e->p->options->dry_run)
			tell(e, "broken", wrong.message);
		if (e->p->options->dry_run ||
		    (e->note.state == NOTE_BROKEN && strcmp(e->note.result, wrong.message) == 0))
			return MR_EMPTY;
		TRY(take(e, err));
		if (!is_over(&e->note) && !still_runs(e, true))
			TRY(turn(e, NOTE_BROKEN, "broken", wrong.message, err));
		return MR_EMPTY;
	}
	for (size_t i = 0; i < words.n; i++) {
		if (i > 0)
			buf_addc(&e->line, ' ');
		text_clean_line(&e->line, str_of(words.v[i]));
	}
	e->note.handler = buf_z(&e->line);
	if (rc != MR_OK)
		*err = wrong;
	return rc;
}

/* From the look to the end of it. MR_EMPTY: it is gone, it has no handler, or another process was faster. */
static enum mr_rc
go_through(struct errand *e, const char *id, struct mr_error *err)
{
	static const char *const rehearsed[] = {
		[ACT_RUN] = "would-run",
		[ACT_WAIT] = "waiting",
		[ACT_FINISH] = "would-acknowledge",
		[ACT_ASIDE] = "would-set-aside",
		[ACT_GIVE_UP] = "would-give-up",
	};
	mr_auto(buf_done) struct buf why = BUF_INIT;
	struct mr_room *room = e->p->room;
	const char *agent = e->p->self->agent;
	enum mr_rc rc = room->driver->fetch(room, agent, id, MR_INBOX, SCAN_BODIES, &e->msg, err);

	if (rc == MR_NOTFOUND || rc == MR_CORRUPT || (rc == MR_OK && (e->msg.flags & MR_SEEN)))
		return MR_EMPTY;
	TRY(rc);
	e->def = types_of(room, &e->msg);
	e->command = e->def ? patrol_handler(e->p, e->def) : "";
	if (!*e->command)
		return MR_EMPTY;
	TRY(note_load(room, agent, id, &e->note, err));
	if (!is_over(&e->note))
		TRY(prepare(e, err));
	enum verdict verdict = judge(e, &why);
	if (e->p->options->dry_run) {
		e->note.attempt += verdict == ACT_RUN;
		tell(e, rehearsed[verdict], buf_z(&why));
		return MR_OK;
	}
	if (verdict == ACT_WAIT) {
		e->p->count.waiting++;
		tell(e, "waiting", buf_z(&why));
		return MR_OK;
	}
	TRY(take(e, err));
	return act(e, err);
}

enum mr_rc
patrol_message(struct patrol *p, const char *id, struct mr_error *err)
{
	mr_auto(errand_done) struct errand e = { .p = p };
	enum mr_rc rc = go_through(&e, id, err);

	if (e.taken) /* it was not ended properly: the next patrol begins where the note says */
		(void)settle(&e, SETTLE_BACK, IGNORED);
	return rc == MR_EMPTY ? MR_OK : rc;
}
