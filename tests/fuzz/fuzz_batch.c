/* SPDX-License-Identifier: MIT */
/* Any bytes as a line of send --batch: a draft that is whole, or a refusal that says why. */
#include "fuzz.h"

#include "cli/batch_line.c"

static void
check_list(const char *const *list)
{
	for (; list && *list; list++)
		assert(strlen(*list) < SIZE_MAX);
}

static void
check_pairs(const struct mr_header *pairs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert(pairs[i].name && pairs[i].value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena *own = NULL;
	struct mr_draft draft;
	struct mr_error err = { 0 };

	if (batch_line(input_of(data, size), &own, &draft, &err) == MR_OK) {
		assert(draft.to && draft.to[0]);
		assert(draft.body_len == 0 || draft.body);
		assert(draft.fields_n == 0 || draft.type);
		check_list(draft.to);
		check_list(draft.cc);
		check_pairs(draft.fields, draft.fields_n);
		check_pairs(draft.headers, draft.headers_n);
	} else {
		assert(err.code != MR_OK && err.message[0]);
	}
	arena_free(own);
	return 0;
}
