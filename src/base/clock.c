/* SPDX-License-Identifier: MIT */
/* clock.c - what time it is, the calendar, durations. Dates as text are in date.c. */
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
#define LAST_SECOND 253402300799    /* 9999-12-31T23:59:59Z */

static bool
is_leap(int year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from 0000-01-01 to the first of January of a year, 0..10000. */
static int64_t
days_before_year(int64_t year)
{
	if (year == 0)
		return 0;
	int64_t past = year - 1; /* year 0 is a leap year; then count those of 1..past */
	return year * 365 + 1 + past / 4 - past / 100 + past / 400;
}

static int
days_in_month(int year, int month)
{
	static const signed char days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

	return days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
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
	while (days_before_year(c.year + 1) <= day)
		c.year++;
	while (days_before_year(c.year) > day)
		c.year--;
	int in_year = (int)(day - days_before_year(c.year));
	for (c.month = 1; in_year >= days_in_month(c.year, c.month); c.month++)
		in_year -= days_in_month(c.year, c.month);
	c.day = in_year + 1;
	c.hour = in_day / 3600;
	c.minute = in_day / 60 % 60;
	c.second = in_day % 60;
	c.weekday = (int)((day + 6) % 7); /* 0000-01-01 is a Saturday; 0 is Sunday */
	return c;
}

bool
civil_valid(const struct civil *c)
{
	return c->year >= 0 && c->year <= 9999 && c->month >= 1 && c->month <= 12 && c->day >= 1 &&
	       c->day <= days_in_month(c->year, c->month) && c->hour >= 0 && c->hour <= 23 && c->minute >= 0 &&
	       c->minute <= 59 && c->second >= 0 && c->second <= 60;
}

int64_t
civil_to_unix(const struct civil *c)
{
	int64_t day = days_before_year(c->year) + c->day - 1;

	for (int month = 1; month < c->month && month <= 12; month++)
		day += days_in_month(c->year, month);
	return FIRST_SECOND + day * DAY + c->hour * 3600 + c->minute * 60 + c->second;
}

/* ---- Durations ---- */

static int64_t
unit_ms(char unit)
{
	switch (unit) {
	case 's':
		return 1000;
	case 'm':
		return 60 * 1000;
	case 'h':
		return 3600 * 1000;
	case 'd':
		return (int64_t)DAY * 1000;
	case 'w':
		return (int64_t)7 * DAY * 1000;
	default:
		return 0;
	}
}

bool
duration_parse(struct mr_str s, int64_t *ret_ms)
{
	uint64_t count;
	int64_t ms;
	int64_t unit = s.len > 0 ? unit_ms(s.ptr[s.len - 1]) : 0;

	if (unit != 0)
		s.len--;
	else
		unit = 1000;
	if (!str_to_u64(s, &count) || __builtin_mul_overflow(count, unit, &ms))
		return false;
	*ret_ms = ms;
	return true;
}

void
duration_text(int64_t ms, char ret[24])
{
	int64_t seconds = ms > 0 ? ms / 1000 : 0;
	int64_t count = seconds;
	char unit = 's';

	if (seconds >= DAY) {
		count = seconds / DAY;
		unit = 'd';
	} else if (seconds >= 3600) {
		count = seconds / 3600;
		unit = 'h';
	} else if (seconds >= 60) {
		count = seconds / 60;
		unit = 'm';
	}
	(void)snprintf(ret, 24, "%lld%c", (long long)count, unit);
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
