/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "base/text.h"
#include "message/mime.h"

static void
expect(void (*step)(struct buf *, struct mr_str), struct mr_str in, struct mr_str want, int line)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	step(&out, in);
	check_str(buf_str(&out), want, __FILE__, line);
}
#define EXPECT(step, in, want) expect(step, STR(in), STR(want), __LINE__)

static void
qp_body(struct buf *out, struct mr_str text)
{
	qp_decode(out, text, false);
}

static void
qp_header(struct buf *out, struct mr_str text)
{
	qp_decode(out, text, true);
}

static void
base64_decodes_what_others_write(void **state)
{
	(void)state;
	EXPECT(base64_decode, "aGVsbG8=", "hello");
	EXPECT(base64_decode, "aGVs\r\nbG8=\r\n", "hello");
	EXPECT(base64_decode, "aGVsbG8", "hello");
	EXPECT(base64_decode, "aGVsbG8=aGVsbG8=", "hellohello");
	EXPECT(base64_decode, "*aG-Vs.bG8=", "hello");
	EXPECT(base64_decode, "", "");
	EXPECT(base64_decode, "A", "");
	EXPECT(base64_decode, "AP8=", "\0\xff");
}

static void
base64_lines_have_their_length(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	(void)state;
	base64_encode(&out, STR("hello world, hello"), 8);
	assert_str(buf_str(&out), "aGVsbG8g\nd29ybGQs\nIGhlbGxv\n");
	buf_clear(&out);
	base64_encode(&out, STR("hi"), 0);
	assert_str(buf_str(&out), "aGk=");
	buf_clear(&out);
	base64_encode(&out, STR(""), 76);
	assert_int_equal(out.len, 0);
}

static void
base64_gives_any_bytes_back(void **state)
{
	uint64_t seed = 7;
	char bytes[300];

	(void)state;
	for (uint32_t round = 0; round < 500; round++) {
		mr_auto(buf_done) struct buf coded = BUF_INIT;
		mr_auto(buf_done) struct buf back = BUF_INIT;
		size_t n = random_below(&seed, sizeof(bytes));
		for (size_t i = 0; i < n; i++)
			bytes[i] = (char)random_below(&seed, 256);
		base64_encode(&coded, (struct mr_str){ bytes, n }, round % 2 ? 76 : 0);
		base64_decode(&back, buf_str(&coded));
		check_str(buf_str(&back), (struct mr_str){ bytes, n }, __FILE__, __LINE__);
	}
}

static void
quoted_printable_undoes_soft_breaks_and_padding(void **state)
{
	(void)state;
	EXPECT(qp_body, "caf=C3=A9 =3D ok", "café = ok");
	EXPECT(qp_body, "one =\ntwo=\r\nthree", "one twothree");
	EXPECT(qp_body, "soft = \t\nnext", "soft next");
	EXPECT(qp_body, "trailing \t \nnext  ", "trailing\nnext");
	EXPECT(qp_body, "lower =c3=a9", "lower é");
	EXPECT(qp_body, "bad =ZZ =4", "bad =ZZ =4");
	EXPECT(qp_body, "end=", "end");
	EXPECT(qp_body, "under_score", "under_score");
	EXPECT(qp_header, "under_score=20x", "under score x");
	EXPECT(qp_header, "end=", "end=");
}

static void
encoded_words_become_text(void **state)
{
	(void)state;
	EXPECT(encoded_words_decode, "plain", "plain");
	EXPECT(encoded_words_decode, "=?utf-8?q?caf=C3=A9_ol=C3=A9?=", "café olé");
	EXPECT(encoded_words_decode, "=?UTF-8?B?8J+knSBIQU5ET0ZG?=: x", "🤝 HANDOFF: x");
	EXPECT(encoded_words_decode, "a =?iso-8859-1?Q?=E9?= b", "a é b");
	EXPECT(encoded_words_decode, "=?utf-8?q?a?= \t =?utf-8?q?b?= c", "ab c");
	EXPECT(encoded_words_decode, "=?utf-8*en?q?a?=", "a");
	EXPECT(encoded_words_decode, "=?utf-8?q?=F0=9F?= =?utf-8?q?=A4=9D?=", "🤝");
	EXPECT(encoded_words_decode, "=?koi8-r?B?8A==?= x", "П x");
	EXPECT(encoded_words_decode, "=?x-nobody?B?8A==?= x", "=?x-nobody?B?8A==?= x");
	EXPECT(encoded_words_decode, "=?utf-8?x?a?=", "=?utf-8?x?a?=");
	EXPECT(encoded_words_decode, "=?utf-8?q?never closed", "=?utf-8?q?never closed");
	EXPECT(encoded_words_decode, "=?=?=?=?=?a?=", "=?=?=?=?=?a?=");
	EXPECT(encoded_words_decode, "=?utf-8?q?a?=  ", "a  ");
	EXPECT(encoded_words_decode, "1 + 1 = 2", "1 + 1 = 2");
	EXPECT(encoded_words_decode, "=?utf-8?Q?with spaces?=", "with spaces");
}

static void
encoding_words_can_be_undone(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (uint32_t round = 0; round < 300; round++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;
		mr_auto(buf_done) struct buf coded = BUF_INIT;
		mr_auto(buf_done) struct buf back = BUF_INIT;
		static const char *const pieces[] = { "a", " ", "é", "🤝", "=?utf-8?q?x?=", "?=", "漢" };
		for (uint32_t n = random_below(&seed, 60); n > 0; n--)
			buf_adds(&text, pieces[random_below(&seed, 7)]);
		encoded_words_encode(&coded, buf_str(&text));
		encoded_words_decode(&back, buf_str(&coded));
		check_str(buf_str(&back), buf_str(&text), __FILE__, __LINE__);
	}
}

static void
from_latin1(struct buf *out, struct mr_str text)
{
	assert_true(charset_to_utf8(out, STR("latin1"), text));
}

static void
latin1_and_crlf_are_converted(void **state)
{
	(void)state;
	EXPECT(from_latin1, "na\xefve \xa9", "naïve ©");
	EXPECT(crlf_to_lf, "a\r\nb\rc\n\r\n\r", "a\nb\rc\n\n\r");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64_decodes_what_others_write),
		cmocka_unit_test(base64_lines_have_their_length),
		cmocka_unit_test(base64_gives_any_bytes_back),
		cmocka_unit_test(quoted_printable_undoes_soft_breaks_and_padding),
		cmocka_unit_test(encoded_words_become_text),
		cmocka_unit_test(encoding_words_can_be_undone),
		cmocka_unit_test(latin1_and_crlf_are_converted),
	};
	return cmocka_run_group_tests_name("mime", tests, NULL, NULL);
}
