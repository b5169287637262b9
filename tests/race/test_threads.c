/* SPDX-License-Identifier: MIT */
/*
 * test_threads.c - mailroom starts no threads, but its users may: a handle each, as mailroom.h says. Four of them send,
 * read and receive in one room. Built with -fsanitize=thread (meson/tsan.ini) this finds memory that they share by
 * mistake.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/crowd.h"

#include <pthread.h>

#define THREADS 4u
#define ROUNDS 25u

static struct crowd town;

/* In another process, so that nothing here was ever called before the threads call it: first calls fill what is kept.
 */
static void
make_town(void *ctx, unsigned number)
{
	(void)number;
	*(struct crowd *)ctx = crowd_new("none", TO("alice", "bob", "carol", "dave"));
}

static void *
live(void *number)
{
	static const char *const names[THREADS] = { "alice", "bob", "carol", "dave" };
	const char *name = names[(uintptr_t)number], *next = names[((uintptr_t)number + 1) % THREADS];
	struct mr_error err = { 0 };
	struct mr_room *room = crowd_open(&town);
	struct mr_self self = crowd_self(room, name);

	for (unsigned i = 0; i < ROUNDS; i++) {
		struct mr_claim claim = { 0 };
		struct mr_message msg = { 0 };
		char id[MR_ID_LEN + 1];
		MUST(crowd_send(room, &self, (struct mr_draft){ .to = TO(next, "bob"), .body = "work" }, NULL, &err));
		(void)crowd_count(room, name, (struct mr_filter){ .folders = MR_INBOX | MR_HELD | MR_ARCHIVE });
		enum mr_rc rc = mr_recv(room, &self, &(struct mr_filter){ 0 }, 60000, &claim, &msg, &err);
		if (rc == MR_EMPTY)
			continue;
		if (rc != MR_OK)
			crowd_die("mr_recv", &err);
		mr_message_done(&msg);
		MUST(mr_claim_done(room, &self, claim.token, NULL, id, NULL, &err));
	}
	mr_room_close(room);
	return NULL;
}

static void
threads_with_a_handle_each_share_a_room(void **state)
{
	pthread_t threads[THREADS];
	size_t copies = 0;

	(void)state;
	struct crowd *made = crowd_share(sizeof(*made));
	assert_int_equal(crowd_run(1, make_town, made), 0);
	town = *made;
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, live, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	struct mr_room *room = crowd_open(&town);
	for (const char *const *name = TO("alice", "bob", "carol", "dave"); *name; name++)
		copies += crowd_count(room, *name, (struct mr_filter){ .folders = MR_INBOX | MR_HELD | MR_ARCHIVE });
	mr_room_close(room);
	/* alice's neighbour is bob himself: one copy, not two */
	assert_int_equal(copies, (2 * THREADS - 1) * ROUNDS);
	crowd_done(&town);
	(void)munmap(made, sizeof(*made));
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(threads_with_a_handle_each_share_a_room) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
