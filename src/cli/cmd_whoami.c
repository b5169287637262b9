/* SPDX-License-Identifier: MIT */
/* cmd_whoami.c - which agent this command acts as, and how that was found out. */
#include "base/text.h"
#include "cli/cli.h"

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

static const char *const about[] = {
	"In this order: --as; the agent that this harness session is bound to (of two sessions in the environment the "
	"one whose hooks have noted the other as inherited), or where a harness tells its shells "
	"and servers no session, the one that the nearest bound harness process above is bound to; $MAILROOM_AGENT and "
	"the variables of other systems, except in the background server of Codex, where they are another terminal's; "
	"outside of a harness the one agent that this terminal session registered, "
	"else the one that was registered from this worktree without a session; the one agent of this worktree whose "
	"life is gone. Otherwise it is an error with the line to type: mailroom never guesses.",
	NULL,
};
static const char *const examples[] = { "mailroom --as alice whoami", NULL };
static const char *const differences[] = {
	"Where Gas Town takes an agent it cannot identify for the human, this says that nobody is "
	"known and exits with 5.",
	NULL,
};

const struct cmd cmd_whoami = {
	.name = "whoami",
	.needs = CMD_SELF,
	.synopsis = "",
	.summary = "say which agent you are, and why",
	.about = about,
	.examples = examples,
	.differences = differences,
	.run = run_whoami,
};
