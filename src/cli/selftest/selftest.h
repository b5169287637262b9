/* SPDX-License-Identifier: MIT */
/*
 * selftest.h - `mailroom selftest`: does this machine keep mailroom's promises?
 *
 *	scratch.c   a folder of our own for it, removed afterwards
 *	probe.c     the quick test: one system call after the other, and what follows where one is missing
 *	crash.c     --crash: a room, processes that work in it and are killed, the verdict
 *	child.c     our own program as a child, killed after so many microseconds
 *	workers.c   who sends, who reads, who works; each writes down what it was promised
 *	verdict.c   what was promised against what is there
 *
 * The campaign knows only the promises: accepted mail is there, once, whole; a send to several that was cut off reached
 * all or nobody; nothing was consumed that was not shown; work is done once. What a command that was killed did is
 *open, so nothing is asked of it but that.
 */
#ifndef CLI_SELFTEST_SELFTEST_H
#define CLI_SELFTEST_SELFTEST_H

#include "cli/cli.h"

struct scratch {
	char *path; /* absolute */
	int fd;
};
#define SCRATCH_INIT ((struct scratch){ .fd = -1 })
/* In `dir`, or NULL: beside the room, else in the working folder. */
enum mr_rc scratch_make(struct cli *cli, const char *dir, struct scratch *ret, struct mr_error *err);
void scratch_remove(struct scratch *s);
void scratch_keep(struct scratch *s); /* frees, removes nothing */

int probe_run(struct cli *cli, const struct scratch *s);

/* ---- The campaign ---- */
#define SENDERS 2
#define WORKERS (SENDERS + 2) /* and one that reads, one that does queue work */
#define READERS 3             /* agents that get mail */
#define HANDS 2               /* agents that take work */
#define TAG_LEN 24

struct campaign {
	const struct scratch *scratch;
	int64_t time_ms;
	uint64_t seed;
};
int crash_run(struct cli *cli, const struct scratch *s, int64_t time_ms, uint64_t seed, bool *ret_keep);

/* child.c */
struct child {
	int exit_code; /* -1: killed */
	struct buf out;
	int64_t took_us;
};
/* Runs this program with these arguments, NULL-terminated, and gathers what it prints. kill_us < 0: it is not killed.
 */
enum mr_rc child_run(const char *const *args, int64_t kill_us, struct child *ret, struct mr_error *err);
void child_done(struct child *c);
/* For tests of chance: the same seed, the same choices. */
uint64_t random_next(uint64_t *state);

/* workers.c */
void reader_name(unsigned i, char ret[8]);
void hand_name(unsigned i, char ret[8]);
/* The text of a message, as long as its tag says. */
void body_of(const char *tag, struct buf *out);
/* Works until boot_deadline_ms and writes its journal into the scratch folder. */
enum mr_rc work(const struct campaign *c, unsigned worker, int64_t boot_deadline_ms, struct mr_error *err);
/* Takes and finishes work without being killed, until there is none. */
enum mr_rc work_off(const struct campaign *c, struct mr_error *err);

/* verdict.c */
struct verdict {
	size_t commands, killed;
	size_t accepted, doubtful, refused; /* sends */
	size_t arrived;                     /* of the doubtful */
	size_t shown, done;
	size_t fan_outs;        /* cut off, and found at all or nobody */
	struct mr_names broken; /* a sentence each, at most BROKEN_MAX */
	size_t broken_n;
};
#define BROKEN_MAX 20
enum mr_rc verdict_reach(const struct campaign *c, struct mr_room *room, struct verdict *ret, struct mr_error *err);

#endif
