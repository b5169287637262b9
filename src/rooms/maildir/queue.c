/* SPDX-License-Identifier: MIT */
/*
 * queue.c - a queue's folder: open, make, list. A queue is there as long as its settings are; a folder without
 * them is nobody's, like that of an agent without a registration.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/queue.h"
#include <errno.h>
#include <stdio.h>

static bool
folder_name(const char *queue, char ret[NAME_LEN + 8])
{
	char escaped[NAME_LEN];

	if (queue[0] == '\0' || queue[0] == '.' || strlen(queue) > MR_ADDRESS_MAX)
		return false;
	name_escape(queue, escaped);
	(void)snprintf(ret, NAME_LEN + 8, "queues/%s", escaped);
	return true;
}

enum mr_rc
queue_missing(const char *name, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no queue '%.170s'\nsee: mailroom queue list", name);
}

bool
queue_is_there(const struct queue *q)
{
	struct stat st;

	/* Who cannot look must not conclude that it is gone. */
	return sys_stat(q->fd, "settings", &st) == 0 || errno != ENOENT;
}

enum mr_rc
queue_open_any(struct queue *q, struct maildir *md, const char *name, struct mr_error *err)
{
	char path[NAME_LEN + 8];

	if (!folder_name(name, path))
		return queue_missing(name, err);
	enum mr_rc rc = dir_open(md->root_fd, path, &q->fd, err);
	if (rc != MR_OK)
		return rc == MR_NOTFOUND ? queue_missing(name, err) : rc;
	q->md = md;
	(void)snprintf(q->name, sizeof(q->name), "%s", name);
	return MR_OK;
}

enum mr_rc
queue_open(struct queue *q, struct maildir *md, const char *name, struct mr_error *err)
{
	mr_auto(queue_done) struct queue found = QUEUE_INIT;

	TRY(queue_open_any(&found, md, name, err));
	if (!queue_is_there(&found))
		return queue_missing(name, err);
	*q = found;
	found.fd = -1;
	return MR_OK;
}

void
queue_done(struct queue *q)
{
	sys_close_fd(&q->fd);
	q->fd = -1;
}

bool
queue_exists(struct maildir *md, const char *queue)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	struct mr_error ignored = { 0 };

	return queue_open(&q, md, queue, &ignored) == MR_OK;
}

enum mr_rc
queue_folder(const struct queue *q, const char *path, int *ret_fd, struct mr_error *err)
{
	return dir_make(q->fd, path, q->md->dir_mode, q->md->sync, ret_fd, err);
}

enum mr_rc
maildir_queue_make(struct mr_room *room, const char *queue, struct mr_error *err)
{
	static const char *const folders[] = { "ready", "delayed", "claimed", "done", "failed" };
	struct maildir *md = maildir_of(room);
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	char path[NAME_LEN + 8];

	if (!folder_name(queue, path))
		return mr_fail(err, MR_REFUSED, "'%.170s' cannot name a queue", queue);
	enum mr_rc rc = dir_make(md->root_fd, path, md->dir_mode, md->sync, &q.fd, err);
	q.md = md;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && rc == MR_OK; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		rc = queue_folder(&q, folders[i], &fd, err);
	}
	return rc == MR_OK ? rc : mr_wrap(err, "make queue '%s'", queue);
}

/* ---- All of them ---- */

/* "rig%2Fbuilds" -> "rig/builds" */
static bool
note_queue(void *ctx, const struct dir_entry *entry)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	if (entry->name[0] == '.')
		return true;
	for (const char *p = entry->name; *p != '\0'; p++) {
		if (strncmp(p, "%2F", 3) == 0) {
			buf_addc(&name, '/');
			p += 2;
		} else {
			buf_addc(&name, *p);
		}
	}
	return buf_ok(&name) && names_add(ctx, buf_str(&name));
}

enum mr_rc
queue_names(struct maildir *md, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	enum mr_rc rc = dir_open(md->root_fd, "queues", &fd, err);
	if (rc == MR_OK)
		rc = dir_each(fd, note_queue, ret, err);
	return rc == MR_NOTFOUND || (rc != MR_OK && shared_skip(md, err, "queues")) ? MR_OK : rc;
}

/* ---- Priorities ---- */

unsigned
queue_digit(enum mr_priority priority)
{
	return priority >= MR_URGENT ? 0 : priority == MR_HIGH ? 1 : priority == MR_NORMAL ? 2 : 3;
}

enum mr_priority
queue_priority(unsigned digit)
{
	static const enum mr_priority of[QUEUE_PRIORITIES] = { MR_URGENT, MR_HIGH, MR_NORMAL, MR_LOW };

	return of[digit % QUEUE_PRIORITIES];
}
