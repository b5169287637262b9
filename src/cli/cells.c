/* SPDX-License-Identifier: MIT */
/* cells.c - cells as JSON. */
#include "cli/view.h"

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
kv_json(const char *key, const struct buf *json)
{
	return json ? (struct cell){ .kind = CELL_JSON, .key = key, .text = buf_str(json) } : kv_none();
}

void
json_cells(struct json *j, const struct cell *cells)
{
	for (const struct cell *c = cells; c && c->kind != CELL_END; c++) {
		if (c->kind == CELL_CLOSE)
			json_close(j);
		if (!c->key || c->kind == CELL_NONE || c->kind == CELL_FENCED || c->kind == CELL_CLOSE)
			continue;
		if (c->key[0])
			json_key(j, c->key);
		switch (c->kind) {
		case CELL_STR:
			if (c->str)
				json_str(j, str_of(c->str));
			else
				json_null(j);
			break;
		case CELL_INT:
			json_int(j, c->number);
			break;
		case CELL_BOOL:
			json_bool(j, c->number != 0);
			break;
		case CELL_TIME:
			json_time(j, c->number);
			break;
		case CELL_TEXT:
			json_str(j, c->text);
			break;
		case CELL_JSON:
			json_raw(j, c->text);
			break;
		case CELL_NAMES:
			json_names(j, c->names);
			break;
		case CELL_OPEN:
		case CELL_LIST:
			json_open(j, c->kind == CELL_OPEN ? '{' : '[');
			break;
		case CELL_WORDS:
			json_open(j, '[');
			for (const char *const *w = c->words; w && *w; w++)
				json_str(j, str_of(*w));
			json_close(j);
			break;
		case CELL_END:
		case CELL_NONE:
		case CELL_FENCED:
		case CELL_CLOSE:
			break;
		}
	}
}
