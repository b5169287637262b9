/* SPDX-License-Identifier: MIT */
/*
 * queue_bucket.c - ready/<p>/<bucket>/: work that waits, spread so that nobody reads it all.
 *
 * A folder with a hundred thousand files takes tens of milliseconds to read, and it never shrinks again. So waiting
 * work is in buckets, folders named by a growing number: senders link into the highest, claimers take from the lowest.
 * Nobody counts exactly and nobody locks anything:
 *
 * - One sender in 64 counts the bucket that it has just used, and makes the next one when it is full. Many senders at once
 *   may overfill it a little; a claimer that finds it far too full makes the next one too. mkdir has one winner.
 * - A claimer that finds a bucket empty, and it is not the highest, removes it. rmdir refuses when something came in. A
 *   sender that has chosen it just before finds that it cannot link into a folder without a name, and chooses
 *   again. The highest is never removed, so numbers only grow.
 * - Work that comes back goes into the lowest bucket: it has the smallest ids there, and is handed out next.
 *
 * Order: later sends never go to a lower bucket than earlier ones, and in a bucket the id decides.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/maildir/queue.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BUCKET_FULL 512u
#define BUCKET_DIGITS 8
#define COUNT_ONE_IN 64u
#define PUT_TRIES 1000

static void
bucket_name(uint32_t number, char ret[16])
{
	(void)snprintf(ret, 16, "%0*" PRIu32, BUCKET_DIGITS, number);
}

static bool
note_bucket(void *ctx, const struct dir_entry *entry)
{
	struct buckets *b = ctx;
	uint64_t number = 0;

	if (strlen(entry->name) != BUCKET_DIGITS || !str_to_u64(str_of(entry->name), &number))
		return true;
	if (b->n % 64 == 0) {
		uint32_t *v = realloc(b->v, (b->n + 64) * sizeof(*v));
		b->failed = v == NULL;
		if (b->failed)
			return false;
		b->v = v;
	}
	b->v[b->n++] = (uint32_t)number;
	return true;
}

static int
by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

enum mr_rc
buckets_read(const struct queue *q, unsigned p, bool make, struct buckets *ret, struct mr_error *err)
{
	char path[16];

	(void)snprintf(path, sizeof(path), "ready/%u", p);
	enum mr_rc rc = make ? queue_folder(q, path, &ret->fd, err) : dir_open(q->fd, path, &ret->fd, err);
	if (rc == MR_NOTFOUND && !make)
		return MR_OK;
	if (rc == MR_OK)
		rc = dir_each(ret->fd, note_bucket, ret, err);
	if (rc == MR_OK && ret->failed)
		rc = mr_nomem(err);
	if (rc == MR_OK && ret->n > 0)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_number);
	return rc;
}

void
buckets_done(struct buckets *b)
{
	sys_close_fd(&b->fd);
	free(b->v);
	*b = BUCKETS_INIT;
}

enum mr_rc
bucket_open(const struct buckets *b, size_t i, int *ret_fd, struct mr_error *err)
{
	char name[16];

	bucket_name(b->v[i], name);
	return dir_open(b->fd, name, ret_fd, err);
}

static enum mr_rc
make_bucket(const struct queue *q, const struct buckets *b, uint32_t number, int *ret_fd, struct mr_error *err)
{
	char name[16];

	bucket_name(number, name);
	return dir_make(b->fd, name, q->md->dir_mode, q->md->sync, ret_fd, err);
}

void
bucket_rotate(const struct queue *q, const struct buckets *b)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };

	if (b->n > 0)
		(void)make_bucket(q, b, b->v[b->n - 1] + 1, &fd, &ignored);
}

void
bucket_remove(const struct buckets *b, size_t i)
{
	char name[16];

	bucket_name(b->v[i], name);
	(void)sys_rmdir(b->fd, name);
}

/* ---- Putting work in ---- */

static bool
count_entry(void *ctx, const struct dir_entry *entry)
{
	(void)entry;
	return ++*(size_t *)ctx < BUCKET_FULL;
}

/* Only now and then: reading a bucket for each send would cost more than the send. */
static void
look_whether_full(const struct queue *q, const struct buckets *b, int bucket_fd)
{
	struct mr_error ignored = { 0 };
	unsigned char dice = 0;
	size_t count = 0;

	random_bytes(&dice, sizeof(dice));
	if (dice % COUNT_ONE_IN == 0 && dir_each(bucket_fd, count_entry, &count, &ignored) == MR_OK &&
	    count >= BUCKET_FULL)
		bucket_rotate(q, b);
}

static enum mr_rc
choose(const struct queue *q, struct buckets *b, enum bucket_end end, int *ret_fd, struct mr_error *err)
{
	if (b->n > 0)
		return bucket_open(b, end == BUCKET_LOWEST ? 0 : b->n - 1, ret_fd, err);
	return make_bucket(q, b, 0, ret_fd, err);
}

/* Has the folder that we hold open lost its name? */
static bool
is_gone(const struct buckets *b, uint32_t number, int bucket_fd)
{
	struct stat ours, there;
	char name[16];

	bucket_name(number, name);
	if (sys_stat_fd(bucket_fd, &ours) < 0)
		return false;
	if (sys_stat(b->fd, name, &there) < 0)
		return errno == ENOENT;
	return ours.st_ino != there.st_ino || ours.st_dev != there.st_dev;
}

static enum mr_rc
put_once(const struct queue *q, unsigned p, enum bucket_end end, bucket_put_fn *put, void *ctx, int *ret_fd,
    bool *ret_again, struct mr_error *err)
{
	mr_auto(buckets_done) struct buckets b = BUCKETS_INIT;
	mr_auto(sys_close_fd) int fd = -1;

	*ret_again = false;
	enum mr_rc rc = buckets_read(q, p, true, &b, err);
	if (rc != MR_OK)
		return rc;
	rc = choose(q, &b, end, &fd, err);
	if (rc == MR_NOTFOUND) {
		*ret_again = true;
		return rc;
	}
	if (rc == MR_OK)
		rc = put(ctx, fd, err);
	if (rc == MR_NOTFOUND)
		*ret_again = is_gone(&b, b.n == 0 ? 0 : b.v[end == BUCKET_LOWEST ? 0 : b.n - 1], fd);
	if (rc != MR_OK)
		return rc;
	if (end == BUCKET_HIGHEST)
		look_whether_full(q, &b, fd);
	if (ret_fd != NULL) {
		*ret_fd = fd;
		fd = -1;
	}
	return MR_OK;
}

enum mr_rc
bucket_put(const struct queue *q, unsigned p, enum bucket_end end, bucket_put_fn *put, void *ctx, int *ret_fd,
    struct mr_error *err)
{
	bool again = true;
	enum mr_rc rc = MR_OK;

	for (int tries = 0; again && tries < PUT_TRIES; tries++)
		rc = put_once(q, p, end, put, ctx, ret_fd, &again, err);
	if (again)
		return mr_fail(err, MR_BUSY, "the buckets of queue '%s' change all the time", q->name);
	return rc;
}
