/* SPDX-License-Identifier: MIT */
#include "support/sys_fault.h"
#include "crash.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const int errors[] = { EIO, ENOSPC, EDQUOT, EMFILE, EACCES, EROFS, EINTR };
#define ERRORS (sizeof(errors) / sizeof(errors[0]))

static bool verbose; /* which call is it that fails? */

static bool
long_form(void)
{
	const char *asked = getenv("MAILROOM_TEST_LONG");

	return asked != NULL && asked[0] != '\0';
}

static void
hear(struct world *w, int fd)
{
	char heard[64];
	ssize_t n;

	while ((n = read(fd, heard, sizeof(heard))) > 0)
		for (ssize_t i = 0; i < n; i++) {
			w->accepted |= heard[i] == 'a';
			w->doubted |= heard[i] == 'd';
			w->refused |= heard[i] == 'r';
			if (heard[i] >= '0' && heard[i] <= '9')
				w->shown |= 1u << (heard[i] - '0');
			if (heard[i] >= 'A' && heard[i] <= 'J')
				w->denied |= 1u << (heard[i] - 'A');
		}
}

/* Runs the operation in a child under the plan. False: the fault was never met, all points are done. */
static bool
run_child(const struct scenario *s, struct world *w, const struct sys_plan *plan)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	fflush(NULL);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(pipes[0]);
		sys_plan_set(plan);
		enum mr_rc rc = s->run(w, pipes[1]);
		bool hit = sys_plan_hit();
		sys_plan_set(NULL);
		tell_char(pipes[1], rc == MR_OK ? 'a' : rc == MR_INDOUBT ? 'd' : 'r');
		_exit(hit ? 0 : 7);
	}
	close(pipes[1]);
	hear(w, pipes[0]);
	close(pipes[0]);
	int status = 0;
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGKILL); /* ours; anything else is a crash of the code */
		return true;
	}
	assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7);
	return WEXITSTATUS(status) == 0;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void
remove_world(const struct world *w)
{
	assert_int_equal(nftw(w->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Forking is slow under the sanitizers, and the portable build differs little: there the short form takes every n-th
 * call. */
#if defined(__SANITIZE_ADDRESS__)
#define STRIDE 41
#elif defined(MR_PORTABLE)
#define STRIDE 11
#else
#define STRIDE 3
#endif

/* plan.error 0: a different error at every call, by turns once and for good. Returns how many calls there are, about.
 */
static unsigned
every_point(const struct scenario *s, struct sys_plan plan)
{
	bool mixed = plan.fault == SYS_FAULT_ERRNO && plan.error == 0;
	unsigned points = 0, stride = long_form() ? 1 : STRIDE * (s->stride ? s->stride : 1), turn = 0;

	for (bool hit = true; hit; points += hit ? stride : 0, turn++) {
		struct world w = { 0 };
		s->setup(&w);
		plan.at = points + 1;
		if (mixed) {
			plan.error = errors[turn % ERRORS];
			plan.for_good = (turn / ERRORS) % 2 == 1 && plan.error != EINTR;
		}
		hit = run_child(s, &w, &plan);
		if (!hit)
			assert_true(w.accepted);
		if (verbose)
			print_message("# call %lu: error %d%s: %s\n", plan.at, plan.error,
			    plan.for_good ? " for good" : "",
			    w.accepted  ? "accepted"
			    : w.doubted ? "in doubt"
			    : w.refused ? "refused"
					: "killed");
		s->check(&w);
		remove_world(&w);
		assert_true(points < 2000);
	}
	return points;
}

static void
killed_at_every_call(void **state)
{
	const struct scenario *s = *state;
	unsigned after = every_point(s, (struct sys_plan){ .fault = SYS_FAULT_KILL_AFTER });

	print_message("# %s: killed after each of %u calls\n", s->name, after);
	assert_true(after >= s->min_points);
	/* Behind one call is before the next: the disk looks the same, and the long form makes sure. */
	if (long_form())
		assert_true(every_point(s, (struct sys_plan){ .fault = SYS_FAULT_KILL_BEFORE }) >= s->min_points);
}

static void
failing_at_every_call(void **state)
{
	const struct scenario *s = *state;

	if (!long_form()) {
		assert_true(every_point(s, (struct sys_plan){ .fault = SYS_FAULT_ERRNO }) >= s->min_points);
		return;
	}
	for (size_t e = 0; e < ERRORS; e++) {
		struct sys_plan once = { .fault = SYS_FAULT_ERRNO, .error = errors[e] };
		struct sys_plan good = { .fault = SYS_FAULT_ERRNO, .error = errors[e], .for_good = true };
		unsigned points = every_point(s, once);
		assert_true(points >= s->min_points || errors[e] == EINTR);
		if (errors[e] != EINTR) /* for good, that is a call that never returns */
			(void)every_point(s, good);
	}
	struct sys_plan shorter = { .fault = SYS_FAULT_SHORT };
	(void)every_point(s, shorter);
}

#define TESTS_MAX 96

static size_t
add_tests(struct CMUnitTest *tests, size_t n, const struct scenario *list, size_t list_n)
{
	static char names[TESTS_MAX][120];

	for (const struct scenario *s = list; s < list + list_n; s++) {
		void *state = (void *)(uintptr_t)s;
		if (n + 2 > TESTS_MAX)
			abort();
		snprintf(names[n], sizeof(names[n]), "%s survives kill -9 at every call", s->name);
		tests[n] = (struct CMUnitTest){ names[n], killed_at_every_call, NULL, NULL, state };
		n++;
		snprintf(names[n], sizeof(names[n]), "%s survives an error at every call", s->name);
		tests[n] = (struct CMUnitTest){ names[n], failing_at_every_call, NULL, NULL, state };
		n++;
	}
	return n;
}

/* test_crash [PATTERN]: only the tests whose names match, and every fault with them. */
int
main(int argc, char **argv)
{
	struct CMUnitTest tests[TESTS_MAX];
	size_t n = add_tests(tests, 0, scenarios, scenarios_n);

	n = add_tests(tests, n, foreign_scenarios, foreign_scenarios_n);
	n = add_tests(tests, n, carry_scenarios, carry_scenarios_n);
	verbose = argc > 1;
	if (verbose)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests("crash", tests, n, NULL, NULL);
}
