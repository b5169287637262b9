/* SPDX-License-Identifier: MIT */
/*
 * queue_send.c - work that comes into a queue: a new message of its own, or a link of a fan-out.
 *
 * Whoever removes a queue takes its settings away first and moves the work after that. So a sender looks for the
 * settings once more after its link: if they are still there, the remover will find the work; if not, it may have
 * looked already.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/maildir/queue.h"
#include <errno.h>
#include <fcntl.h>

#define HEADERS_FIRST ((size_t)8 << 10)
#define MESSAGE_LIMIT ((size_t)64 << 20)

struct incoming { /* one message on its way in */
	struct queue *q;
	const char *id;
	struct staged *file; /* a new message ... */
	int from_fd;         /* ... or a file that is there already */
	const char *from;
	char name[NAME_LEN]; /* what it is called in its folder */
};

static bool
same_file(int a_fd, const char *a, int b_fd, const char *b)
{
	struct stat sa, sb;

	return sys_stat(a_fd, a, &sa) == 0 && sys_stat(b_fd, b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

/* Not by link (see target.c): a further copy is as good. */
static enum mr_rc
link_copy(const struct incoming *in, int fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct maildir *md = in->q->md;

	enum mr_rc rc = file_read(in->from_fd, in->from, SIZE_MAX, &text, err);
	return rc != MR_OK ? rc
			   : file_publish(fd, in->q->fd, in->name, buf_str(&text), md->message_mode,
				 md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);
}

static enum mr_rc
link_existing(const struct incoming *in, int fd, struct mr_error *err)
{
	if (sys_link(in->from_fd, in->from, fd, in->name) == 0)
		return MR_OK;
	if (errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "cannot publish '%s': its folder was removed", in->name);
	if (errno == EEXIST)
		return same_file(in->from_fd, in->from, fd, in->name)
			   ? MR_OK
			   : mr_fail(err, MR_EXISTS, "another message is named '%s'", in->name);
	if (errno == EXDEV || errno == EMLINK || errno == EPERM || errno == EOPNOTSUPP)
		return link_copy(in, fd, err);
	return mr_fail_errno(err, "cannot publish '%s'", in->name);
}

/* MR_NOTFOUND: the folder lost its name. */
static enum mr_rc
link_in(void *ctx, int fd, struct mr_error *err)
{
	const struct incoming *in = ctx;

	if (in->file == NULL)
		return link_existing(in, fd, err);
	enum mr_rc rc = stage_link(in->file, fd, in->name, err);
	return rc == MR_IO && err->sys_errno == ENOENT ? MR_NOTFOUND : rc;
}

/* Ready at once, or later. *ret_fd: the folder. */
static enum mr_rc
put(struct incoming *in, enum mr_priority priority, int64_t not_before_ms, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char file[NAME_LEN];
	unsigned p = queue_digit(priority);

	name_for_id(in->id, file);
	if (not_before_ms <= clock_now_ms()) {
		memcpy(in->name, file, sizeof(file));
		return bucket_put(in->q, p, BUCKET_HIGHEST, link_in, in, ret_fd, err);
	}
	if (!work_delayed_name(not_before_ms, p, file, in->name))
		return mr_fail(err, MR_REFUSED, "the name of message '%s' is too long", in->id);
	enum mr_rc rc = queue_folder(in->q, "delayed", &fd, err);
	if (rc == MR_OK)
		rc = link_in(in, fd, err);
	if (rc != MR_OK)
		return rc;
	*ret_fd = fd;
	fd = -1;
	return MR_OK;
}

static enum mr_rc
check_still_there(const struct incoming *in, int fd, struct mr_error *err)
{
	if (queue_is_there(in->q))
		return MR_OK;
	bool ours = sys_unlink(fd, in->name) == 0;
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
	TRY(maildir_settle_bytes(q->md, file, err));
	enum mr_rc rc = put(&in, msg->priority, msg->not_before_ms, &fd, err);
	if (rc == MR_OK)
		rc = check_still_there(&in, fd, err);
	else if (!queue_is_there(q))
		rc = queue_missing(q->name, err);
	return rc == MR_OK ? deliver_make_durable(q->md, q->name, file->fd, fd, in.name, err) : rc;
}

/* ---- One link of a fan-out ---- */

/* What its headers say about when it wants to be worked on. */
static enum mr_rc
read_urgency(struct mr_room *room, const struct incoming *in, enum mr_priority *ret_priority,
    int64_t *ret_not_before_ms, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(sys_close_fd) int fd = sys_open(in->from_fd, in->from, O_RDONLY, 0);
	size_t more = HEADERS_FIRST;
	ssize_t got = 1;

	if (fd < 0)
		return mr_fail_errno(err, "cannot read '%s'", in->from);
	while (got > 0 && text.len < MESSAGE_LIMIT && !(text.len > 0 && message_headers_complete(buf_str(&text)))) {
		if (!buf_reserve(&text, more))
			return mr_nomem(err);
		got = sys_read(fd, text.ptr + text.len, more);
		if (got < 0)
			return mr_fail_errno(err, "cannot read '%s'", in->from);
		text.len += (size_t)got;
		text.ptr[text.len] = '\0';
		more = text.len;
	}
	memcpy(msg.id, in->id, sizeof(msg.id));
	if (message_parse(buf_str(&text), room->name, MESSAGE_HEADERS, &msg, err) != MR_OK)
		return mr_wrap(err, "'%s'", in->from);
	*ret_priority = msg.priority;
	*ret_not_before_ms = msg.not_before_ms;
	return MR_OK;
}

enum mr_rc
queue_give(struct mr_room *room, const char *queue, int from_fd, const char *from, const char *id, int *ret_fd,
    struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct incoming in = { .q = &q, .id = id, .from_fd = from_fd, .from = from };
	enum mr_priority priority = MR_NORMAL;
	int64_t not_before_ms = 0;

	enum mr_rc rc = queue_open(&q, maildir_of(room), queue, err);
	if (rc == MR_OK)
		rc = read_urgency(room, &in, &priority, &not_before_ms, err);
	if (rc == MR_OK)
		rc = put(&in, priority, not_before_ms, &fd, err);
	if (rc == MR_OK)
		rc = check_still_there(&in, fd, err);
	else if (q.fd >= 0 && !queue_is_there(&q))
		rc = queue_missing(queue, err);
	if (rc != MR_OK)
		return rc;
	*ret_fd = fd;
	fd = -1;
	return MR_OK;
}

enum mr_rc
queue_has(struct maildir *md, const char *queue, const char *id, bool *ret, int *ret_fd, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(work_at_done) struct work_at at = WORK_AT_INIT;

	enum mr_rc rc = queue_open(&q, md, queue, err);
	if (rc != MR_OK)
		return rc;
	rc = queue_find(&q, id, &at, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*ret = rc == MR_OK;
	*ret_fd = at.fd;
	at.fd = -1;
	return MR_OK;
}
