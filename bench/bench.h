/* SPDX-License-Identifier: MIT */
/*
 * bench.h - what mailroom costs beside the bare system calls of the same work.
 *
 * A row compares two operations, `bare` and `ours`, one of each in turn, so that a disk that gets slower or a
 * neighbour that wakes up hits both. A round counts as the median of its operations, the row as the median of
 * its rounds: a machine that does something else now and then does not show. The bench is an outside user of
 * the library: it includes mailroom.h and nothing else of ours.
 *
 *	bench.c    options, the room, the order of the rows
 *	bare.c     the bare system calls: a delivery, a fan-out, a look into an inbox, a program start
 *	rows.c     send and inbox, in the library and as a command; fan-out
 *	batch.c    many messages by one command
 *	claim.c    taking work from a short and a long queue
 *	wake.c     from the link of a message to the return of the waiting process
 *	foreign.c  sending into the mailboxes of other systems, beside those systems' own way
 *	peer.c     a program of theirs that sends whenever it is told to
 *	costs.c    system calls, syncs, instructions, memory and bytes of each command
 *	sizes.c    a send and a look while the mailbox grows: size.h says more
 *	growth.c   the commands that read a history, in rooms of any size: growth.h says more
 *	rivals.c   others that keep a message: rival.h says more
 *	report.c   rounds, medians, the table
 *	record.c   the JSON, with what is known of the machine
 */
#ifndef BENCH_H
#define BENCH_H

#include <mailroom-hooks.h>
#include <mailroom-town.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define ROUNDS 11
#define BODY_BYTES 1024
#define FAN_OUT_MAX 1000
#define LETTER_NAME_MAX 64

/* ---- The place ---- */

struct bench {
	const char *work;        /* folder on the measured file system; the room is in it */
	const char *command;     /* the mailroom command */
	const char *empty;       /* the program that does nothing */
	const char *file_system; /* in words */
	const char *json;        /* where to write the rows */
	const char *top;         /* of the sources, with the peers' programs */
	const char *parts;       /* which of them are measured; NULL: all */
	const char *input;       /* what the programs that it starts read from standard input; NULL: nothing */
	const char *variable;    /* one more of their environment; NULL: none */
	long archived;           /* how large the large archive is */
	unsigned senders;        /* that a rival's room must know */
	unsigned missed;         /* limits that fail the bench */
	double busy;             /* share of the cores that others had, before anything was measured */
	struct mr_room *room;
	char body[BODY_BYTES + 1];
	char *names[FAN_OUT_MAX + 1]; /* of the agents that a fan-out goes to */
};

/* Prints and exits: a bench that went wrong has no figures. */
_Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *path_of(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* never NULL */
void make_folder(const char *path);
void check(enum mr_rc rc, const struct mr_error *err, const char *what);
struct mr_self self_of(struct bench *b, const char *agent);
void register_agent(struct bench *b, const char *name);

/* ---- Bare system calls ---- */

struct bare_box { /* folders that stay open, as a program made for nothing else would keep them */
	int new_fd, sent_fd;
};

void bare_box_open(struct bare_box *box, const char *path);
double bare_send(const struct bare_box *box); /* µs, as all that follow */
double bare_fan_out(int base_fd, size_t n);
double bare_inbox(int new_fd, int cur_fd);
/* The name of a message file, later than all before it; flags "" or ":2,S". */
void letter_name(char ret[LETTER_NAME_MAX], int64_t time_ms, const char *flags);
/* Runs argv in `work` with a small environment and nothing on stdin; NULL output: /dev/null. */
int run_program(const struct bench *b, const char *const *argv, const char *output);
double run_timed(const struct bench *b, const char *const *argv); /* dies when it fails */
double now_us(void);

/* ---- Other systems' programs ---- */

struct peer {
	const char *name;
	pid_t pid;
	int to;
	FILE *from;
};
void peer_start(struct peer *p, const char *const *argv);
double peer_send(struct peer *p);
double peer_ask(struct peer *p, const char *line); /* for one that answers a line; µs until it does */
void peer_stop(struct peer *p);

/* ---- Rows ---- */

typedef double op_fn(void *ctx); /* does it once, returns µs */

struct comparison {
	const char *name, *what, *note;
	const char *reason; /* why the floor is elsewhere, for a budget that is missed; may be NULL */
	double budget;      /* 0: none */
	unsigned ops;       /* in a round, of each side */
	op_fn *bare, *ours;
	void *ctx;
};

void compare(const struct comparison *c);
void sync_disk(void);                    /* disk.c: what others left unwritten is not paid by the next one */
double median(double *v, size_t n);      /* sorts */
void report_rows(const struct bench *b); /* prints the table of what was compared */

/* ---- The JSON: parts with records, each some texts and numbers ---- */

FILE *record_begin(const char *part);
void record_text(FILE *out, const char *name, const char *value);
void record_number(FILE *out, const char *name, double value);
void record_flag(FILE *out, const char *name, bool value);
void record_end(FILE *out);
double busy_share(void); /* now, in a second */
void records_write(const struct bench *b);

void rows_send(struct bench *b);
void rows_fan_out(struct bench *b);
void rows_check(struct bench *b);
void rows_hook(struct bench *b);
void rows_inbox(struct bench *b);
void rows_claim(struct bench *b);
void rows_wake(struct bench *b);
void rows_foreign(struct bench *b);
void rows_batch(struct bench *b); /* leaves bob with many thousands */
void rows_costs(struct bench *b);
void rows_rivals(struct bench *b);
void rows_parallel(struct bench *b);
void rows_sizes(struct bench *b);
void rows_growth(struct bench *b);

#endif
