/* SPDX-License-Identifier: MIT */
/*
 * team.c - a team of Claude Code from outside: a link of this room to it, and our agents as its members, so that both
 * sides can write first. What is done is done by the link (mr_link_*); here is what that means for a whole team.
 */
#include "cli/setup/setup.h"
#include "cli/view.h"

#include <unistd.h>

struct team {
	struct cli *cli;
	char name[MR_LINK_NAME_MAX + 1]; /* of the link */
	const char *spec;                /* of the team */
	struct mr_link link;             /* as it is, or zero */
	bool linked;
	struct mr_names agents; /* ours that are to be members */
	bool preview;
};

static void
team_done(struct team *t)
{
	mr_link_done(&t->link);
	mr_names_done(&t->agents);
}

/* ---- Saying ---- */

/* local NULL: of the link itself. */
static void
say(struct team *t, const char *local, const char *foreign, const char *action)
{
	struct cli *cli = t->cli;
	bool none = strcmp(action, "none") == 0;

	if (out_json(cli, kv_str("link", t->name), kv_str(local ? "local" : "room", local ? local : t->spec),
		local ? kv_str("foreign", foreign) : kv_none(), kv_str("action", action),
		kv_bool("written", !t->preview && !none)))
		return;
	if (none && local)
		fence_addf(&cli->out, "%s is already a member\n", local);
	else if (none)
		fence_addf(&cli->out, "%s is already linked to %.4096s\n", t->name, t->spec);
	else
		fence_addf(&cli->out, "%s%s%s %s%s%.4096s\n", t->preview ? "would " : "", action,
		    t->preview ? "" : "ed", local ? local : t->name, local ? foreign ? ", there " : "" : ", ",
		    local ? foreign ? foreign : "" : t->spec);
}

static enum mr_rc
open_team(const struct team *t, struct mr_room **ret, struct mr_error *err)
{
	return mr_room_open(
	    t->spec, &(struct mr_room_options){ .state_dir = t->cli->env.state_dir, .must_exist = true }, ret, err);
}

/* ---- In ---- */

static enum mr_rc
make_link(struct team *t, struct mr_error *err)
{
	struct cli *cli = t->cli;
	struct mr_room *there = NULL;

	if (t->preview) {
		TRY(open_team(t, &there, err));
		mr_room_close(there);
		return MR_OK;
	}
	TRY(env_not_in_session(cli, "linking a team", err));
	if (cli_know_self(cli, err) != MR_OK) {
		if (err->code != MR_NOTFOUND || cli->as_option)
			return err->code;
		*err = (struct mr_error){ 0 }; /* a person who does this need not be an agent */
		TRY(mr_self_named(cli->room, "operator", &cli->self, err));
	}
	TRY(mr_link_create(cli->room, &cli->self, t->name, t->spec, false, err));
	cli->changed = true;
	return MR_OK;
}

static int
come_in(struct team *t)
{
	mr_auto(mr_list_done) struct mr_agents here = { 0 };
	struct cli *cli = t->cli;
	struct mr_error err = { 0 };
	bool all = true;
	int code = EXIT_DONE;

	for (int i = 1; i < cli->argc; i++)
		all &= names_add(&t->agents, str_of(cli->argv[i]));
	if (cli->argc < 2)
		TRY_CLI(mr_agent_list(cli->room, &here, &cli->err));
	for (size_t i = 0; i < here.n; i++)
		if (strcmp(here.v[i].name, "operator") != 0)
			all &= names_add(&t->agents, str_of(here.v[i].name));
	TRY_CLI(mr_got(all, &cli->err));
	if (!t->linked && make_link(t, &err) != MR_OK) {
		if (err.code == MR_NOTFOUND)
			(void)mr_hint(
			    &err, "check the team's name: its folder exists once its lead has made a teammate");
		return cli_fail(cli, &err);
	}
	say(t, NULL, NULL, t->linked ? "none" : "link");
	/* One name that is taken over there is no reason to leave out the others. */
	for (size_t i = 0; i < t->agents.n; i++) {
		const char *local = t->agents.v[i], *known = NULL;
		char foreign[MR_ADDRESS_MAX + 1] = "";

		for (size_t n = 0; n < t->link.names_n && !known; n++)
			if (strcmp(t->link.names[n].local, local) == 0)
				known = t->link.names[n].foreign;
		err = (struct mr_error){ 0 };
		if (!t->preview && mr_link_introduce(cli->room, t->name, local, NULL, false, foreign, &err) != MR_OK) {
			code = cli_fail(cli, &err);
			continue;
		}
		say(t, local, t->preview ? known : foreign, known ? "none" : "register");
		cli->changed |= !t->preview;
	}
	if (!cli->json && t->preview)
		buf_adds(&cli->out, "nothing was written; --apply does it\n");
	else if (!cli->json)
		buf_addf(&cli->out,
		    "write to AGENT@%s; `mailroom carry --watch %s` brings their answers as soon as they are there\n",
		    t->name, t->name);
	return code;
}

/* ---- Out ---- */

static void
say_trouble(void *ctx, const char *link, const struct mr_error *err)
{
	struct team *t = ctx;

	cli_warn(t->cli, "%s: %s", link, err->message);
}

/* Mail that came for our agents meanwhile is carried first: with their mailboxes it would be gone. */
static enum mr_rc
leave(struct team *t, struct mr_error *err)
{
	struct mr_room *there = NULL;
	struct mr_carried carried = { 0 };
	enum mr_rc rc = open_team(t, &there, err);

	if (rc == MR_NOTFOUND) { /* the team is over: there is nothing to leave */
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc == MR_OK)
		rc = mr_carry(t->cli->room, t->name, MR_CARRY_IN | MR_CARRY_OUT, say_trouble, t, &carried, err);
	for (size_t i = 0; i < t->link.names_n && rc == MR_OK; i++) {
		const char *const names[] = { t->link.names[i].foreign, NULL };
		struct mr_prune_options how = { .names = names };

		/* First as a member, which is refused while there is unread mail; what is left then is an inbox of mail
		 * that was carried: if it stayed, it would be somebody else's when we come again. */
		rc = mr_prune(there, &how, NULL, err);
		how.force = true;
		if (rc == MR_OK)
			rc = mr_prune(there, &how, NULL, err);
		if (rc != MR_OK && rc != MR_NOTFOUND)
			break;
		*err = (struct mr_error){ 0 };
		rc = MR_OK;
		say(t, t->link.names[i].local, names[0], "unregister");
	}
	mr_room_close(there);
	return rc;
}

/* The team's spec, and the link to it, which may have any name; else the name that it would get. */
static enum mr_rc
find_team(struct team *t, const char *team, struct mr_error *err)
{
	struct cli *cli = t->cli;
	const char *spec = cli_text(cli, "teams:%s", team);
	mr_auto(mr_list_done) struct mr_links links = { 0 };
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	size_t n = 0;

	TRY(cli_open_room(cli, err));
	if (!team[0] || strchr(team, '/'))
		return mr_fail(err, MR_REFUSED, "'%s' is not the name of a team", team);
	TRY(mr_got(spec != NULL, err));
	TRY(cli_find_room(cli, spec, true, &place, err));
	t->spec = arena_dup(&cli->own, str_of(place.spec));
	TRY(mr_got(t->spec, err));
	/* A link's name has fewer letters than a team's may have. */
	for (const char *c = team; *c && n < MR_LINK_NAME_MAX; c++) {
		char low = ascii_lower(*c);
		bool plain = ascii_alnum(low) || (n > 0 && (low == '_' || low == '-'));

		if (plain || n > 0)
			t->name[n++] = plain ? low : '-';
	}
	TRY(mr_link_list(cli->room, &links, err));
	for (size_t i = 0; i < links.n; i++)
		if (strcmp(links.v[i].room, t->spec) == 0) {
			t->linked = true;
			(void)snprintf(t->name, sizeof t->name, "%s", links.v[i].name);
			return mr_link_get(cli->room, t->name, &t->link, err);
		}
	return MR_OK;
}

int
team_run(struct cli *cli, const char *team, enum setup_way way, bool preview)
{
	mr_auto(team_done) struct team t = { .cli = cli, .preview = preview };

	TRY_CLI(find_team(&t, team, &cli->err));
	if (way == SETUP_IN)
		return come_in(&t);
	if (!t.linked) {
		if (!cli->json)
			fence_addf(&cli->out, "there is no link to %.4096s: nothing to do\n", t.spec);
		return EXIT_DONE;
	}
	for (size_t i = 0; i < t.link.names_n && preview; i++)
		say(&t, t.link.names[i].local, t.link.names[i].foreign, "unregister");
	if (!preview) {
		TRY_CLI(leave(&t, &cli->err));
		TRY_CLI(mr_link_remove(cli->room, t.name, false, NULL, &cli->err));
		cli->changed = true;
	}
	say(&t, NULL, NULL, "unlink");
	return EXIT_DONE;
}
