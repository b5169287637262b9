/* SPDX-License-Identifier: MIT */
/*
 * parts.h - a MIME body in pieces of any size: its text, and of the rest names, types, sizes and places.
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

/* A body of that type must go through here; others are text as they are. */
bool parts_needed(struct mr_str content_type);
/* Body and attachments of a message whose headers and content are there, kept in msg->own. A multipart without a single
 * boundary line is plain text. at: where its body begins in the stored message. */
enum mr_rc parts_read(struct mr_message *msg, uint64_t at, struct mr_error *err);

/* html.c: what a reader sees of HTML, without a browser. */
void html_to_text(struct buf *out, struct mr_str html);

#endif
