/* SPDX-License-Identifier: MIT */
/*
 * test_renew.c - new/ and cur/ are made anew all the time (MAILROOM_TEST_RENEW), while mail comes from senders with
 * open handles (one message, a fan-out, a batch) and as commands, while it is drained, marked, waited for and listed.
 *
 * Each message says its number. Every one must be consumed, and once. Some messages are never consumed: every listing
 * must have them all, wherever a renewal is just then.
 */
#include "room/room.h"
#include "stress/crowd.h"
#include <stdlib.h>

#define SENDERS 4u
#define EACH (CROWD_SLOW ? 40u : 120u)
#define DRAINERS 2u
#define ANCHORS 6u

struct post {
	struct crowd room;
	unsigned each;
	atomic_uint seen[SENDERS * 4000];
	atomic_uint sent, consumed, listings, marks;
	atomic_bool over;
};

static struct mr_room *
begin(const struct post *p)
{
	(void)alarm(300); /* when the test failed nobody ends us */
	return crowd_open(&p->room);
}

static bool
is_anchor(const struct mr_message *msg)
{
	return strcmp(msg->subject, "anchor") == 0;
}

static void
send_number(struct post *p, struct mr_room *room, struct mr_self *self, unsigned number, const char *const *to)
{
	struct mr_error err = { 0 };
	char text[16];

	(void)snprintf(text, sizeof(text), "%u", number);
	MUST(crowd_send(room, self, (struct mr_draft){ .to = to, .subject = text, .body = "work" }, NULL, &err));
	atomic_fetch_add(&p->sent, 1);
}

static void
send_many(struct post *p, struct mr_room *room, struct mr_self *self, unsigned first, unsigned n)
{
	static const char *const bob[] = { "bob", NULL };
	struct mr_draft drafts[8] = { 0 };
	struct mr_sent sent[8] = { 0 };
	char text[8][16];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(text[i], sizeof(text[i]), "%u", first + i);
		drafts[i] = (struct mr_draft){ .to = bob, .subject = text[i], .body = "work", .body_len = 4 };
	}
	mr_send_many(room, self, drafts, n, sent);
	for (unsigned i = 0; i < n; i++) {
		if (sent[i].error.code != MR_OK)
			crowd_die("mr_send_many", &sent[i].error);
		mr_receipt_done(&sent[i].receipt);
		atomic_fetch_add(&p->sent, 1);
	}
}

static void
send_all(void *ctx, unsigned number)
{
	struct post *p = ctx;
	struct mr_room *room = begin(p);
	struct mr_self self = crowd_self(room, "alice");
	unsigned first = number * p->each;

	for (unsigned i = 0; i < p->each; i++) {
		switch (number % 4) {
		case 0:
			send_number(p, room, &self, first + i, TO("bob"));
			break;
		case 1:
			send_number(p, room, &self, first + i, TO("bob", "carol"));
			break;
		case 2: {
			unsigned n = p->each - i < 8 ? p->each - i : 8;

			send_many(p, room, &self, first + i, n);
			i += n - 1;
			break;
		}
		default: /* as a command */
			mr_room_close(room);
			room = crowd_open(&p->room);
			send_number(p, room, &self, first + i, TO("bob"));
		}
	}
	mr_room_close(room);
}

struct few {
	char ids[8][MR_ID_LEN + 1];
	unsigned n;
};

static bool
note_few(void *ctx, const struct mr_message *msg)
{
	struct few *few = ctx;

	if (!is_anchor(msg))
		memcpy(few->ids[few->n++], msg->id, MR_ID_LEN + 1);
	return few->n < 8;
}

/* Waits, takes a few, finishes them: that flush renews. A wait that hears nothing of mail ends only when its time is
 * up. */
static void
drain_all(void *ctx, unsigned number)
{
	struct post *p = ctx;
	struct mr_error err = { 0 };
	struct mr_room *room = begin(p);
	struct mr_self self = crowd_self(room, "bob");
	struct mr_scan unread = { .filter = { .unread = true } };

	(void)number;
	while (atomic_load(&p->consumed) < SENDERS * p->each && !atomic_load(&p->over)) {
		struct few few = { 0 };
		struct mr_show *show = NULL;

		MUST(mr_scan(room, "bob", &unread, note_few, &few, &err));
		if (few.n == 0) {
			crowd_nap_us(500);
			continue;
		}
		MUST(mr_show_open(room, &self, NULL, &show, &err));
		unsigned shown[8], n = 0;

		for (unsigned i = 0; i < few.n; i++) {
			struct mr_message msg = { 0 };
			enum mr_rc rc = mr_show_take(show, few.ids[i], &msg, &err);

			if (rc == MR_OK && msg.folder == MR_HELD)
				shown[n++] = (unsigned)strtoul(msg.subject, NULL, 10);
			else if (rc != MR_OK && rc != MR_BUSY && rc != MR_NOTFOUND)
				crowd_die("mr_show_take", &err);
			mr_message_done(&msg);
		}
		MUST(mr_show_finish(show, few.n % 2 == 0, NULL, &err));
		for (unsigned i = 0; i < n; i++) {
			atomic_fetch_add(&p->seen[shown[i]], 1);
			atomic_fetch_add(&p->consumed, 1);
		}
		mr_show_close(show);
	}
	mr_room_close(room);
}

struct anchors {
	unsigned n;
	char ids[ANCHORS][MR_ID_LEN + 1];
};

static bool
note_anchor(void *ctx, const struct mr_message *msg)
{
	struct anchors *a = ctx;

	if (is_anchor(msg) && a->n < ANCHORS)
		memcpy(a->ids[a->n++], msg->id, MR_ID_LEN + 1);
	return true;
}

/* Every listing has all anchors, whatever is renewed meanwhile; and each is found by its id, and can be marked. */
static void
list_all(void *ctx, unsigned number)
{
	struct post *p = ctx;
	struct mr_error err = { 0 };
	struct mr_room *room = begin(p);
	struct mr_self self = crowd_self(room, "bob");
	struct mr_scan all = { .filter = { .folders = MR_INBOX } };

	while (!atomic_load(&p->over)) {
		struct anchors a = { 0 };

		MUST(mr_scan(room, "bob", &all, note_anchor, &a, &err));
		if (a.n != ANCHORS) {
			(void)fprintf(stderr, "# a listing has %u of %u messages\n", a.n, ANCHORS);
			_exit(1);
		}
		atomic_fetch_add(&p->listings, 1);
		for (unsigned i = 0; i < ANCHORS; i++) {
			struct mr_message msg = { 0 };

			MUST(mr_fetch(room, "bob", a.ids[i], &msg, &err));
			mr_message_done(&msg);
			if (number == 0 && i % 2 == 0) { /* some of them live in cur/ */
				MUST(mr_mark(room, &self, a.ids[i], MR_PINNED, 0, &err));
				MUST(mr_mark(room, &self, a.ids[i], 0, MR_PINNED, &err));
				MUST(mr_flush(room, &err));
				atomic_fetch_add(&p->marks, 2);
			}
		}
	}
	mr_room_close(room);
}

static void
folders_that_are_made_anew_lose_hide_and_double_nothing(void **state)
{
	(void)state;
	struct post *p = crowd_share(sizeof(*p));
	struct mr_error err = { 0 };
	pid_t pids[SENDERS + DRAINERS], listers[2];
	unsigned bad = 0;

	p->each = crowd_long() ? 4000 : EACH;
	p->room = crowd_new("none", TO("alice", "bob", "carol"));
	assert_int_equal(setenv("MAILROOM_TEST_RENEW", "1", 1), 0);
	struct mr_room *room = crowd_open(&p->room);
	struct mr_self alice = crowd_self(room, "alice");

	for (unsigned i = 0; i < ANCHORS; i++)
		assert_int_equal(
		    crowd_send(room, &alice, (struct mr_draft){ .to = TO("bob"), .subject = "anchor", .body = "stays" },
			NULL, &err),
		    MR_OK);
	mr_room_close(room);
	for (unsigned i = 0; i < SENDERS; i++)
		pids[i] = crowd_spawn(send_all, p, i);
	for (unsigned i = 0; i < DRAINERS; i++)
		pids[SENDERS + i] = crowd_spawn(drain_all, p, i);
	for (unsigned i = 0; i < 2; i++)
		listers[i] = crowd_spawn(list_all, p, i);
	assert_int_equal(crowd_wait(pids, SENDERS), 0);
	for (int waits = 0; waits < 600 && atomic_load(&p->consumed) < SENDERS * p->each; waits++)
		crowd_nap_us(100000);
	atomic_store(&p->over, true);
	assert_int_equal(crowd_wait(pids + SENDERS, DRAINERS), 0);
	assert_int_equal(crowd_wait(listers, 2), 0);
	for (unsigned i = 0; i < SENDERS * p->each; i++)
		if (atomic_load(&p->seen[i]) != 1 && bad++ < 5)
			(void)fprintf(stderr, "# message %u was consumed %u times\n", i, atomic_load(&p->seen[i]));
	assert_int_equal(bad, 0);
	assert_int_equal(atomic_load(&p->sent), SENDERS * p->each);
	assert_true(p->listings > 3 && p->marks > 3); /* else nobody disturbed anybody */
	room = crowd_open(&p->room);
	assert_int_equal(crowd_count(room, "carol", (struct mr_filter){ .folders = MR_INBOX }), p->each);
	assert_int_equal(crowd_count(room, "bob", (struct mr_filter){ .folders = MR_INBOX, .unread = true }), ANCHORS);
	mr_room_close(room);
	crowd_done(&p->room);
	(void)munmap(p, sizeof(*p));
}

static void
wait_for_each(void *ctx, unsigned number)
{
	struct post *p = ctx;
	struct mr_error err = { 0 };
	struct mr_room *room = begin(p);
	struct mr_self bob = crowd_self(room, "bob");

	(void)number;
	for (unsigned i = 0; i < p->each; i++) {
		char id[MR_ID_LEN + 1] = "";
		struct few few = { 0 };
		struct mr_scan unread = { .filter = { .unread = true } };

		MUST(mr_wait(room, "bob", &(struct mr_filter){ .unread = true }, 20000, NULL, &err));
		MUST(mr_scan(room, "bob", &unread, note_few, &few, &err));
		memcpy(id, few.ids[0], sizeof(id));
		MUST(mr_mark(room, &bob, id, MR_SEEN, 0, &err));
		atomic_store(&p->consumed, i + 1);
	}
	mr_room_close(room);
}

/* It hears at once, not when it looks by itself, after two seconds. */
static void
a_waiter_hears_of_mail_in_a_new_folder(void **state)
{
	(void)state;
	struct post *p = crowd_share(sizeof(*p));
	struct mr_error err = { 0 };
	unsigned slow = 0;
	char id[MR_ID_LEN + 1];

	p->each = 12;
	p->room = crowd_new("none", TO("alice", "bob"));
	struct mr_room *room = crowd_open(&p->room);
	struct mr_self alice = crowd_self(room, "alice"), bob = crowd_self(room, "bob");

	assert_int_equal(crowd_send(room, &alice,
			     (struct mr_draft){ .to = TO("bob"), .subject = "anchor", .body = "stays" }, id, &err),
	    MR_OK);
	assert_int_equal(mr_mark(room, &bob, id, MR_SEEN, 0, &err), MR_OK);
	assert_int_equal(unsetenv("MAILROOM_TEST_RENEW"), 0);
	pid_t waiter = crowd_spawn(wait_for_each, p, 0);

	assert_int_equal(setenv("MAILROOM_TEST_RENEW", "1", 1), 0);
	for (unsigned i = 0; i < p->each; i++) {
		unsigned naps = 0;

		crowd_nap_us(30000); /* now it waits */
		assert_int_equal(mr_mark(room, &bob, id, i % 2 ? 0 : MR_PINNED, i % 2 ? MR_PINNED : 0, &err), MR_OK);
		assert_int_equal(mr_flush(room, &err), MR_OK); /* renews */
		crowd_nap_us(60000);                           /* and again */
		assert_int_equal(
		    crowd_send(room, &alice, (struct mr_draft){ .to = TO("bob"), .subject = "news", .body = "now" },
			NULL, &err),
		    MR_OK);
		while (atomic_load(&p->consumed) <= i && naps < 200)
			crowd_nap_us(20000), naps++;
		slow += naps > 30; /* 0.6 s: it was the poll */
	}
	assert_int_equal(crowd_wait(&waiter, 1), 0);
	assert_int_equal(slow, 0);
	mr_room_close(room);
	crowd_done(&p->room);
	(void)munmap(p, sizeof(*p));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folders_that_are_made_anew_lose_hide_and_double_nothing),
		cmocka_unit_test(a_waiter_hears_of_mail_in_a_new_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
