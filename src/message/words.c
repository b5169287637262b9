/* SPDX-License-Identifier: MIT */
/* words.c - RFC 2047 encoded words: =?charset?encoding?text?= in header values. */
#include "base/error.h"
#include "base/text.h"
#include "message/mime.h"

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

static void
add_word(struct buf *out, const struct word *w, struct buf *scratch)
{
	buf_clear(scratch);
	if (w->base64)
		base64_decode(scratch, w->text);
	else
		qp_decode(scratch, w->text, true);
	if (w->charset == CHARSET_LATIN1)
		latin1_to_utf8(out, buf_str(scratch));
	else
		buf_add(out, buf_str(scratch)); /* not checked here: some split a character over two words */
	if (!buf_ok(scratch))
		out->failed = true;
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
			add_word(out, &w, &scratch);
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
