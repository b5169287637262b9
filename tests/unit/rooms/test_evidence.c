/* SPDX-License-Identifier: MIT */
/* Where a message is, purging it, and what doctor sees. */
#include "station.h"

static void
note_state(void *ctx, const struct place_of *place)
{
	char line[300];

	(void)snprintf(line, sizeof line, "%s %s\n", place->agent, place->state);
	buf_adds(ctx, line);
}

static void
purge_removes_every_copy_and_why_finds_none(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	mr_auto(buf_done) struct buf states = BUF_INIT;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	size_t dead, removed = 0;

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, 3, &got, &err), MR_OK);
	assert_int_equal(maildir_mark(&s.room, "b", got.id, MR_SEEN, 0, 0, &err), MR_OK);
	assert_int_equal(maildir_remove_box(&s.room, "c", false, &dead, &err), MR_OK);
	assert_int_equal(maildir_each_place(&s.room, got.id, note_state, &states, &err), MR_OK);
	assert_string_equal(buf_z(&states), "a unread\nb read\nsender sent\n dead\n");
	assert_int_equal(
	    maildir_remove(&s.room, &(struct removal){ .what = REMOVE_EVERYWHERE, .id = got.id }, &removed, &err),
	    MR_OK);
	assert_int_equal(removed, 4);
	buf_clear(&states);
	assert_int_equal(maildir_each_place(&s.room, got.id, note_state, &states, &err), MR_OK);
	assert_string_equal(buf_z(&states), "");
}

static void
purged_mail_is_not_delivered_by_recovery(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1] = "";
	DIR *d;

	(void)state;
	for (unsigned long at = 1; id[0] == '\0'; at++) {
		char path[128];

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_AFTER, at, send_to_all));
		(void)snprintf(path, sizeof path, "%s/spool", s.path);
		assert_non_null(d = opendir(path));
		for (struct dirent *e; (e = readdir(d));)
			if (id_valid(str_of(e->d_name)))
				(void)snprintf(id, sizeof id, "%.26s", e->d_name);
		(void)closedir(d);
		if (id[0] == '\0')
			scratch_done(&s);
	}
	reopen(&s);
	assert_int_equal(maildir_record_put(&s.room, "purged", "", id, STR("By: x\n"), &err), MR_OK);
	recover(&s);
	assert_int_equal(reached(&s, EVERYONE), 0);
	assert_int_equal(records_left(&s), 0);
}

static void
count_problems(void *ctx, const struct mr_finding *finding)
{
	if (finding->severity == MR_PROBLEM && !finding->fixed && strcmp(finding->code, "space") != 0)
		++*(size_t *)ctx;
}

static void
doctor_finds_open_modes_and_links_and_closes_modes(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	char path[128];
	size_t problems = 0;

	(void)state;
	scratch_new(&s);
	assert_int_equal(maildir_inspect(&s.room, true, count_problems, &problems, &err), MR_OK);
	problems = 0;
	assert_int_equal(send_plain(&s, 2, &got, &err), MR_OK);
	assert_int_equal(maildir_inspect(&s.room, false, count_problems, &problems, &err), MR_OK);
	assert_int_equal(problems, 0);
	(void)snprintf(path, sizeof path, "%s/agents/a", s.path);
	assert_int_equal(chmod(path, 0755), 0);
	(void)snprintf(path, sizeof path, "%s/agents/a/new/planted", s.path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(maildir_inspect(&s.room, false, count_problems, &problems, &err), MR_OK);
	assert_int_equal(problems, 2);
	problems = 0;
	assert_int_equal(maildir_inspect(&s.room, true, count_problems, &problems, &err), MR_OK);
	assert_int_equal(problems, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(purge_removes_every_copy_and_why_finds_none),
		cmocka_unit_test(purged_mail_is_not_delivered_by_recovery),
		cmocka_unit_test(doctor_finds_open_modes_and_links_and_closes_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
