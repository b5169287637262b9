/* SPDX-License-Identifier: MIT */
/* clock.h - time. All of mailroom reads the clock here, so that tests can set it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include "base/buf.h"

int64_t clock_now_ns(void); /* wall clock since 1970 */
int64_t clock_now_ms(void);
int64_t clock_boot_ms(void); /* CLOCK_BOOTTIME: goes on during sleep, cannot be set */
/* A deadline by the wall clock of another machine counts as passed only that much later. Machines that share a folder
 * are synchronised over the network, and are at worst seconds apart while one starts or wakes up. Work that comes back
 * a minute late costs a minute; work that comes back too early is done twice. */
#define CLOCK_GRACE_MS 60000
/* Tests: shifts the wall clock; 0 = off. The command takes it from MAILROOM_TEST_CLOCK_OFFSET_MS in test builds. */
void clock_shift_ms(int64_t offset_ms);

struct civil {
	int year, month, day, hour, minute, second, weekday;
};
struct civil civil_of(int64_t unix_seconds); /* UTC; any year 0..9999, clamped */
/* False: there is no such day or time; second 60 is accepted. */
bool civil_to_unix(const struct civil *c, int64_t *ret);

#define RFC3339_LEN 24
void time_rfc3339(int64_t ms, char ret[RFC3339_LEN + 1]); /* 2026-03-05T10:30:00.123Z */
/* The same for use within one call: buf_addf(&text, "At: %s\n", time_text(ms).z) */
struct time_text {
	char z[RFC3339_LEN + 1];
};
struct time_text time_text(int64_t ms);
void time_rfc5322(int64_t ms, char ret[40]);               /* Thu, 05 Mar 2026 10:30:00 +0000 */
bool time_parse_rfc3339(struct mr_str s, int64_t *ret_ms); /* any zone, any fraction; also "YYYY-MM-DD" */
bool time_parse_rfc5322(struct mr_str s, int64_t *ret_ms); /* tolerant: no weekday, named zones, comments */
bool duration_parse(struct mr_str s, int64_t *ret_ms);     /* 90s 30m 2h 7d 1w, plain seconds */
/* "3s", "12m", "2h", "5d": for people */
void duration_text(int64_t ms, char ret[24]);
struct time_text span_text(int64_t ms); /* the same for use within one call; negative spans are "0s" */

#endif
