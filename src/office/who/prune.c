/* SPDX-License-Identifier: MIT */
/*
 * prune.c - taking names away. First everything is judged, then the first name goes: a command that is
 * refused has changed nothing. A wrong clock makes everyone look long unseen, so it is a reason to
 * refuse, and so is removing most of the room at once.
 */
#include "base/clock.h"
#include "office/mail/mail.h"
#include "office/who/who.h"

#define DAY_MS ((int64_t)24 * 3600 * 1000)

struct census {
	int64_t now_ms, stale_ms;
	bool force;
	size_t total; /* agents but the operator */
	struct mr_names stale;
	bool failed;                          /* out of memory */
	char from_future[MR_ADDRESS_MAX + 1]; /* someone seen after now */
};

static int64_t
last_sign(const struct mr_agent *agent)
{
	int64_t last = agent->created_ms;

	if (agent->started_ms > last)
		last = agent->started_ms;
	return agent->seen_ms > last ? agent->seen_ms : last;
}

static bool
take_census(void *ctx, const struct mr_agent *agent)
{
	struct census *c = ctx;
	int64_t last = last_sign(agent);

	if (last > c->now_ms + DAY_MS)
		memcpy(c->from_future, agent->name, sizeof c->from_future);
	if (agent_is_operator(agent->name))
		return true;
	c->total++;
	if (c->stale_ms > 0 && c->now_ms - last > c->stale_ms && (c->force || mr_agent_presence(agent) != MR_LIVE) &&
	    !names_add(&c->stale, str_of(agent->name)))
		c->failed = true;
	return !c->failed;
}

static enum mr_rc
check_clock(const struct mr_room *room, const struct census *c, struct mr_error *err)
{
	const char *created = mr_room_setting(room, "Created");
	int64_t created_ms = 0;

	if (c->force)
		return MR_OK;
	if (c->from_future[0])
		(void)mr_fail(err, MR_REFUSED,
		    "the clock looks wrong: agent '%s' was last seen more than a day from now", c->from_future);
	else if (created && time_parse_rfc3339(str_of(created), &created_ms) && c->now_ms < created_ms)
		(void)mr_fail(err, MR_REFUSED, "the clock looks wrong: the room was made at %s, after now", created);
	else
		return MR_OK;
	return mr_hint(err, "set the clock right, or use --force");
}

static enum mr_rc
check_share(const struct census *c, struct mr_error *err)
{
	if (c->force || c->stale.n <= 1 || c->stale.n * 2 <= c->total)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "that would remove %zu of %zu agents\nsee who they are with --dry-run, then name them or use --force",
	    c->stale.n, c->total);
}

/* A life whose process cannot be judged from here (another container or machine) and that was seen lately may be at
 * work. One without a process is whoever says --as. */
static enum mr_rc
check_not_alive(const struct mr_agent *agent, struct mr_error *err)
{
	enum mr_presence presence = mr_agent_presence(agent);
	bool unseen = presence == MR_UNKNOWN && agent->process.pid && clock_now_ms() - last_sign(agent) < DAY_MS;
	mr_auto(buf_done) struct buf who = BUF_INIT;

	if (presence != MR_LIVE && !unseen)
		return MR_OK;
	agent_describe_life(agent, &who);
	return mr_fail(err, MR_REFUSED, "cannot prune '%s': it %s, %s\nend it first, or use --force", agent->name,
	    presence == MR_LIVE ? "is live" : "was seen within a day and may be alive", buf_z(&who));
}

/* The names given, checked and normal, are added to those found stale. */
static enum mr_rc
add_named(struct mr_room *room, const struct mr_prune_options *options, struct mr_names *all, struct mr_error *err)
{
	for (const char *const *name = options->names; name && *name; name++) {
		mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

		TRY(mr_agent_get(room, *name, &agent, err));
		if (office_has_lives(room) && agent_is_operator(agent.name))
			return mr_fail(
			    err, MR_REFUSED, "cannot prune '%s': every room has an operator\nleave it out", *name);
		if (!options->force && check_not_alive(&agent, err) != MR_OK)
			return err->code;
		if (!names_has(all, agent.name) && !names_add(all, str_of(agent.name)))
			return mr_nomem(err);
	}
	return MR_OK;
}

static bool
count_one(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(size_t *)ctx;
	return true;
}

/* What a real one would do: held mail goes, too. */
static enum mr_rc
foresee(
    struct mr_room *room, const char *name, bool force, size_t *ret_dead, size_t *ret_returned, struct mr_error *err)
{
	struct scan_request want = { .folders = MR_INBOX | MR_HELD, .depth = SCAN_NAMES, .unread_only = true };

	*ret_returned = office_return_work(room, name, true);
	enum mr_rc rc = office_scan(room, name, &want, count_one, ret_dead, err);

	if (rc != MR_OK || *ret_dead == 0 || force || office_has_lives(room))
		return rc;
	return mr_fail(err, MR_REFUSED,
	    "cannot prune '%s': it has %zu unread\nread it first, or use --force, which deletes it", name, *ret_dead);
}

static enum mr_rc
remove_one(struct mr_room *room, const char *name, const struct mr_names *all, const struct mr_prune_options *options,
    mr_prune_fn *fn, void *ctx, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	size_t dead = 0, returned = 0;
	enum mr_rc rc = room->driver->find_agent(room, name, &agent, err);

	/* Their senders are told first: cut off here, they were told a little early. */
	if (rc == MR_OK && !options->dry_run && office_has_lives(room))
		rc = bounce_unread(room, name, all, err);
	if (rc == MR_OK)
		rc = options->dry_run ? foresee(room, name, options->force, &dead, &returned, err)
				      : room->driver->remove_agent(room, name, options->force, &dead, err);
	/* Cut off before this, whoever looks at the queue next does it. */
	if (rc == MR_OK && !options->dry_run)
		returned = office_return_work(room, name, false);
	if (rc == MR_NOTFOUND) { /* another prune was quicker */
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc == MR_OK && options->ret_returned)
		*options->ret_returned = returned;
	if (rc == MR_OK && fn)
		fn(ctx, &agent, dead);
	return rc;
}

enum mr_rc
mr_prune(struct mr_room *room, const struct mr_prune_options *options, mr_prune_fn *fn, void *ctx, struct mr_error *err)
{
	struct census c = { .now_ms = clock_now_ms(), .stale_ms = options->stale_ms, .force = options->force };
	enum mr_rc rc;

	if (!ROOM_HAS(room, remove_agent) || !ROOM_HAS(room, each_agent))
		return office_lacks(room, "registered agents", err);
	if (options->stale_ms > 0 && !office_has_lives(room)) {
		(void)office_lacks(room, "record of when its agents were last seen", err);
		return mr_hint(err, "name those that shall go");
	}
	rc = room->driver->each_agent(room, take_census, &c, err);
	if (rc == MR_OK && c.failed)
		rc = mr_nomem(err);
	if (rc == MR_OK && c.stale_ms > 0)
		rc = check_clock(room, &c, err);
	if (rc == MR_OK && !options->dry_run)
		rc = check_share(&c, err);
	if (rc == MR_OK)
		rc = add_named(room, options, &c.stale, err);
	for (size_t i = 0; rc == MR_OK && i < c.stale.n; i++)
		rc = remove_one(room, c.stale.v[i], &c.stale, options, fn, ctx, err);
	mr_names_done(&c.stale);
	return rc;
}
