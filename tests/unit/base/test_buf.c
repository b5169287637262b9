/* SPDX-License-Identifier: MIT */
#include "scratch.h"
#include <inttypes.h>

#include <stdalign.h>

static void
a_buffer_grows_and_always_ends_in_nul(void **state)
{
	(void)state;
	mr_auto(buf_done) struct buf b = BUF_INIT;

	assert_string_equal(buf_z(&b), "");
	for (int i = 0; i < 1000; i++) {
		buf_addf(&b, "%d", i % 10);
		assert_int_equal(b.ptr[b.len], '\0');
	}
	buf_add(&b, STR("a\0b"));
	buf_addc(&b, 'c');
	buf_adds(&b, "");
	assert_int_equal(buf_str(&b).len, 1004);
	assert_memory_equal(b.ptr + 1000, "a\0bc", 5);
	assert_true(buf_ok(&b));
}

static void
a_buffer_in_an_array_leaves_it_when_it_must(void **state)
{
	(void)state;
	char array[8] = "rubbish";
	struct buf b = BUF_IN(array);

	assert_string_equal(buf_z(&b), "");
	buf_adds(&b, "1234567");
	assert_ptr_equal(b.ptr, array); /* and the NUL: full */
	buf_addc(&b, '8');
	assert_ptr_not_equal(b.ptr, array);
	assert_string_equal(buf_z(&b), "12345678");
	buf_done(&b);
	b = BUF_IN(array);
	buf_adds(&b, "1234567");
	mr_auto(free_ptr) char *taken = buf_take(&b); /* never the array itself */

	assert_ptr_not_equal(taken, array);
	assert_string_equal(taken, "1234567");
	assert_null(b.ptr);
	b = BUF_IN(array);
	assert_false(buf_reserve(&b, SIZE_MAX));
	buf_done(&b); /* the array is not freed */
}

static void
a_failed_buffer_stays_failed_until_it_is_cleared(void **state)
{
	(void)state;
	struct buf b = BUF_INIT;

	buf_adds(&b, "x");
	assert_false(buf_reserve(&b, SIZE_MAX));
	buf_adds(&b, "y");
	assert_false(buf_ok(&b));
	assert_string_equal(buf_z(&b), "x");
	assert_null(buf_take(&b));
	assert_true(buf_ok(&b));
	assert_null(b.ptr);
}

static void
taking_an_empty_buffer_gives_an_empty_string(void **state)
{
	(void)state;
	struct buf b = BUF_INIT;
	mr_auto(free_ptr) char *taken = buf_take(&b);

	assert_string_equal(taken, "");
	assert_int_equal(b.len, 0);
}

static void
strings_compare_and_trim(void **state)
{
	(void)state;

	assert_true(str_eq((struct mr_str){ NULL, 0 }, STR("")));
	assert_false(str_eq(STR("a\0b"), STR("a\0c")));
	assert_true(str_caseeq(STR("AbC"), STR("aBc")));
	assert_false(str_caseeq(STR("\xC3\x84"), STR("\xC3\xA4"))); /* ASCII only */
	assert_true(str_starts(STR("abc"), "ab") && !str_starts(STR("a"), "ab"));
	assert_true(str_ends(STR("abc"), "bc") && !str_ends(STR("c"), "bc") && str_ends(STR(""), ""));
	assert_true(str_eq(str_trim(STR(" \t a b\t ")), STR("a b")));
	assert_int_equal(str_trim(STR(" \t ")).len, 0);
	assert_true(ascii_caseeq("From", "fROM"));
	assert_false(ascii_caseeq("From", "Fro"));
}

static void
numbers_are_digits_only_and_do_not_overflow(void **state)
{
	(void)state;
	uint64_t n = 7;

	assert_false(str_to_u64(STR(""), &n));
	assert_false(str_to_u64(STR("-1"), &n));
	assert_false(str_to_u64(STR("+1"), &n));
	assert_false(str_to_u64(STR(" 1"), &n));
	assert_false(str_to_u64(STR("1x"), &n));
	assert_false(str_to_u64(STR("18446744073709551616"), &n));
	assert_false(str_to_u64(STR("99999999999999999999"), &n));
	assert_int_equal(n, 7);
	assert_true(str_to_u64(STR("18446744073709551615"), &n));
	assert_true(n == UINT64_MAX);
	assert_true(str_to_u64(STR("007"), &n));
	assert_int_equal(n, 7);
}

static void
an_arena_gives_zeroed_aligned_memory_of_any_size(void **state)
{
	(void)state;
	struct arena *a = NULL;

	arena_free(NULL);
	for (size_t size = 0; size < 6000; size += 37) {
		unsigned char *p = arena_alloc(&a, size);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
		for (size_t i = 0; i < size; i++)
			assert_int_equal(p[i], 0);
		memset(p, 0xAA, size);
	}
	assert_string_equal(arena_dup(&a, (struct mr_str){ "abcdef", 3 }), "abc");
	assert_string_equal(arena_dup(&a, (struct mr_str){ NULL, 0 }), "");
	assert_null(arena_alloc(&a, SIZE_MAX));
	arena_free(a);
}

static void
a_list_keeps_its_items_and_what_they_live_in(void **state)
{
	struct item {
		char name[24];
		const char *text;
	} * v;
	MR_LIST(items, struct item) list;
	struct roll l = { 0 };
	struct arena *others = NULL;
	char *joined = arena_dup(&others, STR("joined"));

	for (int i = 99; i >= 0; i--) {
		struct item *at = roll_add(&l, sizeof(*at));

		assert_non_null(at);
		assert_null(at->text); /* zeroed, also behind a growth */
		snprintf(at->name, sizeof(at->name), "n%02d", i);
		at->text = i == 50 ? joined : roll_str(&l, at->name);
		if (i == 50)
			roll_join(&l, others);
	}
	assert_string_equal(roll_str(&l, NULL), "");
	assert_false(l.failed);
	roll_sort(&l, sizeof(*v));
	list = (struct items){ .v = l.v, .n = l.n, .own = roll_take(&l) };
	roll_done(&l); /* has nothing any more */
	assert_int_equal(list.n, 100);
	for (size_t i = 0; i < list.n; i++) {
		char name[24];

		v = &list.v[i];
		snprintf(name, sizeof(name), "n%02zu", i);
		assert_string_equal(v->name, name);
		assert_string_equal(v->text, i == 50 ? "joined" : v->name);
	}
	mr_list_done(&list);
	assert_null(list.own);
	mr_list_done(NULL);
	(void)state;
}

static void
names_are_copied_and_found(void **state)
{
	(void)state;
	struct mr_names names = { 0 };
	char text[16];

	assert_null(names_list(&names)[0]);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof(text), "n%d", i);
		assert_true(names_add(&names, str_of(text)));
		assert_string_equal(names_list(&names)[i], text);
		assert_null(names_list(&names)[i + 1]);
	}
	assert_int_equal(names.n, 1000);
	assert_string_equal(names.v[0], "n0");
	assert_string_equal(names.v[999], "n999");
	assert_true(names_has(&names, "n512"));
	assert_false(names_has(&names, "n1000"));
	mr_names_done(&names);
	mr_names_done(&names);
	mr_names_done(NULL);
	assert_null(names.v);
}

static void
joined_strings_are_cut_off_where_the_room_ends(void **state)
{
	(void)state;
	char to[8] = "xxxxxxx";

	text_join(to, sizeof to, "", NULL);
	assert_string_equal(to, "");
	text_join(to, sizeof to, "a", "/", "b", NULL);
	assert_string_equal(to, "a/b");
	text_join(to, sizeof to, "1234", "567", NULL);
	assert_string_equal(to, "1234567");
	text_join(to, sizeof to, "1234", "5678", "9", NULL);
	assert_string_equal(to, "1234567");
	text_join(to, 1, "1", NULL);
	assert_string_equal(to, "");
}

static void
numbers_are_written_as_printf_writes_them(void **state)
{
	static const uint64_t numbers[] = { 0, 1, 9, 10, 99, 100, 1794751304, 9999999999u, UINT64_MAX };
	char ours[32], theirs[32];

	(void)state;
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		int n = snprintf(theirs, sizeof theirs, "%" PRIu64, numbers[i]);

		assert_int_equal(text_number(ours, numbers[i], 0), n);
		assert_string_equal(ours, theirs);
		n = snprintf(theirs, sizeof theirs, "%010" PRIu64, numbers[i]);
		assert_int_equal(text_number(ours, numbers[i], 10), n);
		assert_string_equal(ours, theirs);
	}
}

static void
other_bytes_stand_in_the_place_of_some(void **state)
{
	mr_auto(buf_done) struct buf b = BUF_INIT;

	(void)state;
	buf_replace(&b, 0, 0, STR("ad"));
	buf_replace(&b, 1, 1, STR("bc"));
	assert_string_equal(buf_z(&b), "abcd");
	buf_replace(&b, 0, 3, STR("x"));
	assert_string_equal(buf_z(&b), "xd");
	buf_replace(&b, 1, 2, STR("yz, and more than there was room for, so that it has to grow to hold all of it"));
	assert_string_equal(
	    buf_z(&b), "xyz, and more than there was room for, so that it has to grow to hold all of it");
	buf_replace(&b, 3, b.len, STR(""));
	assert_string_equal(buf_z(&b), "xyz");
	assert_int_equal(b.len, 3);
}

static void
a_word_is_found_in_a_list_as_a_whole(void **state)
{
	(void)state;
	assert_true(str_is_among(STR("new"), "tmp new cur", " "));
	assert_true(str_is_among(STR("CUR"), "tmp new cur", " "));
	assert_true(str_is_among(STR(".."), "a//../b", "/"));
	assert_false(str_is_among(STR("ne"), "tmp new cur", " "));
	assert_false(str_is_among(STR("tmp new"), "tmp new cur", " "));
	assert_false(str_is_among(STR(""), " tmp  new ", " "));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_grows_and_always_ends_in_nul),
		cmocka_unit_test(a_buffer_in_an_array_leaves_it_when_it_must),
		cmocka_unit_test(a_failed_buffer_stays_failed_until_it_is_cleared),
		cmocka_unit_test(taking_an_empty_buffer_gives_an_empty_string),
		cmocka_unit_test(strings_compare_and_trim),
		cmocka_unit_test(numbers_are_digits_only_and_do_not_overflow),
		cmocka_unit_test(an_arena_gives_zeroed_aligned_memory_of_any_size),
		cmocka_unit_test(a_list_keeps_its_items_and_what_they_live_in),
		cmocka_unit_test(names_are_copied_and_found),
		cmocka_unit_test(joined_strings_are_cut_off_where_the_room_ends),
		cmocka_unit_test(numbers_are_written_as_printf_writes_them),
		cmocka_unit_test(other_bytes_stand_in_the_place_of_some),
		cmocka_unit_test(a_word_is_found_in_a_list_as_a_whole),
	};

	return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
