/* SPDX-License-Identifier: MIT */
/*
 * jsonc.h - settings files of other programs: JSON that may have comments and a comma before a closing bracket. It is
 * read as JSON in place (json_read.h) and changed one entry at a time, with all other bytes kept (splice.h).
 *
 *	struct jsonc doc = { 0 };
 *	if (jsonc_parse(text, &doc, err) == MR_OK)
 *		jsonc_insert(&doc, json_get(doc.root, "hooks"), "Stop", STR("[1]"), &changed);
 *	jsonc_done(&doc);       the next change needs the changed text parsed anew
 */
#ifndef MESSAGE_JSONC_H
#define MESSAGE_JSONC_H

#include "base/buf.h"
#include "message/json_read.h"

struct jsonc {
	struct json_value root; /* a piece of `strict`, like all values in it */
	struct mr_str text;     /* borrowed */
	struct mr_str strict;   /* plain JSON: each byte of a comment is a space, a comma before a bracket a tab */
	struct arena *own;
};

/* MR_EMPTY: nothing but white space. MR_CORRUPT: the message says what is wrong in which line. */
enum mr_rc jsonc_parse(struct mr_str text, struct jsonc *ret, struct mr_error *err);
void jsonc_done(struct jsonc *doc);

/* ---- The whole text with one change ---- */
/* Adds a last child: to an object with `name`, to an array with NULL. `value` is JSON without white space. */
void jsonc_insert(
    const struct jsonc *doc, struct json_value in, const char *name, struct mr_str value, struct buf *out);
/* Removes that value, and parents of our own making that become empty by that. To remove several, begin with the last.
 * `keep_root`: the outermost object stays, empty. */
void jsonc_remove(const struct jsonc *doc, struct json_value child, bool keep_root, struct buf *out);
/* Replaces the value. */
void jsonc_replace(const struct jsonc *doc, struct json_value old, const struct buf *value, struct buf *out);
/* `value` in several lines, as in a file of its own; two spaces a level. */
void jsonc_pretty(struct mr_str value, const char *nl, struct buf *out);

#endif
