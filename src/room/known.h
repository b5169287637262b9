/* SPDX-License-Identifier: MIT */
/*
 * known.h - which file has which id, as the last look at a whole mailbox found it; for kinds without an index, where
 * finding one message means reading the names of all. It only says where to look first: whoever asks looks whether the
 * message is there, and searches when it is not.
 */
#ifndef ROOM_KNOWN_H
#define ROOM_KNOWN_H

#include "room/room.h"

struct known_file {
	char id[MR_ID_LEN + 1];
	enum mr_folder folder; /* where it was */
	const char *name;
};
struct known { /* zeroed is empty */
	char *mailbox;
	struct known_file *v;
	size_t n, cap;
	struct arena *own;
};
/* Forgets what was known, and begins with another look. */
void known_begin(struct known *k, const char *mailbox);
/* In the order of ids. Out of memory: it is not known. */
void known_add(struct known *k, const char *id, enum mr_folder folder, const char *name);
/* The first with that id; the others are behind it, up to k->v + k->n. NULL: not known. */
const struct known_file *known_find(const struct known *k, const char *mailbox, const char *id);
void known_done(struct known *k);

#endif
