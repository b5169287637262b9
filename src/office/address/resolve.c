/* SPDX-License-Identifier: MIT */
/*
 * resolve.c - what one address means, tried in this order:
 *
 *	PREFIX:NAME   agent, group (list), queue, channel (announce)
 *	@NAME         a group of that name, then a pattern
 *	with a star   a wildcard over the registered agents
 *	with a slash  an agent
 *	NAME          an agent, a group, a queue or a channel; of several kinds it is refused, never guessed
 */
#include "base/text.h"
#include "message/address.h"
#include "office/link/link.h"

/* ---- Agents ---- */

/* `spelling` as it was written, `found` as it is registered. */
static enum mr_rc
reach_agent(struct resolver *r, const char *spelling, const char *found, bool live, struct mr_error *err)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;
	bool operator= strcmp(found, OPERATOR) == 0;

	resolver_form(r, operator? "operator" : "agent", found);
	if (strcmp(spelling, found) != 0)
		office_name(r->room, found, &name);
	if (strcmp(spelling, found) != 0 && !str_eq(buf_str(&name), str_of(spelling)) &&
	    resolver_trail(r, err, "'%s' is another spelling of '%s'", spelling, found) != MR_OK)
		return err->code;
	return resolver_reach(r, found, live, r->depth == 0, err);
}

static enum mr_rc
make_agent(struct resolver *r, const char *name, struct mr_error *err)
{
	*err = (struct mr_error){ 0 };
	r->out->missing = true;
	resolver_form(r, "agent", name);
	return resolver_reach(r, name, false, r->depth == 0, err);
}

enum mr_rc
resolve_agent(struct resolver *r, struct mr_str spelling, struct mr_error *err)
{
	char name[MR_ADDRESS_MAX + 1], found[MR_ADDRESS_MAX + 1];
	bool live = false;
	enum mr_rc rc = address_normal(spelling, name, err);

	if (rc != MR_OK)
		return rc;
	rc = canonical_agent(r, name, found, &live, err);
	if (rc == MR_OK)
		return reach_agent(r, name, found, live, err);
	if (rc != MR_NOTFOUND)
		return rc;
	return r->hold ? make_agent(r, found, err) : near_unknown(r, "agent", name, err);
}

/* In a room of another program: its own spelling, and no names that stand for another. Where nobody registers, whoever
 * is written to is there. */
static enum mr_rc
resolve_foreign(struct resolver *r, const char *given, struct mr_error *err)
{
	const struct room_driver *driver = r->room->driver;
	char name[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = agent_spelled(r->room, given, name, err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? near_unknown(r, "agent", given, err) : rc;
	rc = agent_exists(r->room, name, err);
	if (rc == MR_OK)
		return reach_agent(r, given, name, true, err);
	if (rc != MR_NOTFOUND)
		return rc;
	if (r->hold || ((driver->abilities & ROOM_OPEN_BOXES) && !(driver->abilities & ROOM_REGISTER)))
		return make_agent(r, name, err);
	return near_unknown(r, "agent", given, err);
}

/* ---- Names with a prefix ---- */

static const struct {
	const char *prefix, *kind;
} prefixes[] = {
	{ "agent:", "agent" },
	{ "group:", "group" },
	{ "queue:", "queue" },
	{ "channel:", "channel" },
	{ "list:", "group" },
	{ "announce:", "channel" },
};

static enum mr_rc
resolve_kind(struct resolver *r, const char *kind, const char *name, struct mr_error *err)
{
	enum mr_rc rc;

	if (strcmp(kind, "agent") == 0)
		return office_has_lives(r->room) ? resolve_agent(r, str_of(name), err) : resolve_foreign(r, name, err);
	rc = target_supported(r->room, kind, err);
	if (rc == MR_OK)
		rc = target_name_check(kind, name, err);
	if (rc != MR_OK)
		return rc;
	if (strcmp(kind, "group") == 0)
		return expand_group(r, name, err);
	return strcmp(kind, "queue") == 0 ? expand_queue(r, name, err) : expand_channel(r, name, err);
}

/* ---- Bare names ---- */

static enum mr_rc
refuse_ambiguous(const char *name, const bool is[4], struct mr_error *err)
{
	mr_auto(buf_done) struct buf forms = BUF_INIT;

	for (size_t i = 0; i < 4; i++)
		if (is[i])
			buf_addf(&forms, "%s%s%s", forms.len > 0 ? ", " : "", prefixes[i].prefix, name);
	return mr_fail(err, MR_REFUSED, "'%s' is ambiguous: it could be %s\nwrite which one you mean: %s", name,
	    buf_z(&forms), buf_z(&forms));
}

static bool
stop_at_one(void *ctx, const char *name)
{
	(void)name;
	*(bool *)ctx = true;
	return false;
}

/* Most rooms have no groups, or no queues: asked once, not for each of a thousand recipients. */
static bool
has_any(struct resolver *r, size_t kind)
{
	struct mr_error ignored = { 0 };
	bool any = false;

	if (r->any[kind] == 0 && ROOM_HAS(r->room, record_each)) {
		enum mr_rc rc =
		    r->room->driver->record_each(r->room, prefixes[kind].kind, "", stop_at_one, &any, &ignored);
		r->any[kind] = any || rc != MR_OK ? 1 : -1;
	}
	return r->any[kind] > 0;
}

static enum mr_rc
resolve_bare(struct resolver *r, const char *name, struct mr_error *err)
{
	char found[MR_ADDRESS_MAX + 1] = "";
	bool is[4] = { false }, live = false;
	size_t kinds = 0, which = 0;
	enum mr_rc rc = address_check(str_of(name), err), agent = rc;

	if (rc == MR_OK)
		agent = canonical_agent(r, name, found, &live, err);
	if (agent != MR_OK && agent != MR_NOTFOUND && agent != MR_REFUSED)
		return agent;
	is[0] = agent == MR_OK;
	for (size_t i = 0; i < 4; i++) {
		if (i > 0)
			is[i] = has_any(r, i) && target_exists(r->room, prefixes[i].kind, name);
		if (is[i]) {
			kinds++;
			which = i;
		}
	}
	if (kinds > 1)
		return refuse_ambiguous(name, is, err);
	if (kinds == 1 && which == 0)
		return reach_agent(r, name, found, live, err);
	if (kinds == 1) {
		*err = (struct mr_error){ 0 };
		rc = resolver_trail(r, err, "'%s' is a %s", name, prefixes[which].kind);
		return rc == MR_OK ? resolve_kind(r, prefixes[which].kind, name, err) : rc;
	}
	if (agent == MR_REFUSED)
		return agent;
	return r->hold ? make_agent(r, found, err) : near_unknown(r, "agent, group, queue or channel", name, err);
}

/* ---- One address ---- */

/* "Old Bob": a name with a blank in it, that somebody has. */
static bool
is_spelled_name(struct mr_room *room, const char *given)
{
	char name[MR_ADDRESS_MAX + 1];
	struct mr_error ignored = { 0 };

	return ROOM_HAS(room, spell) && ROOM_HAS(room, find_agent) &&
	       room->driver->spell(room, given, name, &ignored) == MR_OK && agent_exists(room, name, &ignored) == MR_OK;
}

/* "agent@room" of another room. */
static bool
is_elsewhere(const struct resolver *r, const char *given, struct mr_str *ret_agent, struct mr_str *ret_room)
{
	address_split(str_of(given), ret_agent, ret_room);
	return ret_room->len > 0 && !str_eq(*ret_room, str_of(r->room->name));
}

/* "Old Bob@hand": the linked room says whether somebody there is called so. */
static bool
is_linked_name(const struct resolver *r, const char *given)
{
	struct mr_str agent, room;

	return is_elsewhere(r, given, &agent, &room) && room.len <= MR_LINK_NAME_MAX && link_exists(r->room, room.ptr);
}

static enum mr_rc
no_recipient(const char *given, const char *why, struct mr_error *err)
{
	mr_auto(buf_done) struct buf shown = BUF_INIT;

	text_clean_line(&shown, utf8_cut(str_of(given), 60));
	return mr_fail(err, MR_REFUSED, "'%s' is not a recipient%s", buf_z(&shown), why);
}

static enum mr_rc
check_shape(struct resolver *r, const char *given, struct mr_error *err)
{
	if (*given == '\0')
		return mr_fail(err, MR_REFUSED, "an empty address is not a recipient");
	if (strpbrk(given, " \t\r\n") && !is_spelled_name(r->room, given) && !is_linked_name(r, given)) {
		(void)no_recipient(given, "", err);
		return mr_hint(err, "did you mean -m? the text goes after -m, or in on stdin");
	}
	if (strlen(given) > 2 * MR_ADDRESS_MAX || !header_value_valid(str_of(given)))
		return no_recipient(given, ": it is too long or no text", err);
	return MR_OK;
}

enum mr_rc
resolve_address(struct resolver *r, const char *given, struct mr_error *err)
{
	char name[2 * MR_ADDRESS_MAX + 1];
	struct mr_str agent = { 0 }, room = { 0 };
	enum mr_rc rc = check_shape(r, given, err);

	if (rc == MR_OK && *given == '@')
		return pattern_at(r, given, err);
	if (rc == MR_OK && is_elsewhere(r, given, &agent, &room))
		return link_resolve(r, agent, room, err);
	if (rc != MR_OK)
		return rc;
	if (agent.len == 0)
		return mr_fail(err, MR_REFUSED, "'%.60s' names nobody", given);
	memcpy(name, agent.ptr, agent.len);
	name[agent.len] = '\0';
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (str_starts(agent, prefixes[i].prefix))
			return resolve_kind(r, prefixes[i].kind, name + strlen(prefixes[i].prefix), err);
	if (strchr(name, '*'))
		return pattern_wildcard(r, str_of(name), err);
	if (!office_has_lives(r->room))
		return resolve_foreign(r, name, err);
	if (strchr(name, '/'))
		return resolve_agent(r, str_of(name), err);
	return resolve_bare(r, name, err);
}

/* ---- For whoever asks ---- */

enum mr_rc
mr_resolve(
    struct mr_room *room, const char *sender, const char *address, struct mr_resolution *ret, struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients out = { 0 };
	mr_auto(resolver_done) struct resolver r;
	enum mr_rc rc;

	resolver_init(&r, room, sender, false, &out);
	rc = resolver_take(&r, address, err);
	if (rc == MR_OK && out.missing)
		rc = resolver_trail(&r, err, "nobody has registered '%s': the first mail makes its mailbox", r.name);
	if (rc != MR_OK)
		return rc;
	*ret = (struct mr_resolution){ .form = r.form, .targets = out.all, .trouble = out.trouble, .trail = r.trail };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", r.name);
	out.all = out.trouble = r.trail = (struct mr_names){ 0 };
	return MR_OK;
}

void
mr_resolution_done(struct mr_resolution *resolution)
{
	if (!resolution)
		return;
	mr_names_done(&resolution->targets);
	mr_names_done(&resolution->trouble);
	mr_names_done(&resolution->trail);
	*resolution = (struct mr_resolution){ 0 };
}
