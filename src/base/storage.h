/* SPDX-License-Identifier: MIT */
/* storage.h - what the file system under a folder guarantees in a power cut. */
#ifndef BASE_STORAGE_H
#define BASE_STORAGE_H

#include "mailroom.h"
#include <sys/types.h>

/* `name` is for messages. */
enum mr_rc storage_of(int dir_fd, const char *name, struct mr_storage *ret, struct mr_error *err);
/* Of an absolute path; if it does not exist, of its nearest existing parent. */
enum mr_rc storage_of_path(const char *path, struct mr_storage *ret, struct mr_error *err);
/* Is one sync of the whole file system (sys_sync_whole) as good as one of each file and folder? Only if it is known to
 * write everything and to report failures. */
bool storage_syncs_whole(int fd);
/* Why it may change the order of written bytes (sys_write_out) and names; NULL: it keeps the order. */
const char *storage_order_doubt(int fd);

/* Are so many bytes and inodes free for a user other than root? */
bool storage_is_btrfs(int fd);
/* A number that the file system keeps from its creation, if the kernel tells it; 0: unknown. */
uint64_t storage_identity(int fd);
bool storage_has_free(int fd, uint64_t bytes, uint64_t inodes);

#endif
