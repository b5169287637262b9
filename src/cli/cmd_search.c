/* SPDX-License-Identifier: MIT */
/* mailroom search, thread, sent: looking at more than the inbox. */
#include "printout.h"

#define EVERYWHERE (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT)

static int
finish(struct printout *l, const char *nothing, const char *how)
{
	struct cli *cli = l->cli;

	if (!cli->json && l->n == 0)
		fence_addf(&cli->out, "%s\n", nothing);
	else if (!cli->json)
		budget_end(cli, "message", how);
	printout_done(l);
	return EXIT_DONE;
}

/* ---- search ---- */

static const struct opt search_opts[] = {
	OPT('E', "regex", "EXPR", "an extended regular expression instead of words"),
	FILTER_OPTS,
	OPT('n', "limit", "N", "at most N messages"),
	BUDGET_OPT,
	OPT_END,
};
static const char *const search_about[] = {
	"Finds messages that have all the words, in any case, in sender, recipients, subject, type or text, over "
	"inbox, archive "
	"and sent mail, newest first. Marks nothing. Results come as they are found.",
	NULL,
};
static const char *const search_examples[] = {
	"mailroom --as bob search build green",
	"mailroom --as bob search --regex 'port [0-9]+' --since 7d",
	NULL,
};
static const char *const search_differences[] = {
	"Gas Town's help promises regular expressions and searching the archive and does neither; here both work.",
	NULL,
};

static int
run_search(struct cli *cli)
{
	mr_auto(buf_done) struct buf words = BUF_INIT;
	struct filter_store store;
	struct mr_scan scan = { .order = MR_NEWEST_FIRST };
	struct printout l = { .cli = cli, .each_once = true, .stream = cli->json || cli->out_tty };
	int64_t limit = 0;
	int code = EXIT_DONE;

	if (!filter_read(cli, &scan.filter, &store) || !opt_number(cli, "limit", &limit) || !budget_begin(cli))
		return EXIT_USAGE;
	scan.filter.regex = opt_text(cli, "regex");
	if (cli->argc == 0 && scan.filter.regex == NULL)
		return cli_usage(cli, "search for what? give words or --regex");
	for (int i = 0; i < cli->argc; i++)
		buf_addf(&words, "%s%s", i > 0 ? " " : "", cli->argv[i]);
	scan.filter.words = words.len > 0 ? buf_z(&words) : NULL;
	scan.filter.folders = EVERYWHERE;
	scan.limit = (size_t)limit;
	if (!printout_run(&l, &scan, &code)) {
		printout_done(&l);
		return code;
	}
	return finish(&l, "nothing found", "more words, --since or --limit");
}

const struct cmd cmd_search = {
	.name = "search",
	.needs = CMD_SELF,
	.synopsis = "WORD... | --regex EXPR",
	.summary = "find messages in inbox, archive and sent mail",
	.opts = search_opts,
	.about = search_about,
	.examples = search_examples,
	.differences = search_differences,
	.max_args = -1,
	.run = run_search,
};

/* ---- thread ---- */

static const struct opt thread_opts[] = {
	OPT('b', "brief", NULL, "a line for each message"),
	BUDGET_OPT,
	OPT_END,
};
static const char *const thread_about[] = {
	"Shows a whole conversation, oldest first: yours and the others' messages, wherever they are filed. Takes a "
	"thread id or the id of any message in it. Marks nothing.",
	"Off a terminal the newest messages are shown whole as far as the budget goes; of older ones there is a line, "
	"as with --brief. 'mailroom read --peek ID' shows one of them.",
	NULL,
};
static const char *const thread_examples[] = {
	"id=$(mailroom --as alice send bob -m 'which port?')\nmailroom --as bob reply \"$id\" -m '8081'\nmailroom --as "
	"alice thread \"$id\"",
	NULL,
};

static int
run_thread(struct cli *cli)
{
	struct mr_scan scan = { .order = cli->json ? MR_OLDEST_FIRST : MR_NEWEST_FIRST };
	struct printout l = {
		.cli = cli,
		.form = cli->json ? PRINTOUT_WHOLE : PRINTOUT_TURNS,
		.brief = opt_flag(cli, "brief"),
		.each_once = true,
	};
	char how[80];
	int code = EXIT_DONE;

	if (!budget_begin(cli))
		return EXIT_USAGE;
	(void)snprintf(how, sizeof(how), "mailroom thread %.30s --json", cli->argv[0]);
	scan.filter.folders = EVERYWHERE;
	scan.filter.thread = cli->argv[0];
	if (!printout_run(&l, &scan, &code)) {
		printout_done(&l);
		return code;
	}
	if (l.n == 0) {
		struct mr_error err = { 0 };
		(void)mr_fail(&err, MR_NOTFOUND, "no thread '%s' in your mail", cli->argv[0]);
		(void)mr_hint(&err, "mailroom inbox --all and mailroom search show what there is");
		printout_done(&l);
		return cli_fail(cli, &err);
	}
	printout_turn(&l);
	return finish(&l, "", how);
}

const struct cmd cmd_thread = {
	.name = "thread",
	.needs = CMD_SELF,
	.synopsis = "[--brief] ID",
	.summary = "show a whole conversation",
	.opts = thread_opts,
	.about = thread_about,
	.examples = thread_examples,
	.min_args = 1,
	.max_args = 1,
	.run = run_thread,
};

/* ---- sent ---- */

static const struct opt sent_opts[] = {
	FILTER_OPTS,
	OPT('n', "limit", "N", "at most N messages (default 20; 0: all)"),
	BUDGET_OPT,
	OPT_END,
};
static const char *const sent_about[] = {
	"Lists the mail that you sent, newest first. 'mailroom why ID' tells what became of one.",
	NULL,
};
static const char *const sent_examples[] = { "mailroom --as alice sent", "mailroom --as alice sent --since 1h --json",
	NULL };

static int
run_sent(struct cli *cli)
{
	struct filter_store store;
	struct mr_scan scan = { .order = MR_NEWEST_FIRST };
	struct printout l = { .cli = cli };
	int64_t limit = 20;
	int code = EXIT_DONE;

	if (!filter_read(cli, &scan.filter, &store) || !opt_number(cli, "limit", &limit) || !budget_begin(cli))
		return EXIT_USAGE;
	scan.filter.folders = MR_SENT;
	scan.limit = (size_t)limit;
	if (!printout_run(&l, &scan, &code))
		return code;
	return finish(&l, "nothing sent yet", "mailroom sent --limit N");
}

const struct cmd cmd_sent = {
	.name = "sent",
	.needs = CMD_SELF,
	.synopsis = "[--limit N] [--since TIME]",
	.summary = "list the mail that you sent",
	.opts = sent_opts,
	.about = sent_about,
	.examples = sent_examples,
	.max_args = 0,
	.run = run_sent,
};
