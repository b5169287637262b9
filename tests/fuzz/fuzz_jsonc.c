/* SPDX-License-Identifier: MIT */
/* Any bytes as a settings file: what is put into it anywhere can be taken out again, and every byte is as it was. */
#include "fuzz.h"

#include "message/jsonc.h"

static const struct jsonc_node *
nth_container(const struct jsonc_node *node, size_t *n)
{
	if (node->kind != JSON_OBJECT && node->kind != JSON_ARRAY)
		return NULL;
	if ((*n)-- == 0)
		return node;
	for (const struct jsonc_node *c = node->first; c; c = c->next) {
		const struct jsonc_node *found = nth_container(c, n);

		if (found)
			return found;
	}
	return NULL;
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
	const struct jsonc_node *in = nth_container(doc.root, &n);

	if (!in)
		return false;
	jsonc_insert(&doc, in, in->kind == JSON_OBJECT ? "new" : NULL, value, &with);
	assert(jsonc_parse(buf_str(&with), &changed, &err) == MR_OK);
	const struct jsonc_node *again = nth_container(changed.root, &same);

	assert(again && again->n == in->n + 1 && again->kind == in->kind);
	jsonc_remove(&changed, again->last, false, &without);
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
