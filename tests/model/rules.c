/* SPDX-License-Identifier: MIT */
/*
 * rules.c - which states the rules of a flavour allow after a cut. What a sync has made durable must be there; the rest
 * is open, each change of names for itself or, where there is a log, up to some point of it.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

const char *const flavour_names[FLAVOURS] = { "log", "objects", "blocks", "ordered" };

enum { NOT = 0, BOTH = 1, GAIN = 2, LOSS = 3 }; /* what of a change of names is there; the halves only of moves */

/* ---- What is durable ---- */

static bool
is_sync_of(const struct event *e, int node)
{
	return e->kind == EVENT_SYNC && e->call != 'F' && (e->node == node || e->call == 'A');
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

bool
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
		if (fs->events[s].kind != EVENT_SYNC || fs->events[s].call == 'F')
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

/* Ends of the log that differ in what is there. */
static void
open_log(const struct fs *fs, struct point *p)
{
	p->stops[p->stops_n++] = log_forced(fs, p->after);
	for (int i = p->stops[0]; i < p->after; i++)
		if (fs->events[i].kind == EVENT_NAMES || fs->events[i].call == 'F')
			p->stops[p->stops_n++] = i + 1;
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
	static const char *const into[] = { "/claimed/", "/ready/", "/done/", "/dead/", "/scratch/" };
	const char *to = strstr(e->label, " -> ");

	for (size_t i = 0; to && getenv("MAILROOM_TEST_BOTH_NAMES") == NULL && i < sizeof(into) / sizeof(into[0]); i++)
		if (strstr(to, into[i]))
			return true;
	return false;
}

static void
add_open(struct point *p, int event, unsigned char least, unsigned char most, bool also_gain)
{
	p->open[p->open_n++] = (struct open){ event, also_gain ? 3 : 2, { least, most, GAIN } };
}

static void
open_move(const struct drawing *d, struct point *p, int event)
{
	const struct event *e = &d->fs->events[event];
	bool loss = is_synced_half(d->fs, e, &e->slots[0], event, p->after);
	bool gain = is_synced_half(d->fs, e, &e->slots[1], event, p->after);
	bool doubles = d->both_names && !is_known_to_double(e);

	if (!loss && !gain) /* one that nobody synced is taken as whole, or as still under both names */
		add_open(p, event, NOT, BOTH, doubles);
	else if ((loss && gain) || (gain && !doubles))
		p->forced[event] = BOTH;
	else
		add_open(p, event, gain ? GAIN : LOSS, BOTH, false);
}

static void
open_event(const struct drawing *d, struct point *p, int event)
{
	const struct event *e = &d->fs->events[event];

	if (p->flavour == FLAVOUR_BLOCKS && e->across)
		open_move(d, p, event);
	else if (p->flavour == FLAVOUR_BLOCKS ? is_synced_half(d->fs, e, &e->slots[0], event, p->after)
					      : is_synced_object(d->fs, event, p->after))
		p->forced[event] = BOTH;
	else
		add_open(p, event, NOT, BOTH, false);
}

/* ---- The point ---- */

void
point_new(const struct fs *fs, struct point *ret)
{
	size_t n = (size_t)fs->events_n + 1;

	*ret = (struct point){ .forced = model_alloc(NULL, n, 1),
		.open = model_alloc(NULL, n, sizeof(*ret->open)),
		.stops = model_alloc(NULL, n + 1, sizeof(*ret->stops)) };
}

void
point_done(struct point *p)
{
	free(p->forced);
	free(p->open);
	free(p->stops);
}

void
point_at(const struct drawing *d, enum flavour flavour, int after, struct point *ret)
{
	ret->flavour = flavour;
	ret->after = after;
	ret->open_n = ret->stops_n = 0;
	memset(ret->forced, NOT, (size_t)d->fs->events_n);
	if (flavour == FLAVOUR_LOG || flavour == FLAVOUR_ORDERED) {
		open_log(d->fs, ret);
		return;
	}
	for (int i = 0; i < after; i++)
		if (d->fs->events[i].kind == EVENT_NAMES)
			open_event(d, ret, i);
}

void
point_choose(const struct fs *fs, const struct point *p, const uint16_t *choice, struct state *s)
{
	s->flavour = p->flavour;
	s->after = p->after;
	s->upto = p->after;
	memset(s->applied, NOT, (size_t)fs->events_n);
	if (p->stops_n > 0) {
		s->upto = p->stops[choice[0]];
		for (int i = 0; i < s->upto; i++)
			s->applied[i] = fs->events[i].kind == EVENT_NAMES ? BOTH : NOT;
		return;
	}
	if (p->flavour == FLAVOUR_BLOCKS)
		memcpy(s->applied, p->forced, (size_t)p->after);
	for (int i = 0; p->flavour == FLAVOUR_OBJECTS && i < p->after; i++)
		if (p->forced[i])
			apply_with_earlier(fs, s, i);
	for (int i = 0; i < p->open_n; i++) {
		unsigned char what = p->open[i].may[choice[i]];

		if (p->flavour == FLAVOUR_BLOCKS)
			s->applied[p->open[i].event] = what;
		else if (what)
			apply_with_earlier(fs, s, p->open[i].event);
	}
}
