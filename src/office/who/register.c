/* SPDX-License-Identifier: MIT */
/*
 * register.c - taking a name, and a life of it.
 *
 * Two races, both decided by the room: add_agent lets one of many make the name (the others find it
 * made), take_life lets one of many take a number. Whoever loses reads again and judges by what is
 * there now: normally that the winner is alive, and that is a refusal.
 */
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/sys.h"
#include "office/address/address.h"
#include "message/foreign.h"
#include "office/nudge/nudge.h"
#include "office/office.h"
#include "office/who/who.h"

#define TRIES 10

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

/* One session, one agent in a room: its shell, hooks and server must agree on who they are. Only a takeover, the word
 * for it, makes it another one; who it was is in *ret_was then. */
static enum mr_rc
check_session(struct mr_room *room, const char *name, const struct mr_env *env, bool takeover, struct mr_agent *ret_was,
    struct mr_error *err)
{
	mr_auto(binding_done) struct binding b = { 0 };
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error ignored = { 0 };
	bool saved = false;

	if (self_binding(room, env, &b, &saved, &ignored) != MR_OK || strcmp(b.agent, name) == 0 ||
	    self_check(room, env, &b, &agent, &ignored) != MR_OK)
		return MR_OK; /* nobody yet, or fenced, or pruned: free to be someone */
	if (takeover) {
		*ret_was = agent;
		agent = (struct mr_agent){ 0 };
		return MR_OK;
	}
	return mr_fail(err, MR_REFUSED,
	    "cannot register '%s': this session already is '%s'\n"
	    "a helper of yours registers in a session of its own; to become '%.80s' yourself: mailroom takeover %.80s",
	    name, b.agent, name, name);
}

/* The session has become another agent. Its old name stays behind as a life that is gone, free for the next session of
 * that worktree: its process is this command, which ends. What it holds comes back with the lease. */
static void
leave_life(struct mr_room *room, const struct mr_agent *was)
{
	struct mr_agent now = *was; /* borrows its strings */
	struct mr_error ignored = { 0 };

	if (!was->name[0] || !ROOM_HAS(room, update_agent) || !process_describe(getpid(), &now.process))
		return;
	now.session = "";
	(void)room->driver->update_agent(room, &now, &ignored); /* best effort: else it is gone with its session */
}

/* A new name must not split one mailbox in two ("rig/mayor" is how some spell "mayor"), nor make an address ambiguous.
 */
static enum mr_rc
check_new_name(struct mr_room *room, const char *name, struct mr_error *err)
{
	static const char *const kinds[] = { "group", "queue", "channel" };
	const char *last = strrchr(name, '/');
	struct mr_error ignored = { 0 };

	if (agent_exists(room, name, &ignored) == MR_OK)
		return MR_OK;
	if (last && strchr(name, '/') == last && (strcmp(last + 1, "mayor") == 0 || strcmp(last + 1, "deacon") == 0) &&
	    agent_exists(room, last + 1, &ignored) == MR_OK)
		return mr_fail(err, MR_REFUSED,
		    "cannot register '%s': it is another spelling of '%s'\nmailroom register %s", name, last + 1,
		    last + 1);
	for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
		if (target_exists(room, kinds[i], name))
			return mr_fail(err, MR_REFUSED,
			    "cannot register '%s': there is a %s of that name\npick another name: mail to '%s' would be ambiguous",
			    name, kinds[i], name);
	return MR_OK;
}

/* The mailbox skill gives a process the id of its mailbox before it has a name: it is registered with that one. */
static const char *
wanted_mailbox(const struct mr_env *env)
{
	bool given = env->agent_source && strcmp(env->agent_source, "AGENT_MAILBOX_ID") == 0;

	return given && env->agent ? env->agent : "";
}

static enum mr_rc
add_name(struct mr_room *room, const char *name, const struct mr_env *env, const struct mr_register_options *options,
    struct mr_error *err)
{
	TRY(check_new_name(room, name, err));
	struct mr_agent agent = {
		.created_ms = clock_now_ms(),
		.worktree = "",
		.session = office_has_lives(room) ? "" : wanted_mailbox(env),
		.host = "",
		.role = options->role ? options->role : "",
		.wake = "",
	};

	snprintf(agent.name, sizeof agent.name, "%s", name);
	return room->driver->add_agent(room, &agent, err);
}

/* Without a harness a life has no process and no session: whether it is ours, --as can say, and the shell that
 * registered it. Not the terminal nor the worktree, from which many may want one name at once, and one is to get it. */
static bool
is_said_to_be(struct mr_room *room, const struct mr_env *env, const char *name, const struct mr_agent *agent)
{
	if (self_session(env)[0] || !agent_has_life(agent) || agent->session[0] || agent->process.pid != 0)
		return false;
	return env->as && env->as[0] ? strcmp(env->as, name) == 0 : terminal_registered(room, env, name);
}

static enum mr_rc
refuse_taken(const struct mr_env *env, const struct mr_agent *agent, struct mr_error *err)
{
	mr_auto(buf_done) struct buf who = BUF_INIT;

	agent_describe_life(agent, &who);
	(void)mr_fail(err, MR_REFUSED, "cannot register '%s': it is taken by %s", agent->name, buf_z(&who));
	if (mr_agent_presence(agent) == MR_LIVE)
		return mr_hint(err, "pick another name, or move this one here: mailroom takeover %.80s", agent->name);
	if (!self_session(env)[0] && !agent->session[0] && agent->process.pid == 0)
		return mr_hint(err,
		    "if that is you, mailroom whoami says so, or mailroom --as %.80s ...; a new life of it: mailroom "
		    "takeover "
		    "%.80s",
		    agent->name, agent->name);
	return mr_hint(err, "nobody can tell whether it still works; if not: mailroom takeover %.80s", agent->name);
}

/* Judges by the newest life. MR_EXISTS: another took the life meanwhile, look again. */
static enum mr_rc
claim_life(struct mr_room *room, const char *name, const struct mr_env *env, const struct mr_register_options *options,
    struct mr_registration *reg, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };

	TRY(room->driver->find_agent(room, name, &agent, err));
	if (self_is_life(env, &agent) || (!options->takeover && is_said_to_be(room, env, name, &agent))) {
		reg->continued = true;
		reg->life = agent.life;
		return self_adopt_life(room, env, &agent, err);
	}
	if (mr_agent_presence(&agent) != MR_GONE && !options->takeover)
		return refuse_taken(env, &agent, err);
	return self_take_life(room, env, &agent, &reg->life, &reg->returned, err);
}

/* What is given now counts, whoever made the mailbox: a `send --hold` knows no role. */
static enum mr_rc
give_role(struct mr_room *room, const char *name, const struct mr_register_options *options, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	enum mr_rc rc;

	if (!options->role || !ROOM_HAS(room, update_agent))
		return MR_OK;
	rc = room->driver->find_agent(room, name, &agent, err);
	if (rc != MR_OK || (agent.role && strcmp(agent.role, options->role) == 0))
		return rc;
	agent.life = 0;
	agent.role = options->role;
	return room->driver->update_agent(room, &agent, err);
}

/* Will later commands know who they are? */
static void
note_bound(struct mr_room *room, const char *name, const struct mr_env *env, bool takeover, struct mr_registration *reg)
{
	mr_auto(mr_names_done) struct mr_names here = { 0 };
	struct mr_error ignored = { 0 };

	if (self_session(env)[0])
		reg->bound = office_has_lives(room) || self_bind_plain(room, env, name);
	else
		reg->bound = (!takeover && terminal_registered(room, env, name)) ||
			     terminal_bind(room, env, name, reg->life, takeover);
	if (reg->bound && !self_session(env)[0] && terminal_agents(room, env, &here, &ignored) == MR_OK)
		reg->here = here.n;
}

/* A kind without lives: a free name is taken, one that is there is found by takeover, and nobody is fenced. The session
 * is bound to its first name, or to what it takes over; further ones, and a mailbox that a variable names, are those of
 * others, such as a child that is about to be started. */
static enum mr_rc
register_plain(struct mr_room *room, const char *given, const struct mr_env *env,
    const struct mr_register_options *options, struct mr_registration *ret, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	mr_auto(binding_done) struct binding b = { 0 };
	struct mr_registration reg = { 0 };
	struct mr_error ignored = { 0 };
	char name[MR_ADDRESS_MAX + 1];
	bool known = self_plain_binding(room, env, &b, &ignored) == MR_OK;
	enum mr_rc rc;

	if (options->takeover && options->role)
		return mr_fail(err, MR_REFUSED,
		    "cannot give '%.160s' a role: this kind of room keeps the one of its mailbox\n"
		    "without --role: mailroom takeover '%.80s'",
		    given, given);
	if (options->takeover) {
		rc = mr_agent_get(room, given, &agent, err);
		(void)snprintf(name, sizeof name, "%s", agent.name);
	} else {
		rc = foreign_to_address(str_of(given), name, err);
		reg.continued = rc == MR_OK && known && strcmp(b.agent, name) == 0;
		if (rc == MR_OK && !reg.continued)
			rc = add_name(room, name, env, options, err);
		reg.created = rc == MR_OK && !reg.continued;
	}
	if (rc == MR_EXISTS) {
		return mr_fail(err, MR_EXISTS,
		    "cannot register '%.160s': the name is taken\npick another name; if it is yours: mailroom takeover '%.80s'",
		    given, given);
	}
	if (rc == MR_OK)
		rc = agent_unread(room, name, &reg.unread, err);
	if (rc == MR_NOTFOUND && reg.created) /* its mailbox comes with its first mail */
		rc = MR_OK;
	if (rc == MR_OK && !(env->agent && env->agent[0]) && (options->takeover || !known || reg.continued))
		note_bound(room, name, env, options->takeover, &reg);
	if (rc == MR_OK)
		*ret = reg;
	return rc;
}

enum mr_rc
mr_register(struct mr_room *room, const char *name, const struct mr_env *given_env,
    const struct mr_register_options *options, struct mr_registration *ret, struct mr_error *err)
{
	static const struct mr_register_options plain = { 0 };
	mr_auto(mr_agent_done) struct mr_agent was = { 0 };
	mr_auto(binding_done) struct binding store = { 0 };
	struct mr_env present = *given_env;
	const struct mr_env *env = &present;
	mr_auto(sys_close_fd) int lock = -1;
	struct mr_registration reg = { 0 };
	char local[MR_ADDRESS_MAX + 1];
	enum mr_rc rc;

	if (!(room->driver->abilities & ROOM_REGISTER))
		return office_lacks(room, "registered agents", err);
	self_surround(&present, &store);
	if (!office_has_lives(room))
		return register_plain(room, name, env, options ? options : &plain, ret, err);
	rc = check_name(room, name, local, err);
	if (rc != MR_OK)
		return rc;
	if ((env->session && env->session[0]) || env->outside)
		lock = session_lock(env->state_dir); /* the session's own processes decide one after the other */
	rc = check_session(room, local, env, options && options->takeover, &was, err);
	if (rc != MR_OK)
		return rc;
	rc = MR_EXISTS;
	for (int i = 0; i < TRIES && rc == MR_EXISTS; i++) {
		*err = (struct mr_error){ 0 };
		rc = claim_life(room, local, env, options ? options : &plain, &reg, err);
		if (rc != MR_NOTFOUND)
			continue;
		rc = add_name(room, local, env, options ? options : &plain, err);
		if (rc == MR_OK) {
			reg.created = true;
			rc = MR_EXISTS; /* made, as when another was quicker: now for its life */
		}
	}
	if (rc == MR_EXISTS)
		return mr_fail(err, MR_BUSY, "cannot register '%s': others keep taking it", local);
	if (rc == MR_OK)
		leave_life(room, &was);
	if (rc == MR_OK && !reg.created)
		rc = give_role(room, local, options ? options : &plain, err);
	if (rc == MR_OK)
		rc = agent_unread(room, local, &reg.unread, err);
	if (rc == MR_OK && !reg.continued && !reg.created)
		reg.returned_work = office_return_work(room, local, false);
	if (rc == MR_OK && reg.continued)
		pane_remember(room, local, reg.life, env);
	if (rc == MR_OK)
		note_bound(room, local, env, options && options->takeover, &reg);
	if (rc == MR_OK)
		*ret = reg;
	return rc;
}
