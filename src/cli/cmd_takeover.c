/* SPDX-License-Identifier: MIT */
/* cmd_takeover.c - moving a name and its waiting mail to a new life, also when the old one still runs. */
#include "cli/cli.h"
#include "helptext.h"

static int
run_takeover(struct cli *cli)
{
	return cli_register(cli, true);
}

const struct cmd cmd_takeover = {
	.name = "takeover",
	.help = &help_takeover,
	.needs = CMD_ROOM,
	.min_args = 1,
	.max_args = 1,
	.run = run_takeover,
};
