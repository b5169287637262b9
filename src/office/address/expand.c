/* SPDX-License-Identifier: MIT */
/*
 * expand.c - what stands for others, into those others: groups and the room's own patterns into their
 * members, depth first, channels into their subscribers.
 *
 * Each group is entered once for an address, so cycles end and a diamond delivers once. A member that reaches
 * nobody does not stop the mail to the rest: it is named in the receipt. An address that reaches nobody at
 * all is an error.
 */
#include "message/address.h"
#include "office/address/resolve.h"

#define DEPTH_MAX 32 /* groups within groups: far more than anyone keeps in mind, far less than the stack holds */

/* ---- Members ---- */

/* Wrong or unknown members are the group's trouble; a room that cannot be read is everybody's. */
static bool
is_trouble(enum mr_rc rc)
{
	return rc == MR_NOTFOUND || rc == MR_REFUSED || rc == MR_UNSUPPORTED || rc == MR_CORRUPT;
}

static enum mr_rc
take_member(struct resolver *r, const char *owner, const char *member, struct mr_error *err)
{
	struct mr_error why = { 0 };
	enum mr_rc rc;

	r->depth++;
	rc = resolve_address(r, member, &why);
	r->depth--;
	if (rc == MR_OK)
		return MR_OK;
	if (is_trouble(rc))
		return resolver_trouble(r, err, "member '%.160s' of %s: %s", member, owner, why.message);
	*err = why;
	return rc;
}

/* False: this address has led here before. */
static enum mr_rc
enter(struct resolver *r, const char *kind, const char *name, bool *ret_new, struct mr_error *err)
{
	char key[MR_ADDRESS_MAX + 16];

	(void)snprintf(key, sizeof(key), "%s:%s", kind, name);
	*ret_new = !names_has(&r->visited, key);
	if (!*ret_new)
		return resolver_trail(r, err, "%s '%s' was met before: it adds nobody", kind, name);
	if (r->depth >= DEPTH_MAX)
		return mr_fail(err, MR_REFUSED, "%s '%s' is nested more than %d deep", kind, name, DEPTH_MAX);
	return names_add(&r->visited, str_of(key)) ? MR_OK : mr_nomem(err);
}

/* Only for what the sender named: inside a group its own members have said what is wrong with them. */
static enum mr_rc
reaches_nobody(struct resolver *r, const char *owner, const char *hint, struct mr_error *err)
{
	if (r->depth > 0 || r->reached > 0)
		return MR_OK;
	(void)mr_fail(err, MR_REFUSED, "%s reaches nobody%s", owner, r->left_out > 0 ? " but you" : "");
	if (r->out->trouble.n > r->trouble_before)
		return mr_hint(err, "%s", r->out->trouble.v[r->out->trouble.n - 1]);
	return mr_hint(err, "%s", hint);
}

static enum mr_rc
take_members(struct resolver *r, const char *owner, const struct mr_names *members, struct mr_error *err)
{
	enum mr_rc rc = resolver_trail(r, err, "%s has %zu member%s", owner, members->n, members->n == 1 ? "" : "s");

	resolver_expect_many(r, members->n);
	for (size_t i = 0; rc == MR_OK && i < members->n; i++)
		rc = take_member(r, owner, members->v[i], err);
	if (rc == MR_OK && members->n == 0 && r->depth > 0)
		rc = resolver_trouble(r, err, "%s has no members", owner);
	return rc;
}

enum mr_rc
expand_group(struct resolver *r, const char *name, struct mr_error *err)
{
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	char owner[MR_NAME_MAX + 16], hint[MR_NAME_MAX + 60];
	bool is_new = false;
	enum mr_rc rc = mr_group_get(r->room, name, &group, err);

	if (rc == MR_NOTFOUND)
		return near_unknown(r, "group", name, err);
	if (rc == MR_OK)
		rc = enter(r, "group", name, &is_new, err);
	if (rc != MR_OK || !is_new)
		return rc;
	resolver_form(r, "group", name);
	(void)snprintf(owner, sizeof(owner), "group '%s'", name);
	(void)snprintf(hint, sizeof(hint), "`mailroom group add %s AGENT` adds a member", name);
	rc = take_members(r, owner, &group.members, err);
	return rc == MR_OK ? reaches_nobody(r, owner, hint, err) : rc;
}

/* ---- The room's own patterns ---- */

static bool
add_listed(struct mr_names *members, struct mr_str list)
{
	while (list.len > 0) {
		const char *comma = memchr(list.ptr, ',', list.len);
		size_t len = comma ? (size_t)(comma - list.ptr) : list.len;
		struct mr_str item = str_trim((struct mr_str){ list.ptr, len });

		if (item.len > 0 && !names_add(members, item))
			return false;
		len += comma ? 1 : 0;
		list = (struct mr_str){ list.ptr + len, list.len - len };
	}
	return true;
}

static bool
defines(const struct mr_header *line, const char *name)
{
	size_t skip = sizeof(OWN_PATTERN) - 1;

	return strlen(line->name) > skip && str_caseeq((struct mr_str){ line->name, skip }, STR(OWN_PATTERN)) &&
	       ascii_caseeq(line->name + skip, name);
}

bool
expand_has_pattern(const struct mr_room *room, const char *name)
{
	for (size_t i = 0; i < room->settings.n; i++)
		if (defines(&room->settings.lines[i], name))
			return true;
	return false;
}

enum mr_rc
expand_pattern(struct resolver *r, const char *name, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names members = { 0 };
	const struct record *settings = &r->room->settings;
	char owner[MR_ADDRESS_MAX + 16];
	bool is_new = false;
	enum mr_rc rc = enter(r, "pattern", name, &is_new, err);

	if (rc != MR_OK || !is_new)
		return rc;
	for (size_t i = 0; i < settings->n; i++)
		if (defines(&settings->lines[i], name) && !add_listed(&members, str_of(settings->lines[i].value)))
			return mr_nomem(err);
	resolver_form(r, "pattern", name);
	(void)snprintf(owner, sizeof(owner), "pattern '@%.150s'", name);
	rc = take_members(r, owner, &members, err);
	return rc == MR_OK ? reaches_nobody(r, owner, "it is a line of the room's settings", err) : rc;
}

/* ---- Queues and channels ---- */

static enum mr_rc
reach_target(struct resolver *r, const char *kind, const char *name, struct mr_error *err)
{
	char target[MR_ADDRESS_MAX + 16];
	enum mr_rc rc;

	(void)snprintf(target, sizeof(target), "%s:%.160s", kind, name);
	rc = target_check(r->room, target, err);
	if (rc == MR_NOTFOUND)
		return near_unknown(r, kind, name, err);
	if (rc != MR_OK)
		return rc;
	resolver_form(r, kind, name);
	return resolver_reach(r, target, true, true, err);
}

enum mr_rc
expand_queue(struct resolver *r, const char *name, struct mr_error *err)
{
	enum mr_rc rc = reach_target(r, "queue", name, err);

	return rc == MR_OK ? resolver_trail(r, err, "one claimer of queue '%s' gets it", name) : rc;
}

static enum mr_rc
take_subscriber(struct resolver *r, const char *channel, const char *name, struct mr_error *err)
{
	struct mr_error why = { 0 };
	enum mr_rc rc;

	r->depth++;
	r->unlisted = true;
	rc = resolve_agent(r, str_of(name), &why);
	r->unlisted = false;
	r->depth--;
	if (rc == MR_OK)
		return MR_OK;
	if (is_trouble(rc))
		return resolver_trouble(r, err, "subscriber '%.160s' of channel '%s': %s", name, channel, why.message);
	*err = why;
	return rc;
}

enum mr_rc
expand_channel(struct resolver *r, const char *name, struct mr_error *err)
{
	mr_auto(record_done) struct record settings = { 0 };
	size_t reached;
	enum mr_rc rc = reach_target(r, "channel", name, err);

	if (rc == MR_OK)
		rc = target_settings(r->room, "channel", name, &settings, err);
	reached = r->reached;
	for (size_t i = 0; rc == MR_OK && i < settings.n; i++)
		if (ascii_caseeq(settings.lines[i].name, "Subscriber"))
			rc = take_subscriber(r, name, settings.lines[i].value, err);
	if (rc != MR_OK)
		return rc;
	return resolver_trail(r, err, "channel '%s' keeps it, and %zu subscriber%s get%s it", name,
	    r->reached - reached, r->reached - reached == 1 ? "" : "s", r->reached - reached == 1 ? "s" : "");
}
