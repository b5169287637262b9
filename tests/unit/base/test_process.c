/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include "base/clock.h"
#include "base/process.h"

#include <sched.h>
#include <sys/prctl.h>

static pid_t
start_sleeper(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)alarm(20); /* a failed test leaves nobody behind for long */
		for (;;)
			(void)pause();
	}
	return pid;
}

static void
a_process_survives_the_way_through_text(void **state)
{
	(void)state;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_process p = { .pid = 4711, .start = 123456789, .pid_ns = 4026531836, .boot = "b-o-o-t" };
	struct mr_process back = { 0 };

	process_format(&p, &text);
	assert_string_equal(buf_z(&text), "4711 123456789 4026531836 b-o-o-t");
	assert_true(process_parse(buf_str(&text), &back));
	assert_true(process_same(&p, &back));
	buf_clear(&text);
	p.boot[0] = '\0';
	process_format(&p, &text);
	assert_true(process_parse(buf_str(&text), &back));
	assert_true(process_same(&p, &back));
}

static void
broken_process_text_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = { "", "1", "1 2 3", "1 2 3 b more", "-1 2 3 b", "1 x 3 b",
		"99999999999 2 3 b", "1 2 3 0123456789012345678901234567890123456789" };
	struct mr_process p = { .pid = 7 };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(process_parse(str_of(texts[i]), &p));
	assert_int_equal(p.pid, 7);
}

static void
no_process_is_never_the_same_nor_judged(void **state)
{
	(void)state;
	struct mr_process none = { 0 };

	assert_false(process_same(&none, &none));
	assert_int_equal(process_state(&none), PROCESS_UNKNOWN);
}

static void
a_host_has_a_name(void **state)
{
	(void)state;

	assert_true(host_name()[0] != '\0');
}

#ifdef MR_PORTABLE

static void
without_proc_the_number_is_all_there_is(void **state)
{
	(void)state;
	pid_t pid = start_sleeper();
	struct mr_process p = { .pid = pid };
	struct mr_process elsewhere = { .pid = pid, .boot = "of-a-host-with-proc" };

	assert_true(process_describe(pid, &p));
	assert_int_equal(process_state(&p), PROCESS_ALIVE);
	assert_int_equal(process_state(&elsewhere), PROCESS_UNKNOWN);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(process_state(&p), PROCESS_DEAD);
	assert_int_equal(process_state(&elsewhere), PROCESS_UNKNOWN);
	assert_false(process_harness(&p));
}

#else

static void
a_child_is_alive_then_a_zombie_then_gone_and_both_are_dead(void **state)
{
	(void)state;
	struct mr_process p;
	pid_t pid = start_sleeper();
	siginfo_t info;

	assert_true(process_describe(pid, &p));
	assert_int_equal(process_state(&p), PROCESS_ALIVE);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_state(&p), PROCESS_DEAD);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(process_state(&p), PROCESS_DEAD);
	assert_false(process_describe(pid, &p));
}

static void
a_reused_number_is_another_process(void **state)
{
	(void)state;
	struct mr_process p;

	assert_true(process_describe(getpid(), &p));
	p.start += 2; /* one is how an offset may be rounded */
	assert_int_equal(process_state(&p), PROCESS_DEAD);
	assert_false(process_is_ancestor(&p));
	assert_false(process_runs(&p));
}

static void
another_boot_is_dead_and_another_namespace_unknown(void **state)
{
	(void)state;
	struct mr_process p;

	assert_true(process_describe(getpid(), &p));
	struct mr_process other = p;
	other.pid_ns++;
	assert_int_equal(process_state(&other), PROCESS_UNKNOWN);
	other = p;
	other.boot[0] = other.boot[0] == 'x' ? 'y' : 'x';
	assert_int_equal(process_state(&other), PROCESS_DEAD);
	/* written where there is no /proc: its number may mean nothing here */
	other = p;
	other.boot[0] = '\0';
	assert_int_equal(process_state(&other), PROCESS_UNKNOWN);
}

static void
we_and_our_parents_are_our_ancestors_and_our_children_are_not(void **state)
{
	(void)state;
	struct mr_process p;
	pid_t child = start_sleeper();

	assert_true(process_describe(getpid(), &p));
	assert_true(process_is_ancestor(&p));
	assert_true(process_describe(getppid(), &p));
	assert_true(process_is_ancestor(&p));
	assert_true(process_describe(child, &p));
	assert_false(process_is_ancestor(&p));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

struct sight { /* from outside */
	struct mr_process outside;
	int64_t boot_ms;
	const char *offset;
};

/* The exit code says which sentence is false. */
static int
look_from_inside(void *ctx)
{
	struct sight *s = ctx;
	struct mr_process p = { 0 }, later = s->outside;
	int64_t boot_ms = 0, here_ms = clock_boot_ms();

	later.start += 100;
	if (!boot_clock_ms(&boot_ms) || boot_ms < s->boot_ms || boot_ms > s->boot_ms + 5000)
		return 1;
	if (here_ms >= s->boot_ms && here_ms < s->boot_ms + 5000) /* else nothing was shifted */
		return 2;
	if (process_state(&s->outside) != PROCESS_ALIVE || !process_runs(&s->outside) ||
	    !process_is_ancestor(&s->outside))
		return 3;
	if (process_state(&later) != PROCESS_DEAD || process_is_elsewhere(&s->outside))
		return 4;
	if (!process_describe(s->outside.pid, &p) || !process_same(&p, &s->outside))
		return 5;
	/* Now the offsets that the kernel tells are those of children to come: our own cannot be known. */
	if (unshare(CLONE_NEWTIME) < 0 || boot_clock_ms(&boot_ms))
		return 6;
	if (process_state(&s->outside) != PROCESS_UNKNOWN || !process_describe(getpid(), &p) || p.pid_ns != 0 ||
	    process_state(&p) != PROCESS_UNKNOWN)
		return 7;
	return 0;
}

static int
enter_time(void *ctx)
{
	struct sight *s = ctx;
	FILE *offsets = unshare(CLONE_NEWTIME) == 0 ? fopen("/proc/self/timens_offsets", "w") : NULL;

	if (offsets == NULL || fprintf(offsets, "boottime %s\n", s->offset) < 0 || fclose(offsets) != 0)
		return 77;
	return in_child(look_from_inside, s);
}

static void
processes_and_the_boot_clock_are_the_same_in_every_time_namespace(void **state)
{
	(void)state;
	static const char *const offsets[] = { "1000000 0", "-20 0", "12345 123456789", "-20 987654321" };

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		struct sight s = { .offset = offsets[i] };
		assert_true(process_describe(getpid(), &s.outside));
		assert_true(boot_clock_ms(&s.boot_ms));
		int code = in_child(enter_time, &s);
		if (code == 77)
			skip();
		assert_int_equal(code, 0);
	}
}

static const char *self_path;

static void
the_harness_is_the_nearest_ancestor_that_is_no_shell_or_wrapper(void **state)
{
	(void)state;
	char script[600], line[32] = "";

	(void)snprintf(script, sizeof(script), "sh -c 'env \"%s\" print-harness; true'; true", self_path);
	FILE *out = popen(script, "r");
	assert_non_null(out);
	assert_non_null(fgets(line, sizeof(line), out));
	assert_int_equal(pclose(out), 0);
	assert_int_equal(strtoll(line, NULL, 10), getpid());
}

/* A child under another name, whose own child looks for its harness. 0: found it, 1: found none. */
static int
harness_under_name(void *ctx)
{
	int64_t here = getpid();
	int status = 9;

	(void)prctl(PR_SET_NAME, ctx);
	pid_t pid = fork();
	if (pid == 0) {
		struct mr_process p;
		_exit(!process_harness(&p) ? 1 : p.pid == here ? 0 : 2);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 9;
}

static void
any_name_can_be_a_harness_but_not_what_outlives_sessions(void **state)
{
	(void)state;
	char odd[] = "bash) R 1 (b", agent[] = "claude", shell[] = "bash", server[] = "tmux: server";

	assert_int_equal(in_child(harness_under_name, odd), 0);
	assert_int_equal(in_child(harness_under_name, agent), 0);
	assert_int_equal(in_child(harness_under_name, shell), 2); /* the test program above it */
	assert_int_equal(in_child(harness_under_name, server), 1);
}

/* A shell that waits under that name with that argument, and the variable HERE. */
static enum process_codex
codex_under_name(const char *name, const char *argument, struct buf *ret_here)
{
	int hold[2], began[2];
	char ready;
	struct mr_process p;

	assert_int_equal(pipe(hold), 0);
	assert_int_equal(pipe(began), 0);
	pid_t pid = fork();
	if (pid == 0) {
		(void)alarm(20);
		(void)dup2(hold[0], 0);
		(void)dup2(began[1], 1);
		(void)close(hold[1]);
		(void)setenv("HERE", "a=b", 1);
		(void)execl("/bin/sh", name, "-c", "echo; read -r x", argument, (char *)NULL);
		_exit(1);
	}
	assert_int_equal(read(began[0], &ready, 1), 1);
	assert_true(process_describe(pid, &p));
	enum process_codex kind = process_codex(&p);
	assert_true(process_variable(&p, "HERE", ret_here));
	assert_false(process_variable(&p, "HER", ret_here));
	(void)close(hold[0]);
	(void)close(hold[1]);
	(void)close(began[0]);
	(void)close(began[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(process_codex(&p), CODEX_NOT); /* it is gone */
	return kind;
}

static void
a_server_of_codex_is_known_by_its_arguments(void **state)
{
	(void)state;
	mr_auto(buf_done) struct buf here = BUF_INIT;

	assert_int_equal(codex_under_name("/opt/bin/codex", "app-server", &here), CODEX_SHARED);
	assert_string_equal(buf_z(&here), "a=b");
	assert_int_equal(codex_under_name("codex", "mcp-server", &here), CODEX_SHARED);
	assert_int_equal(codex_under_name("codex", "exec", &here), CODEX_OWN);
	assert_int_equal(codex_under_name("claude", "app-server", &here), CODEX_NOT);
}

#endif

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_survives_the_way_through_text),
		cmocka_unit_test(broken_process_text_is_refused),
		cmocka_unit_test(no_process_is_never_the_same_nor_judged),
		cmocka_unit_test(a_host_has_a_name),
#ifdef MR_PORTABLE
		cmocka_unit_test(without_proc_the_number_is_all_there_is),
#endif
	};
	int failed = 0;

	(void)argc;
	(void)argv;
#ifndef MR_PORTABLE
	const struct CMUnitTest with_proc[] = {
		cmocka_unit_test(a_child_is_alive_then_a_zombie_then_gone_and_both_are_dead),
		cmocka_unit_test(a_reused_number_is_another_process),
		cmocka_unit_test(another_boot_is_dead_and_another_namespace_unknown),
		cmocka_unit_test(processes_and_the_boot_clock_are_the_same_in_every_time_namespace),
		cmocka_unit_test(we_and_our_parents_are_our_ancestors_and_our_children_are_not),
		cmocka_unit_test(the_harness_is_the_nearest_ancestor_that_is_no_shell_or_wrapper),
		cmocka_unit_test(any_name_can_be_a_harness_but_not_what_outlives_sessions),
		cmocka_unit_test(a_server_of_codex_is_known_by_its_arguments),
	};
	struct mr_process p;

	self_path = argv[0];
	if (argc == 2 && strcmp(argv[1], "print-harness") == 0) {
		printf("%lld\n", process_harness(&p) ? (long long)p.pid : 0LL);
		return 0;
	}
	if (process_describe(getpid(), &p)) /* there is a /proc, and it is of our namespace */
		failed = cmocka_run_group_tests_name("base/process", with_proc, NULL, NULL);
#endif
	return failed + cmocka_run_group_tests_name("base/process text", tests, NULL, NULL);
}
