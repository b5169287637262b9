/* SPDX-License-Identifier: MIT */
/* mime.h - the transfer encodings, encoded words and bodies that other mail programs write. */
#ifndef MESSAGE_MIME_H
#define MESSAGE_MIME_H

#include "base/buf.h"

void base64_encode(struct buf *out, struct mr_str bytes, size_t line_len); /* 0: one line */
void base64_decode(struct buf *out, struct mr_str text);                   /* skips what is not base64 */
void qp_decode(struct buf *out, struct mr_str text, bool header);          /* header: "_" is a space */
/* RFC 2047 encoded words in a header value; utf-8, us-ascii, iso-8859-1 are understood, others kept. */
void encoded_words_decode(struct buf *out, struct mr_str value);
/* The value as encoded words (utf-8, base64), for text that a reader would mistake for encoded words. */
void encoded_words_encode(struct buf *out, struct mr_str value);
void latin1_to_utf8(struct buf *out, struct mr_str bytes);
void latin1_byte(struct buf *out, unsigned char byte);
void crlf_to_lf(struct buf *out, struct mr_str text);

enum charset { CHARSET_UTF8, CHARSET_ASCII, CHARSET_LATIN1, CHARSET_OTHER };
enum charset charset_of(struct mr_str name);

/* ---- From the stored body to text: line ends, transfer encoding, charset ---- */
enum body_encoding { BODY_PLAIN, BODY_QP, BODY_BASE64 };
struct body_kind {
	bool composed; /* multipart/..., message/...: left alone but for line ends */
	bool text;     /* text/..., or nothing was said */
	bool crlf;     /* lines end in CRLF */
	enum body_encoding encoding;
	enum charset charset;
};
struct body_kind body_kind_of(struct mr_str content_type, struct mr_str transfer_encoding);
/* False: raw is the body as it is, nothing was written. */
bool body_decode(const struct body_kind *kind, struct mr_str raw, struct buf *out);

#endif
