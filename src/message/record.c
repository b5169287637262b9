/* SPDX-License-Identifier: MIT */
/* record.c - the small files of a room: header lines from top to bottom, empty lines allowed. */
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "message/header.h"
#include <stdio.h>

enum mr_rc
record_parse(struct mr_str text, struct record *ret, struct mr_error *err)
{
	mr_auto(record_done) struct record r = { 0 };
	mr_auto(buf_done) struct buf unfolded = BUF_INIT, clean = BUF_INIT;
	struct header_line line;
	size_t cap = 0;

	for (struct header_cursor c = header_begin(text);; c = header_begin(c.rest)) {
		while (header_next(&c, &line)) {
			if (!header_is_plain(line.raw)) {
				buf_clear(&unfolded);
				buf_clear(&clean);
				header_unfold(&unfolded, line.raw);
				header_clean(&clean, buf_str(&unfolded));
				line.raw = buf_str(&clean);
			}
			TRY(mr_got(arena_grow(&r.own, &r.lines, r.n, &cap, sizeof(*r.lines)), err));
			struct mr_header *at = &r.lines[r.n++];

			*at = (struct mr_header){ arena_dup(&r.own, line.name), arena_dup(&r.own, line.raw) };
			TRY(mr_got(at->name && at->value && buf_ok(&unfolded) && buf_ok(&clean), err));
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
	for (size_t i = 0; i < r->n; i++)
		if (ascii_caseeq(r->lines[i].name, name))
			return r->lines[i].value;
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

bool
record_has(const struct record *r, const char *name, const char *value)
{
	for (size_t i = 0; i < r->n; i++)
		if (ascii_caseeq(r->lines[i].name, name) && strcmp(r->lines[i].value, value) == 0)
			return true;
	return false;
}

void
record_done(struct record *r)
{
	if (!r)
		return;
	arena_free(r->own);
	*r = (struct record){ 0 };
}

int64_t
record_time(const struct record *r, const char *name)
{
	const char *value = record_get(r, name);
	int64_t ms;

	return value && time_parse_rfc3339(str_of(value), &ms) ? ms : 0;
}

/* ---- A struct as lines ---- */

void
record_read(const struct record *r, const struct record_field *fields, size_t n, void *ret)
{
	for (const struct record_field *f = fields; f < fields + n; f++) {
		void *at = (char *)ret + f->at;
		const char *value = record_get(r, f->name);
		int64_t number = record_int(r, f->name, 0);

		switch (f->kind) {
		case RECORD_TEXT:
			*(const char **)at = value ? value : "";
			break;
		case RECORD_COUNT:
		case RECORD_SOME:
			*(unsigned *)at = number > 0 && number <= UINT32_MAX ? (unsigned)number : 0;
			break;
		case RECORD_YES:
			*(bool *)at = value && ascii_caseeq(value, "yes");
			break;
		case RECORD_NUMBER:
			*(int64_t *)at = number;
			break;
		case RECORD_TIME:
			*(int64_t *)at = record_time(r, f->name);
			break;
		case RECORD_PROCESS:
			if (!value || !process_parse(str_of(value), at))
				*(struct mr_process *)at = (struct mr_process){ 0 };
			break;
		}
	}
}

void
record_add(struct buf *out, const char *name, const char *value)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	if (!value || !*value)
		return;
	header_clean(&clean, str_of(value));
	if (!buf_ok(&clean) || header_add(out, name, str_trim(buf_str(&clean)), IGNORED) != MR_OK)
		out->failed = true;
}

void
record_write(struct buf *out, const struct record_field *fields, size_t n, const void *from)
{
	for (const struct record_field *f = fields; f < fields + n; f++) {
		const void *at = (const char *)from + f->at;
		mr_auto(buf_done) struct buf text = BUF_INIT;
		char time[RFC3339_LEN + 1] = "";

		switch (f->kind) {
		case RECORD_TEXT:
			record_add(out, f->name, *(const char *const *)at);
			break;
		case RECORD_YES:
			buf_adds(&text, *(const bool *)at ? "yes" : "no");
			break;
		case RECORD_SOME:
		case RECORD_COUNT:
			if (f->kind == RECORD_COUNT || *(const unsigned *)at != 0)
				buf_addf(&text, "%u", *(const unsigned *)at);
			break;
		case RECORD_NUMBER:
			if (*(const int64_t *)at != 0)
				buf_addf(&text, "%lld", (long long)*(const int64_t *)at);
			break;
		case RECORD_TIME:
			if (*(const int64_t *)at > 0)
				time_rfc3339(*(const int64_t *)at, time);
			buf_adds(&text, time);
			break;
		case RECORD_PROCESS:
			if (((const struct mr_process *)at)->pid != 0)
				process_format(at, &text);
			break;
		}
		out->failed |= text.failed;
		record_add(out, f->name, buf_z(&text));
	}
}
