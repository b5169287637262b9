/* SPDX-License-Identifier: MIT */
/* growth.h - rooms with a history of any length. growth.c has the rows, growth_rooms.c makes the rooms and has the bare
 * side of what is done in them, waiters.c has processes that wait. */
#ifndef GROWTH_H
#define GROWTH_H

#include "rival.h"

enum kind {
	UNREAD,   /* all of them in bob's new/ */
	DRAINED,  /* the same, put there again each time */
	READ,     /* read by one command; then 10 came */
	ARCHIVED, /* over the last 12 months, 5 of them one thread, 10 with the word "needle"; 10 are unread */
	SENT,     /* by bob, over the last 12 months */
	AGENTS,   /* rig000/a00000, ... ten in a rig */
	TEAM,     /* bob's inbox of a team of Claude Code, all unread */
	KINDS,
};

struct town {
	enum kind kind;
	long n;
	char *folder;           /* .mailroom is in it, and what else belongs to it is beside it */
	char id[MR_ID_LEN + 1]; /* the newest that is archived, with the others of its thread; or the newest unread */
	char *last;             /* the folder of bob's that was filled last: of the newest month */
	struct town *next;
};

struct town *town_of(struct bench *b, enum kind kind, long n);      /* made when it is asked for first */
void town_index(struct bench *b, struct town *t, const char *peer); /* a peer's own index or table of it */

/* µs, with the start of an empty program: what a command cannot do without. */
double bare_names(
    struct bench *b, struct town *t); /* one pass over the names of new/, cur/ and the newest month, 10 files read */
double bare_moves(struct bench *b, struct town *t); /* each file read, renamed twice, three syncs for 1,000 of them */
double bare_links(struct bench *b, struct town *t); /* one file, linked into each folder, each folder synced */
double bare_json(struct bench *b, struct town *t);  /* the file read, the ends of its entries found */

void refill(struct bench *b, struct town *t);      /* before a drain */
void new_copy(struct bench *b, struct town *t);    /* before an export or import: an empty room beside it */
void empty_group(struct bench *b, struct town *t); /* fleet, of all agents */

unsigned rows_waiters(struct bench *b, long most); /* waiters.c; how many limits were missed */

#endif
