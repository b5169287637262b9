/* SPDX-License-Identifier: MIT */
/* date.c - dates as text: RFC 3339 as mailroom writes them, RFC 5322 as mail has them. */
#include "base/clock.h"

#include <stdio.h>

static const char month_names[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov",
	"Dec" };
static const char day_names[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

/* Seconds, rounded towards the past, and the milliseconds left. */
static int64_t
split_ms(int64_t ms, int *ret_rest)
{
	int64_t seconds = ms / 1000;
	int rest = (int)(ms % 1000);

	if (rest < 0) {
		rest += 1000;
		seconds--;
	}
	*ret_rest = rest;
	return seconds;
}

void
time_rfc3339(int64_t ms, char ret[RFC3339_LEN + 1])
{
	int rest;
	struct civil c = civil_of(split_ms(ms, &rest));
	const struct {
		int value;
		unsigned digits;
		char end;
	} parts[] = { { c.year, 4, '-' }, { c.month, 2, '-' }, { c.day, 2, 'T' }, { c.hour, 2, ':' },
		{ c.minute, 2, ':' }, { c.second, 2, '.' }, { rest, 3, 'Z' } };
	char *at = ret;

	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		unsigned left = parts[i].value < 0 ? 0 : (unsigned)parts[i].value;

		for (unsigned d = parts[i].digits; d > 0; d--, left /= 10)
			at[d - 1] = (char)('0' + left % 10);
		at += parts[i].digits;
		*at++ = parts[i].end;
	}
	*at = '\0';
}

void
time_rfc5322(int64_t ms, char ret[40])
{
	int rest;
	struct civil c = civil_of(split_ms(ms, &rest));
	char day[8], year[24], hour[8], minute[8], second[8];

	(void)text_number(day, (uint64_t)c.day, 2);
	(void)text_number(year, c.year < 0 ? -(uint64_t)c.year : (uint64_t)c.year, 4);
	(void)text_number(hour, (uint64_t)c.hour, 2);
	(void)text_number(minute, (uint64_t)c.minute, 2);
	(void)text_number(second, (uint64_t)c.second, 2);
	text_join(ret, 40, day_names[c.weekday], ", ", day, " ", month_names[c.month - 1], c.year < 0 ? " -" : " ",
	    year, " ", hour, ":", minute, ":", second, " +0000", NULL);
}

/* ---- A cursor over the text: each step takes what it recognises, or fails ---- */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Exactly so many digits. */
static bool
take_number(struct mr_str *s, size_t digits, int *ret)
{
	int value = 0;

	if (s->len < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (!is_digit(s->ptr[i]))
			return false;
		value = value * 10 + (s->ptr[i] - '0');
	}
	s->ptr += digits;
	s->len -= digits;
	*ret = value;
	return true;
}

static bool
take_char(struct mr_str *s, const char *any_of)
{
	if (s->len == 0 || s->ptr[0] == '\0' || strchr(any_of, s->ptr[0]) == NULL)
		return false;
	s->ptr++;
	s->len--;
	return true;
}

/* ".123", any number of digits; ",": as in ISO 8601 */
static bool
take_fraction(struct mr_str *s, int *ret_ms)
{
	int ms = 0, weight = 100;

	*ret_ms = 0;
	if (!take_char(s, ".,"))
		return true;
	if (s->len == 0 || !is_digit(s->ptr[0]))
		return false;
	while (s->len > 0 && is_digit(s->ptr[0])) {
		ms += weight * (s->ptr[0] - '0');
		weight /= 10;
		s->ptr++;
		s->len--;
	}
	*ret_ms = ms;
	return true;
}

/* "+0130" or "+01:30", as seconds east */
static bool
take_offset(struct mr_str *s, int *ret_seconds)
{
	int sign = s->len > 0 && s->ptr[0] == '-' ? -1 : 1;
	int hours, minutes;

	if (!take_char(s, "+-") || !take_number(s, 2, &hours))
		return false;
	(void)take_char(s, ":");
	if (!take_number(s, 2, &minutes) || minutes > 59)
		return false;
	*ret_seconds = sign * (hours * 3600 + minutes * 60);
	return true;
}

/* ---- RFC 3339 ---- */

bool
time_parse_rfc3339(struct mr_str s, int64_t *ret_ms)
{
	struct civil c = { 0 };
	int fraction_ms = 0, east = 0;

	if (!take_number(&s, 4, &c.year) || !take_char(&s, "-") || !take_number(&s, 2, &c.month) ||
	    !take_char(&s, "-") || !take_number(&s, 2, &c.day))
		return false;
	if (s.len > 0) {
		if (!take_char(&s, "Tt ") || !take_number(&s, 2, &c.hour) || !take_char(&s, ":") ||
		    !take_number(&s, 2, &c.minute) || !take_char(&s, ":") || !take_number(&s, 2, &c.second) ||
		    !take_fraction(&s, &fraction_ms))
			return false;
		if (!take_char(&s, "Zz") && !take_offset(&s, &east))
			return false;
	}
	if (s.len > 0 || !civil_valid(&c) || east <= -86400 || east >= 86400)
		return false;
	*ret_ms = (civil_to_unix(&c) - east) * 1000 + fraction_ms;
	return true;
}

/* ---- RFC 5322 ---- */

/* Comments nest and may escape their parentheses; folding is white space too. */
static void
skip_space(struct mr_str *s)
{
	int depth = 0;

	while (s->len > 0) {
		char c = s->ptr[0];
		if (depth > 0 && c == '\\' && s->len > 1) {
			s->ptr++;
			s->len--;
		} else if (c == '(') {
			depth++;
		} else if (depth > 0 && c == ')') {
			depth--;
		} else if (depth == 0 && c != ' ' && c != '\t' && c != '\r' && c != '\n') {
			return;
		}
		s->ptr++;
		s->len--;
	}
}

static struct mr_str
take_word(struct mr_str *s)
{
	size_t n = 0;

	while (n < s->len && (s->ptr[n] | 0x20) >= 'a' && (s->ptr[n] | 0x20) <= 'z')
		n++;
	struct mr_str word = { s->ptr, n };
	s->ptr += n;
	s->len -= n;
	return word;
}

/* One to `most` digits; tells how many there were. */
static size_t
take_digits(struct mr_str *s, size_t most, int *ret)
{
	size_t n = 0;

	while (n < s->len && n < most && is_digit(s->ptr[n]))
		n++;
	return n > 0 && take_number(s, n, ret) ? n : 0;
}

static int
month_of(struct mr_str word)
{
	for (int i = 0; i < 12 && word.len >= 3; i++) {
		if (str_caseeq((struct mr_str){ word.ptr, 3 }, str_of(month_names[i])))
			return i + 1;
	}
	return 0;
}

/* Named zones of RFC 822. Unknown and military ones say nothing reliable: UTC, as RFC 5322 asks. */
static int
zone_of(struct mr_str word)
{
	static const struct {
		char name[4];
		int hours;
	} zones[] = { { "EST", -5 }, { "EDT", -4 }, { "CST", -6 }, { "CDT", -5 }, { "MST", -7 }, { "MDT", -6 },
		{ "PST", -8 }, { "PDT", -7 } };

	for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++) {
		if (str_caseeq(word, str_of(zones[i].name)))
			return zones[i].hours * 3600;
	}
	return 0;
}

static bool
take_day_month_year(struct mr_str *s, struct civil *c)
{
	skip_space(s);
	if (take_word(s).len > 0) { /* the weekday: may be missing, may be wrong */
		skip_space(s);
		(void)take_char(s, ",");
		skip_space(s);
	}
	if (take_digits(s, 2, &c->day) == 0)
		return false;
	skip_space(s);
	c->month = month_of(take_word(s));
	skip_space(s);
	size_t digits = take_digits(s, 4, &c->year);
	if (digits == 2) /* RFC 5322 4.3 */
		c->year += c->year < 50 ? 2000 : 1900;
	else if (digits == 3)
		c->year += 1900;
	return c->month > 0 && digits >= 2;
}

static bool
take_clock(struct mr_str *s, struct civil *c)
{
	skip_space(s);
	if (take_digits(s, 2, &c->hour) == 0)
		return false;
	skip_space(s);
	if (!take_char(s, ":"))
		return false;
	skip_space(s);
	if (take_digits(s, 2, &c->minute) == 0)
		return false;
	skip_space(s);
	if (take_char(s, ":")) {
		skip_space(s);
		if (take_digits(s, 2, &c->second) == 0)
			return false;
	}
	return true;
}

bool
time_parse_rfc5322(struct mr_str s, int64_t *ret_ms)
{
	struct civil c = { 0 };
	int east = 0;

	if (!take_day_month_year(&s, &c) || !take_clock(&s, &c))
		return false;
	skip_space(&s);
	if (s.len > 0 && (s.ptr[0] == '+' || s.ptr[0] == '-')) {
		if (!take_offset(&s, &east))
			return false;
	} else {
		east = zone_of(take_word(&s));
	}
	skip_space(&s);
	if (s.len > 0 || !civil_valid(&c) || east <= -86400 || east >= 86400)
		return false;
	*ret_ms = (civil_to_unix(&c) - east) * 1000;
	return true;
}
