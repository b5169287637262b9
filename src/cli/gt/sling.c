/* SPDX-License-Identifier: MIT */
/* sling.c - gt sling, gt deacon redispatch: giving work out, once and again. */
#include "base/clock.h"
#include "cli/gt/gt.h"
#include "helptext.h"

/* ---- sling ---- */

static int
run_sling(struct cli *cli)
{
	const struct gt_sling_options *o = cli->opts;
	mr_auto(free_ptr) char *output = NULL;
	const char *options[8] = { NULL };
	struct mr_error err = { 0 };
	size_t n = 0;

	if (o->force)
		options[n++] = "--force";
	if (o->no_convoy)
		options[n++] = "--no-convoy";
	if (o->agent) {
		options[n++] = "--agent";
		options[n++] = o->agent;
	}
	if (mr_sling(cli->room, cli->argv[0], cli->argv[1], options, &output, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	/* Scripts read it, so it stands alone. */
	(void)fence_add(&cli->out, str_of(output), out_form(cli, FENCE_TEXT), 0);
	return EXIT_DONE;
}

const struct cmd gt_sling = {
	.name = "gt sling",
	.help = &help_gt_sling,
	.needs = CMD_ROOM,
	.min_args = 2,
	.max_args = 2,
	.run = run_sling,
};

/* ---- deacon redispatch ---- */

static int
say_end(struct cli *cli, const char *bead, const struct mr_redispatched *r)
{
	char wait[24];

	switch (r->end) {
	case MR_REDISPATCH_SLUNG:
		fence_addf(&cli->out, "✓ Redispatched %s to %s (attempt %u)\n", bead, r->rig, r->attempts);
		return EXIT_DONE;
	case MR_REDISPATCH_ESCALATED:
		fence_addf(&cli->out, "🚨 %s failed %u times: the mayor was told\n", bead, r->attempts);
		return EXIT_DONE;
	case MR_REDISPATCH_WAS_ESCALATED:
		fence_addf(&cli->out, "%s was escalated to the mayor before\n", bead);
		return EXIT_DONE;
	case MR_REDISPATCH_COOLDOWN:
		duration_text(r->wait_ms, wait);
		fence_addf(&cli->out, "%s was given out a moment ago: try again in %s\n", bead, wait);
		return GT_EXIT(2);
	case MR_REDISPATCH_NOT_OPEN:
		fence_addf(&cli->out, "%s is not open ('%s'): skipped\n", bead, r->status[0] ? r->status : "unknown");
		return GT_EXIT(3);
	}
	return EXIT_FAILED;
}

static int
run_redispatch(struct cli *cli)
{
	const struct gt_deacon_redispatch_options *o = cli->opts;
	struct mr_redispatch_options options = { .rig = o->rig, .cooldown_ms = o->cooldown_ms };
	struct mr_redispatched result = { 0 };
	struct mr_error err = { 0 };

	options.max_attempts = o->max_attempts < 1000000 ? (unsigned)o->max_attempts : 1000000;
	if (mr_redispatch(cli->room, &cli->self, cli->argv[0], &options, &result, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = result.end == MR_REDISPATCH_SLUNG || result.end == MR_REDISPATCH_ESCALATED;
	return say_end(cli, cli->argv[0], &result);
}

static bool
print_entry(void *ctx, const struct mr_redispatch_entry *e)
{
	struct cli *cli = ctx;

	fence_addf(&cli->out, "%s: %u attempts, last to '%s' at ", e->bead, e->attempts, e->rig[0] ? e->rig : "nobody");
	gt_text_when(&cli->out, e->last_ms);
	buf_adds(&cli->out, e->escalated_ms > 0 ? ", escalated\n" : "\n");
	return true;
}

static int
run_redispatch_state(struct cli *cli)
{
	struct mr_error err = { 0 };

	if (mr_redispatch_each(cli->room, print_entry, cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->out.len == 0)
		buf_adds(&cli->out, "Nothing was redispatched\n");
	return EXIT_DONE;
}

const struct cmd gt_deacon_redispatch = {
	.name = "gt deacon redispatch",
	.help = &help_gt_deacon_redispatch,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_redispatch,
};
const struct cmd gt_deacon_redispatch_state = {
	.name = "gt deacon redispatch-state",
	.help = &help_gt_deacon_redispatch_state,
	.needs = CMD_ROOM,
	.run = run_redispatch_state,
};
