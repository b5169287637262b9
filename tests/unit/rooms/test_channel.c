/* SPDX-License-Identifier: MIT */
/* Channels and shared records of the native driver: many at once, killed anywhere, with files that lie. */
#include "box.h"
#include "base/clock.h"
#include "rooms/maildir/channel.h"
#include <inttypes.h>
#include <poll.h>

#define POSTERS 8u
#define POSTS_EACH 40u
#define SLOW_POSTS 15u

static int
setup(void **state)
{
	if (box_setup(state) != 0)
		return -1;
	struct box *b = *state;

	EXPECT(MR_OK, maildir_channel_make(&b->room, "news", &err));
	return 0;
}

/* ---- Posting and reading ---- */

static enum mr_rc
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

static void
post(struct box *b, char ret_id[MR_ID_LEN + 1])
{
	id_new(ret_id);
	EXPECT(MR_OK, send_post(b, ret_id, false, &err));
}

static void
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

static bool
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

static void
read_on(struct box *b, struct reading *r)
{
	EXPECT(MR_OK, maildir_channel_scan(&b->room, "news", r->last, SCAN_HEADERS, note, r, &err));
}

static struct reading
read_all(struct box *b)
{
	struct reading r = { 0 };

	read_on(b, &r);
	return r;
}

static void
assert_ends(struct box *b, uint64_t first, uint64_t last, size_t count)
{
	uint64_t have_first = 99, have_last = 99;
	size_t have = 99;

	EXPECT(MR_OK, maildir_channel_range(&b->room, "news", &have_first, &have_last, &have, &err));
	assert_int_equal(have_first, first);
	assert_int_equal(have_last, last);
	assert_int_equal(have, count);
}

static size_t
drop(struct box *b, uint64_t below)
{
	size_t removed = 0;

	EXPECT(MR_OK, maildir_channel_drop(&b->room, "news", below, &removed, &err));
	return removed;
}

/* ---- Many at once ---- */

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
		EXPECT(MR_OK, maildir_channel_drop(&b->room, "news", last + 1, &removed, &err));
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

static enum mr_rc
subscribe(void *ctx, bool exists, struct buf *text, struct mr_error *err)
{
	(void)exists;
	(void)err;
	buf_addf(text, "Subscriber: agent-%zu\n", *(size_t *)ctx);
	return MR_OK;
}

static void
work_subscribe(struct box *b, void *arg)
{
	EXPECT(MR_OK, maildir_record_change(&b->room, "channel", "", "news", subscribe, arg, &err));
	EXPECT(MR_OK, maildir_record_change(&b->room, "group", "", "ops", subscribe, arg, &err));
	EXPECT(MR_OK, maildir_record_change(&b->room, "due", "rig/bob", "x", subscribe, arg, &err));
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
	EXPECT(MR_NOTFOUND, maildir_channel_drop(&b->room, "none", 5, &removed, &err));
	EXPECT(MR_NOTFOUND, maildir_channel_drop(&b->room, "../agents/bob", 5, &removed, &err));
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
	assert_true(clock_boot_ms() - start_ms < 200);
	assert_int_equal(drop(b, 3), 2);
	assert_true(clock_boot_ms() - start_ms >= 200);
	box_join(child);
	assert_ends(b, 3, 4, 2);
}

/* ---- Killed, or refused by the kernel, anywhere ---- */

struct blow {
	struct sys_plan plan;
	char id[MR_ID_LEN + 1];
	uint64_t below; /* for a drop */
};

static void
work_post_with_blow(struct box *b, void *arg)
{
	const struct blow *blow = arg;
	struct mr_error err = { 0 };

	sys_plan_set(&blow->plan);
	enum mr_rc rc = send_post(b, blow->id, true, &err);
	bool hit = sys_plan_hit();

	sys_plan_set(NULL);
	_exit(hit ? rc == MR_OK ? 2 : rc == MR_INDOUBT ? 3 : 4 : 0);
}

/* The status that it ended with; -1: killed. */
static int
end_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static size_t
bobs_copies(struct box *b, const char *id)
{
	mr_auto(mailbox_done) struct mailbox box = box_mailbox(b);
	mr_auto(listing_done) struct listing l = { 0 };

	EXPECT(MR_OK, list_folders(&box, MR_INBOX, false, id, &l, &err));
	return l.n;
}

static void
post_with_every_blow(struct box *b, struct sys_plan plan)
{
	struct reading before = read_all(b);
	size_t expected = before.n;
	int end = 1;

	mr_names_done(&before.ids);

	for (plan.at = 1; end != 0; plan.at++) {
		struct blow blow = { .plan = plan };
		char id[MR_ID_LEN + 1];

		id_new(blow.id);
		end = end_of(box_fork(b, work_post_with_blow, &blow));
		EXPECT(MR_OK, maildir_recover(&b->room, &err));
		post(b, id);
		struct reading r = read_all(b); /* no hole, nothing twice */
		bool posted = names_has(&r.ids, blow.id);

		assert_true(names_has(&r.ids, id));
		assert_int_equal(posted, bobs_copies(b, blow.id)); /* both or neither */
		if (end == 0 || end == 2 || end == 3)
			assert_true(posted);
		if (end == 4 && posted)
			fail_msg("refused at call %lu, but posted", plan.at);
		expected += 1 + posted;
		assert_int_equal(r.n, expected);
		assert_int_equal(r.last, expected);
		mr_names_done(&r.ids);
	}
	assert_true(plan.at > 20); /* a harness that injects nothing also passes */
}

static void
a_post_killed_anywhere_leaves_no_hole_and_no_double(void **state)
{
	post_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE });
	post_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER });
}

static void
a_post_that_the_kernel_refuses_anywhere_leaves_no_hole_and_no_double(void **state)
{
	post_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_ERRNO, .error = EIO });
}

static void
work_drop_with_blow(struct box *b, void *arg)
{
	const struct blow *blow = arg;
	struct mr_error err = { 0 };
	size_t removed = 0;

	sys_plan_set(&blow->plan);
	(void)maildir_channel_drop(&b->room, "news", blow->below, &removed, &err);
	bool hit = sys_plan_hit();

	sys_plan_set(NULL);
	_exit(hit ? 2 : 0);
}

static void
drop_with_every_blow(struct box *b, struct sys_plan plan, bool all)
{
	struct reading before = read_all(b);
	uint64_t last = before.last;
	int end = 1;

	mr_names_done(&before.ids);

	for (plan.at = 1; end != 0; plan.at++) {
		post_some(b, 4);
		last += 4;
		struct blow blow = { .plan = plan, .below = all ? last + 1 : last - 1 };

		end = end_of(box_fork(b, work_drop_with_blow, &blow));
		post_some(b, 1);
		last++;
		struct reading r = read_all(b);

		assert_int_equal(r.last, last); /* the next number, whatever is left */
		mr_names_done(&r.ids);
	}
	assert_true(plan.at > 10);
}

static void
retention_killed_anywhere_leaves_no_hole_and_no_number_to_be_used_again(void **state)
{
	drop_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE }, false);
	drop_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER }, true);
	drop_with_every_blow(*state, (struct sys_plan){ .fault = SYS_FAULT_ERRNO, .error = EIO }, true);
}

/* ---- Not by link ---- */

static size_t
files_in(struct box *b)
{
	struct channel c = CHANNEL_INIT;
	struct post_list list = { 0 };

	EXPECT(MR_OK, channel_open(&c, maildir_of(&b->room), "news", CHANNEL_UNLOCKED, &err));
	EXPECT(MR_OK, post_list_read(&c, 0, &list, &err));
	size_t n = list.n;

	post_list_done(&list);
	channel_done(&c);
	return n;
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

	maildir_watch_wait(&b->room, watch, 10000);
	assert_true(clock_boot_ms() - start_ms < 1000);
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
	struct claim_terms terms = { .hold = { .kind = HOLD_LEASE, .lease_ms = 60000, .session = "" },
		.claimer = "bob" };
	void *watch = NULL;

	EXPECT(MR_NOTFOUND, maildir_watch(&b->room, "queue:builds", &watch, &err));
	EXPECT(MR_OK, maildir_record_put(&b->room, "queue", "", "builds", STR("Status: active\n"), &err));
	EXPECT(MR_OK, maildir_watch(&b->room, "queue:builds", &watch, &err));
	for (int i = 0; i < 3; i++) { /* the first makes a bucket, the next find it */
		struct hold hold = { 0 };
		pid_t child = box_fork(b, work_send_work, NULL);
		int64_t start_ms = clock_boot_ms();
		enum mr_rc rc = MR_EMPTY;

		while (rc == MR_EMPTY && clock_boot_ms() - start_ms < 10000) {
			struct mr_error err = { 0 };

			maildir_watch_wait(&b->room, watch, 10000);
			rc = maildir_queue_claim(&b->room, "builds", &terms, &hold, &err);
		}
		assert_int_equal(rc, MR_OK);
		assert_true(clock_boot_ms() - start_ms < 1000);
		box_join(child);
	}
	maildir_watch_close(&b->room, watch);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, box_teardown)
		CASE(a_follower_sees_every_post_of_eight_posters_once_and_in_order),
		CASE(numbers_are_never_used_twice_while_retention_removes_them),
		CASE(fifty_processes_change_one_record_and_nothing_is_lost),
		CASE(asking_for_what_is_not_there_leaves_nothing_behind),
		CASE(a_poster_that_looks_for_its_number_delays_retention_but_no_other_poster),
		CASE(a_post_killed_anywhere_leaves_no_hole_and_no_double),
		CASE(a_post_that_the_kernel_refuses_anywhere_leaves_no_hole_and_no_double),
		CASE(retention_killed_anywhere_leaves_no_hole_and_no_number_to_be_used_again),
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
