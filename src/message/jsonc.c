/* SPDX-License-Identifier: MIT */
/*
 * jsonc.c - JSON with comments as a tree of places in its text, and one entry more, less or other in it. A copy in
 * which comments are white space is read as JSON: all that it has is where it is in the text. See splice.h.
 */
#include "message/jsonc.h"

#include "base/error.h"
#include "message/splice.h"

/* Makes plain JSON of what is behind *at, byte for byte in its place. NULL, or what is wrong at *at. */
static const char *
make_strict(char *t, size_t n, size_t *at)
{
	char last = '\0', before = '\0'; /* what stands before this byte, white space aside */
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

/* NULL: out of memory. As deep as JSON_DEPTH_MAX. */
static struct jsonc_node *
add_node(struct jsonc *doc, struct jsonc_node *parent, const struct json_value *name, struct json_value v)
{
	struct jsonc_node *node = arena_alloc(&doc->own, sizeof *node);
	size_t at = (size_t)(v.raw.ptr - doc->strict.ptr);
	struct json_value key, one;

	if (!node)
		return NULL;
	*node = (struct jsonc_node){
		.kind = v.kind, .parent = parent, .name = at, .at = at, .end = at + v.raw.len, .text = doc->text
	};
	if (name) {
		node->name = (size_t)(name->raw.ptr - doc->strict.ptr);
		node->name_end = node->name + name->raw.len;
	}
	if (parent) {
		node->prev = parent->last;
		*(node->prev ? &node->prev->next : &parent->first) = node;
		parent->last = node;
		parent->n++;
	}
	for (size_t i = 0; json_item(v, &i, &one);)
		if (!add_node(doc, node, NULL, one))
			return NULL;
	for (size_t i = 0; json_member(v, &i, &key, &one);)
		if (!add_node(doc, node, &key, one))
			return NULL;
	return node;
}

enum mr_rc
jsonc_parse(struct mr_str text, struct jsonc *ret, struct mr_error *err)
{
	mr_auto(jsonc_done) struct jsonc doc = { .text = text };
	size_t at = splice_bom(text);
	struct json_value value;

	if (splice_is_blank(text))
		return mr_fail(err, MR_EMPTY, "there is nothing in it");
	char *strict = arena_dup(&doc.own, text);

	TRY(mr_got(strict, err));
	doc.strict = (struct mr_str){ strict, text.len };
	const char *problem = make_strict(strict, text.len, &at);

	if (!problem) {
		at = json_skip_space(doc.strict, at);
		problem = at == text.len ? "has comments and nothing else" : NULL;
	}
	if (!problem && json_value_at(doc.strict, &at, &value, &problem)) {
		at = json_skip_space(doc.strict, at);
		problem = at < text.len ? "goes on after its end" : NULL;
	}
	if (problem)
		return mr_fail(err, MR_CORRUPT, "line %zu: it %s", splice_line(text, at), problem);
	doc.root = add_node(&doc, NULL, NULL, value);
	TRY(mr_got(doc.root, err));
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

/* ---- Looking ---- */

static struct json_value
string_at(const struct jsonc_node *node, size_t at, size_t end)
{
	return (struct json_value){ JSON_STRING, { node->text.ptr + at, end - at } };
}

bool
jsonc_name_is(const struct jsonc_node *member, const char *name)
{
	return member->name_end > 0 && json_key_is(string_at(member, member->name, member->name_end), name);
}

struct jsonc_node *
jsonc_member(const struct jsonc_node *object, const char *name)
{
	if (!object || object->kind != JSON_OBJECT)
		return NULL;
	for (struct jsonc_node *m = object->last; m; m = m->prev)
		if (jsonc_name_is(m, name))
			return m;
	return NULL;
}

bool
jsonc_string(const struct jsonc_node *node, struct buf *out)
{
	if (!node || node->kind != JSON_STRING)
		return false;
	json_text(string_at(node, node->at, node->end), out);
	return true;
}

bool
jsonc_is(const struct jsonc_node *node, const char *string)
{
	return node && node->kind == JSON_STRING && json_key_is(string_at(node, node->at, node->end), string);
}

/* ---- How a value is written: white space behind each opening bracket, see splice.h ---- */

struct writer {
	struct buf *out;
	bool lines; /* else all in one */
	const char *nl;
	struct mr_str base, unit; /* indent of the line that it begins in, and of one step more */
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

/* Ours are a few brackets deep. */
static void
write_value(const struct writer *w, struct json_value v, unsigned depth)
{
	struct json_value key, one;
	size_t n = 0;
	bool object = v.kind == JSON_OBJECT;

	if (v.kind != JSON_OBJECT && v.kind != JSON_ARRAY) {
		buf_add(w->out, v.raw);
		return;
	}
	buf_addc(w->out, object ? '{' : '[');
	for (size_t at = 0; object ? json_member(v, &at, &key, &one) : json_item(v, &at, &one); n++) {
		if (n > 0)
			buf_addc(w->out, ',');
		new_line(w, depth + 1);
		if (object) {
			buf_add(w->out, key.raw);
			buf_adds(w->out, ": ");
		}
		write_value(w, one, depth + 1);
	}
	if (n > 0)
		new_line(w, depth);
	buf_addc(w->out, object ? '}' : ']');
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

/* ---- The style of the file ---- */

/* One step of indentation: that of the first thing in the outermost bracket. */
static struct mr_str
step_of(const struct jsonc *doc)
{
	const struct jsonc_node *first = doc->root->first;
	struct mr_str own = { 0 };

	if (first && memchr(doc->text.ptr + doc->root->at, '\n', first->name - doc->root->at))
		own = splice_indent(doc->text, first->name);
	return own.len > 0 ? own : STR("  ");
}

/* ---- Changes ---- */

/* Comments and commas are what stands between the parts. False: out of memory. */
static bool
list_of(const struct jsonc *doc, const struct jsonc_node *in, struct splice_list *ret)
{
	struct splice_item *items = calloc(in->n + 1, sizeof *items);
	const char *text = doc->text.ptr, *strict = doc->strict.ptr;
	size_t at = in->at + 1;

	*ret = (struct splice_list){ .open = in->at, .items = items, .n = in->n, .comment = "//" };
	for (const struct jsonc_node *c = in->first; items; c = c->next) {
		struct splice_item *before = c == in->first ? NULL : items - 1;

		for (size_t to = c ? c->name : in->end - 1; at < to; at++) {
			ret->comments |= text[at] != strict[at] && strict[at] == ' ';
			if (text[at] == ',' && strict[at] != ' ')
				before->comma = at;
		}
		if (!c)
			break;
		*items++ = (struct splice_item){ c->name, c->end, SPLICE_NONE };
		at = c->end;
	}
	return items;
}

static void
list_done(struct splice_list *list)
{
	free((struct splice_item *)(uintptr_t)list->items);
}

void
jsonc_insert(
    const struct jsonc *doc, const struct jsonc_node *in, const char *name, struct mr_str value, struct buf *out)
{
	mr_auto(buf_done) struct buf item = BUF_INIT;
	mr_auto(list_done) struct splice_list list;
	const char *nl = splice_newline(doc->text);

	out->failed |= !list_of(doc, in, &list);
	if (!buf_ok(out))
		return;
	struct splice_place place = splice_place(doc->text, &list);
	const struct jsonc_node *root = doc->root;
	bool one_line = root->n > 0 && !memchr(doc->text.ptr + root->at, '\n', root->end - root->at);
	struct writer w = { &item, in->n > 0 ? place.own_line : !one_line, nl, place.indent, step_of(doc) };

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
jsonc_remove(const struct jsonc *doc, const struct jsonc_node *node, bool keep_root, struct buf *out)
{
	while (node->parent && !(keep_root && !node->parent->parent)) {
		mr_auto(list_done) struct splice_list whole;

		if (!list_of(doc, node->parent, &whole) || !splice_is_ours(doc->text, &whole))
			break;
		node = node->parent;
	}
	buf_add(out, doc->text);
	if (!node->parent) {
		buf_replace(out, node->at, node->end, STR(""));
		return;
	}
	mr_auto(list_done) struct splice_list list;
	size_t i = 0;

	for (const struct jsonc_node *c = node->prev; c; c = c->prev)
		i++;
	out->failed |= !list_of(doc, node->parent, &list);
	if (buf_ok(out))
		splice_drop(out, &list, i);
}

void
jsonc_replace(const struct jsonc *doc, const struct jsonc_node *node, struct mr_str value, struct buf *out)
{
	bool lines = memchr(doc->text.ptr + node->at, '\n', node->end - node->at) != NULL;
	struct writer w = { out, lines, splice_newline(doc->text), splice_indent(doc->text, node->name), step_of(doc) };

	buf_add(out, str_first(doc->text, node->at));
	write_json(&w, value);
	buf_add(out, str_from(doc->text, node->end));
}
