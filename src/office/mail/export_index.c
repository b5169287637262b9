/* SPDX-License-Identifier: MIT */
/*
 * export_index.c - which message answers which. In one room an answer names what it answers by our id, in another by
 * the id that its format gave it, and after the crossing by neither: this list knows all three of every copy.
 */
#include "base/error.h"
#include "office/mail/export.h"

#define ANSWERS_MAX 1000 /* back from answer to answer; mail that answers itself ends here */

struct gathering {
	struct index *x;
	struct mr_room *room;
	size_t agent;
};

static bool
grow(struct index *x)
{
	size_t cap = x->cap ? 2 * x->cap : 256;
	struct known *grown = realloc(x->v, cap * sizeof(*grown));

	if (!grown)
		return false;
	x->v = grown;
	x->cap = cap;
	return true;
}

static bool
gather(void *ctx, const struct mr_message *msg)
{
	struct gathering *g = ctx;
	struct index *x = g->x;

	if (x->n == x->cap && !grow(x)) {
		x->failed = true;
		return false;
	}
	struct known *k = &x->v[x->n];

	*k = (struct known){ .agent = g->agent,
		.spoken = lookup_spoken_id(g->room, msg, &x->own),
		.reply_to = arena_dup(&x->own, str_of(msg->reply_to)),
		.thread = arena_dup(&x->own, str_of(msg->thread)) };
	memcpy(k->id, msg->id, sizeof(k->id));
	if (!k->spoken || !k->reply_to || !k->thread) {
		x->failed = true;
		return false;
	}
	x->n++;
	return true;
}

enum mr_rc
index_agent(
    struct index *x, struct mr_room *room, const char *agent, size_t number, unsigned folders, struct mr_error *err)
{
	struct gathering g = { .x = x, .room = room, .agent = number };
	struct scan_request want = { .folders = folders, .depth = SCAN_HEADERS };
	enum mr_rc rc = room->driver->scan(room, agent, &want, gather, &g, err);

	if (x->failed)
		return mr_nomem(err);
	if (rc != MR_NOTFOUND) /* registered, but nobody made the mailbox: no mail */
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

static int
by_id(const void *a, const void *b)
{
	const struct known *x = a, *y = b;
	int order = memcmp(x->id, y->id, MR_ID_LEN);

	return order ? order : (x->agent > y->agent) - (x->agent < y->agent);
}

static int
by_spoken(const void *a, const void *b)
{
	struct known *const *x = a, *const *y = b;
	int order = strcmp((*x)->spoken, (*y)->spoken);

	return order ? order : ((*x)->agent > (*y)->agent) - ((*x)->agent < (*y)->agent);
}

enum mr_rc
index_sort(struct index *x, struct mr_error *err)
{
	if (x->n == 0)
		return MR_OK;
	qsort(x->v, x->n, sizeof(*x->v), by_id);
	x->spoken = calloc(x->n, sizeof(struct known *));
	if (!x->spoken)
		return mr_nomem(err);
	for (size_t i = 0; i < x->n; i++)
		x->spoken[i] = &x->v[i];
	qsort(x->spoken, x->n, sizeof(struct known *), by_spoken);
	return MR_OK;
}

/* The first entry not before `name` in the order of `spoken`, or of ids. */
static size_t
lower_bound(const struct index *x, const char *name, bool spoken)
{
	size_t low = 0, high = x->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(spoken ? x->spoken[middle]->spoken : x->v[middle].id, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct known *
index_find(struct index *x, const char *name, size_t agent)
{
	struct known *any = NULL;

	if (name[0] == '\0')
		return NULL;
	for (size_t i = lower_bound(x, name, false); i < x->n && strcmp(x->v[i].id, name) == 0; i++) {
		any = &x->v[i];
		if (any->agent == agent)
			return any;
	}
	for (size_t i = lower_bound(x, name, true); !any && i < x->n && strcmp(x->spoken[i]->spoken, name) == 0; i++)
		if (x->spoken[i]->agent == agent)
			return x->spoken[i];
	size_t first = lower_bound(x, name, true);

	if (!any && first < x->n && strcmp(x->spoken[first]->spoken, name) == 0)
		any = x->spoken[first];
	return any;
}

const char *
index_root(struct index *x, struct known *k)
{
	for (int i = 0; i < ANSWERS_MAX && k->reply_to[0]; i++) {
		struct known *before = index_find(x, k->reply_to, k->agent);

		if (!before || before == k)
			break;
		k = before;
	}
	return k->id;
}

void
index_done(struct index *x)
{
	free(x->v);
	free(x->spoken);
	arena_free(x->own);
	*x = (struct index){ 0 };
}
