/* SPDX-License-Identifier: MIT */
/* mailroom send, and the parts of it that reply shares. */
#include "batch.h"
#include "draft.h"

#include "base/clock.h"
#include "helptext.h"

/* Operands and the hidden --to, as one NULL-terminated list. */
static const char **
recipients(struct cli *cli)
{
	const struct send_options *o = cli->opts;
	size_t n = (size_t)cli->argc, more = 0;

	while (o->to[more] != NULL)
		more++;
	const char **to = arena_alloc(&cli->own, (n + more + 1) * sizeof(*to));
	for (size_t i = 0; to != NULL && i < n + more; i++)
		to[i] = i < n ? cli->argv[i] : o->to[i - n];
	return to;
}

/* A time, or so long from now. False after a usage error. */
static bool
read_not_before(struct cli *cli, int64_t *ret_ms)
{
	const struct send_options *o = cli->opts;
	const char *text = o->not_before;
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
		"priority", "header", "key", "by", "thread", "reply-to", "replace-key", "not-before", "reply-path",
		NULL };
	const char *other = opt_first_given(cli, others);

	if (cli->argc > 0)
		return cli_usage(cli, "with --batch the recipients stand in the lines: 'to'");
	if (other != NULL)
		return cli_usage(cli, "--%s does not go with --batch: it stands in each line", other);
	return batch_run(cli);
}

int
cmd_send(struct cli *cli)
{
	const struct send_options *o = cli->opts;
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct mr_draft draft = { 0 };

	if (o->batch)
		return run_batch(cli);
	draft.to = recipients(cli);
	if (draft.to == NULL || draft.to[0] == NULL)
		return cli_usage(cli, "send to whom? name at least one agent");
	if (!read_not_before(cli, &draft.not_before_ms))
		return EXIT_USAGE;
	int code = check_operands(cli, draft.to);
	if (code == EXIT_DONE)
		code = draft_read(cli, &o->draft, &draft, &body);
	if (code != EXIT_DONE)
		return code;
	draft.cc = o->cc;
	draft_subject(cli, o->subject, &draft);
	draft.thread = o->thread;
	draft.reply_to = o->reply_to;
	draft.replace_key = o->replace_key;
	draft.reply_path = cli_folder(cli, o->reply_path);
	draft.hold = o->hold;
	draft.dry_run = cli->dry_run;

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
