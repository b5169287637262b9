/* SPDX-License-Identifier: MIT */
/* doctor.c - is the room well. The driver looks at its files; the office looks at what only it understands:
 * settings, the operator's mailbox, and mail that waits for somebody who is gone. */
#include "base/clock.h"
#include "base/error.h"
#include "office/office.h"

#define WAITING_LONG_MS ((int64_t)24 * 3600 * 1000)

struct examination {
	struct mr_room *room;
	mr_finding_fn *fn;
	void *ctx;
	struct mr_names gone; /* agents that nobody is acting as */
};

static void
report(const struct examination *x, enum mr_severity severity, const char *check, const char *text, const char *advice)
{
	struct mr_finding finding = { .severity = severity, .check = check, .text = text, .advice = advice };

	x->fn(x->ctx, &finding);
}

static void
examine_settings(const struct examination *x)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const char *rule = mr_room_setting(x->room, "Unknown-Recipients");

	if (!rule || ascii_caseeq(rule, "hold") || ascii_caseeq(rule, "refuse"))
		return;
	buf_addf(&text, "the setting Unknown-Recipients: '%s' is not understood: unknown recipients are refused", rule);
	report(x, MR_PROBLEM, "settings", buf_z(&text), "write 'hold' or 'refuse'");
}

static void
examine_operator(const struct examination *x, bool fix)
{
	struct mr_agent operator= {
		.name = OPERATOR, .worktree = "", .session = "", .host = "", .role = "", .wake = ""
	};
	mr_auto(mr_agent_done) struct mr_agent found = { 0 };
	const struct room_driver *driver = x->room->driver;
	struct mr_error err = { 0 };

	if (!office_has_lives(x->room) || !driver->find_agent || !driver->add_agent ||
	    !(driver->abilities & ROOM_REGISTER) || driver->find_agent(x->room, OPERATOR, &found, &err) != MR_NOTFOUND)
		return;
	operator.created_ms = clock_now_ms();
	struct mr_finding finding = {
		.severity = MR_PROBLEM,
		.check = "operator",
		.text = "the room has no mailbox for its operator",
		.advice = "`mailroom doctor --fix` makes it",
		.fixed = fix && driver->add_agent(x->room, &operator, & err) == MR_OK,
	};

	x->fn(x->ctx, &finding);
}

/* ---- The disk ---- */

static void
examine_storage(const struct examination *x)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_storage storage = { 0 };
	struct mr_error why = { 0 };

	if (!x->room->driver->storage)
		return;
	if (x->room->driver->storage(x->room, &storage, &why) != MR_OK) {
		report(x, MR_NOTE, "storage", why.message, why.hint);
		return;
	}
	buf_adds(&text, storage.file_system);
	if (storage.power_safe)
		buf_adds(&text, " keeps accepted mail through a power cut");
	else
		buf_addf(&text, ": %s", storage.reason);
	report(x, storage.power_safe ? MR_FINE : MR_NOTE, "storage", buf_z(&text),
	    storage.power_safe ? "" : "put the room on ext4 with a journal, xfs or btrfs");
}

/* ---- Mail that nobody fetches ---- */

static bool
note_if_gone(void *ctx, const struct mr_agent *agent)
{
	struct examination *x = ctx;

	if (office_has_lives(x->room) && (strcmp(agent->name, OPERATOR) == 0 || mr_agent_presence(agent) != MR_GONE))
		return true;
	return names_add(&x->gone, str_of(agent->name));
}

struct backlog {
	size_t n;
	int64_t oldest_ms;
};

static bool
count_backlog(void *ctx, const struct mr_message *msg)
{
	struct backlog *b = ctx;

	if (b->n++ == 0)
		b->oldest_ms = msg->date_ms;
	return true;
}

static enum mr_rc
examine_backlog(const struct examination *x, const char *agent, struct mr_error *err)
{
	struct mr_scan unread = { .filter = { .unread = true } };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct backlog b = { 0 };
	char age[24];
	enum mr_rc rc = mr_scan(x->room, agent, &unread, count_backlog, &b, err);

	if (rc == MR_NOTFOUND) /* pruned while we look */
		return MR_OK;
	if (rc != MR_OK)
		return rc;
	if (b.n == 0 || clock_now_ms() - b.oldest_ms < WAITING_LONG_MS)
		return MR_OK;
	duration_text(clock_now_ms() - b.oldest_ms, age);
	if (!office_has_lives(x->room)) {
		buf_addf(&text, "%zu unread for '%s', the oldest for %s", b.n, agent, age);
		report(x, MR_NOTE, "waiting", buf_z(&text), "nobody may be reading it any more: tell its senders");
		return MR_OK;
	}
	buf_addf(&text, "%zu unread for '%s', the oldest for %s, and its life is gone", b.n, agent, age);
	report(
	    x, MR_NOTE, "waiting", buf_z(&text), "start that agent again, or prune it: its mail goes to dead letters");
	return MR_OK;
}

enum mr_rc
mr_doctor(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct examination x = { .room = room, .fn = fn, .ctx = ctx };
	enum mr_rc rc = MR_OK;

	examine_storage(&x);
	if (room->driver->inspect)
		rc = room->driver->inspect(room, fix, fn, ctx, err);
	examine_settings(&x);
	examine_operator(&x, fix);
	if (rc == MR_OK && room->driver->each_agent)
		rc = room->driver->each_agent(room, note_if_gone, &x, err);
	for (size_t i = 0; rc == MR_OK && i < x.gone.n; i++)
		rc = examine_backlog(&x, x.gone.v[i], err);
	mr_names_done(&x.gone);
	return rc;
}
