/* SPDX-License-Identifier: MIT */
/* File names of the native driver: what other programs put into them survives, what we put there is found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/id.h"
#include "rooms/maildir/maildir.h"

#define ID "01k9w3b7zq8m4c2v6t1x5n0prs"
#define BASE "1762900000." ID ".mr"

static struct file_name
parsed(const char *name)
{
	struct file_name n;

	assert_true(name_parse(str_of(name), &n));
	return n;
}

static void
assert_str(struct mr_str got, const char *want)
{
	if (!str_eq(got, str_of(want)))
		fail_msg("'%.*s' is not '%s'", (int)got.len, got.ptr, want);
}

static void
assert_built(const char *from, unsigned attempt, unsigned flags, bool with_info, const char *want)
{
	struct file_name n = parsed(from);
	char got[NAME_LEN];

	assert_true(name_build(&n, attempt, flags, with_info, got));
	assert_string_equal(got, want);
}

static void
a_name_of_ours_has_its_id_in_it(void **state)
{
	(void)state;
	struct file_name n = parsed(BASE);

	assert_true(n.ours);
	assert_string_equal(n.id, ID);
	assert_false(n.has_info);
	assert_int_equal(n.attempt, 0);
	char name[NAME_LEN];
	name_for_id(ID, name);
	assert_string_equal(parsed(name).id, ID);
}

static void
flags_and_attempts_are_read(void **state)
{
	(void)state;
	struct file_name n = parsed(BASE ",A=12:2,FRSTa");

	assert_true(n.ours && n.has_info);
	assert_int_equal(n.attempt, 12);
	assert_str(n.base, BASE);
	assert_int_equal(name_flags(&n, true), MR_PINNED | MR_REPLIED | MR_SEEN | MR_TRASHED | MR_ACKED);
	assert_int_equal(name_flags(&n, false), MR_PINNED | MR_REPLIED | MR_SEEN | MR_TRASHED);
}

static void
what_others_append_does_not_change_the_id(void **state)
{
	(void)state;
	assert_string_equal(parsed(BASE ",U=7:2,S").id, ID);
	assert_string_equal(parsed(BASE ",A=2,U=7:2,S").id, ID);
	assert_int_equal(parsed(BASE ",A=2,U=7:2,S").attempt, 2);
	assert_built(BASE ",A=2,U=7:2,S", 3, MR_SEEN, true, BASE ",A=3,U=7:2,S");
}

static void
priority_and_look_stand_in_the_name(void **state)
{
	(void)state;
	static const struct {
		enum mr_priority priority;
		bool look;
		const char *fields;
	} all[] = { { MR_NORMAL, false, "" }, { MR_URGENT, false, ",P=0" }, { MR_HIGH, false, ",P=1" },
		{ MR_LOW, false, ",P=3" }, { MR_NORMAL, true, ",L=1" }, { MR_URGENT, true, ",P=0,L=1" } };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		char name[NAME_LEN], want[NAME_LEN], held[NAME_LEN];
		struct file_name n;

		name_new(ID, all[i].priority, all[i].look, name);
		text_join(want, sizeof want, ".mr", all[i].fields, NULL);
		assert_true(str_ends(str_of(name), want));
		n = parsed(name);
		assert_true(n.ours && n.priority == (int)all[i].priority && n.look == all[i].look && n.attempt == 0);
		assert_string_equal(n.id, ID);
		/* Marks, an attempt, a hold and the way back keep them. */
		text_join(want, sizeof want, name, ",A=2:2,FS", NULL);
		assert_built(name, 2, MR_SEEN | MR_PINNED, true, want);
		n = parsed(want);
		assert_true(n.priority == (int)all[i].priority && n.look == all[i].look && n.attempt == 2);
		assert_true(name_build_held("0123456789ab", 7, 3, str_of(want), held));
		assert_true(name_parse_held(str_of(held), &n));
		assert_true(n.priority == (int)all[i].priority && n.look == all[i].look && n.hold_attempt == 3);
	}
}

static void
fields_of_others_and_wrong_ones_are_kept_and_mean_nothing(void **state)
{
	(void)state;
	assert_int_equal(parsed(BASE ",S=10,P=0,U=7:2,S").priority, MR_URGENT);
	assert_int_equal(parsed(BASE ",A=1,P=1").priority, MR_HIGH);
	assert_int_equal(parsed(BASE ",P=3,P=0").priority, MR_LOW); /* the first one is ours */
	static const char *const none[] = { BASE, BASE ",P=", BASE ",P=4", BASE ",P=00", BASE ",P=-1", BASE ",p=0",
		BASE ",PP=0", BASE ",P:0", BASE ",P=0x", BASE ":2,P=0", BASE ",S=1P=0", "1762900000.M1P2.host,P=0",
		"P=0", BASE "P=0" };

	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
		assert_int_equal(parsed(none[i]).priority, MR_NORMAL);
		assert_false(parsed(none[i]).look);
	}
	assert_false(parsed(BASE ",L=0").look || parsed(BASE ",L=11").look || parsed(BASE ",L=").look);
	assert_false(parsed("1762900000.M1P2.host,L=1").look);
	assert_built(BASE ",P=9,L=x,U=7", 1, MR_SEEN, true, BASE ",P=9,L=x,U=7,A=1:2,S");
}

static void
a_foreign_name_has_one_id_whatever_its_flags(void **state)
{
	(void)state;
	struct file_name fresh = parsed("1762900000.M1P2.host,S=10");
	struct file_name seen = parsed("1762900000.M1P2.host,S=10:2,FS");
	struct file_name back = parsed("1762900000.M1P2.host,S=10,A=1:2,");

	assert_false(fresh.ours);
	assert_true(id_valid(str_of(fresh.id)));
	assert_string_equal(fresh.id, seen.id);
	assert_string_equal(fresh.id, back.id);
	assert_string_not_equal(fresh.id, parsed("1762900000.M1P3.host,S=10").id);
	assert_int_equal(id_time_ms(fresh.id), 1762900000000);
	assert_true(id_valid(str_of(parsed("99999999999999999999.x").id)));
	assert_true(id_valid(str_of(parsed("no-number").id)));
}

static void
letters_of_other_programs_survive(void **state)
{
	(void)state;
	assert_built("x:2,DPb", 0, MR_SEEN | MR_PINNED, true, "x:2,DFPSb");
	assert_built("x:2,SDa", 0, 0, true, "x:2,Da");
	assert_built("x:2,S\xc3\xa9", 0, MR_SEEN, true, "x:2,S\xa9\xc3");
	struct file_name n = parsed("x:2,SDa");
	char got[NAME_LEN];
	n.a_is_ours = true; /* then it follows the marks */
	assert_true(name_build(&n, 0, MR_SEEN, true, got));
	assert_string_equal(got, "x:2,DS");
}

static void
a_name_for_new_has_no_info(void **state)
{
	(void)state;
	assert_built(BASE, 0, 0, false, BASE);
	assert_built(BASE, 1, 0, false, BASE ",A=1");
	assert_built(BASE ",A=1", 0, MR_SEEN, true, BASE ":2,S");
}

static void
what_looks_like_an_attempt_but_is_none_stays(void **state)
{
	(void)state;
	assert_int_equal(parsed("x,A=").attempt, 0);
	assert_int_equal(parsed("x,A=1b").attempt, 0);
	assert_int_equal(parsed("x,A=99999999999").attempt, 0);
	assert_built("x,A=1b", 2, 0, false, "x,A=1b,A=2");
}

static void
hidden_and_empty_names_are_no_mail(void **state)
{
	struct file_name n;

	(void)state;
	assert_false(name_parse(STR(".nfs0001"), &n));
	assert_false(name_parse(STR(""), &n));
}

static void
a_held_name_gives_back_the_name_it_had(void **state)
{
	const char *const originals[] = { BASE, BASE ",A=3", BASE ":2,FPa", "strange.name.with.dots:2,S" };
	char name[NAME_LEN];
	struct file_name n;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_true(name_build_held("0123456789ab", 1762900999, 4, str_of(originals[i]), name));
		assert_true(name_parse_held(str_of(name), &n));
		assert_true(n.held);
		assert_string_equal(n.token, "0123456789ab");
		assert_int_equal(n.deadline_s, 1762900999);
		assert_int_equal(n.hold_attempt, 4);
		assert_string_equal(n.id, parsed(originals[i]).id);
		char again[NAME_LEN];
		assert_true(name_build(&n, n.attempt, name_flags(&n, false), n.has_info, again));
		assert_string_equal(again, originals[i]);
	}
}

static void
broken_held_names_are_refused(void **state)
{
	static const char *const broken[] = { "h.", "h.0123456789ab", "h.0123456789ab.", "h.0123456789ab.5",
		"h.0123456789ab.5.6", "h.0123456789ab.5.6.", "h.0123456789ab.x.6." BASE, "h.0123456789ab.5.-1." BASE,
		"h.0123456789a!.5.6." BASE, "h.0123456789ab.5.6..hidden", BASE,
		"h.0123456789ab.99999999999999999999.6." BASE };
	struct file_name n;

	(void)state;
	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		if (name_parse_held(str_of(broken[i]), &n))
			fail_msg("'%s' passes for a held name", broken[i]);
}

static void
a_name_that_would_be_too_long_is_not_built(void **state)
{
	char long_name[240], got[NAME_LEN];
	struct file_name n;

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	struct mr_str name = { long_name, sizeof(long_name) };
	assert_true(name_parse(name, &n));
	assert_true(name_build(&n, 0, MR_SEEN, true, got));
	assert_false(name_build(&n, 100000, MR_SEEN | MR_PINNED | MR_REPLIED | MR_TRASHED, true, got));
	assert_false(name_build_held("0123456789ab", 1762900999, 1, name, got));
}

static void
released_mail_says_when_by_whom_and_for_whom(void **state)
{
	static const char *const foreign[] = { "1762900000.M1P2.host,B=12", "1762900000.M1P2.host,B=abc",
		"1762900000.M1P2.host,B=1772706700000-12", "1762900000.M1P2.host,B=1772706700000-x",
		"1762900000.M1P2.host,B=1772706700000,S=9" };
	struct released r = { .at_ms = INT64_C(1772706700000), .only_until_s = 1772707300 }, got = { 0 };
	char text[NAME_RELEASED_LEN], name[NAME_LEN], again[NAME_LEN];
	struct file_name n;

	(void)state;
	name_who("bob", r.by);
	name_who("alice", r.only_for);
	name_released_text(&r, text);
	(void)snprintf(name, sizeof(name), "1772706600.01kjyyyyyyyyyyyyyyyyyyyyyy.mr,A=1,B=%s", text);
	assert_true(name_parse(str_of(name), &n) && name_released(&n, &got));
	assert_true(n.ours);
	assert_int_equal(n.attempt, 1);
	assert_int_equal(got.at_ms, r.at_ms);
	assert_int_equal(got.only_until_s, r.only_until_s);
	assert_string_equal(got.by, r.by);
	assert_string_equal(got.only_for, r.only_for);
	assert_true(name_build(&n, 1, 0, false, again));
	assert_string_equal(again, name);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) { /* not ours: part of the name */
		assert_true(name_parse(str_of(foreign[i]), &n));
		assert_false(name_released(&n, &got));
		n.released = (struct mr_str){ 0 };
		assert_true(name_build(&n, 0, 0, false, again));
		assert_string_equal(again, foreign[i]);
	}
}

static void
the_archive_folder_is_the_month_of_the_id_in_utc(void **state)
{
	char id[MR_ID_LEN + 1], month[24];

	(void)state;
	id_from_name(INT64_C(1793491199999), STR("x"), id); /* 2026-10-31T23:59:59.999Z */
	name_month(ARCHIVE_FOLDER, id_time_ms(id), month);
	assert_string_equal(month, ".Archive.2026-10");
	id_from_name(INT64_C(1793491200000), STR("x"), id);
	name_month(ARCHIVE_FOLDER, id_time_ms(id), month);
	assert_string_equal(month, ".Archive.2026-11");
}

static void
agents_become_one_name_each(void **state)
{
	char a[NAME_LEN], b[NAME_LEN];

	(void)state;
	name_escape("rig/crew/nux", a);
	assert_string_equal(a, "rig%2Fcrew%2Fnux");
	name_escape("", a);
	name_escape("_", b);
	assert_string_equal(a, "_");
	assert_string_not_equal(a, b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_of_ours_has_its_id_in_it),
		cmocka_unit_test(flags_and_attempts_are_read),
		cmocka_unit_test(what_others_append_does_not_change_the_id),
		cmocka_unit_test(priority_and_look_stand_in_the_name),
		cmocka_unit_test(fields_of_others_and_wrong_ones_are_kept_and_mean_nothing),
		cmocka_unit_test(a_foreign_name_has_one_id_whatever_its_flags),
		cmocka_unit_test(letters_of_other_programs_survive),
		cmocka_unit_test(a_name_for_new_has_no_info),
		cmocka_unit_test(what_looks_like_an_attempt_but_is_none_stays),
		cmocka_unit_test(hidden_and_empty_names_are_no_mail),
		cmocka_unit_test(a_held_name_gives_back_the_name_it_had),
		cmocka_unit_test(broken_held_names_are_refused),
		cmocka_unit_test(a_name_that_would_be_too_long_is_not_built),
		cmocka_unit_test(released_mail_says_when_by_whom_and_for_whom),
		cmocka_unit_test(the_archive_folder_is_the_month_of_the_id_in_utc),
		cmocka_unit_test(agents_become_one_name_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
