/* SPDX-License-Identifier: MIT */
/* mail_group.c - gt mail group ... */
#include "cli/gt/gt.h"
#include "helptext.h"

/* ---- Printing ---- */

static void
group_json(struct json *j, const struct mr_group *group)
{
	json_open(j, '{');
	json_key_str(j, "Name", group->name);
	json_key_names(j, "Members", &group->members);
	json_key_str(j, "CreatedBy", group->created_by[0] ? group->created_by : "unknown");
	json_key_time(j, "CreatedAt", group->created_ms);
	json_close(j);
}

struct group_list {
	struct cli *cli;
	struct buf text;
	struct json json;
	size_t n;
};

static bool
list_one(void *ctx, const struct mr_group *group)
{
	struct group_list *l = ctx;

	l->n++;
	if (l->cli->json) {
		json_key(&l->json, group->name);
		group_json(&l->json, group);
		return true;
	}
	fence_addf(&l->cli->out, "  %s (%zu members)\n", group->name, group->members.n);
	return true;
}

static int
run_list(struct cli *cli)
{
	struct group_list l = { .cli = cli };
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	l.json = JSON_INIT(&l.text);
	json_open(&l.json, '{');
	if (mr_group_each(cli->room, list_one, &l, &err) != MR_OK)
		code = cli_fail(cli, &err);
	json_close(&l.json);
	if (code == EXIT_DONE && cli->json)
		gt_json_out(cli, &l.text);
	else if (code == EXIT_DONE && l.n == 0)
		buf_adds(&cli->out, "No groups defined\n");
	buf_done(&l.text);
	return code;
}

static int
run_show(struct cli *cli)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);
	struct mr_group group = { 0 };
	struct mr_error err = { 0 };

	if (mr_group_get(cli->room, gt_name(cli, "group", cli->argv[0]), &group, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		group_json(&j, &group);
		gt_json_out(cli, &text);
	} else {
		fence_addf(&cli->out, "Group: %s\n  ID: hq-group-%s\n  Created by: '%s'\n  Members:\n", group.name,
		    group.name, group.created_by);
		for (size_t i = 0; i < group.members.n; i++) {
			buf_adds(&cli->out, "    - ");
			fence_name(&cli->out, group.members.v[i]);
			buf_addc(&cli->out, '\n');
		}
	}
	mr_group_done(&group);
	return EXIT_DONE;
}

/* ---- Changing ---- */

static int
run_create(struct cli *cli)
{
	const struct gt_mail_group_create_options *o = cli->opts;
	const char *name = gt_name(cli, "group", cli->argv[0]);
	struct mr_error err = { 0 };
	size_t n = 0, more = 0;

	while (o->member[more])
		more++;
	const char **members = arena_alloc(&cli->own, ((size_t)cli->argc + more + 1) * sizeof(*members));

	for (int i = 1; members && i < cli->argc; i++)
		members[n++] = gt_recipient(cli, cli->argv[i]);
	for (size_t i = 0; members && i < more; i++)
		members[n++] = gt_recipient(cli, o->member[i]);
	if (mr_group_create(cli->room, &cli->self, name, members, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ Created group '%s' with %zu members\n  ID: hq-group-%s\n", name, n, name);
	return EXIT_DONE;
}

static int
change(struct cli *cli, bool add)
{
	const char *name = gt_name(cli, "group", cli->argv[0]), *member = gt_recipient(cli, cli->argv[1]);
	struct mr_error err = { 0 };
	bool changed = false;
	enum mr_rc rc = add ? mr_group_add(cli->room, name, member, &changed, &err)
			    : mr_group_remove(cli->room, name, member, &changed, &err);

	if (rc != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = changed;
	if (changed)
		fence_addf(&cli->out, "✓ %s '%s' %s group '%s'\n", add ? "Added" : "Removed", member,
		    add ? "to" : "from", name);
	else
		fence_addf(&cli->out, "✓ '%s' was %s member of group '%s'\n", member, add ? "already a" : "no", name);
	return EXIT_DONE;
}

static int
run_add(struct cli *cli)
{
	return change(cli, true);
}

static int
run_remove(struct cli *cli)
{
	return change(cli, false);
}

static int
run_delete(struct cli *cli)
{
	const char *name = gt_name(cli, "group", cli->argv[0]);
	struct mr_error err = { 0 };

	if (mr_group_delete(cli->room, name, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ Deleted group '%s'\n", name);
	return EXIT_DONE;
}

const struct cmd gt_mail_group_list = {
	.name = "gt mail group list",
	.help = &help_gt_mail_group_list,
	.needs = CMD_ROOM,
	.run = run_list,
};
const struct cmd gt_mail_group_show = {
	.name = "gt mail group show",
	.help = &help_gt_mail_group_show,
	.needs = CMD_ROOM,
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};
const struct cmd gt_mail_group_create = {
	.name = "gt mail group create",
	.help = &help_gt_mail_group_create,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = -1,
	.run = run_create,
};
const struct cmd gt_mail_group_add = {
	.name = "gt mail group add",
	.help = &help_gt_mail_group_add,
	.needs = CMD_ROOM,
	.min_args = 2,
	.max_args = 2,
	.run = run_add,
};
const struct cmd gt_mail_group_remove = {
	.name = "gt mail group remove",
	.help = &help_gt_mail_group_remove,
	.needs = CMD_ROOM,
	.min_args = 2,
	.max_args = 2,
	.run = run_remove,
};
const struct cmd gt_mail_group_delete = {
	.name = "gt mail group delete",
	.help = &help_gt_mail_group_delete,
	.needs = CMD_ROOM,
	.min_args = 1,
	.max_args = 1,
	.run = run_delete,
};
