/* SPDX-License-Identifier: MIT */
/*
 * retention.c - what a channel keeps. Two limits, both apply: posts older than so many hours go, and the oldest
 * until no more than so many are left. After a post both are exact. A patrol leaves the count alone until it is
 * 10 % above the limit, so that it does not remove one post each time it comes by.
 *
 * Only the channel's own copies go; what subscribers have got is theirs.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/office.h"

struct keeping {
	int64_t oldest_ms; /* posts from before go */
	size_t skip;       /* that many go, whatever their age */
	uint64_t below;    /* numbers under this one go; 0: none was found that stays */
};

/* A post's time is that of its id: when the message was accepted, in whatever order it says so itself. */
static bool
note_first_kept(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct keeping *k = ctx;

	if (k->skip > 0) {
		k->skip--;
		return true;
	}
	if (k->oldest_ms > 0 && id_time_ms(msg->id) < k->oldest_ms)
		return true;
	k->below = number;
	return false;
}

static enum mr_rc
drop_where(struct mr_room *room, const char *name, uint64_t last, struct keeping k, size_t *ret_removed,
    struct mr_error *err)
{
	size_t removed = 0;
	/* Names alone tell the number; the id is in the message. */
	enum scan_depth depth = k.oldest_ms > 0 ? SCAN_HEADERS : SCAN_NAMES;
	enum mr_rc rc = room->driver->channel_scan(room, name, 0, depth, note_first_kept, &k, err);

	if (rc == MR_OK) /* what was posted since we looked is above `last` and stays */
		rc = room->driver->channel_drop(room, name, k.below ? k.below : last + 1, &removed, err);
	*ret_removed += removed;
	return rc;
}

static enum mr_rc
apply_limits(struct mr_room *room, const struct mr_channel *channel, bool buffer, size_t *ret_removed,
    struct mr_error *err)
{
	size_t most = (size_t)channel->retain_count, count = 0;
	uint64_t first = 0, last = 0;
	enum mr_rc rc = room->driver->channel_range(room, channel->name, &first, &last, &count, err);

	if (rc == MR_OK && channel->retain_ms > 0 && count > 0) {
		struct keeping young = { .oldest_ms = clock_now_ms() - channel->retain_ms };

		rc = drop_where(room, channel->name, last, young, ret_removed, err);
		if (rc == MR_OK)
			rc = room->driver->channel_range(room, channel->name, &first, &last, &count, err);
	}
	if (rc != MR_OK || most == 0 || count <= (buffer ? most + most / 10 : most))
		return rc;
	return drop_where(
	    room, channel->name, last, (struct keeping){ .skip = count - most }, ret_removed, err);
}

enum mr_rc
mr_channel_prune(struct mr_room *room, const char *name, bool buffer, size_t *ret_removed, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	size_t removed = 0;
	enum mr_rc rc = mr_channel_get(room, name, &channel, err);

	if (rc == MR_OK)
		rc = apply_limits(room, &channel, buffer, &removed, err);
	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc == MR_OK && ret_removed)
		*ret_removed = removed;
	return rc;
}

void
retention_after_post(struct mr_room *room, const char *channel)
{
	struct mr_error ignored = { 0 };

	(void)mr_channel_prune(room, channel, false, NULL, &ignored);
}
