/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting until unread mail passes a filter. If such mail exists already, the wait ends without a watch,
 * because closing a watch takes the kernel milliseconds. Else the watch is armed before the next look, so that no mail
 * in between is missed; and there is always a slow poll as well, because an expired lease, a dead holder and a mount
 * shared with another machine raise no event.
 *
 * A look reads the names of unread mail. Contents never change, so a message that did not pass is remembered by its id
 * and not read again: waiting beside a thousand messages from others costs a thousand names a look, not files.
 */
#include <poll.h>

#include "office/mail/mail.h"
#include "office/nudge/nudge.h"

#define IDLE_MAX 30 /* pauses of 2 s */
#define LOOK_TRIES 20
#define BLIND_LOOK_MS 250 /* for a room that reports no changes */
/* A sender that checks for waiters briefly takes NUDGE_WAITER: retry for so long. A process that rings its session
 * holds it for seconds, and another wait for as long as it waits: retry with each pause. */
#define ANNOUNCE_MS 20

struct waiting {
	struct mr_room *room;
	const char *agent;
	struct matcher matcher;
	struct waiter waiter;
	struct nameset judged;           /* ids that did not pass; `rejected` owns the strings */
	struct mr_names rejected, fresh; /* fresh: new in this look, not judged yet */
	bool failed;                     /* out of memory */
	bool hit;
	bool wants_nudges, nudged;
	struct mr_names old_nudges; /* existing nudges: a wait for certain mail does not end with these */
	bool moved;                 /* something changed between listing and reading: look again at once */
	bool control;               /* found mail that ends no wait: for a patrol, or for the next life */
	void *lock;                 /* shows other processes that this one waits for nudges; or NULL */
};

static void
waiting_done(struct waiting *w)
{
	waiter_end(&w->waiter);
	if (w->lock)
		w->room->driver->record_unlock(w->room, w->lock);
	matcher_done(&w->matcher);
	nameset_done(&w->judged);
	mr_names_done(&w->rejected);
	mr_names_done(&w->fresh);
	mr_names_done(&w->old_nudges);
}

/* Unread, and neither a control message nor this life's note to the next one. A program asks for control messages by
 * their type. */
static bool
is_hit(struct waiting *w, const struct mr_message *msg)
{
	const struct mr_filter *filter = w->matcher.filter;
	bool for_next = filter->life > 0 && msg->sender_life == filter->life && successor_is_own(msg, w->agent);

	if (msg->flags & MR_SEEN)
		return false;
	if (!for_next && (filter->type || !mr_is_control(w->room, w->agent, msg, IGNORED)))
		return true;
	w->control = true;
	return false;
}

static bool
reject(struct waiting *w, const char *id)
{
	w->failed |= !nameset_add_once(&w->judged, &w->rejected, id);
	return !w->failed;
}

static bool
is_fresh(void *ctx, const char *id)
{
	return !nameset_has(&((struct waiting *)ctx)->judged, id);
}

static bool
note_name(void *ctx, const struct mr_message *msg)
{
	struct waiting *w = ctx;

	if (w->matcher.by_name) {
		w->hit = is_hit(w, msg);
		return !w->hit;
	}
	if (is_fresh(w, msg->id))
		w->failed |= !names_add(&w->fresh, str_of(msg->id));
	return !w->failed;
}

static bool
judge_at_once(void *ctx, const struct mr_message *msg)
{
	struct waiting *w = ctx;

	w->hit = matcher_fits(&w->matcher, msg) && is_hit(w, msg);
	return !w->hit && ((msg->flags & MR_SEEN) || reject(w, msg->id));
}

static enum mr_rc
look(struct waiting *w, struct mr_error *err)
{
	/* A message that passes is read, so that an unreadable file does not end the wait again and again. */
	bool any = w->matcher.by_name;
	struct scan_request want = { .folders = MR_INBOX,
		.depth = any ? SCAN_HEADERS : SCAN_NAMES,
		.unread_only = true,
		.one_is_enough = any,
		.most = any ? LOOK_MAX : 0,
		.wants = any ? NULL : is_fresh,
		.wants_ctx = w };

	matcher_span(&w->matcher, &want);
	for (int tries = 0; tries < LOOK_TRIES; tries++) {
		w->moved = false;
		TRY(office_scan(w->room, w->agent, &want, note_name, w, err));
		if (!w->hit && w->control && want.one_is_enough) {
			want.one_is_enough = false; /* the first file is not mail: is there another? */
			TRY(office_scan(w->room, w->agent, &want, note_name, w, err));
			want.most = 0; /* nor are the next few, named by older versions: go through all */
			if (!w->hit)
				TRY(office_scan(w->room, w->agent, &want, note_name, w, err));
		}
		for (size_t i = 0; i < w->fresh.n && !w->hit && !w->failed; i++) {
			mr_auto(mr_message_done) struct mr_message msg = { 0 };
			enum mr_rc rc = w->room->driver->fetch(
			    w->room, w->agent, w->fresh.v[i], MR_INBOX, w->matcher.depth, &msg, IGNORED);

			/* Another process holds or read it just now. It may come back, so it is not remembered. */
			if (rc == MR_NOTFOUND || (rc == MR_OK && (msg.flags & MR_SEEN)))
				w->moved = true;
			else if (rc == MR_OK && matcher_fits(&w->matcher, &msg) && is_hit(w, &msg))
				w->hit = true;
			else if (rc == MR_OK || rc == MR_CORRUPT)
				(void)reject(w,
				    w->fresh
					.v[i]); /* any other error may be temporary, such as a server that was down */
		}
		mr_names_done(&w->fresh);
		TRY(mr_got(!w->failed, err));
		if (w->hit || (!w->moved && tries > 0))
			break;
		/* The first look found nothing: sweep now, because mail of a dead holder counts too. */
		if (tries == 0)
			scan_sweep(w->room, w->agent);
	}
	return MR_OK;
}

static bool
asks_for_some(const struct mr_filter *f)
{
	return f->from || f->type || f->thread || f->reply_to || f->priority || f->words || f->regex || f->since_ms ||
	       f->before_ms;
}

static void
announce(struct waiting *w, int64_t wait_ms)
{
	if (w->wants_nudges && !w->lock)
		(void)w->room->driver->record_lock(w->room, NUDGE, w->agent, NUDGE_WAITER, wait_ms, &w->lock, IGNORED);
}

static enum mr_rc
wait_for(struct waiting *w, const struct mr_filter *filter, int64_t timeout_ms, struct mr_error *err)
{
	struct mr_room *room = w->room;

	if (timeout_ms != 0)
		announce(w, ANNOUNCE_MS);
	TRY(matcher_init(&w->matcher, room, w->agent, filter, err));
	if (w->wants_nudges && asks_for_some(w->matcher.filter))
		TRY(nudge_names(room, w->agent, &w->old_nudges, err));
	if (!w->matcher.by_name && !(room->driver->abilities & ROOM_NAMES)) {
		/* If finding one message costs as much as a full scan, the first look judges the scanned messages;
		 * later looks fetch only new ones. */
		struct scan_request want = { .folders = MR_INBOX, .depth = w->matcher.depth, .unread_only = true };

		TRY(office_scan(room, w->agent, &want, judge_at_once, w, err));
		TRY(mr_got(!w->failed, err));
	} else if (timeout_ms != 0) {
		TRY(look(w, err));
	}
	if (!w->hit)
		w->waiter = waiter_begin(room, w->agent, timeout_ms);
	while (!w->hit) {
		TRY(look(w, err));
		w->nudged = !w->hit && w->wants_nudges && nudge_any_but(room, w->agent, &w->old_nudges);
		if (w->hit || w->nudged)
			break;
		/* A thousand waiters must cost next to nothing: they look again when something changed, and now and
		 * then. */
		for (unsigned idle = 0; idle == 0 || (w->waiter.same && idle < IDLE_MAX); idle++) {
			if (!waiter_pause(&w->waiter))
				return mr_fail(err, MR_EMPTY, "no mail for '%s' came in time", w->agent);
			announce(w, 0);
		}
	}
	return MR_OK;
}

enum mr_rc
mr_wait(struct mr_room *room, const char *agent, const struct mr_filter *filter, int64_t timeout_ms, bool *ret_nudge,
    struct mr_error *err)
{
	mr_auto(waiting_done) struct waiting w = { .room = room, .agent = agent, .wants_nudges = ret_nudge };

	TRY(wait_for(&w, filter, timeout_ms, err));
	if (ret_nudge)
		*ret_nudge = w.nudged;
	return MR_OK;
}

/* ---- The whole room ---- */

struct mr_watch {
	struct waiter waiter;
};

enum mr_rc
mr_watch_open(struct mr_room *room, struct mr_watch **ret, struct mr_error *err)
{
	struct mr_watch *watch = calloc(1, sizeof(*watch));

	TRY(mr_got(watch != NULL, err));
	watch->waiter = waiter_begin(room, "", -1);
	*ret = watch;
	return MR_OK;
}

bool
mr_watch_wait(struct mr_watch *watch, int64_t timeout_ms)
{
	struct waiter *w = &watch->waiter;

	if (w->watch)
		return w->room->driver->watch_wait(w->room, w->watch, timeout_ms);
	(void)poll(NULL, 0, (int)(timeout_ms < BLIND_LOOK_MS ? timeout_ms : BLIND_LOOK_MS));
	return true;
}

bool
mr_watch_sees(const struct mr_watch *watch)
{
	return watch->waiter.watch != NULL;
}

void
mr_watch_close(struct mr_watch *watch)
{
	if (watch)
		waiter_end(&watch->waiter);
	free(watch);
}
