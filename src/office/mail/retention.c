/* SPDX-License-Identifier: MIT */
/*
 * retention.c - what a channel keeps. Two limits, both apply: posts older than so many hours go, and the
 * oldest until no more than so many are left. After a post both are exact. A patrol leaves the count alone
 * until it is 10 % above the limit, so that it does not remove one post each time it comes by.
 *
 * Only the channel's own copies go; what subscribers have got is theirs.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/office.h"

struct aging {
	int64_t oldest_ms; /* posts from before go */
	uint64_t kept;     /* number of the first that stays; 0: none was found */
};

/* A post's time is that of its id: when the message was accepted, whatever it says itself. */
static bool
note_first_kept(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct aging *a = ctx;

	if (id_time_ms(msg->id) < a->oldest_ms)
		return true;
	a->kept = number;
	return false;
}

/* Numbers under *ret are too old; `last` is the newest that we know of, what comes after it is not ours to
 * judge. */
static enum mr_rc
judge_age(struct mr_room *room, const struct mr_channel *channel, uint64_t last, uint64_t *ret, struct mr_error *err)
{
	struct aging aging = { .oldest_ms = clock_now_ms() - channel->retain_ms };
	enum mr_rc rc = room->driver->channel_scan(room, channel->name, 0, SCAN_HEADERS, note_first_kept, &aging, err);

	/* One that cannot be read does not keep the others for ever: what is before one that stays goes. */
	if (rc == MR_CORRUPT && aging.kept > 0)
		rc = MR_OK;
	if (rc == MR_OK)
		*ret = aging.kept > 0 ? aging.kept : last + 1;
	return rc;
}

static enum mr_rc
apply_limits(
    struct mr_room *room, const struct mr_channel *channel, bool buffer, size_t *ret_removed, struct mr_error *err)
{
	size_t most = (size_t)channel->retain_count, count = 0, removed = 0;
	uint64_t first = 0, last = 0, below = 0;
	enum mr_rc rc = room->driver->channel_range(room, channel->name, &first, &last, &count, err);

	if (rc != MR_OK || count == 0)
		return rc;
	if (channel->retain_ms > 0)
		rc = judge_age(room, channel, last, &below, err);
	if (rc != MR_OK)
		return rc;
	if (below > first) /* numbers have no holes */
		count = below > last ? 0 : (size_t)(last - below) + 1;
	if (most > 0 && count > (buffer ? most + most / 10 : most))
		below = last - most + 1;
	if (below <= first)
		return MR_OK;
	rc = room->driver->channel_drop(room, channel->name, below, &removed, err);
	if (rc == MR_OK)
		*ret_removed = removed;
	return rc;
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
retention_after_delivery(struct mr_room *room, const struct mr_names *targets)
{
	for (size_t i = 0; i < targets->n; i++) {
		struct mr_error ignored = { 0 };

		if (str_starts(str_of(targets->v[i]), "channel:"))
			(void)mr_channel_prune(room, targets->v[i], false, NULL, &ignored);
	}
}
