/* SPDX-License-Identifier: MIT */
/*
 * patrol_care.c - the other work of a round: agents that are unseen are reported, agents with mail whose life is gone
 * are woken; claims that are over come back, expired nudges are removed, overdue answers are reported, channels are
 * kept within their limits, old read mail is archived. From the claims on each step is best effort and reports its
 * errors, so that a broken channel does not stop the archiving.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "office/mail/mail.h"
#include "office/address/address.h"
#include "office/patrol/patrol.h"
#include "office/rules/config.h"
#include "office/work/work.h"
#include <stdlib.h>

#define ALERT "alert"
#define WOKEN "woken"
#define WAKE_AGAIN_MS ((int64_t)5 * 60 * 1000)

static int64_t
last_sign(const struct mr_agent *agent)
{
	return agent->seen_ms > agent->started_ms ? agent->seen_ms : agent->started_ms;
}

/* ---- Alerts ----
 *
 * An agent on the list that has given no sign for long, and whose process is not seen to live, is reported once for
 * each outage, however many patrols look. The life and its last sign identify an outage. Its record names the patrol
 * that reports it before the mail is sent; a patrol that finds the mail unsent sends the same mail in that name under
 * the same key, so none is lost and none is sent twice. */

static bool
is_out(const struct patrol *p, const struct mr_agent *agent)
{
	bool watched = false;

	for (size_t i = 0; i < p->set.watch.n && !watched; i++)
		watched = pattern_fits(str_of(p->set.watch.v[i]), str_of(agent->name));
	return agent->life > 0 && watched && strcmp(agent->name, p->self->agent) != 0 &&
	       clock_now_ms() - last_sign(agent) >= p->set.stale_after_ms && mr_agent_presence(agent) != MR_LIVE;
}

static enum mr_rc
save_alert(struct patrol *p, const struct mr_agent *o, const char *key, const char *by, bool sent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "Agent: %s\nOutage: %s\nBy: %s\nSent: %s\n", o->name, key, by, sent ? "yes" : "no");
	TRY(mr_got(buf_ok(&text), err));
	return notes_put(p->room, ALERT, "", hash_name_short("%s", o->name).z, buf_str(&text), err);
}

static enum mr_rc
report(struct patrol *p, const struct mr_agent *o, struct mr_error *err)
{
	mr_auto(record_done) struct record known = { 0 };
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	struct hash_name name = hash_name_short("%s", o->name);
	struct mr_self teller = { 0 };
	char key[80];

	(void)snprintf(key, sizeof(key), "alert-%.16s-%u-%lld", name.z, o->life, (long long)last_sign(o));
	TRY(notes_load(p->room, ALERT, "", name.z, &known, err));
	const char *by = record_get(&known, "By");
	bool begun = by && record_has(&known, "Outage", key);
	if (begun && record_has(&known, "Sent", "yes"))
		return MR_OK;
	by = begun ? by : p->self->agent;
	if (!begun)
		TRY(save_alert(p, o, key, by, false, err));
	/* The text does not depend on which patrol writes it, or when. */
	buf_addf(&subject, "ALERT: %s is not seen any more", o->name);
	buf_addf(&body, "%s gave no sign for more than %s.\n\n", o->name, span_text(p->set.stale_after_ms).z);
	buf_addf(&body, "Agent: %s\nLife: %u\nLast-Seen: %s\nReported-By: %s\n", o->name, o->life,
	    time_text(last_sign(o)).z, by);
	(void)snprintf(teller.agent, sizeof(teller.agent), "%s", by);
	TRY(patrol_send(p->room, &teller, p->set.alert_to, MR_URGENT, key, &subject, &body, err));
	TRY(save_alert(p, o, key, by, true, err));
	patrol_event(p, "alert", "", "%s is not seen any more, told %s", o->name, p->set.alert_to);
	return MR_OK;
}

static enum mr_rc
send_alerts(struct patrol *p, const struct mr_agents *agents, struct mr_error *err)
{
	mr_auto(notes_unlock) struct notes_lock lock = { .fd = -1 };
	bool locked = false;

	if (p->set.watch.n == 0 || p->set.stale_after_ms <= 0 || !*p->set.alert_to)
		return MR_OK;
	for (const struct mr_agent *a = agents->v; a < agents->v + agents->n; a++) {
		if (!is_out(p, a))
			continue;
		if (p->options->dry_run) {
			patrol_event(p, "would-alert", "", "%s", a->name);
			continue;
		}
		if (!locked)
			TRY(notes_lock(p->room, ALERT, "", NOTES_WAIT_MS, &lock, err));
		locked = true;
		TRY(report(p, a, err));
	}
	return MR_OK;
}

/* ---- Wakes ----
 *
 * The command Wake-AGENT of the user's configuration wakes an agent whose life is gone and that has mail, once for each
 * backlog. The oldest message and the life that left it are recorded before the command runs, so that several patrols
 * run it once. A command that failed is tried again after a while. */

static bool
note_first(void *ctx, const struct mr_message *msg)
{
	(void)snprintf(ctx, MR_ID_LEN + 1, "%s", msg->id);
	return false;
}

static enum mr_rc
save_wake(struct patrol *p, const struct mr_agent *s, const char *oldest, const char *result, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, clean = BUF_INIT;

	header_clean(&clean, str_of(result));
	buf_addf(&text, "Agent: %s\nLife: %u\nOldest: %s\nAt: %s\nResult: %s\n", s->name, s->life, oldest,
	    time_text(clock_now_ms()).z, buf_z(&clean));
	TRY(mr_got(buf_ok(&text), err));
	return notes_put(p->room, WOKEN, "", hash_name_short("%s", s->name).z, buf_str(&text), err);
}

/* Takes the wake for this patrol. MR_EXISTS: another patrol runs it, or did. */
static enum mr_rc
begin_wake(struct patrol *p, const struct mr_agent *s, const char *oldest, struct mr_error *err)
{
	mr_auto(record_done) struct record last = { 0 };
	mr_auto(notes_unlock) struct notes_lock lock = { .fd = -1 };

	TRY(notes_lock(p->room, WOKEN, "", NOTES_WAIT_MS, &lock, err));
	TRY(notes_load(p->room, WOKEN, "", hash_name_short("%s", s->name).z, &last, err));
	const char *known = record_get(&last, "Oldest"), *result = record_get(&last, "Result");
	if (known && result && strcmp(known, oldest) == 0 && record_int(&last, "Life", 0) == (int64_t)s->life &&
	    (strcmp(result, "exit 0") == 0 || clock_now_ms() - record_time(&last, "At") < WAKE_AGAIN_MS))
		return MR_EXISTS;
	return save_wake(p, s, oldest, "begun", err);
}

static enum mr_rc
run_wake(const struct patrol *p, const char *command, const char *agent, const char *oldest, struct buf *result,
    struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = split_command(command, err), env = { 0 };
	mr_auto(spawned_done) struct spawned ran = { 0 };
	struct spawn how = { .argv = names_list(&words),
		.without = patrol_keeps_back,
		.input = STR(""),
		.limit_ms = p->set.time_limit_ms,
		.output_max = (size_t)64 << 10 };

	if (words.n == 0)
		return err->code;
	TRY(mr_got(names_addf(&env, "MAILROOM=%s", p->room->spec) && names_addf(&env, "MAILROOM_AGENT=%s", agent) &&
		       names_addf(&env, "MAILROOM_ID=%s", oldest),
	    err));
	how.env = names_list(&env);
	TRY(spawn_run(&how, &ran, err));
	if (ran.exit_code == 0 && !ran.timed_out)
		buf_adds(result, "exit 0");
	else
		patrol_describe(result, &ran, how.limit_ms);
	return MR_OK;
}

static enum mr_rc
wake(struct patrol *p, const struct mr_agent *s, const char *oldest, struct mr_error *err)
{
	const char *command = config_get_of(p->room, "Wake-", s->name);
	mr_auto(buf_done) struct buf result = BUF_INIT;
	struct mr_error wrong = { 0 };
	enum mr_rc rc = begin_wake(p, s, oldest, err);

	if (rc != MR_OK || !command)
		return rc == MR_EXISTS ? MR_OK : rc;
	if (run_wake(p, command, s->name, oldest, &result, &wrong) != MR_OK)
		buf_adds(&result, wrong.message);
	rc = save_wake(p, s, oldest, buf_z(&result), err);
	patrol_event(p, "woke", "", "%s with '%s': %s", s->name, command, buf_z(&result));
	return rc;
}

static enum mr_rc
wake_sleepers(struct patrol *p, const struct mr_agents *agents, struct mr_error *err)
{
	struct scan_request oldest_unread = { .folders = MR_INBOX, .depth = SCAN_NAMES, .unread_only = true };

	for (const struct mr_agent *a = agents->v; p->set.wake && a < agents->v + agents->n; a++) {
		char oldest[MR_ID_LEN + 1] = "";

		if (!config_get_of(p->room, "Wake-", a->name) || mr_agent_presence(a) != MR_GONE ||
		    office_scan(p->room, a->name, &oldest_unread, note_first, oldest, IGNORED) != MR_OK || !*oldest)
			continue;
		if (p->options->dry_run)
			patrol_event(p, "would-wake", "", "%s", a->name);
		else
			TRY(wake(p, a, oldest, err));
	}
	return MR_OK;
}

/* ---- Leases, nudges ---- */

static void
recover_leases(struct patrol *p)
{
	mr_auto(mr_list_done) struct mr_queues queues = { 0 };
	mr_auto(mr_names_done) struct mr_names agents = { 0 };
	struct mr_error err = { 0 };

	if (!p->set.leases || !(p->room->driver->abilities & ROOM_HOLDS))
		return;
	if (office_agents(p->room, &agents, &err) != MR_OK)
		patrol_event(p, "trouble", "", "leases: %s", err.message);
	for (size_t i = 0; i < agents.n; i++) {
		struct mr_nudges *nudges = NULL;

		scan_sweep(p->room, agents.v[i]);
		/* Opening the nudges removes expired ones. */
		if (mr_nudges_open(p->room, agents.v[i], true, &nudges, IGNORED) == MR_OK)
			mr_nudges_close(nudges);
	}
	if ((p->room->driver->abilities & ROOM_QUEUES) && mr_queue_list(p->room, &queues, &err) != MR_OK)
		patrol_event(p, "trouble", "", "queues: %s", err.message);
	for (size_t i = 0; i < queues.n; i++)
		office_queue_sweep(p->room, &queues.v[i]);
}

/* ---- Channels ---- */

static void
prune_channels(struct patrol *p)
{
	mr_auto(mr_list_done) struct mr_channels channels = { 0 };
	struct mr_error err = { 0 };

	if (!p->set.channels || !(p->room->driver->abilities & ROOM_CHANNELS))
		return;
	if (mr_channel_list(p->room, &channels, &err) != MR_OK)
		patrol_event(p, "trouble", "", "channels: %s", err.message);
	for (size_t i = 0; i < channels.n; i++) {
		size_t removed = 0;

		if (mr_channel_prune(p->room, channels.v[i].name, true, &removed, &err) != MR_OK)
			patrol_event(p, "trouble", "", "%s: %s", channels.v[i].name, err.message);
		if (removed > 0)
			patrol_event(p, "pruned", "", "channel:%s, %zu posts", channels.v[i].name, removed);
	}
}

/* ---- Archive ---- */

static bool
note_old(void *ctx, const struct mr_message *msg)
{
	return (msg->flags & MR_PINNED) || names_add(ctx, str_of(msg->id));
}

static void
archive_old(struct patrol *p)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	struct mr_error err = { 0 };
	struct mr_scan old = { .filter = { .folders = MR_INBOX, .seen = true } };
	size_t moved = 0;

	if (p->set.archive_after_ms <= 0 || !(p->room->driver->abilities & ROOM_ARCHIVE))
		return;
	old.filter.before_ms = clock_now_ms() - p->set.archive_after_ms;
	if (mr_scan(p->room, p->self->agent, &old, note_old, &ids, &err) != MR_OK)
		patrol_event(p, "trouble", "", "archive: %s", err.message);
	for (size_t i = 0; i < ids.n; i++)
		moved += mr_archive(p->room, p->self, ids.v[i], IGNORED) == MR_OK;
	if (moved > 0)
		patrol_event(p, "archived", "", "%zu read messages", moved);
}

enum mr_rc
patrol_care(struct patrol *p, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_dues dues = { 0 };
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	struct mr_error trouble = { 0 };

	if (office_has_lives(p->room))
		TRY(mr_agent_list(p->room, &agents, err));
	TRY(send_alerts(p, &agents, err));
	TRY(wake_sleepers(p, &agents, err));
	if (p->options->dry_run)
		return MR_OK;
	recover_leases(p);
	if (p->set.overdue && (p->room->driver->abilities & ROOM_KEYS) &&
	    due_list(p->room, p->self->agent, true, &dues, &trouble) != MR_OK)
		patrol_event(p, "trouble", "", "overdue answers: %s", trouble.message);
	for (size_t i = 0; i < dues.n; i++) {
		/* The agent gets it as mail, under a key; then the record is dropped. */
		mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
		const struct mr_due *due = &dues.v[i];
		struct time_text by = time_text(due->by_ms);
		char key[16 + MR_ID_LEN];

		(void)snprintf(key, sizeof(key), "overdue-%s", due->id);
		buf_addf(&subject, "OVERDUE: %s", due->subject);
		buf_addf(&body, "No answer came in time.\n\nMessage: %s\nTo: %s\nBy: %s\n", due->id, due->to, by.z);
		if (patrol_send(p->room, p->self, p->self->agent, MR_NORMAL, key, &subject, &body, &trouble) != MR_OK) {
			/* The next round tries again. */
			patrol_event(p, "trouble", "", "overdue answer: %s", trouble.message);
			continue;
		}
		due_drop(p->room, p->self->agent, due->id);
		patrol_event(p, "overdue", "", "no answer from %s to %s by %s", due->to, due->id, by.z);
	}
	prune_channels(p);
	archive_old(p);
	return office_flush(p->room, err);
}
