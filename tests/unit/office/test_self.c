/* SPDX-License-Identifier: MIT */
/*
 * test_self.c - who am I, as each process of a harness sees the world: the shell, hooks and servers of a
 * session have its id and harness process; nothing is exported. Processes are real, and really die.
 */
#include "scratch.h"

static void
the_option_names_anyone_and_knows_near_names(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env env = env_of(s, NULL, NULL, "/w");

	registered(s, "witness", &env);
	env.as = "witness";
	struct mr_self self = resolved(s, &env);

	assert_string_equal(self.agent, "witness");
	assert_int_equal(self.life, 1);
	assert_true(self.explicit_as);
	assert_false(self.bound);
	env.as = "human";
	assert_is(s, &env, "operator", 0);
	env.as = "@overseer";
	assert_is(s, &env, "operator", 0);
	env.as = "witnes";
	struct mr_error err = refused(s, &env, MR_NOTFOUND);

	assert_says(err.hint, "'witness'");
	assert_says(err.hint, "mailroom register witnes");
	env.as = "witness@elsewhere";
	refused(s, &env, MR_REFUSED);
	env.as = "../etc";
	refused(s, &env, MR_REFUSED);
	scratch_free(s);
	(void)state;
}

static void
nobody_is_told_the_line_to_type(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env env = env_of(s, NULL, NULL, "/w");
	struct mr_error err = refused(s, &env, MR_NOTFOUND);

	assert_says(err.hint, "mailroom register NAME");
	assert_says(err.hint, "--as NAME");
	env.session = "claude-code-new";
	refused(s, &env, MR_NOTFOUND);
	scratch_free(s);
	(void)state;
}

static void
two_sessions_in_one_worktree_are_two_agents(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process one = harness_start(s), two = harness_start(s);
	struct mr_env a = env_of(s, "claude-code-aaa", &one, "/w"), b = env_of(s, "claude-code-bbb", &two, "/w");

	registered(s, "alice", &a);
	refused(s, &b, MR_NOTFOUND); /* alice is live: not the one whose life is gone */
	registered(s, "bob", &b);
	assert_is(s, &a, "alice", 1);
	assert_is(s, &b, "bob", 1);
	assert_true(resolved(s, &a).bound);
	scratch_free(s);
	(void)state;
}

static void
a_resumed_session_goes_on_with_its_life_in_its_new_process(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process before = harness_start(s), after = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &before, "/w");
	struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };

	registered(s, "alice", &env);
	harness_end(s, &before);
	assert_int_equal(mr_agent_get(s->room, "alice", &agent, &err), MR_OK);
	assert_int_equal(mr_agent_presence(&agent), MR_GONE);
	mr_agent_done(&agent);
	env.process = after;
	assert_is(s, &env, "alice", 1);
	assert_int_equal(mr_agent_get(s->room, "alice", &agent, &err), MR_OK);
	assert_int_equal(mr_agent_presence(&agent), MR_LIVE);
	assert_int_equal(agent.process.pid, after.pid);
	mr_agent_done(&agent);
	scratch_free(s);
	(void)state;
}

/* What every hook asks, and what it must not say yes to: all that is not the usual case is for mr_self_resolve. */
static void
the_quick_answer_is_only_for_a_bound_session_whose_process_is_there(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s), other = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w"),
		      asked = env_of(s, "claude-code-aaa", NULL, "/w");
	struct mr_env taker = env_of(s, "claude-code-bbb", &other, "/w2");
	struct mr_register_options takeover = { .takeover = true };
	struct mr_registration reg = { 0 };
	struct mr_self self = { 0 };
	struct mr_error err = { 0 };

	assert_false(mr_self_bound(s->room, &asked, &self));
	registered(s, "alice", &env);
	assert_true(mr_self_bound(s->room, &asked, &self));
	assert_string_equal(self.agent, "alice");
	assert_int_equal(self.life, 1);
	assert_true(self.bound);
	assert_string_equal(self.how, resolved(s, &env).how);
	asked.as = "bob";
	assert_false(mr_self_bound(s->room, &asked, &self));
	asked.as = NULL;
	asked.session = "claude-code-other";
	assert_false(mr_self_bound(s->room, &asked, &self));
	asked.session = env.session;
	assert_int_equal(mr_register(s->room, "alice", &taker, &takeover, &reg, &err), MR_OK);
	assert_false(mr_self_bound(s->room, &asked, &self)); /* fenced */
	asked.session = taker.session;
	assert_true(mr_self_bound(s->room, &asked, &self));
	assert_int_equal(self.life, 2);
	harness_end(s, &other);
	assert_false(mr_self_bound(s->room, &asked, &self)); /* maybe resumed by another */
	scratch_free(s);
	(void)state;
}

static void
a_session_after_clear_is_the_same_life_and_so_is_its_stale_id(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s), other = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-before", &harness, "/w");

	registered(s, "alice", &env);
	env.session = "claude-code-after";
	assert_is(s, &env, "alice", 1);
	env.process = (struct mr_process){ 0 }; /* bound by its own file now */
	assert_is(s, &env, "alice", 1);
	env.session = "claude-code-before"; /* the MCP server keeps the old id */
	env.process = harness;
	assert_is(s, &env, "alice", 1);
	env.session = "claude-code-other";
	env.process = other; /* another harness is another agent */
	refused(s, &env, MR_NOTFOUND);
	env.session = "codex-other";
	env.process = harness; /* another kind of session in that process is, too */
	refused(s, &env, MR_NOTFOUND);
	scratch_free(s);
	(void)state;
}

static void
a_subagent_in_another_worktree_shares_its_parents_mailbox(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w");
	struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };

	registered(s, "alice", &env);
	env.worktree = "/w-of-the-subagent";
	assert_is(s, &env, "alice", 1);
	assert_int_equal(mr_agent_get(s->room, "alice", &agent, &err), MR_OK);
	assert_string_equal(agent.worktree, "/w"); /* the agent has not moved */
	mr_agent_done(&agent);
	scratch_free(s);
	(void)state;
}

static void
a_nested_agent_with_a_leaked_variable_does_not_become_its_parent(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process outer = harness_start(s), inner = harness_start(s);
	struct mr_env parent = env_of(s, "claude-code-outer", &outer, "/w");
	struct mr_env nested = env_of(s, "claude-code-inner", &inner, "/w");

	registered(s, "alice", &parent);
	nested.agent = "alice";
	nested.agent_source = "MAILROOM_AGENT";
	struct mr_error err = refused(s, &nested, MR_REFUSED);

	assert_says(err.message, "$MAILROOM_AGENT");
	assert_says(err.message, "claude-code-outer");
	assert_says(err.message, "/w");
	assert_is(s, &parent, "alice", 1); /* and the parent has not lost its life */
	registered(s, "helper", &nested);
	assert_is(s, &nested, "helper", 1); /* a binding comes before a variable */
	scratch_free(s);
	(void)state;
}

static void
codex_has_an_id_but_no_process_and_keeps_its_life(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env codex = env_of(s, "codex-111", NULL, "/w"), other = env_of(s, "codex-222", NULL, "/w");
	struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };

	registered(s, "carol", &codex);
	assert_is(s, &codex, "carol", 1);
	assert_int_equal(mr_agent_get(s->room, "carol", &agent, &err), MR_OK);
	assert_int_equal(mr_agent_presence(&agent), MR_UNKNOWN);
	mr_agent_done(&agent);
	refused(s, &other, MR_NOTFOUND);
	other.agent = "carol";
	refused(s, &other, MR_REFUSED); /* nobody can tell that 111 is gone */
	scratch_free(s);
	(void)state;
}

static void
a_sandbox_that_keeps_the_state_folder_shut_is_known_by_its_life(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env codex = env_of(s, "codex-111", NULL, "/w");

	codex.state_dir = "/proc/mailroom-cannot-write-here";
	registered(s, "carol", &codex);
	assert_is(s, &codex, "carol", 1);
	codex.state_dir = NULL;
	assert_is(s, &codex, "carol", 1);
	scratch_free(s);
	(void)state;
}

static void
a_session_is_fenced_by_a_takeover_and_told_by_whom(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process one = harness_start(s), two = harness_start(s);
	struct mr_env a = env_of(s, "claude-code-aaa", &one, "/w"), b = env_of(s, "claude-code-bbb", &two, "/v");
	struct mr_register_options takeover = { .takeover = true };
	struct mr_registration reg = { 0 };
	struct mr_error err = { 0 };

	registered(s, "alice", &a);
	assert_int_equal(mr_register(s->room, "alice", &b, &takeover, &reg, &err), MR_OK);
	assert_int_equal(reg.life, 2);
	assert_is(s, &b, "alice", 2);
	err = refused(s, &a, MR_REFUSED);
	assert_says(err.message, "claude-code-bbb");
	assert_says(err.hint, "takeover alice");
	registered(s, "anne", &a); /* free to be someone else */
	assert_is(s, &a, "anne", 1);
	scratch_free(s);
	(void)state;
}

static void
a_variable_binds_a_new_session_to_a_free_agent(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process one = harness_start(s), two = harness_start(s);
	struct mr_env shell_env = env_of(s, NULL, NULL, "/w");
	struct mr_env first = env_of(s, "gemini-1", &one, "/w"), second = env_of(s, "gemini-2", &two, "/w");

	registered(s, "dora", &shell_env); /* from a plain shell: nobody sits in this life */
	first.agent = second.agent = "dora";
	first.agent_source = second.agent_source = "GT_ROLE";
	assert_is(s, &first, "dora", 1);
	first.agent = NULL; /* gone with the next tool call */
	assert_is(s, &first, "dora", 1);
	assert_says(refused(s, &second, MR_REFUSED).message, "$GT_ROLE");
	harness_end(s, &one);
	assert_is(s, &second, "dora", 2); /* the last life is gone: a new one */
	refused(s, &first, MR_REFUSED);
	scratch_free(s);
	(void)state;
}

static void
a_variable_without_a_session_acts_only_for_its_own_harness(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process self = { 0 }, stranger = harness_start(s);
	struct mr_env mine = env_of(s, "claude-code-me", NULL, "/w"),
		      other = env_of(s, "claude-code-x", &stranger, "/w");
	struct mr_env plain = env_of(s, NULL, NULL, "/w");

	assert_true(process_describe(getpid(), &self));
	mine.process = self;
	registered(s, "mine", &mine);
	registered(s, "theirs", &other);
	plain.agent = "mine";
	plain.agent_source = "MAILROOM_AGENT";
	assert_is(s, &plain, "mine", 1); /* its process is above this one */
	plain.agent = "theirs";
	assert_says(refused(s, &plain, MR_REFUSED).hint, "--as theirs");
	plain.agent = "nobody";
	struct mr_error err = refused(s, &plain, MR_NOTFOUND);

	assert_says(err.message, "$MAILROOM_AGENT");
	plain.agent = "operator";
	assert_is(s, &plain, "operator", 0);
	plain.session = "claude-code-new"; /* but a harness is not the operator */
	refused(s, &plain, MR_REFUSED);
	scratch_free(s);
	(void)state;
}

static void
the_one_agent_of_the_worktree_comes_back_and_two_are_not_guessed(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process one = harness_start(s), two = harness_start(s), three = harness_start(s);
	struct mr_env a = env_of(s, "claude-code-aaa", &one, "/w"), b = env_of(s, "claude-code-bbb", &two, "/w");
	struct mr_env c = env_of(s, "claude-code-ccc", &three, "/w"), plain = env_of(s, NULL, NULL, "/w");

	registered(s, "alice", &a);
	registered(s, "bob", &b);
	harness_end(s, &one);
	assert_is(s, &plain, "alice", 1); /* a person looks: no new life */
	plain.worktree = "/elsewhere";
	refused(s, &plain, MR_NOTFOUND);
	assert_is(s, &c, "alice", 2);
	assert_true(resolved(s, &c).bound);
	harness_end(s, &three);
	harness_end(s, &two);
	struct mr_process four = harness_start(s);
	struct mr_env d = env_of(s, "claude-code-ddd", &four, "/w");
	struct mr_error err = refused(s, &d, MR_NOTFOUND);

	assert_says(err.hint, "'alice'");
	assert_says(err.hint, "'bob'");
	scratch_free(s);
	(void)state;
}

static void
a_bound_session_stays_marked_when_it_says_it_is_the_operator(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w");

	registered(s, "alice", &env);
	env.as = "operator";
	struct mr_self self = resolved(s, &env);

	assert_true(self.bound);
	assert_true(self.explicit_as);
	env.session = NULL;
	assert_false(resolved(s, &env).bound);
	scratch_free(s);
	(void)state;
}

static void
a_session_in_two_rooms_is_one_agent_in_each(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w");
	struct mr_room *first = s->room, *second = NULL;
	struct mr_error err = { 0 };
	char *folder = below(s, "second"), *path = NULL;

	shell("mkdir '%s'", folder);
	assert_int_equal(mr_room_init(folder, "/", NULL, &path, &err), MR_OK);
	assert_int_equal(mr_room_open(path, NULL, &second, &err), MR_OK);
	registered(s, "alice", &env);
	s->room = second;
	refused(s, &env, MR_NOTFOUND);
	registered(s, "zoe", &env);
	assert_is(s, &env, "zoe", 1);
	s->room = first;
	assert_is(s, &env, "alice", 1);
	shell("cd '%s/sessions' && grep -q '^Agent: alice' claude-code-aaa && grep -q '^Agent: zoe' "
	      "claude-code-aaa+*",
	    s->state);
	mr_room_close(second);
	free(path);
	free(folder);
	scratch_free(s);
	(void)state;
}

static void
broken_and_foreign_bindings_are_named_and_not_followed(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_env env = env_of(s, "claude-code-../x", NULL, "/w");

	shell("mkdir -p -m 700 '%s/sessions' && echo rubbish >'%s/sessions/claude-code-..%%2Fx'", s->state, s->state);
	assert_says(refused(s, &env, MR_NOTFOUND).message, "claude-code-..%2Fx");
	shell("ln -sf /dev/zero '%s/sessions/claude-code-..%%2Fx'", s->state);
	assert_says(refused(s, &env, MR_NOTFOUND).message, "claude-code-..%2Fx");
	shell("rm '%s/sessions/claude-code-..%%2Fx' && mkfifo '%s/sessions/claude-code-..%%2Fx'", s->state, s->state);
	assert_says(refused(s, &env, MR_NOTFOUND).message, "claude-code-..%2Fx");
	if (geteuid() == 0) {
		shell("rm '%s/sessions/claude-code-..%%2Fx'", s->state);
		registered(s, "alice", &env);
		shell("chown 12345 '%s/sessions/claude-code-..%%2Fx'", s->state);
		env.state_dir = s->state;
		assert_is(s, &env, "alice", 1); /* by its life, not by that file */
	}
	scratch_free(s);
	(void)state;
}

static void
bindings_are_private_files_with_safe_names(void **state)
{
	struct scratch *s = scratch_with_room();
	char long_id[1000];
	struct mr_env env = env_of(s, "codex-a/b c", NULL, "/w");

	registered(s, "alice", &env);
	memset(long_id, 'x', sizeof long_id - 1);
	long_id[sizeof long_id - 1] = '\0';
	env.session = long_id;
	registered(s, "bob", &env);
	assert_is(s, &env, "bob", 1);
	shell("cd '%s' && test -f sessions/codex-a%%2Fb%%20c && test -z \"$(find . -type d ! -perm 700)\" && "
	      "test -z \"$(find . -type f ! -perm 600)\"",
	    s->state);
	scratch_free(s);
	(void)state;
}

static void
a_pruned_agents_session_is_nobody_until_it_registers_again(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process harness = harness_start(s);
	struct mr_env env = env_of(s, "claude-code-aaa", &harness, "/w"), plain = env_of(s, NULL, NULL, "/w");
	const char *names[] = { "alice", NULL };
	struct mr_error err = { 0 };

	registered(s, "alice", &env);
	assert_int_equal(
	    mr_prune(s->room, &(struct mr_prune_options){ .names = names, .force = true }, NULL, &err), MR_OK);
	assert_says(refused(s, &env, MR_NOTFOUND).message, "pruned");
	struct mr_registration reg = registered(s, "alice", &plain); /* the name is free for anyone */

	assert_true(reg.created);
	assert_int_equal(reg.life, 2); /* and numbers go on */
	refused(s, &env, MR_REFUSED);
	scratch_free(s);
	(void)state;
}

/* Hook, shell and server of a new session start at the same time: one life, not three. */
static void
processes_of_one_new_session_agree(void **state)
{
	struct scratch *s = scratch_with_room();
	struct mr_process old = harness_start(s), harness = harness_start(s);
	struct mr_env first = env_of(s, "claude-code-old", &old, "/w"),
		      env = env_of(s, "claude-code-new", &harness, "/w");
	int status = 0, right = 0;

	registered(s, "alice", &first);
	harness_end(s, &old);
	pid_t children[20];

	for (int i = 0; i < 20; i++) {
		children[i] = fork();
		if (children[i] == 0) {
			struct mr_self self = { 0 };
			struct mr_error err = { 0 };
			enum mr_rc rc = mr_self_resolve(s->room, &env, &self, &err);

			_exit(rc == MR_OK && strcmp(self.agent, "alice") == 0 && self.life == 2 ? 0 : 1);
		}
	}
	for (int i = 0; i < 20; i++) {
		waitpid(children[i], &status, 0);
		right += WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	assert_int_equal(right, 20);
	scratch_free(s);
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_option_names_anyone_and_knows_near_names),
		cmocka_unit_test(nobody_is_told_the_line_to_type),
		cmocka_unit_test(two_sessions_in_one_worktree_are_two_agents),
		cmocka_unit_test(a_resumed_session_goes_on_with_its_life_in_its_new_process),
		cmocka_unit_test(the_quick_answer_is_only_for_a_bound_session_whose_process_is_there),
		cmocka_unit_test(a_session_after_clear_is_the_same_life_and_so_is_its_stale_id),
		cmocka_unit_test(a_subagent_in_another_worktree_shares_its_parents_mailbox),
		cmocka_unit_test(a_nested_agent_with_a_leaked_variable_does_not_become_its_parent),
		cmocka_unit_test(codex_has_an_id_but_no_process_and_keeps_its_life),
		cmocka_unit_test(a_sandbox_that_keeps_the_state_folder_shut_is_known_by_its_life),
		cmocka_unit_test(a_session_is_fenced_by_a_takeover_and_told_by_whom),
		cmocka_unit_test(a_variable_binds_a_new_session_to_a_free_agent),
		cmocka_unit_test(a_variable_without_a_session_acts_only_for_its_own_harness),
		cmocka_unit_test(the_one_agent_of_the_worktree_comes_back_and_two_are_not_guessed),
		cmocka_unit_test(a_bound_session_stays_marked_when_it_says_it_is_the_operator),
		cmocka_unit_test(a_session_in_two_rooms_is_one_agent_in_each),
		cmocka_unit_test(broken_and_foreign_bindings_are_named_and_not_followed),
		cmocka_unit_test(bindings_are_private_files_with_safe_names),
		cmocka_unit_test(a_pruned_agents_session_is_nobody_until_it_registers_again),
		cmocka_unit_test(processes_of_one_new_session_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
