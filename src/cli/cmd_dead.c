/* SPDX-License-Identifier: MIT */
/* mailroom dead: what could not be done or delivered, and what becomes of it. */
#include "helptext.h"

/* ---- list, show ---- */

static bool
list_one(void *ctx, const char *queue, const struct mr_message *msg)
{
	struct listing *list = ctx;
	struct cli *cli = list->cli;
	mr_auto(buf_done) struct buf where = BUF_INIT;

	list->n++;
	if (cli->json) {
		out_json_message(cli, CELLS(kv_opt("queue", queue)), msg, false, NULL);
		return true;
	}
	if (*queue)
		buf_addf(&where, "  (failed in queue:%s)", queue);
	cli->out.failed |= where.failed;
	return budget_line(cli, msg, buf_z(&where));
}

int
cmd_dead_list(struct cli *cli, const struct dead_options *o)
{
	struct listing list = { .cli = cli };
	size_t all = 0;

	budget_begin(cli);
	TRY_CLI(mr_dead_each(cli->room, (size_t)o->limit, list_one, &list, &all, &cli->err));
	if (!cli->json && all > list.n)
		budget_left(cli, all - list.n);
	if (cli->json || list.n > 0)
		budget_end(cli, "dead letter", "mailroom dead list --json");
	else
		buf_adds(&cli->out, "no dead letters\n");
	return EXIT_DONE;
}

int
cmd_dead_show(struct cli *cli, const struct dead_options *)
{
	int code = EXIT_DONE;

	budget_begin(cli);
	for (int i = 0; i < cli->argc; i++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		char queue[MR_ADDRESS_MAX + 1] = "";

		if (mr_dead_get(cli->room, cli->argv[i], &msg, queue, &cli->err) != MR_OK)
			code = cli_fail(cli, &cli->err);
		else if (cli->json)
			out_json_message(cli, CELLS(kv_opt("queue", queue)), &msg, true, NULL);
		else
			(void)budget_message(cli, &msg, 0);
	}
	budget_end(cli, "dead letter", "mailroom dead show ID --json");
	return code;
}

/* ---- retry, drop ---- */

/* The same message may have failed in several places: each is a letter of its own. */
static void
say_what_is_left(struct cli *cli, const char *given)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	char queue[MR_ADDRESS_MAX + 1] = "";

	if (mr_dead_get(cli->room, given, &msg, queue, IGNORED) != MR_OK)
		return;
	if (*queue)
		cli_warn(cli, "%s has failed in queue:%s, too: repeat the command for that copy", given, queue);
	else
		cli_warn(cli, "another copy of %s is among the dead letters: repeat the command for that one", given);
}

int
cmd_dead_retry(struct cli *cli, const struct dead_options *o)
{
	int code = EXIT_DONE;

	for (int i = 0; i < cli->argc; i++) {
		mr_auto(mr_receipt_done) struct mr_receipt receipt = { 0 };
		enum mr_rc rc =
		    mr_dead_retry(cli->room, &cli->self, cli->argv[i], o->to[0] ? o->to : NULL, &receipt, &cli->err);

		if ((rc == MR_OK || rc == MR_INDOUBT) &&
		    !out_json(cli, kv_str("id", receipt.id), kv_names("to", &receipt.to),
			kv_names("not_live", &receipt.not_live), kv_names("missing", &receipt.missing),
			kv_bool("repeated", receipt.repeated))) {
			fence_addf(&cli->out, "%s\n", receipt.id);
			for (size_t k = 0; k < receipt.not_live.n; k++)
				cli_warn(cli, "%s is not live; the mail waits", receipt.not_live.v[k]);
			if (receipt.repeated)
				cli_warn(cli, "%s was already delivered again; it is now removed from the dead letters",
				    cli->argv[i]);
		}
		if (rc == MR_OK)
			say_what_is_left(cli, cli->argv[i]);
		else
			code = cli_fail(cli, &cli->err);
	}
	return code;
}

int
cmd_dead_drop(struct cli *cli, const struct dead_options *o)
{
	int code = EXIT_DONE;

	if (!o->force)
		return cli_usage(cli, "this deletes mail for good: give --force to confirm");
	for (int i = 0; i < cli->argc; i++) {
		if (mr_dead_drop(cli->room, &cli->self, cli->argv[i], &cli->err) != MR_OK) {
			code = cli_fail(cli, &cli->err);
			continue;
		}
		if (!out_json(cli, kv_str("id", cli->argv[i]), kv_str("state", "dropped")))
			fence_addf(&cli->out, "dropped %s\n", cli->argv[i]);
		say_what_is_left(cli, cli->argv[i]);
	}
	return code;
}
