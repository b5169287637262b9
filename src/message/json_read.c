/* SPDX-License-Identifier: MIT */
/* json_read.c - finding the end of a JSON value, walking its parts, and the text of strings. See json_read.h. */
#include "message/json_read.h"

#include "base/error.h"

const char json_too_deep[] = "is nested too deep";

size_t
json_skip_space(struct mr_str text, size_t at)
{
	while (at < text.len && ascii_space(text.ptr[at]))
		at++;
	return at;
}

/* ---- Each returns the problem, or NULL with *at moved behind the part ---- */

static const char *
skip_string(struct mr_str t, size_t *at)
{
	static const char ends[] = "ends within a string";

	for (++*at;;) {
		*at += ascii_run(str_from(t, *at), '"', '\\');
		if (*at == t.len)
			return ends;
		char c = t.ptr[*at];

		if ((unsigned char)c < 0x20)
			return "has a control character in a string";
		++*at;
		if (c == '"')
			return NULL;
		if (c != '\\')
			continue;
		if (*at == t.len)
			return ends;
		c = t.ptr[(*at)++];
		if (!c || !strchr("\"\\/bfnrtu", c))
			return "has an unknown escape";
		for (int i = 0; c == 'u' && i < 4; i++, ++*at)
			if (*at == t.len || hex_digit(t.ptr[*at]) < 0)
				return *at == t.len ? ends : "has a bad \\u escape";
	}
}

static bool
skip_digits(struct mr_str t, size_t *at)
{
	size_t from = *at;

	while (*at < t.len && ascii_digit(t.ptr[*at]))
		++*at;
	return *at > from;
}

static const char *
skip_number(struct mr_str t, size_t *at)
{
	size_t i = *at + (t.ptr[*at] == '-'), from = i;
	bool fine = skip_digits(t, &i) && (t.ptr[from] != '0' || i == from + 1);

	if (fine && i < t.len && t.ptr[i] == '.') {
		i++;
		fine = skip_digits(t, &i);
	}
	if (fine && i < t.len && (t.ptr[i] == 'e' || t.ptr[i] == 'E')) {
		i++;
		i += i < t.len && (t.ptr[i] == '+' || t.ptr[i] == '-');
		fine = skip_digits(t, &i);
	}
	*at = fine ? i : *at;
	return fine ? NULL : "has a bad number";
}

/* "key": moves behind the colon */
static const char *
skip_key(struct mr_str t, size_t *at)
{
	static const char ends[] = "ends within an object";

	if (*at >= t.len)
		return ends;
	if (t.ptr[*at] != '"')
		return "has a member without a name";
	const char *problem = skip_string(t, at);

	if (problem)
		return problem;
	*at = json_skip_space(t, *at);
	if (*at >= t.len)
		return ends;
	if (t.ptr[*at] != ':')
		return "lacks a colon after a name";
	++*at;
	return NULL;
}

static const char *skip_items(struct mr_str t, size_t *at, unsigned most);

/* most: limit of open brackets, and so of the recursion */
static const char *
skip_value(struct mr_str t, size_t *at, unsigned most, enum json_kind *ret_kind)
{
	static const struct {
		const char *word;
		enum json_kind kind;
	} words[] = { { "null", JSON_NULL }, { "true", JSON_TRUE }, { "false", JSON_FALSE } };

	*at = json_skip_space(t, *at);
	if (*at >= t.len)
		return "ends where a value is expected";
	char c = t.ptr[*at];

	if (c == '{' || c == '[') {
		*ret_kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
		return most > 0 ? skip_items(t, at, most - 1) : json_too_deep;
	}
	if (c == '"') {
		*ret_kind = JSON_STRING;
		return skip_string(t, at);
	}
	if (c == '-' || ascii_digit(c)) {
		*ret_kind = JSON_NUMBER;
		return skip_number(t, at);
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (str_starts(str_from(t, *at), words[i].word)) {
			*at += strlen(words[i].word);
			*ret_kind = words[i].kind;
			return NULL;
		}
	return "has something that is not a value";
}

/* From the opening bracket to after the closing one. */
static const char *
skip_items(struct mr_str t, size_t *at, unsigned most)
{
	bool object = t.ptr[*at] == '{';
	char closer = object ? '}' : ']';
	enum json_kind kind;

	*at = json_skip_space(t, *at + 1);
	if (*at < t.len && t.ptr[*at] == closer) {
		++*at;
		return NULL;
	}
	for (;;) {
		const char *problem = object ? skip_key(t, at) : NULL;

		if (!problem)
			problem = skip_value(t, at, most, &kind);
		if (problem)
			return problem;
		*at = json_skip_space(t, *at);
		if (*at >= t.len)
			return object ? "ends within an object" : "ends within an array";
		if (t.ptr[*at] == closer) {
			++*at;
			return NULL;
		}
		if (t.ptr[*at] != ',')
			return "lacks a comma";
		*at = json_skip_space(t, *at + 1);
	}
}

bool
json_value_at(struct mr_str text, size_t *at, struct json_value *ret, const char **ret_problem)
{
	enum json_kind kind = JSON_NULL;
	size_t from = json_skip_space(text, *at), end = from;
	const char *problem = skip_value(text, &end, JSON_DEPTH_MAX, &kind);

	*at = end;
	if (problem && ret_problem)
		*ret_problem = problem;
	if (!problem)
		*ret = (struct json_value){ kind, { text.ptr + from, end - from } };
	return !problem;
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
		for (end = *at - 1; ascii_space(text.ptr[end - 1]);)
			end--;
		*ret_key = (struct json_value){ JSON_STRING, { text.ptr + name, end - name } };
		*at = json_skip_space(text, *at);
		ret->raw.ptr = text.ptr + *at;
		problem = skip_value(text, at, JSON_DEPTH_MAX - 1, &ret->kind);
	}
	if (!problem) { /* there is another name, or the bracket */
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
	bool whole = json_skip_space(text, at) == text.len;

	if (!whole && ret_problem)
		*ret_problem = "goes on after its end";
	if (whole)
		*ret = value;
	return whole;
}

/* ---- Walking. The text was checked, so a failure here is the end. ---- */

bool
json_item(struct json_value array, size_t *at, struct json_value *ret)
{
	if (array.kind != JSON_ARRAY)
		return false;
	*at = json_skip_space(array.raw, *at == 0 ? 1 : *at);
	if (array.raw.ptr[*at] == ',')
		++*at;
	return *at + 1 < array.raw.len && json_value_at(array.raw, at, ret, NULL);
}

bool
json_member(struct json_value object, size_t *at, struct json_value *ret_key, struct json_value *ret)
{
	const char *problem;

	return object.kind == JSON_OBJECT && *at < object.raw.len &&
	       json_member_at(object.raw, at, ret_key, ret, &problem);
}

bool
json_child(struct json_value in, size_t *at, struct json_value *ret_key, struct json_value *ret)
{
	ret_key->raw = (struct mr_str){ 0 };
	return in.kind == JSON_OBJECT ? json_member(in, at, ret_key, ret) : json_item(in, at, ret);
}

bool
json_key_is(struct json_value key, const char *name)
{
	size_t len = key.raw.len - 2;

	/* Without an escape, and usually different from the first letter on. */
	if (len > 0 && key.raw.ptr[1] != *name && key.raw.ptr[1] != '\\')
		return false;
	if (!memchr(key.raw.ptr + 1, '\\', len))
		return strncmp(key.raw.ptr + 1, name, len) == 0 && name[len] == '\0';
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	json_text(key, &plain);
	return buf_ok(&plain) && str_eq(buf_str(&plain), str_of(name));
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

struct json_value
json_get(struct json_value object, const char *key)
{
	struct json_value value = { 0 };

	(void)json_find(object, key, &value);
	return value;
}

bool
json_is(struct json_value value, const char *string)
{
	return value.kind == JSON_STRING && json_key_is(value, string);
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

static uint32_t
four_hex(const char *p)
{
	uint32_t unit = 0;

	for (int i = 0; i < 4; i++)
		unit = unit << 4 | (uint32_t)hex_digit(p[i]);
	return unit;
}

/* Reads the escape at a backslash and returns its length. Two \u escapes may be one character. */
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
			utf8_add(out, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
			return 12;
		}
	}
	utf8_add(out, unit);
	return 6;
}

void
json_text(struct json_value string, struct buf *out)
{
	if (string.kind != JSON_STRING)
		return;
	struct mr_str s = { string.raw.ptr + 1, string.raw.len - 2 };

	for (size_t n; s.len > 0; s = str_from(s, n)) {
		n = ascii_run(s, '\\', '\\');
		if (n == 0 && s.ptr[0] == '\\') {
			n = undo_escape(s, out);
			continue;
		}
		n = n > 0 ? n : utf8_next(s, &(uint32_t){ 0 });
		buf_add(out, n > 0 ? str_first(s, n) : STR("\xEF\xBF\xBD"));
		n = n > 0 ? n : 1;
	}
}
