/* SPDX-License-Identifier: MIT */
/*
 * jsonc.c - JSON with comments: adding, removing or replacing one entry. A copy in which comments are white space is
 * read as JSON; its values are at the same places as in the text. See splice.h.
 */
#include "message/jsonc.h"

#include "base/error.h"
#include "message/splice.h"

/* Makes plain JSON of the text from *at on, with every byte in its place. NULL, or the problem at *at. */
static const char *
make_strict(char *t, size_t n, size_t *at)
{
	char last = '\0', before = '\0'; /* the last bytes before this one, without white space */
	size_t comma = 0;

	for (size_t i = *at, end; i < n; i = end) {
		struct mr_str rest = { t + i, n - i };
		bool line = str_starts(rest, "//");

		end = i + 1;
		if (line || str_starts(rest, "/*")) {
			const char *stop = memmem(rest.ptr + 2, rest.len - 2, line ? "\n" : "*/", line ? 1 : 2);

			if (!stop && !line) {
				*at = i;
				return "ends within a comment";
			}
			end = stop ? (size_t)(stop - t) + (line ? 0 : 2) : n;
			memset(t + i, ' ', end - i);
			continue;
		}
		while (t[i] == '"' && end < n && t[end] != '"')
			end += t[end] == '\\' ? 2 : 1;
		end += t[i] == '"';
		if (ascii_space(t[i]))
			continue;
		if ((t[i] == '}' || t[i] == ']') && last == ',' && !strchr("{[,:", before))
			t[comma] = '\t';
		comma = i;
		before = last;
		last = t[i];
	}
	return NULL;
}

enum mr_rc
jsonc_parse(struct mr_str text, struct jsonc *ret, struct mr_error *err)
{
	mr_auto(jsonc_done) struct jsonc doc = { .text = text };
	size_t at = splice_bom(text);

	if (splice_is_blank(text))
		return mr_fail(err, MR_EMPTY, "it is empty");
	char *strict = arena_dup(&doc.own, text);

	TRY(mr_got(strict, err));
	doc.strict = (struct mr_str){ strict, text.len };
	const char *problem = make_strict(strict, text.len, &at);

	if (!problem) {
		at = json_skip_space(doc.strict, at);
		problem = at == text.len ? "has comments and nothing else" : NULL;
	}
	if (!problem && json_value_at(doc.strict, &at, &doc.root, &problem)) {
		at = json_skip_space(doc.strict, at);
		problem = at < text.len ? "goes on after its end" : NULL;
	}
	if (problem)
		return mr_fail(err, MR_CORRUPT, "line %zu: it %s", splice_line(text, at), problem);
	*ret = doc;
	doc = (struct jsonc){ 0 };
	return MR_OK;
}

void
jsonc_done(struct jsonc *doc)
{
	arena_free(doc->own);
	*doc = (struct jsonc){ 0 };
}

/* ---- Writing a value: white space after each opening bracket, see splice.h ---- */

struct writer {
	struct buf *out;
	bool lines; /* else all on one line */
	const char *nl;
	struct mr_str base, unit; /* indentation of its first line, and of one level */
};

static void
new_line(const struct writer *w, unsigned depth)
{
	if (!w->lines) {
		buf_addc(w->out, ' ');
		return;
	}
	buf_adds(w->out, w->nl);
	buf_add(w->out, w->base);
	while (depth-- > 0)
		buf_add(w->out, w->unit);
}

/* Our values are only a few brackets deep. */
static void
write_value(const struct writer *w, struct json_value v, unsigned depth)
{
	struct json_value key, one;
	size_t n = 0;

	if (v.kind != JSON_OBJECT && v.kind != JSON_ARRAY) {
		buf_add(w->out, v.raw);
		return;
	}
	buf_addc(w->out, v.raw.ptr[0]);
	for (size_t at = 0; json_child(v, &at, &key, &one); n++) {
		buf_adds(w->out, n > 0 ? "," : "");
		new_line(w, depth + 1);
		buf_add(w->out, key.raw);
		buf_adds(w->out, key.raw.len > 0 ? ": " : "");
		write_value(w, one, depth + 1);
	}
	if (n > 0)
		new_line(w, depth);
	buf_addc(w->out, v.raw.ptr[v.raw.len - 1]);
}

static void
write_json(const struct writer *w, struct mr_str json)
{
	struct json_value v;

	if (json_whole(json, &v, NULL))
		write_value(w, v, 0);
}

void
jsonc_pretty(struct mr_str value, const char *nl, struct buf *out)
{
	write_json(&(struct writer){ .out = out, .lines = true, .nl = nl, .unit = STR("  ") }, value);
}

/* ---- Finding places ---- */

static size_t
offset_of(const struct jsonc *doc, struct json_value v)
{
	return (size_t)(v.raw.ptr - doc->strict.ptr);
}

static size_t
end_of(const struct jsonc *doc, struct json_value v)
{
	return offset_of(doc, v) + v.raw.len;
}

static bool
has_lines(const struct jsonc *doc, struct json_value v)
{
	return memchr(doc->text.ptr + offset_of(doc, v), '\n', v.raw.len) != NULL;
}

/* The parent of an item or member; nothing for the root. */
static struct json_value
parent_of(const struct jsonc *doc, struct json_value child)
{
	struct json_value in = doc->root, parent = { 0 }, key;

	while (in.raw.ptr != child.raw.ptr) {
		parent = in;
		for (size_t at = 0; json_child(parent, &at, &key, &in) && in.raw.ptr + in.raw.len <= child.raw.ptr;)
			;
	}
	return parent;
}

static void
list_done(struct splice_list *list)
{
	free((struct splice_item *)(uintptr_t)list->items);
}

/* Its items as places in the text. False: out of memory. */
static bool
list_of(const struct jsonc *doc, struct json_value in, struct splice_list *ret)
{
	const char *text = doc->text.ptr, *strict = doc->strict.ptr;
	struct splice_item *items = NULL;
	struct json_value key, one;
	size_t n = 0, cap = 0;

	*ret = (struct splice_list){ .open = offset_of(doc, in), .comment = "//" };
	for (size_t at = 0; json_child(in, &at, &key, &one); ret->items = items) {
		if (!array_grow(&items, n, &cap, sizeof *items))
			return false;
		items[n++] =
		    (struct splice_item){ offset_of(doc, key.raw.ptr ? key : one), end_of(doc, one), SPLICE_NONE };
	}
	/* Comments and commas are between the items. */
	for (size_t i = 0; i <= n; i++) {
		size_t at = i > 0 ? items[i - 1].end : ret->open + 1, to = i < n ? items[i].at : end_of(doc, in) - 1;

		for (; at < to; at++) {
			ret->comments |= text[at] != strict[at] && strict[at] == ' ';
			if (i > 0 && text[at] == ',' && strict[at] != ' ')
				items[i - 1].comma = at;
		}
	}
	ret->n = n;
	return true;
}

/* One level of indentation: that of the first entry in the outermost bracket. */
static struct mr_str
step_of(const struct jsonc *doc, const struct splice_list *root)
{
	size_t first = root->n > 0 ? root->items[0].at : root->open;
	struct mr_str own = { 0 };

	if (memchr(doc->text.ptr + root->open, '\n', first - root->open))
		own = splice_indent(doc->text, first);
	return own.len > 0 ? own : STR("  ");
}

/* ---- Changes ---- */

void
jsonc_insert(const struct jsonc *doc, struct json_value in, const char *name, struct mr_str value, struct buf *out)
{
	mr_auto(buf_done) struct buf item = BUF_INIT;
	mr_auto(list_done) struct splice_list list = { 0 }, root = { 0 };
	const char *nl = splice_newline(doc->text);

	out->failed |= !list_of(doc, in, &list) || !list_of(doc, doc->root, &root);
	if (!buf_ok(out))
		return;
	struct splice_place place = splice_place(doc->text, &list);
	bool lines = list.n > 0 ? place.own_line : root.n == 0 || has_lines(doc, doc->root);
	struct writer w = { &item, lines, nl, place.indent, step_of(doc, &root) };

	if (name) {
		json_stringify(&item, str_of(name));
		buf_adds(&item, ": ");
	}
	write_json(&w, value);
	buf_add(out, doc->text);
	splice_append(out, &list, buf_str(&item), nl);
	out->failed |= item.failed;
}

void
jsonc_remove(const struct jsonc *doc, struct json_value child, bool keep_root, struct buf *out)
{
	mr_auto(list_done) struct splice_list list = { 0 };
	struct json_value in;
	size_t i = 0;

	for (;; child = in) {
		in = parent_of(doc, child);
		list_done(&list);
		list = (struct splice_list){ 0 };
		out->failed |= in.raw.ptr && !list_of(doc, in, &list);
		if (!buf_ok(out) || !in.raw.ptr || (keep_root && in.raw.ptr == doc->root.raw.ptr) ||
		    !splice_is_ours(doc->text, &list))
			break;
	}
	buf_add(out, doc->text);
	if (!in.raw.ptr)
		buf_replace(out, offset_of(doc, child), end_of(doc, child), STR(""));
	while (i < list.n && list.items[i].end != end_of(doc, child))
		i++;
	if (i < list.n)
		splice_drop(out, &list, i);
}

void
jsonc_replace(const struct jsonc *doc, struct json_value old, const struct buf *value, struct buf *out)
{
	mr_auto(list_done) struct splice_list root = { 0 };
	size_t at = offset_of(doc, old);

	out->failed |= value->failed || !list_of(doc, doc->root, &root);
	struct writer w = { out, has_lines(doc, old), splice_newline(doc->text), splice_indent(doc->text, at),
		step_of(doc, &root) };

	buf_add(out, str_first(doc->text, at));
	write_json(&w, buf_str(value));
	buf_add(out, str_from(doc->text, end_of(doc, old)));
}
