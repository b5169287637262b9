/* SPDX-License-Identifier: MIT */
/* Any bytes as registry.json: what is taken out of it is written as JSON, a line an entry, and read again as it was. */
#include "fuzz.h"

#include "message/json_read.h"
#include "rooms/handoff/handoff.h"

static size_t
count_lines(struct mr_str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.len; i++)
		n += text.ptr[i] == '\n';
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	mr_auto(registry_done) struct registry r = { 0 }, again = { 0 };
	mr_auto(buf_done) struct buf out = BUF_INIT, twice = BUF_INIT;
	struct mr_error err = { 0 };
	struct json_value all;
	const char *problem;

	enum mr_rc rc = registry_parse(text, &r, &err);
	assert(rc == MR_OK);
	registry_write(&r, "/root", &out);
	assert(json_whole(buf_str(&out), &all, &problem) && all.kind == JSON_OBJECT);
	assert(count_lines(buf_str(&out)) == (r.n ? r.n + 2 : 1));
	rc = registry_parse(buf_str(&out), &again, &err);
	assert(rc == MR_OK && !again.broken && again.n == r.n);
	registry_write(&again, "/root", &twice);
	assert(str_eq(buf_str(&out), buf_str(&twice)));
	for (size_t i = 0; i < r.n; i++) {
		assert(strcmp(r.v[i].id, again.v[i].id) == 0);
		assert(registry_with_id(&again, str_of(r.v[i].id)));
		if (handoff_id_ok(str_of(r.v[i].id)))
			assert(!strchr(r.v[i].id, '/') && r.v[i].id[0] != '.');
	}
	return 0;
}
