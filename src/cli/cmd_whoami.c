/* SPDX-License-Identifier: MIT */
/* cmd_whoami.c - which agent this command acts as, and how that was found out. */
#include "base/text.h"
#include "cli/view.h"
#include "helptext.h"

int
cmd_whoami(struct cli *cli)
{
	if (out_json(cli, kv_str("agent", cli->self.agent), kv_int("life", cli->self.life),
		kv_str("room", mr_room_name(cli->room)), kv_str("how", cli->self.how),
		kv_bool("bound", cli->self.bound), kv_opt("session", cli->self.session)))
		return EXIT_DONE;
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
