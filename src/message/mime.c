/* SPDX-License-Identifier: MIT */
/* mime.c - base64, quoted-printable, character sets, and RFC 2047 encoded words: =?charset?encoding?text?= in header
 * values. */
#include "message/mime.h"

#include "base/error.h"
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

void
base64_decode(struct buf *out, struct mr_str text)
{
	uint32_t bits = 0;
	unsigned n = 0;

	(void)buf_reserve(out, text.len / 4 * 3 + 3);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];
		int value = c >= 'A' && c <= 'Z'   ? c - 'A'
			    : c >= 'a' && c <= 'z' ? c - 'a' + 26
			    : c >= '0' && c <= '9' ? c - '0' + 52
			    : c == '+'             ? 62
			    : c == '/'             ? 63
						   : -1;
		if (c == '=')
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

/* ---- Encoded words ---- */

enum { CHARSET_MAX = 64, CHUNK = 45 /* bytes a word, so that it stays under 75 characters */ };

enum charset
charset_of(struct mr_str name)
{
	static const struct {
		const char *name;
		enum charset is;
	} known[] = {
		{ "utf-8", CHARSET_UTF8 },
		{ "utf8", CHARSET_UTF8 },
		{ "us-ascii", CHARSET_ASCII },
		{ "ascii", CHARSET_ASCII },
		{ "iso-8859-1", CHARSET_LATIN1 },
		{ "latin1", CHARSET_LATIN1 },
		{ "windows-1252", CHARSET_LATIN1 },
		{ "cp1252", CHARSET_LATIN1 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (str_caseeq(name, str_of(known[i].name)))
			return known[i].is;
	}
	return CHARSET_OTHER;
}

struct word {
	enum charset charset;
	bool base64;
	struct mr_str text;
	size_t len; /* of the whole =?...?= */
};

static size_t
find(struct mr_str s, size_t from, size_t limit, char c)
{
	size_t n = s.len - from < limit ? s.len - from : limit;
	const char *at = n > 0 ? memchr(s.ptr + from, c, n) : NULL;
	return at ? (size_t)(at - s.ptr) : s.len;
}

/* No part may hold a "?", so each try ends at the fourth: all tries together stay linear. */
static bool
parse_word(struct mr_str s, struct word *ret)
{
	if (!str_starts(s, "=?"))
		return false;
	size_t charset_end = find(s, 2, CHARSET_MAX, '?');
	if (charset_end + 3 >= s.len || s.ptr[charset_end + 2] != '?')
		return false;
	char encoding = s.ptr[charset_end + 1];
	size_t text = charset_end + 3;
	size_t text_end = find(s, text, s.len, '?');
	if (text_end + 1 >= s.len || s.ptr[text_end + 1] != '=')
		return false;
	struct mr_str charset = { s.ptr + 2, charset_end - 2 };
	charset.len = find(charset, 0, charset.len, '*'); /* =?utf-8*en?...: a language may follow */
	*ret = (struct word){
		.charset = charset_of(charset),
		.base64 = encoding == 'b' || encoding == 'B',
		.text = { s.ptr + text, text_end - text },
		.len = text_end + 2,
	};
	return ret->charset != CHARSET_OTHER && (ret->base64 || encoding == 'q' || encoding == 'Q');
}

void
encoded_words_decode(struct buf *out, struct mr_str value)
{
	mr_auto(buf_done) struct buf scratch = BUF_INIT;
	struct mr_str pending = { value.ptr, 0 }; /* blanks after a word: dropped before another word */
	bool after_word = false;
	struct word w;

	while (value.len > 0) {
		size_t n;
		if (parse_word(value, &w)) {
			buf_clear(&scratch);
			if (w.base64)
				base64_decode(&scratch, w.text);
			else
				qp_decode(&scratch, w.text, true);
			if (w.charset == CHARSET_LATIN1)
				latin1_to_utf8(out, buf_str(&scratch));
			else /* not checked here: some split a character over two words */
				buf_add(out, buf_str(&scratch));
			out->failed |= scratch.failed;
			n = w.len;
			after_word = true;
			pending = (struct mr_str){ value.ptr + n, 0 };
		} else if (after_word && (value.ptr[0] == ' ' || value.ptr[0] == '\t')) {
			n = 1;
			pending.len++;
		} else {
			buf_add(out, pending);
			n = find(value, 1, value.len, '=');
			buf_add(out, (struct mr_str){ value.ptr, n });
			after_word = false;
			pending = (struct mr_str){ value.ptr + n, 0 };
		}
		value.ptr += n;
		value.len -= n;
	}
	buf_add(out, pending);
}

void
encoded_words_encode(struct buf *out, struct mr_str value)
{
	bool first = true;
	uint32_t cp;

	while (value.len > 0) {
		size_t n = 0, step;
		while (n < value.len) {
			step = utf8_next((struct mr_str){ value.ptr + n, value.len - n }, &cp);
			step = step ? step : 1;
			if (n + step > CHUNK)
				break;
			n += step;
		}
		buf_adds(out, first ? "=?utf-8?b?" : " =?utf-8?b?");
		base64_encode(out, (struct mr_str){ value.ptr, n }, 0);
		buf_adds(out, "?=");
		first = false;
		value.ptr += n;
		value.len -= n;
	}
}

/* ---- From the stored body to text ---- */

static struct mr_str
take_until(struct mr_str *rest, char stop)
{
	size_t n = 0;
	bool quoted = false;

	for (; n < rest->len && (quoted || rest->ptr[n] != stop); n++) {
		if (rest->ptr[n] == '"')
			quoted = !quoted;
	}
	struct mr_str part = { rest->ptr, n };
	size_t taken = n < rest->len ? n + 1 : n;
	rest->ptr += taken;
	rest->len -= taken;
	return str_trim(part);
}

/* The value of `text/plain; charset="utf-8"`'s charset, or empty. */
static struct mr_str
charset_param(struct mr_str content_type)
{
	(void)take_until(&content_type, ';');
	while (content_type.len > 0) {
		struct mr_str value = take_until(&content_type, ';');
		struct mr_str name = take_until(&value, '=');
		if (!str_caseeq(name, STR("charset")))
			continue;
		value = str_trim(value);
		if (value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"')
			return (struct mr_str){ value.ptr + 1, value.len - 2 };
		return value;
	}
	return STR("");
}

struct body_kind
body_kind_of(struct mr_str content_type, struct mr_str transfer_encoding)
{
	struct mr_str charset = charset_param(content_type), encoding = take_until(&transfer_encoding, ';');

	return (struct body_kind){
		.composed = str_casestarts(content_type, "multipart/") || str_casestarts(content_type, "message/"),
		.text = content_type.len == 0 || str_casestarts(content_type, "text/"),
		.encoding = str_caseeq(encoding, STR("quoted-printable")) ? BODY_QP
			    : str_caseeq(encoding, STR("base64"))         ? BODY_BASE64
									  : BODY_PLAIN,
		.charset = charset.len > 0 ? charset_of(charset) : CHARSET_UTF8,
	};
}

static bool
is_utf8_text(struct mr_str s)
{
	return s.len == 0 || (!memchr(s.ptr, '\0', s.len) && utf8_valid(s));
}

struct chain {             /* a body on its way through the steps */
	struct mr_str now; /* the raw body, or what lies in *out */
	struct buf *out;
	bool changed, failed;
};

static void
apply(struct chain *c, void (*step)(struct buf *out, struct mr_str))
{
	struct buf made = BUF_INIT;

	step(&made, c->now);
	buf_done(c->out); /* only now: c->now may lie in it */
	*c->out = made;
	c->now = buf_str(c->out);
	c->changed = true;
	c->failed |= !buf_ok(c->out);
}

static void
qp_body(struct buf *out, struct mr_str text)
{
	qp_decode(out, text, false);
}

bool
body_decode(const struct body_kind *kind, struct mr_str raw, struct buf *out)
{
	struct chain c = { .now = raw, .out = out };

	if (raw.len == 0)
		return false;
	if (kind->crlf && memchr(raw.ptr, '\r', raw.len))
		apply(&c, crlf_to_lf);
	if (!kind->composed && kind->encoding != BODY_PLAIN)
		apply(&c, kind->encoding == BODY_QP ? qp_body : base64_decode);
	if (!kind->composed && kind->text) {
		/* Us-ascii with valid UTF-8 in it is UTF-8 that was labelled carelessly. */
		if (kind->charset == CHARSET_LATIN1 || (kind->charset == CHARSET_ASCII && !is_utf8_text(c.now)))
			apply(&c, latin1_to_utf8);
		/* Encoded text has the line ends of mail; bytes (our own base64) stay as they are. */
		if (kind->encoding == BODY_BASE64 && is_utf8_text(c.now))
			apply(&c, crlf_to_lf);
	}
	out->failed |= c.failed;
	return c.changed;
}
