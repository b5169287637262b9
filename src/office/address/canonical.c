/* SPDX-License-Identifier: MIT */
/*
 * canonical.c - the spellings of one agent, so that they meet in one mailbox.
 *
 * A name that somebody registered is that agent, always. Only what nobody registered is looked at as
 * another spelling:
 *
 *	rig/mayor, rig/deacon             mayor and deacon: there is one a town
 *	rig/name                          the one agent rig/TYPE/name
 *	rig/crew/name, rig/polecats/name  rig/name, or the other of the two: they share their names
 */
#include "base/format.h"
#include "base/text.h"
#include "office/address/resolve.h"

bool
canonical_operator(struct mr_str name)
{
	return str_caseeq(name, STR("human")) || str_caseeq(name, STR("overseer")) || str_caseeq(name, STR(OPERATOR));
}

struct parts { /* of an address */
	struct mr_str v[4];
	size_t n;
};

static struct parts
parts_of(const char *name)
{
	struct parts parts = { 0 };

	for (struct mr_str rest = str_of(name); rest.len > 0 && parts.n < 4;)
		parts.v[parts.n++] = pattern_part(&rest);
	return parts;
}

static bool
is_worker_type(struct mr_str type)
{
	return str_eq(type, STR("crew")) || str_eq(type, STR("polecats"));
}

/* "rig/mayor" -> "mayor" */
static bool
is_of_the_town(const struct parts *p)
{
	return p->n == 2 && (str_eq(p->v[1], STR("mayor")) || str_eq(p->v[1], STR("deacon")));
}

static bool
is_spelling_of(const struct parts *given, const char *name)
{
	struct parts have = parts_of(name);

	if (given->n < 2 || have.n < 2 || given->n > 3 || have.n > 3 || !str_eq(given->v[0], have.v[0]) ||
	    !str_eq(given->v[given->n - 1], have.v[have.n - 1]))
		return false;
	if (given->n == 2)
		return have.n == 3;
	return is_worker_type(given->v[1]) && (have.n == 2 || is_worker_type(have.v[1]));
}

static enum mr_rc
find(struct resolver *r, const char *name, bool *ret_live, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	enum mr_rc rc =
	    r->many ? agent_exists(r->room, name, err) : r->room->driver->find_agent(r->room, name, &agent, err);

	if (rc == MR_OK && !r->many)
		*ret_live = !office_has_lives(r->room) || (agent.life > 0 && mr_agent_presence(&agent) != MR_GONE);
	return rc == MR_OK || rc == MR_NOTFOUND ? rc : mr_wrap(err, "recipient '%s'", name);
}

static enum mr_rc
find_by_spelling(struct resolver *r, const struct parts *given, const char *name, const struct known_agent **ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	const struct known_agent *found = NULL;
	size_t n = 0;

	TRY(resolver_agents(r, err));
	for (size_t i = 0; i < r->agents_n; i++)
		if (is_spelling_of(given, r->agents[i].name)) {
			found = &r->agents[i];
			format_addf(&list, "%s'%s'", n++ > 0 ? ", " : "", found->name);
		}
	if (n == 0)
		return MR_NOTFOUND;
	*ret = found;
	if (n == 1)
		return MR_OK;
	return mr_fail(
	    err, MR_REFUSED, "'%s' is short for %zu agents\nwrite one of them out: %s", name, n, buf_z(&list));
}

enum mr_rc
canonical_agent(
    struct resolver *r, const char *name, char ret[MR_ADDRESS_MAX + 1], bool *ret_live, struct mr_error *err)
{
	const struct known_agent *found = NULL;
	struct parts parts = parts_of(name);
	enum mr_rc rc;

	text_join(ret, MR_ADDRESS_MAX + 1, canonical_operator(str_of(name)) ? OPERATOR : name, NULL);
	*ret_live = true;
	if (!ROOM_HAS(r->room, find_agent)) /* a kind without registration: whoever is written to exists */
		return MR_OK;
	rc = find(r, ret, ret_live, err);
	if (rc == MR_NOTFOUND && is_of_the_town(&parts)) {
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%.*s", (int)parts.v[1].len, parts.v[1].ptr);
		rc = find(r, ret, ret_live, err);
	}
	if (rc != MR_NOTFOUND || parts.n < 2 || !ROOM_HAS(r->room, each_agent))
		return rc;
	rc = find_by_spelling(r, &parts, name, &found, err);
	if (rc == MR_OK) {
		(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", found->name);
		*ret_live = found->live;
	}
	return rc;
}
