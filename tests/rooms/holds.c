/* SPDX-License-Identifier: MIT */
/* holds.c - mail that is being shown or worked on. */
#include "suite.h"
#include "base/clock.h"
#include "base/process.h"
#include <unistd.h>

static void
bob_with_mail(struct world *w, char ret_id[MR_ID_LEN + 1])
{
	add_agent(w, "bob");
	(void)take_life(w, "bob", 1);
	send_to(w, "bob", "work", ret_id);
}

static void
a_hold_takes_mail_out_of_the_inbox(void **state)
{
	struct world *w = *state;
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .lease_ms = 60000, .session = "" };
	struct claim second = { 0 };
	char id[MR_ID_LEN + 1];

	bob_with_mail(w, id);
	struct claim hold = hold_ok(w, "bob", id, 1, 60000);

	assert_string_equal(hold.agent, "bob");
	assert_string_equal(hold.id, id);
	assert_int_equal(strlen(hold.token), MR_TOKEN_LEN);
	assert_int_equal(hold.attempt, 1);
	assert_int_equal(hold.life, 1);
	assert_true(hold.deadline_ms > clock_now_ms() + 50000);
	assert_int_equal(count_in(w, "bob", MR_INBOX), 0);
	assert_int_equal(count_in(w, "bob", MR_HELD), 1);
	EXPECT(MR_BUSY, w->ops->claim(w->room, "bob", id, &terms, &second, &err));
	EXPECT(MR_BUSY, w->ops->mark(w->room, "bob", id, MR_SEEN, 0, 0, &err));
	EXPECT(MR_NOTFOUND, w->ops->claim(w->room, "bob", "01k9w3b7zq8m4c2v6t1x5n0prs", &terms, &second, &err));
}

static void
mail_that_was_read_meanwhile_is_not_held(void **state)
{
	struct world *w = *state;
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .lease_ms = 60000, .session = "" };
	struct claim hold = { 0 };
	char id[MR_ID_LEN + 1];

	bob_with_mail(w, id);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, MR_SEEN, 0, 0, &err));
	EXPECT(MR_NOTFOUND, w->ops->claim(w->room, "bob", id, &terms, &hold, &err));
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", id, MR_PINNED, MR_SEEN, 0, &err));
	EXPECT(MR_OK, w->ops->claim(w->room, "bob", id, &terms, &hold, &err));
	assert_int_equal(hold.flags, MR_PINNED);
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_BACK, &err));
	assert_int_equal(flags_of(w, "bob", id, MR_INBOX), MR_PINNED);
}

static void
a_hold_ends_in_five_ways(void **state)
{
	struct world *w = *state;
	static const struct {
		enum settle how;
		enum mr_folder folder;
		unsigned flags;
	} ends[] = {
		{ SETTLE_BACK, MR_INBOX, 0 },
		{ SETTLE_SEEN, MR_INBOX, MR_SEEN },
		{ SETTLE_ARCHIVE, MR_ARCHIVE, MR_SEEN },
		{ SETTLE_DONE, MR_ARCHIVE, MR_SEEN | MR_ACKED },
		{ SETTLE_DEAD, MR_DEAD, 0 },
	};
	char id[MR_ID_LEN + 1];

	add_agent(w, "bob");
	(void)take_life(w, "bob", 1);
	for (size_t i = 0; i < 5; i++) {
		send_to(w, "bob", "work", id);
		struct claim hold = hold_ok(w, "bob", id, 1, 60000);

		EXPECT(MR_OK, w->ops->settle(w->room, &hold, ends[i].how, &err));
		EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &hold, ends[i].how, &err));
		EXPECT(MR_NOTFOUND, w->ops->extend(w->room, &hold, 1000, &err));
		assert_int_equal(flags_of(w, "bob", id, ends[i].folder) & (MR_SEEN | MR_ACKED), ends[i].flags);
		assert_int_equal(count_in(w, "bob", MR_HELD), 0);
	}
	assert_int_equal(count_in(w, "bob", MR_INBOX), 2);
	assert_int_equal(count_in(w, "bob", MR_ARCHIVE), 2);
	assert_int_equal(count_in(w, "", MR_DEAD), 1);
}

static void
every_hold_has_a_new_attempt_number(void **state)
{
	struct world *w = *state;
	struct claim earlier = { 0 };
	char id[MR_ID_LEN + 1];

	bob_with_mail(w, id);
	for (unsigned attempt = 1; attempt <= 3; attempt++) {
		struct claim hold = hold_ok(w, "bob", id, 1, 60000);

		assert_int_equal(hold.attempt, attempt);
		if (attempt > 1) /* a late `done` finds nothing */
			EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &earlier, SETTLE_DONE, &err));
		EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_BACK, &err));
		struct mr_message msg = fetch_ok(w, "bob", id, MR_INBOX);

		assert_int_equal(msg.attempt, attempt);
		mr_message_done(&msg);
		earlier = hold;
	}
	assert_int_equal(count_unread(w, "bob"), 1);
}

/* One token may serve all holds of a process: it alone must not decide. */
static void
a_hold_is_known_by_token_and_attempt(void **state)
{
	struct world *w = *state;
	struct claim_terms terms = { .kind = CLAIM_HANDLE, .life = 1, .session = "" };
	struct claim first = { 0 }, second = { 0 };
	char id[MR_ID_LEN + 1];

	bob_with_mail(w, id);
	EXPECT(MR_OK, w->ops->claim(w->room, "bob", id, &terms, &first, &err));
	EXPECT(MR_OK, w->ops->settle(w->room, &first, SETTLE_BACK, &err));
	EXPECT(MR_OK, w->ops->claim(w->room, "bob", id, &terms, &second, &err));
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &first, SETTLE_DONE, &err));
	struct claim forged = second;

	memcpy(forged.token, "000000000000", sizeof forged.token);
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &forged, SETTLE_DONE, &err));
	forged = second;
	forged.attempt--;
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &forged, SETTLE_DONE, &err));
	EXPECT(MR_OK, w->ops->settle(w->room, &second, SETTLE_DONE, &err));
}

static bool
last_claim(void *ctx, const struct queue_item *item)
{
	*(struct claim *)ctx = *item->claim;
	return true;
}

static void
holds_are_listed_as_they_were_given(void **state)
{
	struct world *w = *state;
	struct claim listed = { 0 }, found = { 0 };
	char id[MR_ID_LEN + 1];

	bob_with_mail(w, id);
	struct claim hold = hold_ok(w, "bob", id, 1, 60000);

	EXPECT(MR_OK, w->ops->each_claim(w->room, "bob", QUEUE_CLAIMED, last_claim, &listed, &err));
	assert_string_equal(listed.agent, "bob");
	assert_string_equal(listed.id, id);
	assert_string_equal(listed.token, hold.token);
	assert_int_equal(listed.life, 1);
	assert_int_equal(listed.attempt, 1);
	assert_int_equal(listed.kind, CLAIM_LEASE);
	assert_string_equal(listed.box, "bob");
	EXPECT(MR_OK, w->ops->find_claim(w->room, hold.token, &found, &err));
	assert_string_equal(found.box, "bob");
	assert_string_equal(found.agent, "bob");
	assert_string_equal(found.id, id);
	assert_int_equal(found.life, 1);
	assert_int_equal(found.attempt, 1);
	EXPECT(MR_OK, w->ops->settle(w->room, &found, SETTLE_BACK, &err)); /* it is enough to settle with */
	EXPECT(MR_NOTFOUND, w->ops->find_claim(w->room, hold.token, &found, &err));
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &listed, SETTLE_DONE, &err));
	(void)hold_ok(w, "bob", id, 1, 60000);
	EXPECT(MR_OK, w->ops->each_claim(w->room, "bob", QUEUE_CLAIMED, last_claim, &listed, &err));
	EXPECT(MR_OK, w->ops->settle(w->room, &listed, SETTLE_DONE, &err)); /* and so is this */
}

static void
a_lease_runs_out_and_can_be_extended(void **state)
{
	struct world *w = *state;
	char ids[2][MR_ID_LEN + 1];

	bob_with_mail(w, ids[0]);
	send_to(w, "bob", "more", ids[1]);
	struct claim short_one = hold_ok(w, "bob", ids[0], 1, 1);
	struct claim extended = hold_ok(w, "bob", ids[1], 1, 1);

	EXPECT(MR_OK, w->ops->extend(w->room, &extended, 60000, &err));
	assert_true(extended.deadline_ms > clock_now_ms() + 50000);
	(void)usleep(5000);
	EXPECT(MR_OK, w->ops->sweep(w->room, "bob", &err));
	assert_int_equal(count_unread(w, "bob"), 1);
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &short_one, SETTLE_DONE, &err));
	EXPECT(MR_OK, w->ops->settle(w->room, &extended, SETTLE_DONE, &err));
	assert_int_equal(hold_ok(w, "bob", ids[0], 1, 60000).attempt, 2);
}

static void
a_lease_ignores_the_wall_clock(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];

	bob_with_mail(w, id);
	struct claim hold = hold_ok(w, "bob", id, 1, 60000);

	clock_shift_ms(3600000);
	EXPECT(MR_OK, w->ops->sweep(w->room, "bob", &err));
	clock_shift_ms(0);
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
}

static void
a_lease_does_not_run_out_while_its_harness_lives(void **state)
{
	struct world *w = *state;
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .lease_ms = 1, .session = "" };
	struct claim hold = { 0 };
	char id[MR_ID_LEN + 1];

	bob_with_mail(w, id);
	if (!process_describe(getpid(), &terms.process))
		skip();
	EXPECT(MR_OK, w->ops->claim(w->room, "bob", id, &terms, &hold, &err));
	(void)usleep(5000);
	EXPECT(MR_OK, w->ops->sweep(w->room, "bob", &err));
	EXPECT(MR_OK, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
}

static void
a_new_life_gets_the_held_mail_of_the_one_before(void **state)
{
	struct world *w = *state;
	struct claim_terms late = { .kind = CLAIM_LEASE, .life = 1, .lease_ms = 60000, .session = "" };
	struct claim none = { 0 };
	char ids[2][MR_ID_LEN + 1];

	bob_with_mail(w, ids[0]);
	send_to(w, "bob", "more", ids[1]);
	struct claim hold = hold_ok(w, "bob", ids[0], 1, 60000);

	assert_int_equal(take_life(w, "bob", 2), 1);
	assert_int_equal(count_unread(w, "bob"), 2);
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, w->ops->extend(w->room, &hold, 60000, &err));
	struct mr_error refusal = { 0 }; /* a fenced life that has not noticed gets nothing either */

	assert_int_not_equal(w->ops->claim(w->room, "bob", ids[1], &late, &none, &refusal), MR_OK);
	assert_int_equal(count_unread(w, "bob"), 2);
	struct claim next = hold_ok(w, "bob", ids[0], 2, 60000);

	assert_int_equal(next.attempt, 2);
	EXPECT(MR_OK, w->ops->settle(w->room, &next, SETTLE_DONE, &err));
}

static void
a_process_hold_ends_with_its_handle(void **state)
{
	struct world *w = *state;
	struct claim_terms terms = { .kind = CLAIM_HANDLE, .life = 1, .session = "" };
	struct mr_room *second = NULL;
	struct claim holds[2] = { 0 };
	char ids[2][MR_ID_LEN + 1];

	bob_with_mail(w, ids[0]);
	send_to(w, "bob", "more", ids[1]);
	struct mr_room *holder = w->room;

	if (w->spec[0] != '\0') {
		EXPECT(MR_OK, room_open_spec(w->spec, NULL, &second, &err));
		holder = second;
	}
	for (size_t i = 0; i < 2; i++) {
		EXPECT(MR_OK, holder->driver->claim(holder, "bob", ids[i], &terms, &holds[i], &err));
		assert_int_equal(holds[i].deadline_ms, 0);
	}
	EXPECT(MR_OK, w->ops->sweep(w->room, "bob", &err));
	assert_int_equal(count_in(w, "bob", MR_HELD), 2);
	EXPECT(MR_OK, holder->driver->settle(holder, &holds[0], SETTLE_ARCHIVE, &err));
	assert_int_equal(count_in(w, "bob", MR_HELD), 1);
	if (!second)
		return; /* the room itself ends with the handle */
	mr_room_close(second);
	for (int tries = 0; tries < 100 && count_in(w, "bob", MR_HELD) > 0;
	     tries++) { /* a server takes a moment to notice */
		EXPECT(MR_OK, w->ops->sweep(w->room, "bob", &err));
		(void)usleep(tries > 0 ? 20000 : 0);
	}
	assert_int_equal(count_unread(w, "bob"), 1);
	assert_int_equal(hold_ok(w, "bob", ids[1], 1, 60000).attempt, 2);
}

const struct suite_case hold_cases[] = {
	CASE(a_hold_takes_mail_out_of_the_inbox, ROOM_REGISTER | ROOM_HOLDS),
	CASE(mail_that_was_read_meanwhile_is_not_held, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_hold_ends_in_five_ways, ROOM_REGISTER | ROOM_HOLDS),
	CASE(every_hold_has_a_new_attempt_number, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_hold_is_known_by_token_and_attempt, ROOM_REGISTER | ROOM_HOLDS),
	CASE(holds_are_listed_as_they_were_given, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_lease_runs_out_and_can_be_extended, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_lease_ignores_the_wall_clock, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_lease_does_not_run_out_while_its_harness_lives, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_new_life_gets_the_held_mail_of_the_one_before, ROOM_REGISTER | ROOM_HOLDS),
	CASE(a_process_hold_ends_with_its_handle, ROOM_REGISTER | ROOM_HOLDS),
	{ 0 },
};
