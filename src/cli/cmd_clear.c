/* SPDX-License-Identifier: MIT */
/* mailroom clear: what the programs of some rooms do with an inbox. */
#include "cli/cli.h"

static const char *const about[] = {
	"Removes all mail of your inbox for good, read or not. Only rooms whose own programs have such an operation "
	"know "
	"it (agent teams); elsewhere it is refused: 'mailroom archive' takes mail out of the inbox and keeps it.",
	NULL,
};
static const char *const examples[] = {
	"team=$(mktemp -d)/blue\nmailroom --room teams:\"$team\" --as bob clear",
	NULL,
};
static const char *const differences[] = {
	"The original writes over the file without its lock and leaves the tail of the old text behind; this takes the "
	"lock, replaces the file whole, and never makes one.",
	NULL,
};

static int
run_clear(struct cli *cli)
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

const struct cmd cmd_clear = {
	.name = "clear",
	.needs = CMD_SELF,
	.synopsis = "",
	.summary = "remove all mail of your inbox for good, where a room knows that",
	.about = about,
	.examples = examples,
	.differences = differences,
	.run = run_clear,
};
