/* SPDX-License-Identifier: MIT */
/*
 * export_names.c - agents of one room as agents of another. A name that the other system writes with other letters is
 * spelled its way; if no rule can do it, an option may give the name. Two agents that would get one name are refused
 * before anything is written, because their mail could never be separated again.
 */
#include "base/error.h"
#include "message/address.h"
#include "office/link/export.h"

static void
pairs_done(struct name_pairs *p)
{
	free(p->v);
	arena_free(p->own);
}

void
crossing_done(struct crossing *c)
{
	pairs_done(&c->renamed);
	pairs_done(&c->agents);
}

static enum mr_rc
pairs_add(struct name_pairs *p, const char *here, const char *there, struct mr_error *err)
{
	struct name_pair pair = { arena_dup(&p->own, str_of(here)), arena_dup(&p->own, str_of(there)) };

	TRY(mr_got(pair.here && pair.there && array_grow(&p->v, p->n, &p->cap, sizeof(*p->v)), err));
	p->v[p->n++] = pair;
	return MR_OK;
}

static const struct name_pair *
pair_here(const struct name_pairs *p, const char *here)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->v[i].here, here) == 0)
			return &p->v[i];
	return NULL;
}

/* ---- One name ---- */

static enum mr_rc
spell_there(struct mr_room *to, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	/* If addresses are written as they are there, an agent of a third room, or a name that is no agent, stays
	 * unchanged. */
	if (!ROOM_HAS(to, spell) && strpbrk(name, "@:") && strlen(name) <= MR_ADDRESS_MAX &&
	    address_plain(str_of(name))) {
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", name);
		return MR_OK;
	}
	foreign_from_address(name, &plain);
	TRY(mr_got(buf_ok(&plain), err));
	return ROOM_HAS(to, spell) ? to->driver->spell(to, buf_z(&plain), ret, err)
				   : address_normal(str_of(name), ret, err);
}

static enum mr_rc
cross_name(struct crossing *c, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	const struct name_pair *pair = pair_here(&c->renamed, name);

	if (*name && !pair)
		return spell_there(c->to, name, ret, err);
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", pair ? pair->there : "");
	return MR_OK;
}

enum mr_rc
crossing_sender(
    struct crossing *c, const char *name, char ret[MR_ADDRESS_MAX + 1], bool *ret_rough, struct mr_error *err)
{
	char rough[33] = "x"; /* letters that every room accepts */
	size_t n = 0;

	*ret_rough = cross_name(c, name, ret, IGNORED) != MR_OK;
	if (!*ret_rough)
		return MR_OK;
	for (; name[n] && n < sizeof(rough) - 1; n++)
		rough[n] = ascii_alnum(name[n]) ? name[n] : '-';
	rough[n > 0 ? n : 1] = '\0';
	return spell_there(c->to, rough, ret, err);
}

enum mr_rc
crossing_names(struct crossing *c, const struct mr_names *names, struct mr_names *ret, struct mr_error *err)
{
	char there[MR_ADDRESS_MAX + 1];

	for (size_t i = 0; i < names->n; i++) {
		/* A name that is impossible there stays as it is here: it is only shown, not written to. */
		bool spelled = cross_name(c, names->v[i], there, IGNORED) == MR_OK;

		TRY(mr_got(names_add(ret, str_of(spelled ? there : names->v[i])), err));
	}
	return MR_OK;
}

/* ---- The plan ---- */

static enum mr_rc
plan_rename(struct crossing *c, const char *given, struct mr_error *err)
{
	char here[MR_ADDRESS_MAX + 1], there[MR_ADDRESS_MAX + 1];
	mr_auto(buf_done) struct buf old = BUF_INIT;
	const char *equals = strrchr(given, '=');

	if (!equals || equals == given || equals[1] == '\0')
		return mr_fail(err, MR_REFUSED, "'%.80s' is not a renaming\nwrite OLD=NEW", given);
	buf_add(&old, (struct mr_str){ given, (size_t)(equals - given) });
	TRY(mr_got(buf_ok(&old), err));
	if (agent_spelled(c->from, buf_z(&old), here, err) != MR_OK ||
	    agent_spelled(c->to, equals + 1, there, err) != MR_OK)
		return mr_wrap(err, "'%.80s'", given);
	return pairs_add(&c->renamed, here, there, err);
}

static enum mr_rc
plan_agent(struct crossing *c, const char *here, struct mr_error *err)
{
	char there[MR_ADDRESS_MAX + 1];

	if (cross_name(c, here, there, err) != MR_OK) {
		(void)mr_wrap(err, "agent '%s'", here);
		return mr_hint(err, "give it a name that is valid there: --name '%s=NEW'", here);
	}
	if (pair_here(&c->agents, here)) /* named twice */
		return MR_OK;
	for (size_t i = 0; i < c->agents.n; i++)
		if (strcmp(c->agents.v[i].there, there) == 0)
			return mr_fail(err, MR_REFUSED,
			    "'%s' and '%s' would both become '%s'\ngive one of them another name: --name '%s=NEW'",
			    c->agents.v[i].here, here, there, here);
	return pairs_add(&c->agents, here, there, err);
}

enum mr_rc
crossing_plan(struct crossing *c, const struct mr_export_options *options, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	char name[MR_ADDRESS_MAX + 1];

	if (options->agent) { /* a folder of one agent has no names in it: the option gives one */
		if (!c->from->owner)
			return mr_fail(err, MR_REFUSED,
			    "'%s' is not the mailbox of one agent: it has names of its own\n"
			    "name its agents, and rename them with --name OLD=NEW",
			    c->from->name);
		TRY(agent_spelled(c->to, options->agent, name, err));
		TRY(pairs_add(&c->renamed, c->from->owner, name, err));
	}
	for (size_t i = 0; options->names && options->names[i]; i++)
		TRY(plan_rename(c, options->names[i], err));
	if (!options->agents || !options->agents[0]) {
		if (!ROOM_HAS(c->from, each_agent))
			return room_lacks(c->from, "list of its agents: name those whose mail is to be copied", err);
		TRY(office_agents(c->from, &names, err));
	}
	for (size_t i = 0; i < names.n; i++)
		TRY(plan_agent(c, names.v[i], err));
	for (size_t i = 0; options->agents && options->agents[i]; i++) {
		TRY(agent_spelled(c->from, options->agents[i], name, err));
		TRY(agent_exists(c->from, name, err));
		TRY(plan_agent(c, name, err));
	}
	return MR_OK;
}

/* ---- Making ---- */

enum mr_rc
crossing_add_agent(struct mr_room *to, const char *name, const char *role, struct mr_error *err)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = role, .wake = "" };

	(void)snprintf(agent.name, sizeof(agent.name), "%s", name);
	enum mr_rc rc = to->driver->add_agent(to, &agent, err);

	return rc == MR_EXISTS ? MR_OK : rc; /* by another export that runs at the same time */
}

enum mr_rc
crossing_make(struct crossing *c, size_t i, struct mr_error *err)
{
	const struct name_pair *pair = &c->agents.v[i];
	mr_auto(mr_agent_done) struct mr_agent known = { 0 };

	if (agent_exists(c->to, pair->there, IGNORED) == MR_OK)
		return MR_OK;
	(void)c->from->driver->find_agent(c->from, pair->here, &known, IGNORED);
	return crossing_add_agent(c->to, pair->there, known.role ? known.role : "", err);
}
