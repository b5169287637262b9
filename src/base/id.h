/* SPDX-License-Identifier: MIT */
/*
 * id.h - message ids, tokens, hashes, random bytes.
 *
 * An id is a ULID in lower case: 48 bits of milliseconds, then 80 bits of which the first 20 are the nanoseconds within
 * the millisecond, the rest random. Within a process ids only grow, even if the clock is set back.
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include "base/buf.h"

void id_new(char ret[MR_ID_LEN + 1]);
/* A ULID with this time and the hash of these bytes: for messages with ids of other programs. */
void id_from_name(int64_t ms, struct mr_str name, char ret[MR_ID_LEN + 1]);
bool id_valid(struct mr_str s); /* 26 characters of lower-case Crockford base32, no overflow */
int64_t id_time_ms(const char *id);
void token_new(char ret[MR_TOKEN_LEN + 1]); /* 60 random bits, same alphabet */
bool token_valid(struct mr_str s);
void random_bytes(void *ret, size_t n);    /* getrandom, else /dev/urandom; aborts if neither works */
void random_hex(char *ret, size_t digits); /* NUL-terminated: ret has digits + 1 bytes */

struct sha256 {
	uint32_t h[8];
	uint64_t total;
	unsigned char block[64];
};
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, struct mr_str bytes);
void sha256_end(struct sha256 *s, unsigned char ret[32]);
void sha256_end_hex(struct sha256 *s, char ret[65]);
void sha256_hex(struct mr_str bytes, char ret[65]);
/* The hash of a text, for use within one call: a file name for a long name; and a shorter one of 32 digits. */
struct hash_name {
	char z[65];
};
struct hash_name hash_name(const char *fmt, ...) MR_PRINTF(1, 2);
struct hash_name hash_name_short(const char *fmt, ...) MR_PRINTF(1, 2);

#endif
