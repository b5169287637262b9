/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "base/text.h"
#include "message/message.h"

static void
a_reply_has_one_re(void **state)
{
	static const struct {
		const char *subject, *want;
	} cases[] = {
		{ "hello", "Re: hello" },
		{ "Re: hello", "Re: hello" },
		{ "RE: re:  Re: hello", "Re: hello" },
		{ "re:hello", "Re: hello" },
		{ "Re[2]: hello", "Re: hello" },
		{ "Re : hello", "Re: hello" },
		{ "  Re: hello ", "Re: hello" },
		{ "", "Re:" },
		{ "Re:", "Re:" },
		{ "Regarding: x", "Re: Regarding: x" },
		{ "Re[x]: y", "Re: Re[x]: y" },
		{ "Re[]: y", "Re: Re[]: y" },
		{ "Re", "Re: Re" },
		{ "Re[1", "Re: Re[1" },
		{ "Fwd: Re: x", "Re: Fwd: Re: x" },
		{ "🤝 HANDOFF: nux", "Re: 🤝 HANDOFF: nux" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		mr_auto(buf_done) struct buf out = BUF_INIT;
		subject_reply(&out, str_of(cases[i].subject));
		assert_string_equal(buf_z(&out), cases[i].want);
	}
}

static void
the_first_line_with_text_is_the_subject(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	(void)state;
	subject_from_body(&out, STR("\n  \r\n  done with\tit \r\nmore"));
	assert_string_equal(buf_z(&out), "done with it");
	buf_clear(&out);
	subject_from_body(&out, STR("\n\n"));
	assert_string_equal(buf_z(&out), "");
}

static void
long_and_wild_lines_are_cut_at_78_clean_characters(void **state)
{
	mr_auto(buf_done) struct buf body = BUF_INIT;
	mr_auto(buf_done) struct buf out = BUF_INIT;

	(void)state;
	for (int i = 0; i < 78; i++)
		buf_adds(&body, "é");
	subject_from_body(&out, buf_str(&body));
	assert_int_equal(out.len, 156);
	buf_adds(&body, "é");
	buf_clear(&out);
	subject_from_body(&out, buf_str(&body));
	assert_int_equal(utf8_chars(buf_str(&out)), 78);
	assert_true(str_ends(buf_str(&out), "é…"));
	buf_clear(&out);
	subject_from_body(&out, STR("\x1b]0;x\x07 \xff\0 end\n"));
	assert_true(utf8_valid(buf_str(&out)));
	for (size_t i = 0; i < out.len; i++)
		assert_true((unsigned char)out.ptr[i] >= ' ');
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_has_one_re),
		cmocka_unit_test(the_first_line_with_text_is_the_subject),
		cmocka_unit_test(long_and_wild_lines_are_cut_at_78_clean_characters),
	};
	return cmocka_run_group_tests_name("subject", tests, NULL, NULL);
}
