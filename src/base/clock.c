/* SPDX-License-Identifier: MIT */
/* clock.c - the current time, the calendar, durations, and dates in the forms of RFC 3339 and RFC 5322. */
#include "base/clock.h"

#include "base/error.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#if defined(CLOCK_BOOTTIME) && !defined(MR_PORTABLE)
#define SLEEPLESS_CLOCK CLOCK_BOOTTIME
#else
#define SLEEPLESS_CLOCK CLOCK_MONOTONIC
#endif

static int64_t shift_ms;

void
clock_shift_ms(int64_t offset_ms)
{
	shift_ms = offset_ms;
}

static int64_t
read_ns(clockid_t which)
{
	struct timespec t = { 0 };

	(void)clock_gettime(which, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t
clock_now_ns(void)
{
	return read_ns(CLOCK_REALTIME) + shift_ms * 1000000;
}

int64_t
clock_now_ms(void)
{
	return clock_now_ns() / 1000000;
}

int64_t
clock_boot_ms(void)
{
	return read_ns(SLEEPLESS_CLOCK) / 1000000;
}

/* ---- The calendar ---- */

#define DAY 86400
#define FIRST_SECOND (-62167219200) /* 0000-01-01T00:00:00Z */
#define LAST_SECOND 253402300799

/* Days from 0000-01-01. Years begin in March here, so that a leap day is the last of its year, and the months before
 * any day of the year have 30.6 days each. */
static int64_t
day_of(int year, int month, int day)
{
	int64_t y = year - (month <= 2) + 400, m = (month + 9) % 12; /* 400 years more, so that none is negative */

	return y * 365 + y / 4 - y / 100 + y / 400 + (m * 306 + 5) / 10 + day - 1 - (int64_t)146097 + 60;
}

struct civil
civil_of(int64_t unix_seconds)
{
	struct civil c = { 0 };

	if (unix_seconds < FIRST_SECOND)
		unix_seconds = FIRST_SECOND;
	if (unix_seconds > LAST_SECOND)
		unix_seconds = LAST_SECOND;
	int64_t seconds = unix_seconds - FIRST_SECOND;
	int64_t day = seconds / DAY;
	int in_day = (int)(seconds % DAY);

	c.year = (int)(day * 400 / 146097); /* 146097 days in 400 years; right or one off */
	while (day_of(c.year + 1, 1, 1) <= day)
		c.year++;
	while (day_of(c.year, 1, 1) > day)
		c.year--;
	for (c.month = 12; day_of(c.year, c.month, 1) > day; c.month--)
		;
	c.day = (int)(day - day_of(c.year, c.month, 1)) + 1;
	c.hour = in_day / 3600;
	c.minute = in_day / 60 % 60;
	c.second = in_day % 60;
	c.weekday = (int)((day + 6) % 7); /* 0000-01-01 is a Saturday; 0 is Sunday */
	return c;
}

bool
civil_to_unix(const struct civil *c, int64_t *ret)
{
	if (c->year < 0 || c->year > 9999 || c->month < 1 || c->month > 12 || c->day < 1 ||
	    day_of(c->year, c->month, c->day) >= day_of(c->year + c->month / 12, c->month % 12 + 1, 1) || c->hour < 0 ||
	    c->hour > 23 || c->minute < 0 || c->minute > 59 || c->second < 0 || c->second > 60)
		return false;
	*ret = FIRST_SECOND + day_of(c->year, c->month, c->day) * DAY + c->hour * 3600 + c->minute * 60 + c->second;
	return true;
}

/* ---- Durations ---- */

static const struct {
	char name;
	int64_t seconds;
} units[] = { { 'w', 7 * DAY }, { 'd', DAY }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 } };
enum { UNITS = sizeof(units) / sizeof(units[0]) };

bool
duration_parse(struct mr_str s, int64_t *ret_ms)
{
	int64_t unit = 1, ms;
	uint64_t count;

	for (size_t i = 0; s.len > 0 && i < UNITS; i++)
		if (s.ptr[s.len - 1] == units[i].name) {
			unit = units[i].seconds;
			s.len--;
			break;
		}
	if (!str_to_u64(s, &count) || __builtin_mul_overflow(count, unit * 1000, &ms))
		return false;
	*ret_ms = ms;
	return true;
}

void
duration_text(int64_t ms, char ret[24])
{
	int64_t seconds = ms > 0 ? ms / 1000 : 0;
	size_t i = 1; /* no weeks */

	while (i + 1 < UNITS && seconds < units[i].seconds)
		i++;
	(void)snprintf(ret, 24, "%lld%c", (long long)(seconds / units[i].seconds), units[i].name);
}

struct time_text
span_text(int64_t ms)
{
	struct time_text text;

	duration_text(ms, text.z);
	return text;
}

/* ---- For the doors ---- */

enum mr_rc
mr_duration_parse(const char *text, int64_t *ret_ms, struct mr_error *err)
{
	if (duration_parse(str_of(text), ret_ms))
		return MR_OK;
	return mr_fail(err, MR_REFUSED,
	    "not a duration: '%s'\nwrite a number and a unit: 90s, 30m, 2h, 7d, 1w, or plain seconds", text);
}

enum mr_rc
mr_time_parse(const char *text, int64_t *ret_ms, struct mr_error *err)
{
	int64_t ago_ms;

	if (time_parse_rfc3339(str_of(text), ret_ms))
		return MR_OK;
	if (duration_parse(str_of(text), &ago_ms)) {
		*ret_ms = clock_now_ms() - ago_ms;
		return MR_OK;
	}
	return mr_fail(err, MR_REFUSED,
	    "not a time: '%s'\nwrite 2026-03-05T10:30:00Z, 2026-03-05, or how long ago: 30m, 2h, 7d", text);
}

/* ---- Dates as text ---- */

static const char month_names[12][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov",
	"Dec" };
static const char day_names[7][4] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };

/* Writes so many digits and the byte after them; returns the end. Every message and most records have a date: printf
 * would cost more than the rest of the line. */
static char *
put(char *at, int value, unsigned digits, char behind)
{
	for (unsigned d = digits; d > 0; d--, value /= 10)
		at[d - 1] = (char)('0' + value % 10);
	at[digits] = behind;
	return at + digits + 1;
}

void
time_rfc3339(int64_t ms, char ret[RFC3339_LEN + 1])
{
	struct civil c = civil_of(ms / 1000 - (ms % 1000 < 0)); /* rounded towards the past */
	char *at = put(put(put(ret, c.year, 4, '-'), c.month, 2, '-'), c.day, 2, 'T');

	at = put(put(put(at, c.hour, 2, ':'), c.minute, 2, ':'), c.second, 2, '.');
	*put(at, (int)((ms % 1000 + 1000) % 1000), 3, 'Z') = '\0';
}

struct time_text
time_text(int64_t ms)
{
	struct time_text text;

	time_rfc3339(ms, text.z);
	return text;
}

void
time_rfc5322(int64_t ms, char ret[40])
{
	struct civil c = civil_of(ms / 1000 - (ms % 1000 < 0));
	char *at = stpcpy(stpcpy(ret, day_names[c.weekday]), ", ");

	at = stpcpy(stpcpy(put(at, c.day, 2, ' '), month_names[c.month - 1]), " ");
	at = put(put(put(put(at, c.year, 4, ' '), c.hour, 2, ':'), c.minute, 2, ':'), c.second, 2, ' ');
	(void)stpcpy(at, "+0000");
}

/* ---- A cursor over the text: each step takes the part that it recognises, or fails ---- */

/* Exactly so many digits. */
static bool
take_number(struct mr_str *s, size_t digits, int *ret)
{
	int value = 0;

	if (s->len < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (!ascii_digit(s->ptr[i]))
			return false;
		value = value * 10 + (s->ptr[i] - '0');
	}
	*s = str_from(*s, digits);
	*ret = value;
	return true;
}

/* One to `most` digits; returns their number. */
static size_t
take_digits(struct mr_str *s, size_t most, int *ret)
{
	size_t n = 0;

	while (n < s->len && n < most && ascii_digit(s->ptr[n]))
		n++;
	return n > 0 && take_number(s, n, ret) ? n : 0;
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
	int64_t seconds;
	int fraction_ms = 0, east = 0;

	if (!take_number(&s, 4, &c.year) || !take_char(&s, "-") || !take_number(&s, 2, &c.month) ||
	    !take_char(&s, "-") || !take_number(&s, 2, &c.day))
		return false;
	if (s.len > 0) {
		if (!take_char(&s, "Tt ") || !take_number(&s, 2, &c.hour) || !take_char(&s, ":") ||
		    !take_number(&s, 2, &c.minute) || !take_char(&s, ":") || !take_number(&s, 2, &c.second))
			return false;
		if (take_char(&s, ".,")) { /* any number of digits; "," as in ISO 8601 */
			if (s.len == 0 || !ascii_digit(s.ptr[0]))
				return false;
			for (int digit, weight = 100; take_number(&s, 1, &digit); weight /= 10)
				fraction_ms += weight * digit;
		}
		if (!take_char(&s, "Zz") && !take_offset(&s, &east))
			return false;
	}
	if (s.len > 0 || east <= -86400 || east >= 86400 || !civil_to_unix(&c, &seconds))
		return false;
	*ret_ms = (seconds - east) * 1000 + fraction_ms;
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
	struct mr_str word = str_first(*s, n);

	*s = str_from(*s, n);
	return word;
}

/* The number, with white space around it; returns the number of digits. */
static size_t
take_spaced(struct mr_str *s, size_t most, int *ret)
{
	skip_space(s);
	size_t digits = take_digits(s, most, ret);

	skip_space(s);
	return digits;
}

bool
time_parse_rfc5322(struct mr_str s, int64_t *ret_ms)
{
	/* Named zones of RFC 822. Unknown and military ones are unreliable: UTC, as RFC 5322 asks. */
	static const struct {
		char name[4];
		int hours;
	} zones[] = { { "EST", -5 }, { "EDT", -4 }, { "CST", -6 }, { "CDT", -5 }, { "MST", -7 }, { "MDT", -6 },
		{ "PST", -8 }, { "PDT", -7 } };
	struct civil c = { 0 };
	int64_t seconds;
	int east = 0;

	skip_space(&s);
	if (take_word(&s).len > 0) { /* the weekday: may be missing, may be wrong */
		skip_space(&s);
		(void)take_char(&s, ",");
	}
	if (take_spaced(&s, 2, &c.day) == 0)
		return false;
	struct mr_str month = take_word(&s);
	size_t digits = take_spaced(&s, 4, &c.year);

	for (int i = 0; i < 12 && month.len >= 3; i++)
		if (str_caseeq(str_first(month, 3), str_of(month_names[i])))
			c.month = i + 1;
	if (digits == 2) /* RFC 5322 4.3 */
		c.year += c.year < 50 ? 2000 : 1900;
	else if (digits == 3)
		c.year += 1900;
	if (c.month == 0 || digits < 2)
		return false;
	if (take_spaced(&s, 2, &c.hour) == 0 || !take_char(&s, ":") || take_spaced(&s, 2, &c.minute) == 0)
		return false;
	if (take_char(&s, ":") && take_spaced(&s, 2, &c.second) == 0)
		return false;
	if (s.len > 0 && (s.ptr[0] == '+' || s.ptr[0] == '-')) {
		if (!take_offset(&s, &east))
			return false;
	} else {
		struct mr_str zone = take_word(&s);

		for (size_t i = 0; i < sizeof(zones) / sizeof(zones[0]); i++)
			east = str_caseeq(zone, str_of(zones[i].name)) ? zones[i].hours * 3600 : east;
	}
	skip_space(&s);
	if (s.len > 0 || east <= -86400 || east >= 86400 || !civil_to_unix(&c, &seconds))
		return false;
	*ret_ms = (seconds - east) * 1000;
	return true;
}
