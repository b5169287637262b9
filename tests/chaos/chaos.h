/* SPDX-License-Identifier: MIT */
/*
 * chaos.h - many commands at once in one room, most of them killed or failing, in surroundings that are not kind; then
 * a count of what is there against what was promised.
 *
 * Every message has a tag, "t00042", as its subject, and a text that follows from it. What the senders were told is
 * kept in memory that all processes share; what the mailboxes hold is read from the files, as `ls` and `grep` would.
 */
#ifndef TESTS_CHAOS_H
#define TESTS_CHAOS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TAGS 4096u
#define AGENTS 4u /* alice, bob, carol, dave; bit i of a mask */
#define WORKERS 3u
#define QUEUE_BIT (1u << AGENTS) /* queue:work */

enum surroundings {
	AROUND_PLAIN,
	AROUND_SPACES, /* each worker in a pid namespace of its own, with another boot id: other machines, one folder */
	AROUND_NO_PROC,   /* nothing at /proc */
	AROUND_NO_LINKS,  /* links and renames from one folder to another are refused */
	AROUND_FULL,      /* a disk of half a megabyte that somebody fills and empties */
	AROUND_READ_ONLY, /* a disk that becomes read-only and writable again */
	AROUND_CLOCKS,    /* clocks that step by seconds, hours and years */
	AROUND_N,
};
extern const char *const around_names[AROUND_N];

enum outcome { SENT_NOT, SENT_ACCEPTED, SENT_REFUSED, SENT_DOUBT, SENT_KILLED };
struct tag {
	atomic_uint outcome; /* enum outcome */
	unsigned to;         /* mask */
	atomic_uint shown;   /* mask of agents to whom a command printed it whole */
};
struct model { /* shared */
	struct tag tags[TAGS];
	atomic_uint next;
	atomic_uint asked[AGENTS]; /* tags below may be consumed unseen: somebody said so */
	atomic_uint commands, killed, failed, accepted, crashed;
	atomic_bool over;
	char crash[200];
};
extern struct model *model;

struct chaos {
	const char *bin, *devbin;
	char dir[96]; /* of the room's folder */
	enum surroundings around;
	uint64_t seed;
	bool faults;
};

/* ---- run.c ---- */
uint32_t dice(uint64_t *state);
struct answer {
	int exit_code; /* -1: killed */
	char out[1 << 15];
};
struct order { /* how a command is run */
	const char *bin, *dir, *fault, *clock;
	const char *input;      /* file for stdin, or NULL */
	unsigned kill_after_us; /* 0: not */
	bool kill_child;        /* not it, but the process that it started, if there is one */
};
void run_command(const struct order *order, const char *const *argv, struct answer *ret);
void remove_tree(const char *path);
double now_s(void);

/* ---- surroundings.c ---- */
bool around_enter(struct chaos *c); /* in the main process; false: not possible here, said why */
pid_t around_worker(struct chaos *c, unsigned number, void (*work)(struct chaos *, unsigned));
void around_disturb(struct chaos *c, uint64_t *state); /* now and then, by the main process */
void around_calm(struct chaos *c);                     /* before the count */
void around_leave(struct chaos *c);

/* ---- work.c ---- */
void work(struct chaos *c, unsigned number);
extern const char *const agent_names[AGENTS];

/* ---- count.c ---- */
/* How many promises are broken; prints each of the first few. */
unsigned count_all(const struct chaos *c);

/* ---- storm.c, storm_doors.c ---- */
struct storm {
	const struct chaos *c;
	unsigned messages;
	unsigned sent; /* of them, by doors that get them little by little */
	struct answer *answer;
	uint64_t state;
};
unsigned storm(const struct chaos *c, const char *how, unsigned messages, char *ret_row, size_t size);
/* The messages from .. to for bob, in one batch; false: they were not accepted. */
bool storm_send(struct storm *s, unsigned from, unsigned to);
void storm_note(const char *out, unsigned long tag_max); /* whole lines alone count */
/* One turn of a receiver: false if there was nothing left to receive. */
bool storm_mcp(struct storm *s, struct order *order);
bool storm_hook(struct storm *s, struct order *order);

#endif
