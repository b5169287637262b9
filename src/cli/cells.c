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
		if (!c->key)
			continue;
		switch (c->kind) {
		case CELL_STR:
			json_key_str(j, c->key, c->str);
			break;
		case CELL_INT:
			json_key_int(j, c->key, c->number);
			break;
		case CELL_BOOL:
			json_key_bool(j, c->key, c->number != 0);
			break;
		case CELL_TIME:
			json_key_time(j, c->key, c->number);
			break;
		case CELL_NAMES:
			json_key_names(j, c->key, c->names);
			break;
		case CELL_TEXT:
			json_key(j, c->key);
			json_str(j, c->text);
			break;
		case CELL_JSON:
			json_key(j, c->key);
			json_raw(j, c->text);
			break;
		case CELL_OPEN:
		case CELL_LIST:
		case CELL_WORDS:
			if (c->key[0])
				json_key(j, c->key);
			json_open(j, c->kind == CELL_OPEN ? '{' : '[');
			for (const char *const *w = c->kind == CELL_WORDS ? c->words : NULL; w && *w; w++)
				json_str(j, str_of(*w));
			if (c->kind == CELL_WORDS)
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
