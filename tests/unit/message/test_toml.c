/* SPDX-License-Identifier: MIT */
/* The little of TOML that we read and change. */
#include "check.h"
#include "message/toml.h"

static bool
list(void *ctx, const struct toml_item *item)
{
	struct buf *out = ctx;

	buf_addc(out, item->kind == TOML_VALUE ? '=' : item->kind == TOML_TABLE ? '[' : 'T');
	for (const char *c = item->path; *c; c++)
		buf_addc(out, *c == TOML_DOT[0] ? '|' : *c);
	buf_addc(out, item->nested ? '>' : ' ');
	return true;
}

static void
keys_are_found_whichever_way_they_are_written(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(toml_each(STR("a.\"b c\" = 1 # x\n[t . 'u']\nk = '''\n[no]\n''' \n[[l]]\n"
				       "i = { x = [1, # c\n 2], y.z = { w = \"}\" } }\n"
				       "s = \"\"\"a\\\"\"\"\"\"\nd = 1979-05-27 07:32:00\n"),
			     list, &out, &err),
	    MR_OK);
	assert_string_equal(buf_z(&out), "=a|b c [t|u =t|u|k Tl =l|i =l|i|x>=l|i|y|z>=l|i|y|z|w>=l|s =l|d ");
}

static void
what_cannot_be_understood_is_refused_with_its_line(void **state)
{
	static const char *const texts[] = { "\na", "\na =", "\na = 1 2", "\n[a", "\n[[a]", "\na = [1", "\na = \"x",
		"\n= 1", "\na = {b}", "\na = [1 2]", "\na = 1\rb = 2", "\na = '''x" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		mr_auto(buf_done) struct buf out = BUF_INIT;
		struct mr_error err = { 0 };

		assert_int_equal(toml_each(str_of(texts[i]), list, &out, &err), MR_CORRUPT);
		assert_true(str_starts(str_of(err.message), "line 2: it "));
	}
}

static void
strings_are_read_in_both_forms(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_names all = { 0 };

	(void)state;
	assert_true(toml_string(STR("\"a\\\\b\\u00e9\""), &out));
	assert_true(toml_string(STR("'\\c'"), &out));
	assert_string_equal(buf_z(&out), "a\\bé\\c");
	assert_false(toml_string(STR("\"\"\"x\"\"\""), &out));
	assert_false(toml_string(STR("1"), &out));
	assert_true(toml_strings(STR("[ 'a', # \"b\"\n  \"c\",\n]"), &all));
	assert_int_equal(all.n, 2);
	assert_string_equal(all.v[1], "c");
	mr_names_done(&all);
	assert_false(toml_strings(STR("{ a = 1 }"), &all));
}

static void
a_table_comes_behind_an_empty_line(void **state)
{
	static const struct {
		const char *text;
		bool there;
		const char *want;
	} cases[] = {
		{ "", false, "[n]\r" },
		{ "", true, "[n]" },
		{ "a = 1", true, "a = 1\r\r[n]" },
		{ "a = 1\n", true, "a = 1\r\r[n]\r" },
		{ "\n", true, "\r\r[n]\r" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		mr_auto(buf_done) struct buf with = BUF_INIT, block = BUF_INIT;

		buf_adds(&block, "[n]");
		buf_adds(&with, cases[i].text);
		toml_add_block(&with, cases[i].there, &block);
		for (size_t k = 0; k < with.len; k++) /* to be seen in a failure */
			with.ptr[k] = with.ptr[k] == '\n' ? '\r' : with.ptr[k];
		assert_string_equal(buf_z(&with), cases[i].want);
		for (size_t k = 0; k < with.len; k++)
			with.ptr[k] = with.ptr[k] == '\r' ? '\n' : with.ptr[k];
		size_t at = (size_t)(strstr(buf_z(&with), "[n]") - with.ptr);

		toml_drop_block(&with, at, at + 3);
		assert_string_equal(buf_z(&with), cases[i].text);
	}
}

static void
a_table_in_the_middle_leaves_its_neighbours(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT, tight = BUF_INIT;
	const char *text = "a = 1\n\n[n]\nx = 1\n\n[z]\n", *no_gap = "a = 1\n[n]\nx = 1\n[z]\n";

	(void)state;
	buf_adds(&out, text);
	toml_drop_block(&out, 7, 16);
	assert_string_equal(buf_z(&out), "a = 1\n\n[z]\n");
	buf_adds(&tight, no_gap);
	toml_drop_block(&tight, 6, 15);
	assert_string_equal(buf_z(&tight), "a = 1\n[z]\n");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_found_whichever_way_they_are_written),
		cmocka_unit_test(what_cannot_be_understood_is_refused_with_its_line),
		cmocka_unit_test(strings_are_read_in_both_forms),
		cmocka_unit_test(a_table_comes_behind_an_empty_line),
		cmocka_unit_test(a_table_in_the_middle_leaves_its_neighbours),
	};
	return cmocka_run_group_tests_name("toml", tests, NULL, NULL);
}
