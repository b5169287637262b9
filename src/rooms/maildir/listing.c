/* SPDX-License-Identifier: MIT */
/* listing.c - the entries of a listing: united by id while it grows, sorted when it is whole. */
#include "base/error.h"
#include "rooms/maildir/listing.h"
#include <stdlib.h>

#define SLOTS_FIRST 64

/* The end of an id is random (or a hash), the beginning is time. */
static size_t
hash_id(const char *id)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (size_t i = 10; i < MR_ID_LEN; i++)
		h = (h ^ (unsigned char)id[i]) * UINT64_C(1099511628211);
	return (size_t)(h ^ (h >> 32));
}

static uint32_t *
find_slot(const struct listing_walk *w, const char *id)
{
	size_t at = hash_id(id) & (w->slots_n - 1);

	while (w->slots[at] != 0 && memcmp(w->list->v[w->slots[at] - 1].id, id, MR_ID_LEN) != 0)
		at = (at + 1) & (w->slots_n - 1);
	return &w->slots[at];
}

/* At most half full, so that a search ends soon. */
static bool
grow_slots(struct listing_walk *w)
{
	size_t used = w->list->n - w->first;

	if (w->slots_n > 0 && used * 2 < w->slots_n)
		return true;
	size_t wanted = w->slots_n == 0 ? SLOTS_FIRST : w->slots_n * 2;
	uint32_t *slots = calloc(wanted, sizeof(*slots));
	if (slots == NULL || w->list->n >= UINT32_MAX) {
		free(slots);
		return false;
	}
	free(w->slots);
	w->slots = slots;
	w->slots_n = wanted;
	for (size_t i = w->first; i < w->list->n; i++)
		*find_slot(w, w->list->v[i].id) = (uint32_t)(i + 1);
	return true;
}

static bool
grow_entries(struct listing *l)
{
	if (l->n < l->cap)
		return true;
	size_t cap = l->cap == 0 ? 32 : l->cap * 2;
	struct listed *grown = realloc(l->v, cap * sizeof(*grown));
	if (grown == NULL)
		return false;
	l->v = grown;
	l->cap = cap;
	return true;
}

enum unite
listing_unite(struct listing_walk *w, const struct listed *found)
{
	struct listing *l = w->list;
	bool skip = w->unread_only && (found->flags & MR_SEEN) != 0;

	if (skip && l->n == w->first)
		return UNITE_KNOWN;
	if (!grow_slots(w))
		return UNITE_NOMEM;
	uint32_t *slot = find_slot(w, found->id);
	struct listed *known = *slot != 0 ? &l->v[*slot - 1] : NULL;
	if (known == NULL && skip) /* never seen unread: nothing to correct */
		return UNITE_KNOWN;
	/* Later passes and later folders know better: new before cur, cur before held. */
	const char *name = known != NULL && strcmp(known->name, found->name) == 0
			       ? known->name
			       : arena_dup(&l->own, str_of(found->name));
	if (name == NULL)
		return UNITE_NOMEM;
	if (known == NULL) {
		if (!grow_entries(l))
			return UNITE_NOMEM;
		*slot = (uint32_t)(l->n + 1);
		known = &l->v[l->n++];
		*known = *found;
		known->name = name;
		return UNITE_NEW;
	}
	*known = *found;
	known->name = name;
	return UNITE_KNOWN;
}

void
listing_walk_done(struct listing_walk *w)
{
	free(w->slots);
	w->slots = NULL;
}

void
listing_done(struct listing *l)
{
	if (l == NULL)
		return;
	free(l->v);
	arena_free(l->own);
	*l = (struct listing){ 0 };
}

/* ---- Order ---- */

static int
station(const struct listed *e)
{
	return e->folder == MR_SENT || e->folder == MR_DEAD;
}

static int
by_oldest(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = memcmp(x->id, y->id, MR_ID_LEN);

	return order != 0 ? order : station(x) - station(y);
}

static int
by_newest(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = memcmp(y->id, x->id, MR_ID_LEN);

	return order != 0 ? order : station(x) - station(y);
}

void
listing_sort(struct listing *l, bool newest_first)
{
	if (l->n > 1)
		qsort(l->v, l->n, sizeof(*l->v), newest_first ? by_newest : by_oldest);
}

enum mr_rc
listing_unique(struct listing *l, struct mr_error *err)
{
	mr_auto(listing_walk_done) struct listing_walk w = { .list = l };
	size_t n = l->n;

	l->n = 0;
	for (size_t i = 0; i < n; i++) {
		if (!grow_slots(&w))
			return mr_nomem(err);
		uint32_t *slot = find_slot(&w, l->v[i].id);
		if (*slot == 0)
			*slot = (uint32_t)(l->n + 1);
		/* Found later means moved there while we read: the archive wins over the inbox. */
		struct listed entry = l->v[i];
		l->v[*slot - 1] = entry;
		if (*slot == l->n + 1)
			l->n++;
	}
	return MR_OK;
}
