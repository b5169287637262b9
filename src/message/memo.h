/* SPDX-License-Identifier: MIT */
/*
 * memo.h - the message file of a workspace mailbox: front matter with five known keys, an empty line, Markdown.
 * Pure functions from bytes to a struct and back. See mailroom-workspace(5).
 */
#ifndef MESSAGE_MEMO_H
#define MESSAGE_MEMO_H

#include "base/buf.h"

#define MEMO_MAX ((size_t)1 << 20) /* of a whole file */
#define MEMO_ID_LEN 32             /* hex digits of ids that mailroom makes */

struct memo { /* all of it borrowed */
	struct mr_str request_id;
	bool is_reply;                 /* MESSAGE_TYPE: REPLY, not NEW */
	struct mr_str channel;         /* empty: no line */
	struct mr_str receiver, reply; /* paths; an empty reply path: no answer is wanted */
	struct mr_str body;
	struct mr_str head; /* as read: all lines of the front matter */
	bool quoted;        /* as read: a value had quotes, which were removed */
};

/* NULL, or the problem as the end of a sentence ("has no front matter"). */
const char *memo_parse(struct mr_str text, struct memo *ret);
/* Does the front matter begin and not end? Then its writer may not have finished. */
bool memo_unfinished(struct mr_str text);
/* Byte for byte as the generator of the format writes: white space at the end of the whole is removed, one newline
 * added. */
void memo_write(struct buf *out, const struct memo *memo);
/* Can it be the name of a file? */
bool memo_id_safe(struct mr_str id);
/* The problem of a value for a line of the front matter ("has a control character"), or NULL. */
const char *memo_value_problem(struct mr_str value);
/* Is it none of the five keys? */
bool memo_key_unknown(struct mr_str key);
/* The first line as subject: a heading loses its "# ". */
void memo_subject(struct buf *out, struct mr_str body);

#endif
