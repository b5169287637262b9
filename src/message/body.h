/* SPDX-License-Identifier: MIT */
/* body.h - from the stored body to text: line ends, transfer encoding, charset. Inside message/ only. */
#ifndef MESSAGE_BODY_H
#define MESSAGE_BODY_H

#include "message/mime.h"

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
