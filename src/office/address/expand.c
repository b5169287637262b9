/* SPDX-License-Identifier: MIT */
/*
 * expand.c - expands addresses that stand for others: wildcards, in which a star is one whole part of the address;
 * @patterns, which are named wildcards; groups and the room's own patterns into their members, depth first; channels
 * into their subscribers.
 *
 * Each group is entered once for an address, so cycles end and two paths to one member deliver once. A member that
 * reaches nobody does not stop the mail to the rest: it is named in the receipt. An address that reaches nobody at all
 * is an error.
 */
#include "message/address.h"
#include "office/address/address.h"

#define DEPTH_MAX 32           /* groups within groups: more than any person uses, less than the stack allows */
#define OWN_PATTERN "Pattern-" /* lines "Pattern-NAME: ADDRESS, ..." of the room's settings */

/* ---- Wildcards ---- */

bool
pattern_fits(struct mr_str pattern, struct mr_str name)
{
	struct mr_str want, have;

	while (name.len > 0 && str_cut(&pattern, '/', &want) && str_cut(&name, '/', &have))
		if (!str_eq(want, STR("*")) && !str_eq(want, have))
			return false;
	return pattern.len == 0 && name.len == 0;
}

enum mr_rc
pattern_check(struct mr_str text, struct mr_error *err)
{
	mr_auto(buf_done) struct buf plain = BUF_INIT;
	struct mr_str rest = text, part;

	/* With a letter in place of every lone star it must be an address. */
	while (str_cut(&rest, '/', &part)) {
		buf_add(&plain, str_eq(part, STR("*")) ? STR("x") : part);
		if (rest.len > 0 || (part.len < text.len && rest.ptr[-1] == '/'))
			buf_addc(&plain, '/');
	}
	TRY(mr_got(buf_ok(&plain), err));
	if (address_check(buf_str(&plain), err) == MR_OK)
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "'%.*s' is not a pattern of addresses\n'*' stands for one whole part between slashes, as in 'rig/crew/*'",
	    (int)(text.len < 60 ? text.len : 60), text.ptr);
}

/* Reaches the agents whose names fit one of the patterns, which have commas between them. */
static enum mr_rc
match(struct resolver *r, struct mr_str patterns, bool operator_too, const char *shown, struct mr_error *err)
{
	size_t reached = r->reached, left_out = r->left_out;
	mr_auto(mr_names_done) struct mr_names fit = { 0 };

	TRY(resolver_agents(r, err));
	const struct known_agent *agent = r->agents.v;

	for (size_t i = 0; i < r->agents.n; i++, agent++) {
		struct mr_str rest = patterns, pattern;
		bool fits = false;

		if (!operator_too &&
		    (agent->stray || (office_has_lives(r->room) && strcmp(agent->name, OPERATOR) == 0)))
			continue;
		while (!fits && str_cut(&rest, ',', &pattern))
			fits = pattern_fits(str_trim(pattern), str_of(agent->name));
		if (fits && !resolver_leaves_out(r, agent->name) && !names_add(&fit, str_of(agent->name)))
			return mr_nomem(err);
	}
	r->many |= fit.n > NOT_LIVE_MAX;
	for (size_t i = 0; i < fit.n; i++)
		resolver_reach(r, fit.v[i], resolver_is_gone(r, fit.v[i]));
	bool only_sender = r->left_out > left_out;

	/* A member of a group may match only the sender; a sender who writes the pattern expects a reader. */
	if (r->reached == reached && !(only_sender && r->depth > 0))
		return mr_fail(err, MR_NOTFOUND,
		    "no agent %smatches '%s'\n`mailroom who` lists the agents of this room",
		    only_sender ? "but you " : "", shown);
	resolver_say(r, &r->trail, "'%s' matches %zu of the %zu agents%s", shown, r->reached - reached, r->agents.n,
	    only_sender ? ", the sender left out" : "");
	return MR_OK;
}

enum mr_rc
expand_wildcard(struct resolver *r, const char *text, struct mr_error *err)
{
	TRY(pattern_check(str_of(text), err));
	resolver_form(r, "wildcard", text);
	return match(r, str_of(text), true, text, err);
}

/* ---- Members ---- */

/* Wrong or unknown members become sentences in the receipt; an I/O error stops the send. */
static enum mr_rc
take_member(struct resolver *r, const char *owner, const char *member, struct mr_error *err)
{
	struct mr_error why = { 0 };
	enum mr_rc rc;

	r->depth++;
	rc = r->subscribers ? resolve_agent(r, str_of(member), &why) : resolve_address(r, member, &why);
	r->depth--;
	if (rc == MR_NOTFOUND || rc == MR_REFUSED || rc == MR_UNSUPPORTED || rc == MR_CORRUPT) {
		resolver_say(r, &r->out->trouble, "%s '%.160s' of %s: %s", r->subscribers ? "subscriber" : "member",
		    member, owner, why.message);
		return MR_OK;
	}
	if (rc != MR_OK)
		*err = why;
	return rc;
}

/* `owner` is its name in sentences. */
static enum mr_rc
expand_members(struct resolver *r, const char *kind, const char *name, const char *owner,
    const struct mr_names *members, const char *hint, struct mr_error *err)
{
	char key[MR_ADDRESS_MAX + 16];

	(void)snprintf(key, sizeof(key), "%s:%s", kind, name);
	if (names_has(&r->visited, key)) {
		resolver_say(r, &r->trail, "%s '%s' is already included: it adds nobody", kind, name);
		return MR_OK;
	}
	if (r->depth >= DEPTH_MAX)
		return mr_fail(err, MR_REFUSED, "%s '%s' is nested more than %d deep", kind, name, DEPTH_MAX);
	TRY(mr_got(names_add(&r->visited, str_of(key)), err));
	resolver_form(r, kind, name);
	resolver_say(r, &r->trail, "%s has %zu member%s", owner, members->n, members->n == 1 ? "" : "s");
	r->many |= members->n > NOT_LIVE_MAX;
	for (size_t i = 0; i < members->n; i++)
		TRY(take_member(r, owner, members->v[i], err));
	if (members->n == 0 && r->depth > 0)
		resolver_say(r, &r->out->trouble, "%s has no members", owner);
	/* Inside a group its own members have been reported. */
	if (r->depth > 0 || r->reached > 0)
		return MR_OK;
	(void)mr_fail(err, MR_REFUSED, "%s reaches nobody%s", owner, r->left_out > 0 ? " but you" : "");
	return mr_hint(
	    err, "%s", r->out->trouble.n > r->trouble_before ? r->out->trouble.v[r->out->trouble.n - 1] : hint);
}

enum mr_rc
expand_group(struct resolver *r, const char *name, struct mr_error *err)
{
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	char owner[MR_NAME_MAX + 16], hint[MR_NAME_MAX + 60];
	enum mr_rc rc = mr_group_get(r->room, name, &group, err);

	if (rc == MR_NOTFOUND)
		return resolve_unknown(r, "group", name, err);
	TRY(rc);
	(void)snprintf(owner, sizeof(owner), "group '%s'", name);
	(void)snprintf(hint, sizeof(hint), "`mailroom group add %s AGENT` adds a member", name);
	return expand_members(r, "group", name, owner, &group.members, hint, err);
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

/* The name of the room's own pattern that a line of its settings defines; empty: none. */
static struct mr_str
own_pattern(const struct mr_header *line)
{
	struct mr_str name = str_of(line->name);

	return str_casestarts(name, OWN_PATTERN) ? str_from(name, sizeof(OWN_PATTERN) - 1) : STR("");
}

bool
pattern_names(const struct mr_room *room, struct mr_names *ret)
{
	bool ok = true;

	for (size_t i = 0; i < BUILT_IN; i++)
		if (!str_ends(str_of(built_in[i].name), "/"))
			ok = ok && names_add(ret, str_of(built_in[i].name));
	for (size_t i = 0; i < room->settings.n; i++)
		if (own_pattern(&room->settings.lines[i]).len > 0)
			ok = ok && names_add(ret, own_pattern(&room->settings.lines[i]));
	return ok;
}

static enum mr_rc
match_named(struct resolver *r, const struct named_pattern *pattern, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf means = BUF_INIT;
	const char *rig = name + strlen(pattern->name);
	char shown[MR_ADDRESS_MAX + 2];
	bool all = office_has_lives(r->room) && (strcmp(name, "all") == 0 || strcmp(name, "town") == 0);

	if (strchr(rig, '/'))
		return mr_fail(err, MR_REFUSED, "'@%.80s' names no rig: a rig is one part, without a slash", name);
	if (*rig)
		TRY(address_check(str_of(rig), err));
	for (const char *p = pattern->means; *p; p++)
		buf_add(&means, *p == '%' ? str_of(rig) : (struct mr_str){ p, 1 });
	TRY(mr_got(buf_ok(&means), err));
	resolver_form(r, "pattern", name);
	(void)snprintf(shown, sizeof(shown), "@%s", name);
	resolver_say(r, &r->trail, "'%s' means %s%s", shown, buf_z(&means), all ? ", but not the operator" : "");
	return match(r, buf_str(&means), false, shown, err);
}

enum mr_rc
expand_at(struct resolver *r, const char *name, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names members = { 0 };
	const struct record *settings = &r->room->settings;
	char owner[MR_ADDRESS_MAX + 16];
	bool own = false;

	if (target_exists(r->room, "group", name))
		return expand_group(r, name, err);
	for (size_t i = 0; i < settings->n; i++) {
		struct mr_str defined = own_pattern(&settings->lines[i]);
		struct mr_str rest = str_of(settings->lines[i].value), member;

		if (defined.len == 0 || !str_caseeq(defined, str_of(name)))
			continue;
		own = true;
		while (str_cut(&rest, ',', &member))
			if (str_trim(member).len > 0 && !names_add(&members, str_trim(member)))
				return mr_nomem(err);
	}
	if (own) {
		(void)snprintf(owner, sizeof(owner), "pattern '@%.150s'", name);
		return expand_members(r, "pattern", name, owner, &members, "it is a line of the room's settings", err);
	}
	if (office_has_lives(r->room) && address_is_operator(str_of(name)))
		return resolve_agent(r, STR(OPERATOR), err);
	for (size_t i = 0; i < BUILT_IN; i++) {
		const char *known = built_in[i].name;
		size_t len = strlen(known);

		if (known[len - 1] == '/' ? str_starts(str_of(name), known) && name[len] : strcmp(name, known) == 0)
			return match_named(r, &built_in[i], name, err);
	}
	return resolve_unknown(r, "pattern", name, err);
}

/* ---- Queues and channels ---- */

enum mr_rc
expand_target(struct resolver *r, const char *kind, const char *name, struct mr_error *err)
{
	mr_auto(record_done) struct record settings = { 0 };
	struct room_box target = room_box(kind, name);
	char owner[MR_NAME_MAX + 16];
	enum mr_rc rc = target_check(r->room, target.z, err);

	if (rc == MR_NOTFOUND)
		return resolve_unknown(r, kind, name, err);
	TRY(rc);
	resolver_form(r, kind, name);
	resolver_reach(r, target.z, false);
	if (strcmp(kind, "queue") == 0) {
		resolver_say(r, &r->trail, "one claimer of queue '%s' gets it", name);
		return MR_OK;
	}
	TRY(target_settings(r->room, kind, name, &settings, err));
	size_t before = r->reached;

	(void)snprintf(owner, sizeof(owner), "channel '%s'", name);
	r->subscribers = true;
	for (size_t i = 0; rc == MR_OK && i < settings.n; i++)
		if (ascii_caseeq(settings.lines[i].name, "Subscriber"))
			rc = take_member(r, owner, settings.lines[i].value, err);
	r->subscribers = false;
	TRY(rc);
	size_t n = r->reached - before;

	resolver_say(r, &r->trail, "channel '%s' keeps it, and %zu subscriber%s get%s it", name, n, n == 1 ? "" : "s",
	    n == 1 ? "s" : "");
	return MR_OK;
}
