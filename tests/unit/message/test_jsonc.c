/* SPDX-License-Identifier: MIT */
/* Settings files: how an entry is written into files of every style, and that taking it out leaves no trace. */
#include "check.h"
#include "message/jsonc.h"

static void
insert(struct mr_str text, const char *object, const char *name, const char *value, struct buf *out)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	struct mr_error err = { 0 };

	assert_int_equal(jsonc_parse(text, &doc, &err), MR_OK);
	struct json_value in = object ? json_get(doc.root, object) : doc.root;

	assert_non_null(in.raw.ptr);
	jsonc_insert(&doc, in, name, str_of(value), out);
}

static void
take_out(struct mr_str text, const char *object, bool keep_root, struct buf *out)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	struct mr_error err = { 0 };

	assert_int_equal(jsonc_parse(text, &doc, &err), MR_OK);
	struct json_value in = object ? json_get(doc.root, object) : doc.root, key, last;

	for (size_t at = 0; json_child(in, &at, &key, &last);)
		;
	jsonc_remove(&doc, last, keep_root, out);
}

static void
an_entry_is_written_in_the_style_of_the_file(void **state)
{
	static const struct {
		const char *text, *in, *name, *value, *want;
	} cases[] = {
		{ "{}", NULL, "n", "1", "{\"n\": 1}" },
		{ "{ }\n", NULL, "n", "1", "{\"n\": 1 }\n" },
		{ "{\"a\":1}", NULL, "n", "[1]", "{\"a\":1, \"n\": [ 1 ]}" },
		{ "{\"a\":1,}", NULL, "n", "1", "{\"a\":1, \"n\": 1,}" },
		{ "{\n  \"a\": 1\n}\n", NULL, "n", "{\"b\":2}", "{\n  \"a\": 1,\n  \"n\": {\n    \"b\": 2\n  }\n}\n" },
		{ "{\r\n\t\"a\": 1\r\n}", NULL, "n", "[2]", "{\r\n\t\"a\": 1,\r\n\t\"n\": [\r\n\t\t2\r\n\t]\r\n}" },
		{ "{\n  \"a\": 1 // one\n}", NULL, "n", "2", "{\n  \"a\": 1, // one\n  \"n\": 2\n}" },
		{ "{\n  \"a\": 1, /* one */\n  // end\n}", NULL, "n", "2",
		    "{\n  \"a\": 1, /* one */\n  \"n\": 2,\n  // end\n}" },
		{ "{\n    \"a\": [\n        1\n    ]\n}", "a", NULL, "[2]",
		    "{\n    \"a\": [\n        1,\n        [\n            2\n        ]\n    ]\n}" },
		{ "{\n  \"a\": [1, 2]\n}", "a", NULL, "{\"b\":[]}", "{\n  \"a\": [1, 2, { \"b\": [] }]\n}" },
		{ "{\n  \"a\": []\n}", "a", NULL, "3", "{\n  \"a\": [3]\n}" },
		{ "\xEF\xBB\xBF{\n \"a\": {}\n}", "a", "n", "{\"b\":1}",
		    "\xEF\xBB\xBF{\n \"a\": {\"n\": {\n  \"b\": 1\n }}\n}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		mr_auto(buf_done) struct buf with = BUF_INIT, without = BUF_INIT;

		insert(str_of(cases[i].text), cases[i].in, cases[i].name, cases[i].value, &with);
		assert_string_equal(buf_z(&with), cases[i].want);
		take_out(buf_str(&with), cases[i].in, false, &without);
		assert_string_equal(buf_z(&without), cases[i].text);
	}
}

static void
what_was_made_for_it_goes_with_it(void **state)
{
	static const struct {
		const char *text, *in, *want, *root_kept;
	} cases[] = {
		{ "{\n  \"a\": [\n    1\n  ]\n}\n", "a", "\n", "{\n}\n" },
		{ " { \"a\": { \"b\": 1 } }", "a", " ", " { }" },
		{ "{\n  \"a\": [1]\n}\n", "a", "{\n  \"a\": []\n}\n", NULL }, /* it was there, empty */
		{ "{\"a\": [ 1 ]}", "a", "{}", NULL },
		{ "{\n  \"a\": [ // mine\n    1\n  ]\n}", "a", "{\n  \"a\": [ // mine\n  ]\n}", NULL },
		{ "{\n  \"a\": [\n    1\n  ],\n  \"b\": 2\n}", "a", "{\n  \"b\": 2\n}", NULL },
		{ "{\n  \"b\": 2,\n  \"a\": [\n    1\n  ]\n}", "a", "{\n  \"b\": 2\n}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		mr_auto(buf_done) struct buf without = BUF_INIT, kept = BUF_INIT;

		take_out(str_of(cases[i].text), cases[i].in, false, &without);
		assert_string_equal(buf_z(&without), cases[i].want);
		take_out(str_of(cases[i].text), cases[i].in, true, &kept);
		assert_string_equal(buf_z(&kept), cases[i].root_kept ? cases[i].root_kept : cases[i].want);
	}
}

static void
what_cannot_be_understood_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "{\n\n\"a\" 1}", "line 3: it lacks a colon after a name" },
		{ "{\"a\":1 \"b\":2}", "line 1: it lacks a comma" },
		{ "{\n\"a\": [1,\n", "line 3: it ends where a value is expected" },
		{ "{,}", "line 1: it has a member without a name" },
		{ "[,]", "line 1: it has something that is not a value" },
		{ "{} {}", "line 1: it goes on after its end" },
		{ "/* {}", "line 1: it ends within a comment" },
		{ "// {}", "line 1: it has comments and nothing else" },
		{ "{'a':1}", "line 1: it has a member without a name" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct jsonc doc = { 0 };
		struct mr_error err = { 0 };

		assert_int_equal(jsonc_parse(str_of(cases[i].text), &doc, &err), MR_CORRUPT);
		assert_string_equal(err.message, cases[i].want);
	}
}

static void
deep_nesting_ends(void **state)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct jsonc doc = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	for (int i = 0; i < 5000; i++)
		buf_addc(&text, '[');
	assert_int_equal(jsonc_parse(buf_str(&text), &doc, &err), MR_CORRUPT);
	assert_non_null(strstr(err.message, "nested too deep"));
}

static void
a_value_is_replaced_where_it_stands(void **state)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	mr_auto(buf_done) struct buf out = BUF_INIT, value = BUF_INIT;
	struct mr_error err = { 0 };

	(void)state;
	buf_adds(&value, "\"/new\"");
	assert_int_equal(jsonc_parse(STR("{\n  \"c\": \"/old\" // here\n}"), &doc, &err), MR_OK);
	assert_true(json_is(json_get(doc.root, "c"), "/old"));
	jsonc_replace(&doc, json_get(doc.root, "c"), &value, &out);
	assert_string_equal(buf_z(&out), "{\n  \"c\": \"/new\" // here\n}");
}

/* What stands in a member goes with it; what stands beside it stays, and what is left is a settings file. */
static void
comments_of_the_user_never_break_the_file(void **state)
{
	static const struct {
		const char *text, *in, *want;
	} cases[] = {
		{ "{\n  \"a\": 1,\n  \"n\": { // mine, }\n    \"b\": 2 /* , */\n  }\n}\n", NULL, "{\n  \"a\": 1\n}\n" },
		{ "{\n  \"a\": 1, // one\n  \"n\": [ /* ] */ 2, // , two\n  ],\n}\n", NULL,
		    "{\n  \"a\": 1, // one\n}\n" },
		{ "{\n  \"o\": {\n    \"a\": 1,\n    // above\n    \"n\": { \"b\": /* in */ 2 } // behind\n  }\n}\n",
		    "o", "{\n  \"o\": {\n    \"a\": 1\n    // above // behind\n  }\n}\n" },
		{ "{\n  \"o\": {\n    \"n\": { // in\n    }\n    /* after */\n  },\n  \"z\": 1\n}\n", "o",
		    "{\n  \"o\": {\n    /* after */\n  },\n  \"z\": 1\n}\n" },
		{ "{\"o\": {\"n\": {/* only */}}}", "o", "{\"o\": {}}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		mr_auto(buf_done) struct buf without = BUF_INIT;
		mr_auto(jsonc_done) struct jsonc doc = { 0 };
		struct mr_error err = { 0 };

		take_out(str_of(cases[i].text), cases[i].in, true, &without);
		assert_string_equal(buf_z(&without), cases[i].want);
		assert_int_equal(jsonc_parse(buf_str(&without), &doc, &err), MR_OK);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_is_written_in_the_style_of_the_file),
		cmocka_unit_test(what_was_made_for_it_goes_with_it),
		cmocka_unit_test(what_cannot_be_understood_is_refused_with_its_line),
		cmocka_unit_test(deep_nesting_ends),
		cmocka_unit_test(a_value_is_replaced_where_it_stands),
		cmocka_unit_test(comments_of_the_user_never_break_the_file),
	};
	return cmocka_run_group_tests_name("jsonc", tests, NULL, NULL);
}
