/* SPDX-License-Identifier: MIT */
/* text.h - UTF-8, and forms of text that are safe to show. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/buf.h"

bool utf8_valid(struct mr_str s); /* strict: no surrogates, no overlong forms */
bool utf8_text(struct mr_str s);  /* valid, and without a NUL */
/* Length in bytes of the valid character at s, 0 if there is none. */
size_t utf8_next(struct mr_str s, uint32_t *ret_cp);
/* Appends the character; an invalid one, also half of a surrogate pair, becomes U+FFFD. */
void utf8_add(struct buf *out, uint32_t cp);
/* How many bytes from the start are printable ASCII and neither of these two (0x7F: no further stop). */
size_t ascii_run(struct mr_str s, char stop, char or_stop);
int hex_digit(char c);                                    /* value of a digit in either case; -1: none */
size_t utf8_chars(struct mr_str s);                       /* code points; a bad byte counts as one */
size_t utf8_width(struct mr_str s);                       /* columns on a terminal, roughly: wide = 2, combining = 0 */
struct mr_str utf8_cut(struct mr_str s, size_t chars);    /* at most that many code points */
struct mr_str utf8_within(struct mr_str s, size_t bytes); /* ... whole characters in so many bytes */
struct mr_str utf8_fit(struct mr_str s, size_t columns);  /* the longest beginning that is not wider */
/* Appends the text, at most so wide, with an ellipsis if it was cut. Returns its width in columns. */
size_t text_fit(struct buf *out, struct mr_str s, size_t columns);

/* For terminals and agents' contexts: control characters (but \n and \t), DEL, C1, bidi overrides and
 * invisible format characters become visible escapes such as <U+001B>; bad UTF-8 becomes U+FFFD. */
void text_clean(struct buf *out, struct mr_str s);
/* One line: like text_clean, and line breaks and tabs become spaces. */
void text_clean_line(struct buf *out, struct mr_str s);

/* JSON string with quotes. Bad UTF-8 becomes U+FFFD; characters that text_clean would replace are written as escapes
 * such as \u202e, which loses nothing. */
void json_string(struct buf *out, struct mr_str s);
/* The same, byte for byte like JSON.stringify: only characters that must be are escaped. */
void json_stringify(struct buf *out, struct mr_str s);
void json_escape(struct buf *out, struct mr_str s, bool only_what_must); /* the part between the quotes */

/* Edit distance for "did you mean", at most `limit`, else limit + 1. ASCII case does not count. */
size_t edit_distance(const char *a, const char *b, size_t limit);

#endif
