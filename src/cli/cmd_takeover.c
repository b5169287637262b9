/* SPDX-License-Identifier: MIT */
/* cmd_takeover.c - moving a name and its waiting mail to a new life, also when the old one still runs. */
#include "cli/cli.h"

static int
run_takeover(struct cli *cli)
{
	return cli_register(cli, true);
}

static const struct opt opts[] = { REGISTER_OPTS, OPT_END };
static const char *const about[] = {
	"As register, but also when the last life of that name is still there. The old life is "
	"fenced: what it held comes back to the new one, and its later commands are refused. No "
	"mail is lost in between.",
	"A session that is somebody already becomes NAME; the name that it had is free for the next one.",
	NULL,
};
static const char *const examples[] = { "mailroom takeover alice", NULL };

const struct cmd cmd_takeover = {
	.name = "takeover",
	.needs = CMD_ROOM,
	.synopsis = "[--role TEXT] [--wake COMMAND] [--pid PID] NAME",
	.summary = "take a name over from a life that is still there",
	.opts = opts,
	.about = about,
	.examples = examples,
	.min_args = 1,
	.max_args = 1,
	.run = run_takeover,
};
