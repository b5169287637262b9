/* SPDX-License-Identifier: MIT */
/*
 * parts.h - a MIME body in pieces of any size: its text, and of the rest names, types, sizes and places.
 *
 *	parts_begin(&p, type, encoding, disposition, at)        of the whole; at: where its body begins in the stored
 *message parts_feed(&p, bytes) ... parts_end(&p) parts_take(&p, msg)                                     body and
 *attachments, kept in msg->own parts_done(&p)
 *
 * The text is every text part that is not meant as a file, in order; of alternatives the first that is plain, else the
 * HTML, whose tags are taken away. All other parts are attachments, and so is HTML that was turned into text. Memory
 * is bounded by the text: of an attachment no byte is kept.
 *
 * Limits for hostile mail: PARTS_DEPTH levels, below them a multipart is one attachment; PARTS_MAX parts, the last of
 * them is the whole rest; PARTS_HEADER bytes of headers a part count; text beyond MR_BODY_MAX is an attachment.
 */
#ifndef MESSAGE_PARTS_H
#define MESSAGE_PARTS_H

#include "message/mime.h"

enum { PARTS_MAX = 256, PARTS_DEPTH = 16, PARTS_HEADER = 16384, PARTS_BOUNDARY = 200 };

struct part {
	char *name, *type; /* in parts.own; the name is one line of UTF-8, "" for none */
	char charset[40];
	enum body_encoding encoding;
	uint64_t at, stored, size; /* where it begins, how many bytes, how many decoded */
	bool text;                 /* belongs to the text */
	struct buf decoded;        /* of text */
};

struct parts {
	struct arena *own;
	struct part v[PARTS_MAX];
	size_t n;
	struct level { /* multiparts that are open, the innermost last */
		char boundary[PARTS_BOUNDARY + 1];
		size_t len;
		bool alternative, digest;
		size_t chosen; /* of alternatives: part number + 1 */
	} levels[PARTS_DEPTH];
	size_t levels_n;
	enum { PARTS_BETWEEN, PARTS_HEADERS, PARTS_LEAF } state;
	bool multipart; /* the whole is one */
	uint64_t pos;
	struct buf head, out;           /* headers of the part that begins; scratch */
	struct decoder decoder;         /* of the part that is under way */
	char line[PARTS_BOUNDARY + 16]; /* the beginning of a line that may be a boundary */
	size_t line_n;
	bool probing; /* the line may still be a boundary */
	bool blank;   /* nothing but a line end was seen in this line */
	char eol[2];  /* a line end that belongs to the boundary if one follows */
	size_t eol_n, text_bytes;
	bool failed; /* out of memory */
};

void parts_begin(struct parts *p, struct mr_str content_type, struct mr_str transfer_encoding,
    struct mr_str disposition, uint64_t at);
void parts_feed(struct parts *p, struct mr_str bytes);
void parts_end(struct parts *p);
/* False: a multipart without a single boundary line. The caller takes it for plain text and begins again. */
bool parts_found(const struct parts *p);
enum mr_rc parts_take(struct parts *p, struct mr_message *msg, struct mr_error *err);
void parts_done(struct parts *p);

/* A body of that type must go through here; others are text as they are. */
bool parts_needed(struct mr_str content_type);

/* html.c: what a reader sees of HTML, without a browser. */
void html_to_text(struct buf *out, struct mr_str html);

#endif
