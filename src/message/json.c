/* SPDX-License-Identifier: MIT */
/* json.c - writing JSON. */
#include "message/json.h"

#include "base/clock.h"
#include "base/text.h"
#include <assert.h>

static void
begin_value(struct json *j)
{
	if (j->comma)
		buf_addc(j->out, ',');
}

/* At the top level a new value is a new line of NDJSON, not the next member. */
static void
end_value(struct json *j)
{
	j->comma = j->depth > 0;
}

void
json_open(struct json *j, char bracket)
{
	assert(j->depth < sizeof(j->closer));
	assert(bracket == '{' || bracket == '[');
	begin_value(j);
	buf_addc(j->out, bracket);
	j->closer[j->depth++] = bracket == '{' ? '}' : ']';
	j->comma = false;
}

void
json_close(struct json *j)
{
	assert(j->depth > 0);
	buf_addc(j->out, j->closer[--j->depth]);
	end_value(j);
}

void
json_key(struct json *j, const char *key)
{
	begin_value(j);
	json_string(j->out, str_of(key));
	buf_addc(j->out, ':');
	j->comma = false;
}

void
json_raw(struct json *j, struct mr_str value)
{
	bool in_string = false;
	size_t n;

	begin_value(j);
	for (; value.len > 0; value.ptr += n, value.len -= n) {
		char c = value.ptr[0];

		n = 1;
		if (in_string && c != '"' && c != '\\') {
			while (n < value.len && value.ptr[n] != '"' && value.ptr[n] != '\\')
				n++;
			json_escape(j->out, str_first(value, n), false);
			continue;
		}
		if (!in_string && (c == ' ' || c == '\t' || c == '\n' || c == '\r'))
			continue;
		if (c == '\\' && value.len > 1)
			n = 2;
		else if (c == '"')
			in_string = !in_string;
		buf_add(j->out, str_first(value, n));
	}
	end_value(j);
}

void
json_str(struct json *j, struct mr_str value)
{
	begin_value(j);
	json_string(j->out, value);
	end_value(j);
}

static void
add_word(struct json *j, const char *word)
{
	begin_value(j);
	buf_adds(j->out, word);
	end_value(j);
}

void
json_int(struct json *j, int64_t value)
{
	char digits[24] = "-";

	(void)text_number(digits + 1, value < 0 ? -(uint64_t)value : (uint64_t)value, 0);
	add_word(j, value < 0 ? digits : digits + 1);
}

void
json_bool(struct json *j, bool value)
{
	add_word(j, value ? "true" : "false");
}

void
json_null(struct json *j)
{
	add_word(j, "null");
}

void
json_key_str(struct json *j, const char *key, const char *value)
{
	json_key(j, key);
	if (value)
		json_str(j, str_of(value));
	else
		json_null(j);
}

void
json_time(struct json *j, int64_t ms)
{
	char text[RFC3339_LEN + 1];

	if (ms == 0) {
		json_null(j);
		return;
	}
	time_rfc3339(ms, text);
	json_str(j, str_of(text));
}

void
json_names(struct json *j, const struct mr_names *names)
{
	json_open(j, '[');
	for (size_t i = 0; i < names->n; i++)
		json_str(j, str_of(names->v[i]));
	json_close(j);
}
