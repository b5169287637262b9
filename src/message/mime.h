/* SPDX-License-Identifier: MIT */
/* mime.h - the transfer encodings, encoded words and bodies that other mail programs write. */
#ifndef MESSAGE_MIME_H
#define MESSAGE_MIME_H

#include "base/buf.h"

void base64_encode(struct buf *out, struct mr_str bytes, size_t line_len); /* 0: one line */
void base64_decode(struct buf *out, struct mr_str text);                   /* skips other characters */
void qp_decode(struct buf *out, struct mr_str text, bool header);          /* header: "_" is a space */
/* Decodes RFC 2047 encoded words in a header value; words in an unknown character set stay. */
void encoded_words_decode(struct buf *out, struct mr_str value);
/* The value as encoded words (utf-8, base64), for text that a reader would otherwise take for encoded words. */
void encoded_words_encode(struct buf *out, struct mr_str value);
void crlf_to_lf(struct buf *out, struct mr_str text);

/* Text in any character set that the C library knows; "" is UTF-8. False: unknown, nothing was written. */
bool charset_to_utf8(struct buf *out, struct mr_str charset, struct mr_str bytes);

/* The value of a parameter (`name="x"`, RFC 2231 forms and encoded words too) of a header such as Content-Type. False:
 * it has none. Only about that many bytes of the header are read. */
#define MIME_PARAM_MAX 4096
bool mime_param(struct buf *out, struct mr_str header, const char *name);
/* `; name="value"`, in the form of RFC 2231 if it is not plain ASCII, folded if it is long. */
void mime_add_param(struct buf *out, const char *name, struct mr_str value);

/* ---- From the stored body to text: line ends, transfer encoding, charset ---- */
enum body_encoding { BODY_PLAIN, BODY_QP, BODY_BASE64 };
/* Decodes a transfer encoding in pieces of any size; begin with { .encoding = ... }, finish with decoder_end. */
struct decoder {
	enum body_encoding encoding;
	uint32_t bits;
	unsigned n; /* bits that are not written yet */
	struct buf held;
};
void decoder_feed(struct decoder *d, struct mr_str bytes, struct buf *out);
void decoder_end(struct decoder *d, struct buf *out);
struct body_kind {
	bool crlf; /* lines end in CRLF */
	enum body_encoding encoding;
	char charset[40]; /* "": not given */
};
struct body_kind body_kind_of(struct mr_str content_type, struct mr_str transfer_encoding);
/* The text of a body that is not a multipart. False: the text is raw itself, nothing was written. */
bool body_decode(const struct body_kind *kind, struct mr_str raw, struct buf *out);

#endif
