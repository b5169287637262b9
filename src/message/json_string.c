/* SPDX-License-Identifier: MIT */
/* json_string.c - the text of a JSON string, and text as a JSON string. See json_read.h. */
#include "message/json_read.h"

#include "base/text.h"

static void
add_char(struct buf *out, uint32_t cp)
{
	if (cp >= 0xd800 && cp < 0xe000)
		cp = 0xfffd;
	if (cp < 0x80) {
		buf_addc(out, (char)cp);
		return;
	}
	if (cp < 0x800) {
		buf_addc(out, (char)(0xc0 | cp >> 6));
	} else if (cp < 0x10000) {
		buf_addc(out, (char)(0xe0 | cp >> 12));
		buf_addc(out, (char)(0x80 | (cp >> 6 & 0x3f)));
	} else {
		buf_addc(out, (char)(0xf0 | cp >> 18));
		buf_addc(out, (char)(0x80 | (cp >> 12 & 0x3f)));
		buf_addc(out, (char)(0x80 | (cp >> 6 & 0x3f)));
	}
	buf_addc(out, (char)(0x80 | (cp & 0x3f)));
}

static uint32_t
four_hex(const char *p)
{
	uint32_t unit = 0;

	for (int i = 0; i < 4; i++)
		unit = unit << 4 | (uint32_t)hex_digit(p[i]);
	return unit;
}

/* At a backslash; returns how many bytes it takes. Two \u escapes may be one character. */
static size_t
undo_escape(struct mr_str s, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

	if (s.ptr[1] != 'u') {
		buf_addc(out, to[strchr(from, s.ptr[1]) - from]);
		return 2;
	}
	uint32_t unit = four_hex(s.ptr + 2);

	if (unit >= 0xd800 && unit < 0xdc00 && s.len >= 12 && s.ptr[6] == '\\' && s.ptr[7] == 'u') {
		uint32_t low = four_hex(s.ptr + 8);

		if (low >= 0xdc00 && low < 0xe000) {
			add_char(out, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
			return 12;
		}
	}
	add_char(out, unit);
	return 6;
}

void
json_text(struct json_value string, struct buf *out)
{
	if (string.kind != JSON_STRING)
		return;
	struct mr_str s = { string.raw.ptr + 1, string.raw.len - 2 };

	while (s.len > 0) {
		size_t n = ascii_run(s, '\\', '\\');

		if (n > 0)
			buf_add(out, (struct mr_str){ s.ptr, n });
		else if (s.ptr[0] == '\\')
			n = undo_escape(s, out);
		else if ((n = utf8_next(s, &(uint32_t){ 0 })) > 0)
			buf_add(out, (struct mr_str){ s.ptr, n });
		else {
			n = 1;
			buf_adds(out, "\xEF\xBF\xBD");
		}
		s.ptr += n;
		s.len -= n;
	}
}

void
json_stringify(struct buf *out, struct mr_str s)
{
	static const char from[] = "\"\\\b\t\n\f\r", to[] = "\"\\btnfr";

	buf_addc(out, '"');
	while (s.len > 0) {
		unsigned char c = (unsigned char)s.ptr[0];
		const char *short_form = c ? strchr(from, c) : NULL;
		size_t n = 1;

		if (short_form && c < 0x80) {
			buf_addc(out, '\\');
			buf_addc(out, to[short_form - from]);
		} else if (c < 0x20) {
			buf_addf(out, "\\u%04x", c);
		} else if (c < 0x80) {
			size_t run = ascii_run(s, '"', '\\');

			n = run > 0 ? run : 1; /* 0x7f stands as it is */
			buf_add(out, (struct mr_str){ s.ptr, n });
		} else if ((n = utf8_next(s, &(uint32_t){ 0 })) > 0) {
			buf_add(out, (struct mr_str){ s.ptr, n });
		} else {
			n = 1;
			buf_adds(out, "\xEF\xBF\xBD");
		}
		s.ptr += n;
		s.len -= n;
	}
	buf_addc(out, '"');
}
