/* SPDX-License-Identifier: MIT */
/* channels.c - channels: numbers that grow by one and never come again. */
#include "suite.h"

static void
make_channel(struct world *w, const char *name)
{
	EXPECT(MR_OK, w->ops->make_box(w->room, room_box("channel", name).z, &err));
	EXPECT(MR_OK, w->ops->record_put(w->room, "channel", "", name, STR("Status: active\n"), &err));
	EXPECT(MR_OK, w->ops->make_box(w->room, room_box("channel", name).z, &err)); /* once more is no harm */
}

static void
post(struct world *w, size_t times)
{
	char id[MR_ID_LEN + 1];

	for (size_t i = 0; i < times; i++)
		send_to(w, "channel:news", "hear, hear\n", id);
}

struct seen {
	uint64_t first, last;
	size_t n, stop_after;
	struct world *posts_to; /* while it is scanned; or NULL */
};

static bool
note_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct seen *s = ctx;

	assert_true(s->n == 0 || number == s->last + 1); /* each once, none left out */
	assert_int_equal(strlen(msg->id), MR_ID_LEN);
	assert_string_equal(msg->from, "alice");
	s->first = s->n == 0 ? number : s->first;
	s->last = number;
	if (s->posts_to && s->n < 3)
		post(s->posts_to, 1);
	return ++s->n != s->stop_after;
}

static struct seen
scan(struct world *w, uint64_t after, struct seen s)
{
	EXPECT(MR_OK, w->ops->channel_scan(w->room, "news", after, SCAN_HEADERS, note_post, &s, &err));
	return s;
}

static void
assert_range(struct world *w, uint64_t first, uint64_t last, size_t count)
{
	uint64_t have_first = 99, have_last = 99;
	size_t have = 99;

	EXPECT(MR_OK, w->ops->channel_range(w->room, "news", &have_first, &have_last, &have, &err));
	assert_int_equal(have_first, first);
	assert_int_equal(have_last, last);
	assert_int_equal(have, count);
}

static size_t
drop(struct world *w, uint64_t below)
{
	size_t removed = 99;

	EXPECT(MR_OK, w->ops->remove(w->room, &(struct removal){ .what = REMOVE_POSTS, .box = "news", .below = below },
			  &removed, &err));
	return removed;
}

static void
posts_have_numbers_that_grow_by_one(void **state)
{
	struct world *w = *state;

	make_channel(w, "news");
	assert_range(w, 0, 0, 0);
	assert_int_equal(scan(w, 0, (struct seen){ 0 }).n, 0);
	for (uint64_t n = 1; n <= 12; n++) {
		post(w, 1);
		assert_range(w, 1, n, (size_t)n);
	}
	struct seen all = scan(w, 0, (struct seen){ 0 });

	assert_int_equal(all.n, 12);
	assert_int_equal(all.first, 1);
	assert_int_equal(all.last, 12);
}

static void
a_scan_begins_after_a_number_and_ends_when_told(void **state)
{
	struct world *w = *state;

	make_channel(w, "news");
	post(w, 5);
	struct seen later = scan(w, 3, (struct seen){ 0 });

	assert_int_equal(later.first, 4);
	assert_int_equal(later.n, 2);
	assert_int_equal(scan(w, 5, (struct seen){ 0 }).n, 0);
	assert_int_equal(scan(w, 500, (struct seen){ 0 }).n, 0);
	assert_int_equal(scan(w, UINT64_MAX, (struct seen){ 0 }).n, 0);
	assert_int_equal(scan(w, 1, (struct seen){ .stop_after = 2 }).last, 3);
}

static bool
check_whole(void *ctx, uint64_t number, const struct mr_message *msg)
{
	(void)number;
	assert_int_equal(msg->body_len, 11);
	assert_memory_equal(msg->body, "hear, hear\n", 11);
	assert_string_equal(msg->id, ctx);
	return true;
}

static void
a_post_is_the_message_that_was_sent(void **state)
{
	struct world *w = *state;
	char id[MR_ID_LEN + 1];

	make_channel(w, "news");
	send_to(w, "channel:news", "hear, hear\n", id);
	EXPECT(MR_OK, w->ops->channel_scan(w->room, "news", 0, SCAN_BODIES, check_whole, id, &err));
}

static void
what_is_posted_during_a_scan_comes_in_its_turn(void **state)
{
	struct world *w = *state;

	make_channel(w, "news");
	post(w, 2);
	assert_int_equal(scan(w, 0, (struct seen){ .posts_to = w }).n, 5);
}

static void
posts_are_dropped_from_the_low_end(void **state)
{
	struct world *w = *state;

	make_channel(w, "news");
	assert_int_equal(drop(w, 7), 0);
	post(w, 10);
	assert_int_equal(drop(w, 1), 0);
	assert_int_equal(drop(w, 4), 3);
	assert_range(w, 4, 10, 7);
	assert_int_equal(drop(w, 4), 0);
	assert_int_equal(scan(w, 0, (struct seen){ 0 }).first, 4);
	assert_int_equal(
	    scan(w, 1, (struct seen){ 0 }).n, 7); /* a reader that was too slow goes on with what is left */
	assert_int_equal(scan(w, 8, (struct seen){ 0 }).n, 2);
	post(w, 1);
	assert_range(w, 4, 11, 8);
	assert_int_equal(drop(w, 11), 7);
	assert_range(w, 11, 11, 1);
}

static void
a_number_never_comes_again(void **state)
{
	struct world *w = *state;

	make_channel(w, "news");
	post(w, 5);
	assert_int_equal(drop(w, 6), 5);
	assert_range(w, 0, 0, 0);
	post(w, 1);
	assert_range(w, 6, 6, 1);
	assert_int_equal(drop(w, UINT64_MAX), 1);
	post(w, 2);
	struct seen left = scan(w, 5, (struct seen){ 0 });

	assert_int_equal(left.first, 7);
	assert_int_equal(left.last, 8);
	assert_range(w, 7, 8, 2);
}

static void
a_removed_channel_is_gone_with_its_posts(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "channel:news" } };
	struct seen s = { 0 };
	struct mr_error ignored = { 0 };

	make_channel(w, "news");
	post(w, 3);
	EXPECT(MR_OK, w->ops->remove_box(w->room, "channel:news", false, NULL, &err));
	(void)w->ops->record_drop(w->room, "channel", "", "news", &ignored);
	EXPECT(MR_NOTFOUND, w->ops->remove_box(w->room, "channel:news", false, NULL, &err));
	EXPECT(MR_NOTFOUND, w->ops->channel_scan(w->room, "news", 0, SCAN_HEADERS, note_post, &s, &err));
	EXPECT(MR_NOTFOUND, try_send(w, &letter, NULL, &err));
	make_channel(w, "news");
	assert_range(w, 0, 0, 0);
	post(w, 1);
	assert_range(w, 1, 1, 1);
}

struct places {
	size_t ready, posted;
};

static void
note_place(void *ctx, const struct place_of *place)
{
	struct places *p = ctx;

	assert_true(place->evidence && place->evidence[0] != '\0');
	p->ready += strcmp(place->state, "ready") == 0;
	p->posted += strcmp(place->state, "posted") == 0;
}

static void
a_purged_post_is_gone_but_its_number_stays_taken(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "channel:news", "queue:builds" } };
	struct delivered done = { 0 };
	struct places places = { 0 };
	size_t removed = 99;

	make_channel(w, "news");
	EXPECT(MR_OK, w->ops->make_box(w->room, "queue:builds", &err));
	EXPECT(MR_OK, w->ops->record_put(w->room, "queue", "", "builds", STR("Status: active\n"), &err));
	post(w, 2);
	EXPECT(MR_OK, try_send(w, &letter, &done, &err));
	EXPECT(MR_OK, w->ops->each_place(w->room, done.id, note_place, &places, &err));
	assert_int_equal(places.ready, 1);
	assert_int_equal(places.posted, 1);
	EXPECT(MR_OK,
	    w->ops->remove(w->room, &(struct removal){ .what = REMOVE_EVERYWHERE, .id = done.id }, &removed, &err));
	assert_int_equal(removed, 2);
	EXPECT(MR_OK, w->ops->each_place(w->room, done.id, note_place, &places, &err));
	assert_int_equal(places.ready + places.posted, 2); /* no more than before */
	assert_int_equal(scan(w, 0, (struct seen){ 0 }).n, 2);
	post(w, 1);
	assert_int_equal(scan(w, 2, (struct seen){ 0 }).last, 4);
	assert_range(w, 1, 4, 4);
}

const struct suite_case channel_cases[] = {
	CASE(posts_have_numbers_that_grow_by_one, ROOM_CHANNELS),
	CASE(a_scan_begins_after_a_number_and_ends_when_told, ROOM_CHANNELS),
	CASE(a_post_is_the_message_that_was_sent, ROOM_CHANNELS),
	CASE(what_is_posted_during_a_scan_comes_in_its_turn, ROOM_CHANNELS),
	CASE(posts_are_dropped_from_the_low_end, ROOM_CHANNELS),
	CASE(a_number_never_comes_again, ROOM_CHANNELS),
	CASE(a_removed_channel_is_gone_with_its_posts, ROOM_CHANNELS),
	CASE(a_purged_post_is_gone_but_its_number_stays_taken, ROOM_CHANNELS | ROOM_QUEUES | ROOM_PURGE),
	{ 0 },
};
