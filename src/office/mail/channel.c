/* SPDX-License-Identifier: MIT */
/*
 * channel.c - channels: settings, subscribers, reading posts, retention. Posting is sending (send channel:NAME): the
 * post stays in the channel, and each subscriber but the sender gets the same message. Subscribers are lines of one
 * record that is changed under its lock, so that no concurrent subscription is lost.
 */
#include "base/id.h"
#include "base/clock.h"
#include "office/address/address.h"
#include "office/mail/mail.h"
#include "office/who/who.h"

#define CHANNEL "channel"
#define HOUR_MS ((int64_t)3600 * 1000)
#define RETAIN_HOURS_MAX ((int64_t)1000000)

/* ---- Settings ---- */

void
mr_channel_done(struct mr_channel *channel)
{
	if (!channel)
		return;
	arena_free(channel->own);
	*channel = (struct mr_channel){ 0 };
}

static bool
read_channel(void *ret, const char *name, struct record *lines)
{
	struct mr_channel *c = ret;
	const char *status = settings_text(lines, "Status");
	int64_t count = record_int(lines, "Retain-Count", 0), hours = record_int(lines, "Retain-Hours", 0);

	(void)snprintf(c->name, sizeof(c->name), "%.*s", MR_NAME_MAX, name);
	c->retain_count = count > 0 ? count : 0;
	c->retain_ms = hours > 0 && hours <= RETAIN_HOURS_MAX ? hours * HOUR_MS : 0;
	c->closed = *status && !ascii_caseeq(status, "active");
	c->created_ms = record_time(lines, "Created");
	c->created_by = settings_text(lines, "Created-By");
	return settings_values(lines, "Subscriber", &c->subscribers);
}

enum mr_rc
mr_channel_get(struct mr_room *room, const char *name, struct mr_channel *ret, struct mr_error *err)
{
	return settings_get(room, CHANNEL, name, read_channel, ret, &ret->own, err);
}

enum mr_rc
mr_channel_list(struct mr_room *room, struct mr_channels *ret, struct mr_error *err)
{
	return settings_list(room, CHANNEL, sizeof(*ret->v), read_channel, ret, err);
}

enum mr_rc
mr_channel_create(struct mr_room *room, const struct mr_self *self, const char *name, int64_t retain_count,
    int64_t retain_ms, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	char local[MR_ADDRESS_MAX + 1];

	TRY(target_name(room, CHANNEL, name, local, err));
	TRY(office_not_fenced(room, self, err));
	TRY(target_name_free(room, CHANNEL, local, err));
	if (retain_count < 0 || retain_ms < 0 || retain_ms / HOUR_MS >= RETAIN_HOURS_MAX)
		return mr_fail(err, MR_REFUSED, "the limit is out of range: posts and hours count from 0 (no limit)");
	buf_addf(&lines, "Name: %s\nRetain-Count: %lld\nRetain-Hours: %lld\nStatus: active\n", local,
	    (long long)retain_count, (long long)((retain_ms + HOUR_MS - 1) / HOUR_MS));
	/* The place for the posts first, because the settings make it a channel. */
	TRY(room->driver->make_box(room, room_box("channel", local).z, err));
	return settings_create(room, CHANNEL, local, self->agent, &lines, NULL, err);
}

enum mr_rc
mr_channel_subscribe(
    struct mr_room *room, const char *name, const char *agent, bool on, bool *ret_changed, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent known = { 0 };
	char local[MR_ADDRESS_MAX + 1], who[MR_ADDRESS_MAX + 1];
	bool ignored;

	TRY(target_name(room, CHANNEL, name, local, err));
	TRY(agent_local_name(room, agent, who, err));
	/* An agent that is gone can still be removed from the list. */
	if (on && ROOM_HAS(room, find_agent))
		TRY(mr_agent_get(room, who, &known, err));
	struct settings_edit edit = { on ? SETTINGS_ADD : SETTINGS_REMOVE, "Subscriber", { (char *[]){ who }, 1 } };

	return settings_change(room, CHANNEL, local, &edit, ret_changed ? ret_changed : &ignored, err);
}

enum mr_rc
mr_channel_close(struct mr_room *room, const char *name, bool closed, struct mr_error *err)
{
	char local[MR_ADDRESS_MAX + 1];

	TRY(target_name(room, CHANNEL, name, local, err));
	return settings_set(room, CHANNEL, local, "Status", closed ? "closed" : "active", err);
}

enum mr_rc
mr_channel_delete(struct mr_room *room, const char *name, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };

	TRY(mr_channel_get(room, name, &channel, err));
	/* Closed first, so that nobody posts into it during the removal. */
	TRY(mr_channel_close(room, channel.name, true, err));
	enum mr_rc rc = room->driver->remove_box(room, room_box("channel", channel.name).z, false, NULL, err);

	if (rc == MR_OK || rc == MR_NOTFOUND)
		rc = room->driver->record_drop(room, CHANNEL, "", channel.name, err);
	return mr_unless(rc, MR_NOTFOUND, err); /* gone with the posts, or by another's hand */
}

/* ---- Reading ---- */

enum mr_rc
mr_channel_read(struct mr_room *room, const char *name, uint64_t after, bool bodies, mr_post_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };

	TRY(mr_channel_get(room, name, &channel, err));
	return room->driver->channel_scan(room, channel.name, after, bodies ? SCAN_BODIES : SCAN_HEADERS, fn, ctx, err);
}

enum mr_rc
mr_channel_count(struct mr_room *room, const char *name, uint64_t *ret_last, size_t *ret_count, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	uint64_t first = 0;

	TRY(mr_channel_get(room, name, &channel, err));
	return room->driver->channel_range(room, channel.name, &first, ret_last, ret_count, err);
}

enum mr_rc
mr_channel_wait(struct mr_room *room, const char *name, uint64_t after, int64_t timeout_ms, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };

	TRY(mr_channel_get(room, name, &channel, err));
	mr_auto(waiter_end) struct waiter waiter = waiter_begin(room, room_box(CHANNEL, channel.name).z, timeout_ms);
	do {
		uint64_t first = 0, last = 0;
		size_t count = 0;

		TRY(room->driver->channel_range(room, channel.name, &first, &last, &count, err));
		if (last > after)
			return MR_OK;
	} while (waiter_pause(&waiter));
	return mr_fail(err, MR_EMPTY, "nothing was posted in '%s' in time", channel.name);
}

/* ---- Retention ----
 *
 * Two limits, both apply: posts older than so many hours are removed, and the oldest until no more than so many are
 * left. After a post both are exact. A patrol acts only if the count is 10 % above the limit, so that it does not
 * remove a single post each time. Only the channel's own copies are removed; subscribers keep theirs. */

struct aging {
	int64_t oldest_ms; /* older posts are removed */
	uint64_t kept;     /* number of the first that stays; 0: none was found */
};

/* A post's time is that of its id: when the message was accepted, not the date that it states. */
static bool
note_first_kept(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct aging *a = ctx;

	if (id_time_ms(msg->id) < a->oldest_ms)
		return true;
	a->kept = number;
	return false;
}

enum mr_rc
mr_channel_prune(struct mr_room *room, const char *name, bool buffer, size_t *ret_removed, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	uint64_t first = 0, last = 0, below = 0;
	size_t count = 0, removed = 0;

	TRY(mr_channel_get(room, name, &channel, err));
	size_t most = (size_t)channel.retain_count;

	TRY(room->driver->channel_range(room, channel.name, &first, &last, &count, err));
	if (count > 0 && channel.retain_ms > 0) {
		struct aging aging = { .oldest_ms = clock_now_ms() - channel.retain_ms };
		enum mr_rc rc =
		    room->driver->channel_scan(room, channel.name, 0, SCAN_HEADERS, note_first_kept, &aging, err);

		/* An unreadable post does not keep the others for ever: posts before one that stays are removed. */
		if (rc != MR_CORRUPT || aging.kept == 0)
			TRY(rc);
		/* Posts after `last`, the newest that we know of, are not ours to judge. */
		below = aging.kept > 0 ? aging.kept : last + 1;
	}
	if (below > first) /* numbers have no holes */
		count = below > last ? 0 : (size_t)(last - below) + 1;
	if (most > 0 && count > (buffer ? most + most / 10 : most))
		below = last - most + 1;
	if (below > first)
		TRY(room->driver->remove(room,
		    &(struct removal){ .what = REMOVE_POSTS, .box = channel.name, .below = below }, &removed, err));
	TRY(room->driver->flush(room, err));
	if (ret_removed)
		*ret_removed = removed;
	return MR_OK;
}

void
channel_after_delivery(struct mr_room *room, const struct mr_names *targets)
{
	for (size_t i = 0; i < targets->n; i++)
		if (str_starts(str_of(targets->v[i]), "channel:"))
			(void)mr_channel_prune(room, targets->v[i], false, NULL, IGNORED);
}
