/* SPDX-License-Identifier: MIT */
/* doctor.c - checks a room. The driver checks its files (src/rooms/X/inspect.c); the office checks the rest: settings,
 * trust, the clock, the operator's mailbox, claims, links, sessions, and mail that waits for an agent that is gone. */
#include "base/clock.h"
#include "base/error.h"
#include "base/findings.h"
#include "base/format.h"
#include "base/process.h"
#include "base/sys.h"
#include "office/mail/mail.h"
#include "office/address/address.h"
#include "office/link/link.h"
#include "office/nudge/nudge.h"
#include "office/rules/config.h"
#include "office/tell/tell.h"
#include "office/who/who.h"
#include "office/work/work.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#define WAITING_LONG_MS ((int64_t)24 * 3600 * 1000)
#define SESSION_KEPT_MS ((int64_t)30 * 24 * 3600 * 1000)

struct examination {
	struct mr_room *room;
	struct findings f; /* its attic is in the state folder */
};

MR_PRINTF(7, 8)
static void
tell(struct examination *x, enum mr_severity severity, const char *code, const char *path, const char *why,
    const char *fix, const char *fmt, ...)
{
	char what[1024];
	va_list args;

	va_start(args, fmt);
	format_print(what, sizeof what, fmt, args); /* quotes names of other senders */
	va_end(args);
	findings_say(&x->f,
	    &(struct mr_finding){ .severity = severity, .code = code, .path = path, .why = why, .fix = fix }, "%s",
	    what);
}

/* ---- The disk, trust, settings, the clock, the operator ---- */

static void
examine_storage(struct examination *x)
{
	struct mr_storage storage = { 0 };
	struct mr_error why = { 0 };
	enum mr_rc rc = x->room->driver->storage(x->room, &storage, &why);

	if (rc == MR_UNSUPPORTED)
		return;
	if (rc != MR_OK)
		tell(x, MR_NOTE, "storage", NULL, NULL, why.hint, "%s", why.message);
	else if (storage.power_safe)
		tell(x, MR_FINE, "storage", NULL, NULL, NULL, "%s keeps accepted mail through a power cut%s%s%s%s",
		    storage.file_system, storage.sync[0] ? ", Sync: " : "", storage.sync,
		    storage.sync_reason[0] ? ": " : "", storage.sync_reason);
	else
		tell(x, MR_NOTE, "storage", NULL,
		    "kill -9 loses nothing here, but a power cut may lose mail that was accepted",
		    "put the room on ext4 with a journal, xfs or btrfs; `mailroom selftest` shows what works here",
		    "%s: %s", storage.file_system, storage.reason);
	const char *asked = mr_room_setting(x->room, "Sync");

	if (asked && strcmp(asked, "fast") == 0 && strcmp(storage.sync, "full") == 0)
		tell(x, MR_NOTE, "sync", NULL, "the room asks for Sync: fast; mail is as safe, and takes longer",
		    "nothing has to be done; write Sync: auto into the file 'room' to end this note",
		    "Sync: full is used: %s", storage.sync_reason);
}

static enum mr_rc
examine_leftovers(struct examination *x, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_leftovers all = { 0 };

	TRY(mr_config_leftovers(x->room, &all, err));
	for (size_t i = 0; i < all.n; i++)
		tell(x, MR_NOTE, "ignored", all.v[i].where,
		    "a room is data: only the user's configuration may start a program or touch another room",
		    "look at it; to allow it, type in a terminal: mailroom config adopt", "'%.100s' has no effect",
		    all.v[i].line);
	return MR_OK;
}

static void
examine_settings(struct examination *x)
{
	const char *rule = mr_room_setting(x->room, "Unknown-Recipients"), *name = mr_room_setting(x->room, "Name");
	const char *wakes = mr_room_setting(x->room, "Wake-Limit"), *created = mr_room_setting(x->room, "Created");
	char behind[24];
	int64_t ms;

	if (name && strcmp(name, x->room->name) != 0)
		tell(x, MR_PROBLEM, "settings", "room",
		    "the name of a room is one part of an address: 1-64 of A-Z a-z 0-9 . _ + -",
		    "write such a name into the line Name: of the file 'room'",
		    "the line Name: '%.60s' cannot be the name of a room, so this one is called '%s'", name,
		    x->room->name);
	if (!wake_rule_parse(wakes, &(struct wake_rule){ 0 }))
		tell(x, MR_PROBLEM, "settings", "room",
		    "a limit is a number from 1 to 100, a slash and a time of 1s to 1d",
		    "write it like Wake-Limit: 30/10m",
		    "the line Wake-Limit: '%.60s' is not a limit, so the default applies", wakes);
	if (rule && !ascii_caseeq(rule, "hold") && !ascii_caseeq(rule, "refuse"))
		tell(x, MR_PROBLEM, "settings", "room", "unknown recipients are refused until it is corrected",
		    "write 'hold' or 'refuse'", "the setting Unknown-Recipients: '%s' is not understood", rule);
	for (unsigned i = 0; i < ROOM_SHELVES; i++) {
		const char *setting = room_shelves[i].setting, *keep = mr_room_setting(x->room, setting);
		struct room_keep parsed;

		if (!room_keep_parse(keep, &parsed))
			tell(x, MR_PROBLEM, "settings", "room", "everything is kept until it is corrected",
			    "write " ROOM_KEEP_ALLOWED, "the line %s: '%.60s' is not understood", setting, keep);
	}
	/* Nothing in a room is older than the room. The driver finds mail from the future. */
	if (created && time_parse_rfc3339(str_of(created), &ms) && ms > clock_now_ms() + FINDINGS_FUTURE_MS) {
		duration_text(ms - clock_now_ms(), behind);
		tell(x, MR_PROBLEM, "clock", "room",
		    "new mail gets times before those of the old, and is listed before it; ages are wrong",
		    "set this machine's clock", "this machine's clock is %s behind the creation of this room", behind);
	}
}

static void
tell_cost(void *ctx, const struct mr_cost *cost)
{
	if (!*cost->setting && strcmp(cost->what, "records") != 0)
		return; /* tables of a database: stats reports them */
	tell(ctx, MR_FINE, "cost", NULL, NULL, NULL, "%s: %zu files, about %llu KiB%s%s%s%s", cost->what, cost->files,
	    (unsigned long long)(cost->bytes + 1023) / 1024, *cost->keep ? "; kept by " : "",
	    *cost->keep ? cost->setting : "", *cost->keep ? ": " : "", cost->keep);
}

static void
examine_operator(struct examination *x)
{
	if (!office_has_lives(x->room) || !(x->room->driver->abilities & ROOM_REGISTER) ||
	    agent_exists(x->room, OPERATOR, IGNORED) != MR_NOTFOUND)
		return;
	bool fixed = x->f.fix && room_add_operator(x->room, IGNORED) == MR_OK;

	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_PROBLEM,
		.code = "operator",
		.path = OPERATOR,
		.why = "mail to the person who runs this room is refused",
		.fix = fixed ? "it has one now" : "`mailroom doctor --fix` makes it",
		.fixed = fixed },
	    "the room has no mailbox for its operator");
}

/* ---- Claims ---- */

/* Counts the claims on work of that queue that are over, and finds the holder of the first. */
static enum mr_rc
count_over(
    struct mr_room *room, const char *queue, size_t *ret, char ret_agent[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(claims_done) struct claims claims = { 0 };

	*ret = 0;
	TRY(claims_in(room, room_box("queue", queue).z, &claims, err));
	for (const struct claim *c = claims.v; c < claims.v + claims.n; c++)
		if (office_claim_over(room, c) && (*ret)++ == 0)
			memcpy(ret_agent, c->agent, sizeof c->agent);
	return MR_OK;
}

static enum mr_rc
examine_queue(struct examination *x, const char *name, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	char agent[MR_ADDRESS_MAX + 1], other[MR_ADDRESS_MAX + 1];
	size_t over = 0, left = 1;
	enum mr_rc rc = mr_queue_get(x->room, name, &queue, err);

	if (rc == MR_OK)
		rc = count_over(x->room, name, &over, agent, err);
	if (rc != MR_OK || over == 0)
		return rc == MR_NOTFOUND ? MR_OK : rc;
	if (x->f.fix) {
		office_queue_sweep(x->room, &queue);
		rc = count_over(x->room, name, &left, other, err);
	}
	bool fixed = rc == MR_OK && left == 0;

	findings_say(&x->f,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "claims",
		.path = name,
		.why = "its claimer was killed, let its time run out, or was taken over",
		.fix = fixed ? "it can be claimed again, or is a dead letter if its attempts are used up"
			     : "the next claim puts it back, and so does `mailroom doctor --fix`",
		.fixed = fixed },
	    "queue '%s' has %zu claims that are over, the first of '%s'", name, over, agent);
	return rc;
}

static enum mr_rc
examine_claims(struct examination *x, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };

	if (target_supported(x->room, "queue", IGNORED) != MR_OK)
		return MR_OK;
	TRY(settings_names(x->room, "queue", &queues, err));
	for (size_t i = 0; i < queues.n; i++) {
		struct mr_error why = { 0 };

		if (examine_queue(x, queues.v[i], &why) != MR_OK)
			tell(x, MR_PROBLEM, "queues", queues.v[i], "no agent can claim from it", why.hint, "%s",
			    why.message);
	}
	return MR_OK;
}

/* ---- Links ---- */

static void
examine_link(struct examination *x, const struct mr_link *link)
{
	struct mr_room *there = NULL;
	struct mr_error err = { 0 };
	int64_t since_ms;
	char age[24];
	enum mr_rc rc = link_open(x->room, link, &there, &err);

	mr_room_close(there);
	size_t waits = link_waiting(x->room, link->name, &since_ms);

	if (waits > 0) {
		duration_text(clock_now_ms() - since_ms, age);
		tell(x, MR_NOTE, "links", link->name, "it is stored here and not over there yet",
		    rc == MR_OK ? "`mailroom carry` delivers it, or says what prevents it"
				: "`mailroom carry` delivers it once that room is reachable again",
		    "%zu message%s to %s wait%s to be carried, the oldest for %s", waits, waits == 1 ? "" : "s",
		    link->name, waits == 1 ? "s" : "", age);
	}
	/* A link that is not allowed is reported with the other leftovers. */
	if (rc != MR_OK && mr_link_allowed(x->room, link))
		tell(x, MR_PROBLEM, "links", link->name,
		    "mail for it waits until it is reachable again; what came back from it is not lost", err.hint,
		    rc == MR_NOTFOUND ? "the room of %s" : "%s", err.message);
}

static enum mr_rc
examine_links(struct examination *x, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names queues = { 0 };
	mr_auto(mr_list_done) struct mr_links links = { 0 };

	if (link_able(x->room, IGNORED) != MR_OK)
		return MR_OK;
	enum mr_rc rc = mr_link_list(x->room, &links, err);

	if (rc != MR_OK && rc != MR_CORRUPT)
		return rc;
	for (size_t i = 0; i < links.n; i++)
		examine_link(x, &links.v[i]);
	if (rc == MR_CORRUPT)
		tell(x, MR_PROBLEM, "links", "links", "nothing is carried over it",
		    "look at that file; `mailroom unlink --force` forgets it", "%s", err->message);
	*err = (struct mr_error){ 0 };
	/* Removing a link removes its queue first; a queue without a link has mail that nobody carries. */
	TRY(settings_names(x->room, "queue", &queues, err));
	for (size_t i = 0; i < queues.n; i++) {
		mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
		mr_auto(buf_done) struct buf target = BUF_INIT;

		buf_addf(&target, "queue:%s", queues.v[i]);
		const char *link = link_of_target(buf_z(&target));

		if (!link || mr_queue_get(x->room, queues.v[i], &queue, IGNORED) != MR_OK ||
		    strcmp(queue.claimers, LINK_CLAIMERS) != 0 || target_exists(x->room, "link", link))
			continue;
		tell(x, MR_PROBLEM, "links", queues.v[i],
		    "the link was removed by hand, or its making was cut off: nothing carries the mail in it",
		    "make the link again (`mailroom link`), or remove the queue: mailroom queue delete --force",
		    "the queue '%s' belongs to a link that is gone", queues.v[i]);
	}
	return MR_OK;
}

/*
 * ---- Sessions ----
 *
 * Bindings of harness sessions whose process, and whose life or room, are gone. Nothing else removes them, and every
 * /clear reads them all. A session may be resumed, so they are kept for a month.
 */

/* Another room: its folder is gone. This room: a newer life took the name, the name is gone, or no agent uses it. */
static bool
is_over(struct mr_room *room, const struct binding *b, bool here)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	const char *colon = strchr(b->room, ':');
	struct stat st;

	if (!here)
		return colon && colon[1] == '/' && sys_stat(AT_FDCWD, colon + 1, &st) < 0 && errno == ENOENT;
	if (!office_has_lives(room))
		return false;
	enum mr_rc rc = room->driver->find_agent(room, b->agent, &agent, IGNORED);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND;
	return agent.life != b->life || mr_agent_presence(&agent) == MR_GONE ||
	       terminal_is(b->session); /* its terminal was closed; the life goes on without it */
}

static void
examine_sessions(struct examination *x)
{
	mr_auto(sessions_done) struct sessions all = { .folder = -1 };
	const char *state_dir = x->room->state_dir;
	/* Keeps out commands that bind a session at this moment. */
	mr_auto(sys_close_fd) int lock = x->f.fix && state_dir ? session_lock(state_dir) : -1;
	struct stat st;

	if (lock >= 0 || !x->f.fix)
		(void)sessions_load(state_dir, "", &all);
	for (const struct binding *b = all.v; b < all.v + all.n; b++) {
		bool here = session_is_in(b, x->room->spec);

		if (sys_stat(all.folder, b->file, &st) < 0 || findings_age_ms(&st) < SESSION_KEPT_MS ||
		    (b->process.pid && process_state(&b->process) != PROCESS_DEAD) || !is_over(x->room, b, here))
			continue;
		findings_take(&x->f, all.folder, b->file,
		    &(struct mr_finding){ .severity = MR_NOTE,
			.code = "sessions",
			.path = b->file,
			.why = here ? "its process is gone, and so is that life"
				    : "its process is gone, and so is its room",
			.fix = "`mailroom doctor --fix` moves it to the attic of the state folder" },
		    "the session '%s' was '%s' more than 30 days ago", b->file, b->agent);
	}
}

/* ---- Mail that nobody fetches ---- */

/* A session that does not answer its bell is not idle but stuck, or its harness does not show the bell. */
static void
examine_bell(struct examination *x, const struct mr_agent *agent)
{
	mr_auto(buf_done) struct buf rung = BUF_INIT;
	struct mr_self self;
	int64_t at_ms;

	if (agent_life_of(x->room, agent->name, &self) && bell_of(x->room, &self, "", &rung, &at_ms))
		tell(x, MR_NOTE, "bells", agent->name, "its session takes the ring and begins no turn",
		    "look at its terminal; a prompt there shows it the mail", "'%s': %s", agent->name, buf_z(&rung));
}

/* Is a process possibly reading its mail? */
static bool
is_attended(const struct examination *x, const struct mr_agent *agent)
{
	return office_has_lives(x->room) && (strcmp(agent->name, OPERATOR) == 0 || mr_agent_presence(agent) != MR_GONE);
}

/* A waiter without an inotify instance is not woken; it looks every two seconds. */
static void
examine_watches(struct examination *x, size_t agents)
{
	size_t limit = 0, used = process_watchers(&limit);
	char fix[160];

	if (limit == 0 || (used < limit && agents <= limit))
		return;
	(void)snprintf(fix, sizeof fix,
	    "as root: sysctl -w fs.inotify.max_user_instances=%zu, and the same line in /etc/sysctl.d/",
	    2 * (agents > limit ? agents : limit));
	tell(x, MR_NOTE, "watches", NULL,
	    "an agent that waits without one looks every 2 s instead of being woken at once", fix,
	    "the kernel gives this user %zu inotify instances, of which %zu are in use; the room has %zu agents", limit,
	    used, agents);
}

static enum mr_rc
examine_backlog(struct examination *x, const char *agent, struct mr_error *err)
{
	bool lives = office_has_lives(x->room);
	struct mr_counts b = { 0 };
	char age[24];
	enum mr_rc rc = mr_count(x->room, agent, &b, err);

	if (rc != MR_OK) /* MR_NOTFOUND: pruned meanwhile */
		return rc == MR_NOTFOUND ? MR_OK : rc;
	if (b.unread == 0 || clock_now_ms() - b.oldest_unread_ms < WAITING_LONG_MS)
		return MR_OK;
	duration_text(clock_now_ms() - b.oldest_unread_ms, age);
	tell(x, MR_NOTE, "waiting", agent,
	    lives ? "its process ended and no agent has taken the name since" : "it may no longer be read",
	    lives ? "start that agent again, or prune it: its mail goes to dead letters" : "tell its senders",
	    "%zu unread for '%s', the oldest for %s%s", b.unread, agent, age, lives ? ", and its life is gone" : "");
	return MR_OK;
}

/* ---- All checks ---- */

enum mr_rc
mr_doctor(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	struct examination x = { .room = room, .f = findings_begin(fix, fn, ctx) };

	findings_keep_in_state(&x.f, room->state_dir);
	examine_storage(&x);
	/* A kind of room without that slot has no problem there. */
	enum mr_rc rc = mr_unless(room->driver->inspect(room, fix, fn, ctx, err), MR_UNSUPPORTED, err);

	int64_t since_ms;
	enum mr_trust by = mr_room_trust(x.room, &since_ms);

	if (by >= MR_TRUST_VARIABLE)
		tell(&x, MR_FINE, "trust", NULL, NULL, NULL, "this room is trusted by %s", mr_trust_word(by));
	else if (x.room->place[0]) /* the room of another program has no trust record: it is named each time */
		tell(&x, MR_NOTE, "trust", NULL,
		    "it was given by name; commands that only find it refuse it, and hooks are silent",
		    "if it is yours, type in a terminal: mailroom trust", "this room is not trusted");
	if (rc == MR_OK)
		rc = examine_leftovers(&x, err);
	examine_settings(&x);
	if (rc == MR_OK)
		rc = mr_unless(mr_costs(room, tell_cost, &x, err), MR_UNSUPPORTED, err);
	examine_operator(&x);
	if (rc == MR_OK)
		rc = examine_claims(&x, err);
	if (rc == MR_OK)
		rc = examine_links(&x, err);
	examine_sessions(&x);
	if (rc == MR_OK)
		rc = mr_unless(mr_agent_list(room, &agents, err), MR_UNSUPPORTED, err);
	for (size_t i = 0; i < agents.n; i++)
		if (is_attended(&x, &agents.v[i]))
			examine_bell(&x, &agents.v[i]);
	examine_watches(&x, agents.n);
	for (size_t i = 0; rc == MR_OK && i < agents.n; i++)
		if (!is_attended(&x, &agents.v[i]))
			rc = examine_backlog(&x, agents.v[i].name, err);
	findings_end(&x.f);
	return rc;
}

enum mr_rc
mr_costs(struct mr_room *room, mr_cost_fn *fn, void *ctx, struct mr_error *err)
{
	return room->driver->each_cost(room, fn, ctx, err);
}
