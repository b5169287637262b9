/* SPDX-License-Identifier: MIT */
/* cmd_send.c - mailroom send, reply. */
#include "draft.h"

#include "helptext.h"

/* Operands and the hidden --to. The text where a recipient belongs is the commonest slip, and without -m there is no
 * body either: what is said first must be the help that is needed. */
static enum mr_rc
read_recipients(struct cli *cli, struct mr_names *ret, struct mr_error *err)
{
	const struct send_options *o = cli->opts;
	size_t n = (size_t)cli->argc, more = opt_count(o->to);

	for (size_t i = 0; i < n + more; i++) {
		mr_auto(mr_resolution_done) struct mr_resolution meant = { 0 };
		const char *to = i < n ? cli->argv[i] : o->to[i - n];

		/* Other programs have agents with blanks in their names. */
		if (strpbrk(to, " \t\r\n") != NULL &&
		    mr_resolve(cli->room, cli->self.agent, to, &meant, IGNORED) != MR_OK)
			return mr_fail(err, MR_REFUSED,
			    "'%.60s' is not a recipient\ndid you mean -m? give the text with -m or on stdin", to);
		TRY(mr_got(names_add(ret, str_of(to)), err));
	}
	return MR_OK;
}

int
cmd_send(struct cli *cli, const struct send_options *o)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	mr_auto(mr_names_done) struct mr_names to = { 0 };
	struct mr_draft draft = {
		.cc = o->cc,
		.thread = o->thread,
		.reply_to = o->reply_to,
		.replace_key = o->replace_key,
		.reply_path = cli_folder(cli, o->reply_path),
		.hold = o->hold,
		.dry_run = cli->dry_run,
	};

	if (o->batch)
		return batch_run(cli);
	if (o->not_before && mr_duration_parse(o->not_before, &draft.not_before_ms, IGNORED) == MR_OK)
		draft.not_before_ms += clock_now_ms();
	else if (o->not_before && mr_time_parse(o->not_before, &draft.not_before_ms, IGNORED) != MR_OK)
		return cli_usage(cli,
		    "option '--not-before': '%.60s' is not a time; give 30m, 2h, or 2026-03-05T10:30:00Z",
		    o->not_before);
	TRY_CLI(read_recipients(cli, &to, &cli->err));
	draft.to = names_list(&to);
	TRY_CODE(draft_read(cli, &o->draft, o->subject, &draft, &body));
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &cli->err);

	/* The first message of a thread cannot be limited. A room without threads counts each message as one of many.
	 */
	if (rc == MR_OK && !draft.dry_run && (draft.thread || draft.reply_to || !mr_room_has(cli->room, MR_HAS_LIVES)))
		draft_note_limited(cli, &receipt);
	return draft_report(cli, &draft, rc, &receipt, &cli->err);
}

int
cmd_reply(struct cli *cli, const struct reply_options *o)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_draft draft = { .only = o->only };
	TRY_CODE(draft_read(cli, &o->draft, o->subject, &draft, &body));
	enum mr_rc rc = mr_reply(cli->room, &cli->self, cli->argv[0], &draft, o->all, &receipt, &cli->err);

	if (rc == MR_OK)
		draft_note_limited(cli, &receipt);
	return draft_report(cli, &draft, rc, &receipt, &cli->err);
}
