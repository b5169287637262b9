/* SPDX-License-Identifier: MIT */
/*
 * inject_memory.c - what was announced to a life: the ids that are still unread, one a line, and when they were told
 * last (unix seconds). Between the two is a plus for those that are told again until they are read, a minus for those
 * that were only counted, an exclamation mark for what cannot be read, a tilde for the hand-off that this life wrote
 * itself, an equals sign for the others; an older version wrote the time only behind a plus. A new life knows nothing
 * and is told everything. Where it is kept: memory.h.
 */
#include "base/error.h"
#include "base/id.h"
#include "office/tell/inject.h"
#include "office/tell/memory.h"
#include <stdlib.h>

#define ANNOUNCED "announced"

/* ---- The list ---- */

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct announced_id *)a)->id, ((const struct announced_id *)b)->id);
}

const struct announced_id *
announced_find(const struct announced *a, const char *id)
{
	struct announced_id key = { 0 };

	if (a->n == 0)
		return NULL;
	(void)snprintf(key.id, sizeof(key.id), "%s", id);
	return bsearch(&key, a->v, a->n, sizeof(key), by_id);
}

bool
announced_listed(const struct announced *a, const char *id)
{
	const struct announced_id *told = announced_find(a, id);

	return told && !told->counted;
}

struct announced_id *
announced_add(struct announced *a, const char *id, bool again)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 32;
		struct announced_id *v = reallocarray(a->v, cap, sizeof(*v));

		if (!v)
			return NULL;
		a->v = v;
		a->cap = cap;
	}
	a->v[a->n] = (struct announced_id){ .again = again };
	(void)snprintf(a->v[a->n].id, MR_ID_LEN + 1, "%s", id);
	return &a->v[a->n++];
}

void
announced_done(struct announced *a)
{
	free(a->v);
	*a = (struct announced){ 0 };
}

static void
parse(struct mr_str text, struct announced *ret)
{
	while (text.len > 0) {
		const char *lf = memchr(text.ptr, '\n', text.len);
		size_t len = lf ? (size_t)(lf - text.ptr) : text.len, step = lf ? len + 1 : len;
		struct mr_str line = { text.ptr, len };
		char id[MR_ID_LEN + 1] = "";

		if (len >= MR_ID_LEN && id_valid((struct mr_str){ line.ptr, MR_ID_LEN })) {
			memcpy(id, line.ptr, MR_ID_LEN);
			struct announced_id *told =
			    announced_add(ret, id, len > MR_ID_LEN && line.ptr[MR_ID_LEN] == '+');

			if (!told)
				break;
			uint64_t at_s = 0;

			if (len > MR_ID_LEN &&
			    str_to_u64((struct mr_str){ line.ptr + MR_ID_LEN + 1, len - MR_ID_LEN - 1 }, &at_s) &&
			    at_s <= INT64_MAX)
				told->at_s = (int64_t)at_s;
			told->counted = len > MR_ID_LEN && line.ptr[MR_ID_LEN] == '-';
			told->unreadable = len > MR_ID_LEN && line.ptr[MR_ID_LEN] == '!';
			told->own = len > MR_ID_LEN && line.ptr[MR_ID_LEN] == '~';
		}
		text.ptr += step;
		text.len -= step;
	}
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_id);
}

/* ---- The memory ---- */

void
announced_load(struct mr_room *room, const struct mr_self *self, struct announced *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };

	ret->fresh = memory_read(room, self, ANNOUNCED, &text, &ignored) != MR_OK;
	if (!ret->fresh)
		parse(buf_str(&text), ret);
}

static void
add_line(struct buf *out, const struct announced_id *told)
{
	const char *kind = told->again ? "+" : told->counted ? "-" : told->unreadable ? "!" : told->own ? "~" : "=";

	buf_addf(out, "%s%s%lld\n", told->id, kind, (long long)told->at_s);
}

enum mr_rc
announced_save(struct mr_room *room, const struct mr_self *self, struct announced *all, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (all->n > 1)
		qsort(all->v, all->n, sizeof(*all->v), by_id);
	for (size_t i = 0; i < all->n; i++)
		if (i == 0 || strcmp(all->v[i].id, all->v[i - 1].id) != 0)
			add_line(&text, &all->v[i]);
	return buf_ok(&text) ? memory_write(room, self, ANNOUNCED, buf_str(&text), all->fresh, err) : mr_nomem(err);
}

void
announced_own(struct mr_room *room, const struct mr_self *self, const char *id)
{
	struct announced all = { 0 };
	struct mr_error ignored = { 0 };
	struct announced_id *own;

	announced_load(room, self, &all);
	own = announced_add(&all, id, false);
	if (own) {
		own->own = true;
		(void)announced_save(room, self, &all, &ignored);
	}
	announced_done(&all);
}

void
announced_forget(struct mr_room *room, const struct mr_self *self)
{
	memory_forget(room, self, ANNOUNCED);
}
