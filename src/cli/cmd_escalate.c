/* SPDX-License-Identifier: MIT */
/* mailroom escalate: trouble that somebody must see to, kept on record until it is closed. */
#include "cli/gt/gt.h"

/* ---- Showing ---- */

static bool
list_escalation(struct listing *list, const struct mr_escalation *e)
{
	return list_row(list, col("ID", kv_str("id", e->id)),
	    col("SEVERITY", kv_str("severity", mr_level_word(e->severity))),
	    kv_str("original_severity", mr_level_word(e->original)),
	    col("STATUS", kv_str("status", mr_escalation_status_word(e->status))), kv_str("text", e->text),
	    kv_opt("reason", e->reason), kv_opt("source", e->source), kv_opt("related", e->related),
	    col_name("BY", kv_str("escalated_by", e->by)), col("SINCE", kv_time("escalated_at", e->at_ms)),
	    kv_opt("acked_by", e->acked_by), kv_time("acked_at", e->acked_ms), kv_opt("closed_by", e->closed_by),
	    kv_time("closed_at", e->closed_ms), kv_opt("closed_reason", e->closed_reason),
	    kv_int("reescalation_count", (int64_t)e->raised), kv_time("last_reescalated_at", e->raised_ms),
	    kv_bool("mailed", e->mailed), col_name("TEXT", kv_str(NULL, e->text)));
}

int
cmd_escalate_list(struct cli *cli, const struct escalate_options *o)
{
	mr_auto(mr_list_done) struct mr_escalations all = { 0 };
	mr_auto(list_done) struct listing list = { .cli = cli };

	TRY_CLI(mr_escalation_list(cli->room, o->all, &all, &cli->err));
	for (size_t i = 0; i < all.n; i++)
		(void)list_escalation(&list, &all.v[i]);
	return list_end(&list, o->all ? "no escalations\n" : "no open escalations\n");
}

static const char *
event(struct cli *cli, const char *who, int64_t ms)
{
	const char *text = ms > 0 ? cli_text(cli, "%s%s%s", dated(ms).text, *who ? " by " : "", who) : "";

	return text ? text : who;
}

int
cmd_escalate_show(struct cli *cli, const struct escalate_options *)
{
	mr_auto(mr_escalation_done) struct mr_escalation e = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;

	enum mr_rc rc = mr_escalation_get(cli->room, cli->argv[0], &e, &cli->err);

	if (rc == MR_NOTFOUND)
		(void)mr_hint(&cli->err,
		    "mailroom escalate list shows them; if it is a text: mailroom escalate new %s ...", cli->subword);
	TRY_CLI(rc);
	if (list_escalation(&(struct listing){ .cli = cli, .form = LIST_JSON }, &e))
		return EXIT_DONE;
	const char *const facts[][2] = { { "id", e.id }, { "severity", mr_level_word(e.severity) },
		{ "status", mr_escalation_status_word(e.status) }, { "text", e.text }, { "reason", e.reason },
		{ "source", e.source }, { "related", e.related }, { "made", event(cli, e.by, e.at_ms) },
		{ "raised", event(cli, "", e.raised_ms) }, { "seen", event(cli, e.acked_by, e.acked_ms) },
		{ "closed", event(cli, e.closed_by, e.closed_ms) }, { "because", e.closed_reason },
		{ "mail", e.mailed ? "" : "not everybody on its route was told yet" } };

	for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
		out_fact(cli, &text, "", 10, facts[i][0], facts[i][1]);
	out_fenced(cli, &text);
	return EXIT_DONE;
}

/* ---- Making one ---- */

/* One for each that is to be told. gt lists the record itself as well, as a delivery to a bead. */
static void
list_delivery(struct listing *list, const struct mr_escalated *e, const char *target, const char *error)
{
	bool gt = list->cli->gt;

	list_row(list,
	    kv_str("target", !target ? e->id
			     : gt    ? gt_spelled(target)
				     : target),
	    kv_str("channel", target ? "mail" : "bead"), kv_bool("created", !error), kv_bool("persisted", !error),
	    gt ? kv_bool("runtime_notified", false) : kv_none(), gt ? kv_bool("annotated", !target) : kv_none(),
	    gt ? kv_str("severity", mr_level_word(e->severity)) : kv_none(), kv_if("error", error));
}

void
escalated_json(struct cli *cli, const struct mr_escalated *e, const char *source)
{
	mr_auto(list_done) struct listing delivery = { .cli = cli, .form = LIST_ARRAY };
	mr_auto(mr_names_done) struct mr_names actions = { 0 };

	cli->out.failed |= !names_add(&actions, str_of(cli->gt ? "bead" : "record"));
	if (cli->gt)
		list_delivery(&delivery, e, NULL, NULL);
	for (size_t i = 0; i < e->to.n; i++) {
		mr_auto(buf_done) struct buf action = BUF_INIT;

		buf_addf(&action, "mail:%s", e->to.v[i]);
		cli->out.failed |= !names_add(&actions, buf_str(&action));
		list_delivery(&delivery, e, e->to.v[i], NULL);
	}
	for (size_t i = 0; i < e->failed_n; i++)
		list_delivery(
		    &delivery, e, e->failed[i].address, *e->failed[i].why ? e->failed[i].why : "not delivered");
	const struct cell *cells = CELLS(kv_str("id", cli->dry_run && !cli->gt ? NULL : e->id),
	    kv_str("severity", mr_level_word(e->severity)), kv_names("actions", &actions), kv_names("targets", &e->to),
	    kv_json("delivery", list_json(&delivery)), kv_str("status", e->failed_n > 0 ? "partial_failure" : "ok"),
	    cli->gt ? kv_none() : kv_bool("repeated", e->repeated), source ? kv_str("source", source) : kv_none());

	(void)(cli->gt ? gt_json_cells : out_json_cells)(cli, cells);
}

int
cmd_escalate_new(struct cli *cli, const struct escalate_options *o)
{
	mr_auto(mr_escalated_done) struct mr_escalated made = { 0 };
	struct mr_escalation what = {
		.severity = MR_LEVEL_MEDIUM, .reason = o->reason, .source = o->source, .related = o->related
	};
	struct mr_error *err = &cli->err;

	if (o->severity && mr_level_parse(o->severity, &what.severity, err) != MR_OK)
		return cli_usage(cli, "option '--severity': %s; %s", err->message, err->hint);
	TRY_CLI(cli_know_self(cli, err));
	what.text = operands_text(cli, 0);
	enum mr_rc rc = mr_escalate(cli->room, &cli->self, &what, o->force, cli->dry_run, &made, err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, err);
	if (cli->json)
		escalated_json(cli, &made, o->source);
	else if (!cli->dry_run)
		fence_addf(&cli->out, "%s\n", made.id);
	else
		fence_addf(&cli->out, "nothing was done; it would be told to %.65536s\n", joined(cli, &made.to));
	cli->changed = !cli->dry_run;
	if (!cli_flush(cli))
		return cli->changed ? EXIT_DOUBT : EXIT_FAILED;
	if (made.repeated)
		cli_warn(cli, "the same was escalated before and is open: nobody is told again (--force tells them)");
	return rc == MR_OK ? EXIT_DONE : cli_fail(cli, err);
}

/* ---- What becomes of it ---- */

int
cmd_escalate_ack(struct cli *cli, const struct escalate_options *o)
{
	bool changed = false;

	TRY_CLI(mr_escalation_ack(cli->room, &cli->self, cli->argv[0], &changed, &cli->err));
	if (cli->json)
		return cmd_escalate_show(cli, o);
	fence_addf(&cli->out, changed ? "acknowledged %s\n" : "%s was acknowledged before\n", cli->argv[0]);
	return EXIT_DONE;
}

int
cmd_escalate_close(struct cli *cli, const struct escalate_options *o)
{
	if (!o->reason || !o->reason[0])
		return cli_usage(cli, "--reason TEXT is missing: it says how the escalation was settled");
	TRY_CLI(mr_escalation_close(cli->room, &cli->self, cli->argv[0], o->reason, &cli->err));
	if (cli->json)
		return cmd_escalate_show(cli, o);
	fence_addf(&cli->out, "closed %s\n", cli->argv[0]);
	return EXIT_DONE;
}

static void
say_raised(void *ctx, const struct mr_escalation *e, const struct mr_escalated *told)
{
	struct listing *list = ctx;
	struct cli *cli = list->cli;

	if (list_escalation(list, e))
		return;
	fence_addf(&cli->out, "%s  %s%s  ", e->id, mr_level_word(e->severity), e->raised > 0 ? " (raised)" : "");
	out_styled(cli, &cli->out, STYLE_PLAIN, e->text);
	fence_addf(&cli->out, "  told: %.65536s\n", joined(cli, &told->to));
}

int
cmd_escalate_stale(struct cli *cli, const struct escalate_options *)
{
	mr_auto(list_done) struct listing list = { .cli = cli };

	TRY_CLI(mr_escalation_stale(cli->room, &cli->self, cli->dry_run, say_raised, &list, &cli->err));
	if (!cli->json && list.n == 0)
		buf_adds(&cli->out, "nothing is stale\n");
	return EXIT_DONE;
}

/* A first word that is one of ours is always that word: trouble must not be on record by a typing error, nor be left
 * out because its text began with one. */
int
cmd_escalate(struct cli *cli, const struct escalate_options *o)
{
	for (const struct subword *s = cli->cmd->words; s->word && cli->argc > 0; s++) {
		if (strcmp(cli->argv[0], s->word) != 0)
			continue;
		if (s->max_args >= 0 && cli->argc - 1 > s->max_args)
			return cli_usage(cli,
			    "usage: mailroom escalate %s %s; a text that begins with '%s': mailroom escalate new %s ...",
			    s->word, s->operands, s->word, s->word);
		return subword_run(cli);
	}
	return cli->argc == 0 ? subword_run(cli) : cmd_escalate_new(cli, o);
}
