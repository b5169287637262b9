/* SPDX-License-Identifier: MIT */
/*
 * Our reader of JSON against one that others wrote: what is taken and what is refused, what strings mean. jansson is
 * loaded and not linked, as in test_json.c: its names begin with json_ like ours.
 */
#include "check.h"
#include "base/text.h"
#include "message/json_read.h"

#include <dlfcn.h>
#include <stdio.h>

enum { JSON_DECODE_ANY = 4, JSON_ALLOW_NUL = 16 };
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

static void
free_jansson(void **value) /* counted by reference: ours is the only one */
{
	if (*value)
		jansson.delete(*value);
}

/* Where the two may differ: bytes that are no UTF-8, halves of surrogate pairs, numbers too large for a double or an
 * int64, an escaped NUL in a name: ours takes them, it only finds the ends. */
static bool
is_left_open(struct mr_str text)
{
	mr_auto(buf_done) struct buf z = BUF_INIT;

	buf_add(&z, text);
	if (!utf8_valid(text) || strstr(buf_z(&z), "\\ud") || strstr(buf_z(&z), "\\uD") || strstr(buf_z(&z), "\\u0000"))
		return true;
	for (size_t i = 0, digits = 0; i < text.len; i++) {
		digits = text.ptr[i] >= '0' && text.ptr[i] <= '9' ? digits + 1 : 0;
		if (digits > 2 && memchr(text.ptr, 'e', text.len))
			return true;
		if (digits > 17 || text.ptr[i] == 'E')
			return true;
	}
	return false;
}

/* Member by member it has the same members, ends at the same place and has the same problem. */
static void
compare_members(struct mr_str text)
{
	struct json_value value = { 0 }, key = { 0 }, one = { 0 }, again = { 0 }, known = { 0 };
	const char *problem = NULL, *why = NULL;
	size_t end = 0, at = json_skip_space(text, 0), walked = 0;

	if (at >= text.len || text.ptr[at] != '{')
		return;
	bool whole = json_value_at(text, &end, &value, &problem);

	while (json_member_at(text, &at, &key, &one, &why)) {
		if (!whole)
			continue;
		assert_true(json_member(value, &walked, &known, &again));
		assert_true(known.raw.ptr == key.raw.ptr && known.raw.len == key.raw.len);
		assert_true(again.raw.ptr == one.raw.ptr && again.raw.len == one.raw.len && again.kind == one.kind);
	}
	assert_int_equal(at, end);
	assert_true(whole == !why);
	if (why)
		assert_string_equal(why, problem);
}

static void
compare(struct mr_str text)
{
	struct json_value value = { 0 };
	const char *problem = NULL;
	mr_auto(free_jansson) void *theirs = jansson.loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	bool ours = json_whole(text, &value, &problem);

	compare_members(text);
	if (is_left_open(text))
		return;
	if (ours != (theirs != NULL))
		fail_msg("'%.*s': ours %s%s, jansson %s", (int)text.len, text.ptr, ours ? "takes it" : "says that it ",
		    ours ? "" : problem, theirs ? "takes it" : "refuses it");
	if (!ours || value.kind != JSON_STRING)
		return;
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	json_text(value, &plain);
	assert_int_equal(plain.len, jansson.string_length(theirs));
	assert_memory_equal(buf_z(&plain), jansson.string_value(theirs), plain.len);
}

static void
takes_and_refuses_what_jansson_does(void **state)
{
	static const char *const texts[] = { "", " ", "null", "nul", "nullx", "true", "false", "0", "-0", "01", "-",
		"1.", "1.5", ".5", "1e5", "1e", "1e+", "1E-2", "+1", "\"\"", "\"a", "\"\\n\\t\\/\\\\\\\"\\b\\f\\r\"",
		"\"\\x\"", "\"\\u00e9\"", "\"\\u00g0\"", "\"\\u12", "\"\n\"", "[]", "[ ]", "[1,]", "[,1]", "[1 2]",
		"[1,2]", "[", "]", "{}", "{ }", "{\"a\":1}", "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{a:1}",
		"{\"a\":1 \"b\":2}", "{\"a\":1,\"a\":2}", "[{\"a\":[{}]}]", "[1]]", "[1] x", "\xef\xbb\xbf[]", "/**/1",
		"'a'", "NaN", "[\"\\u20ac\",\"\xe2\x82\xac\"]", "{\"a\":{\"b\":[true,false,null]}}",
		" \t\r\n[\r\n1\t] \n", "\v1" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		compare(str_of(texts[i]));
}

/* Pieces thrown together, and whole texts with one byte changed. */
static void
takes_and_refuses_whatever_chance_makes(void **state)
{
	static const char *const pieces[] = { "{", "}", "[", "]", ",", ":", "\"a\"", "\"b\\n\"", "1", "-2.5", "true",
		"null", " ", "\"", "\\", "e", "0" };
	static const char object[] = "{ \"a\" : [1, {\"d\": {}}], \"b\":\"x\\ty\" , \"c\": {\"e\": null} }";
	static const char whole[] = "[{\"a\": [1, -2.5, \"x\\ty\"], \"b\": {\"c\": null}}, true, \"\\u00e9\"]";
	uint64_t seed = 7;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		for (uint32_t n = random_below(&seed, 9) + 1; n > 0; n--)
			buf_adds(&text, pieces[random_below(&seed, sizeof pieces / sizeof pieces[0])]);
		compare(buf_str(&text));
		buf_clear(&text);
		buf_adds(&text, whole);
		text.ptr[random_below(&seed, sizeof whole - 1)] = (char)(32 + random_below(&seed, 95));
		compare(buf_str(&text));
		buf_clear(&text);
		buf_add(
		    &text, (struct mr_str){ object, sizeof object - 1 - random_below(&seed, 2) * (unsigned)(i % 40) });
		text.ptr[random_below(&seed, (uint32_t)text.len)] = "{}[],: \"a\\1"[random_below(&seed, 11)];
		compare(buf_str(&text));
	}
}

static void
values_are_pieces_of_the_text(void **state)
{
	static const char text[] = "{ \"a\" : [ 1.50 , {\"x\":\"\\ud800y\"} ] , \"\\u0061\" : \"z\" }";
	struct json_value all = { 0 }, one = { 0 }, key = { 0 };
	const char *problem = NULL;
	size_t at = 0;
	mr_auto(buf_done) struct buf plain = BUF_INIT;

	(void)state;
	assert_true(json_whole(STR(text), &all, &problem));
	assert_true(json_member(all, &at, &key, &one));
	assert_str(one.raw, "[ 1.50 , {\"x\":\"\\ud800y\"} ]");
	size_t in = 0;
	struct json_value item = { 0 };

	assert_true(json_item(one, &in, &item));
	assert_str(item.raw, "1.50");
	assert_true(json_item(one, &in, &item) && json_find_text(item, "x", &plain));
	assert_str(buf_str(&plain), "\xef\xbf\xbdy");
	assert_false(json_item(one, &in, &item));
	assert_true(json_find(all, "a", &one) && one.kind == JSON_STRING); /* the last of that name */
	assert_false(json_find(all, "b", &one));
}

static void
depth_has_an_end(void **state)
{
	char text[4 * JSON_DEPTH_MAX];
	struct json_value value = { 0 };
	const char *problem = NULL;

	(void)state;
	for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		assert_int_equal(
		    json_whole((struct mr_str){ text, 2 * depth }, &value, &problem), depth == JSON_DEPTH_MAX);
		memcpy(text, "{\"\":", 4); /* in an object one level less is left */
		memset(text + 4, '[', depth - 1);
		memset(text + 3 + depth, ']', depth - 1);
		text[2 + 2 * depth] = '}';
		compare_members((struct mr_str){ text, 3 + 2 * depth });
	}
	assert_string_equal(problem, "is nested too deep");
}

static void
truth_is_that_of_javascript(void **state)
{
	static const struct {
		const char *text;
		bool is;
	} values[] = { { "null", false }, { "false", false }, { "true", true }, { "0", false }, { "-0.0e9", false },
		{ "0.01", true }, { "\"\"", false }, { "\"0\"", true }, { "[]", true }, { "{}", true } };

	(void)state;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		struct json_value value = { 0 };
		const char *problem = NULL;

		assert_true(json_whole(str_of(values[i].text), &value, &problem));
		assert_int_equal(json_truthy(value), values[i].is);
	}
}

static void
strings_are_written_as_javascript_does(void **state)
{
	mr_auto(buf_done) struct buf out = BUF_INIT;

	(void)state;
	json_stringify(&out, STR("\"\\/\b\t\n\f\r\x01\x1f\x7f<>&\xc2\x80\xe2\x80\xa8\xf0\x9f\xa4\x9d\0\xff"));
	assert_str(buf_str(&out),
	    "\"\\\"\\\\/\\b\\t\\n\\f\\r\\u0001\\u001f\x7f<>&\xc2\x80\xe2\x80\xa8\xf0\x9f\xa4\x9d\\u0000\xef\xbf\xbd\"");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_and_refuses_what_jansson_does),
		cmocka_unit_test(takes_and_refuses_whatever_chance_makes),
		cmocka_unit_test(values_are_pieces_of_the_text),
		cmocka_unit_test(depth_has_an_end),
		cmocka_unit_test(truth_is_that_of_javascript),
		cmocka_unit_test(strings_are_written_as_javascript_does),
	};

	return cmocka_run_group_tests(tests, load_jansson, NULL);
}
