/* SPDX-License-Identifier: MIT */
/* known.c - see known.h. A sorted array: mailboxes are listed in the order of ids anyway. */
#include "room/known.h"
#include <stdlib.h>

void
known_done(struct known *k)
{
	free(k->mailbox);
	free(k->v);
	arena_free(k->own);
	*k = (struct known){ 0 };
}

void
known_begin(struct known *k, const char *mailbox)
{
	known_done(k);
	k->mailbox = strdup(mailbox);
}

static bool
grow(struct known *k)
{
	if (k->n < k->cap)
		return true;
	size_t cap = k->cap > 0 ? 2 * k->cap : 64;
	struct known_file *grown = realloc(k->v, cap * sizeof *grown);

	if (!grown)
		return false;
	k->v = grown;
	k->cap = cap;
	return true;
}

void
known_add(struct known *k, const char *id, enum mr_folder folder, const char *name)
{
	const char *copy = k->mailbox && grow(k) ? arena_dup(&k->own, str_of(name)) : NULL;

	if (!copy)
		return;
	struct known_file *file = &k->v[k->n++];

	*file = (struct known_file){ .folder = folder, .name = copy };
	memcpy(file->id, id, sizeof file->id);
}

const struct known_file *
known_find(const struct known *k, const char *mailbox, const char *id)
{
	size_t low = 0, high = k->n;

	if (!k->mailbox || strcmp(k->mailbox, mailbox) != 0)
		return NULL;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(k->v[middle].id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < k->n && strcmp(k->v[low].id, id) == 0 ? &k->v[low] : NULL;
}
