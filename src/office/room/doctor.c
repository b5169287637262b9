/* SPDX-License-Identifier: MIT */
/* doctor.c - is the room well. The driver looks at its files; the office looks at what only it understands:
 * settings, the clock, the operator's mailbox, claims, links, sessions, and mail that waits for somebody who is gone.
 */
#include "office/room/doctor.h"

#include "base/clock.h"
#include "base/error.h"
#include "office/rules/config.h"
#include "office/tell/wake.h"

#define WAITING_LONG_MS ((int64_t)24 * 3600 * 1000)

static void
examine_settings(struct examination *x)
{
	const char *rule = mr_room_setting(x->room, "Unknown-Recipients"), *name = mr_room_setting(x->room, "Name");

	if (name && strcmp(name, x->room->name) != 0)
		findings_say(&x->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "settings",
			.path = "room",
			.why = "the name of a room is one part of an address: 1-64 of A-Z a-z 0-9 . _ + -",
			.fix = "write such a name into the line Name: of the file 'room'" },
		    "the line Name: '%.60s' cannot be the name of a room, so this one is called '%s'", name,
		    x->room->name);
	const char *wakes = mr_room_setting(x->room, "Wake-Limit");

	if (!wake_rule_parse(wakes, &(struct wake_rule){ 0 }))
		findings_say(&x->f,
		    &(struct mr_finding){ .severity = MR_PROBLEM,
			.code = "settings",
			.path = "room",
			.why = "it is a number from 1 to 100, a slash and a time of 1s to 1d",
			.fix = "write it like Wake-Limit: 30/10m" },
		    "the line Wake-Limit: '%.60s' is no limit, so the usual one counts", wakes);
	if (!rule || ascii_caseeq(rule, "hold") || ascii_caseeq(rule, "refuse"))
		return;
	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "settings",
		.path = "room",
		.why = "unknown recipients are refused until it is",
		.fix = "write 'hold' or 'refuse'" },
	    "the setting Unknown-Recipients: '%s' is not understood", rule);
}

static void
examine_operator(struct examination *x)
{
	struct mr_agent operator= {
		.name = OPERATOR, .worktree = "", .session = "", .host = "", .role = "", .wake = ""
	};
	mr_auto(mr_agent_done) struct mr_agent found = { 0 };
	const struct room_driver *driver = x->room->driver;
	struct mr_error err = { 0 };

	if (!office_has_lives(x->room) || !ROOM_HAS(x->room, find_agent) || !ROOM_HAS(x->room, add_agent) ||
	    !(driver->abilities & ROOM_REGISTER) || driver->find_agent(x->room, OPERATOR, &found, &err) != MR_NOTFOUND)
		return;
	operator.created_ms = clock_now_ms();
	bool fixed = x->f.fix && driver->add_agent(x->room, &operator, & err) == MR_OK;

	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "operator",
		.path = OPERATOR,
		.why = "mail to the person who runs this room is refused",
		.fix = fixed ? "it has one now" : "mailroom doctor --fix makes it",
		.fixed = fixed },
	    "the room has no mailbox for its operator");
}

/* ---- What the user lets this room do ---- */

static void
examine_trust(struct examination *x)
{
	int64_t since_ms;
	enum mr_trust by = mr_room_trust(x->room, &since_ms);
	struct mr_finding like = { .severity = MR_FINE, .code = "trust" };

	if (by >= MR_TRUST_VARIABLE) {
		findings_say(&x->f, &like, "this room is trusted by %s", mr_trust_word(by));
		return;
	}
	if (!x->room->place[0]) /* the room of another program is named each time */
		return;
	like.severity = MR_NOTE;
	like.why = "it was named; where it is only found, commands refuse it and hooks are silent";
	like.fix = "if it is yours, type in a terminal: mailroom trust";
	findings_say(&x->f, &like, "this room is not trusted");
}

static bool
tell_leftover(void *ctx, const struct mr_leftover *l)
{
	struct examination *x = ctx;

	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "ignored",
		.path = l->where,
		.why =
		    "a room is data: what starts a program or touches another room stands in the user's configuration",
		.fix = "look at it; to allow it, type in a terminal: mailroom config adopt" },
	    "'%.100s' counts for nothing", l->line);
	return true;
}

/* ---- The disk and the clock ---- */

static void
examine_storage(struct examination *x)
{
	struct mr_storage storage = { 0 };
	struct mr_error why = { 0 };
	struct mr_finding like = { .severity = MR_NOTE, .code = "storage", .fix = why.hint };

	if (!ROOM_HAS(x->room, storage))
		return;
	if (x->room->driver->storage(x->room, &storage, &why) != MR_OK) {
		findings_say(&x->f, &like, "%s", why.message);
	} else if (storage.power_safe) {
		like.severity = MR_FINE;
		findings_say(&x->f, &like, "%s keeps accepted mail through a power cut%s%s", storage.file_system,
		    storage.sync[0] ? ", Sync: " : "", storage.sync);
	} else {
		like.why = "kill -9 loses nothing here, but a power cut may lose mail that was accepted";
		like.fix = "put the room on ext4 with a journal, xfs or btrfs; mailroom selftest tells what works here";
		findings_say(&x->f, &like, "%s: %s", storage.file_system, storage.reason);
	}
	if (storage.sync_reason[0])
		findings_say(&x->f,
		    &(struct mr_finding){ .severity = MR_NOTE,
			.code = "sync",
			.why = "the room asks for Sync: fast; mail is as safe, and takes longer",
			.fix = "nothing has to be done; write Sync: full into the file 'room' to say what is so" },
		    "Sync: full is used: %s", storage.sync_reason);
}

/* Nothing in a room is older than the room. Mail from the future is the driver's to find. */
static void
examine_clock(struct examination *x)
{
	const char *created = mr_room_setting(x->room, "Created");
	char behind[24];
	int64_t ms;

	if (!created || !time_parse_rfc3339(str_of(created), &ms) || ms <= clock_now_ms() + FINDINGS_FUTURE_MS)
		return;
	duration_text(ms - clock_now_ms(), behind);
	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "clock",
		.path = "room",
		.why = "new mail gets times before those of the old, and is listed before it; ages are wrong",
		.fix = "set this machine's clock" },
	    "the clock is %s before the making of this room", behind);
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
examine_backlog(struct examination *x, const char *agent, struct mr_error *err)
{
	struct mr_scan unread = { .filter = { .unread = true } };
	struct mr_finding like = { .severity = MR_NOTE, .code = "waiting", .path = agent };
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
		like.why = "nobody may be reading it any more";
		like.fix = "tell its senders";
		findings_say(&x->f, &like, "%zu unread for '%s', the oldest for %s", b.n, agent, age);
		return MR_OK;
	}
	like.why = "its process ended and nobody took the name since";
	like.fix = "start that agent again, or prune it: its mail goes to dead letters";
	findings_say(&x->f, &like, "%zu unread for '%s', the oldest for %s, and its life is gone", b.n, agent, age);
	return MR_OK;
}

enum mr_rc
mr_doctor(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct examination x = { .room = room, .f = findings_begin(fix, fn, ctx) };
	enum mr_rc rc = MR_OK;

	findings_keep_in_state(&x.f, room->state_dir);
	examine_storage(&x);
	if (ROOM_HAS(room, inspect))
		rc = room->driver->inspect(room, fix, fn, ctx, err);
	examine_trust(&x);
	if (rc == MR_OK)
		rc = mr_config_leftovers(room, tell_leftover, &x, err);
	examine_settings(&x);
	examine_clock(&x);
	examine_operator(&x);
	if (rc == MR_OK)
		rc = doctor_claims(&x, err);
	if (rc == MR_OK)
		rc = doctor_links(&x, err);
	doctor_sessions(&x);
	if (rc == MR_OK && ROOM_HAS(room, each_agent))
		rc = room->driver->each_agent(room, note_if_gone, &x, err);
	for (size_t i = 0; rc == MR_OK && i < x.gone.n; i++)
		rc = examine_backlog(&x, x.gone.v[i], err);
	findings_end(&x.f);
	mr_names_done(&x.gone);
	return rc;
}
