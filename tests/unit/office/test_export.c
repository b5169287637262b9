/* SPDX-License-Identifier: MIT */
/* test_export.c - all mail of a room into another: from a town of either kind into a room in memory. */
#include "support/room_fault.h"
#include "town.h"

struct steps {
	size_t n, troubles, stop_after;
	char trouble[320];
};

static bool
count_step(void *ctx, const struct mr_export_step *step)
{
	struct steps *s = ctx;

	s->n++;
	assert_true(step->done <= step->total);
	if (step->trouble) {
		s->troubles++;
		(void)snprintf(s->trouble, sizeof(s->trouble), "%s", step->trouble->message);
	}
	return s->n != s->stop_after;
}

static struct mr_room *
city(void)
{
	struct mr_room *room = NULL;
	struct mr_error err = { 0 };

	assert_ok(mr_room_open("mem:city", NULL, &room, &err));
	return room;
}

static struct mr_exported
export_all(struct town *t, struct mr_room *to, const struct mr_export_options *options)
{
	struct mr_exported got = { 0 };
	struct mr_error err = { 0 };
	struct steps steps = { 0 };

	assert_ok(mr_export(t->room, to, options, count_step, &steps, &got, &err));
	assert_int_equal(got.skipped, steps.troubles);
	return got;
}

static size_t
count_there(struct mr_room *room, const char *agent, unsigned folders, bool unread)
{
	struct town there = { .room = room };
	struct mr_scan scan = { .filter = { .folders = folders, .unread = unread } };

	return town_scan(&there, agent, &scan).n;
}

static void
mail_keeps_what_it_is(void **state)
{
	struct town t = town_new(state);
	struct mr_room *to = city();
	struct mr_error err = { 0 };
	struct mr_message msg = { 0 };
	struct mr_draft draft = draft_to(TO("bob", "carol"), "first\n"), answer = draft_to(NULL, "second\n");
	struct mr_receipt receipt = { 0 };
	char id[MR_ID_LEN + 1];

	draft.type = "task";
	draft.priority = MR_HIGH;
	town_send_draft(&t, &t.alice, &draft, id);
	assert_ok(mr_reply(t.room, &t.bob, id, &answer, false, &receipt, &err));
	assert_ok(mr_mark(t.room, &t.bob, id, MR_SEEN, 0, &err));
	assert_ok(mr_archive(t.room, &t.bob, id, &err));
	struct mr_exported got = export_all(&t, to, &(struct mr_export_options){ 0 });

	assert_int_equal(got.copied, 3);
	assert_int_equal(got.there, 0);
	assert_int_equal(count_there(to, "bob", MR_INBOX, false), 0);
	assert_int_equal(count_there(to, "bob", MR_ARCHIVE, true), 0);
	assert_int_equal(count_there(to, "bob", MR_ARCHIVE, false), 1);
	assert_int_equal(count_there(to, "carol", MR_INBOX, true), 1);
	assert_ok(mr_fetch(to, "carol", id, &msg, &err));
	assert_string_equal(msg.type, "task");
	assert_int_equal(msg.priority, MR_HIGH);
	assert_int_equal(msg.to.n, 2);
	assert_string_equal(msg.body, "first\n");
	mr_message_done(&msg);
	assert_ok(mr_fetch(to, "alice", receipt.id, &msg, &err));
	assert_string_equal(msg.reply_to, id);
	assert_string_equal(msg.thread, id);
	mr_message_done(&msg);
	mr_receipt_done(&receipt);
	mr_room_close(to);
	town_done(&t);
}

static void
a_repeated_export_copies_nothing_twice_and_sets_what_is_missing(void **state)
{
	struct town t = town_new(state);
	struct mr_room *to = city();
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "one", id);
	(void)export_all(&t, to, &(struct mr_export_options){ 0 });
	assert_ok(mr_mark(t.room, &t.bob, id, MR_SEEN, 0, &err)); /* as if the first run had been killed before that */
	town_send(&t, &t.alice, "bob", "two", NULL);
	struct mr_exported got = export_all(&t, to, &(struct mr_export_options){ 0 });

	assert_int_equal(got.copied, 1);
	assert_int_equal(got.there, 1);
	assert_int_equal(count_there(to, "bob", MR_INBOX, false), 2);
	assert_int_equal(count_there(to, "bob", MR_INBOX, true), 1);
	mr_room_close(to);
	town_done(&t);
}

static void
two_names_never_become_one(void **state)
{
	struct town t = town_new(state);
	struct mr_room *to = city();
	struct mr_exported got = { 0 };
	struct mr_error err = { 0 };
	struct mr_export_options options = { .names = TO("alice=bob") };

	town_send(&t, &t.alice, "bob", "one", NULL);
	assert_rc(mr_export(t.room, to, &options, NULL, NULL, &got, &err), MR_REFUSED);
	assert_rc(agent_exists(to, "bob", &err), MR_NOTFOUND); /* nothing was written */
	options.names = TO("alice=bob", "bob=alice");
	assert_int_equal(export_all(&t, to, &options).copied, 1);
	assert_int_equal(count_there(to, "alice", MR_INBOX, true), 1);
	struct seen seen = { 0 };
	struct mr_scan from_bob = { .filter = { .from = "bob" } };

	assert_ok(mr_scan(to, "alice", &from_bob, town_note, &seen, &err));
	assert_int_equal(seen.n, 1);
	assert_rc(mr_export(t.room, t.room, &options, NULL, NULL, &got, &err), MR_REFUSED);
	mr_room_close(to);
	town_done(&t);
}

static void
only_those_named_are_copied(void **state)
{
	struct town t = town_new(state);
	struct mr_room *to = city();
	struct mr_exported got = { 0 };
	struct mr_error err = { 0 };
	struct mr_export_options options = { .agents = TO("carol"), .dry_run = true };

	town_send(&t, &t.alice, "bob", "one", NULL);
	town_send(&t, &t.alice, "carol", "two", NULL);
	assert_int_equal(export_all(&t, to, &options).copied, 1);
	assert_rc(agent_exists(to, "carol", &err), MR_NOTFOUND);
	options.dry_run = false;
	assert_int_equal(export_all(&t, to, &options).copied, 1);
	assert_rc(agent_exists(to, "bob", &err), MR_NOTFOUND);
	options.agents = TO("nobody");
	assert_rc(mr_export(t.room, to, &options, NULL, NULL, &got, &err), MR_NOTFOUND);
	mr_room_close(to);
	town_done(&t);
}

static void
it_stops_when_told_and_goes_on_later(void **state)
{
	struct town t = town_new(state);
	struct mr_room *to = city();
	struct mr_exported got = { 0 };
	struct mr_error err = { 0 };
	struct steps steps = { .stop_after = 2 };

	for (int i = 0; i < 5; i++)
		town_send(&t, &t.alice, i % 2 ? "bob" : "carol", "hello", NULL);
	assert_ok(mr_export(t.room, to, &(struct mr_export_options){ 0 }, count_step, &steps, &got, &err));
	assert_true(got.stopped);
	assert_int_equal(got.copied, 2);
	got = export_all(&t, to, &(struct mr_export_options){ 0 });
	assert_int_equal(got.copied, 3);
	assert_int_equal(got.there, 2);
	mr_room_close(to);
	town_done(&t);
}

static void
one_that_is_refused_does_not_stop_the_others(void **state)
{
	struct town t = town_new(state);
	struct mr_room *to = city();
	struct mr_exported got = { 0 };
	struct mr_error err = { 0 };
	struct steps steps = { 0 };

	for (int i = 0; i < 4; i++)
		town_send(&t, &t.alice, "bob", "hello", NULL);
	(void)export_all(&t, to, &(struct mr_export_options){ .agents = TO("carol") });
	struct mr_agent bob = { .name = "bob", .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

	assert_ok(to->driver->add_agent(to, &bob, &err));
	struct room_fault plan = { 0 };

	room_wrap_fault(to, &plan);
	for (unsigned long at = 1; at < 8; at++) { /* one of its first calls is a delivery */
		plan = (struct room_fault){ .fail_at = at, .code = MR_REFUSED };
		steps = (struct steps){ 0 };
		enum mr_rc rc = mr_export(
		    t.room, to, &(struct mr_export_options){ .agents = TO("bob") }, count_step, &steps, &got, &err);

		if (rc == MR_OK && got.skipped == 1)
			break;
	}
	assert_int_equal(got.skipped, 1);
	assert_int_equal(got.copied + got.there, 3);
	assert_int_equal(steps.troubles, 1);
	assert_true(steps.trouble[0] != '\0');
	mr_room_close(to);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(mail_keeps_what_it_is),
		ON_BOTH(a_repeated_export_copies_nothing_twice_and_sets_what_is_missing),
		ON_BOTH(two_names_never_become_one),
		ON_BOTH(only_those_named_are_copied),
		ON_BOTH(it_stops_when_told_and_goes_on_later),
		ON_BOTH(one_that_is_refused_does_not_stop_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
