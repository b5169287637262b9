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
/* Adds the text of a member that is exactly these bytes. False: they are not, or the text is over the limit. */
extern bool pack_inflate(struct mr_str member, size_t limit, struct buf *out) FULL_ONLY;

#endif
