/* SPDX-License-Identifier: MIT */
/* set.c - the states that were found, each once. */
#include "model.h"

#include <stdlib.h>

/* False: it was known. */
static bool
put_hash(uint64_t *set, size_t size, uint64_t hash)
{
	size_t at = hash & (size - 1);

	while (set[at] != 0 && set[at] != hash)
		at = (at + 1) & (size - 1);
	if (set[at] == hash)
		return false;
	set[at] = hash;
	return true;
}

bool
states_add_hash(struct states *s, uint64_t hash)
{
	if (2 * (size_t)s->n >= s->set_size) {
		size_t size = 256;
		while (size <= 4 * (size_t)s->n)
			size *= 2;
		uint64_t *set = calloc(size, sizeof(*set));
		if (!set)
			model_die("no memory");
		for (int i = 0; i < s->n; i++)
			(void)put_hash(set, size, s->list[i].hash);
		free(s->set);
		s->set = set;
		s->set_size = size;
	}
	return put_hash(s->set, s->set_size, hash);
}

void
state_forget(struct state *s)
{
	free(s->applied);
	free(s->contents);
}

void
states_done(struct states *s)
{
	for (int i = 0; i < s->n; i++)
		state_forget(&s->list[i]);
	free(s->list);
	free(s->set);
	*s = (struct states){ 0 };
}
