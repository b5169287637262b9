/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - one target a parser. A target takes any bytes and asserts what must hold for all of them.
 * Linked with libFuzzer it searches; linked with standalone.c it replays its corpus as a plain test.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#undef NDEBUG
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline struct mr_str
input_of(const uint8_t *data, size_t size)
{
	return (struct mr_str){ size > 0 ? (const char *)data : "", size };
}

static inline bool
lies_within(struct mr_str part, struct mr_str whole)
{
	return part.len == 0 || (part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len);
}

#endif
