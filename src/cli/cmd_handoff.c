/* SPDX-License-Identifier: MIT */
/* mailroom handoff: a note to one's own next life. */
#include "cli/draft.h"
#include "helptext.h"

int
cmd_handoff(struct cli *cli)
{
	const struct handoff_options *o = cli->opts;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_handoff what = {
		.subject = o->subject, .collect = o->collect, .dir = cli->place.worktree, .dry_run = cli->dry_run
	};
	const char *given = o->message, *file = o->file;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	int code;

	if (given || file || cli_stdin_has_text()) {
		code = cli_body(cli, given, file, &text);
		if (code != EXIT_DONE)
			return code;
		if (strlen(buf_z(&text)) != text.len)
			return cli_usage(cli, "the text has a NUL byte");
		what.text = buf_z(&text);
	}
	struct mr_draft draft = { .subject = what.subject ? what.subject : "hand-off", .dry_run = what.dry_run };
	enum mr_rc rc = mr_handoff(cli->room, &cli->self, &what, &receipt, &err);

	code = draft_report(cli, &draft, rc, &receipt, &err);
	mr_receipt_done(&receipt);
	return code;
}
