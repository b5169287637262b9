/* SPDX-License-Identifier: MIT */
/*
 * fence.h - text of other agents or of files must pass through here before an agent or a terminal sees it: mail, names,
 * roles, reasons, paths, and the errors that quote them. fence_add makes a field harmless:
 *
 *	- characters that steer a terminal, reorder a line or hide text become visible escapes such as <U+001B>, bad
 *	  UTF-8 becomes U+FFFD;
 *	- a "<" that could begin a tag becomes "&lt;", because harnesses recognise their blocks by tags;
 *	- a field of one line stays one line, so that it cannot forge the next line of the output.
 *
 * Text of several lines is also put between two lines with eight random digits (fence_open, fence_close), which no
 * sender can know. A short field outside of such lines is put in quotes.
 *
 *	fence_addf(&cli->out, "%s is '%s'\n", agent->name, agent->role);
 *
 * JSON has its own form of the same (json_string in text.h), which loses nothing.
 */
#ifndef BASE_FENCE_H
#define BASE_FENCE_H

#include "base/buf.h"

#define FENCE_MARK_LEN 8
#define FENCE_FIELD_CHARS 120 /* of a short field: a name, a role, a reason, a path */

void fence_mark(char ret[FENCE_MARK_LEN + 1]);
void fence_open(struct buf *out, const char *mark);
/* The same for the reader's own text, whose subjects may still quote others. */
void fence_open_own(struct buf *out, const char *mark);
void fence_close(struct buf *out, const char *mark);

enum fence_form {
	FENCE_TEXT,      /* with its line breaks and tabs */
	FENCE_LINE,      /* line breaks and tabs become blanks */
	FENCE_NAME,      /* a line in quotes; without them if it has only characters of addresses, patterns and paths */
	FENCE_ATTRIBUTE, /* a line without quotes and angle brackets, for the value of an attribute */
	FENCE_PERSON = 8 /* added to TEXT or LINE: for a person at a terminal, where tags do no harm */
};
/* Appends the text in that form, at most so many characters of it (0: all), with an ellipsis if it was cut. Returns how
 * many characters were left out. */
size_t fence_add(struct buf *out, struct mr_str text, unsigned form, size_t chars);

/* buf_addf for doors: the text of the format is ours, each %s is supplied by others. A field is one line of at most
 * FENCE_FIELD_CHARS characters, or as many as a precision says ("%.300s"; in "%.*s" it is the length in bytes). Inside
 * quotes of the format it cannot end them. Only the conversions of base/format.h are allowed. */
void fence_addf(struct buf *out, const char *fmt, ...) MR_PRINTF(2, 3);
/* A short field as FENCE_NAME; several with ", " between them. */
void fence_name(struct buf *out, const char *name);
void fence_names(struct buf *out, const struct mr_names *names);

#endif
