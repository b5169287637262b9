/* SPDX-License-Identifier: MIT */
/* report.c - rounds and medians, the table for people and build/bench.json for programs. */
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
	unsigned calls, syncs;
};

static struct row rows[ROWS_MAX];
static size_t rows_n;

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
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

void
report_calls(const char *name, const char *what, unsigned calls, unsigned syncs)
{
	*new_row() = (struct row){
		.about = { .name = name, .what = what, .note = "counted with strace" }, .calls = calls, .syncs = syncs
	};
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

		if (r->calls)
			continue;
		(void)printf("%-17s %10.1f %10.1f %7.2f %6.2f-%-6.2f ", r->about.name, r->bare_us, r->ours_us,
		    r->ours_us / r->bare_us, r->low, r->high);
		if (r->about.budget > 0)
			(void)printf("%7.2f  %s\n", r->about.budget, is_met(r) ? "met" : "MISSED");
		else
			(void)printf("%7s\n", "-");
	}
}

static void
print_calls(void)
{
	bool any = false;

	for (size_t i = 0; i < rows_n; i++) {
		if (!rows[i].calls)
			continue;
		if (!any)
			(void)printf("\n%-17s %10s %10s\n", "", "calls", "syncs");
		any = true;
		(void)printf(
		    "%-17s %10u %10u  %s\n", rows[i].about.name, rows[i].calls, rows[i].syncs, rows[i].about.what);
	}
}

/* ---- The JSON ---- */

/* Our own texts and a file system's name: nothing in them needs more than this. */
static void
json_text(FILE *out, const char *name, const char *value)
{
	(void)fprintf(out, "\"%s\":\"", name);
	for (const char *c = value; *c; c++)
		if (*c == '"' || *c == '\\')
			(void)fprintf(out, "\\%c", *c);
		else if ((unsigned char)*c >= 0x20)
			(void)fputc(*c, out);
	(void)fputs("\",", out);
}

static void
json_row(FILE *out, const struct bench *b, const struct row *r)
{
	(void)fputs("  {", out);
	json_text(out, "name", r->about.name);
	json_text(out, "what", r->about.what);
	if (r->calls) {
		(void)fprintf(out, "\"calls\":%u,\"syncs\":%u,", r->calls, r->syncs);
	} else {
		(void)fprintf(out, "\"bare_us\":%.2f,\"ours_us\":%.2f,\"ratio\":%.3f,", r->bare_us, r->ours_us,
		    r->ours_us / r->bare_us);
		(void)fprintf(out, "\"ratio_low\":%.3f,\"ratio_high\":%.3f,", r->low, r->high);
		if (r->about.budget > 0)
			(void)fprintf(
			    out, "\"budget\":%.2f,\"met\":%s,", r->about.budget, is_met(r) ? "true" : "false");
		else
			(void)fputs("\"budget\":null,\"met\":null,", out);
		(void)fprintf(out, "\"rounds\":%d,\"ops_per_round\":%u,", ROUNDS, r->about.ops);
	}
	json_text(out, "file_system", b->file_system);
	(void)fprintf(out, "\"note\":\"%s\"}", r->about.note);
}

int
report_finish(const struct bench *b)
{
	FILE *out = fopen(b->json, "w");
	int missed = 0;

	(void)printf("on %s; median of %d rounds, bare and ours in turn\n", b->file_system, ROUNDS);
	print_times();
	print_calls();
	if (!out)
		die("cannot write '%s'", b->json);
	(void)fputs("{\"rows\":[\n", out);
	for (size_t i = 0; i < rows_n; i++) {
		json_row(out, b, &rows[i]);
		(void)fputs(i + 1 < rows_n ? ",\n" : "\n", out);
		missed += rows[i].about.budget > 0 && !is_met(&rows[i]);
	}
	(void)fputs("]}\n", out);
	if (fclose(out) != 0)
		die("cannot write '%s'", b->json);
	(void)printf("\n%d budgets missed; written to %s\n", missed, b->json);
	return missed;
}
