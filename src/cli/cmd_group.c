/* SPDX-License-Identifier: MIT */
/* cmd_group.c - groups: named lists of addresses. One command whose first word says what to do. */
#include "cli/view.h"
#include "helptext.h"

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

static bool
list_one(void *ctx, const struct mr_group *group)
{
	(void)list_group(ctx, group, NULL);
	return true;
}

static int
run_list(struct cli *cli)
{
	mr_auto(list_done) struct listing list = { .cli = cli };

	TRY_CLI(mr_group_each(cli->room, list_one, &list, &cli->err));
	return list_end(&list, "there are no groups; mailroom group create NAME MEMBER...\n");
}

/* What the group is, and what it comes to now. That it reaches nobody is a fact to be shown here, no failure.
 */
static int
run_show(struct cli *cli)
{
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	mr_auto(mr_resolution_done) struct mr_resolution reach = { 0 };
	struct buf *out = &cli->out;
	char address[MR_NAME_MAX + 16];

	TRY_CLI(mr_group_get(cli->room, cli->argv[1], &group, &cli->err));
	(void)snprintf(address, sizeof(address), "group:%s", group.name);
	if (mr_resolve(cli->room, "", address, &reach, &cli->err) != MR_OK) {
		if (cli->err.code != MR_REFUSED)
			return cli_fail(cli, &cli->err);
		cli_warn(cli, "%s: %s", cli->err.message, cli->err.hint);
	}
	if (cli->json) {
		(void)list_group(&(struct listing){ .cli = cli }, &group, &reach);
		return EXIT_DONE;
	}
	fence_addf(out, "%s: ", group.name);
	out_count(out, group.members.n, "member");
	if (group.created_by[0])
		fence_addf(out, ", made by '%s'", group.created_by);
	buf_addc(out, '\n');
	for (size_t i = 0; i < group.members.n; i++) {
		buf_adds(out, "  ");
		fence_name(out, group.members.v[i]);
		buf_addc(out, '\n');
	}
	buf_adds(out, "mail to it reaches ");
	out_count(out, reach.targets.n, "recipient");
	buf_adds(out, reach.targets.n > 0 ? ": " : "");
	fence_names(out, &reach.targets);
	buf_addc(out, '\n');
	for (size_t i = 0; i < reach.trouble.n; i++)
		cli_warn(cli, "%s", reach.trouble.v[i]);
	return EXIT_DONE;
}

/* ---- create, add, remove, delete ---- */

struct members { /* those that are given, and NULL */
	const char **v;
	size_t n, cap;
};

static void
members_done(struct members *m)
{
	free(m->v);
}

static bool
add_member(struct cli *cli, struct members *m, struct mr_str name)
{
	if (!array_grow(&m->v, m->n + 1, &m->cap, sizeof(*m->v)))
		return false;
	m->v[m->n] = arena_dup(&cli->own, name);
	m->v[m->n + 1] = NULL;
	return m->v[m->n++] != NULL;
}

/* For "-" those on stdin, one a line. */
static enum mr_rc
members_given(struct cli *cli, struct members *ret, struct mr_error *err)
{
	bool ok = array_grow(&ret->v, 0, &ret->cap, sizeof(*ret->v));

	if (ok)
		ret->v[0] = NULL;
	for (int i = 2; ok && i < cli->argc; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		struct mr_str rest, line;

		if (strcmp(cli->argv[i], "-") != 0) {
			ok = add_member(cli, ret, str_of(cli->argv[i]));
			continue;
		}
		TRY(cli_read(0, "stdin", &text, err));
		rest = buf_str(&text);
		if (memchr(text.ptr ? text.ptr : "", '\0', text.len))
			return mr_fail(err, MR_REFUSED, "stdin has a NUL byte: give one member a line");
		while (ok && str_cut(&rest, '\n', &line))
			ok = str_trim(line).len == 0 || add_member(cli, ret, str_trim(line));
	}
	return ok ? MR_OK : mr_nomem(err);
}

/* A member may come later, but a misspelled one should be seen now. */
static void
warn_of_unknown(struct cli *cli, const char *const *members)
{
	mr_auto(mr_names_done) struct mr_names trouble = { 0 };

	(void)mr_group_check(cli->room, members, &trouble, &cli->err);
	for (size_t i = 0; i < trouble.n; i++)
		cli_warn(cli, "%s", trouble.v[i]);
}

static int
run_create(struct cli *cli)
{
	mr_auto(mr_group_done) struct mr_group group = { 0 };
	mr_auto(members_done) struct members members = { 0 };
	const char *name = cli->argv[1];

	TRY_CLI(cli_know_self(cli, &cli->err));
	TRY_CLI(members_given(cli, &members, &cli->err));
	TRY_CLI(mr_group_create(cli->room, &cli->self, name, members.v, &cli->err));
	if (cli->json) {
		TRY_CLI(mr_group_get(cli->room, name, &group, &cli->err));
		(void)list_group(&(struct listing){ .cli = cli }, &group, NULL);
	} else {
		fence_addf(&cli->out, "made group %s; send to it as group:%s\n", name, name);
	}
	cli->changed = true;
	if (!cli_flush(cli))
		return EXIT_DOUBT;
	warn_of_unknown(cli, members.v);
	return EXIT_DONE;
}

static int
run_change(struct cli *cli)
{
	mr_auto(members_done) struct members members = { 0 };
	const char *name = cli->argv[1];
	bool add = strcmp(cli->subword, "add") == 0;

	if (cli->argc < 3)
		return cli_usage(cli, "%s whom? group %s NAME MEMBER...", cli->argv[0], cli->argv[0]);
	TRY_CLI(members_given(cli, &members, &cli->err));
	bool *changed = arena_alloc(&cli->own, members.n + 1);

	if (!changed)
		TRY_CLI(mr_nomem(&cli->err));
	TRY_CLI((add ? mr_group_add : mr_group_remove)(cli->room, name, members.v, changed, &cli->err));
	for (size_t i = 0; i < members.n; i++) {
		if (out_json(cli, kv_str("name", name), kv_str("member", members.v[i]), kv_bool("changed", changed[i])))
			;
		else if (changed[i])
			fence_addf(&cli->out, "%s %s %s %s\n", add ? "added" : "removed", members.v[i],
			    add ? "to" : "from", name);
		else
			fence_addf(
			    &cli->out, add ? "%s was in %s already\n" : "%s was not in %s\n", members.v[i], name);
	}
	size_t added = 0;

	for (size_t i = 0; add && i < members.n; i++)
		if (changed[i])
			members.v[added++] = members.v[i];
	members.v[added] = NULL;
	warn_of_unknown(cli, members.v);
	return EXIT_DONE;
}

static int
run_delete(struct cli *cli)
{
	TRY_CLI(mr_group_delete(cli->room, cli->argv[1], &cli->err));
	if (!out_json(cli, kv_str("name", cli->argv[1]), kv_bool("deleted", true)))
		fence_addf(&cli->out, "deleted group %s\n", cli->argv[1]);
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
	{ "add", 2, -1, run_change },
	{ "remove", 2, -1, run_change },
	{ "delete", 2, 2, run_delete },
};

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
		for (size_t p = 0; p < 2 && cli->argc > 1; p++) { /* named as it is written to */
			const char *prefix = p == 0 ? "group:" : "list:";

			if (str_starts(str_of(cli->argv[1]), prefix))
				cli->argv[1] += strlen(prefix);
		}
		if (word->max_args >= 0 && cli->argc > word->max_args)
			return cli_usage(cli, "'%s' is one argument too many", cli->argv[word->max_args]);
		return word->run(cli);
	}
	return cli_usage(cli, "'%s' is none of list, show, create, add, remove, delete", cli->argv[0]);
}
