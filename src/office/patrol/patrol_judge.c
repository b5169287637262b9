/* SPDX-License-Identifier: MIT */
/* patrol_judge.c - what is to be done with a message, by its note, its type and who sent it. */
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/spawn.h"
#include "office/patrol/patrol.h"
#include <signal.h>

#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS 60000
/* A handler that ends its patrol does it each time; whoever kills patrols at random does not go on for so long. */
#define CUT_OFFS_MAX 10
#define CUT_OFFS_MS ((int64_t)5 * 60 * 1000)
#define KILL_GRACE_MS 5000 /* the patrol that started it ends it itself, if it lives */

/* The note lies in the room, and could name any process of this user. A handler has the id of its message in its
 * environment, where nobody else can write it. */
static bool
is_handler_of(const struct mr_process *process, const char *id)
{
	char entry[sizeof "MAILROOM_ID=" + MR_ID_LEN];

	(void)snprintf(entry, sizeof(entry), "MAILROOM_ID=%s", id);
	return spawned_with(process, entry);
}

/* Does a handler that an earlier patrol started still run? One that is far beyond its time is ended here, because the
 * patrol that was to end it is dead. */
bool
note_runs(const struct note *note, const char *id, bool may_end)
{
	bool late = clock_now_ms() > note->until_ms + KILL_GRACE_MS;

	if (note->state != NOTE_RUNNING || note->process.pid <= 1)
		return false;
	switch (process_state(&note->process)) {
	case PROCESS_DEAD:
		return false;
	case PROCESS_ALIVE:
		if (late && may_end && is_handler_of(&note->process, id))
			(void)kill(-(pid_t)note->process.pid, SIGKILL);
		return true; /* also when it was just ended: the next round finds it gone */
	case PROCESS_UNKNOWN:
		break;
	}
	/* Of another container or machine, whose patrol ends it. */
	return clock_now_ms() <= note->until_ms + CLOCK_GRACE_MS;
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

static bool
is_guarded(const struct errand *e)
{
	const struct mr_names *types = &e->p->set.stale_guard;

	return (names_has(types, "all") && !e->def->any_life) || names_has(types, e->def->name);
}

/* A report of an earlier life of its sender says how things were: acting on it now could undo the work of the new one.
 * 0: it is not stale; else the newest life. */
static unsigned
newer_life(const struct errand *e)
{
	mr_auto(mr_agent_done) struct mr_agent sender = { 0 };
	struct mr_error ignored = { 0 };
	struct mr_room *room = e->p->room;

	if (e->msg.sender_life == 0 || !room->driver->find_agent || !is_guarded(e) ||
	    room->driver->find_agent(room, e->msg.from, &sender, &ignored) != MR_OK)
		return 0;
	return sender.life > e->msg.sender_life ? sender.life : 0;
}

bool
note_is_over(const struct note *note)
{
	return note->state == NOTE_HANDLED || note->state == NOTE_ASIDE || note->state == NOTE_DEAD;
}

bool
note_is_deadly(const struct note *note)
{
	return note->state == NOTE_RUNNING && note->attempt >= note->failures + CUT_OFFS_MAX &&
	       clock_now_ms() - note->first_ms >= CUT_OFFS_MS;
}

enum verdict
errand_judge(const struct errand *e, struct buf *why)
{
	const struct note *note = &e->note;
	unsigned patience = patrol_patience(e), life;
	int64_t left;
	char time[24];

	if (note_is_over(note))
		return ACT_FINISH;
	if (note_runs(note, e->msg.id, !e->p->options->dry_run)) {
		buf_adds(why, "its handler still runs");
		return ACT_WAIT;
	}
	if (patience > 0 && (note->failures >= patience || note_is_deadly(note)))
		return ACT_GIVE_UP;
	if ((life = newer_life(e)) > 0) {
		buf_addf(why, "sent by life %u of its sender, who is at life %u now", e->msg.sender_life, life);
		return ACT_ASIDE;
	}
	if (is_backing_off(e)) {
		buf_adds(why, "it failed a moment ago");
		return ACT_WAIT;
	}
	if ((left = cooldown_left(e)) > 0) {
		duration_text(left, time);
		buf_addf(why, "cooldown, for %s", time);
		return ACT_WAIT;
	}
	return ACT_RUN;
}
