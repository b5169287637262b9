/* SPDX-License-Identifier: MIT */
/* Any bytes as header lines: parts lie inside the input, a cleaned value can be written and read again. */
#include "fuzz.h"

#include "message/header.h"

static void
check_line(const struct header_line *line)
{
	mr_auto(buf_done) struct buf unfolded = BUF_INIT;
	mr_auto(buf_done) struct buf clean = BUF_INIT;
	mr_auto(buf_done) struct buf again = BUF_INIT;
	mr_auto(buf_done) struct buf back = BUF_INIT;
	struct mr_error err = { 0 };
	struct header_line read;

	assert(header_name_valid(line->name));
	header_unfold(&unfolded, line->raw);
	assert(unfolded.len == 0 || !memchr(unfolded.ptr, '\n', unfolded.len));
	header_clean(&clean, buf_str(&unfolded));
	assert(!header_value_problem(buf_str(&clean)));
	enum mr_rc rc = header_add(&again, "X-Fuzz", buf_str(&clean), &err);
	assert(rc == MR_OK);
	struct header_cursor c = header_begin(buf_str(&again));
	assert(header_next(&c, &read));
	header_unfold(&back, read.raw);
	assert(str_eq(buf_str(&back), str_trim(buf_str(&clean))));
	assert(!header_next(&c, &read) && c.skipped == 0 && !c.ended);
	if (header_value_problem(buf_str(&unfolded)))
		assert(header_add(&again, "X-Fuzz", buf_str(&unfolded), &err) == MR_REFUSED);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	struct header_cursor c = header_begin(text);
	mr_auto(record_done) struct record r = { 0 };
	struct mr_error err = { 0 };
	struct header_line line;
	size_t lines = 0;

	while (header_next(&c, &line)) {
		assert(lies_within(line.name, text) && lies_within(line.raw, text));
		check_line(&line);
		lines++;
	}
	assert(lies_within(c.rest, text));
	assert(c.ended || c.rest.len == 0);
	enum mr_rc rc = record_parse(text, &r, &err);
	assert(rc == MR_OK || rc == MR_CORRUPT);
	assert(rc == MR_CORRUPT || r.n >= lines);
	for (size_t i = 0; i < r.n; i++) {
		assert(!header_value_problem(str_of(r.lines[i].value)));
		assert(record_get(&r, r.lines[i].name));
		(void)record_int(&r, r.lines[i].name, 0);
	}
	return 0;
}
