/* SPDX-License-Identifier: MIT */
/* posts.h - a channel in the room of box.h, posts, and reading them. */
#ifndef TESTS_UNIT_ROOMS_POSTS_H
#define TESTS_UNIT_ROOMS_POSTS_H

#include "box.h"
#include "base/clock.h"
#include "rooms/maildir/maildir.h"
#include <inttypes.h>
#include <poll.h>

#define POSTERS 8u
#define POSTS_EACH 40u
#define SLOW_POSTS 15u

static inline int
setup(void **state)
{
	if (box_setup(state) != 0)
		return -1;
	struct box *b = *state;

	EXPECT(MR_OK, maildir_channel_make(&b->room, "news", &err));
	return 0;
}

/* ---- Posting and reading ---- */

static inline enum mr_rc
send_post(struct box *b, const char *id, bool to_bob, struct mr_error *err)
{
	char *to[] = { (char[]){ "channel:news" }, (char[]){ "bob" } };
	struct mr_names names = { to, to_bob ? 2 : 1 };
	struct mr_message msg = { .from = "alice",
		.subject = "news",
		.date_ms = clock_now_ms(),
		.type = "note",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.to = names,
		.body = "hear\n",
		.body_len = 5 };
	struct delivery what = { .msg = &msg, .to = &names, .sender = "" };
	struct delivered ret = { 0 };

	memcpy(msg.id, id, sizeof(msg.id));
	msg.thread = msg.id;
	enum mr_rc rc = maildir_deliver(&b->room, &what, &ret, err);
	mr_names_done(&ret.missing);
	return rc;
}

static inline void
post(struct box *b, char ret_id[MR_ID_LEN + 1])
{
	id_new(ret_id);
	EXPECT(MR_OK, send_post(b, ret_id, false, &err));
}

static inline void
post_some(struct box *b, size_t n)
{
	char id[MR_ID_LEN + 1];

	for (size_t i = 0; i < n; i++)
		post(b, id);
}

struct reading {
	uint64_t first, last;
	size_t n;
	bool gaps;           /* allowed, where retention is at work */
	struct mr_names ids; /* each once */
};

static inline bool
note(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct reading *r = ctx;

	if (r->n > 0 && (r->gaps ? number <= r->last : number != r->last + 1))
		fail_msg("post %" PRIu64 " came after %" PRIu64, number, r->last);
	if (names_has(&r->ids, msg->id))
		fail_msg("message %s was posted twice, again as %" PRIu64, msg->id, number);
	assert_true(names_add(&r->ids, str_of(msg->id)));
	r->first = r->n == 0 ? number : r->first;
	r->last = number;
	r->n++;
	return true;
}

static inline void
read_on(struct box *b, struct reading *r)
{
	EXPECT(MR_OK, maildir_channel_scan(&b->room, "news", r->last, SCAN_HEADERS, note, r, &err));
}

static inline struct reading
read_all(struct box *b)
{
	struct reading r = { 0 };

	read_on(b, &r);
	return r;
}

static inline void
assert_ends(struct box *b, uint64_t first, uint64_t last, size_t count)
{
	uint64_t have_first = 99, have_last = 99;
	size_t have = 99;

	EXPECT(MR_OK, maildir_channel_range(&b->room, "news", &have_first, &have_last, &have, &err));
	assert_int_equal(have_first, first);
	assert_int_equal(have_last, last);
	assert_int_equal(have, count);
}

static inline size_t
drop(struct box *b, uint64_t below)
{
	size_t removed = 0;

	EXPECT(MR_OK, maildir_remove(&b->room, &(struct removal){ .what = REMOVE_POSTS, .box = "news", .below = below },
			  &removed, &err));
	return removed;
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, box_teardown)

#endif
