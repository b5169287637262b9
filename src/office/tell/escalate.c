/* SPDX-License-Identifier: MIT */
/* escalate.c - making an escalation, and what becomes of it: acknowledged, closed, raised when nobody cares. */
#include "office/tell/escalate.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"

#define TEXT_MAX 4000
#define LOCK_WAIT_MS 5000

/* ---- Making one ---- */

struct search {
	const struct mr_escalation *what;
	const char *by;
	struct mr_escalated *ret;
};

static bool
find_same(void *ctx, const struct mr_escalation *e)
{
	struct search *s = ctx;

	if (strcmp(e->by, s->by) != 0 || strcmp(e->text, s->what->text) != 0)
		return true;
	s->ret->repeated = true;
	s->ret->severity = e->severity;
	(void)snprintf(s->ret->id, sizeof(s->ret->id), "%s", e->id);
	return false;
}

static enum mr_rc
put_new(struct mr_room *room, const struct mr_escalation *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	enum mr_rc rc = escalation_write(e, &lines, err);

	return rc == MR_OK ? room->driver->record_put(room, ESCALATION, "", e->id, buf_str(&lines), err) : rc;
}

struct telling {
	unsigned raised; /* as it was when they were told */
	const char *told;
	bool all;
};

static enum mr_rc
note_told(void *ctx, struct mr_escalation *e, struct mr_error *err)
{
	const struct telling *t = ctx;

	(void)err;
	if (e->raised != t->raised) /* another raised it meanwhile, and tells the new route */
		return MR_EMPTY;
	e->told = t->told;
	e->mailed = t->all;
	return MR_OK;
}

/* Who cannot be told now may be told when somebody has mended the route: `stale` tries again. */
static enum mr_rc
tell(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *e, enum mr_level before,
    struct mr_escalated *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf told = BUF_INIT;
	struct mr_error ignored = { 0 };
	enum mr_rc rc = escalation_tell(room, self, e, before, false, ret, &told, err);
	struct telling t = { .raised = e->raised, .told = buf_z(&told), .all = rc == MR_OK };

	if ((rc == MR_OK || rc == MR_INDOUBT) && !told.failed)
		(void)escalation_change(room, e->id, note_told, &t, NULL, &ignored);
	if (rc == MR_OK || rc == MR_INDOUBT)
		return rc;
	struct mr_error why = *err;

	return mr_fail(err, MR_INDOUBT, "escalation '%s' is on record, but nobody could be told: %.200s\n%s", e->id,
	    why.message, why.hint[0] ? why.hint : "`mailroom escalate stale` tries again");
}

static enum mr_rc
check_new(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *what, struct mr_error *err)
{
	enum mr_rc rc = escalation_able(room, err);

	if (rc == MR_OK)
		rc = office_not_fenced(room, self, err);
	if (rc == MR_OK && (!what->text || !*what->text))
		rc = mr_fail(err, MR_REFUSED, "the escalation has no text");
	if (rc == MR_OK && strlen(what->text) > TEXT_MAX)
		rc = mr_fail(
		    err, MR_REFUSED, "the text has %zu bytes: at most %d are allowed", strlen(what->text), TEXT_MAX);
	return rc;
}

/* Under a lock: of two that say the same at once one is made. */
static enum mr_rc
record_new(struct mr_room *room, struct mr_escalation *e, bool force, struct mr_escalated *ret, struct mr_error *err)
{
	struct search search = { .what = e, .by = e->by, .ret = ret };
	void *lock = NULL;
	enum mr_rc rc = MR_OK;

	if (ROOM_HAS(room, record_lock))
		rc = room->driver->record_lock(room, ESCALATION, "", "new", LOCK_WAIT_MS, &lock, err);
	if (rc == MR_OK && !force)
		rc = mr_escalation_each(room, false, find_same, &search, err);
	if (rc == MR_OK && !ret->repeated)
		rc = put_new(room, e, err);
	if (lock)
		room->driver->record_unlock(room, lock);
	return rc;
}

enum mr_rc
mr_escalate(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *what, bool force,
    bool dry_run, struct mr_escalated *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, told = BUF_INIT;
	struct mr_escalation e = *what;
	struct mr_escalated got = { .severity = what->severity };
	char token[MR_TOKEN_LEN + 1];
	enum mr_rc rc = check_new(room, self, what, err);

	if (rc != MR_OK)
		return rc;
	header_clean(&text, str_of(what->text));
	if (!buf_ok(&text))
		return mr_nomem(err);
	token_new(token);
	(void)snprintf(e.id, sizeof(e.id), "esc-%s", token);
	e.text = buf_z(&text);
	e.reason = what->reason ? what->reason : "";
	e.source = what->source ? what->source : "";
	e.related = what->related ? what->related : "";
	e.acked_by = e.closed_by = e.closed_reason = e.told = "";
	e.original = what->severity;
	e.by = self->agent;
	e.at_ms = clock_now_ms();
	if (dry_run)
		rc = escalation_tell(room, self, &e, e.severity, true, &got, &told, err);
	else
		rc = record_new(room, &e, force, &got, err);
	if (rc == MR_OK && !got.repeated) {
		(void)snprintf(got.id, sizeof(got.id), "%s", e.id);
		if (!dry_run)
			rc = tell(room, self, &e, e.severity, &got, err);
	}
	if (rc == MR_OK || rc == MR_INDOUBT)
		*ret = got;
	else
		mr_escalated_done(&got);
	return rc;
}

/* ---- Acknowledging, closing ---- */

struct ending {
	const struct mr_self *self;
	const char *reason; /* NULL: acknowledge */
	bool changed;
};

static enum mr_rc
end_one(void *ctx, struct mr_escalation *e, struct mr_error *err)
{
	struct ending *x = ctx;

	if (e->status == MR_ESCALATION_CLOSED)
		return mr_fail(err, MR_REFUSED,
		    "escalation '%s' was closed by '%.80s'\n`mailroom escalate show %s` tells why", e->id, e->closed_by,
		    e->id);
	if (!x->reason && e->status == MR_ESCALATION_ACKED)
		return MR_EMPTY;
	x->changed = true;
	if (x->reason) {
		e->status = MR_ESCALATION_CLOSED;
		e->closed_by = x->self->agent;
		e->closed_reason = x->reason;
		e->closed_ms = clock_now_ms();
	} else {
		e->status = MR_ESCALATION_ACKED;
		e->acked_by = x->self->agent;
		e->acked_ms = clock_now_ms();
	}
	return MR_OK;
}

static enum mr_rc
end(struct mr_room *room, const char *id, struct ending *x, struct mr_error *err)
{
	char full[MR_ESCALATION_ID_LEN + 1];
	enum mr_rc rc = escalation_find(room, id, full, err);

	if (rc == MR_OK)
		rc = office_not_fenced(room, x->self, err);
	return rc == MR_OK ? escalation_change(room, full, end_one, x, NULL, err) : rc;
}

enum mr_rc
mr_escalation_ack(
    struct mr_room *room, const struct mr_self *self, const char *id, bool *ret_changed, struct mr_error *err)
{
	struct ending x = { .self = self };
	enum mr_rc rc = end(room, id, &x, err);

	if (rc == MR_OK && ret_changed)
		*ret_changed = x.changed;
	return rc;
}

enum mr_rc
mr_escalation_close(
    struct mr_room *room, const struct mr_self *self, const char *id, const char *reason, struct mr_error *err)
{
	struct ending x = { .self = self, .reason = reason };

	if (!reason || !*reason)
		return mr_fail(err, MR_REFUSED, "an escalation is closed with a reason");
	return end(room, id, &x, err);
}

/* ---- What nobody cares for ---- */

static int64_t
stale_after(const struct mr_room *room)
{
	const char *line = mr_room_setting(room, "Escalate-Stale");
	int64_t ms = 0;

	return line && duration_parse(str_of(line), &ms) && ms > 0 ? ms : ESCALATION_STALE_MS;
}

/* Its age counts from when it was last raised, or two runs in a row would raise it twice. */
static bool
is_stale(const struct mr_escalation *e, int64_t after_ms)
{
	int64_t since = e->raised_ms > e->at_ms ? e->raised_ms : e->at_ms;

	return e->status == MR_ESCALATION_OPEN && e->severity < MR_LEVEL_CRITICAL &&
	       e->raised < ESCALATION_RAISED_MAX && clock_now_ms() - since >= after_ms;
}

struct raising {
	int64_t after_ms;
	bool changed;
};

/* Looked at again under its lock: another run may have raised it this very moment. */
static enum mr_rc
raise_one(void *ctx, struct mr_escalation *e, struct mr_error *err)
{
	struct raising *r = ctx;

	(void)err;
	if (!is_stale(e, r->after_ms))
		return MR_EMPTY;
	e->severity = (enum mr_level)(e->severity + 1);
	e->raised++;
	e->raised_ms = clock_now_ms();
	e->mailed = false;
	e->told = "";
	r->changed = true;
	return MR_OK;
}

struct stale_list {
	int64_t after_ms;
	struct mr_names ids;
};

static bool
note_stale(void *ctx, const struct mr_escalation *e)
{
	struct stale_list *l = ctx;
	bool untold = e->status == MR_ESCALATION_OPEN && !e->mailed;

	return !(untold || is_stale(e, l->after_ms)) || names_add(&l->ids, str_of(e->id));
}

static enum mr_rc
see_to(struct mr_room *room, const struct mr_self *self, const char *id, int64_t after_ms, bool dry_run,
    mr_escalation_stale_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_escalation_done) struct mr_escalation now = { 0 };
	mr_auto(mr_escalated_done) struct mr_escalated told = { 0 };
	mr_auto(buf_done) struct buf names = BUF_INIT;
	struct raising r = { .after_ms = after_ms };
	enum mr_rc rc;

	if (dry_run) {
		rc = mr_escalation_get(room, id, &now, err);
		if (rc == MR_OK && is_stale(&now, after_ms)) {
			now.severity = (enum mr_level)(now.severity + 1);
			now.raised++;
			now.told = "";
		}
	} else {
		rc = escalation_change(room, id, raise_one, &r, &now, err);
	}
	if (rc != MR_OK || (!dry_run && !r.changed && now.mailed)) /* another run did it */
		return rc;
	enum mr_level before =
	    now.raised > 0 && now.severity > MR_LEVEL_LOW ? (enum mr_level)(now.severity - 1) : now.severity;

	(void)snprintf(told.id, sizeof(told.id), "%s", now.id);
	told.severity = now.severity;
	rc = dry_run ? escalation_tell(room, self, &now, before, true, &told, &names, err)
		     : tell(room, self, &now, before, &told, err);
	if (fn && (rc == MR_OK || rc == MR_INDOUBT))
		fn(ctx, &now, &told);
	return rc;
}

enum mr_rc
mr_escalation_stale(struct mr_room *room, const struct mr_self *self, bool dry_run, mr_escalation_stale_fn *fn,
    void *ctx, struct mr_error *err)
{
	struct stale_list list = { .after_ms = stale_after(room) };
	struct mr_error trouble = { 0 };
	enum mr_rc rc = escalation_able(room, err), worst = MR_OK;

	if (rc == MR_OK)
		rc = office_not_fenced(room, self, err);
	if (rc == MR_OK)
		rc = mr_escalation_each(room, false, note_stale, &list, err);
	for (size_t i = 0; rc == MR_OK && i < list.ids.n; i++) {
		struct mr_error one = { 0 };
		enum mr_rc got = see_to(room, self, list.ids.v[i], list.after_ms, dry_run, fn, ctx, &one);

		if (got != MR_OK) { /* the others are seen to all the same */
			worst = got;
			trouble = one;
		}
	}
	mr_names_done(&list.ids);
	if (rc == MR_OK && worst != MR_OK) {
		*err = trouble;
		rc = worst;
	}
	return rc;
}
