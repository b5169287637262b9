/* SPDX-License-Identifier: MIT */
/* type.c - finding fields by any spelling of their names, values by name, and filling in forms. See type.h. */
#include "base/error.h"
#include "message/type_own.h"

void
type_done(struct type_def *def)
{
	if (!def)
		return;
	arena_free(def->own);
	*def = (struct type_def){ 0 };
}

void
type_values_done(struct type_values *values)
{
	if (!values)
		return;
	arena_free(values->own);
	*values = (struct type_values){ 0 };
}

bool
type_one_line(const struct type_def *def)
{
	return def->body != TYPE_BODY_JSON;
}

static bool
is_filler(char c)
{
	return c == '-' || c == '_' || c == ' ';
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool
type_key_same(struct mr_str a, struct mr_str b)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < a.len && is_filler(a.ptr[i]))
			i++;
		while (k < b.len && is_filler(b.ptr[k]))
			k++;
		if (i == a.len || k == b.len)
			return i == a.len && k == b.len;
		if (lower(a.ptr[i++]) != lower(b.ptr[k++]))
			return false;
	}
}

static size_t
index_of(const struct type_def *def, struct mr_str key, bool loose)
{
	for (size_t i = 0; i < def->fields_n; i++) {
		struct mr_str name = str_of(def->fields[i].name);

		if (loose ? type_key_same(name, key) : str_eq(name, key))
			return i;
	}
	return TYPE_NONE;
}

size_t
type_index(const struct type_def *def, struct mr_str key)
{
	bool loose = def->body == TYPE_BODY_LINES || def->body == TYPE_BODY_TEXT;
	size_t found = index_of(def, key, false);

	for (size_t i = 0; found == TYPE_NONE && i < def->also_n; i++) {
		struct mr_str other = str_of(def->also[i].name);

		if (loose ? type_key_same(other, key) : str_eq(other, key))
			found = index_of(def, str_of(def->also[i].value), false);
	}
	return found == TYPE_NONE && loose ? index_of(def, key, true) : found;
}

const struct type_field *
type_field(const struct type_def *def, const char *name)
{
	size_t i = type_index(def, str_of(name));

	return i == TYPE_NONE ? NULL : &def->fields[i];
}

const char *
type_value(const struct type_values *values, const char *name)
{
	for (size_t i = 0; i < values->n; i++)
		if (strcmp(values->v[i].name, name) == 0)
			return values->v[i].value;
	return NULL;
}

char *
type_dup(struct arena **own, struct mr_str s)
{
	if (s.len == 0 || !memchr(s.ptr, '\0', s.len))
		return arena_dup(own, s);
	mr_auto(buf_done) struct buf out = BUF_INIT;

	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i])
			buf_addc(&out, s.ptr[i]);
		else
			buf_adds(&out, "\xEF\xBF\xBD");
	}
	return buf_ok(&out) ? arena_dup(own, buf_str(&out)) : NULL;
}

/* ---- Forms ---- */

static bool
is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || is_filler(c) || c == '.' ||
	       c == '[' || c == ']' || c == ':';
}

bool
type_next_brace(const char *form, size_t *at, size_t *ret_from, struct mr_str *ret_name)
{
	for (size_t i = *at; form[i]; i++) {
		size_t end = i + 1;

		if (form[i] != '{')
			continue;
		while (is_name_byte(form[end]))
			end++;
		if (form[end] != '}' || end == i + 1)
			continue; /* a brace that is no field */
		*ret_from = i;
		*ret_name = (struct mr_str){ form + i + 1, end - i - 1 };
		*at = end + 1;
		return true;
	}
	return false;
}

void
type_fill(struct buf *out, const char *form, const struct type_values *values)
{
	size_t at = 0, last = 0, from;
	struct mr_str name;

	for (; type_next_brace(form, &at, &from, &name); last = at) {
		buf_add(out, (struct mr_str){ form + last, from - last });
		for (size_t i = 0; i < values->n; i++)
			if (str_eq(str_of(values->v[i].name), name)) {
				buf_adds(out, values->v[i].value);
				break;
			}
	}
	buf_adds(out, form + last);
}

void
type_variable(struct buf *out, const char *field)
{
	buf_adds(out, "MAILROOM_FIELD_");
	for (; *field; field++) {
		char c = *field;

		if (c >= 'a' && c <= 'z')
			buf_addc(out, (char)(c - 'a' + 'A'));
		else
			buf_addc(out, (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_');
	}
}
