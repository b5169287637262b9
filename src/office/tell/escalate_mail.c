/* SPDX-License-Identifier: MIT */
/* escalate_mail.c - who is told of an escalation, and in which words. */
#include "office/tell/escalate.h"

#include "base/error.h"
#include "base/text.h"

#define MAYOR "mayor"
#define SUBJECT_CHARS 160
#define SEND_KEY_MAX 120

void
mr_escalated_done(struct mr_escalated *e)
{
	if (!e)
		return;
	mr_names_done(&e->to);
	mr_names_done(&e->failed);
	*e = (struct mr_escalated){ 0 };
}

/* ---- The route ---- */

static const char *
setting_of(enum mr_level level)
{
	static const char *const names[] = { "Escalate-Low", "Escalate-Medium", "Escalate-High", "Escalate-Critical" };

	return names[level];
}

/* Nobody is written to about an escalation of his own, unless there is nobody else. */
static enum mr_rc
default_route(struct mr_room *room, const char *self, struct mr_names *ret, struct mr_error *err)
{
	struct mr_error ignored = { 0 };
	bool mayor = strcmp(self, MAYOR) != 0 && agent_exists(room, MAYOR, &ignored) == MR_OK;

	if ((strcmp(self, OPERATOR) != 0 || !mayor) && !names_add(ret, STR(OPERATOR)))
		return mr_nomem(err);
	return !mayor || names_add(ret, STR(MAYOR)) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
add_addresses(struct mr_names *ret, const char *line, struct mr_error *err)
{
	struct mr_str rest = str_of(line);

	while (rest.len > 0) {
		const char *comma = memchr(rest.ptr, ',', rest.len);
		size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len, step = comma ? len + 1 : len;
		struct mr_str one = str_trim((struct mr_str){ rest.ptr, len });

		if (one.len > 0 && !names_add(ret, one))
			return mr_nomem(err);
		rest.ptr += step;
		rest.len -= step;
	}
	return MR_OK;
}

/* Those who are to be told now. */
static enum mr_rc
route_of(
    struct mr_room *room, const char *self, const struct mr_escalation *e, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names told = { 0 }, whole = { 0 };
	const char *line = mr_room_setting(room, setting_of(e->severity));
	enum mr_rc rc = add_addresses(&told, e->told ? e->told : "", err);

	if (rc == MR_OK)
		rc = add_addresses(&whole, line ? line : "", err);
	if (rc == MR_OK && whole.n == 0)
		rc = default_route(room, self, &whole, err);
	for (size_t i = 0; rc == MR_OK && i < whole.n; i++)
		if (!names_has(&told, whole.v[i]) && !names_add(ret, str_of(whole.v[i])))
			rc = mr_nomem(err);
	return rc;
}

/* ---- The words ---- */

static void
add_upper(struct buf *out, enum mr_level level)
{
	for (const char *c = mr_level_word(level); *c; c++)
		buf_addc(out, (char)(*c - 'a' + 'A'));
}

static void
compose_subject(struct buf *out, const struct mr_escalation *e, enum mr_level before)
{
	buf_addc(out, '[');
	if (before != e->severity) {
		add_upper(out, before);
		buf_adds(out, "\xE2\x86\x92");
	}
	add_upper(out, e->severity);
	buf_adds(out, before != e->severity ? "] Re-escalated: " : "] ");
	text_clean_line(out, utf8_cut(str_of(e->text), SUBJECT_CHARS));
}

static void
compose_body(struct buf *out, const struct mr_escalation *e)
{
	buf_addf(out, "Escalation ID: %s\nSeverity: %s\nFrom: %s\n", e->id, mr_level_word(e->severity), e->by);
	if (*e->reason)
		buf_addf(out, "Reason: %s\n", e->reason);
	if (*e->source)
		buf_addf(out, "Source: %s\n", e->source);
	if (*e->related)
		buf_addf(out, "Related: %s\n", e->related);
	buf_addf(out, "\n%s\n\nSay that you see to it:  mailroom escalate ack %s\n", e->text, e->id);
	buf_addf(out, "When it is settled:      mailroom escalate close %s --reason TEXT\n", e->id);
}

static enum mr_priority
priority_of(enum mr_level level)
{
	static const enum mr_priority of[] = { MR_LOW, MR_NORMAL, MR_HIGH, MR_URGENT };

	return of[level];
}

/* ---- Telling ---- */

static void
note_told(struct mr_escalated *ret, const struct mr_receipt *receipt)
{
	for (size_t i = 0; i < receipt->to.n; i++)
		if (!names_has(&ret->to, receipt->to.v[i]))
			(void)names_add(&ret->to, str_of(receipt->to.v[i]));
	if (!ret->message[0])
		(void)snprintf(ret->message, sizeof(ret->message), "%s", receipt->id);
}

static enum mr_rc
send_to(struct mr_room *room, const struct mr_self *self, struct mr_draft *draft, const char *const *to,
    struct mr_escalated *ret, struct mr_error *err)
{
	struct mr_receipt receipt = { 0 };
	enum mr_rc rc;

	draft->to = to;
	rc = mr_send(room, self, draft, &receipt, err);
	if (rc == MR_OK || rc == MR_INDOUBT) /* the rest is delivered by whoever comes next */
		note_told(ret, &receipt);
	mr_receipt_done(&receipt);
	return rc == MR_INDOUBT ? MR_OK : rc;
}

static void
add_told(struct buf *told, const char *address)
{
	buf_addf(told, "%s%s", told->len > 0 ? ", " : "", address);
}

/* The key makes a repeated call send nothing twice. */
static enum mr_rc
send_to_one(struct mr_room *room, const struct mr_self *self, struct mr_draft *draft, const char *whole_key,
    const char *address, struct mr_escalated *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf key = BUF_INIT, why = BUF_INIT;
	enum mr_rc rc;

	buf_addf(&key, "%.40s-%.120s", whole_key, address);
	draft->key = buf_z(&key);
	rc = send_to(room, self, draft, (const char *[]){ address, NULL }, ret, err);
	if (rc == MR_OK)
		return rc;
	buf_addf(&why, "%s: %s", address, err->message);
	(void)names_add(&ret->failed, buf_str(&why));
	return rc;
}

/* All at once, so that they can talk to each other; if that is refused, whoever can be reached. */
static enum mr_rc
send_to_all(struct mr_room *room, const struct mr_self *self, struct mr_draft *draft, const struct mr_names *route,
    struct mr_escalated *ret, struct buf *told, struct mr_error *err)
{
	const char **to = calloc(route->n + 1, sizeof(*to));
	const char *whole_key = draft->key;
	enum mr_rc rc;

	if (!to)
		return mr_nomem(err);
	for (size_t i = 0; i < route->n; i++)
		to[i] = route->v[i];
	rc = send_to(room, self, draft, to, ret, err);
	free(to);
	for (size_t i = 0; rc == MR_OK && i < route->n; i++)
		add_told(told, route->v[i]);
	if (rc == MR_OK)
		return rc;
	for (size_t i = 0; i < route->n; i++)
		if (send_to_one(room, self, draft, whole_key, route->v[i], ret, err) == MR_OK)
			add_told(told, route->v[i]);
	return ret->failed.n < route->n ? MR_OK : rc;
}

enum mr_rc
escalation_tell(struct mr_room *room, const struct mr_self *self, const struct mr_escalation *e, enum mr_level before,
    bool dry_run, struct mr_escalated *ret, struct buf *ret_told, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(mr_names_done) struct mr_names route = { 0 };
	char key[SEND_KEY_MAX];
	enum mr_rc rc = route_of(room, self->agent, e, &route, err);

	buf_adds(ret_told, e->told ? e->told : "");
	if (rc != MR_OK || route.n == 0)
		return rc;
	compose_subject(&subject, e, before);
	compose_body(&body, e);
	if (!buf_ok(&subject) || !buf_ok(&body))
		return mr_nomem(err);
	(void)snprintf(key, sizeof(key), "%s-%u", e->id, e->raised);
	const struct mr_header category = { "GT-Type", "escalation" }; /* what the town calls it */
	struct mr_draft draft = {
		.subject = buf_z(&subject),
		.body = body.ptr,
		.body_len = body.len,
		.type = before != e->severity ? "RE_ESCALATED" : "ESCALATE",
		.headers = &category,
		.headers_n = 1,
		.priority = priority_of(e->severity),
		.thread = e->id,
		.key = key,
		.dry_run = dry_run,
		.force = true, /* whatever the room's rules for mail are */
	};

	rc = send_to_all(room, self, &draft, &route, ret, ret_told, err);
	if (rc == MR_OK && ret->failed.n > 0) {
		(void)mr_fail(err, MR_INDOUBT, "escalation '%s' is on record, but not everybody could be told: %.150s",
		    e->id, ret->failed.v[0]);
		rc = mr_hint(err, "mend the room's %s: line, then `mailroom escalate stale` tells them",
		    setting_of(e->severity));
	}
	return rc;
}
