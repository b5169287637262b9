/* SPDX-License-Identifier: MIT */
/*
 * nudge.h - nudges: short notices that reach an agent without mail.
 *
 *	nudge.c          chooses the way: a waiting process, a terminal, the queue; the answer to a nudge; do not
 * disturb queue.c          the queue: adding nudges, showing and removing them; rooms that keep nudges themselves
 * pane.c which terminal an agent has, and typing into it bell.c           ringing for a session whose harness takes a
 * ring for the user's words wait.c           waiting for mail or a nudge
 *
 * A nudge is in the queue from the beginning. The process that shows it (a hook, a waiting command, the one that types
 * it into a terminal) holds the lock "shown" of that agent meanwhile, and removes the nudge afterwards. So no two
 * processes show the same nudge, and after a crash it is shown again. May call mail, types and who.
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
bool nudge_somebody_waits(
    struct mr_room *room, const char *agent); /* is a process waiting, so that a nudge would be shown at once? */
/* MR_OK: the lock is free. MR_BUSY: it is held. MR_UNSUPPORTED: there are no locks. */
enum mr_rc nudge_lock_look(struct mr_room *room, const char *kind, const char *agent, const char *name);

/* ---- queue.c ---- */
enum mr_rc nudge_able(const struct mr_room *room, struct mr_error *err); /* MR_UNSUPPORTED */
/* Sets at_ms and times, and expires_ms if it is 0. MR_REFUSED: the queue is full; the refusal is counted. */
enum mr_rc nudge_enqueue(struct mr_room *room, const char *agent, const struct mr_nudge *nudge,
    char ret_name[NUDGE_NAME_LEN + 1], bool *ret_coalesced, struct mr_error *err);
/* Is it still waiting to be shown? */
bool nudge_waits(struct mr_room *room, const char *agent, const char *name);
enum mr_rc nudge_names(struct mr_room *room, const char *agent, struct mr_names *ret, struct mr_error *err);
/* Is there a nudge that could be shown now and is not one of these? Cheap if there is none. */
bool nudge_any_but(struct mr_room *room, const char *agent, const struct mr_names *names);
const char *nudges_name(const struct mr_nudges *nudges, size_t i); /* "" in the room of another program */

/* ---- pane.c ---- */
enum pane_result {
	PANE_TYPED,
	PANE_NOT,   /* nothing was typed: `why` has the reason */
	PANE_DOUBT, /* it was typed, but it cannot be seen whether it was submitted */
	PANE_GONE,  /* another process showed the nudge meanwhile */
};
/* Types a notice of this nudge into the agent's terminal. */
enum pane_result pane_type(struct mr_room *room, const char *agent, const char *name,
    const struct mr_nudge_options *options, char *why, size_t why_size);

/* ---- bell.c ---- */

struct bell_reason {
	const struct mr_names *ids; /* mail that was not told yet */
	bool more;                  /* there is more mail than these */
	bool work;                  /* in a queue */
	const char *tells;          /* the ring's own text, if that tells everything; or NULL */
};
/* MR_BUSY: a ring is open. Else the result of `ring`, which is recorded either way. */
enum mr_rc bell_ring(struct mr_room *room, const struct mr_self *self, const char *door, const struct bell_reason *why,
    mr_ring_fn *ring, void *ctx, struct mr_error *err);
/* "rung by codex-queue at TIME, answered at TIME; ...": the life's rings for that message; with id "" the last one, if
 * it was given up without an answer. */
bool bell_of(struct mr_room *room, const struct mr_self *self, const char *id, struct buf *out, int64_t *ret_at_ms);

/* Finds the bell that rang since then, or still rings, and its result. */
void bell_since(struct mr_room *room, const char *agent, int64_t since_ms, struct mr_nudged *ret);

#endif
