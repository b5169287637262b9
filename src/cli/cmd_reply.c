/* SPDX-License-Identifier: MIT */
/* mailroom reply */
#include "draft.h"
#include "helptext.h"

int
cmd_reply(struct cli *cli)
{
	const struct reply_options *o = cli->opts;
	mr_auto(buf_done) struct buf body = BUF_INIT;
	struct mr_draft draft = { 0 };
	int code = draft_read(cli, &o->draft, &draft, &body);

	if (code != EXIT_DONE)
		return code;
	draft_subject(cli, o->subject, &draft);
	draft.only = o->only;

	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	enum mr_rc rc = mr_reply(cli->room, &cli->self, cli->argv[0], &draft, o->all, &receipt, &err);
	if (rc == MR_OK)
		draft_note_limited(cli, &receipt);
	code = draft_report(cli, &draft, rc, &receipt, &err);
	mr_receipt_done(&receipt);
	return code;
}
