/* SPDX-License-Identifier: MIT */
/*
 * recipients.c - from what stands after `send` to the agents that get the message. The one place where
 * addresses are resolved: names, names with @room, the operator's other names, wildcards, @all.
 */
#include "base/error.h"
#include "base/text.h"
#include "message/address.h"
#include "office/office.h"

#define NEAR_MAX 4 /* names offered when one is unknown */

struct resolving {
	struct mr_room *room;
	const char *sender;
	bool hold;
	struct recipients *out;
	struct mr_names *into; /* out->to or out->cc */
};

static bool
is_operator_alias(struct mr_str name)
{
	return str_caseeq(name, STR("human")) || str_caseeq(name, STR("overseer")) ||
	       str_caseeq(name, STR(OPERATOR));
}

static bool
add_agent(struct resolving *r, const char *name, bool live)
{
	if (names_has(&r->out->all, name))
		return true;
	return names_add(r->into, str_of(name)) && names_add(&r->out->all, str_of(name)) &&
	       (live || strcmp(name, OPERATOR) == 0 || names_add(&r->out->not_live, str_of(name)));
}

static bool
is_live(const struct mr_agent *agent)
{
	return agent->life > 0 && mr_agent_presence(agent) != MR_GONE;
}

/* ---- Wildcards and @all ---- */

struct pattern {
	struct resolving *r;
	struct mr_str text; /* empty: everybody but the operator */
	size_t before;      /* of out->all: agents come once each, so only these can repeat */
	size_t matches;
	bool failed;
};

static struct mr_str
take_component(struct mr_str *rest)
{
	const char *slash = memchr(rest->ptr, '/', rest->len);
	size_t len = slash ? (size_t)(slash - rest->ptr) : rest->len;
	struct mr_str part = { rest->ptr, len };

	rest->ptr += len + (slash ? 1 : 0);
	rest->len -= len + (slash ? 1 : 0);
	return part;
}

static bool
pattern_fits(struct mr_str pattern, struct mr_str name)
{
	while (pattern.len > 0 && name.len > 0) {
		struct mr_str want = take_component(&pattern), have = take_component(&name);

		if (!str_eq(want, STR("*")) && !str_eq(want, have))
			return false;
	}
	return pattern.len == 0 && name.len == 0;
}

static bool
match_agent(void *ctx, const struct mr_agent *agent)
{
	struct pattern *p = ctx;
	struct recipients *out = p->r->out;

	if (strcmp(agent->name, p->r->sender) == 0)
		return true;
	if (p->text.len == 0 ? strcmp(agent->name, OPERATOR) == 0
			     : !pattern_fits(p->text, str_of(agent->name)))
		return true;
	p->matches++;
	for (size_t i = 0; i < p->before; i++)
		if (strcmp(out->all.v[i], agent->name) == 0)
			return true;
	if (!names_add(p->r->into, str_of(agent->name)) || !names_add(&out->all, str_of(agent->name)) ||
	    (!is_live(agent) && strcmp(agent->name, OPERATOR) != 0 &&
		!names_add(&out->not_live, str_of(agent->name))))
		p->failed = true;
	return !p->failed;
}

static enum mr_rc
check_pattern(struct mr_str text, const char *given, struct mr_error *err)
{
	for (struct mr_str rest = text; rest.len > 0;) {
		struct mr_str part = take_component(&rest);

		if (part.len == 0 || (part.len > 1 && memchr(part.ptr, '*', part.len))) {
			(void)mr_fail(err, MR_REFUSED, "'%s' is no pattern of addresses", given);
			return mr_hint(
			    err, "'*' stands for one whole part between slashes, as in 'rig/crew/*'");
		}
	}
	return MR_OK;
}

static enum mr_rc
resolve_pattern(struct resolving *r, struct mr_str text, const char *given, struct mr_error *err)
{
	struct pattern p = { .r = r, .text = text, .before = r->out->all.n };
	enum mr_rc rc;

	if (!r->room->driver->each_agent)
		return office_lacks(r->room, "list of agents to match patterns with", err);
	rc = check_pattern(text, given, err);
	if (rc != MR_OK)
		return rc;
	rc = r->room->driver->each_agent(r->room, match_agent, &p, err);
	if (rc != MR_OK)
		return rc;
	if (p.failed)
		return mr_nomem(err);
	if (p.matches > 0)
		return MR_OK;
	(void)mr_fail(err, MR_NOTFOUND, "nobody but you matches '%s'", given);
	return mr_hint(err, "`mailroom who` lists the agents of this room");
}

/* ---- Unknown names ---- */

struct nearness {
	const char *wanted;
	struct buf *list;
	size_t n;
};

static const char *
last_component(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

static bool
note_if_near(void *ctx, const struct mr_agent *agent)
{
	struct nearness *near = ctx;

	if (edit_distance(near->wanted, agent->name, 2) > 2 &&
	    !ascii_caseeq(last_component(near->wanted), last_component(agent->name)))
		return true;
	buf_addf(near->list, "%s'%s'", near->n > 0 ? ", " : "", agent->name);
	return ++near->n < NEAR_MAX;
}

static enum mr_rc
refuse_unknown(struct resolving *r, const char *name, struct mr_error *err)
{
	mr_auto(buf_done) struct buf list = BUF_INIT;
	struct nearness near = { .wanted = name, .list = &list };
	struct mr_error ignored = { 0 };

	if (r->room->driver->each_agent)
		(void)r->room->driver->each_agent(r->room, note_if_near, &near, &ignored);
	(void)mr_fail(err, MR_NOTFOUND, "no agent '%s' in room '%s'", name, r->room->name);
	if (near.n > 0 && buf_ok(&list))
		return mr_hint(err, "did you mean %s? --hold makes a mailbox that waits", buf_z(&list));
	return mr_hint(err, "`mailroom who` lists the agents; --hold makes a mailbox that waits");
}

static enum mr_rc
resolve_name(struct resolving *r, const char *name, struct mr_error *err)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	enum mr_rc rc;

	if (!r->room->driver->find_agent) /* a kind without registration: whoever is written to exists */
		return add_agent(r, name, true) ? MR_OK : mr_nomem(err);
	rc = r->room->driver->find_agent(r->room, name, &agent, err);
	if (rc == MR_OK)
		return add_agent(r, name, is_live(&agent)) ? MR_OK : mr_nomem(err);
	if (rc != MR_NOTFOUND)
		return mr_wrap(err, "recipient '%s'", name);
	if (!r->hold)
		return refuse_unknown(r, name, err);
	*err = (struct mr_error){ 0 };
	r->out->missing = true;
	return add_agent(r, name, false) ? MR_OK : mr_nomem(err);
}

/* ---- One argument ---- */

static enum mr_rc
check_shape(const struct mr_room *room, const char *given, struct mr_error *err)
{
	static const char *const prefixes[] = { "group:", "queue:", "channel:", "list:", "announce:" };

	if (*given == '\0')
		return mr_fail(err, MR_REFUSED, "an empty address is not a recipient");
	if (strpbrk(given, " \t\r\n")) {
		(void)mr_fail(err, MR_REFUSED, "'%.60s' is not a recipient", given);
		return mr_hint(err, "did you mean -m? the text goes after -m, or in on stdin");
	}
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_starts(str_of(given), prefixes[i])) {
			mr_auto(buf_done) struct buf what = BUF_INIT;

			buf_addf(&what, "%.*ss", (int)(strlen(prefixes[i]) - 1), prefixes[i]);
			(void)office_lacks(room, buf_z(&what), err);
			return mr_hint(err, "send to agents by name; `mailroom who` lists them");
		}
	return MR_OK;
}

static enum mr_rc
resolve_at_pattern(struct resolving *r, const char *given, struct mr_error *err)
{
	if (is_operator_alias(str_of(given + 1)))
		return resolve_name(r, OPERATOR, err);
	if (strcmp(given, "@all") == 0)
		return resolve_pattern(r, (struct mr_str){ "", 0 }, given, err);
	(void)mr_fail(err, MR_UNSUPPORTED, "the pattern '%.60s' is not known", given);
	return mr_hint(err, "known are @all, @overseer and '*' for a whole part of an address");
}

static enum mr_rc
resolve_one(struct resolving *r, const char *given, struct mr_error *err)
{
	char name[MR_ADDRESS_MAX + 1];
	struct mr_str agent, room;
	enum mr_rc rc = check_shape(r->room, given, err);

	if (rc != MR_OK)
		return rc;
	if (*given == '@')
		return resolve_at_pattern(r, given, err);
	address_split(str_of(given), &agent, &room);
	if (room.len > 0 && !str_eq(room, str_of(r->room->name))) {
		(void)mr_fail(err, MR_REFUSED, "no link to room '%.*s'", (int)(room.len < 60 ? room.len : 60),
		    room.ptr);
		return mr_hint(err, "this room is '%s'", r->room->name);
	}
	if (is_operator_alias(agent))
		return resolve_name(r, OPERATOR, err);
	if (memchr(agent.ptr, '*', agent.len))
		return resolve_pattern(r, agent, given, err);
	rc = address_normal(agent, name, err);
	return rc == MR_OK ? resolve_name(r, name, err) : rc;
}

static enum mr_rc
resolve_list(struct resolving *r, const char *const *given, struct mr_names *into, struct mr_error *err)
{
	r->into = into;
	for (size_t i = 0; given && given[i]; i++) {
		enum mr_rc rc = resolve_one(r, given[i], err);

		if (rc != MR_OK)
			return rc;
	}
	return MR_OK;
}

enum mr_rc
recipients_resolve(struct mr_room *room, const char *sender, const char *const *to, const char *const *cc,
    bool hold, struct recipients *ret, struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients out = { 0 };
	const char *rule = mr_room_setting(room, "Unknown-Recipients");
	struct resolving r = {
		.room = room,
		.sender = sender,
		.hold = hold || (rule && ascii_caseeq(rule, "hold")),
		.out = &out,
	};
	enum mr_rc rc = resolve_list(&r, to, &out.to, err);

	if (rc == MR_OK)
		rc = resolve_list(&r, cc, &out.cc, err);
	if (rc != MR_OK)
		return rc;
	if (out.all.n == 0) {
		(void)mr_fail(err, MR_REFUSED, "the message has no recipient");
		return mr_hint(err, "name at least one agent; `mailroom who` lists them");
	}
	*ret = out;
	out = (struct recipients){ 0 };
	return MR_OK;
}

void
recipients_done(struct recipients *r)
{
	mr_names_done(&r->to);
	mr_names_done(&r->cc);
	mr_names_done(&r->all);
	mr_names_done(&r->not_live);
}
