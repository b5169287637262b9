/* SPDX-License-Identifier: MIT */
/* id.c - ULIDs, tokens, random bytes. */
#include "base/id.h"
#include "base/clock.h"
#include "base/sys.h"

#include <stdlib.h>

/* Crockford's base32 in lower case: no i, l, o, u */
static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

#define TIME_BITS 48
#define RANDOM_BITS 60

struct wide { /* 128 bits, big end first */
	uint64_t high, low;
};

/* ---- Random bytes ---- */

void
random_bytes(void *ret, size_t n)
{
	if (!sys_random(ret, n))
		abort(); /* ids that others can guess, or that repeat, are worse than no process */
}

void
random_hex(char *ret, size_t digits)
{
	random_bytes(ret, digits);
	for (size_t i = 0; i < digits; i++)
		ret[i] = "0123456789abcdef"[(unsigned char)ret[i] & 15];
	ret[digits] = '\0';
}

static uint64_t
random_bits(unsigned bits)
{
	uint64_t value;

	random_bytes(&value, sizeof(value));
	return value >> (64 - bits);
}

/* ---- Ids ---- */

static void
encode(struct wide v, char ret[MR_ID_LEN + 1])
{
	for (size_t i = MR_ID_LEN; i-- > 0;) {
		ret[i] = alphabet[v.low & 31];
		v.low = v.low >> 5 | v.high << 59;
		v.high >>= 5;
	}
	ret[MR_ID_LEN] = '\0';
}

static int
digit_of(char c)
{
	/* Crockford's alphabet without i, l, o and u, one more than its place; 0: no digit. Every name of a folder that
	 * is read goes through here, letter by letter. */
	static const unsigned char place[256] = { ['0'] = 1,
		2,
		3,
		4,
		5,
		6,
		7,
		8,
		9,
		10,
		['a'] = 11,
		12,
		13,
		14,
		15,
		16,
		17,
		18,
		['j'] = 19,
		20,
		['m'] = 21,
		22,
		['p'] = 23,
		24,
		25,
		26,
		27,
		['v'] = 28,
		29,
		30,
		31,
		32 };

	return place[(unsigned char)c] - 1;
}

static bool
is_greater(struct wide a, struct wide b)
{
	return a.high != b.high ? a.high > b.high : a.low > b.low;
}

static struct wide
wide_of_now(void)
{
	int64_t now_ns = clock_now_ns();
	uint64_t ns = now_ns > 0 ? (uint64_t)now_ns : 0;
	uint64_t ms = ns / 1000000 & (((uint64_t)1 << TIME_BITS) - 1);
	uint64_t nano = ns % 1000000;

	/* 48 bits of time and 16 of the nanoseconds above, 4 of them and 60 random bits below */
	return (
	    struct wide){ .high = ms << 16 | nano >> 4, .low = (nano & 15) << RANDOM_BITS | random_bits(RANDOM_BITS) };
}

void
id_new(char ret[MR_ID_LEN + 1])
{
	static _Thread_local struct wide last;
	struct wide v = wide_of_now();

	if (!is_greater(v, last)) {
		/* The clock was set back. The step is random, or a process and its forked child, who
		 * share `last`, would both continue with the same ids. */
		uint64_t step = random_bits(40) + 1;
		v = last;
		if (__builtin_add_overflow(v.low, step, &v.low))
			v.high++;
	}
	last = v;
	encode(v, ret);
}

void
id_from_name(int64_t ms, struct mr_str name, char ret[MR_ID_LEN + 1])
{
	struct sha256 s;
	unsigned char hash[32];
	uint64_t time = ms > 0 ? (uint64_t)ms & (((uint64_t)1 << TIME_BITS) - 1) : 0;
	struct wide v = { .high = time << 16 };

	sha256_init(&s);
	sha256_add(&s, name);
	sha256_end(&s, hash);
	v.high |= (uint64_t)hash[0] << 8 | hash[1];
	for (size_t i = 2; i < 10; i++)
		v.low = v.low << 8 | hash[i];
	encode(v, ret);
}

static bool
all_digits(struct mr_str s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (digit_of(s.ptr[i]) < 0)
			return false;
	}
	return true;
}

bool
id_valid(struct mr_str s)
{
	/* 26 digits are 130 bits: the first may not be above 7 */
	return s.len == MR_ID_LEN && all_digits(s) && s.ptr[0] <= '7';
}

int64_t
id_time_ms(const char *id)
{
	int64_t ms = 0;

	for (size_t i = 0; i < 10; i++) {
		int digit = digit_of(id[i]);
		if (digit < 0)
			return 0;
		ms = ms << 5 | digit;
	}
	return ms;
}

/* ---- Tokens ---- */

void
token_new(char ret[MR_TOKEN_LEN + 1])
{
	uint64_t bits = random_bits(5 * MR_TOKEN_LEN);

	for (size_t i = 0; i < MR_TOKEN_LEN; i++, bits >>= 5)
		ret[i] = alphabet[bits & 31];
	ret[MR_TOKEN_LEN] = '\0';
}

bool
token_valid(struct mr_str s)
{
	return s.len == MR_TOKEN_LEN && all_digits(s);
}
