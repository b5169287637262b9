/* SPDX-License-Identifier: MIT */
/* cmd_man_page.c - `mailroom man-page NAME`, for the build: the man page of a command as roff. */
#include "cli/cli.h"
#include "helptext.h"

int
cmd_man_page(struct cli *cli)
{
	const struct man_page_options *o = cli->opts;
	const char *name = cli->argc > 0 ? cli->argv[0] : "";
	bool alias = false;

	if (o->list) {
		buf_adds(&cli->out, "mailroom\n");
		for (size_t i = 0; commands[i]; i++) {
			if (!commands[i]->hidden)
				buf_addf(&cli->out, "mailroom-%s\n", commands[i]->name);
		}
		return EXIT_DONE;
	}
	if (strcmp(name, "mailroom") == 0) {
		man_overview(&cli->out);
		return EXIT_DONE;
	}
	if (str_starts(str_of(name), "mailroom-"))
		name += strlen("mailroom-");
	const struct cmd *cmd = command_named(name, &alias);

	if (!cmd || alias || cmd->hidden)
		return cli_usage(cli, "there is no man page '%s'; mailroom man-page --list names them", name);
	man_command(&cli->out, cmd);
	return EXIT_DONE;
}
