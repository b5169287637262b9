/* SPDX-License-Identifier: MIT */
/*
 * opt.c - options by table. "--name value", "--name=value", "-s value", "-svalue" and bundled flags; options
 * and operands in any order, because agents put them anywhere. The global options are known in every command.
 */
#include "base/text.h"
#include "helptext.h"

struct opt_value { /* in the order given */
	const struct opt *opt;
	const char *text;
	struct opt_value *next;
};

static const struct opt *
find_in(const struct opt *table, struct mr_str name, char letter)
{
	for (const struct opt *o = table; o && o->name; o++) {
		if (letter ? o->letter == letter : str_eq(str_of(o->name), name))
			return o;
	}
	return NULL;
}

static const struct opt *
find_opt(const struct cli *cli, struct mr_str name, char letter)
{
	const struct opt *o = cli->cmd ? find_in(cli->cmd->help->opts, name, letter) : NULL;

	return o ? o : find_in(help_mailroom.opts, name, letter);
}

static void
consider(const struct opt *table, const char *name, const char **best, size_t *best_distance)
{
	for (const struct opt *o = table; o && o->name; o++) {
		size_t d = edit_distance(o->name, name, 3);

		if (!o->hidden && d < *best_distance) {
			*best = o->name;
			*best_distance = d;
		}
	}
}

static bool
unknown(struct cli *cli, const char *shown, struct mr_str name)
{
	mr_auto(buf_done) struct buf word = BUF_INIT;
	const char *best = NULL;
	size_t distance = name.len > 3 ? 3 : 2; /* a two-letter slip in a short name is another name */

	text_clean_line(&word, name);
	if (name.len > 1) {
		consider(cli->cmd ? cli->cmd->help->opts : NULL, buf_z(&word), &best, &distance);
		consider(help_mailroom.opts, buf_z(&word), &best, &distance);
	}
	if (best)
		cli_usage(cli, "there is no option '%s'; did you mean '--%s'?", shown, best);
	else
		cli_usage(cli, "there is no option '%s'", shown);
	return false;
}

static bool
keep(struct cli *cli, const struct opt *o, const char *text)
{
	/* In the order of help_mailroom.opts. */
	if (o == &help_mailroom.opts[0])
		cli->room_option = text;
	else if (o == &help_mailroom.opts[1])
		cli->as_option = text;
	else if (o == &help_mailroom.opts[2])
		cli->json = cli->json_given = true;
	else if (o == &help_mailroom.opts[3])
		cli->want_help = true;
	else {
		struct opt_value *v = arena_alloc(&cli->own, sizeof(*v));
		struct opt_value **end = &cli->values;

		if (!v)
			return false;
		*v = (struct opt_value){ .opt = o, .text = text };
		while (*end)
			end = &(*end)->next;
		*end = v;
	}
	return true;
}

struct words { /* what is left of the command line */
	int at, argc;
	char **argv;
};

static bool
take_long(struct cli *cli, struct words *w, const char *word)
{
	const char *equals = strchr(word, '=');
	struct mr_str name = { word + 2, equals ? (size_t)(equals - word) - 2 : strlen(word) - 2 };
	const struct opt *o = find_opt(cli, name, 0);

	if (!o)
		return unknown(cli, word, name);
	if (!o->value) {
		if (equals)
			return cli_usage(cli, "option '--%s' takes no value", o->name), false;
		return keep(cli, o, NULL);
	}
	if (equals)
		return keep(cli, o, equals + 1);
	if (w->at >= w->argc)
		return cli_usage(cli, "option '--%s' needs a value: --%s %s", o->name, o->name, o->value), false;
	return keep(cli, o, w->argv[w->at++]);
}

static bool
take_short(struct cli *cli, struct words *w, const char *word)
{
	for (const char *p = word + 1; *p; p++) {
		const struct opt *o = find_opt(cli, STR(""), *p);

		if (!o)
			return unknown(cli, word, (struct mr_str){ p, 1 });
		if (!o->value) {
			if (!keep(cli, o, NULL))
				return false;
			continue;
		}
		if (p[1])
			return keep(cli, o, p + 1);
		if (w->at >= w->argc)
			return cli_usage(cli, "option '-%c' needs a value: -%c %s", *p, *p, o->value), false;
		return keep(cli, o, w->argv[w->at++]);
	}
	return true;
}

bool
opt_parse(struct cli *cli, int argc, char **argv)
{
	struct words w = { .at = 1, .argc = argc, .argv = argv };
	bool only_operands = false;

	cli->argv = arena_alloc(&cli->own, sizeof(char *) * ((size_t)argc + 2));
	if (!cli->argv)
		return false;
	while (w.at < w.argc) {
		char *word = w.argv[w.at++];

		if (only_operands || word[0] != '-' || !word[1])
			cli->argv[cli->argc++] = word;
		else if (strcmp(word, "--") == 0)
			only_operands = true;
		else if (!(word[1] == '-' ? take_long(cli, &w, word) : take_short(cli, &w, word)))
			return false;
	}
	return true;
}

const char *
opt_nth(const struct cli *cli, const char *name, size_t i)
{
	for (const struct opt_value *v = cli->values; v; v = v->next) {
		if (strcmp(v->opt->name, name) == 0 && i-- == 0)
			return v->text;
	}
	return NULL;
}

const char *
opt_text(const struct cli *cli, const char *name)
{
	const char *last = NULL;

	for (const struct opt_value *v = cli->values; v; v = v->next) {
		if (strcmp(v->opt->name, name) == 0)
			last = v->text;
	}
	return last;
}

bool
opt_flag(const struct cli *cli, const char *name)
{
	for (const struct opt_value *v = cli->values; v; v = v->next) {
		if (strcmp(v->opt->name, name) == 0)
			return true;
	}
	return false;
}

bool
opt_number(struct cli *cli, const char *name, int64_t *ret)
{
	const char *text = opt_text(cli, name);
	uint64_t value = 0;

	if (!text)
		return true;
	if (!str_to_u64(str_of(text), &value) || value > INT64_MAX)
		return cli_usage(cli, "option '--%s' needs a number, not '%s'", name, text), false;
	*ret = (int64_t)value;
	return true;
}

static bool
explain(struct cli *cli, const char *name, const struct mr_error *err)
{
	cli_usage(cli, "option '--%s': %s%s%s", name, err->message, err->hint[0] ? "; " : "", err->hint);
	return false;
}

bool
opt_duration(struct cli *cli, const char *name, int64_t *ret_ms)
{
	struct mr_error err = { 0 };
	const char *text = opt_text(cli, name);

	if (text && mr_duration_parse(text, ret_ms, &err) != MR_OK)
		return explain(cli, name, &err);
	return true;
}

bool
opt_time(struct cli *cli, const char *name, int64_t *ret_ms)
{
	struct mr_error err = { 0 };
	const char *text = opt_text(cli, name);

	if (text && mr_time_parse(text, ret_ms, &err) != MR_OK)
		return explain(cli, name, &err);
	return true;
}

bool
opt_priority(struct cli *cli, const char *name, enum mr_priority *ret)
{
	struct mr_error err = { 0 };
	const char *text = opt_text(cli, name);

	if (text && mr_priority_parse(text, ret, &err) != MR_OK)
		return explain(cli, name, &err);
	return true;
}

void
opt_free(struct cli *cli)
{
	cli->values = NULL; /* the values live in cli->own */
}
