/* SPDX-License-Identifier: MIT */
/*
 * redispatch.c - work that lost its worker is given out again, but not for ever. Each bead has a record (kind
 * "redispatch"): how often, when and to which rig. An attempt is written down before the room's Sling: command runs,
 * under the record's lock, so that of two redispatches at once one goes on and the other finds the cooldown; and one
 * that is killed in between has counted all the same.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"
#include "office/work/sling.h"

#define LEDGER "redispatch"

/* ---- The ledger ---- */

struct entry { /* finish with record_done(&lines) */
	struct record lines;
	unsigned attempts;
	int64_t last_ms, escalated_ms; /* 0: never */
	const char *rig;
};

static enum mr_rc
entry_parse(struct mr_str text, struct entry *ret, struct mr_error *err)
{
	*ret = (struct entry){ .rig = "" };
	if (text.len > 0 && record_parse(text, &ret->lines, err) != MR_OK)
		return err->code;
	int64_t attempts = record_int(&ret->lines, "Attempts", 0);
	const char *rig = record_get(&ret->lines, "Last-Rig"), *last = record_get(&ret->lines, "Last-Attempt");
	const char *escalated = record_get(&ret->lines, "Escalated");

	ret->attempts = attempts > 0 && attempts < 1000000 ? (unsigned)attempts : 0;
	ret->rig = rig ? rig : "";
	if (!last || !time_parse_rfc3339(str_of(last), &ret->last_ms))
		ret->last_ms = 0;
	if (!escalated || !time_parse_rfc3339(str_of(escalated), &ret->escalated_ms))
		ret->escalated_ms = 0;
	return MR_OK;
}

static void
entry_write(const struct entry *e, const char *rig, struct buf *out)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char at[RFC3339_LEN + 1];

	buf_addf(&text, "Attempts: %u\n", e->attempts);
	if (rig[0])
		buf_addf(&text, "Last-Rig: %s\n", rig);
	time_rfc3339(e->last_ms, at);
	if (e->last_ms > 0)
		buf_addf(&text, "Last-Attempt: %s\n", at);
	time_rfc3339(e->escalated_ms, at);
	if (e->escalated_ms > 0)
		buf_addf(&text, "Escalated: %s\n", at);
	buf_clear(out);
	buf_add(out, buf_str(&text));
	out->failed |= text.failed;
}

static enum mr_rc
entry_load(struct mr_room *room, const char *bead, struct entry *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = room->driver->record_get(room, LEDGER, "", bead, &text, err);

	if (rc == MR_NOTFOUND)
		*err = (struct mr_error){ 0 };
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	return entry_parse(buf_str(&text), ret, err);
}

static void
entry_done(struct entry *e)
{
	record_done(&e->lines);
}

static enum mr_rc
able(const struct mr_room *room, struct mr_error *err)
{
	const struct room_driver *d = room->driver;

	if (DRIVER_HAS(d, record_change) && DRIVER_HAS(d, record_get) && DRIVER_HAS(d, record_each))
		return MR_OK;
	return office_lacks(room, "memory for work that is given out again", err);
}

/* ---- One redispatch ---- */

struct redispatch {
	struct mr_room *room;
	const struct mr_self *self;
	const char *bead;
	const struct mr_redispatch_options *options;
	struct mr_redispatched *ret;
	int64_t now_ms;
	bool escalating; /* the mail went out: write that down */
};

/* The first three checks, on what the ledger says. True: that is the outcome. */
static bool
is_over(const struct redispatch *r, const struct entry *e, enum mr_redispatch_end *ret)
{
	r->ret->attempts = e->attempts;
	r->ret->wait_ms = 0;
	if (e->escalated_ms > 0) {
		*ret = MR_REDISPATCH_WAS_ESCALATED;
		return true;
	}
	int64_t since_ms = r->now_ms - e->last_ms;

	/* A little in the future is another's, who looked at the clock later; far in the future is a clock set wrong.
	 */
	if (e->last_ms > 0 && since_ms > -r->options->cooldown_ms && since_ms < r->options->cooldown_ms) {
		r->ret->wait_ms = r->options->cooldown_ms - since_ms;
		*ret = MR_REDISPATCH_COOLDOWN;
		return true;
	}
	if (e->attempts < r->options->max_attempts)
		return false;
	*ret = MR_REDISPATCH_ESCALATED;
	return true;
}

static enum mr_rc
note_attempt(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	struct redispatch *r = ctx;
	mr_auto(entry_done) struct entry e = { 0 };

	TRY(entry_parse(exists ? buf_str(text) : STR(""), &e, err));
	if (r->escalating) {
		e.escalated_ms = r->now_ms;
		entry_write(&e, e.rig, text);
		return buf_ok(text) ? MR_OK : mr_nomem(err);
	}
	if (is_over(r, &e, &r->ret->end)) /* another was faster: its attempt counts */
		return MR_EMPTY;
	r->ret->attempts = ++e.attempts;
	e.last_ms = r->now_ms;
	entry_write(&e, r->ret->rig, text);
	return buf_ok(text) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
write_down(struct redispatch *r, bool *ret_went_on, struct mr_error *err)
{
	enum mr_rc rc = r->room->driver->record_change(r->room, LEDGER, "", r->bead, note_attempt, r, err);

	*ret_went_on = rc == MR_OK;
	return rc == MR_EMPTY ? MR_OK : rc;
}

/* The key makes it one mail, also when whoever sends it is killed before that is written down. */
static enum mr_rc
escalate(struct redispatch *r, const struct entry *e, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT, key = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	const char *to[] = { "mayor", NULL };
	char at[RFC3339_LEN + 1];
	bool ignored;

	time_rfc3339(e->last_ms, at);
	buf_addf(&subject, "REDISPATCH_FAILED: %s (%u attempts)", r->bead, e->attempts);
	buf_addf(&body, "Bead: %s\nAttempts: %u\n", r->bead, e->attempts);
	if (e->last_ms > 0)
		buf_addf(&body, "Last Rig: %s\nLast Attempt: %s\n", e->rig, at);
	buf_addf(&key, "redispatch-%s-%u", r->bead, e->attempts);
	if (!buf_ok(&subject) || !buf_ok(&body) || !buf_ok(&key))
		return mr_nomem(err);
	struct mr_draft draft = { .to = to,
		.subject = buf_z(&subject),
		.body = body.ptr,
		.body_len = body.len,
		.key = buf_z(&key),
		.priority = MR_HIGH,
		.priority_given = true };
	enum mr_rc rc = mr_send(r->room, r->self, &draft, &receipt, err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return mr_wrap(err, "cannot tell the mayor that '%s' failed %u times", r->bead, e->attempts);
	r->escalating = true;
	return write_down(r, &ignored, err);
}

static enum mr_rc
choose_rig(struct redispatch *r, struct mr_error *err)
{
	struct mr_str rig = r->options->rig ? str_of(r->options->rig) : sling_rig_of(r->room, r->bead);

	if (rig.len > 0 && rig.len < sizeof(r->ret->rig)) {
		(void)snprintf(r->ret->rig, sizeof(r->ret->rig), "%.*s", (int)rig.len, rig.ptr);
		return MR_OK;
	}
	return mr_fail(err, MR_NOTFOUND,
	    "no rig is known for '%s'\ngive --rig RIG, or add a line 'Bead-Prefixes: PREFIX=RIG' to the room's settings",
	    r->bead);
}

static enum mr_rc
dispatch(struct redispatch *r, struct mr_error *err)
{
	static const char *const options[] = { "--force", "--no-convoy", NULL };
	mr_auto(free_ptr) char *output = NULL;
	bool went_on = false;
	enum mr_rc rc = choose_rig(r, err);

	if (rc != MR_OK)
		return rc;
	sling_status(r->room, r->bead, r->ret->status);
	if (strcmp(r->ret->status, "open") != 0) {
		r->ret->end = MR_REDISPATCH_NOT_OPEN;
		return MR_OK;
	}
	rc = write_down(r, &went_on, err);
	if (rc != MR_OK || !went_on)
		return rc;
	r->ret->end = MR_REDISPATCH_SLUNG;
	return mr_sling(r->room, r->bead, r->ret->rig, options, &output, err);
}

enum mr_rc
mr_redispatch(struct mr_room *room, const struct mr_self *self, const char *bead,
    const struct mr_redispatch_options *options, struct mr_redispatched *ret, struct mr_error *err)
{
	struct mr_redispatched result = { 0 };
	struct redispatch r = {
		.room = room, .self = self, .bead = bead, .options = options, .ret = &result, .now_ms = clock_now_ms()
	};
	mr_auto(entry_done) struct entry entry = { 0 };
	enum mr_rc rc = able(room, err);

	if (rc == MR_OK)
		rc = sling_check_bead(bead, err);
	if (rc == MR_OK)
		rc = entry_load(room, bead, &entry, err);
	if (rc != MR_OK)
		return rc;
	if (!is_over(&r, &entry, &result.end))
		rc = dispatch(&r, err);
	else if (result.end == MR_REDISPATCH_ESCALATED)
		rc = escalate(&r, &entry, err);
	if (rc == MR_OK)
		*ret = result;
	return rc;
}

/* ---- The whole ledger ---- */

static bool
note_name(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

enum mr_rc
mr_redispatch_each(struct mr_room *room, mr_redispatch_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names beads = { 0 };
	enum mr_rc rc = able(room, err);

	if (rc == MR_OK)
		rc = room->driver->record_each(room, LEDGER, "", note_name, &beads, err);
	for (size_t i = 0; rc == MR_OK && i < beads.n; i++) {
		mr_auto(entry_done) struct entry e = { 0 };

		rc = entry_load(room, beads.v[i], &e, err);
		struct mr_redispatch_entry entry = { .bead = beads.v[i],
			.rig = e.rig,
			.attempts = e.attempts,
			.last_ms = e.last_ms,
			.escalated_ms = e.escalated_ms };

		if (rc == MR_OK && e.attempts > 0 && !fn(ctx, &entry))
			break;
	}
	return rc;
}
