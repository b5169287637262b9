/* SPDX-License-Identifier: MIT */
/*
 * full.h - is this the small command or mailroom-full? Both are the same program; mailroom-full has more libraries
 * linked in, and the folders of src that need them. Their functions are weak symbols: in the small command and in
 * libmailroom their address is NULL, and the callers go on without them.
 */
#ifndef BASE_FULL_H
#define BASE_FULL_H

#include <stdbool.h>
#include <stddef.h>

#define FULL_ONLY __attribute__((weak))

extern const char full_libraries[] FULL_ONLY; /* "SQLite 3.40.1" */

/* A step was left out that mailroom-full can do. The command then hands over to it, if it can. */
extern bool full_missed;

static inline bool
is_full(void)
{
	return full_libraries != NULL;
}

#endif
