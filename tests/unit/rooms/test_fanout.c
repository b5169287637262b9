/* SPDX-License-Identifier: MIT */
/* Delivery to several: all or nobody, and what a later command makes of one that was killed. */
#include "support/sys_fault.h"
#include "station.h"

static void
a_fan_out_is_one_file_with_many_names(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	struct stat st;
	char path[400], name[NAME_LEN];

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_plain(&s, EVERYONE, &got, &err), MR_OK);
	assert_int_equal(reached(&s, EVERYONE), EVERYONE);
	name_for_id(got.id, name);
	(void)snprintf(path, sizeof path, "%s/agents/c/new/%s", s.path, name);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_nlink, EVERYONE + 1);
	assert_int_equal(count_in(&s, "spool"), 0);
}

static void
one_unknown_recipient_refuses_the_whole_fan_out(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	char path[128];

	(void)state;
	scratch_new(&s);
	(void)snprintf(path, sizeof path, "%s/agents/c/agent", s.path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(send_plain(&s, EVERYONE, &got, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.message, "'c'"));
	assert_int_equal(reached(&s, EVERYONE), 0);
	assert_int_equal(count_in(&s, "spool"), 0);
}

static void
a_kill_at_any_call_of_a_fan_out_reaches_all_or_none(void **state)
{
	unsigned long points = 0, all = 0, none = 0;

	(void)state;
	for (unsigned kind = 0; kind < 2; kind++) {
		for (unsigned long at = 1;; at += STRIDE) {
			mr_auto(scratch_done) struct scratch s;

			scratch_new(&s);
			bool hit = killed_at(&s, kind ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, at, send_to_all);

			recover(&s);
			size_t have = reached(&s, EVERYONE);

			if (have != 0 && have != EVERYONE)
				fail_msg("killed at call %lu: %zu of %zu have it", at, have, EVERYONE);
			*(have ? &all : &none) += hit;
			recover(&s);
			assert_int_equal(reached(&s, EVERYONE), have);
			if (!hit) {
				assert_int_equal(have, EVERYONE);
				break;
			}
			points++;
		}
	}
	assert_true(points > 60 / STRIDE && all > 20 / STRIDE && none > 20 / STRIDE);
}

static void
only_recover(struct scratch *s)
{
	struct mr_error err = { 0 };

	_exit(maildir_sweep(&s->room, NULL, &err) == MR_OK ? 0 : 1);
}

static void
a_kill_while_completing_is_completed_by_the_next(void **state)
{
	unsigned long first = 0, points = 0;

	(void)state;
	/* The first call after which the fan-out is certain: found once, then one room for each point. */
	for (bool certain = false; !certain; first++) {
		mr_auto(scratch_done) struct scratch s;

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_BEFORE, first + 1, send_to_all));
		certain = reached(&s, EVERYONE) == 2;
	}
	for (bool hit = true; hit; points += STRIDE) {
		mr_auto(scratch_done) struct scratch s;

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_BEFORE, first, send_to_all));
		reopen(&s);
		hit = killed_at(&s, SYS_FAULT_KILL_AFTER, points + 1, only_recover);
		recover(&s);
		assert_int_equal(reached(&s, EVERYONE), EVERYONE);
		assert_int_equal(records_left(&s), 0);
	}
	assert_true(points > 20);
}

static void
completing_a_fan_out_syncs_every_folder(void **state)
{
	bool found = false;

	(void)state;
	for (unsigned long at = 1; !found; at++) {
		mr_auto(scratch_done) struct scratch s;

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_AFTER, at, send_to_all));
		found = reached(&s, EVERYONE) == 3;
		if (!found)
			continue;
		/* The counter passes over those that have it, but their folders were never synced. */
		sys_plan_set(&(struct sys_plan){ 0 });
		recover(&s);
		assert_true(sys_syncs() >= EVERYONE + 1);
		sys_plan_set(NULL);
	}
}

static void
who_has_moved_the_message_does_not_get_it_twice(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_error err = { 0 };
	bool found = false;

	(void)state;
	/* Killed between the first link and its counter: that reader archived it before anyone came. */
	for (unsigned long at = 1; !found; at++) {
		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_AFTER, at, send_to_all));
		found = reached(&s, EVERYONE) == 1;
		if (!found)
			scratch_done(&s);
	}
	mr_auto(listing_done) struct listing list = { 0 };
	struct mailbox box = MAILBOX_INIT;

	reopen(&s);
	assert_int_equal(mailbox_open(&box, maildir_of(&s.room), "a", &err), MR_OK);
	assert_int_equal(list_folders(&box, MR_INBOX, false, NULL, &list, &err), MR_OK);
	mailbox_done(&box);
	assert_int_equal(list.n, 1);
	assert_int_equal(maildir_mark(&s.room, "a", list.v[0].id, 0, 0, MR_ARCHIVE, &err), MR_OK);
	recover(&s);
	assert_int_equal(copies_of(&s, "a"), 0);
	assert_int_equal(reached(&s, EVERYONE), EVERYONE - 1);
	assert_int_equal(records_left(&s), 0);
}

static void
an_error_at_any_call_of_a_fan_out_is_told_as_it_is(void **state)
{
	(void)state;
	try_errors(EVERYONE, 200);
}

static void
a_living_sender_is_left_alone(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct mr_error err = { 0 };
	int ready[2];
	char byte;
	int status;

	(void)state;
	scratch_new(&s);
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (pid == 0) { /* sleeps before every call: alive for as long as we look */
		sys_plan_set(&(struct sys_plan){ .delay_us = 20000 });
		(void)!write(ready[1], "x", 1);
		send_to_all(&s);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	clock_shift_ms((int64_t)3 * 24 * 3600 * 1000); /* whatever the clock says of its age */
	for (unsigned i = 0; waitpid(pid, &status, WNOHANG) == 0; i++) {
		reopen(&s);
		assert_int_equal(maildir_sweep(&s.room, NULL, &err), MR_OK);
		(void)usleep(3000);
	}
	clock_shift_ms(0);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(reached(&s, EVERYONE), EVERYONE);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

/* The first one: others have their copies already when it turns out that she is gone. */
static void
remove_the_first(struct scratch *s)
{
	struct mr_error err = { 0 };
	size_t dead;

	assert_int_equal(maildir_remove_box(&s->room, everyone[0], false, &dead, &err), MR_OK);
}

static void
lock_the_dead_letters(struct scratch *s)
{
	char dead[100], aside[100];

	remove_the_first(s);
	(void)snprintf(dead, sizeof dead, "%s/dead", s->path);
	(void)snprintf(aside, sizeof aside, "%s/aside", s->path);
	assert_int_equal(rename(dead, aside), 0);
	write_text(s->path, "dead", "no folder\n");
}

static void
who_is_removed_between_look_and_link_has_a_dead_letter(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	meanwhile = remove_the_first;
	assert_int_equal(send_plain(&s, 3, &got, &err), MR_OK);
	meanwhile = NULL;
	assert_int_equal(copies_of(&s, everyone[0]), 0);
	assert_int_equal(count_in(&s, "dead/new"), 1);
	assert_int_equal(reached(&s, 3), 2);
	assert_int_equal(records_left(&s), 0);
}

/* Never "refused" once somebody can read it. */
static void
a_dead_letter_that_cannot_be_written_is_in_doubt_and_completed_later(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered got = { 0 };
	struct mr_error err = { 0 };
	char dead[100], aside[100];

	(void)state;
	scratch_new(&s);
	meanwhile = lock_the_dead_letters;
	assert_int_equal(send_plain(&s, 3, &got, &err), MR_INDOUBT);
	meanwhile = NULL;
	mr_names_done(&got.missing);
	assert_int_equal(records_left(&s), 1);
	(void)snprintf(dead, sizeof dead, "%s/dead", s.path);
	(void)snprintf(aside, sizeof aside, "%s/aside", s.path);
	assert_int_equal(remove(dead), 0);
	assert_int_equal(rename(aside, dead), 0);
	recover(&s);
	assert_int_equal(records_left(&s), 0);
	assert_int_equal(copies_of(&s, everyone[0]), 0);
	assert_int_equal(count_in(&s, "dead/new"), 1);
	assert_int_equal(reached(&s, 3), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fan_out_is_one_file_with_many_names),
		cmocka_unit_test(one_unknown_recipient_refuses_the_whole_fan_out),
		cmocka_unit_test(a_kill_at_any_call_of_a_fan_out_reaches_all_or_none),
		cmocka_unit_test(a_kill_while_completing_is_completed_by_the_next),
		cmocka_unit_test(completing_a_fan_out_syncs_every_folder),
		cmocka_unit_test(who_has_moved_the_message_does_not_get_it_twice),
		cmocka_unit_test(an_error_at_any_call_of_a_fan_out_is_told_as_it_is),
		cmocka_unit_test(a_living_sender_is_left_alone),
		cmocka_unit_test(who_is_removed_between_look_and_link_has_a_dead_letter),
		cmocka_unit_test(a_dead_letter_that_cannot_be_written_is_in_doubt_and_completed_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
