/* SPDX-License-Identifier: MIT */
/* types.h - what the tests of types share: the shipped definitions, read from their files. */
#ifndef TESTS_UNIT_MESSAGE_TYPES_H
#define TESTS_UNIT_MESSAGE_TYPES_H

#include "check.h"
#include "message/front.h"
#include "message/type_own.h"

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

/* The words that stand for {Field}s are added to fields (may be NULL), in the order of the form, "" for what is not
 * there. */
static inline bool
type_fits_subject(const struct type_def *def, struct mr_str subject, struct mr_names *ret_fields)
{
	struct mr_str parts[TYPE_FIELDS_MAX];
	size_t n, weight;

	if (!type_subject_parts(def, subject, parts, &n, &weight) || weight == 0)
		return false;
	for (size_t i = 0; ret_fields && i < n; i++)
		if (!names_add(ret_fields, parts[i]))
			return false;
	return true;
}

/* A JSON object, or front matter, with the literal fields of this type (a team's {"type": "..."}). */
static inline bool
type_fits_body(const struct type_def *def, struct mr_str body)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json_value object, value;
	struct front front;
	struct mr_str found;
	const char *problem;
	size_t literals = 0;
	bool json = def->body == TYPE_BODY_JSON;

	if (json ? !json_whole(body, &object, &problem) || object.kind != JSON_OBJECT
		 : def->body != TYPE_BODY_FRONT || !front_split(body, &front))
		return false;
	for (size_t i = 0; i < def->fields_n; i++) {
		const struct type_field *f = &def->fields[i];

		if (f->kind != TYPE_LITERAL || strchr(f->name, '.'))
			continue;
		buf_clear(&text);
		if (json && json_find(object, f->name, &value) && value.kind == JSON_STRING)
			json_text(value, &text);
		else if (!json && front_get(front.head, f->name, &found))
			buf_add(&text,
			    (found.len >= 2 && found.ptr[0] == '"' ? (struct mr_str){ found.ptr + 1, found.len - 2 }
								   : found));
		if (!str_eq(buf_str(&text), str_of(f->choices.v[0])))
			return false;
		literals++;
	}
	return literals > 0;
}

#endif
