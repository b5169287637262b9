/* SPDX-License-Identifier: MIT */
/* test_keys.c - send keys and replace keys, with many at once and some killed half-way. */
#include "support/sys_fault.h"
#include "stress/crowd.h"

/* ---- One key: one message, one id ---- */

#define RETRIERS 20u
#define TRIES_KILLED 6u /* then it may live */
#define CALLS_OWN 60u   /* kill points are drawn from about as many calls as such a send makes: */
#define CALLS_EACH 12u  /* its own, and some for each recipient */
#define CALLS_SURE 12u  /* so many even if the message is there already: the first try always dies */

static const char *const five[] = { "bob", "carol", "dave", "rig/erin", "frank", NULL };

struct keyed {
	struct crowd room;
	unsigned round;
	unsigned recipients;
	bool read_meanwhile;
	atomic_bool all_done;
	atomic_uint killed, shown;
	char ids[RETRIERS][MR_ID_LEN + 1];
};

/* One try, in a process of its own, because it may be killed. */
static void
try_send(struct keyed *k, unsigned number, const struct sys_plan *plan)
{
	struct mr_error err = { 0 };
	char key[32];
	const char *to[6] = { NULL };

	for (unsigned i = 0; i < k->recipients; i++)
		to[i] = five[i];
	(void)snprintf(key, sizeof(key), "round %u", k->round);
	sys_plan_set(plan);
	struct mr_room *room = crowd_open(&k->room);
	struct mr_self alice = crowd_self(room, "alice");

	MUST(crowd_send(
	    room, &alice, (struct mr_draft){ .to = to, .body = "once, please", .key = key }, k->ids[number], &err));
	mr_room_close(room);
}

static void
retry_until_sent(void *ctx, unsigned number)
{
	struct keyed *k = ctx;
	uint64_t dice = ((uint64_t)getpid() << 20) + k->round;

	for (unsigned tries = 0;; tries++) {
		struct sys_plan plan = { 0 };
		int status = 0;

		if (tries < TRIES_KILLED) {
			plan.fault = crowd_dice(&dice) % 2 ? SYS_FAULT_KILL_AFTER : SYS_FAULT_KILL_BEFORE;
			plan.at = 1 + crowd_dice(&dice) % (tries ? CALLS_OWN + CALLS_EACH * k->recipients : CALLS_SURE);
		}
		pid_t pid = fork();

		if (pid == 0) {
			try_send(k, number, &plan);
			_exit(0);
		}
		(void)waitpid(pid, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			return;
		if (!WIFSIGNALED(status))
			crowd_die("a try failed by itself", NULL);
		atomic_fetch_add(&k->killed, 1);
	}
}

static bool
note_first_id(void *ctx, const struct mr_message *msg)
{
	memcpy(ctx, msg->id, MR_ID_LEN + 1);
	return false;
}

/* A reader who is quicker than those that complete the send: it must not get the message again. */
static void
read_first_mailbox(void *ctx, unsigned number)
{
	struct keyed *k = ctx;
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&k->room);
	struct mr_self bob = crowd_self(room, "bob");

	(void)number;
	while (!atomic_load(&k->all_done)) {
		struct mr_scan scan = { .filter = { .unread = true } };
		struct mr_show *show = NULL;
		struct mr_message msg = { 0 };
		char id[MR_ID_LEN + 1] = "";

		MUST(mr_scan(room, "bob", &scan, note_first_id, id, &err));
		if (id[0]) {
			MUST(mr_show_open(room, &bob, NULL, &show, &err));
			MUST(mr_show_take(show, id, &msg, &err));
			MUST(mr_show_finish(show, true, NULL, &err));
			atomic_fetch_add(&k->shown, 1);
			mr_message_done(&msg);
			mr_show_close(show);
		}
		crowd_nap_us(200);
	}
	mr_room_close(room);
}

struct only {
	char id[MR_ID_LEN + 1];
	size_t n;
};

static bool
note_only(void *ctx, const struct mr_message *msg)
{
	struct only *only = ctx;

	memcpy(only->id, msg->id, sizeof(only->id));
	only->n++;
	return true;
}

static void
assert_one_message(struct keyed *k)
{
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&k->room); /* completes what the killed ones left */

	for (unsigned i = 1; i < RETRIERS; i++)
		assert_string_equal(k->ids[i], k->ids[0]);
	for (unsigned i = 0; i < k->recipients; i++) {
		struct mr_scan scan = { .filter = { .folders = MR_INBOX | MR_HELD | MR_ARCHIVE } };
		struct only only = { .n = 0 };

		assert_int_equal(mr_scan(room, five[i], &scan, note_only, &only, &err), MR_OK);
		assert_int_equal(only.n, 1);
		assert_string_equal(only.id, k->ids[0]);
	}
	mr_room_close(room);
	if (k->read_meanwhile)
		assert_true(k->shown <= 1);
}

static void
one_key(unsigned recipients, bool read_meanwhile)
{
	unsigned rounds = crowd_long() ? 40 : CROWD_SLOW ? 1 : 4;
	unsigned killed = 0;

	for (unsigned round = 0; round < rounds; round++) {
		struct keyed *k = crowd_share(sizeof(*k));
		pid_t reader = 0;

		k->room = crowd_new("none", TO("alice", "bob", "carol", "dave", "rig/erin", "frank"));
		k->round = round;
		k->recipients = recipients;
		k->read_meanwhile = read_meanwhile;
		if (read_meanwhile)
			reader = crowd_spawn(read_first_mailbox, k, 0);
		assert_int_equal(crowd_run(RETRIERS, retry_until_sent, k), 0);
		atomic_store(&k->all_done, true);
		if (read_meanwhile)
			assert_int_equal(crowd_wait(&reader, 1), 0);
		assert_one_message(k);
		killed += k->killed;
		crowd_done(&k->room);
		(void)munmap(k, sizeof(*k));
	}
	assert_true(killed >= rounds * RETRIERS); /* else the kill points missed the work */
}

static void
twenty_senders_of_one_key_killed_and_retried_make_one_message(void **state)
{
	(void)state;
	one_key(1, false);
}

static void
the_same_for_a_fan_out_to_five(void **state)
{
	(void)state;
	one_key(5, false);
}

static void
the_same_while_the_first_recipient_reads_and_archives(void **state)
{
	(void)state;
	one_key(5, true);
}

/* ---- Replace keys: never an empty inbox ---- */

#define UPDATES 60u

struct status_board {
	struct crowd room;
	atomic_bool all_sent;
	atomic_uint empty, looks;
	char last[3][MR_ID_LEN + 1]; /* of each sending process */
};

static void
send_updates(void *ctx, unsigned number)
{
	struct status_board *b = ctx;
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&b->room);
	struct mr_self self = crowd_self(room, number < 2 ? "alice" : "carol");

	for (unsigned i = 0; i < UPDATES / (CROWD_SLOW ? 3 : 1); i++)
		MUST(crowd_send(room, &self,
		    (struct mr_draft){ .to = TO("bob"), .body = "status", .replace_key = "status" }, b->last[number],
		    &err));
	mr_room_close(room);
}

/* Once there is something, there is always something. */
static void
watch_board(void *ctx, unsigned number)
{
	struct status_board *b = ctx;
	struct mr_room *room = crowd_open(&b->room);
	const char *senders[] = { "alice", "carol" };
	bool had[2] = { false, false };

	(void)number;
	while (!atomic_load(&b->all_sent)) {
		for (unsigned i = 0; i < 2; i++) {
			struct mr_filter from = { .unread = true, .from = senders[i] };
			size_t n = crowd_count(room, "bob", from);

			if (n == 0 && had[i])
				atomic_fetch_add(&b->empty, 1);
			had[i] |= n > 0;
		}
		atomic_fetch_add(&b->looks, 1);
	}
	mr_room_close(room);
}

static bool
note_newest(void *ctx, const struct mr_message *msg)
{
	char *newest = ctx;

	if (strcmp(msg->id, newest) > 0)
		memcpy(newest, msg->id, MR_ID_LEN + 1);
	return true;
}

static void
status_mail_of_two_senders_and_two_processes_never_leaves_the_inbox_empty(void **state)
{
	(void)state;
	struct status_board *b = crowd_share(sizeof(*b));
	struct mr_error err = { 0 };
	struct mr_scan scan = { .filter = { .unread = true, .from = "alice" } };
	char newest[MR_ID_LEN + 1] = "";

	b->room = crowd_new("none", TO("alice", "bob", "carol"));
	pid_t watcher = crowd_spawn(watch_board, b, 0);

	assert_int_equal(crowd_run(3, send_updates, b), 0);
	atomic_store(&b->all_sent, true);
	assert_int_equal(crowd_wait(&watcher, 1), 0);
	assert_int_equal(b->empty, 0);
	assert_true(b->looks > 10);
	struct mr_room *room = crowd_open(&b->room);

	/* The newest stays; a process that was overtaken may have left one older beside it. */
	assert_int_equal(mr_scan(room, "bob", &scan, note_newest, newest, &err), MR_OK);
	assert_string_equal(newest, strcmp(b->last[0], b->last[1]) > 0 ? b->last[0] : b->last[1]);
	assert_in_range(crowd_count(room, "bob", scan.filter), 1, 2);
	assert_int_equal(crowd_count(room, "bob", (struct mr_filter){ .unread = true, .from = "carol" }), 1);
	mr_room_close(room);
	crowd_done(&b->room);
	(void)munmap(b, sizeof(*b));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twenty_senders_of_one_key_killed_and_retried_make_one_message),
		cmocka_unit_test(the_same_for_a_fan_out_to_five),
		cmocka_unit_test(the_same_while_the_first_recipient_reads_and_archives),
		cmocka_unit_test(status_mail_of_two_senders_and_two_processes_never_leaves_the_inbox_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
