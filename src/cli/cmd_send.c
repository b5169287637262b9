/* SPDX-License-Identifier: MIT */
/* mailroom send, and the parts of it that reply shares. */
#include "batch.h"
#include "draft.h"

#include "base/clock.h"

static const struct opt opts[] = {
	OPT('s', "subject", "TEXT", "subject; default: the first line of the text; in a team '' means none"),
	DRAFT_OPTS,
	OPT(0, "cc", "AGENT...", "a further recipient, named in Cc"),
	OPT(0, "thread", "ID", "put it into this conversation: a message id, or a word of your own"),
	OPT(0, "reply-to", "ID", "mark it as an answer to this message ('mailroom reply' does more)"),
	OPT(0, "replace-key", "KEY",
	    "after delivery, retire your older unread mail with the same key: for status mail"),
	OPT(0, "not-before", "TIME",
	    "to a queue: nobody can claim it before this time (RFC 3339) or for so long (30m)"),
	OPT(0, "reply-path", "DIR",
	    "in a workspace room, for who has no mailbox: have the answer put into this folder, for 'wait --id'"),
	OPT(0, "hold", NULL, "make the mailbox of a recipient that nobody has registered yet"),
	OPT('n', "dry-run", NULL, "check everything, send nothing"),
	OPT(0, "batch", NULL, "send many: a JSON object a line on standard input, a line each on standard output"),
	OPT_HIDDEN(0, "to", "AGENT..."),
	OPT_END,
};

static const char *const aliases[] = { "broadcast", NULL };

static const char *const about[] = {
	"Sends one message to one or more agents and prints its id. When the command succeeds, the message is on "
	"stable "
	"storage in every recipient's mailbox; when it is refused, nobody has it.",
	"The text comes from -m, from -f FILE, or from standard input when that is a pipe or a file. Prefer the "
	"heredoc with "
	"a quoted word (<<'EOF'): inside -m \"...\" the shell runs backticks and $(...).",
	"A recipient is an agent's address such as bob or rig/witness, @all for every agent but you and the operator, "
	"a "
	"pattern such as */witness, in which * stands for one whole component, a group, a work queue or a channel "
	"(group:NAME, "
	"queue:NAME, channel:NAME); mailroom(7) lists all forms, and 'mailroom resolve' says who is meant. Unknown "
	"names are "
	"refused with the names that are near; --hold makes a mailbox that waits for an agent yet to come. Members of "
	"a group that "
	"reach nobody are named on standard error, and the rest get the mail.",
	"--type says what the message is. Where the room knows the type, subject and text are made from --field "
	"NAME=VALUE, or "
	"a text of your own is checked; what its type does not allow is refused with the field's name (exit code 4), "
	"unless --force is given. 'mailroom types show TYPE' explains a type; others pass as plain mail.",
	"With --key a retry is safe: the first send with that key wins, and a repeated one completes it if need be and "
	"prints the "
	"same id. The key is yours alone and is kept for seven days.",
	"In the rooms of other programs a recipient is written as it is called there, also with blanks ('Old Bob'). "
	"What such "
	"a room cannot hold (a priority, a thread, a header) is refused with exit code 4, never dropped. Who has no "
	"workspace can write to one with --reply-path and get the answer with 'mailroom wait --id'.",
	"With --batch there are many messages, a JSON object on each line of standard input, which costs a fraction of "
	"a "
	"command each: up to 1,000 are made durable together. Its members are to (a string or an array), cc, subject, "
	"body, "
	"type, fields and headers (objects), priority, thread, reply_to, key, replace_key, by, not_before, hold and "
	"force. "
	"For each line, in order, one is printed: {\"line\":1,\"id\":...,\"to\":[...]} once that message is on stable "
	"storage, "
	"or {\"line\":2,\"error\":{\"code\",\"message\",\"hint\"}}. A line that is refused does not stop the others. "
	"The exit "
	"code is 0 when all were accepted (also when there was none), else that of the worst line: 6 in doubt, 1 "
	"failed, "
	"4 refused, 5 no such recipient. After a kill, lines without an answer may have been sent: give each a key, "
	"and the "
	"whole input can be sent again. Messages with a key, with several recipients, or to queues and channels go one "
	"by "
	"one.",
	"Exit code 6 means in doubt: some recipients have the message and the rest will get it with the next command "
	"of "
	"anybody in the room. Do not send it again without --key.",
	NULL,
};
static const char *const examples[] = {
	"mailroom --as alice send bob <<'EOF'\nThe build is green again.\n\nSee `make test` for details.\nEOF",
	"mailroom --as alice send bob --priority high -s 'please review' -m 'branch feature-x is ready'",
	"mailroom --as alice send bob --key deploy-42 -m 'deploy 42 is out'",
	"mailroom --as alice send bob --type HELP --field Topic='the build' --field Problem='it is red since noon'",
	"mailroom --as alice send bob --by 30m -m 'which port does the server use?'",
	"mailroom --as alice send --batch "
	"<<'EOF'\n{\"to\":\"bob\",\"body\":\"one\"}\n{\"to\":\"bob\",\"body\":\"two\"}\nEOF",
	NULL,
};

/* Operands and the hidden --to, as one NULL-terminated list. */
static const char **
recipients(struct cli *cli)
{
	size_t n = (size_t)cli->argc;

	while (opt_nth(cli, "to", n - (size_t)cli->argc) != NULL)
		n++;
	const char **to = arena_alloc(&cli->own, (n + 1) * sizeof(*to));
	for (size_t i = 0; to != NULL && i < n; i++)
		to[i] = i < (size_t)cli->argc ? cli->argv[i] : opt_nth(cli, "to", i - (size_t)cli->argc);
	return to;
}

/* A time, or so long from now. False after a usage error. */
static bool
read_not_before(struct cli *cli, int64_t *ret_ms)
{
	const char *text = opt_text(cli, "not-before");
	struct mr_error err = { 0 };
	int64_t wait_ms;

	if (text == NULL)
		return true;
	if (mr_duration_parse(text, &wait_ms, &err) == MR_OK) {
		*ret_ms = clock_now_ms() + wait_ms;
		return true;
	}
	if (mr_time_parse(text, ret_ms, &err) == MR_OK)
		return true;
	(void)cli_usage(cli, "option '--not-before': '%.60s' is no time; give 30m, 2h, or 2026-03-05T10:30:00Z", text);
	return false;
}

/* Other programs have agents with blanks in their names. */
static bool
is_name(struct cli *cli, const char *given)
{
	struct mr_resolution meant = { 0 };
	struct mr_error ignored = { 0 };
	bool known = mr_resolve(cli->room, cli->self.agent, given, &meant, &ignored) == MR_OK;

	mr_resolution_done(&meant);
	return known;
}

/* The text where a recipient belongs is the commonest slip, and without -m there is no body either: what is said first
 * must be the help that is needed. */
static int
check_operands(struct cli *cli, const char *const *to)
{
	struct mr_error err = { 0 };

	for (; *to != NULL; to++) {
		if (strpbrk(*to, " \t\r\n") == NULL || is_name(cli, *to))
			continue;
		(void)mr_fail(&err, MR_REFUSED, "'%.60s' is not a recipient", *to);
		(void)mr_hint(&err, "did you mean -m? the text goes after -m, or in on stdin");
		return cli_fail(cli, &err);
	}
	return EXIT_DONE;
}

/* What belongs to one message stands in its line. */
static int
run_batch(struct cli *cli)
{
	static const char *const others[] = { "to", "cc", "subject", "message", "body", "file", "type", "field",
		"priority", "header", "key", "by", "thread", "reply-to", "replace-key", "not-before", "reply-path" };

	if (cli->argc > 0)
		return cli_usage(cli, "with --batch the recipients stand in the lines: 'to'");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (opt_text(cli, others[i]) != NULL)
			return cli_usage(cli, "--%s does not go with --batch: it stands in each line", others[i]);
	return batch_run(cli);
}

static int
run(struct cli *cli)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct mr_draft draft = { 0 };

	if (opt_flag(cli, "batch"))
		return run_batch(cli);
	draft.to = recipients(cli);
	if (draft.to == NULL || draft.to[0] == NULL)
		return cli_usage(cli, "send to whom? name at least one agent");
	if (!read_not_before(cli, &draft.not_before_ms))
		return EXIT_USAGE;
	int code = check_operands(cli, draft.to);
	if (code == EXIT_DONE)
		code = draft_read(cli, &draft, &body);
	if (code != EXIT_DONE)
		return code;
	draft.cc = draft_list(cli, "cc");
	draft_subject(cli, &draft);
	draft.thread = opt_text(cli, "thread");
	draft.reply_to = opt_text(cli, "reply-to");
	draft.replace_key = opt_text(cli, "replace-key");
	draft.reply_path = cli_folder(cli, opt_text(cli, "reply-path"));
	draft.hold = opt_flag(cli, "hold");
	draft.dry_run = opt_flag(cli, "dry-run");

	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &err);
	/* The first of a thread has woken nobody yet; where there are no threads each is one of many. */
	if (rc == MR_OK && !draft.dry_run && (draft.thread || draft.reply_to || !mr_room_has_lives(cli->room)))
		draft_note_limited(cli, &receipt);
	code = draft_report(cli, &draft, rc, &receipt, &err);
	mr_receipt_done(&receipt);
	return code;
}

const struct cmd cmd_send = {
	.name = "send",
	.aliases = aliases,
	.needs = CMD_SELF,
	.synopsis =
	    "TO... [-s SUBJECT] [-m TEXT | -f FILE | <stdin] [--type TYPE [--field NAME=VALUE]...] | --batch <stdin",
	.summary = "send a message and print its id",
	.opts = opts,
	.about = about,
	.examples = examples,
	.exits = "456",
	.min_args = 0,
	.max_args = -1,
	.run = run,
};
