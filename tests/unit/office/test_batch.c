/* SPDX-License-Identifier: MIT */
#include "base/id.h"
#include "town.h"

#define MANY 600

static size_t
told(struct mr_sent *sent, size_t n, enum mr_rc rc)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += sent[i].rc == rc;
	return found;
}

static void
forget(struct mr_sent *sent, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mr_receipt_done(&sent[i].receipt);
}

static void
each_is_what_a_single_send_would_be(void **state)
{
	struct town t = town_new(state);
	struct mr_draft drafts[] = { draft_to(TO("bob"), "one"), draft_to(TO("nobody"), "x"),
		draft_to(TO("carol"), "two"), draft_to(TO("bob", "carol"), "both"), draft_to(TO("bob"), " "),
		draft_to(TO("bob"), "keyed"), draft_to(TO("bob"), "keyed"), draft_to(TO("bob"), "three") };
	struct mr_sent sent[8];

	drafts[5].key = drafts[6].key = "k";
	drafts[7].dry_run = true;
	mr_send_many(t.room, &t.alice, drafts, 8, sent);
	static const enum mr_rc want[8] = { MR_OK, MR_NOTFOUND, MR_OK, MR_OK, MR_REFUSED, MR_OK, MR_OK, MR_OK };

	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(sent[i].rc, want[i]);
		assert_int_equal(sent[i].error.message[0] == '\0', want[i] == MR_OK);
		assert_int_equal(sent[i].receipt.to.n, want[i] != MR_OK ? 0 : i == 3 ? 2 : 1);
	}
	assert_true(sent[6].receipt.repeated);
	assert_string_equal(sent[5].receipt.id, sent[6].receipt.id);
	assert_true(strcmp(sent[0].receipt.id, sent[2].receipt.id) < 0);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 3);
	assert_int_equal(town_count(&t, "carol", MR_INBOX), 2);
	assert_int_equal(town_count(&t, "alice", MR_SENT), 4);
	forget(sent, 8);
	mr_send_many(t.room, &t.alice, drafts, 0, sent);
	town_done(&t);
}

static void
more_than_one_group(void **state)
{
	struct town t = town_new(state);
	struct mr_draft *drafts = calloc(MANY, sizeof(*drafts));
	struct mr_sent *sent = calloc(MANY, sizeof(*sent));

	assert_true(drafts && sent);
	const char *to_bob[] = { "bob", NULL }, *to_carol[] = { "carol", NULL };

	for (size_t i = 0; i < MANY; i++)
		drafts[i] = draft_to(i % 2 ? to_bob : to_carol, "text");
	mr_send_many(t.room, &t.alice, drafts, MANY, sent);
	assert_int_equal(told(sent, MANY, MR_OK), MANY);
	for (size_t i = 1; i < MANY; i++)
		assert_true(strcmp(sent[i - 1].receipt.id, sent[i].receipt.id) < 0);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), MANY / 2);
	assert_int_equal(town_count(&t, "carol", MR_INBOX), MANY / 2);
	forget(sent, MANY);
	free(sent);
	free(drafts);
	town_done(&t);
}

static void
who_may_not_send_sends_nothing(void **state)
{
	struct town t = town_new(state);
	struct mr_self stranger = { .agent = "stranger" };
	struct mr_draft drafts[] = { draft_to(TO("bob"), "one"), draft_to(TO("bob"), "two") };
	struct mr_sent sent[2];

	mr_send_many(t.room, &stranger, drafts, 2, sent);
	assert_int_equal(told(sent, 2, MR_NOTFOUND), 2);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 0);
	forget(sent, 2);
	town_done(&t);
}

/* ---- The driver's part ---- */

/* One cannot be delivered, two have one id: the others do not suffer, and nothing is overwritten. */
static void
what_goes_wrong_goes_wrong_alone(void **state)
{
	struct town t = town_new(state);
	static const char *const names[5] = { "bob", "nobody", "bob", "bob", "carol" };
	char *lists[5][1];
	struct mr_names to[5];
	struct mr_message messages[5];
	struct parcel parcels[5] = { 0 };

	for (size_t i = 0; i < 5; i++) {
		lists[i][0] = (char *)(uintptr_t)names[i];
		to[i] = (struct mr_names){ .v = lists[i], .n = 1 };
		messages[i] = (struct mr_message){ .from = "alice",
			.to = to[i],
			.subject = "s",
			.type = "",
			.thread = "",
			.reply_to = "",
			.replace_key = "",
			.path = "",
			.date_ms = 1700000000000,
			.body = "text",
			.body_len = 4 };
		id_new(messages[i].id);
		parcels[i].what = (struct delivery){ .msg = &messages[i], .to = &to[i], .sender = "alice" };
	}
	(void)snprintf(messages[3].id, sizeof(messages[3].id), "%s", messages[2].id);
	struct delivery many = parcels[0].what;
	struct delivered ignored = { 0 };
	struct mr_error err = { 0 };

	many.many = parcels;
	many.many_n = 5;
	assert_ok(t.room->driver->deliver(t.room, &many, &ignored, &err));
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(parcels[i].rc, i == 1 ? MR_NOTFOUND : MR_OK);
	assert_string_not_equal(parcels[2].got.id, parcels[3].got.id);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 3);
	assert_int_equal(town_count(&t, "carol", MR_INBOX), 1);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(each_is_what_a_single_send_would_be),
		ON_BOTH(more_than_one_group),
		ON_BOTH(who_may_not_send_sends_nothing),
		ON_MAILDIR(what_goes_wrong_goes_wrong_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
