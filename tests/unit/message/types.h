/* SPDX-License-Identifier: MIT */
/* types.h - what the tests of types share: the shipped definitions, read from their files. */
#ifndef TESTS_UNIT_MESSAGE_TYPES_H
#define TESTS_UNIT_MESSAGE_TYPES_H

#include "check.h"
#include "message/type.h"

#include <stdio.h>

#define PACKS TEST_DATA "/../../share/mailroom/types/"
#define NOW_MS 1782893730250 /* 2026-07-01T08:15:30.250Z */

static inline void
slurp(const char *path, struct buf *out)
{
	FILE *file = fopen(path, "rb");
	char chunk[4096];
	size_t n;

	if (!file) {
		print_error("cannot open %s\n", path);
		fail();
		return;
	}
	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
		buf_add(out, (struct mr_str){ chunk, n });
	(void)fclose(file);
	assert_true(buf_ok(out));
}

static inline void
load_type(const char *pack, const char *name, struct type_def *ret)
{
	mr_auto(buf_done) struct buf path = BUF_INIT, text = BUF_INIT;
	struct mr_error err = { 0 };

	buf_addf(&path, PACKS "%s/%s", pack, name);
	slurp(buf_z(&path), &text);
	if (type_parse(buf_str(&text), pack, name, ret, &err) != MR_OK) {
		print_error("%s/%s: %s\n", pack, name, err.message);
		fail();
	}
}

static inline enum mr_rc
parse_text(const char *text, const char *name, struct type_def *ret, struct mr_error *err)
{
	return type_parse(str_of(text), "test", name, ret, err);
}

#endif
