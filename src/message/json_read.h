/* SPDX-License-Identifier: MIT */
/*
 * json_read.h - reading JSON where it stands. A value is a piece of the text, never a tree: a program that changes one
 * field of another program's file copies all other bytes as they are, with their order, their duplicate keys, their
 * digits and their escapes.
 *
 *	struct json_value all, one;
 *	if (json_whole(text, &all, &problem) && all.kind == JSON_ARRAY)
 *		for (size_t at = 0; json_item(all, &at, &one);)
 *			... one.raw is exactly the bytes of the entry
 *
 * Strict RFC 8259, but for strings that are no valid UTF-8 (the reader of a string says so) and a depth of at most
 * JSON_DEPTH_MAX.
 */
#ifndef MESSAGE_JSON_READ_H
#define MESSAGE_JSON_READ_H

#include "base/text.h" /* json_stringify */

#define JSON_DEPTH_MAX 128

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };
struct json_value {
	enum json_kind kind;
	struct mr_str raw; /* of a string: with its quotes */
};

/* The value at *at, after white space; *at is behind it then. False: there is none, *ret_problem says why as the end of
 * a sentence ("ends within a string"; may be NULL) and *at is where it went wrong. */
bool json_value_at(struct mr_str text, size_t *at, struct json_value *ret, const char **ret_problem);
/* The next member of an object whose end is not known yet: checks what json_value_at checks, in one pass. *at is that
 * of its opening bracket before the first one; false: *ret_problem says why, or is NULL behind the closing bracket. */
bool json_member_at(
    struct mr_str text, size_t *at, struct json_value *ret_key, struct json_value *ret, const char **ret_problem);
/* The one problem that is not the text's fault: deeper than JSON_DEPTH_MAX. Compared by its address. */
extern const char json_too_deep[];
/* Nothing but white space before and after it. */
bool json_whole(struct mr_str text, struct json_value *ret, const char **ret_problem);
size_t json_skip_space(struct mr_str text, size_t at);

/* Walking a value that json_value_at found. *at is 0 before the first; false: no more. */
bool json_item(struct json_value array, size_t *at, struct json_value *ret);
bool json_member(struct json_value object, size_t *at, struct json_value *ret_key, struct json_value *ret);
/* The last member of that name, as JavaScript takes it; false: none, or no object. */
bool json_find(struct json_value object, const char *key, struct json_value *ret);
/* The same; raw.ptr NULL: none. In what is not there is nothing, so that one step can follow the other. */
struct json_value json_get(struct json_value object, const char *key);
/* The next item or member, whichever it has; ret_key->raw.ptr is NULL for an item. */
bool json_child(struct json_value in, size_t *at, struct json_value *ret_key, struct json_value *ret);
bool json_key_is(struct json_value key, const char *name);
bool json_is(struct json_value value, const char *string); /* that string */

/* The text of a string: escapes undone. Half of a surrogate pair, and bytes that are no UTF-8, become U+FFFD. */
void json_text(struct json_value string, struct buf *out);
/* json_find and json_text at once; false: no such member, or no string. The buffer is added to. */
bool json_find_text(struct json_value object, const char *key, struct buf *out);
/* As JavaScript judges: false, null, 0 and "" are not, everything else is. */
bool json_truthy(struct json_value value);

#endif
