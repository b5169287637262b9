/* SPDX-License-Identifier: MIT */
/* cmd_prune.c - taking agents off the room; their unread mail goes to the dead letters. */
#include "base/clock.h"
#include "cli/cli.h"

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
	if (p->cli->json) {
		struct json j = JSON_INIT(out);

		json_open(&j, '{');
		json_key_str(&j, "agent", agent->name);
		json_key_int(&j, "dead_letters", keeps ? (int64_t)dead : 0);
		if (!keeps)
			json_key_int(&j, "deleted", (int64_t)dead);
		json_key_int(&j, "returned_work", (int64_t)p->returned);
		json_key_time(&j, "seen", agent->seen_ms);
		json_key_bool(&j, "dry_run", p->dry_run);
		out_json_line(p->cli, &j);
		return;
	}
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

static int
run_prune(struct cli *cli)
{
	struct pruning p = { .cli = cli, .dry_run = opt_flag(cli, "dry-run") };
	struct mr_prune_options options = {
		.dry_run = p.dry_run, .force = opt_flag(cli, "force"), .ret_returned = &p.returned
	};
	struct mr_error err = { 0 };

	if (!opt_duration(cli, "stale", &options.stale_ms))
		return EXIT_USAGE;
	if (cli->argc == 0 && !opt_text(cli, "stale"))
		return cli_usage(cli, "name the agents to prune, or give --stale 7d");
	if (cli->argc > 0 && opt_text(cli, "stale"))
		return cli_usage(cli, "names and --stale are both given; prune takes one of them");
	if (opt_text(cli, "stale") && options.stale_ms <= 0)
		return cli_usage(cli, "option '--stale' needs a time, such as 7d");
	/* argv ends in NULL: opt_parse takes its list from zeroed memory. */
	options.names = cli->argc > 0 ? (const char *const *)cli->argv : NULL;
	if (mr_prune(cli->room, &options, say_pruned, &p, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (p.agents == 0 && !cli->json)
		buf_adds(&cli->out, "nobody to prune\n");
	return EXIT_DONE;
}

static const struct opt opts[] = {
	OPT(0, "stale", "TIME", "prune agents that were not seen for so long: 7d, 12h"),
	OPT('n', "dry-run", NULL, "only say who would go"),
	OPT(0, "force", NULL, "also agents that are live, also more than half of them, also with mail that is lost"),
	OPT_END,
};
static const char *const about[] = {
	"Takes agents off the room. Their unread mail goes to the room's dead letters, never "
	"away, and its senders get a message of type bounce; if the name is registered again, its lives go on "
	"counting. Live agents are refused without --force, and so are those of another container or machine that "
	"were seen within a day, a prune of more than half of the room, and one under a clock that looks wrong.",
	"The rooms of other programs have no dead letters: there an agent with unread mail is refused, and --force "
	"deletes that mail. Those that do not register agents refuse to prune at all.",
	NULL,
};
static const char *const examples[] = { "mailroom prune --stale 7d --dry-run", "mailroom prune bob", NULL };

const struct cmd cmd_prune = {
	.name = "prune",
	.needs = CMD_ROOM,
	.synopsis = "[-n] [--force] NAME... | --stale TIME",
	.summary = "take agents off the room; their unread mail is kept as dead letters",
	.opts = opts,
	.about = about,
	.examples = examples,
	.min_args = 0,
	.max_args = -1,
	.run = run_prune,
};
