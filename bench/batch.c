/* SPDX-License-Identifier: MIT */
/* batch.c - a thousand messages by one send --batch, beside a command for each. */
#include "bench.h"
#include <stdio.h>

#define MESSAGES 1000
#define SINGLES 20
#define INPUT "batch-1000"

struct both {
	struct bench *bench;
	const char *const *single, *const *batch;
};

static void
write_input(const struct bench *b)
{
	FILE *file = fopen(INPUT, "w");

	for (unsigned i = 0; file && i < MESSAGES; i++) {
		(void)fputs("{\"to\":\"bob\",\"body\":\"", file);
		for (const char *c = b->body; *c; c++)
			(void)fputs(*c == '\n' ? "\\n" : (const char[]){ *c, '\0' }, file);
		(void)fputs("\"}\n", file);
	}
	if (!file || fclose(file) != 0)
		die("cannot write '%s'", INPUT);
}

/* For one of some: both sides are means. */
static double
send_single(void *ctx)
{
	struct both *both = ctx;
	double began = now_us();

	both->bench->input = NULL;
	for (unsigned i = 0; i < SINGLES; i++)
		if (run_program(both->bench, both->single, NULL) != 0)
			die("send failed");
	return (now_us() - began) / SINGLES;
}

/* For one of them. */
static double
send_batch(void *ctx)
{
	struct both *both = ctx;
	double began = now_us();

	both->bench->input = INPUT;
	if (run_program(both->bench, both->batch, NULL) != 0)
		die("send --batch failed");
	return (now_us() - began) / MESSAGES;
}

void
rows_batch(struct bench *b)
{
	const char *const single[] = { b->command, "--as", "alice", "send", "bob", "-m", b->body, NULL };
	const char *const batch[] = { b->command, "--as", "alice", "send", "--batch", NULL };
	struct both both = { .bench = b, .single = single, .batch = batch };
	struct comparison row = { .name = "batch-1000",
		.what = "durable send of 1 KB to one agent, one of 1,000 in a send --batch",
		.note = "bare: a send command for each",
		.budget = 0.05,
		.reason = "of the time of one message in a batch more than half is the kernel making an unnamed file, "
			  "writing it and giving it its two names, which no flush can share",
		.ops = 1,
		.bare = send_single,
		.ours = send_batch,
		.ctx = &both };

	write_input(b);
	compare(&row);
	b->input = NULL;
}
