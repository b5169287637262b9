/* SPDX-License-Identifier: MIT */
/*
 * header.h - `Key: value` lines: the only parser for messages and for all small files of a room.
 *
 * A header block is lines up to the first empty one. A line that begins with a space or tab continues the one before.
 * LF and CRLF are both line ends. Names are 1-76 printable ASCII characters without colon. A line of another form is
 * counted and skipped; the rest is still read.
 */
#ifndef MESSAGE_HEADER_H
#define MESSAGE_HEADER_H

#include "base/buf.h"

struct header_line {
	struct mr_str name;
	struct mr_str raw; /* the value as stored, folds included, trimmed */
};
struct header_cursor {
	struct mr_str rest; /* after the last line taken; after the end: the body */
	bool ended;         /* the empty line was read */
	size_t skipped;     /* lines that were not header lines */
};
static inline struct header_cursor
header_begin(struct mr_str text)
{
	return (struct header_cursor){ .rest = text };
}
/* False: no more header lines; c->rest is the body. */
bool header_next(struct header_cursor *c, struct header_line *ret);
/* Printable ASCII on one line, as nearly every value: unfolding and cleaning would change nothing. */
bool header_is_plain(struct mr_str raw);
/* Value with folds undone (line break + white space = one space). */
void header_unfold(struct buf *out, struct mr_str raw);

bool header_name_valid(struct mr_str name);
/* The problem of a value, as the end of a sentence ("has a line break"), or NULL: no NUL, no CR, no LF, valid UTF-8. */
const char *header_value_problem(struct mr_str value);
/* Makes a foreign value valid: line breaks and NUL become spaces, bytes that are not UTF-8 are read as Latin-1. */
void header_clean(struct buf *out, struct mr_str value);
/* Adds one trimmed "Name: value" line. Long ones are folded at single spaces between words, so that unfolding gives the
 * same value. MR_REFUSED with the reason, naming the header. */
enum mr_rc header_add(struct buf *out, const char *name, struct mr_str value, struct mr_error *err);

/* ---- Small files: a whole file of header lines ---- */
struct record { /* finish with record_done */
	struct mr_header *lines;
	size_t n;
	size_t skipped; /* lines that were not header lines */
	struct arena *own;
};
/* Empty lines are allowed. MR_CORRUPT: there is text, but not one header line. */
enum mr_rc record_parse(struct mr_str text, struct record *ret, struct mr_error *err);
/* Reads only the header block as a record; *ret_rest is the text after it. */
enum mr_rc record_and_rest(struct mr_str text, struct record *ret, struct mr_str *ret_rest, struct mr_error *err);
const char *record_get(const struct record *r, const char *name); /* first of that name, any case; or NULL */
int64_t record_int(const struct record *r, const char *name, int64_t otherwise);
int64_t record_time(const struct record *r, const char *name); /* RFC 3339 -> ms; 0: missing, or not a time */
/* The index of the value in these words (NULL-terminated); `otherwise`: none of them. */
unsigned record_word(const struct record *r, const char *name, const char *const *words, unsigned otherwise);
bool record_has(const struct record *r, const char *name, const char *value); /* a line with exactly that value */
void record_done(struct record *r);

/* A struct as lines of a record: a row for each member. Other lines are skipped. */
enum record_kind {
	RECORD_TEXT,   /* const char *; read: borrowed from the record, "" when missing. Written cleaned, "" is left out
			*/
	RECORD_COUNT,  /* unsigned */
	RECORD_SOME,   /* unsigned; 0: left out */
	RECORD_YES,    /* bool, yes or no; missing or another word: no */
	RECORD_NUMBER, /* int64_t; 0: left out */
	RECORD_TIME,   /* int64_t, ms <-> RFC 3339; 0: left out */
	RECORD_PROCESS, /* struct mr_process; without a pid: left out */
};
struct record_field {
	const char *name;
	enum record_kind kind;
	size_t at; /* offsetof */
};
#define RECORD_FIELDS(table) (table), sizeof(table) / sizeof((table)[0])
void record_read(const struct record *r, const struct record_field *fields, size_t n, void *ret);
void record_write(struct buf *out, const struct record_field *fields, size_t n, const void *from);
void record_add(struct buf *out, const char *name, const char *value); /* one cleaned line; "" or NULL: no line */

#endif
