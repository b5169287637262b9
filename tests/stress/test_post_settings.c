/* SPDX-License-Identifier: MIT */
/* Settings that fifty processes change at once. */
#include "stress/post.h"

struct changes {
	struct crowd room;
	atomic_uint waiting;
};

static void
change_everything(void *ctx, unsigned number)
{
	struct changes *c = ctx;
	struct mr_room *room = crowd_open(&c->room);
	struct mr_self self = self_number(room, "agent", number);
	struct mr_error err = { 0 };
	bool changed = false;

	atomic_fetch_add(&c->waiting, 1);
	while (atomic_load(&c->waiting) < FIFTY)
		crowd_nap_us(200);
	MUST(mr_channel_subscribe(room, "news", self.agent, true, &changed, &err));
	if (!changed)
		crowd_die("subscribed before", NULL);
	MUST(mr_group_change(room, "joined", true, (const char *const[]){ self.agent, NULL }, &changed, &err));
	if (!changed)
		crowd_die("member before", NULL);
	MUST(mr_group_change(room, "left", false, (const char *const[]){ self.agent, NULL }, &changed, &err));
	if (!changed)
		crowd_die("no member before", NULL);
	MUST(mr_queue_set_status(room, "jobs", number % 2 ? MR_QUEUE_PAUSED : MR_QUEUE_ACTIVE, &err));
	mr_room_close(room);
}

static bool
has_name(const struct mr_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->v[i], name) == 0)
			return true;
	return false;
}

static void
check_changes(struct mr_room *room)
{
	struct mr_error err = { 0 };
	struct mr_channel news = { 0 };
	struct mr_group joined = { 0 }, left = { 0 };
	struct mr_queue work = { 0 };

	assert_int_equal(mr_channel_get(room, "news", &news, &err), MR_OK);
	assert_int_equal(mr_group_get(room, "joined", &joined, &err), MR_OK);
	assert_int_equal(mr_group_get(room, "left", &left, &err), MR_OK);
	assert_int_equal(mr_queue_get(room, "jobs", &work, &err), MR_OK);
	assert_int_equal(news.subscribers.n, FIFTY);
	assert_int_equal(news.retain_count, 77);
	assert_int_equal(joined.members.n, FIFTY);
	assert_int_equal(left.members.n, 0);
	for (unsigned i = 0; i < FIFTY; i++) {
		struct mr_self self = self_number(room, "agent", i);

		assert_true(has_name(&news.subscribers, self.agent));
		assert_true(has_name(&joined.members, self.agent));
	}
	assert_int_equal(work.max_claims, 5);
	assert_int_equal(work.attempts, 7);
	assert_int_equal(work.lease_ms, 90000);
	assert_true(work.by_priority);
	assert_string_equal(work.claimers, "agent1");
	assert_in_range(work.status, MR_QUEUE_ACTIVE, MR_QUEUE_PAUSED);
	mr_channel_done(&news);
	mr_group_done(&joined);
	mr_group_done(&left);
	mr_queue_done(&work);
}

static void
fifty_subscribe_join_leave_and_change_settings_at_once_and_nothing_is_lost(void **state)
{
	(void)state;
	struct changes *c = crowd_share(sizeof(*c));
	struct mr_error err = { 0 };

	c->room = post_room("none", "agent", FIFTY);
	struct mr_room *room = crowd_open(&c->room);
	struct mr_self alice = crowd_self(room, "alice");

	assert_int_equal(mr_channel_create(room, &alice, "news", 77, 0, &err), MR_OK);
	assert_int_equal(mr_group_create(room, &alice, "joined", (const char *const[]){ NULL }, &err), MR_OK);
	assert_int_equal(mr_group_create(room, &alice, "left", fifty_names(), &err), MR_OK);
	make_queue(room, &alice,
	    (struct mr_queue){
		.claimers = "agent1", .by_priority = true, .max_claims = 5, .lease_ms = 90000, .attempts = 7 });
	assert_int_equal(crowd_run(FIFTY, change_everything, c), 0);
	check_changes(room);
	mr_room_close(room);
	crowd_done(&c->room);
	(void)munmap(c, sizeof(*c));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifty_subscribe_join_leave_and_change_settings_at_once_and_nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
