/* SPDX-License-Identifier: MIT */
/* mailroom mark */
#include "printout.h"

static const struct opt opts[] = {
	OPT('a', "all", NULL, "all mail in the inbox"),
	FILTER_OPTS,
	OPT_END,
};
static const char *const about[] = {
	"Sets or clears a mark on messages: by id, on all of the inbox with --all, or on what the filters let through. "
	"'mark read' consumes without showing, so it asks for ids, --all or a filter. Pinned mail is never archived by "
	"age.",
	NULL,
};
static const char *const examples[] = {
	"id=$(mailroom --as alice send bob -m 'hello')\nmailroom --as bob mark pinned \"$id\"\nmailroom --as bob mark "
	"read \"$id\"",
	"mailroom --as bob mark read --from alice",
	"mailroom --as bob mark unread --all",
	NULL,
};

static const struct word {
	const char *name;
	unsigned set, clear;
} words[] = {
	{ "read", MR_SEEN, 0 },
	{ "unread", 0, MR_SEEN },
	{ "pinned", MR_PINNED, 0 },
	{ "unpinned", 0, MR_PINNED },
};

struct marking {
	struct printout base; /* first: trouble is reported through it */
	const struct word *word;
	struct mr_names ids;
};

static const struct word *
word_named(const char *name)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].name, name) == 0)
			return &words[i];
	return NULL;
}

static bool
collect(void *ctx, const struct mr_message *msg)
{
	struct marking *m = ctx;

	if ((msg->flags & m->word->set) != m->word->set || (msg->flags & m->word->clear) != 0)
		return names_add(&m->ids, str_of(msg->id));
	return true;
}

static bool
has_filter(const struct cli *cli)
{
	return opt_text(cli, "from") || opt_text(cli, "type") || opt_text(cli, "priority") || opt_text(cli, "thread") ||
	       opt_text(cli, "since");
}

/* The ids to mark: the operands, or what the filters find. Returns an exit code. */
static int
choose(struct cli *cli, struct marking *m)
{
	struct filter_store store;
	struct mr_scan scan = { .order = MR_OLDEST_FIRST, .trouble = printout_trouble };
	struct mr_error err = { 0 };

	for (int i = 1; i < cli->argc; i++)
		if (!names_add(&m->ids, str_of(cli->argv[i])))
			return EXIT_FAILED;
	if (cli->argc > 1)
		return EXIT_DONE;
	if (!filter_read(cli, &scan.filter, &store))
		return EXIT_USAGE;
	if (mr_scan(cli->room, cli->self.agent, &scan, collect, m, &err) != MR_OK)
		return cli_fail(cli, &err);
	return EXIT_DONE;
}

static int
mark_all(struct cli *cli, struct marking *m)
{
	struct mr_error err = { 0 };
	size_t done = 0;
	int code = EXIT_DONE;

	for (size_t i = 0; i < m->ids.n; i++) {
		enum mr_rc rc = mr_mark(cli->room, &cli->self, m->ids.v[i], m->word->set, m->word->clear, &err);
		if (rc == MR_OK)
			done++;
		else if (cli->argc > 1 ||
			 rc != MR_NOTFOUND) /* found by a filter, then moved by another: not ours to tell */
			code = cli_fail(cli, &err);
	}
	if (mr_flush(cli->room, &err) != MR_OK)
		code = cli_fail(cli, &err);
	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);
		json_open(&j, '{');
		json_key_str(&j, "mark", m->word->name);
		json_key_int(&j, "changed", (int64_t)done);
		out_json_line(cli, &j);
	} else {
		out_count(&cli->out, done, "message");
		buf_addf(&cli->out, " marked %s\n", m->word->name);
	}
	return code;
}

static int
run(struct cli *cli)
{
	struct marking m = { .base = { .cli = cli }, .word = word_named(cli->argv[0]) };

	if (m.word == NULL)
		return cli_usage(cli, "mark as what? '%s' is none of read, unread, pinned, unpinned", cli->argv[0]);
	if (cli->argc == 1 && !opt_flag(cli, "all") && !has_filter(cli))
		return cli_usage(cli, "mark what? give ids, --all, or a filter");
	if (cli->argc > 1 && (opt_flag(cli, "all") || has_filter(cli)))
		return cli_usage(cli, "give ids, or --all and filters, not both");
	int code = choose(cli, &m);
	if (code == EXIT_DONE)
		code = mark_all(cli, &m);
	mr_names_done(&m.ids);
	return code;
}

const struct cmd cmd_mark = {
	.name = "mark",
	.needs = CMD_SELF,
	.synopsis = "read|unread|pinned|unpinned [ID... | --all | filters]",
	.summary = "mark messages read, unread or pinned",
	.opts = opts,
	.about = about,
	.examples = examples,
	.min_args = 1,
	.max_args = -1,
	.run = run,
};
