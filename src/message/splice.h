/* SPDX-License-Identifier: MIT */
/*
 * splice.h - putting one item into a list of another program's text, and taking it out again, so that both together
 * leave every byte as it was. A list is what stands between two brackets with commas in it: JSON with comments, arrays
 * of TOML.
 *
 * That taking out gives the old bytes back follows from where things are put, not from a memory:
 * - behind other items: the comma directly behind the last of them, the new item in a line of its own (behind a comment
 *   that ends the line) where that last one has a line of its own, else behind one space;
 * - a list that ends in a comma goes on to do so;
 * - into a list without items: directly behind the bracket. In lists that we make something white stands there. So a
 *   list that is left without items is known to be ours (splice_is_ours) and can go with its last item.
 */
#ifndef MESSAGE_SPLICE_H
#define MESSAGE_SPLICE_H

#include "base/buf.h"

#define SPLICE_NONE SIZE_MAX

struct splice_item { /* offsets in the text */
	size_t at, end;
	size_t comma; /* behind it, or SPLICE_NONE */
};
struct splice_list {
	size_t open;                     /* of the bracket */
	const struct splice_item *items; /* in order */
	size_t n;
	bool comments;   /* there are some between its items */
	char comment[3]; /* how a comment begins that goes to the end of its line: "//" or "#" */
};

/* How an item is to be written there: in lines of its own, and how far they are indented. */
struct splice_place {
	bool own_line;
	struct mr_str indent; /* of the line; a piece of the text */
};
struct splice_place splice_place(struct mr_str text, const struct splice_list *list);
/* Puts `item` into the text as the last of the list; nl is "\n" or "\r\n". */
void splice_append(struct buf *text, const struct splice_list *list, struct mr_str item, const char *nl);
/* Takes item i out. When several go, the last must go first. */
void splice_drop(struct buf *text, const struct splice_list *list, size_t i);
/* Would nothing be left of a list that we made, without its only item? */
bool splice_is_ours(struct mr_str text, const struct splice_list *list);

/* "\r\n" when the first line ends so, else "\n". */
const char *splice_newline(struct mr_str text);
/* The white space with which the line of that offset begins. */
struct mr_str splice_indent(struct mr_str text, size_t at);
/* Length of a byte order mark at the beginning: 3 or 0. */
size_t splice_bom(struct mr_str text);
bool splice_is_blank(struct mr_str text);          /* nothing but white space, behind the mark */
size_t splice_line(struct mr_str text, size_t at); /* number of the line, from 1 */

#endif
