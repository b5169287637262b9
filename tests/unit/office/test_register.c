/* SPDX-License-Identifier: MIT */
/* test_register.c - names and lives: who wins, who is refused, who goes on; counting; pruning. */
#include "scratch.h"

#include "base/clock.h"

#define PROCESSES 50
#define DAY_MS ((int64_t)24 * 3600 * 1000)

static enum mr_rc
try_register(struct scratch *s, const char *name, const struct mr_env *env, bool takeover, struct mr_registration *reg,
    struct mr_error *err)
{
	struct mr_register_options options = { .takeover = takeover, .role = "tester" };

	*err = (struct mr_error){ 0 };
	*reg = (struct mr_registration){ 0 };
	return mr_register(s->room, name, env, &options, reg, err);
}

static void
a_new_name_is_made_and_its_session_goes_on_with_it(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w");
	struct mr_registration reg = registered(s, "rig/crew/alice", &env);

	assert_true(reg.created);
	assert_false(reg.continued);
	assert_int_equal(reg.life, 1);
	reg = registered(s, "rig/crew/alice", &env);
	assert_false(reg.created);
	assert_true(reg.continued);
	assert_int_equal(reg.life, 1);
	env.session = "claude-code-after-clear";
	reg = registered(s, "rig/crew/alice", &env);
	assert_true(reg.continued);
	scratch_free(s);
	(void)state;
}

static void
a_live_name_is_refused_with_who_and_where_and_a_gone_one_given(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process one = harness_start(s), two = harness_start(s);
	struct mr_env a = env_of(s, "claude-code-aaa", &one, "/w"), b = env_of(s, "claude-code-bbb", &two, "/v");
	struct mr_registration reg = registered(s, "alice", &a);
	struct mr_error err = { 0 };

	assert_int_equal(try_register(s, "alice", &b, false, &reg, &err), MR_REFUSED);
	assert_says(err.message, "claude-code-aaa");
	assert_says(err.message, "in '/w");
	assert_says(err.hint, "mailroom takeover alice");
	harness_end(s, &one);
	assert_int_equal(try_register(s, "alice", &b, false, &reg, &err), MR_OK);
	assert_int_equal(reg.life, 2);
	assert_false(reg.created);
	assert_false(reg.continued);
	scratch_free(s);
	(void)state;
}

static void
a_plain_shells_life_goes_on_until_takeover(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env env = env_of(s, NULL, NULL, "/w");
	struct mr_registration reg = registered(s, "bob", &env);
	struct mr_error err = { 0 };

	assert_int_equal(reg.life, 1);
	assert_int_equal(try_register(s, "bob", &env, false, &reg, &err), MR_REFUSED);
	assert_says(err.hint, "takeover bob");
	assert_int_equal(try_register(s, "bob", &env, true, &reg, &err), MR_OK);
	assert_int_equal(reg.life, 2);
	scratch_free(s);
	(void)state;
}

static void
one_session_is_one_agent(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w");
	struct mr_registration reg = registered(s, "alice", &env);
	struct mr_error err = { 0 };

	assert_int_equal(try_register(s, "bob", &env, false, &reg, &err), MR_REFUSED);
	assert_says(err.message, "already is 'alice'");
	assert_says(err.hint, "takeover bob");
	struct mr_agent agent = { 0 };

	assert_int_equal(mr_agent_get(s->room, "bob", &agent, &err), MR_NOTFOUND);
	scratch_free(s);
	(void)state;
}

static void
a_takeover_makes_a_session_another_agent(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w");
	struct mr_registration reg = registered(s, "alice", &env);
	struct mr_error err = { 0 };
	struct mr_agent alice = { 0 }, bob = { 0 };

	assert_int_equal(try_register(s, "bob", &env, true, &reg, &err), MR_OK);
	assert_int_equal(mr_agent_get(s->room, "bob", &bob, &err), MR_OK);
	assert_string_equal(bob.session, "claude-code-aaa");
	assert_true(bob.process.pid == harness.pid);
	/* who it was is nobody's session any more, and gone with the process that did this: us */
	assert_int_equal(mr_agent_get(s->room, "alice", &alice, &err), MR_OK);
	assert_string_equal(alice.session, "");
	assert_true(alice.process.pid == getpid());
	/* and the way back */
	assert_int_equal(try_register(s, "alice", &env, true, &reg, &err), MR_OK);
	assert_int_equal(reg.life, 2);
	mr_agent_done(&alice);
	mr_agent_done(&bob);
	scratch_free(s);
	(void)state;
}

static void
reserved_and_bad_names_are_refused(void **state)
{
	static const char *const bad[] = { "operator", "human", "Overseer", "@overseer", "@all", "mailroom", "tmp",
		"a//b", "../a", "a b", "", "a/b/c/d/e", "rig/cur", ".hidden", "alice@elsewhere" };
	struct scratch *s = scratch_with_room();
	struct mr_env env = env_of(s, NULL, NULL, "/w");
	struct mr_registration reg = { 0 };
	struct mr_error err = { 0 };

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		if (try_register(s, bad[i], &env, true, &reg, &err) != MR_REFUSED)
			fail_msg("'%s' was not refused", bad[i]);
		assert_true(err.message[0] != '\0');
	}
	assert_int_equal(try_register(s, "operator", &env, false, &reg, &err), MR_REFUSED);
	assert_says(err.hint, "--as operator");
	registered(s, "Alice", &env);
	assert_int_equal(try_register(s, "alice", &env, true, &reg, &err), MR_REFUSED); /* only in case */
	registered(s, "mayor/", &env);
	env.as = "mayor";
	assert_is(s, &env, "mayor", 1);
	scratch_free(s);
	(void)state;
}

/* ---- Many at once ---- */

struct race {
	struct scratch *s;
	int go[2], stay[2];
	pid_t child[PROCESSES];
};

/* Every child is a harness of its own: it registers when all are there, reports, and stays alive. */
static void
race_start(struct race *r, struct scratch *s, const char *const *names, bool with_process)
{
	int report[2];

	r->s = s;
	assert_int_equal(pipe(r->go) | pipe(r->stay) | pipe(report), 0);
	for (int i = 0; i < PROCESSES; i++) {
		r->child[i] = fork();
		assert_true(r->child[i] >= 0);
		if (r->child[i] != 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		char session[40], byte, result;
		struct mr_registration reg = { 0 };
		struct mr_error err = { 0 };
		struct mr_env env = { .session = session, .worktree = "/w", .state_dir = s->state };
		struct mr_room *room = NULL;

		snprintf(session, sizeof session, "gemini-%d", i);
		if (with_process)
			(void)process_describe(getpid(), &env.process);
		close(r->go[1]);
		close(r->stay[1]);
		(void)!read(r->go[0], &byte, 1); /* until the parent closes it */
		result = 'x';
		if (mr_room_open(mr_room_spec(s->room), NULL, &room, &err) == MR_OK) {
			enum mr_rc rc = mr_register(room, names[i], &env, NULL, &reg, &err);

			result = rc == MR_OK ? 'w' : rc == MR_REFUSED ? 'r' : 'x';
			if (result == 'x')
				fprintf(stderr, "%s: %s\n", names[i], err.message);
		}
		(void)!write(report[1], &result, 1);
		(void)!read(r->stay[0], &byte, 1);
		_exit(0);
	}
	close(report[1]);
	close(r->go[0]);
	close(r->stay[0]);
	r->go[0] = report[0]; /* where the results come from */
	close(r->go[1]);
}

static void
race_count(struct race *r, int *ret_won, int *ret_refused)
{
	char result;

	*ret_won = *ret_refused = 0;
	for (int i = 0; i < PROCESSES; i++) {
		assert_int_equal(read(r->go[0], &result, 1), 1);
		*ret_won += result == 'w';
		*ret_refused += result == 'r';
	}
	close(r->go[0]);
	close(r->stay[1]);
	for (int i = 0; i < PROCESSES; i++)
		waitpid(r->child[i], NULL, 0);
}

static void
of_fifty_processes_that_want_one_name_one_gets_it(void **state)
{
	for (int with_process = 0; with_process < 2; with_process++) {
		struct scratch *s = scratch_with_room();
		const char *names[PROCESSES];
		struct race r = { 0 };
		int won, lost;

		for (int i = 0; i < PROCESSES; i++)
			names[i] = "rig/witness";
		race_start(&r, s, names, with_process);
		race_count(&r, &won, &lost);
		assert_int_equal(won, 1);
		assert_int_equal(lost, PROCESSES - 1);
		scratch_free(s);
	}
	(void)state;
}

static void
fifty_processes_with_fifty_names_all_get_theirs(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_error err = { 0 };
	char text[PROCESSES][40];
	const char *names[PROCESSES];
	struct mr_agents agents = { 0 };
	struct race r = { 0 };
	int won, lost, n = 0;

	for (int i = 0; i < PROCESSES; i++) { /* rig3, rig3/witness, rig3/crew/a ... */
		static const char *const below_rig[] = { "", "/witness", "/crew/a", "/crew", "/crew/a/x" };

		snprintf(text[i], sizeof text[i], "rig%d%s", i / 5, below_rig[i % 5]);
		names[i] = text[i];
	}
	race_start(&r, s, names, true);
	race_count(&r, &won, &lost);
	assert_int_equal(won, PROCESSES);
	assert_int_equal(mr_agent_list(s->room, &agents, &err), MR_OK);
	for (size_t i = 0; i < agents.n; i++)
		n += strcmp(agents.v[i].name, "operator") != 0 && agents.v[i].life == 1;
	assert_int_equal(n, PROCESSES);
	mr_list_done(&agents);
	scratch_free(s);
	(void)state;
}

/* ---- Counting ---- */

static void
send_one(struct scratch *s, const char *from, const char *to, enum mr_priority priority)
{
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };
	struct mr_receipt receipt = { 0 };
	struct mr_draft draft = {
		.to = (const char *[]){ to, NULL }, .body = "hi", .body_len = 2, .priority = priority
	};

	if (mr_self_named(s->room, from, &self, &err) != MR_OK ||
	    mr_send(s->room, &self, &draft, &receipt, &err) != MR_OK)
		fail_msg("%s", err.message);
	mr_receipt_done(&receipt);
}

static void
waiting_mail_is_counted_and_told_to_the_next_life(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env env = env_of(s, NULL, NULL, "/w");
	struct mr_registration reg = registered(s, "alice", &env);
	struct mr_counts counts = { 0 };
	struct mr_error err = { 0 };
	struct mr_self self = { 0 };
	struct mr_claim claim = { 0 };
	struct mr_message msg = { 0 };

	assert_int_equal(reg.unread, 0);
	assert_int_equal(mr_count(s->room, "alice", &counts, &err), MR_OK);
	assert_int_equal(counts.unread, 0);
	assert_int_equal(counts.oldest_unread_ms, 0);
	send_one(s, "operator", "alice", MR_NORMAL);
	send_one(s, "operator", "alice", MR_URGENT);
	send_one(s, "operator", "alice", MR_HIGH);
	assert_int_equal(mr_self_named(s->room, "alice", &self, &err), MR_OK);
	assert_int_equal(mr_recv(s->room, &self, NULL, 60000, &claim, &msg, &err), MR_OK);
	mr_message_done(&msg);
	assert_int_equal(mr_count(s->room, "alice", &counts, &err), MR_OK);
	assert_int_equal(counts.unread, 2);
	assert_int_equal(counts.held, 1);
	assert_int_equal(counts.urgent, 0); /* the urgent one is the one being worked on */
	assert_true(counts.oldest_unread_ms > 0 && counts.oldest_unread_ms <= clock_now_ms());
	assert_int_equal(try_register(s, "alice", &env, true, &reg, &err), MR_OK);
	assert_int_equal(reg.returned, 1);
	assert_int_equal(reg.unread, 3);
	assert_int_equal(mr_count(s->room, "alice", &counts, &err), MR_OK);
	assert_int_equal(counts.urgent, 1);
	scratch_free(s);
	(void)state;
}

/* ---- Pruning ---- */

struct pruned {
	int n;
	size_t dead;
	char last[MR_ADDRESS_MAX + 1];
};

static enum mr_rc
prune(struct scratch *s, struct mr_prune_options options, struct pruned *ret, struct mr_error *err)
{
	*ret = (struct pruned){ 0 };
	*err = (struct mr_error){ 0 };
	struct mr_prunings all = { 0 };
	enum mr_rc rc = mr_prune(s->room, &options, &all, err);

	for (size_t i = 0; i < all.n; i++) {
		ret->n++;
		ret->dead += all.v[i].dead;
		snprintf(ret->last, sizeof ret->last, "%s", all.v[i].name);
	}
	mr_list_done(&all);
	return rc;
}

static void
a_named_agent_goes_and_its_unread_mail_to_dead_letters(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env env = env_of(s, NULL, NULL, "/w");
	const char *alice[] = { "alice", NULL }, *unknown[] = { "alice", "alise", NULL },
		   *operator[] = { "human", NULL };
	struct pruned p;
	struct mr_error err;
	struct mr_agent agent = { 0 };

	registered(s, "alice", &env);
	registered(s, "bob", &env);
	send_one(s, "bob", "alice", MR_NORMAL);
	assert_int_equal(prune(s, (struct mr_prune_options){ .names = unknown }, &p, &err), MR_NOTFOUND);
	assert_int_equal(prune(s, (struct mr_prune_options){ .names = operator, .force = true }, &p, &err), MR_REFUSED);
	assert_int_equal(prune(s, (struct mr_prune_options){ .names = alice, .dry_run = true }, &p, &err), MR_OK);
	assert_int_equal(p.n, 1);
	assert_int_equal(p.dead, 1);
	assert_int_equal(mr_agent_get(s->room, "alice", &agent, &err), MR_OK); /* nothing was done so far */
	mr_agent_done(&agent);
	assert_int_equal(prune(s, (struct mr_prune_options){ .names = alice }, &p, &err), MR_OK);
	assert_string_equal(p.last, "alice");
	assert_int_equal(p.dead, 1);
	assert_int_equal(mr_agent_get(s->room, "alice", &agent, &err), MR_NOTFOUND);
	shell("test $(find '%s/.mailroom/dead/new' -type f | wc -l) = 1", s->path);
	scratch_free(s);
	(void)state;
}

static void
a_live_agent_is_pruned_only_by_force(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w");
	const char *names[] = { "alice", NULL };
	struct pruned p;
	struct mr_error err;

	registered(s, "alice", &env);
	assert_int_equal(prune(s, (struct mr_prune_options){ .names = names }, &p, &err), MR_REFUSED);
	assert_says(err.message, "claude-code-aaa");
	assert_int_equal(p.n, 0);
	assert_int_equal(prune(s, (struct mr_prune_options){ .names = names, .force = true }, &p, &err), MR_OK);
	assert_int_equal(p.n, 1);
	scratch_free(s);
	(void)state;
}

static void
long_unseen_agents_go_but_not_most_of_the_room(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, NULL, NULL, "/w"), live = env_of(s, "claude-code-aaa", &harness, "/w");
	struct mr_prune_options week = { .stale_ms = 7 * DAY_MS };
	struct pruned p;
	struct mr_error err;

	registered(s, "a", &env);
	registered(s, "b", &env);
	registered(s, "working", &live);
	assert_int_equal(prune(s, week, &p, &err), MR_OK);
	assert_int_equal(p.n, 0);
	clock_shift_ms(10 * DAY_MS);
	assert_int_equal(prune(s, week, &p, &err), MR_REFUSED); /* 2 of 3 */
	assert_says(err.message, "2 of 3");
	week.dry_run = true;
	assert_int_equal(prune(s, week, &p, &err), MR_OK);
	assert_int_equal(p.n, 2); /* the live one and the operator are not among them */
	week.dry_run = false;
	registered(s, "c", &env);
	registered(s, "d", &env);
	assert_int_equal(prune(s, week, &p, &err), MR_OK);
	assert_int_equal(p.n, 2);
	clock_shift_ms(0);
	scratch_free(s);
	(void)state;
}

static void
a_wrong_clock_prunes_nobody(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env env = env_of(s, NULL, NULL, "/w");
	struct mr_prune_options minute = { .stale_ms = 60000 };
	struct pruned p;
	struct mr_error err;

	clock_shift_ms(3 * DAY_MS);
	registered(s, "from-the-future", &env);
	clock_shift_ms(0);
	registered(s, "a", &env);
	assert_int_equal(prune(s, minute, &p, &err), MR_REFUSED);
	assert_says(err.message, "from-the-future");
	clock_shift_ms(-2 * DAY_MS); /* before the room was made */
	assert_int_equal(prune(s, minute, &p, &err), MR_REFUSED);
	assert_says(err.message, "clock");
	clock_shift_ms(0);
	scratch_free(s);
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_name_is_made_and_its_session_goes_on_with_it),
		cmocka_unit_test(a_live_name_is_refused_with_who_and_where_and_a_gone_one_given),
		cmocka_unit_test(a_plain_shells_life_goes_on_until_takeover),
		cmocka_unit_test(one_session_is_one_agent),
		cmocka_unit_test(a_takeover_makes_a_session_another_agent),
		cmocka_unit_test(reserved_and_bad_names_are_refused),
		cmocka_unit_test(of_fifty_processes_that_want_one_name_one_gets_it),
		cmocka_unit_test(fifty_processes_with_fifty_names_all_get_theirs),
		cmocka_unit_test(waiting_mail_is_counted_and_told_to_the_next_life),
		cmocka_unit_test(a_named_agent_goes_and_its_unread_mail_to_dead_letters),
		cmocka_unit_test(a_live_agent_is_pruned_only_by_force),
		cmocka_unit_test(long_unseen_agents_go_but_not_most_of_the_room),
		cmocka_unit_test(a_wrong_clock_prunes_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
