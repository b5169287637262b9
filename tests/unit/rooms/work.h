/* SPDX-License-Identifier: MIT */
/* work.h - a queue in the room of box.h, work for it, claims, and what is where. */
#ifndef TESTS_UNIT_ROOMS_WORK_H
#define TESTS_UNIT_ROOMS_WORK_H

#include "box.h"
#include "base/clock.h"
#include "rooms/maildir/maildir.h"
#include <sys/mman.h>

#define CLAIMERS 8
#if defined(__SANITIZE_ADDRESS__) || defined(MR_PORTABLE)
#define CONTESTED 250
#define BACKLOG 3000
#else
#define CONTESTED 1000
#define BACKLOG 10000
#endif

/* ---- A queue, mail for it, claims ---- */

static inline int
queue_setup(void **state)
{
	if (box_setup(state) != 0)
		return -1;
	struct box *b = *state;
	EXPECT(MR_OK, maildir_record_put(&b->room, "queue", "", "jobs", STR("Name: jobs\n"), &err));
	return 0;
}

/* Durable like a real one: what the kill tests are about. */
static inline void
sync_fully(struct box *b)
{
	box_close(b);
	box_write(b, "room", "Format: 1\nName: town\nSync: full\n");
	box_open(b);
}

struct letter {
	const char *queue; /* "queue:jobs" unless told */
	enum mr_priority priority;
	int64_t not_before_ms;
	const char *also; /* a second recipient */
	const char *key;
};

static inline enum mr_rc
try_send(struct box *b, const struct letter *l, char ret_id[MR_ID_LEN + 1], struct mr_error *err)
{
	char first[64], second[64];
	char *to[] = { first, second };
	struct mr_names names = { .v = to, .n = l->also != NULL ? 2 : 1 };
	struct mr_message msg = { .from = "bob",
		.to = names,
		.subject = "build it",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.body = "make all\n",
		.body_len = 9,
		.date_ms = clock_now_ms(),
		.priority = l->priority,
		.not_before_ms = l->not_before_ms };
	struct delivery what = { .msg = &msg, .to = &names, .sender = "", .key = l->key };
	struct delivered got = { 0 };

	(void)snprintf(first, sizeof(first), "%s", l->queue != NULL ? l->queue : "queue:jobs");
	(void)snprintf(second, sizeof(second), "%s", l->also != NULL ? l->also : "");
	enum mr_rc rc = maildir_deliver(&b->room, &what, &got, err);
	mr_names_done(&got.missing);
	memcpy(ret_id, got.id, sizeof(got.id));
	return rc;
}

static inline void
send_work(struct box *b, enum mr_priority priority, char ret_id[MR_ID_LEN + 1])
{
	struct letter l = { .priority = priority };

	EXPECT(MR_OK, try_send(b, &l, ret_id, &err));
}

static inline struct claim_terms
terms_of(const char *who, int64_t lease_ms)
{
	return (
	    struct claim_terms){ .claimer = who, .kind = CLAIM_LEASE, .life = 1, .lease_ms = lease_ms, .session = "" };
}

static inline struct claim
claim(struct box *b, bool by_priority)
{
	struct claim_terms terms = terms_of("bob", 60000);
	struct claim hold = { 0 };

	terms.by_priority = by_priority;
	EXPECT(MR_OK, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err));
	return hold;
}

static inline void
claims_nothing(struct box *b)
{
	struct claim_terms terms = terms_of("bob", 60000);
	struct claim hold = { 0 };

	EXPECT(MR_EMPTY, maildir_claim(&b->room, "queue:jobs", NULL, &terms, &hold, &err));
}

struct counts {
	size_t ready, delayed, claimed, done, failed;
};

static inline bool
count_item(void *ctx, const struct queue_item *item)
{
	struct counts *n = ctx;

	n->ready += item->state == QUEUE_READY;
	n->delayed += item->state == QUEUE_DELAYED;
	n->claimed += item->state == QUEUE_CLAIMED;
	n->done += item->state == QUEUE_DONE;
	n->failed += item->state == QUEUE_FAILED;
	return true;
}

static inline struct counts
count(struct box *b)
{
	struct counts n = { 0 };

	EXPECT(MR_OK, maildir_each_claim(&b->room, "queue:jobs", QUEUE_ANY, count_item, &n, &err));
	return n;
}

static inline size_t
total(struct counts n)
{
	return n.ready + n.delayed + n.claimed + n.done + n.failed;
}

static inline size_t
buckets_of(struct box *b, unsigned p)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(buckets_done) struct buckets list = BUCKETS_INIT;

	EXPECT(MR_OK, queue_open(&q, maildir_of(&b->room), "jobs", &err));
	EXPECT(MR_OK, buckets_read(&q, p, &list, &err));
	return list.n;
}

#define IN_QUEUE(test) cmocka_unit_test_setup_teardown(test, queue_setup, box_teardown)

static inline bool
remember_hold(void *ctx, const struct queue_item *item)
{
	*(struct claim *)ctx = *item->claim;
	return false;
}

static inline size_t
in_inbox(struct box *b)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	mr_auto(listing_done) struct listing l = { 0 };

	EXPECT(MR_OK, list_folders(&box, MR_INBOX, false, NULL, &l, &err));
	return l.n;
}

/* Whatever waits is claimed and done: so everything there is whole. Returns how much there was. */
static inline size_t
work_off(struct box *b)
{
	struct counts n = count(b);

	for (size_t i = 0; i < n.ready; i++) {
		struct claim hold = claim(b, false);
		struct mr_message msg = { 0 };
		EXPECT(MR_OK, maildir_queue_fetch(&b->room, "jobs", hold.id, SCAN_BODIES, &msg, &err));
		assert_int_equal(msg.body_len, 9);
		mr_message_done(&msg);
		EXPECT(MR_OK, maildir_settle(&b->room, &hold, SETTLE_DONE, &err));
	}
	claims_nothing(b);
	return n.ready;
}

#endif
