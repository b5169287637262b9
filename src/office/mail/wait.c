/* SPDX-License-Identifier: MIT */
/*
 * wait.c - until unread mail passes a filter. The watch is armed before the first look, so that mail which
 * comes in between rings it; and beside the watch there is always a slow poll, because a lease that runs out,
 * a holder that dies and a mount shared with another machine raise no event.
 *
 * A look reads the names of unread mail. Contents never change, so what did not pass once is remembered by
 * its id and not read again: waiting beside a thousand messages from others costs a thousand names a look,
 * not files.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/mail/handoff.h"
#include "office/nudge/nudge.h"
#include "office/office.h"
#include <poll.h>

#define LOOK_TRIES 20
#define POLL_MAX_MS 2000       /* with a watch */
#define BLIND_POLL_FIRST_MS 50 /* without one */
#define BLIND_POLL_MAX_MS 1000

struct waiting {
	struct mr_room *room;
	const char *agent;
	struct matcher matcher;
	struct candidates rejected; /* sorted by id */
	struct candidates fresh;    /* seen in this look, not judged yet */
	bool hit;
	bool wants_nudges, nudged;
	struct mr_names old_nudges; /* who waits for certain mail is not kept from it by these */
	bool moved;                 /* something changed between the names and the reading: look again at once */
	bool control;               /* mail was met that ends nobody's wait: for a patrol, or for the next life */
};

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct candidate *)a)->id, ((const struct candidate *)b)->id);
}

static bool
is_rejected(const struct waiting *w, const char *id)
{
	struct candidate key = { 0 };

	(void)snprintf(key.id, sizeof(key.id), "%s", id);
	return w->rejected.n > 0 && bsearch(&key, w->rejected.v, w->rejected.n, sizeof(key), by_id);
}

/* Control messages, and what this life left for the next one. Who asks for one by its type is a program. */
static bool
is_for_others(struct waiting *w, const struct mr_message *msg)
{
	const struct mr_filter *filter = w->matcher.filter;
	struct mr_error broken = { 0 };

	if (filter && filter->life > 0 && msg->sender_life == filter->life && handoff_is_own(msg, w->agent)) {
		w->control = true;
		return true;
	}
	if ((filter && filter->type) || !mr_is_control(w->room, w->agent, msg, &broken))
		return false;
	w->control = true;
	return true;
}

static bool
note_name(void *ctx, const struct mr_message *msg)
{
	struct waiting *w = ctx;

	if (w->matcher.depth == SCAN_NAMES) {
		w->hit = !(msg->flags & MR_SEEN) && !is_for_others(w, msg);
		return !w->hit;
	}
	return is_rejected(w, msg->id) || candidates_add(&w->fresh, msg);
}

static enum mr_rc
judge_fresh(struct waiting *w, struct mr_error *err)
{
	for (size_t i = 0; i < w->fresh.n && !w->hit; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error ignored = { 0 };
		enum mr_rc rc = w->room->driver->fetch(
		    w->room, w->agent, w->fresh.v[i].id, MR_INBOX, w->matcher.depth, &msg, &ignored);

		if (rc == MR_OK && !(msg.flags & MR_SEEN) && matcher_fits(&w->matcher, &msg) &&
		    !is_for_others(w, &msg)) {
			w->hit = true;
			return MR_OK;
		}
		/* Held or read by another just now. It may come back, so it is not remembered. */
		if (rc == MR_NOTFOUND || (rc == MR_OK && (msg.flags & MR_SEEN))) {
			w->moved = true;
			continue;
		}
		struct mr_message rejected = { 0 };

		(void)snprintf(rejected.id, sizeof(rejected.id), "%s", w->fresh.v[i].id);
		if (!candidates_add(&w->rejected, &rejected))
			return mr_nomem(err);
	}
	if (w->rejected.n > 1 && w->fresh.n > 0)
		qsort(w->rejected.v, w->rejected.n, sizeof(*w->rejected.v), by_id);
	return MR_OK;
}

static bool
judge_at_once(void *ctx, const struct mr_message *msg)
{
	struct waiting *w = ctx;

	w->hit = !(msg->flags & MR_SEEN) && matcher_fits(&w->matcher, msg) && !is_for_others(w, msg);
	return !w->hit && ((msg->flags & MR_SEEN) || candidates_add(&w->rejected, msg));
}

/* Where finding one message costs as much as going through all, the first look judges what the scan shows; the later
 * ones fetch only what is new. */
static enum mr_rc
first_look(struct waiting *w, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = w->matcher.depth, .unread_only = true };
	enum mr_rc rc = office_scan(w->room, w->agent, &want, judge_at_once, w, err);

	if (rc == MR_OK && w->rejected.failed)
		rc = mr_nomem(err);
	if (w->rejected.n > 1)
		qsort(w->rejected.v, w->rejected.n, sizeof(*w->rejected.v), by_id);
	return rc;
}

static enum mr_rc
look(struct waiting *w, struct mr_error *err)
{
	/* One that passes is read, so that a file nobody can read does not end the wait again and again. */
	struct scan_request want = { .folders = MR_INBOX,
		.depth = w->matcher.depth == SCAN_NAMES ? SCAN_HEADERS : SCAN_NAMES,
		.unread_only = true,
		.one_is_enough = w->matcher.depth == SCAN_NAMES };
	enum mr_rc rc = MR_OK;

	for (int tries = 0; tries < LOOK_TRIES; tries++) {
		w->moved = false;
		w->fresh.n = 0;
		rc = office_scan(w->room, w->agent, &want, note_name, w, err);
		if (rc == MR_OK && !w->hit && w->control && want.one_is_enough) {
			want.one_is_enough = false; /* the one that was met is no mail: is there another? */
			rc = office_scan(w->room, w->agent, &want, note_name, w, err);
		}
		if (rc == MR_OK && w->fresh.failed)
			rc = mr_nomem(err);
		if (rc == MR_OK)
			rc = judge_fresh(w, err);
		if (rc != MR_OK || w->hit || (!w->moved && tries > 0))
			break;
		/* Nothing yet: mail that a dead holder had counts too. After the look, for whom mail waits is in a
		 * hurry. */
		if (tries == 0)
			scan_sweep(w->room, w->agent);
	}
	return rc;
}

/* What came this very moment is not looked for; but it may be for others. */
static bool
came_now(struct waiting *w, void *watch)
{
	const struct room_driver *d = w->room->driver;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };

	return w->matcher.depth == SCAN_NAMES && DRIVER_HAS(d, watch_saw_mail) &&
	       d->watch_saw_mail(w->room, watch, &msg) && !is_for_others(w, &msg);
}

/* pause_ms grows only where there is no watch. */
static void
pause_for(struct waiting *w, void *watch, int64_t rest_ms, int64_t *pause_ms)
{
	int64_t longest = watch ? POLL_MAX_MS : *pause_ms;
	int64_t ms = rest_ms < 0 || rest_ms > longest ? longest : rest_ms;

	if (watch) {
		w->room->driver->watch_wait(w->room, watch, ms);
		w->hit = came_now(w, watch);
		return;
	}
	(void)poll(NULL, 0, (int)ms);
	*pause_ms = 2 * *pause_ms < BLIND_POLL_MAX_MS ? 2 * *pause_ms : BLIND_POLL_MAX_MS;
}

static enum mr_rc
look_until(struct waiting *w, void *watch, int64_t timeout_ms, struct mr_error *err)
{
	int64_t deadline_ms = clock_boot_ms() + timeout_ms, pause_ms = BLIND_POLL_FIRST_MS;

	for (;;) {
		enum mr_rc rc = look(w, err);

		if (rc != MR_OK || w->hit)
			return rc;
		w->nudged = w->wants_nudges && nudge_any_but(w->room, w->agent, &w->old_nudges);
		if (w->nudged)
			return MR_OK;
		int64_t rest_ms = timeout_ms < 0 ? -1 : deadline_ms - clock_boot_ms();

		if (timeout_ms >= 0 && rest_ms <= 0)
			return mr_fail(err, MR_EMPTY, "no mail for '%s' came in time", w->agent);
		pause_for(w, watch, rest_ms, &pause_ms);
		if (w->hit)
			return MR_OK;
	}
}

static bool
asks_for_some(const struct mr_filter *f)
{
	return f->from || f->type || f->thread || f->reply_to || f->priority || f->words || f->regex || f->since_ms ||
	       f->before_ms;
}

/* Whoever nudges this agent sees by the lock that somebody waits, and gives him a moment to show it. To see that he
 * takes it himself for an instant: for so long it is asked for. */
#define ANNOUNCE_MS 20

static void *
announce(struct waiting *w, int64_t timeout_ms)
{
	struct mr_error ignored = { 0 };
	void *lock = NULL;

	if (w->wants_nudges && timeout_ms != 0 && ROOM_HAS(w->room, record_lock))
		(void)w->room->driver->record_lock(
		    w->room, NUDGE, w->agent, NUDGE_WAITER, ANNOUNCE_MS, &lock, &ignored);
	return lock;
}

static enum mr_rc
wait_for(struct waiting *w, const struct mr_filter *filter, int64_t timeout_ms, struct mr_error *err)
{
	const struct room_driver *driver = w->room->driver;
	struct mr_error ignored = { 0 };
	void *watch = NULL, *lock = announce(w, timeout_ms);
	enum mr_rc rc;

	/* A fleet can run out of watches: then the poll alone has to do. */
	if (timeout_ms != 0 && DRIVER_HAS(driver, watch) && driver->watch(w->room, w->agent, &watch, &ignored) != MR_OK)
		watch = NULL;
	rc = matcher_init(&w->matcher, w->room, w->agent, filter, err);
	if (rc == MR_OK && w->wants_nudges && asks_for_some(w->matcher.filter))
		rc = nudge_names(w->room, w->agent, &w->old_nudges, err);
	if (rc == MR_OK && w->matcher.depth != SCAN_NAMES && !(driver->abilities & ROOM_HOLDS))
		rc = first_look(w, err);
	if (rc == MR_OK && !w->hit)
		rc = look_until(w, watch, timeout_ms, err);
	if (watch)
		driver->watch_close(w->room, watch);
	if (lock)
		driver->record_unlock(w->room, lock);
	matcher_done(&w->matcher);
	candidates_done(&w->rejected);
	candidates_done(&w->fresh);
	mr_names_done(&w->old_nudges);
	return rc;
}

enum mr_rc
mr_wait(
    struct mr_room *room, const char *agent, const struct mr_filter *filter, int64_t timeout_ms, struct mr_error *err)
{
	return wait_for(&(struct waiting){ .room = room, .agent = agent }, filter, timeout_ms, err);
}

enum mr_rc
mr_wait_or_nudge(struct mr_room *room, const char *agent, const struct mr_filter *filter, int64_t timeout_ms,
    bool *ret_nudge, struct mr_error *err)
{
	struct waiting w = { .room = room, .agent = agent, .wants_nudges = true };
	enum mr_rc rc = wait_for(&w, filter, timeout_ms, err);

	if (rc == MR_OK)
		*ret_nudge = w.nudged;
	return rc;
}
