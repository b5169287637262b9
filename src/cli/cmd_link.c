/* SPDX-License-Identifier: MIT */
/* cmd_link.c - links to other rooms: link NAME SPEC, link list, link name; and unlink. */
#include "base/clock.h"
#include "cli/cli.h"
#include "helptext.h"

#include <unistd.h>

/* ---- list ---- */

static void
json_link(struct json *j, const struct mr_link *link)
{
	json_open(j, '{');
	json_key_str(j, "name", link->name);
	json_key_str(j, "room", link->room);
	json_key(j, "names");
	json_open(j, '[');
	for (size_t i = 0; i < link->names_n; i++) {
		json_open(j, '{');
		json_key_str(j, "local", link->names[i].local);
		json_key_str(j, "foreign", link->names[i].foreign);
		json_close(j);
	}
	json_close(j);
	json_key_str(j, "created_by", link->created_by[0] ? link->created_by : NULL);
	json_key_time(j, "created", link->created_ms);
}

struct listing {
	struct cli *cli;
	struct table table;
	size_t n;
	bool failed; /* out of memory */
};

static size_t
count_waiting(struct cli *cli, const char *link)
{
	struct mr_queue_counts counts = { 0 };
	struct mr_error ignored = { 0 };
	char queue[MR_NAME_MAX + 1];

	(void)snprintf(queue, sizeof(queue), "link-%.*s", MR_LINK_NAME_MAX, link);
	if (mr_queue_count(cli->room, queue, &counts, NULL, NULL, &ignored) != MR_OK)
		return 0;
	return counts.ready + counts.delayed + counts.claimed;
}

static bool
list_one(void *ctx, const struct mr_link *link)
{
	struct listing *l = ctx;
	mr_auto(buf_done) struct buf names = BUF_INIT, waiting = BUF_INIT;
	size_t n = count_waiting(l->cli, link->name);

	l->n++;
	if (l->cli->json) {
		struct json j = JSON_INIT(&l->cli->out);

		json_link(&j, link);
		json_key_int(&j, "waiting", (int64_t)n);
		json_key_bool(&j, "allowed", mr_link_allowed(l->cli->room, link));
		out_json_line(l->cli, &j);
		return true;
	}
	for (size_t i = 0; i < link->names_n; i++) {
		mr_auto(buf_done) struct buf pair = BUF_INIT;

		buf_addf(&pair, "%s=%s", link->names[i].local, link->names[i].foreign);
		buf_adds(&names, i > 0 ? ", " : "");
		fence_name(&names, buf_z(&pair));
	}
	buf_adds(&names, names.len > 0 ? "" : "-");
	buf_addf(&waiting, "%zu", n);
	l->failed |= !table_add(&l->table, link->name) || !table_name(&l->table, link->room) ||
		     !table_add(&l->table, buf_z(&waiting)) ||
		     !table_add(&l->table, mr_link_allowed(l->cli->room, link) ? "yes" : "no") ||
		     !table_put(&l->table, &names);
	return !l->failed;
}

static int
run_list(struct cli *cli)
{
	static const char *const heading[] = { "NAME", "ROOM", "WAITING", "ALLOWED", "NAMES" };
	struct listing l = { .cli = cli, .table = { .columns = 5 } };
	struct mr_error err = { 0 };

	for (size_t i = 0; i < 5; i++)
		l.failed |= !table_add(&l.table, heading[i]);
	enum mr_rc rc = mr_link_each(cli->room, list_one, &l, &err);

	if (rc == MR_OK && l.failed)
		rc = mr_nomem(&err);
	if (!cli->json && l.n > 0)
		table_print(cli, &l.table, &cli->out);
	else if (!cli->json && rc == MR_OK)
		buf_adds(&cli->out, "there are no links; mailroom link NAME KIND:WHERE\n");
	mr_names_done(&l.table.cells);
	return rc == MR_OK ? EXIT_DONE : cli_fail(cli, &err);
}

/* ---- Making, naming ---- */

static int
introduce(struct cli *cli, const char *link, const char *local, const char *foreign)
{
	const struct link_options *o = cli->opts;
	struct mr_error err = { 0 };
	char made[MR_ADDRESS_MAX + 1];

	if (o->adopt && env_not_in_session(cli, "adopting a mailbox of another room", &err) != MR_OK)
		return cli_fail(cli, &err);
	if (mr_link_introduce(cli->room, link, local, foreign, o->adopt, made, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", link);
		json_key_str(&j, "local", local);
		json_key_str(&j, "foreign", made);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "%s is known in %s as %s\n", local, link, made);
	}
	return EXIT_DONE;
}

static int
run_name(struct cli *cli)
{
	if (cli->argc < 3 || cli->argc > 4)
		return cli_usage(cli, "usage: mailroom link name LINK LOCAL [FOREIGN]");
	return introduce(cli, cli->argv[1], cli->argv[2], cli->argc == 4 ? cli->argv[3] : NULL);
}

/* A person who links rooms need not be an agent. */
static enum mr_rc
know_maker(struct cli *cli, struct mr_error *err)
{
	if (cli_know_self(cli, err) == MR_OK || err->code != MR_NOTFOUND || cli->as_option)
		return err->code;
	*err = (struct mr_error){ 0 };
	return mr_self_named(cli->room, "operator", &cli->self, err);
}

static int
run_create(struct cli *cli)
{
	const struct link_options *o = cli->opts;
	mr_auto(free_ptr) char *cwd = getcwd(NULL, 0);
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	struct mr_error err = { 0 };
	const char *name = cli->argv[0];
	int code = EXIT_DONE;

	if (cli->argc != 2)
		return cli_usage(cli, "usage: mailroom link NAME KIND:WHERE");
	for (const char *const *pair = o->name; *pair; pair++)
		if (!strchr(*pair, '=') || (*pair)[0] == '=')
			return cli_usage(cli, "--name '%s' is not LOCAL=FOREIGN", *pair);
	if (env_not_in_session(cli, "linking rooms", &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!cwd || know_maker(cli, &err) != MR_OK ||
	    mr_room_find(spec_expand(cli, cli->argv[1], cwd), NULL, cwd, &place, &err) != MR_OK ||
	    mr_link_create(cli->room, &cli->self, name, place.spec, o->make, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	if (cli->json) {
		mr_auto(mr_link_done) struct mr_link link = { 0 };
		struct json j = JSON_INIT(&cli->out);

		if (mr_link_get(cli->room, name, &link, &err) != MR_OK)
			return cli_fail(cli, &err);
		json_link(&j, &link);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "linked %s to %s; write to AGENT@%s\n", name, place.spec, name);
	}
	for (const char *const *pair = o->name; *pair && code == EXIT_DONE; pair++) {
		const char *equals = strchr(*pair, '=');
		const char *local = arena_dup(&cli->own, (struct mr_str){ *pair, (size_t)(equals - *pair) });

		code = local ? introduce(cli, name, local, equals[1] ? equals + 1 : NULL) : EXIT_FAILED;
	}
	return code;
}

int
cmd_link(struct cli *cli)
{
	const char *word = cli->argc > 0 ? cli->argv[0] : "list"; /* looking costs nothing */

	if (strcmp(word, "list") == 0) {
		cli->subword = "list";
		if (cli->argc > 1)
			return cli_usage(cli, "'%s' is one argument too many", cli->argv[1]);
		return run_list(cli);
	}
	if (strcmp(word, "name") == 0) {
		cli->subword = "name";
		return run_name(cli);
	}
	cli->subword = "create";
	return run_create(cli);
}

/* ---- unlink ---- */

int
cmd_unlink(struct cli *cli)
{
	const struct unlink_options *o = cli->opts;
	struct mr_error err = { 0 };
	size_t dead = 0;
	const char *name = cli->argv[0];

	if (env_not_in_session(cli, "unlinking rooms", &err) != MR_OK)
		return cli_fail(cli, &err);
	if (mr_link_remove(cli->room, name, o->force, &dead, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", name);
		json_key_bool(&j, "unlinked", true);
		json_key_int(&j, "dead", (int64_t)dead);
		out_json_line(cli, &j);
		return EXIT_DONE;
	}
	fence_addf(&cli->out, "unlinked %s", name);
	if (dead > 0) {
		buf_adds(&cli->out, "; ");
		out_count(&cli->out, dead, "message");
		buf_adds(&cli->out, " to dead letters");
	}
	buf_addc(&cli->out, '\n');
	return EXIT_DONE;
}
