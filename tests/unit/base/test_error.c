/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "base/text.h"

static void
an_error_says_what_failed_and_why(void **state)
{
	(void)state;
	struct mr_error err = { 0 };

	errno = ENOSPC;
	assert_int_equal(mr_fail_errno(&err, "cannot publish '%s'", "x"), MR_FULL);
	assert_string_equal(err.message, "cannot publish 'x': No space left on device");
	assert_int_equal(err.sys_errno, ENOSPC);
	assert_true(err.hint[0] != '\0');
	assert_int_equal(mr_wrap(&err, "deliver to '%s'", "bob"), MR_FULL);
	assert_string_equal(err.message, "deliver to 'bob': cannot publish 'x': No space left on device");
	assert_int_equal(mr_hint(&err, "free %d bytes", 7), MR_FULL);
	assert_string_equal(err.hint, "free 7 bytes");
	assert_int_equal(mr_fail(&err, MR_BUSY, "plain"), MR_BUSY);
	assert_string_equal(err.hint, "");
	assert_int_equal(err.sys_errno, 0);
}

static void
the_second_line_of_the_format_is_the_hint(void **state)
{
	(void)state;
	struct mr_error err = { 0 };
	char longer[1000];

	assert_int_equal(mr_fail(&err, MR_NOTFOUND, "no agent '%s'\ntry '%s' or %d", "a\nb", "c", 7), MR_NOTFOUND);
	assert_string_equal(err.message, "no agent 'a\nb'");
	assert_string_equal(err.hint, "try 'c' or 7");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	(void)mr_fail(&err, MR_NOTFOUND, "no agent '%s' in %d\ntry '%s' or %d", longer, 1, "c", 7);
	assert_true(str_ends(str_of(err.message), "x'")); /* cut off, and the arguments behind it are still in step */
	assert_string_equal(err.hint, "try 'c' or 7");
}

static void
each_errno_has_its_code_and_those_of_sandboxes_a_hint(void **state)
{
	(void)state;
	static const struct {
		int error;
		enum mr_rc rc;
		bool hint;
	} cases[] = { { ENOSPC, MR_FULL, true }, { EDQUOT, MR_FULL, true }, { ENOMEM, MR_NOMEM, false },
		{ EIO, MR_IO, false }, { EROFS, MR_IO, true }, { EACCES, MR_IO, true }, { EPERM, MR_IO, true },
		{ EEXIST, MR_IO, false } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_error err = { 0 };
		errno = cases[i].error;
		assert_int_equal(mr_fail_errno(&err, "x"), cases[i].rc);
		assert_int_equal(err.hint[0] != '\0', cases[i].hint);
	}
}

static void
what_is_too_long_loses_the_subject_and_keeps_the_reason(void **state)
{
	(void)state;
	struct mr_error err = { 0 };
	char subject[1000] = "";

	for (size_t i = 0; i + 3 < sizeof(subject); i += 3)
		memcpy(subject + i, "\xE2\x82\xAC", 4);
	for (size_t shift = 0; shift < 3; shift++) {
		errno = EIO;
		(void)mr_fail_errno(&err, "%.*s%s", (int)shift, "xx", subject);
		assert_true(str_ends(str_of(err.message), ": Input/output error"));
		assert_true(utf8_valid(str_of(err.message)));
		(void)mr_fail(&err, MR_IO, "%.*s%s", (int)shift, "xx", subject);
		assert_true(utf8_valid(str_of(err.message)));
		assert_true(strlen(err.message) > 300);
		(void)mr_fail(&err, MR_IO, "the reason");
		(void)mr_wrap(&err, "%.*s%s", (int)shift, "xx", subject);
		assert_true(str_ends(str_of(err.message), ": the reason"));
		assert_true(utf8_valid(str_of(err.message)));
		(void)mr_wrap(&err, "no room left");
		assert_true(str_ends(str_of(err.message), ": the reason"));
	}
}

static void
an_error_may_be_made_from_itself(void **state)
{
	(void)state;
	struct mr_error err = { 0 };

	(void)mr_fail(&err, MR_IO, "first");
	(void)mr_fail(&err, MR_BUSY, "second, after %s", err.message);
	assert_string_equal(err.message, "second, after first");
	(void)mr_hint(&err, "because %s", err.message);
	assert_string_equal(err.hint, "because second, after first");
}

static void
every_result_has_a_word_of_its_own(void **state)
{
	(void)state;

	for (int a = MR_OK; a <= MR_IO; a++) {
		assert_string_not_equal(mr_rc_word((enum mr_rc)a), "unknown");
		for (int b = a + 1; b <= MR_IO; b++)
			assert_string_not_equal(mr_rc_word((enum mr_rc)a), mr_rc_word((enum mr_rc)b));
	}
	assert_string_equal(mr_rc_word(MR_NOTFOUND), "not-found");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_says_what_failed_and_why),
		cmocka_unit_test(the_second_line_of_the_format_is_the_hint),
		cmocka_unit_test(each_errno_has_its_code_and_those_of_sandboxes_a_hint),
		cmocka_unit_test(what_is_too_long_loses_the_subject_and_keeps_the_reason),
		cmocka_unit_test(an_error_may_be_made_from_itself),
		cmocka_unit_test(every_result_has_a_word_of_its_own),
	};

	return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
