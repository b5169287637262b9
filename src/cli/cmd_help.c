/* SPDX-License-Identifier: MIT */
/* cmd_help.c - `mailroom help [COMMAND | options]`, for those who try that word first. */
#include "cli/cli.h"
#include "helptext.h"

int
cmd_help(struct cli *cli)
{
	bool alias = false;

	if (cli->argc == 0) {
		help_overview(cli, &cli->out);
		return EXIT_DONE;
	}
	if (strcmp(cli->argv[0], "options") == 0) {
		help_options(cli, &cli->out);
		return EXIT_DONE;
	}
	const struct cmd *cmd = command_named(cli->argv[0], &alias);

	if (!cmd)
		return cli_usage(cli, "there is no command '%s'", cli->argv[0]);
	help_command(cli, cmd, &cli->out);
	return EXIT_DONE;
}
