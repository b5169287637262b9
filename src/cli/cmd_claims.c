/* SPDX-License-Identifier: MIT */
/* mailroom done, release, fail, extend: how a claim ends, or goes on; and handoff, a note to one's own next life. */
#include "cli/draft.h"
#include "helptext.h"

/* answer: of a result that was sent; or "". */
static void
report(struct cli *cli, const char *verb, const char *id, const char *answer, const struct mr_error *err)
{
	if (err->hint[0])
		cli_warn(cli, "%s", err->hint);
	if (out_json(cli, kv_str("id", id), kv_str("state", verb), kv_if("answer", answer)))
		return;
	fence_addf(&cli->out, "%s %s\n", verb, id);
	if (answer[0])
		fence_addf(&cli->out, "answered with %s\n", answer);
}

/* Each operand is put back so, or failed for that reason, or else done. */
static int
settle_each(struct cli *cli, const char *verb, const struct mr_release *back, const char *reason)
{
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		const char *what = cli->argv[i];
		struct mr_error err = { 0 };
		char id[MR_ID_LEN + 1];
		enum mr_rc rc = back     ? mr_claim_release(cli->room, &cli->self, what, back, id, &err)
				: reason ? mr_claim_fail(cli->room, &cli->self, what, reason, id, &err)
					 : mr_claim_done(cli->room, &cli->self, what, NULL, id, NULL, &err);

		if (rc == MR_OK)
			report(cli, verb, id, "", &err);
		else
			code = cli_fail(cli, &err);
	}
	return code;
}

int
cmd_done(struct cli *cli, const struct done_options *o)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	char id[MR_ID_LEN + 1], answer[MR_ID_LEN + 1];

	/* Without an option stdin is not read: agents settle in loops whose input is something else. */
	if (!o->message && !o->file)
		return settle_each(cli, "done", NULL, NULL);
	if (cli->argc != 1)
		return cli_usage(cli, "a result answers one message: give one TOKEN");
	TRY_CODE(cli_body(cli, o->message, o->file, &body));
	struct mr_draft result = { .body = buf_z(&body), .body_len = body.len };

	TRY_CLI(mr_claim_done(cli->room, &cli->self, cli->argv[0], &result, id, answer, &cli->err));
	cli->changed = true;
	report(cli, "done", id, answer, &cli->err);
	return EXIT_DONE;
}

int
cmd_release(struct cli *cli, const struct release_options *o)
{
	struct mr_release back = { .reason = o->reason, .to = o->to, .to_ms = o->for_ms };

	return settle_each(cli, "released", &back, NULL);
}

int
cmd_fail(struct cli *cli, const struct fail_options *o)
{
	return settle_each(cli, "failed", NULL, o->reason);
}

int
cmd_extend(struct cli *cli, const struct extend_options *o)
{
	struct mr_claim claim = { 0 };

	TRY_CLI(mr_claim_extend(cli->room, &cli->self, cli->argv[0], o->lease_ms, &claim, &cli->err));
	return out_answer(cli,
	    CELLS(kv_str("id", claim.id), kv_str("token", claim.token), kv_int("attempt", claim.attempt),
		kv_time("lease_until", claim.deadline_ms)),
	    "%s is yours until %s\n", claim.id, dated(claim.deadline_ms).text);
}

int
cmd_handoff(struct cli *cli, const struct handoff_options *o)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	struct mr_handoff what = {
		.subject = o->subject, .collect = o->collect, .dir = cli->place.worktree, .dry_run = cli->dry_run
	};
	struct mr_draft draft = { .subject = o->subject ? o->subject : "hand-off", .dry_run = cli->dry_run };

	if (o->message || o->file || cli_stdin_has_text()) {
		TRY_CODE(cli_body(cli, o->message, o->file, &text));
		if (strlen(buf_z(&text)) != text.len)
			return cli_usage(cli, "the text has a NUL byte");
		what.text = buf_z(&text);
	}
	enum mr_rc rc = mr_handoff(cli->room, &cli->self, &what, &receipt, &cli->err);

	return draft_report(cli, &draft, rc, &receipt, &cli->err);
}
