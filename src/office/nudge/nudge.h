/* SPDX-License-Identifier: MIT */
/*
 * nudge.h - shared by the half of the post office that taps on shoulders.
 *
 *	nudge.c          in which way one goes: a waiting process, a terminal, the queue; the answer to one; do not
 *disturb queue.c          the queue: putting one in, showing them, removing them; rooms that keep nudges themselves
 *	pane.c           which terminal an agent has, and typing into it
 *	bell.c           ringing for a session whose harness takes a ring for the user's words
 *	wait.c           until mail comes, or a nudge
 *
 * A nudge is in the queue from the beginning. The process that shows it (a hook, a waiting command, the one that types
 * it into a terminal) has the lock "shown" of that agent meanwhile, and removes it afterwards. So two never show the
 * same, and what a crash cuts off is shown again.
 */
#ifndef OFFICE_NUDGE_H
#define OFFICE_NUDGE_H

#include "harness/harness.h"
#include "office/office.h"

#define NUDGE "nudge"          /* kind of record */
#define NUDGE_SHOWN "shown"    /* lock: of the process that shows them */
#define NUDGE_WAITER "waiting" /* lock: of a process that waits for them */
#define NUDGE_NAME_LEN 40

/* ---- nudge.c ---- */
bool dnd_is_on(struct mr_room *room, const char *agent);
bool nudge_somebody_waits(struct mr_room *room, const char *agent); /* would a nudge be shown at once? */
/* MR_OK: nobody has that lock. MR_BUSY: somebody has. MR_UNSUPPORTED: there are no locks. */
enum mr_rc nudge_lock_look(struct mr_room *room, const char *kind, const char *agent, const char *name);

/* ---- queue.c ---- */
enum mr_rc nudge_able(const struct mr_room *room, struct mr_error *err); /* MR_UNSUPPORTED */
/* Takes at_ms, times and where it is 0 expires_ms itself. MR_REFUSED: the queue is full; that is counted. */
enum mr_rc nudge_enqueue(struct mr_room *room, const char *agent, const struct mr_nudge *nudge,
    char ret_name[NUDGE_NAME_LEN + 1], bool *ret_coalesced, struct mr_error *err);
/* Is it still waiting to be shown? */
bool nudge_waits(struct mr_room *room, const char *agent, const char *name);
enum mr_rc nudge_names(struct mr_room *room, const char *agent, struct mr_names *ret, struct mr_error *err);
/* Is there one that could be shown now, and is none of these? Cheap when there is none. */
bool nudge_any_but(struct mr_room *room, const char *agent, const struct mr_names *names);
const char *nudges_name(const struct mr_nudges *nudges, size_t i); /* "" where the room is another program's */

/* ---- pane.c ---- */
enum pane_result {
	PANE_TYPED,
	PANE_NOT,   /* nothing was typed: why says the reason */
	PANE_DOUBT, /* something was typed, and whether it was submitted cannot be seen */
	PANE_GONE,  /* another showed the nudge meanwhile */
};
/* Types into the agent's terminal that this nudge waits. */
enum pane_result pane_type(struct mr_room *room, const char *agent, const char *name,
    const struct mr_nudge_options *options, char *why, size_t why_size);

/* ---- bell.c ---- */

struct bell_reason {
	const struct mr_names *ids; /* mail that was not told yet */
	bool more;                  /* than these */
	bool work;                  /* in a queue */
	const char *tells;          /* the ring's own words, which tell all of it; or NULL */
};
/* MR_BUSY: one is open. Else what `ring` returns; the ring is noted either way. */
enum mr_rc bell_ring(struct mr_room *room, const struct mr_self *self, const char *door, const struct bell_reason *why,
    mr_ring_fn *ring, void *ctx, struct mr_error *err);
/* "rung by codex-queue at TIME, answered at TIME; ...": the life's rings for that message; with id "" its last, if
 * nobody answers any more. */
bool bell_of(struct mr_room *room, const struct mr_self *self, const char *id, struct buf *out, int64_t *ret_at_ms);

/* Tells which bell rang since then, or rings still, and what came of it. */
void bell_since(struct mr_room *room, const char *agent, int64_t since_ms, struct mr_nudged *ret);

#endif
