/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "message/header.h"
#include <stddef.h>

static void
expect_line(struct header_cursor *c, const char *name, const char *value)
{
	struct header_line line;
	mr_auto(buf_done) struct buf unfolded = BUF_INIT;

	assert_true(header_next(c, &line));
	check_str(line.name, str_of(name), __FILE__, __LINE__);
	header_unfold(&unfolded, line.raw);
	assert_string_equal(buf_z(&unfolded), value);
}

static void
lines_end_in_lf_or_crlf(void **state)
{
	struct header_cursor c = header_begin(STR("A: 1\r\nB: 2\nC:3\r\n\r\nbody"));
	struct header_line line;

	(void)state;
	expect_line(&c, "A", "1");
	expect_line(&c, "B", "2");
	expect_line(&c, "C", "3");
	assert_false(header_next(&c, &line));
	assert_true(c.ended);
	assert_str(c.rest, "body");
	assert_false(header_next(&c, &line));
	assert_str(c.rest, "body");
}

static void
a_fold_becomes_one_space(void **state)
{
	struct header_cursor c = header_begin(STR("A: one\n two\r\n\t  three\nB:\n four\n"));
	struct header_line line;

	(void)state;
	expect_line(&c, "A", "one two three");
	expect_line(&c, "B", "four");
	assert_false(header_next(&c, &line));
	assert_false(c.ended);
	assert_int_equal(c.rest.len, 0);
}

static void
what_is_no_header_line_is_counted_and_skipped(void **state)
{
	struct header_cursor c = header_begin(STR(" lost\nFrom alice Mon Jan  5 10:00:00 2026\nA: 1\nno "
						  "colon here\n continued\n: empty name\nB : 2\n\n"));
	struct header_line line;

	(void)state;
	expect_line(&c, "A", "1");
	expect_line(&c, "B", "2");
	assert_false(header_next(&c, &line));
	assert_true(c.ended);
	assert_int_equal(c.skipped, 5);
}

static void
names_are_printable_ascii_without_colon(void **state)
{
	char longest[77];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	assert_true(header_name_valid(STR("X-Foo_1")));
	assert_true(header_name_valid((struct mr_str){ longest, 76 }));
	assert_false(header_name_valid((struct mr_str){ longest, 77 }));
	assert_false(header_name_valid(STR("")));
	assert_false(header_name_valid(STR("a b")));
	assert_false(header_name_valid(STR("a:b")));
	assert_false(header_name_valid(STR("a\nb")));
	assert_false(header_name_valid(STR("ä")));
	assert_false(header_name_valid(STR("a\x7f")));
}

static void
refuses_values_that_would_leave_their_line(void **state)
{
	static const struct {
		struct mr_str value;
		const char *says;
	} bad[] = {
		{ STR("a\nBcc: evil"), "has a line break" },
		{ STR("a\rb"), "has a line break" },
		{ STR("a\0b"), "has a NUL byte" },
		{ STR("a\xff"), "is not valid UTF-8" },
	};
	mr_auto(buf_done) struct buf out = BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct mr_error err = { 0 };
		assert_int_equal(header_add(&out, "X-Test", bad[i].value, &err), MR_REFUSED);
		assert_non_null(strstr(err.message, "'X-Test'"));
		assert_non_null(strstr(err.message, bad[i].says));
		assert_true(err.hint[0] != '\0');
		assert_non_null(header_value_problem(bad[i].value));
	}
	struct mr_error err = { 0 };
	assert_int_equal(header_add(&out, "X Test", STR("v"), &err), MR_REFUSED);
	assert_int_equal(out.len, 0);
}

static void
long_values_fold_under_998_bytes_and_unfold_to_the_same(void **state)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	mr_auto(buf_done) struct buf out = BUF_INIT;
	mr_auto(buf_done) struct buf back = BUF_INIT;
	struct mr_error err = { 0 };
	struct header_line line;
	size_t column = 0;

	(void)state;
	for (int i = 0; i < 2000; i++)
		buf_addf(&value, "%sword%d", i % 7 == 0 ? "  " : i % 11 == 0 ? "\t" : " ", i);
	assert_int_equal(header_add(&out, "Subject", buf_str(&value), &err), MR_OK);
	for (size_t i = 0; i < out.len; i++) {
		column = out.ptr[i] == '\n' ? 0 : column + 1;
		assert_true(column < 998);
	}
	struct header_cursor c = header_begin(buf_str(&out));
	assert_true(header_next(&c, &line));
	header_unfold(&back, line.raw);
	struct mr_str want = str_trim(buf_str(&value));
	check_str(buf_str(&back), want, __FILE__, __LINE__);
}

static void
a_long_value_without_spaces_stays_one_line(void **state)
{
	mr_auto(buf_done) struct buf value = BUF_INIT;
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };

	(void)state;
	for (int i = 0; i < 5000; i++)
		buf_addc(&value, 'x');
	assert_int_equal(header_add(&out, "Subject", buf_str(&value), &err), MR_OK);
	assert_ptr_equal(memchr(out.ptr, '\n', out.len), out.ptr + out.len - 1);
}

static void
a_record_is_read_through_empty_lines_and_garbage(void **state)
{
	mr_auto(record_done) struct record r = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(
	    record_parse(STR("Format: 1\n\n# a note\nName: town\r\nLife: 12\nBad: 1x\nLess: -3\n"), &r, &err), MR_OK);
	assert_int_equal(r.n, 5);
	assert_int_equal(r.skipped, 1);
	assert_string_equal(record_get(&r, "name"), "town");
	assert_null(record_get(&r, "nam"));
	assert_int_equal(record_int(&r, "Life", 7), 12);
	assert_int_equal(record_int(&r, "Bad", 7), 7);
	assert_int_equal(record_int(&r, "Less", 7), -3);
	assert_int_equal(record_int(&r, "Missing", 7), 7);
}

static void
a_record_of_garbage_is_corrupt_and_an_empty_one_is_empty(void **state)
{
	struct record r = { .n = 99 };
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(record_parse(STR("\x7f\x45LF garbage\n\n\n"), &r, &err), MR_CORRUPT);
	assert_int_equal(r.n, 99);
	assert_int_equal(record_parse(STR(""), &r, &err), MR_OK);
	assert_int_equal(r.n, 0);
	record_done(&r);
}

static void
a_record_keeps_values_c_strings_can_hold(void **state)
{
	mr_auto(record_done) struct record r = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(record_parse(STR("A: x\0y\nB: caf\xe9\n"), &r, &err), MR_OK);
	assert_string_equal(record_get(&r, "A"), "x y");
	assert_string_equal(record_get(&r, "B"), "café");
}

struct example {
	const char *text, *none;
	int64_t at_ms;
	unsigned tries, raised;
	bool mailed;
};
static const struct record_field example_fields[] = {
	{ "Text", RECORD_TEXT, offsetof(struct example, text) },
	{ "None", RECORD_TEXT, offsetof(struct example, none) },
	{ "At", RECORD_TIME, offsetof(struct example, at_ms) },
	{ "Tries", RECORD_COUNT, offsetof(struct example, tries) },
	{ "Raised", RECORD_SOME, offsetof(struct example, raised) },
	{ "Mailed", RECORD_YES, offsetof(struct example, mailed) },
};

static void
one_table_reads_and_writes_a_struct(void **state)
{
	static const char lines[] = "Text: two words\nAt: 2026-03-05T10:30:00.123Z\nTries: 0\nMailed: yes\n";
	mr_auto(record_done) struct record r = { 0 };
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct mr_error err = { 0 };
	struct example x = { .raised = 4 };

	(void)state;
	assert_int_equal(record_parse(str_of(lines), &r, &err), MR_OK);
	record_read(&r, RECORD_FIELDS(example_fields), &x);
	assert_string_equal(x.text, "two words");
	assert_string_equal(x.none, "");
	assert_int_equal(x.raised, 0);
	assert_true(x.mailed);
	record_write(&out, RECORD_FIELDS(example_fields), &x);
	assert_string_equal(buf_z(&out), lines);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_end_in_lf_or_crlf),
		cmocka_unit_test(a_fold_becomes_one_space),
		cmocka_unit_test(what_is_no_header_line_is_counted_and_skipped),
		cmocka_unit_test(names_are_printable_ascii_without_colon),
		cmocka_unit_test(refuses_values_that_would_leave_their_line),
		cmocka_unit_test(long_values_fold_under_998_bytes_and_unfold_to_the_same),
		cmocka_unit_test(a_long_value_without_spaces_stays_one_line),
		cmocka_unit_test(one_table_reads_and_writes_a_struct),
		cmocka_unit_test(a_record_is_read_through_empty_lines_and_garbage),
		cmocka_unit_test(a_record_of_garbage_is_corrupt_and_an_empty_one_is_empty),
		cmocka_unit_test(a_record_keeps_values_c_strings_can_hold),
	};
	return cmocka_run_group_tests_name("header", tests, NULL, NULL);
}
