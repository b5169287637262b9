/* SPDX-License-Identifier: MIT */
/*
 * export.c - all mail of a room into another, of any two kinds.
 *
 * Each message is delivered as what it is, one that keeps its date: the other room knows by its identity whether it has
 * it already, so a run that was killed is simply repeated. Its state is set after that and on every repetition, because
 * a kill may have come in between.
 *
 * An answer names what it answers as the other room calls it, so that must be there first. Agents are copied one after
 * the other, each in order of time; an answer that comes too early is put off until all others are done.
 */
#include "base/error.h"
#include "office/mail/export.h"

#define FLUSH_EVERY 64

static void
export_done(struct export_run *e)
{
	crossing_done(&e->c);
	index_done(&e->x);
	free(e->late);
}

/* ---- What is told ---- */

static bool
tell(struct export_run *e, const char *what, const struct mr_error *trouble)
{
	struct mr_export_step step = {
		.done = e->done,
		.total = e->x.n > e->done ? e->x.n : e->done,
		.agent = e->c.agents.v[e->agent].here,
		.what = what,
		.trouble = trouble,
	};

	if (e->fn && !e->fn(e->ctx, &step))
		e->ret->stopped = true;
	return !e->ret->stopped;
}

static void
tell_unreadable(void *ctx, const char *path, const struct mr_error *what)
{
	struct export_run *e = ctx;

	e->ret->skipped++;
	(void)tell(e, path, what);
}

static bool
die(struct export_run *e, enum mr_rc rc, const struct mr_error *why)
{
	e->fatal = rc;
	*e->err = *why;
	return false;
}

/* ---- One message ---- */

static enum mr_rc
flush_now_and_then(struct export_run *e, struct mr_error *err)
{
	if (++e->unflushed < FLUSH_EVERY)
		return MR_OK;
	e->unflushed = 0;
	return office_flush(e->c.to, err);
}

static bool
copy_one(void *ctx, const struct mr_message *msg)
{
	struct export_run *e = ctx;
	struct mr_error err = { 0 };
	enum mr_rc rc;

	e->too_early = false;
	rc = export_message(e, msg, &err);
	if (rc == MR_OK && e->too_early)
		return true;
	if (rc == MR_FULL || rc == MR_NOMEM) /* it will not be better with the next */
		return die(e, rc, &err);
	e->done++;
	if (rc == MR_OK)
		e->ret->copied++;
	else if (rc == MR_EXISTS)
		e->ret->there++;
	else
		e->ret->skipped++;
	bool fine = rc == MR_OK || rc == MR_EXISTS;

	if (!tell(e, fine ? msg->id : msg->path, fine ? NULL : &err))
		return false;
	err = (struct mr_error){ 0 };
	rc = e->options->dry_run ? MR_OK : flush_now_and_then(e, &err);
	return rc == MR_OK || die(e, rc, &err);
}

/* ---- The run ---- */

static enum mr_rc
copy_agent(struct export_run *e, size_t number, struct mr_error *err)
{
	struct scan_request want = {
		.folders = MAIL_FOLDERS,
		.depth = SCAN_BODIES,
		.trouble = tell_unreadable,
		.trouble_ctx = e,
	};
	enum mr_rc rc;

	e->agent = number;
	rc = e->c.from->driver->scan(e->c.from, e->c.agents.v[number].here, &want, copy_one, e, err);
	if (rc == MR_NOTFOUND) { /* a name without a mailbox */
		*err = (struct mr_error){ 0 };
		rc = MR_OK;
	}
	return e->fatal != MR_OK ? e->fatal : rc;
}

static int
by_time(const void *a, const void *b)
{
	const struct late *x = a, *y = b;

	return memcmp(x->id, y->id, MR_ID_LEN);
}

static enum mr_rc
copy_late(struct export_run *e)
{
	e->last_chance = true;
	if (e->late_n > 1)
		qsort(e->late, e->late_n, sizeof(*e->late), by_time);
	for (size_t i = 0; i < e->late_n && !e->ret->stopped; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error trouble = { 0 };
		enum mr_rc rc;

		e->agent = e->late[i].agent;
		rc = e->c.from->driver->fetch(
		    e->c.from, e->c.agents.v[e->agent].here, e->late[i].id, MAIL_FOLDERS, SCAN_BODIES, &msg, &trouble);
		if (rc == MR_NOTFOUND) /* removed meanwhile */
			continue;
		if (rc != MR_OK)
			tell_unreadable(e, e->late[i].id, &trouble);
		else if (!copy_one(e, &msg) && e->fatal != MR_OK)
			return e->fatal;
	}
	return MR_OK;
}

static bool
has_mail(const struct export_run *e, size_t agent)
{
	for (size_t i = 0; i < e->x.n; i++)
		if (e->x.v[i].agent == agent)
			return true;
	return false;
}

static enum mr_rc
prepare(struct export_run *e, struct mr_error *err)
{
	enum mr_rc rc = crossing_plan(&e->c, e->options, err);

	for (size_t i = 0; i < e->c.agents.n && rc == MR_OK; i++)
		rc = index_agent(&e->x, e->c.from, e->c.agents.v[i].here, i, MAIL_FOLDERS, err);
	if (rc == MR_OK)
		rc = index_sort(&e->x, err);
	for (size_t i = 0; i < e->c.agents.n && rc == MR_OK && !e->options->dry_run; i++)
		if (strcmp(e->c.agents.v[i].here, OPERATOR) != 0 || has_mail(e, i)) /* every room has its own */
			rc = crossing_make(&e->c, i, err);
	return rc;
}

enum mr_rc
mr_export(struct mr_room *from, struct mr_room *to, const struct mr_export_options *options, mr_export_fn *fn,
    void *ctx, struct mr_exported *ret, struct mr_error *err)
{
	mr_auto(export_done) struct export_run e = {
		.c = { .from = from, .to = to }, .options = options, .fn = fn, .ctx = ctx, .ret = ret, .err = err
	};
	enum mr_rc rc, flushed;

	*ret = (struct mr_exported){ 0 };
	if (strcmp(from->spec, to->spec) == 0)
		return mr_fail(err, MR_REFUSED, "cannot copy '%s' into itself", from->spec);
	if (!ROOM_HAS(to, add_agent)) {
		(void)office_lacks(to, "way to take in mail", err);
		return mr_hint(err, "it is only read");
	}
	rc = prepare(&e, err);
	ret->agents = e.c.agents.n;
	for (size_t i = 0; i < e.c.agents.n && rc == MR_OK && !ret->stopped; i++)
		rc = copy_agent(&e, i, err);
	if (rc == MR_OK && !ret->stopped)
		rc = copy_late(&e);
	if (options->dry_run)
		return rc;
	struct mr_error unsynced = { 0 };

	flushed = office_flush(to, &unsynced);
	if (rc == MR_OK && flushed != MR_OK) {
		*err = unsynced;
		rc = flushed;
	}
	return rc;
}
