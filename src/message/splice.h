/* SPDX-License-Identifier: MIT */
/*
 * splice.h - adds one item to a list in another program's text, and removes it again, so that both together leave every
 * byte as it was. A list is the part between two brackets with commas in it: JSON with comments, arrays of TOML.
 *
 * Removal restores the old bytes without any stored state, because an item is added in a fixed way:
 * - after other items: a comma directly after the last of them, and the new item on a line of its own (after a comment
 *   that ends the line) if that last one is on a line of its own, else after one space;
 * - a list that ends in a comma still does so afterwards;
 * - into a list without items: directly after the bracket. Lists that mailroom makes have white space there, so an
 *   empty list of ours can be recognised (splice_is_ours) and removed with its last item.
 */
#ifndef MESSAGE_SPLICE_H
#define MESSAGE_SPLICE_H

#include "base/buf.h"

#define SPLICE_NONE SIZE_MAX

struct splice_item { /* offsets in the text */
	size_t at, end;
	size_t comma; /* after it, or SPLICE_NONE */
};
struct splice_list {
	size_t open;                     /* of the bracket */
	const struct splice_item *items; /* in order */
	size_t n;
	bool comments;   /* there are comments between its items */
	char comment[3]; /* the start of a comment up to the end of the line: "//" or "#" */
};

/* How to write an item there: on lines of its own, and their indentation. */
struct splice_place {
	bool own_line;
	struct mr_str indent; /* of the line; a piece of the text */
};
struct splice_place splice_place(struct mr_str text, const struct splice_list *list);
/* Adds `item` as the last of the list; nl is "\n" or "\r\n". */
void splice_append(struct buf *text, const struct splice_list *list, struct mr_str item, const char *nl);
/* Removes item i. To remove several, begin with the last. */
void splice_drop(struct buf *text, const struct splice_list *list, size_t i);
/* Would a list of our making be empty without its only item? */
bool splice_is_ours(struct mr_str text, const struct splice_list *list);

/* "\r\n" if the first line ends so, else "\n". */
const char *splice_newline(struct mr_str text);
/* The white space at the beginning of the line of that offset. */
struct mr_str splice_indent(struct mr_str text, size_t at);
/* Length of a byte order mark at the beginning: 3 or 0. */
size_t splice_bom(struct mr_str text);
bool splice_is_blank(struct mr_str text);          /* nothing but white space, after the mark */
size_t splice_line(struct mr_str text, size_t at); /* number of the line, from 1 */

#endif
