/* SPDX-License-Identifier: MIT */
#include "check.h"

#include "message/query.h"

static bool
finds(const char *query, const char *text)
{
	struct mr_error err = { 0 };
	struct query q = { 0 };
	bool all = true;

	assert_int_equal(query_parse(str_of(query), &q, &err), MR_OK);
	for (size_t i = 0; i < q.n; i++)
		all &= query_finds(str_of(text), q.v[i].text, q.v[i].prefix, NULL) != q.v[i].exclude;
	query_done(&q);
	return all;
}

static void
words_are_whole_and_in_any_case(void **state)
{
	(void)state;
	assert_true(finds("build GREEN", "Green: the build."));
	assert_false(finds("buil", "the build"));
	assert_false(finds("build", "rebuild builds"));
	assert_true(finds("port_8081", "port_8081"));
	assert_true(finds("größe", "die größe"));
	assert_false(finds("gr", "die größe"));
}

static void
phrases_are_words_in_order(void **state)
{
	(void)state;
	assert_true(finds("\"is green\"", "it is is\n green"));
	assert_false(finds("\"is green\"", "green is"));
	assert_true(finds("a-b.c", "x a b, c"));
	assert_false(finds("a-b.c", "a b x c"));
	assert_true(finds("\"a a b\"", "a a a b"));
}

static void
a_star_is_a_beginning(void **state)
{
	(void)state;
	assert_true(finds("gre*", "green"));
	assert_false(finds("gre*", "agree"));
	assert_true(finds("\"is gre\"*", "is green"));
	assert_false(finds("\"i gre\"*", "is green"));
	assert_false(finds("\"is gre*\"", "is green"));
}

static void
minus_leaves_out(void **state)
{
	(void)state;
	assert_false(finds("build -red", "build red"));
	assert_true(finds("build -red", "build green"));
	assert_true(finds("-\"a b\"", "b a"));
	assert_false(finds("--red", "green")); /* two of them are signs */
}

static void
fields_have_values(void **state)
{
	struct mr_error err = { 0 };
	struct query q = { 0 };

	(void)state;
	assert_int_equal(query_parse(str_of("from:a/b TYPE:\"x y\" -to:c from: http://d"), &q, &err), MR_OK);
	assert_int_equal(q.n, 5);
	assert_int_equal(q.v[0].field, QUERY_FROM);
	assert_string_equal(q.v[0].text, "a/b");
	assert_int_equal(q.v[1].field, QUERY_TYPE);
	assert_string_equal(q.v[1].text, "x y");
	assert_true(q.v[2].exclude && q.v[2].field == QUERY_TO);
	assert_int_equal(q.v[3].field, QUERY_TEXT); /* nothing behind it: a word */
	assert_int_equal(q.v[4].field, QUERY_TEXT);
	query_done(&q);
}

static void
what_has_no_word_is_refused(void **state)
{
	struct mr_error err = { 0 };
	struct query q = { 0 };
	char many[2 * QUERY_TERMS_MAX + 3];

	(void)state;
	assert_int_equal(query_parse(str_of("build !!"), &q, &err), MR_REFUSED);
	assert_int_equal(query_parse(str_of("\"\""), &q, &err), MR_REFUSED);
	memset(many, ' ', sizeof(many));
	for (size_t i = 0; i < sizeof(many); i += 2)
		many[i] = 'a';
	many[sizeof(many) - 1] = '\0';
	assert_int_equal(query_parse(str_of(many), &q, &err), MR_REFUSED);
	assert_int_equal(query_parse(str_of("  * "), &q, &err), MR_OK);
	assert_int_equal(q.n, 0);
	query_done(&q);
}

static void
a_snippet_is_the_line_of_the_hit(void **state)
{
	struct mr_error err = { 0 };
	struct query q = { 0 };
	struct query_snippet s;

	(void)state;
	assert_int_equal(query_parse(str_of("nothere green"), &q, &err), MR_OK);
	assert_true(query_snippet(&q, str_of("one\nthe build is Green now\ntwo"), &s));
	assert_memory_equal(s.before.ptr, "the build is ", s.before.len);
	assert_int_equal(s.before.len, 13);
	assert_memory_equal(s.hit.ptr, "Green", 5);
	assert_int_equal(s.after.len, 4);
	assert_false(query_snippet(&q, str_of("red"), &s));
	query_done(&q);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_whole_and_in_any_case),
		cmocka_unit_test(phrases_are_words_in_order),
		cmocka_unit_test(a_star_is_a_beginning),
		cmocka_unit_test(minus_leaves_out),
		cmocka_unit_test(fields_have_values),
		cmocka_unit_test(what_has_no_word_is_refused),
		cmocka_unit_test(a_snippet_is_the_line_of_the_hit),
	};
	return cmocka_run_group_tests_name("query", tests, NULL, NULL);
}
