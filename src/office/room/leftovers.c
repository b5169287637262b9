/* SPDX-License-Identifier: MIT */
/*
 * leftovers.c - lines in a room that earlier builds obeyed: commands in `room`, in agents' registrations and in
 * types, and links. They count for nothing now. What each would be in the user's configuration is told, so that the
 * user can look at it and adopt it.
 */
#include "office/rules/config.h"
#include "office/link/link.h"
#include "office/types/types.h"
#include "office/who/who.h"

struct search {
	struct mr_room *room;
	mr_leftover_fn *fn;
	void *ctx;
	bool more; /* fn wants more */
	struct mr_names types;
};

static void
tell(struct search *s, const char *where, const char *line_name, const char *line_value, const char *name,
    const char *value)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	if (!s->more || !*value || config_has(s->room, name, value))
		return;
	buf_addf(&line, "%s: %s", line_name, line_value);
	struct mr_leftover l = { .where = where, .line = buf_z(&line), .name = name, .value = value };

	s->more = s->fn(s->ctx, &l);
}

/* "Patrol-Handler: TYPE COMMAND" is Handler-TYPE here. */
static void
look_at_settings(struct search *s)
{
	static const char *const commands[] = { "Notify", "Sling", "Bead-Status" };
	const struct record *lines = &s->room->settings;

	for (size_t i = 0; i < lines->n; i++) {
		const char *name = lines->lines[i].name, *value = lines->lines[i].value;
		mr_auto(buf_done) struct buf handler = BUF_INIT;
		size_t n = strcspn(value, " \t");

		for (size_t c = 0; c < sizeof(commands) / sizeof(commands[0]); c++)
			if (ascii_caseeq(name, commands[c]))
				tell(s, "room", name, value, commands[c], value);
		if (!ascii_caseeq(name, "Patrol-Handler") || n == 0 || n > 60)
			continue;
		buf_addf(&handler, "Handler-%.*s", (int)n, value);
		tell(s, "room", name, value, buf_z(&handler), value + n + strspn(value + n, " \t"));
	}
}

static bool
look_at_agent(void *ctx, const struct mr_agent *agent)
{
	struct search *s = ctx;
	mr_auto(buf_done) struct buf where = BUF_INIT, name = BUF_INIT;

	if (!*agent->wake)
		return true;
	buf_addf(&where, "agents/%s/agent", agent->name);
	buf_addf(&name, "Wake-%s", agent->name);
	tell(s, buf_z(&where), "Wake", agent->wake, buf_z(&name), agent->wake);
	return s->more;
}

static bool
look_at_type(void *ctx, const struct mr_type *type)
{
	struct search *s = ctx;

	return *type->pack || names_add(&s->types, str_of(type->name)); /* gathered: fn may ask for types itself */
}

static void
look_at_handlers(struct search *s, struct mr_error *err)
{
	(void)mr_type_each(s->room, look_at_type, NULL, s, err);
	for (size_t i = 0; i < s->types.n && s->more; i++) {
		mr_auto(buf_done) struct buf where = BUF_INIT, name = BUF_INIT;
		const struct type_def *def = types_find(s->room->office->types, s->types.v[i], true);

		if (!def || types_handler_is_name(def->handler))
			continue;
		buf_addf(&where, "types/%s", def->name);
		buf_addf(&name, "Handler-%.60s", def->name);
		tell(s, buf_z(&where), "Handler", def->handler, buf_z(&name), def->handler);
	}
}

/* A link that is not allowed yet, and the mailboxes that an earlier build made for it, which have no mark. */
static bool
look_at_link(void *ctx, const struct mr_link *link)
{
	struct search *s = ctx;
	mr_auto(buf_done) struct buf where = BUF_INIT, grant = BUF_INIT, adopt = BUF_INIT;

	buf_addf(&where, "links/%s", link->name);
	buf_addf(&grant, "Link-%s", link->name);
	buf_addf(&adopt, "Adopt-%s", link->name);
	tell(s, buf_z(&where), "Room", link->room, buf_z(&grant), link->room);
	for (size_t i = 0; i < link->names_n && s->more; i++) {
		mr_auto(buf_done) struct buf pair = BUF_INIT;

		buf_addf(&pair, "%s %s", link->names[i].local, link->names[i].foreign);
		if (!link_is_marked(s->room, link, &link->names[i]))
			tell(s, buf_z(&where), "Name", buf_z(&pair), buf_z(&adopt), buf_z(&pair));
	}
	return s->more;
}

enum mr_rc
mr_config_leftovers(struct mr_room *room, mr_leftover_fn *fn, void *ctx, struct mr_error *err)
{
	struct search s = { .room = room, .fn = fn, .ctx = ctx, .more = true };
	struct mr_error ignored = { 0 };

	look_at_settings(&s);
	if (s.more && ROOM_HAS(room, each_agent) && office_has_lives(room))
		(void)mr_each_agent(room, look_at_agent, &s, &ignored);
	if (s.more)
		look_at_handlers(&s, &ignored);
	if (s.more && link_able(room, &ignored) == MR_OK)
		(void)mr_link_each(room, look_at_link, &s, &ignored);
	mr_names_done(&s.types);
	(void)err;
	return MR_OK;
}
