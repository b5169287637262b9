/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "town.h"

#define HOUR_MS ((int64_t)3600 * 1000)

struct posts {
	size_t n;
	uint64_t number[64];
	char subject[64][40], id[64][MR_ID_LEN + 1];
	bool bodies;
};

static bool
note_post(void *ctx, uint64_t number, const struct mr_message *msg)
{
	struct posts *posts = ctx;

	if (posts->n < 64) {
		posts->number[posts->n] = number;
		(void)snprintf(posts->subject[posts->n], 40, "%s", msg->subject);
		memcpy(posts->id[posts->n], msg->id, MR_ID_LEN + 1);
		posts->bodies = msg->body != NULL;
	}
	posts->n++;
	return true;
}

static struct posts
read_after(struct town *t, uint64_t after)
{
	struct posts posts = { 0 };
	struct mr_error err = { 0 };

	assert_ok(mr_channel_read(t->room, "news", after, true, note_post, &posts, &err));
	return posts;
}

static void
make_channel(struct town *t, int64_t count, int64_t hours)
{
	struct mr_error err = { 0 };

	assert_ok(mr_channel_create(t->room, &t->alice, "news", count, hours * HOUR_MS, &err));
}

static void
subscribe(struct town *t, const char *agent)
{
	struct mr_error err = { 0 };

	assert_ok(mr_channel_subscribe(t->room, "news", agent, true, NULL, &err));
}

static void
post(struct town *t, const struct mr_self *self, const char *body)
{
	town_send(t, self, "channel:news", body, NULL);
}

static void
a_post_is_kept_and_every_subscriber_but_the_sender_gets_it(void **state)
{
	struct town t = town_new(state);
	char id[MR_ID_LEN + 1];

	make_channel(&t, 0, 0);
	subscribe(&t, "alice");
	subscribe(&t, "bob");
	town_send(&t, &t.alice, "channel:news", "frozen until noon", id);
	struct posts posts = read_after(&t, 0);

	assert_int_equal(posts.n, 1);
	assert_int_equal(posts.number[0], 1);
	assert_string_equal(posts.subject[0], "frozen until noon");
	assert_string_equal(posts.id[0], id);
	assert_true(posts.bodies);
	struct seen bob = town_unread(&t, "bob");

	assert_int_equal(bob.n, 1);
	assert_string_equal(bob.ids[0], id); /* the same message */
	assert_int_equal(town_unread(&t, "alice").n, 0);
	assert_int_equal(town_unread(&t, "carol").n, 0);
	town_done(&t);
}

static void
of_ten_that_are_kept_the_eleventh_post_leaves_ten(void **state)
{
	struct town t = town_new(state);
	char body[16];

	make_channel(&t, 10, 0);
	subscribe(&t, "bob");
	for (int i = 1; i <= 10; i++) {
		(void)snprintf(body, sizeof(body), "post %d", i);
		post(&t, &t.alice, body);
	}
	assert_int_equal(read_after(&t, 0).n, 10);
	post(&t, &t.alice, "post 11");
	struct posts posts = read_after(&t, 0);

	assert_int_equal(posts.n, 10);
	assert_string_equal(posts.subject[0], "post 2");
	assert_int_equal(posts.number[0], 2);
	assert_string_equal(posts.subject[9], "post 11");
	assert_int_equal(posts.number[9], 11);
	assert_int_equal(town_unread(&t, "bob").n, 11); /* what subscribers got is theirs */
	town_done(&t);
}

/* A post that no retention follows, as when its sender was killed right behind it. */
static void
post_unpruned(struct town *t, int n)
{
	const struct room_driver *real = t->room->driver;
	struct room_driver lazy = *real;

	lazy.remove = room_missing.remove;
	t->room->driver = &lazy;
	for (int i = 0; i < n; i++)
		post(t, &t->alice, "post");
	t->room->driver = real;
}

static void
a_patrol_prunes_only_above_a_tenth_more(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	size_t removed = 99;

	make_channel(&t, 10, 0);
	post_unpruned(&t, 11);
	assert_int_equal(read_after(&t, 0).n, 11);
	assert_ok(mr_channel_prune(t.room, "news", true, &removed, &err));
	assert_int_equal(removed, 0);
	post_unpruned(&t, 1);
	assert_ok(mr_channel_prune(t.room, "channel:news", true, &removed, &err));
	assert_int_equal(removed, 2);
	assert_int_equal(read_after(&t, 0).n, 10);
	assert_int_equal(read_after(&t, 0).number[0], 3);
	post_unpruned(&t, 1);
	assert_ok(mr_channel_prune(t.room, "news", false, &removed, &err));
	assert_int_equal(removed, 1);
	town_done(&t);
}

static void
posts_that_are_too_old_go_and_both_limits_count(void **state)
{
	static int64_t begin_ms; /* ids never go back within a process: each run is later than the one before */
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	size_t removed = 99;

	begin_ms += 100 * HOUR_MS;
	clock_shift_ms(begin_ms);
	make_channel(&t, 3, 2);
	post(&t, &t.alice, "old 1");
	post(&t, &t.alice, "old 2");
	clock_shift_ms(begin_ms + HOUR_MS);
	post(&t, &t.alice, "young 1");
	assert_int_equal(read_after(&t, 0).n, 3);
	clock_shift_ms(begin_ms + 2 * HOUR_MS + HOUR_MS / 2);
	post(&t, &t.alice, "young 2");
	struct posts posts = read_after(&t, 0);

	assert_int_equal(posts.n, 2);
	assert_string_equal(posts.subject[0], "young 1");
	post(&t, &t.alice, "young 3");
	post(&t, &t.alice, "young 4");
	posts = read_after(&t, 0);
	assert_int_equal(posts.n, 3);
	assert_string_equal(posts.subject[0], "young 2");
	clock_shift_ms(begin_ms + 5 * HOUR_MS);
	assert_ok(mr_channel_prune(t.room, "news", true, &removed, &err));
	assert_int_equal(removed, 3);
	assert_int_equal(read_after(&t, 0).n, 0);
	post(&t, &t.alice, "next");
	assert_int_equal(read_after(&t, 6).number[0], 7); /* numbers are not used again */
	clock_shift_ms(0);
	town_done(&t);
}

static void
a_closed_channel_refuses_posts_and_can_be_read(void **state)
{
	struct town t = town_new(state);
	struct mr_draft draft = draft_to(TO("channel:news"), "more");
	struct mr_receipt receipt = { 0 };
	struct mr_error err = { 0 };

	make_channel(&t, 0, 0);
	subscribe(&t, "bob");
	post(&t, &t.alice, "one");
	assert_ok(mr_channel_close(t.room, "news", true, &err));
	assert_rc(mr_send(t.room, &t.alice, &draft, &receipt, &err), MR_REFUSED);
	assert_int_equal(read_after(&t, 0).n, 1);
	assert_int_equal(town_unread(&t, "bob").n, 1);
	assert_ok(mr_channel_close(t.room, "news", false, &err));
	post(&t, &t.alice, "two");
	assert_int_equal(read_after(&t, 1).n, 1);
	town_done(&t);
}

static void
subscribing_twice_is_success_and_strangers_are_refused(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	struct mr_prune_options prune = { .names = TO("carol"), .force = true };
	struct mr_error err = { 0 };
	bool changed = false;

	make_channel(&t, 5, 24);
	assert_ok(mr_channel_subscribe(t.room, "channel:news", "bob", true, &changed, &err));
	assert_true(changed);
	assert_ok(mr_channel_subscribe(t.room, "news", "bob", true, &changed, &err));
	assert_false(changed);
	assert_rc(mr_channel_subscribe(t.room, "news", "nobody", true, &changed, &err), MR_NOTFOUND);
	assert_rc(mr_channel_subscribe(t.room, "olds", "bob", true, &changed, &err), MR_NOTFOUND);
	subscribe(&t, "carol");
	assert_ok(mr_channel_get(t.room, "news", &channel, &err));
	assert_int_equal(channel.subscribers.n, 2);
	assert_int_equal(channel.retain_count, 5);
	assert_int_equal(channel.retain_ms, 24 * HOUR_MS);
	assert_false(channel.closed);
	assert_string_equal(channel.created_by, "alice");
	assert_ok(mr_channel_subscribe(t.room, "news", "bob", false, &changed, &err));
	assert_true(changed);
	assert_ok(mr_channel_subscribe(t.room, "news", "bob", false, &changed, &err));
	assert_false(changed);
	assert_ok(mr_prune(t.room, &prune, NULL, &err));
	assert_ok(mr_channel_subscribe(t.room, "news", "carol", false, &changed, &err)); /* gone, and still listed */
	assert_true(changed);
	town_done(&t);
}

static void
channels_are_made_once_listed_and_deleted(void **state)
{
	struct town t = town_new(state);
	mr_auto(mr_list_done) struct mr_channels all = { 0 };
	struct mr_error err = { 0 };
	struct posts posts = { 0 };

	make_channel(&t, 0, 0);
	assert_rc(mr_channel_create(t.room, &t.bob, "news", 0, 0, &err), MR_EXISTS);
	assert_rc(mr_channel_create(t.room, &t.bob, "News", 0, 0, &err), MR_REFUSED);
	assert_rc(mr_channel_create(t.room, &t.bob, "rig/news", 0, 0, &err), MR_REFUSED);
	assert_rc(mr_channel_create(t.room, &t.bob, "x", -1, 0, &err), MR_REFUSED);
	assert_ok(mr_channel_list(t.room, &all, &err));
	assert_int_equal(all.n, 1);
	post(&t, &t.alice, "one");
	assert_ok(mr_channel_delete(t.room, "news", &err));
	assert_rc(mr_channel_delete(t.room, "news", &err), MR_NOTFOUND);
	assert_rc(mr_channel_read(t.room, "news", 0, false, note_post, &posts, &err), MR_NOTFOUND);
	make_channel(&t, 0, 0);
	assert_int_equal(read_after(&t, 0).n, 0);
	town_done(&t);
}

static void
a_cursor_gets_what_came_after_it(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };

	make_channel(&t, 0, 0);
	post(&t, &t.alice, "one");
	post(&t, &t.bob, "two");
	struct posts posts = read_after(&t, 1);

	assert_int_equal(posts.n, 1);
	assert_string_equal(posts.subject[0], "two");
	assert_int_equal(read_after(&t, 2).n, 0);
	assert_ok(mr_channel_wait(t.room, "news", 1, 0, &err));
	assert_rc(mr_channel_wait(t.room, "news", 2, 0, &err), MR_EMPTY);
	assert_rc(mr_channel_wait(t.room, "news", 2, 60, &err), MR_EMPTY);
	town_done(&t);
}

static void
waiting_ends_when_something_is_posted(void **state)
{
	struct town t = town_new(state);
	struct mr_error err = { 0 };
	int status = 1;

	make_channel(&t, 0, 0);
	int64_t begin_ms = clock_boot_ms();
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		struct mr_draft draft = draft_to(TO("channel:news"), "one");
		struct mr_receipt receipt = { 0 };
		struct mr_room *room = NULL;

		(void)usleep(150 * 1000);
		if (mr_room_open(mr_room_spec(t.room), NULL, &room, &err) != MR_OK)
			_exit(1);
		_exit(mr_send(room, &t.alice, &draft, &receipt, &err) == MR_OK ? 0 : 2);
	}
	assert_ok(mr_channel_wait(t.room, "news", 0, 20000, &err));
	assert_in_range(clock_boot_ms() - begin_ms, 100, 10000);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(read_after(&t, 0).n, 1);
	town_done(&t);
}

static void
of_many_who_subscribe_at_once_none_is_lost(void **state)
{
	enum { PROCESSES = 20 };
	struct town t = town_new(state);
	mr_auto(mr_channel_done) struct mr_channel channel = { 0 };
	struct mr_error err = { 0 };
	pid_t children[PROCESSES];

	make_channel(&t, 0, 0);
	for (int i = 0; i < PROCESSES; i++) {
		struct mr_self self = { 0 };
		char name[16];

		(void)snprintf(name, sizeof(name), "agent%d", i);
		town_register(&t, name, false, &self);
		children[i] = fork();
		assert_true(children[i] >= 0);
		if (children[i] == 0) {
			struct mr_room *room = NULL;

			_exit(mr_room_open(mr_room_spec(t.room), NULL, &room, &err) != MR_OK ||
			      mr_channel_subscribe(room, "news", name, true, NULL, &err) != MR_OK);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status = 1;

		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	assert_ok(mr_channel_get(t.room, "news", &channel, &err));
	assert_int_equal(channel.subscribers.n, PROCESSES);
	town_done(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(a_post_is_kept_and_every_subscriber_but_the_sender_gets_it),
		ON_BOTH(of_ten_that_are_kept_the_eleventh_post_leaves_ten),
		ON_BOTH(a_patrol_prunes_only_above_a_tenth_more),
		ON_BOTH(posts_that_are_too_old_go_and_both_limits_count),
		ON_BOTH(a_closed_channel_refuses_posts_and_can_be_read),
		ON_BOTH(subscribing_twice_is_success_and_strangers_are_refused),
		ON_BOTH(channels_are_made_once_listed_and_deleted),
		ON_BOTH(a_cursor_gets_what_came_after_it),
		ON_MAILDIR(waiting_ends_when_something_is_posted),
		ON_MAILDIR(of_many_who_subscribe_at_once_none_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
