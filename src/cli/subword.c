/* SPDX-License-Identifier: MIT */
/* subword.c - the second word of a command: found, its operands counted, run. */
#include "base/text.h"
#include "cli/subword.h"

static int
unknown(struct cli *cli, const struct subword *table)
{
	mr_auto(buf_done) struct buf words = BUF_INIT, near = BUF_INIT;

	for (const struct subword *s = table; s->word; s++) {
		buf_addf(&words, "%s%s", s > table ? ", " : "", s->word);
		if (near.len == 0 && edit_distance(s->word, cli->argv[0], 2) <= 2)
			buf_addf(&near, "; did you mean '%s'?", s->word);
	}
	return cli_usage(cli, "there is no '%s %s'%s (%s)", cli->cmd->name, cli->argv[0], buf_z(&near), buf_z(&words));
}

int
subword_run(struct cli *cli, const struct subword *table)
{
	const struct subword *s = table;
	struct mr_error err = { 0 };

	while (s->word && strcmp(s->word, cli->argv[0]) != 0)
		s++;
	if (!s->word)
		return unknown(cli, table);
	cli->argv++;
	cli->argc--;
	if (cli->argc < s->min_args)
		return cli_usage(cli, "usage: mailroom %s %s %s", cli->cmd->name, s->word, s->operands);
	if (s->max_args >= 0 && cli->argc > s->max_args)
		return cli_usage(cli, "'%s' is one argument too many", cli->argv[s->max_args]);
	if (s->self && cli_know_self(cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	return s->run(cli);
}
