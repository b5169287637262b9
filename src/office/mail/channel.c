/* SPDX-License-Identifier: MIT */
/*
 * channel.c - channels: settings, subscribers, reading what was posted. Posting is sending (send
 * channel:NAME): the post stays in the channel, and each subscriber but the sender gets the same message.
 * Subscribers are lines of one record that is changed under its lock: of fifty who subscribe at once none is
 * lost.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/address/address.h"
#include "office/office.h"
#include "office/who/who.h"
#include <poll.h>

#define CHANNEL "channel"
#define HOUR_MS ((int64_t)3600 * 1000)
#define RETAIN_HOURS_MAX ((int64_t)1000000)
#define POLL_MAX_MS 2000
#define BLIND_POLL_MS 250

static enum mr_rc
check_able(const struct mr_room *room, struct mr_error *err)
{
	const struct room_driver *d = room->driver;

	if ((d->abilities & ROOM_CHANNELS) && DRIVER_HAS(d, channel_make) && DRIVER_HAS(d, channel_remove) &&
	    DRIVER_HAS(d, channel_scan) && DRIVER_HAS(d, channel_range) && DRIVER_HAS(d, channel_drop))
		return MR_OK;
	return office_lacks(room, "channels", err);
}

static enum mr_rc
check_name(const struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	enum mr_rc rc = check_able(room, err);

	return rc == MR_OK ? settings_name(CHANNEL, given, ret, err) : rc;
}

/* ---- Settings ---- */

void
mr_channel_done(struct mr_channel *channel)
{
	if (!channel)
		return;
	mr_names_done(&channel->subscribers);
	arena_free(channel->own);
	*channel = (struct mr_channel){ 0 };
}

static enum mr_rc
read_settings(struct record *lines, const char *name, struct mr_channel *ret, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel c = { 0 };
	const char *by = record_get(lines, "Created-By"), *status = record_get(lines, "Status");
	int64_t count = record_int(lines, "Retain-Count", 0), hours = record_int(lines, "Retain-Hours", 0);

	(void)snprintf(c.name, sizeof(c.name), "%.*s", MR_NAME_MAX, name);
	c.retain_count = count > 0 ? count : 0;
	c.retain_ms = hours > 0 && hours <= RETAIN_HOURS_MAX ? hours * HOUR_MS : 0;
	c.closed = status && !ascii_caseeq(status, "active");
	c.created_ms = record_time(lines, "Created");
	for (size_t i = 0; i < lines->n; i++)
		if (ascii_caseeq(lines->lines[i].name, "Subscriber") &&
		    !names_has(&c.subscribers, lines->lines[i].value) &&
		    !names_add(&c.subscribers, str_of(lines->lines[i].value)))
			return mr_nomem(err);
	c.created_by = by ? by : "";
	c.own = lines->own;
	lines->own = NULL; /* the strings are the channel's now */
	*ret = c;
	c = (struct mr_channel){ 0 };
	return MR_OK;
}

enum mr_rc
mr_channel_get(struct mr_room *room, const char *name, struct mr_channel *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record lines = { 0 };
	char local[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = check_name(room, name, local, err);

	if (rc == MR_OK)
		rc = settings_load(room, CHANNEL, local, &lines, err);
	return rc == MR_OK ? read_settings(&lines, local, ret, err) : rc;
}

enum mr_rc
mr_channel_each(struct mr_room *room, mr_channel_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc = check_able(room, err);

	if (rc == MR_OK)
		rc = settings_names(room, CHANNEL, &names, err);
	for (size_t i = 0; rc == MR_OK && i < names.n; i++) {
		mr_auto(mr_channel_done) struct mr_channel channel = { 0 };

		rc = mr_channel_get(room, names.v[i], &channel, err);
		if (rc == MR_NOTFOUND) { /* deleted this very moment */
			*err = (struct mr_error){ 0 };
			rc = MR_OK;
			continue;
		}
		if (rc == MR_OK && !fn(ctx, &channel))
			break;
	}
	return rc;
}

enum mr_rc
mr_channel_create(struct mr_room *room, const struct mr_self *self, const char *name, int64_t retain_count,
    int64_t retain_ms, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	char local[MR_ADDRESS_MAX + 1], count[24], hours[24];
	enum mr_rc rc = check_name(room, name, local, err);

	if (rc == MR_OK)
		rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = target_name_free(room, CHANNEL, local, err);
	if (rc == MR_OK && (retain_count < 0 || retain_ms < 0 || retain_ms / HOUR_MS >= RETAIN_HOURS_MAX))
		rc = mr_fail(err, MR_REFUSED, "such a limit cannot be kept: posts and hours count from 0 (no limit)");
	if (rc != MR_OK)
		return rc;
	(void)snprintf(count, sizeof(count), "%lld", (long long)retain_count);
	(void)snprintf(hours, sizeof(hours), "%lld", (long long)((retain_ms + HOUR_MS - 1) / HOUR_MS));
	rc = header_add(&lines, "Name", str_of(local), err);
	if (rc == MR_OK)
		rc = header_add(&lines, "Retain-Count", str_of(count), err);
	if (rc == MR_OK)
		rc = header_add(&lines, "Retain-Hours", str_of(hours), err);
	if (rc == MR_OK)
		rc = header_add(&lines, "Status", STR("active"), err);
	/* The place for the posts first: the settings are what makes it a channel. */
	if (rc == MR_OK)
		rc = room->driver->channel_make(room, local, err);
	if (rc == MR_OK)
		rc = settings_create(room, CHANNEL, local, self->agent, &lines, err);
	return rc;
}

enum mr_rc
mr_channel_subscribe(
    struct mr_room *room, const char *name, const char *agent, bool on, bool *ret_changed, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent known = { 0 };
	char local[MR_ADDRESS_MAX + 1], who[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = check_name(room, name, local, err);

	if (rc == MR_OK)
		rc = agent_local_name(room, agent, who, err);
	/* Whoever is gone can still be taken off the list. */
	if (rc == MR_OK && on && ROOM_HAS(room, find_agent))
		rc = mr_agent_get(room, who, &known, err);
	if (rc != MR_OK)
		return rc;
	return settings_change(room, CHANNEL, local,
	    (struct settings_edit){ on ? SETTINGS_ADD : SETTINGS_REMOVE, "Subscriber", who }, ret_changed, err);
}

enum mr_rc
mr_channel_close(struct mr_room *room, const char *name, bool closed, struct mr_error *err)
{
	char local[MR_ADDRESS_MAX + 1];

	TRY(check_name(room, name, local, err));
	return settings_change(room, CHANNEL, local,
	    (struct settings_edit){ SETTINGS_SET, "Status", closed ? "closed" : "active" }, NULL, err);
}

enum mr_rc
mr_channel_delete(struct mr_room *room, const char *name, struct mr_error *err)
{
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	enum mr_rc rc = mr_channel_get(room, name, &channel, err);

	/* Closed first, so that nobody posts into what is being removed. */
	if (rc == MR_OK)
		rc = mr_channel_close(room, channel.name, true, err);
	if (rc != MR_OK)
		return rc;
	rc = room->driver->channel_remove(room, channel.name, err);
	if (rc == MR_OK || rc == MR_NOTFOUND)
		rc = room->driver->record_drop(room, CHANNEL, "", channel.name, err);
	if (rc != MR_NOTFOUND) /* gone with the posts, or by another's hand */
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
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

static enum mr_rc
wait_until(
    struct mr_room *room, const char *name, uint64_t after, void *watch, int64_t timeout_ms, struct mr_error *err)
{
	int64_t deadline_ms = clock_boot_ms() + timeout_ms;

	for (;;) {
		uint64_t first = 0, last = 0;
		size_t count = 0;
		enum mr_rc rc = room->driver->channel_range(room, name, &first, &last, &count, err);

		if (rc != MR_OK || last > after)
			return rc;
		int64_t rest_ms = timeout_ms < 0 ? INT64_MAX : deadline_ms - clock_boot_ms();
		int64_t pause_ms = watch ? POLL_MAX_MS : BLIND_POLL_MS;

		if (rest_ms <= 0)
			return mr_fail(err, MR_EMPTY, "nothing was posted in '%s' in time", name);
		if (rest_ms < pause_ms)
			pause_ms = rest_ms;
		if (watch)
			room->driver->watch_wait(room, watch, pause_ms);
		else
			(void)poll(NULL, 0, (int)pause_ms);
	}
}

enum mr_rc
mr_channel_wait(struct mr_room *room, const char *name, uint64_t after, int64_t timeout_ms, struct mr_error *err)
{
	const struct room_driver *driver = room->driver;
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	char watched[MR_NAME_MAX + 16];
	struct mr_error ignored = { 0 };
	void *watch = NULL;
	enum mr_rc rc = mr_channel_get(room, name, &channel, err);

	if (rc != MR_OK)
		return rc;
	(void)snprintf(watched, sizeof(watched), CHANNEL ":%s", channel.name);
	/* Armed before the first look. A fleet can run out of watches: then the poll alone has to do. */
	if (timeout_ms != 0 && DRIVER_HAS(driver, watch) && driver->watch(room, watched, &watch, &ignored) != MR_OK)
		watch = NULL;
	rc = wait_until(room, channel.name, after, watch, timeout_ms, err);
	if (watch)
		driver->watch_close(room, watch);
	return rc;
}
