/* SPDX-License-Identifier: MIT */
/* Any bytes as text to be shown: no control character and no broken UTF-8 comes out (promise 7). */
#include "fuzz.h"

#include "base/text.h"

static void
check_shown(struct mr_str s, bool one_line)
{
	uint32_t cp;

	while (s.len > 0) {
		size_t n = utf8_next(s, &cp);
		assert(n > 0);
		assert(cp >= 0x20 || (!one_line && (cp == '\n' || cp == '\t')));
		assert(cp < 0x7f || cp > 0x9f);
		assert(cp < 0x202a || cp > 0x202e);
		assert(cp < 0x2066 || cp > 0x2069);
		s.ptr += n;
		s.len -= n;
	}
}

static void
check_cleaning(struct mr_str text)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT;
	mr_auto(buf_done) struct buf line = BUF_INIT;
	mr_auto(buf_done) struct buf again = BUF_INIT;

	text_clean(&lines, text);
	check_shown(buf_str(&lines), false);
	text_clean(&again, buf_str(&lines));
	assert(str_eq(buf_str(&again), buf_str(&lines)));
	text_clean_line(&line, text);
	check_shown(buf_str(&line), true);
}

static void
check_json(struct mr_str text)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	json_string(&out, text);
	assert(out.len >= 2 && out.ptr[0] == '"' && out.ptr[out.len - 1] == '"');
	check_shown(buf_str(&out), true);
	for (size_t i = 1; i + 1 < out.len; i++) {
		if (out.ptr[i] == '\\')
			i++;
		else
			assert(out.ptr[i] != '"');
		assert(i + 1 < out.len); /* the last quote is not escaped */
	}
	assert(!strstr(out.ptr, "\xe2\x80\xa8") && !strstr(out.ptr, "\xe2\x80\xa9"));
}

static void
check_distance(struct mr_str text)
{
	size_t half = text.len / 2;
	char a[64] = "", b[64] = "";

	memcpy(a, text.ptr, half < 63 ? half : 63);
	memcpy(b, text.ptr + half, text.len - half < 63 ? text.len - half : 63);
	size_t there = edit_distance(a, b, 3), back = edit_distance(b, a, 3);
	assert(there == back && there <= 4);
	assert(edit_distance(a, a, 3) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	size_t chars = utf8_chars(text);

	check_cleaning(text);
	check_json(text);
	check_distance(text);
	assert(chars <= text.len && utf8_width(text) <= 2 * chars);
	for (size_t n = 0; n <= 3; n++) {
		struct mr_str cut = utf8_cut(text, n);
		assert(lies_within(cut, text) && utf8_chars(cut) <= n);
		assert(!utf8_valid(text) || utf8_valid(cut));
	}
	return 0;
}
