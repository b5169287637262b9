/* SPDX-License-Identifier: MIT */
/*
 * states.c - listing the states that the rules allow (rules.c, contents.c), or drawing some where there are too many.
 * States that look the same, with the same things said, count once.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define VISITS_MAX 200000u /* choices tried to list all states */
#define LISTED_MAX 60000   /* different ones: more are not listed */
#define IDLE_MAX 12        /* rounds of drawing without a new one */

/* The first turns are the plain cases, the others are left to the dice. */
enum { TURN_LEAST, TURN_ALL, TURN_NAMES_ONLY, TURN_BYTES_ONLY, TURN_HALVES, TURN_ZEROS, TURN_RANDOM };

struct work {
	struct drawing *d;
	struct states *ret;
	struct point point;
	struct state now; /* the one that is being looked at */
	int *written;     /* nodes whose bytes the operation changes */
	int written_n;
	unsigned visits;
};

static unsigned
roll(struct drawing *d, unsigned sides)
{
	d->dice = d->dice * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(d->dice >> 33) % sides;
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
hash_contents(const struct work *w, int node)
{
	bool own = false;
	struct bytes b = contents_of(w->d->fs, &w->now, node, &own);
	uint64_t h = mix(mix(88172645463325252u, &node, sizeof(node)), b.ptr, b.len);

	h = mix(h, &b.len, sizeof(b.len));
	if (own)
		free(b.ptr);
	return h;
}

/* Bytes that the operation does not change are told by the number of their file. */
static uint64_t
hash_of(const struct work *w, const struct tree *tree, const bool *visible)
{
	uint64_t sum = 1, said = 0;

	for (int i = 0; i < tree->n; i++) {
		int ends[2] = { tree->names[i]->id, tree->names[i]->node };
		sum += mix(14695981039346656037u, ends, sizeof(ends));
	}
	for (int i = 0; i < w->written_n; i++)
		if (visible[i])
			sum += hash_contents(w, w->written[i]);
	for (int i = 0; i < w->now.after; i++)
		said += w->d->fs->events[i].kind == EVENT_SAID ? w->d->fs->events[i].now.len : 0;
	uint64_t h = mix(sum, &said, sizeof(said));
	return h ? h : 1;
}

/* ---- Keeping ---- */

static void
keep_state(struct work *w)
{
	struct states *ret = w->ret;
	size_t events = (size_t)w->d->fs->events_n + 1, nodes = (size_t)w->d->fs->nodes_n + 1;

	if (ret->n == ret->cap) {
		ret->cap = ret->cap ? 2 * ret->cap : 64;
		ret->list = model_alloc(ret->list, (size_t)ret->cap, sizeof(*ret->list));
	}
	struct state *s = &ret->list[ret->n++];
	*s = w->now;
	s->applied = model_alloc(NULL, events, 1);
	s->contents = model_alloc(NULL, nodes, sizeof(*s->contents));
	memcpy(s->applied, w->now.applied, events);
	memcpy(s->contents, w->now.contents, nodes * sizeof(*s->contents));
}

static void
visit(struct work *w, const struct tree *tree, const bool *visible)
{
	w->visits++;
	w->ret->drawn++;
	w->now.hash = hash_of(w, tree, visible);
	if (states_add_hash(w->ret, w->now.hash))
		keep_state(w);
}

/* ---- All of them ---- */

/* The next choice, as one counts; false: it was the last. */
static bool
count_on(unsigned *digits, const unsigned *sizes, int n)
{
	for (int i = 0; i < n; i++) {
		if (++digits[i] < sizes[i])
			return true;
		digits[i] = 0;
	}
	return false;
}

/* Which files whose bytes may be there or not can be seen at all? */
static void
see_written(const struct work *w, const struct tree *tree, bool *ret_visible)
{
	for (int i = 0; i < w->written_n; i++) {
		ret_visible[i] = false;
		for (int j = 0; j < tree->n && !ret_visible[i]; j++)
			ret_visible[i] = tree->names[j]->node == w->written[i];
	}
}

/* All contents for the names that were chosen. False: too many. */
static bool
list_contents(struct work *w)
{
	unsigned digits[64] = { 0 }, sizes[64];
	bool visible[64], fits = w->written_n <= 64;
	struct tree tree;

	if (!fits)
		return false;
	tree_of(w->d->fs, &w->now, &tree);
	see_written(w, &tree, visible);
	for (int i = 0; i < w->written_n; i++)
		sizes[i] = visible[i] ? contents_choices(w->d->fs, &w->now, w->written[i]) : 1;
	do {
		for (int i = 0; i < w->written_n; i++)
			w->now.contents[w->written[i]] = (uint16_t)digits[i];
		visit(w, &tree, visible);
		fits = w->visits < VISITS_MAX && w->ret->n < LISTED_MAX;
	} while (fits && count_on(digits, sizes, w->written_n));
	tree_done(&tree);
	return fits;
}

static bool
list_point(struct work *w)
{
	const struct point *p = &w->point;
	int n = p->stops_n > 0 ? 1 : p->open_n;
	unsigned digits[64] = { 0 }, sizes[64];
	uint16_t choice[64];

	if (n > 30) /* 2 to that */
		return false;
	for (int i = 0; i < n; i++)
		sizes[i] = p->stops_n > 0 ? (unsigned)p->stops_n : p->open[i].n;
	do {
		for (int i = 0; i < n; i++)
			choice[i] = (uint16_t)digits[i];
		point_choose(w->d->fs, p, choice, &w->now);
		if (!list_contents(w))
			return false;
	} while (count_on(digits, sizes, n));
	return true;
}

/* How many choices of names there are at that point, as far as it matters. */
static unsigned
choices_at(const struct point *p)
{
	unsigned n = p->stops_n > 0 ? (unsigned)p->stops_n : 1;

	for (int i = 0; i < p->open_n && n < VISITS_MAX; i++)
		n *= p->open[i].n;
	return n;
}

static bool
can_list(struct work *w)
{
	unsigned n = 0;

	for (int after = 0; after <= w->d->fs->events_n && n < VISITS_MAX; after++)
		for (enum flavour f = 0; f < FLAVOURS; f++)
			if (w->d->flavours & (1u << f)) {
				point_at(w->d, f, after, &w->point);
				n += choices_at(&w->point);
			}
	return n < VISITS_MAX;
}

static bool
list_all(struct work *w)
{
	if (!can_list(w))
		return false;
	for (int after = 0; after <= w->d->fs->events_n; after++)
		for (enum flavour f = 0; f < FLAVOURS; f++) {
			if ((w->d->flavours & (1u << f)) == 0)
				continue;
			point_at(w->d, f, after, &w->point);
			if (!list_point(w))
				return false;
		}
	return true;
}

/* ---- Some of them ---- */

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
draw_names(struct work *w)
{
	struct point *p = &w->point;
	uint16_t *choice = model_alloc(NULL, (size_t)p->open_n + 1, sizeof(*choice));
	unsigned last = (unsigned)p->stops_n - 1;

	if (p->stops_n > 0)
		choice[0] = (uint16_t)(w->d->turn >= TURN_RANDOM ? roll(w->d, last + 1) : wanted(w->d) ? last : 0);
	for (int i = 0; i < p->open_n; i++) {
		choice[i] = wanted(w->d);
		if (choice[i] && p->open[i].n == 3 && w->d->turn >= TURN_RANDOM && roll(w->d, 3) == 0)
			choice[i] = 2;
	}
	point_choose(w->d->fs, p, choice, &w->now);
	free(choice);
}

/* `alike`: one way for all files. */
static uint16_t
draw_contents(struct work *w, unsigned choices, unsigned alike)
{
	unsigned parts = choices > 2 ? choices - 2 : 1, first = choices > 2 ? 2 : 0;

	switch (w->d->turn) {
	case TURN_LEAST:
	case TURN_NAMES_ONLY:
		return 0;
	case TURN_ALL:
	case TURN_BYTES_ONLY:
		return 1 % (uint16_t)choices;
	case TURN_HALVES:
		return (uint16_t)(first + parts / 4);
	case TURN_ZEROS:
		return (uint16_t)(first + parts / 2);
	default: /* one in three is as synced, one is all */
		alike = alike ? alike : 1 + roll(w->d, 3);
		return (uint16_t)(alike == 1 ? 0 : alike == 2 ? 1 % choices : first + roll(w->d, parts));
	}
}

static void
draw_one(struct work *w, enum flavour flavour, int after)
{
	bool *visible = model_alloc(NULL, (size_t)w->written_n + 1, sizeof(*visible));
	unsigned alike = w->d->turn > TURN_RANDOM && roll(w->d, 2) == 0 ? 0 : 1 + roll(w->d, 3);
	struct tree tree;

	point_at(w->d, flavour, after, &w->point);
	draw_names(w);
	tree_of(w->d->fs, &w->now, &tree);
	see_written(w, &tree, visible);
	for (int i = 0; i < w->written_n; i++) {
		unsigned choices = visible[i] ? contents_choices(w->d->fs, &w->now, w->written[i]) : 1;
		w->now.contents[w->written[i]] = choices > 1 ? draw_contents(w, choices, alike) : 0;
	}
	visit(w, &tree, visible);
	tree_done(&tree);
	free(visible);
}

#define STEP 7919u /* a prime, larger than any number of calls */

static void
draw_some(struct work *w, unsigned turns)
{
	struct drawing *d = w->d;
	unsigned idle = 0, points = (unsigned)d->fs->events_n + 1;

	for (; w->ret->n < (int)d->want && idle < IDLE_MAX && d->turn < turns; d->turn++) {
		int before = w->ret->n;

		/* All over the operation: where few are wanted, they shall not all be from its beginning. */
		for (unsigned i = 0; i < points; i++)
			for (enum flavour f = 0; f < FLAVOURS && w->ret->n < (int)d->want; f++)
				if (d->flavours & (1u << f))
					draw_one(w, f, (int)((d->turn + i * STEP) % points));
		idle = w->ret->n > before ? 0 : idle + 1;
	}
}

/* ---- The whole ---- */

static void
begin(struct work *w)
{
	const struct fs *fs = w->d->fs;

	w->now.applied = calloc((size_t)fs->events_n + 1, 1);
	w->now.contents = calloc((size_t)fs->nodes_n + 1, sizeof(*w->now.contents));
	w->written = model_alloc(NULL, (size_t)fs->events_n + 1, sizeof(*w->written));
	if (!w->now.applied || !w->now.contents)
		model_die("no memory");
	for (int i = 0; i < fs->events_n; i++) {
		bool known = fs->events[i].kind != EVENT_BYTES;
		for (int j = 0; j < w->written_n; j++)
			known |= w->written[j] == fs->events[i].node;
		if (!known)
			w->written[w->written_n++] = fs->events[i].node;
	}
	point_new(fs, &w->point);
}

/* The first `keep` stay; of the others chance decides. */
static void
thin_out(struct work *w, int keep)
{
	struct states *s = w->ret;

	for (int i = keep; i < (int)w->d->want; i++) {
		int other = i + (int)roll(w->d, (unsigned)(s->n - i));
		struct state here = s->list[i];
		s->list[i] = s->list[other];
		s->list[other] = here;
	}
	while (s->n > (int)w->d->want)
		state_forget(&s->list[--s->n]);
}

void
states_draw(struct drawing *d, struct states *ret)
{
	struct work w = { .d = d, .ret = ret };

	*ret = (struct states){ .allowed = -1 };
	begin(&w);
	draw_some(&w, TURN_RANDOM);
	int plain = ret->n;
	if (d->all && list_all(&w)) {
		ret->allowed = ret->n;
		if (ret->n > (int)d->want)
			thin_out(&w, plain);
	} else { /* what was listed is from the beginning of the operation: draw from everywhere */
		while (ret->n > plain)
			state_forget(&ret->list[--ret->n]);
		ret->set_size = 0;
		draw_some(&w, ~0u);
	}
	point_done(&w.point);
	state_forget(&w.now);
	free(w.written);
}
