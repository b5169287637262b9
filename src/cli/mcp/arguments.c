/* SPDX-License-Identifier: MIT */
/*
 * arguments.c - the arguments of a call, by the tool's table. Models are not exact: a number may come as a string, one
 * name instead of a list. What is wrong all the same is told as a tool error, with what there is, so that the next try
 * is right.
 */
#include "base/text.h"
#include "cli/mcp/mcp.h"

#define LIST_MAX 256

static const struct mr_names no_names = { 0 };

const struct mr_names *
args_list(const struct args *a, const char *name)
{
	for (size_t i = 0; a->table[i].name; i++)
		if (strcmp(a->table[i].name, name) == 0)
			return &a->values[i];
	return &no_names;
}

const char *
args_text(const struct args *a, const char *name)
{
	const struct mr_names *list = args_list(a, name);

	return list->n > 0 ? list->v[0] : NULL;
}

void
args_done(struct args *a)
{
	for (size_t i = 0; i < ARGS_MAX; i++)
		mr_names_done(&a->values[i]);
}

void
words_add(struct words *w, const char *word)
{
	if (!word || !names_add(&w->v, str_of(word)))
		w->failed = true;
}

void
words_option(struct words *w, const char *option, const char *value)
{
	if (!value)
		return;
	words_add(w, option);
	words_add(w, value);
}

void
words_flag(struct words *w, const char *option, bool on)
{
	if (on)
		words_add(w, option);
}

void
words_done(struct words *w)
{
	mr_names_done(&w->v);
}

/* ---- Reading ---- */

static const char *
add_text(struct json_value value, struct mr_names *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (value.kind != JSON_STRING)
		return "must be a string";
	json_text(value, &text);
	if (text.failed)
		return "is too long for the memory there is";
	if (strlen(buf_z(&text)) != text.len)
		return "has a NUL character in it";
	return names_add(ret, buf_str(&text)) ? NULL : "is too long for the memory there is";
}

static const char *
add_list(struct json_value value, struct mr_names *ret)
{
	struct json_value one;

	if (value.kind != JSON_ARRAY)
		return add_text(value, ret);
	for (size_t at = 0; json_item(value, &at, &one);) {
		const char *problem = ret->n < LIST_MAX ? add_text(one, ret) : "has too many entries";

		if (problem)
			return problem;
	}
	return NULL;
}

static const char *
add_number(struct json_value value, struct mr_names *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	uint64_t number = 0;

	if (value.kind == JSON_STRING)
		json_text(value, &text);
	else if (value.kind == JSON_NUMBER)
		buf_add(&text, value.raw);
	if (!str_to_u64(buf_str(&text), &number) || number > INT32_MAX)
		return "must be a whole number, not negative";
	return names_add(ret, buf_str(&text)) ? NULL : "is too long for the memory there is";
}

static const char *
add_flag(struct json_value value, struct mr_names *ret)
{
	bool yes = value.kind == JSON_TRUE || str_eq(value.raw, STR("\"true\""));

	if (!yes && value.kind != JSON_FALSE && !str_eq(value.raw, STR("\"false\"")))
		return "must be true or false";
	return !yes || names_add(ret, STR("true")) ? NULL : "is too long for the memory there is";
}

static bool
is_choice(const char *choices, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = choices; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
		if (strncmp(at, word, len) == 0 && (at[len] == '|' || at[len] == '\0'))
			return true;
	return false;
}

static const char *
add_value(const struct arg *arg, struct json_value value, struct mr_names *ret)
{
	const char *problem = NULL;

	if (value.kind == JSON_NULL)
		return NULL;
	switch (arg->kind) {
	case ARG_TEXT:
		problem = add_text(value, ret);
		break;
	case ARG_NAMES:
	case ARG_LIST:
		problem = add_list(value, ret);
		break;
	case ARG_NUMBER:
		problem = add_number(value, ret);
		break;
	case ARG_FLAG:
		problem = add_flag(value, ret);
		break;
	}
	if (!problem && arg->choices && ret->n > 0 && !is_choice(arg->choices, ret->v[0]))
		problem = "is none of its words";
	return problem;
}

static void
say_known(const struct tool *tool, struct buf *out)
{
	buf_addf(out, "\nhint: arguments of '%s':", tool->name);
	for (const struct arg *a = tool->args; a->name; a++)
		buf_addf(out, "%s %s%s%s", a == tool->args ? "" : ",", a->name, a->required ? " (required)" : "",
		    a->choices ? " (one of its words)" : "");
}

static bool
read_one(const struct tool *tool, struct json_value key, struct json_value value, struct args *ret, struct buf *problem)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	for (size_t i = 0; tool->args[i].name; i++) {
		if (!json_key_is(key, tool->args[i].name))
			continue;
		mr_names_done(&ret->values[i]); /* the last of two with one name counts */
		const char *wrong = add_value(&tool->args[i], value, &ret->values[i]);

		if (wrong)
			buf_addf(problem, "argument '%s' %s", tool->args[i].name, wrong);
		if (wrong && tool->args[i].choices)
			buf_addf(problem, ": %s", tool->args[i].choices);
		return !wrong;
	}
	json_text(key, &name);
	buf_adds(problem, "there is no argument '");
	(void)fence_add(problem, utf8_cut(buf_str(&name), 60), FENCE_LINE, 0);
	buf_adds(problem, "'");
	return false;
}

bool
args_read(const struct tool *tool, struct json_value arguments, struct args *ret, struct buf *ret_problem)
{
	struct json_value key, value;

	*ret = (struct args){ .table = tool->args };
	for (size_t at = 0; json_member(arguments, &at, &key, &value);) {
		if (!read_one(tool, key, value, ret, ret_problem)) {
			say_known(tool, ret_problem);
			return false;
		}
	}
	for (size_t i = 0; tool->args[i].name; i++) {
		if (!tool->args[i].required || ret->values[i].n > 0)
			continue;
		buf_addf(ret_problem, "argument '%s' is missing", tool->args[i].name);
		say_known(tool, ret_problem);
		return false;
	}
	return true;
}
