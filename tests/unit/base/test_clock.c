/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "base/clock.h"

static void
the_calendar_agrees_with_the_c_library(void **state)
{
	(void)state;

	/* every day and some odd second of it, from the year 0 to 9999 */
	for (int64_t t = -62167219200; t <= 253402300799; t += 86400 * 3 + 12345) {
		struct civil c = civil_of(t);
		time_t when = (time_t)t;
		struct tm tm;
		assert_non_null(gmtime_r(&when, &tm));
		assert_int_equal(c.year, tm.tm_year + 1900);
		assert_int_equal(c.month, tm.tm_mon + 1);
		assert_int_equal(c.day, tm.tm_mday);
		assert_int_equal(
		    c.hour * 3600 + c.minute * 60 + c.second, tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec);
		assert_int_equal(c.weekday, tm.tm_wday);
		int64_t back = -1;

		assert_true(civil_to_unix(&c, &back));
		assert_int_equal(back, t);
	}
}

static void
times_beyond_the_years_are_clamped(void **state)
{
	(void)state;
	char text[RFC3339_LEN + 1];

	time_rfc3339(INT64_MAX, text);
	assert_memory_equal(text, "9999-12-31T23:59:59", 19);
	time_rfc3339(INT64_MIN, text);
	assert_memory_equal(text, "0000-01-01T00:00:00", 19);
}

static void
times_are_written_in_both_forms(void **state)
{
	(void)state;
	char text[RFC3339_LEN + 1], mail[40];

	time_rfc3339(1772706600123, text);
	assert_string_equal(text, "2026-03-05T10:30:00.123Z");
	time_rfc5322(1772706600123, mail);
	assert_string_equal(mail, "Thu, 05 Mar 2026 10:30:00 +0000");
	time_rfc3339(-1, text);
	assert_string_equal(text, "1969-12-31T23:59:59.999Z");
	time_rfc3339(951782400000, text);
	assert_string_equal(text, "2000-02-29T00:00:00.000Z");
}

struct sample {
	const char *text;
	int64_t ms; /* -1: refused */
};

static void
rfc3339_is_read_with_any_zone_and_fraction_and_garbage_is_refused(void **state)
{
	(void)state;
	static const struct sample samples[] = {
		{ "2026-03-05T10:30:00.123Z", 1772706600123 },
		{ "2026-03-05t10:30:00z", 1772706600000 },
		{ "2026-03-05 10:30:00.5Z", 1772706600500 },
		{ "2026-03-05T10:30:00.123456789Z", 1772706600123 },
		{ "2026-03-05T12:00:00+01:30", 1772706600000 },
		{ "2026-03-05T02:30:00-0800", 1772706600000 },
		{ "2026-03-05", 1772668800000 },
		{ "2024-02-29", 1709164800000 },
		{ "2016-12-31T23:59:60Z", 1483228800000 },
		{ "2023-02-29", -1 },
		{ "2100-02-29", -1 },
		{ "2026-13-01", -1 },
		{ "2026-00-01", -1 },
		{ "2026-04-31", -1 },
		{ "2026-03-05T24:00:00Z", -1 },
		{ "2026-03-05T10:60:00Z", -1 },
		{ "2026-03-05T10:30:00", -1 },
		{ "2026-03-05T10:30:00.Z", -1 },
		{ "2026-03-05T10:30:00Zx", -1 },
		{ "2026-03-05T10:30:00+99:00", -1 },
		{ "2026-3-5", -1 },
		{ "-026-03-05", -1 },
		{ "", -1 },
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		int64_t ms = -1;
		bool ok = time_parse_rfc3339(str_of(samples[i].text), &ms);
		if (ok != (samples[i].ms != -1) || ms != samples[i].ms)
			fail_msg("'%s' gave %lld", samples[i].text, (long long)ms);
	}
	int64_t ms = 7;
	assert_false(time_parse_rfc3339(STR("2026-03-05\0"), &ms));
	assert_int_equal(ms, 7);
}

static void
mail_dates_are_read_as_programs_write_them(void **state)
{
	(void)state;
	static const struct sample samples[] = {
		{ "Thu, 05 Mar 2026 10:30:00 +0000", 1772706600000 },
		{ "Thu,  5 Mar 2026 10:30:00 +0000 (UTC)", 1772706600000 },
		{ "5 mar 2026 12:30 +0200", 1772706600000 },
		{ "Thu, 5 March 2026 05:30:00 EST", 1772706600000 },
		{ "5 Mar 26 10:30:00 GMT", 1772706600000 },
		{ "(a (nested \\) one)) Thu, 5 (x) Mar\r\n 2026 10:30:00 -0000", 1772706600000 },
		{ "Thu, 5 Mar 2026 10:30:00 Z", 1772706600000 },
		{ "Thu, 5 Mar 2026 10:30:00", 1772706600000 },
		{ "1 Jan 99 00:00:00 +0000", 915148800000 },
		{ "1 Jan 099 00:00:00 +0000", 915148800000 },
		{ "Thu, 29 Feb 2024 00:00:00 +0000", 1709164800000 },
		{ "Thu, 29 Feb 2023 00:00:00 +0000", -1 },
		{ "Thu, 32 Mar 2026 10:30:00 +0000", -1 },
		{ "Thu, 5 Foo 2026 10:30:00 +0000", -1 },
		{ "Thu, 5 Mar 2026 25:30:00 +0000", -1 },
		{ "Thu, 5 Mar 2026 10:30:00 +9900", -1 },
		{ "Thu, 5 Mar 2026 10:30:00 +0000 trailing 1", -1 },
		{ "Thu, 5 Mar 2026", -1 },
		{ "(unclosed", -1 },
		{ "\\", -1 },
		{ "", -1 },
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		int64_t ms = -1;
		bool ok = time_parse_rfc5322(str_of(samples[i].text), &ms);
		if (ok != (samples[i].ms != -1) || ms != samples[i].ms)
			fail_msg("'%s' gave %lld", samples[i].text, (long long)ms);
	}
}

static void
durations_have_a_unit_or_are_seconds(void **state)
{
	(void)state;
	static const struct sample samples[] = { { "90s", 90000 }, { "30m", 1800000 }, { "2h", 7200000 },
		{ "7d", 604800000 }, { "1w", 604800000 }, { "45", 45000 }, { "0", 0 }, { "", -1 }, { "s", -1 },
		{ "-5s", -1 }, { "1.5h", -1 }, { "5 m", -1 }, { "5y", -1 }, { "1h30m", -1 },
		{ "99999999999999999999", -1 }, { "18446744073709551615w", -1 }, { "9223372036854775808", -1 } };

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		int64_t ms = -1;
		bool ok = duration_parse(str_of(samples[i].text), &ms);
		if (ok != (samples[i].ms != -1) || ms != samples[i].ms)
			fail_msg("'%s' gave %lld", samples[i].text, (long long)ms);
	}
}

static void
durations_are_shown_in_one_unit(void **state)
{
	(void)state;
	static const struct sample samples[] = { { "3s", 3999 }, { "59s", 59999 }, { "12m", 12 * 60000 },
		{ "2h", 7200000 }, { "23h", 86399999 }, { "5d", 5 * 86400000 }, { "0s", -5 },
		{ "106751991167d", INT64_MAX } };
	char text[24];

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		duration_text(samples[i].ms, text);
		assert_string_equal(text, samples[i].text);
	}
}

static void
a_time_may_be_how_long_ago(void **state)
{
	(void)state;
	struct mr_error err = { 0 };
	int64_t ms = 0;

	int64_t now_ms = clock_now_ms();
	assert_int_equal(mr_time_parse("2h", &ms, &err), MR_OK);
	assert_true(ms >= now_ms - 7200000 && ms <= clock_now_ms() - 7200000);
	assert_int_equal(mr_time_parse("2026-03-05", &ms, &err), MR_OK);
	assert_int_equal(ms, 1772668800000);
	assert_int_equal(mr_time_parse("soon", &ms, &err), MR_REFUSED);
	assert_string_equal(err.message, "not a time: 'soon'");
	assert_true(err.hint[0] != '\0');
	assert_int_equal(mr_duration_parse("soon", &ms, &err), MR_REFUSED);
	assert_int_equal(ms, 1772668800000);
	assert_int_equal(mr_duration_parse("1w", &ms, &err), MR_OK);
}

static void
only_the_wall_clock_can_be_shifted(void **state)
{
	(void)state;
	int64_t wall_ms = clock_now_ms(), boot_ms = clock_boot_ms();

	clock_shift_ms(-3600000);
	assert_true(clock_now_ms() < wall_ms - 3590000);
	assert_true(clock_boot_ms() >= boot_ms && clock_boot_ms() < boot_ms + 60000);
	clock_shift_ms(0);
	assert_true(clock_now_ms() >= wall_ms);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_calendar_agrees_with_the_c_library),
		cmocka_unit_test(times_beyond_the_years_are_clamped),
		cmocka_unit_test(times_are_written_in_both_forms),
		cmocka_unit_test(rfc3339_is_read_with_any_zone_and_fraction_and_garbage_is_refused),
		cmocka_unit_test(mail_dates_are_read_as_programs_write_them),
		cmocka_unit_test(durations_have_a_unit_or_are_seconds),
		cmocka_unit_test(durations_are_shown_in_one_unit),
		cmocka_unit_test(a_time_may_be_how_long_ago),
		cmocka_unit_test(only_the_wall_clock_can_be_shifted),
	};

	return cmocka_run_group_tests_name("base/clock", tests, NULL, NULL);
}
