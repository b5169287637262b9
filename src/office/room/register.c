/* SPDX-License-Identifier: MIT */
/*
 * register.c - taking a name and a life of it; the beginning and end of a harness session.
 *
 * Two races, both decided by the room: of several add_agent calls one makes the name (the others find it), and of
 * several take_life calls one takes a number. A process that loses reads again and decides by the new state: usually
 * the winner is alive, and the registration is refused.
 *
 * A session that begins without a name gets one made of the worktree's folder. If that agent is another session, in
 * this worktree or in another of the same name, a number is appended. If two sessions begin at once in one worktree,
 * both try the first name, one gets it, and the other goes on with the next. The processes of one session (its hooks
 * run side by side) find that it is bound once one of them was faster.
 */
#include "message/address.h"
#include "office/address/address.h"
#include "office/nudge/nudge.h"
#include "office/tell/tell.h"
#include "office/who/who.h"
#include "office/work/work.h"
#include <unistd.h>

#define TRIES 10
#define NUMBERS 99
#define BASE_MAX 48     /* of the 64 that a name may have */
#define UNLOAD_MS 60000 /* see session.c */

/* ---- May the session have that name? ---- */

static enum mr_rc
check_name(const struct mr_room *room, const char *given, char *ret, struct mr_error *err)
{
	if (agent_is_operator(given))
		return mr_fail(err, MR_REFUSED,
		    "cannot register '%s': it is the mailbox of the person in charge\n"
		    "to act as the operator: mailroom --as operator ...",
		    given);
	if (given[0] == '@' || ascii_caseeq(given, "mailroom"))
		return mr_fail(err, MR_REFUSED,
		    "cannot register '%.100s': the name is reserved\npick another name, such as your task's or your worktree's",
		    given);
	return agent_local_name(room, given, ret, err);
}

/* One session is one agent in a room: its shell, hooks and server must agree on that. Only a takeover changes the
 * agent; *ret_was is then the former one. */
static enum mr_rc
check_session(struct mr_room *room, const char *name, const struct mr_env *env, bool takeover, struct mr_agent *ret_was,
    struct mr_error *err)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	bool saved = false;

	if (self_binding(room, env, &b, &saved, IGNORED) != MR_OK || strcmp(b.agent, name) == 0 ||
	    self_check(room, env, &b, &agent, IGNORED) != MR_OK)
		return MR_OK; /* no agent yet, or fenced, or pruned: free to register */
	if (!takeover)
		return mr_fail(err, MR_REFUSED,
		    "cannot register '%s': this session already is '%s'\n"
		    "a helper of yours registers in a session of its own; to become '%.80s' yourself: mailroom takeover %.80s",
		    name, b.agent, name, name);
	*ret_was = agent;
	agent = (struct mr_agent){ 0 };
	return MR_OK;
}

/* A new name must not split one mailbox in two ("rig/mayor" is another spelling of "mayor"), nor make an address
 * ambiguous. */
static enum mr_rc
add_name(struct mr_room *room, const char *name, const struct mr_env *env, const struct mr_register_options *options,
    struct mr_error *err)
{
	static const char *const kinds[] = { "group", "queue", "channel" };
	char other[MR_ADDRESS_MAX + 1];
	const char *town = address_short(str_of(name), other).ptr; /* "mayor" of "rig/mayor" */
	bool is_new = agent_exists(room, name, IGNORED) != MR_OK;
	/* The mailbox skill gives a process the id of its mailbox before the mailbox has a name: register with that
	 * id. */
	bool given = env->agent_source && strcmp(env->agent_source, "AGENT_MAILBOX_ID") == 0 && env->agent;
	struct mr_agent agent = {
		.created_ms = clock_now_ms(),
		.worktree = "",
		.session = given && !office_has_lives(room) ? env->agent : "",
		.host = "",
		.role = options->role ? options->role : "",
		.wake = "",
	};

	if (is_new && town != name && !strchr(town, '/') && agent_exists(room, town, IGNORED) == MR_OK)
		return mr_fail(err, MR_REFUSED,
		    "cannot register '%s': it is another spelling of '%s'\nuse: mailroom register %s", name, town,
		    town);
	for (size_t i = 0; is_new && i < sizeof kinds / sizeof kinds[0]; i++)
		if (target_exists(room, kinds[i], name))
			return mr_fail(err, MR_REFUSED,
			    "cannot register '%s': there is a %s of that name\npick another name: mail to '%s' would be ambiguous",
			    name, kinds[i], name);
	text_join(agent.name, sizeof agent.name, name, NULL);
	return room->driver->add_agent(room, &agent, err);
}

/* ---- A life of it ---- */

/* Decides by the newest life. MR_EXISTS: another process took the life meanwhile, look again. */
static enum mr_rc
claim_life(struct mr_room *room, const char *name, const struct mr_env *env, const struct mr_register_options *options,
    struct mr_registration *reg, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(buf_done) struct buf who = BUF_INIT;

	TRY(room->driver->find_agent(room, name, &agent, err));
	bool ours = self_is_life(env, &agent);
	bool plain = !self_session(env)[0] && !agent.session[0] && agent.process.pid == 0;

	/* Without a harness a life has no process and no session: --as, or the shell that registered it, shows that it
	 * is ours. The terminal and the worktree do not, because several processes there may want one name at once, and
	 * only one is to get it. */
	if (!ours && !options->takeover && plain && agent_has_life(&agent))
		ours = env->as && env->as[0] ? strcmp(env->as, name) == 0 : terminal_registered(room, env, name);
	if (ours) {
		reg->continued = true;
		reg->life = agent.life;
		return self_adopt_life(room, env, &agent, err);
	}
	enum mr_presence presence = mr_agent_presence(&agent);

	if (presence == MR_GONE || options->takeover)
		return self_take_life(room, env, &agent, &reg->life, &reg->returned, err);
	agent_describe_life(&agent, &who);
	(void)mr_fail(err, MR_REFUSED, "cannot register '%s': it is taken by %s", agent.name, buf_z(&who));
	if (presence == MR_LIVE)
		return mr_hint(err, "pick another name, or move this one here: mailroom takeover %.80s", agent.name);
	if (plain)
		return mr_hint(err,
		    "if that is you: mailroom --as %.80s ..., and `mailroom whoami` shows it; for a new life of it: "
		    "mailroom takeover %.80s",
		    agent.name, agent.name);
	return mr_hint(err, "it is not known whether it still works; if not: mailroom takeover %.80s", agent.name);
}

/* The role given now counts, even if another command made the mailbox: `send --hold` has no role. */
static enum mr_rc
give_role(struct mr_room *room, const char *name, const struct mr_register_options *options, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	if (!options->role || !ROOM_HAS(room, update_agent))
		return MR_OK;
	TRY(room->driver->find_agent(room, name, &agent, err));
	if (agent.role && strcmp(agent.role, options->role) == 0)
		return MR_OK;
	agent.life = 0;
	agent.role = options->role;
	return room->driver->update_agent(room, &agent, err);
}

/* Will later commands find out which agent they are? */
static void
note_bound(struct mr_room *room, const char *name, const struct mr_env *env, bool takeover, struct mr_registration *reg)
{
	mr_auto(mr_names_done) struct mr_names here = { 0 };

	if (self_session(env)[0]) {
		reg->bound = office_has_lives(room) || self_bind_plain(room, env, name);
		return;
	}
	reg->bound =
	    (!takeover && terminal_registered(room, env, name)) || terminal_bind(room, env, name, reg->life, takeover);
	if (reg->bound && terminal_agents(room, env, &here, IGNORED) == MR_OK)
		reg->here = here.n;
}

/* A kind without lives: a free name is taken, an existing one needs takeover, and no life is fenced. The session is
 * bound to its first name, or to the one it takes over; further names, and a mailbox that a variable names, belong to
 * others, such as a child that is about to be started. */
static enum mr_rc
register_plain(struct mr_room *room, const char *given, const struct mr_env *env,
    const struct mr_register_options *options, struct mr_registration *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(binding_done) struct binding b = { 0 };
	struct mr_registration reg = { 0 };
	char name[MR_ADDRESS_MAX + 1];
	bool saved, known = self_binding(room, env, &b, &saved, IGNORED) == MR_OK;

	if (options->takeover && options->role)
		return mr_fail(err, MR_REFUSED,
		    "cannot give '%.160s' a role: this kind of room keeps the role that the mailbox has\n"
		    "without --role: mailroom takeover '%.80s'",
		    given, given);
	if (options->takeover) {
		TRY(mr_agent_get(room, given, &agent, err));
		memcpy(name, agent.name, sizeof name);
	} else {
		TRY(foreign_to_address(str_of(given), name, err));
		reg.continued = known && strcmp(b.agent, name) == 0;
		reg.created = !reg.continued;
		enum mr_rc rc = reg.created ? add_name(room, name, env, options, err) : MR_OK;

		if (rc == MR_EXISTS)
			return mr_fail(err, MR_EXISTS,
			    "cannot register '%.160s': the name is taken\npick another name; if it is yours: mailroom takeover '%.80s'",
			    given, given);
		if (rc != MR_OK)
			return rc;
	}
	enum mr_rc rc = agent_unread(room, name, &reg.unread, err);

	if (rc != MR_OK && !(rc == MR_NOTFOUND && reg.created)) /* its mailbox is made by its first mail */
		return rc;
	if (!(env->agent && env->agent[0]) && (options->takeover || !known || reg.continued))
		note_bound(room, name, env, options->takeover, &reg);
	*ret = reg;
	return MR_OK;
}

enum mr_rc
mr_register(struct mr_room *room, const char *name, const struct mr_env *given_env,
    const struct mr_register_options *given_options, struct mr_registration *ret, struct mr_error *err)
{
	static const struct mr_register_options plain = { 0 };
	const struct mr_register_options *options = given_options ? given_options : &plain;
	mr_auto(mr_agent_done) struct mr_agent was = { 0 };
	struct mr_env present = *given_env;
	const struct mr_env *env = &present;
	mr_auto(sys_close_fd) int lock = -1;
	struct mr_registration reg = { 0 };
	char local[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = MR_EXISTS;

	if (!(room->driver->abilities & ROOM_REGISTER))
		return room_lacks(room, "registered agents", err);
	mr_auto(free_ptr) char *above = self_surround(&present);

	(void)above; /* env borrows from it */
	if (!office_has_lives(room))
		return register_plain(room, name, env, options, ret, err);
	TRY(check_name(room, name, local, err));
	if (self_session(env)[0] || env->outside)
		lock = session_lock(env->state_dir); /* the session's own processes decide one after the other */
	TRY(check_session(room, local, env, options->takeover, &was, err));
	for (int i = 0; i < TRIES && rc == MR_EXISTS; i++) {
		*err = (struct mr_error){ 0 };
		rc = claim_life(room, local, env, options, &reg, err);
		if (rc != MR_NOTFOUND)
			continue;
		rc = add_name(room, local, env, options, err);
		reg.created |= rc == MR_OK;
		rc = rc == MR_OK ? MR_EXISTS : rc; /* made, or another process was faster: now take its life */
	}
	if (rc == MR_EXISTS)
		return mr_fail(err, MR_BUSY, "cannot register '%s': others keep taking it", local);
	if (rc != MR_OK)
		return rc;
	/* The session has become another agent. Its old name gets a life that is gone, free for the next session of
	 * that worktree: the life's process is this command, which ends. Mail that it holds comes back with the
	 * lease. */
	if (was.name[0] && process_describe(getpid(), &was.process)) {
		was.session = "";
		(void)room->driver->update_agent(
		    room, &was, IGNORED); /* best effort: else it is gone with its session */
	}
	if (!reg.created)
		TRY(give_role(room, local, options, err));
	TRY(agent_unread(room, local, &reg.unread, err));
	if (!reg.continued && !reg.created)
		reg.returned_work = office_return_work(room, local, false);
	if (reg.continued)
		pane_remember(room, local, reg.life, env);
	note_bound(room, local, env, options->takeover, &reg);
	*ret = reg;
	return MR_OK;
}

/* ---- A name for a new session ---- */

static bool
is_name(const char *name)
{
	char normal[MR_ADDRESS_MAX + 1];

	return address_normal(str_of(name), normal, IGNORED) == MR_OK && !agent_is_operator(name) &&
	       !ascii_caseeq(name, "mailroom");
}

/* It does not exist, or its agent lived in this worktree and is gone, or its mailbox never had a life. */
static bool
is_free(struct mr_room *room, const struct mr_env *env, const char *name)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	enum mr_rc rc = room->driver->find_agent(room, name, &agent, IGNORED);

	if (rc != MR_OK || !agent_has_life(&agent))
		return rc == MR_OK || rc == MR_NOTFOUND;
	return mr_agent_presence(&agent) == MR_GONE && strcmp(agent.worktree, env->worktree) == 0;
}

static enum mr_rc
take_name(struct mr_room *room, const struct mr_env *env, struct mr_arrival *ret, struct mr_error *err)
{
	char base[BASE_MAX + 8], name[BASE_MAX + 16];

	/* "My Project!" -> "My-Project" */
	const char *folder = path_name(env->worktree);
	char plain[BASE_MAX + 1];
	size_t n = 0;

	for (; *folder && n < BASE_MAX; folder++) {
		if (ascii_alnum(*folder) || (strchr("._+-", *folder) && n > 0))
			plain[n++] = *folder;
		else if (n > 0 && plain[n - 1] != '-')
			plain[n++] = '-';
	}
	while (n > 0 && plain[n - 1] == '-')
		n--;
	plain[n] = '\0';
	(void)snprintf(
	    base, BASE_MAX + 8, "%s%s%s", is_name(plain) ? "" : "agent", n > 0 && !is_name(plain) ? "-" : "", plain);
	for (unsigned i = 1; i <= NUMBERS; i++) {
		struct mr_registration reg = { 0 };
		struct mr_error refused = { 0 };

		(void)snprintf(name, sizeof name, i > 1 ? "%s-%u" : "%s", base, i);
		if (!is_free(room, env, name))
			continue;
		bool taken = mr_register(room, name, env, NULL, &reg, &refused) == MR_OK;

		/* Even if the registration failed, because another process of this session may have been faster. */
		if (mr_self_resolve(room, env, &ret->self, err) == MR_OK) {
			ret->registered = taken;
			ret->returned = reg.returned + reg.returned_work;
			return MR_OK;
		}
		if (!taken && refused.code != MR_REFUSED && refused.code != MR_EXISTS) {
			*err = refused;
			return err->code;
		}
	}
	return mr_fail(err, MR_BUSY, "no name is free for this session: '%s' to '%s' are taken", base, name);
}

/* ---- The same life under another session id ---- */

/* Codex reports that a thread continues another one, but not which. Its server unloads the old one a minute later. So
 * the old one is known only if a single agent of this worktree is possible: one that is loaded, if this thread is
 * younger than a minute and no loaded thread is without an agent; or one that has ended since. A wrong guess would read
 * another session's mail; so otherwise the thread gets a new name, and is told which agents it may have been. */
static void
find_cleared(struct mr_room *room, const struct mr_env *env, char ret[MR_ADDRESS_MAX + 1], struct mr_arrival *a)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	mr_auto(buf_done) struct buf names = BUF_INIT;
	const char *worktree = env->worktree ? env->worktree : "";
	int64_t made_ms = thread_made_ms(env->session);
	const struct mr_agent *last = NULL;
	size_t n = 0;

	if (made_ms > 0)
		(void)mr_agent_list(room, &agents, IGNORED);
	for (size_t i = 0; i < agents.n; i++) {
		const struct mr_agent *old = &agents.v[i];

		if (!agent_has_life(old) || !thread_is(old->session) || strcmp(old->session, env->session) == 0 ||
		    !*worktree || strcmp(old->worktree, worktree) != 0)
			continue;
		/* The earlier thread was left when this one began, so it cannot have ended before. */
		if (mr_agent_presence(old) == MR_GONE ? old->seen_ms < made_ms
						      : !process_same(&old->process, &env->process))
			continue;
		last = old;
		n++;
		if (names.len + MR_ADDRESS_MAX < sizeof a->maybe)
			buf_addf(&names, "%s%s", n > 1 ? ", " : "", old->name);
	}
	if (n == 1 && (mr_agent_presence(last) == MR_GONE ||
			  (clock_now_ms() - made_ms < UNLOAD_MS &&
			      !thread_has_strangers(env->state_dir, env->session, &env->process))))
		text_join(ret, MR_ADDRESS_MAX + 1, last->name, NULL);
	text_join(a->maybe, sizeof a->maybe, buf_z(&names), NULL);
}

/* The harness reports that this session continues another one of the same process. Best effort. */
static void
go_on(struct mr_room *room, const struct mr_env *env, bool cleared, struct mr_arrival *a)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	const char *id = strchr(env->session, '-');
	size_t harness = id ? (size_t)(id - env->session) + 1 : 0; /* length of "codex-" in the session's name */
	char found[MR_ADDRESS_MAX + 1] = "";
	bool saved = false;

	if (env->process.pid == 0 || process_state(&env->process) != PROCESS_ALIVE || (env->shared && !cleared))
		return;
	mr_auto(sys_close_fd) int lock = session_lock(env->state_dir);

	if (self_binding(room, env, &b, &saved, IGNORED) == MR_OK)
		return;
	if (env->shared)
		find_cleared(room, env, found, a);
	else
		(void)mr_agent_list(room, &agents, IGNORED);
	for (size_t i = 0; i < agents.n && !found[0]; i++)
		if (agent_has_life(&agents.v[i]) && process_same(&agents.v[i].process, &env->process) &&
		    strncmp(agents.v[i].session, env->session, harness) == 0)
			memcpy(found, agents.v[i].name, sizeof found);
	if (found[0] && room->driver->find_agent(room, found, &agent, IGNORED) == MR_OK)
		(void)self_adopt_life(room, env, &agent, IGNORED);
}

/* ---- Arriving and leaving ---- */

enum mr_rc
mr_arrive(struct mr_room *room, const struct mr_env *env, const struct mr_arrive_options *options,
    struct mr_arrival *ret, struct mr_error *err)
{
	mr_auto(binding_done) struct binding former = { 0 };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	bool lives = office_has_lives(room), session = self_session(env)[0] && !(env->as && env->as[0]);
	/* A process of Codex that is not shared has one terminal: the agent goes on there, also after /new, which is
	 * not reported. */
	bool alone = session && thread_is(env->session) && !env->shared && process_codex(&env->process) == CODEX_OWN;
	bool goes_on = options->goes_on || (options->begins && alone);
	struct mr_env known = *env;
	struct mr_arrival a = { 0 };

	if (lives && session && goes_on)
		go_on(room, env, options->cleared, &a);
	/* A new session continues no other one, even if its process has one: a host may run several. */
	if (lives && session && options->begins && !goes_on)
		known.process = (struct mr_process){ 0 };
	enum mr_rc rc = mr_self_resolve(room, &known, &a.self, err);

	/* Fenced, or the variable belongs to the agent outside of this session: then it gets a new name. The model of a
	 * fenced session still believes that the old name is its own. */
	if ((rc == MR_NOTFOUND || rc == MR_REFUSED) && lives && session && env->worktree && env->worktree[0]) {
		if (session_load(env->state_dir, env->session, room->spec, &former, IGNORED) == MR_OK) {
			memcpy(a.was, former.agent, sizeof former.agent);
			a.was_life = former.life;
		}
		rc = take_name(room, &known, &a, err);
	}
	if (rc != MR_OK)
		return rc;
	if (!a.registered)
		a.maybe[0] = '\0';
	if (lives && session && options->begins) {
		/* Reads the process from the life, once the life is known. Best effort. */
		if (env->process.pid && room->driver->find_agent(room, a.self.agent, &agent, IGNORED) == MR_OK &&
		    agent.life == a.self.life && !process_same(&agent.process, &env->process))
			(void)self_adopt_life(room, env, &agent, IGNORED);
		pane_remember(room, a.self.agent, a.self.life, env);
	}
	if (options->anew)
		announced_forget(room, &a.self);
	*ret = a;
	return MR_OK;
}

/* A process may outlive its sessions, and some cannot be checked from here. So the life gets a process that certainly
 * ends: this one. A session that is resumed finds its life by its id and sets the new process. */
enum mr_rc
mr_leave(struct mr_room *room, const struct mr_self *self, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	if (!office_has_lives(room) || !self->bound || !ROOM_HAS(room, update_agent))
		return MR_OK;
	TRY(room->driver->find_agent(room, self->agent, &agent, err));
	if (agent.life != self->life || strcmp(agent.session, self->session) != 0 ||
	    !process_describe(getpid(), &agent.process))
		return MR_OK;
	agent.host = host_name();
	return room->driver->update_agent(room, &agent, err);
}
