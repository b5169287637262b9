/* SPDX-License-Identifier: MIT */
#include "town.h"

static void
take(struct mr_show *show, const char *id, enum mr_rc want)
{
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_rc(mr_show_take(show, id, &msg, &err), want);
	assert_non_null(msg.body);
	mr_message_done(&msg);
}

static void
shown_mail_is_marked_only_at_finish(void **state)
{
	struct town t = town_new(state);
	struct mr_show *show = NULL;
	struct mr_error err = { 0 };
	char first[MR_ID_LEN + 1], second[MR_ID_LEN + 1], third[MR_ID_LEN + 1];
	size_t marked = 0;

	town_send(&t, &t.alice, "bob", "one", first);
	town_send(&t, &t.alice, "bob", "two", second);
	town_send(&t, &t.alice, "bob", "three", third);
	assert_ok(mr_show_open(t.room, &t.bob, NULL, &show, &err));
	take(show, first + 18, MR_OK);
	take(show, second, MR_OK);
	take(show, second, MR_OK); /* twice is once */
	take(show, third, MR_OK);
	assert_int_equal(town_unread(&t, "bob").n, 0);
	assert_int_equal(town_count(&t, "bob", MR_HELD), 3);
	assert_ok(mr_show_back(show, third, &err));
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_ok(mr_show_finish(show, false, &marked, &err));
	assert_int_equal(marked, 2);
	mr_show_close(show);
	struct seen unread = town_unread(&t, "bob");

	assert_int_equal(unread.n, 1);
	assert_string_equal(unread.ids[0], third);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 3);
	town_done(&t);
}

static void
finish_can_archive(void **state)
{
	struct town t = town_new(state);
	struct mr_show *show = NULL;
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "one", id);
	assert_ok(mr_show_open(t.room, &t.bob, NULL, &show, &err));
	take(show, id, MR_OK);
	assert_ok(mr_show_finish(show, true, NULL, &err));
	take(show, id, MR_OK); /* seen mail is just fetched */
	assert_ok(mr_show_finish(show, true, NULL, &err));
	mr_show_close(show);
	assert_ok(mr_fetch(t.room, "bob", id, &msg, &err));
	assert_int_equal(msg.folder, MR_ARCHIVE);
	assert_true(msg.flags & MR_SEEN);
	mr_message_done(&msg);
	town_done(&t);
}

static void
closing_without_finish_gives_all_back(void **state)
{
	struct town t = town_new(state);
	struct mr_show *show = NULL;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "one", id);
	assert_ok(mr_show_open(t.room, &t.bob, NULL, &show, &err));
	take(show, id, MR_OK);
	mr_show_close(show);
	struct seen unread = town_unread(&t, "bob");

	assert_int_equal(unread.n, 1);
	assert_string_equal(unread.ids[0], id);
	assert_int_equal(unread.attempts[0], 1);
	town_done(&t);
}

static void
two_shows_never_have_the_same_mail(void **state)
{
	struct town t = town_new(state);
	struct mr_show *one = NULL, *two = NULL;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];
	size_t marked = 9;

	town_send(&t, &t.alice, "bob", "one", id);
	assert_ok(mr_show_open(t.room, &t.bob, NULL, &one, &err));
	assert_ok(mr_show_open(t.room, &t.bob, NULL, &two, &err));
	take(one, id, MR_OK);
	take(two, id, MR_BUSY); /* looking is free: take() checks that there is a body */
	assert_ok(mr_show_finish(two, false, &marked, &err));
	assert_int_equal(marked, 0);
	mr_show_close(two);
	assert_ok(mr_show_finish(one, false, &marked, &err));
	assert_int_equal(marked, 1);
	mr_show_close(one);
	town_done(&t);
}

static void
work_of_this_life_can_be_looked_at(void **state)
{
	struct town t = town_new(state);
	struct mr_show *show = NULL;
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "one", id);
	assert_ok(mr_recv(t.room, &t.bob, NULL, 60000, &claim, &msg, &err));
	mr_message_done(&msg);
	assert_ok(mr_show_open(t.room, &t.bob, NULL, &show, &err));
	take(show, id, MR_OK);
	assert_ok(mr_show_finish(show, true, NULL, &err));
	mr_show_close(show);
	assert_int_equal(town_count(&t, "bob", MR_HELD), 1);
	town_done(&t);
}

static void
finish_after_a_takeover_is_refused_and_the_new_life_has_the_mail(void **state)
{
	struct town t = town_new(state);
	struct mr_show *show = NULL, *later = NULL;
	struct mr_self new_life = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];
	size_t marked = 9;

	town_send(&t, &t.alice, "bob", "one", id);
	assert_ok(mr_show_open(t.room, &t.bob, NULL, &show, &err));
	take(show, id, MR_OK);
	town_register(&t, "bob", true, &new_life);
	assert_true(new_life.life > t.bob.life);
	assert_rc(mr_show_finish(show, true, &marked, &err), MR_REFUSED);
	assert_int_equal(marked, 9);
	mr_show_close(show);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_rc(mr_show_open(t.room, &t.bob, NULL, &later, &err), MR_REFUSED);
	assert_ok(mr_show_open(t.room, &new_life, NULL, &later, &err));
	take(later, id, MR_OK);
	assert_ok(mr_show_finish(later, true, &marked, &err));
	assert_int_equal(marked, 1);
	mr_show_close(later);
	town_done(&t);
}

static void
a_room_without_holds_marks_at_finish(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver plain = *real;
	struct mr_show *show = NULL;
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char first[MR_ID_LEN + 1], second[MR_ID_LEN + 1];

	plain.abilities &= ~(unsigned)ROOM_HOLDS;
	t.room->driver = &plain;
	town_send(&t, &t.alice, "bob", "one", first);
	town_send(&t, &t.alice, "bob", "two", second);
	assert_ok(mr_show_open(t.room, &t.bob, NULL, &show, &err));
	take(show, first, MR_OK);
	take(show, second, MR_OK);
	assert_ok(mr_show_back(show, second, &err));
	assert_int_equal(town_unread(&t, "bob").n, 2);
	assert_ok(mr_show_finish(show, true, NULL, &err));
	mr_show_close(show);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_int_equal(town_count(&t, "bob", MR_ARCHIVE), 1);
	assert_rc(mr_recv(t.room, &t.bob, NULL, 0, &claim, &msg, &err), MR_UNSUPPORTED);
	t.room->driver = real;
	town_done(&t);
}

static void
a_killed_show_gives_the_mail_back_at_once(void **state)
{
	struct town t = town_new(state);
	char id[MR_ID_LEN + 1];
	int status = 0;

	town_send(&t, &t.alice, "bob", "one", id);
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) { /* a handle of its own: the parent's descriptors must not keep the hold alive */
		struct mr_room *room = NULL;
		struct mr_show *show = NULL;
		struct mr_message msg = { 0 };
		struct mr_error err = { 0 };
		bool ok = mr_room_open(mr_room_spec(t.room), NULL, &room, &err) == MR_OK &&
			  mr_show_open(room, &t.bob, NULL, &show, &err) == MR_OK &&
			  mr_show_take(show, id, &msg, &err) == MR_OK;

		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	struct seen unread = town_unread(&t, "bob");

	assert_int_equal(unread.n, 1);
	assert_string_equal(unread.ids[0], id);
	assert_int_equal(unread.attempts[0], 1);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(shown_mail_is_marked_only_at_finish),
		ON_BOTH(finish_can_archive),
		ON_BOTH(closing_without_finish_gives_all_back),
		ON_BOTH(two_shows_never_have_the_same_mail),
		ON_BOTH(work_of_this_life_can_be_looked_at),
		ON_BOTH(finish_after_a_takeover_is_refused_and_the_new_life_has_the_mail),
		ON_BOTH(a_room_without_holds_marks_at_finish),
		ON_MAILDIR(a_killed_show_gives_the_mail_back_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
