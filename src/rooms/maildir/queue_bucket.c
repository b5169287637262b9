/* SPDX-License-Identifier: MIT */
/*
 * queue_bucket.c - ready/<p>/<bucket>/: work that waits, spread so that nobody reads it all.
 *
 * A folder with a hundred thousand files takes tens of milliseconds to read, and it never shrinks again. So waiting
 * work is in buckets, folders named by a growing number: senders link into the highest, claimers take from the lowest.
 * Nobody counts exactly and nobody locks anything:
 *
 * - One sender in 32 counts the bucket that it has just used, and makes the next one when it is full. Many senders
 *   at once may overfill it a little; a claimer that finds it far too full makes the next one too. mkdir has one
 * winner.
 * - A claimer that finds a bucket empty, and it is not the highest, removes it. rmdir refuses when something came in. A
 *   sender that has chosen it just before finds that it cannot link into a folder without a name, and chooses
 *   again. The highest is never removed, so numbers only grow.
 * - Work that comes back goes into the lowest bucket: it has the smallest ids there, and is handed out next.
 *
 * Order: later sends never go to a lower bucket than earlier ones, and in a bucket the id decides.
 *
 * Even the list of buckets is long when a million messages wait. So ready/<p>/.low and .high remember its ends. Both
 * ends only grow, so a number that was right once is never too high; if it is too low by now, then .low names a
 * bucket that is gone, or .high one that has a successor, and the list is read after all. Numbers of another boot
 * do not count: a power cut may have brought buckets back. And one look in 32 reads the list in any case, for the
 * sake of people who move files by hand.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "rooms/maildir/queue.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define BUCKET_FULL 128u
#define BUCKET_DIGITS 8
#define COUNT_ONE_IN 32u
#define LIST_ONE_IN 32u
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

/* ---- Remembering the ends ---- */

static const char *const hint_names[] = { [BUCKET_LOWEST] = ".low", [BUCKET_HIGHEST] = ".high" };

static bool
one_in(unsigned n)
{
	unsigned char dice = 0;

	random_bytes(&dice, sizeof(dice));
	return dice % n == 0;
}

/* "<number> <boot id>" */
static bool
hint_read(const struct buckets *b, enum bucket_end end, uint32_t *ret)
{
	mr_auto(sys_close_fd) int fd = sys_open(b->fd, hint_names[end], O_RDONLY | O_NONBLOCK, 0);
	char text[64];
	uint64_t number = 0;

	ssize_t len = fd < 0 ? -1 : sys_pread(fd, text, sizeof(text), 0);
	if (len <= BUCKET_DIGITS + 1 || text[BUCKET_DIGITS] != ' ')
		return false;
	struct mr_str boot = { text + BUCKET_DIGITS + 1, (size_t)len - BUCKET_DIGITS - 1 };
	if (!str_eq(boot, str_of(boot_id())) || !str_to_u64((struct mr_str){ text, BUCKET_DIGITS }, &number))
		return false;
	*ret = (uint32_t)number;
	return true;
}

void
bucket_note(const struct queue *q, const struct buckets *b, enum bucket_end end, uint32_t number)
{
	mr_auto(sys_close_fd) int fd = -1;
	char text[64];
	uint32_t known;

	if (boot_id()[0] == '\0' || (hint_read(b, end, &known) && known == number))
		return;
	fd = sys_open(b->fd, hint_names[end], O_RDWR | O_CREAT | O_NONBLOCK, q->md->file_mode);
	int len = snprintf(text, sizeof(text), "%0*" PRIu32 " %.50s", BUCKET_DIGITS, number, boot_id());
	if (fd >= 0 && len > 0)
		(void)sys_pwrite_all(fd, text, (size_t)len, 0);
}

static bool
is_there(const struct buckets *b, uint32_t number)
{
	struct stat st;
	char name[16];

	bucket_name(number, name);
	return sys_stat(b->fd, name, &st) == 0;
}

static enum mr_rc
open_ready(const struct queue *q, unsigned p, bool make, struct buckets *ret, struct mr_error *err)
{
	char path[16];

	(void)snprintf(path, sizeof(path), "ready/%u", p);
	enum mr_rc rc = make ? queue_folder(q, path, &ret->fd, err) : dir_open(q->fd, path, &ret->fd, err);
	return rc == MR_NOTFOUND && !make ? MR_OK : rc;
}

static enum mr_rc
read_list(struct buckets *b, struct mr_error *err)
{
	if (b->fd < 0)
		return MR_OK;
	enum mr_rc rc = dir_each(b->fd, note_bucket, b, err);
	if (rc == MR_OK && b->failed)
		rc = mr_nomem(err);
	if (rc == MR_OK && b->n > 0)
		qsort(b->v, b->n, sizeof(*b->v), by_number);
	return rc;
}

enum mr_rc
buckets_read(const struct queue *q, unsigned p, bool make, struct buckets *ret, struct mr_error *err)
{
	enum mr_rc rc = open_ready(q, p, make, ret, err);

	return rc == MR_OK ? read_list(ret, err) : rc;
}

enum mr_rc
bucket_end(const struct queue *q, unsigned p, enum bucket_end end, bool make, struct buckets *ret, struct mr_error *err)
{
	uint32_t number;

	enum mr_rc rc = open_ready(q, p, make, ret, err);
	if (rc != MR_OK || ret->fd < 0)
		return rc;
	if (!one_in(LIST_ONE_IN) && hint_read(ret, end, &number) && is_there(ret, number) &&
	    (end == BUCKET_LOWEST || !is_there(ret, number + 1))) {
		ret->v = malloc(sizeof(*ret->v));
		if (ret->v == NULL)
			return mr_nomem(err);
		ret->v[0] = number;
		ret->n = 1;
		return MR_OK;
	}
	rc = read_list(ret, err);
	if (rc != MR_OK || ret->n == 0)
		return rc;
	ret->v[0] = ret->v[end == BUCKET_LOWEST ? 0 : ret->n - 1];
	ret->n = 1;
	bucket_note(q, ret, end, ret->v[0]);
	return MR_OK;
}

void
bucket_rotate(const struct queue *q, const struct buckets *b)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };

	if (b->n > 0 && make_bucket(q, b, b->v[b->n - 1] + 1, &fd, &ignored) == MR_OK)
		bucket_note(q, b, BUCKET_HIGHEST, b->v[b->n - 1] + 1);
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
	size_t count = 0;

	if (one_in(COUNT_ONE_IN) && dir_each(bucket_fd, count_entry, &count, &ignored) == MR_OK && count >= BUCKET_FULL)
		bucket_rotate(q, b);
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
	enum mr_rc rc = bucket_end(q, p, end, true, &b, err);
	if (rc != MR_OK)
		return rc;
	rc = b.n > 0 ? bucket_open(&b, 0, &fd, err) : make_bucket(q, &b, 0, &fd, err);
	if (rc == MR_NOTFOUND) {
		*ret_again = true;
		return rc;
	}
	if (rc == MR_OK)
		rc = put(ctx, fd, err);
	if (rc == MR_NOTFOUND)
		*ret_again = is_gone(&b, b.n == 0 ? 0 : b.v[0], fd);
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
