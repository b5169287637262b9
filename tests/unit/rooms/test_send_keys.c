/* SPDX-License-Identifier: MIT */
/* Send keys: a retry is the same message, wherever the first try ended. */
#include "support/sys_fault.h"
#include "station.h"

static void
a_retry_with_the_same_key_is_the_same_message(void **state)
{
	mr_auto(scratch_done) struct scratch s;
	struct delivered first = { 0 }, again = { 0 }, other = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	scratch_new(&s);
	assert_int_equal(send_text(&s, 2, "k", BODY, &first, &err), MR_OK);
	assert_false(first.repeated);
	assert_int_equal(send_text(&s, 2, "k", BODY, &again, &err), MR_OK);
	assert_true(again.repeated);
	assert_string_equal(first.id, again.id);
	assert_int_equal(reached(&s, 2), 2);
	assert_int_equal(send_text(&s, 2, "k", "another\nthe end\n", &other, &err), MR_REFUSED);
	assert_non_null(strstr(err.message, first.id));
	assert_int_equal(reached(&s, 2), 2);
	assert_int_equal(send_text(&s, 2, "k2", "another\nthe end\n", &other, &err), MR_OK);
}

static void
a_key_that_is_no_line_of_text_is_refused(void **state)
{
	static const char *const bad[] = { "", " k", "a\nb", "\xff" };
	mr_auto(scratch_done) struct scratch s;

	(void)state;
	scratch_new(&s);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct delivered got = { 0 };
		struct mr_error err = { 0 };

		assert_int_equal(send_text(&s, 1, bad[i], BODY, &got, &err), MR_REFUSED);
	}
	assert_int_equal(reached(&s, 1), 0);
}

static void
send_with_key(struct scratch *s)
{
	struct delivered got = { 0 };
	struct mr_error err = { 0 };

	_exit(send_text(s, 3, "k", BODY, &got, &err) == MR_OK ? 0 : 1);
}

static void
a_keyed_send_killed_anywhere_and_retried_arrives_once(void **state)
{
	unsigned long points = 0;

	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		for (unsigned long at = 1;; at += STRIDE) {
			mr_auto(scratch_done) struct scratch s;
			struct delivered got = { 0 };
			struct mr_error err = { 0 };

			scratch_new(&s);
			bool hit =
			    killed_at(&s, kind % 2 ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE, at, send_with_key);

			if (kind < 2)
				recover(&s); /* a later command's */
			reopen(&s);
			if (send_text(&s, 3, "k", BODY, &got, &err) != MR_OK)
				fail_msg("killed at call %lu: %s", at, err.message);
			recover(&s);
			assert_int_equal(reached(&s, 3), 3);
			assert_int_equal(records_left(&s), 0);
			if (!hit) {
				assert_true(got.repeated);
				break;
			}
			points++;
		}
	}
	assert_true(points > 100 / STRIDE);
}

static void
a_keyed_send_refused_anywhere_gives_its_key_back(void **state)
{
	unsigned long points = 0;

	(void)state;
	for (unsigned long at = 1;; at++) {
		mr_auto(scratch_done) struct scratch s;
		struct delivered got = { 0 }, again = { 0 };
		struct mr_error err = { 0 };

		scratch_new(&s);
		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EIO });
		enum mr_rc rc = send_text(&s, 3, "k", BODY, &got, &err);
		bool hit = sys_plan_hit();

		sys_plan_set(NULL);
		if (rc != MR_OK && rc != MR_INDOUBT)
			assert_int_equal(reached(&s, 3), 0);
		mr_names_done(&got.missing);
		if (send_text(&s, 3, "k", BODY, &again, &err) != MR_OK)
			fail_msg("error at call %lu: %s", at, err.message);
		if (rc == MR_OK || rc == MR_INDOUBT)
			assert_string_equal(got.id, again.id);
		assert_int_equal(reached(&s, 3), 3);
		if (!hit)
			break;
		points++;
	}
	assert_true(points > 40);
}

static pid_t
start_failing_sender(struct scratch *s, unsigned long fail_at)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct delivered got = { 0 };
		struct mr_error err = { 0 };

		reopen(s);
		sys_plan_set(
		    &(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = fail_at, .error = EIO, .delay_us = 2000 });
		enum mr_rc rc = send_text(s, 3, "k", BODY, &got, &err);

		_exit(rc == MR_OK || rc == MR_INDOUBT ? 0 : 1);
	}
	return pid;
}

static void
who_waits_for_a_send_that_is_withdrawn_sends_itself(void **state)
{
	unsigned long keyed = 0;
	size_t withdrawn = 0;

	(void)state;
	for (bool taken = false; !taken; keyed++) { /* the call that takes the key */
		mr_auto(scratch_done) struct scratch s;

		scratch_new(&s);
		assert_true(killed_at(&s, SYS_FAULT_KILL_AFTER, keyed + 1, send_with_key));
		taken = count_in(&s, "keys/sender") == 1;
	}
	for (unsigned long at = keyed + 1; at < keyed + 7; at++) {
		mr_auto(scratch_done) struct scratch s;
		struct delivered got = { 0 };
		struct mr_error err = { 0 };
		char path[400], name[NAME_LEN];
		int status;

		scratch_new(&s);
		pid_t pid = start_failing_sender(&s, at);

		for (unsigned i = 0; i < 10000 && count_in(&s, "keys/sender") == 0; i++)
			(void)usleep(500);
		assert_int_equal(send_text(&s, 3, "k", BODY, &got, &err), MR_OK);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		withdrawn += WEXITSTATUS(status) == 1;
		recover(&s);
		assert_int_equal(reached(&s, 3), 3);
		name_for_id(got.id, name); /* what we were told is what is there */
		(void)snprintf(path, sizeof path, "%s/agents/c/new/%s", s.path, name);
		assert_int_equal(access(path, F_OK), 0);
	}
	assert_true(withdrawn > 0);
}

/* A process with the key: killed at a random call or not at all; its id comes through the pipe. */
static pid_t
start_sender(struct scratch *s, int out_fd, unsigned long kill_at)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct delivered got = { 0 };
		struct mr_error err = { 0 };

		reopen(s);
		if (kill_at)
			sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER, .at = kill_at });
		(void)maildir_sweep(&s->room, NULL, &err);
		enum mr_rc rc = send_text(s, 3, "k", BODY, &got, &err);

		if (rc == MR_OK)
			(void)!write(out_fd, got.id, MR_ID_LEN + 1);
		_exit(rc == MR_OK ? 0 : 1);
	}
	return pid;
}

static void
twenty_senders_with_one_key_send_one_message(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 8; round++) {
		mr_auto(scratch_done) struct scratch s;
		char first[MR_ID_LEN + 1] = "", id[MR_ID_LEN + 1];
		pid_t pids[20];
		int ends[2], status, finished = 0;
		unsigned seed = round * 7919 + 1;

		scratch_new(&s);
		assert_int_equal(pipe(ends), 0);
		for (unsigned i = 0; i < 20; i++) {
			seed = seed * 1103515245 + 12345;
			pids[i] = start_sender(&s, ends[1], i % 4 == 3 ? 0 : 1 + (seed >> 16) % 70);
		}
		for (unsigned i = 0; i < 20; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			if (WIFEXITED(status)) {
				assert_int_equal(WEXITSTATUS(status), 0);
				finished++;
			} else { /* killed: its retry */
				pid_t retry = start_sender(&s, ends[1], 0);

				assert_int_equal(waitpid(retry, &status, 0), retry);
				assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
			}
		}
		(void)close(ends[1]);
		size_t answers = 0;

		while (read(ends[0], id, sizeof id) == sizeof id) {
			if (answers++ == 0)
				memcpy(first, id, sizeof id);
			assert_string_equal(first, id);
		}
		(void)close(ends[0]);
		assert_true(answers >= 20 && finished >= 5);
		recover(&s);
		assert_int_equal(reached(&s, 3), 3);
		assert_int_equal(count_in(&s, "keys/sender"), 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_retry_with_the_same_key_is_the_same_message),
		cmocka_unit_test(a_key_that_is_no_line_of_text_is_refused),
		cmocka_unit_test(a_keyed_send_killed_anywhere_and_retried_arrives_once),
		cmocka_unit_test(a_keyed_send_refused_anywhere_gives_its_key_back),
		cmocka_unit_test(who_waits_for_a_send_that_is_withdrawn_sends_itself),
		cmocka_unit_test(twenty_senders_with_one_key_send_one_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
