/* SPDX-License-Identifier: MIT */
/*
 * patrol_alert.c - the watchers of a watcher. An agent on the list that has given no sign for long, and whose process
 * is not seen to live, is reported once an outage, however many patrols look.
 *
 * An outage is the life and its last sign. Its record says who reports it before the mail goes out, and whoever finds
 * it unsent sends the same mail in that one's name under the same key: none is lost, and none is sent twice.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/patrol/patrol.h"
#include "office/who/who.h"
#include <stdlib.h>

#define KIND "alert"
#define LOCK_WAIT_MS 10000

struct outage {
	char agent[MR_ADDRESS_MAX + 1];
	unsigned life;
	int64_t since_ms;
};
struct outages {
	const struct patrol *p;
	struct outage *v;
	size_t n;
	bool failed;
};

static bool
is_watched(const struct patrol *p, const char *name)
{
	for (size_t i = 0; i < p->set.watch.n; i++)
		if (pattern_fits(str_of(p->set.watch.v[i]), str_of(name)))
			return true;
	return false;
}

static bool
judge_agent(void *ctx, const struct mr_agent *agent)
{
	struct outages *o = ctx;
	int64_t seen = agent->seen_ms > agent->started_ms ? agent->seen_ms : agent->started_ms;

	if (agent->life == 0 || !is_watched(o->p, agent->name) || strcmp(agent->name, o->p->self->agent) == 0 ||
	    clock_now_ms() - seen < o->p->set.stale_after_ms || mr_agent_presence(agent) == MR_LIVE)
		return true;
	struct outage *v = reallocarray(o->v, o->n + 1, sizeof(*v));

	if (!v) {
		o->failed = true;
		return false;
	}
	o->v = v;
	v[o->n] = (struct outage){ .life = agent->life, .since_ms = seen };
	(void)snprintf(v[o->n++].agent, sizeof(v->agent), "%s", agent->name);
	return true;
}

/* ---- Telling ---- */

/* Nothing in it depends on who writes it or when. */
static enum mr_rc
send_alert(struct patrol *p, const struct outage *o, const char *by, const char *key, struct mr_error *err)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_self teller = { 0 };
	char seen[RFC3339_LEN + 1], limit[24];

	time_rfc3339(o->since_ms, seen);
	duration_text(p->set.stale_after_ms, limit);
	buf_addf(&subject, "ALERT: %s is not seen any more", o->agent);
	buf_addf(&body, "%s gave no sign for more than %s.\n\n", o->agent, limit);
	buf_addf(&body, "Agent: %s\nLife: %u\nLast-Seen: %s\nReported-By: %s\n", o->agent, o->life, seen, by);
	if (!buf_ok(&subject) || !buf_ok(&body))
		return mr_nomem(err);
	(void)snprintf(teller.agent, sizeof(teller.agent), "%s", by);
	struct mr_draft draft = {
		.to = (const char *[]){ p->set.alert_to, NULL },
		.subject = buf_z(&subject),
		.body = buf_z(&body),
		.body_len = body.len,
		.priority = MR_URGENT,
		.key = key,
	};
	enum mr_rc rc = mr_send(p->room, &teller, &draft, &receipt, err);

	return rc == MR_INDOUBT ? MR_OK : rc;
}

static enum mr_rc
save(struct patrol *p, const char *name, const struct outage *o, const char *key, const char *by, bool sent,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "Agent: %s\nOutage: %s\nBy: %s\nSent: %s\n", o->agent, key, by, sent ? "yes" : "no");
	if (!buf_ok(&text))
		return mr_nomem(err);
	return notes_put(p->room, KIND, "", name, buf_str(&text), err);
}

static enum mr_rc
report(struct patrol *p, const struct outage *o, struct mr_error *err)
{
	mr_auto(record_done) struct record known = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char name[33], key[80];

	notes_name(o->agent, name);
	(void)snprintf(key, sizeof(key), "alert-%.16s-%u-%lld", name, o->life, (long long)o->since_ms);
	enum mr_rc rc = notes_load(p->room, KIND, "", name, &known, err);

	if (rc != MR_OK)
		return rc;
	const char *outage = record_get(&known, "Outage"), *sent = record_get(&known, "Sent");
	const char *by = record_get(&known, "By");
	bool begun = outage && sent && by && strcmp(outage, key) == 0;

	if (begun && strcmp(sent, "yes") == 0)
		return MR_OK;
	by = begun ? by : p->self->agent;
	if (!begun)
		rc = save(p, name, o, key, by, false, err);
	if (rc == MR_OK)
		rc = send_alert(p, o, by, key, err);
	if (rc == MR_OK)
		rc = save(p, name, o, key, by, true, err);
	buf_addf(&text, "%s is not seen any more, told %s", o->agent, p->set.alert_to);
	if (rc == MR_OK)
		patrol_event(p, "alert", "", buf_z(&text));
	return rc;
}

/* ---- Looking ---- */

static enum mr_rc
report_all(struct patrol *p, const struct outages *found, struct mr_error *err)
{
	void *lock = NULL;
	enum mr_rc rc = found->n > 0 ? notes_lock(p->room, KIND, "", LOCK_WAIT_MS, &lock, err) : MR_OK;

	for (size_t i = 0; i < found->n && rc == MR_OK; i++)
		rc = report(p, &found->v[i], err);
	notes_unlock(p->room, lock);
	return rc;
}

enum mr_rc
patrol_alerts(struct patrol *p, struct mr_error *err)
{
	struct outages found = { .p = p };
	enum mr_rc rc;

	if (p->set.watch.n == 0 || p->set.stale_after_ms <= 0 || !*p->set.alert_to || !office_has_lives(p->room))
		return MR_OK;
	rc = mr_each_agent(p->room, judge_agent, &found, err);
	if (rc == MR_OK && found.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; i < found.n && rc == MR_OK && p->options->dry_run; i++)
		patrol_event(p, "would-alert", "", found.v[i].agent);
	if (rc == MR_OK && !p->options->dry_run)
		rc = report_all(p, &found, err);
	free(found.v);
	return rc;
}
