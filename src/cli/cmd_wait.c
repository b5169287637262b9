/* SPDX-License-Identifier: MIT */
/* mailroom wait */
#include "printout.h"

/* Harnesses end a tool call after two minutes or ten; a person at a terminal may be patient. */
#define PATIENCE_TTY_MS (540 * 1000)
#define PATIENCE_MS (100 * 1000)

static const struct opt opts[] = {
	OPT('t', "timeout", "TIME", "how long (default 540s, off a terminal 100s); 0 looks once"),
	OPT(0, "id", "ID", "wait for the answer to this message"),
	OPT(0, "reply-path", "DIR", "with --id: the folder that 'send --reply-path' named, if that is not remembered"),
	FILTER_OPTS,
	BUDGET_OPT,
	OPT_END,
};
static const char *const about[] = {
	"Waits until there is unread mail and lists it; returns at once when some is waiting already. It consumes "
	"nothing: go on "
	"with 'mailroom read', 'drain' or 'recv'. With filters or --id only mail that passes them counts.",
	"The answer to a message that was sent with --reply-path comes into that folder and no mailbox: it is shown, "
	"and "
	"removed after standard output took it.",
	"Exits with 3 when the time is up.",
	NULL,
};
static const char *const examples[] = {
	"mailroom --as alice send bob -m 'ready'\nmailroom --as bob wait --timeout 5s",
	"id=$(mailroom --as alice send bob -m 'which port?')\nmailroom --as bob reply \"$id\" -m 8081\n"
	"mailroom --as alice wait --id \"$id\" --timeout 5s",
	NULL,
};

/* For a sender without a mailbox. */
static int
wait_for_answer(struct cli *cli, const char *id, const char *dir, int64_t timeout_ms)
{
	mr_auto(mr_message_done) struct mr_message answer = { 0 };
	struct mr_error err = { 0 };
	enum mr_rc rc = mr_answer_wait(cli->room, id, dir, timeout_ms, &answer, &err);
	bool whole = true;

	if (rc == MR_EMPTY) {
		cli_warn(cli, "%s", err.message);
		return EXIT_NOTHING;
	}
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		cli_json_message(cli, &answer, true);
	} else {
		whole = budget_message(cli, &answer, 0);
		budget_end(cli, "answer", "mailroom wait --id ID --budget 0");
	}
	if (!cli_flush(cli))
		return EXIT_FAILED;
	if (whole && mr_answer_taken(cli->room, id, dir, &err) != MR_OK)
		return cli_fail(cli, &err);
	return EXIT_DONE;
}

static int
run(struct cli *cli)
{
	struct filter_store store;
	struct mr_scan scan = { .order = MR_BY_PRIORITY };
	struct printout l = { .cli = cli };
	struct mr_error err = { 0 };
	char answered[MR_ID_LEN + 1];
	int64_t timeout_ms = cli->out_tty ? PATIENCE_TTY_MS : PATIENCE_MS;
	int code = EXIT_DONE;

	if (!filter_read(cli, &scan.filter, &store) || !opt_duration(cli, "timeout", &timeout_ms) || !budget_begin(cli))
		return EXIT_USAGE;
	const char *id = opt_text(cli, "id"), *dir = cli_folder(cli, opt_text(cli, "reply-path"));

	if (dir != NULL && id == NULL)
		return cli_usage(cli, "--reply-path goes with --id: the message whose answer is wanted");
	if (id != NULL && (dir != NULL || mr_answer_expected(cli->room, id)))
		return wait_for_answer(cli, id, dir, timeout_ms);
	scan.filter.unread = true;
	if (id != NULL) {
		/* A full id is taken as it is: looked up here, so that nobody waits for an answer to nothing. */
		if (mr_question(cli->room, cli->self.agent, id, answered, &err) != MR_OK)
			return cli_fail(cli, &err);
		scan.filter.reply_to = answered;
	}
	enum mr_rc rc = mr_wait(cli->room, cli->self.agent, &scan.filter, timeout_ms, &err);
	if (rc == MR_EMPTY) {
		cli_warn(cli, "no mail came for %s", cli->self.agent);
		return EXIT_NOTHING;
	}
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	if (!printout_run(&l, &scan, &code))
		return code;
	if (!cli->json)
		budget_end(cli, "message", "mailroom inbox");
	return EXIT_DONE;
}

const struct cmd cmd_wait = {
	.name = "wait",
	.needs = CMD_SELF,
	.synopsis = "[--timeout TIME] [--id ID [--reply-path DIR]]",
	.summary = "wait for mail; returns at once when some is there",
	.opts = opts,
	.about = about,
	.examples = examples,
	.exits = "345",
	.max_args = 0,
	.run = run,
};
