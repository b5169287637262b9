/* SPDX-License-Identifier: MIT */
/*
 * test_model.c - every operation, its calls recorded once, and the states after a power cut that the model draws from
 * them. The operations and their checks are those of tests/crash, and some more.
 *
 *	test_model                 the short form: a few dozen states an operation, drawn
 *	MAILROOM_TEST_LONG=1       all, or thousands where there are more, over several set-ups
 *	MAILROOM_TEST_STATES=N     that many
 *	MAILROOM_TEST_BOTH_NAMES=1 also those that are known to break promises where there is no journal
 *	test_model PATTERN         only the tests whose names match
 */
#include "trial.h"
#include "more.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void
keeps_every_promise(void **state)
{
	const struct scenario *s = *state;
	struct sums sum = run_set_ups(s, FLAVOURS_PROMISED, NULL, NULL);

	print_sums(s->name, &sum);
	assert_true(sum.calls > 0 || s->min_points == 0);
	assert_int_equal(sum.violations, 0);
}

/* On a system without unnamed files a temporary name takes their place, and other calls are made. */
static void
keeps_them_with_named_files(void **state)
{
	const struct scenario *s = *state;
	struct sums sum = run_set_ups(s, FLAVOURS_PROMISED, "no-unnamed", NULL);
	char name[80];

	(void)snprintf(name, sizeof(name), "%s, named files", s->name);
	print_sums(name, &sum);
	assert_int_equal(sum.violations, 0);
}

/* One commit, where the journal keeps bytes and names in order. */
static void
keeps_them_fast(void **state)
{
	const struct scenario *s = *state;
	struct sums sum = run_set_ups(s, 1u << FLAVOUR_ORDERED, "ordered", "fast");
	char name[80];

	(void)snprintf(name, sizeof(name), "%s, Sync: fast", s->name);
	print_sums(name, &sum);
	assert_int_equal(sum.violations, 0);
}

/* ---- The test must be able to fail ---- */

struct broken {
	const char *how;
	const char *operation;
	const char *sync; /* of the room; NULL: full, and whatever a file system promises */
	enum flavour flavour;
};

static const struct scenario *all[128];
static size_t all_n;

static const struct scenario *
find_scenario(const char *name)
{
	for (size_t i = 0; i < all_n; i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	fail_msg("no operation '%s'", name);
	return NULL;
}

static void
is_caught(void **state)
{
	const struct broken *b = *state;
	struct trial t = { .scenario = find_scenario(b->operation),
		.flavours = b->sync ? 1u << b->flavour : FLAVOURS_PROMISED,
		.want = 600,
		.quiet = true };

	world_options_set(&(struct world_options){ .sync = b->sync });
	trial_begin(&t, b->how);
	check_in_children(&t);
	world_options_set(&(struct world_options){ 0 });
	print_message("# %s, %s%s%s: caught by state %d\n", b->operation, b->how, b->sync ? ", Sync: fast, " : "",
	    b->sync ? flavour_names[b->flavour] : "", *t.at);
	unsigned violations = t.violations;
	trial_end(&t);
	assert_int_not_equal(violations, 0);
}

static const struct broken broken[] = {
	{ .how = "no-dir-sync", .operation = "send" },
	{ .how = "no-dir-sync", .operation = "send --batch" },
	{ .how = "no-dir-sync", .operation = "mailroom send --batch" },
	{ .how = "no-dir-sync", .operation = "renew a folder" },
#ifdef MR_ZLIB
	{ .how = "no-dir-sync", .operation = "archive --pack" },
	{ .how = "no-file-sync", .operation = "archive --pack" },
	{ .how = "no-file-sync", .operation = "archive --unpack" },
#endif
	{ .how = "no-dir-sync", .operation = "done" },
	{ .how = "no-dir-sync", .operation = "done queue:" },
	{ .how = "no-dir-sync", .operation = "send channel:" },
	{ .how = "no-dir-sync", .operation = "teams send" },
	{ .how = "no-file-sync", .operation = "send" },
	{ .how = "no-file-sync", .operation = "send --batch" },
	{ .how = "no-file-sync", .operation = "fan-out" },
	{ .how = "no-file-sync", .operation = "chipset send" },
	{ .how = "name-before-bytes", .operation = "send" },
	{ .how = "name-before-bytes", .operation = "send --batch" },
	{ .how = "name-before-bytes", .operation = "send queue:" },
	{ .how = "mark-before-show", .operation = "read" },
	{ .how = "mark-before-show", .operation = "mailroom drain" },
	{ .how = "source-first", .operation = "done" },
	/* Sync: fast is right only where the journal keeps bytes and names in order, and needs the bytes written out.
	 */
	{ "ordered", "send", "fast", FLAVOUR_LOG },
	{ "ordered", "send", "fast", FLAVOUR_OBJECTS },
	{ "ordered", "send", "fast", FLAVOUR_BLOCKS },
	{ "no-write-out", "send", "fast", FLAVOUR_ORDERED },
	{ "no-write-out", "send queue:", "fast", FLAVOUR_ORDERED },
	{ "no-write-out", "fan-out", "fast", FLAVOUR_ORDERED },
	{ "no-write-out", "send --key", "fast", FLAVOUR_ORDERED },
	{ "ordered,no-dir-sync", "send", "fast", FLAVOUR_ORDERED },
	{ "ordered,no-dir-sync", "done queue:", "fast", FLAVOUR_ORDERED },
	{ "ordered,name-before-bytes", "send", "fast", FLAVOUR_ORDERED },
	{ "ordered,mark-before-show", "mailroom drain", "fast", FLAVOUR_ORDERED },
};
static const char *const staged[] = { "send", "send --batch", "fan-out", "send --key", "register", "recv",
	"send queue:", "send channel:", "escalate" };
#define BROKEN (sizeof(broken) / sizeof(broken[0]))

/* ---- All of them ---- */

/* The campaign of kills asks more there than a power cut allows, or less than it must. */
static bool
is_replaced(const char *name)
{
	for (size_t i = 0; i < all_n; i++)
		if (strcmp(all[i]->name, name) == 0)
			return true;
	return false;
}

static void
collect(const struct scenario *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_replaced(list[i].name))
			all[all_n++] = &list[i];
}

int
main(int argc, char **argv)
{
	static struct CMUnitTest tests[256];
	static char names[256][120];
	size_t n = 0;

	collect(command_scenarios, command_scenarios_n);
	collect(row_scenarios, row_scenarios_n);
	collect(more_scenarios, more_scenarios_n);
	collect(office_scenarios, office_scenarios_n);
	collect(scenarios, scenarios_n);
	collect(carry_scenarios, carry_scenarios_n);
	size_t native_n = all_n; /* rooms of other systems have no such choice */

	collect(foreign_scenarios, foreign_scenarios_n);
	for (size_t i = 0; i < all_n; i++, n++) {
		(void)snprintf(names[n], sizeof(names[n]), "%s keeps every promise after a power cut", all[i]->name);
		tests[n] = (struct CMUnitTest){ names[n], keeps_every_promise, NULL, NULL, (void *)(uintptr_t)all[i] };
	}
	for (size_t i = 0; i < sizeof(staged) / sizeof(staged[0]); i++, n++) {
		(void)snprintf(names[n], sizeof(names[n]), "%s keeps them with named temporary files", staged[i]);
		tests[n] = (struct CMUnitTest){ names[n], keeps_them_with_named_files, NULL, NULL,
			(void *)(uintptr_t)find_scenario(staged[i]) };
	}
	for (size_t i = 0; i < native_n; i++, n++) {
		(void)snprintf(names[n], sizeof(names[n]), "%s keeps them with Sync: fast", all[i]->name);
		tests[n] = (struct CMUnitTest){ names[n], keeps_them_fast, NULL, NULL, (void *)(uintptr_t)all[i] };
	}
	for (size_t i = 0; i < BROKEN; i++, n++) {
		(void)snprintf(names[n], sizeof(names[n]), "%s is caught in %s%s%s", broken[i].how, broken[i].operation,
		    broken[i].sync ? ", Sync: fast, " : "", broken[i].sync ? flavour_names[broken[i].flavour] : "");
		tests[n] = (struct CMUnitTest){ names[n], is_caught, NULL, NULL, (void *)(uintptr_t)&broken[i] };
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests("model", tests, n, NULL, NULL);
}
