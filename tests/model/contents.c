/* SPDX-License-Identifier: MIT */
/*
 * contents.c - what of a file's bytes is on the disk after a cut. The disk writes sectors, in any order, and the file
 * system decides when the length follows: so what was synced, all, the beginning up to each sector and to some odd
 * places, the whole length with zeros from there on, one sector of zeros, old bytes in front of new ones and behind.
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define SECTOR ((size_t)512)
#define PARTS_MAX 1200 /* a file of 70 KB has some 560 */

enum part_kind { PART_BEGINNING, PART_ZERO_TAIL, PART_ZERO_SECTOR, PART_NEW_THEN_OLD, PART_OLD_THEN_NEW };
struct part {
	enum part_kind kind;
	size_t at;
};
struct parts {
	struct bytes synced, now;
	struct part list[PARTS_MAX];
	unsigned n;
};

/* What is on the disk for certain, and what the program had written. */
static void
known_contents(const struct fs *fs, const struct state *s, int node, struct bytes *ret_synced, struct bytes *ret_now)
{
	*ret_synced = *ret_now = fs->nodes[node].first;
	for (int i = 0; i < s->after; i++) {
		const struct event *e = &fs->events[i];

		if (e->node != node && e->call != 'A')
			continue;
		if (e->kind == EVENT_BYTES)
			*ret_now = e->now;
		/* Written out, and the log has come past it: with the journal in order the length is there too. */
		else if (e->kind == EVENT_SYNC && (e->call != 'F' || (s->flavour == FLAVOUR_ORDERED && i < s->upto)))
			*ret_synced = *ret_now;
	}
}

static void
add_part(struct parts *p, enum part_kind kind, size_t at)
{
	if (p->n < PARTS_MAX)
		p->list[p->n++] = (struct part){ kind, at };
}

/* Sector borders within (from, until), and odd places: right behind the start, in the middle, right before the end. */
static unsigned
places(size_t from, size_t until, size_t ret[PARTS_MAX])
{
	const size_t odd[] = { from + 1, from + (until - from) / 2, until - 1 };
	unsigned n = 0;

	if (until <= from)
		return 0;
	for (size_t at = (from / SECTOR + 1) * SECTOR; at < until && n < PARTS_MAX / 4 - 3; at += SECTOR)
		ret[n++] = at;
	unsigned borders = n;
	for (unsigned i = 0; i < 3; i++) {
		bool known = odd[i] <= from || odd[i] >= until || (odd[i] % SECTOR == 0 && borders > 0);
		for (unsigned j = borders; j < n; j++)
			known |= ret[j] == odd[i];
		if (!known)
			ret[n++] = odd[i];
	}
	return n;
}

static void
list_parts(struct parts *p)
{
	size_t at[PARTS_MAX], keep = p->synced.len < p->now.len ? p->synced.len : p->now.len;
	unsigned n = places(keep, p->now.len, at);

	p->n = 0;
	for (unsigned i = 0; i < n; i++)
		add_part(p, PART_BEGINNING, at[i]);
	if (p->now.len > keep)
		add_part(p, PART_ZERO_TAIL, keep);
	for (unsigned i = 0; i < n; i++)
		add_part(p, PART_ZERO_TAIL, at[i]);
	for (size_t sector = keep / SECTOR; sector * SECTOR + SECTOR < p->now.len; sector++)
		add_part(p, PART_ZERO_SECTOR, sector * SECTOR);
	if (keep == 0 || memcmp(p->synced.ptr, p->now.ptr, keep) == 0)
		return;
	n = places(0, p->now.len, at);
	for (unsigned i = 0; i < n; i++) {
		add_part(p, PART_NEW_THEN_OLD, at[i]);
		add_part(p, PART_OLD_THEN_NEW, at[i]);
	}
}

unsigned
contents_choices(const struct fs *fs, const struct state *s, int node)
{
	struct parts p;

	known_contents(fs, s, node, &p.synced, &p.now);
	if (p.synced.ptr == p.now.ptr)
		return 1;
	list_parts(&p);
	return 2 + p.n;
}

/* `whole` has now.len bytes: those of before as far as they go, zeros behind. */
static void
fill_part(const struct parts *p, const struct part *part, struct bytes *whole)
{
	size_t keep = p->synced.len < p->now.len ? p->synced.len : p->now.len;

	memset(whole->ptr, 0, p->now.len);
	switch (part->kind) {
	case PART_BEGINNING:
		whole->len = part->at;
		memcpy(whole->ptr, p->now.ptr, part->at);
		break;
	case PART_ZERO_TAIL:
		memcpy(whole->ptr, p->now.ptr, part->at);
		break;
	case PART_ZERO_SECTOR:
		memcpy(whole->ptr, p->now.ptr, p->now.len);
		memset(whole->ptr + part->at, 0, SECTOR);
		break;
	case PART_NEW_THEN_OLD:
		memcpy(whole->ptr, p->synced.ptr, keep);
		memcpy(whole->ptr, p->now.ptr, part->at);
		break;
	case PART_OLD_THEN_NEW:
		memcpy(whole->ptr, p->now.ptr, p->now.len);
		memcpy(whole->ptr, p->synced.ptr, part->at < keep ? part->at : keep);
		break;
	}
}

struct bytes
contents_of(const struct fs *fs, const struct state *s, int node, bool *ret_own)
{
	struct parts p;
	unsigned which = s->contents[node];

	*ret_own = false;
	known_contents(fs, s, node, &p.synced, &p.now);
	if (p.synced.ptr == p.now.ptr || which == 1)
		return p.now;
	if (which == 0)
		return p.synced;
	list_parts(&p);
	struct bytes whole = { model_alloc(NULL, p.now.len, 1), p.now.len };
	fill_part(&p, &p.list[which - 2], &whole);
	*ret_own = true;
	return whole;
}

void
contents_name(const struct fs *fs, const struct state *s, int node, char ret[64])
{
	static const char *const kinds[] = { "the beginning up to", "zeros from", "a sector of zeros at",
		"old bytes from", "old bytes up to" };
	struct parts p;
	unsigned which = s->contents[node];

	known_contents(fs, s, node, &p.synced, &p.now);
	if (p.synced.ptr == p.now.ptr || which < 2) {
		(void)snprintf(ret, 64, "%s", p.synced.ptr == p.now.ptr ? "on the disk" : which ? "all" : "as synced");
		return;
	}
	list_parts(&p);
	(void)snprintf(ret, 64, "%s %zu", kinds[p.list[which - 2].kind], p.list[which - 2].at);
}
