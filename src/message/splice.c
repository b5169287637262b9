/* SPDX-License-Identifier: MIT */
/* splice.c - adds or removes one item of a list, with all other bytes kept. See splice.h. */
#include "message/splice.h"

#include "base/error.h"

const char *
splice_newline(struct mr_str text)
{
	const char *first = text.len > 0 ? memchr(text.ptr, '\n', text.len) : NULL;

	return first && first > text.ptr && first[-1] == '\r' ? "\r\n" : "\n";
}

size_t
splice_bom(struct mr_str text)
{
	return str_starts(text, "\xEF\xBB\xBF") ? 3 : 0;
}

bool
splice_is_blank(struct mr_str text)
{
	for (size_t i = splice_bom(text); i < text.len; i++)
		if (!ascii_space(text.ptr[i]))
			return false;
	return true;
}

size_t
splice_line(struct mr_str text, size_t at)
{
	size_t line = 1;

	for (size_t i = 0; i < at && i < text.len; i++)
		line += text.ptr[i] == '\n';
	return line;
}

struct mr_str
splice_indent(struct mr_str text, size_t at)
{
	size_t from = at, to;

	while (from > 0 && text.ptr[from - 1] != '\n')
		from--;
	if (from == 0)
		from = splice_bom(text);
	for (to = from; to < at && ascii_blank(text.ptr[to]);)
		to++;
	return (struct mr_str){ text.ptr + from, to - from };
}

/* ---- Adding ---- */

static bool
has_newline(struct mr_str text, size_t from, size_t to)
{
	return str_find(str_between(text.ptr + from, text.ptr + to), '\n') < to - from;
}

struct splice_place
splice_place(struct mr_str text, const struct splice_list *list)
{
	if (list->n == 0)
		return (struct splice_place){ false, splice_indent(text, list->open) };
	const struct splice_item *last = &list->items[list->n - 1];
	size_t before = list->n > 1 ? last[-1].end : list->open + 1;

	return (struct splice_place){ has_newline(text, before, last->at), splice_indent(text, last->at) };
}

/* The place after comments that follow on the same line, because they belong to the text before them. */
static size_t
behind_comments(struct mr_str text, size_t at, const char *to_end_of_line)
{
	for (size_t i = at;;) {
		struct mr_str rest;

		while (i < text.len && ascii_blank(text.ptr[i]))
			i++;
		rest = str_from(text, i);
		if (str_starts(rest, to_end_of_line)) {
			while (i < text.len && text.ptr[i] != '\n')
				i++;
			while (text.ptr[i - 1] == '\r') /* else our newline would become a part of theirs */
				i--;
			return i;
		}
		const char *end = to_end_of_line[0] == '/' && str_starts(rest, "/*")
				      ? memmem(rest.ptr + 2, rest.len - 2, "*/", 2)
				      : NULL;

		if (!end || has_newline(text, i, (size_t)(end - text.ptr)))
			return at;
		at = i = (size_t)(end - text.ptr) + 2;
	}
}

void
splice_append(struct buf *text, const struct splice_list *list, struct mr_str item, const char *nl)
{
	const struct splice_item *last = list->n > 0 ? &list->items[list->n - 1] : NULL;
	struct splice_place place = splice_place(buf_str(text), list);
	mr_auto(buf_done) struct buf added = BUF_INIT;
	bool ends_in_comma = last && last->comma != SPLICE_NONE;

	if (!last) {
		buf_replace(text, list->open + 1, list->open + 1, item);
		return;
	}
	buf_adds(&added, place.own_line ? nl : " ");
	if (place.own_line)
		buf_add(&added, place.indent);
	buf_add(&added, item);
	if (ends_in_comma)
		buf_addc(&added, ',');
	else
		buf_replace(text, last->end, last->end, STR(","));
	size_t at = (ends_in_comma ? last->comma : last->end) + 1;

	if (place.own_line && buf_ok(text))
		at = behind_comments(buf_str(text), at, list->comment);
	text->failed |= added.failed;
	buf_replace(text, at, at, buf_str(&added));
}

/* ---- Removing ---- */

void
splice_drop(struct buf *text, const struct splice_list *list, size_t i)
{
	const struct splice_item *item = &list->items[i];
	size_t from = item->at;

	/* The white space that was added with it: that of its line, newline included, or one space. */
	while (from > 0 && ascii_blank(text->ptr[from - 1]))
		from--;
	if (from > 0 && text->ptr[from - 1] == '\n')
		from -= from > 1 && text->ptr[from - 2] == '\r' ? 2 : 1;
	else
		from = from < item->at ? item->at - 1 : item->at;
	/* From the last to the first, so that offsets stay valid. */
	if (item->comma != SPLICE_NONE)
		buf_replace(text, item->comma, item->comma + 1, STR(""));
	buf_replace(text, from, item->end, STR(""));
	if (item->comma == SPLICE_NONE && i > 0)
		buf_replace(text, list->items[i - 1].comma, list->items[i - 1].comma + 1, STR(""));
}

bool
splice_is_ours(struct mr_str text, const struct splice_list *list)
{
	return list->n == 1 && !list->comments && ascii_space(text.ptr[list->open + 1]);
}
