/* SPDX-License-Identifier: MIT */
/* escalate.c - gt escalate ...: trouble that somebody must see to. */
#include "cli/gt/gt.h"
#include "helptext.h"

/* ---- Making one ---- */

/* One entry for who is to be told. We deliver by mail alone, beside the record itself. */
static void
json_delivery(struct cli *cli, struct json *j, const struct mr_escalated *e, const char *target, const char *error)
{
	bool record = strcmp(target, "bead") == 0;

	json_open(j, '{');
	json_key_str(j, "target", record ? e->id : gt_spelled(cli, target));
	json_key_str(j, "channel", record ? "bead" : "mail");
	json_key_bool(j, "created", !error);
	json_key_bool(j, "persisted", !error);
	json_key_bool(j, "runtime_notified", false);
	json_key_bool(j, "annotated", record);
	json_key_str(j, "severity", mr_level_word(e->severity));
	if (error)
		json_key_str(j, "error", error);
	json_close(j);
}

static void
print_json(struct cli *cli, const struct mr_escalated *e, const char *source)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);

	json_open(&j, '{');
	json_key_str(&j, "id", e->id);
	json_key_str(&j, "severity", mr_level_word(e->severity));
	json_key(&j, "actions");
	json_open(&j, '[');
	json_str(&j, STR("bead"));
	for (size_t i = 0; i < e->to.n; i++) {
		mr_auto(buf_done) struct buf action = BUF_INIT;

		buf_addf(&action, "mail:%s", e->to.v[i]);
		json_str(&j, buf_str(&action));
	}
	json_close(&j);
	json_key_names(&j, "targets", &e->to);
	json_key(&j, "delivery");
	json_open(&j, '[');
	json_delivery(cli, &j, e, "bead", NULL);
	for (size_t i = 0; i < e->to.n; i++)
		json_delivery(cli, &j, e, e->to.v[i], NULL);
	for (size_t i = 0; i < e->failed.n; i++) {
		const char *colon = strstr(e->failed.v[i], ": "); /* an address may have one, as queue:oncall */
		size_t len = colon ? (size_t)(colon - e->failed.v[i]) : strlen(e->failed.v[i]);
		const char *name = arena_dup(&cli->own, (struct mr_str){ e->failed.v[i], len });

		json_delivery(cli, &j, e, name ? name : "", colon ? colon + 2 : "not delivered");
	}
	json_close(&j);
	json_key_str(&j, "status", e->failed.n > 0 ? "partial_failure" : "ok");
	if (source)
		json_key_str(&j, "source", source);
	json_close(&j);
	gt_json_out(cli, &text);
}

static void
print_text(struct cli *cli, const struct mr_escalated *e, bool dry)
{
	fence_addf(&cli->out, "%s %s\n",
	    dry           ? "would escalate as"
	    : e->repeated ? "✓ Already escalated:"
			  : "🚨 Escalated:",
	    dry ? mr_level_word(e->severity) : e->id);
	if (!dry)
		fence_addf(&cli->out, "  Severity: %s\n", mr_level_word(e->severity));
	for (size_t i = 0; i < e->to.n; i++)
		fence_addf(&cli->out, "  Told: %s\n", gt_spelled(cli, e->to.v[i]));
	for (size_t i = 0; i < e->failed.n; i++)
		cli_warn(cli, "not told: %s", e->failed.v[i]);
}

static bool
join_operands(struct cli *cli, struct buf *text)
{
	for (int i = 0; i < cli->argc; i++)
		buf_addf(text, "%s%s", i > 0 ? " " : "", cli->argv[i]);
	return buf_ok(text);
}

static int
run_escalate(struct cli *cli)
{
	const struct gt_escalate_options *o = cli->opts;
	mr_auto(buf_done) struct buf text = BUF_INIT, stdin_text = BUF_INIT;
	struct mr_escalation what = { .severity = MR_LEVEL_MEDIUM };
	mr_auto(mr_escalated_done) struct mr_escalated done = { 0 };
	struct mr_error err = { 0 };
	const char *severity = o->severity, *reason = o->reason;
	bool dry = cli->dry_run;

	if (severity && mr_level_parse(severity, &what.severity, &err) != MR_OK)
		return cli_fail(cli, &err);
	int code = gt_body(cli, NULL, o->stdin_, &stdin_text);

	if (code != EXIT_DONE)
		return code;
	if (cli->argc > 1 &&
	    strcmp(cli->argv[0], "new") == 0) /* as 'mailroom escalate new', for a text that begins with a verb */
		cli->argv++, cli->argc--;
	if (cli->argc > 0 && !join_operands(cli, &text))
		cli->out.failed = true;
	/* The reason may come from standard input, where no shell reads it; without operands, all of it does. */
	what.text = cli->argc > 0 ? buf_z(&text) : buf_z(&stdin_text);
	what.reason = reason ? reason : cli->argc > 0 ? buf_z(&stdin_text) : "";
	what.source = o->source ? o->source : "";
	what.related = o->related ? o->related : "";
	if (!what.text[0])
		return cli_usage(cli, "escalate what? gt escalate TEXT");
	enum mr_rc rc = mr_escalate(cli->room, &cli->self, &what, false, dry, &done, &err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &err);
	cli->changed = !dry;
	if (cli->json)
		print_json(cli, &done, o->source);
	else
		print_text(cli, &done, dry);
	return EXIT_DONE;
}

/* ---- list, show ---- */

static void
json_one(struct cli *cli, struct json *j, const struct mr_escalation *e)
{
	json_open(j, '{');
	json_key_str(j, "id", e->id);
	json_key_str(j, "title", e->text);
	json_key_str(j, "status", mr_escalation_status_word(e->status));
	json_key_str(j, "severity", mr_level_word(e->severity));
	json_key_str(j, "reason", e->reason);
	json_key_str(j, "source", e->source);
	json_key_str(j, "escalated_by", gt_spelled(cli, e->by));
	json_key_time(j, "escalated_at", e->at_ms);
	json_key_str(j, "acked_by", gt_spelled(cli, e->acked_by));
	json_key_time(j, "acked_at", e->acked_ms);
	json_key_str(j, "closed_by", gt_spelled(cli, e->closed_by));
	json_key_str(j, "closed_reason", e->closed_reason);
	json_key_str(j, "related_bead", e->related);
	json_key_str(j, "original_severity", mr_level_word(e->original));
	json_key_int(j, "reescalation_count", (int64_t)e->raised);
	json_key_time(j, "last_reescalated_at", e->raised_ms);
	json_close(j);
}

static void
text_one(struct cli *cli, struct buf *out, const struct mr_escalation *e)
{
	buf_addf(out, "%s [%s] %s ", e->id, mr_level_word(e->severity), mr_escalation_status_word(e->status));
	gt_clean(out, e->text);
	buf_adds(out, "\n    from ");
	gt_clean(out, gt_spelled(cli, e->by));
	buf_adds(out, ", ");
	gt_text_when(out, e->at_ms);
	buf_addc(out, '\n');
}

struct listing {
	struct cli *cli;
	struct buf text;
	struct json json;
	size_t n;
};

static bool
list_one(void *ctx, const struct mr_escalation *e)
{
	struct listing *l = ctx;

	l->n++;
	if (l->cli->json)
		json_one(l->cli, &l->json, e);
	else
		text_one(l->cli, &l->text, e);
	return true;
}

static void
print_listing(struct listing *l, const char *nothing)
{
	struct cli *cli = l->cli;

	if (cli->json) {
		json_close(&l->json);
		gt_json_out(cli, &l->text);
	} else if (l->n == 0) {
		fence_addf(&cli->out, "%s\n", nothing);
	} else {
		out_fenced(cli, &l->text);
	}
	if (l->text.failed)
		cli->out.failed = true;
	buf_done(&l->text);
}

static int
run_list(struct cli *cli)
{
	const struct gt_escalate_list_options *o = cli->opts;
	struct listing l = { .cli = cli };
	struct mr_error err = { 0 };

	l.json = JSON_INIT(&l.text);
	if (cli->json)
		json_open(&l.json, '[');
	int code = EXIT_DONE;

	if (mr_escalation_each(cli->room, o->all, list_one, &l, &err) != MR_OK)
		code = cli_fail(cli, &err);
	print_listing(&l, "No escalations");
	return code;
}

static int
run_show(struct cli *cli)
{
	mr_auto(mr_escalation_done) struct mr_escalation e = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);
	struct mr_error err = { 0 };

	if (mr_escalation_get(cli->room, cli->argv[0], &e, &err) != MR_OK) {
		if (err.code == MR_NOTFOUND)
			(void)mr_hint(&err, "gt escalate list shows them; if it is a text: gt escalate new show ...");
		return cli_fail(cli, &err);
	}
	if (cli->json) {
		json_one(cli, &j, &e);
		gt_json_out(cli, &text);
		return EXIT_DONE;
	}
	text_one(cli, &text, &e);
	const char *const more[][2] = { { "Reason", e.reason }, { "Source", e.source }, { "Related", e.related },
		{ "Acked by", e.acked_by }, { "Closed by", e.closed_by }, { "Closed because", e.closed_reason } };

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
		if (!more[i][1][0])
			continue;
		buf_addf(&text, "    %s: ", more[i][0]);
		gt_clean(&text, more[i][1]);
		buf_addc(&text, '\n');
	}
	out_fenced(cli, &text);
	return EXIT_DONE;
}

/* ---- ack, close, stale ---- */

static int
run_ack(struct cli *cli)
{
	struct mr_error err = { 0 };
	bool changed = false;

	if (mr_escalation_ack(cli->room, &cli->self, cli->argv[0], &changed, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ %s: %s\n", changed ? "Acknowledged" : "Was acknowledged before", cli->argv[0]);
	return EXIT_DONE;
}

static int
run_close(struct cli *cli)
{
	const struct gt_escalate_close_options *o = cli->opts;
	struct mr_error err = { 0 };
	const char *reason = o->reason;

	if (!reason || !reason[0])
		return cli_usage(cli, "why is it over? --reason TEXT is required");
	if (mr_escalation_close(cli->room, &cli->self, cli->argv[0], reason, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = true;
	fence_addf(&cli->out, "✓ Closed: %s\n", cli->argv[0]);
	return EXIT_DONE;
}

static void
stale_one(void *ctx, const struct mr_escalation *e, const struct mr_escalated *told)
{
	(void)told;
	(void)list_one(ctx, e);
}

static int
run_stale(struct cli *cli)
{
	struct listing l = { .cli = cli };
	struct mr_error err = { 0 };
	bool dry = cli->dry_run;
	int code = EXIT_DONE;

	l.json = JSON_INIT(&l.text);
	if (cli->json)
		json_open(&l.json, '[');
	if (mr_escalation_stale(cli->room, &cli->self, dry, stale_one, &l, &err) != MR_OK)
		code = cli_fail(cli, &err);
	cli->changed = !dry && l.n > 0;
	print_listing(&l, "No stale escalations");
	return code;
}

/* ---- The commands ---- */

const struct cmd gt_escalate = {
	.name = "gt escalate",
	.help = &help_gt_escalate,
	.needs = CMD_SELF,
	.max_args = -1,
	.run = run_escalate,
};
const struct cmd gt_escalate_list = {
	.name = "gt escalate list",
	.help = &help_gt_escalate_list,
	.needs = CMD_ROOM,
	.run = run_list,
};
const struct cmd gt_escalate_show = {
	.name = "gt escalate show",
	.help = &help_gt_escalate_show,
	.needs = CMD_ROOM,
	.min_args = 1,
	.max_args = 1,
	.run = run_show,
};
const struct cmd gt_escalate_ack = {
	.name = "gt escalate ack",
	.help = &help_gt_escalate_ack,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_ack,
};
const struct cmd gt_escalate_close = {
	.name = "gt escalate close",
	.help = &help_gt_escalate_close,
	.needs = CMD_SELF,
	.min_args = 1,
	.max_args = 1,
	.run = run_close,
};
const struct cmd gt_escalate_stale = {
	.name = "gt escalate stale",
	.help = &help_gt_escalate_stale,
	.needs = CMD_SELF,
	.run = run_stale,
};
