/* SPDX-License-Identifier: MIT */
/*
 * patrol_wake.c - the command that wakes an agent whose life is gone and who has mail, Wake-AGENT of the user's
 * configuration. Once a backlog: its oldest message
 * and the life that left it are written down before the command runs, so that several patrols run it once. A command
 * that failed is tried again after a while.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/spawn.h"
#include "office/rules/config.h"
#include "office/patrol/patrol.h"
#include "office/who/who.h"
#include <stdlib.h>

#define KIND "woken"
#define LOCK_WAIT_MS 10000
#define AGAIN_AFTER_MS ((int64_t)5 * 60 * 1000)

struct sleeper {
	char agent[MR_ADDRESS_MAX + 1];
	unsigned life;
	char *command;
};
struct sleepers {
	struct mr_room *room;
	struct sleeper *v;
	size_t n;
	bool failed;
};

static void
sleepers_done(struct sleepers *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->v[i].command);
	free(s->v);
}

static bool
note_sleeper(void *ctx, const struct mr_agent *agent)
{
	struct sleepers *s = ctx;

	const char *wake = config_get_of(s->room, "Wake-", agent->name);

	if (!wake || mr_agent_presence(agent) != MR_GONE)
		return true;
	struct sleeper *v = reallocarray(s->v, s->n + 1, sizeof(*v));
	char *command = strdup(wake);

	if (v)
		s->v = v;
	if (!v || !command) {
		free(command);
		s->failed = true;
		return false;
	}
	v[s->n] = (struct sleeper){ .life = agent->life, .command = command };
	(void)snprintf(v[s->n++].agent, sizeof(v->agent), "%s", agent->name);
	return true;
}

static bool
note_first(void *ctx, const struct mr_message *msg)
{
	(void)snprintf(ctx, MR_ID_LEN + 1, "%s", msg->id);
	return false;
}

/* The oldest unread message; false: none waits. */
static bool
has_backlog(struct mr_room *room, const char *agent, char ret_id[MR_ID_LEN + 1])
{
	struct scan_request want = { .folders = MR_INBOX, .depth = SCAN_NAMES, .unread_only = true };
	struct mr_error ignored = { 0 };

	ret_id[0] = '\0';
	return office_scan(room, agent, &want, note_first, ret_id, &ignored) == MR_OK && ret_id[0];
}

/* ---- Once ---- */

static enum mr_rc
save(struct patrol *p, const struct sleeper *s, const char *oldest, const char *result, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, clean = BUF_INIT;
	char name[33], now[RFC3339_LEN + 1];

	notes_name(s->agent, name);
	time_rfc3339(clock_now_ms(), now);
	header_clean(&clean, str_of(result));
	buf_addf(&text, "Agent: %s\nLife: %u\nOldest: %s\nAt: %s\nResult: %s\n", s->agent, s->life, oldest, now,
	    buf_z(&clean));
	if (!buf_ok(&text))
		return mr_nomem(err);
	return notes_put(p->room, KIND, "", name, buf_str(&text), err);
}

/* MR_EXISTS: somebody runs it, or did. */
static enum mr_rc
claim(struct patrol *p, const struct sleeper *s, const char *oldest, struct mr_error *err)
{
	mr_auto(record_done) struct record last = { 0 };
	void *lock = NULL;
	char name[33];
	enum mr_rc rc = notes_lock(p->room, KIND, "", LOCK_WAIT_MS, &lock, err);

	notes_name(s->agent, name);
	if (rc == MR_OK)
		rc = notes_load(p->room, KIND, "", name, &last, err);
	const char *known = rc == MR_OK ? record_get(&last, "Oldest") : NULL;
	const char *result = rc == MR_OK ? record_get(&last, "Result") : NULL;

	if (known && result && strcmp(known, oldest) == 0 && record_int(&last, "Life", 0) == (int64_t)s->life &&
	    (strcmp(result, "exit 0") == 0 || clock_now_ms() - record_time(&last, "At") < AGAIN_AFTER_MS))
		rc = mr_fail(err, MR_EXISTS, "'%s' was woken", s->agent);
	if (rc == MR_OK)
		rc = save(p, s, oldest, "begun", err);
	notes_unlock(p->room, lock);
	return rc;
}

/* ---- Waking ---- */

static enum mr_rc
run(const struct patrol *p, const struct sleeper *s, const char *oldest, struct buf *result, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = split_command(s->command, err);
	mr_auto(spawned_done) struct spawned ran = { 0 };
	mr_auto(buf_done) struct buf room = BUF_INIT, agent = BUF_INIT, id = BUF_INIT;

	buf_addf(&room, "MAILROOM=%s", p->room->spec);
	buf_addf(&agent, "MAILROOM_AGENT=%s", s->agent);
	buf_addf(&id, "MAILROOM_ID=%s", oldest);
	if (!buf_ok(&room) || !buf_ok(&agent) || !buf_ok(&id))
		return mr_nomem(err);
	mr_auto(free_ptr) const char **argv = calloc(words.n + 1, sizeof(*argv));

	if (!argv)
		return mr_nomem(err);
	for (size_t i = 0; i < words.n; i++)
		argv[i] = words.v[i];
	struct spawn what = {
		.argv = argv,
		.env = (const char *const[]){ buf_z(&room), buf_z(&agent), buf_z(&id), NULL },
		.without = patrol_keeps_back,
		.input = STR(""),
		.limit_ms = p->set.time_limit_ms,
		.output_max = (size_t)64 << 10,
	};
	enum mr_rc rc = words.n > 0 ? spawn_run(&what, &ran, err) : err->code;

	if (rc == MR_OK && ran.exit_code == 0 && !ran.timed_out)
		buf_adds(result, "exit 0");
	else if (rc == MR_OK)
		patrol_describe(result, &ran, what.limit_ms);
	return rc;
}

static enum mr_rc
wake(struct patrol *p, const struct sleeper *s, const char *oldest, struct mr_error *err)
{
	mr_auto(buf_done) struct buf result = BUF_INIT, text = BUF_INIT;
	struct mr_error wrong = { 0 };
	enum mr_rc rc = claim(p, s, oldest, err);

	if (rc == MR_EXISTS) {
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	if (run(p, s, oldest, &result, &wrong) != MR_OK)
		buf_adds(&result, wrong.message);
	rc = save(p, s, oldest, buf_z(&result), err);
	buf_addf(&text, "%s with '%s': %s", s->agent, s->command, buf_z(&result));
	patrol_event(p, "woke", "", buf_z(&text));
	return rc;
}

enum mr_rc
patrol_wakes(struct patrol *p, struct mr_error *err)
{
	mr_auto(sleepers_done) struct sleepers found = { .room = p->room };
	char oldest[MR_ID_LEN + 1];
	enum mr_rc rc;

	if (!p->set.wake || !office_has_lives(p->room))
		return MR_OK;
	rc = mr_each_agent(p->room, note_sleeper, &found, err);
	if (rc == MR_OK && found.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; i < found.n && rc == MR_OK; i++) {
		if (!has_backlog(p->room, found.v[i].agent, oldest))
			continue;
		if (p->options->dry_run)
			patrol_event(p, "would-wake", "", found.v[i].agent);
		else
			rc = wake(p, &found.v[i], oldest, err);
	}
	return rc;
}
