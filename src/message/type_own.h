/* SPDX-License-Identifier: MIT */
/* type_own.h - shared by the files of type.h. */
#ifndef MESSAGE_TYPE_OWN_H
#define MESSAGE_TYPE_OWN_H

#include "message/json_read.h"
#include "message/type.h"

#define TYPE_NONE SIZE_MAX

/* ---- type.c ---- */
const struct type_field *type_field_exact(const struct type_def *def, struct mr_str name); /* NULL: none */
/* The field of a key in any spelling, TYPE_NONE if there is none. */
size_t type_index(const struct type_def *def, struct mr_str key);
/* "Failure-Type" and "failure_type" are one key. */
bool type_key_same(struct mr_str a, struct mr_str b);
bool type_is_key_byte(char c); /* letters, digits, dash, underscore, blank */
/* The next "{Name}" at or after *at; *ret_from is the place of its brace, *at moves behind it. */
bool type_next_brace(const char *form, size_t *at, size_t *ret_from, struct mr_str *ret_name);
/* A copy in which a NUL, which a C string cannot hold, becomes U+FFFD. NULL: out of memory. */
char *type_dup(struct arena **own, struct mr_str s);
/* The values of the form's {Field}s, in its order. False: the subject has another form.
 * *ret_weight 0: the form is just a field, which every subject fits. */
bool type_subject_parts(const struct type_def *def, struct mr_str subject, struct mr_str ret[TYPE_FIELDS_MAX],
    size_t *ret_n, size_t *ret_weight);
struct mr_str type_agent_of(const char *address); /* without room, without slash at the end */

/* ---- type_parse.c ---- */
struct type_kind_rule {
	const char *word;      /* in a type file */
	const char *must;      /* what a value as text must be; NULL: one of the choices */
	const char *must_json; /* what a value in JSON must be */
	enum json_kind json;   /* and its kind there; JSON_NULL: any */
};
extern const struct type_kind_rule type_kinds[]; /* by enum type_kind */

/* ---- type_read.c ---- */
/* Reserves a place in values->v for each field of the type, at its index and without a value yet, and behind them for
 * TYPE_FIELDS_MAX unknown ones. */
enum mr_rc type_values_begin(const struct type_def *def, struct type_values *values, struct mr_error *err);
void type_values_end(struct type_values *values); /* drops fields without a value */
/* Does a JSON value have the kind of the field? The items of a list are not checked. */
bool type_json_fits(enum type_kind kind, struct json_value value);
/* "a.b.c" inside an object; not through lists. */
bool type_json_at(struct json_value object, const char *path, struct json_value *ret);
/* Is `name` a member of `prefix` itself ("a" of "", "a.b" of "a", "a[].b" of "a[]")? *ret_last is its own part. */
bool type_is_member(const char *name, const char *prefix, const char **ret_last);
/* NULL, or what a value of that field must be ("one word"). scratch holds it. */
const char *type_value_problem(const struct type_field *field, struct mr_str value, struct buf *scratch);

#endif
