/* SPDX-License-Identifier: MIT */
/*
 * patrol.c - one round: unread mail that has a type with a handler is handled, then the room is cared for. One message
 * that cannot be taken or noted does not keep the others waiting: its error is told, and is the round's in the end.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/patrol/patrol.h"
#include "office/types/types_store.h"
#include <poll.h>

#define PAUSE_MAX_MS 2000 /* a cooldown that ends, a lease that runs out: nobody rings for that */

/* ---- What there is to do ---- */

struct gathering {
	struct patrol *p;
	struct candidates found;
	struct mr_names unhandled; /* types that were told */
};

/* Once a round for each type: mail of it waits for a handler that the type names and nobody has allowed. */
static void
tell_unhandled(struct gathering *g, const struct type_def *def)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	bool named = patrol_handler_is_name(def->handler);

	if (names_has(&g->unhandled, def->name))
		return;
	(void)names_add(&g->unhandled, str_of(def->name)); /* without memory it is said again */
	buf_addf(&text, "your configuration has no handler for it: mailroom config set Handler-%s COMMAND",
	    named ? def->handler : def->name);
	patrol_tell(g->p, &(struct mr_patrol_step){ .at_ms = clock_now_ms(),
			      .what = "unhandled",
			      .id = "",
			      .type = def->name,
			      .from = "",
			      .handler = "",
			      .result = buf_z(&text) });
}

static void
tell_unproven(struct gathering *g, const struct mr_message *msg, const struct type_def *def)
{
	g->p->count.left++;
	patrol_tell(g->p, &(struct mr_patrol_step){ .at_ms = clock_now_ms(),
			      .what = "unproven",
			      .id = msg->id,
			      .type = def->name,
			      .from = msg->from,
			      .handler = "",
			      .result = "its file belongs to another user than its sender: it is not acted on" });
}

static bool
gather(void *ctx, const struct mr_message *msg)
{
	struct gathering *g = ctx;
	const struct type_def *def = types_of(g->p->room, msg);

	/* Another member of a shared room wrote it in that name: no handler acts on it. */
	if (def && msg->proof == MR_UNPROVEN && *patrol_handler(g->p, def)) {
		tell_unproven(g, msg, def);
		return true;
	}
	if (def && *patrol_handler(g->p, def))
		return candidates_add(&g->found, msg);
	if (def && *def->handler)
		tell_unhandled(g, def);
	g->p->count.left++;
	return true;
}

static void
tell_trouble(struct patrol *p, const char *id, const struct mr_error *err)
{
	patrol_tell(p, &(struct mr_patrol_step){
			   .at_ms = clock_now_ms(),
			   .what = "trouble",
			   .id = id,
			   .type = "",
			   .from = "",
			   .handler = "",
			   .result = err->message,
		       });
}

static void
skip_unreadable(void *ctx, const char *path, const struct mr_error *err)
{
	const struct gathering *g = ctx;

	(void)path;
	tell_trouble(g->p, "", err);
}

static enum mr_rc
find_work(struct patrol *p, struct candidates *ret, struct mr_error *err)
{
	struct gathering g = { .p = p };
	struct scan_request want = {
		.folders = MR_INBOX,
		.depth = SCAN_HEADERS,
		.unread_only = true,
		.trouble = skip_unreadable,
		.trouble_ctx = &g,
	};

	scan_sweep(p->room, p->self->agent);
	enum mr_rc rc = office_scan(p->room, p->self->agent, &want, gather, &g, err);

	if (rc == MR_OK && g.found.failed)
		rc = mr_nomem(err);
	mr_names_done(&g.unhandled);
	candidates_sort(&g.found, MR_WORK_ORDER);
	*ret = g.found;
	return rc;
}

/* ---- Doing it ---- */

static bool
is_stopped(const struct patrol *p)
{
	return p->options->stop && p->options->stop(p->options->ctx);
}

static bool
ends_round(enum mr_rc rc)
{
	return rc == MR_NOMEM || rc == MR_FULL;
}

static enum mr_rc
work_through(struct patrol *p, const struct candidates *work, struct mr_error *err)
{
	enum mr_rc worst = MR_OK;

	for (size_t i = 0; i < work->n && !ends_round(worst) && !is_stopped(p); i++) {
		struct mr_error trouble = { 0 };
		enum mr_rc rc = office_not_fenced(p->room, p->self, err);

		if (rc != MR_OK)
			return rc;
		rc = patrol_message(p, work->v[i].id, &trouble);
		if (rc == MR_OK)
			continue;
		tell_trouble(p, work->v[i].id, &trouble);
		if (worst == MR_OK || ends_round(rc)) {
			*err = trouble;
			worst = rc;
		}
	}
	return worst;
}

static enum mr_rc
do_mail(struct patrol *p, struct mr_error *err)
{
	mr_auto(candidates_done) struct candidates work = { 0 };
	struct mr_error late = { 0 };
	enum mr_rc rc = find_work(p, &work, err);

	if (rc == MR_OK)
		rc = work_through(p, &work, err);
	if (!p->options->dry_run && office_flush(p->room, &late) != MR_OK && rc == MR_OK) {
		*err = late;
		rc = late.code;
	}
	if (p->count.handled > 0)
		patrol_forget_old(p);
	return rc;
}

static enum mr_rc
do_round(struct patrol *p, struct mr_error *err)
{
	enum mr_rc rc = do_mail(p, err);

	if (is_stopped(p))
		return rc;
	if (rc == MR_OK)
		rc = patrol_alerts(p, err);
	if (rc == MR_OK)
		rc = patrol_wakes(p, err);
	if (rc == MR_OK)
		rc = patrol_care(p, err);
	return rc;
}

/* ---- Waiting for more ---- */

static bool
did_something(const struct mr_patrolled *c)
{
	return c->handled + c->failed + c->dead + c->aside > 0;
}

/* Mail that waits or is left alone lies there unread, so waiting for unread mail would not wait: the watch was armed
 * before the round and rings for what came since. */
static void
rest(struct patrol *p, void *watch)
{
	int64_t ms = p->options->rest_ms < PAUSE_MAX_MS ? p->options->rest_ms : PAUSE_MAX_MS;

	if (did_something(&p->count) || ms <= 0 || is_stopped(p))
		return;
	if (watch)
		p->room->driver->watch_wait(p->room, watch, ms);
	else
		(void)poll(NULL, 0, (int)ms);
}

/* Where nobody can hold a message, one patrol at a time goes through a mailbox. */
static enum mr_rc
lock_mailbox(struct patrol *p, void **ret, struct mr_error *err)
{
	if (p->room->driver->abilities & ROOM_HOLDS)
		return MR_OK;
	enum mr_rc rc = notes_lock(p->room, NOTE_KIND, p->self->agent, 0, ret, err);

	if (rc != MR_BUSY)
		return rc;
	return mr_fail(err, MR_BUSY, "another patrol is at the mailbox of '%s'\none is enough: leave it to that one",
	    p->self->agent);
}

enum mr_rc
mr_patrol(struct mr_room *room, const struct mr_self *self, const struct mr_patrol_options *options,
    struct mr_patrolled *ret, struct mr_error *err)
{
	struct patrol p = { .room = room, .self = self, .options = options };
	void *lock = NULL, *watch = NULL;
	struct mr_error ignored = { 0 };
	enum mr_rc rc = notes_able(room, err);

	if (rc == MR_OK)
		rc = patrol_settings_read(&p, err);
	if (rc == MR_OK)
		rc = office_not_fenced(room, self, err);
	if (rc == MR_OK && !options->dry_run)
		rc = lock_mailbox(&p, &lock, err);
	if (rc == MR_OK) {
		if (options->rest_ms > 0 && room->driver->watch)
			(void)room->driver->watch(room, self->agent, &watch, &ignored);
		if (options->patient) /* whoever stays for days sees types that were added or changed */
			types_reread(room);
		rc = do_round(&p, err);
	}
	notes_unlock(room, lock);
	if (rc == MR_OK)
		rest(&p, watch);
	if (watch)
		room->driver->watch_close(room, watch);
	patrol_settings_done(&p.set);
	*ret = p.count;
	return rc;
}
