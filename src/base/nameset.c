/* SPDX-License-Identifier: MIT */
/* nameset.c - has this name been seen? A fan-out may have tens of thousands, so it is a hash table; most sends
 * have one, so the first few are in an array. */
#include "base/buf.h"

uint64_t
hash_bytes(struct mr_str s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	/* FNV-1a: names come from the room's own people, not from an enemy. */
	for (size_t i = 0; i < s.len; i++)
		h = (h ^ (unsigned char)s.ptr[i]) * UINT64_C(1099511628211);
	return h;
}

/* The slot of the name, or the free one where it belongs. There is always a free one. */
static const char **
slot_of(const struct nameset *s, const char *name)
{
	size_t at = (size_t)hash_bytes(str_of(name)) & (s->cap - 1);

	while (s->v[at] && strcmp(s->v[at], name) != 0)
		at = (at + 1) & (s->cap - 1);
	return &s->v[at];
}

static bool
grow(struct nameset *s)
{
	struct nameset bigger = { .n = s->n, .cap = s->cap ? 2 * s->cap : 64 };

	bigger.v = calloc(bigger.cap, sizeof(*bigger.v));
	if (!bigger.v)
		return false;
	for (size_t i = 0; i < s->cap; i++)
		if (s->v[i])
			*slot_of(&bigger, s->v[i]) = s->v[i];
	for (size_t i = 0; s->cap == 0 && i < s->n; i++)
		*slot_of(&bigger, s->few[i]) = s->few[i];
	free(s->v);
	*s = bigger;
	return true;
}

bool
nameset_has(const struct nameset *s, const char *name)
{
	if (s->cap > 0)
		return *slot_of(s, name) != NULL;
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->few[i], name) == 0)
			return true;
	return false;
}

bool
nameset_add_once(struct nameset *s, struct mr_names *list, const char *name)
{
	if (nameset_has(s, name))
		return true;
	if (!names_add(list, str_of(name)))
		return false;
	name = list->v[list->n - 1];
	if (s->cap == 0 && s->n < NAMESET_FEW) {
		s->few[s->n++] = name;
		return true;
	}
	if (2 * (s->n + 1) > s->cap && !grow(s))
		return false;
	*slot_of(s, name) = name;
	s->n++;
	return true;
}

void
nameset_done(struct nameset *s)
{
	free(s->v);
	*s = (struct nameset){ 0 };
}
