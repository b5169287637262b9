/* SPDX-License-Identifier: MIT */
/* trial.c - one operation: run and recorded once over each set-up, then its states built and checked. */
#include "lib/settle.h"
#include "trial.h"
#include "more.h"
#include "base/clock.h"
#include "base/process.h"
#include "support/sys_break.h"
#include "support/sys_record.h"

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
#define RESTART_MS                                                                                                     \
	(5000 + CLOCK_GRACE_MS) /* leases of a second are over then, also by the wall clock of another boot */
#define SHOWN_AT_MOST 3         /* violations of one operation that are told in full */

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

static void
settle_world(const struct world *w)
{
	char config[160];

	(void)snprintf(config, sizeof(config), "%s/config", w->dir);
	settle_configuration(config);
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

/* After the next commands the room is well. */
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
		settle_world(&t->world);
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

void
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

bool
long_form(void)
{
	const char *asked = getenv("MAILROOM_TEST_LONG");

	return asked != NULL && asked[0] != '\0';
}

/* `t` says what to do: scenario, flavours, want, quiet. */
void
trial_begin(struct trial *t, const char *broken)
{
	t->at = mmap(NULL, sizeof(*t->at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(t->at != MAP_FAILED);
	boot_id_pretend(MODEL_BOOT);
	t->scenario->setup(&t->world);
	(void)snprintf(t->record, sizeof(t->record), "%s.record", t->world.dir);
	(void)snprintf(t->log, sizeof(t->log), "%s.log", t->world.dir);
	fs_take_snapshot(&t->fs, t->world.dir);
	record_operation(t, broken);
	boot_id_pretend(NULL); /* the machine has started again */
	struct drawing d = { .fs = &t->fs,
		.flavours = t->flavours,
		.want = t->want,
		.all = long_form(),
		.both_names = wants_both_names(t->scenario->name),
		.dice = SEED };
	states_draw(&d, &t->states);
}

void
trial_end(struct trial *t)
{
	(void)nftw(t->world.dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	(void)unlink(t->record);
	(void)unlink(t->log);
	(void)munmap(t->at, sizeof(*t->at));
	states_done(&t->states);
	fs_done(&t->fs);
}

static unsigned
states_wanted(void)
{
	const char *asked = getenv("MAILROOM_TEST_STATES");

	return asked && asked[0] ? (unsigned)strtoul(asked, NULL, 10) : long_form() ? 4000 : 24;
}

static unsigned
calls_of(const struct fs *fs)
{
	unsigned n = 0;

	for (int i = 0; i < fs->events_n; i++)
		n += fs->events[i].kind != EVENT_SAID;
	return n;
}

/* ---- Over several set-ups ---- */

static const struct world_options set_ups[] = {
	{ .sized = false },
	{ .sized = true, .body_size = 1000, .history = true },
	{ .sized = true, .body_size = 70000, .history = true },
	{ .sized = true, .body_size = 70000 },
	{ .sized = true, .body_size = 2 },
};
#define SET_UPS (sizeof(set_ups) / sizeof(set_ups[0]))

static void
add_trial(struct sums *sum, const struct trial *t)
{
	unsigned calls = calls_of(&t->fs);

	sum->calls = calls > sum->calls ? calls : sum->calls;
	sum->set_ups++;
	sum->drawn += t->states.drawn;
	sum->different += (unsigned)t->states.n;
	sum->allowed = sum->allowed < 0 || t->states.allowed < 0 ? -1 : sum->allowed + t->states.allowed;
	sum->violations += t->violations;
}

/* Rooms of other systems have texts of their own, and one set-up more shows what carrying does with them; a command
 * does not print, and so does not consume, what is very long. */
static bool
has_set_up(const struct scenario *s, size_t which)
{
	bool foreign = s >= foreign_scenarios && s < foreign_scenarios + foreign_scenarios_n;
	bool carried = s >= carry_scenarios && s < carry_scenarios + carry_scenarios_n;

	bool command = s >= command_scenarios && s < command_scenarios + command_scenarios_n;

	return which == 0 ||
	       (long_form() && !foreign && (!carried || which == 1) && (!command || set_ups[which].body_size < 10000));
}

/* What the first set-ups leave of the number that is wanted goes to the next ones. */
struct sums
run_set_ups(const struct scenario *s, unsigned flavours, const char *how, const char *sync)
{
	struct sums sum = { 0 };
	unsigned left = 0;

	for (size_t i = 0; i < SET_UPS; i++)
		left += has_set_up(s, i);
	for (size_t i = 0; i < SET_UPS; i++) {
		if (!has_set_up(s, i))
			continue;
		struct world_options options = set_ups[i];
		struct trial t = { .scenario = s, .flavours = flavours };
		unsigned wanted = states_wanted();

		options.sync = sync;
		world_options_set(&options);
		t.want = wanted > sum.different ? (wanted - sum.different + left - 1) / left : 1;
		left--;
		trial_begin(&t, how);
		check_in_children(&t);
		add_trial(&sum, &t);
		trial_end(&t);
	}
	world_options_set(&set_ups[0]);
	return sum;
}

void
print_sums(const char *name, const struct sums *sum)
{
	char of[40];

	if (sum->allowed < 0)
		(void)snprintf(of, sizeof(of), "drawn from more");
	else if (sum->allowed > (long)sum->different)
		(void)snprintf(of, sizeof(of), "drawn from %ld", sum->allowed);
	else
		(void)snprintf(of, sizeof(of), "all there are");
	print_message("# %-32s %3u calls, %u set-ups, %7ld looked at, %5u different, %s, %u violations\n", name,
	    sum->calls, sum->set_ups, sum->drawn, sum->different, of, sum->violations);
}
