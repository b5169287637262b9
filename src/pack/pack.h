/* SPDX-License-Identifier: MIT */
/*
 * pack.h - gzip members for packed months of an archive, with zlib. Only in mailroom-full (base/full.h): elsewhere
 * these are NULL. Pure: bytes to bytes.
 */
#ifndef PACK_PACK_H
#define PACK_PACK_H

#include "base/buf.h"
#include "base/full.h"

/* Adds a whole member, with its name, comment and time in its header. False: out of memory. */
extern bool pack_deflate(
    struct mr_str text, const char *name, const char *comment, uint32_t mtime_s, struct buf *out) FULL_ONLY;
/* Adds the text of a member. False: it is damaged, the text is over the limit, or the member is not exactly these
 * bytes; with ret_used it may end before them. */
extern bool pack_inflate(struct mr_str member, size_t limit, size_t *ret_used, struct buf *out) FULL_ONLY;

#endif
