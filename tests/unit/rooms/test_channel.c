/* SPDX-License-Identifier: MIT */
/* Channels of the native driver: files that lie, copies instead of links, removal, watches. */
#include "support/sys_fault.h"
#include "rooms/maildir/maildir.h"
#include "posts.h"

/* ---- Not by link ---- */

static size_t
files_in(struct box *b)
{
	struct channel c = CHANNEL_INIT;
	struct posts posts;

	EXPECT(MR_OK, channel_open(&c, maildir_of(&b->room), "news", CHANNEL_UNLOCKED, &err));
	EXPECT(MR_OK, channel_posts(&c, 0, &posts, &err));
	channel_done(&c);
	return posts.n;
}

static void
where_no_link_is_possible_a_copy_is_posted_and_known_again(void **state)
{
	struct box *b = *state;
	struct maildir *md = maildir_of(&b->room);
	size_t copies = 0;

	for (unsigned long at = 1;; at++) {
		char name[32], text[160];
		struct mr_error failure = { 0 };
		struct stat st;
		bool has = true;
		int fd = -1;

		(void)snprintf(name, sizeof(name), "letter-%lu", at);
		(void)snprintf(text, sizeof(text), "From: a@town\nSubject: %lu\n\nhi\n", at);
		box_write(b, name, text);
		EXPECT(MR_OK, channel_has(md, "news", md->root_fd, name, &has, &err));
		assert_false(has);
		size_t before = files_in(b);

		sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EXDEV });
		enum mr_rc rc =
		    channel_give(&b->room, "news", md->root_fd, name, "01k9w3b7zq8m4c2v6t1x5n0prs", &fd, &failure);
		bool hit = sys_plan_hit();

		sys_plan_set(NULL);
		sys_close_fd(&fd);
		EXPECT(MR_OK, channel_has(md, "news", md->root_fd, name, &has, &err));
		assert_int_equal(has, rc == MR_OK);
		assert_int_equal(files_in(b), before + (rc == MR_OK));
		assert_int_equal(stat(box_path(b, name), &st), 0);
		copies += rc == MR_OK && st.st_nlink == 1;
		if (!hit)
			break;
		post_some(b, 1); /* notes the ends again, if that was the call */
	}
	assert_int_equal(copies, 1); /* one of the calls is the link */
}

/* ---- Files that lie ---- */

static void
a_note_of_the_ends_is_never_trusted(void **state)
{
	struct box *b = *state;
	static const char *const lies[] = { "", "x", "000000000001 000000000002\n", "000000000009 000000000900\n",
		"000000000003 000000000001\n", "garbage garbage garbage garbage\n" };
	uint64_t last = 12;

	post_some(b, 12);
	assert_int_equal(drop(b, 5), 4);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		box_write(b, "channels/news/.ends", lies[i]);
		assert_ends(b, 5, last, (size_t)last - 4);
		struct reading r = read_all(b);

		assert_int_equal(r.first, 5);
		assert_int_equal(r.n, last - 4);
		mr_names_done(&r.ids);
		post_some(b, 1);
		last++;
		box_write(b, "channels/news/.ends", lies[i]);
		assert_int_equal(drop(b, 5), 0);
		assert_ends(b, 5, last, (size_t)last - 4);
	}
	assert_int_equal(unlink(box_path(b, "channels/news/.ends")), 0);
	post_some(b, 1);
	assert_ends(b, 5, last + 1, (size_t)last - 3);
}

static bool
note_numbers(void *ctx, uint64_t number, const struct mr_message *msg)
{
	buf_addf(ctx, " %" PRIu64, number);
	(void)msg;
	return true;
}

static void
what_cannot_be_read_is_told_and_the_rest_is_shown(void **state)
{
	struct box *b = *state;
	mr_auto(buf_done) struct buf numbers = BUF_INIT;
	struct mr_error told = { 0 };

	post_some(b, 9);
	assert_int_equal(unlink(box_path(b, "channels/news/posts/000000000003")), 0);
	assert_int_equal(unlink(box_path(b, "channels/news/posts/000000000005")), 0);
	assert_int_equal(symlink("../../../room", box_path(b, "channels/news/posts/000000000005")), 0);
	assert_int_equal(unlink(box_path(b, "channels/news/posts/000000000007")), 0);
	assert_int_equal(mkfifo(box_path(b, "channels/news/posts/000000000007"), 0600), 0);
	box_write(b, "channels/news/posts/7", "Subject: not our spelling\n\n");
	assert_int_equal(
	    maildir_channel_scan(&b->room, "news", 0, SCAN_BODIES, note_numbers, &numbers, &told), MR_CORRUPT);
	assert_non_null(strstr(told.message, "post 3 is missing"));
	assert_string_equal(buf_z(&numbers), " 1 2 4 6 8 9");
	buf_clear(&numbers);
	EXPECT(MR_OK, maildir_channel_scan(&b->room, "news", 7, SCAN_BODIES, note_numbers, &numbers, &err));
	assert_string_equal(buf_z(&numbers), " 8 9");
	assert_int_equal(drop(b, 9), 7);
	assert_ends(b, 9, 9, 1);
}

static void
a_purged_post_keeps_its_number(void **state)
{
	struct box *b = *state;
	mr_auto(buf_done) struct buf numbers = BUF_INIT;

	post_some(b, 3);
	assert_int_equal(unlink(box_path(b, "channels/news/posts/000000000003")), 0);
	box_write(b, "channels/news/posts/000000000003", "");
	post_some(b, 1);
	EXPECT(MR_OK, maildir_channel_scan(&b->room, "news", 0, SCAN_HEADERS, note_numbers, &numbers, &err));
	assert_string_equal(buf_z(&numbers), " 1 2 4");
}

/* ---- Making, removing, watching ---- */

static void
a_removed_channel_leaves_only_its_settings_to_the_office(void **state)
{
	struct box *b = *state;

	EXPECT(MR_OK, maildir_record_put(&b->room, "channel", "", "news", STR("Status: closed\n"), &err));
	post_some(b, 300);
	EXPECT(MR_OK, maildir_channel_remove(&b->room, "news", &err));
	assert_true(box_has(b, "channels/news/settings"));
	assert_false(box_has(b, "channels/news/posts"));
	assert_false(box_has(b, "channels/news/.ends"));
	EXPECT(MR_OK, maildir_record_drop(&b->room, "channel", "", "news", &err));
	assert_false(box_has(b, "channels/news"));
	EXPECT(MR_OK, maildir_record_put(&b->room, "channel", "", "news", STR("Status: active\n"), &err));
	post_some(b, 1); /* settings alone make a channel that works */
	assert_ends(b, 1, 1, 1);
}

static void
work_post_soon(struct box *b, void *arg)
{
	(void)arg;
	(void)poll(NULL, 0, 100);
	post_some(b, 1);
}

static void
a_watch_ends_when_something_is_posted(void **state)
{
	struct box *b = *state;
	void *watch = NULL;

	EXPECT(MR_NOTFOUND, maildir_watch(&b->room, "channel:none", &watch, &err));
	EXPECT(MR_OK, maildir_watch(&b->room, "channel:news", &watch, &err));
	pid_t child = box_fork(b, work_post_soon, NULL);
	int64_t start_ms = clock_boot_ms();

	maildir_watch_wait(&b->room, watch, 60000);
	assert_true(clock_boot_ms() - start_ms < 10000);
	box_join(child);
	maildir_watch_close(&b->room, watch);
	assert_ends(b, 1, 1, 1);
}

static void
work_send_work(struct box *b, void *arg)
{
	char *to[] = { (char[]){ "queue:builds" } };
	struct mr_names names = { to, 1 };
	struct mr_message msg = { .from = "alice",
		.subject = "work",
		.date_ms = clock_now_ms(),
		.type = "task",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.to = names,
		.body = "x\n",
		.body_len = 2 };
	struct delivery what = { .msg = &msg, .to = &names, .sender = "" };
	struct delivered ret = { 0 };

	(void)arg;
	(void)poll(NULL, 0, 100);
	id_new(msg.id);
	msg.thread = msg.id;
	EXPECT(MR_OK, maildir_deliver(&b->room, &what, &ret, &err));
}

static void
a_watch_ends_when_work_comes(void **state)
{
	struct box *b = *state;
	struct claim_terms terms = { .kind = CLAIM_LEASE, .lease_ms = 60000, .session = "", .claimer = "bob" };
	void *watch = NULL;

	EXPECT(MR_NOTFOUND, maildir_watch(&b->room, "queue:builds", &watch, &err));
	EXPECT(MR_OK, maildir_record_put(&b->room, "queue", "", "builds", STR("Status: active\n"), &err));
	EXPECT(MR_OK, maildir_watch(&b->room, "queue:builds", &watch, &err));
	for (int i = 0; i < 3; i++) { /* the first makes a bucket, the next find it */
		struct claim hold = { 0 };
		pid_t child = box_fork(b, work_send_work, NULL);
		int64_t start_ms = clock_boot_ms();
		enum mr_rc rc = MR_EMPTY;

		while (rc == MR_EMPTY && clock_boot_ms() - start_ms < 60000) {
			struct mr_error err = { 0 };

			maildir_watch_wait(&b->room, watch, 60000);
			rc = maildir_claim(&b->room, "queue:builds", NULL, &terms, &hold, &err);
		}
		assert_int_equal(rc, MR_OK);
		assert_true(clock_boot_ms() - start_ms < 10000);
		box_join(child);
	}
	maildir_watch_close(&b->room, watch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(where_no_link_is_possible_a_copy_is_posted_and_known_again),
		CASE(a_note_of_the_ends_is_never_trusted),
		CASE(what_cannot_be_read_is_told_and_the_rest_is_shown),
		CASE(a_purged_post_keeps_its_number),
		CASE(a_removed_channel_leaves_only_its_settings_to_the_office),
		CASE(a_watch_ends_when_something_is_posted),
		CASE(a_watch_ends_when_work_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
