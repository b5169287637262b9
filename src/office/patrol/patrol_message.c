/* SPDX-License-Identifier: MIT */
/*
 * patrol_message.c - one message: look at it, take it, act on it. All that can be judged beforehand is, so that mail
 * which only waits is not taken and put back in every round (each time counts as an attempt to hand it out). What
 * others may have done meanwhile is judged again when it is taken: then nobody but us changes its note.
 *
 * Taken is held as long as this process lives, so that a patrol that is killed gives it back at once. In a room without
 * holds the lock of the whole patrol stands for that (patrol.c), and to acknowledge is to mark as read.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/patrol/patrol.h"

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
	patrol_tell(e->p, &(struct mr_patrol_step){
			      .at_ms = clock_now_ms(),
			      .what = what,
			      .id = e->msg.id,
			      .type = e->def->name,
			      .from = e->msg.from,
			      .handler = e->note.handler ? e->note.handler : "",
			      .result = result,
			      .attempt = e->note.attempt,
			  });
}

enum mr_rc
errand_turn(struct errand *e, enum note_state state, const char *word, const char *result, struct mr_error *err)
{
	e->note.type = e->def->name;
	e->note.from = e->msg.from;
	enum mr_rc rc = note_turn(&e->note, state, word, result, err);

	if (rc == MR_OK)
		rc = note_save(e->p->room, e->p->self->agent, e->msg.id, &e->note, err);
	if (rc == MR_OK)
		tell(e, word, result);
	return rc;
}

/* ---- Taking and ending ---- */

static bool
has_holds(const struct mr_room *room)
{
	return (room->driver->abilities & ROOM_HOLDS) && room->driver->hold && room->driver->settle;
}

/* MR_EMPTY: another was quicker. */
static enum mr_rc
take(struct errand *e, struct mr_error *err)
{
	const struct mr_self *self = e->p->self;
	struct mr_room *room = e->p->room;
	struct hold_terms terms = { .kind = HOLD_PROCESS, .life = self->life, .session = self->session };
	enum mr_rc rc;

	if (has_holds(room)) {
		rc = room->driver->hold(room, self->agent, e->msg.id, &terms, &e->hold, err);
		if (rc == MR_BUSY || rc == MR_NOTFOUND)
			return MR_EMPTY;
		if (rc != MR_OK)
			return rc;
	}
	e->taken = true;
	rc = note_load(room, self->agent, e->msg.id, &e->note, err);
	if (rc == MR_OK && e->line.len > 0)
		e->note.handler = buf_z(&e->line);
	return rc;
}

/* The note is durable, and says the same: losing this in a power cut only means that it is done again. */
enum mr_rc
errand_settle(struct errand *e, enum settle how, struct mr_error *err)
{
	struct mr_room *room = e->p->room;
	enum mr_rc rc;

	e->taken = false;
	if (has_holds(room))
		rc = room->driver->settle(room, &e->hold, how, err);
	else
		rc = how == SETTLE_BACK ? MR_OK : mr_mark(room, e->p->self, e->msg.id, MR_SEEN, 0, err);
	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 }; /* a new life has it, or its reader took it away; the note stands */
	return MR_OK;
}

/* ---- Acting ---- */

static enum mr_rc
finish(struct errand *e, struct mr_error *err)
{
	enum note_state state = e->note.state;

	tell(e,
	    state == NOTE_HANDLED ? "handled"
	    : state == NOTE_ASIDE ? "set-aside"
				  : "dead",
	    "it was, before a patrol ended: now acknowledged");
	return errand_settle(e,
	    state == NOTE_HANDLED ? SETTLE_DONE
	    : state == NOTE_ASIDE ? SETTLE_ARCHIVE
				  : SETTLE_DEAD,
	    err);
}

static enum mr_rc
set_aside(struct errand *e, const char *why, struct mr_error *err)
{
	enum mr_rc rc = errand_turn(e, NOTE_ASIDE, "set-aside", why, err);

	if (rc == MR_OK)
		rc = errand_settle(e, SETTLE_ARCHIVE, err);
	if (rc == MR_OK)
		e->p->count.aside++;
	return rc;
}

/* Told once; and looked at again each time, for its type may be put right. Noted only while we have it: another, with
 * other settings, may be handling it. */
static enum mr_rc
note_broken(struct errand *e, const char *why, struct mr_error *err)
{
	enum mr_rc rc;

	e->p->count.broken++;
	if (e->p->options->dry_run)
		tell(e, "broken", why);
	if (e->p->options->dry_run || (e->note.state == NOTE_BROKEN && strcmp(e->note.result, why) == 0))
		return MR_OK;
	rc = take(e, err);
	if (rc == MR_OK && !note_is_over(&e->note) && !note_runs(&e->note, e->msg.id, true))
		rc = errand_turn(e, NOTE_BROKEN, "broken", why, err);
	return rc;
}

static enum mr_rc
fail(struct errand *e, const char *result, struct mr_error *err)
{
	unsigned patience = patrol_patience(e);

	e->note.failures++;
	enum mr_rc rc = errand_turn(e, NOTE_FAILED, "failed", result, err);

	if (rc == MR_OK && patience > 0 && e->note.failures >= patience)
		return patrol_give_up(e, err);
	e->p->count.failed++;
	return rc == MR_OK ? errand_settle(e, SETTLE_BACK, err) : rc;
}

static enum mr_rc
run(struct errand *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf result = BUF_INIT;
	bool succeeded = false;
	enum mr_rc rc = cooldown_take(e, err);

	if (rc == MR_BUSY) {
		e->p->count.waiting++;
		return errand_settle(e, SETTLE_BACK, err);
	}
	if (rc == MR_OK)
		rc = patrol_run(e, &succeeded, &result, err);
	if (rc == MR_OK && !buf_ok(&result))
		rc = mr_nomem(err);
	if (rc != MR_OK)
		return rc;
	if (!succeeded)
		return fail(e, buf_z(&result), err);
	rc = errand_turn(e, NOTE_HANDLED, "handled", buf_z(&result), err);
	if (rc == MR_OK)
		rc = errand_settle(e, SETTLE_DONE, err);
	if (rc == MR_OK)
		e->p->count.handled++;
	return rc;
}

static enum mr_rc
act(struct errand *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;

	switch (errand_judge(e, &why)) {
	case ACT_RUN:
		return run(e, err);
	case ACT_WAIT:
		e->p->count.waiting++;
		return errand_settle(e, SETTLE_BACK, err);
	case ACT_FINISH:
		return finish(e, err);
	case ACT_ASIDE:
		return set_aside(e, buf_z(&why), err);
	case ACT_GIVE_UP:
		return patrol_give_up(e, err);
	}
	return MR_OK;
}

/* ---- From the inbox ---- */

/* MR_EMPTY: it is gone, or nothing handles it. */
static enum mr_rc
look(struct errand *e, const char *id, struct mr_error *err)
{
	struct mr_room *room = e->p->room;
	const char *agent = e->p->self->agent;
	enum mr_rc rc = room->driver->fetch(room, agent, id, MR_INBOX, SCAN_BODIES, &e->msg, err);

	if (rc == MR_NOTFOUND || rc == MR_CORRUPT || (rc == MR_OK && (e->msg.flags & MR_SEEN)))
		return MR_EMPTY;
	if (rc != MR_OK)
		return rc;
	e->def = types_of(room, &e->msg);
	e->command = e->def ? patrol_handler(e->p, e->def) : "";
	if (!*e->command)
		return MR_EMPTY;
	return note_load(room, agent, id, &e->note, err);
}

/* Fields, and the words of the command that they make. False: *ret_rc is the end of it. */
static bool
is_sound(struct errand *e, enum mr_rc *ret_rc, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = { 0 };
	struct mr_error wrong = { 0 };
	enum mr_rc rc = types_usable(e->p->room, e->p->self->agent, &e->msg, &e->values, &wrong);

	if (rc == MR_OK)
		rc = patrol_words(e, &words, &wrong);
	if (rc == MR_CORRUPT || rc == MR_REFUSED) {
		*ret_rc = note_broken(e, wrong.message, err);
		return false;
	}
	patrol_join(&e->line, &words);
	e->note.handler = buf_z(&e->line);
	*ret_rc = rc;
	if (rc != MR_OK)
		*err = wrong;
	return rc == MR_OK;
}

static void
rehearse(struct errand *e, enum verdict verdict, const char *why)
{
	static const char *const words[] = {
		[ACT_RUN] = "would-run",
		[ACT_WAIT] = "waiting",
		[ACT_FINISH] = "would-acknowledge",
		[ACT_ASIDE] = "would-set-aside",
		[ACT_GIVE_UP] = "would-give-up",
	};

	e->note.attempt += verdict == ACT_RUN;
	tell(e, words[verdict], why);
}

/* From the look to the end of it. */
static enum mr_rc
go_through(struct errand *e, const char *id, struct mr_error *err)
{
	mr_auto(buf_done) struct buf why = BUF_INIT;
	enum mr_rc rc = look(e, id, err);

	if (rc != MR_OK || (!note_is_over(&e->note) && !is_sound(e, &rc, err)))
		return rc;
	enum verdict verdict = errand_judge(e, &why);

	if (e->p->options->dry_run) {
		rehearse(e, verdict, buf_z(&why));
		return MR_OK;
	}
	if (verdict == ACT_WAIT) {
		e->p->count.waiting++;
		tell(e, "waiting", buf_z(&why));
		return MR_OK;
	}
	rc = take(e, err);
	return rc == MR_OK ? act(e, err) : rc;
}

enum mr_rc
patrol_message(struct patrol *p, const char *id, struct mr_error *err)
{
	mr_auto(errand_done) struct errand e = { .p = p };
	struct mr_error ignored = { 0 };
	enum mr_rc rc = go_through(&e, id, err);

	if (e.taken) /* not ended, or not as it should: whoever comes next begins where the note says */
		(void)errand_settle(&e, SETTLE_BACK, &ignored);
	return rc == MR_EMPTY ? MR_OK : rc;
}
