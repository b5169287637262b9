/* SPDX-License-Identifier: MIT */
/* Several processes at one queue, some of them killed. */
#include "jobs.h"

static pid_t
in_child(struct town *t, void (*work)(struct mr_room *room, struct town *t, void *ctx), void *ctx)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct mr_room *room = NULL;
		struct mr_error err = { 0 };

		if (mr_room_open(mr_room_spec(t->room), NULL, &room, &err) != MR_OK)
			_exit(255);
		work(room, t, ctx);
		_exit(0);
	}
	return pid;
}

static void
send_soon(struct mr_room *room, struct town *t, void *ctx)
{
	struct mr_draft draft = draft_to(TO("queue:builds"), "work");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	(void)ctx;
	(void)usleep(150 * 1000);
	if (mr_send(room, &t->alice, &draft, &receipt, &err) != MR_OK)
		_exit(1);
	mr_receipt_done(&receipt);
}

static void
waiting_ends_when_work_comes(void **state)
{
	struct town t = town_new(state);
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };
	struct mr_error err = { 0 };
	int status = 1;

	make_queue(&t, "builds", (struct mr_queue){ .attempts = 3 });
	int64_t begin_ms = clock_boot_ms();

	assert_rc(mr_queue_recv(t.room, &t.bob, "builds", 0, 120, &claim, &msg, &err), MR_EMPTY);
	assert_in_range(clock_boot_ms() - begin_ms, 100, 2000);
	pid_t child = in_child(&t, send_soon, NULL);

	assert_ok(mr_queue_recv(t.room, &t.bob, "builds", 0, 20000, &claim, &msg, &err));
	assert_true(clock_boot_ms() - begin_ms < 10000);
	mr_message_done(&msg);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	town_done(&t);
}

static void
work_until_nothing_is_left(struct mr_room *room, struct town *t, void *ctx)
{
	struct mr_queue_counts counts = { 0 };
	char line[MR_ID_LEN + 2], id[MR_ID_LEN + 1];

	for (;;) {
		struct mr_claim claim = { 0 };
		struct mr_message msg = { 0 };
		struct mr_error err = { 0 };
		enum mr_rc rc = mr_queue_recv(room, &t->bob, "builds", 400, 0, &claim, &msg, &err);

		if (rc == MR_OK) {
			mr_message_done(&msg);
			if (mr_claim_done(room, &t->bob, claim.token, NULL, id, NULL, &err) != MR_OK)
				continue; /* too slow: it went to another */
			(void)snprintf(line, sizeof(line), "%s\n", id);
			if (write(*(int *)ctx, line, MR_ID_LEN + 1) != MR_ID_LEN + 1)
				_exit(1);
		} else if (rc != MR_EMPTY) {
			_exit(2);
		} else if (mr_queue_count(room, "builds", &counts, &err) != MR_OK ||
			   counts.ready + counts.claimed == 0) {
			_exit(0);
		} else {
			(void)usleep(5000);
		}
	}
}

static int
by_line(const void *a, const void *b)
{
	return strncmp(a, b, MR_ID_LEN + 1);
}

static void
killed_claimers_lose_nothing_and_nothing_is_done_twice(void **state)
{
	enum { MESSAGES = 300, WORKERS = 8, KILLS = 40 };
	struct town t = town_new(state);
	pid_t workers[WORKERS];
	char path[128];
	static char lines[(MESSAGES + 1) * (MR_ID_LEN + 1)];

	(void)snprintf(path, sizeof(path), "%s/done", t.dir);
	int log = open(path, O_RDWR | O_CREAT | O_APPEND, 0600);

	assert_true(log >= 0);
	make_queue(&t, "builds", (struct mr_queue){ .attempts = 0 });
	for (int i = 0; i < MESSAGES; i++)
		town_send(&t, &t.alice, "queue:builds", "work", NULL);
	for (int w = 0; w < WORKERS; w++)
		workers[w] = in_child(&t, work_until_nothing_is_left, &log);
	for (int i = 0; i < KILLS; i++) {
		unsigned char dice = 0;

		random_bytes(&dice, 1);
		(void)usleep(2000 + 40u * dice);
		pid_t *victim = &workers[dice % WORKERS];

		(void)kill(*victim, SIGKILL);
		(void)waitpid(*victim, NULL, 0);
		*victim = in_child(&t, work_until_nothing_is_left, &log);
	}
	for (int w = 0; w < WORKERS; w++) {
		int status = 1;

		assert_int_equal(waitpid(workers[w], &status, 0), workers[w]);
		assert_int_equal(status, 0);
	}
	struct mr_queue_counts counts = count(&t, "builds");

	assert_int_equal(counts.done, MESSAGES);
	assert_int_equal(counts.ready + counts.claimed + counts.failed + counts.delayed, 0);
	ssize_t got = pread(log, lines, sizeof(lines), 0);
	size_t n = (size_t)got / (MR_ID_LEN + 1);

	/* A worker killed between `done` and its note leaves no line; none may be there twice. */
	assert_true(got > 0 && n <= MESSAGES && n + KILLS >= MESSAGES);
	qsort(lines, n, MR_ID_LEN + 1, by_line);
	for (size_t i = 1; i < n; i++)
		assert_int_not_equal(by_line(lines + (i - 1) * (MR_ID_LEN + 1), lines + i * (MR_ID_LEN + 1)), 0);
	(void)close(log);
	town_done(&t);
}

struct shared {
	_Atomic int live, most, rounds;
};

static void
work_and_watch_the_limit(struct mr_room *room, struct town *t, void *ctx)
{
	struct shared *shared = ctx;

	while (shared->rounds < 200) {
		struct mr_claim claim = { 0 };
		struct mr_message msg = { 0 };
		struct mr_error err = { 0 };
		char id[MR_ID_LEN + 1];
		enum mr_rc rc = mr_queue_recv(room, &t->bob, "builds", 60000, 0, &claim, &msg, &err);

		if (rc == MR_BUSY || rc == MR_EMPTY)
			continue;
		if (rc != MR_OK)
			_exit(2);
		int now = ++shared->live, most = shared->most;

		while (now > most && !atomic_compare_exchange_weak(&shared->most, &most, now))
			;
		mr_message_done(&msg);
		shared->live--;
		shared->rounds++;
		if (mr_claim_release(room, &t->bob, claim.token, NULL, id, &err) != MR_OK)
			_exit(3);
	}
}

static void
a_limit_of_two_holds_against_eight_claimers(void **state)
{
	enum { WORKERS = 8 };
	struct town t = town_new(state);
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t workers[WORKERS];

	assert_ptr_not_equal(shared, MAP_FAILED);
	make_queue(&t, "builds", (struct mr_queue){ .attempts = 0, .max_claims = 2 });
	for (int i = 0; i < 8; i++)
		town_send(&t, &t.alice, "queue:builds", "work", NULL);
	for (int w = 0; w < WORKERS; w++)
		workers[w] = in_child(&t, work_and_watch_the_limit, shared);
	for (int w = 0; w < WORKERS; w++) {
		int status = 1;

		assert_int_equal(waitpid(workers[w], &status, 0), workers[w]);
		assert_int_equal(status, 0);
	}
	assert_true(shared->rounds >= 200);
	assert_in_range(shared->most, 1, 2);
	(void)munmap(shared, sizeof(*shared));
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_MAILDIR(waiting_ends_when_work_comes),
		ON_MAILDIR(killed_claimers_lose_nothing_and_nothing_is_done_twice),
		ON_MAILDIR(a_limit_of_two_holds_against_eight_claimers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
