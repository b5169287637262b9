/* SPDX-License-Identifier: MIT */
/* reader.h - reading listed messages one after the other; shared by scan.c and read.c. */
#ifndef ROOMS_MAILDIR_READER_H
#define ROOMS_MAILDIR_READER_H

#include "rooms/maildir/maildir.h"

struct reader { /* by value, finish with reader_done */
	struct mr_room *room;
	struct mailbox *box;
	int folder_fd;        /* of the last message, or -1 */
	struct listed folder; /* which one that is */
	char subfolder[NAME_LEN];
	struct buf text, path; /* kept from message to message */
};
#define READER_INIT(in_room, of_box) ((struct reader){ .room = (in_room), .box = (of_box), .folder_fd = -1 })

/* With SCAN_NAMES the file is not touched, and msg->path is borrowed until the next call. MR_NOTFOUND: it was moved
 * since it was listed. */
enum mr_rc reader_read(
    struct reader *r, const struct listed *at, enum scan_depth depth, struct mr_message *ret, struct mr_error *err);
enum mr_rc reader_raw(struct reader *r, const struct listed *at, struct buf *ret, struct mr_error *err);
const char *reader_path(
    struct reader *r, const struct listed *at); /* relative to the room; borrowed until the next call */
enum mr_rc reader_own_path(struct reader *r, const struct listed *at, struct mr_message *msg, struct mr_error *err);
void reader_done(struct reader *r);

#endif
