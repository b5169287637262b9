/* SPDX-License-Identifier: MIT */
/* cmd_trust.c - which rooms this user lets mailroom use where it finds them. */
#include "helptext.h"

#include <unistd.h>

void
trust_text(struct buf *out, enum mr_trust by, int64_t since_ms)
{
	buf_adds(out, mr_trust_word(by));
	if (since_ms <= 0)
		return;
	buf_adds(out, ", since ");
	text_when(out, since_ms);
}

/* ---- One room ---- */

static int
print_one(struct cli *cli, const char *spec, bool trusted, const char *action)
{
	if (out_json(cli, kv_str("room", spec), kv_bool("trusted", trusted), kv_str("action", action)))
		return EXIT_DONE;
	fence_addf(&cli->out, "%.4096s\n  is %s\n", spec,
	    trusted ? "trusted: commands and hooks use it where they find it"
		    : "no longer trusted; its configuration is removed");
	return EXIT_DONE;
}

/* A room of an earlier build: what it did by itself it does no more, and this is where that is said. */
static void
say_leftovers(struct cli *cli, struct mr_room *room)
{
	mr_auto(mr_list_done) struct mr_leftovers all = { 0 };

	(void)mr_config_leftovers(room, &all, IGNORED);
	if (all.n > 0)
		cli_warn(cli,
		    "%zu %s in this room (commands, links) %s no effect now: `mailroom config adopt` shows %s and "
		    "moves %s into your configuration",
		    all.n, all.n == 1 ? "line" : "lines", all.n == 1 ? "has" : "have", all.n == 1 ? "it" : "them",
		    all.n == 1 ? "it" : "them");
}

/* The room that was named, or the nearest one: looked at without using it. */
static enum mr_rc
open_as_it_is(struct cli *cli, struct mr_error *err)
{
	TRY(cli_find_room(cli, cli->argc > 0 ? cli->argv[0] : cli->room_option, true, &cli->place, err));
	return mr_room_open(cli->place.spec,
	    &(struct mr_room_options){ .no_recover = true, .config_dir = env_config_dir(cli) }, &cli->room, err);
}

static int
add(struct cli *cli)
{
	mr_auto(mr_list_done) struct mr_settings allowed = { 0 };
	int64_t since_ms;

	TRY_CLI(env_not_in_session(cli, "trusting a room", &cli->err));
	TRY_CLI(open_as_it_is(cli, &cli->err));
	if (mr_room_trust(cli->room, &since_ms) >= MR_TRUST_USER)
		return print_one(cli, mr_room_spec(cli->room), true, "none");
	TRY_CLI(mr_trust_add(cli->room, &cli->err));
	if (cli->place.tracked)
		cli_warn(cli, "git tracks this room: everyone who can push to the repository can write mail into it");
	(void)mr_config_list(cli->room, &allowed, IGNORED);
	for (size_t i = 0; i < allowed.n; i++)
		cli_warn(cli, "it keeps what you allowed before: %s: %s", allowed.v[i].name, allowed.v[i].value);
	say_leftovers(cli, cli->room);
	return print_one(cli, mr_room_spec(cli->room), true, "added");
}

/* A room that is gone cannot be opened: its path will do. */
static int
drop(struct cli *cli)
{
	mr_auto(buf_done) struct buf spec = BUF_INIT;
	mr_auto(mr_list_done) struct mr_trusted removed = { 0 };

	TRY_CLI(env_not_in_session(cli, "taking trust back", &cli->err));
	if (open_as_it_is(cli, &cli->err) == MR_OK)
		buf_adds(&spec, mr_room_spec(cli->room));
	else if (cli->argc > 0)
		buf_addf(&spec, "%s%s", strchr(cli->argv[0], ':') ? "" : "maildir:", cli->argv[0]);
	else
		return cli_fail(cli, &cli->err);
	TRY_CLI(mr_trust_list(env_config_dir(cli), buf_z(&spec), false, true, &removed, &cli->err));
	if (removed.n == 0)
		TRY_CLI(mr_fail(&cli->err, MR_NOTFOUND, "there is no trust record of '%.160s'", buf_z(&spec)));
	return print_one(cli, buf_z(&spec), false, "removed");
}

/* ---- All ---- */

int
cmd_trust(struct cli *cli, const struct trust_options *o)
{
	mr_auto(mr_list_done) struct mr_trusted records = { 0 };

	if (!o->list && !o->prune)
		return o->remove ? drop(cli) : add(cli);
	if (o->prune && !cli->dry_run)
		TRY_CLI(env_not_in_session(cli, "pruning trust records", &cli->err));
	TRY_CLI(mr_trust_list(env_config_dir(cli), NULL, o->prune, o->prune && !cli->dry_run, &records, &cli->err));
	for (size_t i = 0; i < records.n; i++) {
		const struct mr_trust_record *r = &records.v[i];
		bool trusted = r->by != MR_TRUST_NONE;

		if (out_json(cli, kv_str("room", r->spec), kv_bool("trusted", trusted),
			kv_str("by", trusted ? mr_trust_word(r->by) : NULL), kv_time("since", r->since_ms),
			kv_bool("gone", r->gone)))
			continue;
		fence_addf(&cli->out, "%.4096s\n  ", r->spec);
		if (trusted)
			trust_text(&cli->out, r->by, r->since_ms);
		else
			buf_adds(&cli->out, "has settings, and is used only when it is named");
		buf_adds(&cli->out, r->gone ? "; gone: that room no longer exists\n" : "\n");
	}
	if (!cli->json && records.n == 0)
		buf_adds(&cli->out,
		    o->prune ? "no trusted room is gone\n" : "no room is trusted yet; mailroom trust [PATH]\n");
	return EXIT_DONE;
}

/* ---- The question to a person ---- */

/* Only where a person sees the question, only for a folder of this user's that did not come with a repository. */
bool
trust_offer(struct cli *cli, const struct mr_room_options *options)
{
	struct mr_room_options named = *options;
	mr_auto(buf_done) struct buf question = BUF_INIT;
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;
	char answer[16] = "";

	if (cli->sink || cli->json || !cli->out_tty || cli->place.tracked || !isatty(0) || !isatty(2) ||
	    env_not_in_session(cli, "this", &err) != MR_OK)
		return false;
	named.found = false;
	named.no_recover = true;
	cli_warn(cli,
	    "the room '%s' is not trusted yet. A room that came from somebody else can hold mail that misleads "
	    "your agents.",
	    cli->place.spec);
	buf_adds(&question, "Did you make it, or do you know who did? Trust it from now on? [y/N] ");
	cli_say(cli, &question);
	if (read(0, answer, sizeof(answer) - 1) <= 0 || (answer[0] != 'y' && answer[0] != 'Y') ||
	    mr_room_open(cli->place.spec, &named, &room, &err) != MR_OK)
		return false;
	bool done = mr_trust_add(room, &err) == MR_OK;

	if (done)
		say_leftovers(cli, room);
	else
		(void)cli_fail(cli, &err);
	mr_room_close(room);
	return done;
}
