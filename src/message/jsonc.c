/* SPDX-License-Identifier: MIT */
/*
 * jsonc.c - JSON with comments as a tree of places in its text, and one entry more, less or other in it. No recursion
 * when reading: the open brackets are the parents. See splice.h.
 */
#include "message/jsonc.h"

#include "base/error.h"
#include "message/splice.h"

struct parser {
	struct jsonc *doc;
	size_t at;
	size_t depth;
	struct jsonc_node *open; /* the innermost bracket; NULL: outside */
	bool behind_value;       /* the last thing inside it was a value, not a comma */
	bool nomem;
};

static char
here(const struct parser *p)
{
	return p->at < p->doc->text.len ? p->doc->text.ptr[p->at] : '\0';
}

/* White space and comments. */
static const char *
skip(struct parser *p)
{
	struct mr_str t = p->doc->text;

	for (;;) {
		p->at = json_skip_space(t, p->at);
		if (t.len - p->at < 2 || t.ptr[p->at] != '/' || (t.ptr[p->at + 1] != '/' && t.ptr[p->at + 1] != '*'))
			return NULL;
		bool line = t.ptr[p->at + 1] == '/';
		const char *from = t.ptr + p->at + 2;
		const char *end = memmem(from, t.len - p->at - 2, line ? "\n" : "*/", line ? 1 : 2);

		if (!end && !line)
			return "ends within a comment";
		p->at = end ? (size_t)(end - t.ptr) + (line ? 0 : 2) : t.len;
		if (p->open)
			p->open->comments = true;
	}
}

static struct jsonc_node *
add_node(struct parser *p)
{
	struct jsonc_node *node = arena_alloc(&p->doc->own, sizeof *node);

	if (!node) {
		p->nomem = true;
		return NULL;
	}
	*node = (struct jsonc_node){ .parent = p->open, .comma = SPLICE_NONE, .text = p->doc->text };
	if (!p->open) {
		p->doc->root = node;
		return node;
	}
	node->prev = p->open->last;
	*(node->prev ? &node->prev->next : &p->open->first) = node;
	p->open->last = node;
	p->open->n++;
	return node;
}

static const char *
take_name(struct parser *p, struct jsonc_node *node)
{
	struct json_value name;
	const char *problem = NULL;

	if (here(p) != '"')
		return "has a member without a name";
	node->name = p->at;
	if (!json_value_at(p->doc->text, &p->at, &name, &problem))
		return problem;
	node->name_end = p->at;
	problem = skip(p);
	if (problem)
		return problem;
	if (here(p) != ':')
		return "lacks a colon after a name";
	p->at++;
	return skip(p);
}

static const char *
take_value(struct parser *p)
{
	struct jsonc_node *node = add_node(p);
	struct json_value value;
	const char *problem = NULL;

	if (!node)
		return "is too large";
	if (p->open && p->open->kind == JSON_OBJECT)
		problem = take_name(p, node);
	if (problem)
		return problem;
	node->at = p->at;
	if (node->name_end == 0)
		node->name = node->at;
	p->behind_value = true;
	if (here(p) != '{' && here(p) != '[') {
		if (!json_value_at(p->doc->text, &p->at, &value, &problem))
			return problem;
		node->kind = value.kind;
		node->end = p->at;
		return NULL;
	}
	if (p->depth++ == JSON_DEPTH_MAX)
		return "is nested too deep";
	node->kind = here(p) == '{' ? JSON_OBJECT : JSON_ARRAY;
	p->at++;
	p->open = node;
	p->behind_value = false;
	return NULL;
}

/* One thing inside the innermost bracket. */
static const char *
step(struct parser *p)
{
	bool object = p->open->kind == JSON_OBJECT;
	const char *problem = skip(p);

	if (problem)
		return problem;
	if (p->at >= p->doc->text.len)
		return object ? "ends within an object" : "ends within an array";
	if (here(p) == (object ? '}' : ']')) {
		p->open->end = ++p->at;
		p->open = p->open->parent;
		p->depth--;
		p->behind_value = true;
		return NULL;
	}
	if (!p->behind_value)
		return take_value(p);
	if (here(p) != ',')
		return "lacks a comma";
	p->open->last->comma = p->at++;
	p->behind_value = false;
	return NULL;
}

static const char *
parse_all(struct parser *p)
{
	const char *problem = skip(p);

	if (!problem && p->at >= p->doc->text.len)
		problem = "has comments and nothing else";
	if (!problem)
		problem = take_value(p);
	while (!problem && p->open)
		problem = step(p);
	if (!problem)
		problem = skip(p);
	if (!problem && p->at < p->doc->text.len)
		problem = "goes on after its end";
	return problem;
}

enum mr_rc
jsonc_parse(struct mr_str text, struct jsonc *ret, struct mr_error *err)
{
	struct jsonc doc = { .text = text };
	struct parser p = { .doc = &doc, .at = splice_bom(text) };

	if (splice_is_blank(text))
		return mr_fail(err, MR_EMPTY, "there is nothing in it");
	const char *problem = parse_all(&p);

	if (!problem) {
		*ret = doc;
		return MR_OK;
	}
	jsonc_done(&doc);
	return p.nomem ? mr_nomem(err) : mr_fail(err, MR_CORRUPT, "line %zu: it %s", splice_line(text, p.at), problem);
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
	const char *problem;

	if (json_whole(json, &v, &problem))
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

static bool
is_one_line(const struct jsonc *doc)
{
	const struct jsonc_node *root = doc->root;

	return root->n > 0 && !memchr(doc->text.ptr + root->at, '\n', root->end - root->at);
}

/* ---- Changes ---- */

static struct splice_item *
items_of(const struct jsonc_node *in)
{
	struct splice_item *items = calloc(in->n + 1, sizeof *items);
	size_t i = 0;

	for (const struct jsonc_node *c = in->first; items && c; c = c->next)
		items[i++] = (struct splice_item){ c->name, c->end, c->comma };
	return items;
}

static struct splice_list
list_of(const struct jsonc_node *in, const struct splice_item *items)
{
	return (struct splice_list){
		.open = in->at, .items = items, .n = in->n, .comments = in->comments, .comment = "//"
	};
}

void
jsonc_insert(
    const struct jsonc *doc, const struct jsonc_node *in, const char *name, struct mr_str value, struct buf *out)
{
	mr_auto(buf_done) struct buf item = BUF_INIT;
	mr_auto(free_ptr) struct splice_item *items = items_of(in);
	struct splice_list list = list_of(in, items);
	const char *nl = splice_newline(doc->text);

	if (!items) {
		out->failed = true;
		return;
	}
	struct splice_place place = splice_place(doc->text, &list);
	struct writer w = { &item, in->n > 0 ? place.own_line : !is_one_line(doc), nl, place.indent, step_of(doc) };

	if (name) {
		json_stringify(&item, str_of(name));
		buf_adds(&item, ": ");
	}
	write_json(&w, value);
	splice_append(doc->text, &list, buf_str(&item), nl, out);
	out->failed |= item.failed;
}

static bool
goes_with_child(const struct jsonc *doc, const struct jsonc_node *in)
{
	struct splice_item only = { in->first->name, in->first->end, in->first->comma };
	struct splice_list list = list_of(in, &only);

	return in->n == 1 && splice_is_ours(doc->text, &list);
}

void
jsonc_remove(const struct jsonc *doc, const struct jsonc_node *node, bool keep_root, struct buf *out)
{
	while (node->parent && goes_with_child(doc, node->parent) && !(keep_root && !node->parent->parent))
		node = node->parent;
	if (!node->parent) {
		buf_add(out, str_first(doc->text, node->at));
		buf_add(out, str_from(doc->text, node->end));
		return;
	}
	mr_auto(free_ptr) struct splice_item *items = items_of(node->parent);
	struct splice_list list = list_of(node->parent, items);
	size_t i = 0;

	for (const struct jsonc_node *c = node->prev; c; c = c->prev)
		i++;
	if (items)
		splice_drop(doc->text, &list, i, out);
	else
		out->failed = true;
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
