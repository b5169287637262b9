/* SPDX-License-Identifier: MIT */
/* cmd_trust.c - which rooms this user lets mailroom use where it finds them. */
#include "base/fence.h"
#include "cli/cli.h"
#include "helptext.h"

#include <poll.h>
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
print_one(struct cli *cli, const char *spec, enum mr_trust by, const char *action)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "room", spec);
		json_key_bool(&j, "trusted", by != MR_TRUST_NONE);
		json_key_str(&j, "action", action);
		out_json_line(cli, &j);
		return EXIT_DONE;
	}
	(void)fence_add(&cli->out, str_of(spec), FENCE_LINE, 0);
	buf_addf(&cli->out, "\n  is %s\n",
	    by != MR_TRUST_NONE ? "trusted: commands and hooks use it where they find it"
				: "not trusted any more; its configuration is removed");
	return EXIT_DONE;
}

static bool
print_allowed(void *ctx, const char *name, const char *value)
{
	cli_warn(ctx, "it keeps what you allowed before: %s: %s", name, value);
	return true;
}

static bool
count_leftover(void *ctx, const struct mr_leftover *l)
{
	(void)l;
	++*(size_t *)ctx;
	return true;
}

/* A room of an earlier build: what it did by itself it does no more, and this is where that is said. */
static void
say_leftovers(struct cli *cli)
{
	struct mr_error ignored = { 0 };
	size_t n = 0;

	(void)mr_config_leftovers(cli->room, count_leftover, &n, &ignored);
	if (n > 0)
		cli_warn(cli,
		    "%zu %s in this room (commands, links) %s for nothing now: mailroom config adopt shows %s and "
		    "moves "
		    "%s into your configuration",
		    n, n == 1 ? "line" : "lines", n == 1 ? "counts" : "count", n == 1 ? "it" : "them",
		    n == 1 ? "it" : "them");
}

/* The room that was named, or the nearest one: looked at without using it. */
static enum mr_rc
open_as_it_is(struct cli *cli, struct mr_error *err)
{
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0);
	const char *given = cli->argc > 0 ? cli->argv[0] : cli->room_option;
	struct mr_room_options options = { .no_recover = true, .config_dir = env_config_dir(cli) };

	if (!cwd)
		return mr_fail_errno(err, "cannot tell the working folder");
	TRY(mr_room_find(spec_expand(cli, given, cwd), given ? NULL : spec_expand(cli, env_get("MAILROOM"), cwd), cwd,
	    &cli->place, err));
	return mr_room_open(cli->place.spec, &options, &cli->room, err);
}

static int
add(struct cli *cli)
{
	struct mr_error err = { 0 };
	int64_t since_ms;

	if (env_not_in_session(cli, "trusting a room", &err) != MR_OK || open_as_it_is(cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	enum mr_trust before = mr_room_trust(cli->room, &since_ms);

	if (before >= MR_TRUST_USER)
		return print_one(cli, mr_room_spec(cli->room), before, "none");
	if (mr_trust_add(cli->room, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->place.tracked)
		cli_warn(cli, "git tracks this room: whoever can push to the repository can write mail into it");
	(void)mr_config_each(cli->room, print_allowed, cli, &err);
	say_leftovers(cli);
	return print_one(cli, mr_room_spec(cli->room), MR_TRUST_USER, "added");
}

/* A room that is gone cannot be opened: its path will do. */
static int
drop(struct cli *cli)
{
	mr_auto(buf_done) struct buf spec = BUF_INIT;
	struct mr_error err = { 0 }, missing = { 0 };
	enum mr_rc rc = env_not_in_session(cli, "taking trust back", &err);

	if (rc == MR_OK)
		rc = open_as_it_is(cli, &missing);
	if (rc == MR_OK)
		buf_adds(&spec, mr_room_spec(cli->room));
	else if (err.code == MR_OK && cli->argc > 0)
		buf_addf(&spec, "%s%s", strchr(cli->argv[0], ':') ? "" : "maildir:", cli->argv[0]);
	else
		return cli_fail(cli, err.code == MR_OK ? &missing : &err);
	if (mr_trust_remove(env_config_dir(cli), buf_z(&spec), &err) != MR_OK)
		return cli_fail(cli, &err);
	return print_one(cli, buf_z(&spec), MR_TRUST_NONE, "removed");
}

/* ---- All ---- */

struct listing {
	struct cli *cli;
	size_t n;
};

static bool
print_record(void *ctx, const struct mr_trust_record *r)
{
	struct listing *l = ctx;
	struct cli *cli = l->cli;

	l->n++;
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "room", r->spec);
		json_key_bool(&j, "trusted", r->by != MR_TRUST_NONE);
		json_key_str(&j, "by", r->by != MR_TRUST_NONE ? mr_trust_word(r->by) : NULL);
		json_key_time(&j, "since", r->since_ms);
		json_key_bool(&j, "gone", r->gone);
		out_json_line(cli, &j);
		return true;
	}
	(void)fence_add(&cli->out, str_of(r->spec), FENCE_LINE, 0);
	buf_adds(&cli->out, "\n  ");
	if (r->by == MR_TRUST_NONE)
		buf_adds(&cli->out, "has settings, and is used when it is named only");
	else
		trust_text(&cli->out, r->by, r->since_ms);
	buf_adds(&cli->out, r->gone ? "; gone: no such room is there any more\n" : "\n");
	return true;
}

static int
list(struct cli *cli, bool prune)
{
	struct listing l = { .cli = cli };
	struct mr_error err = { 0 };
	enum mr_rc rc = MR_OK;

	if (prune && !cli->dry_run)
		rc = env_not_in_session(cli, "pruning trust records", &err);
	if (rc == MR_OK)
		rc = prune ? mr_trust_prune(env_config_dir(cli), cli->dry_run, print_record, &l, &err)
			   : mr_trust_each(env_config_dir(cli), print_record, &l, &err);
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	if (!cli->json && l.n == 0)
		buf_adds(
		    &cli->out, prune ? "no trusted room is gone\n" : "no room is trusted yet; mailroom trust [PATH]\n");
	return EXIT_DONE;
}

int
cmd_trust(struct cli *cli)
{
	const struct trust_options *o = cli->opts;
	bool lists = o->list, removes = o->remove, prunes = o->prune;

	if (lists + removes + prunes > 1)
		return cli_usage(cli, "--list, --remove and --prune exclude each other");
	if ((lists || prunes) && cli->argc > 0)
		return cli_usage(cli, "unexpected argument '%s'", cli->argv[0]);
	if (lists || prunes)
		return list(cli, prunes);
	return removes ? drop(cli) : add(cli);
}

/* ---- The question to a person ---- */

static bool
says_yes(void)
{
	char answer[16] = "";
	ssize_t n = read(0, answer, sizeof(answer) - 1);

	return n > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

/* Only where a person sees the question, only for a folder of this user's that did not come with a repository. */
bool
trust_offer(struct cli *cli, const struct mr_room_options *options)
{
	struct mr_room_options named = *options;
	struct mr_error err = { 0 };
	struct mr_room *room = NULL;

	if (cli->sink || cli->json || !cli->out_tty || cli->place.tracked || !isatty(0) || !isatty(2) ||
	    env_not_in_session(cli, "this", &err) != MR_OK)
		return false;
	named.found = false;
	named.no_recover = true;
	cli_warn(cli,
	    "the room '%s' is not trusted yet. A room that came from somebody else can hold mail that misleads "
	    "your agents.",
	    cli->place.spec);
	mr_auto(buf_done) struct buf question = BUF_INIT;

	buf_adds(&question, "Did you make it, or do you know who did? Trust it from now on? [y/N] ");
	cli_say(cli, &question);
	if (!says_yes() || mr_room_open(cli->place.spec, &named, &room, &err) != MR_OK)
		return false;
	bool done = mr_trust_add(room, &err) == MR_OK;

	cli->room = room;
	if (done)
		say_leftovers(cli);
	else
		(void)cli_fail(cli, &err);
	mr_room_close(cli->room);
	cli->room = NULL;
	return done;
}
