/* SPDX-License-Identifier: MIT */
/*
 * prune.c - removing agents. All names are checked before the first is removed, so that a refused command changes
 * nothing. A wrong clock makes every agent look unused for long, so it is a reason to refuse, and so is removing most
 * of the room at once.
 */
#include "office/mail/mail.h"
#include "office/who/who.h"
#include "office/work/work.h"

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static int64_t
last_sign(const struct mr_agent *agent)
{
	int64_t last = agent->created_ms;

	if (agent->started_ms > last)
		last = agent->started_ms;
	return agent->seen_ms > last ? agent->seen_ms : last;
}

/* The agents that were unused for so long; with a wrong clock that would be all of them. */
static enum mr_rc
find_stale(struct mr_room *room, const struct mr_prune_options *options, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	const char *created = mr_room_setting(room, "Created");
	int64_t now_ms = clock_now_ms(), created_ms = 0;
	size_t total = 0;

	if (!office_has_lives(room)) {
		(void)room_lacks(room, "record of when its agents were last seen", err);
		return mr_hint(err, "name the agents to prune");
	}
	TRY(mr_agent_list(room, &agents, err));
	for (size_t i = 0; i < agents.n; i++) {
		const struct mr_agent *a = &agents.v[i];
		int64_t unseen_ms = now_ms - last_sign(a);

		if (unseen_ms < -DAY_MS && !options->force)
			return mr_fail(err, MR_REFUSED,
			    "the clock looks wrong: agent '%s' was last seen more than a day in the future\n"
			    "set the clock right, or use --force",
			    a->name);
		if (agent_is_operator(a->name))
			continue;
		total++;
		if (unseen_ms > options->stale_ms && (options->force || mr_agent_presence(a) != MR_LIVE))
			TRY(mr_got(names_add(ret, str_of(a->name)), err));
	}
	if (!options->force && created && time_parse_rfc3339(str_of(created), &created_ms) && now_ms < created_ms)
		return mr_fail(err, MR_REFUSED,
		    "the clock looks wrong: the room was made at %s, in the future\nset the clock right, or use --force",
		    created);
	if (!options->dry_run && !options->force && ret->n > 1 && ret->n * 2 > total)
		return mr_fail(err, MR_REFUSED,
		    "that would remove %zu of %zu agents\nsee who they are with --dry-run, then name them or use --force",
		    ret->n, total);
	return MR_OK;
}

/* A life whose process cannot be checked from here (another container or machine) and that was used lately may be at
 * work. A life without a process was given by --as. */
static bool
may_live(const struct mr_agent *agent)
{
	enum mr_presence presence = mr_agent_presence(agent);

	return presence == MR_LIVE ||
	       (presence == MR_UNKNOWN && agent->process.pid && clock_now_ms() - last_sign(agent) < DAY_MS);
}

/* Its unread and held mail goes with it, or would. `all` are the agents to be removed. */
static enum mr_rc
remove_one(struct mr_room *room, const char *name, const struct mr_names *all, const struct mr_prune_options *options,
    size_t *ret_dead, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX | MR_HELD, .depth = SCAN_NAMES, .unread_only = true };
	mr_auto(mr_names_done) struct mr_names unread = { 0 };

	if (!options->dry_run) {
		/* Their senders are told first; if it is cut off here, they were told a little early. */
		if (office_has_lives(room))
			TRY(bounce_unread(room, name, all, err));
		return room->driver->remove_box(room, name, options->force, ret_dead, err);
	}
	TRY(office_scan(room, name, &want, office_note_id, &unread, err));
	*ret_dead = unread.n;
	if (*ret_dead == 0 || options->force || office_has_lives(room))
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "cannot prune '%s': it has %zu unread\nread it first, or use --force, which deletes it", name, *ret_dead);
}

/* Records of the post office about an agent. If it registers the name again nothing else is lost: it is told of all its
 * mail again, and old overdue answers are forgotten. */
static const char *const noted[] = { "announced", "announced-log", "stopped", "offered", "bell", "bell-end", "nudge",
	"nudge-state", "due", "said", "pane", "dnd", "hook" };

static enum mr_rc
prune(struct mr_room *room, const struct mr_prune_options *options, struct roll *done, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names go = { 0 };

	if (!ROOM_HAS(room, remove_box) || !ROOM_HAS(room, each_agent))
		return room_lacks(room, "registered agents", err);
	if (options->stale_ms > 0)
		TRY(find_stale(room, options, &go, err));
	/* The given names, checked and normalized, are added to the stale ones. */
	for (const char *const *name = options->names; name && *name; name++) {
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		mr_auto(buf_done) struct buf who = BUF_INIT;

		TRY(mr_agent_get(room, *name, &agent, err));
		if (office_has_lives(room) && agent_is_operator(agent.name))
			return mr_fail(
			    err, MR_REFUSED, "cannot prune '%s': every room has an operator\nleave it out", *name);
		agent_describe_life(&agent, &who);
		if (!options->force && may_live(&agent))
			return mr_fail(err, MR_REFUSED, "cannot prune '%s': it %s, %s\nend it first, or use --force",
			    agent.name,
			    mr_agent_presence(&agent) == MR_LIVE ? "is live" : "was seen within a day and may be alive",
			    buf_z(&who));
		TRY(mr_got(names_add_once(&go, agent.name), err));
	}
	for (size_t i = 0; i < go.n; i++) {
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
		size_t dead = 0;
		enum mr_rc rc = room->driver->find_agent(room, go.v[i], &agent, err);

		if (rc == MR_OK)
			rc = remove_one(room, go.v[i], &go, options, &dead, err);
		TRY(mr_unless(rc, MR_NOTFOUND, err));
		if (rc == MR_NOTFOUND) /* another prune was faster */
			continue;
		for (size_t k = 0; k < sizeof noted / sizeof noted[0] && !options->dry_run; k++)
			office_drop_records(room, noted[k], go.v[i]);
		/* If it is cut off before this, the next command that looks at the queue does it. */
		size_t returned = office_return_work(room, go.v[i], options->dry_run);
		struct mr_pruned *p = roll_add(done, sizeof(*p));

		TRY(mr_got(p, err));
		*p = (struct mr_pruned){ .seen_ms = agent.seen_ms, .dead = dead, .returned = returned };
		memcpy(p->name, agent.name, sizeof p->name);
	}
	return MR_OK;
}

enum mr_rc
mr_prune(struct mr_room *room, const struct mr_prune_options *options, struct mr_prunings *ret, struct mr_error *err)
{
	mr_auto(roll_done) struct roll done = { 0 };
	enum mr_rc rc = prune(room, options, &done, err);

	if (ret)
		*ret = (struct mr_prunings){ .v = done.v, .n = done.n, .own = roll_take(&done) };
	return rc;
}
