/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "base/clock.h"
#include "base/id.h"

static void
ids_grow_within_a_process_also_when_the_clock_is_set_back(void **state)
{
	(void)state;
	char last[MR_ID_LEN + 1], id[MR_ID_LEN + 1];

	clock_shift_ms(0);
	id_new(last);
	for (int i = 0; i < 20000; i++) {
		if (i % 1000 == 500)
			clock_shift_ms(-60000 * (i % 7));
		id_new(id);
		assert_true(id_valid(str_of(id)));
		assert_true(strcmp(last, id) < 0);
		memcpy(last, id, sizeof(id));
	}
	clock_shift_ms(0);
}

static void
a_parent_and_its_child_do_not_make_the_same_id_after_the_clock_was_set_back(void **state)
{
	(void)state;
	char mine[MR_ID_LEN + 1], theirs[MR_ID_LEN + 1] = "";
	int ends[2];

	clock_shift_ms(3600 * 1000);
	id_new(mine);
	clock_shift_ms(0);
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		id_new(theirs);
		_exit(write(ends[1], theirs, MR_ID_LEN) == MR_ID_LEN ? 0 : 1);
	}
	id_new(mine);
	assert_int_equal(read(ends[0], theirs, MR_ID_LEN), MR_ID_LEN);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_string_not_equal(mine, theirs);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void
an_id_carries_its_time(void **state)
{
	(void)state;
	char id[MR_ID_LEN + 1];

	id_from_name(1772706600123, STR("x"), id);
	assert_int_equal(id_time_ms(id), 1772706600123);
	id_from_name(0, STR("x"), id);
	assert_int_equal(id_time_ms(id), 0);
	assert_memory_equal(id, "0000000000", 10);
	id_from_name(281474976710655, STR("x"), id);
	assert_int_equal(id_time_ms(id), 281474976710655);
	assert_memory_equal(id, "7zzzzzzzzz", 10);
}

static void
the_nanoseconds_within_the_millisecond_keep_the_order(void **state)
{
	(void)state;
	char id[MR_ID_LEN + 1];
	static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";

	clock_shift_ms(7200 * 1000); /* beyond what other tests made: no step on the last id */
	int64_t before_ns = clock_now_ns();
	id_new(id);
	int64_t after_ns = clock_now_ns();
	clock_shift_ms(0);
	int64_t nano = 0;
	for (size_t i = 10; i < 14; i++)
		nano = nano << 5 | (strchr(alphabet, id[i]) - alphabet);
	int64_t made_ns = id_time_ms(id) * 1000000 + nano;
	assert_true(made_ns >= before_ns && made_ns <= after_ns);
}

static void
the_same_name_gives_the_same_id(void **state)
{
	(void)state;
	char a[MR_ID_LEN + 1], b[MR_ID_LEN + 1], c[MR_ID_LEN + 1];

	id_from_name(1700000000000, STR("1700000000.M1P2.host"), a);
	id_from_name(1700000000000, STR("1700000000.M1P2.host"), b);
	id_from_name(1700000000000, STR("1700000000.M1P3.host"), c);
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
	assert_true(id_valid(str_of(a)));
	/* 80 bits of sha256("abc") = ba7816bf8f01cfea4141 after a zero time */
	id_from_name(0, STR("abc"), a);
	assert_string_equal(a, "0000000000q9w1dfwf077ymga1");
}

static void
only_ids_are_valid_ids(void **state)
{
	(void)state;

	assert_true(id_valid(STR("01arz3ndektsv4rrffq69g5fav")));
	assert_true(id_valid(STR("7zzzzzzzzzzzzzzzzzzzzzzzzz")));
	assert_false(id_valid(STR("8zzzzzzzzzzzzzzzzzzzzzzzzz"))); /* more than 128 bits */
	assert_false(id_valid(STR("01ARZ3NDEKTSV4RRFFQ69G5FAV")));
	assert_false(id_valid(STR("01arz3ndektsv4rrffq69g5fa")));
	assert_false(id_valid(STR("01arz3ndektsv4rrffq69g5favv")));
	assert_false(id_valid(STR("01arz3ndektsv4rrffq69g5fal")));
	assert_false(id_valid(STR("01arz3ndektsv4rrffq69g5fa\0")));
	assert_false(id_valid(STR("../../../../../../etc/pass")));
	assert_false(id_valid(STR("")));
}

static void
tokens_are_valid_and_differ(void **state)
{
	(void)state;
	char a[MR_TOKEN_LEN + 1], b[MR_TOKEN_LEN + 1], hex[8] = "zzzzzzz";

	token_new(a);
	token_new(b);
	assert_true(token_valid(str_of(a)) && token_valid(str_of(b)));
	assert_string_not_equal(a, b);
	assert_false(token_valid(STR("0123456789a")));
	assert_false(token_valid(STR("0123456789a/")));
	random_hex(hex, 5);
	assert_int_equal(strspn(hex, "0123456789abcdef"), 5);
	assert_int_equal(strlen(hex), 5);
	assert_int_equal(hex[6], 'z');
}

static void
sha256_gives_the_published_values(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
	} vectors[] = {
		{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
		{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
		{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
		  "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
		    "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
	};
	char hex[65];

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		sha256_hex(str_of(vectors[i].text), hex);
		assert_string_equal(hex, vectors[i].want);
	}
}

static void
sha256_does_not_care_how_the_bytes_are_cut(void **state)
{
	(void)state;
	struct sha256 s;
	unsigned char hash[32];
	static const unsigned char million_a[4] = { 0xcd, 0xc7, 0x6e, 0x5c };
	char bytes[997];

	memset(bytes, 'a', sizeof(bytes));
	sha256_init(&s);
	for (size_t left = 1000000, part = 1; left > 0; part = part * 7 % 997) {
		size_t n = part < left ? part : left;
		sha256_add(&s, (struct mr_str){ bytes, n });
		left -= n;
	}
	sha256_end(&s, hash);
	assert_memory_equal(hash, million_a, sizeof(million_a));
}

static void
just_the_letters_of_the_alphabet_are_digits(void **state)
{
	static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
	char id[] = "00000000000000000000000000";

	(void)state;
	for (int c = 1; c < 256; c++) {
		const char *digit = strchr(alphabet, c);

		id[9] = (char)c;
		assert_int_equal(id_valid(str_of(id)), digit != NULL);
		assert_int_equal(id_time_ms(id), digit ? digit - alphabet : 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_grow_within_a_process_also_when_the_clock_is_set_back),
		cmocka_unit_test(a_parent_and_its_child_do_not_make_the_same_id_after_the_clock_was_set_back),
		cmocka_unit_test(an_id_carries_its_time),
		cmocka_unit_test(the_nanoseconds_within_the_millisecond_keep_the_order),
		cmocka_unit_test(the_same_name_gives_the_same_id),
		cmocka_unit_test(only_ids_are_valid_ids),
		cmocka_unit_test(tokens_are_valid_and_differ),
		cmocka_unit_test(sha256_gives_the_published_values),
		cmocka_unit_test(sha256_does_not_care_how_the_bytes_are_cut),
		cmocka_unit_test(just_the_letters_of_the_alphabet_are_digits),
	};

	return cmocka_run_group_tests_name("base/id", tests, NULL, NULL);
}
