/* SPDX-License-Identifier: MIT */
/* What a difference shows is the difference: applied to the old text it gives the new one. */
#include "check.h"
#include "message/diff.h"

#include <stdio.h>
#include <stdlib.h>

static void
random_text(uint64_t *seed, struct buf *out)
{
	for (uint32_t n = random_below(seed, 30); n > 0; n--)
		buf_addf(out, "%c\n", "abcde"[random_below(seed, 5)]);
}

static void
change(uint64_t *seed, struct mr_str text, struct buf *out)
{
	for (size_t i = 0; i < text.len; i += 2) {
		if (random_below(seed, 8) == 0)
			buf_addf(out, "%c\n", "axyz"[random_below(seed, 4)]);
		if (random_below(seed, 6) > 0)
			buf_add(out, (struct mr_str){ text.ptr + i, 2 });
	}
}

/* As patch does, for lines of one letter. */
static void
apply(struct mr_str before, const char *diff, struct buf *out)
{
	size_t at = 0;

	for (const char *line = diff; *line; line = strchr(line, '\n') + 1) {
		size_t old_at, old_n, new_at, new_n;

		if (strncmp(line, "---", 3) == 0 || strncmp(line, "+++", 3) == 0)
			continue;
		if (sscanf(line, "@@ -%zu,%zu +%zu,%zu @@", &old_at, &old_n, &new_at, &new_n) == 4) {
			for (old_at -= old_n > 0; at < old_at; at++)
				buf_add(out, (struct mr_str){ before.ptr + 2 * at, 2 });
			assert_int_equal(out->len / 2, new_at - (new_n > 0));
		} else if (line[0] == '+') {
			buf_add(out, (struct mr_str){ line + 1, 2 });
		} else {
			assert_memory_equal(before.ptr + 2 * at, line + 1, 2);
			if (line[0] == ' ')
				buf_add(out, (struct mr_str){ line + 1, 2 });
			at++;
		}
	}
	buf_add(out, (struct mr_str){ before.ptr + 2 * at, before.len - 2 * at });
}

static void
it_leads_from_the_old_to_the_new(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		mr_auto(buf_done) struct buf a = BUF_INIT, b = BUF_INIT, diff = BUF_INIT, made = BUF_INIT;

		random_text(&seed, &a);
		change(&seed, buf_str(&a), &b);
		diff_unified(buf_str(&a), buf_str(&b), "f", "f", &diff);
		apply(buf_str(&a), buf_z(&diff), &made);
		assert_string_equal(buf_z(&made), buf_z(&b));
		if (str_eq(buf_str(&a), buf_str(&b)))
			assert_int_equal(diff.len, 0);
	}
}

static void
it_is_short(void **state)
{
	mr_auto(buf_done) struct buf a = BUF_INIT, b = BUF_INIT, diff = BUF_INIT;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		buf_addf(&a, "%d\n", i);
		buf_addf(&b, "%d%s\n", i, i == 5 || i == 19990 ? "!" : "");
	}
	diff_unified(buf_str(&a), buf_str(&b), "old", "new", &diff);
	assert_string_equal(buf_z(&diff),
	    "--- old\n+++ new\n@@ -3,7 +3,7 @@\n 2\n 3\n 4\n-5\n+5!\n 6\n 7\n 8\n"
	    "@@ -19988,7 +19988,7 @@\n 19987\n 19988\n 19989\n-19990\n+19990!\n 19991\n 19992\n 19993\n");
}

static void
too_many_changes_are_shown_all_the_same(void **state)
{
	mr_auto(buf_done) struct buf a = BUF_INIT, b = BUF_INIT, diff = BUF_INIT;

	(void)state;
	for (int i = 0; i < 1500; i++) {
		buf_addf(&a, "%d\n", i);
		buf_addf(&b, "-%d\n", i);
	}
	diff_unified(buf_str(&a), buf_str(&b), "old", "new", &diff);
	assert_non_null(strstr(buf_z(&diff), "@@ -1,1500 +1,1500 @@"));
}

static void
ends_and_long_lines(void **state)
{
	mr_auto(buf_done) struct buf a = BUF_INIT, b = BUF_INIT, diff = BUF_INIT, made = BUF_INIT;

	(void)state;
	diff_unified(STR(""), STR("x\x1b[0m"), NULL, "new", &made);
	assert_string_equal(buf_z(&made),
	    "--- /dev/null\n+++ new\n@@ -0,0 +1,1 @@\n+x<U+001B>[0m\n\\ no newline at the end of the file\n");
	for (int i = 0; i < 5000; i++)
		buf_addc(&a, 'x');
	buf_add(&b, buf_str(&a));
	buf_adds(&b, "HERE\n");
	buf_adds(&a, "\n");
	diff_unified(buf_str(&a), buf_str(&b), "f", "f", &diff);
	assert_true(diff.len < 400);
	assert_non_null(strstr(buf_z(&diff), "xxxHERE\n"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_leads_from_the_old_to_the_new),
		cmocka_unit_test(it_is_short),
		cmocka_unit_test(too_many_changes_are_shown_all_the_same),
		cmocka_unit_test(ends_and_long_lines),
	};
	return cmocka_run_group_tests_name("diff", tests, NULL, NULL);
}
