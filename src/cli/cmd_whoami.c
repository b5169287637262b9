/* SPDX-License-Identifier: MIT */
/* cmd_whoami.c - which agent this command acts as, and how that was found out. */
#include "base/text.h"
#include "cli/cli.h"
#include "helptext.h"

static int
run_whoami(struct cli *cli)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "agent", cli->self.agent);
		json_key_int(&j, "life", (int64_t)cli->self.life);
		json_key_str(&j, "room", mr_room_name(cli->room));
		json_key_str(&j, "how", cli->self.how);
		json_key_bool(&j, "bound", cli->self.bound);
		json_key_str(&j, "session", cli->self.session[0] ? cli->self.session : NULL);
		out_json_line(cli, &j);
		return EXIT_DONE;
	}
	text_name(cli, &cli->out, cli->self.agent);
	buf_adds(&cli->out, "\n  ");
	if (mr_room_has_lives(cli->room))
		buf_addf(&cli->out, "life %u ", cli->self.life);
	buf_adds(&cli->out, "in room ");
	(void)fence_add(&cli->out, str_of(mr_room_name(cli->room)), FENCE_LINE, 0);
	buf_adds(&cli->out, ": ");
	(void)fence_add(&cli->out, str_of(cli->self.how), FENCE_LINE, 0);
	buf_addc(&cli->out, '\n');
	return EXIT_DONE;
}

const struct cmd cmd_whoami = {
	.name = "whoami",
	.help = &help_whoami,
	.needs = CMD_SELF,
	.run = run_whoami,
};
