/* SPDX-License-Identifier: MIT */
/* mime.c - base64, quoted-printable, Latin-1, line ends. Decoders take any bytes and never fail. */
#include "message/mime.h"

#include "base/text.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(struct buf *out, struct mr_str bytes, size_t line_len)
{
	size_t column = 0;

	(void)buf_reserve(out, bytes.len / 3 * 4 + 4 + (line_len ? bytes.len / line_len * 2 + 2 : 0));
	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
		uint32_t group = 0;
		char quad[4] = "====";
		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (k < n ? (unsigned char)bytes.ptr[i + k] : 0);
		for (size_t k = 0; k <= n; k++)
			quad[k] = alphabet[group >> (18 - 6 * k) & 63];
		if (line_len && column + 4 > line_len) {
			buf_addc(out, '\n');
			column = 0;
		}
		buf_add(out, (struct mr_str){ quad, 4 });
		column += 4;
	}
	if (line_len && column > 0)
		buf_addc(out, '\n');
}

static int
base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

void
base64_decode(struct buf *out, struct mr_str text)
{
	uint32_t bits = 0;
	unsigned n = 0;

	(void)buf_reserve(out, text.len / 4 * 3 + 3);
	for (size_t i = 0; i < text.len; i++) {
		int value = base64_value(text.ptr[i]);
		if (text.ptr[i] == '=')
			n = 0; /* padding: what follows is a new run, as in two encodings joined */
		if (value < 0)
			continue;
		bits = bits << 6 | (uint32_t)value;
		n += 6;
		if (n >= 8) {
			n -= 8;
			buf_addc(out, (char)(unsigned char)(bits >> n & 0xff));
		}
	}
}

/* Length of blanks and then a line break (or the end) at p, 0 if something else comes first. */
static size_t
blank_to_break(const char *p, const char *end, size_t *ret_blank)
{
	const char *q = p;

	while (q < end && (*q == ' ' || *q == '\t'))
		q++;
	*ret_blank = (size_t)(q - p);
	if (q == end)
		return (size_t)(q - p);
	if (*q == '\r' && q + 1 < end && q[1] == '\n')
		q++;
	return *q == '\n' ? (size_t)(q + 1 - p) : 0;
}

void
qp_decode(struct buf *out, struct mr_str text, bool header)
{
	const char *p = text.ptr, *end = text.len > 0 ? text.ptr + text.len : text.ptr;
	size_t blank;

	(void)buf_reserve(out, text.len);
	while (p < end) {
		if (*p == '=') {
			int high = end - p > 2 ? hex_digit(p[1]) : -1;
			int low = high >= 0 ? hex_digit(p[2]) : -1;
			size_t soft = header ? 0 : blank_to_break(p + 1, end, &blank);
			if (low >= 0) {
				buf_addc(out, (char)(unsigned char)(high << 4 | low));
				p += 3;
			} else if (soft > 0 || (!header && p + 1 == end)) {
				p += 1 + soft;
			} else {
				buf_addc(out, *p++);
			}
		} else if (!header && (*p == ' ' || *p == '\t')) {
			/* Blanks at the end of a line were added on the way; the others count. */
			if (blank_to_break(p, end, &blank) == 0)
				buf_add(out, (struct mr_str){ p, blank });
			p += blank;
		} else {
			buf_addc(out, header && *p == '_' ? ' ' : *p);
			p++;
		}
	}
}

void
latin1_byte(struct buf *out, unsigned char byte)
{
	if (byte < 0x80) {
		buf_addc(out, (char)byte);
		return;
	}
	buf_addc(out, (char)(unsigned char)(0xc0 | byte >> 6));
	buf_addc(out, (char)(unsigned char)(0x80 | (byte & 0x3f)));
}

void
latin1_to_utf8(struct buf *out, struct mr_str bytes)
{
	(void)buf_reserve(out, bytes.len);
	for (size_t i = 0; i < bytes.len; i++)
		latin1_byte(out, (unsigned char)bytes.ptr[i]);
}

void
crlf_to_lf(struct buf *out, struct mr_str text)
{
	(void)buf_reserve(out, text.len);
	while (text.len > 0) {
		const char *lf = memchr(text.ptr, '\n', text.len);
		size_t line = lf ? (size_t)(lf - text.ptr) : text.len;
		size_t taken = lf ? line + 1 : line;
		bool cr = lf && line > 0 && text.ptr[line - 1] == '\r';
		buf_add(out, (struct mr_str){ text.ptr, cr ? line - 1 : line });
		if (lf)
			buf_addc(out, '\n');
		text.ptr += taken;
		text.len -= taken;
	}
}
