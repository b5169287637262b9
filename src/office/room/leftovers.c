/* SPDX-License-Identifier: MIT */
/*
 * leftovers.c - lines in a room that earlier builds obeyed and this one ignores: commands in `room`, in agents'
 * registrations and in types, and links. Lists each with the equal line of the user's configuration, so that the user
 * can review and adopt it.
 */
#include "office/rules/config.h"
#include "office/link/link.h"
#include "office/types/types.h"
#include "office/who/who.h"

/* "<line>: <line_value>" in the file `where` is "<name>: <value>" in the configuration; skipped if the configuration
 * has it. */
static void
add(struct roll *l, struct mr_room *room, const char *where, const char *line, const char *line_value,
    const struct buf *name, const char *value)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	bool known = !*value || config_has(room, buf_z(name), value);
	struct mr_leftover *o = known ? NULL : roll_add(l, sizeof(*o));

	buf_addf(&whole, "%s: %s", line, line_value);
	if (o)
		*o = (struct mr_leftover){ .where = roll_str(l, where),
			.line = roll_str(l, buf_z(&whole)),
			.name = roll_str(l, buf_z(name)),
			.value = roll_str(l, value) };
	l->failed |= whole.failed || name->failed;
}

/* A link that is not allowed yet, and the mailboxes that an earlier build made for it, which have no mark. */
static void
add_link(struct roll *l, struct mr_room *room, const struct mr_link *link)
{
	mr_auto(buf_done) struct buf where = BUF_INIT, grant = BUF_INIT, adopt = BUF_INIT;

	buf_addf(&where, "links/%s", link->name);
	buf_addf(&grant, "Link-%s", link->name);
	buf_addf(&adopt, "Adopt-%s", link->name);
	add(l, room, buf_z(&where), "Room", link->room, &grant, link->room);
	for (size_t i = 0; i < link->names_n; i++) {
		mr_auto(buf_done) struct buf pair = BUF_INIT;

		buf_addf(&pair, "%s %s", link->names[i].local, link->names[i].foreign);
		if (!link_is_marked(room, link, &link->names[i]))
			add(l, room, buf_z(&where), "Name", buf_z(&pair), &adopt, buf_z(&pair));
	}
}

enum mr_rc
mr_config_leftovers(struct mr_room *room, struct mr_leftovers *ret, struct mr_error *err)
{
	mr_auto(mr_list_done) struct mr_agents agents = { 0 };
	mr_auto(mr_list_done) struct mr_links links = { 0 };
	mr_auto(roll_done) struct roll l = { 0 };
	const struct types_store *types = room->office->types;

	/* "Patrol-Handler: TYPE COMMAND" is Handler-TYPE here. */
	static const char *const commands[] = { "Notify", "Sling", "Bead-Status" };
	const struct record *lines = &room->settings;

	for (size_t i = 0; i < lines->n; i++) {
		const char *line = lines->lines[i].name, *value = lines->lines[i].value;
		mr_auto(buf_done) struct buf name = BUF_INIT;
		size_t n = strcspn(value, " \t");

		for (size_t c = 0; c < sizeof(commands) / sizeof(commands[0]); c++)
			if (ascii_caseeq(line, commands[c]))
				buf_adds(&name, commands[c]);
		if (name.len > 0)
			add(&l, room, "room", line, value, &name, value);
		if (!ascii_caseeq(line, "Patrol-Handler") || n == 0 || n > 60)
			continue;
		buf_addf(&name, "Handler-%.*s", (int)n, value);
		add(&l, room, "room", line, value, &name, value + n + strspn(value + n, " \t"));
	}
	if (office_has_lives(room))
		(void)mr_agent_list(room, &agents, IGNORED);
	for (size_t i = 0; i < agents.n; i++) {
		mr_auto(buf_done) struct buf where = BUF_INIT, name = BUF_INIT;

		buf_addf(&where, "agents/%s/agent", agents.v[i].name);
		buf_addf(&name, "Wake-%s", agents.v[i].name);
		add(&l, room, buf_z(&where), "Wake", agents.v[i].wake, &name, agents.v[i].wake);
	}
	(void)types_read_all(room, IGNORED);
	for (size_t i = 0; i < types->n; i++) {
		mr_auto(buf_done) struct buf where = BUF_INIT, name = BUF_INIT;
		const struct type_def *def = types->v[i];

		if (*def->pack || types_handler_is_name(def->handler))
			continue;
		buf_addf(&where, "types/%s", def->name);
		buf_addf(&name, "Handler-%.60s", def->name);
		add(&l, room, buf_z(&where), "Handler", def->handler, &name, def->handler);
	}
	if (link_able(room, IGNORED) == MR_OK)
		(void)mr_link_list(room, &links, IGNORED);
	for (size_t i = 0; i < links.n; i++)
		add_link(&l, room, &links.v[i]);
	return mr_got(roll_give(&l, ret), err);
}
