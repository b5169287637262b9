/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "base/text.h"

static void
only_strict_utf8_is_valid(void **state)
{
	(void)state;

	assert_true(utf8_valid(STR("")));
	assert_true(utf8_valid(STR("plain \xC3\xA4 \xE2\x82\xAC \xF0\x9F\xA4\x9D \xF4\x8F\xBF\xBF \0 end")));
	assert_false(utf8_valid(STR("\xC0\x80")));         /* NUL in two bytes */
	assert_false(utf8_valid(STR("\xC1\xBF")));         /* overlong */
	assert_false(utf8_valid(STR("\xE0\x9F\xBF")));     /* overlong */
	assert_false(utf8_valid(STR("\xF0\x8F\xBF\xBF"))); /* overlong */
	assert_false(utf8_valid(STR("\xED\xA0\x80")));     /* surrogate */
	assert_false(utf8_valid(STR("\xED\xBF\xBF")));
	assert_false(utf8_valid(STR("\xF4\x90\x80\x80"))); /* above U+10FFFF */
	assert_false(utf8_valid(STR("\xF5\x80\x80\x80")));
	assert_false(utf8_valid(STR("\x80")));
	assert_false(utf8_valid(STR("\xE2\x82"))); /* cut off */
	assert_false(utf8_valid(STR("\xE2\x82x")));
	assert_false(utf8_valid(STR("\xFF")));
}

static size_t
run_byte_by_byte(struct mr_str s, char stop, char or_stop)
{
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= ' ' && s.ptr[n] < 0x7F && s.ptr[n] != stop && s.ptr[n] != or_stop)
		n++;
	return n;
}

/* Every byte, at every place of a word and before every other length. */
static void
a_run_of_plain_text_ends_where_it_ends_byte_by_byte(void **state)
{
	static const char stops[][2] = { { 0x7F, 0x7F }, { '"', '\\' }, { ' ', '~' }, { 'a', 'a' } };
	char text[43];

	(void)state;
	for (size_t len = 0; len <= sizeof text; len++)
		for (size_t at = 0; at < len; at++)
			for (int byte = -128; byte < 128; byte++) {
				memset(text, 'x', sizeof text);
				text[at] = (char)byte;
				text[len - 1 - at / 2] =
				    (char)(byte ^ 1);      /* a second one, which must not hide the first */
				char *exact = malloc(len); /* so that a read beyond the end is seen */
				assert_non_null(exact);
				memcpy(exact, text, len);
				struct mr_str s = { exact, len };
				for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++)
					assert_int_equal(ascii_run(s, stops[i][0], stops[i][1]),
					    run_byte_by_byte(s, stops[i][0], stops[i][1]));
				free(exact);
			}
}

static void
characters_are_decoded_and_never_read_beyond_the_end(void **state)
{
	(void)state;
	uint32_t cp = 7;

	assert_int_equal(utf8_next(STR("\xF0\x9F\xA4\x9D"), &cp), 4);
	assert_int_equal(cp, 0x1F91D);
	assert_int_equal(utf8_next((struct mr_str){ "\xE2\x82\xAC", 2 }, &cp), 0);
	assert_int_equal(utf8_next((struct mr_str){ NULL, 0 }, &cp), 0);
	assert_int_equal(cp, 0x1F91D);
}

static void
cutting_and_counting_go_by_characters(void **state)
{
	(void)state;

	assert_int_equal(utf8_chars(STR("a\xC3\xA4\xFFz")), 4);
	assert_int_equal(utf8_cut(STR("a\xC3\xA4z"), 2).len, 3);
	assert_int_equal(utf8_cut(STR("ab"), 9).len, 2);
	assert_int_equal(utf8_cut(STR("ab"), 0).len, 0);
}

static void
width_counts_columns(void **state)
{
	(void)state;

	assert_int_equal(utf8_width(STR("abc")), 3);
	assert_int_equal(utf8_width(STR("e\xCC\x81")), 1); /* e and a combining accent */
	assert_int_equal(utf8_width(STR("\xE6\x97\xA5\xE6\x9C\xAC")), 4);
	assert_int_equal(utf8_width(STR("\xF0\x9F\xA4\x9D x")), 4); /* handshake */
	assert_int_equal(utf8_width(STR("\xC3\xA4\xE2\x82\xAC")), 2);
	assert_int_equal(utf8_width(STR("\xFF")), 1);
}

struct pair {
	struct mr_str in;
	const char *out;
};

static void
what_steers_hides_or_reorders_becomes_visible(void **state)
{
	(void)state;
	const struct pair pairs[] = {
		{ STR("plain\ttext\nnext"), "plain\ttext\nnext" },
		{ STR("\x1B[2Jgone"), "<U+001B>[2Jgone" },
		{ STR("a\0b"), "a<U+0000>b" },
		{ STR("a\x7F"), "a<U+007F>" },
		{ STR("\xC2\x9B"
		      "31m"),
		    "<U+009B>31m" },
		{ STR("\xE2\x80\xAE"
		      "txt.exe"),
		    "<U+202E>txt.exe" },
		{ STR("\xE2\x81\xA6"
		      "x"),
		    "<U+2066>x" },
		{ STR("a\xE2\x80\x8B"
		      "b"),
		    "a<U+200B>b" },
		{ STR("\xEF\xBB\xBF"
		      "x"),
		    "<U+FEFF>x" },
		{ STR("\xE2\x80\xA8"), "<U+2028>" },
		{ STR("\xF3\xA0\x81\x81"), "<U+E0041>" }, /* a tag letter: invisible text */
		{ STR("a\xFF"
		      "b\xE2\x82"),
		    "a\xEF\xBF\xBD"
		    "b\xEF\xBF\xBD\xEF\xBF\xBD" },
		{ STR("line\r\nline"), "line\nline" },
		{ STR("over\rwritten"), "over<U+000D>written" },
		{ STR("\xC3\xA4 \xF0\x9F\xA4\x9D"), "\xC3\xA4 \xF0\x9F\xA4\x9D" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		mr_auto(buf_done) struct buf out = BUF_INIT;
		text_clean(&out, pairs[i].in);
		assert_string_equal(buf_z(&out), pairs[i].out);
	}
}

static void
the_joiner_stays_only_between_symbols(void **state)
{
	(void)state;
	/* heart, variation selector, joiner, fire */
	static const char burning[] = "\xE2\x9D\xA4\xEF\xB8\x8F\xE2\x80\x8D\xF0\x9F\x94\xA5";
	mr_auto(buf_done) struct buf out = BUF_INIT;

	text_clean(&out, str_of(burning));
	assert_string_equal(buf_z(&out), burning);
	buf_clear(&out);
	text_clean(&out, STR("pass\xE2\x80\x8Dword"));
	assert_string_equal(buf_z(&out), "pass<U+200D>word");
	buf_clear(&out);
	text_clean(&out, STR("\xF0\x9F\x94\xA5\xE2\x80\x8D"));
	assert_string_equal(buf_z(&out), "\xF0\x9F\x94\xA5<U+200D>");
	buf_clear(&out);
	/* nor does what was itself made visible */
	text_clean(&out, STR("\xEF\xBB\xBF\xE2\x80\x8D\xF0\x9F\x94\xA5"));
	assert_string_equal(buf_z(&out), "<U+FEFF><U+200D>\xF0\x9F\x94\xA5");
	buf_clear(&out);
	/* one joiner must not vouch for the next */
	text_clean(&out, STR("\xF0\x9F\x94\xA5\xE2\x80\x8D\xE2\x80\x8D\xF0\x9F\x94\xA5"));
	assert_string_equal(buf_z(&out), "\xF0\x9F\x94\xA5<U+200D><U+200D>\xF0\x9F\x94\xA5");
}

static void
one_line_stays_one_line(void **state)
{
	(void)state;
	mr_auto(buf_done) struct buf out = BUF_INIT;

	text_clean_line(&out, STR("a\nb\r\nc\td\x0B"));
	assert_string_equal(buf_z(&out), "a b c d<U+000B>");
}

static void
json_strings_are_escaped_and_lose_nothing(void **state)
{
	(void)state;
	const struct pair pairs[] = {
		{ STR(""), "\"\"" },
		{ STR("say \"hi\" \\ /"), "\"say \\\"hi\\\" \\\\ /\"" },
		{ STR("\b\f\n\r\t\x01\0"), "\"\\b\\f\\n\\r\\t\\u0001\\u0000\"" },
		{ STR("\x1B[0m\x7F\xC2\x9B"), "\"\\u001b[0m\\u007f\\u009b\"" },
		{ STR("\xE2\x80\xAE\xE2\x80\xA9"), "\"\\u202e\\u2029\"" },
		{ STR("\xF3\xA0\x81\x81"), "\"\\udb40\\udc41\"" },
		{ STR("\xF0\x9F\xA4\x9D \xC3\xA4"), "\"\xF0\x9F\xA4\x9D \xC3\xA4\"" },
		{ STR("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"" },
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		mr_auto(buf_done) struct buf out = BUF_INIT;
		json_string(&out, pairs[i].in);
		assert_string_equal(buf_z(&out), pairs[i].out);
	}
}

static void
near_names_are_near(void **state)
{
	(void)state;
	char long_name[400];

	assert_int_equal(edit_distance("alice", "alice", 2), 0);
	assert_int_equal(edit_distance("Alice", "aLICE", 2), 0);
	assert_int_equal(edit_distance("alice", "alcie", 2), 1);
	assert_int_equal(edit_distance("alice", "alic", 2), 1);
	assert_int_equal(edit_distance("kitten", "sitting", 5), 3);
	assert_int_equal(edit_distance("kitten", "sitting", 2), 3);
	assert_int_equal(edit_distance("", "abc", 3), 3);
	assert_int_equal(edit_distance("", "", 0), 0);
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	assert_int_equal(edit_distance(long_name, long_name, 3), 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_strict_utf8_is_valid),
		cmocka_unit_test(a_run_of_plain_text_ends_where_it_ends_byte_by_byte),
		cmocka_unit_test(characters_are_decoded_and_never_read_beyond_the_end),
		cmocka_unit_test(cutting_and_counting_go_by_characters),
		cmocka_unit_test(width_counts_columns),
		cmocka_unit_test(what_steers_hides_or_reorders_becomes_visible),
		cmocka_unit_test(the_joiner_stays_only_between_symbols),
		cmocka_unit_test(one_line_stays_one_line),
		cmocka_unit_test(json_strings_are_escaped_and_lose_nothing),
		cmocka_unit_test(near_names_are_near),
	};

	return cmocka_run_group_tests_name("base/text", tests, NULL, NULL);
}
