/* SPDX-License-Identifier: MIT */
/* inspect.h - what inspect.c (what the post office keeps) and inspect_tree.c (every file and folder) share. */
#ifndef ROOMS_MAILDIR_INSPECT_H
#define ROOMS_MAILDIR_INSPECT_H

#include "rooms/maildir/maildir.h"

struct inspection {
	struct mr_room *room;
	struct maildir *md;
	bool fix;
	mr_finding_fn *fn;
	void *ctx;
	struct buf path; /* of what is being looked at, relative to the room */
	size_t modes, modes_fixed, stray, stray_fixed, links, empty, future;
	char first_mode[NAME_LEN], first_stray[NAME_LEN], first_future[NAME_LEN];
};

void inspect_say(struct inspection *in, enum mr_severity severity, const char *check, bool fixed, const char *advice,
    const char *fmt, ...) MR_PRINTF(6, 7);
void inspect_mode(struct inspection *in, int dir_fd, const char *name, const struct stat *st);
enum mr_rc inspect_walk(struct inspection *in, int parent_fd, const char *name, unsigned depth, struct mr_error *err);
void inspect_say_tree(struct inspection *in);

#endif
