/* SPDX-License-Identifier: MIT */
/* cmd_takeover.c - moving a name and its waiting mail to a new life, also when the old one still runs. */
#include "cli/cli.h"
#include "helptext.h"

int
cmd_takeover(struct cli *cli)
{
	return cli_register(cli, true);
}
