/* SPDX-License-Identifier: MIT */
/*
 * format.h - printf for sentences of ours that quote words of others: inside quotes of the format, the word of an
 * argument cannot end them. A quote in "it's" is part of a word; any other one opens, and the next of its kind closes.
 *
 *	format_print(text, sizeof(text), "no agent '%s'", args)      no agent 'it\'s me'
 *
 * Knows %s with a width and a precision, %c, %d, %u, %zu, %ld, %lu, %lld, %llu, %o with a width, and %%. Anything else
 * is a mistake of ours, and shown with all that is behind it.
 */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include "base/buf.h"
#include <stdarg.h>

/* As vsnprintf; what had to be cut off does not end within a UTF-8 character. */
void format_print(char *ret, size_t size, const char *fmt, va_list args) MR_PRINTF(3, 0);
/* The first line of the format into ret, what follows its newline into ret_rest. Without a newline ret_rest is left
 * alone. A newline in an argument is text. */
void format_lines(char *ret, size_t size, char *ret_rest, size_t rest_size, const char *fmt, va_list args)
    MR_PRINTF(5, 0);

/* buf_addf of such a sentence, for one that is shown in the end: it is fenced there. */
void format_addf(struct buf *out, const char *fmt, ...) MR_PRINTF(2, 3);

#endif
