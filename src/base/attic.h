/* SPDX-License-Identifier: MIT */
/*
 * attic.h - where doctor --fix puts what it takes out of a room. Nothing is thrown away: a person looks,
 * and empties it.
 *
 *	attic/2026-03-05/agents%2Fbob%2Ftmp%2Fmr-1.tmp     the path it had, "/" as "%2F"
 *	attic/log                                          a line each: when, what kind of finding, from, to, why
 *
 * In a native room it is a folder of the room; a room of another program gets nothing of ours, its attic is in
 * mailroom's state folder.
 */
#ifndef BASE_ATTIC_H
#define BASE_ATTIC_H

#include "base/buf.h"
#include <sys/types.h>

#define ATTIC "attic"

struct attic {            /* finish with attic_done */
	int home_fd;      /* the folder that has attic/ in it, or AT_FDCWD; borrowed */
	const char *home; /* below home_fd; NULL: there is no attic, and nothing can be taken */
	mode_t dir_mode, file_mode;
	int fd; /* attic/<day>, -1 until it is needed */
	char day[11];
};
#define ATTIC_NONE ((struct attic){ .fd = -1 })

/* Moves dir_fd/name, a file or a folder, there; it stays where it is when anything fails. `path` is what a person calls
 * it, `code` and `why` are for the log. ret_place: "attic/2026-03-05/...". */
enum mr_rc attic_take(struct attic *a, int dir_fd, const char *name, const char *path, const char *code,
    const char *why, struct buf *ret_place, struct mr_error *err);
void attic_done(struct attic *a);

#endif
