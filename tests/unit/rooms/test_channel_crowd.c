/* SPDX-License-Identifier: MIT */
/* Many at one channel: no post is missed, no number used twice, no change lost. */
#include "support/sys_fault.h"
#include "posts.h"

static void
work_post(struct box *b, void *arg)
{
	(void)arg;
	post_some(b, POSTS_EACH);
}

static void
a_follower_sees_every_post_of_eight_posters_once_and_in_order(void **state)
{
	struct box *b = *state;
	struct reading r = { 0 };
	pid_t posters[POSTERS];
	int64_t end_ms = clock_boot_ms() + 40000;
	void *watch = NULL;

	EXPECT(MR_OK, maildir_watch(&b->room, "channel:news", &watch, &err));
	for (size_t i = 0; i < POSTERS; i++)
		posters[i] = box_fork(b, work_post, NULL);
	while (r.n < POSTERS * POSTS_EACH && clock_boot_ms() < end_ms) {
		read_on(b, &r);
		if (r.n < POSTERS * POSTS_EACH)
			maildir_watch_wait(&b->room, watch, 100);
	}
	for (size_t i = 0; i < POSTERS; i++)
		box_join(posters[i]);
	maildir_watch_close(&b->room, watch);
	read_on(b, &r);
	assert_int_equal(r.first, 1);
	assert_int_equal(r.n, POSTERS * POSTS_EACH);
	assert_int_equal(r.last, POSTERS * POSTS_EACH);
	mr_names_done(&r.ids);
}

/* Keeps almost nothing, so that posters meet numbers that are gone. */
static void
work_prune(struct box *b, void *arg)
{
	uint64_t first = 0, last = 0;
	size_t count = 0, removed = 0;

	(void)arg;
	while (!box_has(b, "enough")) {
		EXPECT(MR_OK, maildir_channel_range(&b->room, "news", &first, &last, &count, &err));
		EXPECT(MR_OK,
		    maildir_remove(&b->room,
			&(struct removal){ .what = REMOVE_POSTS, .box = "news", .below = last + 1 }, &removed, &err));
	}
}

/* Slowly, so that much happens between finding the end and taking the next number. */
static void
work_post_slowly(struct box *b, void *arg)
{
	(void)arg;
	sys_plan_set(&(struct sys_plan){ .delay_us = 300 });
	post_some(b, SLOW_POSTS);
	sys_plan_set(NULL);
}

static void
numbers_are_never_used_twice_while_retention_removes_them(void **state)
{
	struct box *b = *state;
	pid_t posters[POSTERS], pruner = box_fork(b, work_prune, NULL);
	uint64_t first = 0, last = 0;
	size_t count = 0;

	for (size_t i = 0; i < POSTERS; i++)
		posters[i] = box_fork(b, i % 2 ? work_post : work_post_slowly, NULL);
	for (size_t i = 0; i < POSTERS; i++)
		box_join(posters[i]);
	box_write(b, "enough", "");
	box_join(pruner);
	post_some(b, 1);
	EXPECT(MR_OK, maildir_channel_range(&b->room, "news", &first, &last, &count, &err));
	assert_int_equal(last, POSTERS / 2 * (POSTS_EACH + SLOW_POSTS) + 1); /* as many numbers as posts */
}

static void
subscribe(struct box *b, const char *kind, const char *owner, const char *name, size_t agent)
{
	mr_auto(record_edit_done) struct record_edit e = { 0 };

	EXPECT(MR_OK, record_edit_begin(&e, &b->room, kind, owner, name, &err));
	buf_addf(&e.text, "Subscriber: agent-%zu\n", agent);
	EXPECT(MR_OK, record_edit_save(&e, &err));
}

static void
work_subscribe(struct box *b, void *arg)
{
	size_t agent = *(size_t *)arg;

	subscribe(b, "channel", "", "news", agent);
	subscribe(b, "group", "", "ops", agent);
	subscribe(b, "due", "rig/bob", "x", agent);
}

static void
fifty_processes_change_one_record_and_nothing_is_lost(void **state)
{
	struct box *b = *state;
	static const char *const files[] = { "channels/news/settings", "groups/ops", "records/due/rig%2Fbob/x" };
	pid_t children[50];
	size_t number[50];

	for (size_t i = 0; i < 50; i++) {
		number[i] = i;
		children[i] = box_fork(b, work_subscribe, &number[i]);
	}
	for (size_t i = 0; i < 50; i++)
		box_join(children[i]);
	for (size_t f = 0; f < 3; f++) {
		mr_auto(buf_done) struct buf text = BUF_INIT;

		EXPECT(MR_OK, file_read(maildir_of(&b->room)->root_fd, files[f], 1 << 20, &text, &err));
		for (size_t i = 0; i < 50; i++) {
			char line[40];

			(void)snprintf(line, sizeof(line), "Subscriber: agent-%zu\n", i);
			if (strstr(buf_z(&text), line) == NULL)
				fail_msg("'%s' lost agent-%zu", files[f], i);
		}
	}
}

static void
asking_for_what_is_not_there_leaves_nothing_behind(void **state)
{
	struct box *b = *state;
	size_t removed = 0;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	EXPECT(MR_NOTFOUND, maildir_record_get(&b->room, "channel", "", "none", &text, &err));
	EXPECT(MR_NOTFOUND, maildir_remove(&b->room,
				&(struct removal){ .what = REMOVE_POSTS, .box = "none", .below = 5 }, &removed, &err));
	EXPECT(MR_NOTFOUND,
	    maildir_remove(&b->room, &(struct removal){ .what = REMOVE_POSTS, .box = "../agents/bob", .below = 5 },
		&removed, &err));
	EXPECT(MR_REFUSED, maildir_channel_make(&b->room, "../x", &err));
	EXPECT(MR_REFUSED, maildir_record_put(&b->room, "channel", "", "a/b", STR("x"), &err));
	EXPECT(MR_REFUSED, maildir_record_put(&b->room, "queue", "", "../b", STR("x"), &err));
	EXPECT(MR_REFUSED, maildir_record_put(&b->room, "queue", "", "a/b/c", STR("x"), &err));
	assert_false(box_has(b, "channels/none"));
	assert_false(box_has(b, "queues/a%2Fb%2Fc"));
}

static void
work_hold_lock(struct box *b, void *arg)
{
	struct channel c = CHANNEL_INIT;

	(void)arg;
	EXPECT(MR_OK, channel_open(&c, maildir_of(&b->room), "news", CHANNEL_SHARED, &err));
	box_write(b, "locked", "");
	(void)poll(NULL, 0, 300);
	channel_done(&c);
}

static void
a_poster_that_looks_for_its_number_delays_retention_but_no_other_poster(void **state)
{
	struct box *b = *state;

	post_some(b, 3);
	pid_t child = box_fork(b, work_hold_lock, NULL);

	while (!box_has(b, "locked"))
		(void)poll(NULL, 0, 1);
	int64_t start_ms = clock_boot_ms();

	post_some(b, 1);
	assert_true(clock_boot_ms() - start_ms < 10000);
	assert_int_equal(drop(b, 3), 2);
	assert_true(clock_boot_ms() - start_ms >= 200);
	box_join(child);
	assert_ends(b, 3, 4, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_follower_sees_every_post_of_eight_posters_once_and_in_order),
		CASE(numbers_are_never_used_twice_while_retention_removes_them),
		CASE(fifty_processes_change_one_record_and_nothing_is_lost),
		CASE(asking_for_what_is_not_there_leaves_nothing_behind),
		CASE(a_poster_that_looks_for_its_number_delays_retention_but_no_other_poster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
