/* SPDX-License-Identifier: MIT */
/* mail_check.c - gt mail check: for hooks. 0 there is unread mail, 1 there is none; with --inject always 0. */
#include "cli/gt/gt.h"
#include "cli/printout.h"
#include "helptext.h"

/* A hook must never stop its harness: what goes wrong is said on stderr at most, also outside a room. */
static int
inject(struct cli *cli)
{
	const struct gt_mail_check_options *o = cli->opts;
	struct mr_error err = { 0 };
	struct mr_injection *inj = NULL;

	if (cli_open_room(cli, &err) != MR_OK || cli_know_self(cli, &err) != MR_OK)
		return EXIT_DONE;
	const char *identity = o->identity;

	if (identity && mr_self_named(cli->room, identity, &cli->self, &err) != MR_OK)
		return EXIT_DONE;
	enum mr_rc rc = mr_inject_open(cli->room, &cli->self, MR_INJECT_REMINDER, &inj, &err);

	if (rc == MR_OK) {
		buf_adds(&cli->out, mr_inject_text(inj));
		if (cli_flush(cli))
			rc = mr_inject_shown(inj, &err);
	}
	if (rc != MR_OK && rc != MR_EMPTY)
		cli_warn(cli, "%s", err.message);
	mr_inject_close(inj);
	return EXIT_DONE;
}

static void
print_json(struct cli *cli, size_t unread)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json j = JSON_INIT(&text);

	json_open(&j, '{');
	json_key_str(&j, "address", gt_spelled(cli, cli->self.agent));
	json_key_int(&j, "unread", (int64_t)unread);
	json_key_bool(&j, "has_new", unread > 0);
	json_close(&j);
	gt_json_out(cli, &text);
}

static int
run_check(struct cli *cli)
{
	const struct gt_mail_check_options *o = cli->opts;
	struct mr_error err = { 0 };
	struct printout l = { .cli = cli };
	size_t unread = 0;

	if (o->inject)
		return inject(cli);
	if (cli_open_room(cli, &err) != MR_OK || cli_know_self(cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (!gt_act_as(cli, o->identity))
		return EXIT_FAILED;
	if (mr_check_all(cli->room, cli->self.agent, printout_trouble, &l, &unread, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json) {
		print_json(cli, unread);
		return EXIT_DONE;
	}
	if (unread == 0)
		buf_adds(&cli->out, "No new mail\n");
	else
		fence_addf(&cli->out, "📬 %zu unread message%s\n", unread, unread == 1 ? "" : "s");
	return unread > 0 ? EXIT_DONE : EXIT_FAILED;
}

const struct cmd gt_mail_check = {
	.name = "gt mail check",
	.help = &help_gt_mail_check,
	.max_args = 0,
	.run = run_check,
};
