/* SPDX-License-Identifier: MIT */
/* faults.c - promise 2: a send that failed has left nothing behind, or is completed. */
#include "suite.h"
#include "base/sys.h"
#include "support/sys_fault.h"
#include <errno.h>

static void
a_failed_call_leaves_nothing_visible(void **state)
{
	struct world *w = *state;
	struct letter letter = { .to = { "bob", "carol" } };
	struct delivered done = { 0 };
	struct claim hold = { 0 };
	struct claim_terms terms = { .kind = CLAIM_LEASE, .life = 1, .lease_ms = 60000, .session = "" };

	add_agent(w, "bob");
	add_agent(w, "carol");
	(void)take_life(w, "bob", 1);
	w->plan = (struct room_fault){ .fail_at = 2, .code = MR_FULL };
	EXPECT(MR_OK, try_send(w, &letter, &done, &err));
	EXPECT(MR_FULL, try_send(w, &letter, NULL, &err));
	assert_int_equal(w->plan.calls, 2);
	assert_int_equal(count_unread(w, "bob"), 1);
	assert_int_equal(count_unread(w, "carol"), 1);

	w->plan = (struct room_fault){ .fail_at = 1, .for_good = true, .code = MR_IO };
	EXPECT(MR_IO, w->ops->mark(w->room, "bob", done.id, MR_SEEN, 0, 0, &err));
	EXPECT(MR_IO, w->ops->claim(w->room, "bob", done.id, &terms, &hold, &err));
	EXPECT(MR_IO, w->ops->mark(w->room, "bob", done.id, 0, 0, MR_ARCHIVE, &err));
	EXPECT(MR_IO, w->ops->record_put(w->room, "due", "bob", "x", STR("y"), &err));
	assert_int_equal(w->plan.calls, 4);
	w->plan = (struct room_fault){ 0 };
	assert_int_equal(count_unread(w, "bob"), 1);
	EXPECT(MR_NOTFOUND, w->ops->record_drop(w->room, "due", "bob", "x", &err));
}

/* One send with system call `at` failing. False: the send was over before that call. */
static bool
send_with_fault(const struct room_driver *driver, const struct letter *letter, unsigned long at)
{
	struct world *w = world_new(driver, SUITE_FAULT);
	struct mr_error failure = { 0 };

	add_agent(w, "alice");
	add_agent(w, "bob");
	add_agent(w, "carol");
	sys_plan_set(&(struct sys_plan){ .fault = SYS_FAULT_ERRNO, .at = at, .error = EIO });
	enum mr_rc rc = try_send(w, letter, NULL, &failure);
	bool hit = sys_plan_hit();

	sys_plan_set(NULL);
	EXPECT(MR_OK, w->ops->sweep(w->room, NULL, &err));
	size_t each = rc == MR_OK || rc == MR_INDOUBT ? 1 : 0;

	for (size_t i = 0; i < 4 && letter->to[i]; i++)
		if (count_in(w, letter->to[i], MR_INBOX) != each)
			fail_msg("system call %lu failed, send was %s (%s), '%s' has %zu", at, mr_rc_word(rc),
			    failure.message, letter->to[i], count_in(w, letter->to[i], MR_INBOX));
	if (letter->key) { /* a retry completes it, once, whatever happened */
		EXPECT(MR_OK, try_send(w, letter, NULL, &err));
		for (size_t i = 0; i < 4 && letter->to[i]; i++)
			assert_int_equal(count_in(w, letter->to[i], MR_INBOX), 1);
	}
	world_free(w);
	return hit;
}

static void
a_failed_system_call_refuses_the_send_or_completes_it(void **state)
{
	const struct world *w = *state;
	static const struct letter letters[] = {
		{ .to = { "bob" } },
		{ .to = { "bob", "carol" } },
		{ .to = { "bob", "carol" }, .key = "k" },
	};

	for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
		unsigned long points = 0;

		while (send_with_fault(w->room->inner, &letters[i], points + 1))
			points++;
		if (w->folder[0] != '\0')
			assert_true(points > 3); /* a harness that injects nothing also passes */
	}
}

const struct suite_case fault_cases[] = {
	CASE(a_failed_call_leaves_nothing_visible, ROOM_REGISTER | ROOM_HOLDS | ROOM_ARCHIVE),
	CASE(a_failed_system_call_refuses_the_send_or_completes_it, ROOM_REGISTER | ROOM_KEYS),
	{ 0 },
};
