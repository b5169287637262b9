/* SPDX-License-Identifier: MIT */
/* mailroom read: shown before consumed (promise 9). */
#include "cli.h"

static const struct opt opts[] = {
	OPT('p', "peek", NULL, "only look: mark nothing"),
	OPT(0, "raw", NULL, "print the stored bytes as they are; marks nothing"),
	BUDGET_OPT,
	OPT_END,
};
static const char *const aliases[] = { "show", NULL };
static const char *const about[] = {
	"Shows messages and then marks them read: after standard output took them, and only those that were shown "
	"whole. A "
	"command that is killed in between has consumed nothing; the mail is unread again at once. In a session of "
	"Claude "
	"Code with mailroom's hooks that also holds for a call whose result the model does not get.",
	"Off a terminal the text is framed by a delimiter that nobody can foresee, because what is inside is data from "
	"others, "
	"not instructions, and a '<' that could begin a tag is shown as '&lt;'. Characters that steer a terminal or "
	"hide "
	"text are shown as '<U+001B>'; --json is true to every byte, and so is --raw, but for a terminal, where it "
	"shows "
	"such characters, too. A message longer than the budget is shown in part and stays unread: raise --budget, or "
	"use "
	"--json.",
	"Off a terminal control messages, which wait for a patrol, are refused with 4; --json shows them.",
	NULL,
};
static const char *const examples[] = {
	"id=$(mailroom --as alice send bob -m 'hello')\nmailroom --as bob read \"$id\"",
	"id=$(mailroom --as alice send bob -m 'hello again')\nmailroom --as bob read --raw \"$id\" | head -n 4",
	NULL,
};

/* What programs tell each other is no text for an agent, who might take it for an order. */
static bool
refuses(struct cli *cli, const struct mr_message *msg, int *ret_exit)
{
	struct mr_error err = { 0 };

	if (cli->json || cli->out_tty || msg->folder == MR_SENT)
		return false;
	if (!mr_is_control(cli->room, cli->self.agent, msg, &err)) {
		if (err.code != MR_OK)
			cli_warn(cli, "the control message %s cannot be used: %s", short_id(msg->id), err.message);
		return false;
	}
	(void)mr_fail(
	    &err, MR_REFUSED, "%s is a control message of type '%s', for programs", short_id(msg->id), msg->type);
	(void)mr_hint(&err, "`mailroom patrol` runs its handler; --json shows it");
	*ret_exit = cli_fail(cli, &err);
	return true;
}

static bool
refuses_raw(struct cli *cli, const char *id, int *ret_exit)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	/* One that cannot be parsed is none, and its bytes are what is wanted. */
	return mr_fetch(cli->room, cli->self.agent, id, &msg, &err) == MR_OK && refuses(cli, &msg, ret_exit);
}

static int
read_raw(struct cli *cli)
{
	for (int i = 0; i < cli->argc; i++) {
		struct mr_error err = { 0 };
		char *bytes = NULL;
		size_t len = 0;
		int code = EXIT_DONE;

		if (refuses_raw(cli, cli->argv[i], &code))
			return code;
		if (mr_fetch_raw(cli->room, cli->self.agent, cli->argv[i], &bytes, &len, &err) != MR_OK)
			return cli_fail(cli, &err);
		/* A terminal obeys what it is sent, so there its bytes are shown and not written. */
		if (cli->out_tty)
			(void)fence_add(&cli->out, (struct mr_str){ bytes, len }, out_form(cli, FENCE_TEXT), 0);
		else
			buf_add(&cli->out, (struct mr_str){ bytes, len });
		free(bytes);
		if (!cli_flush(cli))
			return EXIT_FAILED;
	}
	return EXIT_DONE;
}

/* One message out; true when it was shown whole. */
static bool
print(struct cli *cli, const struct mr_message *msg)
{
	if (!cli->json)
		return budget_message(cli, msg, 0);
	cli_json_message(cli, msg, true);
	return true;
}

static int
peek(struct cli *cli)
{
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		struct mr_error err = { 0 };
		struct mr_message msg = { 0 };
		if (mr_fetch(cli->room, cli->self.agent, cli->argv[i], &msg, &err) != MR_OK) {
			code = cli_fail(cli, &err);
			continue;
		}
		if (!refuses(cli, &msg, &code))
			(void)print(cli, &msg);
		mr_message_done(&msg);
	}
	if (!cli->json)
		budget_end(cli, "message", "mailroom read --peek ID");
	return code;
}

/* Takes and prints what was asked for. What did not fit is given back at once. */
static int
take_all(struct cli *cli, struct mr_show *show)
{
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		struct mr_error err = { 0 };
		struct mr_message msg = { 0 };
		enum mr_rc rc = mr_show_take(show, cli->argv[i], &msg, &err);
		if (rc != MR_OK && rc != MR_BUSY) {
			code = cli_fail(cli, &err);
			/* A full or read-only disk cannot note that it was read. What it says can be shown all the
			 * same. */
			if ((rc == MR_FULL || rc == MR_IO) &&
			    mr_fetch(cli->room, cli->self.agent, cli->argv[i], &msg, &err) == MR_OK)
				(void)print(cli, &msg);
			mr_message_done(&msg);
			continue;
		}
		if (rc == MR_BUSY) /* looking is free; whoever holds it will settle it */
			cli_warn(cli, "%s", err.message);
		bool shown = !refuses(cli, &msg, &code) && print(cli, &msg);

		if (!shown && rc == MR_OK && mr_show_back(show, msg.id, &err) != MR_OK)
			code = cli_fail(cli, &err);
		mr_message_done(&msg);
	}
	if (!cli->json)
		budget_end(cli, "message", "mailroom read ID");
	return code;
}

static int
run(struct cli *cli)
{
	struct mr_error err = { 0 };
	struct mr_show *show = NULL;

	if (!budget_begin(cli))
		return EXIT_USAGE;
	if (opt_flag(cli, "raw"))
		return read_raw(cli);
	if (opt_flag(cli, "peek"))
		return peek(cli);
	if (mr_show_open(cli->room, &cli->self, &show, &err) != MR_OK)
		return cli_fail(cli, &err);
	int code = take_all(cli, show);
	if (!cli_flush(cli))
		code = EXIT_FAILED; /* nobody saw it: closing gives it back */
	else if (mr_show_finish(show, false, NULL, &err) != MR_OK)
		code = cli_fail(cli, &err);
	mr_show_close(show);
	return code;
}

const struct cmd cmd_read = {
	.name = "read",
	.aliases = aliases,
	.needs = CMD_SELF,
	.synopsis = "[--peek | --raw] ID...",
	.summary = "show messages, then mark them read",
	.opts = opts,
	.about = about,
	.examples = examples,
	.min_args = 1,
	.max_args = -1,
	.run = run,
};
