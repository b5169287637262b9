/* SPDX-License-Identifier: MIT */
/* agents.c - names and their lives. */
#include "suite.h"

static enum mr_rc
try_add(struct world *w, const char *name, struct mr_error *err)
{
	struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	return w->ops->add_agent(w->room, &agent, err);
}

static enum mr_rc
try_life(struct world *w, const char *name, unsigned life, struct mr_error *err)
{
	struct mr_agent agent = { .life = life, .worktree = "", .session = "", .host = "", .role = "", .wake = "" };
	size_t returned = 0;

	(void)snprintf(agent.name, sizeof agent.name, "%s", name);
	return w->ops->take_life(w->room, &agent, &returned, err);
}

static bool
collect_name(void *ctx, const struct mr_agent *agent)
{
	return names_add(ctx, str_of(agent->name));
}

static void
names_are_taken_once(void **state)
{
	struct world *w = *state;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct mr_agent found = { 0 };

	add_agent(w, "bob");
	EXPECT(MR_EXISTS, try_add(w, "bob", &err));
	add_agent(w, "rig/witness"); /* below a name that is nobody's */
	add_agent(w, "rig");
	EXPECT(MR_OK, w->ops->each_agent(w->room, false, collect_name, &names, &err));
	assert_int_equal(names.n, 3);
	assert_true(names_has(&names, "bob") && names_has(&names, "rig") && names_has(&names, "rig/witness"));
	EXPECT(MR_OK, w->ops->find_agent(w->room, "bob", &found, &err));
	assert_string_equal(found.name, "bob");
	assert_string_equal(found.role, "tester");
	assert_string_equal(found.wake, "");
	assert_int_equal(found.life, 0);
	assert_true(found.created_ms > 0);
	arena_free(found.own);
	EXPECT(MR_NOTFOUND, w->ops->find_agent(w->room, "carol", &found, &err));
}

static void
names_that_differ_only_in_case_are_refused(void **state)
{
	struct world *w = *state;

	add_agent(w, "bob");
	EXPECT(MR_REFUSED, try_add(w, "Bob", &err));
	struct letter letter = { .to = { "BOB" }, .make_mailboxes = true };

	EXPECT(MR_REFUSED, try_send(w, &letter, NULL, &err));
	assert_int_equal(count_in(w, "bob", MR_INBOX), 0);
}

static void
numbers_of_lives_only_grow(void **state)
{
	struct world *w = *state;
	struct mr_agent found = { 0 };

	add_agent(w, "bob");
	EXPECT(MR_NOTFOUND, try_life(w, "carol", 1, &err));
	assert_int_equal(take_life(w, "bob", 1), 0);
	EXPECT(MR_EXISTS, try_life(w, "bob", 1, &err));
	EXPECT(MR_OK, w->ops->check_life(w->room, "bob", 1, NULL, NULL, &err));
	assert_int_equal(take_life(w, "bob", 2), 0);
	EXPECT(MR_EXISTS, try_life(w, "bob", 1, &err));
	EXPECT(MR_EXISTS, try_life(w, "bob", 2, &err));
	EXPECT(MR_REFUSED, w->ops->check_life(w->room, "bob", 1, NULL, NULL, &err));
	EXPECT(MR_OK, w->ops->check_life(w->room, "bob", 2, NULL, NULL, &err));
	for (unsigned life = 3; life <= 11; life++) /* 10 comes after 9 */
		(void)take_life(w, "bob", life);
	EXPECT(MR_OK, w->ops->find_agent(w->room, "bob", &found, &err));
	assert_int_equal(found.life, 11);
	assert_string_equal(found.worktree, "/tree");
	assert_string_equal(found.session, "test-1");
	assert_string_equal(found.host, "here");
	assert_true(found.started_ms > 0 && found.seen_ms > 0);
	arena_free(found.own);
}

static void
what_is_known_of_a_life_can_change(void **state)
{
	struct world *w = *state;
	struct mr_agent resumed = { .name = "bob",
		.life = 1,
		.worktree = "/other",
		.session = "test-2",
		.host = "here",
		.role = "",
		.wake = "",
		.process = { .pid = 42, .start = 7, .pid_ns = 9, .boot = "b" } };
	struct mr_agent found = { 0 };

	add_agent(w, "bob");
	(void)take_life(w, "bob", 1);
	w->ops->seen(w->room, "bob", 1, MR_DOOR_HOOK);
	EXPECT(MR_OK, w->ops->find_agent(w->room, "bob", &found, &err));
	assert_int_equal(found.door, MR_DOOR_HOOK);
	arena_free(found.own);
	EXPECT(MR_OK, w->ops->update_agent(w->room, &resumed, &err));
	EXPECT(MR_OK, w->ops->find_agent(w->room, "bob", &found, &err));
	assert_int_equal(found.life, 1);
	assert_string_equal(found.worktree, "/other");
	assert_string_equal(found.session, "test-2");
	assert_int_equal(found.process.pid, 42);
	assert_int_equal(found.process.start, 7);
	assert_string_equal(found.process.boot, "b");
	arena_free(found.own);
}

static void
pruning_moves_unread_mail_to_dead_letters(void **state)
{
	struct world *w = *state;
	char read[MR_ID_LEN + 1], unread[MR_ID_LEN + 1], held[MR_ID_LEN + 1];
	struct mr_agent found = { 0 };
	size_t dead = 0;

	add_agent(w, "bob");
	(void)take_life(w, "bob", 1);
	send_to(w, "bob", "read", read);
	send_to(w, "bob", "unread", unread);
	send_to(w, "bob", "held", held);
	EXPECT(MR_OK, w->ops->mark(w->room, "bob", read, MR_SEEN, 0, 0, &err));
	struct claim hold = hold_ok(w, "bob", held, 1, 60000);

	EXPECT(MR_OK, w->ops->remove_box(w->room, "bob", false, &dead, &err));
	assert_int_equal(dead, 2);
	assert_int_equal(count_in(w, "", MR_DEAD), 2);
	EXPECT(MR_NOTFOUND, w->ops->find_agent(w->room, "bob", &found, &err));
	EXPECT(MR_NOTFOUND, w->ops->settle(w->room, &hold, SETTLE_DONE, &err));
	EXPECT(MR_NOTFOUND, w->ops->remove_box(w->room, "bob", false, &dead, &err));
	EXPECT(MR_NOTFOUND, try_send(w, &(struct letter){ .to = { "bob" } }, NULL, &err));
	struct mr_message msg = fetch_ok(w, "", unread, MR_DEAD);

	assert_memory_equal(msg.body, "unread", 6);
	assert_int_equal(msg.folder, MR_DEAD);
	mr_message_done(&msg);
}

static void
numbers_of_lives_survive_pruning(void **state)
{
	struct world *w = *state;
	size_t dead = 9;

	add_agent(w, "bob");
	(void)take_life(w, "bob", 1);
	(void)take_life(w, "bob", 2);
	EXPECT(MR_OK, w->ops->remove_box(w->room, "bob", false, &dead, &err));
	assert_int_equal(dead, 0);
	add_agent(w, "bob");
	EXPECT(MR_EXISTS, try_life(w, "bob", 2, &err));
	EXPECT(MR_OK, try_life(w, "bob", 3, &err));
}

const struct suite_case agent_cases[] = {
	CASE(names_are_taken_once, ROOM_REGISTER),
	CASE(names_that_differ_only_in_case_are_refused, ROOM_REGISTER),
	CASE(numbers_of_lives_only_grow, ROOM_REGISTER | ROOM_HOLDS),
	CASE(what_is_known_of_a_life_can_change, ROOM_REGISTER | ROOM_HOLDS),
	CASE(pruning_moves_unread_mail_to_dead_letters, ROOM_REGISTER | ROOM_HOLDS),
	CASE(numbers_of_lives_survive_pruning, ROOM_REGISTER | ROOM_HOLDS),
	{ 0 },
};
