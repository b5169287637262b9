/* SPDX-License-Identifier: MIT */
/* Any bytes as TOML: a table at the end, a line behind a table's name, a string in an array: in and out again, and
 * every byte is as it was. */
#include "fuzz.h"

#include "message/splice.h"
#include "message/toml.h"

#define BLOCK "[new]"
#define LINE "new = 1"

struct items {
	struct toml_item tables[4], values[4];
	size_t tables_n, values_n;
};

static bool
note(void *ctx, const struct toml_item *item)
{
	struct items *all = ctx;

	if (item->kind == TOML_VALUE && all->values_n < 4)
		all->values[all->values_n++] = *item;
	else if (item->kind != TOML_VALUE && all->tables_n < 4)
		all->tables[all->tables_n++] = *item;
	return true;
}

static void
check_block(struct mr_str text, bool there)
{
	mr_auto(buf_done) struct buf with = BUF_INIT, without = BUF_INIT;
	struct mr_error err = { 0 };
	struct items all = { 0 };

	toml_add_block(text, there, STR(BLOCK), &with);
	assert(toml_each(buf_str(&with), note, &all, &err) == MR_OK);
	size_t from = with.len - strlen(BLOCK);

	while (memcmp(with.ptr + from, BLOCK, strlen(BLOCK)) != 0)
		from--;
	toml_drop_block(buf_str(&with), from, from + strlen(BLOCK), &without);
	assert(str_eq(buf_str(&without), text));
}

static void
check_line(struct mr_str text, const struct toml_item *table)
{
	mr_auto(buf_done) struct buf with = BUF_INIT, without = BUF_INIT;
	size_t at = table->end;

	toml_add_line(text, table->end, STR(LINE), &with);
	while (at < text.len && text.ptr[at] != '\n' &&
	       !(text.ptr[at] == '\r' && at + 1 < text.len && text.ptr[at + 1] == '\n'))
		at++;
	at += strlen(splice_newline(text));
	assert(at + strlen(LINE) <= with.len && memcmp(with.ptr + at, LINE, strlen(LINE)) == 0);
	toml_drop_line(buf_str(&with), at, at + strlen(LINE), &without);
	assert(str_eq(buf_str(&without), text));
}

static void
check_array(struct mr_str text, const struct toml_item *value)
{
	mr_auto(buf_done) struct buf with = BUF_INIT, without = BUF_INIT;
	struct mr_names before = { 0 }, after = { 0 };
	struct mr_str raw = { text.ptr + value->at, value->end - value->at };

	assert(lies_within(raw, text));
	if (!toml_strings(raw, &before)) {
		mr_names_done(&before);
		return;
	}
	toml_array_add(text, value->at, value->end, "new", &with);
	size_t end = value->end + with.len - text.len;

	assert(toml_strings((struct mr_str){ with.ptr + value->at, end - value->at }, &after));
	assert(after.n == before.n + 1 && strcmp(after.v[before.n], "new") == 0);
	toml_array_drop(buf_str(&with), value->at, end, before.n, &without);
	assert(str_eq(buf_str(&without), text));
	mr_names_done(&before);
	mr_names_done(&after);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	struct mr_error err = { 0 };
	struct items all = { 0 };
	enum mr_rc rc = toml_each(text, note, &all, &err);

	assert(rc == MR_OK || (rc == MR_CORRUPT && err.message[0]));
	if (rc != MR_OK)
		return 0;
	check_block(text, true);
	if (size == 0)
		check_block(text, false);
	for (size_t i = 0; i < all.tables_n; i++)
		check_line(text, &all.tables[i]);
	for (size_t i = 0; i < all.values_n; i++)
		check_array(text, &all.values[i]);
	return 0;
}
