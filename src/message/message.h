/* SPDX-License-Identifier: MIT */
/*
 * message.h - struct mr_message to and from RFC 5322 bytes. Pure functions, no I/O: all of it is fuzzed.
 */
#ifndef MESSAGE_MESSAGE_H
#define MESSAGE_MESSAGE_H

#include "base/buf.h"

/* The fields of a message from message_parse are in one arena, msg->own; a message that is put together by hand has own
 * NULL, and its strings belong to their owner. mr_message_done frees only the arena.
 *
 * Writes one RFC 5322 message (UTF-8, RFC 6532 headers). `room` is the part after @ in addresses and in the Message-ID.
 * The body is 8bit, or base64 if it is not valid UTF-8 or has a NUL; lines of any length are 8bit. MR_REFUSED names the
 * wrong field. */
enum mr_rc message_write(const struct mr_message *msg, const char *room, struct buf *out, struct mr_error *err);

/* Header names that message_write writes itself; no extra header may have them. */
bool message_header_reserved(struct mr_str name);

/* The body of a message with more than text, so large that it is never in memory as a whole: message_write ends with
 * its headers, and the bytes from `write` follow them. room/content.c reads it from its stored file,
 * office/mail/attach.c composes it. A message that owns its strings owns its content, too. */
typedef enum mr_rc bytes_fn(void *ctx, struct mr_str bytes, struct mr_error *err);
struct mr_content {
	const char *type, *encoding; /* Content-Type and Content-Transfer-Encoding of the whole; "" for none */
	/* Of a composed content; NULL: it is stored, and `read` is used. */
	enum mr_rc (*write)(const struct mr_content *content, const struct mr_message *msg, bytes_fn *to, void *ctx,
	    struct mr_error *err);
	/* Bytes of the stored message; NULL: it is not stored yet. */
	enum mr_rc (*read)(
	    const struct mr_content *content, uint64_t at, uint64_t n, bytes_fn *to, void *ctx, struct mr_error *err);
	void (*free)(struct mr_content *content); /* NULL: freed with the message */
	uint64_t at;                              /* where the body begins in the stored message */
};
/* Writes the part after the headers of message_write: all of msg->content, if it has one. */
enum mr_rc message_write_content(const struct mr_message *msg, bytes_fn *to, void *ctx, struct mr_error *err);
/* The text of a message as a part or as the whole: its MIME headers, an empty line, the text. */
void message_write_text(struct buf *out, struct mr_str body);

enum message_part { MESSAGE_HEADERS, MESSAGE_ALL };
/* Reads any bytes. Fails only with MR_NOMEM or MR_CORRUPT (no header line at all). Missing headers are "", a missing
 * date is the id's time. The caller sets id beforehand (from the file name); an empty msg->id is taken from Message-ID.
 * Addresses of `room` lose their @room. A message without MIME headers is text. Bodies are decoded and converted to
 * UTF-8; of a multipart the body is its text, and the rest is in attachments (parts.h). With MESSAGE_HEADERS text may
 * be cut anywhere after the headers. */
enum mr_rc message_parse(
    struct mr_str text, const char *room, enum message_part part, struct mr_message *msg, struct mr_error *err);
size_t message_body_at(struct mr_str text); /* where the body begins */
/* Is the whole header block certainly in the text? */
bool message_headers_complete(struct mr_str text);

/* A message of which only the id is known (or ""): all other strings are "". */
struct mr_message message_blank(const char *id);
/* A message with a new id and the current time; all other strings are "". It borrows its arguments. */
struct mr_message message_new(const char *from, const char *subject, struct mr_str body);
/* A copy with an arena of its own. */
enum mr_rc message_copy(const struct mr_message *from, struct mr_message *ret, struct mr_error *err);

/* sha256 (hex) over the sender's part: from, to, cc, subject, type, priority, thread, reply_to, replace key, extra
 * headers, body, content; not id, date, life. For send keys. "" if the content cannot be read. */
void message_digest(const struct mr_message *msg, char ret[65]);

/* The id (or word) inside "<01k9...@town>" -> "01k9...", with any room after the @; a foreign message id keeps its
 * whole inside. The first one of several. Without brackets, as people type it, "@room" is removed too. */
struct mr_str msgid_inner(struct mr_str value, const char *room);

/* "Re: x" with a single "Re:", whatever "Re:", "RE: re:" it begins with. */
void subject_reply(struct buf *out, struct mr_str subject);
/* First line of a body as subject: cleaned, cut at 78 characters. */
void subject_from_body(struct buf *out, struct mr_str body);

#endif
