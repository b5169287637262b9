/* SPDX-License-Identifier: MIT */
#include "town.h"

static struct mr_claim
receive(struct town *t, const struct mr_self *self, int64_t lease_ms, const char *subject)
{
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_recv(t->room, self, NULL, lease_ms, &claim, &msg, &err));
	assert_string_equal(msg.subject, subject);
	assert_string_equal(msg.id, claim.id);
	assert_int_equal(msg.folder, MR_HELD);
	assert_non_null(msg.body);
	mr_message_done(&msg);
	return claim;
}

static void
assert_nothing_to_receive(struct town *t, const struct mr_self *self)
{
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	assert_rc(mr_recv(t->room, self, NULL, 1000, &claim, &msg, &err), MR_EMPTY);
}

static void
work_is_handed_out_urgent_first_then_oldest(void **state)
{
	struct town t = town_new(state);
	struct mr_draft urgent = draft_to(TO("bob"), "urgent 3");
	struct mr_filter from_carol = { .from = "carol" };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };

	urgent.priority = MR_URGENT;
	town_send(&t, &t.alice, "bob", "first", NULL);
	town_send(&t, &t.carol, "bob", "second", NULL);
	town_send_draft(&t, &t.alice, &urgent, NULL);
	assert_ok(mr_recv(t.room, &t.bob, &from_carol, 0, &claim, &msg, &err));
	assert_string_equal(msg.subject, "second");
	mr_message_done(&msg);
	(void)receive(&t, &t.bob, 60000, "urgent 3");
	(void)receive(&t, &t.bob, 60000, "first");
	assert_nothing_to_receive(&t, &t.bob);
	assert_rc(mr_recv(t.room, &t.bob, NULL, -5, &claim, &msg, &err), MR_REFUSED);
	town_done(&t);
}

static void
done_archives_and_a_second_done_finds_nothing(void **state)
{
	struct town t = town_new(state);
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "work", NULL);
	struct mr_claim claim = receive(&t, &t.bob, 60000, "work");

	assert_int_equal(claim.attempt, 1);
	assert_int_equal(strlen(claim.token), MR_TOKEN_LEN);
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err));
	assert_string_equal(id, claim.id);
	assert_rc(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err), MR_NOTFOUND);
	assert_ok(mr_fetch(t.room, "bob", id, &msg, &err));
	assert_int_equal(msg.folder, MR_ARCHIVE);
	assert_int_equal(msg.flags & (MR_SEEN | MR_ACKED), MR_SEEN | MR_ACKED);
	mr_message_done(&msg);
	town_done(&t);
}

static void
a_bare_id_is_enough_for_the_one_claim_of_this_life(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1], sent[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "work", sent);
	assert_rc(
	    mr_claim_done(t.room, &t.bob, sent, NULL, id, NULL, &err), MR_NOTFOUND); /* waits, but is not claimed */
	(void)receive(&t, &t.bob, 60000, "work");
	assert_rc(mr_claim_done(t.room, &t.carol, sent, NULL, id, NULL, &err), MR_NOTFOUND);
	assert_ok(mr_claim_done(t.room, &t.bob, sent + 20, NULL, id, NULL, &err));
	assert_string_equal(id, sent);
	town_done(&t);
}

static void
released_work_comes_again_with_a_new_token(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "work", NULL);
	struct mr_claim first = receive(&t, &t.bob, 60000, "work");

	assert_ok(mr_claim_release(t.room, &t.bob, first.token, NULL, id, &err));
	assert_int_equal(town_unread(&t, "bob").attempts[0], 0); /* a release is no attempt */
	struct mr_claim second = receive(&t, &t.bob, 60000, "work");

	assert_string_equal(second.id, first.id);
	assert_string_not_equal(second.token, first.token);
	assert_int_equal(second.attempt, 1);
	assert_rc(mr_claim_done(t.room, &t.bob, first.token, NULL, id, NULL, &err), MR_NOTFOUND);
	assert_ok(mr_claim_done(t.room, &t.bob, second.token, NULL, id, NULL, &err));
	town_done(&t);
}

static void
a_late_done_is_refused_when_the_lease_ran_out(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "work", NULL);
	struct mr_claim late = receive(&t, &t.bob, 1, "work");

	(void)usleep(20 * 1000);
	struct mr_claim next = receive(&t, &t.bob, 60000, "work"); /* recv puts back what expired */

	assert_string_equal(next.id, late.id);
	assert_rc(mr_claim_done(t.room, &t.bob, late.token, NULL, id, NULL, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.message, "over"));
	assert_rc(mr_claim_fail(t.room, &t.bob, late.token, "late", id, &err), MR_NOTFOUND);
	assert_int_equal(town_count(&t, "alice", MR_INBOX), 0); /* a late fail sends no bounce */
	assert_int_equal(town_count(&t, "bob", MR_HELD), 1);
	assert_ok(mr_claim_done(t.room, &t.bob, next.token, NULL, id, NULL, &err));
	town_done(&t);
}

static void
an_extended_lease_lasts_longer(void **state)
{
	struct town t = town_new(state);
	struct mr_claim extended = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "work", NULL);
	struct mr_claim claim = receive(&t, &t.bob, 150, "work");

	assert_ok(mr_claim_extend(t.room, &t.bob, claim.token, 3600 * 1000, &extended, &err));
	assert_string_equal(extended.token, claim.token);
	assert_true(extended.deadline_ms > claim.deadline_ms);
	(void)usleep(200 * 1000);
	assert_nothing_to_receive(&t, &t.bob);
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err));
	town_done(&t);
}

static void
a_takeover_fences_the_claims_of_the_old_life(void **state)
{
	struct town t = town_new(state);
	struct mr_self new_life = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "work", NULL);
	struct mr_claim old = receive(&t, &t.bob, 60000, "work");

	town_register(&t, "bob", true, &new_life);
	assert_rc(mr_claim_done(t.room, &t.bob, old.token, NULL, id, NULL, &err), MR_REFUSED);
	assert_rc(mr_claim_done(t.room, &new_life, old.token, NULL, id, NULL, &err), MR_NOTFOUND);
	struct mr_claim claim = receive(&t, &new_life, 60000, "work");

	assert_string_equal(claim.id, old.id);
	assert_rc(mr_claim_done(t.room, &t.bob, old.token, NULL, id, NULL, &err), MR_REFUSED);
	assert_rc(mr_mark(t.room, &t.bob, old.id, MR_SEEN, 0, &err), MR_REFUSED);
	assert_ok(mr_claim_done(t.room, &new_life, claim.token, NULL, id, NULL, &err));
	town_done(&t);
}

static struct claim stray; /* of a life that checked its number just before a takeover and held just after it */

static enum mr_rc
each_stray_claim(struct mr_room *room, const char *box, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err)
{
	(void)room;
	(void)box;
	(void)states;
	(void)err;
	(void)fn(ctx, &(struct queue_item){ .state = QUEUE_CLAIMED, .claim = &stray });
	return MR_OK;
}

static void
a_claim_of_an_older_life_is_not_ours(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver raced = *real;
	struct mr_self new_life = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_register(&t, "bob", true, &new_life);
	stray = (struct claim){ .box = "bob",
		.agent = "bob",
		.id = "01k9w3b7zq8m4c2v6t1x5n0prs",
		.token = "abcdef012345",
		.life = t.bob.life,
		.attempt = 1,
		.kind = CLAIM_LEASE };
	raced.each_claim = each_stray_claim;
	t.room->driver = &raced;
	assert_rc(mr_claim_done(t.room, &new_life, stray.token, NULL, id, NULL, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "older life"));
	assert_rc(mr_claim_done(t.room, &new_life, "5n0prs", NULL, id, NULL, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, "older life"));
	t.room->driver = real;
	town_done(&t);
}

static void
failed_work_bounces_and_goes_to_dead_letters(void **state)
{
	struct town t = town_new(state);
	struct mr_message bounce = { 0 }, dead = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1], sent[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "work", sent);
	struct mr_claim claim = receive(&t, &t.bob, 60000, "work");

	assert_ok(mr_claim_fail(t.room, &t.bob, claim.token, "no such branch", id, &err));
	assert_string_equal(id, sent);
	struct seen unread = town_unread(&t, "alice");

	assert_int_equal(unread.n, 1);
	assert_ok(mr_fetch(t.room, "alice", unread.ids[0], &bounce, &err));
	assert_string_equal(bounce.type, "bounce");
	assert_string_equal(bounce.subject, "Failed: work");
	assert_string_equal(bounce.from, "bob");
	assert_string_equal(bounce.reply_to, sent);
	assert_string_equal(bounce.thread, sent);
	assert_non_null(strstr(bounce.body, "no such branch"));
	assert_non_null(strstr(bounce.body, sent));
	mr_message_done(&bounce);
	assert_int_equal(town_count(&t, "bob", MR_DEAD), 1);
	assert_int_equal(town_count(&t, "bob", MR_INBOX | MR_HELD | MR_ARCHIVE), 0);
	assert_ok(mr_fetch(t.room, "bob", sent + 18, &dead, &err));
	assert_int_equal(dead.folder, MR_DEAD);
	mr_message_done(&dead);
	claim = receive(&t, &t.alice, 60000, "Failed: work");
	assert_ok(mr_claim_fail(t.room, &t.alice, claim.token, "cannot help it", id, &err));
	assert_int_equal(town_unread(&t, "bob").n, 0); /* a bounce never bounces */
	assert_int_equal(town_count(&t, "bob", MR_DEAD), 2);
	town_done(&t);
}

static enum mr_rc
deliver_fails(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	(void)room;
	(void)what;
	(void)ret;
	return mr_fail(err, MR_FULL, "the disk is full");
}

static void
a_bounce_that_cannot_be_sent_keeps_the_claim(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver full = *real;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	town_send(&t, &t.alice, "bob", "work", NULL);
	struct mr_claim claim = receive(&t, &t.bob, 60000, "work");

	full.deliver = deliver_fails;
	t.room->driver = &full;
	assert_rc(mr_claim_fail(t.room, &t.bob, claim.token, "x", id, &err), MR_FULL);
	t.room->driver = real;
	assert_int_equal(town_count(&t, "bob", MR_DEAD), 0);
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err));
	town_done(&t);
}

static void
parallel_claimants_share_the_work_out(void **state)
{
	enum { MESSAGES = 40, WORKERS = 4 };
	struct town t = town_new(state);
	pid_t workers[WORKERS];
	int total = 0;

	for (int i = 0; i < MESSAGES; i++)
		town_send(&t, &t.alice, "bob", "work", NULL);
	for (int w = 0; w < WORKERS; w++) {
		workers[w] = fork();
		assert_true(workers[w] >= 0);
		if (workers[w] > 0)
			continue;
		struct mr_room *room = NULL;
		struct mr_error err = { 0 };
		struct mr_claim claim = { 0 };
		struct mr_message msg = { 0 };
		char id[MR_ID_LEN + 1];
		int n = 0;

		if (mr_room_open(mr_room_spec(t.room), NULL, &room, &err) != MR_OK)
			_exit(255);
		while (mr_recv(room, &t.bob, NULL, 60000, &claim, &msg, &err) == MR_OK) {
			mr_message_done(&msg);
			if (mr_claim_done(room, &t.bob, claim.token, NULL, id, NULL, &err) != MR_OK)
				_exit(254);
			n++;
		}
		_exit(n);
	}
	for (int w = 0; w < WORKERS; w++) {
		int status = 0;

		assert_int_equal(waitpid(workers[w], &status, 0), workers[w]);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= MESSAGES);
		total += WEXITSTATUS(status);
	}
	assert_int_equal(total, MESSAGES);
	assert_int_equal(town_count(&t, "bob", MR_ARCHIVE), MESSAGES);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(work_is_handed_out_urgent_first_then_oldest),
		ON_BOTH(done_archives_and_a_second_done_finds_nothing),
		ON_BOTH(a_bare_id_is_enough_for_the_one_claim_of_this_life),
		ON_BOTH(released_work_comes_again_with_a_new_token),
		ON_BOTH(a_late_done_is_refused_when_the_lease_ran_out),
		ON_BOTH(an_extended_lease_lasts_longer),
		ON_BOTH(a_takeover_fences_the_claims_of_the_old_life),
		ON_BOTH(a_claim_of_an_older_life_is_not_ours),
		ON_BOTH(failed_work_bounces_and_goes_to_dead_letters),
		ON_BOTH(a_bounce_that_cannot_be_sent_keeps_the_claim),
		ON_MAILDIR(parallel_claimants_share_the_work_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
