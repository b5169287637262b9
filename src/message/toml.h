/* SPDX-License-Identifier: MIT */
/*
 * toml.h - the little of TOML that a settings file of another program needs: where every key stands, one table more or
 * less at the end, one string more or less in an array. All other bytes are kept, so that what was put in can be
 * taken out without a trace (splice.h says how arrays do it).
 *
 * A table is appended after an empty line; a file without a newline at its end stays without one. From that follows
 * what toml_drop_block has to take away.
 */
#ifndef MESSAGE_TOML_H
#define MESSAGE_TOML_H

#include "base/buf.h"

#define TOML_PATH_MAX 200
#define TOML_DOT "\x1f" /* between the parts of a path: "mcp_servers" TOML_DOT "mailroom" */

struct toml_item {
	enum { TOML_TABLE, TOML_TABLES /* [[...]] */, TOML_VALUE } kind;
	char path[TOML_PATH_MAX +
		  1];   /* in full, the table's included; a longer one is cut and matches nothing of ours */
	size_t line;    /* where its line begins */
	size_t at, end; /* of a value: the value; of a table: its line without what follows the bracket */
	bool nested;    /* inside an inline table */
};
typedef bool toml_fn(void *ctx, const struct toml_item *item); /* false stops */
/* Every table and every key, in order, those of inline tables after the table. MR_CORRUPT: the message says what is
 * wrong in which line. */
enum mr_rc toml_each(struct mr_str text, toml_fn *fn, void *ctx, struct mr_error *err);

/* The text of a string, whichever way it is written; false: it is none, or written in several lines. */
bool toml_string(struct mr_str value, struct buf *out);
/* The strings of an array; false: it is none. What is no string in it is "". */
bool toml_strings(struct mr_str value, struct mr_names *ret);

/* ---- One change in the text ---- */
/* `block`: a table without the newline at its end. there: the file exists, and may be empty. */
void toml_add_block(struct buf *text, bool there, const struct buf *block);
/* Takes the lines out from that offset, where a line begins, to the line of `last`. */
void toml_drop_block(struct buf *text, size_t from, size_t last);
/* A line behind that one, on which `at` is. */
void toml_add_line(struct buf *text, size_t at, const struct buf *line);
/* Takes the line of that value out. */
void toml_drop_line(struct buf *text, const struct toml_item *item);
/* A string more in the array [at, end). */
void toml_array_add(struct buf *text, size_t at, size_t end, const char *string);
/* Takes item i out. */
void toml_array_drop(struct buf *text, size_t at, size_t end, size_t i);
/* Is it an array that we made, with one item? */
bool toml_array_is_ours(struct mr_str text, size_t at, size_t end);

#endif
