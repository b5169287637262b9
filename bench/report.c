/* SPDX-License-Identifier: MIT */
/* report.c - rounds and medians, the table for people. */
#include "bench.h"
#include <stdio.h>
#include <stdlib.h>

#define ROWS_MAX 32
#define OPS_MAX 256
#define WARM_UPS 2

struct row {
	struct comparison about;
	double bare_us, ours_us;
	double low, high; /* of the rounds' ratios */
};

static struct row rows[ROWS_MAX];
static size_t rows_n;

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* One of each in turn: whatever else the machine does at that moment, it does to both. */
static void
run_round(const struct comparison *c, double *ret_bare, double *ret_ours)
{
	double bare[OPS_MAX], ours[OPS_MAX];

	for (unsigned i = 0; i < c->ops; i++) {
		bare[i] = c->bare(c->ctx);
		ours[i] = c->ours(c->ctx);
	}
	*ret_bare = median(bare, c->ops);
	*ret_ours = median(ours, c->ops);
}

static struct row *
new_row(void)
{
	if (rows_n == ROWS_MAX)
		die("too many rows");
	return &rows[rows_n++];
}

void
compare(const struct comparison *c)
{
	double bare[ROUNDS], ours[ROUNDS], ratio[ROUNDS];
	struct row *row = new_row();

	if (c->ops > OPS_MAX)
		die("too many operations a round");
	/* A room of thousands, just made, leaves a full journal: each of the next transactions would wait for its room.
	 */
	sync_disk();
	for (unsigned i = 0; i < WARM_UPS; i++)
		(void)c->bare(c->ctx), (void)c->ours(c->ctx);
	for (unsigned i = 0; i < ROUNDS; i++) {
		run_round(c, &bare[i], &ours[i]);
		ratio[i] = ours[i] / bare[i];
	}
	*row = (struct row){ .about = *c, .bare_us = median(bare, ROUNDS), .ours_us = median(ours, ROUNDS) };
	(void)median(ratio, ROUNDS); /* sorts */
	row->low = ratio[0];
	row->high = ratio[ROUNDS - 1];
}

/* ---- The table ---- */

static bool
is_met(const struct row *row)
{
	return row->ours_us <= row->bare_us * row->about.budget;
}

static void
print_times(void)
{
	(void)printf("%-17s %10s %10s %7s %13s %7s\n", "", "bare us", "ours us", "ratio", "of rounds", "budget");
	for (size_t i = 0; i < rows_n; i++) {
		const struct row *r = &rows[i];

		(void)printf("%-17s %10.1f %10.1f %7.2f %6.2f-%-6.2f ", r->about.name, r->bare_us, r->ours_us,
		    r->ours_us / r->bare_us, r->low, r->high);
		if (r->about.budget > 0)
			(void)printf("%7.2f  %s\n", r->about.budget, is_met(r) ? "met" : "MISSED");
		else
			(void)printf("%7s\n", "-");
	}
}

static void
record_row(const struct row *r)
{
	FILE *out = record_begin("budget");

	record_text(out, "name", r->about.name);
	record_text(out, "what", r->about.what);
	record_number(out, "bare_us", r->bare_us);
	record_number(out, "ours_us", r->ours_us);
	record_number(out, "ratio", r->ours_us / r->bare_us);
	record_number(out, "ratio_low", r->low);
	record_number(out, "ratio_high", r->high);
	if (r->about.budget > 0) {
		record_number(out, "budget", r->about.budget);
		record_flag(out, "met", is_met(r));
	}
	record_number(out, "rounds", ROUNDS);
	record_number(out, "ops_per_round", r->about.ops);
	record_text(out, "note", r->about.note);
	if (r->about.reason)
		record_text(out, "reason", r->about.reason);
	record_end(out);
}

void
report_rows(const struct bench *b)
{
	int missed = 0;

	(void)printf("on %s; median of %d rounds, bare and ours in turn\n", b->file_system, ROUNDS);
	print_times();
	for (size_t i = 0; i < rows_n; i++) {
		record_row(&rows[i]);
		missed += rows[i].about.budget > 0 && !is_met(&rows[i]);
	}
	(void)printf("%d budgets missed\n\n", missed);
}
