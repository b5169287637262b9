/* SPDX-License-Identifier: MIT */
/* mailroom inbox: looking never consumes. */
#include "printout.h"
#include "helptext.h"

struct in_hand {
	struct printout *l;
	int64_t limit; /* 0: none */
};

static bool
print_work(void *ctx, const struct mr_message *msg)
{
	const struct in_hand *h = ctx;
	struct cli *cli = h->l->cli;

	if (h->limit > 0 && (int64_t)h->l->n >= h->limit)
		return false;
	h->l->n++;
	if (cli->json) {
		cli_json_message(cli, msg, false);
		return true;
	}
	(void)budget_line(cli, msg);
	return true;
}

static bool
count_work(void *ctx, const struct mr_message *msg)
{
	(void)msg;
	++*(size_t *)ctx;
	return true;
}

static void
say_empty(struct cli *cli, bool all)
{
	const struct inbox_options *o = cli->opts;
	struct mr_error ignored = { 0 };
	struct mr_counts counts = { 0 };

	bool filtered = filter_is_given(&o->filter);

	buf_addf(&cli->out, "no %smail for ", all ? "" : "unread ");
	text_name(cli, &cli->out, cli->self.agent);
	buf_adds(&cli->out, filtered ? " that matches" : "");
	if (!all)
		(void)mr_count(cli->room, cli->self.agent, &counts, &ignored);
	if (!all)
		(void)mr_queue_held(cli->room, cli->self.agent, NULL, count_work, &counts.held, &ignored);
	if (counts.held > 0)
		buf_addf(&cli->out, " (%zu held: see 'mailroom inbox --all')", counts.held);
	buf_addc(&cli->out, '\n');
}

int
cmd_inbox(struct cli *cli)
{
	const struct inbox_options *o = cli->opts;
	struct mr_scan scan = { .order = MR_BY_PRIORITY };
	struct printout l = { .cli = cli };
	struct mr_error err = { 0 };
	bool all = o->all;
	int code = EXIT_DONE;

	if (all && o->unread)
		return cli_usage(cli, "--all and --unread exclude each other");
	budget_begin(cli);
	scan.filter = filter_of(cli, &o->filter);
	scan.limit = (size_t)o->limit;
	scan.filter.unread = !all;
	scan.filter.folders = all ? MR_INBOX | MR_HELD : MR_INBOX;
	if (!cli->json)
		nudges_look(cli);
	if (!printout_run(&l, &scan, &code))
		return code;
	if (all && mr_queue_held(cli->room, cli->self.agent, &scan.filter, print_work,
		       &(struct in_hand){ &l, o->limit }, &err) != MR_OK)
		return cli_fail(cli, &err);
	if (cli->json)
		return EXIT_DONE;
	budget_end(cli, "message", "mailroom inbox with filters");
	if (l.n == 0)
		say_empty(cli, all);
	return EXIT_DONE;
}
