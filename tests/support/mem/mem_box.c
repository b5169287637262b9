/* SPDX-License-Identifier: MIT */
/* mem_box.c - mailboxes and the copies of messages in them, kept in order of ids. */
#include "base/error.h"
#include "support/mem/mem.h"

struct mem_box *
mem_box_any(struct mem *mem, const char *name)
{
	for (size_t i = 0; i < mem->boxes_n; i++)
		if (strcmp(mem->boxes[i]->name, name) == 0)
			return mem->boxes[i];
	return NULL;
}

enum mr_rc
mem_box_find(struct mem *mem, const char *name, struct mem_box **ret, struct mr_error *err)
{
	struct mem_box *box = mem_box_any(mem, name);

	if (!box || !box->registered)
		return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room", name);
	*ret = box;
	return MR_OK;
}

struct mem_box *
mem_box_new(struct mem *mem, const char *name)
{
	struct mem_box **grown = realloc(mem->boxes, (mem->boxes_n + 1) * sizeof(struct mem_box *));

	if (!grown)
		return NULL;
	mem->boxes = grown;
	struct mem_box *box = calloc(1, sizeof *box);

	if (!box)
		return NULL;
	(void)snprintf(box->name, sizeof box->name, "%s", name);
	mem->boxes[mem->boxes_n++] = box;
	return box;
}

void
mem_box_done(struct mem_box *box)
{
	for (size_t i = 0; i < box->copies_n; i++)
		mem_letter_done(box->copies[i].letter);
	free(box->copies);
	free(box->lives);
	arena_free(box->own);
}

void
mem_letter_done(struct mem_letter *letter)
{
	if (!letter || --letter->refs > 0)
		return;
	buf_done(&letter->text);
	free(letter);
}

bool
mem_box_reserve(struct mem_box *box, size_t more)
{
	if (box->copies_n + more <= box->copies_cap)
		return true;
	size_t cap = box->copies_cap * 2 + more;
	struct mem_copy *grown = realloc(box->copies, cap * sizeof *grown);

	if (!grown)
		return false;
	box->copies = grown;
	box->copies_cap = cap;
	return true;
}

/* Index of the first copy whose id is not smaller. */
static size_t
first_at(const struct mem_box *box, const char *id)
{
	size_t low = 0, high = box->copies_n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(box->copies[mid].id, id) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

void
mem_box_put(struct mem_box *box, const struct mem_copy *copy)
{
	size_t at = first_at(box, copy->id);

	memmove(&box->copies[at + 1], &box->copies[at], (box->copies_n - at) * sizeof *copy);
	box->copies[at] = *copy;
	box->copies_n++;
}

struct mem_copy *
mem_box_get(struct mem_box *box, const char *id, unsigned folders)
{
	for (size_t i = first_at(box, id); i < box->copies_n; i++) {
		struct mem_copy *copy = &box->copies[i];

		if (strcmp(copy->id, id) != 0)
			break;
		if (copy->folder & folders)
			return copy;
	}
	return NULL;
}

void
mem_box_drop(struct mem_box *box, struct mem_copy *copy)
{
	size_t at = (size_t)(copy - box->copies);

	mem_letter_done(copy->letter);
	box->copies_n--;
	memmove(copy, copy + 1, (box->copies_n - at) * sizeof *copy);
}

enum mr_rc
mem_box_move(
    struct mem_box *from, struct mem_copy *copy, struct mem_box *to, enum mr_folder folder, struct mr_error *err)
{
	if (!mem_box_reserve(to, 1))
		return mr_nomem(err);
	struct mem_copy moved = *copy;

	moved.folder = folder;
	moved.letter->refs++; /* the drop gives one up */
	mem_box_drop(from, copy);
	mem_box_put(to, &moved);
	return MR_OK;
}
