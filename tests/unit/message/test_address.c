/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "message/address.h"

static void
ordinary_names_pass(void **state)
{
	static const char *const good[] = { "alice", "greenplace/witness", "a/b/c/d", "A.b_c+d-9", "rig/x.y", "agents",
		"newer", "tmp1" };
	struct mr_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		assert_int_equal(mr_address_check(good[i], &err), MR_OK);
}

static void
what_cannot_be_a_folder_is_refused_and_named(void **state)
{
	static const struct {
		const char *address, *says;
	} bad[] = {
		{ "", "is empty" },
		{ "..", "begins with '.'" },
		{ "rig/..", "'..'" },
		{ "/etc", "has an empty part" },
		{ "a//b", "has an empty part" },
		{ "a/", "has an empty part" },
		{ ".hidden", "begins with '.'" },
		{ "rig/new", "'new'" },
		{ "TMP", "reserved" },
		{ "Held/x", "'Held'" },
		{ "lives", "reserved" },
		{ "Agent", "reserved" },
		{ "x/Dovecot-Keywords", "'Dovecot-Keywords'" },
		{ "a b", "not allowed" },
		{ "rig/a\nb", "not allowed" },
		{ "a@b", "not allowed" },
		{ "ümlaut", "not allowed" },
		{ "a\\b", "not allowed" },
		{ "a:2,S", "not allowed" },
		{ "a/b/c/d/e", "more than 4 parts" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct mr_error err = { 0 };
		assert_int_equal(mr_address_check(bad[i].address, &err), MR_REFUSED);
		if (!strstr(err.message, bad[i].says))
			fail_msg("'%s': %s", bad[i].address, err.message);
		assert_non_null(strstr(err.hint, "A-Z a-z 0-9 . _ + -"));
		assert_null(strchr(err.message, '\n'));
	}
}

static void
lengths_are_limited_to_64_a_part_and_160_in_all(void **state)
{
	char name[200];
	struct mr_error err = { 0 };

	(void)state;
	memset(name, 'x', sizeof(name));
	assert_int_equal(address_check((struct mr_str){ name, 64 }, &err), MR_OK);
	assert_int_equal(address_check((struct mr_str){ name, 65 }, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "more than 64 bytes"));
	name[50] = name[100] = '/';
	assert_int_equal(address_check((struct mr_str){ name, 160 }, &err), MR_OK);
	name[150] = '/';
	assert_int_equal(address_check((struct mr_str){ name, 160 }, &err), MR_OK);
	assert_int_equal(address_check((struct mr_str){ name, 161 }, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "more than 160 bytes"));
}

static void
a_nul_inside_is_refused(void **state)
{
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(address_check(STR("a\0b"), &err), MR_REFUSED);
}

static void
one_trailing_slash_is_dropped(void **state)
{
	char out[MR_ADDRESS_MAX + 1] = "untouched";
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(address_normal(STR("mayor//"), out, &err), MR_REFUSED);
	assert_int_equal(address_normal(STR("/"), out, &err), MR_REFUSED);
	assert_string_equal(out, "untouched");
	assert_int_equal(address_normal(STR("mayor/"), out, &err), MR_OK);
	assert_string_equal(out, "mayor");
}

static void
the_last_at_sign_splits(void **state)
{
	struct mr_str agent, room;

	(void)state;
	address_split(STR("a@b@town"), &agent, &room);
	assert_str(agent, "a@b");
	assert_str(room, "town");
	address_split(STR("alice"), &agent, &room);
	assert_str(agent, "alice");
	assert_str(room, "");
	address_split(STR("@"), &agent, &room);
	assert_int_equal(agent.len + room.len, 0);
}

static void
lists_of_other_mail_programs_are_read(void **state)
{
	static const struct {
		const char *list, *want;
	} cases[] = {
		{ "", "" },
		{ "alice", "[alice]" },
		{ "alice@town, bob@town", "[alice@town][bob@town]" },
		{ "\"Smith, Bob\" <bob@y>, carol@z (Carol, the (real) one)", "[bob@y][carol@z]" },
		{ "(the boss) carol@z", "[carol@z]" },
		{ "Friends: dave@w, \"E\" <eve@v>; frank@u", "[dave@w][eve@v][frank@u]" },
		{ "undisclosed-recipients:;", "" },
		{ "queue:work@town, list:all", "[queue:work@town][list:all]" },
		{ "<@relay,@other:bob@y>", "[bob@y]" },
		{ ", ,alice,,", "[alice]" },
		{ "\"a \\\" , b\" <x@y>", "[x@y]" },
		{ "<x@y", "[x@y]" },
		{ "<>", "" },
		{ "=?utf-8?q?J=C3=B6rg=2C_x?= <j@x>", "[j@x]" },
		{ "(never closed, a@b", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		mr_auto(buf_done) struct buf out = BUF_INIT;
		struct address_list list = address_list(str_of(cases[i].list));

		for (struct mr_str one; address_next(&list, &one);)
			buf_addf(&out, "[%.*s]", (int)one.len, one.ptr);
		assert_string_equal(buf_z(&out), cases[i].want);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordinary_names_pass),
		cmocka_unit_test(what_cannot_be_a_folder_is_refused_and_named),
		cmocka_unit_test(lengths_are_limited_to_64_a_part_and_160_in_all),
		cmocka_unit_test(a_nul_inside_is_refused),
		cmocka_unit_test(one_trailing_slash_is_dropped),
		cmocka_unit_test(the_last_at_sign_splits),
		cmocka_unit_test(lists_of_other_mail_programs_are_read),
	};
	return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
