/* SPDX-License-Identifier: MIT */
/* body.c - from the stored body to text. */
#include "message/body.h"

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

static enum body_encoding
encoding_of(struct mr_str name)
{
	if (str_caseeq(name, STR("quoted-printable")))
		return BODY_QP;
	return str_caseeq(name, STR("base64")) ? BODY_BASE64 : BODY_PLAIN;
}

struct body_kind
body_kind_of(struct mr_str content_type, struct mr_str transfer_encoding)
{
	struct mr_str charset = charset_param(content_type);

	return (struct body_kind){
		.composed = begins_with(content_type, "multipart/") || begins_with(content_type, "message/"),
		.text = content_type.len == 0 || begins_with(content_type, "text/"),
		.encoding = encoding_of(take_until(&transfer_encoding, ';')),
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
