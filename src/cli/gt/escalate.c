/* SPDX-License-Identifier: MIT */
/* escalate.c - gt escalate ...: trouble that somebody must see to. */
#include "cli/gt/gt.h"

/* ---- Making one ---- */

int
gt_escalate(struct cli *cli, const struct gt_escalate_options *o)
{
	mr_auto(buf_done) struct buf stdin_text = BUF_INIT;
	struct mr_escalation what = { .severity = MR_LEVEL_MEDIUM };
	mr_auto(mr_escalated_done) struct mr_escalated done = { 0 };

	if (o->severity)
		TRY_CLI(mr_level_parse(o->severity, &what.severity, &cli->err));
	TRY_CODE(gt_body(cli, NULL, o->stdin_, &stdin_text));
	/* 'escalate new', as of mailroom's own, is for a text that begins with a verb. */
	const char *text = operands_text(cli, cli->argc > 1 && strcmp(cli->argv[0], "new") == 0 ? 1 : 0);

	/* The reason may come from standard input, where no shell reads it; without operands, all of it does. */
	what.text = cli->argc > 0 ? text : buf_z(&stdin_text);
	what.reason = o->reason ? o->reason : cli->argc > 0 ? buf_z(&stdin_text) : "";
	what.source = o->source ? o->source : "";
	what.related = o->related ? o->related : "";
	if (!what.text[0])
		return cli_usage(cli, "the text is missing: gt escalate TEXT");
	enum mr_rc rc = mr_escalate(cli->room, &cli->self, &what, false, cli->dry_run, &done, &cli->err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &cli->err);
	cli->changed = !cli->dry_run;
	if (cli->json) {
		escalated_json(cli, &done, o->source);
		return EXIT_DONE;
	}
	if (cli->dry_run)
		fence_addf(&cli->out, "would escalate as %s\n", mr_level_word(done.severity));
	else
		fence_addf(&cli->out, "%s %s\n  Severity: %s\n",
		    done.repeated ? "✓ Already escalated:" : "🚨 Escalated:", done.id, mr_level_word(done.severity));
	for (size_t i = 0; i < done.to.n; i++)
		fence_addf(&cli->out, "  Told: %s\n", gt_spelled(done.to.v[i]));
	for (size_t i = 0; i < done.failed_n; i++)
		cli_warn(cli, "not told: %s: %s", done.failed[i].address, done.failed[i].why);
	return EXIT_DONE;
}

/* ---- list, show, stale ---- */

struct escalations {
	struct listing list;
	struct buf text;
};

static void
list_one(void *ctx, const struct mr_escalation *e, const struct mr_escalated *)
{
	struct escalations *all = ctx;
	struct buf *out = &all->text;

	if (list_row(&all->list, kv_str("id", e->id), kv_str("title", e->text),
		kv_str("status", mr_escalation_status_word(e->status)), kv_str("severity", mr_level_word(e->severity)),
		kv_str("reason", e->reason), kv_str("source", e->source), kv_str("escalated_by", gt_spelled(e->by)),
		kv_time("escalated_at", e->at_ms), kv_str("acked_by", gt_spelled(e->acked_by)),
		kv_time("acked_at", e->acked_ms), kv_str("closed_by", gt_spelled(e->closed_by)),
		kv_str("closed_reason", e->closed_reason), kv_str("related_bead", e->related),
		kv_str("original_severity", mr_level_word(e->original)), kv_int("reescalation_count", e->raised),
		kv_time("last_reescalated_at", e->raised_ms)))
		return;
	buf_addf(out, "%s [%s] %s ", e->id, mr_level_word(e->severity), mr_escalation_status_word(e->status));
	out_line(out, e->text);
	buf_adds(out, "\n    from ");
	out_line(out, gt_spelled(e->by));
	buf_adds(out, ", ");
	gt_text_when(out, e->at_ms);
	buf_addc(out, '\n');
}

/* What was found before an error is shown all the same. */
static int
end_list(struct escalations *all, enum mr_rc rc, const char *nothing)
{
	struct cli *cli = all->list.cli;
	int code = rc == MR_OK ? EXIT_DONE : cli_fail(cli, &cli->err);

	if (!cli->json && all->list.n > 0)
		out_fenced(cli, &all->text);
	buf_done(&all->text);
	(void)gt_list_end(&all->list, MR_OK, nothing);
	return code;
}

int
gt_escalate_list(struct cli *cli, const struct gt_escalate_list_options *o)
{
	mr_auto(mr_list_done) struct mr_escalations found = { 0 };
	struct escalations all = { .list = { .cli = cli, .form = LIST_ARRAY } };
	enum mr_rc rc = mr_escalation_list(cli->room, o->all, &found, &cli->err);

	for (size_t i = 0; i < found.n; i++)
		list_one(&all, &found.v[i], NULL);
	return end_list(&all, rc, "No escalations");
}

int
gt_escalate_stale(struct cli *cli)
{
	struct escalations all = { .list = { .cli = cli, .form = LIST_ARRAY } };
	enum mr_rc rc = mr_escalation_stale(cli->room, &cli->self, cli->dry_run, list_one, &all, &cli->err);

	cli->changed = !cli->dry_run && all.list.n > 0;
	return end_list(&all, rc, "No stale escalations");
}

int
gt_escalate_show(struct cli *cli)
{
	mr_auto(mr_escalation_done) struct mr_escalation e = { 0 };
	struct escalations one = { .list = { .cli = cli, .form = LIST_ONE } };

	if (mr_escalation_get(cli->room, cli->argv[0], &e, &cli->err) != MR_OK) {
		if (cli->err.code == MR_NOTFOUND)
			(void)mr_hint(
			    &cli->err, "gt escalate list shows them; if it is a text: gt escalate new show ...");
		return cli_fail(cli, &cli->err);
	}
	list_one(&one, &e, NULL);
	const char *const more[][2] = { { "Reason", e.reason }, { "Source", e.source }, { "Related", e.related },
		{ "Acked by", e.acked_by }, { "Closed by", e.closed_by }, { "Closed because", e.closed_reason } };

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		if (!more[i][1][0])
			continue;
		buf_addf(&one.text, "    %s: ", more[i][0]);
		out_line(&one.text, more[i][1]);
		buf_addc(&one.text, '\n');
	}
	return end_list(&one, MR_OK, "");
}

/* ---- ack, close ---- */

int
gt_escalate_ack(struct cli *cli)
{
	bool changed = false;

	TRY_CLI(mr_escalation_ack(cli->room, &cli->self, cli->argv[0], &changed, &cli->err));
	cli->changed = true;
	fence_addf(&cli->out, "✓ %s: %s\n", changed ? "Acknowledged" : "Was acknowledged before", cli->argv[0]);
	return EXIT_DONE;
}

int
gt_escalate_close(struct cli *cli, const struct gt_escalate_close_options *o)
{
	if (!o->reason || !o->reason[0])
		return cli_usage(cli, "--reason TEXT is missing: it says why the escalation is over");
	TRY_CLI(mr_escalation_close(cli->room, &cli->self, cli->argv[0], o->reason, &cli->err));
	cli->changed = true;
	fence_addf(&cli->out, "✓ Closed: %s\n", cli->argv[0]);
	return EXIT_DONE;
}
