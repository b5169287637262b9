/* SPDX-License-Identifier: MIT */
/* subword.c - the second word of a command: found, its operands counted, run. */
#include "base/text.h"
#include "cli/subword.h"

static int
unknown(struct cli *cli, const struct subword *table, const char *word)
{
	mr_auto(buf_done) struct buf words = BUF_INIT, near = BUF_INIT;

	for (const struct subword *s = table; s->word; s++) {
		buf_addf(&words, "%s%s", s > table ? ", " : "", s->word);
		if (near.len == 0 && edit_distance(s->word, word, 2) <= 2)
			buf_addf(&near, "; did you mean '%s'?", s->word);
	}
	return cli_usage(cli, "there is no '%s %s'%s (%s)", cli->cmd->name, word, buf_z(&near), buf_z(&words));
}

/* The help of an option begins with the words that it is for, "create: ..." or "list, show: ...", and is the only place
 * that says so; help that begins otherwise is for all of them. */
static bool
is_for(const struct opt *opt, const struct subword *table, const char *word)
{
	struct mr_str rest = str_of(opt->help ? opt->help : "");
	bool for_some = false;

	while (rest.len > 0) {
		size_t len = strcspn(rest.ptr, " ,:");
		struct mr_str first = { rest.ptr, len };
		bool known = false;

		for (const struct subword *s = table; s->word && !known; s++)
			known = str_eq(first, str_of(s->word));
		if (!known || str_eq(first, str_of(word)))
			return !for_some || known;
		for_some = true;
		if (!str_starts((struct mr_str){ rest.ptr + len, rest.len - len }, ", "))
			return false;
		rest = (struct mr_str){ rest.ptr + len + 2, rest.len - len - 2 };
	}
	return true;
}

static const struct opt *
option_of_another(struct cli *cli, const struct subword *table, const char *word)
{
	for (const struct opt *o = cli->cmd->help->opts; o && o->name; o++)
		if (opt_is_given(cli, o) && !is_for(o, table, word))
			return o;
	return NULL;
}

int
subword_run(struct cli *cli, const struct subword *table)
{
	const struct subword *s = table;
	const char *word = cli->argc > 0 ? cli->argv[0] : "list"; /* looking costs nothing */
	struct mr_error err = { 0 };

	while (s->word && strcmp(s->word, word) != 0)
		s++;
	if (!s->word)
		return unknown(cli, table, word);
	cli->subword = s->word;
	if (cli->argc > 0) {
		cli->argv++;
		cli->argc--;
	}
	const struct opt *other = option_of_another(cli, table, s->word);

	if (other)
		return cli_usage(cli, "option '--%s' is not for '%s %s'", other->name, cli->cmd->name, s->word);
	if (cli->argc < s->min_args)
		return cli_usage(cli, "usage: mailroom %s %s %s", cli->cmd->name, s->word, s->operands);
	if (s->max_args >= 0 && cli->argc > s->max_args)
		return cli_usage(cli, "'%s' is one argument too many", cli->argv[s->max_args]);
	if (s->self && cli_know_self(cli, &err) != MR_OK)
		return cli_fail(cli, &err);
	return s->run(cli);
}
