/* SPDX-License-Identifier: MIT */
/* header.c - splitting, unfolding, checking and folding header lines; the small files of a room, which consist of such
 * lines. */
#include "message/header.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "message/mime.h"

enum { NAME_MAX_LEN = 76, FOLD_AT = 900 /* RFC 5322 allows 998 bytes a line */ };

bool
header_next(struct header_cursor *c, struct header_line *ret)
{
	struct mr_str line;

	while (!c->ended && str_line(&c->rest, &line)) {
		if (line.len == 0) {
			c->ended = true;
			return false;
		}
		/* A name is short, so only a short window is searched: a huge line of garbage stays cheap. */
		struct mr_str window = str_first(line, line.len < 2 * NAME_MAX_LEN ? line.len : 2 * NAME_MAX_LEN), more;

		/* A continuation without a line before it, or of a line that is not a header line. */
		if (ascii_blank(line.ptr[0]) || !str_split(window, ':', &window, &more) ||
		    !header_name_valid(str_trim(window))) {
			c->skipped++;
			continue;
		}
		ret->name = str_trim(window);
		ret->raw = str_between(more.ptr, line.ptr + line.len);
		while (c->rest.len > 0 && ascii_blank(c->rest.ptr[0]) && str_line(&c->rest, &line))
			ret->raw.len = (size_t)(line.ptr + line.len - ret->raw.ptr);
		while (ret->raw.len > 0 && ascii_space(ret->raw.ptr[0]))
			ret->raw = str_from(ret->raw, 1);
		ret->raw = str_trim_end(ret->raw);
		return true;
	}
	return false;
}

bool
header_is_plain(struct mr_str raw)
{
	return ascii_run(raw, 0x7F, 0x7F) == raw.len;
}

void
header_unfold(struct buf *out, struct mr_str raw)
{
	for (struct mr_str line; str_split(raw, '\n', &line, &raw);) {
		buf_add(out, str_ends(line, "\r") ? str_first(line, line.len - 1) : line);
		buf_addc(out, ' ');
		while (raw.len > 0 && ascii_blank(raw.ptr[0]))
			raw = str_from(raw, 1);
	}
	buf_add(out, raw);
}

void
header_clean(struct buf *out, struct mr_str value)
{
	uint32_t cp;

	for (size_t n; value.len > 0; value = str_from(value, n)) {
		char c = value.ptr[0];

		n = ascii_run(value, 0x7F, 0x7F);
		n = n > 0 ? n : utf8_next(value, &cp);
		if (n == 0)
			utf8_add(out, (unsigned char)c);
		else if (c == '\0' || c == '\r' || c == '\n')
			buf_addc(out, ' ');
		else
			buf_add(out, str_first(value, n));
		n = n > 0 ? n : 1;
	}
}

bool
header_name_valid(struct mr_str name)
{
	for (size_t i = 0; i < name.len; i++)
		if (name.ptr[i] <= ' ' || name.ptr[i] > '~' || name.ptr[i] == ':')
			return false;
	return name.len >= 1 && name.len <= NAME_MAX_LEN;
}

const char *
header_value_problem(struct mr_str value)
{
	if (str_find(value, '\n') < value.len || str_find(value, '\r') < value.len)
		return "has a line break";
	if (str_find(value, '\0') < value.len)
		return "has a NUL byte";
	return utf8_valid(value) ? NULL : "is not valid UTF-8";
}

/* The place for a break so that at most `room` bytes stay on this line, else the first possible one; 0: none. Only at a
 * single space between two words, because unfolding turns the break into exactly that. */
static size_t
fold_point(struct mr_str s, size_t room)
{
	size_t late = 0;

	for (size_t at = 1; at + 1 < s.len && (at <= room || late == 0); at++)
		if (s.ptr[at] == ' ' && !ascii_blank(s.ptr[at - 1]) && !ascii_blank(s.ptr[at + 1]))
			late = at;
	return late;
}

enum mr_rc
header_add(struct buf *out, const char *name, struct mr_str value, struct mr_error *err)
{
	const char *problem = header_value_problem(value);

	if (!header_name_valid(str_of(name)))
		return mr_fail(err, MR_REFUSED,
		    "header name is not valid\nuse 1-76 printable ASCII characters without space and colon");
	if (problem)
		return mr_fail(err, MR_REFUSED,
		    "header '%s' %s\na header is one line of UTF-8 text; longer text goes into the body", name,
		    problem);
	value = str_trim(value);
	buf_adds(out, name);
	buf_adds(out, ": ");
	for (size_t at, column = strlen(name) + 2; column + value.len > FOLD_AT; column = 1) {
		at = fold_point(value, FOLD_AT - column);
		if (at == 0)
			break;
		buf_add(out, str_first(value, at));
		buf_adds(out, "\n ");
		value = str_from(value, at + 1);
	}
	buf_add(out, value);
	buf_addc(out, '\n');
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

/* ---- Small files: empty lines are allowed ---- */

enum mr_rc
record_and_rest(struct mr_str text, struct record *ret, struct mr_str *ret_rest, struct mr_error *err)
{
	struct header_cursor c = header_begin(text);
	struct header_line line;

	while (header_next(&c, &line))
		;
	*ret_rest = c.rest;
	return record_parse(str_first(text, text.len - c.rest.len), ret, err);
}

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

unsigned
record_word(const struct record *r, const char *name, const char *const *words, unsigned otherwise)
{
	const char *value = record_get(r, name);

	for (unsigned i = 0; value && words[i]; i++)
		if (ascii_caseeq(value, words[i]))
			return i;
	return otherwise;
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
