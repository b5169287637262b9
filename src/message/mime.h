/* SPDX-License-Identifier: MIT */
/* mime.h - the transfer encodings and encoded words that other mail programs write. */
#ifndef MESSAGE_MIME_H
#define MESSAGE_MIME_H

#include "base/buf.h"

void base64_encode(struct buf *out, struct mr_str bytes, size_t line_len); /* 0: one line */
void base64_decode(struct buf *out, struct mr_str text);  /* skips what is not base64 */
void qp_decode(struct buf *out, struct mr_str text, bool header); /* header: "_" is a space */
/* RFC 2047 encoded words in a header value; utf-8, us-ascii, iso-8859-1 are understood, others kept. */
void encoded_words_decode(struct buf *out, struct mr_str value);
void latin1_to_utf8(struct buf *out, struct mr_str bytes);

#endif
