/* SPDX-License-Identifier: MIT */
/*
 * patrol_care.c - what else a round does: holds and claims that are over come back, nudges that are out of date go,
 * answers that did not come are told, channels keep their limits, old read mail is archived. Each is best effort and
 * told where it fails: a broken channel is no reason to leave the archive alone.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/patrol/patrol.h"

static void
say_trouble(struct patrol *p, const char *what, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "%s: %s", what, err->message);
	patrol_event(p, "trouble", "", buf_z(&text));
	*err = (struct mr_error){ 0 };
}

/* ---- Leases, nudges ---- */

static bool
note_agent(void *ctx, const struct mr_agent *agent)
{
	return names_add(ctx, str_of(agent->name));
}

/* Opening them is enough: who opens them puts aside what nobody shall see any more. */
static void
drop_old_nudges(struct mr_room *room, const char *agent)
{
	struct mr_nudges *nudges = NULL;
	struct mr_error ignored = { 0 };

	if (mr_nudges_open(room, agent, true, &nudges, &ignored) == MR_OK)
		mr_nudges_close(nudges);
}

static bool
sweep_queue(void *ctx, const struct mr_queue *queue)
{
	struct patrol *p = ctx;

	office_queue_sweep(p->room, queue);
	return true;
}

static void
recover_leases(struct patrol *p)
{
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	struct mr_error err = { 0 };

	if (!p->set.leases || !(p->room->driver->abilities & ROOM_HOLDS))
		return;
	if (mr_each_agent(p->room, note_agent, &agents, &err) != MR_OK)
		say_trouble(p, "leases", &err);
	for (size_t i = 0; i < agents.n; i++) {
		scan_sweep(p->room, agents.v[i]);
		drop_old_nudges(p->room, agents.v[i]);
	}
	if ((p->room->driver->abilities & ROOM_QUEUES) && mr_queue_each(p->room, sweep_queue, p, &err) != MR_OK)
		say_trouble(p, "queues", &err);
}

/* ---- Overdue answers ---- */

/* The agent gets it as mail, under a key; then it is forgotten. */
static void
tell_overdue(void *ctx, const struct mr_due *due)
{
	struct patrol *p = ctx;
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT, text = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char by[RFC3339_LEN + 1], key[16 + MR_ID_LEN];

	time_rfc3339(due->by_ms, by);
	(void)snprintf(key, sizeof(key), "overdue-%s", due->id);
	buf_addf(&subject, "OVERDUE: %s", due->subject);
	buf_addf(&body, "No answer came in time.\n\nMessage: %s\nTo: %s\nBy: %s\n", due->id, due->to, by);
	buf_addf(&text, "no answer from %s to %s by %s", due->to, due->id, by);
	if (!buf_ok(&subject) || !buf_ok(&body))
		return;
	struct mr_draft draft = {
		.to = (const char *[]){ p->self->agent, NULL },
		.subject = buf_z(&subject),
		.body = buf_z(&body),
		.body_len = body.len,
		.key = key,
	};
	enum mr_rc rc = mr_send(p->room, p->self, &draft, &receipt, &err);

	if (rc != MR_OK && rc != MR_INDOUBT) { /* the next round tries again */
		say_trouble(p, "overdue answer", &err);
		return;
	}
	due_drop(p->room, p->self->agent, due->id);
	patrol_event(p, "overdue", "", buf_z(&text));
}

static void
report_overdue(struct patrol *p)
{
	struct mr_error err = { 0 };

	if (p->set.overdue && (p->room->driver->abilities & ROOM_KEYS) &&
	    due_each(p->room, p->self->agent, tell_overdue, p, &err) != MR_OK)
		say_trouble(p, "overdue answers", &err);
}

/* ---- Channels ---- */

static bool
note_channel(void *ctx, const struct mr_channel *channel)
{
	return names_add(ctx, str_of(channel->name));
}

static void
prune_channels(struct patrol *p)
{
	mr_auto(mr_names_done) struct mr_names channels = { 0 };
	struct mr_error err = { 0 };

	if (!p->set.channels || !(p->room->driver->abilities & ROOM_CHANNELS))
		return;
	if (mr_channel_each(p->room, note_channel, &channels, &err) != MR_OK)
		say_trouble(p, "channels", &err);
	for (size_t i = 0; i < channels.n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		size_t removed = 0;

		if (mr_channel_prune(p->room, channels.v[i], true, &removed, &err) != MR_OK)
			say_trouble(p, channels.v[i], &err);
		buf_addf(&text, "channel:%s, %zu posts", channels.v[i], removed);
		if (removed > 0)
			patrol_event(p, "pruned", "", buf_z(&text));
	}
}

/* ---- Archive ---- */

static bool
note_old(void *ctx, const struct mr_message *msg)
{
	return (msg->flags & MR_PINNED) || names_add(ctx, str_of(msg->id));
}

static void
archive_old(struct patrol *p)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error err = { 0 };
	struct mr_scan old = { .filter = { .folders = MR_INBOX, .seen = true } };
	size_t moved = 0;

	if (p->set.archive_after_ms <= 0 || !(p->room->driver->abilities & ROOM_ARCHIVE))
		return;
	old.filter.before_ms = clock_now_ms() - p->set.archive_after_ms;
	if (mr_scan(p->room, p->self->agent, &old, note_old, &ids, &err) != MR_OK)
		say_trouble(p, "archive", &err);
	for (size_t i = 0; i < ids.n; i++)
		moved += mr_archive(p->room, p->self, ids.v[i], &err) == MR_OK;
	buf_addf(&text, "%zu read messages", moved);
	if (moved > 0)
		patrol_event(p, "archived", "", buf_z(&text));
}

enum mr_rc
patrol_care(struct patrol *p, struct mr_error *err)
{
	if (p->options->dry_run)
		return MR_OK;
	recover_leases(p);
	report_overdue(p);
	prune_channels(p);
	archive_old(p);
	return office_flush(p->room, err);
}
