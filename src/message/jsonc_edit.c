/* SPDX-License-Identifier: MIT */
/* jsonc_edit.c - one entry more, less or other in a settings file; how our entries are written. See splice.h. */
#include "message/jsonc.h"

#include "base/error.h"
#include "message/splice.h"

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
		buf_add(out, (struct mr_str){ doc->text.ptr, node->at });
		buf_add(out, (struct mr_str){ doc->text.ptr + node->end, doc->text.len - node->end });
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

	buf_add(out, (struct mr_str){ doc->text.ptr, node->at });
	write_json(&w, value);
	buf_add(out, (struct mr_str){ doc->text.ptr + node->end, doc->text.len - node->end });
}
