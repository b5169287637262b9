/* SPDX-License-Identifier: MIT */
/* Any bytes as JSON: values lie inside the text, what is whole can be walked, a string survives being written again. */
#include "fuzz.h"

#include "base/text.h"
#include "message/json_read.h"

static void
check_string(struct json_value value)
{
	mr_auto(buf_done) struct buf plain = BUF_INIT, again = BUF_INIT, back = BUF_INIT;
	struct json_value read;
	const char *problem = NULL;

	json_text(value, &plain);
	assert(utf8_valid(buf_str(&plain)));
	json_stringify(&again, buf_str(&plain));
	assert(json_whole(buf_str(&again), &read, &problem) && read.kind == JSON_STRING);
	json_text(read, &back);
	assert(str_eq(buf_str(&plain), buf_str(&back)));
}

static void
check_value(struct json_value value, struct mr_str text, unsigned depth)
{
	struct json_value key, one;

	assert(lies_within(value.raw, text) && value.raw.len > 0);
	(void)json_truthy(value);
	if (value.kind == JSON_STRING)
		check_string(value);
	if (depth == 0)
		return;
	for (size_t at = 0; json_item(value, &at, &one);)
		check_value(one, value.raw, depth - 1);
	for (size_t at = 0; json_member(value, &at, &key, &one);) {
		assert(key.kind == JSON_STRING && lies_within(key.raw, value.raw));
		check_value(one, value.raw, depth - 1);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	struct json_value value;
	const char *problem = NULL;
	size_t at = 0;

	if (json_value_at(text, &at, &value, &problem))
		check_value(value, text, 3);
	else
		assert(problem && problem[0]);
	assert(at <= text.len);
	size_t from = json_skip_space(text, 0);

	if (from < text.len && text.ptr[from] == '{') { /* in one pass it is the same */
		struct json_value key;
		const char *why;

		while (json_member_at(text, &from, &key, &value, &why))
			assert(lies_within(key.raw, text) && lies_within(value.raw, text));
		assert(from == at && (why ? problem && strcmp(why, problem) == 0 : !problem));
	}
	if (json_whole(text, &value, &problem))
		assert(json_skip_space(text, at) == text.len);
	return 0;
}
