/* SPDX-License-Identifier: MIT */
/*
 * test_race.c - runs the pairs under many schedules. Prints TAP, and a table with --table.
 *
 *	test_race [--bin FILE] [--devbin FILE] [--pair TEXT] [--schedule TEXT] [--seed N] [--seconds N] [--table]
 *	          [--list] [--stop]
 *
 * For every pair: A stands before each of its calls while B runs to its end; the same with A killed there; the same
 * with B standing; then schedules by dice. Without --seconds a small part, a different one with every seed; with it
 * that long for all pairs together: the standing points, and dice until the pair's share is over. A violation prints
 * what reproduces it; with --stop it is the last thing that this pair does, and --pair is its whole name.
 */
#include "race.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHORT_STRIDE 31
#define SHORT_POINTS 4
#define STRIDE 5
#define PAIRS_MAX 128

struct options {
	const char *pair, *schedule;
	uint64_t seed;
	double seconds; /* in all; 0: the short form */
	bool table, list, stop;
	const char *bin, *devbin;
	char base[64], near[2][300];
};
struct tally {
	unsigned schedules, violations, hangs, longest;
	bool verbose, cut, stop;
	double
	    until; /* standing points are left out from then on: beside a lock that is polled there is no end of them */
};

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What is true of every pair. */
static void
check_always(struct world *w)
{
	char tags[80], *rest = NULL;

	for (size_t i = 0; i < w->found_n; i++) {
		const struct found *f = &w->found[i];
		if (strcmp(f->agent, "dead") != 0 && strcmp(f->tag, "") != 0 && copies(w, f->agent, f->tag) > 1)
			violate(w, "%s has %zu copies of '%s'", f->agent, copies(w, f->agent, f->tag), f->tag);
		if (f->folder == MR_HELD && f->token[0] == '\0')
			violate(w, "'%s' is held and nobody is there", f->tag);
	}
	(void)snprintf(tags, sizeof(tags), "%s", w->pair->before);
	for (char *tag = strtok_r(tags, " ", &rest); tag; tag = strtok_r(NULL, " ", &rest)) {
		const struct found *f = the_copy(w, "bob", tag);
		if (!f)
			violate(w, "'%s' is lost", tag);
		else if (!w->pair->unseen && consumed(f) && shown_by(w->out_a, tag) + shown_by(w->out_b, tag) == 0)
			violate(w, "'%s' was consumed unseen", tag);
	}
	if (w->exit_a == -2 || w->exit_b == -2)
		violate(w, "a command died of a signal that nobody sent");
}

static void
tell_all(const struct world *w)
{
	(void)printf("# A exited with %d and said:\n%s\n# B exited with %d and said:\n%s\n", w->exit_a, w->out_a,
	    w->exit_b, w->out_b);
	for (size_t i = 0; i < w->found_n; i++) {
		const struct found *f = &w->found[i];
		(void)printf("# %s has '%s' in folder %u, flags %u, attempt %u, token '%s'\n", f->agent, f->tag,
		    f->folder, f->flags, f->attempt, f->token);
	}
}

/* False: the harness itself fails. */
static bool
run_one(struct world *w, const struct schedule *s, struct tally *t, bool *ret_beyond)
{
	char text[600];

	if (!world_reset(w) || !world_start(w, &w->a, w->pair->a) || !world_start(w, &w->b, w->pair->b))
		return false;
	actors_patience(true);
	bool ended = schedule_run(s, &w->a, &w->b, ret_beyond);
	actors_patience(false);
	t->schedules++;
	t->longest = w->a.steps > t->longest ? w->a.steps : t->longest;
	t->longest = w->b.steps > t->longest ? w->b.steps : t->longest;
	if (!ended) {
		actor_kill(&w->a);
		actor_kill(&w->b);
		t->hangs++;
		violate(w, "neither goes on");
	}
	world_look(w);
	check_always(w);
	w->pair->check(w);
	if (t->verbose)
		tell_all(w);
	if (w->violation[0] == '\0')
		return true;
	t->violations++;
	schedule_print(s, text, sizeof(text));
	(void)printf("# VIOLATION %s: %s (exits %d, %d)\n#   again: test_race --pair '%s' --schedule '%s'\n",
	    w->pair->name, w->violation, w->exit_a, w->exit_b, w->pair->name, text);
	return true;
}

/* One of them stands before its call `first`, then every `stride` calls later; the other runs to its end meanwhile. */
static bool
sweep(struct world *w, char who, enum turn_end how, unsigned first, unsigned stride, unsigned most, struct tally *t)
{
	bool beyond = false;

	for (unsigned n = first, ran = 0; !beyond && n < 2000 && ran < most; n += stride, ran++) {
		struct schedule s = { 0 };
		if (t->stop && t->violations)
			break;
		if (now() > t->until) {
			t->cut = true;
			break;
		}
		schedule_add(&s, who, TURN_STEPS, n);
		schedule_add(&s, who == 'A' ? 'B' : 'A', TURN_TO_END, 0);
		schedule_add(&s, who, how, 0);
		if (!run_one(w, &s, t, &beyond))
			return false;
	}
	return true;
}

/* Every point, but not in order: who has no time for all of them has looked everywhere a little. */
static bool
sweep_all(struct world *w, uint64_t *dice, struct tally *t)
{
	unsigned from = race_dice(dice) % STRIDE;

	for (unsigned i = 0; i < STRIDE; i++) {
		unsigned first = 1 + (from + i) % STRIDE;
		for (const char *who = "AB"; *who; who++)
			if (!sweep(w, *who, TURN_TO_END, first, STRIDE, UINT_MAX, t) ||
			    !sweep(w, *who, TURN_KILL, first, STRIDE, UINT_MAX, t))
				return false;
	}
	return true;
}

static bool
dice_until(struct world *w, uint64_t *dice, double end, unsigned most, struct tally *t)
{
	for (unsigned i = 0; i < most && now() < end && !(t->stop && t->violations); i++) {
		struct schedule s;
		bool beyond;
		schedule_random(dice, t->longest, &s);
		if (!run_one(w, &s, t, &beyond))
			return false;
	}
	return true;
}

/* share: seconds for this pair; 0: the short form. */
static bool
race_pair(struct world *w, const struct options *o, double share, uint64_t dice, struct tally *t)
{
	double began = now();
	bool beyond;

	if (o->schedule) {
		struct schedule s;
		if (!schedule_parse(o->schedule, &s))
			return false;
		t->verbose = true;
		return run_one(w, &s, t, &beyond);
	}
	if (share > 0) {
		t->until = began + share * 0.8;
		return sweep_all(w, &dice, t) && dice_until(w, &dice, began + share, UINT_MAX, t);
	}
	t->until = began + 10;
	unsigned first = 1 + race_dice(&dice) % SHORT_STRIDE;
	return sweep(w, 'A', TURN_TO_END, first, SHORT_STRIDE, SHORT_POINTS, t) &&
	       sweep(w, 'B', TURN_TO_END, first, SHORT_STRIDE, SHORT_POINTS, t) &&
	       dice_until(w, &dice, began + 1, 3, t);
}

static int
test_pair(const struct pair *pair, const struct options *o, double share, unsigned number, struct tally *sum)
{
	struct world w = { .pair = pair, .bin = o->bin, .devbin = o->devbin };
	struct tally t = { .stop = o->stop };
	double began = now();
	uint64_t dice = o->seed;

	(void)snprintf(w.base, sizeof(w.base), "%s/race", o->base);
	for (const char *c = pair->name; *c; c++) /* by its name, so that --pair throws the same */
		dice = dice * 31 + (unsigned char)*c;
	bool ran = world_make(&w) && race_pair(&w, o, share, dice, &t);
	world_done(&w);
	sum->schedules += t.schedules;
	sum->violations += t.violations;
	sum->hangs += t.hangs;
	if (o->table)
		(void)printf("race: %-34s %6u schedules, up to %3u calls, %u violations%s%s  (%.1f s)\n", pair->name,
		    t.schedules, t.longest, t.violations, t.cut ? ", not all standing points" : "",
		    ran ? "" : ", THE HARNESS FAILED", now() - began);
	(void)printf(
	    "%s %u - %s: %u schedules\n", ran && t.violations == 0 ? "ok" : "not ok", number, pair->name, t.schedules);
	(void)fflush(stdout);
	return ran && t.violations == 0 ? 0 : 1;
}

#define NODE_PAIR "teams lock x Node lock"

/* Node needs a tenth of a second to begin and dies of nothing that we do: it is one long conversation. */
static int
test_node(const struct options *o, double share, unsigned number, struct tally *sum)
{
	char row[120] = "";
	unsigned rounds = share > 0 ? 20 + (unsigned)(share * 25) : 10;
	double began = now();
	unsigned bad = race_node(o->bin, rounds, o->seed, row, sizeof(row));

	sum->schedules += rounds;
	sum->violations += bad;
	if (o->table)
		(void)printf("race: %-34s %s  (%.1f s)\n", NODE_PAIR, row, now() - began);
	(void)printf("%s %u - %s: %s\n", bad == 0 ? "ok" : "not ok", number, NODE_PAIR, row);
	return bad == 0 ? 0 : 1;
}

static bool
ptrace_works(const struct options *o)
{
	char out[100];
	struct actor a = { .out = out };

	(void)snprintf(out, sizeof(out), "%s/probe", o->base);
	bool works = actor_start(&a, (const char *[]){ "true", NULL }, "/");
	actor_kill(&a);
	return works;
}

static void
find_commands(struct options *o, const char *self)
{
	const char *slash = strrchr(self, '/');
	int len = slash ? (int)(slash - self) : 1;

	(void)snprintf(o->near[0], sizeof(o->near[0]), "%.*s/../../musl/mailroom", len, slash ? self : ".");
	(void)snprintf(o->near[1], sizeof(o->near[1]), "%.*s/../mailroom", len, slash ? self : ".");
	for (size_t i = 0; i < 2; i++) {
		char *full = realpath(o->near[i], NULL);
		if (full)
			(void)snprintf(o->near[i], sizeof(o->near[i]), "%s", full);
		else
			o->near[i][0] = '\0';
		free(full);
	}
	if (!o->devbin)
		o->devbin = o->near[1];
	if (!o->bin)
		o->bin = o->near[0][0] ? o->near[0] : o->near[1];
}

static bool
parse_options(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;
		if (strcmp(argv[i], "--table") == 0)
			o->table = true;
		else if (strcmp(argv[i], "--list") == 0)
			o->list = true;
		else if (strcmp(argv[i], "--stop") == 0)
			o->stop = true;
		else if (!value)
			return false;
		else if (strcmp(argv[i], "--pair") == 0)
			o->pair = argv[++i];
		else if (strcmp(argv[i], "--schedule") == 0)
			o->schedule = argv[++i];
		else if (strcmp(argv[i], "--seed") == 0)
			o->seed = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seconds") == 0)
			o->seconds = strtod(argv[++i], NULL);
		else if (strcmp(argv[i], "--bin") == 0)
			o->bin = argv[++i];
		else if (strcmp(argv[i], "--devbin") == 0)
			o->devbin = argv[++i];
		else
			return false;
	}
	return true;
}

/* The short form is a third of the pairs, another third with another seed. */
static bool
is_asked_for(const struct options *o, const char *name, unsigned number)
{
	if (o->pair)
		return o->schedule || o->stop ? strcmp(name, o->pair) == 0 : strstr(name, o->pair) != NULL;
	return o->seconds > 0 || (number + o->seed) % 3 == 0;
}

static int
race_all(const struct options *o, unsigned *ret_n, struct tally *sum)
{
	const struct pair *lists[] = { pairs_mail, pairs_work, pairs_told, pairs_other }, *chosen[PAIRS_MAX];
	const size_t counts[] = { pairs_mail_n, pairs_work_n, pairs_told_n, pairs_other_n };
	double end = now() + o->seconds;
	unsigned all = 0, n = 0;
	int bad = 0;

	for (size_t l = 0; l < 4; l++)
		for (size_t i = 0; i < counts[l] && n < PAIRS_MAX; i++)
			if (is_asked_for(o, lists[l][i].name, all++))
				chosen[n++] = &lists[l][i];
	bool node = o->pair ? strcmp(o->pair, NODE_PAIR) == 0 : o->seconds > 0;
	/* What one pair does not need of its share goes to those that follow. */
	for (unsigned i = 0; i < n; i++)
		bad += test_pair(chosen[i], o, o->seconds > 0 ? (end - now()) / (n - i + node) : 0, ++*ret_n, sum);
	if (node)
		bad += test_node(o, o->seconds > 0 ? end - now() : 0, ++*ret_n, sum);
	return bad;
}

static void
list_all(void)
{
	const struct pair *lists[] = { pairs_mail, pairs_work, pairs_told, pairs_other };
	const size_t counts[] = { pairs_mail_n, pairs_work_n, pairs_told_n, pairs_other_n };

	for (size_t l = 0; l < 4; l++)
		for (size_t i = 0; i < counts[l]; i++)
			(void)printf("%s\n", lists[l][i].name);
	(void)printf("%s\n", NODE_PAIR);
}

int
main(int argc, char **argv)
{
	struct options o = { .seed = (uint64_t)time(NULL) };
	struct tally sum = { 0 };
	unsigned n = 0;

	if (!parse_options(argc, argv, &o)) {
		(void)fprintf(stderr,
		    "usage: test_race [--bin FILE] [--devbin FILE] [--pair TEXT] [--schedule TEXT] [--seed N] "
		    "[--seconds N] [--table] [--list] [--stop]\n");
		return 2;
	}
	if (o.list) {
		list_all();
		return 0;
	}
	find_commands(&o, argv[0]);
	(void)snprintf(
	    o.base, sizeof(o.base), "%s/mailroom-race.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(o.base))
		return 1;
	if (!ptrace_works(&o)) {
		(void)printf("1..0 # skip ptrace is not allowed here\n");
		world_remove(o.base);
		return 0;
	}
	(void)printf("# seed %llu, command %s\n", (unsigned long long)o.seed, o.bin);
	int bad = race_all(&o, &n, &sum);
	world_remove(o.base);
	if (o.table)
		(void)printf("race: %u pairs, %u schedules, %u violations, %u hangs; seed %llu\n", n, sum.schedules,
		    sum.violations, sum.hangs, (unsigned long long)o.seed);
	(void)printf("1..%u\n", n);
	return bad == 0 && n > 0 ? 0 : 1;
}
