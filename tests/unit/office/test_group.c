/* SPDX-License-Identifier: MIT */
/* Groups: who is reached through them, what is said about those who are not, and changes by many at once. */
#include "town.h"

static void
make(struct town *t, const char *name, const char *const *members)
{
	struct mr_error err = { 0 };

	assert_ok(mr_group_create(t->room, &t->alice, name, members, &err));
}

/* Sends as alice; the receipt is the caller's to finish. */
static struct mr_receipt
send_to(struct town *t, const char *address)
{
	struct mr_draft draft = draft_to(TO(address), "hello");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_send(t->room, &t->alice, &draft, &receipt, &err));
	return receipt;
}

static void
refuse_send(struct town *t, const char *address, enum mr_rc code, const char *part)
{
	struct mr_draft draft = draft_to(TO("bob", address), "hello");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	size_t before = town_unread(t, "bob").n;

	assert_rc(mr_send(t->room, &t->alice, &draft, &receipt, &err), code);
	if (!strstr(err.message, part) && !strstr(err.hint, part))
		fail_msg("'%s' (%s) does not say '%s'", err.message, err.hint, part);
	assert_int_equal(town_unread(t, "bob").n, before); /* nothing is stored */
}

static size_t
members(struct town *t, const char *name)
{
	struct mr_group group = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_group_get(t->room, name, &group, &err));
	size_t n = group.members.n;
	mr_group_done(&group);
	return n;
}

/* ---- Keeping groups ---- */

static size_t
count_groups(struct town *t)
{
	mr_auto(mr_list_done) struct mr_groups all = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_group_list(t->room, &all, &err));
	for (size_t i = 0; i < all.n; i++) {
		assert_string_equal(all.v[i].created_by, "alice");
		assert_true(all.v[i].created_ms > 0);
	}
	return all.n;
}

static void
a_group_is_made_changed_and_deleted(void **state)
{
	struct town t = town_new(state);
	struct mr_group group = { 0 };
	struct mr_error err = { 0 };
	bool changed = false;

	assert_int_equal(count_groups(&t), 0);
	make(&t, "team",
	    TO("bob", "list:others", "bob", "announce:news", "*/witness", "@crew", "agent:carol", "mayor/"));
	make(&t, "empty", NULL);
	assert_rc(mr_group_create(t.room, &t.alice, "team", NULL, &err), MR_EXISTS);
	assert_ok(mr_group_get(t.room, "team", &group, &err));
	assert_string_equal(group.name, "team");
	assert_int_equal(group.members.n, 7);
	assert_string_equal(group.members.v[1], "group:others");
	assert_string_equal(group.members.v[2], "channel:news");
	mr_group_done(&group);
	assert_int_equal(count_groups(&t), 2);

	assert_ok(mr_group_change(t.room, "team", true, TO("dora"), &changed, &err));
	assert_true(changed);
	assert_ok(mr_group_change(t.room, "team", true, TO("dora"), &changed, &err));
	assert_false(changed);
	assert_ok(mr_group_change(t.room, "team", true, TO("dora@town"), &changed, &err));
	assert_false(changed);
	assert_int_equal(members(&t, "team"), 8);
	assert_ok(mr_group_change(t.room, "team", false, TO("dora"), &changed, &err));
	assert_true(changed);
	assert_ok(mr_group_change(t.room, "team", false, TO("dora"), &changed, &err));
	assert_false(changed);
	assert_int_equal(members(&t, "team"), 7);

	assert_ok(mr_group_delete(t.room, "team", &err));
	assert_rc(mr_group_get(t.room, "team", &group, &err), MR_NOTFOUND);
	assert_rc(mr_group_delete(t.room, "team", &err), MR_NOTFOUND);
	assert_rc(mr_group_change(t.room, "team", true, TO("bob"), &changed, &err), MR_NOTFOUND);
	assert_rc(mr_group_change(t.room, "team", false, TO("bob"), &changed, &err), MR_NOTFOUND);
	assert_rc(mr_group_get(t.room, "team", &group, &err), MR_NOTFOUND); /* and was not made by trying */
	town_done(&t);
}

static void
names_and_members_are_checked(void **state)
{
	static const char *const bad_names[] = { "", "Team", "-team", "a b", "a/b", "../x", "a.b",
		"0123456789012345678901234567890123456789012345678901234567890123x" };
	static const char *const bad_members[] = { "", "two words", "a\nMember: b", "../x", "gr*/x",
		"group:", "group:Team", "bob@elsewhere", "@", "@a b", "queue:a/b/c", "x:y" };
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	bool changed = false;

	make(&t, "team", NULL);
	for (size_t i = 0; i < sizeof(bad_names) / sizeof(*bad_names); i++)
		assert_rc(mr_group_create(t.room, &t.alice, bad_names[i], NULL, &err), MR_REFUSED);
	for (size_t i = 0; i < sizeof(bad_members) / sizeof(*bad_members); i++) {
		assert_rc(mr_group_change(t.room, "team", true, TO(bad_members[i]), &changed, &err), MR_REFUSED);
		assert_rc(mr_group_create(t.room, &t.alice, "other", TO("bob", bad_members[i]), &err), MR_REFUSED);
	}
	assert_int_equal(members(&t, "team"), 0);
	struct mr_group group = { 0 };

	assert_rc(mr_group_get(t.room, "other", &group, &err), MR_NOTFOUND);
	town_done(&t);
}

static void
what_a_person_wrote_into_the_record_stays(void **state)
{
	struct town t = town_new(state);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error err = { 0 };
	bool changed = false;

	assert_ok(t.room->driver->record_put(t.room, "group", "", "team",
	    STR("Name: team\n# ours\n\nmember:  bob \nX-Colour: red\nMember: carol"), &err));
	assert_int_equal(members(&t, "team"), 2);
	assert_ok(mr_group_change(t.room, "team", true, TO("alice"), &changed, &err));
	assert_ok(mr_group_change(t.room, "team", false, TO("bob"), &changed, &err));
	assert_true(changed);
	assert_ok(t.room->driver->record_get(t.room, "group", "", "team", &text, &err));
	assert_string_equal(buf_z(&text), "Name: team\n# ours\n\nX-Colour: red\nMember: carol\nMember: alice\n");
	town_done(&t);
}

/* ---- Who is reached ---- */

static void
members_get_the_mail_once_and_the_sender_does_not(void **state)
{
	struct town t = town_new(state);
	struct mr_self witness;

	town_register(&t, "green/witness", false, &witness);
	make(&t, "team", TO("alice", "bob", "*/witness", "@all", "group:inner"));
	make(&t, "inner", TO("bob", "carol", "alice"));
	struct mr_receipt receipt = send_to(&t, "team");

	assert_int_equal(receipt.to.n, 3);
	assert_int_equal(receipt.trouble.n, 0);
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_int_equal(town_unread(&t, "carol").n, 1);
	assert_int_equal(town_unread(&t, "green/witness").n, 1);
	assert_int_equal(town_unread(&t, "alice").n, 0);
	/* each recipient has a read state of its own */
	struct seen seen = town_unread(&t, "bob");
	struct mr_error err = { 0 };

	assert_ok(mr_mark(t.room, &t.bob, seen.ids[0], MR_SEEN, 0, &err));
	assert_int_equal(town_unread(&t, "carol").n, 1);
	town_done(&t);
}

static void
cycles_end(void **state)
{
	struct town t = town_new(state);

	make(&t, "a", TO("bob", "group:b"));
	make(&t, "b", TO("group:a", "carol", "@b"));
	struct mr_receipt receipt = send_to(&t, "group:a");

	assert_int_equal(receipt.to.n, 2);
	assert_int_equal(receipt.trouble.n, 0);
	mr_receipt_done(&receipt);
	make(&t, "c", TO("group:d"));
	make(&t, "d", TO("group:c"));
	refuse_send(&t, "group:c", MR_REFUSED, "group 'c' reaches nobody");
	town_done(&t);
}

static void
a_diamond_delivers_once(void **state)
{
	struct town t = town_new(state);

	make(&t, "top", TO("group:left", "group:right"));
	make(&t, "left", TO("bottom"));
	make(&t, "right", TO("bottom", "carol"));
	make(&t, "bottom", TO("bob"));
	struct mr_receipt receipt = send_to(&t, "top");

	assert_int_equal(receipt.to.n, 2);
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	town_done(&t);
}

static void
missing_members_are_named_and_do_not_stop_the_mail(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };

	make(&t, "team", TO("bob", "nobody", "*/witness", "@nonsense", "group:gone", "group:empty", "group:inner"));
	make(&t, "empty", NULL);
	make(&t, "gone", NULL);
	make(&t, "inner", TO("nobody", "group:team"));
	assert_ok(mr_group_delete(t.room, "gone", &err));
	struct mr_receipt receipt = send_to(&t, "team");
	static const char *const said[] = { "member 'nobody' of group 'team'", "member '*/witness' of group 'team'",
		"member '@nonsense' of group 'team'", "member 'group:gone' of group 'team'",
		"group 'empty' has no members", "member 'nobody' of group 'inner'" };

	assert_int_equal(receipt.to.n, 1);
	assert_int_equal(receipt.trouble.n, 6);
	for (size_t i = 0; i < 6; i++)
		if (!strstr(receipt.trouble.v[i], said[i]))
			fail_msg("'%s' does not say '%s'", receipt.trouble.v[i], said[i]);
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	town_done(&t);
}

static void
a_group_that_reaches_nobody_is_refused(void **state)
{
	struct town t = town_new(state);

	make(&t, "empty", NULL);
	make(&t, "me", TO("alice"));
	make(&t, "ghosts", TO("nobody", "nobody-else"));
	refuse_send(&t, "empty", MR_REFUSED, "group 'empty' reaches nobody");
	refuse_send(&t, "me", MR_REFUSED, "reaches nobody but you");
	refuse_send(&t, "ghosts", MR_REFUSED, "no agent");
	refuse_send(&t, "group:none", MR_NOTFOUND, "no group 'none'");
	/* but not one whose members were named before it */
	struct mr_draft draft = draft_to(TO("bob", "pair"), "once");

	make(&t, "pair", TO("bob"));
	town_send_draft(&t, &t.alice, &draft, NULL);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	town_done(&t);
}

static void
a_sender_who_is_named_directly_gets_the_mail(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("group:team", "alice"), "also to me");

	make(&t, "team", TO("alice", "bob"));
	town_send_draft(&t, &t.alice, &draft, NULL);
	assert_int_equal(town_unread(&t, "alice").n, 1);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	town_done(&t);
}

static void
a_member_has_spellings_too(void **state)
{
	struct town t = town_new(state);
	struct mr_self mayor;

	town_register(&t, "mayor", false, &mayor);
	make(&t, "heads", TO("mayor", "mayor/", "green/mayor", "human", "@overseer"));
	struct mr_receipt receipt = send_to(&t, "heads");

	assert_int_equal(receipt.to.n, 2);
	mr_receipt_done(&receipt);
	assert_int_equal(town_unread(&t, "mayor").n, 1);
	town_done(&t);
}

static void
nesting_has_a_limit_that_is_named(void **state)
{
	struct town t = town_new(state);
	char name[20], next[30];

	for (int i = 0; i < 40; i++) {
		(void)snprintf(name, sizeof(name), "g%d", i);
		(void)snprintf(next, sizeof(next), "group:g%d", i + 1);
		make(&t, name, TO(i == 0 ? "bob" : "carol", next));
	}
	struct mr_receipt receipt = send_to(&t, "g0");

	assert_int_equal(receipt.to.n, 2);
	assert_int_equal(receipt.trouble.n, 1);
	assert_non_null(strstr(receipt.trouble.v[0], "nested more than 32 deep"));
	mr_receipt_done(&receipt);
	town_done(&t);
}

static void
hold_makes_the_mailboxes_of_members(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("group:team"), "welcome");

	make(&t, "team", TO("dora", "bob"));
	draft.hold = true;
	town_send_draft(&t, &t.alice, &draft, NULL);
	assert_int_equal(town_unread(&t, "dora").n, 1);
	town_done(&t);
}

/* ---- Many at once ---- */

static void
join(const char *spec, int i)
{
	struct mr_room *room = NULL;
	struct mr_error err = { 0 };
	char member[20];
	bool changed = false;

	(void)snprintf(member, sizeof(member), "agent%d", i);
	if (mr_room_open(spec, NULL, &room, &err) != MR_OK ||
	    mr_group_change(room, "team", true, TO(member), &changed, &err) != MR_OK || !changed)
		_exit(1);
	(void)snprintf(member, sizeof(member), "old%d", i);
	if (mr_group_change(room, "team", false, TO(member), &changed, &err) != MR_OK || !changed)
		_exit(2);
	mr_room_close(room);
	_exit(0);
}

static void
fifty_processes_join_and_leave_at_once_and_nothing_is_lost(void **state)
{
	struct town t = town_new(state);
	struct mr_group group = { 0 };
	struct mr_error err = { 0 };
	char name[20];
	bool changed;

	make(&t, "team", NULL);
	for (int i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "old%d", i);
		assert_ok(mr_group_change(t.room, "team", true, TO(name), &changed, &err));
	}
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			join(mr_room_spec(t.room), i);
	}
	for (int i = 0; i < 50; i++) {
		int status = -1;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_ok(mr_group_get(t.room, "team", &group, &err));
	assert_int_equal(group.members.n, 50);
	for (int i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "agent%d", i);
		assert_true(names_has(&group.members, name));
	}
	mr_group_done(&group);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_group_is_made_changed_and_deleted),
		ON_BOTH(names_and_members_are_checked),
		ON_BOTH(what_a_person_wrote_into_the_record_stays),
		ON_BOTH(members_get_the_mail_once_and_the_sender_does_not),
		ON_BOTH(cycles_end),
		ON_BOTH(a_diamond_delivers_once),
		ON_BOTH(missing_members_are_named_and_do_not_stop_the_mail),
		ON_BOTH(a_group_that_reaches_nobody_is_refused),
		ON_BOTH(a_sender_who_is_named_directly_gets_the_mail),
		ON_BOTH(a_member_has_spellings_too),
		ON_BOTH(nesting_has_a_limit_that_is_named),
		ON_BOTH(hold_makes_the_mailboxes_of_members),
		ON_MAILDIR(fifty_processes_join_and_leave_at_once_and_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
