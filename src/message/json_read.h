/* SPDX-License-Identifier: MIT */
/*
 * json_read.h - reading JSON in place. A value is a piece of the text, not a tree: a program that changes one field of
 * another program's file copies all other bytes unchanged, with their order, duplicate keys, digits and escapes.
 *
 *	struct json_value all, one;
 *	if (json_whole(text, &all, &problem) && all.kind == JSON_ARRAY)
 *		for (size_t at = 0; json_item(all, &at, &one);)
 *			... one.raw is exactly the bytes of the entry
 *
 * Strict RFC 8259, except that strings may have invalid UTF-8 (json_text replaces it) and that the depth is
 * limited to JSON_DEPTH_MAX.
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

/* Reads the value at *at, after white space, and moves *at behind it. False: there is none, *ret_problem (may be NULL)
 * says why as the end of a sentence ("ends within a string"), and *at is the place of the error. */
bool json_value_at(struct mr_str text, size_t *at, struct json_value *ret, const char **ret_problem);
/* The next member of an object whose end is not known yet: checks the same as json_value_at, in one pass. Before the
 * first call *at is that of the opening bracket; false: *ret_problem says why, or is NULL after the closing bracket. */
bool json_member_at(
    struct mr_str text, size_t *at, struct json_value *ret_key, struct json_value *ret, const char **ret_problem);
/* The one problem that is not an error of the text: deeper than JSON_DEPTH_MAX. Compare it by its address. */
extern const char json_too_deep[];
/* The whole text must be one value, with white space around it. */
bool json_whole(struct mr_str text, struct json_value *ret, const char **ret_problem);
size_t json_skip_space(struct mr_str text, size_t at);

/* Walks a value that json_value_at found. *at is 0 before the first; false: no more. */
bool json_item(struct json_value array, size_t *at, struct json_value *ret);
bool json_member(struct json_value object, size_t *at, struct json_value *ret_key, struct json_value *ret);
/* The last member of that name, as in JavaScript; false: none, or not an object. */
bool json_find(struct json_value object, const char *key, struct json_value *ret);
/* The same; raw.ptr NULL: none. A missing value has no members, so calls can be nested. */
struct json_value json_get(struct json_value object, const char *key);
/* The next item or member, of an array or an object; ret_key->raw.ptr is NULL for an item. */
bool json_child(struct json_value in, size_t *at, struct json_value *ret_key, struct json_value *ret);
bool json_key_is(struct json_value key, const char *name);
bool json_is(struct json_value value, const char *string); /* that string */

/* The text of a string, without escapes. Half of a surrogate pair, and bytes that are not UTF-8, become U+FFFD. */
void json_text(struct json_value string, struct buf *out);
/* json_find and json_text in one call; false: no such member, or not a string. Appends to the buffer. */
bool json_find_text(struct json_value object, const char *key, struct buf *out);
/* As in JavaScript: false, null, 0 and "" are false, everything else is true. */
bool json_truthy(struct json_value value);

#endif
