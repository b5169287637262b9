/* SPDX-License-Identifier: MIT */
/*
 * test_model.c - every operation, its calls recorded once, and the states after a power cut that the model draws from
 * them. The operations and their checks are those of tests/crash, and some more.
 *
 *	test_model                 the short form: a few dozen states an operation
 *	MAILROOM_TEST_LONG=1       thousands, where there are so many; MAILROOM_TEST_STATES=N that many
 *	MAILROOM_TEST_BOTH_NAMES=1 also those that are known to break promises where there is no journal
 *	test_model PATTERN         only the tests whose names match
 */
#include "model.h"
#include "more.h"
#include "base/clock.h"
#include "base/process.h"
#include "base/sys_break.h"
#include "base/sys_record.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define SEED 20260701
#define RESTART_MS 5000 /* a machine needs a moment to come back; short leases are over then */
#define SHOWN_AT_MOST 3 /* violations of one operation that are told in full */

struct trial { /* one operation, with what is known of it */
	const struct scenario *scenario;
	struct world world;
	struct fs fs;
	struct states states;
	char record[96], log[96];
	int *at; /* shared with the child that checks: the state it looks at */
	unsigned violations;
	bool quiet;
};

/* ---- Recording ---- */

static void
record_operation(struct trial *t, const char *broken)
{
	int status = 0;

	(void)fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		int tell = open(t->record, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		if (tell < 0 || sys_record_to(t->record) < 0 || !sys_break_set(broken))
			_exit(3);
		if (broken)
			(void)setenv("MAILROOM_TEST_BREAK", broken, 1);
		enum mr_rc rc = t->scenario->run(&t->world, tell);
		(void)sys_record_to(NULL);
		tell_char(tell, rc == MR_OK ? 'a' : 'r');
		_exit(rc == MR_OK ? 0 : 4);
	}
	if (waitpid(child, &status, 0) != child || status != 0)
		fail_msg("'%s' did not work even without a cut (status %x)", t->scenario->name, (unsigned)status);
	fs_read_record(&t->fs, t->record);
}

/* Text, with the ids of what a command printed, up to the last line break; then the letters of tests/crash. */
static void
hear_said(struct world *w, struct bytes said)
{
	const char *end = memrchr(said.ptr, '\n', said.len);
	size_t text = end ? (size_t)(end - said.ptr) + 1 : 0;

	for (unsigned i = 0; i < WORK; i++)
		if (w->ids[i][0] && memmem(said.ptr, text, w->ids[i], strlen(w->ids[i])))
			w->shown |= 1u << i;
	for (unsigned i = 0; i < 10; i++) { /* send --batch */
		char line[24];
		int n = snprintf(line, sizeof(line), "{\"line\":%u,\"id\"", i + 1);
		if (memmem(said.ptr, text, line, (size_t)n))
			w->shown |= 1u << i;
	}
	for (size_t i = text; i < said.len; i++) {
		w->accepted |= said.ptr[i] == 'a';
		if (said.ptr[i] >= '0' && said.ptr[i] <= '9')
			w->shown |= 1u << (said.ptr[i] - '0');
	}
}

/* What the world had been told before the cut. */
static void
hear(struct trial *t, const struct state *s)
{
	t->world.accepted = t->world.refused = t->world.doubted = false;
	t->world.shown = 0;
	for (int i = 0; i < s->after; i++)
		if (t->fs.events[i].kind == EVENT_SAID)
			hear_said(&t->world, t->fs.events[i].now);
}

/* ---- Checking: in a child, which goes on until a check fails ---- */

static void
note_problem(void *ctx, const struct mr_finding *f)
{
	(void)ctx;
	if (f->severity == MR_PROBLEM && strcmp(f->code, "space") != 0)
		fail_msg("doctor: %s: %s", f->code, f->what);
}

/* Whoever looks at the room after the next commands finds it well. */
static void
check_health(struct trial *t)
{
	struct mr_error err = { 0 };
	struct mr_room *room = t->world.foreign ? NULL : world_open(&t->world, true);

	if (room == NULL)
		return;
	if (mr_doctor(room, false, note_problem, NULL, &err) != MR_OK)
		fail_msg("doctor: %s", err.message);
	mr_room_close(room);
}

static void
check_states(void **state)
{
	struct trial *t = *state;

	clock_shift_ms(RESTART_MS);
	for (; *t->at < t->states.n; ++*t->at) {
		const struct state *s = &t->states.list[*t->at];
		state_build(&t->fs, s);
		hear(t, s);
		t->scenario->check(&t->world);
		check_health(t);
	}
}

static void
print_violation(const struct trial *t)
{
	const struct state *s = &t->states.list[*t->at];
	FILE *log = fopen(t->log, "r");
	char line[400];

	print_message("# VIOLATION of '%s':\n", t->scenario->name);
	(void)fflush(stdout);
	state_print(stdout, &t->fs, s);
	while (log && fgets(line, sizeof(line), log))
		if (strstr(line, "ERROR") || strstr(line, ".c:") || strstr(line, "# "))
			print_message("# %s", line);
	if (log)
		(void)fclose(log);
}

static void
check_in_children(struct trial *t)
{
	int status = 0;

	for (*t->at = 0; *t->at < t->states.n; ++*t->at) {
		(void)fflush(NULL);
		pid_t child = fork();
		if (child == 0) {
			struct CMUnitTest one = { "state", check_states, NULL, NULL, t };
			int log = open(t->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
			(void)dup2(log, 1);
			(void)dup2(log, 2);
			cmocka_set_test_filter(NULL);
			int failed = _cmocka_run_group_tests("states", &one, 1, NULL, NULL);
			(void)fflush(NULL);
			_exit(failed ? 1 : 0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (status == 0) {
			assert_int_equal(*t->at, t->states.n); /* it has looked at all of them */
			break;
		}
		t->violations++;
		if (!t->quiet && t->violations <= SHOWN_AT_MOST)
			print_violation(t);
		if (t->quiet)
			break; /* one is enough to be caught */
	}
}

/* ---- One operation ---- */

/* Also the states that are known to break promises where there is no journal? */
static bool
wants_both_names(const char *operation)
{
	/* Only a record of the carrying is left over there; the mail is right. */
	return getenv("MAILROOM_TEST_BOTH_NAMES") != NULL || strcmp(operation, "carry from a maildir") != 0;
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
trial_begin(struct trial *t, const struct scenario *s, const char *broken, unsigned want)
{
	*t = (struct trial){ .scenario = s, .quiet = broken != NULL };
	t->at = mmap(NULL, sizeof(*t->at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(t->at != MAP_FAILED);
	boot_id_pretend(MODEL_BOOT);
	s->setup(&t->world);
	(void)snprintf(t->record, sizeof(t->record), "%s.record", t->world.dir);
	(void)snprintf(t->log, sizeof(t->log), "%s.log", t->world.dir);
	fs_take_snapshot(&t->fs, t->world.dir);
	record_operation(t, broken);
	boot_id_pretend(NULL); /* the machine has started again */
	states_draw(&t->fs, want, SEED, wants_both_names(s->name), &t->states);
}

static void
trial_end(struct trial *t)
{
	(void)nftw(t->world.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	(void)unlink(t->record);
	(void)unlink(t->log);
	(void)munmap(t->at, sizeof(*t->at));
	states_done(&t->states);
	fs_done(&t->fs);
}

static bool
long_form(void)
{
	const char *asked = getenv("MAILROOM_TEST_LONG");

	return asked != NULL && asked[0] != '\0';
}

static unsigned
states_wanted(void)
{
	const char *asked = getenv("MAILROOM_TEST_STATES");

	return asked && asked[0] ? (unsigned)strtoul(asked, NULL, 10) : long_form() ? 3000 : 40;
}

static unsigned
calls_of(const struct fs *fs)
{
	unsigned n = 0;

	for (int i = 0; i < fs->events_n; i++)
		n += fs->events[i].kind != EVENT_SAID;
	return n;
}

static void
keeps_every_promise(void **state)
{
	struct trial t;

	trial_begin(&t, *state, NULL, states_wanted());
	check_in_children(&t);
	print_message("# %-24s %5u calls %7d drawn %6d different states %4u violations\n", t.scenario->name,
	    calls_of(&t.fs), t.states.drawn, t.states.n, t.violations);
	unsigned violations = t.violations, calls = calls_of(&t.fs);
	trial_end(&t);
	assert_true(calls > 0 || t.scenario->min_points == 0);
	assert_int_equal(violations, 0);
}

/* On a system without unnamed files a temporary name takes their place, and other calls are made. */
static void
keeps_them_with_named_files(void **state)
{
	struct trial t;

	trial_begin(&t, *state, "no-unnamed", states_wanted());
	t.quiet = false;
	check_in_children(&t);
	print_message("# %-24s %5u calls %7d drawn %6d different states %4u violations, named files\n",
	    t.scenario->name, calls_of(&t.fs), t.states.drawn, t.states.n, t.violations);
	unsigned violations = t.violations;
	trial_end(&t);
	assert_int_equal(violations, 0);
}

/* ---- The test must be able to fail ---- */

struct broken {
	const char *how;
	const char *operation;
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
	struct trial t;

	trial_begin(&t, find_scenario(b->operation), b->how, 600);
	check_in_children(&t);
	print_message("# %s, %s: caught by state %d\n", b->operation, b->how, *t.at);
	unsigned violations = t.violations;
	trial_end(&t);
	assert_int_not_equal(violations, 0);
}

static const struct broken broken[] = {
	{ "no-dir-sync", "send" },
	{ "no-dir-sync", "send --batch" },
	{ "no-dir-sync", "mailroom send --batch" },
	{ "no-dir-sync", "done" },
	{ "no-dir-sync", "done queue:" },
	{ "no-dir-sync", "send channel:" },
	{ "no-dir-sync", "teams send" },
	{ "no-file-sync", "send" },
	{ "no-file-sync", "send --batch" },
	{ "no-file-sync", "fan-out" },
	{ "no-file-sync", "chipset send" },
	{ "name-before-bytes", "send" },
	{ "name-before-bytes", "send --batch" },
	{ "name-before-bytes", "send queue:" },
	{ "mark-before-show", "read" },
	{ "mark-before-show", "mailroom drain" },
	{ "source-first", "done" },
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
	static struct CMUnitTest tests[160];
	static char names[160][120];
	size_t n = 0;

	collect(command_scenarios, command_scenarios_n);
	collect(more_scenarios, more_scenarios_n);
	collect(office_scenarios, office_scenarios_n);
	collect(scenarios, scenarios_n);
	collect(foreign_scenarios, foreign_scenarios_n);
	collect(carry_scenarios, carry_scenarios_n);
	for (size_t i = 0; i < all_n; i++, n++) {
		(void)snprintf(names[n], sizeof(names[n]), "%s keeps every promise after a power cut", all[i]->name);
		tests[n] = (struct CMUnitTest){ names[n], keeps_every_promise, NULL, NULL, (void *)(uintptr_t)all[i] };
	}
	for (size_t i = 0; i < sizeof(staged) / sizeof(staged[0]); i++, n++) {
		(void)snprintf(names[n], sizeof(names[n]), "%s keeps them with named temporary files", staged[i]);
		tests[n] = (struct CMUnitTest){ names[n], keeps_them_with_named_files, NULL, NULL,
			(void *)(uintptr_t)find_scenario(staged[i]) };
	}
	for (size_t i = 0; i < BROKEN; i++, n++) {
		(void)snprintf(names[n], sizeof(names[n]), "%s is caught in %s", broken[i].how, broken[i].operation);
		tests[n] = (struct CMUnitTest){ names[n], is_caught, NULL, NULL, (void *)(uintptr_t)&broken[i] };
	}
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return _cmocka_run_group_tests("model", tests, n, NULL, NULL);
}
