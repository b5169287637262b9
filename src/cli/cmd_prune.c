/* SPDX-License-Identifier: MIT */
/* cmd_prune.c - taking agents off the room; their unread mail goes to the dead letters. */
#include "base/clock.h"
#include "cli/view.h"
#include "helptext.h"

struct pruning {
	struct cli *cli;
	bool dry_run;
	size_t agents;
	size_t returned; /* work of the agent at hand */
};

static void
say_pruned(void *ctx, const struct mr_agent *agent, size_t dead)
{
	struct pruning *p = ctx;
	struct buf *out = &p->cli->out;
	bool keeps = mr_room_has_lives(p->cli->room); /* elsewhere there are no dead letters */

	p->agents++;
	if (out_json(p->cli, kv_str("agent", agent->name), kv_size("dead_letters", keeps ? dead : 0),
		keeps ? kv_none() : kv_size("deleted", dead), kv_size("returned_work", p->returned),
		kv_time("seen", agent->seen_ms), kv_bool("dry_run", p->dry_run)))
		return;
	fence_addf(out, "%s %s: ", p->dry_run ? "would prune" : "pruned", agent->name);
	out_count(out, dead, "unread message");
	buf_adds(out, dead == 0 ? "" : keeps ? " to dead letters" : " deleted");
	if (p->returned > 0) {
		buf_adds(out, ", ");
		out_count(out, p->returned, "claim");
		buf_adds(out, " back to queues");
	}
	buf_addc(out, '\n');
}

int
cmd_prune(struct cli *cli)
{
	const struct prune_options *o = cli->opts;
	struct pruning p = { .cli = cli, .dry_run = cli->dry_run };
	struct mr_prune_options options = { .dry_run = p.dry_run,
		.force = o->force,
		.stale_ms = o->stale_ms > 0 ? o->stale_ms : 0,
		.ret_returned = &p.returned };
	struct mr_error err = { 0 };

	if (cli->argc == 0 && o->stale_ms < 0)
		return cli_usage(cli, "name the agents to prune, or give --stale 7d");
	if (cli->argc > 0 && o->stale_ms >= 0)
		return cli_usage(cli, "names and --stale are both given; prune takes one of them");
	if (o->stale_ms == 0)
		return cli_usage(cli, "option '--stale' needs a time, such as 7d");
	/* argv ends in NULL: opt_parse takes its list from zeroed memory. */
	options.names = cli->argc > 0 ? (const char *const *)cli->argv : NULL;
	if (mr_prune(cli->room, &options, say_pruned, &p, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (p.agents == 0 && !cli->json)
		buf_adds(&cli->out, "nobody to prune\n");
	return EXIT_DONE;
}
