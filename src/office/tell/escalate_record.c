/* SPDX-License-Identifier: MIT */
/* escalate_record.c - escalations as records: header lines, changed under a lock. */
#include "office/mail/mail.h"
#include "office/tell/escalate.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include <stdlib.h>

static const char *const levels[] = { "low", "medium", "high", "critical" };
static const char *const states[] = { "open", "acknowledged", "closed" };

const char *
mr_level_word(enum mr_level level)
{
	return levels[level <= MR_LEVEL_CRITICAL ? level : MR_LEVEL_MEDIUM];
}

const char *
mr_escalation_status_word(enum mr_escalation_status status)
{
	return states[status <= MR_ESCALATION_CLOSED ? status : MR_ESCALATION_OPEN];
}

enum mr_rc
mr_level_parse(const char *word, enum mr_level *ret, struct mr_error *err)
{
	for (unsigned i = 0; i <= MR_LEVEL_CRITICAL; i++)
		if (ascii_caseeq(word, levels[i])) {
			*ret = (enum mr_level)i;
			return MR_OK;
		}
	return mr_fail(err, MR_REFUSED, "'%.40s' is no severity\ncritical, high, medium or low", word);
}

void
mr_escalation_done(struct mr_escalation *e)
{
	if (!e)
		return;
	arena_free(e->own);
	*e = (struct mr_escalation){ 0 };
}

enum mr_rc
escalation_able(const struct mr_room *room, struct mr_error *err)
{
	if (ROOM_HAS(room, record_put))
		return MR_OK;
	(void)office_lacks(room, "escalations", err);
	return mr_hint(err, "send mail to whom it concerns");
}

/* ---- Header lines ---- */

static void
add_text(struct buf *out, const char *name, const char *value, enum mr_rc *rc, struct mr_error *err)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	if (*rc != MR_OK || !value || !*value)
		return;
	header_clean(&clean, str_of(value));
	*rc = buf_ok(&clean) ? header_add(out, name, str_trim(buf_str(&clean)), err) : mr_nomem(err);
}

static void
add_time(struct buf *out, const char *name, int64_t ms, enum mr_rc *rc, struct mr_error *err)
{
	char at[RFC3339_LEN + 1];

	if (ms == 0)
		return;
	time_rfc3339(ms, at);
	add_text(out, name, at, rc, err);
}

enum mr_rc
escalation_write(const struct mr_escalation *e, struct buf *out, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;
	char raised[16];

	(void)snprintf(raised, sizeof(raised), "%u", e->raised);
	add_text(out, "Text", e->text, &rc, err);
	add_text(out, "Severity", mr_level_word(e->severity), &rc, err);
	add_text(out, "Original-Severity", mr_level_word(e->original), &rc, err);
	add_text(out, "Status", mr_escalation_status_word(e->status), &rc, err);
	add_text(out, "Reason", e->reason, &rc, err);
	add_text(out, "Source", e->source, &rc, err);
	add_text(out, "Related", e->related, &rc, err);
	add_text(out, "By", e->by, &rc, err);
	add_time(out, "At", e->at_ms, &rc, err);
	add_text(out, "Mailed", e->mailed ? "yes" : "no", &rc, err);
	add_text(out, "Told", e->told, &rc, err);
	if (e->raised > 0)
		add_text(out, "Raised", raised, &rc, err);
	add_time(out, "Raised-At", e->raised_ms, &rc, err);
	add_text(out, "Acked-By", e->acked_by, &rc, err);
	add_time(out, "Acked-At", e->acked_ms, &rc, err);
	add_text(out, "Closed-By", e->closed_by, &rc, err);
	add_time(out, "Closed-At", e->closed_ms, &rc, err);
	add_text(out, "Closed-Reason", e->closed_reason, &rc, err);
	if (rc == MR_OK && !buf_ok(out))
		rc = mr_nomem(err);
	return rc;
}

static const char *
text_of(const struct record *r, const char *name, struct arena **own, bool *failed)
{
	const char *value = record_get(r, name);
	const char *kept = value ? arena_dup(own, str_of(value)) : "";

	if (!kept)
		*failed = true;
	return kept ? kept : "";
}

static enum mr_escalation_status
status_of(const struct record *r)
{
	const char *word = record_get(r, "Status");

	for (unsigned i = 0; word && i <= MR_ESCALATION_CLOSED; i++)
		if (ascii_caseeq(word, states[i]))
			return (enum mr_escalation_status)i;
	return MR_ESCALATION_OPEN;
}

static enum mr_level
level_of(const struct record *r, const char *name, enum mr_level otherwise)
{
	const char *word = record_get(r, name);
	struct mr_error ignored = { 0 };
	enum mr_level level = otherwise;

	if (word)
		(void)mr_level_parse(word, &level, &ignored);
	return level;
}

enum mr_rc
escalation_parse(const char *id, struct mr_str text, struct mr_escalation *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record r = { 0 };
	struct arena *own = NULL;
	bool failed = false;
	enum mr_rc rc = record_parse(text, &r, err);

	if (rc != MR_OK)
		return mr_wrap(err, "escalation '%s'", id);
	struct mr_escalation e = {
		.severity = level_of(&r, "Severity", MR_LEVEL_MEDIUM),
		.status = status_of(&r),
		.text = text_of(&r, "Text", &own, &failed),
		.reason = text_of(&r, "Reason", &own, &failed),
		.source = text_of(&r, "Source", &own, &failed),
		.related = text_of(&r, "Related", &own, &failed),
		.by = text_of(&r, "By", &own, &failed),
		.told = text_of(&r, "Told", &own, &failed),
		.acked_by = text_of(&r, "Acked-By", &own, &failed),
		.closed_by = text_of(&r, "Closed-By", &own, &failed),
		.closed_reason = text_of(&r, "Closed-Reason", &own, &failed),
		.at_ms = record_time(&r, "At"),
		.acked_ms = record_time(&r, "Acked-At"),
		.closed_ms = record_time(&r, "Closed-At"),
		.raised_ms = record_time(&r, "Raised-At"),
		.raised = (unsigned)record_int(&r, "Raised", 0),
	};
	const char *mailed = record_get(&r, "Mailed");

	e.original = level_of(&r, "Original-Severity", e.severity);
	e.mailed = mailed && ascii_caseeq(mailed, "yes");
	(void)snprintf(e.id, sizeof(e.id), "%s", id);
	e.own = own;
	if (failed) {
		mr_escalation_done(&e);
		return mr_nomem(err);
	}
	*ret = e;
	return MR_OK;
}

/* ---- One of them ---- */

struct change {
	const char *id;
	escalation_edit_fn *edit;
	void *ctx;
	struct mr_escalation *ret;
};

static enum mr_rc
edit_record(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	struct change *c = ctx;
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	mr_auto(mr_escalation_done) struct mr_escalation e = { 0 };
	enum mr_rc rc;

	if (!exists)
		return mr_fail(err, MR_NOTFOUND, "no escalation '%s'", c->id);
	rc = escalation_parse(c->id, buf_str(text), &e, err);
	if (rc == MR_OK)
		rc = c->edit(c->ctx, &e, err);
	if (rc != MR_OK && rc != MR_EMPTY)
		return rc;
	enum mr_rc wrote = escalation_write(&e, &lines, err);

	if (wrote == MR_OK && c->ret)
		wrote = escalation_parse(c->id, buf_str(&lines), c->ret, err);
	if (wrote != MR_OK)
		return wrote;
	buf_clear(text);
	buf_add(text, buf_str(&lines));
	return rc == MR_OK && !buf_ok(text) ? mr_nomem(err) : rc;
}

enum mr_rc
escalation_change(struct mr_room *room, const char *id, escalation_edit_fn *edit, void *ctx, struct mr_escalation *ret,
    struct mr_error *err)
{
	struct change change = { .id = id, .edit = edit, .ctx = ctx, .ret = ret };
	enum mr_rc rc = room_record_change(room, ESCALATION, "", id, edit_record, &change, err);

	if (rc != MR_EMPTY)
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}

struct finding {
	struct mr_str end;
	struct mr_names hits;
};

static bool
note_hit(void *ctx, const char *name)
{
	struct finding *f = ctx;
	mr_auto(buf_done) struct buf end = BUF_INIT;

	buf_add(&end, f->end);
	return !str_ends(str_of(name), buf_z(&end)) || names_add(&f->hits, str_of(name));
}

enum mr_rc
escalation_find(struct mr_room *room, const char *given, char ret[MR_ESCALATION_ID_LEN + 1], struct mr_error *err)
{
	struct finding f = { .end = str_of(given) };
	enum mr_rc rc = escalation_able(room, err);

	if (rc == MR_OK && f.end.len >= SHORT_ID_MIN)
		rc = room->driver->record_each(room, ESCALATION, "", note_hit, &f, err);
	if (rc == MR_OK && f.hits.n == 0) {
		(void)mr_fail(err, MR_NOTFOUND, "no escalation '%.40s'", given);
		rc = mr_hint(err, "`mailroom escalate list --all` shows them; the last %d characters of an id will do",
		    SHORT_ID_MIN);
	} else if (rc == MR_OK && f.hits.n > 1) {
		(void)mr_fail(err, MR_REFUSED, "%zu escalations end in '%.40s'", f.hits.n, given);
		rc = mr_hint(err, "'%s', '%s'", f.hits.v[0], f.hits.v[1]);
	} else if (rc == MR_OK) {
		(void)snprintf(ret, MR_ESCALATION_ID_LEN + 1, "%s", f.hits.v[0]);
	}
	mr_names_done(&f.hits);
	return rc;
}

enum mr_rc
mr_escalation_get(struct mr_room *room, const char *id, struct mr_escalation *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char full[MR_ESCALATION_ID_LEN + 1];
	enum mr_rc rc = escalation_find(room, id, full, err);

	if (rc == MR_OK)
		rc = room->driver->record_get(room, ESCALATION, "", full, &text, err);
	return rc == MR_OK ? escalation_parse(full, buf_str(&text), ret, err) : rc;
}

/* ---- All of them ---- */

static bool
note_name(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

static int
by_age(const void *va, const void *vb)
{
	const struct mr_escalation *a = va, *b = vb;

	if (a->at_ms != b->at_ms)
		return a->at_ms < b->at_ms ? -1 : 1;
	return strcmp(a->id, b->id);
}

enum mr_rc
mr_escalation_each(struct mr_room *room, bool all, mr_escalation_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	size_t n = 0;
	enum mr_rc rc = escalation_able(room, err);

	if (rc == MR_OK)
		rc = room->driver->record_each(room, ESCALATION, "", note_name, &names, err);
	if (rc != MR_OK || names.n == 0)
		return rc;
	struct mr_escalation *v = calloc(names.n, sizeof(*v));

	if (!v)
		return mr_nomem(err);
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct mr_error ignored = { 0 };

		/* One that cannot be read does not hide the others. */
		if (room->driver->record_get(room, ESCALATION, "", names.v[i], &text, &ignored) == MR_OK &&
		    escalation_parse(names.v[i], buf_str(&text), &v[n], &ignored) == MR_OK)
			n++;
	}
	if (n > 1)
		qsort(v, n, sizeof(*v), by_age);
	bool more = true;

	for (size_t i = 0; i < n; i++) {
		if (more && (all || v[i].status != MR_ESCALATION_CLOSED))
			more = fn(ctx, &v[i]);
		mr_escalation_done(&v[i]);
	}
	free(v);
	return MR_OK;
}
