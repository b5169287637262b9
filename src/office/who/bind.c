/* SPDX-License-Identifier: MIT */
/* bind.c - tying a harness session to a life of an agent, and finding the tie again. */
#include "base/clock.h"
#include "base/process.h"
#include "office/nudge/nudge.h"
#include "office/who/who.h"

const char *
self_session(const struct mr_env *env)
{
	return env->session ? env->session : "";
}

/* ---- Finding ---- */

struct life_search {
	const char *session;
	struct binding found;
	size_t n;
};

static bool
keep_if_session(void *ctx, const struct mr_agent *agent)
{
	struct life_search *search = ctx;

	if (!agent_has_life(agent) || strcmp(agent->session, search->session) != 0)
		return true;
	search->n++;
	search->found.life = agent->life;
	search->found.process = agent->process;
	memcpy(search->found.agent, agent->name, sizeof search->found.agent);
	return true;
}

/* A sandbox may keep the state folder from being written; the life itself names its session too. */
static enum mr_rc
find_by_life(struct mr_room *room, const char *session, struct binding *ret, struct mr_error *err)
{
	struct life_search search = { .session = session };

	TRY(mr_each_agent(room, keep_if_session, &search, err));
	if (search.n != 1)
		return mr_fail(err, MR_NOTFOUND, "session '%.80s' is not bound to an agent", session);
	search.found.session = strdup(session);
	search.found.worktree = strdup("");
	if (!search.found.session || !search.found.worktree) {
		binding_done(&search.found);
		return mr_nomem(err);
	}
	*ret = search.found;
	return MR_OK;
}

enum mr_rc
self_binding(struct mr_room *room, const struct mr_env *env, struct binding *ret, bool *ret_saved, struct mr_error *err)
{
	struct mr_error broken = { 0 }, ignored = { 0 };
	enum mr_rc rc = MR_NOTFOUND;

	*ret_saved = false;
	if (!self_session(env)[0] || !ROOM_HAS(room, find_agent) || !ROOM_HAS(room, each_agent))
		return mr_fail(err, MR_NOTFOUND, "no harness session is known");
	if (env->state_dir) {
		rc = session_load(env->state_dir, env->session, room->spec, ret, &broken);
		*ret_saved = rc == MR_OK;
		if (rc != MR_OK && session_find_process(
				       env->state_dir, env->session, room->spec, &env->process, ret, &ignored) == MR_OK)
			return MR_OK;
	}
	if (rc == MR_OK)
		return MR_OK;
	bool is_broken = env->state_dir && rc != MR_NOTFOUND;

	rc = find_by_life(room, env->session, ret, err);
	if (rc == MR_NOTFOUND && is_broken)
		return mr_fail(err, MR_NOTFOUND, "%s", broken.message);
	return rc;
}

/* Nobody is fenced there, so the name need only be there still. After /clear the binding is that of the same process.
 */
enum mr_rc
self_plain_binding(struct mr_room *room, const struct mr_env *env, struct binding *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(binding_done) struct binding b = { 0 };
	struct mr_error ignored = { 0 };

	if (!self_session(env)[0] || !env->state_dir || !ROOM_HAS(room, find_agent))
		return mr_fail(err, MR_NOTFOUND, "no harness session is known");
	if (session_load(env->state_dir, env->session, room->spec, &b, &ignored) != MR_OK &&
	    session_find_process(env->state_dir, env->session, room->spec, &env->process, &b, &ignored) != MR_OK)
		return mr_fail(err, MR_NOTFOUND, "session '%.80s' is not bound to an agent", env->session);
	if (room->driver->find_agent(room, b.agent, &agent, &ignored) != MR_OK)
		return mr_fail(err, MR_NOTFOUND, "this session was agent '%s', who was pruned", b.agent);
	*ret = b;
	b = (struct binding){ 0 };
	return MR_OK;
}

bool
self_bind_plain(struct mr_room *room, const struct mr_env *env, const char *name)
{
	mr_auto(binding_done) struct binding b = { .process = env->process };
	struct mr_error ignored = { 0 };

	if (!self_session(env)[0] || !env->state_dir)
		return false;
	(void)snprintf(b.agent, sizeof b.agent, "%s", name);
	b.session = strdup(env->session);
	b.worktree = strdup("");
	b.inherited = env->inherited ? strdup(env->inherited) : NULL;
	return b.session && b.worktree && session_save(env->state_dir, room->spec, &b, &ignored) == MR_OK;
}

/* A server's environment names the session in which the server was started. After a /clear that is an earlier one, and
 * the server of a nested harness has inherited the outer session's. The harness process above us is neither: what is
 * bound to it is what we are, and an id that is bound to another living process is not ours. */
const char *
self_present_session(struct mr_room *room, const struct mr_env *env, struct binding *store)
{
	mr_auto(binding_done) struct binding named = { 0 };
	struct mr_error ignored = { 0 };

	if (!self_session(env)[0] || !env->state_dir || env->process.pid == 0)
		return env->session;
	if (session_find_process(env->state_dir, env->session, room->spec, &env->process, store, &ignored) == MR_OK)
		return store->session;
	if (session_may_clear(env->session, env->session) &&
	    session_load(env->state_dir, env->session, room->spec, &named, &ignored) == MR_OK &&
	    !process_same(&named.process, &env->process) && process_state(&named.process) == PROCESS_ALIVE)
		return NULL;
	return env->session;
}

void
self_surround(struct mr_env *env, struct binding *store)
{
	if (self_session(env)[0] || env->two_sessions || env->hooked || !session_above(env->state_dir, store))
		return;
	env->session = store->session;
	env->process = store->process;
	env->outside = false;
}

enum mr_rc
self_check(struct mr_room *room, const struct mr_env *env, const struct binding *b, struct mr_agent *ret_agent,
    struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent now = { 0 };
	mr_auto(buf_done) struct buf who = BUF_INIT;
	enum mr_rc rc = room->driver->find_agent(room, b->agent, &now, err);

	if (rc == MR_NOTFOUND || (rc == MR_OK && !agent_has_life(&now)))
		return mr_fail(err, MR_NOTFOUND, "this session was agent '%s', who was pruned", b->agent);
	if (rc != MR_OK)
		return rc;
	/* After /clear the life names the new id, and the harness process that we were found below all the same. A
	 * thread of Codex always says its own id, and that process may be everybody's. */
	if (now.life == b->life && strcmp(now.session, b->session) != 0 &&
	    (thread_is(b->session) ||
		(!process_same(&now.process, &env->process) && !process_is_ancestor(&now.process))))
		return mr_fail(err, MR_NOTFOUND,
		    "the binding of this session says '%s', and that agent's life is another's", b->agent);
	if (now.life == b->life) {
		*ret_agent = now;
		now = (struct mr_agent){ 0 };
		return MR_OK;
	}
	agent_describe_life(&now, &who);
	return mr_fail(err, MR_REFUSED,
	    "this session was life %u of '%s' and is fenced: the name was taken over by %s\n"
	    "mailroom register NAME takes another name, mailroom takeover %.80s takes this one back",
	    b->life, b->agent, buf_z(&who), b->agent);
}

/* ---- Tying ---- */

/* Best effort: without the file the session is found by its life, only slower. */
static void
save_binding(struct mr_room *room, const struct mr_env *env, const struct mr_agent *agent)
{
	struct mr_error ignored = { 0 };
	mr_auto(binding_done) struct binding b = { .life = agent->life, .process = agent->process };

	if (!self_session(env)[0] || !env->state_dir)
		return;
	memcpy(b.agent, agent->name, sizeof b.agent);
	b.session = strdup(env->session);
	b.worktree = strdup(agent->worktree ? agent->worktree : "");
	b.inherited = env->inherited ? strdup(env->inherited) : NULL;
	if (b.session && b.worktree)
		(void)session_save(env->state_dir, room->spec, &b, &ignored);
}

bool
self_is_life(const struct mr_env *env, const struct mr_agent *agent)
{
	const char *mine = self_session(env);

	if (!agent_has_life(agent))
		return false;
	if (mine[0] && strcmp(mine, agent->session) == 0)
		return true;
	/* One process may run several sessions of one harness side by side; only /clear makes two of them
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
	save_binding(room, env, &now);
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

	if (next.started_ms < agent->created_ms) /* the clock was set back: still not a life of before the name */
		next.started_ms = agent->created_ms;
	next.seen_ms = next.started_ms;
	memcpy(next.name, agent->name, sizeof next.name);

	TRY(room->driver->take_life(room, &next, &returned, err));
	save_binding(room, env, &next);
	pane_remember(room, next.name, next.life, env);
	*ret_life = next.life;
	*ret_returned = returned;
	return MR_OK;
}
