/* SPDX-License-Identifier: MIT */
/*
 * parts.h - reads a MIME body in pieces of any size: its text, and the names, types, sizes and places of the other
 * parts.
 *
 * The text is every text part that is not meant as a file, in order; of alternatives the first plain one, else the HTML
 * without its tags. All other parts are attachments, and so is HTML that was converted to text. Memory is bounded by
 * the text: no byte of an attachment is kept.
 *
 * Limits for hostile mail: PARTS_DEPTH levels, below which a multipart is one attachment; PARTS_MAX parts, of which the
 * last is the whole rest; PARTS_HEADER bytes of headers for each part; text beyond MR_BODY_MAX is an attachment.
 */
#ifndef MESSAGE_PARTS_H
#define MESSAGE_PARTS_H

#include "message/mime.h"

enum { PARTS_MAX = 256, PARTS_DEPTH = 16, PARTS_HEADER = 16384, PARTS_BOUNDARY = 200 };

/* A body of that type needs parts_read; others are plain text. */
bool parts_needed(struct mr_str content_type);
/* Reads body and attachments of a message that has headers and content, into msg->own. A multipart without a boundary
 * line is plain text. at: where its body begins in the stored message. */
enum mr_rc parts_read(struct mr_message *msg, uint64_t at, struct mr_error *err);

/* html.c: what a reader sees of HTML, without a browser. */
void html_to_text(struct buf *out, struct mr_str html);

#endif
