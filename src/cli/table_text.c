/* SPDX-License-Identifier: MIT */
/* table_text.c - rows of cells as aligned text. A cell goes through the fence when it is added. */
#include "base/text.h"
#include "cli/cli.h"

bool
table_put(struct table *t, const struct buf *fenced)
{
	return !fenced->failed && names_add(&t->cells, buf_str(fenced));
}

bool
table_add(struct table *t, const char *cell)
{
	mr_auto(buf_done) struct buf fenced = BUF_INIT;

	fence_addf(&fenced, "%s", cell);
	return table_put(t, &fenced);
}

bool
table_name(struct table *t, const char *text)
{
	mr_auto(buf_done) struct buf fenced = BUF_INIT;

	if (text[0])
		fence_name(&fenced, text);
	else
		buf_addc(&fenced, '-');
	return table_put(t, &fenced);
}

static void
add_cell(struct cli *cli, struct buf *out, const char *cell, size_t width, bool heading, bool last)
{
	out_colored(cli, out, heading ? STYLE_DIM : STYLE_PLAIN, str_of(cell));
	if (last) {
		buf_addc(out, '\n');
		return;
	}
	for (size_t w = utf8_width(str_of(cell)); w < width + 2; w++)
		buf_addc(out, ' ');
}

static size_t
column_width(const struct table *t, size_t column)
{
	size_t widest = 0;

	for (size_t i = column; i < t->cells.n; i += t->columns) {
		size_t width = utf8_width(str_of(t->cells.v[i]));

		if (width > widest)
			widest = width;
	}
	return widest;
}

void
table_print(struct cli *cli, struct table *t, struct buf *out)
{
	size_t width[16] = { 0 };

	for (size_t c = 0; c < t->columns && c < 16; c++)
		width[c] = column_width(t, c);
	for (size_t i = 0; i < t->cells.n; i++) {
		size_t c = i % t->columns;

		add_cell(cli, out, t->cells.v[i], width[c < 16 ? c : 15], i < t->columns, c + 1 == t->columns);
	}
	mr_names_done(&t->cells);
}
