/* SPDX-License-Identifier: MIT */
/*
 * Our writer against a reader that others wrote. jansson's function names begin with json_ like ours
 * (json_string, json_null), so it is neither included nor linked but loaded, which keeps the two apart.
 */
#include "check.h"
#include "base/text.h"
#include "message/json.h"

#include <dlfcn.h>

enum { JSON_REJECT_DUPLICATES = 1, JSON_DECODE_ANY = 4, JSON_ALLOW_NUL = 16 };
static struct {
	void *(*loadb)(const char *bytes, size_t n, size_t flags, void *error);
	const char *(*string_value)(const void *value);
	size_t (*string_length)(const void *value);
	void (*delete)(void *value);
} jansson;

static int
load_jansson(void **state)
{
	void *lib = dlopen("libjansson.so.4", RTLD_NOW | RTLD_LOCAL);

	(void)state;
	if (!lib) {
		print_error("this test needs jansson: %s\n", dlerror());
		return 1;
	}
	*(void **)&jansson.loadb = dlsym(lib, "json_loadb");
	*(void **)&jansson.string_value = dlsym(lib, "json_string_value");
	*(void **)&jansson.string_length = dlsym(lib, "json_string_length");
	*(void **)&jansson.delete = dlsym(lib, "json_delete");
	return !jansson.loadb || !jansson.string_value || !jansson.string_length || !jansson.delete;
}

static void *
load(const struct buf *b)
{
	void *value = jansson.loadb(b->ptr, b->len, JSON_ALLOW_NUL | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);

	if (!value)
		fail_msg("jansson cannot read %.200s", b->ptr);
	return value;
}

static void
commas_and_brackets_are_right(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	char *names[] = { (char[]){ "a" }, (char[]){ "b\"c" } };
	struct mr_names list = { names, 2 }, none = { 0 };
	struct json j = JSON_INIT(&out);

	(void)state;
	json_open(&j, '{');
	json_key_str(&j, "id", "x");
	json_key_str(&j, "nothing", NULL);
	json_key(&j, "n");
	json_int(&j, INT64_MIN);
	json_key(&j, "yes");
	json_bool(&j, true);
	json_key(&j, "no");
	json_bool(&j, false);
	json_key(&j, "at");
	json_time(&j, 1772706600123);
	json_key(&j, "never");
	json_time(&j, 0);
	json_key(&j, "to");
	json_names(&j, &list);
	json_key(&j, "cc");
	json_names(&j, &none);
	json_key(&j, "deep");
	json_open(&j, '[');
	json_open(&j, '{');
	json_close(&j);
	json_null(&j);
	json_int(&j, 3);
	json_close(&j);
	json_close(&j);
	assert_string_equal(buf_z(&out),
	    "{\"id\":\"x\",\"nothing\":null,\"n\":-9223372036854775808,\"yes\":true,\"no\":false,"
	    "\"at\":\"2026-03-05T10:30:00.123Z\",\"never\":null,\"to\":[\"a\",\"b\\\"c\"],\"cc\":[],\"deep\":"
	    "[{},null,3]}");
	jansson.delete(load(&out));
}

static void
a_second_object_begins_without_a_comma(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct json j = JSON_INIT(&out);

	(void)state;
	for (int i = 0; i < 2; i++) {
		json_open(&j, '{');
		json_key(&j, "i");
		json_int(&j, i);
		json_close(&j);
		buf_addc(&out, '\n');
	}
	assert_string_equal(buf_z(&out), "{\"i\":0}\n{\"i\":1}\n");
}

static void
no_control_or_line_separator_is_written_raw(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct json j = JSON_INIT(&out);

	(void)state;
	json_str(&j, STR("\x1b[31m\n\t\r\b\f\0 \x7f \xe2\x80\xa8\xe2\x80\xa9 \"\\/"));
	for (size_t i = 0; i < out.len; i++)
		assert_true((unsigned char)out.ptr[i] >= 0x20);
	assert_null(strstr(out.ptr, "\xe2\x80\xa8"));
	assert_null(strstr(out.ptr, "\xe2\x80\xa9"));
	jansson.delete(load(&out));
}

static void
json_that_is_passed_on_keeps_its_sense_without_blanks_and_hidden_characters(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;
	struct json j = JSON_INIT(&out);

	(void)state;
	json_raw(&j, STR("{ \"a b\" : [ 1.50 ,\n\"x \\\" \\u0041 \xe2\x80\xae\xc2\x9b\x7f \xc3\xa4\" ] }"));
	assert_string_equal(buf_z(&out), "{\"a b\":[1.50,\"x \\\" \\u0041 \\u202e\\u009b\\u007f \xc3\xa4\"]}");
	jansson.delete(load(&out));
}

/* The same repair, written the plain way. */
static void
replace_bad_bytes(struct buf *out, struct mr_str s)
{
	uint32_t cp;

	while (s.len > 0) {
		size_t n = utf8_next(s, &cp);
		if (n > 0)
			buf_add(out, (struct mr_str){ s.ptr, n });
		else
			buf_adds(out, "\xef\xbf\xbd");
		n = n ? n : 1;
		s.ptr += n;
		s.len -= n;
	}
}

static void
another_reader_gets_any_bytes_back(void **state)
{
	static const char *const pieces[] = { "é", "🤝", "\xe2\x80\xa8", "\xed\xa0\x80", "\xff", "\xc3", "\"", "\\",
		"\n" };
	uint64_t seed = 23;

	(void)state;
	for (uint32_t round = 0; round < 3000; round++) {
		mr_auto(buf_done) struct buf bytes = BUF_INIT;
		mr_auto(buf_done) struct buf out = BUF_INIT;
		mr_auto(buf_done) struct buf want = BUF_INIT;
		for (uint32_t n = random_below(&seed, 40); n > 0; n--) {
			if (random_below(&seed, 2))
				buf_adds(&bytes, pieces[random_below(&seed, 9)]);
			else
				buf_addc(&bytes, (char)random_below(&seed, 256));
		}
		struct json j = JSON_INIT(&out);
		json_str(&j, buf_str(&bytes));
		void *value = load(&out);
		replace_bad_bytes(&want, buf_str(&bytes));
		struct mr_str got = { jansson.string_value(value), jansson.string_length(value) };
		check_str(got, buf_str(&want), __FILE__, __LINE__);
		jansson.delete(value);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas_and_brackets_are_right),
		cmocka_unit_test(a_second_object_begins_without_a_comma),
		cmocka_unit_test(no_control_or_line_separator_is_written_raw),
		cmocka_unit_test(json_that_is_passed_on_keeps_its_sense_without_blanks_and_hidden_characters),
		cmocka_unit_test(another_reader_gets_any_bytes_back),
	};
	return cmocka_run_group_tests_name("json", tests, load_jansson, NULL);
}
