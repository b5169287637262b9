/* SPDX-License-Identifier: MIT */
/* A channel with many posters and followers. */
#include "stress/post.h"

#define POSTERS 8u
#define POSTS 50u

struct press {
	struct crowd room;
	unsigned each;
};

static void
post_all(struct press *p, struct mr_room *room, unsigned poster)
{
	struct mr_self self = self_number(room, "agent", poster);

	for (unsigned i = 0; i < p->each; i++)
		send_number(room, &self, "channel:news", poster * POSTS + i, NULL);
}

struct following {
	uint64_t last;
	unsigned n, gaps;
	unsigned char seen[POSTERS * POSTS];
	unsigned next[POSTERS];
};

static bool
note_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct following *f = ctx;
	unsigned what = (unsigned)strtoul(msg->body, NULL, 10) % (POSTERS * POSTS);

	if (number <= f->last)
		crowd_die("a number came again", NULL);
	if (f->seen[what]++ > 0)
		crowd_die("a post came again", NULL);
	if (what % POSTS != f->next[what / POSTS]++)
		crowd_die("a poster's posts came out of order", NULL);
	f->gaps += number != f->last + 1;
	f->last = number;
	f->n++;
	return true;
}

static void
follow(struct press *p, struct mr_room *room)
{
	struct following f = { 0 }, again = { 0 };
	struct mr_error err = { 0 };

	while (f.n < POSTERS * p->each) {
		MUST(mr_channel_wait(room, "news", f.last, 60000, &err));
		MUST(mr_channel_read(room, "news", f.last, true, note_post, &f, &err));
	}
	if (mr_channel_wait(room, "news", f.last, 50, &err) != MR_EMPTY)
		crowd_die("more was posted than was sent", NULL);
	MUST(mr_channel_read(room, "news", 0, true, note_post, &again, &err));
	if (again.n != f.n || again.last != f.last || f.gaps > 0)
		crowd_die("the follower saw something else than is there", NULL);
}

static void
post_or_follow(void *ctx, unsigned number)
{
	struct press *p = ctx;
	struct mr_room *room = crowd_open(&p->room);

	if (number < POSTERS)
		post_all(p, room, number);
	else
		follow(p, room);
	mr_room_close(room);
}

static bool
note_delivery(void *ctx, const struct mr_message *msg)
{
	struct following *f = ctx;

	f->seen[strtoul(msg->body, NULL, 10) % (POSTERS * POSTS)]++;
	f->n++;
	return true;
}

static void
a_follower_sees_every_post_of_eight_posters_once_and_in_order(void **state)
{
	(void)state;
	struct press p = { .each = so_many(POSTS, 20) };
	struct following got = { 0 };
	struct mr_error err = { 0 };
	bool changed = false;

	p.room = post_room("none", "agent", POSTERS);
	struct mr_room *room = crowd_open(&p.room);
	struct mr_self alice = crowd_self(room, "alice");

	assert_int_equal(mr_channel_create(room, &alice, "news", 0, 0, &err), MR_OK);
	assert_int_equal(mr_channel_subscribe(room, "news", "alice", true, &changed, &err), MR_OK);
	assert_int_equal(crowd_run(POSTERS + 2, post_or_follow, &p), 0);
	assert_int_equal(mr_scan(room, "alice", &(struct mr_scan){ .bodies = true }, note_delivery, &got, &err), MR_OK);
	assert_int_equal(got.n, POSTERS * p.each);
	for (unsigned i = 0; i < POSTERS * POSTS; i++)
		assert_int_equal(got.seen[i], i % POSTS < p.each);
	mr_room_close(room);
	crowd_done(&p.room);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_follower_sees_every_post_of_eight_posters_once_and_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
