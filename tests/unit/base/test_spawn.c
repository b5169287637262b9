/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/spawn.h"
#include <signal.h>
#include <unistd.h>

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static struct spawned
run(const struct spawn *what)
{
	struct spawned ran = { 0 };
	struct mr_error err = { 0 };

	if (spawn_run(what, &ran, &err) != MR_OK)
		fail_msg("%s", err.message);
	return ran;
}

static void
input_output_and_exit_code_are_kept(void **state)
{
	struct spawned ran =
	    run(&(struct spawn){ .argv = ARGV("sh", "-c", "cat; echo oops >&2; exit 3"), .input = STR("hello\n") });

	(void)state;
	assert_string_equal(buf_z(&ran.out), "hello\n");
	assert_string_equal(buf_z(&ran.err), "oops\n");
	assert_int_equal(ran.exit_code, 3);
	assert_false(ran.timed_out || ran.cut);
	spawned_done(&ran);
}

static void
arguments_are_not_for_a_shell(void **state)
{
	struct spawned ran = run(&(struct spawn){ .argv = ARGV("printf", "%s|", "$(id)", "a b", "'", ";") });

	(void)state;
	assert_string_equal(buf_z(&ran.out), "$(id)|a b|'|;|");
	spawned_done(&ran);
}

static void
more_than_a_pipe_holds_goes_both_ways(void **state)
{
	size_t n = (size_t)3 << 20;
	char *big = malloc(n);

	(void)state;
	assert_non_null(big);
	memset(big, 'x', n);
	struct spawned ran = run(&(struct spawn){ .argv = ARGV("cat"), .input = { big, n }, .output_max = n });

	assert_int_equal(ran.out.len, n);
	assert_false(ran.cut);
	spawned_done(&ran);
	ran = run(&(struct spawn){ .argv = ARGV("cat"), .input = { big, n }, .output_max = 1000 });
	assert_int_equal(ran.out.len, 1000);
	assert_true(ran.cut);
	assert_int_equal(ran.exit_code, 0); /* it was read to its end all the same */
	spawned_done(&ran);
	/* A child that does not read its input must not end us. */
	ran = run(&(struct spawn){ .argv = ARGV("true"), .input = { big, n } });
	assert_int_equal(ran.exit_code, 0);
	spawned_done(&ran);
	free(big);
}

static void
the_time_limit_ends_all_of_it(void **state)
{
	int64_t before = clock_boot_ms();
	struct spawned ran =
	    run(&(struct spawn){ .argv = ARGV("sh", "-c", "sleep 30 & echo $!; wait"), .limit_ms = 200 });
	int child = (int)strtol(buf_z(&ran.out), NULL, 10);

	(void)state;
	assert_true(ran.timed_out);
	assert_int_equal(ran.exit_code, -1);
	assert_int_equal(ran.signal, SIGTERM);
	assert_true(clock_boot_ms() - before < 10000);
	assert_true(child > 0);
	for (int i = 0; i < 100 && kill(child, 0) == 0; i++)
		usleep(20000);
	assert_int_not_equal(kill(child, 0), 0); /* nor is what it started left */
	spawned_done(&ran);
	before = clock_boot_ms();
	ran = run(
	    &(struct spawn){ .argv = ARGV("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"), .limit_ms = 100 });
	assert_int_equal(ran.signal, SIGKILL);
	assert_true(clock_boot_ms() - before < 10000);
	spawned_done(&ran);
}

/* A program that leaves something behind which keeps its output open has ended all the same. */
static void
an_end_counts_also_with_open_pipes(void **state)
{
	int64_t before = clock_boot_ms();
	struct spawned ran = run(&(struct spawn){ .argv = ARGV("sh", "-c", "sleep 15 & echo done") });

	(void)state;
	assert_string_equal(buf_z(&ran.out), "done\n");
	assert_int_equal(ran.exit_code, 0);
	assert_true(clock_boot_ms() - before < 10000);
	spawned_done(&ran);
}

static void
why_it_cannot_run_is_said(void **state)
{
	struct spawned ran = { 0 };
	struct mr_error err = { 0 };

	(void)state;
	assert_int_equal(spawn_run(&(struct spawn){ .argv = ARGV("no-such-program-here") }, &ran, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.message, "no-such-program-here"));
	assert_int_equal(spawn_run(&(struct spawn){ .argv = ARGV("/etc/passwd") }, &ran, &err), MR_REFUSED);
	assert_int_equal(
	    spawn_run(&(struct spawn){ .argv = ARGV("true"), .dir = "/no/such/folder" }, &ran, &err), MR_NOTFOUND);
	assert_non_null(strstr(err.message, "/no/such/folder"));
	spawned_done(&ran);
}

static void
environment_and_folder_are_set(void **state)
{
	(void)state;
	assert_int_equal(setenv("MAILROOM_SPAWN_TEST", "ours", 1), 0);
	struct spawned ran =
	    run(&(struct spawn){ .argv = ARGV("sh", "-c", "echo \"$MAILROOM_SPAWN_TEST $MAILROOM_SPAWN_NEW\"; pwd"),
		.env = ARGV("MAILROOM_SPAWN_TEST=theirs", "MAILROOM_SPAWN_NEW=a b"),
		.dir = "/" });

	assert_string_equal(buf_z(&ran.out), "theirs a b\n/\n");
	assert_string_equal(getenv("MAILROOM_SPAWN_TEST"), "ours");
	spawned_done(&ran);
}

static bool
at_once(void *ctx)
{
	(void)ctx;
	return true;
}

static void
the_caller_can_stop_it(void **state)
{
	mr_auto(buf_done) struct buf how = BUF_INIT;
	struct spawned ran = run(&(struct spawn){ .argv = ARGV("sleep", "30"), .stop = at_once });

	(void)state;
	assert_true(ran.timed_out);
	spawned_describe(&ran, 0, &how);
	assert_string_equal(buf_z(&how), "stopped");
	spawned_done(&ran);
}

static bool
has_said_it(void *ctx, const struct buf *out)
{
	(void)ctx;
	return strstr(buf_z(out), "got") != NULL;
}

static void
a_server_is_listened_to_before_its_input_ends(void **state)
{
	struct spawned ran = run(&(struct spawn){
	    .argv = ARGV("sh", "-c", "read line; sleep 0.1; echo got $line; cat >/dev/null; echo left"),
	    .input = STR("it\n"),
	    .limit_ms = 5000,
	    .enough = has_said_it });

	(void)state;
	assert_false(ran.timed_out);
	assert_string_equal(buf_z(&ran.out), "got it\nleft\n");
	spawned_done(&ran);
}

static void
its_input_stays_open_until_then(void **state)
{
	struct spawned ran =
	    run(&(struct spawn){ .argv = ARGV("cat"), .input = STR("x"), .limit_ms = 200, .enough = has_said_it });

	(void)state;
	assert_true(ran.timed_out);
	assert_string_equal(buf_z(&ran.out), "x");
	spawned_done(&ran);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_output_and_exit_code_are_kept),
		cmocka_unit_test(arguments_are_not_for_a_shell),
		cmocka_unit_test(more_than_a_pipe_holds_goes_both_ways),
		cmocka_unit_test(the_time_limit_ends_all_of_it),
		cmocka_unit_test(an_end_counts_also_with_open_pipes),
		cmocka_unit_test(why_it_cannot_run_is_said),
		cmocka_unit_test(environment_and_folder_are_set),
		cmocka_unit_test(the_caller_can_stop_it),
		cmocka_unit_test(a_server_is_listened_to_before_its_input_ends),
		cmocka_unit_test(its_input_stays_open_until_then),
	};

	return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
