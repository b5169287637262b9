/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a type file, a subject and a body (each ends at a line of equals signs): a definition is refused with a
 * reason or describes messages; what is rendered is read back as it was given.
 */
#include "fuzz.h"

#include "base/text.h"
#include "message/type.h"

/* Types that the body is tried with as well, whatever the input's definition is. */
static const char *const known[] = {
	"Type: X\nSubject: X {A} (no. {B}x)\nField: A; word; required\nField: B; number\nField: C-D; list\nField: E; "
	"text\n"
	"Field: F; one-of a b; default a\nField: G; word; required if F=b\nField: H; time\nIntro: hello\nText: bye "
	"{A}\n",
	"Type: X\nBody: json\nField: type; literal x; required\nField: a; object\nField: a.b; word; required\n"
	"Field: a.c; objects\nField: a.c[].d; number; required\nField: l; list\nField: n; boolean\nField: j; json\n",
	"Type: X\nBody: front\nField: KIND; literal NEW; required\nField: PATH; text; default\n",
	"Type: X\nBody: text\nSubject: {S}\nField: S; text; required\n",
};

static struct mr_str
take_part(struct mr_str *rest)
{
	static const char mark[] = "\n====\n";
	const char *end = rest->len > 0 ? memmem(rest->ptr, rest->len, mark, sizeof(mark) - 1) : NULL;
	struct mr_str part = { rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len };
	size_t taken = end ? part.len + sizeof(mark) - 1 : part.len;

	rest->ptr += taken;
	rest->len -= taken;
	return part;
}

static void
check_same(const struct type_def *def, const struct type_values *given, struct mr_str subject, struct mr_str body)
{
	mr_auto(type_values_done) struct type_values read = { 0 };
	struct mr_error err = { 0 };

	assert(type_read(def, subject, body, &read, &err) == MR_OK);
	assert(type_validate(def, &read, &err) == MR_OK);
	assert(type_validate_received(def, &read, &err) == MR_OK);
	for (size_t i = 0; i < def->fields_n; i++) {
		const struct type_field *f = &def->fields[i];
		const char *was = type_value(given, f->name), *is = type_value(&read, f->name);

		if (was && was[0] && f->kind != TYPE_OBJECT && f->kind != TYPE_OBJECTS && f->kind != TYPE_LIST)
			assert(is && str_eq(str_trim(str_of(was)), str_trim(str_of(is))));
	}
}

static void
check_message(const struct type_def *def, struct mr_str subject, struct mr_str body)
{
	mr_auto(type_values_done) struct type_values values = { 0 };
	mr_auto(buf_done) struct buf out_subject = BUF_INIT, out_body = BUF_INIT;
	struct type_context context = { .sender = "gp/polecats/nux", .recipient = "mayor", .now_ms = 1782893730250 };
	struct mr_error err = { 0 };

	(void)type_subject_weight(def, subject);
	if (type_read(def, subject, body, &values, &err) != MR_OK) {
		assert(err.code == MR_CORRUPT && err.message[0]);
		return;
	}
	assert(values.n <= def->fields_n + TYPE_FIELDS_MAX && values.free_text.len <= body.len);
	if (type_validate(def, &values, &err) != MR_OK)
		assert(err.code == MR_REFUSED && strstr(err.message, "field '"));
	if (type_render(def, values.v, values.n, &context, values.free_text, &out_subject, &out_body, &err) == MR_OK)
		check_same(def, &values, buf_str(&out_subject), buf_str(&out_body));
	else
		assert(err.code == MR_REFUSED && err.message[0]);
	if (type_complete(def, &context, &values, &err) != MR_OK)
		assert(err.code == MR_NOMEM);
	(void)type_route_fits(def, "gp/nux", NULL, "mayor", "mayor");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_str rest = input_of(data, size);
	struct mr_str text = take_part(&rest), subject = take_part(&rest), body = rest;
	struct type_def def = { 0 };
	struct mr_error err = { 0 };

	assert(lies_within(type_word(subject), subject));
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert(type_parse(str_of(known[i]), "p", "X", &def, &err) == MR_OK);
		check_message(&def, subject, body);
		type_done(&def);
	}
	if (type_parse(text, "p", "X", &def, &err) != MR_OK) {
		assert(err.code == MR_REFUSED && err.message[0]);
		return 0;
	}
	assert(def.fields_n <= TYPE_FIELDS_MAX);
	check_message(&def, subject, body);
	type_done(&def);
	return 0;
}
