/* SPDX-License-Identifier: MIT */
/* A note to one's own next life. */
#include "town.h"

static void
note(struct town *t, const struct mr_self *self, const struct mr_handoff *what, char ret_id[MR_ID_LEN + 1])
{
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_handoff(t->room, self, what, &receipt, &err));
	memcpy(ret_id, receipt.id, MR_ID_LEN + 1);
	mr_receipt_done(&receipt);
}

static void
assert_note(struct town *t, const char *id, const char *subject, const char *in_body)
{
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_fetch(t->room, "bob", id, &msg, &err));
	assert_string_equal(msg.subject, subject);
	assert_string_equal(msg.type, "HANDOFF");
	assert_string_equal(msg.from, "bob");
	assert_true(msg.flags & MR_PINNED);
	assert_false(msg.flags & MR_SEEN);
	assert_non_null(strstr(msg.body, in_body));
	mr_message_done(&msg);
}

static void
a_note_says_what_it_is_about(void **state)
{
	struct town t = town_new(state);
	char id[MR_ID_LEN + 1];

	note(&t, &t.bob, &(struct mr_handoff){ .text = "## Context\n\nthe parser\n## Next\nquotes" }, id);
	assert_note(&t, id, "\xF0\x9F\xA4\x9D HANDOFF: the parser", "## Context\n\nthe parser\n## Next\nquotes");
	note(&t, &t.bob, &(struct mr_handoff){ .subject = "half done", .text = "x" }, id);
	assert_note(&t, id, "\xF0\x9F\xA4\x9D HANDOFF: half done", "x");
	note(&t, &t.bob, &(struct mr_handoff){ .subject = "HANDOFF: mine", .text = "x" }, id);
	assert_note(&t, id, "HANDOFF: mine", "x");
	note(&t, &t.bob, &(struct mr_handoff){ 0 }, id);
	assert_note(&t, id, "\xF0\x9F\xA4\x9D HANDOFF: life 1 of bob ends", "bob left no note");
	town_done(&t);
}

static void
what_is_in_hand_is_collected(void **state)
{
	struct town t = town_new(state);
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "build it", NULL);
	assert_ok(mr_recv(t.room, &t.bob, NULL, 60000, &claim, &msg, &err));
	mr_message_done(&msg);
	for (int i = 0; i < 12; i++)
		town_send(&t, &t.carol, "bob", "later", NULL);
	note(&t, &t.bob, &(struct mr_handoff){ .text = "note", .collect = true, .dir = "/" }, id);
	assert_ok(mr_fetch(t.room, "bob", id, &msg, &err));
	assert_non_null(strstr(msg.body, "note\n\n## In hand\n\n- "));
	assert_non_null(strstr(msg.body, " from alice: build it\n\n## Inbox\n"));
	size_t lines = 0;

	for (const char *at = msg.body; (at = strstr(at, "from carol: later")); at++)
		lines++;
	assert_int_equal(lines, 10);
	mr_message_done(&msg);
	town_done(&t);
}

static void
the_next_one_puts_a_read_one_away(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char read[MR_ID_LEN + 1], unread[MR_ID_LEN + 1], last[MR_ID_LEN + 1];

	note(&t, &t.bob, &(struct mr_handoff){ .text = "one" }, read);
	note(&t, &t.bob, &(struct mr_handoff){ .text = "two" }, unread);
	assert_ok(mr_mark(t.room, &t.bob, read, MR_SEEN, 0, &err));
	town_send(&t, &t.alice, "bob", "HANDOFF: not yours", NULL);
	note(&t, &t.bob, &(struct mr_handoff){ .text = "three" }, last);
	struct seen inbox = town_scan(&t, "bob", &(struct mr_scan){ .order = MR_BY_PRIORITY });

	assert_int_equal(inbox.n, 3);
	assert_string_equal(inbox.ids[0], last); /* before everything else, the newest first */
	assert_string_equal(inbox.ids[1], unread);
	assert_string_equal(inbox.subjects[2], "HANDOFF: not yours");
	assert_int_equal(town_count(&t, "bob", MR_ARCHIVE), 1);
	town_done(&t);
}

static void
it_is_before_urgent_mail(void **state)
{
	struct town t = town_new(state);
	struct mr_draft urgent = draft_to(TO("bob"), "fire");
	char id[MR_ID_LEN + 1];

	note(&t, &t.bob, &(struct mr_handoff){ .text = "one" }, id);
	urgent.priority = MR_URGENT;
	town_send_draft(&t, &t.alice, &urgent, NULL);
	assert_string_equal(town_scan(&t, "bob", &(struct mr_scan){ .order = MR_WORK_ORDER }).ids[0], id);
	assert_string_equal(town_scan(&t, "bob", &(struct mr_scan){ .order = MR_BY_PRIORITY }).ids[0], id);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_note_says_what_it_is_about),
		ON_BOTH(what_is_in_hand_is_collected),
		ON_BOTH(the_next_one_puts_a_read_one_away),
		ON_BOTH(it_is_before_urgent_mail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
