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

struct scratch {    /* a folder of our own on the disk that is asked about */
	char *path; /* absolute */
	int fd;
};

/* Returns the exit code. *ret_keep: the scratch folder is to stay. */
int crash_run(struct cli *cli, const struct scratch *s, int64_t time_ms, uint64_t seed, bool *ret_keep);
/* The text of a message, as long as its tag says. */
void body_of(const char *tag, struct buf *out);

struct verdict { /* finish with mr_names_done(&broken) */
	size_t commands, killed;
	size_t accepted, doubtful, refused; /* sends */
	size_t arrived;                     /* of the doubtful */
	size_t shown, done;
	size_t fan_outs;        /* cut off, and found at all or nobody */
	struct mr_names broken; /* a sentence each, at most BROKEN_MAX */
	size_t broken_n;
};
#define BROKEN_MAX 20
/* From the journals journal.0 to journal.WORKERS in that folder. */
enum mr_rc verdict_reach(int journals_fd, struct mr_room *room, struct verdict *ret, struct mr_error *err);

#endif
