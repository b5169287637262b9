/* SPDX-License-Identifier: MIT */
/* cmd_group.c - groups: named lists of addresses. One command whose first word says what to do. */
#include "helptext.h"

/* The name, also when it is written as it is sent to. */
static const char *
bare(const char *name)
{
	return str_starts(str_of(name), "group:") ? name + 6 : str_starts(str_of(name), "list:") ? name + 5 : name;
}

/* ---- list, show ---- */

/* reach NULL: a row of the list. */
static bool
list_group(struct listing *list, const struct mr_group *group, const struct mr_resolution *reach)
{
	mr_auto(buf_done) struct buf members = BUF_INIT;

	fence_names(&members, &group->members);
	if (group->members.n == 0)
		buf_addc(&members, '-');
	return list_row(list, col("NAME", kv_str("name", group->name)), kv_names("members", &group->members),
	    col("CREATED", kv_time(NULL, group->created_ms)), col_name("BY", kv_opt("created_by", group->created_by)),
	    kv_time("created", group->created_ms), col_fenced("MEMBERS", &members),
	    reach ? kv_names("reaches", &reach->targets) : kv_none(),
	    reach ? kv_names("trouble", &reach->trouble) : kv_none());
}

int
cmd_group_list(struct cli *cli)
{
	mr_auto(list_done) struct listing list = { .cli = cli };
	mr_auto(mr_list_done) struct mr_groups groups = { 0 };

	enum mr_rc rc = mr_group_list(cli->room, &groups, &cli->err);

	for (size_t i = 0; i < groups.n; i++)
		(void)list_group(&list, &groups.v[i], NULL);
	TRY_CLI(rc);
	return list_end(&list, "there are no groups; mailroom group create NAME MEMBER...\n");
}

/* What the group is, and what it comes to now. That it reaches nobody is a fact to be shown here, no failure. */
int
cmd_group_show(struct cli *cli)
{
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	mr_auto(mr_resolution_done) struct mr_resolution reach = { 0 };
	struct buf *out = &cli->out;
	char address[MR_NAME_MAX + 16];

	TRY_CLI(mr_group_get(cli->room, bare(cli->argv[0]), &group, &cli->err));
	(void)snprintf(address, sizeof(address), "group:%s", group.name);
	if (mr_resolve(cli->room, "", address, &reach, &cli->err) != MR_OK) {
		if (cli->err.code != MR_REFUSED)
			return cli_fail(cli, &cli->err);
		cli_warn(cli, "%s: %s", cli->err.message, cli->err.hint);
	}
	if (list_group(&(struct listing){ .cli = cli, .form = LIST_JSON }, &group, &reach))
		return EXIT_DONE;
	fence_addf(out, "%s: %s", group.name, counted(group.members.n, "member").text);
	if (group.created_by[0])
		fence_addf(out, ", made by '%s'", group.created_by);
	buf_addc(out, '\n');
	out_names(out, "  ", &group.members);
	buf_addf(out, "mail to it reaches %s%s", counted(reach.targets.n, "recipient").text,
	    reach.targets.n > 0 ? ": " : "");
	fence_names(out, &reach.targets);
	buf_addc(out, '\n');
	cli_warn_each(cli, &reach.trouble);
	return EXIT_DONE;
}

/* ---- create, add, remove, delete ---- */

/* The operands behind the name, and for "-" the lines of stdin. */
static enum mr_rc
members_given(struct cli *cli, struct mr_names *ret, struct mr_error *err)
{
	bool added = true;

	for (int i = 1; i < cli->argc; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct mr_str rest, line;

		if (strcmp(cli->argv[i], "-") != 0) {
			added &= names_add(ret, str_of(cli->argv[i]));
			continue;
		}
		TRY(cli_read("-", &text, err));
		if (strlen(buf_z(&text)) != text.len)
			return mr_fail(err, MR_REFUSED, "stdin has a NUL byte: give one member a line");
		for (rest = buf_str(&text); str_cut(&rest, '\n', &line);)
			if (str_trim(line).len > 0)
				added &= names_add(ret, str_trim(line));
	}
	return mr_got(added, err);
}

/* A member may come later, but a misspelled one should be seen now. */
static void
warn_of_unknown(struct cli *cli, const struct mr_names *members)
{
	mr_auto(mr_names_done) struct mr_names trouble = { 0 };

	(void)mr_group_check(cli->room, names_list(members), &trouble, &cli->err);
	cli_warn_each(cli, &trouble);
}

int
cmd_group_create(struct cli *cli)
{
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	mr_auto(mr_names_done) struct mr_names members = { 0 };
	const char *name = bare(cli->argv[0]);

	TRY_CLI(members_given(cli, &members, &cli->err));
	TRY_CLI(mr_group_create(cli->room, &cli->self, name, names_list(&members), &cli->err));
	if (cli->json)
		TRY_CLI(mr_group_get(cli->room, name, &group, &cli->err));
	if (!list_group(&(struct listing){ .cli = cli, .form = LIST_JSON }, &group, NULL))
		fence_addf(&cli->out, "made group %s; send to it as group:%s\n", name, name);
	cli->changed = true;
	if (!cli_flush(cli))
		return EXIT_DOUBT;
	warn_of_unknown(cli, &members);
	return EXIT_DONE;
}

/* add, remove */
int
cmd_group_change(struct cli *cli)
{
	mr_auto(mr_names_done) struct mr_names members = { 0 }, added = { 0 };
	const char *name = bare(cli->argv[0]);
	bool add = strcmp(cli->subword, "add") == 0;

	TRY_CLI(members_given(cli, &members, &cli->err));
	bool *changed = arena_alloc(&cli->own, members.n + 1);

	TRY_CLI(mr_got(changed, &cli->err));
	TRY_CLI(mr_group_change(cli->room, name, add, names_list(&members), changed, &cli->err));
	for (size_t i = 0; i < members.n; i++) {
		const char *member = members.v[i];

		if (add && changed[i])
			cli->out.failed |= !names_add(&added, str_of(member));
		if (out_json(cli, kv_str("name", name), kv_str("member", member), kv_bool("changed", changed[i])))
			continue;
		if (changed[i])
			fence_addf(&cli->out, add ? "added %s to %s\n" : "removed %s from %s\n", member, name);
		else
			fence_addf(&cli->out, add ? "%s was in %s already\n" : "%s was not in %s\n", member, name);
	}
	warn_of_unknown(cli, &added);
	return EXIT_DONE;
}

int
cmd_group_delete(struct cli *cli)
{
	const char *name = bare(cli->argv[0]);

	TRY_CLI(mr_group_delete(cli->room, name, &cli->err));
	return out_answer(cli, CELLS(kv_str("name", name), kv_bool("deleted", true)), "deleted group %s\n", name);
}
