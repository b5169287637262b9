/* SPDX-License-Identifier: MIT */
/* mail_directory.c - gt mail directory: everything that can be written to. */
#include <stdlib.h>

#include "cli/gt/gt.h"
#include "helptext.h"

struct entry {
	char address[MR_ADDRESS_MAX + 16];
	const char *type;
};
struct directory {
	struct cli *cli;
	struct entry *v;
	size_t n, room_for;
	struct mr_names rigs;
	bool failed;
};

static bool
add_entry(struct directory *d, const char *type, const char *prefix, const char *name)
{
	if (d->n == d->room_for) {
		size_t more = d->room_for ? d->room_for * 2 : 64;
		struct entry *v = realloc(d->v, more * sizeof(*v));

		if (!v)
			return d->failed = true, false;
		d->v = v;
		d->room_for = more;
	}
	d->v[d->n].type = type;
	(void)snprintf(d->v[d->n].address, sizeof(d->v[d->n].address), "%s%s", prefix, name);
	d->n++;
	return true;
}

static bool
add_agent(void *ctx, const struct mr_agent *agent)
{
	struct directory *d = ctx;
	struct mr_str rig = gt_rig_of(agent->name);
	char name[MR_ADDRESS_MAX + 1];

	(void)snprintf(name, sizeof(name), "%.*s", (int)rig.len, rig.ptr);
	if (rig.len > 0 && !names_has(&d->rigs, name) && !names_add(&d->rigs, rig))
		return d->failed = true, false;
	bool known = strcmp(agent->name, "mayor") == 0 || strcmp(agent->name, "deacon") == 0 ||
		     strcmp(agent->name, "operator") == 0;

	return add_entry(d, known ? "well-known" : "agent", "", gt_spelled(d->cli, agent->name));
}

static bool
add_group(void *ctx, const struct mr_group *group)
{
	return add_entry(ctx, "group", "group:", group->name);
}

static bool
add_queue(void *ctx, const struct mr_queue *queue)
{
	return add_entry(ctx, "queue", "queue:", queue->name);
}

static bool
add_channel(void *ctx, const struct mr_channel *channel)
{
	return add_entry(ctx, "channel", "channel:", channel->name);
}

static void
add_patterns(struct directory *d)
{
	static const char *const town[] = { "@overseer", "@town", "@witnesses", "@refineries", "@deacons", "@dogs" };
	static const char *const of_rig[] = { "@rig/", "@crew/", "@polecats/" };

	for (size_t i = 0; i < sizeof(town) / sizeof(town[0]); i++)
		(void)add_entry(d, "special", "", town[i]);
	for (size_t r = 0; r < d->rigs.n; r++)
		for (size_t i = 0; i < sizeof(of_rig) / sizeof(of_rig[0]); i++)
			(void)add_entry(d, "special", of_rig[i], d->rigs.v[r]);
}

static int
by_type(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->type, y->type);

	return order ? order : strcmp(x->address, y->address);
}

static void
print_directory(struct cli *cli, const struct directory *d)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);

	json_open(&j, '[');
	for (size_t i = 0; i < d->n; i++) {
		if (!cli->json) {
			fence_addf(&cli->out, "%-12s %s\n", d->v[i].type, d->v[i].address);
			continue;
		}
		json_open(&j, '{');
		json_key_str(&j, "address", d->v[i].address);
		json_key_str(&j, "type", d->v[i].type);
		json_close(&j);
	}
	json_close(&j);
	if (cli->json)
		gt_json_out(cli, &text);
}

/* A kind of room that has no groups has none to list. */
static bool
is_wrong(enum mr_rc rc)
{
	return rc != MR_OK && rc != MR_UNSUPPORTED;
}

static int
run_directory(struct cli *cli)
{
	struct directory d = { .cli = cli };
	struct mr_error err = { 0 };
	int code = EXIT_DONE;

	if (is_wrong(mr_each_agent(cli->room, add_agent, &d, &err)) ||
	    is_wrong(mr_group_each(cli->room, add_group, &d, &err)) ||
	    is_wrong(mr_queue_each(cli->room, add_queue, &d, &err)) ||
	    is_wrong(mr_channel_each(cli->room, add_channel, &d, &err)))
		code = cli_fail(cli, &err);
	add_patterns(&d);
	if (d.failed)
		cli->out.failed = true;
	if (d.n > 0)
		qsort(d.v, d.n, sizeof(*d.v), by_type);
	if (code == EXIT_DONE)
		print_directory(cli, &d);
	free(d.v);
	mr_names_done(&d.rigs);
	return code;
}

static const char *const directory_aliases[] = { "gt mail dir", "gt mail addresses", NULL };
const struct cmd gt_mail_directory = {
	.name = "gt mail directory",
	.help = &help_gt_mail_directory,
	.aliases = directory_aliases,
	.needs = CMD_ROOM,
	.run = run_directory,
};
