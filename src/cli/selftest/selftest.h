/* SPDX-License-Identifier: MIT */
/*
 * selftest.h - `mailroom selftest`: does this machine keep mailroom's promises?
 *
 *	cmd_selftest.c  the command, its scratch folder, and the quick test: one system call after the other
 *	crash.c         --crash: a room, processes that run commands in it and kill them
 *	verdict.c       what was promised against what is there
 *
 * The campaign knows only the promises: accepted mail is there, once, whole; a send to several that was cut off reached
 * all or nobody; nothing was consumed that was not shown; work is done once. What a command that was killed did is
 * open, so nothing is asked of it but that.
 */
#ifndef CLI_SELFTEST_SELFTEST_H
#define CLI_SELFTEST_SELFTEST_H

#include "cli/cli.h"

#define SENDERS 2
#define WORKERS (SENDERS + 2) /* and one that reads, one that does queue work */
#define READERS 3             /* agents that get mail: r0, r1, r2 */
#define HANDS 2               /* agents that take work: w0, w1 */
#define TAG_LEN 24
#define SENDS_MAX ((size_t)1 << 22) /* of one sender; as many as a day has */

struct scratch {    /* a folder of our own on the disk that is asked about */
	char *path; /* absolute */
	int fd;
};

struct sent {         /* one send; its subject is its tag, "t<sender>-<number>" */
	char kind;    /* p plain, k with a key, f to several, q to the queue */
	char answer;  /* y accepted, n refused, m (maybe) cut off or in doubt */
	bool claimed; /* work: was handed out */
	bool again;   /* ... and once more after it was done */
	unsigned char reader, copies[READERS];
	_Atomic unsigned char done; /* two workers may believe that they did it */
	bool shown[READERS];
};
/* What the workers were told, in memory that they share: they are never killed, only the commands that they run. */
struct journal {
	size_t commands[WORKERS + 1], killed[WORKERS + 1]; /* of each worker, and of the one that works off the rest */
	_Atomic size_t shown, done, strays;                /* of all workers: they are processes that share this */
	char stray[TAG_LEN];       /* the last that was shown or handed out and that nobody sent */
	_Atomic size_t n[SENDERS]; /* counted before the send begins: it may be read before it is answered */
	struct sent all[SENDERS][SENDS_MAX];
};
/* NULL: nobody sent that. */
struct sent *journal_find(struct journal *j, const char *tag);

/* Returns the exit code. *ret_keep: the scratch folder is to stay. */
int crash_run(struct cli *cli, const struct scratch *s, int64_t time_ms, uint64_t seed, bool *ret_keep);
/* The text of a message, as long as its tag says. */
void body_of(const char *tag, struct buf *out);

struct verdict { /* finish with mr_names_done(&broken) */
	size_t commands, killed;
	size_t accepted, doubtful, refused; /* sends */
	size_t arrived;                     /* of the doubtful */
	size_t fan_outs;                    /* cut off, and found at all or nobody */
	struct mr_names broken;             /* a sentence each, at most BROKEN_MAX */
	size_t broken_n;
};
#define BROKEN_MAX 20
enum mr_rc verdict_reach(struct journal *j, struct mr_room *room, struct verdict *ret, struct mr_error *err);

#endif
