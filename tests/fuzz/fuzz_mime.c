/* SPDX-License-Identifier: MIT */
/* Any bytes through the decoders; what we encode decodes to the same. */
#include "fuzz.h"

#include "base/text.h"
#include "message/mime.h"

static void
check_base64(struct mr_str text)
{
	static const size_t widths[] = { 0, 4, 76 };
	mr_auto(buf_done) struct buf out = BUF_INIT;

	base64_decode(&out, text);
	assert(out.len <= text.len / 4 * 3 + 3);
	for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
		mr_auto(buf_done) struct buf coded = BUF_INIT;
		mr_auto(buf_done) struct buf back = BUF_INIT;
		base64_encode(&coded, text, widths[i]);
		base64_decode(&back, buf_str(&coded));
		assert(str_eq(buf_str(&back), text));
	}
}

static void
check_words(struct mr_str text)
{
	mr_auto(buf_done) struct buf decoded = BUF_INIT;
	mr_auto(buf_done) struct buf coded = BUF_INIT;
	mr_auto(buf_done) struct buf back = BUF_INIT;

	encoded_words_decode(&decoded, text);
	assert(decoded.len <= 4 * text.len); /* a byte of some sets is a character of 4 */
	encoded_words_encode(&coded, text);
	encoded_words_decode(&back, buf_str(&coded));
	assert(str_eq(buf_str(&back), text));
}

static void
check_body(struct mr_str text)
{
	const char *lf = memchr(text.ptr, '\n', text.len);
	struct mr_str type = { text.ptr, lf ? (size_t)(lf - text.ptr) : 0 };
	static const char *const encodings[] = { "", "base64", "Quoted-Printable" };

	for (size_t i = 0; i < sizeof(encodings) / sizeof(*encodings); i++) {
		mr_auto(buf_done) struct buf out = BUF_INIT;
		struct body_kind kind = body_kind_of(type, str_of(encodings[i]));
		kind.crlf = text.len % 2 == 0;
		bool changed = body_decode(&kind, text, &out);
		assert(changed || out.len == 0);
		assert(out.len <= 4 * text.len + 3);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	mr_auto(buf_done) struct buf body = BUF_INIT;
	mr_auto(buf_done) struct buf header = BUF_INIT;
	mr_auto(buf_done) struct buf latin1 = BUF_INIT;
	mr_auto(buf_done) struct buf lines = BUF_INIT;

	qp_decode(&body, text, false);
	qp_decode(&header, text, true);
	assert(body.len <= text.len && header.len <= text.len);
	assert(charset_to_utf8(&latin1, STR("iso-8859-1"), text));
	assert(utf8_valid(buf_str(&latin1)) && utf8_chars(buf_str(&latin1)) == text.len);
	crlf_to_lf(&lines, text);
	assert(lines.len <= text.len);
	check_base64(text);
	check_words(text);
	check_body(text);
	return 0;
}
