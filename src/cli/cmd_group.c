/* SPDX-License-Identifier: MIT */
/* cmd_group.c - groups: named lists of addresses. One command whose first word says what to do. */
#include "base/clock.h"
#include "cli/cli.h"
#include "helptext.h"

/* ---- list, show ---- */

static void
json_group(struct json *j, const struct mr_group *group)
{
	json_open(j, '{');
	json_key_str(j, "name", group->name);
	json_key_names(j, "members", &group->members);
	json_key_str(j, "created_by", group->created_by[0] ? group->created_by : NULL);
	json_key_time(j, "created", group->created_ms);
}

struct listing {
	struct cli *cli;
	struct table table;
	size_t n;
	bool failed; /* out of memory */
};

static bool
add_row(struct listing *l, const struct mr_group *group)
{
	mr_auto(buf_done) struct buf when = BUF_INIT;
	mr_auto(buf_done) struct buf members = BUF_INIT;

	if (group->created_ms > 0)
		text_when(&when, group->created_ms);
	fence_names(&members, &group->members);
	if (group->members.n == 0)
		buf_addc(&members, '-');
	return table_add(&l->table, group->name) && table_add(&l->table, when.len > 0 ? buf_z(&when) : "-") &&
	       table_name(&l->table, group->created_by) && table_put(&l->table, &members);
}

static bool
list_one(void *ctx, const struct mr_group *group)
{
	struct listing *l = ctx;

	l->n++;
	if (l->cli->json) {
		struct json j = JSON_INIT(&l->cli->out);

		json_group(&j, group);
		out_json_line(l->cli, &j);
		return true;
	}
	l->failed |= !add_row(l, group);
	return !l->failed;
}

static int
run_list(struct cli *cli)
{
	static const char *const heading[] = { "NAME", "CREATED", "BY", "MEMBERS" };
	struct listing l = { .cli = cli, .table = { .columns = 4 } };
	struct mr_error err = { 0 };

	for (size_t i = 0; i < 4; i++)
		l.failed |= !table_add(&l.table, heading[i]);
	enum mr_rc rc = mr_group_each(cli->room, list_one, &l, &err);

	if (rc == MR_OK && l.failed)
		rc = mr_nomem(&err);
	if (!cli->json && l.n > 0)
		table_print(cli, &l.table, &cli->out);
	else if (!cli->json && rc == MR_OK)
		buf_adds(&cli->out, "there are no groups; mailroom group create NAME MEMBER...\n");
	mr_names_done(&l.table.cells);
	return rc == MR_OK ? EXIT_DONE : cli_fail(cli, &err);
}

static void
show_text(struct cli *cli, const struct mr_group *group, const struct mr_resolution *reach)
{
	struct buf *out = &cli->out;

	fence_addf(out, "%s: ", group->name);
	out_count(out, group->members.n, "member");
	if (group->created_by[0])
		fence_addf(out, ", made by '%s'", group->created_by);
	buf_addc(out, '\n');
	for (size_t i = 0; i < group->members.n; i++) {
		buf_adds(out, "  ");
		fence_name(out, group->members.v[i]);
		buf_addc(out, '\n');
	}
	buf_adds(out, "mail to it reaches ");
	out_count(out, reach->targets.n, "recipient");
	buf_adds(out, reach->targets.n > 0 ? ": " : "");
	fence_names(out, &reach->targets);
	buf_addc(out, '\n');
}

/* What the group is, and what it comes to now. That it reaches nobody is a fact to be shown here, no failure.
 */
static int
run_show(struct cli *cli)
{
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	mr_auto(mr_resolution_done) struct mr_resolution reach = { 0 };
	struct mr_error err = { 0 };
	char address[MR_NAME_MAX + 16];

	if (mr_group_get(cli->room, cli->argv[1], &group, &err) != MR_OK)
		return cli_fail(cli, &err);
	(void)snprintf(address, sizeof(address), "group:%s", group.name);
	if (mr_resolve(cli->room, "", address, &reach, &err) != MR_OK) {
		if (err.code != MR_REFUSED)
			return cli_fail(cli, &err);
		cli_warn(cli, "%s: %s", err.message, err.hint);
	}
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_group(&j, &group);
		json_key_names(&j, "reaches", &reach.targets);
		json_key_names(&j, "trouble", &reach.trouble);
		out_json_line(cli, &j);
		return EXIT_DONE;
	}
	show_text(cli, &group, &reach);
	for (size_t i = 0; i < reach.trouble.n; i++)
		cli_warn(cli, "%s", reach.trouble.v[i]);
	return EXIT_DONE;
}

/* ---- create, add, remove, delete ---- */

/* A member may come later, but a misspelled one should be seen now. */
static void
warn_if_unknown(struct cli *cli, const char *member)
{
	struct mr_resolution r = { 0 };
	struct mr_error err = { 0 };

	if (mr_resolve(cli->room, "", member, &r, &err) != MR_OK)
		cli_warn(cli, "member '%s' reaches nobody yet: %s", member, err.message);
	mr_resolution_done(&r);
}

static int
run_create(struct cli *cli)
{
	struct mr_error err = { 0 };
	const char *name = cli->argv[1];
	/* argv ends in NULL: opt_parse takes its list from zeroed memory. */
	const char *const *members = (const char *const *)cli->argv + 2;

	if (cli_know_self(cli, &err) != MR_OK || mr_group_create(cli->room, &cli->self, name, members, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		mr_auto(mr_group_done) struct mr_group group = { 0 };
		struct json j = JSON_INIT(&cli->out);

		if (mr_group_get(cli->room, name, &group, &err) != MR_OK)
			return cli_fail(cli, &err);
		json_group(&j, &group);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "made group %s; send to it as group:%s\n", name, name);
	}
	cli->changed = true;
	if (!cli_flush(cli))
		return EXIT_DOUBT;
	for (int i = 2; i < cli->argc; i++)
		warn_if_unknown(cli, cli->argv[i]);
	return EXIT_DONE;
}

static void
say_changed(struct cli *cli, const char *member, bool add, bool changed)
{
	const char *name = cli->argv[1];

	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", name);
		json_key_str(&j, "member", member);
		json_key_bool(&j, "changed", changed);
		out_json_line(cli, &j);
	} else if (changed) {
		fence_addf(&cli->out, "%s %s %s %s\n", add ? "added" : "removed", member, add ? "to" : "from", name);
	} else {
		fence_addf(&cli->out, add ? "%s was in %s already\n" : "%s was not in %s\n", member, name);
	}
}

static int
change_members(struct cli *cli, bool add)
{
	int code = EXIT_DONE;

	if (cli->argc < 3)
		return cli_usage(cli, "%s whom? group %s NAME MEMBER...", cli->argv[0], cli->argv[0]);
	for (int i = 2; i < cli->argc; i++) {
		struct mr_error err = { 0 };
		bool changed = false;
		enum mr_rc rc = add ? mr_group_add(cli->room, cli->argv[1], cli->argv[i], &changed, &err)
				    : mr_group_remove(cli->room, cli->argv[1], cli->argv[i], &changed, &err);

		if (rc != MR_OK) {
			code = cli_fail(cli, &err);
			continue;
		}
		say_changed(cli, cli->argv[i], add, changed);
		if (add && changed)
			warn_if_unknown(cli, cli->argv[i]);
	}
	return code;
}

static int
run_add(struct cli *cli)
{
	return change_members(cli, true);
}

static int
run_remove(struct cli *cli)
{
	return change_members(cli, false);
}

static int
run_delete(struct cli *cli)
{
	struct mr_error err = { 0 };

	if (mr_group_delete(cli->room, cli->argv[1], &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "name", cli->argv[1]);
		json_key_bool(&j, "deleted", true);
		out_json_line(cli, &j);
	} else {
		fence_addf(&cli->out, "deleted group %s\n", cli->argv[1]);
	}
	return EXIT_DONE;
}

/* ---- The command ---- */

static const struct word {
	const char *name;
	int min_args, max_args; /* the word itself included; max -1: any number */
	int (*run)(struct cli *cli);
} words[] = {
	{ "list", 1, 1, run_list },
	{ "show", 2, 2, run_show },
	{ "create", 2, -1, run_create },
	{ "add", 2, -1, run_add },
	{ "remove", 2, -1, run_remove },
	{ "delete", 2, 2, run_delete },
};

/* A group may be named as it is written to. */
static void
drop_prefix(struct cli *cli)
{
	for (size_t i = 0; i < 2 && cli->argc > 1; i++) {
		const char *prefix = i == 0 ? "group:" : "list:";

		if (str_starts(str_of(cli->argv[1]), prefix))
			cli->argv[1] += strlen(prefix);
	}
}

int
cmd_group(struct cli *cli)
{
	if (cli->argc == 0) /* looking costs nothing */
		return run_list(cli);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const struct word *word = &words[i];

		if (strcmp(word->name, cli->argv[0]) != 0)
			continue;
		cli->subword = word->name;
		if (cli->argc < word->min_args)
			return cli_usage(cli, "%s which group? name it", word->name);
		drop_prefix(cli);
		if (word->max_args >= 0 && cli->argc > word->max_args)
			return cli_usage(cli, "'%s' is one argument too many", cli->argv[word->max_args]);
		return word->run(cli);
	}
	return cli_usage(cli, "'%s' is none of list, show, create, add, remove, delete", cli->argv[0]);
}
