/* SPDX-License-Identifier: MIT */
/* mem_place.c - where the copies of a message are, and purge. */
#include "base/error.h"
#include "support/mem/mem.h"
#include <inttypes.h>

static const char *
state_word(const struct mem_copy *copy)
{
	switch (copy->folder) {
	case MR_INBOX:
		return copy->flags & MR_SEEN ? "read" : "unread";
	case MR_HELD:
		return "held";
	case MR_ARCHIVE:
		return "archived";
	case MR_SENT:
		return "sent";
	case MR_DEAD:
		return "dead";
	}
	return "nowhere";
}

static void
tell(const struct mem_box *box, const char *id, place_fn *fn, void *ctx)
{
	for (size_t i = 0; i < box->copies_n; i++) {
		const struct mem_copy *copy = &box->copies[i];
		char evidence[MR_ADDRESS_MAX + 120];

		if (strcmp(copy->id, id) != 0)
			continue;
		if (copy->folder == MR_HELD)
			(void)snprintf(evidence, sizeof evidence, "held by life %u of '%s', attempt %u",
			    copy->hold.life, box->name, copy->hold.attempt);
		else if (copy->folder == MR_DEAD)
			(void)snprintf(evidence, sizeof evidence, "among the dead letters of the room");
		else
			(void)snprintf(evidence, sizeof evidence, "in the memory of this process, %s of '%s'",
			    mem_folder_word(copy->folder), box->name);
		const struct place_of place = { .agent = box->name,
			.folder = copy->folder,
			.flags = copy->flags,
			.state = state_word(copy),
			.evidence = evidence };

		fn(ctx, &place);
	}
}

static const char *
work_word(enum queue_state state)
{
	switch (state) {
	case QUEUE_READY:
		return "ready";
	case QUEUE_DELAYED:
		return "delayed";
	case QUEUE_CLAIMED:
		return "claimed";
	case QUEUE_DONE:
		return "done";
	case QUEUE_FAILED:
		return "failed";
	}
	return "nowhere";
}

static void
tell_shared(struct mem *mem, const char *id, place_fn *fn, void *ctx)
{
	char evidence[MR_ADDRESS_MAX + 120];
	struct place_of place = { .agent = "", .evidence = evidence };

	for (size_t i = 0; i < mem->queues_n; i++) {
		const struct mem_work *work = mem_work_get(&mem->queues[i], id);

		if (!work)
			continue;
		place.state = work_word(mem_work_state(work));
		(void)snprintf(evidence, sizeof evidence, "in queue '%s': %s, claimed %u times", mem->queues[i].name,
		    place.state, work->attempt);
		fn(ctx, &place);
	}
	place.state = "posted";
	for (size_t i = 0; i < mem->channels_n; i++) {
		const struct mem_post *post = mem_post_get(&mem->channels[i], id);

		if (!post)
			continue;
		(void)snprintf(
		    evidence, sizeof evidence, "in channel '%s': post %" PRIu64, mem->channels[i].name, post->number);
		fn(ctx, &place);
	}
}

enum mr_rc
mem_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct mem *mem = mem_of(room);

	(void)err;
	for (size_t i = 0; i < mem->boxes_n; i++)
		tell(mem->boxes[i], id, fn, ctx);
	tell(&mem->dead, id, fn, ctx);
	tell_shared(mem, id, fn, ctx);
	return MR_OK;
}

static size_t
remove_copies(struct mem_box *box, const char *id)
{
	size_t removed = 0;

	for (struct mem_copy *copy; (copy = mem_box_get(box, id, MEM_ANY_FOLDER)) != NULL; removed++)
		mem_box_drop(box, copy);
	return removed;
}

static size_t
remove_shared(struct mem *mem, const char *id)
{
	size_t removed = 0;

	for (size_t i = 0; i < mem->queues_n; i++) {
		struct mem_work *work = mem_work_get(&mem->queues[i], id);

		if (work)
			mem_work_drop(&mem->queues[i], work);
		removed += work != NULL;
	}
	for (size_t i = 0; i < mem->channels_n; i++) {
		struct mem_post *post = mem_post_get(&mem->channels[i], id);

		if (post) {
			mem_letter_done(post->letter);
			post->letter = NULL; /* its number stays taken */
		}
		removed += post != NULL;
	}
	return removed;
}

enum mr_rc
mem_purge(struct mr_room *room, const char *id, size_t *ret_removed, struct mr_error *err)
{
	struct mem *mem = mem_of(room);
	size_t removed = remove_copies(&mem->dead, id) + remove_shared(mem, id);

	(void)err;
	for (size_t i = 0; i < mem->boxes_n; i++)
		removed += remove_copies(mem->boxes[i], id);
	*ret_removed = removed;
	return MR_OK;
}
