/* SPDX-License-Identifier: MIT */
/* folder.h - what the files of the driver for plain Maildirs share: folder.c the table, folder_read.c the mail. */
#ifndef ROOMS_FOLDER_FOLDER_H
#define ROOMS_FOLDER_FOLDER_H

#include "room/room.h"

struct folder { /* room->state */
	int fd;
	char owner[MR_ADDRESS_MAX + 1];
};
static inline struct folder *
folder_of(struct mr_room *room)
{
	return room->state;
}

enum mr_rc folder_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn,
    void *ctx, struct mr_error *err);
enum mr_rc folder_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders,
    enum scan_depth depth, struct mr_message *ret, struct mr_error *err);

#endif
