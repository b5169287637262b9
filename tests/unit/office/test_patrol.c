/* SPDX-License-Identifier: MIT */
/* Handlers of a patrol: what they get, once each, and what becomes of failures. */
#include "rounds.h"

/* ---- Handling ---- */

static void
what_has_a_handler_is_handled_and_the_rest_left(void **state)
{
	struct town t = town_new(state);
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	add_type(&t, "RUN", "Handler: test {What} = main");
	add_type(&t, "IDLE", "");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	send_subject(&t, &t.alice, "bob", "IDLE main", NULL);
	send_subject(&t, &t.alice, "bob", "just mail", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.handled, 1);
	assert_int_equal(b.done.left, 2);
	assert_int_equal(town_unread(&t, "bob").n, 2);
	assert_ok(mr_fetch(t.room, "bob", id, &msg, &err));
	assert_int_equal(msg.folder, MR_ARCHIVE);
	assert_true(msg.flags & MR_ACKED);
	mr_message_done(&msg);
	forget(&b);
	b = go_round(&t, &t.bob, PLAIN);
	assert_int_equal(b.done.handled, 0);
	forget(&b);
	town_done(&t);
}

static void
a_handler_gets_fields_and_message_without_a_shell(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN",
	    "Field: Note; text\nHandler: sh -c 'test \"$1\" = \"$2\" -a \"$MAILROOM_FIELD_NOTE\" = hi -a "
	    "\"$MAILROOM_FROM-$MAILROOM_TYPE-$MAILROOM_ATTEMPT\" = alice-RUN-1 && grep -q \"$MAILROOM_ID\"' x {What} "
	    "'$(id);`id`>x|*'");
	send_subject(&t, &t.alice, "bob", "RUN $(id);`id`>x|*", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_string_equal(buf_z(&b.told), "handled 1 exit 0\n");
	forget(&b);
	town_done(&t);
}

static void
a_field_never_is_an_option_nor_the_program(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN", "Handler: rm {What}");
	add_type(&t, "EXEC", "Handler: {What} x");
	send_subject(&t, &t.alice, "bob", "RUN --version", NULL);
	send_subject(&t, &t.alice, "bob", "EXEC true", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.broken, 2);
	assert_non_null(strstr(buf_z(&b.told), "begins with a dash"));
	assert_non_null(strstr(buf_z(&b.told), "may not say which program"));
	forget(&b);
	b = go_round(&t, &t.bob, PLAIN); /* told once, left for ever */
	assert_int_equal(b.done.broken, 2);
	assert_int_equal(b.told.len, 0);
	assert_int_equal(town_unread(&t, "bob").n, 2);
	assert_int_equal(town_unread(&t, "bob").attempts[0], 1);
	forget(&b);
	town_done(&t);
}

static void
a_message_with_a_wrong_field_is_left_and_told(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN", "Field: Size; one-of big small; required\nHandler: true");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.broken, 1);
	assert_non_null(strstr(buf_z(&b.told), "Size"));
	assert_int_equal(town_unread(&t, "bob").n, 1);
	forget(&b);
	town_done(&t);
}

static void
recorded_as_handled_it_never_runs_again(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct note note = { .state = NOTE_HANDLED, .attempt = 1 };
	char id[MR_ID_LEN + 1];

	add_type(&t, "RUN", "Handler: false");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	assert_ok(note_save(t.room, "bob", id, &note, &err)); /* killed before it was acknowledged */
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.failed, 0);
	assert_int_equal(town_count(&t, "bob", MR_INBOX), 0);
	assert_int_equal(town_count(&t, "bob", MR_ARCHIVE), 1);
	forget(&b);
	town_done(&t);
}

static void
what_a_kill_cut_off_runs_again_but_not_beside_itself(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct note note = { .state = NOTE_RUNNING, .attempt = 1, .until_ms = clock_now_ms() + 60000 };
	char id[MR_ID_LEN + 1];
	pid_t handler = fork();

	if (handler == 0) {
		(void)pause();
		_exit(0);
	}
	add_type(&t, "RUN", "Handler: sh -c 'test $MAILROOM_ATTEMPT = 2'");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	assert_true(process_describe(handler, &note.process));
	assert_ok(note_save(t.room, "bob", id, &note, &err));
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.waiting, 1);
	assert_int_equal(town_unread(&t, "bob").attempts[0], 0);
	forget(&b);
	assert_int_equal(kill(handler, SIGKILL), 0);
	assert_int_equal(waitpid(handler, NULL, 0), handler);
	b = go_round(&t, &t.bob, PLAIN);
	assert_string_equal(buf_z(&b.told), "handled 2 exit 0\n");
	forget(&b);
	town_done(&t);
}

/* ---- Failing ---- */

static void
failures_are_counted_and_end_in_one_escalation_and_a_dead_letter(void **state)
{
	struct town t = town_new(state);

	add_type(&t, "RUN", "Handler: sh -c 'echo no such thing >&2; exit 7'\nEscalate-After: 2\nEscalate-To: carol");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_string_equal(buf_z(&b.told), "failed 1 exit 7: no such thing\n");
	assert_int_equal(town_unread(&t, "bob").n, 1);
	forget(&b);
	b = go_round(&t, &t.bob, PLAIN);
	assert_int_equal(b.done.dead, 1);
	assert_int_equal(town_unread(&t, "bob").n, 0);
	assert_int_equal(town_count(&t, "bob", MR_DEAD), 1);
	assert_string_equal(town_unread(&t, "carol").subjects[0], "ESCALATION: RUN from alice failed 2 times");
	assert_string_equal(town_unread(&t, "alice").subjects[0], "Failed: RUN main");
	forget(&b);
	town_done(&t);
}

static void
cut_off_while_giving_up_it_is_escalated_once(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	char id[MR_ID_LEN + 1];

	add_type(&t, "RUN", "Handler: false\nEscalate-After: 1\nEscalate-To: carol");
	send_subject(&t, &t.alice, "bob", "RUN main", id);
	for (int i = 0; i < 2; i++) { /* the second time as if the first had been killed before the dead letter */
		struct note note = { 0 };
		struct beat b;

		assert_ok(note_load(t.room, "bob", id, &note, &err));
		if (i == 1) {
			note.state = NOTE_FAILED;
			assert_ok(note_save(t.room, "bob", id, &note, &err));
			assert_ok(mr_dead_drop(t.room, &t.alice, id, &err));
			send_subject(&t, &t.alice, "bob", "RUN main", id);
			assert_ok(note_save(t.room, "bob", id, &note, &err));
		}
		note_done(&note);
		b = go_round(&t, &t.bob, PLAIN);
		assert_int_equal(b.done.dead, 1);
		forget(&b);
	}
	assert_int_equal(town_unread(&t, "carol").n, 2); /* two messages, one each */
	town_done(&t);
}

static void
too_long_a_run_is_ended_and_no_program_is_a_failure(void **state)
{
	struct town t = town_new(state);
	int64_t begin = clock_boot_ms();

	add_type(&t, "RUN", "Handler: sleep 20\nTime-Limit: 1s");
	add_type(&t, "NONE", "Handler: ./there-is-no-such-program");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	send_subject(&t, &t.alice, "bob", "NONE main", NULL);
	struct beat b = go_round(&t, &t.bob, PLAIN);

	assert_int_equal(b.done.failed, 2);
	assert_non_null(strstr(buf_z(&b.told), "failed 1 did not end within 1s"));
	assert_non_null(strstr(buf_z(&b.told), "there is no such program"));
	assert_true(clock_boot_ms() - begin < 10000);
	forget(&b);
	town_done(&t);
}

static void
a_patient_patrol_pauses_after_a_failure(void **state)
{
	struct town t = town_new(state);
	struct mr_patrol_options patient = { .patient = true };

	add_type(&t, "RUN", "Handler: false");
	send_subject(&t, &t.alice, "bob", "RUN main", NULL);
	struct beat b = go_round(&t, &t.bob, patient);

	assert_int_equal(b.done.failed, 1);
	forget(&b);
	b = go_round(&t, &t.bob, patient);
	assert_int_equal(b.done.failed, 0);
	assert_int_equal(b.done.waiting, 1);
	forget(&b);
	clock_shift_ms(3000);
	b = go_round(&t, &t.bob, patient);
	assert_int_equal(b.done.failed, 1);
	forget(&b);
	clock_shift_ms(0);
	town_done(&t);
}

/* ---- Before the first instruction ---- */

static enum mr_rc
refuse_to_begin(void *ctx, int64_t pid, struct mr_error *err)
{
	*(int64_t *)ctx = pid;
	return mr_fail(err, MR_FULL, "cannot be noted");
}

static enum mr_rc
die_here(void *ctx, int64_t pid, struct mr_error *err)
{
	(void)pid;
	(void)err;
	*(volatile int *)ctx = 1;
	(void)kill(getpid(), SIGKILL);
	return MR_OK;
}

static void
a_program_whose_start_was_not_noted_never_begins(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct spawned ran = { 0 };
	struct stat st;
	char path[128];
	int64_t pid = 0;
	int began = 0, status = 0;

	(void)snprintf(path, sizeof(path), "%s/ran", t.dir);
	struct spawn what = { .argv = TO("touch", path), .started = refuse_to_begin, .started_ctx = &pid };

	assert_rc(spawn_run(&what, &ran, &err), MR_FULL);
	assert_true(pid > 0);
	what.started = die_here;
	what.started_ctx = &began;
	pid_t patrol = fork();

	if (patrol == 0) {
		(void)spawn_run(&what, &ran, &err);
		_exit(0);
	}
	assert_int_equal(waitpid(patrol, &status, 0), patrol);
	assert_true(WIFSIGNALED(status));
	(void)usleep(100000);
	assert_int_equal(stat(path, &st), -1);
	spawned_done(&ran);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(what_has_a_handler_is_handled_and_the_rest_left),
		ON_MAILDIR(a_handler_gets_fields_and_message_without_a_shell),
		ON_MAILDIR(a_field_never_is_an_option_nor_the_program),
		ON_BOTH(a_message_with_a_wrong_field_is_left_and_told),
		ON_BOTH(recorded_as_handled_it_never_runs_again),
		ON_MAILDIR(what_a_kill_cut_off_runs_again_but_not_beside_itself),
		ON_BOTH(failures_are_counted_and_end_in_one_escalation_and_a_dead_letter),
		ON_MAILDIR(cut_off_while_giving_up_it_is_escalated_once),
		ON_MAILDIR(too_long_a_run_is_ended_and_no_program_is_a_failure),
		ON_MAILDIR(a_patient_patrol_pauses_after_a_failure),
		ON_MAILDIR(a_program_whose_start_was_not_noted_never_begins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
