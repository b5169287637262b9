/* SPDX-License-Identifier: MIT */
/*
 * race.h - two commands on one mailbox, in an order that we choose.
 *
 * Both are real processes under ptrace. A step of an actor ends just before its next system call that the other could
 * notice, or that could notice the other (names, folders, locks, writes); nothing moves unless the schedule says so.
 *
 *	A12 B* A*     A stands before its 12th such call, B runs to its end, then A goes on
 *	A12 B* A!     ... then A is killed there
 *	A3 B7 A*      B stands in the middle, too; what is left at the end of a schedule runs to its end
 *	B5 N9 B*      N is the Node program, which cannot be stepped: it is let go for so many milliseconds
 *
 * A process that waits for the other (a lock) loses its turn, so every schedule ends. Afterwards a check, which knows
 * only the promises, counts the copies of every message and compares with what the commands said.
 */
#ifndef TESTS_RACE_H
#define TESTS_RACE_H

#include "mailroom-hooks.h"
#include "mailroom-town.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- actor.c: a process that moves when told to ---- */

enum reach {
	REACH_STEP,    /* it stands before a call */
	REACH_BLOCKED, /* it sleeps in the kernel, or asks again and again: a lock, most likely */
	REACH_END,
};
struct actor {
	pid_t pid;
	bool running, ended;
	bool killed; /* by us */
	int status;
	unsigned steps;
	unsigned knocks; /* at a lock, in a row */
	const char *out; /* file with its standard output */
};

/* Starts it and lets it come to its first step. False: no such program, or ptrace is not allowed here. */
bool actor_start(struct actor *a, const char *const *argv, const char *dir);
enum reach actor_step(struct actor *a);
void actor_kill(struct actor *a);
/* Both to their ends; false: neither moves for ten seconds. Actors may be NULL. */
bool actors_finish(struct actor *a, struct actor *b);
int actor_exit(const struct actor *a); /* exit code; -1: killed by us; -2: by another signal */
void actors_patience(bool on);         /* a timer that breaks waits, while schedules run */

/* ---- schedule.c ---- */

#define TURNS_MAX 96
enum turn_end { TURN_STEPS, TURN_TO_END, TURN_KILL };
struct turn {
	char who; /* 'A', 'B' */
	enum turn_end how;
	unsigned n;
};
struct schedule {
	struct turn turns[TURNS_MAX];
	size_t n;
};
void schedule_add(struct schedule *s, char who, enum turn_end how, unsigned n);
bool schedule_parse(const char *text, struct schedule *ret);
void schedule_print(const struct schedule *s, char *ret, size_t size);
uint32_t race_dice(uint64_t *state);
/* By a throw of dice: few or many switches, now and then a kill. `length` is about how many steps the longer has. */
void schedule_random(uint64_t *dice, unsigned length, struct schedule *ret);
/* Follows it. ret_beyond: the first turn was longer than its actor. False: they hang. */
bool schedule_run(const struct schedule *s, struct actor *a, struct actor *b, bool *ret_beyond);

/* ---- world.c: the room, as it was before and as it is afterwards ---- */

#define FOUND_MAX 64
struct found { /* one copy of a message */
	char agent[40], id[MR_ID_LEN + 1], tag[24], token[MR_TOKEN_LEN + 1];
	enum mr_folder folder;
	unsigned flags, attempt;
	bool whole;
};
struct world {
	const struct pair *pair;
	const char *bin, *devbin;
	char base[128], dir[160];
	struct actor a, b;
	char *out_a, *out_b;
	int exit_a, exit_b; /* see actor_exit */
	struct found found[FOUND_MAX];
	size_t found_n;
	char violation[400]; /* the first one, or "" */
};
/* Runs the script of the pair once in base/template; false: it failed. */
bool world_make(struct world *w);
bool world_reset(struct world *w); /* base/w becomes a copy of it */
/* "@name" in an argument is the first line of the file `name` that the script wrote. */
bool world_start(struct world *w, struct actor *a, const char *const *argv);
void world_look(struct world *w); /* finds every copy; damaged ones are violations */
/* Looking completes and gives back what the dead left, as every command does: a check that must come first names no
 * agents in its pair, and looks when it has seen what it wants. */
void world_look_at(struct world *w, const char *agents);
void world_done(struct world *w); /* frees, removes base */
/* Runs a command to its end: its exit code. */
int world_run(struct world *w, const char *const *argv);
void world_remove(const char *path);

void violate(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t copies(const struct world *w, const char *agent, const char *tag);
const struct found *the_copy(const struct world *w, const char *agent, const char *tag); /* NULL: none */
unsigned shown_by(const char *out, const char *tag);
bool consumed(const struct found *f);
/* Value of "name":"..." in the JSON that a command printed. */
bool out_value(const char *out, const char *name, char *ret, size_t size);

/* ---- pairs*.c ---- */

struct pair {
	const char *name;
	const char *script; /* sh: makes the room; $BIN, $DEVBIN; `mr`, `say FROM TO TAG` are there. A file "each" that
			     * it writes is a script that is run in every copy. */
	const char *const *a; /* arguments of the command; "!" first: another program; NULL: the Node program */
	const char *const *b;
	const char *agents; /* whose mailboxes are looked at: "bob carol" */
	const char *there;  /* another room, below the folder, whose mailboxes "there/NAME" are looked at, or NULL */
	const char *before; /* tags that bob has: each must be there once afterwards; "" none */
	bool unseen;        /* one of them consumes without showing, as it was asked to */
	void (*check)(struct world *w);
};
extern const struct pair pairs_mail[], pairs_work[], pairs_other[], pairs_told[];
extern const size_t pairs_mail_n, pairs_work_n, pairs_other_n, pairs_told_n;

/* ---- node.c: teams lock x Node lock ---- */
/* Prints its line of the table; how many violations. */
unsigned race_node(const char *bin, unsigned rounds, uint64_t seed, char *ret_row, size_t size);

#endif
