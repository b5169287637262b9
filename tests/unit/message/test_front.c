/* SPDX-License-Identifier: MIT */
/* Front matter: where it ends, what a value is, and what is passed over. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "message/front.h"

static void
assert_str(struct mr_str got, const char *want)
{
	if (!str_eq(got, str_of(want)))
		fail_msg("'%.*s' is not '%s'", (int)got.len, got.ptr, want);
}

static struct front
split(const char *text)
{
	struct front front;

	assert_true(front_split(str_of(text), &front));
	return front;
}

static void
head_and_body_are_told_apart(void **state)
{
	(void)state;
	struct front f = split("---\na: 1\nb: 2\n---\n\nbody\n---\nmore\n");

	assert_str(f.head, "a: 1\nb: 2\n");
	assert_str(f.body, "\nbody\n---\nmore\n");
	f = split("---\n---\n");
	assert_str(f.head, "");
	assert_str(f.body, "");
	assert_str(split("---\na: 1\n---").body, "");
	assert_str(split("---\r\na: 1\r\n---\r\nbody").body, "body");
}

static void
what_has_no_front_matter_is_told(void **state)
{
	static const char *const none[] = { "", "---", "---\n", "---\na: 1\n", " ---\na: 1\n---\n", "----\na: 1\n---\n",
		"a: 1\n---\n", "\n---\na: 1\n---\n", "---\na: 1\n ---\n", "---\na: 1\n----\n" };
	struct front front = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		if (front_split(str_of(none[i]), &front))
			fail_msg("'%s' has front matter", none[i]);
	assert_false(front_split((struct mr_str){ "---\0\na: 1\n---\n", 14 }, &front));
}

static void
a_value_is_the_rest_of_its_line(void **state)
{
	struct mr_str value,
	    head = STR("subject: Parser: \"next\" # steps \r\nempty:\n tight:x\nempty: late\nno colon\n: nameless\n");

	(void)state;
	assert_true(front_get(head, "subject", &value));
	assert_str(value, "Parser: \"next\" # steps");
	assert_true(front_get(head, "empty", &value)); /* the first of two */
	assert_str(value, "");
	assert_true(front_get(head, "tight", &value));
	assert_str(value, "x");
	assert_false(front_get(head, "Subject", &value));
	assert_false(front_get(head, "no colon", &value));
	assert_false(front_get(head, "", &value));
}

static void
lines_end_in_either_way_or_with_the_text(void **state)
{
	struct mr_str rest = STR("one\r\ntwo\n\nlast"), line;

	(void)state;
	assert_true(str_line(&rest, &line));
	assert_str(line, "one");
	assert_true(str_line(&rest, &line));
	assert_str(line, "two");
	assert_true(str_line(&rest, &line));
	assert_str(line, "");
	assert_true(str_line(&rest, &line));
	assert_str(line, "last");
	assert_false(str_line(&rest, &line));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head_and_body_are_told_apart),
		cmocka_unit_test(what_has_no_front_matter_is_told),
		cmocka_unit_test(a_value_is_the_rest_of_its_line),
		cmocka_unit_test(lines_end_in_either_way_or_with_the_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
