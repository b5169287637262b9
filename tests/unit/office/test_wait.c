/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "town.h"

static void
waiting_mail_is_returned_at_once(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	int64_t before = clock_boot_ms();

	town_send(&t, &t.alice, "bob", "hello", NULL);
	assert_ok(mr_wait(t.room, "bob", NULL, 60000, NULL, &err));
	assert_ok(mr_wait(t.room, "bob", NULL, 0, NULL, &err));
	assert_true(clock_boot_ms() - before < 10000);
	assert_int_equal(town_unread(&t, "bob").n, 1); /* looking never consumes */
	town_done(&t);
}

static void
the_time_is_up_when_nothing_comes(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	struct seen mail;
	int64_t before = clock_boot_ms();

	assert_rc(mr_wait(t.room, "bob", NULL, 0, NULL, &err), MR_EMPTY);
	assert_true(clock_boot_ms() - before < 10000);
	town_send(&t, &t.alice, "bob", "hello", NULL);
	mail = town_unread(&t, "bob");
	assert_ok(mr_mark(t.room, &t.bob, mail.ids[0], MR_SEEN, 0, &err));
	before = clock_boot_ms();
	assert_rc(mr_wait(t.room, "bob", NULL, 150, NULL, &err), MR_EMPTY); /* seen mail does not count */
	assert_true(clock_boot_ms() - before >= 150);
	assert_rc(mr_wait(t.room, "nobody", NULL, 0, NULL, &err), MR_NOTFOUND);
	town_done(&t);
}

static void
a_filter_waits_for_the_right_mail(void **state)
{
	struct town t = town_new(state);
	struct mr_draft answer = draft_to(NULL, "answer");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	char question[MR_ID_LEN + 1];

	town_send(&t, &t.bob, "alice", "question", question);
	struct mr_filter reply = { .reply_to = question + 18 }, words = { .words = "ANSWER" };

	for (int i = 0; i < 5; i++)
		town_send(&t, &t.carol, "bob", "something else", NULL);
	assert_rc(mr_wait(t.room, "bob", &reply, 120, NULL, &err), MR_EMPTY);
	assert_rc(mr_wait(t.room, "bob", &words, 120, NULL, &err), MR_EMPTY);
	assert_ok(mr_reply(t.room, &t.alice, question, &answer, false, &receipt, &err));
	mr_receipt_done(&receipt);
	assert_ok(mr_wait(t.room, "bob", &reply, 5000, NULL, &err));
	assert_ok(mr_wait(t.room, "bob", &words, 5000, NULL, &err));
	town_done(&t);
}

static void
a_lease_that_runs_out_ends_the_wait(void **state)
{
	struct town t = town_new(state);
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	int64_t before = clock_boot_ms();

	town_send(&t, &t.alice, "bob", "work", NULL);
	assert_ok(mr_recv(t.room, &t.bob, NULL, 100, &claim, &msg, &err));
	mr_message_done(&msg);
	assert_ok(mr_wait(t.room, "bob", NULL, 60000, NULL, &err));
	assert_true(clock_boot_ms() - before < 10000);
	town_done(&t);
}

static size_t
open_watches(void)
{
	char path[32], target[64];
	size_t n = 0;

	for (int fd = 0; fd < 64; fd++) {
		(void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		ssize_t len = readlink(path, target, sizeof target - 1);

		target[len > 0 ? len : 0] = '\0';
		n += strcmp(target, "anon_inode:inotify") == 0;
	}
	return n;
}

/* Taking a watch down costs milliseconds, so the next wait for the same mailbox goes on with it. */
static void
the_watch_of_the_last_mailbox_is_kept(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	size_t before = open_watches();

	assert_rc(mr_wait(t.room, "bob", NULL, 20, NULL, &err), MR_EMPTY);
	size_t one = open_watches() - before; /* 0 where the system has none */

	assert_true(one <= 1);
	assert_rc(mr_wait(t.room, "bob", NULL, 20, NULL, &err), MR_EMPTY);
	assert_int_equal(open_watches(), before + one);
	town_send(&t, &t.alice, "bob", "before the wait", NULL); /* it rings for nobody, and is found by the look */
	assert_ok(mr_wait(t.room, "bob", NULL, 60000, NULL, &err));
	assert_rc(mr_wait(t.room, "carol", NULL, 20, NULL, &err), MR_EMPTY);
	assert_int_equal(open_watches(), before + one); /* that of another mailbox took its place */
	town_send(&t, &t.alice, "carol", "seen through the new one", NULL);
	assert_ok(mr_wait(t.room, "carol", NULL, 60000, NULL, &err));
	town_done(&t);
	assert_int_equal(open_watches(), before);
}

static pid_t
send_from_a_child(struct town *t, unsigned delay_ms, const char *body)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child > 0)
		return child;
	struct mr_room *room = NULL;
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };
	struct mr_draft draft = draft_to(TO("bob"), body);

	(void)usleep(delay_ms * 1000);
	_exit(mr_room_open(mr_room_spec(t->room), NULL, &room, &err) == MR_OK &&
		      mr_send(room, &t->alice, &draft, &receipt, &err) == MR_OK
		  ? 0
		  : 1);
}

static void
a_sender_in_another_process_wakes_it(void **state)
{
	struct town t = town_new(state);
	struct mr_filter second = { .words = "second" };
	struct mr_error err = { 0 };
	int64_t before = clock_boot_ms();
	int status = 0;
	pid_t child = send_from_a_child(&t, 200, "first");

	assert_ok(mr_wait(t.room, "bob", NULL, 60000, NULL, &err));
	int64_t took = clock_boot_ms() - before;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(took >= 150 && took < 10000); /* the watch, not the slow poll */
	child = send_from_a_child(&t, 100, "second");
	before = clock_boot_ms();
	assert_ok(mr_wait(t.room, "bob", &second, 60000, NULL, &err));
	assert_true(clock_boot_ms() - before < 10000);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	town_done(&t);
}

static enum mr_rc
no_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	(void)room;
	(void)agent;
	(void)ret_watch;
	return mr_fail(err, MR_IO, "no more watches");
}

static void
without_watches_the_poll_alone_does(void **state)
{
	struct town t = town_new(state);
	const struct room_driver *real = t.room->driver;
	struct room_driver blind = *real;
	struct mr_error err = { 0 };
	int status = 0;

	blind.watch = no_watch;
	t.room->driver = &blind;
	pid_t child = send_from_a_child(&t, 100, "hello");

	assert_ok(mr_wait(t.room, "bob", NULL, 60000, NULL, &err));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	t.room->driver = real;
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(waiting_mail_is_returned_at_once),
		ON_BOTH(the_time_is_up_when_nothing_comes),
		ON_BOTH(a_filter_waits_for_the_right_mail),
		ON_BOTH(a_lease_that_runs_out_ends_the_wait),
		ON_MAILDIR(the_watch_of_the_last_mailbox_is_kept),
		ON_MAILDIR(a_sender_in_another_process_wakes_it),
		ON_MAILDIR(without_watches_the_poll_alone_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
