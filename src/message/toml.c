/* SPDX-License-Identifier: MIT */
/* toml.c - the places of keys and values in TOML, and one change. Dates and numbers are only copied. See toml.h. */
#include "message/toml.h"

#include "base/error.h"
#include "message/json_read.h"
#include "message/splice.h"

#define DEPTH_MAX 64

static size_t
skip_blank(struct mr_str t, size_t at, bool lines)
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
skip_string(struct mr_str t, size_t *at)
{
	char quote = t.ptr[*at];
	bool is_long = is_triple(t, *at);

	for (size_t i = *at + (is_long ? 3 : 1); i < t.len && (is_long || t.ptr[i] != '\n'); i++) {
		if (t.ptr[i] == '\\' && quote == '"') {
			i++;
		} else if (t.ptr[i] == quote && (!is_long || is_triple(t, i))) {
			*at = i + (is_long ? 3 : 1);
			for (int more = 0; is_long && more < 2 && *at < t.len && t.ptr[*at] == quote; more++)
				++*at; /* up to two quotes may precede the three */
			return NULL;
		}
	}
	return is_long ? "ends within a string" : "has a string without an end";
}

bool
toml_string(struct mr_str v, struct buf *out)
{
	if (v.len < 2 || (v.ptr[0] != '"' && v.ptr[0] != '\'') || v.ptr[v.len - 1] != v.ptr[0] ||
	    (v.len >= 6 && is_triple(v, 0)))
		return false;
	if (v.ptr[0] == '\'') {
		buf_add(out, str_from(str_first(v, v.len - 1), 1));
		return true;
	}
	struct json_value same;

	/* Escapes that only TOML has (\e, \x41, \U0001F600) are in no path and no command of ours. */
	if (!json_whole(v, &same, NULL))
		return false;
	json_text(same, out);
	return true;
}

/* ---- Keys ---- */

static bool
is_bare(char c)
{
	return ascii_alnum(c) || c == '_' || c == '-';
}

/* "a.'b'.c": adds its parts to the path. */
static const char *
take_key(struct mr_str t, size_t *at, char path[TOML_PATH_MAX + 1])
{
	for (;;) {
		mr_auto(buf_done) struct buf part = BUF_INIT;
		size_t from = *at = skip_blank(t, *at, false), len = strlen(path);

		if (from < t.len && (t.ptr[from] == '"' || t.ptr[from] == '\'')) {
			const char *problem = skip_string(t, at);

			if (problem)
				return problem;
			if (!toml_string(str_between(t.ptr + from, t.ptr + *at), &part))
				return "has a key of an unknown form";
		} else {
			while (*at < t.len && is_bare(t.ptr[*at]))
				++*at;
			if (*at == from)
				return "lacks a key";
			buf_add(&part, str_between(t.ptr + from, t.ptr + *at));
		}
		(void)snprintf(path + len, TOML_PATH_MAX + 1 - len, "%s%s", len > 0 ? TOML_DOT : "", buf_z(&part));
		size_t next = skip_blank(t, *at, false);

		if (next >= t.len || t.ptr[next] != '.')
			return NULL;
		*at = next + 1;
	}
}

/* ---- Values ---- */

static size_t
skip_bare_word(struct mr_str t, size_t at)
{
	while (at < t.len && (is_bare(t.ptr[at]) || t.ptr[at] == '.' || t.ptr[at] == '+' || t.ptr[at] == ':'))
		at++;
	return at;
}

/* "key =", and the blanks after it */
static const char *
take_key_of_pair(struct mr_str t, size_t *at, char path[TOML_PATH_MAX + 1], bool lines)
{
	const char *problem = take_key(t, at, path);

	if (problem)
		return problem;
	*at = skip_blank(t, *at, lines);
	if (*at >= t.len || t.ptr[*at] != '=')
		return "lacks an equals sign";
	*at = skip_blank(t, *at + 1, lines);
	return NULL;
}

static const char *skip_items(struct mr_str t, size_t *at, unsigned most);

/* most: limit of open brackets, and so of the recursion */
static const char *
skip_value(struct mr_str t, size_t *at, unsigned most)
{
	size_t from = *at;
	char c = from < t.len ? t.ptr[from] : '\0';

	if (c == '"' || c == '\'')
		return skip_string(t, at);
	if (c == '[' || c == '{')
		return most > 0 ? skip_items(t, at, most - 1) : "is nested too deep";
	/* A number, a word, or a date, which may be two words. */
	*at = skip_bare_word(t, from);
	if (*at - from == strlen("1979-05-27") && t.ptr[from + 4] == '-' && *at + 1 < t.len && t.ptr[*at] == ' ' &&
	    ascii_digit(t.ptr[*at + 1]))
		*at = skip_bare_word(t, *at + 1);
	return *at > from ? NULL : "lacks a value";
}

/* An array or an inline table, from bracket to bracket. */
static const char *
skip_items(struct mr_str t, size_t *at, unsigned most)
{
	bool table = t.ptr[*at] == '{';
	char closer = table ? '}' : ']';

	for (++*at;; ++*at) {
		char path[TOML_PATH_MAX + 1] = "";
		const char *problem = NULL;

		*at = skip_blank(t, *at, true);
		if (*at >= t.len)
			return table ? "ends within an inline table" : "ends within an array";
		if (t.ptr[*at] == closer)
			break;
		if (table)
			problem = take_key_of_pair(t, at, path, true);
		if (!problem)
			problem = skip_value(t, at, most);
		if (problem)
			return problem;
		size_t next = skip_blank(t, *at, true);
		char c = next < t.len ? t.ptr[next] : '\0';

		if (c != ',' && c != closer)
			return table ? "lacks a comma in an inline table" : "lacks a comma in an array";
		*at = next;
		if (c == closer)
			break;
	}
	++*at;
	return NULL;
}

/* ---- Walking ---- */

struct walk {
	struct mr_str t;
	toml_fn *fn;
	void *ctx;
	bool stopped;
	char table[TOML_PATH_MAX + 1];
};

static void
tell(struct walk *w, const struct toml_item *item)
{
	if (!w->stopped)
		w->stopped = !w->fn(w->ctx, item);
}

static const char *
take_table(struct walk *w, size_t *at, size_t line)
{
	struct toml_item item = { .kind = TOML_TABLE, .line = line, .at = *at };
	const char *problem;

	if (w->t.len - *at >= 2 && w->t.ptr[*at + 1] == '[') {
		item.kind = TOML_TABLES;
		++*at;
	}
	++*at;
	problem = take_key(w->t, at, item.path);
	for (int i = item.kind == TOML_TABLES ? 2 : 1; i > 0 && !problem; i--) {
		*at = skip_blank(w->t, *at, false);
		if (*at >= w->t.len || w->t.ptr[*at] != ']')
			problem = "lacks the end of a table's name";
		++*at;
	}
	if (problem)
		return problem;
	item.end = *at;
	memcpy(w->table, item.path, sizeof w->table);
	tell(w, &item);
	return NULL;
}

/* `in`: the inline table that holds it, or NULL. The keys of such a table, which was checked, follow it. */
static const char *
take_pair(struct walk *w, size_t *at, size_t line, const struct toml_item *in, unsigned depth)
{
	struct toml_item item = { .kind = TOML_VALUE, .line = line, .nested = in };

	memcpy(item.path, in ? in->path : w->table, sizeof item.path);
	const char *problem = take_key_of_pair(w->t, at, item.path, in);

	item.at = *at;
	if (!problem)
		problem = skip_value(w->t, at, DEPTH_MAX);
	if (problem)
		return problem;
	item.end = *at;
	tell(w, &item);
	bool more = w->t.ptr[item.at] == '{' && depth > 0;

	for (size_t inner = item.at; more; more = inner < item.end && w->t.ptr[inner] == ',') {
		inner = skip_blank(w->t, inner + 1, true);
		if (take_pair(w, &inner, line, &item, depth - 1))
			break;
		inner = skip_blank(w->t, inner, true);
	}
	return NULL;
}

enum mr_rc
toml_each(struct mr_str text, toml_fn *fn, void *ctx, struct mr_error *err)
{
	struct walk w = { .t = text, .fn = fn, .ctx = ctx };
	const char *problem = NULL;

	/* A lone CR is not allowed in TOML, and a newline of ours after it would form a line end with it. */
	for (size_t i = 0; i < text.len; i++)
		if (text.ptr[i] == '\r' && (i + 1 == text.len || text.ptr[i + 1] != '\n'))
			return mr_fail(err, MR_CORRUPT, "line %zu: it has a CR without a LF", splice_line(text, i));
	for (size_t at = splice_bom(text); !w.stopped;) {
		at = skip_blank(text, at, true);
		if (at >= text.len)
			break;
		size_t line = at - splice_indent(text, at).len;

		problem = text.ptr[at] == '[' ? take_table(&w, &at, line) : take_pair(&w, &at, line, NULL, 8);
		size_t rest = problem ? at : skip_blank(text, at, false);

		if (!problem && rest < text.len && text.ptr[rest] != '\n' && text.ptr[rest] != '\r')
			problem = "goes on after a value";
		if (problem)
			return mr_fail(err, MR_CORRUPT, "line %zu: it %s", splice_line(text, at), problem);
		at = rest;
	}
	return MR_OK;
}

/* ---- Arrays ---- */

#define ITEMS_MAX 512

struct items {
	struct splice_item v[ITEMS_MAX];
	struct splice_list list;
};

/* False: not an array, or too long. */
static bool
find_items(struct mr_str text, size_t open, size_t end, struct items *ret)
{
	struct mr_str t = { text.ptr, end };
	size_t at = open + 1, n = 0;

	if (end <= open + 1 || t.ptr[open] != '[')
		return false;
	ret->list = (struct splice_list){ .open = open, .items = ret->v, .comment = "#" };
	for (;;) {
		size_t next = skip_blank(t, at, true);

		ret->list.comments |= memchr(t.ptr + at, '#', next - at) != NULL;
		at = next;
		if (at >= t.len || t.ptr[at] == ']' || n == ITEMS_MAX)
			break;
		ret->v[n] = (struct splice_item){ .at = at, .comma = SPLICE_NONE };
		if (skip_value(t, &at, DEPTH_MAX))
			return false;
		ret->v[n].end = at;
		next = skip_blank(t, at, true);
		ret->list.comments |= memchr(t.ptr + at, '#', next - at) != NULL;
		at = next;
		if (at < t.len && t.ptr[at] == ',')
			ret->v[n].comma = at++;
		n++;
	}
	ret->list.n = n;
	return n < ITEMS_MAX;
}

bool
toml_strings(struct mr_str value, struct mr_names *ret)
{
	struct items all;

	if (!find_items(value, 0, value.len, &all))
		return false;
	for (size_t i = 0; i < all.list.n; i++) {
		mr_auto(buf_done) struct buf one = BUF_INIT;

		(void)toml_string((struct mr_str){ value.ptr + all.v[i].at, all.v[i].end - all.v[i].at }, &one);
		if (!names_add(ret, str_of(buf_z(&one))))
			return false;
	}
	return true;
}

void
toml_array_add(struct buf *text, size_t at, size_t end, const char *string)
{
	mr_auto(buf_done) struct buf item = BUF_INIT;
	struct items all;

	json_stringify(&item, str_of(string));
	if (find_items(buf_str(text), at, end, &all))
		splice_append(text, &all.list, buf_str(&item), splice_newline(buf_str(text)));
	text->failed |= item.failed;
}

void
toml_array_drop(struct buf *text, size_t at, size_t end, size_t i)
{
	struct items all;

	if (find_items(buf_str(text), at, end, &all) && i < all.list.n)
		splice_drop(text, &all.list, i);
}

bool
toml_array_is_ours(struct mr_str text, size_t at, size_t end)
{
	struct items all;

	return find_items(text, at, end, &all) && splice_is_ours(text, &all.list);
}

/* ---- Lines and tables ---- */

static size_t
newline_at(struct mr_str text, size_t at) /* its length, 0: none */
{
	if (at < text.len && text.ptr[at] == '\n')
		return 1;
	return at + 1 < text.len && text.ptr[at] == '\r' && text.ptr[at + 1] == '\n' ? 2 : 0;
}

static size_t
newline_before(struct mr_str text, size_t at)
{
	if (at == 0 || text.ptr[at - 1] != '\n')
		return 0;
	return at > 1 && text.ptr[at - 2] == '\r' ? 2 : 1;
}

void
toml_add_block(struct buf *text, bool there, const struct buf *block)
{
	const char *nl = splice_newline(buf_str(text));
	bool empty = text->len == splice_bom(buf_str(text)), ends = newline_before(buf_str(text), text->len) > 0;

	if (!empty)
		buf_adds(text, nl);
	if (!empty && !ends)
		buf_adds(text, nl);
	for (size_t i = 0; i < block->len; i++)
		if (block->ptr[i] == '\n')
			buf_adds(text, nl);
		else
			buf_addc(text, block->ptr[i]);
	if (empty ? !there : ends)
		buf_adds(text, nl);
	text->failed |= block->failed;
}

static size_t
end_of_line(struct mr_str text, size_t at)
{
	while (at < text.len && newline_at(text, at) == 0)
		at++;
	return at;
}

void
toml_drop_block(struct buf *text, size_t from, size_t last)
{
	struct mr_str t = buf_str(text);
	size_t to = end_of_line(t, last), begin = from, behind = newline_at(t, to);

	/* If a newline follows, one empty line was added with it; at the end of a file without one, also the newline of
	 * the line before. */
	for (int n = behind > 0 ? 1 : 2; n > 0; n--) {
		size_t len = newline_before(t, begin);

		if (behind > 0 && len > 0 && begin - len > splice_bom(t) && newline_before(t, begin - len) == 0)
			break; /* the user removed the empty line */
		begin -= len;
	}
	buf_replace(text, begin, to + behind, STR(""));
}

void
toml_add_line(struct buf *text, size_t at, const struct buf *line)
{
	const char *nl = splice_newline(buf_str(text));
	size_t end = end_of_line(buf_str(text), at);

	buf_replace(text, end, end, buf_str(line));
	buf_replace(text, end, end, str_of(nl));
	text->failed |= line->failed;
}

void
toml_drop_line(struct buf *text, const struct toml_item *item)
{
	struct mr_str t = buf_str(text);
	size_t end = end_of_line(t, item->end), begin = item->line - newline_before(t, item->line);

	buf_replace(text, begin, begin < item->line ? end : end + newline_at(t, end), STR(""));
}
