/* SPDX-License-Identifier: MIT */
/* claim.c - taking work from a queue in which a hundred pieces wait, and from one with a hundred thousand. */
#include "bench.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FEW 100
#define MANY 100000
#define BUCKET 128      /* what senders leave in one */
#define LINKS_MAX 60000 /* of one file; ext4 allows 65,000 */

/* Work for days in a moment: links of a few files, in buckets as senders would have made them. */
static void
fill_queue(struct bench *b, const char *name, long n)
{
	struct mr_queue settings = { .claimers = "*", .lease_ms = 600000 };
	struct mr_self alice = self_of(b, "alice");
	struct mr_error err = { 0 };
	char *ready = path_of(".mailroom/queues/%s/ready/2", name), letter[LETTER_NAME_MAX], file[40] = "";
	int fd = -1;

	(void)snprintf(settings.name, sizeof(settings.name), "%s", name);
	check(mr_queue_create(b->room, &alice, &settings, &err), &err, "queue create");
	make_folder(ready);
	for (long i = 0; i < n; i++) {
		if (i % BUCKET == 0) {
			char *bucket = path_of("%s/%08ld", ready, i / BUCKET);

			make_folder(bucket);
			if (fd >= 0)
				(void)close(fd);
			fd = open(bucket, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			free(bucket);
		}
		if (i % LINKS_MAX == 0) {
			(void)snprintf(file, sizeof(file), "work-%.16s-%ld", name, i / LINKS_MAX);
			FILE *work = fopen(file, "w");

			if (!work || fputs("From: alice@bench\nSubject: work\n\nwork\n", work) < 0 || fclose(work) != 0)
				die("cannot write '%s'", file);
		}
		letter_name(letter, INT64_C(1790812800000) + i * 2, "");
		if (linkat(AT_FDCWD, file, fd, letter, 0) < 0)
			die("cannot fill the queue");
	}
	(void)close(fd);
	free(ready);
}

struct claimer {
	struct bench *b;
	struct mr_self self;
};

static double
claim(struct claimer *c, const char *queue)
{
	struct mr_error err = { 0 };
	struct mr_claim got = { 0 };
	struct mr_message msg = { 0 };
	char id[MR_ID_LEN + 1];
	double begin = now_us();

	check(mr_queue_recv(c->b->room, &c->self, queue, 0, 0, &got, &msg, &err), &err, "claim");
	double took = now_us() - begin;
	mr_message_done(&msg);
	check(mr_claim_release(c->b->room, &c->self, got.token, NULL, id, &err), &err, "release");
	return took;
}

static double
claim_few(void *ctx)
{
	return claim(ctx, "few");
}

static double
claim_many(void *ctx)
{
	return claim(ctx, "many");
}

void
rows_claim(struct bench *b)
{
	struct claimer c = { .b = b, .self = self_of(b, "bob") };
	struct comparison row = { .name = "claim-backlog",
		.what = "claim with 100,000 waiting beside one with 100, in the library",
		.note = "both sides are mailroom: bare is the short queue, ours the long one",
		.budget = 1.5,
		.ops = 40,
		.bare = claim_few,
		.ours = claim_many,
		.ctx = &c };

	fill_queue(b, "few", FEW);
	fill_queue(b, "many", MANY);
	sync();
	compare(&row);
}
