/* SPDX-License-Identifier: MIT */
/*
 * query.h - search queries. A word, with and without an index, is a run of ASCII letters, digits, "_" and bytes beyond
 * ASCII; ASCII case does not count. A query is words that must all occur:
 *
 *	build green            both words, anywhere in the message
 *	"build is green"       these words, one after the other; so is build-is-green
 *	gree*                  a word with that beginning
 *	from:bob to:amy type:TASK thread:ID after:2d before:2026-10-01
 *	-red  -from:bob        not these
 */
#ifndef MESSAGE_QUERY_H
#define MESSAGE_QUERY_H

#include "base/buf.h"

enum query_field { QUERY_TEXT, QUERY_FROM, QUERY_TO, QUERY_TYPE, QUERY_THREAD, QUERY_AFTER, QUERY_BEFORE };

#define QUERY_TERMS_MAX 64
#define QUERY_WORDS_MAX 64 /* of one phrase */

struct query_term {
	enum query_field field;
	bool exclude;
	bool prefix;      /* QUERY_TEXT: the last word is a beginning */
	const char *text; /* QUERY_TEXT: at least one word, lower case; else the value as given */
};
struct query { /* finish with query_done */
	struct query_term *v;
	size_t n;
	struct arena *own;
};
/* MR_REFUSED: a term without a word, or too many of them. An empty text has no terms. */
enum mr_rc query_parse(struct mr_str text, struct query *ret, struct mr_error *err);
void query_done(struct query *q);

/* Takes the next word from the front of *rest. False: there is none. */
bool query_word(struct mr_str *rest, struct mr_str *ret);
/* Do these words occur in the text, one after the other? `phrase` is in lower case. ret_hit (may be NULL) is the
 * place. */
bool query_finds(struct mr_str text, const char *phrase, bool prefix, struct mr_str *ret_hit);

/* A line of the text around the first hit of a QUERY_TEXT term: the text before, the hit, the text after, with control
 * characters and line breaks unchanged. False: no hit. */
struct query_snippet {
	struct mr_str before, hit, after;
};
bool query_snippet(const struct query *q, struct mr_str text, struct query_snippet *ret);

#endif
