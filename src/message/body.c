/* SPDX-License-Identifier: MIT */
/* body.c - from the stored body to text. */
#include "message/body.h"

#include "base/error.h"
#include "base/text.h"

static bool
begins_with(struct mr_str s, const char *prefix)
{
	size_t n = strlen(prefix);
	return s.len >= n && str_caseeq((struct mr_str){ s.ptr, n }, (struct mr_str){ prefix, n });
}

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
	struct mr_str encoding = str_trim(take_until(&transfer_encoding, ';'));
	struct mr_str charset = charset_param(content_type);

	return (struct body_kind){
		.composed = begins_with(content_type, "multipart/") || begins_with(content_type, "message/"),
		.text = content_type.len == 0 || begins_with(content_type, "text/"),
		.encoding = str_caseeq(encoding, STR("quoted-printable")) ? BODY_QP
		    : str_caseeq(encoding, STR("base64")) ? BODY_BASE64 : BODY_PLAIN,
		.charset = charset.len > 0 ? charset_of(charset) : CHARSET_UTF8,
	};
}

static bool
is_utf8_text(struct mr_str s)
{
	return s.len == 0 || (!memchr(s.ptr, '\0', s.len) && utf8_valid(s));
}

/* One step: `from` replaced by what `step` makes of it, kept in `to`. */
static struct mr_str
apply(void (*step)(struct buf *out, struct mr_str), struct mr_str from, struct buf *to)
{
	mr_auto(buf_done) struct buf made = BUF_INIT;

	step(&made, from);
	struct buf old = *to; /* `from` may lie in it: freed only now */
	*to = made;
	made = old;
	return buf_str(to);
}

static void
qp_body(struct buf *out, struct mr_str text)
{
	qp_decode(out, text, false);
}

bool
body_decode(const struct body_kind *kind, struct mr_str raw, struct buf *out)
{
	struct mr_str now = raw;
	bool failed = false;

	if (kind->crlf && raw.len > 0 && memchr(raw.ptr, '\r', raw.len)) {
		now = apply(crlf_to_lf, now, out);
		failed |= !buf_ok(out);
	}
	if (!kind->composed && kind->encoding != BODY_PLAIN) {
		now = apply(kind->encoding == BODY_QP ? qp_body : base64_decode, now, out);
		failed |= !buf_ok(out);
	}
	/* Us-ascii with valid UTF-8 in it is UTF-8 that was labelled carelessly. */
	bool latin1 = kind->charset == CHARSET_LATIN1 || (kind->charset == CHARSET_ASCII && !is_utf8_text(now));
	if (!kind->composed && kind->text && latin1) {
		now = apply(latin1_to_utf8, now, out);
		failed |= !buf_ok(out);
	}
	/* Encoded text has the line ends of mail; bytes that are no text (our own base64) are kept to the last one. */
	if (!kind->composed && kind->text && kind->encoding == BODY_BASE64 && is_utf8_text(now)) {
		now = apply(crlf_to_lf, now, out);
		failed |= !buf_ok(out);
	}
	out->failed |= failed;
	return now.ptr != raw.ptr;
}
