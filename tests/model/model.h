/* SPDX-License-Identifier: MIT */
/*
 * model.h - what a power cut can leave, in theory. An operation runs once and its calls are recorded
 * (support/sys_record.h). The model replays them on an abstract file system and lists or draws the states that the
 * rules of a flavour allow; each is built as real folders, and a check that knows only the promises looks at it.
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
	int id; /* the same for the same name in the same folder */
};

enum event_kind { EVENT_NAMES, EVENT_BYTES, EVENT_SYNC, EVENT_SAID };
struct event { /* one recorded call, understood */
	enum event_kind kind;
	char call; /* enum record_call; SYNC: 'A' is of everything, 'F' of bytes that no journal has heard of */
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
	int slots_n; /* different names; of folder d they are in_dir[dirs[d]] up to in_dir[dirs[d + 1]] */
	int *in_dir, *dirs;
};

void fs_take_snapshot(struct fs *fs, const char *top);
void fs_done(struct fs *fs);
int fs_add_node(struct fs *fs, const struct node *node);
int fs_find_node(const struct fs *fs, uint64_t inode);
const char *fs_keep_text(struct fs *fs, const char *text, size_t n); /* lives as long as the file system */
struct bytes fs_read_whole(int dir_fd, const char *name, size_t size);

/* ---- record.c ---- */
/* The calls recorded in that file, about what is below `top`. */
void fs_read_record(struct fs *fs, const char *path);

/* ---- States ---- */

enum flavour {
	FLAVOUR_LOG,     /* changes of names reach the disk in their order */
	FLAVOUR_OBJECTS, /* ... in the order of each file and of each name, else in any */
	FLAVOUR_BLOCKS,  /* ... in any order; a sync of a folder is about that folder alone */
	FLAVOUR_ORDERED, /* as log, and what was written out before a change of names is there when that change is */
	FLAVOURS,
};
#define FLAVOURS_PROMISED ((1u << FLAVOUR_LOG) | (1u << FLAVOUR_OBJECTS) | (1u << FLAVOUR_BLOCKS))
extern const char *const flavour_names[FLAVOURS];

struct state {
	enum flavour flavour;
	int after;              /* events that had happened */
	int upto;               /* log, ordered: events that the log had taken */
	unsigned char *applied; /* an event each: 1 both sides, 2 only slots[1] (what a rename gained) */
	uint16_t *contents;     /* a node each: which of contents_choices */
	uint64_t hash;          /* of what it looks like, and of what had been said */
};
struct states {
	struct state *list;
	int n, cap;
	int drawn;     /* with those that were the same as another */
	int allowed;   /* how many different ones the rules allow; -1: too many to count */
	uint64_t *set; /* of their hashes, 0 is free */
	size_t set_size;
};
/* How the states are chosen. */
struct drawing {
	const struct fs *fs;
	unsigned flavours; /* bits */
	unsigned want;     /* different ones, no more */
	bool all;          /* look whether there are fewer: then take all */
	bool both_names;   /* where there is no journal, also moves of which only the new name was written */
	uint64_t dice;
	unsigned turn;
};
void states_draw(struct drawing *d, struct states *ret);
void states_done(struct states *s);
/* ---- set.c ---- */
bool states_add_hash(struct states *s, uint64_t hash); /* false: it is known */
void state_forget(struct state *s);
void state_print(FILE *out, const struct fs *fs, const struct state *s);

/* ---- rules.c: what is open at one moment, under one set of rules ---- */

struct open {
	int event;
	unsigned char n, may[3]; /* the first is the least, the second the most */
};
struct point {
	enum flavour flavour;
	int after;
	unsigned char *forced; /* an event each: what is there for certain */
	struct open *open;
	int open_n;
	int *stops; /* log, ordered: the ends it may have, instead of all that */
	int stops_n;
};
void point_new(const struct fs *fs, struct point *ret);
void point_done(struct point *p);
void point_at(const struct drawing *d, enum flavour flavour, int after, struct point *ret);
/* The names that follow from a choice: of a stop, or of each that is open. */
void point_choose(const struct fs *fs, const struct point *p, const uint16_t *choice, struct state *s);
bool has_unsynced_bytes(const struct fs *fs, int node, int until);

/* ---- contents.c: what of a file's bytes is there ---- */

/* 1: they are on the disk. Else 0 is what was synced, 1 all, and then parts of many kinds. */
unsigned contents_choices(const struct fs *fs, const struct state *s, int node);
struct bytes contents_of(const struct fs *fs, const struct state *s, int node, bool *ret_own);
void contents_name(const struct fs *fs, const struct state *s, int node, char ret[64]);

/* ---- Back to real folders ---- */

struct tree { /* a state, resolved: names of which every folder is reachable */
	const struct slot **names;
	int n;
};
void tree_of(const struct fs *fs, const struct state *s, struct tree *ret);
void tree_done(struct tree *t);
/* Empties fs->top and fills it. */
void state_build(const struct fs *fs, const struct state *s);

_Noreturn void model_die(const char *what);
void *model_alloc(void *old, size_t n, size_t size);

#endif
