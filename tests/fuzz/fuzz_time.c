/* SPDX-License-Identifier: MIT */
/* Any bytes as a date or a duration; what parses as a year of four digits can be written and read again. */
#include "fuzz.h"

#include "base/clock.h"

#define YEAR_0_MS INT64_C(-62167219200000)
#define YEAR_9999_MS INT64_C(253402300799999)

static void
check_time(int64_t ms)
{
	char text[40];
	int64_t back = 1;

	time_rfc3339(ms, text);
	assert(strlen(text) == RFC3339_LEN);
	if (ms >= YEAR_0_MS && ms <= YEAR_9999_MS) {
		assert(time_parse_rfc3339(str_of(text), &back) && back == ms);
		int64_t seconds = ms / 1000 - (ms % 1000 < 0);
		struct civil c = civil_of(seconds);

		assert(civil_to_unix(&c, &back) && back == seconds);
		time_rfc5322(ms, text);
		assert(strlen(text) < sizeof(text));
		assert(time_parse_rfc5322(str_of(text), &back));
		assert(back == seconds * 1000);
	} else {
		time_rfc5322(ms, text);
		assert(strlen(text) < sizeof(text));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str text = input_of(data, size);
	int64_t ms = 0, untouched = 42;
	char shown[24];

	if (time_parse_rfc3339(text, &ms))
		check_time(ms);
	if (time_parse_rfc5322(text, &ms))
		check_time(ms);
	if (duration_parse(text, &ms)) {
		assert(ms >= 0);
		duration_text(ms, shown);
		assert(strlen(shown) >= 2 && strlen(shown) < sizeof(shown));
	} else {
		(void)duration_parse(text, &untouched);
		assert(untouched == 42);
	}
	if (size >= sizeof(ms)) {
		memcpy(&ms, data, sizeof(ms));
		check_time(ms);
		duration_text(ms, shown);
		struct civil c = civil_of(ms);
		assert(c.year >= 0 && c.year <= 9999 && c.month >= 1 && c.month <= 12 && c.day >= 1 && c.day <= 31);
		assert(c.weekday >= 0 && c.weekday <= 6);
	}
	return 0;
}
