/* SPDX-License-Identifier: MIT */
/* Any bytes as one field in every form of the fence; and as names, subjects and texts of mail: the blocks for an
 * agent's context have just those messages in them. */
#include "fence.h"

#include "base/id.h"

#define ITEMS 12

/* Pieces between bytes 0xFF: a name, a subject, a text, a name ... A NUL ends a name or subject, as in C. */
static struct mr_str
next_piece(struct mr_str *rest)
{
	const char *end = rest->len > 0 ? memchr(rest->ptr, 0xff, rest->len) : NULL;
	struct mr_str piece = { rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len };

	rest->ptr += piece.len + (end != NULL);
	rest->len -= piece.len + (end != NULL);
	return piece;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str rest = input_of(data, size);
	struct inject_item items[ITEMS] = { 0 };
	struct arena *own = NULL;
	size_t n = 0;

	do {
		struct inject_item *item = &items[n];

		item->from = arena_dup(&own, next_piece(&rest));
		item->subject = arena_dup(&own, next_piece(&rest));
		item->body = next_piece(&rest);
		item->color = item->subject;
		item->priority = item->body.len > 0 ? (enum mr_priority)(item->body.ptr[0] & 3) - 1 : MR_NORMAL;
		item->handoff = item->body.len > 1 && item->body.ptr[1] == 'H';
		assert(item->from && item->subject);
		id_from_name((int64_t)n, input_of(data, size), item->id);
	} while (++n < ITEMS && rest.len > 0);
	fence_check_both(items, n);
	fence_check_field(input_of(data, size), 0);
	fence_check_field(input_of(data, size), size > 0 ? 1 + data[0] % 32 : 7);
	arena_free(own);
	return 0;
}
