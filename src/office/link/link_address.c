/* SPDX-License-Identifier: MIT */
/*
 * link_address.c - AGENT@LINK as a recipient. Who is meant is asked in the other room, by its own rules, before
 * anything is accepted: a misspelled name is refused where it was written. The mail itself goes into the queue of the
 * link, with everything that a queue promises; carrying it is another matter, and may fail now.
 */
#include "message/address.h"
#include "office/link/link.h"

static enum mr_rc
refuse_room(struct resolver *r, struct mr_str room, struct mr_error *err)
{
	(void)mr_fail(err, MR_REFUSED, "no link to room '%.*s'", (int)(room.len < 60 ? room.len : 60), room.ptr);
	if (link_able(r->room, &(struct mr_error){ 0 }) != MR_OK)
		return mr_hint(err, "this room is '%s'", r->room->name);
	return mr_hint(err,
	    "this room is '%s'; `mailroom link list` shows the others, `mailroom link NAME KIND:WHERE`"
	    " makes one",
	    r->room->name);
}

/* "agent:alice" is how an answer names its recipient. */
static bool
take_name(struct mr_str agent, char ret[2 * MR_ADDRESS_MAX + 1])
{
	if (str_starts(agent, "agent:")) {
		agent.ptr += sizeof("agent:") - 1;
		agent.len -= sizeof("agent:") - 1;
	}
	if (agent.len == 0 || agent.len > 2 * MR_ADDRESS_MAX)
		return false;
	memcpy(ret, agent.ptr, agent.len);
	ret[agent.len] = '\0';
	return true;
}

/* One agent over there, in its registered spelling. */
static enum mr_rc
find_there(struct resolver *r, struct mr_room *there, const char *name, char ret[MR_ADDRESS_MAX + 1], bool *ret_missing,
    struct mr_error *err)
{
	mr_auto(recipients_done) struct recipients out = { 0 };
	mr_auto(resolver_done) struct resolver other;
	enum mr_rc rc;

	resolver_init(&other, there, "", r->hold, &out);
	rc = resolver_take(&other, name, err);
	if (rc != MR_OK)
		return rc;
	if (!other.form || (strcmp(other.form, "agent") != 0 && strcmp(other.form, "operator") != 0))
		return mr_fail(err, MR_REFUSED,
		    "'%.80s' is no agent in room '%s'\nmail to another room goes to agents by their names", name,
		    there->name);
	(void)snprintf(ret, MR_ADDRESS_MAX + 1, "%s", other.name);
	*ret_missing = out.missing;
	return MR_OK;
}

static enum mr_rc
reach(struct resolver *r, const struct mr_link *link, const char *agent, bool missing, struct mr_error *err)
{
	char address[2 * MR_ADDRESS_MAX], target[MR_NAME_MAX + 8], queue[MR_NAME_MAX + 1];
	const char *ours = link_local_of(link, agent);
	enum mr_rc rc;

	if (ours)
		return mr_fail(err, MR_REFUSED, "'%s@%s' is what '%s' is called there\nwrite to '%s'", agent,
		    link->name, ours, ours);
	(void)snprintf(address, sizeof(address), "%s@%s", agent, link->name);
	if (strlen(address) > MR_ADDRESS_MAX)
		return mr_fail(err, MR_REFUSED, "'%.80s...' has more than %d bytes", address, MR_ADDRESS_MAX);
	link_queue_of(link->name, queue);
	(void)snprintf(target, sizeof(target), "queue:%s", queue);
	rc = target_check(r->room, target, err);
	if (rc == MR_OK)
		rc = resolver_trail(r, err, "'%s' lives in the linked room %s", address, link->room);
	if (rc != MR_OK)
		return rc;
	resolver_form(r, LINK_KIND, address);
	return resolver_reach_away(r, target, address, missing, err);
}

enum mr_rc
link_resolve(struct resolver *r, struct mr_str agent, struct mr_str room, struct mr_error *err)
{
	mr_auto(mr_link_done) struct mr_link link = { 0 };
	struct mr_room *there = NULL;
	char name[2 * MR_ADDRESS_MAX + 1], found[MR_ADDRESS_MAX + 1], link_name[MR_LINK_NAME_MAX + 1];
	bool missing = false;
	enum mr_rc rc;

	if (room.len > MR_LINK_NAME_MAX)
		return refuse_room(r, room, err);
	(void)snprintf(link_name, sizeof(link_name), "%.*s", (int)room.len, room.ptr);
	if (!link_exists(r->room, link_name))
		return refuse_room(r, room, err);
	if (!take_name(agent, name))
		return mr_fail(err, MR_REFUSED, "'%.60s' names nobody", agent.len > 0 ? agent.ptr : "");
	rc = mr_link_get(r->room, link_name, &link, err);
	if (rc == MR_OK)
		rc = link_open(r->room, &link, &there, err);
	if (rc != MR_OK)
		return rc;
	rc = find_there(r, there, name, found, &missing, err);
	mr_room_close(there);
	return rc == MR_OK ? reach(r, &link, found, missing, err) : rc;
}

/* ---- Around a send ---- */

static enum mr_rc
hold_one(struct mr_room *room, const char *address, struct mr_error *err)
{
	mr_auto(mr_link_done) struct mr_link link = { 0 };
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	struct mr_room *there = NULL;
	struct mr_str name, of;
	enum mr_rc rc;

	address_split(str_of(address), &name, &of);
	(void)snprintf(agent.name, sizeof(agent.name), "%.*s", (int)name.len, name.ptr);
	rc = mr_link_get(room, of.ptr, &link, err);
	if (rc == MR_OK)
		rc = link_open(room, &link, &there, err);
	if (rc != MR_OK)
		return rc;
	if (ROOM_HAS(there, add_agent))
		rc = there->driver->add_agent(there, &agent, err);
	mr_room_close(there);
	return rc == MR_EXISTS ? MR_OK : rc;
}

enum mr_rc
link_hold(struct mr_room *room, const struct mr_names *away, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; i < away->n && rc == MR_OK; i++)
		rc = hold_one(room, away->v[i], err);
	return rc;
}

struct telling {
	struct mr_names *trouble;
};

static void
tell_trouble(void *ctx, const char *link, const struct mr_error *err)
{
	struct telling *t = ctx;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	buf_addf(&text, "%s: %s%s%s", link, err->message, err->hint[0] ? "; " : "", err->hint);
	if (buf_ok(&text))
		(void)names_add(t->trouble, buf_str(&text));
}

static void
carry_now(struct mr_room *room, const char *id, const char *link, struct mr_names *trouble)
{
	struct telling telling = { trouble };
	struct mr_error err = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	bool waits = false;
	enum mr_rc rc = carry_after_send(room, link, id, tell_trouble, &telling, &waits, &err);

	if (rc == MR_OK && !waits)
		return;
	if (rc != MR_OK)
		buf_addf(&text, "%s; ", err.message);
	buf_addf(&text, "the mail to %s is stored; `mailroom carry %s` delivers it", link, link);
	if (buf_ok(&text))
		(void)names_add(trouble, buf_str(&text));
}

static bool
add_those_of(struct mr_names *list, const struct mr_names *names, const char *link)
{
	for (size_t i = 0; i < names->n; i++) {
		struct mr_str agent, of;

		address_split(str_of(names->v[i]), &agent, &of);
		if (str_eq(of, str_of(link)) && !names_add(list, str_of(names->v[i])))
			return false;
	}
	return true;
}

void
link_after_delivery(struct mr_room *room, const char *id, struct mr_names *targets, const struct mr_names *to,
    const struct mr_names *cc, struct mr_names *trouble)
{
	struct mr_names shown = { 0 };
	bool fine = true, any = false;
	size_t first = 0;

	while (first < targets->n && !link_of_target(targets->v[first]))
		first++;
	if (first == targets->n) /* nearly always */
		return;
	for (size_t i = 0; i < targets->n; i++) {
		const char *link = link_of_target(targets->v[i]);
		bool linked = link && link_exists(room, link);

		if (linked && trouble)
			carry_now(room, id, link, trouble);
		any |= linked;
		if (linked)
			fine = fine && add_those_of(&shown, to, link) && add_those_of(&shown, cc, link);
		else
			fine = fine && names_add(&shown, str_of(targets->v[i]));
	}
	if (!fine || !any) {
		mr_names_done(&shown);
		return;
	}
	mr_names_done(targets);
	*targets = shown;
}
