/* SPDX-License-Identifier: MIT */
/* view.c - answers and lists: lines of JSON, or rows of aligned text. A cell goes through the fence when it is added to
 * a table. */
#include "cli/view.h"

struct cell
col(const char *heading, struct cell cell)
{
	cell.heading = heading;
	return cell;
}

struct cell
col_name(const char *heading, struct cell cell)
{
	cell.quoted = true;
	return col(heading, cell);
}

bool
out_json_cells(struct cli *cli, const struct cell *cells)
{
	struct json j = JSON_INIT(&cli->out);

	if (!cli->json)
		return false;
	json_open(&j, '{');
	json_cells(&j, cells);
	out_json_line(cli, &j);
	return true;
}

/* ---- Lists ---- */

static void
add_cell(struct listing *list, const struct cell *c)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (c->kind == CELL_FENCED)
		buf_add(&text, c->text);
	else if (c->kind == CELL_INT)
		buf_addf(&text, "%lld", (long long)c->number);
	else if (c->kind == CELL_TIME && c->number > 0)
		text_when(&text, c->number);
	else if (c->kind == CELL_STR && c->str && !c->quoted)
		fence_addf(&text, "%s", c->str);
	else if (c->kind == CELL_STR && c->str && c->str[0])
		fence_name(&text, c->str);
	else
		buf_addc(&text, '-');
	list->cli->out.failed |= text.failed || !names_add(&list->cells, buf_str(&text));
}

static void
begin_json(struct listing *list)
{
	if (list->json.out)
		return;
	list->json = JSON_INIT(&list->json_text);
	if (list->form != LIST_ONE)
		json_open(&list->json, list->form == LIST_KEYED ? '{' : '[');
}

bool
list_cells(struct listing *list, const struct cell *cells)
{
	struct cli *cli = list->cli;
	bool first = list->n++ == 0;

	if (list->form == LIST_JSON || (cli->json && list->form == LIST_LINES))
		return out_json_cells(cli, cells);
	if (cli->json) {
		begin_json(list);
		if (list->form == LIST_KEYED)
			json_key(&list->json, cells[0].str);
		json_open(&list->json, '{');
		json_cells(&list->json, cells);
		json_close(&list->json);
		return true;
	}
	for (const struct cell *c = cells; first && c->kind != CELL_END; c++)
		if (c->heading) {
			list->columns++;
			add_cell(list, &col_str(NULL, c->heading));
		}
	for (const struct cell *c = cells; c->kind != CELL_END; c++)
		if (c->heading)
			add_cell(list, c);
	return false;
}

const struct buf *
list_json(struct listing *list)
{
	begin_json(list);
	if (list->json.depth > 0)
		json_close(&list->json);
	return &list->json_text;
}

/* The widest cell of a column gives its width; the last column is not padded. */
int
list_end(struct listing *list, const char *nothing)
{
	struct cli *cli = list->cli;
	size_t width[16] = { 0 }, columns = list->columns;

	for (size_t i = 0; i < list->cells.n; i++) {
		size_t w = utf8_width(str_of(list->cells.v[i]));

		if (i % columns < 16 && w > width[i % columns])
			width[i % columns] = w;
	}
	for (size_t i = 0; i < list->cells.n; i++) {
		size_t c = i % columns;
		struct mr_str cell = str_of(list->cells.v[i]);

		out_colored(cli, &cli->out, i < columns ? STYLE_DIM : STYLE_PLAIN, cell);
		for (size_t w = utf8_width(cell); c + 1 < columns && c < 16 && w < width[c] + 2; w++)
			buf_addc(&cli->out, ' ');
		if (c + 1 == columns)
			buf_addc(&cli->out, '\n');
	}
	if (!cli->json && list->n == 0)
		buf_adds(&cli->out, nothing);
	list_done(list);
	return EXIT_DONE;
}

void
list_done(struct listing *list)
{
	mr_names_done(&list->cells);
	buf_done(&list->json_text);
}
