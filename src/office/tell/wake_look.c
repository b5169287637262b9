/* SPDX-License-Identifier: MIT */
/*
 * wake_look.c - what an idle agent is woken for: mail that was not announced to this life yet, nudges, and work in a
 * queue that it may claim. Looking consumes nothing.
 *
 * Mail of a thread that has woken an agent too often lately wakes it only when some time has passed (wake_limit.c): it
 * is there, and is announced with the next prompt. The operator is told of such a thread, once.
 */
#include "office/mail/mail.h"
#include "office/tell/wake.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/tell/memory.h"
#include "office/nudge/nudge.h"

#define OFFERS_OF_QUEUE 32
#define LOCK_WAIT_MS 3000

void
wake_look_done(struct wake_look *l)
{
	announced_done(&l->before);
	wakes_done(&l->wakes);
	mr_names_done(&l->keys);
	mr_names_done(&l->offers);
	mr_names_done(&l->told);
	mr_names_done(&l->queues);
}

bool
wake_found(const struct wake_look *l)
{
	return l->keys.n > 0 || l->queues.n > 0;
}

static void
add_key(struct wake_look *l, const struct buf *key)
{
	if (key->failed || (!names_has(&l->keys, buf_z(key)) && !names_add(&l->keys, buf_str(key))))
		l->failed = true;
}

/* ---- Too often ---- */

static void
write_notice(const struct wakes *w, const struct mr_message *msg, const char *agent, struct buf *out)
{
	char window[24];

	duration_text(w->rule.window_ms, window);
	buf_addf(out, "%zu times within %s mail of one thread from %s has woken %s, and then there was more.",
	    w->rule.limit, window, *msg->from ? msg->from : "somebody", agent);
	buf_addf(out, " It is stored as ever, and wakes again when %s have passed. Wake-Limit in the room's settings ",
	    window);
	buf_addf(out, "changes that.\n\nmailroom --as %s thread %s\n", agent, msg->id);
}

/* Final: to try again would change nothing. */
static bool
send_notice(struct wake_look *l, const struct mr_message *msg, const char *agent, const char *thread)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, once = BUF_INIT;
	const char *to[] = { OPERATOR, NULL }, *subject = "agents keep waking each other";
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char hash[65];

	sha256_hex(str_of(thread), hash);
	write_notice(&l->wakes, msg, agent, &text);
	buf_addf(&once, "wakes-%s", hash);
	struct mr_draft draft = { .to = to, .subject = subject, .body = buf_z(&text), .body_len = text.len };

	if (!buf_ok(&text) || !buf_ok(&once))
		return false;
	if (l->room->driver->abilities & ROOM_KEYS) /* sent, and then killed before it was noted */
		draft.key = buf_z(&once);
	enum mr_rc rc = mr_send(l->room, l->self, &draft, &receipt, &err);

	if (rc == MR_OK && !receipt.repeated && l->options->told)
		l->options->told(l->options->ctx, &receipt, subject);
	mr_receipt_done(&receipt);
	return rc == MR_OK || rc == MR_INDOUBT || rc == MR_REFUSED || rc == MR_NOTFOUND || rc == MR_UNSUPPORTED;
}

/* One message to several agents is met by several waiters at once: one after the other. */
void
wake_tell_operator(struct wake_look *l, const struct mr_message *msg, const char *agent)
{
	mr_auto(buf_done) struct buf thread = BUF_INIT;
	const struct room_driver *d = l->room->driver;
	mr_auto(wakes_done) struct wakes now = { 0 };
	struct mr_error ignored = { 0 };
	void *lock = NULL;

	wake_thread_key(l->room, msg, agent, &thread);
	if (!buf_ok(&thread) || wakes_told(&l->wakes, buf_z(&thread)))
		return;
	if (DRIVER_HAS(d, record_lock) &&
	    d->record_lock(l->room, WAKES, "", "telling", LOCK_WAIT_MS, &lock, &ignored) != MR_OK)
		return;
	wakes_load(l->room, &now);
	if (!wakes_told(&now, buf_z(&thread)) && send_notice(l, msg, agent, buf_z(&thread)))
		(void)wakes_note_told(l->room, buf_z(&thread), &ignored);
	if (lock)
		d->record_unlock(l->room, lock);
}

/* ---- Mail ---- */

static void
judge(struct wake_look *l, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf key = BUF_INIT;
	struct mr_error broken = { 0 };

	if ((msg->flags & MR_SEEN) || announced_find(&l->before, msg->id) ||
	    mr_is_control(l->room, l->self->agent, msg, &broken))
		return;
	/* What this life leaves for the next one it knows. */
	if (l->self->life > 0 && msg->sender_life == l->self->life && successor_is_own(msg, l->self->agent))
		return;
	wake_key(l->room, msg, l->self->agent, &key);
	if (!buf_ok(&key))
		return;
	int64_t until = wakes_until(&l->wakes, buf_z(&key));

	if (until == 0)
		add_key(l, &key);
	else if (until != WAKE_NEVER)
		wake_tell_operator(l, msg, l->self->agent);
}

static bool
note_name(void *ctx, const struct mr_message *msg)
{
	return names_add(ctx, str_of(msg->id));
}

static enum mr_rc
look_by_name(struct wake_look *l, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_NAMES, .unread_only = true };
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	enum mr_rc rc = office_scan(l->room, l->self->agent, &want, note_name, &ids, err);

	for (size_t i = 0; rc == MR_OK && i < ids.n; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error ignored = { 0 };

		/* What cannot be read, or was taken this very moment, is no reason to wake anybody. */
		if (!announced_find(&l->before, ids.v[i]) && l->room->driver->fetch(l->room, l->self->agent, ids.v[i],
								 MR_INBOX, SCAN_HEADERS, &msg, &ignored) == MR_OK)
			judge(l, &msg);
	}
	return rc;
}

static bool
judge_each(void *ctx, const struct mr_message *msg)
{
	judge(ctx, msg);
	return true;
}

static enum mr_rc
look_at_mail(struct wake_look *l, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_BODIES, .unread_only = true };

	announced_load(l->room, l->self, &l->before);
	wakes_load(l->room, &l->wakes);
	scan_sweep(l->room, l->self->agent);
	if (l->room->driver->abilities & ROOM_HOLDS)
		return look_by_name(l, err);
	return office_scan(l->room, l->self->agent, &want, judge_each, l, err);
}

/* ---- Nudges ---- */

static void
look_at_nudges(struct wake_look *l)
{
	struct mr_nudges *nudges = NULL;
	struct mr_error ignored = { 0 };

	if (mr_nudges_open(l->room, l->self->agent, false, &nudges, &ignored) != MR_OK)
		return;
	for (size_t i = 0; i < mr_nudges_count(nudges); i++) {
		const struct mr_nudge *n = mr_nudges_get(nudges, i);
		mr_auto(buf_done) struct buf key = BUF_INIT;

		/* That there is mail, the mail says itself, by its own thread. */
		if (strcmp(n->kind, "mail") == 0)
			continue;
		wake_nudge_key(n->from, l->self->agent, &key);
		if (wakes_until(&l->wakes, buf_z(&key)) != 0)
			continue;
		l->nudged = true;
		add_key(l, &key);
	}
	mr_nudges_close(nudges);
}

/* ---- Work ---- */

struct offering {
	struct wake_look *look;
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
	if (item->released_ms > 0) /* what was released is new once more */
		buf_addf(&word, ".%lld", (long long)item->released_ms);
	if (!buf_ok(&word) || !names_add(&o->look->offers, buf_str(&word))) {
		o->look->failed = true;
		return false;
	}
	o->news = o->news || !names_has(&o->look->told, buf_z(&word));
	return ++o->n < OFFERS_OF_QUEUE;
}

static bool
look_at_queue(void *ctx, const struct mr_queue *queue)
{
	struct wake_look *l = ctx;
	struct offering o = { .look = l, .queue = queue };
	struct mr_error ignored = { 0 };

	if (queue->status != MR_QUEUE_ACTIVE || !office_lets_claim(queue->claimers, l->self->agent))
		return true;
	office_queue_sweep(l->room, queue);
	(void)l->room->driver->each_claim(
	    l->room, room_box("queue", queue->name).z, QUEUE_READY | QUEUE_DELAYED, note_offer, &o, &ignored);
	if (o.news && !names_add(&l->queues, str_of(queue->name)))
		l->failed = true;
	return !l->failed;
}

static bool
note_claim(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	*(bool *)ctx = true;
	return false;
}

/* Who has work in its hands is not offered more. */
static void
look_at_queues(struct wake_look *l)
{
	struct mr_error ignored = { 0 };
	bool busy = false;

	if (office_queue_able(l->room, &ignored) != MR_OK ||
	    mr_queue_held(l->room, l->self->agent, NULL, note_claim, &busy, &ignored) != MR_OK || busy)
		return;
	memory_words(l->room, l->self, WAKE_OFFERED, &l->told);
	(void)mr_queue_each(l->room, look_at_queue, l, &ignored);
}

/* ---- Looking ---- */

enum mr_rc
wake_look(struct wake_look *l, struct mr_error *err)
{
	enum mr_rc rc = office_not_fenced(l->room, l->self, err);

	if (rc != MR_OK || dnd_is_on(l->room, l->self->agent))
		return rc;
	rc = look_at_mail(l, err);
	if (rc == MR_OK) {
		look_at_nudges(l);
		look_at_queues(l);
	}
	return rc == MR_OK && l->failed ? mr_nomem(err) : rc;
}
