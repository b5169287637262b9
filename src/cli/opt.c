/* SPDX-License-Identifier: MIT */
/*
 * opt.c - the words of a command line: options by table, filters, second words. "--name value", "--name=value", "-s
 * value", "-svalue" and bundled flags; options and operands in any order, because agents put them anywhere. The global
 * options are known in every command.
 */
#include "helptext.h"

const struct opt *
opt_find(const struct cli *cli, struct mr_str name, char letter)
{
	const struct opt *tables[] = { cli->cmd ? cli->cmd->help->opts : NULL, help_mailroom.opts };

	for (size_t t = 0; t < 2; t++)
		for (const struct opt *o = tables[t]; o && o->name; o++)
			if (letter ? o->letter == letter : str_eq(str_of(o->name), name))
				return o;
	return NULL;
}

static bool
unknown(struct cli *cli, const char *shown, struct mr_str name)
{
	mr_auto(buf_done) struct buf word = BUF_INIT;
	const struct opt *tables[] = { cli->cmd ? cli->cmd->help->opts : NULL, help_mailroom.opts };
	const char *best = NULL;
	size_t distance = name.len > 3 ? 3 : 2; /* a two-letter slip in a short name is another name */

	if (cli->completes)
		return true;
	text_clean_line(&word, name);
	for (size_t t = 0; t < 2 && name.len > 1; t++) {
		for (const struct opt *o = tables[t]; o && o->name; o++) {
			size_t d = edit_distance(o->name, buf_z(&word), 3);

			if (!o->hidden && d < distance) {
				best = o->name;
				distance = d;
			}
		}
	}
	if (best)
		cli_usage(cli, "there is no option '%s'; did you mean '--%s'?", shown, best);
	else
		cli_usage(cli, "there is no option '%s'", shown);
	return false;
}

/* The option's member, in the command's struct or in cli itself. */
static void *
member_of(struct cli *cli, const struct opt *o)
{
	return (o->in_cli ? (char *)cli : (char *)cli->opts) + o->offset;
}

static bool
is_choice(const char *choices, const char *text)
{
	struct mr_str rest = str_of(choices), one;
	bool found = false;

	while (!found && str_word(&rest, ", ", &one))
		found = str_eq(one, str_of(text));
	return found;
}

struct words { /* what is left of the command line */
	int at, argc;
	char **argv;
};

/* Says so if a number is out of the bounds that the text gives. */
static bool
is_within(struct cli *cli, const struct opt *o, const int64_t *number)
{
	if (o->positive && *number == 0)
		return cli_usage(cli, "option '--%s' must be greater than 0", o->name), false;
	if (o->most == 0 || *number <= o->most)
		return true;
	if (o->type == OPT_NUMBER)
		cli_usage(cli, "option '--%s' must be at most %lld", o->name, (long long)o->most);
	else
		cli_usage(cli, "option '--%s' must be at most %s", o->name, lasting(o->most).text);
	return false;
}

/* One more value; there are fewer of them than words. */
static bool
add_to_list(struct cli *cli, const struct words *w, const char ***list, const char *text)
{
	size_t n = opt_count(*list);

	if (n == 0)
		*list = arena_alloc(&cli->own, ((size_t)w->argc + 1) * sizeof(**list));
	if (*list)
		(*list)[n] = text;
	return *list != NULL;
}

/* Fills the option's member. Its value, if it takes one, is `text` or the next word; `dashes` is "--" or "-". */
static bool
take_value(struct cli *cli, struct words *w, const struct opt *o, const char *text, const char *dashes)
{
	char letter[2] = { o->letter, '\0' };
	const char *name = dashes[1] ? o->name : letter;
	void *member = member_of(cli, o);
	struct mr_error *err = &cli->err;
	enum mr_rc rc = MR_OK;
	uint64_t value = 0;

	if (o->value && !text && w->at >= w->argc) {
		cli->open = o;
		return cli->completes ||
		       (cli_usage(cli, "option '%s%s' needs a value: %s%s %s", dashes, name, dashes, name, o->value),
			   false);
	}
	if (o->value && !text)
		text = w->argv[w->at++];
	if (cli->completes && (o->type != OPT_TEXT || o->choices))
		return true;
	cli->given |= o->bit;
	switch (o->type) {
	case OPT_FLAG:
		*(bool *)member = true;
		return true;
	case OPT_TEXT:
		if (o->choices && !is_choice(o->choices, text))
			return cli_usage(cli, "option '--%s': '%.40s' is not one of %s", o->name, text, o->choices),
			       false;
		*(const char **)member = text;
		return true;
	case OPT_LIST:
		return add_to_list(cli, w, member, text);
	case OPT_NUMBER:
	case OPT_BUDGET:
		if (!str_to_u64(str_of(text), &value) || value > INT64_MAX)
			return cli_usage(cli, "option '--%s' needs a number, not '%s'", o->name, text), false;
		if (o->type == OPT_BUDGET && value > 0 && value < BUDGET_LEAST)
			return cli_usage(cli, "option '--budget' needs at least %d, or 0 for no limit", BUDGET_LEAST),
			       false;
		*(int64_t *)member = (int64_t)value;
		break;
	case OPT_DURATION:
		rc = mr_duration_parse(text, member, err);
		break;
	case OPT_TIME:
		rc = mr_time_parse(text, member, err);
		break;
	case OPT_PRIORITY: {
		enum mr_priority *priority = arena_alloc(&cli->own, sizeof(*priority));

		rc = priority ? mr_priority_parse(text, priority, err) : mr_nomem(err);
		*(const enum mr_priority **)member = priority;
		break;
	}
	}
	if (rc != MR_OK)
		cli_usage(cli, "option '--%s': %s%s%s", o->name, err->message, err->hint[0] ? "; " : "", err->hint);
	return rc == MR_OK && is_within(cli, o, member);
}

static bool
take_long(struct cli *cli, struct words *w, const char *word)
{
	const char *equals = strchr(word, '=');
	struct mr_str name = { word + 2, equals ? (size_t)(equals - word) - 2 : strlen(word) - 2 };
	const struct opt *o = opt_find(cli, name, 0);

	if (!o)
		return unknown(cli, word, name);
	if (!o->value && equals)
		return cli_usage(cli, "option '--%s' takes no value", o->name), false;
	return take_value(cli, w, o, equals ? equals + 1 : NULL, "--");
}

static bool
take_short(struct cli *cli, struct words *w, const char *word)
{
	for (const char *p = word + 1; *p; p++) {
		const struct opt *o = opt_find(cli, STR(""), *p);

		if (!o)
			return unknown(cli, word, (struct mr_str){ p, 1 });
		if (!take_value(cli, w, o, p[1] ? p + 1 : NULL, "-"))
			return false;
		if (o->value)
			break;
	}
	return true;
}

bool
opt_parse(struct cli *cli, int argc, char **argv)
{
	static const char *const none[] = { NULL };
	const struct help *help = cli->cmd->help;
	struct words w = { .at = 1, .argc = argc, .argv = argv };
	bool only_operands = false;

	cli->argv = arena_alloc(&cli->own, sizeof(char *) * ((size_t)argc + 2));
	cli->opts = help->options_size > 0 ? arena_alloc(&cli->own, help->options_size) : NULL;
	if (!cli->argv || (help->options_size > 0 && !cli->opts))
		return false;
	/* What the members of the command's struct are when the options are not given. */
	for (const struct opt *o = help->opts; o && o->name; o++) {
		if (o->type == OPT_LIST)
			*(const char *const **)member_of(cli, o) = none;
		else if (o->type == OPT_NUMBER || o->type == OPT_DURATION || o->type == OPT_TIME)
			*(int64_t *)member_of(cli, o) = o->absent;
	}
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

size_t
opt_count(const char *const *values)
{
	size_t n = 0;

	while (values[n])
		n++;
	return n;
}

int
word_at(const char *const *words, const char *word)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], word) == 0)
			return i;
	return -1;
}

bool
opt_fit(struct cli *cli)
{
	uint64_t given = cli->given | (cli->argc > 0 ? GIVEN_OPERANDS : 0) | (cli->json ? GIVEN_JSON : 0);

	for (const struct refusal *r = cli->cmd->refused; r && r->why; r++) {
		uint64_t first = given & r->first;
		bool second = (given & r->second) != 0;

		if (r->how == REFUSE_NONE  ? first != 0
		    : r->how == REFUSE_TWO ? (first & (first - 1)) == 0
					   : first == 0 || second != (r->how == REFUSE_WITH))
			continue;
		const char *star = strchr(r->why, '*');
		const char *name = star ? cli->cmd->help->opts[__builtin_ctzll(first)].name : "";

		return cli_usage(cli, "%.*s%s%s", (int)strcspn(r->why, "*"), r->why, name, star ? star + 1 : ""), false;
	}
	return true;
}

/* ---- Filters ---- */

struct mr_filter
filter_of(const struct cli *cli, const struct filter_options *o)
{
	return (struct mr_filter){
		.from = o->from,
		.type = o->type,
		.priority = o->priority,
		.thread = o->thread,
		.since_ms = o->since_ms,
		.no_control = !cli->json, /* those are for programs, and wait for a patrol */
	};
}

bool
filter_is_given(const struct filter_options *o)
{
	return o->from || o->type || o->priority || o->thread || o->since_ms != 0;
}

/* ---- Second words ---- */

const char *
bare_name(const char *kind, const char *given)
{
	size_t len = strlen(kind);

	return strncmp(given, kind, len) == 0 && given[len] == ':' ? given + len + 1 : given;
}

int
say_state(struct cli *cli, const char *kind, const char *state)
{
	const char *name = bare_name(kind, cli->argv[0]);

	return out_answer(cli, CELLS(kv_str("name", name), kv_str("state", state)), "%s %s:%s\n", state, kind, name);
}

int
subword_run(struct cli *cli)
{
	const struct subword *table = cli->cmd->words, *s = table;
	const char *word = cli->argc > 0 ? cli->argv[0] : "list"; /* looking costs nothing */

	while (s->word && strcmp(s->word, word) != 0)
		s++;
	if (!s->word) {
		mr_auto(buf_done) struct buf words = BUF_INIT, near = BUF_INIT;

		for (s = table; s->word; s++) {
			buf_addf(&words, "%s%s", s > table ? ", " : "", s->word);
			if (near.len == 0 && edit_distance(s->word, word, 2) <= 2)
				buf_addf(&near, "; did you mean '%s'?", s->word);
		}
		return cli_usage(cli, "there is no '%s %s'%s (%s)", cli->cmd->name, word, buf_z(&near), buf_z(&words));
	}
	cli->subword = s->word;
	if (cli->argc > 0) {
		cli->argv++;
		cli->argc--;
	}
	for (const struct opt *o = cli->cmd->help->opts; o && o->name; o++)
		if ((cli->given & o->bit) && o->words && !(o->words >> (s - table) & 1))
			return cli_usage(cli, "option '--%s' is not for '%s %s'", o->name, cli->cmd->name, s->word);
	if (cli->argc < s->min_args)
		return cli_usage(cli, "usage: mailroom %s %s %s", cli->cmd->name, s->word, s->operands);
	if (s->max_args >= 0 && cli->argc > s->max_args)
		return cli_usage(cli, "unexpected argument '%s'", cli->argv[s->max_args]);
	if (s->self)
		TRY_CLI(cli_know_self(cli, &cli->err));
	return s->run(cli);
}
