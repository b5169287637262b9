/* SPDX-License-Identifier: MIT */
/* Status, settings and removal of queues. */
#include "jobs.h"
#include "office/work/work.h"

static void
a_paused_queue_takes_mail_and_gives_nothing_out(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	assert_ok(mr_queue_set_status(t.room, "builds", MR_QUEUE_PAUSED, &err));
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	assert_no_work(&t, &t.bob, MR_REFUSED);
	assert_non_null(strstr(err.message, "paused"));
	assert_ok(mr_queue_set_status(t.room, "queue:builds", MR_QUEUE_ACTIVE, &err));
	(void)take(&t, &t.bob, "work");
	town_done(&t);
}

static void
a_closed_queue_refuses_both_and_lets_running_claims_finish(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("queue:builds"), "more");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	town_send(&t, &t.alice, "queue:builds", "two", NULL);
	struct mr_claim claim = take(&t, &t.bob, "one");

	assert_ok(mr_queue_set_status(t.room, "builds", MR_QUEUE_CLOSED, &err));
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	assert_no_work(&t, &t.bob, MR_REFUSED);
	assert_ok(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err));
	assert_int_equal(count(&t, "builds").done, 1);
	assert_int_equal(count(&t, "builds").ready, 1);
	town_done(&t);
}

static void
settings_come_back_as_they_were_given(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	struct mr_error err = { 0 };

	make_queue(&t, "greenplace/builds-2",
	    (struct mr_queue){ .claimers = "greenplace/crew/*",
		.by_priority = true,
		.max_claims = 7,
		.lease_ms = 90 * 1000,
		.attempts = 5 });
	assert_ok(mr_queue_get(t.room, "queue:greenplace/builds-2", &q, &err));
	assert_string_equal(q.name, "greenplace/builds-2");
	assert_string_equal(q.claimers, "greenplace/crew/*");
	assert_true(q.by_priority);
	assert_int_equal(q.max_claims, 7);
	assert_int_equal(q.lease_ms, 90 * 1000);
	assert_int_equal(q.attempts, 5);
	assert_int_equal(q.status, MR_QUEUE_ACTIVE);
	assert_string_equal(q.created_by, "alice");
	assert_true(q.created_ms > 0);
	town_send(&t, &t.alice, "queue:greenplace/builds-2", "work", NULL);
	assert_int_equal(count(&t, "greenplace/builds-2").ready, 1);
	struct mr_queue again = { .name = "greenplace/builds-2" };

	assert_rc(mr_queue_create(t.room, &t.bob, &again, &err), MR_EXISTS);
	town_done(&t);
}

static void
names_and_patterns_that_are_none_are_refused(void **state)
{
	static const char *const names[] = { "", "Builds", "a b", "../x", "-x", "a/b/c", "rig/", "/x", "a.b" };
	static const char *const patterns[] = { "", "rig/cr*", "rig//x", "a b", "../*" };
	struct town t = town_new(state);
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	struct mr_error err = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct mr_queue bad = { 0 };

		(void)snprintf(bad.name, sizeof(bad.name), "%s", names[i]);
		assert_rc(mr_queue_create(t.room, &t.alice, &bad, &err), MR_REFUSED);
	}
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct mr_queue bad = { .name = "builds", .claimers = patterns[i] };

		assert_rc(mr_queue_create(t.room, &t.alice, &bad, &err), MR_REFUSED);
	}
	assert_rc(mr_queue_get(t.room, "builds", &q, &err), MR_NOTFOUND);
	make_queue(&t, "builds", (struct mr_queue){ 0 });
	assert_rc(mr_queue_get(t.room, "bulids", &q, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.hint, "'builds'"));
	assert_no_work(&t, &t.bob, MR_EMPTY);
	town_done(&t);
}

static void
claim_patterns_match_whole_parts_in_any_spelling(void **state)
{
	(void)state;
	assert_true(office_lets_claim("*", "rig/crew/max"));
	assert_true(office_lets_claim("bob", "bob"));
	assert_false(office_lets_claim("bob", "bobby"));
	assert_true(office_lets_claim("rig/crew/*", "rig/crew/max"));
	assert_false(office_lets_claim("rig/crew/*", "rig/polecats/max"));
	assert_false(office_lets_claim("rig/crew/*", "gir/crew/max"));
	assert_true(office_lets_claim("*/witness", "rig/witness"));
	assert_false(office_lets_claim("*/witness", "rig/refinery"));
	assert_true(office_lets_claim("mayor/", "mayor"));
	assert_true(office_lets_claim("rig/mayor", "mayor"));
	assert_true(office_lets_claim("rig/max", "rig/polecats/max"));
	assert_true(office_lets_claim("rig/crew/max", "rig/max"));
	assert_true(office_lets_claim("rig/*", "rig/polecats/max"));
	assert_false(office_lets_claim("rig/*", "gir/max"));
	assert_false(office_lets_claim("rig/*", "rig"));
}

static void
only_claimers_may_claim_and_they_are_counted(void **state)
{
	struct town t = town_new(state);
	struct mr_self max = { 0 };
	struct mr_error err = { 0 };

	town_register(&t, "rig/crew/max", false, &max);
	make_queue(&t, "builds", (struct mr_queue){ .claimers = "rig/crew/*", .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "work", NULL);
	assert_no_work(&t, &t.bob, MR_REFUSED);
	assert_non_null(strstr(err.hint, "rig/crew/*"));
	/* These agents tell of no process, so nobody knows whether they live. */
	assert_int_equal(count(&t, "builds").claimers, 0);
	assert_int_equal(count(&t, "builds").claimers_unknown, 1);
	(void)take(&t, &max, "work");
	make_queue(&t, "others", (struct mr_queue){ .claimers = "*" });
	assert_int_equal(count(&t, "others").claimers_unknown, 4);
	town_done(&t);
}

static void
counting_tells_who_holds_what(void **state)
{
	struct town t = town_new(state);
	struct mr_queue_counts counts = { 0 };
	mr_auto(mr_list_done) struct mr_queue_tasks tasks = { 0 };
	struct mr_error err = { 0 };

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	town_send(&t, &t.alice, "queue:builds", "two", NULL);
	town_send(&t, &t.alice, "queue:builds", "three", NULL);
	struct mr_claim claim = take(&t, &t.bob, "one");

	assert_ok(mr_queue_count(t.room, "builds", &counts, &err));
	assert_int_equal(counts.claimed, 1);
	assert_int_equal(counts.ready, 2);
	assert_ok(mr_queue_tasks(t.room, "builds", false, 1, &tasks, &err));
	/* The limit is for each state: all that is claimed, and one of what is ready. */
	assert_int_equal(tasks.n, 2);
	assert_int_equal(tasks.more, 1);
	assert_string_equal(tasks.v[1].state, "ready");
	assert_string_equal(tasks.v[1].subject, "two");
	assert_string_equal(tasks.v[0].id, claim.id);
	assert_string_equal(tasks.v[0].state, "claimed");
	assert_string_equal(tasks.v[0].who, "bob");
	assert_string_equal(tasks.v[0].subject, "one");
	assert_int_equal(tasks.v[0].attempt, 1);
	assert_false(tasks.v[0].over);
	assert_true(tasks.v[0].since_ms > clock_now_ms() - 60000 && tasks.v[0].since_ms <= clock_now_ms());
	town_done(&t);
}

static void
a_queue_with_work_is_deleted_only_by_force_and_senders_are_told(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_queue_done) struct mr_queue q = { 0 };
	struct mr_error err = { 0 };
	char sent[MR_ID_LEN + 1], id[MR_ID_LEN + 1];
	size_t dead = 99;

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	town_send(&t, &t.carol, "queue:builds", "two", sent);
	struct mr_claim done = take(&t, &t.bob, "one"), claim = take(&t, &t.bob, "two");

	assert_ok(mr_claim_done(t.room, &t.bob, done.token, NULL, id, NULL, &err));
	assert_rc(mr_queue_delete(t.room, "builds", false, &dead, &err), MR_REFUSED);
	assert_int_equal(town_unread(&t, "carol").n, 0);
	assert_ok(mr_queue_get(t.room, "builds", &q, &err));
	assert_int_equal(q.status, MR_QUEUE_ACTIVE);
	assert_ok(mr_queue_delete(t.room, "builds", true, &dead, &err));
	assert_int_equal(dead, 1);
	assert_rc(mr_queue_delete(t.room, "builds", true, &dead, &err), MR_NOTFOUND);
	assert_rc(mr_claim_done(t.room, &t.bob, claim.token, NULL, id, NULL, &err), MR_NOTFOUND);
	assert_int_equal(town_count(&t, "bob", MR_DEAD), 1);
	assert_bounce(&t, "carol", sent, "carol", "deleted");
	assert_int_equal(town_unread(&t, "alice").n, 0);
	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	assert_int_equal(count(&t, "builds").ready + count(&t, "builds").claimed, 0);
	assert_ok(mr_queue_delete(t.room, "builds", false, &dead, &err));
	town_done(&t);
}

static bool
note_letter(void *ctx, const char *queue, const struct mr_message *msg)
{
	(void)msg;
	assert_string_equal(queue, "");
	++*(size_t *)ctx;
	return true;
}

static void
failed_work_of_a_deleted_queue_stays_a_dead_letter(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];
	size_t dead = 99, letters = 0;

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	town_send(&t, &t.alice, "queue:builds", "one", NULL);
	struct mr_claim claim = take(&t, &t.bob, "one");

	assert_ok(mr_claim_fail(t.room, &t.bob, claim.token, "cannot", id, &err));
	assert_ok(mr_queue_delete(t.room, "builds", false, &dead, &err));
	assert_int_equal(dead, 0);
	assert_ok(mr_dead_each(t.room, 0, note_letter, &letters, NULL, &err));
	assert_int_equal(letters, 1);
	assert_int_equal(town_unread(&t, "alice").n, 1); /* told when it failed, not again */
	town_done(&t);
}

static void
all_queues_are_listed(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_list_done) struct mr_queues none = { 0 }, all = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_queue_list(t.room, &none, &err));
	assert_int_equal(none.n, 0);
	make_queue(&t, "builds", (struct mr_queue){ 0 });
	make_queue(&t, "rig/builds", (struct mr_queue){ 0 });
	make_queue(&t, "rig", (struct mr_queue){ 0 });
	assert_ok(mr_queue_list(t.room, &all, &err));
	assert_int_equal(all.n, 3);
	assert_string_equal(all.v[0].name, "builds");
	assert_string_equal(all.v[1].name, "rig");
	assert_string_equal(all.v[2].name, "rig/builds");
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_paused_queue_takes_mail_and_gives_nothing_out),
		ON_BOTH(a_closed_queue_refuses_both_and_lets_running_claims_finish),
		ON_BOTH(settings_come_back_as_they_were_given),
		ON_BOTH(names_and_patterns_that_are_none_are_refused),
		cmocka_unit_test(claim_patterns_match_whole_parts_in_any_spelling),
		ON_BOTH(only_claimers_may_claim_and_they_are_counted),
		ON_BOTH(counting_tells_who_holds_what),
		ON_BOTH(a_queue_with_work_is_deleted_only_by_force_and_senders_are_told),
		ON_BOTH(failed_work_of_a_deleted_queue_stays_a_dead_letter),
		ON_BOTH(all_queues_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
