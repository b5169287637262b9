/* SPDX-License-Identifier: MIT */
/*
 * crash.h - dying and failing at every disk-touching call.
 *
 * A scenario is a set-up, an operation that runs in a child with a fault planned at its call 1, 2, 3 ... until a run
 * passes untouched, and a check that knows only the promises. The child tells through a pipe what it has told the
 * world: 'a' the operation was accepted, 's' a message was shown, 'd' in doubt, 'r' refused.
 */
#ifndef TESTS_CRASH_H
#define TESTS_CRASH_H

#include "mailroom-hooks.h"
#include "mailroom-town.h"
#include "base/sys.h"

#define BODY world_body()
#define WORK 3            /* messages that wait for bob in the scenarios that consume */
#define HISTORY "history" /* subject of what was there before: no check counts it */

struct world_options { /* the same scenarios over other set-ups; all 0: as ever */
	bool sized;    /* messages of body_size bytes, else some 50 */
	size_t body_size;
	bool history;     /* every mailbox has mail that was read, archived, sent */
	const char *sync; /* of the rooms' settings; NULL: full, whatever disk the test runs on */
};
void world_options_set(const struct world_options *options);
const char *world_body(void);
const char *world_sync(void);

struct world { /* what the child has told */
	bool accepted, doubted, refused;
	unsigned shown;  /* bit i: message i was printed, or is told as sent */
	unsigned denied; /* bit i: message i is told as refused */
	char dir[64];    /* of the room */
	char ids[WORK][MR_ID_LEN + 1];
	char token[MR_TOKEN_LEN + 1];
	const struct kind *foreign; /* scenarios_foreign.c: whose room it is */
	const char *kind;           /* scenarios_carry.c: of the other room */
};

struct scenario {
	const char *name;
	void (*setup)(struct world *w);               /* makes the room */
	enum mr_rc (*run)(struct world *w, int tell); /* in the child; writes to `tell` as it goes */
	void (*check)(struct world *w);               /* asserts */
	unsigned min_points;                          /* a harness that injects nothing also passes */
	unsigned stride;                              /* the short form takes every n-th call; 0: every one */
};

extern const struct scenario scenarios[];
extern const size_t scenarios_n;

/* ---- scenarios_foreign.c: rooms of other systems ---- */
extern const struct scenario foreign_scenarios[];
extern const size_t foreign_scenarios_n;

/* ---- scenarios_carry.c: between rooms ---- */
extern const struct scenario carry_scenarios[];
extern const size_t carry_scenarios_n;

/* ---- scenarios_queue.c ---- */
void setup_queue(struct world *w);
void setup_queue_work(struct world *w);
void setup_queue_claimed(struct world *w);
enum mr_rc run_queue_send(struct world *w, int tell);
enum mr_rc run_queue_fan_out(struct world *w, int tell);
enum mr_rc run_queue_recv(struct world *w, int tell);
enum mr_rc run_queue_done(struct world *w, int tell);
void check_queue_sent(struct world *w);
void check_queue_fan_out(struct world *w);
void check_queue_received(struct world *w);
void check_queue_done(struct world *w);
enum mr_rc run_queue_answer(struct world *w, int tell);
void check_queue_answer(struct world *w);
enum mr_rc run_queue_release(struct world *w, int tell);
void check_queue_release(struct world *w);

/* ---- scenarios_batch.c ---- */
void setup_batch(struct world *w);
enum mr_rc run_batch(struct world *w, int tell);
void check_batch(struct world *w);
/* The one with the subject "m<i>", for those. */
void check_batch_message(const struct world *w, struct mr_room *room, unsigned i, const char *const *to);

/* ---- for the scenarios ---- */
struct mr_room *world_open(const struct world *w, bool recover);
void world_folder(struct world *w);                         /* a new one, without a room */
void world_new(struct world *w, const char *const *agents); /* NULL-terminated */
void world_send(struct mr_room *room, const char *from, const char *to, char ret_id[MR_ID_LEN + 1]);
struct census {
	size_t copies, unread, seen, acked, held, torn;
};
/* Every copy of that id (NULL: of any) in the mailbox, dead letters not counted. */
struct census world_count(struct mr_room *room, const char *agent, const char *id);
void tell_char(int fd, char c);

#endif
