/* SPDX-License-Identifier: MIT */
/*
 * self.c - which agent the caller is. The order, and why it is safe:
 *
 *	1 --as                a person or script says so
 *	2 the session         bound to an agent and a life; a newer life fences it. If a harness gives its shells and
 *	                      servers no id: the session of the nearest bound harness process above us
 *	3 a variable          leaks into nested agents, so it never takes a life that still exists
 *	4 the terminal        outside of a harness, if it registered exactly one agent
 *	5 the worktree        outside of a harness the one agent that was registered here without a session; else only
 *	                      if exactly one agent lived here and is gone
 *	6 no agent            an error with the line to type, never a guess
 *
 * Two processes of one new session (a hook and a shell) may get here at once, and so may two sessions that want the
 * same agent: 3 and 5 are decided under a lock, and the room decides which one takes a life.
 */
#include "base/format.h"
#include "office/address/address.h"
#include "office/who/who.h"

#define TRIES 10

const char *
self_session(const struct mr_env *env)
{
	return env->session ? env->session : "";
}

/* ---- Finding the binding of a session ---- */

void
binding_done(struct binding *b)
{
	record_done(&b->own);
	*b = (struct binding){ 0 };
}

enum mr_rc
self_binding(struct mr_room *room, const struct mr_env *env, struct binding *ret, bool *ret_saved, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	struct mr_error broken = { 0 };
	const struct mr_agent *found = NULL;
	size_t n = 0;

	*ret_saved = false;
	if (!self_session(env)[0] || !ROOM_HAS(room, find_agent))
		return mr_fail(err, MR_NOTFOUND, "no harness session is known");
	if (env->state_dir) {
		*ret_saved = session_load(env->state_dir, env->session, room->spec, ret, &broken) == MR_OK;
		if (*ret_saved || session_find_process(env->state_dir, env->session, room->spec, &env->process, ret))
			return office_has_lives(room) || agent_exists(room, ret->agent, IGNORED) == MR_OK
				   ? MR_OK
				   : mr_fail(
					 err, MR_NOTFOUND, "this session was agent '%s', which was pruned", ret->agent);
	}
	/* A sandbox may make the state folder read-only; the life itself names its session, too. */
	if (office_has_lives(room))
		TRY(mr_agent_list(room, &agents, err));
	for (size_t i = 0; i < agents.n; i++)
		if (agent_has_life(&agents.v[i]) && strcmp(agents.v[i].session, env->session) == 0) {
			found = &agents.v[i];
			n++;
		}
	if (n == 1) {
		*ret = (struct binding){
			.life = found->life, .process = found->process, .session = env->session, .worktree = ""
		};
		memcpy(ret->agent, found->name, sizeof ret->agent);
		return MR_OK;
	}
	if (broken.code != MR_OK && broken.code != MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "%s", broken.message);
	return mr_fail(err, MR_NOTFOUND, "session '%.80s' is not bound to an agent", env->session);
}

/* For mr_env.session_aged: the session that this process belongs to now; NULL: none. `store` holds it. A server's
 * environment names the session in which the server was started: after a /clear that is an earlier one, and the server
 * of a nested harness has inherited the outer session's. The harness process above us is current: our session is the
 * one bound to it, and an id that is bound to another living process is not ours. */
static const char *
self_present_session(struct mr_room *room, const struct mr_env *env, struct binding *store)
{
	mr_auto(binding_done) struct binding named = { 0 };

	if (!self_session(env)[0] || !env->state_dir || env->process.pid == 0)
		return env->session;
	if (session_find_process(env->state_dir, env->session, room->spec, &env->process, store))
		return store->session;
	if (session_may_clear(env->session, env->session) &&
	    session_load(env->state_dir, env->session, room->spec, &named, IGNORED) == MR_OK &&
	    !process_same(&named.process, &env->process) && process_state(&named.process) == PROCESS_ALIVE)
		return NULL;
	return env->session;
}

char *
self_surround(struct mr_env *env)
{
	struct mr_process process;

	if (self_session(env)[0] || env->two_sessions || env->hooked)
		return NULL;
	char *session = session_above(env->state_dir, &process);

	if (session) {
		env->session = session;
		env->process = process;
		env->outside = false;
	}
	return session;
}

enum mr_rc
self_check(struct mr_room *room, const struct mr_env *env, const struct binding *b, struct mr_agent *ret_agent,
    struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent now = { 0 };
	mr_auto(buf_done) struct buf who = BUF_INIT;
	enum mr_rc rc = room->driver->find_agent(room, b->agent, &now, err);

	if (rc == MR_NOTFOUND || (rc == MR_OK && !agent_has_life(&now)))
		return mr_fail(err, MR_NOTFOUND, "this session was agent '%s', which was pruned", b->agent);
	if (rc != MR_OK)
		return rc;
	if (now.life != b->life) {
		agent_describe_life(&now, &who);
		return mr_fail(err, MR_REFUSED,
		    "this session was life %u of '%s' and is fenced: the name was taken over by %s\n"
		    "mailroom register NAME takes another name, mailroom takeover %.80s takes this one back",
		    b->life, b->agent, buf_z(&who), b->agent);
	}
	/* After /clear the life has the new id, and we are still found below the same harness process. A thread of
	 * Codex always gives its own id, and its process may serve several threads. */
	if (strcmp(now.session, b->session) != 0 &&
	    (thread_is(b->session) ||
		(!process_same(&now.process, &env->process) && !process_is_ancestor(&now.process))))
		return mr_fail(err, MR_NOTFOUND,
		    "this session is bound to '%s', but the life of that agent belongs to another session", b->agent);
	*ret_agent = now;
	now = (struct mr_agent){ 0 };
	return MR_OK;
}

/* ---- Binding a session to a life ---- */

void
pane_remember(struct mr_room *room, const char *agent, unsigned life, const struct mr_env *env)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (!ROOM_HAS(room, record_put) || !ROOM_HAS(room, record_drop))
		return;
	buf_addf(&text, "Life: %u\n", life);
	if (env->tmux && env->tmux[0] == '/' && env->tmux_pane && env->tmux_pane[0] == '%' &&
	    header_add(&text, "Socket", str_of(env->tmux), IGNORED) == MR_OK &&
	    header_add(&text, "Pane", str_of(env->tmux_pane), IGNORED) == MR_OK && buf_ok(&text))
		(void)room->driver->record_put(room, PANE, agent, PANE_NAME, buf_str(&text), IGNORED);
	else
		(void)room->driver->record_drop(room, PANE, agent, PANE_NAME, IGNORED);
}

/* Without the file the session is found through its life, only slower. */
static bool
save_binding(struct mr_room *room, const struct mr_env *env, struct binding b, const char *agent)
{
	if (!self_session(env)[0] || !env->state_dir)
		return false;
	text_join(b.agent, sizeof b.agent, agent, NULL);
	b.session = env->session;
	b.inherited = env->inherited;
	return session_save(env->state_dir, room->spec, &b);
}

bool
self_bind_plain(struct mr_room *room, const struct mr_env *env, const char *name)
{
	return save_binding(room, env, (struct binding){ .process = env->process }, name);
}

static void
bind_life(struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent)
{
	(void)save_binding(room, env,
	    (struct binding){ .life = agent->life, .process = agent->process, .worktree = agent->worktree },
	    agent->name);
}

bool
self_is_life(const struct mr_env *env, const struct mr_agent *agent)
{
	const char *mine = self_session(env);

	if (!agent_has_life(agent))
		return false;
	if (mine[0] && strcmp(mine, agent->session) == 0)
		return true;
	/* One process may run several sessions of one harness side by side; only after /clear two of them are the same
	 * one. */
	return env->process.pid && process_same(&env->process, &agent->process) &&
	       process_state(&env->process) == PROCESS_ALIVE &&
	       (!mine[0] || !agent->session[0] || session_may_clear(mine, agent->session));
}

enum mr_rc
self_adopt_life(struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent, struct mr_error *err)
{
	struct mr_agent now = *agent; /* borrows agent's strings */
	bool other_process = env->process.pid && !process_same(&env->process, &agent->process) &&
			     (agent->process.pid == 0 || process_state(&agent->process) == PROCESS_DEAD);
	bool other_session = self_session(env)[0] && strcmp(env->session, agent->session) != 0;

	if (other_process)
		now.process = env->process;
	if (other_session)
		now.session = env->session;
	if (!now.worktree[0] && env->worktree)
		now.worktree = env->worktree;
	if ((other_process || other_session) && ROOM_HAS(room, update_agent)) {
		now.host = host_name();
		TRY(room->driver->update_agent(room, &now, err));
	}
	bind_life(room, env, &now);
	return MR_OK;
}

enum mr_rc
self_take_life(struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent, unsigned *ret_life,
    size_t *ret_returned, struct mr_error *err)
{
	struct mr_agent next = {
		.life = agent->life + 1,
		.created_ms = agent->created_ms,
		.started_ms = clock_now_ms(),
		.process = env->process,
		.worktree = env->worktree ? env->worktree : "",
		.session = self_session(env),
		.host = host_name(),
		.role = agent->role ? agent->role : "",
		.wake = agent->wake ? agent->wake : "",
	};
	size_t returned = 0;

	if (next.started_ms <
	    agent->created_ms) /* the clock was set back: the life must still not be older than the name */
		next.started_ms = agent->created_ms;
	next.seen_ms = next.started_ms;
	memcpy(next.name, agent->name, sizeof next.name);
	TRY(room->driver->take_life(room, &next, &returned, err));
	bind_life(room, env, &next);
	pane_remember(room, next.name, next.life, env);
	*ret_life = next.life;
	*ret_returned = returned;
	return MR_OK;
}

/* ---- The result ---- */

static enum mr_rc
is_agent(struct mr_self *ret, const struct mr_env *env, const char *agent, unsigned life, bool bound, const char *how)
{
	*ret = (struct mr_self){ .life = life, .bound = bound };
	text_join(ret->agent, sizeof ret->agent, agent, NULL);
	text_join(ret->session, sizeof ret->session, self_session(env), NULL);
	text_join(ret->how, sizeof ret->how, how, NULL);
	return MR_OK;
}

/* The registered spelling of the name: if `send` to a name reaches an agent, --as with that name must be that agent.
 * `whole` false: only the number of its life is needed, as usual. */
static enum mr_rc
registered_name(struct mr_room *room, const char *given, bool whole, char ret[MR_ADDRESS_MAX + 1],
    struct mr_agent *ret_agent, struct mr_error *err)
{
	char local[MR_ADDRESS_MAX + 1], found[MR_ADDRESS_MAX + 1];

	TRY(agent_spelled(room, given, local, err));
	memcpy(ret, local, sizeof local);
	if (!ROOM_HAS(room, find_agent))
		return MR_OK;
	enum mr_rc rc = whole || !ROOM_HAS(room, check_life)
			    ? room->driver->find_agent(room, local, ret_agent, err)
			    : room->driver->check_life(room, local, 0, NULL, &ret_agent->life, err);

	/* A kind without lives has no list of its agents: its own programs accept any name. */
	if (rc != MR_NOTFOUND || !office_has_lives(room))
		return mr_unless(rc, MR_NOTFOUND, err);
	rc = address_registered(room, local, found, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? agent_unknown(room, local, err) : rc;
	memcpy(ret, found, sizeof found);
	return mr_agent_get(room, found, ret_agent, err);
}

enum mr_rc
mr_self_named(struct mr_room *room, const char *agent, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent found = { 0 };
	char name[MR_ADDRESS_MAX + 1];

	TRY(registered_name(room, agent, false, name, &found, err));
	return is_agent(ret, &(struct mr_env){ 0 }, name, found.life, false, "named");
}

void
mr_self_seen(struct mr_room *room, const struct mr_self *self)
{
	if (self->life > 0)
		room->driver->seen(room, self->agent, self->life, self->door ? self->door : MR_DOOR_LIBRARY);
}

/* 1. `bound` keeps its value for the session, so that sending can refuse a harness that says "--as operator". */
static enum mr_rc
by_option(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(mr_agent_done) struct mr_agent found = { 0 };
	char name[MR_ADDRESS_MAX + 1];
	bool saved = false, bound = false;

	TRY(registered_name(room, env->as, false, name, &found, err));
	/* Searching all lives is done only if the result matters. */
	if (self_session(env)[0] && agent_is_operator(name))
		bound = self_binding(room, env, &b, &saved, IGNORED) == MR_OK;
	else if (self_session(env)[0] && env->state_dir)
		bound = session_load(env->state_dir, env->session, room->spec, &b, IGNORED) == MR_OK;
	(void)is_agent(ret, env, name, found.life, bound, "--as");
	ret->explicit_as = true;
	ret->hooked = bound && b.hooked && strcmp(b.agent, name) == 0 && b.life == found.life;
	return MR_OK;
}

/* 2 */

/* The usual case: our life is the newest, and names our session. The binding is in the state folder, which a sandboxed
 * session may be able to write; without this check of the life it could act as any agent, and see its mail. */
static bool
is_newest(struct mr_room *room, const struct binding *b)
{
	const struct room_driver *driver = room->driver;

	return ROOM_HAS(room, check_life) && driver->find_agent(room, b->agent, NULL, IGNORED) == MR_OK &&
	       driver->check_life(room, b->agent, b->life, b->session, NULL, IGNORED) == MR_OK;
}

static enum mr_rc
is_session(const struct mr_env *env, const struct binding *b, struct mr_self *ret)
{
	char how[sizeof ret->how];

	(void)snprintf(how, sizeof how, "session %.120s is bound to it", env->session);
	(void)is_agent(ret, env, b->agent, b->life, true, how);
	ret->hooked = b->hooked;
	ret->unconfirmed = session_is_unconfirmed(b);
	return MR_OK;
}

bool
mr_self_bound(struct mr_room *room, const struct mr_env *env, struct mr_self *ret)
{
	mr_auto(binding_done) struct binding b = { 0 };

	/* A process that is gone or replaced may mean that the session was resumed: see by_session. */
	return !env->session_aged && !(env->as && env->as[0]) && self_session(env)[0] && env->state_dir &&
	       office_has_lives(room) && session_load(env->state_dir, env->session, room->spec, &b, IGNORED) == MR_OK &&
	       (env->hooked || b.process.pid == 0 || process_runs(&b.process)) && is_newest(room, &b) &&
	       is_session(env, &b, ret) == MR_OK;
}

static enum mr_rc
by_session(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	bool saved = false;

	TRY(self_binding(room, env, &b, &saved, err));
	bool resumed =
	    env->process.pid && !process_same(&env->process, &b.process) && process_state(&b.process) == PROCESS_DEAD;

	if (!saved || resumed || !is_newest(room, &b))
		TRY(self_check(room, env, &b, &agent, err));
	/* Best effort: the agent is known, and a room that cannot be written can still be read. */
	if (!saved || resumed)
		(void)self_adopt_life(room, env, &agent, IGNORED);
	return is_session(env, &b, ret);
}

/* If the newest life is gone, this session takes the next one; a life without a session becomes this session's. */
static enum mr_rc
become(struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent, bool take, const char *how,
    struct mr_self *ret, struct mr_error *err)
{
	unsigned life = agent->life;
	size_t returned = 0;

	TRY(take ? self_take_life(room, env, agent, &life, &returned, err) : self_adopt_life(room, env, agent, err));
	return is_agent(ret, env, agent->name, life, true, how);
}

/* 3 */

static enum mr_rc
by_variable(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(buf_done) struct buf who = BUF_INIT;
	char name[MR_ADDRESS_MAX + 1], source[80];
	bool session = self_session(env)[0] != '\0';

	(void)snprintf(source, sizeof source, "$%s", env->agent_source ? env->agent_source : "MAILROOM_AGENT");
	if (registered_name(room, env->agent, true, name, &agent, err) != MR_OK)
		return mr_wrap(err, "%s", source);
	if (!ROOM_HAS(room, find_agent) || !ROOM_HAS(room, take_life))
		return is_agent(ret, env, name, agent.life, false, source);
	enum mr_presence presence = mr_agent_presence(&agent);

	if (!session && (presence != MR_LIVE || process_is_ancestor(&agent.process)))
		return is_agent(ret, env, name, agent.life, false, source);
	if (session && agent_is_operator(name))
		return mr_fail(err, MR_REFUSED,
		    "%s says '%s', but a harness session is not the operator\nmailroom register NAME takes a name of your own",
		    source, env->agent);
	bool unused = agent_has_life(&agent) && agent.process.pid == 0 && agent.session[0] == '\0';

	if (session && (self_is_life(env, &agent) || unused))
		return become(room, env, &agent, false, source, ret, err);
	if (session && presence == MR_GONE)
		return become(room, env, &agent, true, source, ret, err);
	agent_describe_life(&agent, &who);
	(void)mr_fail(
	    err, MR_REFUSED, "%s says '%s', but that agent is in use elsewhere: %s", source, agent.name, buf_z(&who));
	return session
		   ? mr_hint(err,
			 "mailroom register NAME takes a name of your own; mailroom takeover %.80s moves this one here",
			 agent.name)
		   : mr_hint(err, "to act as it on purpose: mailroom --as %.80s ...", agent.name);
}

/* 4 and 5 */

struct worktree_search { /* agents that live or lived in the worktree */
	struct mr_names gone;
	struct mr_names plain;  /* registered without a session, by a person or a script */
	struct mr_names there;  /* in a harness session */
	struct mr_names maybe;  /* registered here without a session; inside of a harness that proves nothing */
	const char *registered; /* where the plain ones were registered: "this terminal" */
	const struct mr_env *env;
	size_t read; /* lives; above LIVES_READ the search was given up and proves nothing */
	bool failed;
};
#define LIVES_READ                                                                                                     \
	1000 /* each is two files: agents of a large fleet should say their name, or every command reads them all */

static void
search_done(struct worktree_search *search)
{
	mr_names_done(&search->gone);
	mr_names_done(&search->plain);
	mr_names_done(&search->there);
	mr_names_done(&search->maybe);
}

/* The one plain agent that was found; none if there are several. */
static enum mr_rc
by_plain(struct mr_room *room, const struct mr_env *env, struct worktree_search *search, const char *registered,
    const char *how, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	search->registered = registered;
	if (search->plain.n != 1)
		return mr_fail(err, MR_NOTFOUND, "not one agent");
	TRY(room->driver->find_agent(room, search->plain.v[0], &agent, err));
	return is_agent(ret, env, agent.name, agent.life, false, how);
}

static bool
note_life(void *ctx, const struct mr_agent *a)
{
	struct worktree_search *search = ctx;

	if (++search->read > LIVES_READ)
		return false;
	if (!agent_has_life(a) || strcmp(a->worktree, search->env->worktree) != 0 || agent_is_operator(a->name))
		return true;
	struct mr_names *list = mr_agent_presence(a) == MR_GONE ? &search->gone
				: a->session[0]                 ? &search->there
				: a->process.pid != 0           ? NULL
				: search->env->outside          ? &search->plain
								: &search->maybe;

	search->failed = list && !names_add(list, str_of(a->name));
	return !search->failed;
}

static enum mr_rc
by_worktree(struct mr_room *room, const struct mr_env *env, struct worktree_search *search, struct mr_self *ret,
    struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	const char *how = "the one agent of this worktree, whose last life is gone";

	if (!env->worktree || !env->worktree[0] || !ROOM_HAS(room, each_agent) || !ROOM_HAS(room, take_life))
		return mr_fail(err, MR_NOTFOUND, "no agents by worktree");
	search->env = env;
	TRY(room->driver->each_agent(room, false, note_life, search, err));
	TRY(mr_got(!search->failed, err));
	if (search->read > LIVES_READ) {
		search_done(search);
		return mr_fail(err, MR_NOTFOUND, "too many agents");
	}
	if (search->plain.n > 0)
		return by_plain(room, env, search, "registered from this worktree:",
		    "the one agent that was registered from this worktree without a session", ret, err);
	if (search->gone.n != 1)
		return mr_fail(err, MR_NOTFOUND, "no agents by worktree");
	TRY(room->driver->find_agent(room, search->gone.v[0], &agent, err));
	if (!self_session(env)[0])
		return is_agent(ret, env, agent.name, agent.life, false, how);
	return become(room, env, &agent, true, how, ret, err);
}

/* 6 */

/* "'a', 'b'", up to about `max` bytes */
static void
list_names(struct buf *out, const struct mr_names *names, size_t max)
{
	for (size_t i = 0; i < names->n && out->len < max; i++)
		format_addf(out, "%s'%.60s'", i ? ", " : "", names->v[i]);
}

static enum mr_rc
nobody(const struct mr_room *room, const struct mr_env *env, const struct worktree_search *search,
    const struct mr_error *unbound, struct mr_error *err)
{
	mr_auto(buf_done) struct buf names = BUF_INIT;

	if (search->plain.n > 1) {
		list_names(&names, &search->plain, 80);
		return mr_fail(err, MR_NOTFOUND,
		    "cannot tell which agent you are: %s %s\nmailroom --as %.60s ..., or export MAILROOM_AGENT=%.60s",
		    search->registered, buf_z(&names), search->plain.v[0], search->plain.v[0]);
	}
	(void)mr_fail(err, MR_NOTFOUND, "cannot tell which agent you are: %s",
	    self_session(env)[0] && unbound->message[0] ? unbound->message
	    : search->read > LIVES_READ
		? "nothing here names one, and with more than a thousand agents the worktree is not searched"
		: "nothing here names one");
	if (!(room->driver->abilities & ROOM_REGISTER))
		return mr_hint(err, "mailroom --as NAME ..., or export MAILROOM_AGENT=NAME");
	if (!office_has_lives(room))
		return mr_hint(
		    err, "mailroom register NAME, mailroom takeover NAME if it is yours, or mailroom --as NAME ...");
	if (!self_session(env)[0] && (search->there.n + search->maybe.n > 0 || (!env->outside && search->gone.n < 2))) {
		/* Some harnesses give no id to their shells and servers, although their hooks know the session; others
		 * have no hooks. Then the name may be known, and only the caller can say that it is its own. */
		const struct mr_names *known = search->there.n > 0 ? &search->there : &search->maybe;
		const char *one = known->n == 1 ? known->v[0] : "NAME";

		list_names(&names, known, 60);
		if (known->n == 0)
			return mr_hint(err,
			    "mailroom register NAME, then mailroom --as NAME ..., or MAILROOM_AGENT=NAME in the "
			    "environment (of an MCP server: in its settings)");
		return mr_hint(err,
		    "%s: %s; if that is you: mailroom --as %.40s ..., or export MAILROOM_AGENT=%.40s (an MCP server: in "
		    "the env of its settings); else mailroom register NAME",
		    search->there.n > 0 ? "in a session here" : "registered here", buf_z(&names), one, one);
	}
	if (search->gone.n > 1)
		list_names(&names, &search->gone, 60);
	return mr_hint(err, "mailroom register NAME, or mailroom --as NAME ...%s%s",
	    names.len > 0 ? "; agents of this worktree: " : "", buf_z(&names));
}

static enum mr_rc
resolve_once(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(search_done) struct worktree_search search = { 0 };
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(sys_close_fd) int lock = -1;
	struct mr_error unbound = { 0 };
	bool binds = office_has_lives(room), saved = false; /* a session is bound to a life */
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
	if (room->owner)
		return is_agent(ret, env, room->owner, 0, false, "the room is its own");
	/* In a room without lives the variables precede the session, because its own programs set them. */
	if (!binds && self_binding(room, env, &b, &saved, &unbound) == MR_OK) {
		if (!saved)
			(void)self_bind_plain(room, env, b.agent);
		return is_session(env, &b, ret);
	}
	TRY(terminal_agents(room, env, &search.plain, err));
	rc = by_plain(room, env, &search, "this terminal registered", "this terminal session registered it", ret, err);
	if (rc == MR_NOTFOUND && search.plain.n == 0) {
		*err = (struct mr_error){ 0 };
		rc = by_worktree(room, env, &search, ret, err);
	}
	if (rc != MR_NOTFOUND)
		return rc;
	if (binds && !env->outside && !self_session(env)[0]) {
		/* Inside of a harness the agents of this terminal do not count, but they make a useful hint. */
		mr_auto(mr_names_done) struct mr_names here = { 0 };
		struct mr_env outside = *env;

		outside.outside = true;
		(void)terminal_agents(room, &outside, &here, IGNORED);
		for (size_t i = 0; i < here.n; i++)
			(void)names_add_once(&search.maybe, here.v[i]);
	}
	return nobody(room, env, &search, &unbound, err);
}

enum mr_rc
mr_self_resolve(struct mr_room *room, const struct mr_env *env, struct mr_self *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding store = { 0 };
	mr_auto(free_ptr) char *above = NULL;
	struct mr_env present = *env;
	struct mr_self self = { 0 };

	/* With --as it only matters where a session may not do what a person may. */
	if (!self_session(env)[0] && (room->driver->abilities & ROOM_REGISTER) &&
	    (!env->as || !env->as[0] || agent_is_operator(env->as)))
		above = self_surround(&present);
	else if (env->session_aged)
		present.session = self_present_session(room, env, &store);
	if (env->as && env->as[0])
		return by_option(room, &present, ret, err);
	for (int i = 0; i < TRIES; i++) {
		*err = (struct mr_error){ 0 };
		enum mr_rc rc = resolve_once(room, &present, &self, err);

		if (rc == MR_OK)
			*ret = self;
		if (rc != MR_EXISTS) /* another process took the life: decide again by the new state */
			return rc;
	}
	return mr_fail(err, MR_BUSY, "other sessions keep taking the name");
}
