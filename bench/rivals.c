/* SPDX-License-Identifier: MIT */
/* rivals.c - one durable message of 1 KB, by each of them in turn; then what it leaves on the disk, and its syncs. */
#include "rival.h"
#include <stdio.h>

#define RIVALS_MAX 24
#define RIVAL_ROUNDS 11
#define RIVAL_OPS 4
#define USAGE_MESSAGES 200
#define USAGE_SLOW 40 /* of those that take longer than SLOW_US */
#define SLOW_US 5000
#define SYNC_MESSAGES 10

const struct rival *const all_rivals[] = { &mailroom_command, &mailroom_fast_command, &mdeliver_command, &nq_command,
	&redis_command, &beanstalkd_command, &sqlite_command, &sqlite_wal_command, &postgres_command, &shell_command,
	&teams_command, &bare_open, &mailroom_library, &mailroom_fast_library, &redis_open, &beanstalkd_open,
	&sqlite_open, &sqlite_wal_open, &postgres_open, &shell_open, &teams_open, NULL };

struct entry {
	const struct rival *rival;
	void *handle; /* NULL: it is not here */
	double us, low, high;
	struct usage usage; /* of one message */
	double syncs;       /* below 0: not counted */
};

static void
rest(struct bench *b, const struct entry *e)
{
	if (e->rival->rest)
		e->rival->rest(b, e->handle);
	sync_disk();
}

static void
settle(struct bench *b, const struct entry *e)
{
	rest(b, e);
	if (e->rival->settle)
		e->rival->settle(b, e->handle);
	sync_disk();
}

static void
start_all(struct bench *b, struct entry *entries)
{
	for (size_t i = 0; all_rivals[i]; i++) {
		struct entry *e = &entries[i];

		if (i == RIVALS_MAX)
			die("too many rivals");
		*e = (struct entry){ .rival = all_rivals[i], .syncs = -1 };
		if (e->rival->start(b, e->rival))
			e->handle = e->rival->open(b, e->rival, 0);
		else
			(void)printf("%-26s %-8s not here\n", e->rival->name, e->rival->how);
	}
}

/* Each waits for the disk to be clean before its turn: what one leaves unwritten is not paid by the next. */
static double
one_round(struct bench *b, const struct entry *e)
{
	double took[RIVAL_OPS];

	for (unsigned i = 0; i < RIVAL_OPS; i++) {
		rest(b, e);
		took[i] = e->rival->send(b, e->handle);
	}
	return median(took, RIVAL_OPS);
}

static void
measure_times(struct bench *b, struct entry *entries)
{
	static double took[RIVALS_MAX][RIVAL_ROUNDS];
	size_t n = 0;

	for (struct entry *e = entries; e->rival; e++)
		for (unsigned i = 0; e->handle && i < 2; i++) /* to warm up */
			(void)e->rival->send(b, e->handle);
	while (entries[n].rival)
		n++;
	for (unsigned round = 0; round < RIVAL_ROUNDS; round++)
		for (size_t k = 0; k < n; k++) {
			size_t i = (k + round) % n; /* no one is always first */

			if (entries[i].handle)
				took[i][round] = one_round(b, &entries[i]);
		}
	for (size_t i = 0; entries[i].rival; i++) {
		entries[i].us = median(took[i], RIVAL_ROUNDS); /* sorts */
		entries[i].low = took[i][0];
		entries[i].high = took[i][RIVAL_ROUNDS - 1];
	}
}

static void
measure_usage(struct bench *b, struct entry *e)
{
	unsigned n = e->us > SLOW_US ? USAGE_SLOW : USAGE_MESSAGES;

	settle(b, e);
	struct usage before = usage_of(e->rival->folder);
	for (unsigned i = 0; i < n; i++)
		(void)e->rival->send(b, e->handle);
	settle(b, e);
	struct usage after = usage_of(e->rival->folder);

	e->usage.bytes = (after.bytes - before.bytes) / n;
	e->usage.allocated = (after.allocated - before.allocated) / n;
}

static void
stop_all(struct entry *entries)
{
	for (struct entry *e = entries; e->rival; e++) {
		if (!e->handle)
			continue;
		e->rival->close(e->handle);
		if (e->rival->stop)
			e->rival->stop(e->rival);
		e->handle = NULL;
	}
}

/* The handle is opened anew, so that all that works for it is watched from its start. */
static void
count_syncs(struct bench *b, struct entry *e)
{
	const struct rival *r = e->rival;
	long before;

	r->close(e->handle);
	bool counts = syncs_begin(b, server_pid(r->folder));
	e->handle = r->open(b, r, 0);
	if (!counts)
		return;
	(void)r->send(b, e->handle);
	before = syncs_now();
	for (unsigned i = 0; i < SYNC_MESSAGES; i++)
		(void)r->send(b, e->handle);
	e->syncs = (double)(syncs_now() - before) / SYNC_MESSAGES;
	syncs_end();
}

static void
record_entry(const struct entry *e)
{
	FILE *out = record_begin("rivals");

	record_text(out, "name", e->rival->name);
	record_text(out, "how", e->rival->how);
	record_text(out, "durability", e->rival->durability);
	record_text(out, "note", e->rival->note ? e->rival->note : "");
	if (e->us > 0) {
		record_number(out, "us", e->us);
		record_number(out, "low_us", e->low);
		record_number(out, "high_us", e->high);
		record_number(out, "bytes", e->usage.bytes);
		record_number(out, "disk_bytes", e->usage.allocated);
		if (e->syncs >= 0)
			record_number(out, "syncs", e->syncs);
		(void)printf("%-26s %-8s %9.0f us %6.1f syncs %7.0f bytes\n", e->rival->name, e->rival->how, e->us,
		    e->syncs, e->usage.allocated);
	}
	record_end(out);
}

void
rows_rivals(struct bench *b)
{
	static struct entry entries[RIVALS_MAX + 1];

	b->senders = 1;
	start_all(b, entries);
	measure_times(b, entries);
	for (struct entry *e = entries; e->rival; e++) {
		if (!e->handle)
			continue;
		measure_usage(b, e);
		count_syncs(b, e);
	}
	stop_all(entries);
	for (struct entry *e = entries; e->rival; e++)
		record_entry(e);
}
