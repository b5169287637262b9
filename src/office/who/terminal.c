/* SPDX-License-Identifier: MIT */
/*
 * terminal.c - outside of a harness: which terminal session, by its leader's number and start time, registered which
 * agent. A binding for each agent, because one terminal may register several, and then none of them is who it is.
 */
#include "base/process.h"
#include "base/sys.h"
#include "office/who/who.h"
#include <inttypes.h>
#include <unistd.h>

#define TERMINAL "terminal-"

bool
terminal_is(const char *session)
{
	return strncmp(session, TERMINAL, strlen(TERMINAL)) == 0;
}

struct terminal_search {
	struct mr_room *room;
	struct mr_process leader;
	struct mr_names *found;
	const char *asked; /* was this one registered here, by a shell around us? */
	bool yes;
	const char *keep; /* the one agent that stays; all others of this terminal and room are forgotten */
	bool failed;
};

/* The life that was registered then, and no session has become it since. */
static bool
is_still(struct mr_room *room, const struct binding *b)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };

	if (room->driver->find_agent(room, b->agent, &agent, &ignored) != MR_OK)
		return false;
	return !office_has_lives(room) || (agent_has_life(&agent) && agent.life == b->life && !agent.session[0]);
}

static bool
examine_terminal(void *ctx, int folder, const char *name, const struct binding *b)
{
	struct terminal_search *search = ctx;

	if (!terminal_is(b->session))
		return true;
	bool ours = process_same(&b->process, &search->leader) && session_is_in(b, search->room->spec);

	if (search->asked) {
		search->yes = ours && strcmp(b->agent, search->asked) == 0 && process_is_ancestor(&b->shell) &&
			      is_still(search->room, b);
		return !search->yes;
	}
	if (search->found && ours && is_still(search->room, b))
		search->failed |= !names_add(search->found, str_of(b->agent));
	if (!search->found &&
	    (ours ? search->keep && strcmp(b->agent, search->keep) != 0 : process_state(&b->process) == PROCESS_DEAD))
		(void)sys_unlink(folder, name);
	return !search->failed;
}

enum mr_rc
terminal_agents(struct mr_room *room, const struct mr_env *env, struct mr_names *ret, struct mr_error *err)
{
	struct terminal_search search = { .room = room, .found = ret };
	struct mr_error ignored = { 0 };

	if (!env->outside || !env->state_dir || !ROOM_HAS(room, find_agent) || !process_terminal(&search.leader))
		return MR_OK;
	(void)session_each(env->state_dir, examine_terminal, &search, &ignored);
	return search.failed ? mr_nomem(err) : MR_OK;
}

bool
terminal_registered(struct mr_room *room, const struct mr_env *env, const char *agent)
{
	struct terminal_search search = { .room = room, .asked = agent };
	struct mr_error ignored = { 0 };

	if (!env->outside || self_session(env)[0] || !env->state_dir || !process_terminal(&search.leader))
		return false;
	(void)session_each(env->state_dir, examine_terminal, &search, &ignored);
	return search.yes;
}

bool
terminal_bind(struct mr_room *room, const struct mr_env *env, const char *agent, unsigned life, bool alone)
{
	struct terminal_search search = { .room = room, .keep = alone ? agent : NULL };
	mr_auto(buf_done) struct buf name = BUF_INIT;
	struct binding b = { .life = life };
	char worktree[] = "";
	struct mr_error ignored = { 0 };

	if (!env->outside || !env->state_dir || !process_terminal(&search.leader) || search.leader.pid == getpid())
		return false;
	(void)session_each(env->state_dir, examine_terminal, &search, &ignored);
	buf_addf(&name, TERMINAL "%" PRId64 "-%" PRIu64 "-%s", search.leader.pid, search.leader.start, agent);
	(void)buf_z(&name);
	b.process = search.leader;
	(void)process_describe((int64_t)getppid(), &b.shell);
	b.session = buf_ok(&name) ? name.ptr : NULL;
	b.worktree = worktree;
	(void)snprintf(b.agent, sizeof b.agent, "%s", agent);
	return b.session && session_save(env->state_dir, room->spec, &b, &ignored) == MR_OK;
}
