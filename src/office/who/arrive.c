/* SPDX-License-Identifier: MIT */
/*
 * arrive.c - the beginning of a harness session: who it is, and if it is nobody, a name for it.
 *
 * The name is made of the worktree's folder. While that agent is somebody else, in this worktree or in another of the
 * same name, a number is put behind it. Two sessions that begin at once in one worktree both try the first name, one of
 * them gets it, and the other goes on; the processes of one session (its hooks run side by side) find that it is bound
 * once one of them was quicker.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/sys.h"
#include "message/address.h"
#include "office/tell/inject.h"
#include "office/nudge/nudge.h"
#include "office/who/who.h"
#include <unistd.h>

#define NUMBERS 99
#define BASE_MAX 48     /* of the 64 that a name may have */
#define UNLOAD_MS 60000 /* see thread.c */

/* ---- A name ---- */

static bool
is_name(const char *name)
{
	char normal[MR_ADDRESS_MAX + 1];
	struct mr_error ignored = { 0 };

	return address_normal(str_of(name), normal, &ignored) == MR_OK && !agent_is_operator(name) &&
	       !ascii_caseeq(name, "mailroom");
}

/* "My Project!" -> "My-Project" */
static void
base_of(const char *worktree, char ret[BASE_MAX + 8])
{
	const char *folder = path_name(worktree);
	char plain[BASE_MAX + 1];
	size_t n = 0;

	for (; *folder && n < BASE_MAX; folder++) {
		char c = *folder;
		bool kept = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
			    (strchr("._+-", c) && n > 0);

		if (kept)
			plain[n++] = c;
		else if (n > 0 && plain[n - 1] != '-')
			plain[n++] = '-';
	}
	while (n > 0 && plain[n - 1] == '-')
		n--;
	plain[n] = '\0';
	(void)snprintf(
	    ret, BASE_MAX + 8, "%s%s%s", is_name(plain) ? "" : "agent", n > 0 && !is_name(plain) ? "-" : "", plain);
}

/* Nobody has it, or one who lived in this very worktree and is gone, or nobody ever came for its mailbox. */
static bool
is_free(struct mr_room *room, const struct mr_env *env, const char *name)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = room->driver->find_agent(room, name, &agent, &err);

	if (rc != MR_OK || !agent_has_life(&agent))
		return rc == MR_OK || rc == MR_NOTFOUND;
	return mr_agent_presence(&agent) == MR_GONE && strcmp(agent.worktree, env->worktree) == 0;
}

static enum mr_rc
take_name(struct mr_room *room, const struct mr_env *env, struct mr_arrival *ret, struct mr_error *err)
{
	char base[BASE_MAX + 8], name[BASE_MAX + 16];

	base_of(env->worktree, base);
	for (unsigned i = 1; i <= NUMBERS; i++) {
		struct mr_registration reg = { 0 };

		(void)snprintf(name, sizeof name, i > 1 ? "%s-%u" : "%s", base, i);
		if (!is_free(room, env, name))
			continue;
		*err = (struct mr_error){ 0 };
		bool taken = mr_register(room, name, env, NULL, &reg, err) == MR_OK;
		struct mr_error refused = *err;

		/* Also when it was not: another process of this session may have been quicker. */
		if (mr_self_resolve(room, env, &ret->self, err) == MR_OK) {
			ret->registered = taken;
			ret->returned = reg.returned + reg.returned_work;
			return MR_OK;
		}
		if (refused.code != MR_REFUSED && refused.code != MR_EXISTS && refused.code != MR_OK) {
			*err = refused;
			return err->code;
		}
	}
	return mr_fail(err, MR_BUSY, "no name is free for this session: '%s' to '%s' are taken", base, name);
}

/* ---- The same life under another session id ---- */

struct process_search {
	const struct mr_env *env;
	size_t harness_len;             /* of "codex-" in the session's name */
	char found[MR_ADDRESS_MAX + 1]; /* "": none */
};

static bool
note_if_same_process(void *ctx, const struct mr_agent *agent)
{
	struct process_search *s = ctx;

	if (!s->found[0] && agent_has_life(agent) && process_same(&agent->process, &s->env->process) &&
	    strncmp(agent->session, s->env->session, s->harness_len) == 0)
		(void)snprintf(s->found, sizeof s->found, "%s", agent->name);
	return true;
}

/* After /clear in one of several terminals of one server: the agents of this worktree that it may have been. */
struct thread_search {
	const struct mr_env *env;
	int64_t made_ms;
	struct mr_names found;
	bool loaded; /* the last of them still is */
	bool failed;
};

static bool
note_if_thread(void *ctx, const struct mr_agent *agent)
{
	struct thread_search *s = ctx;

	if (!agent_has_life(agent) || !thread_is(agent->session) || strcmp(agent->session, s->env->session) == 0 ||
	    !s->env->worktree || strcmp(agent->worktree, s->env->worktree) != 0)
		return true;
	bool gone = mr_agent_presence(agent) == MR_GONE;

	/* The thread before this one was left when this one began, so it has not ended earlier. */
	if (gone ? agent->seen_ms < s->made_ms : !process_same(&agent->process, &s->env->process))
		return true;
	s->loaded = !gone;
	s->failed |= !names_add(&s->found, str_of(agent->name));
	return !s->failed;
}

/* Codex says that a thread goes on from another one, and not from which. Its server unloads that one a minute later, so
 * which it was is clear if only one agent of this worktree can be meant: one that is loaded, where this thread is
 * younger than that and no thread is loaded that never was anybody; or one that has ended since. A wrong name would
 * read another session's mail; so else it is somebody new, and is told whom it may have been. */
static void
find_cleared(struct mr_room *room, const struct mr_env *env, char ret[MR_ADDRESS_MAX + 1], struct mr_arrival *a)
{
	struct thread_search s = { .env = env, .made_ms = thread_made_ms(env->session) };
	mr_auto(buf_done) struct buf names = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (s.made_ms > 0 && room->driver->each_agent(room, note_if_thread, &s, &ignored) == MR_OK && !s.failed &&
	    s.found.n == 1 &&
	    (!s.loaded || (clock_now_ms() - s.made_ms < UNLOAD_MS &&
			      !thread_has_strangers(env->state_dir, env->session, &env->process))))
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", s.found.v[0]);
	for (size_t i = 0; i < s.found.n && names.len + MR_ADDRESS_MAX < sizeof a->maybe; i++)
		buf_addf(&names, "%s%s", i ? ", " : "", s.found.v[i]);
	(void)snprintf(a->maybe, sizeof a->maybe, "%s", buf_z(&names));
	mr_names_done(&s.found);
}

/* The harness says that this session goes on from another one of the same process. Best effort. */
static void
go_on(struct mr_room *room, const struct mr_env *env, bool cleared, struct mr_arrival *a)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(sys_close_fd) int lock = -1;
	const char *id = strchr(env->session, '-');
	struct process_search s = { .env = env, .harness_len = id ? (size_t)(id - env->session) + 1 : 0 };
	struct mr_error ignored = { 0 };
	bool saved = false;

	if (env->process.pid == 0 || process_state(&env->process) != PROCESS_ALIVE || (env->shared && !cleared))
		return;
	lock = session_lock(env->state_dir);
	if (self_binding(room, env, &b, &saved, &ignored) == MR_OK)
		return;
	if (env->shared)
		find_cleared(room, env, s.found, a);
	else
		(void)room->driver->each_agent(room, note_if_same_process, &s, &ignored);
	if (s.found[0] && room->driver->find_agent(room, s.found, &agent, &ignored) == MR_OK)
		(void)self_adopt_life(room, env, &agent, &ignored);
}

/* ---- Arriving ---- */

/* Fenced: another session has the name, or had it. The model of this one still believes that it is its own. */
static void
note_former(struct mr_room *room, const struct mr_env *env, struct mr_arrival *a)
{
	mr_auto(binding_done) struct binding b = { 0 };
	struct mr_error ignored = { 0 };

	if (session_load(env->state_dir, self_session(env), room->spec, &b, &ignored) != MR_OK)
		return;
	(void)snprintf(a->was, sizeof a->was, "%s", b.agent);
	a->was_life = b.life;
}

/* What the life says of the process, once it is clear which life it is. Best effort. */
static void
note_process(struct mr_room *room, const struct mr_env *env, const struct mr_self *self)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };

	if (env->process.pid && room->driver->find_agent(room, self->agent, &agent, &ignored) == MR_OK &&
	    agent.life == self->life && !process_same(&agent.process, &env->process))
		(void)self_adopt_life(room, env, &agent, &ignored);
}

enum mr_rc
mr_arrive(struct mr_room *room, const struct mr_env *env, const struct mr_arrive_options *options,
    struct mr_arrival *ret, struct mr_error *err)
{
	bool lives = office_has_lives(room), session = self_session(env)[0] && !(env->as && env->as[0]);
	/* A process of Codex that is not shared has one terminal: it goes on there, also by /new, which says nothing.
	 */
	bool alone = session && thread_is(env->session) && !env->shared && process_codex(&env->process) == CODEX_OWN;
	bool goes_on = options->goes_on || (options->begins && alone);
	bool starts = lives && session && options->begins && !goes_on;
	struct mr_env known = *env;
	struct mr_arrival a = { 0 };

	if (lives && session && goes_on)
		go_on(room, env, options->cleared, &a);
	/* A new session is nobody's continuation, also when its process has another one: a host may run several. */
	if (starts)
		known.process = (struct mr_process){ 0 };
	enum mr_rc rc = mr_self_resolve(room, &known, &a.self, err);

	/* Fenced, or a variable that belongs to the agent outside of this one: then it is somebody new. */
	if ((rc == MR_NOTFOUND || rc == MR_REFUSED) && lives && session && env->worktree && env->worktree[0]) {
		note_former(room, env, &a);
		rc = take_name(room, &known, &a, err);
	}
	if (rc != MR_OK)
		return rc;
	if (!a.registered)
		a.maybe[0] = '\0';
	if (lives && session && options->begins) {
		note_process(room, env, &a.self);
		pane_remember(room, a.self.agent, a.self.life, env);
	}
	if (options->anew)
		announced_forget(room, &a.self);
	*ret = a;
	return MR_OK;
}

/* ---- Leaving ---- */

/* A process may outlive its sessions, and some cannot be seen from here. So the life gets one that is known to end:
 * this one. A session that is resumed finds its life by its id, and that gets the new process then. */
enum mr_rc
mr_leave(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	if (!office_has_lives(room) || !self->bound || !ROOM_HAS(room, update_agent))
		return MR_OK;
	enum mr_rc rc = room->driver->find_agent(room, self->agent, &agent, err);

	if (rc != MR_OK || agent.life != self->life || strcmp(agent.session, self->session) != 0 ||
	    !process_describe(getpid(), &agent.process))
		return rc;
	agent.host = host_name();
	return room->driver->update_agent(room, &agent, err);
}
