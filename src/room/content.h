/* SPDX-License-Identifier: MIT */
/* content.h - messages in files, for drivers and for the office: read with flat memory, attachments and all. */
#ifndef ROOM_CONTENT_H
#define ROOM_CONTENT_H

#include "message/message.h"

#define CONTENT_TEXT_MAX ((size_t)64 << 20) /* of a message that is nothing but text */

/* Reads a message of about `size` bytes from the position of an open file; otherwise like message_parse. With
 * MESSAGE_ALL, a body that is more than text stays in the file: msg->content. `text` is scratch memory. */
enum mr_rc content_read(int fd, size_t size, const char *room, enum message_part part, struct buf *text,
    struct mr_message *msg, struct mr_error *err);

#endif
