/* SPDX-License-Identifier: MIT */
/*
 * cut.h - what the worker and the checker of the power-cut campaign share: the text of a message follows from
 * its tag, so that every byte can be checked after the cut; and what was acknowledged is lines in a file outside of
 * the file system that is cut.
 *
 *	try KIND TAG        a command is about to be run
 *	ok KIND TAG ID      it exited with 0
 *	no KIND TAG         it was refused, as it should be
 *	trouble TEXT        it failed although nothing was cut yet
 */
#ifndef TESTS_POWERCUT_CUT_H
#define TESTS_POWERCUT_CUT_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAGS_A_WORKER 1000u /* tag = worker * this + number */
#define BODY_MAX 24000

enum worker {
	W_SEND,
	W_FAN,
	W_KEY,
	W_WORK,
	W_DRAIN,
	W_STATE,
	W_NAMES,
	W_QUEUE,
	W_CHANNEL,
	W_TEAM, /* rooms of other systems, and what is carried to other rooms: elsewhere.h */
	W_CHIPSET,
	W_HANDOFF,
	W_WORKSPACE,
	W_CARRY,
	W_BATCH,
	W_INDEX,
	W_REFUSED,
	WORKERS,
};

/* Whom a worker writes to; the readers are workers themselves, each in a mailbox of its own. */
static const char *const recipients_of[WORKERS][6] = {
	[W_SEND] = { "bob" },
	[W_FAN] = { "f1", "f2", "f3", "f4", "f5" },
	[W_KEY] = { "keyed" },
	[W_WORK] = { "worker" },
	[W_DRAIN] = { "drainer" },
	[W_STATE] = { "marker" },
	[W_CHANNEL] = { "c1", "c2" },
	[W_BATCH] = { "batch1", "batch2" }, /* the one or the other */
	[W_REFUSED] = { "nobody" },
};

static inline const char *
batch_recipient(unsigned tag)
{
	return recipients_of[W_BATCH][tag % 5 == 0];
}

/* Mostly short, now and then over several pages. */
static inline size_t
body_of(unsigned tag, char ret[BODY_MAX])
{
	unsigned lines = tag % 7 == 3 ? 300 : 1 + tag * 13 % 30;
	size_t n = (size_t)snprintf(ret, BODY_MAX, "tag %06u\n", tag);

	for (unsigned i = 0; i < lines; i++)
		n += (size_t)snprintf(
		    ret + n, BODY_MAX - n, "%06u line %u: all of this must be here or nothing\n", tag, i);
	n += (size_t)snprintf(ret + n, BODY_MAX - n, "end %06u\n", tag);
	return n;
}

#endif
