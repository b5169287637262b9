/* SPDX-License-Identifier: MIT */
/* diff.h - the difference between two texts, for people: lines with "-" and "+" and a little context. */
#ifndef MESSAGE_DIFF_H
#define MESSAGE_DIFF_H

#include "base/buf.h"

/* Adds "--- NAME", "+++ NAME" and the hunks; nothing if the texts are equal. old_name NULL: there was no file, new_name
 * NULL: there will be none. Lines are cleaned for a terminal, and very long lines are cut to the text around the
 * change, so it is not a patch. */
void diff_unified(
    struct mr_str before, struct mr_str after, const char *old_name, const char *new_name, struct buf *out);

#endif
