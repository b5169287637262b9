/* SPDX-License-Identifier: MIT */
/* mailroom escalate: trouble that somebody must see to, kept on record until it is closed. */
#include "base/clock.h"
#include "cli/subword.h"
#include "helptext.h"

/* ---- Showing ---- */

static void
json_escalation(struct cli *cli, const struct mr_escalation *e)
{
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "id", e->id);
	json_key_str(&j, "severity", mr_level_word(e->severity));
	json_key_str(&j, "original_severity", mr_level_word(e->original));
	json_key_str(&j, "status", mr_escalation_status_word(e->status));
	json_key_str(&j, "text", e->text);
	json_key_str(&j, "reason", *e->reason ? e->reason : NULL);
	json_key_str(&j, "source", *e->source ? e->source : NULL);
	json_key_str(&j, "related", *e->related ? e->related : NULL);
	json_key_str(&j, "escalated_by", e->by);
	json_key_time(&j, "escalated_at", e->at_ms);
	json_key_str(&j, "acked_by", *e->acked_by ? e->acked_by : NULL);
	json_key_time(&j, "acked_at", e->acked_ms);
	json_key_str(&j, "closed_by", *e->closed_by ? e->closed_by : NULL);
	json_key_time(&j, "closed_at", e->closed_ms);
	json_key_str(&j, "closed_reason", *e->closed_reason ? e->closed_reason : NULL);
	json_key_int(&j, "reescalation_count", (int64_t)e->raised);
	json_key_time(&j, "last_reescalated_at", e->raised_ms);
	json_key_bool(&j, "mailed", e->mailed);
	out_json_line(cli, &j);
}

struct listing {
	struct cli *cli;
	struct table table;
};

static bool
list_one(void *ctx, const struct mr_escalation *e)
{
	struct listing *l = ctx;
	mr_auto(buf_done) struct buf when = BUF_INIT;

	if (l->cli->json) {
		json_escalation(l->cli, e);
		return true;
	}
	if (l->table.cells.n == 0) {
		static const char *const heading[] = { "ID", "SEVERITY", "STATUS", "BY", "SINCE", "TEXT" };

		for (size_t i = 0; i < 6; i++)
			(void)table_add(&l->table, heading[i]);
	}
	text_when(&when, e->at_ms);
	return table_add(&l->table, e->id) && table_add(&l->table, mr_level_word(e->severity)) &&
	       table_add(&l->table, mr_escalation_status_word(e->status)) && table_name(&l->table, e->by) &&
	       table_add(&l->table, buf_z(&when)) && table_name(&l->table, e->text);
}

static int
run_list(struct cli *cli)
{
	const struct escalate_options *o = cli->opts;
	struct listing l = { .cli = cli, .table = { .columns = 6 } };
	struct mr_error err = { 0 };
	bool all = o->all;

	if (mr_escalation_each(cli->room, all, list_one, &l, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!cli->json && l.table.cells.n == 0)
		fence_addf(&cli->out, "no %sescalations\n", all ? "" : "open ");
	else if (!cli->json)
		table_print(cli, &l.table, &cli->out);
	return EXIT_DONE;
}

static void
add_line(struct cli *cli, struct buf *out, const char *name, const char *value)
{
	if (!*value)
		return;
	buf_addf(out, "%-10s ", name);
	out_styled(cli, out, STYLE_PLAIN, value);
	buf_addc(out, '\n');
}

static void
add_event(struct cli *cli, struct buf *out, const char *name, const char *who, int64_t ms)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char at[RFC3339_LEN + 1];

	if (ms == 0)
		return;
	time_rfc3339(ms, at);
	buf_addf(&text, "%s%s%s", at, *who ? " by " : "", who);
	add_line(cli, out, name, buf_z(&text));
}

static int
run_show(struct cli *cli)
{
	mr_auto(mr_escalation_done) struct mr_escalation e = { 0 };
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error err = { 0 };

	enum mr_rc rc = mr_escalation_get(cli->room, cli->argv[0], &e, &err);

	if (rc == MR_NOTFOUND)
		(void)mr_hint(&err, "mailroom escalate list shows them; if it is a text: mailroom escalate new %s ...",
		    cli->subword);
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		json_escalation(cli, &e);
		return EXIT_DONE;
	}
	add_line(cli, &text, "id", e.id);
	add_line(cli, &text, "severity", mr_level_word(e.severity));
	add_line(cli, &text, "status", mr_escalation_status_word(e.status));
	add_line(cli, &text, "text", e.text);
	add_line(cli, &text, "reason", e.reason);
	add_line(cli, &text, "source", e.source);
	add_line(cli, &text, "related", e.related);
	add_event(cli, &text, "made", e.by, e.at_ms);
	add_event(cli, &text, "raised", "", e.raised_ms);
	add_event(cli, &text, "seen", e.acked_by, e.acked_ms);
	add_event(cli, &text, "closed", e.closed_by, e.closed_ms);
	add_line(cli, &text, "because", e.closed_reason);
	if (!e.mailed)
		add_line(cli, &text, "mail", "not everybody on its route was told yet");
	out_fenced(cli, &text);
	return EXIT_DONE;
}

/* ---- Making one ---- */

static void
json_delivery(struct json *j, const char *target, const char *error)
{
	json_open(j, '{');
	json_key_str(j, "target", target);
	json_key_str(j, "channel", "mail");
	json_key_bool(j, "created", error == NULL);
	json_key_bool(j, "persisted", error == NULL);
	if (error)
		json_key_str(j, "error", error);
	json_close(j);
}

static void
json_escalated(struct cli *cli, const struct mr_escalated *e)
{
	const struct escalate_options *o = cli->opts;
	const char *source = o->source;
	struct json j = JSON_INIT(&cli->out);

	json_open(&j, '{');
	json_key_str(&j, "id", cli->dry_run ? NULL : e->id);
	json_key_str(&j, "severity", mr_level_word(e->severity));
	json_key(&j, "actions");
	json_open(&j, '[');
	json_str(&j, STR("record"));
	for (size_t i = 0; i < e->to.n; i++) {
		mr_auto(buf_done) struct buf action = BUF_INIT;

		buf_addf(&action, "mail:%s", e->to.v[i]);
		json_str(&j, buf_str(&action));
	}
	json_close(&j);
	json_key_names(&j, "targets", &e->to);
	json_key(&j, "delivery");
	json_open(&j, '[');
	for (size_t i = 0; i < e->to.n; i++)
		json_delivery(&j, e->to.v[i], NULL);
	for (size_t i = 0; i < e->failed.n; i++) {
		const char *colon = strstr(e->failed.v[i], ": ");
		mr_auto(buf_done) struct buf target = BUF_INIT;

		buf_add(&target, (struct mr_str){ e->failed.v[i],
				     colon ? (size_t)(colon - e->failed.v[i]) : strlen(e->failed.v[i]) });
		json_delivery(&j, buf_z(&target), colon ? colon + 2 : "");
	}
	json_close(&j);
	json_key_str(&j, "status", e->failed.n > 0 ? "partial_failure" : "ok");
	json_key_bool(&j, "repeated", e->repeated);
	if (source)
		json_key_str(&j, "source", source);
	out_json_line(cli, &j);
}

static void
say_escalated(struct cli *cli, const struct mr_escalated *e)
{
	if (cli->json) {
		json_escalated(cli, e);
		return;
	}
	if (!cli->dry_run)
		fence_addf(&cli->out, "%s\n", e->id);
	else
		buf_addf(&cli->out, "nothing was done; it would be told to");
	for (size_t i = 0; cli->dry_run && i < e->to.n; i++)
		fence_addf(&cli->out, "%s %s%s", i > 0 ? "," : "", e->to.v[i], i + 1 == e->to.n ? "\n" : "");
}

static int
run_new(struct cli *cli)
{
	const struct escalate_options *o = cli->opts;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(mr_escalated_done) struct mr_escalated made = { 0 };
	struct mr_escalation what = {
		.severity = MR_LEVEL_MEDIUM, .reason = o->reason, .source = o->source, .related = o->related
	};
	const char *severity = o->severity;
	struct mr_error err = { 0 };

	if (severity && mr_level_parse(severity, &what.severity, &err) != MR_OK)
		return cli_usage(cli, "option '--severity': %s; %s", err.message, err.hint);
	if (cli_know_self(cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	for (int i = 0; i < cli->argc; i++)
		buf_addf(&text, "%s%s", i > 0 ? " " : "", cli->argv[i]);
	what.text = buf_z(&text);
	enum mr_rc rc = mr_escalate(cli->room, &cli->self, &what, o->force, cli->dry_run, &made, &err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &err);
	say_escalated(cli, &made);
	cli->changed = !cli->dry_run;
	if (!cli_flush(cli))
		return cli->changed ? EXIT_DOUBT : EXIT_FAILED;
	if (made.repeated)
		cli_warn(cli, "the same was escalated before and is open: nobody is told again (--force does)");
	return rc == MR_OK ? EXIT_DONE : cli_fail(cli, &err);
}

/* ---- What becomes of it ---- */

static int
run_ack(struct cli *cli)
{
	struct mr_error err = { 0 };
	bool changed = false;

	if (mr_escalation_ack(cli->room, &cli->self, cli->argv[0], &changed, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json)
		return run_show(cli);
	fence_addf(&cli->out, changed ? "acknowledged %s\n" : "%s was acknowledged before\n", cli->argv[0]);
	return EXIT_DONE;
}

static int
run_close(struct cli *cli)
{
	const struct escalate_options *o = cli->opts;
	const char *reason = o->reason;
	struct mr_error err = { 0 };

	if (!reason || !*reason)
		return cli_usage(cli, "how was it settled? say so with --reason TEXT");
	if (mr_escalation_close(cli->room, &cli->self, cli->argv[0], reason, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json)
		return run_show(cli);
	fence_addf(&cli->out, "closed %s\n", cli->argv[0]);
	return EXIT_DONE;
}

struct raising {
	struct cli *cli;
	size_t n;
};

static void
say_raised(void *ctx, const struct mr_escalation *e, const struct mr_escalated *told)
{
	struct raising *r = ctx;

	r->n++;
	if (r->cli->json) {
		json_escalation(r->cli, e);
		return;
	}
	fence_addf(&r->cli->out, "%s  %s%s  ", e->id, mr_level_word(e->severity), e->raised > 0 ? " (raised)" : "");
	out_styled(r->cli, &r->cli->out, STYLE_PLAIN, e->text);
	buf_addf(&r->cli->out, "  told: ");
	for (size_t i = 0; i < told->to.n; i++)
		fence_addf(&r->cli->out, "%s%s", i > 0 ? ", " : "", told->to.v[i]);
	buf_addc(&r->cli->out, '\n');
}

static int
run_stale(struct cli *cli)
{
	struct raising r = { .cli = cli };
	struct mr_error err = { 0 };
	bool dry_run = cli->dry_run;

	if (mr_escalation_stale(cli->room, &cli->self, dry_run, say_raised, &r, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!cli->json && r.n == 0)
		buf_adds(&cli->out, "nothing is stale\n");
	return EXIT_DONE;
}

static const struct subword words[] = {
	{ "new", "TEXT...", 1, -1, true, run_new },
	{ "list", "[--all]", 0, 0, false, run_list },
	{ "show", "ID", 1, 1, false, run_show },
	{ "ack", "ID", 1, 1, true, run_ack },
	{ "close", "ID --reason TEXT", 1, 1, true, run_close },
	{ "stale", "[-n]", 0, 0, true, run_stale },
	{ 0 },
};

/* A first word that is one of ours is always that word: trouble must not be on record by a typing error, nor be left
 * out because its text began with one. */
int
cmd_escalate(struct cli *cli)
{
	for (const struct subword *s = words; s->word && cli->argc > 0; s++) {
		if (strcmp(cli->argv[0], s->word) != 0)
			continue;
		if (s->max_args >= 0 && cli->argc - 1 > s->max_args)
			return cli_usage(cli,
			    "usage: mailroom escalate %s %s; a text that begins with '%s': mailroom escalate new %s "
			    "...",
			    s->word, s->operands, s->word, s->word);
		return subword_run(cli, words);
	}
	return cli->argc == 0 ? subword_run(cli, words) : run_new(cli);
}
