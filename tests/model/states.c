/* SPDX-License-Identifier: MIT */
/*
 * states.c - which states the rules of a flavour allow after a cut, and drawing some of them. What a sync has made
 * durable must be there; of the rest, each draw takes other things.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

const char *const flavour_names[FLAVOURS] = { "log", "objects", "blocks" };

enum { NOT = 0, BOTH = 1, GAIN = 2, LOSS = 3 }; /* what of a change of names is there; the halves only of moves */

struct drawing {
	const struct fs *fs;
	uint64_t dice;
	unsigned turn;
	bool both_names;
};

static unsigned
roll(struct drawing *d, unsigned sides)
{
	d->dice = d->dice * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(d->dice >> 33) % sides;
}

/* The first turns are the plain cases, the others are left to the dice. */
enum { TURN_LEAST, TURN_ALL, TURN_NAMES_ONLY, TURN_BYTES_ONLY, TURN_HALVES, TURN_ZEROS, TURN_RANDOM };

/* ---- What is durable ---- */

static bool
is_sync_of(const struct event *e, int node)
{
	return e->kind == EVENT_SYNC && (e->node == node || e->call == 'A');
}

static bool
touches(const struct event *e, int node)
{
	if (e->kind == EVENT_BYTES)
		return e->node == node;
	if (e->kind != EVENT_NAMES)
		return false;
	return e->node == node || e->slots[0].dir == node || (e->slots_n == 2 && e->slots[1].dir == node);
}

static bool
synced_between(const struct fs *fs, int node, int from, int until)
{
	for (int i = from; i < until; i++)
		if (is_sync_of(&fs->events[i], node))
			return true;
	return false;
}

static bool
has_unsynced_bytes(const struct fs *fs, int node, int until)
{
	for (int i = until - 1; i >= 0; i--) {
		if (is_sync_of(&fs->events[i], node))
			return false;
		if (fs->events[i].node == node && fs->events[i].kind == EVENT_BYTES)
			return true;
	}
	return false;
}

/* ---- Log: everything up to some point, which is not before the last thing that was forced ---- */

static int
log_forced(const struct fs *fs, int after)
{
	int forced = 0;

	for (int s = 0; s < after; s++) {
		if (fs->events[s].kind != EVENT_SYNC)
			continue;
		int upto = fs->events[s].call == 'A' || has_unsynced_bytes(fs, fs->events[s].node, s) ? s : 0;
		for (int i = s - 1; i >= upto && i >= forced; i--)
			if (touches(&fs->events[i], fs->events[s].node)) {
				upto = i + 1;
				break;
			}
		if (upto > forced)
			forced = upto;
	}
	return forced;
}

static void
draw_log(struct drawing *d, struct state *s)
{
	int forced = log_forced(d->fs, s->after), upto;

	switch (d->turn) {
	case TURN_LEAST:
	case TURN_BYTES_ONLY:
		upto = forced;
		break;
	case TURN_ALL:
	case TURN_NAMES_ONLY:
	case TURN_HALVES:
	case TURN_ZEROS:
		upto = s->after;
		break;
	default:
		upto = forced + (int)roll(d, (unsigned)(s->after - forced + 1));
		break;
	}
	for (int i = 0; i < upto; i++)
		s->applied[i] = d->fs->events[i].kind == EVENT_NAMES ? BOTH : NOT;
}

/* ---- Objects: what concerns one file, or one name, keeps its order ---- */

static bool
same_slot(const struct event *a, const struct event *b)
{
	for (int i = 0; i < a->slots_n; i++)
		for (int j = 0; j < b->slots_n; j++)
			if (a->slots[i].dir == b->slots[j].dir && strcmp(a->slots[i].name, b->slots[j].name) == 0)
				return true;
	return false;
}

/* A folder goes only when it is empty. */
static bool
was_inside(const struct event *before, const struct event *e)
{
	return e->call == 'U' && e->node >= 0 &&
	       (before->slots[0].dir == e->node || (before->slots_n == 2 && before->slots[1].dir == e->node));
}

static void
apply_with_earlier(const struct fs *fs, struct state *s, int event)
{
	const struct event *e = &fs->events[event];

	if (s->applied[event])
		return;
	s->applied[event] = BOTH;
	for (int i = event - 1; i >= 0; i--) {
		const struct event *before = &fs->events[i];
		if (before->kind == EVENT_NAMES &&
		    ((before->node >= 0 && before->node == e->node) || same_slot(before, e) || was_inside(before, e)))
			apply_with_earlier(fs, s, i);
	}
}

static bool
is_synced_object(const struct fs *fs, int event, int until)
{
	const struct event *e = &fs->events[event];

	return synced_between(fs, e->slots[0].dir, event, until) ||
	       (e->slots_n == 2 && synced_between(fs, e->slots[1].dir, event, until));
}

/* How likely is each change that nothing forces? By turns seldom, evenly, mostly. */
static bool
wanted(struct drawing *d)
{
	switch (d->turn) {
	case TURN_LEAST:
	case TURN_BYTES_ONLY:
		return false;
	case TURN_ALL:
	case TURN_NAMES_ONLY:
	case TURN_HALVES:
	case TURN_ZEROS:
		return true;
	default:
		return roll(d, 10) < 1 + 4 * (d->turn % 3);
	}
}

static void
draw_objects(struct drawing *d, struct state *s)
{
	for (int i = 0; i < s->after; i++)
		if (d->fs->events[i].kind == EVENT_NAMES && (is_synced_object(d->fs, i, s->after) || wanted(d)))
			apply_with_earlier(d->fs, s, i);
}

/* ---- Blocks: each folder for itself, each inode for itself ---- */

/* Is the change in that folder on the disk for certain? A new name counts only with the inode it leads to. */
static bool
is_synced_half(const struct fs *fs, const struct event *e, const struct slot *slot, int event, int until)
{
	bool is_new = e->call == 'C' || e->call == 'M' || e->call == 'L';

	return synced_between(fs, slot->dir, event, until) && (!is_new || synced_between(fs, e->node, event, until));
}

/* Moves after which nobody notices that the old name came back: docs/DURABILITY.md, "Without a journal". */
static bool
is_known_to_double(const struct event *e)
{
	static const char *const into[] = { "/claimed/", "/done/", "/dead/", "/scratch/" };
	const char *to = strstr(e->label, " -> ");

	for (size_t i = 0; to && getenv("MAILROOM_TEST_BOTH_NAMES") == NULL && i < sizeof(into) / sizeof(into[0]); i++)
		if (strstr(to, into[i]))
			return true;
	return false;
}

static unsigned char
draw_move(struct drawing *d, const struct event *e, int event, int until)
{
	bool loss = is_synced_half(d->fs, e, &e->slots[0], event, until);
	bool gain = is_synced_half(d->fs, e, &e->slots[1], event, until);
	bool doubles = d->both_names && !is_known_to_double(e);

	if (!loss && !gain) /* one that nobody synced is taken as whole, or as still under both names */
		return !wanted(d) ? NOT : doubles && d->turn >= TURN_RANDOM && roll(d, 3) == 0 ? GAIN : BOTH;
	if ((loss && gain) || (gain && !doubles))
		return BOTH;
	bool other = wanted(d);
	return other ? BOTH : gain ? GAIN : LOSS;
}

static void
draw_blocks(struct drawing *d, struct state *s)
{
	for (int i = 0; i < s->after; i++) {
		const struct event *e = &d->fs->events[i];

		if (e->kind != EVENT_NAMES)
			continue;
		if (e->across)
			s->applied[i] = draw_move(d, e, i, s->after);
		else
			s->applied[i] = is_synced_half(d->fs, e, &e->slots[0], i, s->after) || wanted(d) ? BOTH : NOT;
	}
}

/* ---- Contents ---- */

static void
draw_contents(struct drawing *d, struct state *s)
{
	static const enum contents plain[TURN_RANDOM] = { WITH_SYNCED, WITH_ALL, WITH_SYNCED, WITH_ALL, WITH_HALF,
		WITH_ZEROS };
	enum contents all = roll(d, CONTENTS);
	bool mixed = d->turn > TURN_RANDOM && roll(d, 2) == 0;

	for (int i = 0; i < d->fs->nodes_n; i++)
		s->contents[i] = (unsigned char)(d->turn < TURN_RANDOM ? plain[d->turn]
						 : mixed               ? roll(d, CONTENTS)
								       : all);
}

/* ---- What it looks like ---- */

static uint64_t
mix(uint64_t h, const void *bytes, size_t n)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}

static uint64_t
hash_of(const struct fs *fs, const struct state *s)
{
	uint64_t sum = 0, said = 0;
	struct tree tree;

	tree_of(fs, s, &tree);
	for (int i = 0; i < tree.n; i++) {
		const struct slot *slot = tree.names[i];
		uint64_t h = mix(14695981039346656037u, slot->name, strlen(slot->name));
		int ends[2] = { slot->dir, slot->node };
		bool own = false;

		h = mix(h, ends, sizeof(ends));
		if (!fs->nodes[slot->node].is_dir) {
			struct bytes b = contents_of(fs, s, slot->node, &own);
			h = mix(h, b.ptr, b.len);
			h = mix(h, &b.len, sizeof(b.len));
			if (own)
				free(b.ptr);
		}
		sum += h;
	}
	tree_done(&tree);
	for (int i = 0; i < s->after; i++)
		said += fs->events[i].kind == EVENT_SAID ? fs->events[i].now.len : 0;
	return mix(sum, &said, sizeof(said));
}

/* ---- Drawing ---- */

static bool
is_known(const struct states *states, uint64_t hash)
{
	for (int i = 0; i < states->n; i++)
		if (states->list[i].hash == hash)
			return true;
	return false;
}

static bool
draw_one(struct drawing *d, enum flavour flavour, int after, struct states *ret)
{
	struct state s = { .flavour = flavour, .after = after };

	s.applied = calloc((size_t)d->fs->events_n + 1, 1);
	s.contents = calloc((size_t)d->fs->nodes_n + 1, 1);
	if (!s.applied || !s.contents)
		model_die("no memory");
	if (flavour == FLAVOUR_LOG)
		draw_log(d, &s);
	else if (flavour == FLAVOUR_OBJECTS)
		draw_objects(d, &s);
	else
		draw_blocks(d, &s);
	draw_contents(d, &s);
	s.hash = hash_of(d->fs, &s);
	ret->drawn++;
	if (is_known(ret, s.hash)) {
		free(s.applied);
		free(s.contents);
		return false;
	}
	if (ret->n == ret->cap) {
		ret->cap = ret->cap ? 2 * ret->cap : 64;
		ret->list = model_alloc(ret->list, (size_t)ret->cap, sizeof(*ret->list));
	}
	ret->list[ret->n++] = s;
	return true;
}

#define STEP 7919u /* a prime, larger than any number of calls */

void
states_draw(const struct fs *fs, unsigned want, uint64_t seed, bool both_names, struct states *ret)
{
	struct drawing d = { .fs = fs, .dice = seed, .both_names = both_names };
	unsigned idle = 0, points = (unsigned)fs->events_n + 1;

	*ret = (struct states){ 0 };
	for (; ret->n < (int)want && idle < 12; d.turn++) {
		int before = ret->n;

		/* All over the operation: where few are wanted, they shall not all be from its beginning. */
		for (unsigned i = 0; i < points; i++)
			for (enum flavour f = 0; f < FLAVOURS && ret->n < (int)want; f++)
				(void)draw_one(&d, f, (int)((d.turn + i * STEP) % points), ret);
		idle = ret->n > before ? 0 : idle + 1;
	}
}

void
states_done(struct states *s)
{
	for (int i = 0; i < s->n; i++) {
		free(s->list[i].applied);
		free(s->list[i].contents);
	}
	free(s->list);
	*s = (struct states){ 0 };
}

void
state_print(FILE *out, const struct fs *fs, const struct state *s)
{
	static const char *const what[] = { "lost", "there", "only the new name", "only the loss" };
	static const char *const bytes[] = { "synced", "all", "half", "zeros", "zero tail" };

	(void)fprintf(
	    out, "# flavour %s, cut after call %d of %d:\n", flavour_names[s->flavour], s->after, fs->events_n);
	for (int i = 0; i < s->after; i++) {
		const struct event *e = &fs->events[i];

		if (e->kind == EVENT_NAMES)
			(void)fprintf(out, "#   %3d %c %s: %s\n", i, e->call, e->label, what[s->applied[i]]);
		else if (e->kind == EVENT_BYTES)
			(void)fprintf(out, "#   %3d %c file %d, now %zu bytes: %s\n", i, e->call, e->node, e->now.len,
			    has_unsynced_bytes(fs, e->node, s->after) ? bytes[s->contents[e->node]] : "on the disk");
		else if (e->kind == EVENT_SYNC && e->call == 'A')
			(void)fprintf(out, "#   %3d A everything\n", i);
		else if (e->kind == EVENT_SYNC)
			(void)fprintf(
			    out, "#   %3d S %s %d\n", i, fs->nodes[e->node].is_dir ? "folder" : "file", e->node);
		else
			(void)fprintf(out, "#   %3d said %.40s\n", i, e->now.ptr);
	}
}
