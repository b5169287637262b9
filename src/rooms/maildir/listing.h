/* SPDX-License-Identifier: MIT */
/* listing.h - how a listing grows while list.c reads: entries united by id. Only list.c and listing.c use it. */
#ifndef ROOMS_MAILDIR_LISTING_H
#define ROOMS_MAILDIR_LISTING_H

#include "rooms/maildir/maildir.h"

struct listing_walk { /* { .list, .first } to begin with; finish with listing_walk_done */
	struct listing *list;
	size_t first;    /* entries before it belong to other groups */
	uint32_t *slots; /* hash of id -> index + 1 */
	size_t slots_n;  /* a power of two */
	int keyword;     /* enum keyword of the group's folder, -1: not read yet */
	bool unread_only;
	const char *id_suffix;
	int64_t began_ms;
};
enum unite { UNITE_NEW, UNITE_KNOWN, UNITE_NOMEM };
/* Adds what was found, or brings the entry with its id up to date. found->name is copied. */
enum unite listing_unite(struct listing_walk *w, const struct listed *found);
void listing_walk_done(struct listing_walk *w);
/* Keeps of each id the entry that was added last. */
enum mr_rc listing_unique(struct listing *l, struct mr_error *err);

#endif
