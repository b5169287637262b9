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
	mr_auto(buf_done) struct buf with = BUF_INIT, block = BUF_INIT;
	struct mr_error err = { 0 };
	struct items all = { 0 };

	buf_adds(&block, BLOCK);
	buf_add(&with, text);
	toml_add_block(&with, there, &block);
	assert(toml_each(buf_str(&with), note, &all, &err) == MR_OK);
	size_t from = with.len - strlen(BLOCK);

	while (memcmp(with.ptr + from, BLOCK, strlen(BLOCK)) != 0)
		from--;
	toml_drop_block(&with, from, from + strlen(BLOCK));
	assert(str_eq(buf_str(&with), text));
}

static void
check_line(struct mr_str text, const struct toml_item *table)
{
	mr_auto(buf_done) struct buf with = BUF_INIT, line = BUF_INIT;
	size_t at = table->end;

	buf_adds(&line, LINE);
	buf_add(&with, text);
	toml_add_line(&with, table->end, &line);
	while (at < text.len && text.ptr[at] != '\n' &&
	       !(text.ptr[at] == '\r' && at + 1 < text.len && text.ptr[at + 1] == '\n'))
		at++;
	at += strlen(splice_newline(text));
	assert(at + strlen(LINE) <= with.len && memcmp(with.ptr + at, LINE, strlen(LINE)) == 0);
	toml_drop_line(&with, &(struct toml_item){ .line = at, .end = at + strlen(LINE) });
	assert(str_eq(buf_str(&with), text));
}

static void
check_array(struct mr_str text, const struct toml_item *value)
{
	mr_auto(buf_done) struct buf with = BUF_INIT;
	struct mr_names before = { 0 }, after = { 0 };
	struct mr_str raw = { text.ptr + value->at, value->end - value->at };

	assert(lies_within(raw, text));
	if (!toml_strings(raw, &before)) {
		mr_names_done(&before);
		return;
	}
	buf_add(&with, text);
	toml_array_add(&with, value->at, value->end, "new");
	size_t end = value->end + with.len - text.len;

	assert(toml_strings((struct mr_str){ with.ptr + value->at, end - value->at }, &after));
	assert(after.n == before.n + 1 && strcmp(after.v[before.n], "new") == 0);
	toml_array_drop(&with, value->at, end, before.n);
	assert(str_eq(buf_str(&with), text));
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
