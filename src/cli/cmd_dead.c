/* SPDX-License-Identifier: MIT */
/* mailroom dead: what could not be done or delivered, and what becomes of it. */
#include "cli/subword.h"
#include "helptext.h"

/* ---- list, show ---- */

struct listing {
	struct cli *cli;
	size_t n;
};

static bool
list_one(void *ctx, const char *queue, const struct mr_message *msg)
{
	struct listing *l = ctx;
	mr_auto(buf_done) struct buf line = BUF_INIT;

	l->n++;
	if (l->cli->json) {
		struct json j = JSON_INIT(&l->cli->out);

		json_open(&j, '{');
		json_key_str(&j, "queue", *queue ? queue : NULL);
		json_message_keys(&j, msg, l->cli->room, false);
		out_json_line(l->cli, &j);
		return true;
	}
	text_line(l->cli, &line, msg);
	if (*queue && line.len > 0) {
		line.len--; /* the line break */
		buf_addf(&line, "  (failed in queue:%s)\n", queue);
	}
	(void)budget_add(l->cli, buf_str(&line));
	return true;
}

static int
run_list(struct cli *cli)
{
	struct listing l = { .cli = cli };
	struct mr_error err = { 0 };

	budget_begin(cli);
	if (mr_dead_each(cli->room, list_one, &l, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (l.n == 0 && !cli->json)
		buf_adds(&cli->out, "no dead letters\n");
	else if (!cli->json)
		budget_end(cli, "dead letter", "mailroom dead list --json");
	return EXIT_DONE;
}

static int
run_show(struct cli *cli)
{
	int code = EXIT_DONE;

	budget_begin(cli);
	for (int i = 0; i < cli->argc; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		char queue[MR_ADDRESS_MAX + 1] = "";
		struct mr_error err = { 0 };

		if (mr_dead_get(cli->room, cli->argv[i], &msg, queue, &err) != MR_OK) {
			code = cli_fail(cli, &err);
			continue;
		}
		if (cli->json) {
			struct json j = JSON_INIT(&cli->out);

			json_open(&j, '{');
			json_key_str(&j, "queue", *queue ? queue : NULL);
			json_message_keys(&j, &msg, cli->room, true);
			out_json_line(cli, &j);
		} else {
			(void)budget_message(cli, &msg, 0);
		}
	}
	if (!cli->json)
		budget_end(cli, "dead letter", "mailroom dead show ID --json");
	return code;
}

/* ---- retry, drop ---- */

static void
say_retried(struct cli *cli, const char *given, const struct mr_receipt *receipt)
{
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "id", receipt->id);
		json_key_names(&j, "to", &receipt->to);
		json_key_names(&j, "not_live", &receipt->not_live);
		json_key_names(&j, "missing", &receipt->missing);
		json_key_bool(&j, "repeated", receipt->repeated);
		out_json_line(cli, &j);
		return;
	}
	fence_addf(&cli->out, "%s\n", receipt->id);
	for (size_t i = 0; i < receipt->not_live.n; i++)
		cli_warn(cli, "%s is not live; the mail waits", receipt->not_live.v[i]);
	if (receipt->repeated)
		cli_warn(cli, "%s had been delivered again already; now it is removed from dead letters", given);
}

/* The same message may have failed in several places: each is a letter of its own. */
static void
say_what_is_left(struct cli *cli, const char *given)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char queue[MR_ADDRESS_MAX + 1] = "";
	struct mr_error ignored = { 0 };

	if (mr_dead_get(cli->room, given, &msg, queue, &ignored) != MR_OK)
		return;
	if (*queue)
		cli_warn(cli, "%s has failed in queue:%s, too: say it again for that one", given, queue);
	else
		cli_warn(cli, "another copy of %s is among the dead letters: say it again for that one", given);
}

static int
run_retry(struct cli *cli)
{
	const struct dead_options *o = cli->opts;
	const char *const *to = o->to[0] ? o->to : NULL;
	int code = EXIT_DONE;
	size_t n = 0;

	while (o->to[n])
		n++;
	if (n > 64)
		return cli_usage(cli, "too many --to");
	for (int i = 0; i < cli->argc; i++) {
		struct mr_receipt receipt = { 0 };
		struct mr_error err = { 0 };
		enum mr_rc rc = mr_dead_retry(cli->room, &cli->self, cli->argv[i], to, &receipt, &err);

		if (rc == MR_OK || rc == MR_INDOUBT)
			say_retried(cli, cli->argv[i], &receipt);
		if (rc == MR_OK)
			say_what_is_left(cli, cli->argv[i]);
		else
			code = cli_fail(cli, &err);
		mr_receipt_done(&receipt);
	}
	return code;
}

static int
run_drop(struct cli *cli)
{
	const struct dead_options *o = cli->opts;
	int code = EXIT_DONE;

	if (!o->force)
		return cli_usage(cli, "this deletes mail for good: say so with --force");
	for (int i = 0; i < cli->argc; i++) {
		struct mr_error err = { 0 };

		if (mr_dead_drop(cli->room, &cli->self, cli->argv[i], &err) != MR_OK) {
			code = cli_fail(cli, &err);
			continue;
		}
		if (cli->json) {
			struct json j = JSON_INIT(&cli->out);

			json_open(&j, '{');
			json_key_str(&j, "id", cli->argv[i]);
			json_key_str(&j, "state", "dropped");
			out_json_line(cli, &j);
		} else {
			fence_addf(&cli->out, "dropped %s\n", cli->argv[i]);
		}
		say_what_is_left(cli, cli->argv[i]);
	}
	return code;
}

static const struct subword words[] = {
	{ "list", "", 0, 0, false, run_list },
	{ "show", "ID...", 1, -1, false, run_show },
	{ "retry", "ID... [--to AGENT]", 1, -1, true, run_retry },
	{ "drop", "ID... --force", 1, -1, true, run_drop },
	{ 0 },
};

int
cmd_dead(struct cli *cli)
{
	return subword_run(cli, words);
}
