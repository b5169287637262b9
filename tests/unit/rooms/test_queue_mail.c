/* SPDX-License-Identifier: MIT */
/* Work beside other mail: keys, fan-outs, the removal of queues, evidence and purge. */
#include "work.h"

static void
a_key_makes_a_retry_safe(void **state)
{
	struct box *b = *state;
	char first[MR_ID_LEN + 1], second[MR_ID_LEN + 1];
	struct letter l = { .key = "nightly", .priority = MR_URGENT };

	EXPECT(MR_OK, try_send(b, &l, first, &err));
	EXPECT(MR_OK, try_send(b, &l, second, &err));
	assert_string_equal(first, second);
	assert_int_equal(total(count(b)), 1);
	char id[MR_ID_LEN + 1];
	send_work(b, MR_NORMAL, id);
	assert_string_equal(claim(b, true).id, first); /* urgent, also by way of the spool */
}

static void
delay_and_queue_of_a_rig_survive_the_spool(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1];
	struct letter l = { .queue = "queue:rig/builds", .also = "bob", .not_before_ms = clock_now_ms() + 3600 * 1000 };
	struct counts n = { 0 };

	EXPECT(MR_NOTFOUND, try_send(b, &l, id, &err));
	assert_int_equal(in_inbox(b), 0);
	EXPECT(MR_OK, maildir_record_put(&b->room, "queue", "", "rig/builds", STR("Name: rig/builds\n"), &err));
	EXPECT(MR_OK, try_send(b, &l, id, &err));
	EXPECT(MR_OK, maildir_each_claim(&b->room, "queue:rig/builds", QUEUE_ANY, count_item, &n, &err));
	assert_int_equal(n.delayed, 1);
	assert_true(box_has(b, "queues/rig%2Fbuilds/settings"));
	assert_int_equal(in_inbox(b), 1);
}

static void
a_queue_with_work_is_removed_only_by_force(void **state)
{
	struct box *b = *state;
	char ids[4][MR_ID_LEN + 1];
	struct letter later = { .not_before_ms = clock_now_ms() + 3600 * 1000 };
	struct mr_message msg = { 0 };
	size_t dead = 7;

	for (size_t i = 0; i < 3; i++)
		send_work(b, MR_NORMAL, ids[i]);
	EXPECT(MR_OK, try_send(b, &later, ids[3], &err));
	struct claim done = claim(b, false), open = claim(b, false);
	EXPECT(MR_OK, maildir_settle(&b->room, &done, SETTLE_DONE, &err));
	EXPECT(MR_REFUSED, maildir_queue_remove(&b->room, "jobs", false, &dead, &err));
	assert_int_equal(total(count(b)), 4);
	EXPECT(MR_OK, maildir_queue_remove(&b->room, "jobs", true, &dead, &err));
	assert_int_equal(dead, 3);
	for (size_t i = 1; i < 4; i++) {
		EXPECT(MR_OK, maildir_fetch(&b->room, "", ids[i], MR_DEAD, SCAN_NAMES, &msg, &err));
		mr_message_done(&msg);
	}
	EXPECT(MR_NOTFOUND, maildir_settle(&b->room, &open, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, try_send(b, &(struct letter){ 0 }, ids[0], &err));
	assert_false(box_has(b, "queues/jobs/settings"));
	assert_false(box_has(b, "queues/jobs/ready"));
	/* What was worked off is no dead letter; a queue made again finds it. */
	EXPECT(MR_OK, maildir_record_put(&b->room, "queue", "", "jobs", STR("Name: jobs\n"), &err));
	assert_int_equal(count(b).done, 1);
	assert_int_equal(total(count(b)), 1);
	send_work(b, MR_NORMAL, ids[0]);
	assert_int_equal(work_off(b), 1);
}

static void
an_empty_queue_leaves_no_folder(void **state)
{
	struct box *b = *state;
	size_t dead = 7;

	EXPECT(MR_OK, maildir_queue_remove(&b->room, "jobs", false, &dead, &err));
	assert_int_equal(dead, 0);
	assert_false(box_has(b, "queues/work"));
	EXPECT(MR_NOTFOUND, maildir_queue_remove(&b->room, "jobs", false, &dead, &err));
	EXPECT(MR_NOTFOUND, maildir_queue_remove(&b->room, "..", false, &dead, &err));
}

static void
note_state(void *ctx, const struct place_of *place)
{
	(void)snprintf(ctx, 32, "%s", place->state);
	assert_non_null(strstr(place->evidence, "queue 'jobs'"));
}

static void
evidence_and_purge_know_work(void **state)
{
	struct box *b = *state;
	char id[MR_ID_LEN + 1], word[32] = "";
	size_t removed = 0;

	send_work(b, MR_NORMAL, id);
	EXPECT(MR_OK, maildir_each_place(&b->room, id, note_state, word, &err));
	assert_string_equal(word, "ready");
	struct claim hold = claim(b, false);
	EXPECT(MR_OK, maildir_each_place(&b->room, id, note_state, word, &err));
	assert_string_equal(word, "claimed");
	EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_DONE, &err));
	EXPECT(MR_OK, maildir_each_place(&b->room, id, note_state, word, &err));
	assert_string_equal(word, "done");
	EXPECT(
	    MR_OK, maildir_remove(&b->room, &(struct removal){ .what = REMOVE_EVERYWHERE, .id = id }, &removed, &err));
	assert_int_equal(removed, 1);
	assert_int_equal(total(count(b)), 0);
}

static void
count_finding(void *ctx, const struct mr_finding *finding)
{
	*(size_t *)ctx += finding->severity == MR_PROBLEM && strstr(finding->what, "no such queue") != NULL;
}

static void
doctor_keeps_the_record_of_a_claim_and_buries_work_without_a_queue(void **state)
{
	struct box *b = *state;
	struct timespec long_ago[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	char id[MR_ID_LEN + 1], rest[64];
	size_t problems = 0;

	send_work(b, MR_NORMAL, id);
	struct claim hold = claim(b, false);
	(void)snprintf(rest, sizeof(rest), "holds/%s", hold.token);
	assert_int_equal(utimensat(AT_FDCWD, box_path(b, rest), long_ago, 0), 0);
	EXPECT(MR_OK, maildir_inspect(&b->room, true, count_finding, &problems, &err));
	assert_true(box_has(b, rest));
	assert_int_equal(problems, 0);
	assert_int_equal(unlink(box_path(b, "queues/jobs/settings")), 0);
	EXPECT(MR_OK, maildir_inspect(&b->room, true, count_finding, &problems, &err));
	assert_int_equal(problems, 1);
	struct mr_message msg = { 0 };
	EXPECT(MR_OK, maildir_fetch(&b->room, "", id, MR_DEAD, SCAN_NAMES, &msg, &err));
	mr_message_done(&msg);
}

static void
names_of_work_are_parsed_back(void **state)
{
	char name[NAME_LEN], id[MR_ID_LEN + 1], file[NAME_LEN];
	struct work_name n;

	(void)state;
	id_new(id);
	name_for_id(id, file);
	assert_true(work_claimed_name("0123456789ab", 1772706600, 3, 1, file, name));
	assert_true(work_parse(QUEUE_CLAIMED, str_of(name), &n));
	assert_string_equal(n.file.id, id);
	assert_int_equal(n.p, 1);
	assert_int_equal(work_attempt(&n), 3);
	assert_int_equal(n.file.deadline_s, 1772706600);
	assert_true(work_delayed_name(1772706600123, 3, file, name));
	assert_true(work_parse(QUEUE_DELAYED, str_of(name), &n));
	assert_string_equal(n.file.id, id);
	assert_int_equal(n.p, 3);
	assert_true(n.not_before_ms == 1772706600123);
	static const char *const bad[] = { "", ".", "p2.x", "h.0123456789ab.1.1.x", "h.0123456789ab.1.1.p4.x",
		"h.0123456789ab.1.1.p1.", "1.p9.x", "x.p1.y", "99999999999999999999.p1.y", "1.p1." };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(work_parse(QUEUE_CLAIMED, str_of(bad[i]), &n));
		assert_false(work_parse(QUEUE_DELAYED, str_of(bad[i]), &n));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN_QUEUE(a_key_makes_a_retry_safe),
		IN_QUEUE(delay_and_queue_of_a_rig_survive_the_spool),
		IN_QUEUE(a_queue_with_work_is_removed_only_by_force),
		IN_QUEUE(an_empty_queue_leaves_no_folder),
		IN_QUEUE(evidence_and_purge_know_work),
		IN_QUEUE(doctor_keeps_the_record_of_a_claim_and_buries_work_without_a_queue),
		cmocka_unit_test(names_of_work_are_parsed_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
