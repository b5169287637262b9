/* SPDX-License-Identifier: MIT */
/*
 * self.c - who am I. The order, and why it is safe:
 *
 *	1 --as                a person or script says so
 *	2 the session         bound to an agent and a life; a newer life fences it. Where a harness tells its shells
 *	                      and servers no id, the session of the nearest bound harness process above us
 *	3 a variable          leaks into nested agents, so it never takes a life that is still there
 *	4 the terminal        outside of a harness, when it registered exactly one agent
 *	5 the worktree        outside of a harness the one agent that was registered here without a session; else only
 *	                      when exactly one agent lived here and is gone
 *	6 nobody              an error with the line to type, never a guess
 *
 * Two processes of one new session (a hook and a shell) may come here at once, and so may two
 * sessions that want the same agent: 3 and 5 are decided under a lock, and a life is taken by the
 * room's own race, which one wins.
 */
#include "base/format.h"
#include "base/process.h"
#include "base/sys.h"
#include "office/address/address.h"
#include "office/who/who.h"

#define TRIES 10

/* ---- The answer ---- */

static enum mr_rc
is_agent(struct mr_self *ret, const struct mr_env *env, const char *agent, unsigned life, bool bound, const char *how)
{
	*ret = (struct mr_self){ .life = life, .bound = bound };
	text_join(ret->agent, sizeof ret->agent, agent, NULL);
	text_join(ret->session, sizeof ret->session, self_session(env), NULL);
	text_join(ret->how, sizeof ret->how, how, NULL);
	return MR_OK;
}

/* Every command asks who it is, and mostly needs no more than the number of the life: `whole` false. */
static enum mr_rc
find_agent(struct mr_room *room, const char *name, bool whole, struct mr_agent *ret, struct mr_error *err)
{
	if (whole || !ROOM_HAS(room, check_life))
		return room->driver->find_agent(room, name, ret, err);
	return room->driver->check_life(room, name, 0, NULL, &ret->life, err);
}

/* The name as it is registered: what reaches an agent's mailbox by `send` must be that agent by --as, too. */
static enum mr_rc
registered_name(struct mr_room *room, const char *given, bool whole, char ret[MR_ADDRESS_MAX + 1],
    struct mr_agent *ret_agent, struct mr_error *err)
{
	struct mr_error unknown = { 0 };
	char local[MR_ADDRESS_MAX + 1], found[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = agent_spelled(room, given, local, err);

	if (rc != MR_OK)
		return rc;
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", local);
	if (!ROOM_HAS(room, find_agent))
		return MR_OK;
	rc = find_agent(room, local, whole, ret_agent, &unknown);
	if (rc != MR_NOTFOUND) {
		if (rc != MR_OK)
			*err = unknown;
		return rc;
	}
	/* A kind without lives keeps no list of who may act: its own programs ask nobody either. */
	if (!office_has_lives(room))
		return MR_OK;
	rc = address_registered(room, local, found, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? agent_unknown(room, local, err) : rc;
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", found);
	return mr_agent_get(room, found, ret_agent, err);
}

enum mr_rc
mr_self_named(struct mr_room *room, const char *agent, struct mr_self *ret, struct mr_error *err)
{
	struct mr_env nothing = { 0 };
	mr_auto(mr_agent_done) struct mr_agent found = { 0 };
	char name[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = registered_name(room, agent, false, name, &found, err);

	return rc == MR_OK ? is_agent(ret, &nothing, name, found.life, false, "named") : rc;
}

void
mr_self_seen(struct mr_room *room, const struct mr_self *self)
{
	if (self->life > 0 && ROOM_HAS(room, seen))
		room->driver->seen(room, self->agent, self->life);
}

/* 1. `bound` stays what it is for the session, so that sending can refuse a harness that says "--as
 * operator". */
static enum mr_rc
by_option(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding b = { 0 };
	struct mr_error ignored = { 0 };
	struct mr_self self = { 0 };
	bool saved = false;

	TRY(mr_self_named(room, env->as, &self, err));
	/* Looking through all lives is worth it only where it decides something. */
	bool bound = self_session(env)[0] &&
		     (agent_is_operator(self.agent) ? self_binding(room, env, &b, &saved, &ignored) == MR_OK
						    : env->state_dir && session_load(env->state_dir, env->session,
									    room->spec, &b, &ignored) == MR_OK);

	(void)is_agent(ret, env, self.agent, self.life, bound, "--as");
	ret->explicit_as = true;
	ret->hooked = bound && b.hooked && strcmp(b.agent, self.agent) == 0 && b.life == self.life;
	return MR_OK;
}

/* 2 */

/* The usual case: our life is the newest, and names our session. The binding lies in the state folder, which a sandbox
 * may write: without the life's word it would make a session anybody, and show it anybody's mail. */
static bool
is_newest(struct mr_room *room, const struct binding *b)
{
	const struct room_driver *driver = room->driver;
	struct mr_error ignored = { 0 };

	return DRIVER_HAS(driver, check_life) && driver->find_agent(room, b->agent, NULL, &ignored) == MR_OK &&
	       driver->check_life(room, b->agent, b->life, b->session, NULL, &ignored) == MR_OK;
}

static enum mr_rc
is_session(const struct mr_env *env, const struct binding *b, struct mr_self *ret)
{
	char session[121], how[sizeof ret->how];

	text_join(session, sizeof session, env->session, NULL);
	text_join(how, sizeof how, "session ", session, " is bound to it", NULL);
	(void)is_agent(ret, env, b->agent, b->life, true, how);
	ret->hooked = b->hooked;
	ret->unconfirmed = b->noted && confirm_is_due(b->noted);
	return MR_OK;
}

bool
mr_self_bound(struct mr_room *room, const struct mr_env *env, struct mr_self *ret)
{
	mr_auto(binding_done) struct binding b = { 0 };
	struct mr_error ignored = { 0 };

	/* A process that is gone, or another by now, may mean that the session was resumed: see by_session. */
	return !env->session_aged && !(env->as && env->as[0]) && self_session(env)[0] && env->state_dir &&
	       office_has_lives(room) &&
	       session_load(env->state_dir, env->session, room->spec, &b, &ignored) == MR_OK &&
	       (env->hooked || b.process.pid == 0 || process_runs(&b.process)) && is_newest(room, &b) &&
	       is_session(env, &b, ret) == MR_OK;
}

static enum mr_rc
by_session(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };
	bool saved = false;

	TRY(self_binding(room, env, &b, &saved, err));
	bool resumed =
	    env->process.pid && !process_same(&env->process, &b.process) && process_state(&b.process) == PROCESS_DEAD;
	bool settled = saved && !resumed && is_newest(room, &b);

	if (!settled && self_check(room, env, &b, &agent, err) != MR_OK)
		return err->code;
	/* Best effort: who I am is clear, and a room that cannot be written can still be read. */
	if (!saved || resumed)
		(void)self_adopt_life(room, env, &agent, &ignored);
	return is_session(env, &b, ret);
}

/* 2, in a room without lives. There it comes behind the variables, which are the word of its own programs. */
static enum mr_rc
by_plain_session(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding b = { 0 };
	enum mr_rc rc = self_plain_binding(room, env, &b, err);

	if (rc == MR_OK && strcmp(b.session, env->session) != 0)
		(void)self_bind_plain(room, env, b.agent);
	return rc == MR_OK ? is_session(env, &b, ret) : rc;
}

/* A life that is gone, or one that nobody sits in, becomes this session's. */
static enum mr_rc
bind_life(struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent, bool take, const char *how,
    struct mr_self *ret, struct mr_error *err)
{
	unsigned life = agent->life;
	size_t returned = 0;
	enum mr_rc rc =
	    take ? self_take_life(room, env, agent, &life, &returned, err) : self_adopt_life(room, env, agent, err);

	return rc == MR_OK ? is_agent(ret, env, agent->name, life, true, how) : rc;
}

/* 3 */

static enum mr_rc
refuse_variable(const struct mr_env *env, const char *source, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf who = BUF_INIT;

	agent_describe_life(agent, &who);
	(void)mr_fail(
	    err, MR_REFUSED, "%s says '%s', but that agent is somebody else: %s", source, agent->name, buf_z(&who));
	return self_session(env)[0]
		   ? mr_hint(err,
			 "mailroom register NAME takes a name of your own; mailroom takeover %.80s moves "
			 "this one here",
			 agent->name)
		   : mr_hint(err, "to act as it on purpose: mailroom --as %.80s ...", agent->name);
}

static enum mr_rc
by_variable(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	char name[MR_ADDRESS_MAX + 1], source[80];
	enum mr_rc rc = registered_name(room, env->agent, true, name, &agent, err);

	snprintf(source, sizeof source, "$%s", env->agent_source ? env->agent_source : "MAILROOM_AGENT");
	if (rc != MR_OK)
		return mr_wrap(err, "%s", source);
	if (!ROOM_HAS(room, find_agent) || !ROOM_HAS(room, take_life))
		return is_agent(ret, env, name, agent.life, false, source);
	enum mr_presence presence = mr_agent_presence(&agent);

	if (!self_session(env)[0]) {
		if (presence == MR_LIVE && !process_is_ancestor(&agent.process))
			return refuse_variable(env, source, &agent, err);
		return is_agent(ret, env, name, agent.life, false, source);
	}
	if (agent_is_operator(name))
		return mr_fail(err, MR_REFUSED,
		    "%s says '%s', but a harness session is not the operator\nmailroom register NAME takes a name of your own",
		    source, env->agent);
	bool nobodys = agent.process.pid == 0 && agent.session[0] == '\0';

	if (self_is_life(env, &agent) || (agent_has_life(&agent) && nobodys))
		return bind_life(room, env, &agent, false, source, ret, err);
	if (presence == MR_GONE)
		return bind_life(room, env, &agent, true, source, ret, err);
	return refuse_variable(env, source, &agent, err);
}

/* 4 and 5 */

struct worktree_search { /* who lives or lived there */
	const char *worktree;
	bool outside; /* of any harness */
	struct mr_names gone;
	struct mr_names plain;  /* registered without a session, by a person or a script */
	struct mr_names there;  /* in a harness's session */
	struct mr_names maybe;  /* registered without a session, from here or this terminal, which inside of a harness
				   says nothing: only the caller can */
	const char *registered; /* what registered the plain ones: "this terminal" */
	bool failed;
};

static void
search_done(struct worktree_search *search)
{
	mr_names_done(&search->gone);
	mr_names_done(&search->plain);
	mr_names_done(&search->there);
	mr_names_done(&search->maybe);
}

static bool
keep_if_from_here(void *ctx, const struct mr_agent *agent)
{
	struct worktree_search *search = ctx;

	if (!agent_has_life(agent) || strcmp(agent->worktree, search->worktree) != 0 || agent_is_operator(agent->name))
		return true;
	if (mr_agent_presence(agent) == MR_GONE)
		search->failed |= !names_add(&search->gone, str_of(agent->name));
	else if (agent->session[0])
		search->failed |= !names_add(&search->there, str_of(agent->name));
	else if (agent->process.pid == 0)
		search->failed |= !names_add(search->outside ? &search->plain : &search->maybe, str_of(agent->name));
	return !search->failed;
}

/* The one plain agent that the search found; with several of them nobody. */
static enum mr_rc
by_plain(struct mr_room *room, const struct mr_env *env, struct worktree_search *search, const char *registered,
    const char *how, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	search->registered = registered;
	if (search->plain.n != 1)
		return mr_fail(err, MR_NOTFOUND, "not one agent");
	enum mr_rc rc = room->driver->find_agent(room, search->plain.v[0], &agent, err);

	return rc == MR_OK ? is_agent(ret, env, agent.name, agent.life, false, how) : rc;
}

static enum mr_rc
by_terminal(struct mr_room *room, const struct mr_env *env, struct worktree_search *search, struct mr_self *ret,
    struct mr_error *err)
{
	enum mr_rc rc = terminal_agents(room, env, &search->plain, err);

	return rc == MR_OK ? by_plain(room, env, search, "this terminal registered",
				 "this terminal session registered it", ret, err)
			   : rc;
}

static enum mr_rc
by_worktree(struct mr_room *room, const struct mr_env *env, struct worktree_search *search, struct mr_self *ret,
    struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	const char *how = "the one agent of this worktree, whose last life is gone";

	if (!env->worktree || !env->worktree[0] || !ROOM_HAS(room, each_agent) || !ROOM_HAS(room, take_life))
		return mr_fail(err, MR_NOTFOUND, "no agents by worktree");
	search->worktree = env->worktree;
	search->outside = env->outside;
	enum mr_rc rc = room->driver->each_agent(room, keep_if_from_here, search, err);

	if (rc != MR_OK || search->failed)
		return rc != MR_OK ? rc : mr_nomem(err);
	if (search->plain.n > 0)
		return by_plain(room, env, search, "registered from this worktree:",
		    "the one agent that was registered from this worktree without a session", ret, err);
	if (search->gone.n != 1)
		return mr_fail(err, MR_NOTFOUND, "no agents by worktree");
	rc = room->driver->find_agent(room, search->gone.v[0], &agent, err);
	if (rc != MR_OK)
		return rc;
	if (!self_session(env)[0])
		return is_agent(ret, env, agent.name, agent.life, false, how);
	return bind_life(room, env, &agent, true, how, ret, err);
}

/* 6 */

static enum mr_rc
not_one(const struct worktree_search *search, struct mr_error *err)
{
	mr_auto(buf_done) struct buf names = BUF_INIT;
	const char *one = search->plain.v[0];

	for (size_t i = 0; i < search->plain.n && names.len < 80; i++)
		format_addf(&names, "%s'%.60s'", i ? ", " : "", search->plain.v[i]);
	return mr_fail(err, MR_NOTFOUND,
	    "which agent are you? %s %s\nmailroom --as %.60s ..., or export MAILROOM_AGENT=%.60s", search->registered,
	    buf_z(&names), one, one);
}

/* Inside of a harness, where it counts for nothing, what this terminal registered is at least worth a hint. */
static void
note_terminal(struct mr_room *room, const struct mr_env *env, struct worktree_search *search)
{
	mr_auto(mr_names_done) struct mr_names here = { 0 };
	struct mr_env outside = *env;
	struct mr_error ignored = { 0 };

	if (env->outside || self_session(env)[0])
		return;
	outside.outside = true;
	(void)terminal_agents(room, &outside, &here, &ignored);
	for (size_t i = 0; i < here.n; i++)
		if (!names_has(&search->maybe, here.v[i]))
			(void)names_add(&search->maybe, str_of(here.v[i]));
}

/* Some harnesses tell their shells and servers nothing, while their hooks know the session; in others there are no
 * hooks. Then the name may be known, and only the caller can say that it is his. */
static enum mr_rc
hint_said(const struct worktree_search *search, struct mr_error *err)
{
	mr_auto(buf_done) struct buf names = BUF_INIT;
	const struct mr_names *known = search->there.n > 0 ? &search->there : &search->maybe;
	const char *one = known->n == 1 ? known->v[0] : "NAME";

	if (known->n == 0)
		return mr_hint(err, "mailroom register NAME, then mailroom --as NAME ..., or MAILROOM_AGENT=NAME in "
				    "the environment, of an MCP server in its settings");
	for (size_t i = 0; i < known->n && names.len < 60; i++)
		format_addf(&names, "%s'%.40s'", i ? ", " : "", known->v[i]);
	return mr_hint(err,
	    "%s: %s; if that is you: mailroom --as %.40s ..., or export MAILROOM_AGENT=%.40s (an MCP server: in the "
	    "env "
	    "of its settings); else mailroom register NAME",
	    search->there.n > 0 ? "in a session here" : "registered here", buf_z(&names), one, one);
}

static enum mr_rc
nobody(const struct mr_room *room, const struct mr_env *env, const struct worktree_search *search,
    const struct mr_error *unbound, struct mr_error *err)
{
	mr_auto(buf_done) struct buf names = BUF_INIT;

	if (search->plain.n > 1)
		return not_one(search, err);
	for (size_t i = 0; search->gone.n > 1 && i < search->gone.n && names.len < 80; i++)
		format_addf(&names, "%s'%s'", i ? ", " : "; agents of this worktree: ", search->gone.v[i]);
	(void)mr_fail(err, MR_NOTFOUND, "which agent are you? %s",
	    self_session(env)[0] && unbound->message[0] ? unbound->message : "nothing here says it");
	if (!(room->driver->abilities & ROOM_REGISTER))
		return mr_hint(err, "mailroom --as NAME ..., or export MAILROOM_AGENT=NAME");
	if (!office_has_lives(room))
		return mr_hint(
		    err, "mailroom register NAME, mailroom takeover NAME if it is yours, or mailroom --as NAME ...");
	if (!self_session(env)[0] && (search->there.n + search->maybe.n > 0 || (!env->outside && search->gone.n < 2)))
		return hint_said(search, err);
	return mr_hint(err, "mailroom register NAME, or mailroom --as NAME ...%s", buf_z(&names));
}

static enum mr_rc
resolve_once(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(search_done) struct worktree_search search = { 0 };
	mr_auto(sys_close_fd) int lock = -1;
	struct mr_error unbound = { 0 };
	bool binds = office_has_lives(room); /* a session is bound to a life */
	enum mr_rc rc = binds ? by_session(room, env, ret, &unbound) : MR_NOTFOUND;

	if (rc == MR_NOTFOUND && binds && self_session(env)[0]) {
		/* Another process of this session may have bound it while we waited. */
		lock = session_lock(env->state_dir);
		unbound = (struct mr_error){ 0 };
		rc = by_session(room, env, ret, &unbound);
	}
	if (rc != MR_NOTFOUND) {
		if (rc != MR_OK)
			*err = unbound;
		return rc;
	}
	if (env->agent && env->agent[0])
		return by_variable(room, env, ret, err);
	if (ROOM_HAS(room, owner) && room->driver->owner(room))
		return is_agent(ret, env, room->driver->owner(room), 0, false, "the room is its own");
	if (!binds && by_plain_session(room, env, ret, &unbound) == MR_OK)
		return MR_OK;
	rc = by_terminal(room, env, &search, ret, err);
	if (rc == MR_NOTFOUND)
		*err = (struct mr_error){ 0 };
	if (rc == MR_NOTFOUND && search.plain.n == 0)
		rc = by_worktree(room, env, &search, ret, err);
	if (rc != MR_NOTFOUND)
		return rc;
	if (binds)
		note_terminal(room, env, &search);
	return nobody(room, env, &search, &unbound, err);
}

enum mr_rc
mr_self_resolve(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding store = { 0 };
	struct mr_env present = *env;
	struct mr_self self = { 0 };
	enum mr_rc rc;

	/* With --as it only matters where a session may not do what a person may. */
	if (!self_session(env)[0] && (room->driver->abilities & ROOM_REGISTER) &&
	    (!env->as || !env->as[0] || agent_is_operator(env->as)))
		self_surround(&present, &store);
	else if (env->session_aged)
		present.session = self_present_session(room, env, &store);
	if (env->as && env->as[0])
		return by_option(room, &present, ret, err);
	for (int i = 0; i < TRIES; i++) {
		*err = (struct mr_error){ 0 };
		rc = resolve_once(room, &present, &self, err);
		if (rc == MR_OK) {
			*ret = self;
			return MR_OK;
		}
		if (rc != MR_EXISTS) /* another was quicker to take the life: judge again by what is there now */
			return rc;
	}
	return mr_fail(err, MR_BUSY, "others keep taking the name");
}
