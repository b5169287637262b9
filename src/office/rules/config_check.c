/* SPDX-License-Identifier: MIT */
/* config_check.c - the names that a user's configuration knows, and what their values may be. */
#include "base/error.h"
#include "office/rules/config.h"
#include "office/patrol/patrol.h"

enum value_kind { COMMAND, SPEC, PAIR, YES_NO, FIXED };
static const struct known {
	const char *name; /* one that ends in "-" is the beginning of a name */
	enum value_kind kind;
} known[] = {
	{ "Notify", COMMAND },
	{ "Sling", COMMAND },
	{ "Bead-Status", COMMAND },
	{ "Handler-", COMMAND },
	{ "Wake-", COMMAND },
	{ "Link-", SPEC },
	{ "Adopt-", PAIR },
	{ "Session-Handlers", YES_NO },
	{ "Nudge-On-Send", YES_NO },
	{ "Room", FIXED },
	{ "Place", FIXED },
	{ "Identity", FIXED },
	{ "Trusted", FIXED },
};
#define KNOWN_N (sizeof(known) / sizeof(known[0]))

static const struct known *
known_as(const char *name)
{
	for (size_t i = 0; i < KNOWN_N; i++) {
		size_t n = strlen(known[i].name);

		if (known[i].name[n - 1] == '-'
			? strlen(name) > n && str_caseeq((struct mr_str){ name, n }, str_of(known[i].name))
			: ascii_caseeq(known[i].name, name))
			return &known[i];
	}
	return NULL;
}

/* Programs that take a program as an argument. */
static bool
is_interpreter(const char *word)
{
	static const char *const names[] = { "sh", "bash", "dash", "ash", "ksh", "mksh", "zsh", "fish", "csh", "tcsh",
		"eval", "perl", "ruby", "node", "awk", "gawk", "mawk", "php", "lua", "tclsh", "expect", "ssh", "su",
		NULL };
	const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;

	for (size_t i = 0; names[i]; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return str_starts(str_of(name), "python");
}

/* The last word that an interpreter at `from` reads as program text: its script, or what follows -c or -e. */
static size_t
program_end(const struct mr_names *words, size_t from)
{
	size_t end = from;

	if (str_ends(str_of(words->v[from]), "ssh")) /* all that follows is a command line over there */
		return words->n;
	for (size_t i = from + 1; i < words->n && end == from; i++)
		end = words->v[i][0] == '-' ? end : i;
	for (size_t i = from + 1; i < words->n; i++)
		if (words->v[i][0] == '-' && strpbrk(words->v[i], "ce") && i + 1 > end)
			end = i + 1;
	return end;
}

static enum mr_rc
refuse_program_text(const char *open, const char *close, struct mr_error *err)
{
	mr_auto(buf_done) struct buf field = BUF_INIT, variable = BUF_INIT;

	buf_add(&field, (struct mr_str){ open + 1, (size_t)(close - open - 1) });
	type_variable(&variable, buf_z(&field));
	return mr_fail(err, MR_REFUSED,
	    "the command would run {%.40s} of a message as program text\n"
	    "write \"$%.80s\" in its place: the field is in that environment variable",
	    buf_z(&field), buf_z(&variable));
}

enum mr_rc
config_check_command(const char *command, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names words = split_command(command, err);
	size_t end = 0;

	if (words.n == 0)
		return err->code;
	for (size_t i = 0; i < words.n; i++) {
		const char *open = strchr(words.v[i], '{'), *close = open ? strchr(open, '}') : NULL;

		if (end > 0 && i <= end && close && close > open + 1)
			return refuse_program_text(open, close, err);
		if (is_interpreter(words.v[i]))
			end = program_end(&words, i);
	}
	return MR_OK;
}

static enum mr_rc
check_pair(const char *value, struct mr_error *err)
{
	const char *space = strchr(value, ' ');
	mr_auto(free_ptr) char *local = space ? strndup(value, (size_t)(space - value)) : NULL;

	if (local && *local && space[1] && !strchr(space + 1, ' '))
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%.80s' is not 'LOCAL FOREIGN': an agent here and a mailbox there", value);
}

enum mr_rc
mr_config_check(const char *name, const char *value, struct mr_error *err)
{
	const struct known *k = known_as(name);

	if (!k || k->kind == FIXED) {
		(void)mr_fail(err, MR_REFUSED,
		    k ? "'%.60s' is set by `mailroom trust`, not by hand" : "the configuration has no setting '%.60s'",
		    name);
		return mr_hint(err,
		    "there are Notify, Handler-NAME, Wake-AGENT, Link-NAME, Adopt-LINK, Sling, Bead-Status, "
		    "Nudge-On-Send and Session-Handlers: man 5 mailroom-config");
	}
	if (strlen(name) > CONFIG_NAME_MAX)
		return mr_fail(err, MR_REFUSED, "the name of a setting has at most %d characters", CONFIG_NAME_MAX);
	if (!header_name_valid(str_of(name)))
		return mr_fail(err, MR_REFUSED, "'%.60s' cannot be the name of a setting", name);
	if (!value)
		return MR_OK;
	if (header_value_problem(str_of(value)))
		return mr_fail(err, MR_REFUSED, "the value of '%s' %s", name, header_value_problem(str_of(value)));
	if (k->kind == COMMAND)
		return config_check_command(value, err) == MR_OK ? MR_OK : mr_wrap(err, "'%s'", name);
	if (k->kind == PAIR)
		return check_pair(value, err);
	if (k->kind == SPEC && !strchr(value, ':'))
		return mr_fail(err, MR_REFUSED, "'%.80s' is no room: KIND:WHERE", value);
	if (k->kind == YES_NO && !ascii_caseeq(value, "yes") && !ascii_caseeq(value, "no"))
		return mr_fail(err, MR_REFUSED, "'%s' is 'yes' or 'no', not '%.60s'", name, value);
	return MR_OK;
}

bool
config_is_head(const char *name)
{
	const struct known *k = known_as(name);

	return k && k->kind == FIXED;
}

bool
config_is_setting(const char *name)
{
	const struct known *k = known_as(name);

	return k && k->kind != FIXED;
}
