/* SPDX-License-Identifier: MIT */
/*
 * wake.c - waiting for a reason to wake an idle agent, and telling it: mail that was not announced to this life yet,
 * nudges, and work in a queue that it may claim. Looking consumes nothing. The reasons are recorded after they were
 * told, so that an agent which goes idle again without acting is not woken for the same.
 *
 * Mail of a thread that has woken an agent too often lately wakes it only after some time (wake_limit.c): the mail is
 * there, and is announced with the next prompt. The operator is told of such a thread, once.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/address/address.h"
#include "office/mail/mail.h"
#include "office/nudge/nudge.h"
#include "office/tell/tell.h"
#include "office/who/who.h"
#include "office/work/work.h"
#include <stdlib.h>

#define OPENED_MAX 200 /* of a backlog that was never told: one of the most urgent is reason enough */
#define ANNOUNCE_MS 20
#define LOCK_WAIT_MS 3000
#define OFFERS_OF_QUEUE 32
#define OFFERED "offered" /* in the told log: "<queue>/<id>.<attempt>" */

/* ---- Too often ---- */

struct look { /* finish with look_done */
	struct mr_room *room;
	const struct mr_self *self;
	const struct mr_wake_options *options;
	struct announced before;
	struct wakes wakes;
	struct mr_names keys;   /* threads of the mail that wakes */
	struct mr_names ids;    /* the mail itself */
	struct mr_names offers; /* work that could be claimed, the first of each queue */
	struct mr_names told;   /* of these, the work that this life was offered before */
	struct mr_names queues; /* queues with other work */
	bool nudged;
	bool failed; /* out of memory */
};

static void
look_done(struct look *l)
{
	announced_done(&l->before);
	wakes_done(&l->wakes);
	mr_names_done(&l->keys);
	mr_names_done(&l->ids);
	mr_names_done(&l->offers);
	mr_names_done(&l->told);
	mr_names_done(&l->queues);
}

/* True: finished, trying again would change nothing. */
static bool
send_notice(struct look *l, const struct mr_message *msg, const char *agent, const char *thread)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const char *to[] = { OPERATOR, NULL }, *subject = "agents keep waking each other";
	struct mr_receipt receipt = { 0 };
	struct time_text window = span_text(l->wakes.rule.window_ms);
	char once[72];

	buf_addf(&text,
	    "Mail of one thread from %s has woken %s %zu times within %s, and more has come since."
	    " It is stored as usual, and wakes again when %s have passed."
	    " Wake-Limit in the room's settings changes that.\n\nmailroom --as %s thread %s\n",
	    *msg->from ? msg->from : "somebody", agent, l->wakes.rule.limit, window.z, window.z, agent, msg->id);
	(void)snprintf(once, sizeof(once), "wakes-%s", hash_name("%s", thread).z);
	struct mr_draft draft = { .to = to, .subject = subject, .body = buf_z(&text), .body_len = text.len };

	if (!buf_ok(&text))
		return false;
	if (l->room->driver->abilities & ROOM_KEYS) /* sent, but killed before it was recorded */
		draft.key = once;
	enum mr_rc rc = mr_send(l->room, l->self, &draft, &receipt, IGNORED);

	if (rc == MR_OK && !receipt.repeated && l->options->told)
		l->options->told(l->options->ctx, &receipt, subject);
	mr_receipt_done(&receipt);
	return rc == MR_OK || rc == MR_INDOUBT || rc == MR_REFUSED || rc == MR_NOTFOUND || rc == MR_UNSUPPORTED;
}

/* Such mail came too often: sends one message to the operator, from the process that finds it first. Several waiters
 * may find a message to several agents at once, so they take turns. */
static void
tell_operator(struct look *l, const struct mr_message *msg, const char *agent)
{
	mr_auto(buf_done) struct buf thread = BUF_INIT;
	const struct room_driver *d = l->room->driver;
	mr_auto(wakes_done) struct wakes now = { 0 };
	void *lock = NULL;

	wake_thread_key(l->room, msg, agent, &thread);
	if (!buf_ok(&thread) || wakes_told(&l->wakes, buf_z(&thread)))
		return;
	if (DRIVER_HAS(d, record_lock) &&
	    d->record_lock(l->room, WAKES, "", "telling", LOCK_WAIT_MS, &lock, IGNORED) != MR_OK)
		return;
	wakes_load(l->room, &now);
	if (!wakes_told(&now, buf_z(&thread)) && send_notice(l, msg, agent, buf_z(&thread)))
		(void)wakes_note(l->room, &(struct mr_names){ &thread.ptr, 1 }, true, IGNORED);
	if (lock)
		d->record_unlock(l->room, lock);
}

/* ---- Mail ---- */

static bool
judge(void *ctx, const struct mr_message *msg)
{
	struct look *l = ctx;
	mr_auto(buf_done) struct buf key = BUF_INIT;
	struct mr_error broken = { 0 };

	if ((msg->flags & MR_SEEN) || announced_find(&l->before, msg->id) ||
	    mr_is_control(l->room, l->self->agent, msg, &broken))
		return true;
	/* A note to the next life is known to this one. */
	if (l->self->life > 0 && msg->sender_life == l->self->life && successor_is_own(msg, l->self->agent))
		return true;
	wake_key(l->room, msg, l->self->agent, &key);
	int64_t until = buf_ok(&key) ? wakes_until(&l->wakes, buf_z(&key)) : WAKE_NEVER;

	if (until == 0)
		l->failed |= !names_add_once(&l->keys, buf_z(&key)) || !names_add(&l->ids, str_of(msg->id));
	else if (until != WAKE_NEVER)
		tell_operator(l, msg, l->self->agent);
	return true;
}

static bool
is_untold(void *ctx, const char *id)
{
	return !announced_find(&((struct look *)ctx)->before, id);
}

static enum mr_rc
look_at_mail(struct look *l, struct mr_error *err)
{
	bool by_name = l->room->driver->abilities & ROOM_NAMES;
	struct scan_request want = { .folders = MR_INBOX,
		.depth = by_name ? SCAN_NAMES : SCAN_BODIES,
		.unread_only = true,
		.order = by_name ? SCAN_URGENCY : SCAN_OLDEST,
		.most = OPENED_MAX,
		.wants = is_untold,
		.wants_ctx = l };
	mr_auto(mr_names_done) struct mr_names ids = { 0 };

	announced_load(l->room, l->self, &l->before);
	wakes_load(l->room, &l->wakes);
	scan_sweep(l->room, l->self->agent);
	TRY(office_scan(
	    l->room, l->self->agent, &want, by_name ? office_note_id : judge, by_name ? (void *)&ids : l, err));
	for (size_t i = 0; i < ids.n; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };

		/* Mail that is unreadable, or was taken at this moment, wakes nobody. */
		if (!announced_find(&l->before, ids.v[i]) && l->room->driver->fetch(l->room, l->self->agent, ids.v[i],
								 MR_INBOX, SCAN_HEADERS, &msg, IGNORED) == MR_OK)
			(void)judge(l, &msg);
	}
	return MR_OK;
}

/* ---- Nudges ---- */

static void
look_at_nudges(struct look *l)
{
	struct mr_nudges *nudges = NULL;

	if (mr_nudges_open(l->room, l->self->agent, false, &nudges, IGNORED) != MR_OK)
		return;
	for (size_t i = 0; i < mr_nudges_count(nudges); i++) {
		const struct mr_nudge *n = mr_nudges_get(nudges, i);
		mr_auto(buf_done) struct buf key = BUF_INIT;

		/* The mail itself is counted by its own thread. */
		if (strcmp(n->kind, "mail") == 0)
			continue;
		buf_addf(&key, "nudge\n%s\n%s", n->from, l->self->agent);
		if (wakes_until(&l->wakes, buf_z(&key)) != 0)
			continue;
		l->nudged = true;
		l->failed |= !buf_ok(&key) || !names_add_once(&l->keys, buf_z(&key));
	}
	mr_nudges_close(nudges);
}

/* ---- Work ---- */

struct offering {
	struct look *look;
	const struct mr_queue *queue;
	size_t n;
	bool news;
};

static bool
note_offer(void *ctx, const struct queue_item *item)
{
	struct offering *o = ctx;
	mr_auto(buf_done) struct buf word = BUF_INIT;

	if (item->state == QUEUE_DELAYED && item->not_before_ms > clock_now_ms())
		return true;
	if (item->only_for[0] && strcmp(item->only_for, o->look->self->agent) != 0)
		return true;
	buf_addf(&word, "%s/%s.%u", o->queue->name, item->id, item->attempt);
	if (item->released_ms > 0) /* released work is new again */
		buf_addf(&word, ".%lld", (long long)item->released_ms);
	if (!buf_ok(&word) || !names_add(&o->look->offers, buf_str(&word))) {
		o->look->failed = true;
		return false;
	}
	o->news = o->news || !names_has(&o->look->told, buf_z(&word));
	return ++o->n < OFFERS_OF_QUEUE;
}

static void
look_at_queue(struct look *l, const struct mr_queue *queue)
{
	struct offering o = { .look = l, .queue = queue };

	if (queue->status != MR_QUEUE_ACTIVE || !office_lets_claim(queue->claimers, l->self->agent))
		return;
	office_queue_sweep(l->room, queue);
	(void)l->room->driver->each_claim(
	    l->room, room_box("queue", queue->name).z, QUEUE_READY | QUEUE_DELAYED, note_offer, &o, IGNORED);
	if (o.news && !names_add(&l->queues, str_of(queue->name)))
		l->failed = true;
}

static bool
note_claim(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	*(bool *)ctx = true;
	return false;
}

/* Finds no reason for an agent that is not to be disturbed, and no work for one that holds work. MR_REFUSED: the life
 * is fenced. */
static enum mr_rc
look(struct look *l, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_queues queues = { 0 };
	bool busy = false;

	TRY(office_not_fenced(l->room, l->self, err));
	if (dnd_is_on(l->room, l->self->agent))
		return MR_OK;
	TRY(look_at_mail(l, err));
	look_at_nudges(l);
	if (target_supported(l->room, "queue", IGNORED) == MR_OK &&
	    mr_queue_held(l->room, l->self->agent, NULL, note_claim, &busy, IGNORED) == MR_OK && !busy) {
		told_words(l->room, l->self, OFFERED, &l->told);
		(void)mr_queue_list(l->room, &queues, IGNORED);
		for (size_t i = 0; i < queues.n && !l->failed; i++)
			look_at_queue(l, &queues.v[i]);
	}
	return l->failed ? mr_nomem(err) : MR_OK;
}

/* ---- Waiting ---- */

/* The sender of a nudge waits to see it shown. */
static bool
has_nudges(struct mr_room *room, const char *agent)
{
	struct mr_nudges *nudges = NULL;
	enum mr_rc rc = mr_nudges_open(room, agent, false, &nudges, IGNORED);

	mr_nudges_close(nudges);
	return rc == MR_OK;
}

static enum mr_rc
wait_with(struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options, void **lock,
    struct mr_error *err)
{
	mr_auto(waiter_end) struct waiter waiter = waiter_begin(room, self->agent, -1);

	for (;; (void)waiter_pause(&waiter)) {
		mr_auto(look_done) struct look l = { .room = room, .self = self, .options = options };

		/* The lock tells the sender of a nudge that it will be shown at once; a waiter that is leaving may
		 * still hold it. */
		if (!*lock && ROOM_HAS(room, record_lock))
			(void)room->driver->record_lock(
			    room, NUDGE, self->agent, NUDGE_WAITER, ANNOUNCE_MS, lock, IGNORED);
		TRY(look(&l, err));
		if (l.keys.n > 0 || l.queues.n > 0) {
			/* News within a moment are told together. */
			waiter.endless = false;
			waiter.deadline_ms = clock_boot_ms() + options->gather_ms;
			while (!l.nudged && !has_nudges(room, self->agent) && waiter_pause(&waiter))
				;
			return MR_OK;
		}
		if (options->stay && !options->stay(options->ctx))
			return mr_fail(err, MR_EMPTY, "no program waits for '%s' any more", self->agent);
	}
}

enum mr_rc
mr_wake_wait(
    struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options, struct mr_error *err)
{
	void *lock = NULL;
	enum mr_rc rc = wait_with(room, self, options, &lock, err);

	if (lock)
		room->driver->record_unlock(room, lock);
	return rc;
}

/* ---- Telling ---- */

struct mr_wake {
	void *lock; /* of a waiting process, or NULL */
	struct look look;
	struct mr_self self;
	struct mr_injection *mail; /* or NULL */
	struct buf text;
};

static void
close_wake(struct mr_wake **wake) /* for mr_auto */
{
	mr_wake_close(*wake);
}

enum mr_rc
mr_wake_open(struct mr_room *room, const struct mr_self *self, const struct mr_wake_options *options, bool unattended,
    struct mr_wake **ret, struct mr_error *err)
{
	mr_auto(close_wake) struct mr_wake *w = NULL;

	if (unattended && !ROOM_HAS(room, record_lock))
		return room_lacks(room, "locks that show which agents wait", err);
	w = calloc(1, sizeof *w);
	TRY(mr_got(w, err));
	w->self = *self;
	w->look = (struct look){ .room = room, .self = &w->self, .options = options };
	if (unattended)
		TRY(room->driver->record_lock(room, NUDGE, self->agent, NUDGE_WAITER, 0, &w->lock, err));
	TRY(look(&w->look, err));
	const struct mr_names *queues = &w->look.queues;

	if ((w->look.keys.n > 0 || queues->n > 0) &&
	    mr_inject_open(room, self, MR_INJECT_ALL, options->format, &w->mail, IGNORED) == MR_OK)
		buf_adds(&w->text, mr_inject_text(w->mail));
	if (queues->n > 0) {
		buf_adds(&w->text, "<system-reminder>\n");
		for (size_t i = 0; i < queues->n; i++)
			buf_addf(&w->text, "Work waits in the queue %s: mailroom recv queue:%s\n", queues->v[i],
			    queues->v[i]);
		buf_adds(&w->text, "</system-reminder>\n");
	}
	TRY(mr_got(!w->text.failed, err));
	if (w->text.len == 0)
		return mr_fail(err, MR_EMPTY, "there is nothing to wake '%s' for", self->agent);
	*ret = w;
	w = NULL;
	return MR_OK;
}

const char *
mr_wake_text(const struct mr_wake *wake)
{
	return buf_z(&wake->text);
}

enum mr_rc
mr_wake_ring(struct mr_wake *wake, const char *door, bool tells, mr_ring_fn *ring, void *ctx, struct mr_error *err)
{
	struct look *l = &wake->look;
	struct bell_reason why = { .ids = &l->ids,
		.more = l->ids.n >= OPENED_MAX,
		.work = l->queues.n > 0,
		.tells = tells ? mr_wake_text(wake) : NULL };

	TRY(bell_ring(l->room, l->self, door, &why, ring, ctx, err));
	/* First the note that it was a wake: a loop is worse than mail that is announced twice. */
	bool noted = wakes_note(l->room, &l->keys, false, err) == MR_OK;

	if (tells && wake->mail)
		noted &= mr_inject_shown(wake->mail, door, err) == MR_OK;
	if (l->queues.n > 0) /* the ring itself told of it */
		noted &= told_put_words(l->room, l->self, OFFERED, &l->offers, err) == MR_OK;
	if (!noted)
		err->code = MR_INDOUBT;
	return noted ? MR_OK : err->code;
}

void
mr_wake_close(struct mr_wake *wake)
{
	if (!wake)
		return;
	if (wake->lock)
		wake->look.room->driver->record_unlock(wake->look.room, wake->lock);
	mr_inject_close(wake->mail);
	look_done(&wake->look);
	buf_done(&wake->text);
	free(wake);
}

/* ---- Mail that is announced by typing ---- */

/* The time until it wakes nobody, and why; 0: it may wake now. */
static int64_t
limited_until(
    struct look *l, const char *agent, const char *id, struct mr_message *ret_msg, char ret_why[MR_WAKE_WHY_MAX])
{
	mr_auto(buf_done) struct buf key = BUF_INIT;

	wakes_load(l->room, &l->wakes);
	if (l->wakes.n == 0) /* no agent was woken lately; in other programs' rooms a fetch reads the whole mailbox */
		return 0;
	if (l->room->driver->fetch(l->room, agent, id, MR_INBOX, SCAN_HEADERS, ret_msg, IGNORED) != MR_OK)
		return 0; /* read already */
	wake_key(l->room, ret_msg, agent, &key);
	int64_t until = buf_ok(&key) ? wakes_until(&l->wakes, buf_z(&key)) : 0;

	if (until == WAKE_NEVER) {
		(void)snprintf(ret_why, MR_WAKE_WHY_MAX, "automatic mail wakes no agent twice in a thread");
	} else if (until != 0) {
		(void)snprintf(ret_why, MR_WAKE_WHY_MAX, "wakes of this thread are limited until %.5s UTC",
		    time_text(until + 59999).z + 11); /* the minute in which it ends */
	}
	return until;
}

bool
mr_wake_limited(struct mr_room *room, const char *agent, const char *id, char ret_why[MR_WAKE_WHY_MAX])
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(look_done) struct look l = { .room = room };

	return limited_until(&l, agent, id, &msg, ret_why) != 0;
}

enum mr_rc
mr_wake_by_mail(struct mr_room *room, const struct mr_self *self, const char *agent, const char *id,
    const struct mr_wake_options *options, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(look_done) struct look l = { .room = room, .self = self, .options = options };
	char why[MR_WAKE_WHY_MAX];
	int64_t until = limited_until(&l, agent, id, &msg, why);

	if (until == 0)
		return MR_OK;
	if (until != WAKE_NEVER)
		tell_operator(&l, &msg, agent);
	return mr_fail(err, MR_REFUSED, "%s: '%s' was not nudged", why, agent);
}

void
mr_wake_count(struct mr_room *room, const char *agent, const char *id)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf key = BUF_INIT;

	if (room->driver->fetch(room, agent, id, 0, SCAN_HEADERS, &msg, IGNORED) != MR_OK)
		return;
	wake_key(room, &msg, agent, &key);
	if (buf_ok(&key))
		(void)wakes_note(room, &(struct mr_names){ &key.ptr, 1 }, false, IGNORED);
}
