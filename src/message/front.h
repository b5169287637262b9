/* SPDX-License-Identifier: MIT */
/*
 * front.h - front matter: "key: value" lines between two lines of three dashes, then the text. It looks like YAML but
 * is not: a value is the rest of its line. Two kinds of room write it.
 */
#ifndef MESSAGE_FRONT_H
#define MESSAGE_FRONT_H

#include "base/buf.h"

struct front {
	struct mr_str head; /* the lines between the dashes */
	struct mr_str body; /* everything after the closing line, an empty line included */
};
/* False: line 1 is not "---", or no line "---" follows. Lines may end in CRLF. */
bool front_split(struct mr_str text, struct front *ret);
/* The next "key: value" line of *rest, which moves on; lines of another form are skipped. The value has no blanks
 * around it. */
bool front_next(struct mr_str *rest, struct mr_str *ret_key, struct mr_str *ret_value);
/* The first of that name, in exact case. False: none. */
bool front_get(struct mr_str head, const char *key, struct mr_str *ret);

#endif
