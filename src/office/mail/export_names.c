/* SPDX-License-Identifier: MIT */
/*
 * export_names.c - agents of one room as agents of another. A name that the other system writes with other letters is
 * spelled its way; what no rule makes of it, an option may say. Two that would become one are found before anything is
 * written: their mail could never be told apart again.
 */
#include "base/error.h"
#include "message/address.h"
#include "message/foreign.h"
#include "office/mail/export.h"

void
name_pairs_done(struct name_pairs *p)
{
	free(p->v);
	arena_free(p->own);
	*p = (struct name_pairs){ 0 };
}

void
crossing_done(struct crossing *c)
{
	name_pairs_done(&c->renamed);
	name_pairs_done(&c->agents);
}

static enum mr_rc
pairs_add(struct name_pairs *p, const char *here, const char *there, struct mr_error *err)
{
	if (p->n == p->cap) {
		size_t cap = p->cap ? 2 * p->cap : 16;
		struct name_pair *grown = realloc(p->v, cap * sizeof(*grown));

		if (!grown)
			return mr_nomem(err);
		p->v = grown;
		p->cap = cap;
	}
	struct name_pair pair = { arena_dup(&p->own, str_of(here)), arena_dup(&p->own, str_of(there)) };

	if (!pair.here || !pair.there)
		return mr_nomem(err);
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

/* Somebody of a third room, and what is no agent, stays what it is where addresses are written as they are. */
static bool
is_foreign(const char *name)
{
	return strchr(name, '@') || strchr(name, ':');
}

static enum mr_rc
spell_there(struct mr_room *to, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	if (!ROOM_HAS(to, spell) && is_foreign(name) && strlen(name) <= MR_ADDRESS_MAX && address_plain(str_of(name))) {
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", name);
		return MR_OK;
	}
	foreign_from_address(name, &plain);
	if (!buf_ok(&plain))
		return mr_nomem(err);
	return ROOM_HAS(to, spell) ? to->driver->spell(to, buf_z(&plain), ret, err)
				   : address_normal(str_of(name), ret, err);
}

enum mr_rc
crossing_name(struct crossing *c, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	const struct name_pair *pair = pair_here(&c->renamed, name);

	if (name[0] == '\0' || pair) {
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", pair ? pair->there : "");
		return MR_OK;
	}
	return spell_there(c->to, name, ret, err);
}

/* Letters that nobody refuses. */
static enum mr_rc
spell_roughly(struct crossing *c, const char *name, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	char rough[33] = "x";
	size_t n = 0;

	for (; name[n] && n < sizeof(rough) - 1; n++) {
		bool letter = (name[n] >= 'a' && name[n] <= 'z') || (name[n] >= 'A' && name[n] <= 'Z');

		rough[n] = letter || (name[n] >= '0' && name[n] <= '9') ? name[n] : '-';
	}
	rough[n > 0 ? n : 1] = '\0';
	return spell_there(c->to, rough, ret, err);
}

enum mr_rc
crossing_sender(
    struct crossing *c, const char *name, char ret[MR_ADDRESS_MAX + 1], bool *ret_rough, struct mr_error *err)
{
	struct mr_error ignored = { 0 };

	*ret_rough = crossing_name(c, name, ret, &ignored) != MR_OK;
	return *ret_rough ? spell_roughly(c, name, ret, err) : MR_OK;
}

enum mr_rc
crossing_names(struct crossing *c, const struct mr_names *names, struct mr_names *ret, struct mr_error *err)
{
	char there[MR_ADDRESS_MAX + 1];

	for (size_t i = 0; i < names->n; i++) {
		struct mr_error ignored = { 0 };
		bool spelled = crossing_name(c, names->v[i], there, &ignored) == MR_OK;

		/* Who cannot be named there is named as he is here: it is said, not written to. */
		if (!names_add(ret, str_of(spelled ? there : names->v[i])))
			return mr_nomem(err);
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
		return mr_fail(err, MR_REFUSED, "'%.80s' does not say what is called how\nwrite OLD=NEW", given);
	buf_add(&old, (struct mr_str){ given, (size_t)(equals - given) });
	if (!buf_ok(&old))
		return mr_nomem(err);
	enum mr_rc rc = agent_spelled(c->from, buf_z(&old), here, err);

	if (rc == MR_OK)
		rc = agent_spelled(c->to, equals + 1, there, err);
	return rc == MR_OK ? pairs_add(&c->renamed, here, there, err) : mr_wrap(err, "'%.80s'", given);
}

/* A folder of one agent has no names in it: who says so gives one. */
static enum mr_rc
plan_owner(struct crossing *c, const char *agent, struct mr_error *err)
{
	const char *owner = ROOM_HAS(c->from, owner) ? c->from->driver->owner(c->from) : NULL;
	char there[MR_ADDRESS_MAX + 1];
	enum mr_rc rc;

	if (!owner)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is not one agent's: it has names of its own\nname its agents, and rename them with --name OLD=NEW",
		    c->from->name);
	rc = agent_spelled(c->to, agent, there, err);
	return rc == MR_OK ? pairs_add(&c->renamed, owner, there, err) : rc;
}

static enum mr_rc
plan_agent(struct crossing *c, const char *here, struct mr_error *err)
{
	char there[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = crossing_name(c, here, there, err);

	if (rc != MR_OK) {
		(void)mr_wrap(err, "agent '%s'", here);
		return mr_hint(err, "give it a name that can be one there: --name '%s=NEW'", here);
	}
	if (pair_here(&c->agents, here)) /* named twice */
		return MR_OK;
	for (size_t i = 0; i < c->agents.n; i++) {
		if (strcmp(c->agents.v[i].there, there) != 0)
			continue;
		return mr_fail(err, MR_REFUSED,
		    "'%s' and '%s' would both become '%s'\ngive one of them another name: --name '%s=NEW'",
		    c->agents.v[i].here, here, there, here);
	}
	return pairs_add(&c->agents, here, there, err);
}

static bool
note_name(void *ctx, const struct mr_agent *agent)
{
	return names_add(ctx, str_of(agent->name));
}

static enum mr_rc
plan_all(struct crossing *c, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	enum mr_rc rc;

	if (!ROOM_HAS(c->from, each_agent))
		return office_lacks(c->from, "list of its agents: name those whose mail shall be copied", err);
	rc = c->from->driver->each_agent(c->from, note_name, &names, err);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++)
		rc = plan_agent(c, names.v[i], err);
	return rc;
}

enum mr_rc
crossing_plan(struct crossing *c, const struct mr_export_options *options, struct mr_error *err)
{
	enum mr_rc rc = options->agent ? plan_owner(c, options->agent, err) : MR_OK;

	for (size_t i = 0; rc == MR_OK && options->names && options->names[i]; i++)
		rc = plan_rename(c, options->names[i], err);
	if (rc != MR_OK)
		return rc;
	if (!options->agents || !options->agents[0])
		return plan_all(c, err);
	for (size_t i = 0; rc == MR_OK && options->agents[i]; i++) {
		char here[MR_ADDRESS_MAX + 1];

		rc = agent_spelled(c->from, options->agents[i], here, err);
		if (rc == MR_OK)
			rc = agent_exists(c->from, here, err);
		if (rc == MR_OK)
			rc = plan_agent(c, here, err);
	}
	return rc;
}

/* ---- Making ---- */

enum mr_rc
crossing_make(struct crossing *c, size_t i, struct mr_error *err)
{
	const struct name_pair *pair = &c->agents.v[i];
	struct mr_agent known = { 0 }, agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct mr_error ignored = { 0 };
	enum mr_rc rc;

	if (!ROOM_HAS(c->to, add_agent) || agent_exists(c->to, pair->there, &ignored) == MR_OK)
		return MR_OK;
	if (ROOM_HAS(c->from, find_agent) &&
	    c->from->driver->find_agent(c->from, pair->here, &known, &ignored) == MR_OK && known.role)
		agent.role = known.role;
	(void)snprintf(agent.name, sizeof(agent.name), "%s", pair->there);
	rc = c->to->driver->add_agent(c->to, &agent, err);
	mr_agent_done(&known);
	return rc == MR_EXISTS ? MR_OK : rc;
}
