/* SPDX-License-Identifier: MIT */
/* mailroom nudge */
#include "nudges.h"

#include "base/clock.h"
#include "helptext.h"

static bool
read_mode(struct cli *cli, enum mr_nudge_mode *ret)
{
	const struct nudge_options *o = cli->opts;
	static const char *const words[] = {
		[MR_NUDGE_WAIT_IDLE] = "wait-idle", [MR_NUDGE_QUEUE] = "queue", [MR_NUDGE_IMMEDIATE] = "immediate"
	};
	const char *word = o->mode;

	if (!word)
		return true;
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(words[i], word) == 0) {
			*ret = (enum mr_nudge_mode)i;
			return true;
		}
	(void)cli_usage(cli, "option '--mode': '%.40s' is none of wait-idle, queue, immediate", word);
	return false;
}

static bool
read_options(struct cli *cli, struct mr_nudge *nudge, struct mr_nudge_options *how)
{
	const struct nudge_options *o = cli->opts;
	int64_t from_ms = clock_now_ms() + o->not_before_ms;

	if (!read_mode(cli, &how->mode))
		return false;
	how->patience_ms = o->patience_ms;
	if (o->priority)
		nudge->priority = *o->priority;
	how->force = o->force;
	if (o->urgent)
		nudge->priority = MR_URGENT;
	nudge->kind = o->kind;
	nudge->thread = o->thread;
	nudge->answer_wanted = o->answer_wanted;
	nudge->not_before_ms = o->not_before_ms > 0 ? from_ms : 0;
	nudge->expires_ms = o->ttl_ms > 0 ? from_ms + o->ttl_ms : 0;
	return true;
}

/* -m, the second operand, -f, or stdin, without the line end that a heredoc has. */
static int
read_text(struct cli *cli, struct buf *text)
{
	const struct nudge_options *o = cli->opts;
	const char *given = o->message, *file = o->file;

	if (cli->argc > 1 && given)
		return cli_usage(cli, "the text is given twice, with -m and without");
	if (o->stdin_ && !file)
		file = "-";
	int code = cli_body(cli, cli->argc > 1 ? cli->argv[1] : given, file, text);

	if (code != EXIT_DONE)
		return code;
	if (memchr(text->ptr, '\0', text->len))
		return cli_usage(cli, "the text has a NUL byte");
	while (text->len > 0 && text->ptr[text->len - 1] == '\n')
		text->ptr[--text->len] = '\0';
	return EXIT_DONE;
}

static void
print_done(struct cli *cli, const char *agent, const struct mr_nudged *done)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "agent", agent);
		json_key_str(&j, "way", nudges_way_word(done->way));
		json_key_str(&j, "why", done->why[0] ? done->why : NULL);
		json_key_bool(&j, "coalesced", done->coalesced);
		out_json_line(cli, &j);
		return;
	}
	nudges_say_way(&cli->out, agent, done);
	buf_addc(&cli->out, '\n');
}

/* ---- An answer ---- */

static int
escalate(struct cli *cli, const char *agent, const char *kind, int64_t waited_ms)
{
	const struct nudge_options *o = cli->opts;
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
	const char *to[] = { o->escalate_to, NULL };
	struct mr_error err = { 0 };
	char time[24];

	if (!to[0])
		return EXIT_NOTHING;
	duration_text(waited_ms, time);
	buf_addf(&subject, "no answer from %s", agent);
	buf_addf(&body, "%s did not answer a nudge (%s) within %s.\n", agent, kind ? kind : "no kind", time);
	struct mr_draft draft = { .to = to,
		.subject = buf_z(&subject),
		.body = buf_z(&body),
		.body_len = body.len,
		.type = "health_escalation",
		.priority = MR_URGENT };
	enum mr_rc rc = mr_send(cli->room, &cli->self, &draft, &receipt, &err);

	if (rc != MR_OK && rc != MR_INDOUBT)
		return cli_fail(cli, &err);
	for (size_t i = 0; i < receipt.warnings.n; i++)
		cli_warn(cli, "%s", receipt.warnings.v[i]);
	cli_warn(cli, "%s was told: %s", to[0], receipt.id);
	return EXIT_NOTHING;
}

static int
await(struct cli *cli, const struct mr_nudge *nudge, int64_t since_ms, int64_t wait_ms)
{
	mr_auto(free_ptr) char *text = NULL;
	struct mr_error err = { 0 };
	const char *agent = cli->argv[0];

	if (!cli_flush(cli))
		return EXIT_FAILED;
	enum mr_rc rc = mr_nudge_answer(cli->room, &cli->self, agent, since_ms, wait_ms, &text, &err);

	if (rc == MR_EMPTY) {
		cli_warn(cli, "%s", err.message);
		return escalate(cli, agent, nudge->kind, wait_ms);
	}
	if (rc != MR_OK)
		return cli_fail(cli, &err);
	struct mr_nudge answer = { .from = agent, .text = text, .kind = "nudge_response", .thread = "", .times = 1 };

	return nudges_print_one(cli, &answer) ? EXIT_DONE : EXIT_FAILED;
}

int
cmd_nudge(struct cli *cli)
{
	const struct nudge_options *o = cli->opts;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_nudge nudge = { 0 };
	struct mr_nudge_options how = { 0 };
	struct mr_nudged done = { 0 };
	struct mr_error err = { 0 };

	int64_t wait_ms = o->await_ms, since_ms = clock_now_ms();

	if (!read_options(cli, &nudge, &how))
		return EXIT_USAGE;
	budget_begin(cli);
	if (wait_ms >= 0 && !nudge.answer_wanted)
		return cli_usage(cli, "--await goes with --answer-wanted");
	if (o->escalate_to && wait_ms < 0)
		return cli_usage(cli, "--escalate-to goes with --await");
	int code = read_text(cli, &text);

	if (code != EXIT_DONE)
		return code;
	nudge.text = buf_z(&text);
	if (mr_nudge_send(cli->room, &cli->self, cli->argv[0], &nudge, &how, &done, &err) != MR_OK)
		return cli_fail(cli, &err);
	cli->changed = done.way != MR_NUDGE_SKIPPED;
	print_done(cli, cli->argv[0], &done);
	return wait_ms >= 0 ? await(cli, &nudge, since_ms, wait_ms) : EXIT_DONE;
}
