/* SPDX-License-Identifier: MIT */
/* json_read.c - finding the end of a JSON value, walking what is inside, and the text of strings. See json_read.h. */
#include "message/json_read.h"

#include "base/text.h"

const char json_too_deep[] = "is nested too deep";

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

size_t
json_skip_space(struct mr_str text, size_t at)
{
	while (at < text.len && is_space(text.ptr[at]))
		at++;
	return at;
}

/* ---- One scalar; each returns what is wrong, or NULL and *at behind it ---- */

static const char *
skip_escape(struct mr_str t, size_t *at)
{
	if (*at + 1 >= t.len)
		return "ends within a string";
	char c = t.ptr[*at + 1];

	*at += 2;
	if (c != 'u')
		return strchr("\"\\/bfnrt", c) && c ? NULL : "has an unknown escape";
	for (int i = 0; i < 4; i++, ++*at) {
		if (*at >= t.len)
			return "ends within a string";
		if (hex_digit(t.ptr[*at]) < 0)
			return "has a bad \\u escape";
	}
	return NULL;
}

static const char *
skip_string(struct mr_str t, size_t *at)
{
	++*at;
	for (;;) {
		*at += ascii_run(str_from(t, *at), '"', '\\');
		if (*at == t.len)
			break;
		unsigned char c = (unsigned char)t.ptr[*at];
		const char *problem = NULL;

		if (c == '"') {
			++*at;
			return NULL;
		}
		if (c < 0x20)
			return "has a control character in a string";
		if (c == '\\')
			problem = skip_escape(t, at);
		else
			++*at;
		if (problem)
			return problem;
	}
	return "ends within a string";
}

static size_t
skip_digits(struct mr_str t, size_t at)
{
	while (at < t.len && is_digit(t.ptr[at]))
		at++;
	return at;
}

static const char *
skip_number(struct mr_str t, size_t *at)
{
	size_t i = *at + (t.ptr[*at] == '-'), from = i;

	i = skip_digits(t, i);
	if (i == from || (t.ptr[from] == '0' && i > from + 1))
		return "has a bad number";
	if (i < t.len && t.ptr[i] == '.') {
		from = ++i;
		i = skip_digits(t, i);
		if (i == from)
			return "has a bad number";
	}
	if (i < t.len && (t.ptr[i] == 'e' || t.ptr[i] == 'E')) {
		i++;
		if (i < t.len && (t.ptr[i] == '+' || t.ptr[i] == '-'))
			i++;
		from = i;
		i = skip_digits(t, i);
		if (i == from)
			return "has a bad number";
	}
	*at = i;
	return NULL;
}

static const char *
skip_word(struct mr_str t, size_t *at, enum json_kind *ret_kind)
{
	static const struct {
		const char *word;
		enum json_kind kind;
	} words[] = { { "null", JSON_NULL }, { "true", JSON_TRUE }, { "false", JSON_FALSE } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i].word);

		if (t.len - *at >= len && memcmp(t.ptr + *at, words[i].word, len) == 0) {
			*at += len;
			*ret_kind = words[i].kind;
			return NULL;
		}
	}
	return "has something that is no value";
}

static const char *
skip_scalar(struct mr_str t, size_t *at, enum json_kind *ret_kind)
{
	char c = t.ptr[*at];

	if (c == '"') {
		*ret_kind = JSON_STRING;
		return skip_string(t, at);
	}
	if (c == '-' || is_digit(c)) {
		*ret_kind = JSON_NUMBER;
		return skip_number(t, at);
	}
	return skip_word(t, at, ret_kind);
}

/* ---- A whole value: brackets on a small stack instead of recursion ---- */

struct nest {
	bool object[JSON_DEPTH_MAX];
	size_t depth, most;
};

/* "key": up to behind the colon */
static const char *
skip_key(struct mr_str t, size_t *at)
{
	const char *problem;

	if (*at >= t.len)
		return "ends within an object";
	if (t.ptr[*at] != '"')
		return "has a member without a name";
	problem = skip_string(t, at);
	if (problem)
		return problem;
	*at = json_skip_space(t, *at);
	if (*at >= t.len)
		return "ends within an object";
	if (t.ptr[*at] != ':')
		return "lacks a colon after a name";
	++*at;
	return NULL;
}

/* At an opening bracket. *ret_closed: it was empty. */
static const char *
enter(struct mr_str t, size_t *at, struct nest *n, bool *ret_closed)
{
	bool object = t.ptr[*at] == '{';

	if (n->depth == n->most)
		return json_too_deep;
	*at = json_skip_space(t, *at + 1);
	*ret_closed = *at < t.len && t.ptr[*at] == (object ? '}' : ']');
	if (*ret_closed) {
		++*at;
		return NULL;
	}
	n->object[n->depth++] = object;
	return object ? skip_key(t, at) : NULL;
}

/* Behind a value: closing brackets, or the comma before the next. The value is over when nothing is open. */
static const char *
leave(struct mr_str t, size_t *at, struct nest *n)
{
	while (n->depth > 0) {
		bool object = n->object[n->depth - 1];

		*at = json_skip_space(t, *at);
		if (*at >= t.len)
			return object ? "ends within an object" : "ends within an array";
		if (t.ptr[*at] == (object ? '}' : ']')) {
			++*at;
			n->depth--;
			continue;
		}
		if (t.ptr[*at] != ',')
			return "lacks a comma";
		*at = json_skip_space(t, *at + 1);
		return object ? skip_key(t, at) : NULL;
	}
	return NULL;
}

/* most: how deep it may be nested */
static const char *
skip_value(struct mr_str t, size_t *at, size_t most, enum json_kind *ret_kind)
{
	struct nest n;
	bool first = true;

	n.depth = 0;
	n.most = most;
	do {
		enum json_kind kind = JSON_NULL;
		const char *problem;

		*at = json_skip_space(t, *at);
		if (*at >= t.len)
			return "ends where a value is expected";
		char c = t.ptr[*at];

		if (c == '{' || c == '[') {
			bool closed = false;

			kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
			problem = enter(t, at, &n, &closed);
			if (!problem && closed)
				problem = leave(t, at, &n);
		} else {
			problem = skip_scalar(t, at, &kind);
			if (!problem)
				problem = leave(t, at, &n);
		}
		if (problem)
			return problem;
		if (first)
			*ret_kind = kind;
		first = false;
	} while (n.depth > 0);
	return NULL;
}

bool
json_value_at(struct mr_str text, size_t *at, struct json_value *ret, const char **ret_problem)
{
	enum json_kind kind = JSON_NULL;
	size_t from = json_skip_space(text, *at), end = from;
	const char *problem = skip_value(text, &end, JSON_DEPTH_MAX, &kind);

	*at = end;
	if (problem) {
		*ret_problem = problem;
		return false;
	}
	*ret = (struct json_value){ kind, { text.ptr + from, end - from } };
	return true;
}

bool
json_member_at(
    struct mr_str text, size_t *at, struct json_value *ret_key, struct json_value *ret, const char **ret_problem)
{
	size_t name = text.ptr[*at] == '{' ? json_skip_space(text, *at + 1) : *at, end;
	const char *problem = NULL;

	if (name < text.len && text.ptr[name] == '}') {
		*at = name + 1;
		*ret_problem = NULL;
		return false;
	}
	*at = name;
	problem = skip_key(text, at);
	if (!problem) {
		for (end = *at - 1; is_space(text.ptr[end - 1]);)
			end--;
		*ret_key = (struct json_value){ JSON_STRING, { text.ptr + name, end - name } };
		*at = json_skip_space(text, *at);
		ret->raw.ptr = text.ptr + *at;
		problem = skip_value(text, at, JSON_DEPTH_MAX - 1, &ret->kind);
	}
	if (!problem) { /* goes on to the next name, or to the bracket */
		ret->raw.len = (size_t)(text.ptr + *at - ret->raw.ptr);
		*at = json_skip_space(text, *at);
		bool comma = *at < text.len && text.ptr[*at] == ',';

		if (comma)
			*at = json_skip_space(text, *at + 1);
		if (*at >= text.len)
			problem = "ends within an object";
		else if (text.ptr[*at] != (comma ? '"' : '}'))
			problem = comma ? "has a member without a name" : "lacks a comma";
	}
	*ret_problem = problem;
	return !problem;
}

bool
json_whole(struct mr_str text, struct json_value *ret, const char **ret_problem)
{
	struct json_value value;
	size_t at = 0;

	if (!json_value_at(text, &at, &value, ret_problem))
		return false;
	if (json_skip_space(text, at) < text.len) {
		*ret_problem = "goes on after its end";
		return false;
	}
	*ret = value;
	return true;
}

/* ---- Walking. The text was checked: what fails here is the end. ---- */

static bool
next_value(struct mr_str raw, size_t *at, struct json_value *ret)
{
	const char *problem;

	return json_value_at(raw, at, ret, &problem);
}

/* Before a member: behind the bracket, or behind the comma. False at the closing bracket. */
static bool
to_next(struct mr_str raw, size_t *at)
{
	*at = json_skip_space(raw, *at == 0 ? 1 : *at);
	if (*at < raw.len && raw.ptr[*at] == ',')
		*at = json_skip_space(raw, *at + 1);
	return *at + 1 < raw.len;
}

bool
json_item(struct json_value array, size_t *at, struct json_value *ret)
{
	return array.kind == JSON_ARRAY && to_next(array.raw, at) && next_value(array.raw, at, ret);
}

bool
json_member(struct json_value object, size_t *at, struct json_value *ret_key, struct json_value *ret)
{
	if (object.kind != JSON_OBJECT || !to_next(object.raw, at) || !next_value(object.raw, at, ret_key))
		return false;
	*at = json_skip_space(object.raw, *at) + 1; /* the colon */
	return next_value(object.raw, at, ret);
}

bool
json_key_is(struct json_value key, const char *name)
{
	size_t len = key.raw.len - 2;

	/* Without an escape, and mostly another one from the first letter on. */
	if (len > 0 && key.raw.ptr[1] != *name && key.raw.ptr[1] != '\\')
		return false;
	if (!memchr(key.raw.ptr + 1, '\\', len))
		return strncmp(key.raw.ptr + 1, name, len) == 0 && name[len] == '\0';
	struct buf plain = BUF_INIT;

	json_text(key, &plain);
	bool same = buf_ok(&plain) && str_eq(buf_str(&plain), str_of(name));

	buf_done(&plain);
	return same;
}

bool
json_find(struct json_value object, const char *key, struct json_value *ret)
{
	struct json_value name, value;
	bool found = false;

	for (size_t at = 0; json_member(object, &at, &name, &value);)
		if (json_key_is(name, key)) {
			*ret = value;
			found = true;
		}
	return found;
}

bool
json_find_text(struct json_value object, const char *key, struct buf *out)
{
	struct json_value value;

	if (!json_find(object, key, &value) || value.kind != JSON_STRING)
		return false;
	json_text(value, out);
	return true;
}

bool
json_truthy(struct json_value value)
{
	switch (value.kind) {
	case JSON_NULL:
	case JSON_FALSE:
		return false;
	case JSON_NUMBER: /* zero in any spelling: no digit but 0 before the exponent */
		for (size_t i = 0; i < value.raw.len && value.raw.ptr[i] != 'e' && value.raw.ptr[i] != 'E'; i++)
			if (value.raw.ptr[i] >= '1' && value.raw.ptr[i] <= '9')
				return true;
		return false;
	case JSON_STRING:
		return value.raw.len > 2;
	case JSON_TRUE:
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	return true;
}

/* ---- Strings ---- */

static void
add_char(struct buf *out, uint32_t cp)
{
	if (cp >= 0xd800 && cp < 0xe000)
		cp = 0xfffd;
	if (cp < 0x80) {
		buf_addc(out, (char)cp);
		return;
	}
	if (cp < 0x800) {
		buf_addc(out, (char)(0xc0 | cp >> 6));
	} else if (cp < 0x10000) {
		buf_addc(out, (char)(0xe0 | cp >> 12));
		buf_addc(out, (char)(0x80 | (cp >> 6 & 0x3f)));
	} else {
		buf_addc(out, (char)(0xf0 | cp >> 18));
		buf_addc(out, (char)(0x80 | (cp >> 12 & 0x3f)));
		buf_addc(out, (char)(0x80 | (cp >> 6 & 0x3f)));
	}
	buf_addc(out, (char)(0x80 | (cp & 0x3f)));
}

static uint32_t
four_hex(const char *p)
{
	uint32_t unit = 0;

	for (int i = 0; i < 4; i++)
		unit = unit << 4 | (uint32_t)hex_digit(p[i]);
	return unit;
}

/* At a backslash; returns how many bytes it takes. Two \u escapes may be one character. */
static size_t
undo_escape(struct mr_str s, struct buf *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";

	if (s.ptr[1] != 'u') {
		buf_addc(out, to[strchr(from, s.ptr[1]) - from]);
		return 2;
	}
	uint32_t unit = four_hex(s.ptr + 2);

	if (unit >= 0xd800 && unit < 0xdc00 && s.len >= 12 && s.ptr[6] == '\\' && s.ptr[7] == 'u') {
		uint32_t low = four_hex(s.ptr + 8);

		if (low >= 0xdc00 && low < 0xe000) {
			add_char(out, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
			return 12;
		}
	}
	add_char(out, unit);
	return 6;
}

void
json_text(struct json_value string, struct buf *out)
{
	if (string.kind != JSON_STRING)
		return;
	struct mr_str s = { string.raw.ptr + 1, string.raw.len - 2 };

	while (s.len > 0) {
		size_t n = ascii_run(s, '\\', '\\');

		if (n > 0)
			buf_add(out, str_first(s, n));
		else if (s.ptr[0] == '\\')
			n = undo_escape(s, out);
		else if ((n = utf8_next(s, &(uint32_t){ 0 })) > 0)
			buf_add(out, str_first(s, n));
		else {
			n = 1;
			buf_adds(out, "\xEF\xBF\xBD");
		}
		s = str_from(s, n);
	}
}

void
json_stringify(struct buf *out, struct mr_str s)
{
	static const char from[] = "\"\\\b\t\n\f\r", to[] = "\"\\btnfr";

	buf_addc(out, '"');
	while (s.len > 0) {
		unsigned char c = (unsigned char)s.ptr[0];
		const char *short_form = c ? strchr(from, c) : NULL;
		size_t n = 1;

		if (short_form && c < 0x80) {
			buf_addc(out, '\\');
			buf_addc(out, to[short_form - from]);
		} else if (c < 0x20) {
			buf_addf(out, "\\u%04x", c);
		} else if (c < 0x80) {
			size_t run = ascii_run(s, '"', '\\');

			n = run > 0 ? run : 1; /* 0x7f stands as it is */
			buf_add(out, str_first(s, n));
		} else if ((n = utf8_next(s, &(uint32_t){ 0 })) > 0) {
			buf_add(out, str_first(s, n));
		} else {
			n = 1;
			buf_adds(out, "\xEF\xBF\xBD");
		}
		s = str_from(s, n);
	}
	buf_addc(out, '"');
}
