/* SPDX-License-Identifier: MIT */
/* mailroom clear: what the programs of some rooms do with an inbox. */
#include "cli/cli.h"
#include "helptext.h"

int
cmd_clear(struct cli *cli)
{
	struct mr_error err = { 0 };
	size_t removed = 0;

	if (mr_clear(cli->room, &cli->self, &removed, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "agent", cli->self.agent);
		json_key_int(&j, "removed", (int64_t)removed);
		out_json_line(cli, &j);
		return EXIT_DONE;
	}
	out_count(&cli->out, removed, "message");
	buf_adds(&cli->out, " removed\n");
	return EXIT_DONE;
}
