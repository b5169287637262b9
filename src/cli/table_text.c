/* SPDX-License-Identifier: MIT */
/* table_text.c - rows of cells as aligned text. */
#include "base/text.h"
#include "cli/cli.h"

bool
table_add(struct table *t, const char *cell)
{
	return names_add(&t->cells, str_of(cell));
}

static void
add_cell(struct cli *cli, struct buf *out, const char *cell, size_t width, bool heading, bool last)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	text_clean_line(&clean, str_of(cell));
	out_styled(cli, out, heading ? STYLE_DIM : STYLE_PLAIN, cell);
	if (last) {
		buf_addc(out, '\n');
		return;
	}
	for (size_t w = utf8_width(buf_str(&clean)); w < width + 2; w++)
		buf_addc(out, ' ');
}

static size_t
column_width(const struct table *t, size_t column)
{
	size_t widest = 0;

	for (size_t i = column; i < t->cells.n; i += t->columns) {
		mr_auto(buf_done) struct buf clean = BUF_INIT;

		text_clean_line(&clean, str_of(t->cells.v[i]));
		size_t width = utf8_width(buf_str(&clean));
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
