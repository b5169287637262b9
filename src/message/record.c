/* SPDX-License-Identifier: MIT */
/* record.c - the small files of a room: header lines from top to bottom, empty lines allowed. */
#include "base/error.h"
#include "message/header.h"

/* Borrowed from scratch. */
static struct mr_str
made_valid(struct mr_str raw, struct buf *scratch)
{
	mr_auto(buf_done) struct buf unfolded = BUF_INIT;

	header_unfold(&unfolded, raw);
	buf_clear(scratch);
	header_clean(scratch, buf_str(&unfolded));
	scratch->failed |= !buf_ok(&unfolded);
	return buf_str(scratch);
}

static bool
add_line(struct record *r, size_t *cap, const struct header_line *line, struct buf *scratch)
{
	if (r->n == *cap) {
		size_t more = *cap ? 2 * *cap : 16;
		struct mr_header *grown = arena_alloc(&r->own, more * sizeof(*grown));
		if (!grown)
			return false;
		if (r->n > 0)
			memcpy(grown, r->lines, r->n * sizeof(*grown));
		r->lines = grown;
		*cap = more;
	}
	struct mr_header *at = &r->lines[r->n];
	at->name = arena_dup(&r->own, line->name);
	at->value = arena_dup(&r->own, header_is_plain(line->raw) ? line->raw : made_valid(line->raw, scratch));
	if (!at->name || !at->value || !buf_ok(scratch))
		return false;
	r->n++;
	return true;
}

enum mr_rc
record_parse(struct mr_str text, struct record *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record r = { 0 };
	mr_auto(buf_done) struct buf scratch = BUF_INIT;
	struct header_line line;
	size_t cap = 0;

	for (struct header_cursor c = header_begin(text);; c = header_begin(c.rest)) {
		while (header_next(&c, &line)) {
			if (!add_line(&r, &cap, &line, &scratch))
				return mr_nomem(err);
		}
		r.skipped += c.skipped;
		if (c.rest.len == 0)
			break;
	}
	if (r.n == 0 && r.skipped > 0)
		return mr_fail(err, MR_CORRUPT, "not a file of 'Name: value' lines");
	*ret = r;
	r = (struct record){ 0 };
	return MR_OK;
}

const char *
record_get(const struct record *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++) {
		if (ascii_caseeq(r->lines[i].name, name))
			return r->lines[i].value;
	}
	return NULL;
}

int64_t
record_int(const struct record *r, const char *name, int64_t otherwise)
{
	const char *value = record_get(r, name);
	uint64_t number;

	if (!value)
		return otherwise;
	bool negative = value[0] == '-';
	if (!str_to_u64(str_of(value + negative), &number) || number > INT64_MAX)
		return otherwise;
	return negative ? -(int64_t)number : (int64_t)number;
}

void
record_done(struct record *r)
{
	if (!r)
		return;
	arena_free(r->own);
	*r = (struct record){ 0 };
}
