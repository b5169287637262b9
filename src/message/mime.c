/* SPDX-License-Identifier: MIT */
/* mime.c - base64, quoted-printable, character sets, and RFC 2047 encoded words: =?charset?encoding?text?= in header
 * values. */
#include "message/mime.h"

#include "base/error.h"
#include "base/text.h"
#include "message/header.h"
#include <errno.h>
#include <iconv.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void
base64_encode(struct buf *out, struct mr_str bytes, size_t line_len)
{
	size_t column = 0;

	if (!buf_reserve(out, bytes.len / 3 * 4 + 4 + (line_len ? bytes.len / line_len * 2 + 2 : 0)))
		return;
	char *to = out->ptr + out->len;

	for (size_t i = 0; i < bytes.len; i += 3) {
		size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
		uint32_t group = 0;

		for (size_t k = 0; k < 3; k++)
			group = group << 8 | (k < n ? (unsigned char)bytes.ptr[i + k] : 0);
		if (line_len && column + 4 > line_len) {
			*to++ = '\n';
			column = 0;
		}
		for (size_t k = 0; k < 4; k++)
			*to++ = k <= n ? alphabet[group >> (18 - 6 * k) & 63] : '=';
		column += 4;
	}
	if (line_len && column > 0)
		*to++ = '\n';
	out->len = (size_t)(to - out->ptr);
	out->ptr[out->len] = '\0';
}

/* The value of a base64 character; -1: none. */
static int
sextet(char c)
{
	return c >= 'A' && c <= 'Z'   ? c - 'A'
	       : c >= 'a' && c <= 'z' ? c - 'a' + 26
	       : ascii_digit(c)       ? c - '0' + 52
	       : c == '+'             ? 62
	       : c == '/'             ? 63
				      : -1;
}

static void
base64_some(struct decoder *d, struct buf *out, struct mr_str text)
{
	if (!buf_reserve(out, text.len / 4 * 3 + 3))
		return;
	for (size_t i = 0; i < text.len; i++) {
		int value = sextet(text.ptr[i]);

		if (text.ptr[i] == '=')
			d->n = 0; /* padding: a new run follows, as in two joined encodings */
		if (value < 0)
			continue;
		d->bits = d->bits << 6 | (unsigned)value;
		d->n += 6;
		if (d->n >= 8) {
			d->n -= 8;
			out->ptr[out->len++] = (char)(unsigned char)(d->bits >> d->n & 0xff);
		}
	}
	out->ptr[out->len] = '\0';
}

void
base64_decode(struct buf *out, struct mr_str text)
{
	struct decoder d = { 0 };

	base64_some(&d, out, text);
}

/* Length of blanks that are followed by a line break (or the end) at p, 0 if anything else follows. */
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
			/* Blanks at the end of a line were added in transit; others belong to the text. */
			if (blank_to_break(p, end, &blank) == 0)
				buf_add(out, (struct mr_str){ p, blank });
			p += blank;
		} else {
			buf_addc(out, header && *p == '_' ? ' ' : *p);
			p++;
		}
	}
}

/* ---- In pieces ---- */

enum { QP_HELD = 4096, QP_HELD_MAX = 65536 };

/* How much of the held text can be decoded already: whole lines; of an incomplete line all but blanks and the start of
 * an escape. */
static size_t
qp_whole(struct mr_str held)
{
	const char *lf = memrchr(held.ptr, '\n', held.len);
	size_t n = held.len;

	if (lf)
		return (size_t)(lf + 1 - held.ptr);
	if (n < QP_HELD)
		return 0;
	n -= held.ptr[n - 2] == '=' ? 2 : 0;
	while (n > 0 && strchr("= \t\r", held.ptr[n - 1]) && held.ptr[n - 1])
		n--;
	return n == 0 && held.len > QP_HELD_MAX ? held.len : n;
}

void
decoder_feed(struct decoder *d, struct mr_str bytes, struct buf *out)
{
	if (d->encoding == BODY_BASE64) {
		base64_some(d, out, bytes);
		return;
	}
	if (d->encoding == BODY_PLAIN) {
		buf_add(out, bytes);
		return;
	}
	buf_add(&d->held, bytes);
	if (d->held.len == 0)
		return;
	size_t n = qp_whole(buf_str(&d->held));

	qp_decode(out, str_first(buf_str(&d->held), n), false);
	memmove(d->held.ptr, d->held.ptr + n, d->held.len - n);
	d->held.len -= n;
	out->failed |= d->held.failed;
}

void
decoder_end(struct decoder *d, struct buf *out)
{
	if (d->encoding == BODY_QP)
		qp_decode(out, buf_str(&d->held), false);
	buf_done(&d->held);
	*d = (struct decoder){ 0 };
}

void
crlf_to_lf(struct buf *out, struct mr_str text)
{
	(void)buf_reserve(out, text.len);
	for (struct mr_str line; text.len > 0;) {
		bool whole = str_find(text, '\n') < text.len;

		(void)(whole ? str_line(&text, &line) : str_cut(&text, '\n', &line));
		buf_add(out, line);
		if (whole)
			buf_addc(out, '\n');
	}
}

/* ---- Encoded words ---- */

enum { CHARSET_MAX = 64, CHUNK = 45 /* bytes a word, so that it stays under 75 characters */ };

static bool
is_utf8(struct mr_str charset)
{
	return charset.len == 0 || str_is_among(charset, "utf-8 utf8", " ");
}

/* By iconv(3): musl has the tables built in, glibc loads them. Unreadable bytes become U+FFFD. False: the set is
 * unknown, and nothing was written. */
static bool
convert(struct buf *out, struct mr_str charset, struct mr_str bytes)
{
	char name[CHARSET_MAX + 1], piece[1024], *in = (char *)(uintptr_t)bytes.ptr;
	size_t left = bytes.len;

	if (charset.len == 0 || charset.len > CHARSET_MAX || memchr(charset.ptr, '/', charset.len) ||
	    memchr(charset.ptr, '\0', charset.len))
		return false;
	(void)snprintf(name, sizeof name, "%.*s", (int)charset.len, charset.ptr);
	iconv_t cd = iconv_open("UTF-8", name);

	if (cd == (iconv_t)-1)
		return false;
	for (bool more = true; more;) {
		char *to = piece;
		size_t space = sizeof piece;
		size_t got = iconv(cd, left > 0 ? &in : NULL, &left, &to, &space);

		more = left > 0;
		buf_add(out, (struct mr_str){ piece, sizeof piece - space });
		if (got == (size_t)-1 && errno != E2BIG && left > 0) {
			buf_adds(out, "\xef\xbf\xbd");
			in++;
			left--;
		}
	}
	(void)iconv_close(cd);
	return true;
}

bool
charset_to_utf8(struct buf *out, struct mr_str charset, struct mr_str bytes)
{
	bool ascii = str_is_among(charset, "us-ascii ascii", " ");

	/* Us-ascii with valid UTF-8 in it is mislabelled UTF-8. */
	if (is_utf8(charset) || (ascii && utf8_text(bytes)))
		buf_add(out, bytes);
	else if (ascii || str_is_among(charset, "iso-8859-1 latin1", " "))
		for (size_t i = 0; i < bytes.len; i++)
			utf8_add(out, (unsigned char)bytes.ptr[i]);
	else
		return convert(out, charset, bytes);
	return true;
}

struct word {
	struct mr_str charset;
	bool base64;
	struct mr_str text;
	size_t len; /* of the whole =?...?= */
};

/* No part may have a "?", so each try ends at the fourth, and all tries together stay linear. */
static bool
parse_word(struct mr_str s, struct word *ret)
{
	struct mr_str rest, encoding, language;

	if (!str_starts(s, "=?") || !str_split(str_from(s, 2), '?', &ret->charset, &rest) ||
	    ret->charset.len >= CHARSET_MAX || !str_split(rest, '?', &encoding, &rest) || encoding.len != 1 ||
	    !str_split(rest, '?', &ret->text, &rest) || !str_starts(rest, "="))
		return false;
	(void)str_split(ret->charset, '*', &ret->charset, &language); /* =?utf-8*en?...: a language may follow */
	ret->len = s.len - rest.len + 1;
	ret->base64 = ascii_lower(encoding.ptr[0]) == 'b';
	return ret->base64 || ascii_lower(encoding.ptr[0]) == 'q';
}

void
encoded_words_decode(struct buf *out, struct mr_str value)
{
	mr_auto(buf_done) struct buf scratch = BUF_INIT;
	struct mr_str pending = { value.ptr, 0 }; /* blanks after a word: dropped if another word follows */
	bool after_word = false;
	struct word w;

	for (size_t n; value.len > 0; value = str_from(value, n)) {
		if (parse_word(value, &w)) {
			buf_clear(&scratch);
			if (w.base64)
				base64_decode(&scratch, w.text);
			else
				qp_decode(&scratch, w.text, true);
			/* UTF-8 is not checked here: some programs split a character over two words. */
			if (!charset_to_utf8(out, w.charset, buf_str(&scratch)))
				buf_add(out, str_first(value, w.len));
			out->failed |= scratch.failed;
			n = w.len;
			pending = (struct mr_str){ value.ptr + n, 0 };
			after_word = true;
		} else if (after_word && ascii_blank(value.ptr[0])) {
			n = 1;
			pending.len++;
		} else {
			buf_add(out, pending);
			n = 1 + str_find(str_from(value, 1), '=');
			buf_add(out, str_first(value, n));
			pending = (struct mr_str){ value.ptr + n, 0 };
			after_word = false;
		}
	}
	buf_add(out, pending);
}

void
encoded_words_encode(struct buf *out, struct mr_str value)
{
	bool first = true;

	for (struct mr_str part; value.len > 0; value = str_from(value, part.len)) {
		part = utf8_within(value, CHUNK);
		buf_adds(out, first ? "=?utf-8?b?" : " =?utf-8?b?");
		base64_encode(out, part, 0);
		buf_adds(out, "?=");
		first = false;
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
		else if (quoted && rest->ptr[n] == '\\' && n + 1 < rest->len)
			n++;
	}
	struct mr_str part = str_trim(str_first(*rest, n));

	*rest = str_from(*rest, n < rest->len ? n + 1 : n);
	return part;
}

static void
unquote(struct buf *out, struct mr_str value)
{
	bool quoted = value.len >= 2 && value.ptr[0] == '"' && value.ptr[value.len - 1] == '"';

	for (size_t i = quoted; i < value.len - quoted; i++) {
		i += quoted && value.ptr[i] == '\\' && i + 2 < value.len;
		buf_addc(out, value.ptr[i]);
	}
}

/* RFC 2231: filename*0*=utf-8''first%20; filename*1=second; filename*=utf-8''all. `section` is "", "*0", "*1", ... */
static bool
param_section(struct mr_str rest, const char *name, const char *section, bool *ret_extended, struct mr_str *ret)
{
	size_t name_len = strlen(name), section_len = strlen(section);

	(void)take_until(&rest, ';');
	while (rest.len > 0) {
		struct mr_str value = take_until(&rest, ';'), key = take_until(&value, '=');
		struct mr_str tail = { key.ptr + name_len, key.len - name_len };

		if (key.len < name_len || !str_casestarts(key, name) || !str_starts(tail, section))
			continue;
		tail = str_from(tail, section_len);
		*ret_extended = str_eq(tail, STR("*"));
		*ret = str_trim(value);
		if (tail.len == 0 || *ret_extended)
			return true;
	}
	return false;
}

static void
percent_decode(struct buf *out, struct mr_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		int high = s.ptr[i] == '%' && i + 2 < s.len ? hex_digit(s.ptr[i + 1]) : -1;
		int low = high >= 0 ? hex_digit(s.ptr[i + 2]) : -1;

		buf_addc(out, (char)(low >= 0 ? high << 4 | low : s.ptr[i]));
		i += low >= 0 ? 2 : 0;
	}
}

enum { SECTIONS_MAX = 64 };

bool
mime_param(struct buf *out, struct mr_str header, const char *name)
{
	char first[100];
	mr_auto(buf_done) struct buf bytes = BUF_INIT, plain = BUF_IN(first);
	struct mr_str value, charset = STR("");
	char section[12] = "";
	bool extended, whole = param_section(header, name, section, &extended, &value);

	for (unsigned i = 0; i < (whole ? 1 : SECTIONS_MAX); i++) {
		if (!whole) {
			(void)snprintf(section, sizeof section, "*%u", i);
			if (!param_section(header, name, section, &extended, &value))
				break;
		}
		buf_clear(&plain);
		unquote(&plain, value);
		struct mr_str text = buf_str(&plain), language;

		if (extended && i == 0) { /* charset'language'text; the charset also applies to later sections */
			size_t n = str_find(text, '\'');

			charset = (struct mr_str){ value.ptr + str_starts(value, "\""), n < text.len ? n : 0 };
			if (n < text.len) {
				(void)str_cut(&text, '\'', &language);
				(void)str_cut(&text, '\'', &language);
			}
		}
		if (extended)
			percent_decode(&bytes, text);
		else
			buf_add(&bytes, text);
		whole = whole || bytes.len > MIME_PARAM_MAX;
	}
	if (section[0] && bytes.len == 0)
		return false;
	/* Many programs use encoded words in place of RFC 2231. */
	if (charset.len == 0)
		encoded_words_decode(out, buf_str(&bytes));
	else if (!charset_to_utf8(out, charset, buf_str(&bytes)))
		buf_add(out, buf_str(&bytes));
	out->failed |= bytes.failed || plain.failed;
	return true;
}

void
mime_add_param(struct buf *out, const char *name, struct mr_str value)
{
	mr_auto(buf_done) struct buf encoded = BUF_INIT;
	enum { SECTION = 54 };

	if (header_is_plain(value) && value.len <= SECTION && !memchr(value.ptr, '"', value.len) &&
	    !memchr(value.ptr, '\\', value.len)) {
		buf_addf(out, "; %s=\"%.*s\"", name, (int)value.len, value.ptr);
		return;
	}
	buf_adds(&encoded, "utf-8''");
	for (size_t i = 0; i < value.len; i++) {
		unsigned char c = (unsigned char)value.ptr[i];

		if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
			buf_addc(&encoded, (char)c);
		else
			buf_addf(
			    &encoded, (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-' ? "%c" : "%%%02X", c);
	}
	struct mr_str rest = buf_str(&encoded);
	bool several = rest.len > SECTION;

	for (unsigned i = 0; rest.len > 0; i++) {
		size_t n = rest.len < SECTION ? rest.len : SECTION;

		for (size_t back = 1; n < rest.len && back <= 2; back++) /* do not split an escape */
			if (rest.ptr[n - back] == '%')
				n -= back;
		if (several)
			buf_addf(out, ";\n %s*%u*=%.*s", name, i, (int)n, rest.ptr);
		else
			buf_addf(out, ";\n %s*=%.*s", name, (int)n, rest.ptr);
		rest = str_from(rest, n);
	}
	out->failed |= encoded.failed;
}

struct body_kind
body_kind_of(struct mr_str content_type, struct mr_str transfer_encoding)
{
	struct mr_str encoding = take_until(&transfer_encoding, ';');
	char first[40];
	mr_auto(buf_done) struct buf charset = BUF_IN(first);
	struct body_kind kind = {
		.encoding = str_caseeq(encoding, STR("quoted-printable")) ? BODY_QP
			    : str_caseeq(encoding, STR("base64"))         ? BODY_BASE64
									  : BODY_PLAIN,
	};

	if (mime_param(&charset, content_type, "charset") && charset.len < sizeof kind.charset)
		memcpy(kind.charset, charset.ptr, charset.len);
	return kind;
}

bool
body_decode(const struct body_kind *kind, struct mr_str raw, struct buf *out)
{
	mr_auto(buf_done) struct buf lines = BUF_INIT, bytes = BUF_INIT, text = BUF_INIT;
	struct mr_str now = raw;

	if (raw.len == 0)
		return false;
	if (kind->crlf && str_find(raw, '\r') < raw.len) {
		crlf_to_lf(&lines, now);
		now = buf_str(&lines);
	}
	if (kind->encoding == BODY_QP)
		qp_decode(&bytes, now, false);
	else if (kind->encoding == BODY_BASE64)
		base64_decode(&bytes, now);
	if (kind->encoding != BODY_PLAIN)
		now = buf_str(&bytes);
	if (!is_utf8(str_of(kind->charset)) && charset_to_utf8(&text, str_of(kind->charset), now))
		now = buf_str(&text);
	/* Encoded text has the line ends of mail; bytes (our own base64) stay unchanged. */
	if (kind->encoding == BODY_BASE64 && utf8_text(now))
		crlf_to_lf(out, now);
	else if (now.ptr != raw.ptr)
		buf_add(out, now);
	out->failed |= lines.failed || bytes.failed || text.failed;
	return now.ptr != raw.ptr;
}
