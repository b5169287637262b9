/* SPDX-License-Identifier: MIT */
/* test_find.c - where a room is found, where init makes it, and that git keeps its hands off it. */
#include "scratch.h"

/* Settings of the machine must not decide a test. */
#define GIT                                                                                                            \
	"GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 git -c init.defaultBranch=main "                            \
	"-c user.name=a -c user.email=a@b -c advice.detachedHead=false"

static void
make_room_in(const struct scratch *s, const char *folder)
{
	struct mr_error err = { 0 };
	char *where = below(s, folder), *path = NULL;

	shell("mkdir -p '%s'", where);
	if (mr_room_init(where, "/", NULL, &path, &err) != MR_OK)
		fail_msg("%s", err.message);
	free(path);
	free(where);
}

static void
make_repository(const struct scratch *s, const char *folder)
{
	shell("mkdir -p '%s/%s' && cd '%s/%s' && " GIT
	      " init -q && echo 1 >file && mkdir -p sub && echo 2 >sub/file && " GIT " add . && " GIT
	      " commit -q -m first",
	    s->path, folder, s->path, folder);
}

static struct mr_place
found(const struct scratch *s, const char *option, const char *variable, const char *cwd)
{
	struct mr_place place = { 0 };
	struct mr_error err = { 0 };
	char *from = below(s, cwd);

	if (mr_room_find(option, variable, from, true, &place, &err) != MR_OK)
		fail_msg("%s", err.message);
	free(from);
	return place;
}

static void
assert_room(const struct scratch *s, const struct mr_place *place, const char *folder)
{
	char want[2 * PATH_MAX];

	snprintf(want, sizeof want, "maildir:%s/%s/.mailroom", s->path, folder);
	assert_string_equal(place->spec, want);
}

static void
the_option_comes_before_the_variable_and_both_before_the_folder(void **state)
{
	struct scratch *s = scratch_new();

	make_room_in(s, "a");
	make_room_in(s, "b");
	make_room_in(s, "c");
	char *a = below(s, "a/.mailroom"), *b = below(s, "b");
	struct mr_place place = found(s, a, b, "c");

	assert_room(s, &place, "a");
	assert_string_equal(place.why, "--room");
	mr_place_done(&place);
	place = found(s, NULL, b, "c"); /* the folder around a room is as good as the room */
	assert_room(s, &place, "b");
	assert_string_equal(place.why, "$MAILROOM");
	mr_place_done(&place);
	place = found(s, NULL, "", "c");
	assert_room(s, &place, "c");
	mr_place_done(&place);
	place = found(s, "../a", NULL, "c"); /* relative to the working folder */
	assert_room(s, &place, "a");
	mr_place_done(&place);
	place = found(s, "mem:x", NULL, "c");
	assert_string_equal(place.spec, "mem:x");
	mr_place_done(&place);
	free(a);
	free(b);
	scratch_free(s);
	(void)state;
}

static void
finds_the_nearest_room_upwards_and_warns_of_the_next(void **state)
{
	struct scratch *s = scratch_new();

	make_room_in(s, "a");
	shell("mkdir -p '%s/a/b/c/d' '%s/a/b/c/.mailroom'", s->path, s->path); /* no `room` in it: no room */
	struct mr_place place = found(s, NULL, NULL, "a/b/c/d");

	assert_room(s, &place, "a");
	assert_null(place.warning);
	assert_says(place.why, "a/b/c/d");
	mr_place_done(&place);
	make_room_in(s, "a/b");
	place = found(s, NULL, NULL, "a/b/c/d");
	assert_room(s, &place, "a/b");
	assert_non_null(place.warning);
	assert_says(place.warning, "/a/.mailroom'");
	mr_place_done(&place);
	scratch_free(s);
	(void)state;
}

static void
without_a_room_it_says_what_to_type(void **state)
{
	struct scratch *s = scratch_new();
	struct mr_place place = { 0 };
	struct mr_error err = { 0 };

	assert_int_equal(mr_room_find(NULL, NULL, s->path, true, &place, &err), MR_NOTFOUND);
	assert_says(err.hint, "mailroom init");
	assert_null(place.spec);
	scratch_free(s);
	(void)state;
}

static void
worktrees_of_one_repository_meet_in_the_room_of_the_main_one(void **state)
{
	struct scratch *s = scratch_new();
	struct mr_error err = { 0 };
	char *linked = below(s, "elsewhere/w1/sub"), *path = NULL;

	make_repository(s, "main");
	shell("cd '%s/main' && " GIT " worktree add -q ../elsewhere/w1", s->path);
	assert_int_equal(mr_room_init(NULL, linked, NULL, &path, &err), MR_OK);
	assert_says(path, "/main/.mailroom");
	struct mr_place place = found(s, NULL, NULL, "elsewhere/w1/sub");

	assert_room(s, &place, "main");
	assert_says(place.why, "main worktree");
	assert_says(place.worktree, "/elsewhere/w1");
	assert_null(strstr(place.worktree, "sub"));
	assert_null(place.warning);
	mr_place_done(&place);
	make_room_in(s, "elsewhere");
	place = found(s, NULL, NULL, "elsewhere/w1/sub"); /* the nearest wins, and is said to split the room */
	assert_room(s, &place, "elsewhere");
	assert_says(place.warning, "/main/.mailroom'");
	mr_place_done(&place);
	free(path);
	free(linked);
	scratch_free(s);
	(void)state;
}

static void
worktrees_of_a_bare_repository_meet_beside_or_in_it(void **state)
{
	struct scratch *s = scratch_new();
	struct mr_error err = { 0 };
	char *hidden = below(s, "p/w1"), *plain = below(s, "w2"), *path = NULL;

	make_repository(s, "first");
	shell("cd '%s' && mkdir p && " GIT " clone -q --bare first p/.bare && " GIT
	      " clone -q --bare first town.git && " GIT " -C p/.bare worktree add -q ../w1 && " GIT
	      " -C town.git worktree add -q ../w2",
	    s->path);
	assert_int_equal(mr_room_init(NULL, hidden, NULL, &path, &err), MR_OK);
	assert_says(path, "/p/.mailroom");
	free(path);
	assert_int_equal(mr_room_init(NULL, plain, NULL, &path, &err), MR_OK);
	assert_says(path, "/town.git/.mailroom");
	free(path);
	struct mr_place place = found(s, NULL, NULL, "w2");

	assert_room(s, &place, "town.git");
	mr_place_done(&place);
	free(hidden);
	free(plain);
	scratch_free(s);
	(void)state;
}

static void
warns_of_a_room_that_git_tracks(void **state)
{
	struct scratch *s = scratch_new();

	make_room_in(s, "r/sub"); /* before there is a repository: nothing keeps git away */
	make_repository(s, "r");
	struct mr_place place = found(s, NULL, NULL, "r/sub");

	assert_non_null(place.warning);
	assert_says(place.warning, "git tracks");
	mr_place_done(&place);
	shell("cd '%s/r' && " GIT " rm -r -q --cached sub/.mailroom", s->path);
	place = found(s, NULL, NULL, "r/sub");
	assert_null(place.warning);
	mr_place_done(&place);
	scratch_free(s);
	(void)state;
}

static void
a_room_is_not_taken_for_a_repository_of_its_own(void **state)
{
	struct scratch *s = scratch_new();

	make_repository(s, "r");
	make_room_in(s, "r");
	struct mr_place place = found(s, NULL, NULL, "r/.mailroom/agents");

	assert_room(s, &place, "r");
	assert_null(strstr(place.worktree, ".mailroom"));
	mr_place_done(&place);
	scratch_free(s);
	(void)state;
}

static void
assert_git_leaves_it_alone(const struct scratch *s, const char *folder)
{
	shell("cd '%s/r' && echo change >>file && echo new >new && "
	      "find '%s/.mailroom' | sort >../before && " GIT " add -A && "
	      "! " GIT " ls-files | grep -q mailroom && " GIT " stash -q -u && " GIT " stash pop -q && " GIT
	      " add -A && " GIT " commit -q -m work && " GIT " clean -q -fdx && " GIT " stash -q -a 2>/dev/null && "
	      "test -z \"$(" GIT " status --porcelain)\" && "
	      "find '%s/.mailroom' | sort | cmp - ../before && test -s '%s/.mailroom/room'",
	    s->path, folder, folder, folder);
}

static void
git_add_stash_and_clean_leave_the_room_alone(void **state)
{
	struct scratch *s = scratch_new();

	make_repository(s, "r");
	make_room_in(s, "r");
	assert_git_leaves_it_alone(s, ".");
	scratch_free(s);
	(void)state;
}

static void
git_leaves_a_room_in_a_subfolder_with_an_odd_name_alone(void **state)
{
	struct scratch *s = scratch_new();

	make_repository(s, "r");
	make_room_in(s, "r/sub [1]*");
	assert_git_leaves_it_alone(s, "sub [1]*");
	scratch_free(s);
	(void)state;
}

static void
a_room_older_than_its_repository_is_guarded_by_another_init(void **state)
{
	struct scratch *s = scratch_new();
	struct mr_error err = { 0 };
	char *r = below(s, "r"), *path = NULL;

	make_room_in(s, "r");
	shell("cd '%s' && " GIT " init -q && echo 1 >file && " GIT " add file && " GIT " commit -q -m first", r);
	assert_int_equal(mr_room_init(NULL, r, NULL, &path, &err), MR_EXISTS);
	assert_says(path, "/r/.mailroom");
	assert_git_leaves_it_alone(s, ".");
	free(path);
	free(r);
	scratch_free(s);
	(void)state;
}

static void
what_others_excluded_is_kept_and_the_room_added_once(void **state)
{
	struct scratch *s = scratch_new();

	make_repository(s, "r");
	shell("printf '*.o\\nlast line' >'%s/r/.git/info/exclude'", s->path);
	make_room_in(s, "r");
	shell("printf '*.o\\nlast line\\n/.mailroom/\\n' | cmp - '%s/r/.git/info/exclude'", s->path);
	shell("rm -r '%s/r/.mailroom'", s->path);
	make_room_in(s, "r");
	shell("printf '*.o\\nlast line\\n/.mailroom/\\n' | cmp - '%s/r/.git/info/exclude'", s->path);
	scratch_free(s);
	(void)state;
}

static void
init_completes_a_half_made_room_and_does_not_touch_a_whole_one(void **state)
{
	struct scratch *s = scratch_new();
	struct mr_error err = { 0 };
	struct mr_init_options options = { .name = "town" };
	char *path = NULL;

	shell("mkdir -m 700 -p '%s/.mailroom/agents' '%s/.mailroom/dead/new'", s->path, s->path);
	assert_int_equal(mr_room_init(s->path, "/", &options, &path, &err), MR_OK);
	free(path);
	path = NULL;
	shell("cp '%s/.mailroom/room' '%s/room'", s->path, s->path);
	options.name = "other";
	assert_int_equal(mr_room_init(s->path, "/", &options, &path, &err), MR_EXISTS);
	assert_says(path, "/.mailroom");
	shell("cmp '%s/.mailroom/room' '%s/room' && grep -q '^Name: town$' '%s/room'", s->path, s->path, s->path);
	assert_int_equal(mr_room_open(path, NULL, &s->room, &err), MR_OK);
	assert_string_equal(mr_room_name(s->room), "town");
	free(path);
	scratch_free(s);
	(void)state;
}

static void
a_room_has_an_operator_and_closed_folders(void **state)
{
	struct scratch *s = scratch_new();
	struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };
	mode_t mask = umask(0);

	make_room_in(s, "my project");
	umask(mask);
	shell("cd '%s/my project' && test -z \"$(find .mailroom -type d ! -perm 700; find .mailroom -type f "
	      "! -perm 600)\" "
	      "&& test ! -e .mailroom/.gitignore",
	    s->path);
	char *path = below(s, "my project/.mailroom");

	assert_int_equal(mr_room_open(path, NULL, &s->room, &err), MR_OK);
	assert_string_equal(mr_room_name(s->room), "my-project");
	assert_int_equal(mr_agent_get(s->room, "@overseer", &agent, &err), MR_OK);
	assert_string_equal(agent.name, "operator");
	assert_int_equal(agent.life, 0);
	mr_agent_done(&agent);
	free(path);
	scratch_free(s);
	(void)state;
}

static void
fifty_inits_at_once_make_one_room(void **state)
{
	struct scratch *s = scratch_new();
	int made = 0, there = 0, status = 0;

	make_repository(s, "r");
	for (int i = 0; i < 50; i++)
		if (fork() == 0) {
			struct mr_error err = { 0 };
			char *r = below(s, "r"), *path = NULL;

			enum mr_rc rc = mr_room_init(NULL, r, NULL, &path, &err);
			if (rc != MR_OK && rc != MR_EXISTS)
				print_error("init: %s\n", err.message);
			_exit((int)rc);
		}
	while (wait(&status) > 0) {
		made += WIFEXITED(status) && WEXITSTATUS(status) == MR_OK;
		there += WIFEXITED(status) && WEXITSTATUS(status) == MR_EXISTS;
	}
	assert_int_equal(made, 1);
	assert_int_equal(there, 49);
	shell("test $(grep -c mailroom '%s/r/.git/info/exclude') = 1", s->path);
	assert_git_leaves_it_alone(s, ".");
	scratch_free(s);
	(void)state;
}

static void
bad_wishes_are_refused_before_anything_is_made(void **state)
{
	struct scratch *s = scratch_new();
	struct mr_error err = { 0 };
	char *path = NULL, *missing = below(s, "missing");

	assert_int_equal(
	    mr_room_init(s->path, "/", &(struct mr_init_options){ .sync = "often" }, &path, &err), MR_REFUSED);
	assert_int_equal(
	    mr_room_init(s->path, "/", &(struct mr_init_options){ .name = "a/b" }, &path, &err), MR_REFUSED);
	assert_int_equal(
	    mr_room_init(s->path, "/", &(struct mr_init_options){ .name = "a b" }, &path, &err), MR_REFUSED);
	assert_int_equal(mr_room_init(missing, "/", NULL, &path, &err), MR_NOTFOUND);
	shell("test -z \"$(ls -A '%s')\"", s->path);
	free(missing);
	scratch_free(s);
	(void)state;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_option_comes_before_the_variable_and_both_before_the_folder),
		cmocka_unit_test(finds_the_nearest_room_upwards_and_warns_of_the_next),
		cmocka_unit_test(without_a_room_it_says_what_to_type),
		cmocka_unit_test(worktrees_of_one_repository_meet_in_the_room_of_the_main_one),
		cmocka_unit_test(worktrees_of_a_bare_repository_meet_beside_or_in_it),
		cmocka_unit_test(warns_of_a_room_that_git_tracks),
		cmocka_unit_test(a_room_is_not_taken_for_a_repository_of_its_own),
		cmocka_unit_test(git_add_stash_and_clean_leave_the_room_alone),
		cmocka_unit_test(git_leaves_a_room_in_a_subfolder_with_an_odd_name_alone),
		cmocka_unit_test(a_room_older_than_its_repository_is_guarded_by_another_init),
		cmocka_unit_test(what_others_excluded_is_kept_and_the_room_added_once),
		cmocka_unit_test(init_completes_a_half_made_room_and_does_not_touch_a_whole_one),
		cmocka_unit_test(a_room_has_an_operator_and_closed_folders),
		cmocka_unit_test(fifty_inits_at_once_make_one_room),
		cmocka_unit_test(bad_wishes_are_refused_before_anything_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
