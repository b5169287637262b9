/* SPDX-License-Identifier: MIT */
/* id.c - ULIDs, tokens, random bytes, hashes. */
#include "base/id.h"
#include "base/clock.h"
#include "base/sys.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Crockford's base32 in lower case: no i, l, o, u */
static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

#define TIME_BITS 48
#define RANDOM_BITS 60

struct wide { /* 128 bits, big endian */
	uint64_t high, low;
};

/* ---- Random bytes ---- */

void
random_bytes(void *ret, size_t n)
{
	if (!sys_random(ret, n))
		abort(); /* guessable or repeated ids are worse than no process */
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

/* Its place in the alphabet, -1: none. It must be fast: every letter of every name in a folder passes through here. */
static int
digit_of(char c)
{
	static const signed char letters[26] = { 10, 11, 12, 13, 14, 15, 16, 17, -1, 18, 19, -1, 20, 21, -1, 22, 23, 24,
		25, 26, -1, 27, 28, 29, 30, 31 };

	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'z' ? letters[c - 'a'] : -1;
}

void
id_new(char ret[MR_ID_LEN + 1])
{
	static _Thread_local struct wide last;
	int64_t now_ns = clock_now_ns();
	uint64_t ns = now_ns > 0 ? (uint64_t)now_ns : 0, nano = ns % 1000000;
	uint64_t ms = ns / 1000000 & (((uint64_t)1 << TIME_BITS) - 1);
	/* 48 bits of time and 16 of the nanoseconds above; 4 of these and 60 random bits below */
	struct wide v = { ms << 16 | nano >> 4, (nano & 15) << RANDOM_BITS | random_bits(RANDOM_BITS) };

	if (v.high < last.high || (v.high == last.high && v.low <= last.low)) {
		/* The clock was set back. The step is random, because a process and its forked child share `last` and
		 * would otherwise continue with the same ids. */
		v = last;
		if (__builtin_add_overflow(v.low, random_bits(40) + 1, &v.low))
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
	for (size_t i = 0; i < s.len; i++)
		if (digit_of(s.ptr[i]) < 0)
			return false;
	return true;
}

bool
id_valid(struct mr_str s)
{
	/* 26 digits are 130 bits: the first digit is at most 7 */
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

/* ---- SHA-256 as in FIPS 180-4 ---- */

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constant[64] = { 0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7,
	0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c,
	0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2 };

static uint32_t
rotate(uint32_t x, unsigned by)
{
	return x >> by | x << (32 - by);
}

static void
mix_block(uint32_t h[8], const unsigned char block[64])
{
	uint32_t w[64], v[8];

	for (size_t i = 0; i < 16; i++) {
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	}
	for (size_t i = 16; i < 64; i++) {
		uint32_t a = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t b = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
		w[i] = w[i - 16] + a + w[i - 7] + b;
	}
	memcpy(v, h, sizeof(v));
	for (size_t i = 0; i < 64; i++) {
		/* Rotates the indexes and not the eight values: a memmove cost more than the rest. */
		size_t to = 64 - i;
		uint32_t a = v[to & 7], b = v[(to + 1) & 7], c = v[(to + 2) & 7];
		uint32_t e = v[(to + 4) & 7], f = v[(to + 5) & 7], g = v[(to + 6) & 7];
		uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
		uint32_t t1 = v[(to + 7) & 7] + s1 + ((e & f) ^ (~e & g)) + round_constant[i] + w[i];
		uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);

		v[(to + 3) & 7] += t1;
		v[(to + 7) & 7] = t1 + s0 + ((a & b) ^ (a & c) ^ (b & c));
	}
	for (size_t i = 0; i < 8; i++)
		h[i] += v[i];
}

void
sha256_init(struct sha256 *s)
{
	*s = (struct sha256){ .h = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
				  0x5be0cd19 } };
}

void
sha256_add(struct sha256 *s, struct mr_str bytes)
{
	while (bytes.len > 0) {
		size_t filled = s->total % 64;
		size_t part = bytes.len < 64 - filled ? bytes.len : 64 - filled;

		memcpy(s->block + filled, bytes.ptr, part);
		s->total += part;
		bytes = str_from(bytes, part);
		if (filled + part == 64)
			mix_block(s->h, s->block);
	}
}

void
sha256_end(struct sha256 *s, unsigned char ret[32])
{
	static const char padding[64] = { (char)0x80 };
	uint64_t bits = s->total * 8;
	char length[8];
	size_t filled = s->total % 64;

	sha256_add(s, (struct mr_str){ padding, filled < 56 ? 56 - filled : 120 - filled });
	for (size_t i = 0; i < 8; i++)
		length[i] = (char)(bits >> (56 - 8 * i));
	sha256_add(s, (struct mr_str){ length, sizeof(length) });
	for (size_t i = 0; i < 32; i++)
		ret[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void
sha256_end_hex(struct sha256 *s, char ret[65])
{
	unsigned char hash[32];

	sha256_end(s, hash);
	for (size_t i = 0; i < 32; i++) {
		ret[2 * i] = "0123456789abcdef"[hash[i] >> 4];
		ret[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
	}
	ret[64] = '\0';
}

void
sha256_hex(struct mr_str bytes, char ret[65])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, bytes);
	sha256_end_hex(&s, ret);
}

static struct hash_name
name_of(const char *fmt, va_list args)
{
	struct hash_name name;
	char *text = NULL;

	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	sha256_hex(str_of(text ? text : ""), name.z); /* without memory: a unique name */
	free(text);
	return name;
}

struct hash_name
hash_name(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	struct hash_name name = name_of(fmt, args);

	va_end(args);
	return name;
}

struct hash_name
hash_name_short(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	struct hash_name name = name_of(fmt, args);

	va_end(args);
	name.z[32] = '\0';
	return name;
}
