/* SPDX-License-Identifier: MIT */
/* header.c - splitting, unfolding, checking and folding header lines. */
#include "message/header.h"

#include "base/error.h"
#include "base/text.h"
#include "message/mime.h"

enum { NAME_MAX_LEN = 76, FOLD_AT = 900 /* RFC 5322 allows 998 bytes a line */ };

struct header_cursor
header_begin(struct mr_str text)
{
	return (struct header_cursor){ .rest = text };
}

bool
header_next(struct header_cursor *c, struct header_line *ret)
{
	struct mr_str line;

	while (!c->ended && str_line(&c->rest, &line)) {
		if (line.len == 0) {
			c->ended = true;
			return false;
		}
		/* A name is short: looking no further keeps one huge line of garbage cheap. */
		struct mr_str window = str_first(line, line.len < 2 * NAME_MAX_LEN ? line.len : 2 * NAME_MAX_LEN), more;

		/* A continuation of nothing, or of a line that was no header line. */
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

bool
header_value_valid(struct mr_str value)
{
	return !header_value_problem(value);
}

/* Where to break so that at most `room` bytes stay on this line, else as soon as possible; 0: nowhere. Only a single
 * space between two words will do: unfolding makes exactly that of the break again. */
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
		    "header '%s' %s\na header is one line of UTF-8 text; more belongs into the body", name, problem);
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
