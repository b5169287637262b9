/* SPDX-License-Identifier: MIT */
/* check.h - what the tests of message/ share. */
#ifndef TESTS_UNIT_MESSAGE_CHECK_H
#define TESTS_UNIT_MESSAGE_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/error.h"

#define assert_str(got, literal) check_str((got), STR(literal), __FILE__, __LINE__)

static inline void
check_str(struct mr_str got, struct mr_str want, const char *file, int line)
{
	if (got.len == want.len && (got.len == 0 || memcmp(got.ptr, want.ptr, got.len) == 0))
		return;
	print_error("got '%.*s', want '%.*s'\n", (int)got.len, got.len ? got.ptr : "", (int)want.len, want.ptr);
	_fail(file, line);
}

/* A small seeded generator: a failing case comes again with the same seed. */
static inline uint32_t
next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33);
}

static inline uint32_t
random_below(uint64_t *seed, uint32_t limit)
{
	return next_random(seed) % limit;
}

#endif
