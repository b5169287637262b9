/* SPDX-License-Identifier: MIT */
/*
 * wake.c - waiting until there is something to wake an idle agent for (wake_look.c), and telling it. What it was woken
 * for is remembered after it was told, so that an agent which goes idle again without acting is not woken for the same.
 */
#include "office/tell/wake.h"

#include "base/clock.h"
#include "base/error.h"
#include "office/tell/memory.h"
#include "office/nudge/nudge.h"
#include <poll.h>
#include <stdlib.h>

#define POLL_MS 2000 /* also with a watch: queues, leases and dead holders raise no event */
#define BLIND_POLL_MS 500
#define ANNOUNCE_MS 20

/* ---- Waiting ---- */

static void
pause_for(struct mr_room *room, void *watch, int64_t ms)
{
	if (watch)
		room->driver->watch_wait(room, watch, ms);
	else
		(void)poll(NULL, 0, (int)(ms < BLIND_POLL_MS ? ms : BLIND_POLL_MS));
}

static bool
has_nudges(struct mr_room *room, const char *agent)
{
	struct mr_nudges *nudges = NULL;
	struct mr_error ignored = { 0 };
	bool any = mr_nudges_open(room, agent, false, &nudges, &ignored) == MR_OK;

	mr_nudges_close(nudges);
	return any;
}

/* What comes within a moment is told together. Whoever sent a nudge waits to see it shown. */
static void
gather(struct mr_room *room, const char *agent, void *watch, int64_t ms)
{
	int64_t end = clock_boot_ms() + ms;

	for (int64_t left = ms; left > 0 && !has_nudges(room, agent); left = end - clock_boot_ms())
		pause_for(room, watch, left);
}

static enum mr_rc
wait_with(struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options, void *watch,
    struct mr_error *err)
{
	for (;;) {
		mr_auto(wake_look_done) struct wake_look l = { .room = room, .self = self, .options = options };

		TRY(wake_look(&l, err));
		if (wake_found(&l)) {
			if (!l.nudged)
				gather(room, self->agent, watch, options->gather_ms);
			return MR_OK;
		}
		if (options->stay && !options->stay(options->ctx))
			return mr_fail(err, MR_EMPTY, "nobody waits for '%s' any more", self->agent);
		pause_for(room, watch, POLL_MS);
	}
}

enum mr_rc
mr_wake_wait(
    struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options, struct mr_error *err)
{
	const struct room_driver *d = room->driver;
	struct mr_error ignored = { 0 };
	void *watch = NULL, *lock = NULL;

	/* Whoever nudges this agent sees by the lock that it will be shown at once. */
	if (DRIVER_HAS(d, record_lock))
		(void)d->record_lock(room, NUDGE, self->agent, NUDGE_WAITER, ANNOUNCE_MS, &lock, &ignored);
	if (DRIVER_HAS(d, watch) && d->watch(room, self->agent, &watch, &ignored) != MR_OK)
		watch = NULL;
	enum mr_rc rc = wait_with(room, self, options, watch, err);

	if (watch)
		d->watch_close(room, watch);
	if (lock)
		d->record_unlock(room, lock);
	return rc;
}

/* ---- Telling ---- */

struct mr_wake {
	struct wake_look look;
	struct mr_self self;
	struct mr_injection *mail; /* or NULL */
	struct buf text;
};

static void
add_offers(struct mr_wake *w)
{
	if (w->look.queues.n == 0)
		return;
	buf_adds(&w->text, "<system-reminder>\n");
	for (size_t i = 0; i < w->look.queues.n; i++)
		buf_addf(&w->text, "Work waits in the queue %s: mailroom recv queue:%s\n", w->look.queues.v[i],
		    w->look.queues.v[i]);
	buf_adds(&w->text, "</system-reminder>\n");
}

enum mr_rc
mr_wake_open(struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options,
    struct mr_wake **ret, struct mr_error *err)
{
	struct mr_wake *w = calloc(1, sizeof *w);
	struct mr_error nothing = { 0 };

	if (!w)
		return mr_nomem(err);
	w->self = *self;
	w->look = (struct wake_look){ .room = room, .self = &w->self, .options = options };
	enum mr_rc rc = wake_look(&w->look, err);

	if (rc == MR_OK && wake_found(&w->look)) {
		if (mr_inject_open(room, self, options->format, &w->mail, &nothing) == MR_OK)
			buf_adds(&w->text, mr_inject_text(w->mail));
		add_offers(w);
		if (w->text.failed)
			rc = mr_nomem(err);
	}
	if (rc == MR_OK && w->text.len == 0)
		rc = mr_fail(err, MR_EMPTY, "there is nothing to wake '%s' for", self->agent);
	if (rc != MR_OK) {
		mr_wake_close(w);
		return rc;
	}
	*ret = w;
	return MR_OK;
}

const char *
mr_wake_text(const struct mr_wake *wake)
{
	return buf_z(&wake->text);
}

enum mr_rc
mr_wake_shown(struct mr_wake *wake, struct mr_error *err)
{
	struct wake_look *l = &wake->look;
	/* First that it was a wake: a loop is worse than mail that is announced twice. */
	enum mr_rc rc = wakes_count(l->room, &l->keys, err);
	struct mr_error trouble = { 0 };

	if (wake->mail && mr_inject_shown(wake->mail, &trouble) != MR_OK && rc == MR_OK) {
		*err = trouble;
		rc = trouble.code;
	}
	if (l->queues.n > 0 && memory_put_words(l->room, l->self, WAKE_OFFERED, &l->offers, &trouble) != MR_OK &&
	    rc == MR_OK) {
		*err = trouble;
		rc = trouble.code;
	}
	return rc;
}

void
mr_wake_close(struct mr_wake *wake)
{
	if (!wake)
		return;
	mr_inject_close(wake->mail);
	wake_look_done(&wake->look);
	buf_done(&wake->text);
	free(wake);
}

/* ---- Mail that is announced by typing ---- */

static int64_t
limited_until(struct wake_look *l, const char *agent, const char *id, struct mr_message *ret_msg)
{
	mr_auto(buf_done) struct buf key = BUF_INIT;
	struct mr_error ignored = { 0 };

	wakes_load(l->room, &l->wakes);
	if (l->wakes.n ==
	    0) /* nobody was woken lately; in the rooms of other programs a fetch reads the whole mailbox */
		return 0;
	if (l->room->driver->fetch(l->room, agent, id, MR_INBOX, SCAN_HEADERS, ret_msg, &ignored) != MR_OK)
		return 0; /* read already */
	wake_key(l->room, ret_msg, agent, &key);
	return buf_ok(&key) ? wakes_until(&l->wakes, buf_z(&key)) : 0;
}

static void
say_limited(int64_t until_ms, char *ret, size_t size)
{
	char at[RFC3339_LEN + 1];

	if (until_ms == WAKE_NEVER) {
		(void)snprintf(ret, size, "automatic mail wakes nobody twice in a thread");
		return;
	}
	time_rfc3339(until_ms + 59999, at); /* the minute in which it is over */
	(void)snprintf(ret, size, "wakes of this thread are limited until %.5s UTC", at + 11);
}

bool
mr_wake_limited(struct mr_room *room, const char *agent, const char *id, char ret_why[MR_WAKE_WHY_MAX])
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(wake_look_done) struct wake_look l = { .room = room };
	int64_t until = limited_until(&l, agent, id, &msg);

	if (until != 0)
		say_limited(until, ret_why, MR_WAKE_WHY_MAX);
	return until != 0;
}

enum mr_rc
mr_wake_by_mail(struct mr_room *room, const struct mr_self *self, const char *agent, const char *id,
    const struct mr_wake_options *options, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(wake_look_done) struct wake_look l = { .room = room, .self = self, .options = options };
	int64_t until = limited_until(&l, agent, id, &msg);
	char why[MR_WAKE_WHY_MAX];

	if (until == 0)
		return MR_OK;
	if (until != WAKE_NEVER)
		wake_tell_operator(&l, &msg, agent);
	say_limited(until, why, sizeof why);
	return mr_fail(err, MR_REFUSED, "%s: '%s' was not nudged", why, agent);
}

void
mr_wake_count(struct mr_room *room, const char *agent, const char *id)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(mr_names_done) struct mr_names keys = { 0 };
	mr_auto(buf_done) struct buf key = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (room->driver->fetch(room, agent, id, 0, SCAN_HEADERS, &msg, &ignored) != MR_OK)
		return;
	wake_key(room, &msg, agent, &key);
	if (buf_ok(&key) && names_add(&keys, buf_str(&key)))
		(void)wakes_count(room, &keys, &ignored);
}
