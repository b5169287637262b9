/* SPDX-License-Identifier: MIT */
/*
 * escalate.c - trouble that a person or agent must act on. An escalation is a record (kind "escalation", header lines)
 * and mail to the addresses on the route of its severity:
 *
 *	Escalate-Low, -Medium, -High, -Critical: addresses, with commas between them     lines of the room's settings
 *
 * By default the route is the operator, and the mayor if there is one. The record is written first, so that the next
 * `escalate stale` finds an escalation that was cut off before its mail was sent.
 *
 * A closed one is moved to the owner "closed", so that open ones are found without the history, and is removed after 90
 * days (room_overs). It is first written as closed, and for a moment it is in both places. A kill leaves a closed one
 * among the open ones, as earlier versions did; the next new escalation moves some of them.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/text.h"
#include "office/mail/mail.h"
#include <stddef.h>
#include <stdlib.h>

#define ESCALATION "escalation" /* kind of record */
#define CLOSED "closed"         /* its owner when it is closed */
#define AWAY_MAX 32             /* closed ones that one new escalation moves */
#define RAISED_MAX 2
#define STALE_MS ((int64_t)4 * 3600 * 1000)
#define TEXT_MAX 4000
#define LOCK_WAIT_MS 5000
#define MAYOR "mayor"
#define SUBJECT_CHARS 160

static const char *const levels[] = { "low", "medium", "high", "critical", NULL };
static const char *const states[] = { "open", "acknowledged", "closed", NULL };

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
	return mr_fail(err, MR_REFUSED, "'%.40s' is not a severity\nuse critical, high, medium or low", word);
}

void
mr_escalation_done(struct mr_escalation *e)
{
	if (!e)
		return;
	arena_free(e->own);
	*e = (struct mr_escalation){ 0 };
}

void
mr_escalated_done(struct mr_escalated *e)
{
	if (!e)
		return;
	mr_names_done(&e->to);
	arena_free(e->own);
	*e = (struct mr_escalated){ 0 };
}

static enum mr_rc
check_able(const struct mr_room *room, struct mr_error *err)
{
	if (ROOM_HAS(room, record_put))
		return MR_OK;
	(void)room_lacks(room, "escalations", err);
	return mr_hint(err, "send mail to the agents concerned");
}

/* ---- The record ---- */

#define AT(member) offsetof(struct mr_escalation, member)
static const struct record_field fields[] = {
	{ "Text", RECORD_TEXT, AT(text) },
	{ "Reason", RECORD_TEXT, AT(reason) },
	{ "Source", RECORD_TEXT, AT(source) },
	{ "Related", RECORD_TEXT, AT(related) },
	{ "By", RECORD_TEXT, AT(by) },
	{ "At", RECORD_TIME, AT(at_ms) },
	{ "Mailed", RECORD_YES, AT(mailed) },
	{ "Told", RECORD_TEXT, AT(told) },
	{ "Raised", RECORD_SOME, AT(raised) },
	{ "Raised-At", RECORD_TIME, AT(raised_ms) },
	{ "Acked-By", RECORD_TEXT, AT(acked_by) },
	{ "Acked-At", RECORD_TIME, AT(acked_ms) },
	{ "Closed-By", RECORD_TEXT, AT(closed_by) },
	{ "Closed-At", RECORD_TIME, AT(closed_ms) },
	{ "Closed-Reason", RECORD_TEXT, AT(closed_reason) },
};

static void
write_lines(const struct mr_escalation *e, struct buf *out)
{
	record_add(out, "Severity", levels[e->severity]);
	record_add(out, "Original-Severity", levels[e->original]);
	record_add(out, "Status", states[e->status]);
	record_write(out, RECORD_FIELDS(fields), e);
}

static enum mr_rc
load(struct mr_room *room, const char *id, struct mr_escalation *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record r = { 0 };
	struct mr_escalation e = { 0 };
	enum mr_rc rc = room->driver->record_get(room, ESCALATION, "", id, &text, err);

	if (rc == MR_NOTFOUND)
		rc = room->driver->record_get(room, ESCALATION, CLOSED, id, &text, err);
	TRY(rc);
	if (record_parse(buf_str(&text), &r, err) != MR_OK)
		return mr_wrap(err, "escalation '%s'", id);
	record_read(&r, RECORD_FIELDS(fields), &e);
	e.severity = (enum mr_level)record_word(&r, "Severity", levels, MR_LEVEL_MEDIUM);
	e.original = (enum mr_level)record_word(&r, "Original-Severity", levels, e.severity);
	e.status = (enum mr_escalation_status)record_word(&r, "Status", states, MR_ESCALATION_OPEN);
	(void)snprintf(e.id, sizeof(e.id), "%s", id);
	e.own = r.own; /* the strings belong to the escalation now */
	r.own = NULL;
	*ret = e;
	return MR_OK;
}

struct edit { /* an escalation under its lock; its strings may be borrowed until it is saved */
	struct record_edit record;
	struct mr_escalation e;
};

static void
edit_done(struct edit *x)
{
	record_edit_done(&x->record);
	mr_escalation_done(&x->e);
}

static enum mr_rc
edit_begin(struct edit *x, struct mr_room *room, const char *id, struct mr_error *err)
{
	TRY(record_edit_begin(&x->record, room, ESCALATION, "", id, err));
	return load(room, id, &x->e, err); /* a closed one may be moved away: it is not saved again */
}

static enum mr_rc
edit_save(struct edit *x, struct mr_error *err)
{
	buf_clear(&x->record.text);
	write_lines(&x->e, &x->record.text);
	return record_edit_save(&x->record, err);
}

/* The ids; with `closed` also those that were moved. */
static enum mr_rc
list(struct mr_room *room, bool closed, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names away = { 0 };

	TRY(office_records(room, ESCALATION, "", ret, err));
	if (closed)
		TRY(office_records(room, ESCALATION, CLOSED, &away, err));
	for (size_t i = 0; i < away.n; i++)
		TRY(mr_got(names_add_once(ret, away.v[i]), err));
	return MR_OK;
}

/* Moves the record of a closed escalation. Best effort. */
static void
put_away(struct mr_room *room, const char *id)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const struct room_driver *d = room->driver;

	if (d->record_get(room, ESCALATION, "", id, &text, IGNORED) == MR_OK &&
	    d->record_put(room, ESCALATION, CLOSED, id, buf_str(&text), IGNORED) == MR_OK)
		(void)d->record_drop(room, ESCALATION, "", id, IGNORED);
}

/* The full id for the end of an id. */
static enum mr_rc
find(struct mr_room *room, const char *given, char ret[MR_ESCALATION_ID_LEN + 1], struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	const char *hits[2] = { 0 };
	size_t n = 0;

	TRY(check_able(room, err));
	if (strlen(given) >= SHORT_ID_MIN)
		TRY(list(room, true, &names, err));
	for (size_t i = 0; i < names.n; i++)
		if (str_ends(str_of(names.v[i]), given) && n++ < 2)
			hits[n - 1] = names.v[i];
	if (n == 0)
		return mr_fail(err, MR_NOTFOUND,
		    "no escalation '%.40s'\n"
		    "`mailroom escalate list --all` shows them; the last %d characters of an id will do",
		    given, SHORT_ID_MIN);
	if (n > 1)
		return mr_fail(err, MR_REFUSED, "%zu escalations end in '%.40s'\ngive more of the id: '%s', '%s'", n,
		    given, hits[0], hits[1]);
	(void)snprintf(ret, MR_ESCALATION_ID_LEN + 1, "%s", hits[0]);
	return MR_OK;
}

enum mr_rc
mr_escalation_get(struct mr_room *room, const char *id, struct mr_escalation *ret, struct mr_error *err)
{
	char full[MR_ESCALATION_ID_LEN + 1];

	TRY(find(room, id, full, err));
	return load(room, full, ret, err);
}

static int
by_age(const void *va, const void *vb)
{
	const struct mr_escalation *a = va, *b = vb;

	return ORDER(a->at_ms, b->at_ms) ?: strcmp(a->id, b->id);
}

/* Sorted, the oldest first. ret_away (or NULL) gets the ids of closed ones among the open ones. */
static enum mr_rc
load_all(struct mr_room *room, bool closed, struct mr_escalations *ret, struct mr_names *ret_away, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(roll_done) struct roll l = { 0 };

	TRY(check_able(room, err));
	TRY(list(room, closed, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(mr_escalation_done) struct mr_escalation e = { 0 };

		/* An unreadable one does not hide the others. */
		if (load(room, names.v[i], &e, IGNORED) != MR_OK)
			continue;
		if (e.status == MR_ESCALATION_CLOSED && ret_away && ret_away->n < AWAY_MAX)
			(void)names_add(ret_away, str_of(e.id));
		if (!closed && e.status == MR_ESCALATION_CLOSED)
			continue;
		struct mr_escalation *kept = roll_add(&l, sizeof(*kept));

		TRY(mr_got(kept, err));
		roll_join(&l, e.own);
		e.own = NULL;
		*kept = e;
	}
	if (l.n > 1)
		qsort(l.v, l.n, sizeof(struct mr_escalation), by_age);
	*ret = (struct mr_escalations){ .v = l.v, .n = l.n, .own = roll_take(&l) };
	return MR_OK;
}

enum mr_rc
mr_escalation_list(struct mr_room *room, bool all, struct mr_escalations *ret, struct mr_error *err)
{
	return load_all(room, all, ret, NULL, err);
}

/* ---- The mail ---- */

static const char *const route_settings[] = { "Escalate-Low", "Escalate-Medium", "Escalate-High", "Escalate-Critical" };

/* The agents to be told now. */
static enum mr_rc
find_route(
    struct mr_room *room, const char *self, const struct mr_escalation *e, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf route = BUF_INIT;
	const char *line = mr_room_setting(room, route_settings[e->severity]);
	struct mr_str rest, one, told;

	if (line && line[strspn(line, ", \t")]) {
		buf_adds(&route, line);
	} else { /* an agent is not told of its own escalation, unless there is nobody else */
		bool mayor = strcmp(self, MAYOR) != 0 && agent_exists(room, MAYOR, IGNORED) == MR_OK;

		buf_adds(&route, strcmp(self, OPERATOR) != 0 || !mayor ? OPERATOR : "");
		buf_adds(&route, mayor ? "," MAYOR : "");
	}
	for (rest = buf_str(&route); str_cut(&rest, ',', &one);) {
		struct mr_str before = str_of(e->told ? e->told : "");
		bool known = (one = str_trim(one)).len == 0;

		while (!known && str_cut(&before, ',', &told))
			known = str_eq(str_trim(told), one);
		TRY(mr_got(known || names_add(ret, one), err));
	}
	return mr_got(buf_ok(&route), err);
}

static void
add_upper(struct buf *out, enum mr_level level)
{
	for (const char *c = mr_level_word(level); *c; c++)
		buf_addc(out, (char)(*c - 'a' + 'A'));
}

/* MR_OK also if the delivery is in doubt: any later command completes it. */
static enum mr_rc
send_to(struct mr_room *room, const struct mr_self *self, struct mr_draft *draft, const char *const *to,
    struct mr_escalated *ret, struct mr_error *err)
{
	struct mr_receipt receipt = { 0 };

	draft->to = to;
	enum mr_rc rc = mr_send(room, self, draft, &receipt, err);

	if (rc == MR_OK || rc == MR_INDOUBT) {
		for (size_t i = 0; i < receipt.to.n; i++)
			(void)names_add_once(&ret->to, receipt.to.v[i]);
		if (!ret->message[0])
			(void)snprintf(ret->message, sizeof(ret->message), "%s", receipt.id);
		rc = MR_OK;
	}
	mr_receipt_done(&receipt);
	return rc;
}

/* All in one mail, so that they can talk to each other; if that is refused, each that can be reached. The key makes a
 * repeated call send nothing twice. */
static enum mr_rc
send_to_all(struct mr_room *room, const struct mr_self *self, struct mr_draft *draft, const struct mr_names *route,
    struct mr_escalated *ret, struct buf *told, struct mr_error *err)
{
	const char *whole_key = draft->key;
	enum mr_rc rc = send_to(room, self, draft, names_list(route), ret, err);
	mr_auto(roll_done) struct roll failed = { 0 };

	for (size_t i = 0; i < route->n; i++) {
		const char *one[] = { route->v[i], NULL };
		char key[168];

		(void)snprintf(key, sizeof(key), "%.40s-%.120s", whole_key, route->v[i]);
		draft->key = key;
		if (rc == MR_OK || send_to(room, self, draft, one, ret, err) == MR_OK) {
			buf_addf(told, "%s%s", told->len > 0 ? ", " : "", route->v[i]);
			continue;
		}
		struct mr_untold *untold = roll_add(&failed, sizeof(*untold));

		if (untold)
			*untold = (struct mr_untold){ roll_str(&failed, route->v[i]), roll_str(&failed, err->message) };
	}
	ret->failed = failed.v;
	ret->failed_n = failed.n;
	ret->own = roll_take(&failed);
	return ret->failed_n < route->n ? MR_OK : rc;
}

/* Tells the agents on the route who were not told yet (e->told), and puts those who got the mail into ret; ret_told
 * gets all who were told so far, in the order of the route. Safe to repeat. `before`: its former severity if it was
 * raised; else its own. MR_INDOUBT: not all could be told. */
static enum mr_rc
send_mail(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *e, enum mr_level before,
    bool dry_run, struct mr_escalated *ret, struct buf *ret_told, struct mr_error *err)
{
	static const enum mr_priority priorities[] = { MR_LOW, MR_NORMAL, MR_HIGH, MR_URGENT };
	const struct mr_header category = { "GT-Type", "escalation" }; /* Gas Town's name for it */
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names route = { 0 };
	char key[MR_ESCALATION_ID_LEN + 16], first[151];

	buf_adds(ret_told, e->told ? e->told : "");
	TRY(find_route(room, self->agent, e, &route, err));
	if (route.n == 0)
		return MR_OK;
	buf_addc(&subject, '[');
	if (before != e->severity) {
		add_upper(&subject, before);
		buf_adds(&subject, "\xE2\x86\x92");
	}
	add_upper(&subject, e->severity);
	buf_adds(&subject, before != e->severity ? "] Re-escalated: " : "] ");
	text_clean_line(&subject, utf8_cut(str_of(e->text), SUBJECT_CHARS));
	buf_addf(&body, "Escalation ID: %s\nSeverity: %s\nFrom: %s\n", e->id, mr_level_word(e->severity), e->by);
	if (*e->reason)
		buf_addf(&body, "Reason: %s\n", e->reason);
	if (*e->source)
		buf_addf(&body, "Source: %s\n", e->source);
	if (*e->related)
		buf_addf(&body, "Related: %s\n", e->related);
	buf_addf(&body, "\n%s\n\nTo acknowledge it:       mailroom escalate ack %s\n", e->text, e->id);
	buf_addf(&body, "When it is settled:      mailroom escalate close %s --reason TEXT\n", e->id);
	TRY(mr_got(buf_ok(&subject) && buf_ok(&body), err));
	(void)snprintf(key, sizeof(key), "%s-%u", e->id, e->raised);
	struct mr_draft draft = {
		.subject = buf_z(&subject),
		.body = body.ptr,
		.body_len = body.len,
		.type = before != e->severity ? "RE_ESCALATED" : "ESCALATE",
		.headers = &category,
		.headers_n = 1,
		.priority = priorities[e->severity],
		.thread = e->id,
		.key = key,
		.dry_run = dry_run,
		.force = true, /* independent of the room's rules for mail */
	};

	TRY(send_to_all(room, self, &draft, &route, ret, ret_told, err));
	if (ret->failed_n == 0)
		return MR_OK;
	(void)snprintf(first, sizeof(first), "%s: %s", ret->failed[0].address, ret->failed[0].why);
	return mr_fail(err, MR_INDOUBT,
	    "escalation '%s' is on record, but not everybody could be told: %s\n"
	    "correct the room's %s: line, then `mailroom escalate stale` tells them",
	    e->id, first, route_settings[e->severity]);
}

/* Sends the mail and records who was told. The others may be told when the route is repaired: `stale` tries again. */
static enum mr_rc
tell(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *e, enum mr_level before,
    bool dry_run, struct mr_escalated *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf told = BUF_INIT;
	mr_auto(edit_done) struct edit x = { 0 };
	enum mr_rc rc = send_mail(room, self, e, before, dry_run, ret, &told, err);

	if (dry_run)
		return rc;
	if (rc == MR_OK || rc == MR_INDOUBT) {
		/* If another process raised it meanwhile, that process tells the new route. */
		if (!told.failed && edit_begin(&x, room, e->id, IGNORED) == MR_OK && x.e.raised == e->raised &&
		    x.e.status != MR_ESCALATION_CLOSED) {
			x.e.told = buf_z(&told);
			x.e.mailed = rc == MR_OK;
			(void)edit_save(&x, IGNORED);
		}
		return rc;
	}
	struct mr_error why = *err;

	return mr_fail(err, MR_INDOUBT, "escalation '%s' is on record, but nobody could be told: %.200s\n%s", e->id,
	    why.message, why.hint[0] ? why.hint : "`mailroom escalate stale` tries again");
}

/* ---- Making one ---- */

/* Under a lock: of two equal ones at once, one is made. */
static enum mr_rc
record_new(struct mr_room *room, struct mr_escalation *e, bool force, struct mr_escalated *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	mr_auto(mr_list_done) struct mr_escalations open = { 0 };
	mr_auto(mr_names_done) struct mr_names away = { 0 };
	void *lock = NULL;

	write_lines(e, &lines);
	TRY(mr_got(buf_ok(&lines), err));
	TRY(room->driver->record_lock(room, ESCALATION, "", "new", LOCK_WAIT_MS, &lock, err));
	enum mr_rc rc = force ? MR_OK : load_all(room, false, &open, &away, err);

	for (size_t i = 0; i < open.n && !ret->repeated; i++) {
		const struct mr_escalation *same = &open.v[i];

		ret->repeated = strcmp(same->by, e->by) == 0 && strcmp(same->text, e->text) == 0;
		if (ret->repeated) {
			ret->severity = same->severity;
			(void)snprintf(ret->id, sizeof(ret->id), "%s", same->id);
		}
	}
	if (rc == MR_OK && !ret->repeated)
		rc = room->driver->record_put(room, ESCALATION, "", e->id, buf_str(&lines), err);
	room->driver->record_unlock(room, lock);
	for (size_t i = 0; i < away.n; i++)
		put_away(room, away.v[i]);
	return rc;
}

enum mr_rc
mr_escalate(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *what, bool force,
    bool dry_run, struct mr_escalated *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_escalation e = *what;
	mr_auto(mr_escalated_done) struct mr_escalated got = { .severity = what->severity };
	char token[MR_TOKEN_LEN + 1];
	enum mr_rc rc = MR_OK;

	TRY(check_able(room, err));
	TRY(office_not_fenced(room, self, err));
	if (!what->text || !*what->text)
		return mr_fail(err, MR_REFUSED, "the escalation has no text");
	if (strlen(what->text) > TEXT_MAX)
		return mr_fail(
		    err, MR_REFUSED, "the text has %zu bytes: at most %d are allowed", strlen(what->text), TEXT_MAX);
	header_clean(&text, str_of(what->text));
	TRY(mr_got(buf_ok(&text), err));
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
	if (!dry_run)
		TRY(record_new(room, &e, force, &got, err));
	if (!got.repeated) {
		(void)snprintf(got.id, sizeof(got.id), "%s", e.id);
		rc = tell(room, self, &e, e.severity, dry_run, &got, err);
	}
	if (rc == MR_OK || rc == MR_INDOUBT) {
		*ret = got;
		got = (struct mr_escalated){ 0 };
	}
	return rc;
}

/* ---- Acknowledging, closing ---- */

/* reason NULL: acknowledges it. */
static enum mr_rc
end(struct mr_room *room, const struct mr_self *self, const char *id, const char *reason, bool *ret_changed,
    struct mr_error *err)
{
	mr_auto(edit_done) struct edit x = { 0 };
	struct mr_escalation *e = &x.e;
	char full[MR_ESCALATION_ID_LEN + 1];

	TRY(find(room, id, full, err));
	TRY(office_not_fenced(room, self, err));
	TRY(edit_begin(&x, room, full, err));
	if (e->status == MR_ESCALATION_CLOSED)
		return mr_fail(err, MR_REFUSED,
		    "escalation '%s' was closed by '%.80s'\n`mailroom escalate show %s` shows why", e->id, e->closed_by,
		    e->id);
	*ret_changed = reason || e->status != MR_ESCALATION_ACKED;
	if (!*ret_changed)
		return MR_OK;
	if (reason) {
		e->status = MR_ESCALATION_CLOSED;
		e->closed_by = self->agent;
		e->closed_reason = reason;
		e->closed_ms = clock_now_ms();
	} else {
		e->status = MR_ESCALATION_ACKED;
		e->acked_by = self->agent;
		e->acked_ms = clock_now_ms();
	}
	TRY(edit_save(&x, err));
	if (reason)
		put_away(room, full);
	return MR_OK;
}

enum mr_rc
mr_escalation_ack(
    struct mr_room *room, const struct mr_self *self, const char *id, bool *ret_changed, struct mr_error *err)
{
	bool changed;

	return end(room, self, id, NULL, ret_changed ? ret_changed : &changed, err);
}

enum mr_rc
mr_escalation_close(
    struct mr_room *room, const struct mr_self *self, const char *id, const char *reason, struct mr_error *err)
{
	bool changed;

	if (!reason || !*reason)
		return mr_fail(err, MR_REFUSED, "closing an escalation needs a reason");
	return end(room, self, id, reason, &changed, err);
}

/* ---- Escalations that nobody acknowledged ---- */

/* Its age counts from the last raise, or two runs in a row would raise it twice. */
static bool
is_stale(const struct mr_escalation *e, int64_t after_ms)
{
	int64_t since = e->raised_ms > e->at_ms ? e->raised_ms : e->at_ms;

	return e->status == MR_ESCALATION_OPEN && e->severity < MR_LEVEL_CRITICAL && e->raised < RAISED_MAX &&
	       clock_now_ms() - since >= after_ms;
}

/* Checked again under its lock, because another run may have raised it meanwhile. */
static enum mr_rc
see_to(struct mr_room *room, const struct mr_self *self, const char *id, int64_t after_ms, bool dry_run,
    mr_escalation_stale_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(edit_done) struct edit x = { 0 };
	mr_auto(mr_escalated_done) struct mr_escalated told = { 0 };
	struct mr_escalation *now = &x.e;

	TRY(dry_run ? mr_escalation_get(room, id, now, err) : edit_begin(&x, room, id, err));
	if (now->status == MR_ESCALATION_CLOSED)
		return MR_OK;
	bool raise = is_stale(now, after_ms);

	if (raise) {
		now->severity = (enum mr_level)(now->severity + 1);
		now->raised++;
		now->told = "";
	}
	if (raise && !dry_run) {
		now->raised_ms = clock_now_ms();
		now->mailed = false;
		TRY(edit_save(&x, err));
	}
	record_edit_done(&x.record);           /* before the mail */
	if (!dry_run && !raise && now->mailed) /* another run did it */
		return MR_OK;
	enum mr_level before =
	    now->raised > 0 && now->severity > MR_LEVEL_LOW ? (enum mr_level)(now->severity - 1) : now->severity;

	(void)snprintf(told.id, sizeof(told.id), "%s", now->id);
	told.severity = now->severity;
	enum mr_rc rc = tell(room, self, now, before, dry_run, &told, err);

	if (fn && (rc == MR_OK || rc == MR_INDOUBT))
		fn(ctx, now, &told);
	return rc;
}

enum mr_rc
mr_escalation_stale(struct mr_room *room, const struct mr_self *self, bool dry_run, mr_escalation_stale_fn *fn,
    void *ctx, struct mr_error *err)
{
	const char *line = mr_room_setting(room, "Escalate-Stale");
	mr_auto(mr_list_done) struct mr_escalations open = { 0 };
	enum mr_rc rc = MR_OK;
	int64_t after_ms;

	if (!line || !duration_parse(str_of(line), &after_ms) || after_ms <= 0)
		after_ms = STALE_MS;
	TRY(check_able(room, err));
	TRY(office_not_fenced(room, self, err));
	TRY(load_all(room, false, &open, NULL, err));
	for (size_t i = 0; i < open.n; i++) {
		const struct mr_escalation *e = &open.v[i];
		bool untold = e->status == MR_ESCALATION_OPEN && !e->mailed;
		struct mr_error one = { 0 };

		if (!(untold || is_stale(e, after_ms)) ||
		    see_to(room, self, e->id, after_ms, dry_run, fn, ctx, &one) == MR_OK)
			continue;
		*err = one; /* go on with the others */
		rc = one.code;
	}
	return rc;
}
