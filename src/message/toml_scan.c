/* SPDX-License-Identifier: MIT */
/* toml_scan.c - where a key and a value of TOML end. Dates and numbers are not judged: they are only copied. */
#include "message/toml.h"

#include "base/error.h"
#include "message/json_read.h"

#define DEPTH_MAX 64

size_t
toml_skip_blank(struct mr_str t, size_t at, bool lines)
{
	for (;; at++) {
		if (at < t.len && t.ptr[at] == '#')
			while (at < t.len && t.ptr[at] != '\n')
				at++;
		if (at >= t.len)
			return t.len;
		char c = t.ptr[at];
		bool newline = c == '\n' || (c == '\r' && at + 1 < t.len && t.ptr[at + 1] == '\n');

		if (c != ' ' && c != '\t' && !(lines && newline))
			return at;
	}
}

/* ---- Strings ---- */

static bool
is_triple(struct mr_str t, size_t at)
{
	return t.len - at >= 3 && t.ptr[at + 1] == t.ptr[at] && t.ptr[at + 2] == t.ptr[at];
}

static const char *
skip_long_string(struct mr_str t, size_t *at)
{
	char quote = t.ptr[*at];

	for (size_t i = *at + 3; i < t.len; i++) {
		if (t.ptr[i] == '\\' && quote == '"') {
			i++;
		} else if (t.ptr[i] == quote && is_triple(t, i)) {
			i += 3;
			for (int more = 0; more < 2 && i < t.len && t.ptr[i] == quote; more++)
				i++; /* up to two quotes may stand before the three */
			*at = i;
			return NULL;
		}
	}
	return "ends within a string";
}

static const char *
skip_string(struct mr_str t, size_t *at)
{
	char quote = t.ptr[*at];

	if (is_triple(t, *at))
		return skip_long_string(t, at);
	for (size_t i = *at + 1; i < t.len && t.ptr[i] != '\n'; i++) {
		if (t.ptr[i] == '\\' && quote == '"') {
			i++;
		} else if (t.ptr[i] == quote) {
			*at = i + 1;
			return NULL;
		}
	}
	return "has a string without an end";
}

bool
toml_string(struct mr_str v, struct buf *out)
{
	if (v.len < 2 || (v.ptr[0] != '"' && v.ptr[0] != '\'') || v.ptr[v.len - 1] != v.ptr[0] ||
	    (v.len >= 6 && is_triple(v, 0)))
		return false;
	if (v.ptr[0] == '\'') {
		buf_add(out, (struct mr_str){ v.ptr + 1, v.len - 2 });
		return true;
	}
	struct json_value same;
	const char *problem;

	/* What only TOML can escape (\e, \x41, \U0001F600) is in no path and no command of ours. */
	if (!json_whole(v, &same, &problem))
		return false;
	json_text(same, out);
	return true;
}

/* ---- Keys ---- */

static bool
is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

static void
add_part(char path[TOML_PATH_MAX + 1], struct mr_str part)
{
	size_t len = strlen(path);

	(void)snprintf(path + len, TOML_PATH_MAX + 1 - len, "%s%.*s", len > 0 ? TOML_DOT : "", (int)part.len, part.ptr);
}

static const char *
take_part(struct mr_str t, size_t *at, char path[TOML_PATH_MAX + 1])
{
	mr_auto(buf_done) struct buf part = BUF_INIT;
	size_t from = *at;
	const char *problem = NULL;

	if (*at < t.len && (t.ptr[*at] == '"' || t.ptr[*at] == '\'')) {
		problem = skip_string(t, at);
		if (!problem && !toml_string((struct mr_str){ t.ptr + from, *at - from }, &part))
			problem = "has a key of an unknown form";
		if (!problem)
			add_part(path, buf_str(&part));
		return problem;
	}
	while (*at < t.len && is_bare(t.ptr[*at]))
		++*at;
	if (*at == from)
		return "lacks a key";
	add_part(path, (struct mr_str){ t.ptr + from, *at - from });
	return NULL;
}

const char *
toml_take_key(struct mr_str t, size_t *at, char path[TOML_PATH_MAX + 1])
{
	for (;;) {
		*at = toml_skip_blank(t, *at, false);
		const char *problem = take_part(t, at, path);
		size_t next = toml_skip_blank(t, *at, false);

		if (problem || next >= t.len || t.ptr[next] != '.')
			return problem;
		*at = next + 1;
	}
}

/* ---- Values: brackets on a small stack instead of recursion ---- */

static size_t
skip_bare_word(struct mr_str t, size_t at)
{
	while (at < t.len && (is_bare(t.ptr[at]) || t.ptr[at] == '.' || t.ptr[at] == '+' || t.ptr[at] == ':'))
		at++;
	return at;
}

/* A number, a word, or a date; a date may be two words. */
static const char *
skip_bare(struct mr_str t, size_t *at)
{
	size_t from = *at, end = skip_bare_word(t, from);

	if (end - from == strlen("1979-05-27") && t.ptr[from + 4] == '-' && end + 1 < t.len && t.ptr[end] == ' ' &&
	    t.ptr[end + 1] >= '0' && t.ptr[end + 1] <= '9')
		end = skip_bare_word(t, end + 1);
	*at = end;
	return end > from ? NULL : "lacks a value";
}

struct nest {
	bool object[DEPTH_MAX];
	size_t depth;
};

/* "key =" inside an inline table */
static const char *
take_inline_key(struct mr_str t, size_t *at)
{
	char path[TOML_PATH_MAX + 1] = "";
	const char *problem = toml_take_key(t, at, path);

	if (problem)
		return problem;
	*at = toml_skip_blank(t, *at, true);
	if (*at >= t.len || t.ptr[*at] != '=')
		return "lacks an equals sign";
	++*at;
	return NULL;
}

/* At the beginning of something inside the innermost bracket: its end, or an item. *ret_item: an item's value comes. */
static const char *
inside(struct mr_str t, size_t *at, struct nest *n, bool *ret_item)
{
	bool object = n->object[n->depth - 1];

	*ret_item = false;
	*at = toml_skip_blank(t, *at, true);
	if (*at >= t.len)
		return object ? "ends within an inline table" : "ends within an array";
	if (t.ptr[*at] == (object ? '}' : ']')) {
		++*at;
		n->depth--;
		return NULL;
	}
	*ret_item = true;
	return object ? take_inline_key(t, at) : NULL;
}

/* Behind a value, as long as brackets end there; then behind the comma. */
static const char *
behind(struct mr_str t, size_t *at, struct nest *n)
{
	while (n->depth > 0) {
		bool object = n->object[n->depth - 1];

		size_t next = toml_skip_blank(t, *at, true);

		if (next < t.len && t.ptr[next] == ',') {
			*at = next + 1;
			return NULL;
		}
		if (next >= t.len || t.ptr[next] != (object ? '}' : ']'))
			return object ? "lacks a comma in an inline table" : "lacks a comma in an array";
		*at = next + 1;
		n->depth--;
	}
	return NULL;
}

const char *
toml_skip_value(struct mr_str t, size_t *at)
{
	struct nest n = { .depth = 0 };
	const char *problem = NULL;

	do {
		bool item = true;

		if (n.depth > 0)
			problem = inside(t, at, &n, &item);
		if (!problem && item) {
			*at = toml_skip_blank(t, *at, n.depth > 0);
			char c = *at < t.len ? t.ptr[*at] : '\0';

			if ((c == '[' || c == '{') && n.depth == DEPTH_MAX)
				return "is nested too deep";
			if (c == '[' || c == '{') {
				n.object[n.depth++] = c == '{';
				++*at;
				continue;
			}
			problem = c == '"' || c == '\'' ? skip_string(t, at) : skip_bare(t, at);
		}
		if (!problem)
			problem = behind(t, at, &n);
	} while (!problem && n.depth > 0);
	return problem;
}
