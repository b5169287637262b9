/* SPDX-License-Identifier: MIT */
/*
 * Every shipped type with its example in tests/data/types: read, checked, rendered again byte for byte, and refused by
 * name with a broken field. Nothing here knows a type.
 */
#include "types.h"

#include <dirent.h>

static const char *const packs[] = { "gastown", "teams", "chipset", "workspace" };

struct example {
	struct type_def def;
	struct buf file;
	struct mr_str subject, body;
	struct type_values values;
	const char *label;
};

static void
example_done(struct example *e)
{
	type_values_done(&e->values);
	type_done(&e->def);
	buf_done(&e->file);
}

/* "Subject: ...", an empty line, the body. "TYPE.more" is another example of TYPE. */
static void
example_load(const char *pack, const char *name, struct example *ret)
{
	mr_auto(buf_done) struct buf path = BUF_INIT, type = BUF_INIT;
	struct mr_error err = { 0 };

	*ret = (struct example){ .label = name };
	buf_add(&type, (struct mr_str){ name, strcspn(name, ".") });
	load_type(pack, buf_z(&type), &ret->def);
	buf_addf(&path, TEST_DATA "/types/%s/%s", pack, name);
	slurp(buf_z(&path), &ret->file);
	const char *end = strchr(ret->file.ptr, '\n');

	assert_non_null(end);
	ret->subject = str_trim((struct mr_str){ ret->file.ptr + 8, (size_t)(end - ret->file.ptr) - 8 });
	ret->body = (struct mr_str){ end + 2, (size_t)(ret->file.ptr + ret->file.len - end) - 2 };
	if (type_read(&ret->def, ret->subject, ret->body, &ret->values, &err) != MR_OK) {
		print_error("%s/%s: %s\n", pack, name, err.message);
		fail();
	}
}

typedef void example_fn(struct example *e);

static void
each_example(example_fn *fn)
{
	for (size_t i = 0; i < sizeof(packs) / sizeof(packs[0]); i++) {
		mr_auto(buf_done) struct buf path = BUF_INIT;
		struct dirent *entry;

		buf_addf(&path, TEST_DATA "/types/%s", packs[i]);
		DIR *dir = opendir(buf_z(&path));

		assert_non_null(dir);
		while ((entry = readdir(dir))) {
			mr_auto(example_done) struct example e;

			e = (struct example){ 0 };
			if (entry->d_name[0] == '.')
				continue;
			example_load(packs[i], entry->d_name, &e);
			fn(&e);
		}
		(void)closedir(dir);
	}
}

static void
expect(bool fine, const struct example *e, const char *what, const char *detail)
{
	if (fine)
		return;
	print_error("%s/%s: %s: %s\n", e->def.pack, e->label, what, detail);
	fail();
}

/* ---- Rendering what was read gives the same bytes ---- */

static const struct type_context context = { .sender = "greenplace/witness", .recipient = "mayor", .now_ms = NOW_MS };

static enum mr_rc
render(const struct example *e, const struct mr_header *given, size_t n, struct buf *subject, struct buf *body,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf own = BUF_INIT;
	struct mr_str text = e->values.free_text;

	type_fill(&own, e->def.text, &e->values);
	if (str_eq(buf_str(&own), text))
		text.len = 0; /* the type brings it along */
	return type_render(&e->def, given, n, &context, text, subject, body, err);
}

static void
comes_back(struct example *e)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
	struct mr_error err = { 0 };

	expect(type_validate(&e->def, &e->values, &err) == MR_OK, e, "is not valid", err.message);
	expect(type_validate_received(&e->def, &e->values, &err) == MR_OK, e, "is not taken", err.message);
	expect(render(e, e->values.v, e->values.n, &subject, &body, &err) == MR_OK, e, "does not render", err.message);
	expect(str_eq(buf_str(&subject), e->subject), e, "another subject", buf_z(&subject));
	expect(str_eq(buf_str(&body), e->body), e, "another body", buf_z(&body));
}

static void
test_each_example_is_rendered_as_it_is(void **state)
{
	(void)state;
	each_example(comes_back);
}

/* ---- The type is known without being told ---- */

static void
is_found(struct example *e)
{
	bool by_body = type_fits_body(&e->def, e->body);
	bool by_subject = type_fits_subject(&e->def, e->subject, NULL);
	bool structured = e->def.body == TYPE_BODY_JSON || e->def.body == TYPE_BODY_FRONT;

	if (structured)
		expect(by_body && !by_subject, e, "is not found", "by its body");
	else if (e->def.body == TYPE_BODY_LINES)
		expect(by_subject && !by_body, e, "is not found", "by its subject");
	else
		expect(!by_subject && !by_body, e, "is taken for everything", e->def.subject);
}

static void
test_each_example_says_its_type(void **state)
{
	(void)state;
	each_example(is_found);
}

/* Of all types of its pack, an example's own fits best. */
static void
fits_best(struct example *e)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	size_t own = type_subject_weight(&e->def, e->subject);
	struct dirent *entry;

	buf_addf(&path, PACKS "%s", e->def.pack);
	DIR *dir = opendir(buf_z(&path));

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		mr_auto(type_done) struct type_def other = { 0 };

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, e->def.name) == 0)
			continue;
		load_type(e->def.pack, entry->d_name, &other);
		expect(own == 0 || type_subject_weight(&other, e->subject) < own, e, "is taken for", other.name);
		expect(!type_fits_body(&other, e->body), e, "has the body of", other.name);
	}
	(void)closedir(dir);
}

static void
test_no_example_is_taken_for_another_type(void **state)
{
	(void)state;
	each_example(fits_best);
}

/* ---- One broken field ---- */

static const char *
broken_value(const struct type_def *def, const struct type_field *f)
{
	switch (f->kind) {
	case TYPE_WORD:
	case TYPE_ADDRESS:
		return "two words";
	case TYPE_TEXT:
		return f->required ? "" : def->body == TYPE_BODY_JSON ? NULL : "two\nlines";
	case TYPE_LIST:
		return "a,, b";
	case TYPE_JSON:
		return NULL;
	case TYPE_TIME:
	case TYPE_NUMBER:
	case TYPE_BOOLEAN:
	case TYPE_LITERAL:
	case TYPE_ONE_OF:
	case TYPE_OBJECT:
	case TYPE_OBJECTS:
		break;
	}
	return "none-of-these";
}

static void
is_refused(struct example *e)
{
	size_t broken = 0;

	for (size_t i = 0; i < e->values.n; i++) {
		mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
		struct mr_header *one = &e->values.v[i], whole = *one;
		struct mr_error err = { 0 };
		const struct type_field *f = type_field(&e->def, one->name);

		expect(f != NULL, e, "has a field that the type does not know", one->name);
		const char *value = broken_value(&e->def, f);

		if (!value || (!value[0] && (!f->required || f->derive || e->def.body == TYPE_BODY_JSON)))
			continue;
		one->value = value;
		expect(render(e, e->values.v, e->values.n, &subject, &body, &err) == MR_REFUSED, e, "was not refused",
		    f->name);
		expect(strstr(err.message, f->name) && err.hint[0], e, "does not name the field", err.message);
		expect(subject.len == 0 && body.len == 0, e, "was rendered all the same", f->name);
		*one = whole;
		broken++;
	}
	expect(broken > 0, e, "has no field that can be broken", "");
}

static void
test_each_example_is_refused_with_a_broken_field(void **state)
{
	(void)state;
	each_example(is_refused);
}

/* ---- One field that is missing ---- */

static void
is_needed(struct example *e)
{
	for (size_t i = 0; i < e->values.n; i++) {
		struct mr_header one = e->values.v[i];
		const struct type_field *f = type_field(&e->def, one.name);
		mr_auto(buf_done) struct buf subject = BUF_INIT, body = BUF_INIT;
		struct type_context nobody = { .now_ms = NOW_MS };
		struct mr_error err = { 0 };
		bool made = f->derive || f->fallback || f->kind == TYPE_LITERAL || strchr(f->name, '.');

		e->values.v[i] = e->values.v[e->values.n - 1];
		enum mr_rc rc = type_render(
		    &e->def, e->values.v, e->values.n - 1, &nobody, e->values.free_text, &subject, &body, &err);

		e->values.v[i] = one;
		if (made || f->kind == TYPE_OBJECT || f->kind == TYPE_OBJECTS)
			continue;
		bool needed = f->required || strcmp(f->name, "Exit") == 0 || strcmp(f->name, "subtype") == 0;

		expect(needed || rc == MR_OK, e, "is needed", f->name);
		expect(!f->required || rc == MR_REFUSED, e, "is not needed", f->name);
	}
}

static void
test_what_is_required_is_needed_and_the_rest_is_not(void **state)
{
	(void)state;
	each_example(is_needed);
}

/* ---- Every type has an example with all its fields ---- */

static void
test_each_type_has_an_example_with_every_field(void **state)
{
	size_t types = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(packs) / sizeof(packs[0]); i++) {
		mr_auto(buf_done) struct buf path = BUF_INIT;
		struct dirent *entry;

		buf_addf(&path, PACKS "%s", packs[i]);
		DIR *dir = opendir(buf_z(&path));

		assert_non_null(dir);
		while ((entry = readdir(dir))) {
			mr_auto(example_done) struct example e;

			e = (struct example){ 0 };
			if (entry->d_name[0] == '.')
				continue;
			example_load(packs[i], entry->d_name, &e);
			types++;
			expect(e.def.summary[0] != '\0', &e, "has no summary", "");
			for (size_t k = 0; k < e.def.fields_n; k++) {
				const struct type_field *f = &e.def.fields[k];

				if (strstr(f->name, "[]") || f->only_field)
					continue;
				expect(type_value(&e.values, f->name) != NULL, &e, "the example lacks", f->name);
			}
		}
		(void)closedir(dir);
	}
	assert_true(types >= 70);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_type_has_an_example_with_every_field),
		cmocka_unit_test(test_each_example_is_rendered_as_it_is),
		cmocka_unit_test(test_each_example_says_its_type),
		cmocka_unit_test(test_no_example_is_taken_for_another_type),
		cmocka_unit_test(test_each_example_is_refused_with_a_broken_field),
		cmocka_unit_test(test_what_is_required_is_needed_and_the_rest_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
