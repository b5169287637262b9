/* SPDX-License-Identifier: MIT */
/*
 * queue_ready.c - ready/<p>/<bucket>/: work that waits, spread so that nobody reads it all; and work that comes in.
 *
 * A folder with a hundred thousand files takes tens of milliseconds to read, and it never shrinks again. So waiting
 * work is in buckets, folders named by a growing number: senders link into the highest, claimers take from the lowest.
 * Nobody counts exactly and nobody locks anything:
 *
 * - One sender in 32 counts the bucket that it has just used, and makes the next one when it is full. Many senders
 *   at once may overfill it a little; a claimer that finds it far too full makes the next one too. mkdir has one
 *   winner.
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
 *
 * The removal of a queue takes its settings away first and moves the work after that. So a sender looks for the
 * settings once more after its link: if they are still there, the remover will find the work; if not, it may have
 * looked already.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "rooms/maildir/claim.h"
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

	if (b->n > 0 && make_bucket(q, b, b->v[b->n - 1] + 1, &fd, IGNORED) == MR_OK)
		bucket_note(q, b, BUCKET_HIGHEST, b->v[b->n - 1] + 1);
}

void
bucket_remove(const struct buckets *b, size_t i)
{
	char name[16];

	bucket_name(b->v[i], name);
	(void)sys_rmdir(b->fd, name);
}

/* ---- The ends ---- */

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
is_there(const struct buckets *b, uint32_t number, struct stat *st)
{
	char name[16];

	bucket_name(number, name);
	return sys_stat(b->fd, name, st) == 0;
}

static enum mr_rc
open_ready(const struct queue *q, unsigned p, bool make, struct buckets *ret, struct mr_error *err)
{
	char path[16];

	(void)snprintf(path, sizeof(path), "ready/%u", p);
	if (make)
		return queue_folder(q, path, &ret->fd, err);
	enum mr_rc rc = dir_open(q->fd, path, &ret->fd, err);
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

static bool
note_bucket(void *ctx, const struct dir_entry *entry)
{
	struct buckets *b = ctx;
	uint64_t number = 0;

	if (strlen(entry->name) != BUCKET_DIGITS || !str_to_u64(str_of(entry->name), &number))
		return true;
	b->failed = !array_grow(&b->v, b->n, &b->cap, sizeof(*b->v));
	if (!b->failed)
		b->v[b->n++] = (uint32_t)number;
	return !b->failed;
}

static int
by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static enum mr_rc
read_list(struct buckets *b, struct mr_error *err)
{
	if (b->fd < 0)
		return MR_OK;
	TRY(dir_each(b->fd, note_bucket, b, err));
	if (b->failed)
		return mr_nomem(err);
	if (b->n > 0)
		qsort(b->v, b->n, sizeof(*b->v), by_number);
	return MR_OK;
}

enum mr_rc
buckets_read(const struct queue *q, unsigned p, bool make, struct buckets *ret, struct mr_error *err)
{
	TRY(open_ready(q, p, make, ret, err));
	return read_list(ret, err);
}

enum mr_rc
bucket_end(const struct queue *q, unsigned p, enum bucket_end end, bool make, struct buckets *ret, struct mr_error *err)
{
	struct stat st;
	uint32_t number;

	TRY(open_ready(q, p, make, ret, err));
	if (ret->fd < 0)
		return MR_OK;
	if (!one_in(LIST_ONE_IN) && hint_read(ret, end, &number) && is_there(ret, number, &st) &&
	    (end == BUCKET_LOWEST || !is_there(ret, number + 1, &st))) {
		if (!array_grow(&ret->v, 0, &ret->cap, sizeof(*ret->v)))
			return mr_nomem(err);
		ret->v[0] = number;
		ret->n = 1;
		return MR_OK;
	}
	TRY(read_list(ret, err));
	if (ret->n == 0)
		return MR_OK;
	ret->v[0] = ret->v[end == BUCKET_LOWEST ? 0 : ret->n - 1];
	ret->n = 1;
	bucket_note(q, ret, end, ret->v[0]);
	return MR_OK;
}

/* ---- Putting work in ---- */

static bool
count_entry(void *ctx, const struct dir_entry *entry)
{
	(void)entry;
	return ++*(size_t *)ctx < BUCKET_FULL;
}

/* Has the folder that we hold open lost its name? */
static bool
is_gone(const struct buckets *b, uint32_t number, int bucket_fd)
{
	struct stat there;
	char name[16];

	bucket_name(number, name);
	if (!is_there(b, number, &there))
		return errno == ENOENT;
	return !file_is_same(bucket_fd, NULL, b->fd, name);
}

static enum mr_rc
put_once(const struct queue *q, unsigned p, enum bucket_end end, bucket_put_fn *put, void *ctx, int *ret_fd,
    bool *ret_again, struct mr_error *err)
{
	mr_auto(buckets_done) struct buckets b = BUCKETS_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	size_t count = 0;

	*ret_again = false;
	TRY(bucket_end(q, p, end, true, &b, err));
	enum mr_rc rc = b.n > 0 ? bucket_open(&b, 0, &fd, err) : make_bucket(q, &b, 0, &fd, err);
	if (rc == MR_OK)
		rc = put(ctx, fd, err);
	if (rc == MR_NOTFOUND)
		*ret_again = fd < 0 || is_gone(&b, b.n == 0 ? 0 : b.v[0], fd);
	if (rc != MR_OK)
		return rc;
	/* Only now and then: reading a bucket for each send would cost more than the send. */
	if (end == BUCKET_HIGHEST && one_in(COUNT_ONE_IN) && dir_each(fd, count_entry, &count, IGNORED) == MR_OK &&
	    count >= BUCKET_FULL)
		bucket_rotate(q, &b);
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

/* ---- Work that comes in: a new message, or a link of a fan-out ---- */

struct incoming {
	struct queue *q;
	const char *id;
	struct staged *file; /* a new message ... */
	int from_fd;         /* ... or a file that is there already */
	const char *from;
	char name[NAME_LEN]; /* what it is called in its folder */
};

/* MR_NOTFOUND: the folder lost its name. */
static enum mr_rc
link_in(void *ctx, int fd, struct mr_error *err)
{
	const struct incoming *in = ctx;
	struct maildir *md = in->q->md;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	if (in->file != NULL) {
		enum mr_rc rc = stage_link(in->file, fd, in->name, err);
		return rc == MR_IO && err->sys_errno == ENOENT ? MR_NOTFOUND : rc;
	}
	if (sys_link(in->from_fd, in->from, fd, in->name) == 0)
		return MR_OK;
	switch (errno) {
	case ENOENT:
		return mr_fail(err, MR_NOTFOUND, "cannot publish '%s': its folder was removed", in->name);
	case EEXIST:
		if (file_is_same(in->from_fd, in->from, fd, in->name))
			return MR_OK;
		return mr_fail(err, MR_EXISTS, "another message is named '%s'", in->name);
	case EXDEV: /* not by link (see target.c): a further copy is as good */
	case EMLINK:
	case EPERM:
	case EOPNOTSUPP:
		TRY(file_read(in->from_fd, in->from, SIZE_MAX, &text, err));
		return file_publish(fd, in->q->fd, in->name, buf_str(&text), md->message_mode,
		    md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);
	default:
		return mr_fail_errno(err, "cannot publish '%s'", in->name);
	}
}

static enum mr_rc
put(struct incoming *in, const struct mr_message *msg, int *ret_fd, struct mr_error *err)
{
	unsigned p = msg->priority >= MR_URGENT ? 0 : msg->priority == MR_HIGH ? 1 : msg->priority == MR_NORMAL ? 2 : 3;
	char file[NAME_LEN];

	name_for_id(in->id, file);
	if (msg->not_before_ms <= clock_now_ms()) {
		memcpy(in->name, file, sizeof(file));
		return bucket_put(in->q, p, BUCKET_HIGHEST, link_in, in, ret_fd, err);
	}
	if (!work_delayed_name(msg->not_before_ms, p, file, in->name))
		return mr_fail(err, MR_REFUSED, "the name of message '%s' is too long", in->id);
	TRY(queue_folder(in->q, "delayed", ret_fd, err));
	return link_in(in, *ret_fd, err);
}

/* Ready at once, or later, as msg says. *ret_fd: the folder, also on failure. */
static enum mr_rc
come_in(struct incoming *in, const struct mr_message *msg, int *ret_fd, struct mr_error *err)
{
	enum mr_rc rc = put(in, msg, ret_fd, err);

	if (queue_is_there(in->q))
		return rc;
	if (rc != MR_OK)
		return queue_missing(in->q->name, err);
	bool ours = sys_unlink(*ret_fd, in->name) == 0;
	(void)mr_fail(err, MR_NOTFOUND, "queue '%s' was removed just now", in->q->name);
	return ours ? err->code : mr_hint(err, "a copy of the message is among the dead letters");
}

enum mr_rc
queue_publish(
    struct queue *q, const struct mr_message *msg, struct mr_str text, struct staged *file, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct incoming in = { .q = q, .id = msg->id, .file = file };

	/* In the queue's own folder and not in the bucket, which others may remove while we write. */
	TRY(stage_open(file, q->fd, q->fd, q->md->message_mode, err));
	TRY(stage_write(file, text, err));
	TRY(commit_bytes(q->md, file, err));
	TRY(come_in(&in, msg, &fd, err));
	return deliver_make_durable(q->md, q->name, file->fd, fd, in.name, err);
}

enum mr_rc
queue_give(struct mr_room *room, const char *queue, int from_fd, const char *from, const char *id, int *ret_fd,
    struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(sys_close_fd) int file_fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct incoming in = { .q = &q, .id = id, .from_fd = from_fd, .from = from };
	struct stat st;

	TRY(queue_open(&q, maildir_of(room), queue, err));
	/* Its headers say when it wants to be worked on. */
	TRY(message_open(from_fd, from, &file_fd, &st, err));
	memcpy(msg.id, id, sizeof(msg.id));
	if (message_read(room, file_fd, &st, SCAN_HEADERS, from, &text, &msg, err) != MR_OK)
		return mr_wrap(err, "'%s'", from);
	TRY(come_in(&in, &msg, &fd, err));
	*ret_fd = fd;
	fd = -1;
	return MR_OK;
}
