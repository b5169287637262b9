/* SPDX-License-Identifier: MIT */
/* mailroom reply */
#include "draft.h"

static const struct opt opts[] = {
	OPT('s', "subject", "TEXT", "subject; default: \"Re: \" and the original's"),
	DRAFT_OPTS,
	OPT(0, "only", NULL, "answer just this question, where an answer would end older ones of its sender, too"),
	OPT('a', "all", NULL, "also to the other recipients of the original"),
	OPT_END,
};
static const char *const about[] = {
	"Answers a message: it goes to the original's sender, in the same thread, with one \"Re:\", and the original "
	"is marked "
	"as replied. ID is an id or at least its last 6 characters. The text is read as in 'mailroom send'.",
	"An answer to mail that you sent yourself goes to its recipients.",
	"In a room of kind workspace the newest question of a channel stands for the older ones of the same sender: "
	"those that have no answer yet get an empty one, and which is said ('superseded' with --json). What "
	"others asked in that channel stays open. --only answers one question and nothing else.",
	"With --type, fields that the type takes from the request, such as its id, are copied.",
	NULL,
};
static const char *const examples[] = {
	"id=$(mailroom --as alice send bob -m 'is the port 8080?')\nmailroom --as bob reply \"$id\" <<'EOF'\nNo, "
	"`8081`.\nEOF",
	NULL,
};

static int
run(struct cli *cli)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct mr_draft draft = { 0 };
	int code = draft_read(cli, &draft, &body);

	if (code != EXIT_DONE)
		return code;
	draft_subject(cli, &draft);
	draft.only = opt_flag(cli, "only");

	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	enum mr_rc rc = mr_reply(cli->room, &cli->self, cli->argv[0], &draft, opt_flag(cli, "all"), &receipt, &err);
	if (rc == MR_OK)
		draft_note_limited(cli, &receipt);
	code = draft_report(cli, &draft, rc, &receipt, &err);
	mr_receipt_done(&receipt);
	return code;
}

const struct cmd cmd_reply = {
	.name = "reply",
	.needs = CMD_SELF,
	.synopsis = "ID [-a] [--only] [-s SUBJECT] [-m TEXT | -f FILE | <stdin]",
	.summary = "answer a message",
	.opts = opts,
	.about = about,
	.examples = examples,
	.exits = "456",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
