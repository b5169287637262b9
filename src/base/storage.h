/* SPDX-License-Identifier: MIT */
/* storage.h - what the file system under a folder promises when the power goes. */
#ifndef BASE_STORAGE_H
#define BASE_STORAGE_H

#include "mailroom.h"

/* `name` is for messages. */
enum mr_rc storage_of(int dir_fd, const char *name, struct mr_storage *ret, struct mr_error *err);
/* Of an absolute path; where it is not there yet, of the nearest folder above it. */
enum mr_rc storage_of_path(const char *path, struct mr_storage *ret, struct mr_error *err);
/* Is one sync of the whole file system (sys_sync_whole) as good as one of each file and folder? Only where it is known
 * to write everything and to report what failed. */
bool storage_syncs_whole(int fd);

#endif
