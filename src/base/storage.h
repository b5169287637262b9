/* SPDX-License-Identifier: MIT */
/* storage.h - what the file system under a folder promises when the power goes. */
#ifndef BASE_STORAGE_H
#define BASE_STORAGE_H

#include "mailroom.h"
#include <sys/types.h>

/* `name` is for messages. */
enum mr_rc storage_of(int dir_fd, const char *name, struct mr_storage *ret, struct mr_error *err);
/* Of an absolute path; where it is not there yet, of the nearest folder above it. */
enum mr_rc storage_of_path(const char *path, struct mr_storage *ret, struct mr_error *err);
/* Is one sync of the whole file system (sys_sync_whole) as good as one of each file and folder? Only where it is known
 * to write everything and to report what failed. */
bool storage_syncs_whole(int fd);
/* Why it may not keep the order in which bytes are written out (sys_write_out) and names change; NULL: it does. */
const char *storage_order_doubt(int fd);

/* Are so many bytes and so many inodes left for a user other than root? */
bool storage_is_btrfs(int fd);
/* A number that the file system has from its making, where the kernel tells one; 0: none. */
uint64_t storage_identity(int fd);
bool storage_has_free(int fd, uint64_t bytes, uint64_t inodes);

#endif
