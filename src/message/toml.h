/* SPDX-License-Identifier: MIT */
/*
 * toml.h - the small part of TOML that is needed for a settings file of another program: the places of all keys, and
 * adding or removing a table at the end, or a string in an array. All other bytes are kept, so that an addition can be
 * removed without a trace (splice.h describes arrays).
 *
 * A table is appended after an empty line; a file without a newline at its end stays without one. toml_drop_block
 * relies on that to find what to remove.
 */
#ifndef MESSAGE_TOML_H
#define MESSAGE_TOML_H

#include "base/buf.h"

#define TOML_PATH_MAX 200
#define TOML_DOT "\x1f" /* between the parts of a path: "mcp_servers" TOML_DOT "mailroom" */

struct toml_item {
	enum { TOML_TABLE, TOML_TABLES /* [[...]] */, TOML_VALUE } kind;
	char path[TOML_PATH_MAX + 1]; /* complete, with the table's; a longer one is cut and matches none of ours */
	size_t line;                  /* start of its line */
	size_t at, end;               /* a value: its bytes; a table: its line up to the bracket */
	bool nested;                  /* inside an inline table */
};
typedef bool toml_fn(void *ctx, const struct toml_item *item); /* false stops */
/* Calls fn for every table and every key, in order; those of inline tables after the table. MR_CORRUPT: the message
 * says what is wrong in which line. */
enum mr_rc toml_each(struct mr_str text, toml_fn *fn, void *ctx, struct mr_error *err);

/* The text of a string in any notation; false: not a string, or on several lines. */
bool toml_string(struct mr_str value, struct buf *out);
/* The strings of an array; an item of another kind is "". False: not an array. */
bool toml_strings(struct mr_str value, struct mr_names *ret);

/* ---- One change in the text ---- */
/* `block`: a table without the newline at its end. there: the file exists, and may be empty. */
void toml_add_block(struct buf *text, bool there, const struct buf *block);
/* Removes the lines from that offset, the start of a line, to the line of `last`. */
void toml_drop_block(struct buf *text, size_t from, size_t last);
/* Adds a line after the line of `at`. */
void toml_add_line(struct buf *text, size_t at, const struct buf *line);
/* Removes the line of that value. */
void toml_drop_line(struct buf *text, const struct toml_item *item);
/* Adds a string to the array [at, end). */
void toml_array_add(struct buf *text, size_t at, size_t end, const char *string);
/* Removes item i. */
void toml_array_drop(struct buf *text, size_t at, size_t end, size_t i);
/* Is it an array of our making, with one item? */
bool toml_array_is_ours(struct mr_str text, size_t at, size_t end);

#endif
