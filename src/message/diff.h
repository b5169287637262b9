/* SPDX-License-Identifier: MIT */
/* diff.h - what changes between two texts, for people: lines with "-" and "+" and a little around them. */
#ifndef MESSAGE_DIFF_H
#define MESSAGE_DIFF_H

#include "base/buf.h"

/* Adds "--- NAME", "+++ NAME" and the hunks; nothing when they are the same. old_name NULL: there was no file,
 * new_name NULL: there will be none. Lines are cleaned for a terminal; of lines too long to be read only what is around
 * the change is shown: it is no patch then. */
void diff_unified(
    struct mr_str before, struct mr_str after, const char *old_name, const char *new_name, struct buf *out);

#endif
