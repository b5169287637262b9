/* SPDX-License-Identifier: MIT */
/*
 * fence.h - text of others inside text for an agent. Blocks that a harness puts before a model are told apart by tags
 * and lines, so what others wrote must be able to make neither: control characters become visible escapes, a "<" that
 * could begin a tag becomes "&lt;", a name or a subject is one line. Around all of it stand two lines with eight random
 * digits, which nobody could know when they wrote.
 */
#ifndef OFFICE_FENCE_H
#define OFFICE_FENCE_H

#include "base/buf.h"

#define FENCE_MARK_LEN 8

void fence_mark(char ret[FENCE_MARK_LEN + 1]);
void fence_open(struct buf *out, const char *mark);
void fence_close(struct buf *out, const char *mark);

/* One line, at most so many characters (0: all), an ellipsis behind what was cut. */
void fence_line(struct buf *out, struct mr_str text, size_t chars);
/* The same with its line breaks. Returns how many characters were left out. */
size_t fence_text(struct buf *out, struct mr_str text, size_t chars);
/* The value of an attribute: as a line, without quotes and angle brackets. */
void fence_attribute(struct buf *out, struct mr_str text, size_t chars);

#endif
