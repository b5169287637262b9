/* SPDX-License-Identifier: MIT */
/* pattern.c - addresses that stand for many agents by the shape of their names: wildcards, in which a star is
 * one whole part of the address, and the @patterns, which are wildcards with a name. */
#include "message/address.h"
#include "office/address/resolve.h"

/* ---- Wildcards ---- */

struct mr_str
pattern_part(struct mr_str *rest)
{
	const char *slash = memchr(rest->ptr, '/', rest->len);
	size_t len = slash ? (size_t)(slash - rest->ptr) : rest->len;
	struct mr_str part = { rest->ptr, len };

	rest->ptr += len + (slash ? 1 : 0);
	rest->len -= len + (slash ? 1 : 0);
	return part;
}

bool
pattern_fits(struct mr_str pattern, struct mr_str name)
{
	while (pattern.len > 0 && name.len > 0) {
		struct mr_str want = pattern_part(&pattern), have = pattern_part(&name);

		if (!str_eq(want, STR("*")) && !str_eq(want, have))
			return false;
	}
	return pattern.len == 0 && name.len == 0;
}

enum mr_rc
pattern_check(struct mr_str text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	/* What is left when every lone star is a letter must be an address. */
	for (struct mr_str rest = text; rest.len > 0;) {
		struct mr_str part = pattern_part(&rest);

		buf_add(&plain, str_eq(part, STR("*")) ? STR("x") : part);
		if (rest.len > 0 || (part.len < text.len && rest.ptr[-1] == '/'))
			buf_addc(&plain, '/');
	}
	if (!buf_ok(&plain))
		return mr_nomem(err);
	if (address_check(buf_str(&plain), err) == MR_OK)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%.*s' is no pattern of addresses\n'*' stands for one whole part between slashes, as in 'rig/crew/*'",
	    (int)(text.len < 60 ? text.len : 60), text.ptr);
}

/* ---- Matching ---- */

/* Is the name among those that a list of patterns with commas between them means? */
static bool
fits_any(struct mr_str list, struct mr_str name)
{
	while (list.len > 0) {
		const char *comma = memchr(list.ptr, ',', list.len);
		size_t len = comma ? (size_t)(comma - list.ptr) : list.len;

		if (pattern_fits(str_trim((struct mr_str){ list.ptr, len }), name))
			return true;
		len += comma ? 1 : 0;
		list = (struct mr_str){ list.ptr + len, list.len - len };
	}
	return false;
}

static enum mr_rc
match(struct resolver *r, struct mr_str list, bool operator_too, const char *shown, struct mr_error *err)
{
	size_t reached = r->reached, left_out = r->left_out;
	enum mr_rc rc;

	resolver_expect_many(r, 2);
	rc = resolver_agents(r, err);

	for (size_t i = 0; rc == MR_OK && i < r->agents_n; i++) {
		const struct known_agent *agent = &r->agents[i];

		if (!fits_any(list, str_of(agent->name)) || (!operator_too && agent->stray) ||
		    (!operator_too && office_has_lives(r->room) && strcmp(agent->name, OPERATOR) == 0))
			continue;
		rc = resolver_reach(r, agent->name, agent->live, false, err);
	}
	if (rc != MR_OK)
		return rc;
	bool only_sender = r->left_out > left_out;

	/* A group whose pattern finds only the sender is in order; who writes the pattern wants somebody to
	 * read it. */
	if (r->reached > reached || (only_sender && r->depth > 0))
		return resolver_trail(r, err, "'%s' matches %zu of the %zu agents%s", shown, r->reached - reached,
		    r->agents_n, only_sender ? ", the sender left out" : "");
	return mr_fail(err, MR_NOTFOUND, "nobody %smatches '%s'\n`mailroom who` lists the agents of this room",
	    only_sender ? "but you " : "", shown);
}

enum mr_rc
pattern_wildcard(struct resolver *r, struct mr_str text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;
	enum mr_rc rc = pattern_check(text, err);

	buf_add(&shown, text);
	if (rc != MR_OK || !buf_ok(&shown))
		return rc == MR_OK ? mr_nomem(err) : rc;
	resolver_form(r, "wildcard", buf_z(&shown));
	return match(r, text, true, buf_z(&shown), err);
}

/* ---- Patterns with a name ---- */

static const struct named_pattern {
	const char *name; /* "rig/" is followed by the name of a rig, which takes the place of % */
	const char *means;
} built_in[] = {
	{ "all", "*, */*, */*/*, */*/*/*" },
	{ "town", "*" },
	{ "witnesses", "*/witness" },
	{ "refineries", "*/refinery" },
	{ "deacons", "deacon, */deacon" },
	{ "dogs", "deacon/dogs/*" },
	{ "crew", "*/crew/*" },
	{ "polecats", "*/polecats/*" },
	{ "rig/", "%/*, %/*/*, %/*/*/*" },
	{ "crew/", "%/crew/*" },
	{ "polecats/", "%/polecats/*" },
};
#define BUILT_IN (sizeof(built_in) / sizeof(built_in[0]))

static enum mr_rc
match_named(struct resolver *r, const struct named_pattern *pattern, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf means = BUF_INIT;
	const char *rig = name + strlen(pattern->name);
	char shown[MR_ADDRESS_MAX + 2];
	enum mr_rc rc;

	if (*rig && strchr(rig, '/'))
		return mr_fail(err, MR_REFUSED, "'@%.80s' names no rig: that is one part, without a slash", name);
	rc = *rig ? address_check(str_of(rig), err) : MR_OK;
	if (rc != MR_OK)
		return rc;
	for (const char *p = pattern->means; *p; p++) {
		if (*p == '%')
			buf_adds(&means, rig);
		else
			buf_addc(&means, *p);
	}
	if (!buf_ok(&means))
		return mr_nomem(err);
	resolver_form(r, "pattern", name);
	(void)snprintf(shown, sizeof(shown), "@%s", name);
	rc = resolver_trail(r, err, "'%s' means %s%s", shown, buf_z(&means),
	    office_has_lives(r->room) && (strcmp(name, "all") == 0 || strcmp(name, "town") == 0)
		? ", but not the operator"
		: "");
	return rc == MR_OK ? match(r, buf_str(&means), false, shown, err) : rc;
}

static const struct named_pattern *
find_named(const char *name)
{
	for (size_t i = 0; i < BUILT_IN; i++) {
		bool of_rig = str_ends(str_of(built_in[i].name), "/");

		if (of_rig ? str_starts(str_of(name), built_in[i].name) && name[strlen(built_in[i].name)]
			   : strcmp(name, built_in[i].name) == 0)
			return &built_in[i];
	}
	return NULL;
}

enum mr_rc
pattern_at(struct resolver *r, const char *given, struct mr_error *err)
{
	const char *name = given + 1;
	const struct named_pattern *pattern = find_named(name);

	if (target_exists(r->room, "group", name))
		return expand_group(r, name, err);
	if (expand_has_pattern(r->room, name))
		return expand_pattern(r, name, err);
	if (office_has_lives(r->room) && canonical_operator(str_of(name)))
		return resolve_agent(r, STR(OPERATOR), err);
	return pattern ? match_named(r, pattern, name, err) : near_unknown(r, "pattern", name, err);
}

void
pattern_each(const struct mr_room *room, void (*fn)(void *ctx, struct mr_str name), void *ctx)
{
	size_t skip = sizeof(OWN_PATTERN) - 1;

	for (size_t i = 0; i < BUILT_IN; i++)
		fn(ctx, str_of(built_in[i].name));
	for (size_t i = 0; i < room->settings.n; i++) {
		struct mr_str name = str_of(room->settings.lines[i].name);

		if (name.len > skip && str_caseeq((struct mr_str){ name.ptr, skip }, STR(OWN_PATTERN)))
			fn(ctx, (struct mr_str){ name.ptr + skip, name.len - skip });
	}
}
