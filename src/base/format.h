/* SPDX-License-Identifier: MIT */
/*
 * format.h - printf for our sentences that quote words of others: inside quotes of the format, an argument cannot end
 * them. A quote in "it's" is part of a word; any other one opens, and the next of its kind closes.
 *
 *	format_print(text, sizeof(text), "no agent '%s'", args)      no agent 'it\'s me'
 *
 * Supports %s with a width and a precision, %c, %d, %u, %zu, %ld, %lu, %lld, %llu, %o with a width, and %%. Any other
 * conversion is a bug; it is printed with the rest of the format.
 */
#ifndef BASE_FORMAT_H
#define BASE_FORMAT_H

#include "base/buf.h"
#include <stdarg.h>

/* Like vsnprintf, but never cuts within a UTF-8 character. */
void format_print(char *ret, size_t size, const char *fmt, va_list args) MR_PRINTF(3, 0);
/* The first line of the format into ret, the text after its newline into ret_rest. Without a newline ret_rest is
 * unchanged. A newline in an argument is text. */
void format_lines(char *ret, size_t size, char *ret_rest, size_t rest_size, const char *fmt, va_list args)
    MR_PRINTF(5, 0);

/* buf_addf for such a sentence that is fenced later, when it is shown. */
void format_addf(struct buf *out, const char *fmt, ...) MR_PRINTF(2, 3);

#endif
