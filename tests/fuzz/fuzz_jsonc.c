/* SPDX-License-Identifier: MIT */
/* Any bytes as a settings file: what is put into it anywhere can be taken out again, and every byte is as it was. */
#include "fuzz.h"

#include "message/jsonc.h"

static size_t
children_of(struct json_value in, struct json_value *ret_last)
{
	struct json_value key;
	size_t n = 0;

	for (size_t at = 0; json_child(in, &at, &key, ret_last);)
		n++;
	return n;
}

static struct json_value
nth_container(struct json_value in, size_t *n)
{
	struct json_value key, one, found = { 0 };

	if (in.kind != JSON_OBJECT && in.kind != JSON_ARRAY)
		return found;
	if ((*n)-- == 0)
		return in;
	for (size_t at = 0; !found.raw.ptr && json_child(in, &at, &key, &one);)
		found = nth_container(one, n);
	return found;
}

/* False: there is no n-th object or array. */
static bool
in_and_out(struct mr_str text, size_t n, struct mr_str value)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 }, changed = { 0 };
	mr_auto(buf_done) struct buf with = BUF_INIT, without = BUF_INIT;
	struct mr_error err = { 0 };
	size_t same = n;

	assert(jsonc_parse(text, &doc, &err) == MR_OK);
	struct json_value in = nth_container(doc.root, &n), last;

	if (!in.raw.ptr)
		return false;
	jsonc_insert(&doc, in, in.kind == JSON_OBJECT ? "new" : NULL, value, &with);
	assert(jsonc_parse(buf_str(&with), &changed, &err) == MR_OK);
	struct json_value again = nth_container(changed.root, &same);

	assert(again.raw.ptr && again.kind == in.kind && children_of(again, &last) == children_of(in, &last) + 1);
	(void)children_of(again, &last);
	jsonc_remove(&changed, last, false, &without);
	assert(str_eq(buf_str(&without), text));
	return true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	mr_auto(jsonc_done) struct jsonc doc = { 0 };
	struct mr_str text = input_of(data, size);
	struct mr_error err = { 0 };
	enum mr_rc rc = size < 65536 ? jsonc_parse(text, &doc, &err) : MR_EMPTY;

	assert(rc == MR_OK || rc == MR_EMPTY || (rc == MR_CORRUPT && err.message[0]));
	for (size_t n = 0; rc == MR_OK && n < 8; n++)
		if (!in_and_out(text, n, n % 2 ? STR("1") : STR("{\"a\":[{\"b\":\"c\"},[]]}")))
			break;
	return 0;
}
