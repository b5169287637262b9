/* SPDX-License-Identifier: MIT */
/* text.c - UTF-8, showing text of others, JSON strings, similar names. */
#include "base/text.h"

/* ---- UTF-8 ---- */

int
hex_digit(char c)
{
	if (ascii_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Sixteen bytes at a time: nearly all mail is such text, and most of it is read more than once. */
size_t
ascii_run(struct mr_str s, char stop, char or_stop)
{
	typedef unsigned char sixteen __attribute__((vector_size(16)));
	unsigned char first = (unsigned char)stop, second = (unsigned char)or_stop;
	sixteen bytes, odd;
	uint64_t half[2];
	size_t n = 0;

	for (; n + 16 <= s.len; n += 16) {
		memcpy(&bytes, s.ptr + n, 16);
		odd = (sixteen)(bytes < 0x20) | (sixteen)(bytes >= 0x7F) | (sixteen)(bytes == first) |
		      (sixteen)(bytes == second);
		memcpy(half, &odd, sizeof(half));
		if (half[0] | half[1]) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
			return n + (size_t)(half[0] ? __builtin_ctzll(half[0]) : 64 + __builtin_ctzll(half[1])) / 8;
#else
			break;
#endif
		}
	}
	for (; n < s.len; n++) {
		unsigned char c = (unsigned char)s.ptr[n];

		if (c < 0x20 || c >= 0x7F || c == first || c == second)
			break;
	}
	return n;
}

size_t
utf8_next(struct mr_str s, uint32_t *ret_cp)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char first = s.len > 0 ? (unsigned char)s.ptr[0] : 0xFF;
	/* C0 and C1 could only begin overlong forms */
	size_t n = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first <= 0xF4 ? 4 : 0;

	if (n == 0 || n > s.len)
		return 0;
	uint32_t cp = n == 1 ? first : first & (0xFFU >> (n + 1));
	for (size_t i = 1; i < n; i++) {
		unsigned char c = (unsigned char)s.ptr[i];
		if ((c & 0xC0) != 0x80)
			return 0;
		cp = cp << 6 | (c & 0x3F);
	}
	if (cp < least[n] || cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
		return 0;
	*ret_cp = cp;
	return n;
}

void
utf8_add(struct buf *out, uint32_t cp)
{
	if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF))
		cp = 0xFFFD;
	if (cp < 0x80) {
		buf_addc(out, (char)cp);
		return;
	}
	unsigned more = cp < 0x800 ? 1 : cp < 0x10000 ? 2 : 3;

	buf_addc(out, (char)((0xFF00u >> (more + 1) & 0xFFu) | cp >> 6 * more));
	while (more-- > 0)
		buf_addc(out, (char)(0x80 | (cp >> 6 * more & 0x3F)));
}

#define BAD UINT32_MAX
#define ANY 0x7F /* no further byte to stop at */

/* Takes the next character off s; a bad byte comes as BAD. */
static uint32_t
take(struct mr_str *s)
{
	uint32_t cp = BAD;
	size_t n = utf8_next(*s, &cp);

	if (n == 0)
		n = 1;
	*s = str_from(*s, n);
	return cp;
}

bool
utf8_valid(struct mr_str s)
{
	while (s.len > 0) {
		size_t plain = ascii_run(s, ANY, ANY);

		s = str_from(s, plain);
		if (s.len > 0 && take(&s) == BAD)
			return false;
	}
	return true;
}

bool
utf8_text(struct mr_str s)
{
	return str_find(s, '\0') == s.len && utf8_valid(s);
}

struct range {
	uint32_t from, to;
};

static bool
is_in(uint32_t cp, const struct range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (cp >= ranges[i].from && cp <= ranges[i].to)
			return true;
	return false;
}
#define IS_IN(cp, ranges) is_in((cp), (ranges), sizeof(ranges) / sizeof((ranges)[0]))

static size_t
width_of(uint32_t cp)
{
	static const struct range none[] = { { 0x0300, 0x036F }, { 0x0483, 0x0489 }, { 0x0591, 0x05BD },
		{ 0x0610, 0x061A }, { 0x064B, 0x065F }, { 0x093A, 0x093C }, { 0x0941, 0x0948 }, { 0x0E31, 0x0E31 },
		{ 0x0E34, 0x0E3A }, { 0x0E47, 0x0E4E }, { 0x1AB0, 0x1AFF }, { 0x1DC0, 0x1DFF }, { 0x200B, 0x200F },
		{ 0x20D0, 0x20FF }, { 0xFE00, 0xFE0F }, { 0xFE20, 0xFE2F }, { 0x1F3FB, 0x1F3FF },
		{ 0xE0100, 0xE01EF } };
	static const struct range wide[] = { { 0x1100, 0x115F }, { 0x231A, 0x231B }, { 0x23E9, 0x23EC },
		{ 0x25FD, 0x25FE }, { 0x2614, 0x2615 }, { 0x2648, 0x2653 }, { 0x26A1, 0x26A1 }, { 0x26AA, 0x26AB },
		{ 0x26BD, 0x26BE }, { 0x26D4, 0x26D4 }, { 0x2705, 0x2705 }, { 0x270A, 0x270B }, { 0x2728, 0x2728 },
		{ 0x274C, 0x274C }, { 0x2753, 0x2757 }, { 0x2795, 0x2797 }, { 0x2B50, 0x2B50 }, { 0x2E80, 0x303E },
		{ 0x3041, 0xA4CF }, { 0xAC00, 0xD7A3 }, { 0xF900, 0xFAFF }, { 0xFE30, 0xFE6F }, { 0xFF00, 0xFF60 },
		{ 0xFFE0, 0xFFE6 }, { 0x1F000, 0x1F02F }, { 0x1F18E, 0x1F19A }, { 0x1F200, 0x1F64F },
		{ 0x1F680, 0x1F6FF }, { 0x1F7E0, 0x1F7EB }, { 0x1F900, 0x1FAFF }, { 0x20000, 0x3FFFD } };

	if (cp < 0x20 || (cp >= 0x7F && cp < 0xA0))
		return 0;
	if (cp < 0x300)
		return 1;
	if (IS_IN(cp, none))
		return 0;
	return IS_IN(cp, wide) ? 2 : 1;
}

enum unit { CHARS, BYTES, COLUMNS };

static size_t
measure(struct mr_str s, enum unit unit)
{
	size_t size = 0;

	while (s.len > 0) {
		size_t plain = ascii_run(s, ANY, ANY);

		s = str_from(s, plain);
		size += plain;
		if (s.len > 0) {
			uint32_t cp = take(&s);

			size += unit == COLUMNS ? width_of(cp) : 1;
		}
	}
	return size;
}

size_t
utf8_chars(struct mr_str s)
{
	return measure(s, CHARS);
}

size_t
utf8_width(struct mr_str s)
{
	return measure(s, COLUMNS);
}

/* As many whole characters as fit. */
static struct mr_str
cut(struct mr_str s, size_t room, enum unit unit)
{
	struct mr_str rest = s, after = s;

	for (size_t used = 0; rest.len > 0; rest = after) {
		uint32_t cp = take(&after);

		used += unit == CHARS ? 1 : unit == BYTES ? rest.len - after.len : width_of(cp);
		if (used > room)
			break;
	}
	return str_first(s, s.len - rest.len);
}

struct mr_str
utf8_cut(struct mr_str s, size_t chars)
{
	return cut(s, chars, CHARS);
}

struct mr_str
utf8_within(struct mr_str s, size_t bytes)
{
	return cut(s, bytes, BYTES);
}

struct mr_str
utf8_fit(struct mr_str s, size_t columns)
{
	return cut(s, columns, COLUMNS);
}

size_t
text_fit(struct buf *out, struct mr_str s, size_t columns)
{
	bool wide = utf8_width(s) > columns;

	if (wide)
		s = utf8_fit(s, columns > 0 ? columns - 1 : 0);
	buf_add(out, s);
	if (!wide || columns == 0)
		return utf8_width(s);
	buf_adds(out, "\xE2\x80\xA6");
	return utf8_width(s) + 1;
}

/* ---- Showing ---- */

/* Characters that steer a terminal, reorder a line, or hide text from its reader. */
static bool
is_treacherous(uint32_t cp)
{
	static const struct range ranges[] = { { 0x00, 0x08 }, { 0x0B, 0x1F }, { 0x7F, 0x9F }, { 0x061C, 0x061C },
		{ 0x200B, 0x200F }, { 0x2028, 0x202E }, { 0x2060, 0x206F }, { 0xFEFF, 0xFEFF }, { 0xFFF9, 0xFFFB },
		{ 0xE0000, 0xE007F } };

	return IS_IN(cp, ranges);
}

#define JOINER 0x200D
#define SYMBOLS 0x2190 /* from here on: arrows, symbols, emoji, east Asian scripts */

static void
clean(struct buf *out, struct mr_str s, bool one_line)
{
	uint32_t before = 0; /* the last character that was let through */

	while (s.len > 0) {
		size_t plain = ascii_run(s, ANY, ANY);

		if (plain > 0) {
			buf_add(out, str_first(s, plain));
			before = (unsigned char)s.ptr[plain - 1];
			s = str_from(s, plain);
			continue;
		}
		struct mr_str at = s;
		uint32_t cp = take(&s), next = 0;

		/* The joiner combines emoji (a family, a flag); anywhere else it only hides text. */
		bool joins = cp == JOINER && before >= SYMBOLS && utf8_next(s, &next) > 0 && next >= SYMBOLS &&
			     !is_treacherous(next);

		if (cp == '\r' && s.len > 0 && s.ptr[0] == '\n')
			continue;
		if (cp == BAD) {
			buf_adds(out, "\xEF\xBF\xBD");
			before = 0;
		} else if (one_line && (cp == '\n' || cp == '\t')) {
			buf_addc(out, ' ');
			before = 0;
		} else if (is_treacherous(cp) && !joins) {
			buf_addf(out, "<U+%04X>", (unsigned)cp);
			before = 0;
		} else {
			buf_add(out, str_first(at, at.len - s.len));
			before = cp;
		}
	}
}

void
text_clean(struct buf *out, struct mr_str s)
{
	clean(out, s, false);
}

void
text_clean_line(struct buf *out, struct mr_str s)
{
	clean(out, s, true);
}

/* ---- JSON ---- */

/* JSON goes to terminals, too: dangerous characters are escaped, which loses nothing. */
void
json_escape(struct buf *out, struct mr_str s, bool only_what_must)
{
	static const char plain_of[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";

	while (s.len > 0) {
		size_t plain = ascii_run(s, '"', '\\');

		buf_add(out, str_first(s, plain));
		s = str_from(s, plain);
		if (s.len == 0)
			break;
		struct mr_str at = s;
		uint32_t cp = take(&s);

		const char *found = cp != 0 && cp < 0x80 ? strchr(plain_of, (int)cp) : NULL;

		if (cp == BAD)
			buf_adds(out, "\xEF\xBF\xBD");
		else if (found)
			buf_addf(out, "\\%c", letters[found - plain_of]);
		else if (cp >= 0x20 && (only_what_must || !is_treacherous(cp)))
			buf_add(out, str_first(at, at.len - s.len));
		else if (cp > 0xFFFF)
			buf_addf(out, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((cp - 0x10000) >> 10)),
			    (unsigned)(0xDC00 + ((cp - 0x10000) & 0x3FF)));
		else
			buf_addf(out, "\\u%04x", (unsigned)cp);
	}
}

void
json_string(struct buf *out, struct mr_str s)
{
	buf_addc(out, '"');
	json_escape(out, s, false);
	buf_addc(out, '"');
}

void
json_stringify(struct buf *out, struct mr_str s)
{
	buf_addc(out, '"');
	json_escape(out, s, true);
	buf_addc(out, '"');
}

/* ---- Similar names ---- */

#define LONGEST_NAME 255

/* Insert, delete, replace, and swap of two neighbours, each costs one. */
size_t
edit_distance(const char *a, const char *b, size_t limit)
{
	size_t rows[3][LONGEST_NAME + 1];
	size_t *older = rows[0], *old = rows[1], *now = rows[2];
	size_t an = strlen(a), bn = strlen(b);

	if (an > LONGEST_NAME || bn > LONGEST_NAME || (an > bn ? an - bn : bn - an) > limit)
		return limit + 1;
	for (size_t j = 0; j <= bn; j++)
		old[j] = j;
	for (size_t i = 1; i <= an; i++) {
		now[0] = i;
		for (size_t j = 1; j <= bn; j++) {
			bool same = ascii_lower(a[i - 1]) == ascii_lower(b[j - 1]);
			size_t replaced = old[j - 1] + (same ? 0 : 1);
			size_t best = (old[j] < now[j - 1] ? old[j] : now[j - 1]) + 1;

			best = replaced < best ? replaced : best;
			if (i > 1 && j > 1 && ascii_lower(a[i - 1]) == ascii_lower(b[j - 2]) &&
			    ascii_lower(a[i - 2]) == ascii_lower(b[j - 1]))
				best = older[j - 2] < best ? older[j - 2] + 1 : best;
			now[j] = best;
		}
		size_t *spare = older;
		older = old;
		old = now;
		now = spare;
	}
	return old[bn] <= limit ? old[bn] : limit + 1;
}
