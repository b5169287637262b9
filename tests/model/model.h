/* SPDX-License-Identifier: MIT */
/*
 * model.h - what a power cut can leave, in theory. An operation runs once and its calls are recorded
 * (base/sys_record.h). The model replays them on an abstract file system and draws the states that the rules of one
 * of three flavours allow; each is built as real folders, and a check that knows only the promises looks at it.
 *
 * The rules are told in docs/DURABILITY.md, "The model".
 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- The abstract file system ---- */

struct bytes {
	char *ptr;
	size_t len;
};
struct node { /* a file or a folder; never freed before the end */
	uint64_t inode;
	bool is_dir;
	mode_t mode;
	int64_t mtime_ns;
	struct bytes first; /* contents before the operation */
};
struct slot { /* one name: in folder `dir`, it is `node` (-1: nothing) */
	int dir;
	const char *name;
	int node;
};

enum event_kind { EVENT_NAMES, EVENT_BYTES, EVENT_SYNC, EVENT_SAID };
struct event { /* one recorded call, understood */
	enum event_kind kind;
	char call; /* enum record_kind; SYNC: 'A' is of everything */
	struct slot slots[2];
	int slots_n;       /* NAMES: 2 for a rename */
	int node;          /* what it is about */
	struct bytes now;  /* BYTES: contents afterwards; SAID: the text */
	bool across;       /* NAMES: between two folders */
	const char *label; /* for people */
};
struct fs {
	struct node *nodes;
	int nodes_n, root;
	struct slot *names; /* before the operation */
	int names_n;
	struct event *events;
	int events_n;
	char top[256];
	char **texts; /* names and labels */
	int texts_n;
};

void fs_take_snapshot(struct fs *fs, const char *top);
/* The calls recorded in that file, about what is below `top`. */
void fs_read_record(struct fs *fs, const char *path);
void fs_done(struct fs *fs);

/* ---- States ---- */

enum flavour {
	FLAVOUR_LOG,     /* changes of names reach the disk in their order */
	FLAVOUR_OBJECTS, /* ... in the order of each file and of each name, else in any */
	FLAVOUR_BLOCKS,  /* ... in any order; a sync of a folder is about that folder alone */
	FLAVOURS,
};
extern const char *const flavour_names[FLAVOURS];

enum contents { WITH_SYNCED, WITH_ALL, WITH_HALF, WITH_ZEROS, WITH_ZERO_TAIL, CONTENTS };

struct state {
	enum flavour flavour;
	int after;               /* events that had happened */
	unsigned char *applied;  /* an event each: 1 both sides, 2 only slots[1] (what a rename gained) */
	unsigned char *contents; /* a node each: enum contents */
	uint64_t hash;           /* of what it looks like, and of what had been said */
};
struct states {
	struct state *list;
	int n, cap;
	int drawn; /* with those that were the same as another */
};
/* Draws until `want` different ones are found, or no new ones come. both_names: where there is no journal, also moves
 * of which only the new name was written. */
void states_draw(const struct fs *fs, unsigned want, uint64_t seed, bool both_names, struct states *ret);
void states_done(struct states *s);
void state_print(FILE *out, const struct fs *fs, const struct state *s);

/* ---- Back to real folders ---- */

struct tree { /* a state, resolved: names of which every folder is reachable */
	const struct slot **names;
	int n;
};
void tree_of(const struct fs *fs, const struct state *s, struct tree *ret);
void tree_done(struct tree *t);
struct bytes contents_of(const struct fs *fs, const struct state *s, int node, bool *ret_own);
/* Empties fs->top and fills it. */
void state_build(const struct fs *fs, const struct state *s);

_Noreturn void model_die(const char *what);
void *model_alloc(void *old, size_t n, size_t size);

#endif
