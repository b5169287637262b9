/* SPDX-License-Identifier: MIT */
/* view.c - cells as JSON, and as rows of aligned text. A cell goes through the fence when it is added to a table. */
#include "cli/view.h"

#include "base/text.h"

/* ---- Tables ---- */

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

void
table_print(struct cli *cli, struct table *t, struct buf *out)
{
	size_t width[16] = { 0 };

	for (size_t i = 0; i < t->cells.n; i++) {
		size_t c = i % t->columns, w = utf8_width(str_of(t->cells.v[i]));

		if (c < 16 && w > width[c])
			width[c] = w;
	}
	for (size_t i = 0; i < t->cells.n; i++) {
		size_t c = i % t->columns;
		struct mr_str cell = str_of(t->cells.v[i]);

		out_colored(cli, out, i < t->columns ? STYLE_DIM : STYLE_PLAIN, cell);
		if (c + 1 == t->columns) {
			buf_addc(out, '\n');
			continue;
		}
		for (size_t w = utf8_width(cell); w < width[c < 16 ? c : 15] + 2; w++)
			buf_addc(out, ' ');
	}
	mr_names_done(&t->cells);
}

/* ---- Cells ---- */

struct cell
kv_text(const char *key, struct mr_str value)
{
	return (struct cell){ .kind = CELL_STR, .key = key, .text = value };
}

struct cell
kv_str(const char *key, const char *value)
{
	return kv_text(key, value ? str_of(value) : (struct mr_str){ 0 });
}

struct cell
kv_opt(const char *key, const char *value)
{
	return kv_str(key, value && value[0] ? value : NULL);
}

struct cell
kv_if(const char *key, const char *value)
{
	return value && value[0] ? kv_str(key, value) : kv_none();
}

struct cell
kv_int(const char *key, int64_t value)
{
	return (struct cell){ .kind = CELL_INT, .key = key, .number = value };
}

struct cell
kv_size(const char *key, size_t value)
{
	return kv_int(key, (int64_t)value);
}

struct cell
kv_bool(const char *key, bool value)
{
	return (struct cell){ .kind = CELL_BOOL, .key = key, .number = value };
}

struct cell
kv_time(const char *key, int64_t ms)
{
	return (struct cell){ .kind = CELL_TIME, .key = key, .number = ms };
}

struct cell
kv_names(const char *key, const struct mr_names *names)
{
	return (struct cell){ .kind = CELL_NAMES, .key = key, .names = names };
}

struct cell
kv_json(const char *key, const struct buf *json)
{
	return json ? (struct cell){ .kind = CELL_JSON, .key = key, .text = buf_str(json) } : kv_none();
}

struct cell
kv_open(const char *key)
{
	return (struct cell){ .kind = CELL_OPEN, .key = key };
}

struct cell
kv_close(void)
{
	return (struct cell){ .kind = CELL_CLOSE };
}

struct cell
kv_none(void)
{
	return (struct cell){ .kind = CELL_NONE };
}

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

struct cell
col_str(const char *heading, const char *text)
{
	return col(heading, kv_str(NULL, text));
}

struct cell
col_fenced(const char *heading, const struct buf *fenced_text)
{
	return (struct cell){ .kind = CELL_FENCED, .heading = heading, .text = buf_str(fenced_text) };
}

/* ---- JSON ---- */

void
json_cells(struct json *j, const struct cell *cells)
{
	for (const struct cell *c = cells; c->kind != CELL_END; c++) {
		if (c->kind == CELL_CLOSE)
			json_close(j);
		else if (!c->key)
			continue;
		else if (c->kind == CELL_INT)
			json_key_int(j, c->key, c->number);
		else if (c->kind == CELL_BOOL)
			json_key_bool(j, c->key, c->number != 0);
		else if (c->kind == CELL_TIME)
			json_key_time(j, c->key, c->number);
		else if (c->kind == CELL_NAMES)
			json_key_names(j, c->key, c->names);
		else if (c->kind == CELL_STR && !c->text.ptr)
			json_key_str(j, c->key, NULL);
		else
			json_key(j, c->key);
		if (c->kind == CELL_STR && c->text.ptr)
			json_str(j, c->text);
		else if (c->kind == CELL_JSON)
			json_raw(j, c->text);
		else if (c->kind == CELL_OPEN)
			json_open(j, '{');
	}
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

static bool
add_cell(struct table *t, const struct cell *cell)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (cell->kind == CELL_FENCED)
		buf_add(&text, cell->text);
	else if (cell->quoted && cell->text.len > 0)
		(void)fence_add(&text, cell->text, FENCE_NAME, FENCE_FIELD_CHARS);
	else if (cell->kind == CELL_INT)
		buf_addf(&text, "%lld", (long long)cell->number);
	else if (cell->kind == CELL_TIME && cell->number > 0)
		text_when(&text, cell->number);
	else if (cell->kind == CELL_STR && cell->text.ptr && !cell->quoted)
		fence_addf(&text, "%s", cell->text.ptr);
	else
		buf_addc(&text, '-');
	return table_put(t, &text);
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

	if (cli->json && list->form == LIST_LINES)
		return out_json_cells(cli, cells);
	if (cli->json) {
		begin_json(list);
		if (list->form == LIST_KEYED)
			json_key(&list->json, cells[0].text.ptr);
		json_open(&list->json, '{');
		json_cells(&list->json, cells);
		json_close(&list->json);
		return true;
	}
	for (const struct cell *c = cells; first && c->kind != CELL_END; c++) {
		if (!c->heading)
			continue;
		list->table.columns++;
		cli->out.failed |= !table_add(&list->table, c->heading);
	}
	for (const struct cell *c = cells; c->kind != CELL_END; c++)
		if (c->heading)
			cli->out.failed |= !add_cell(&list->table, c);
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

int
list_end(struct listing *list, const char *nothing)
{
	struct cli *cli = list->cli;

	if (!cli->json && list->n > 0)
		table_print(cli, &list->table, &cli->out);
	else if (!cli->json)
		buf_adds(&cli->out, nothing);
	list_done(list);
	return EXIT_DONE;
}

void
list_done(struct listing *list)
{
	mr_names_done(&list->table.cells);
	buf_done(&list->json_text);
}
