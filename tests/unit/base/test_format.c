/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "base/format.h"

MR_PRINTF(2, 3)
static const char *
printed(size_t size, const char *fmt, ...)
{
	static char text[200];
	va_list args;

	assert_true(size <= sizeof(text));
	memset(text, 'X', sizeof(text));
	va_start(args, fmt);
	format_print(text, size, fmt, args);
	va_end(args);
	return text;
}

static void
prints_as_printf_does(void **state)
{
	(void)state;
	assert_string_equal(printed(200, "plain 100%%"), "plain 100%");
	assert_string_equal(
	    printed(200, "%s|%.2s|%.*s|%4s|%-4s|", "ab", "abc", 2, "abc", "ab", "ab"), "ab|ab|ab|  ab|ab  |");
	assert_string_equal(
	    printed(200, "%d %u %zu %ld %lu %c %04o", -1, 2u, (size_t)3, -4L, 5UL, 'c', 0644u), "-1 2 3 -4 5 c 0644");
	assert_string_equal(printed(200, "%lld %llu", -9223372036854775807LL - 1, 18446744073709551615ULL),
	    "-9223372036854775808 18446744073709551615");
}

static void
a_word_cannot_end_the_quotes_around_it(void **state)
{
	(void)state;
	assert_string_equal(
	    printed(200, "no agent '%s' here", "x' there; run '"), "no agent 'x\\' there; run \\'' here");
	assert_string_equal(printed(200, "'a: %.3s b'", "\\'\\"), "'a: \\\\\\'\\\\ b'");
	assert_string_equal(printed(200, "'%s%s' and %s", "'", "'", "'"), "'\\'\\'' and '");
	assert_string_equal(printed(200, "\"%s\" '%s'", "a\"'", "a\"'"), "\"a\\\"'\" 'a\"\\''");
}

static void
an_apostrophe_opens_nothing(void **state)
{
	(void)state;
	assert_string_equal(
	    printed(200, "the room's %s, %s's '%s'", "it's", "bob", "it's"), "the room's it's, bob's 'it\\'s'");
}

static void
what_does_not_fit_ends_with_a_whole_character(void **state)
{
	(void)state;
	assert_string_equal(printed(5, "%s", "abcdef"), "abcd");
	assert_string_equal(printed(5, "%s", "abc\xC3\xA4"), "abc");
	assert_string_equal(printed(6, "%s", "abc\xC3\xA4"), "abc\xC3\xA4");
	assert_string_equal(printed(6, "%s", "ab\xF0\x9F\xA4\x9D"), "ab");
	assert_string_equal(printed(1, "%s", "abc"), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prints_as_printf_does),
		cmocka_unit_test(a_word_cannot_end_the_quotes_around_it),
		cmocka_unit_test(an_apostrophe_opens_nothing),
		cmocka_unit_test(what_does_not_fit_ends_with_a_whole_character),
	};

	return cmocka_run_group_tests_name("base/format", tests, NULL, NULL);
}
