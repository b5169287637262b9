/* SPDX-License-Identifier: MIT */
/*
 * queue_remove.c - the end of a queue. Its settings go first, so that nobody sends to it or claims from it any more;
 * then the work that is left goes to the dead letters, and what failed, which nobody would find here any more; then the
 * folders.
 *
 * done/ stays when there is mail in it: what was worked off is no dead letter. A queue that is made again under this
 * name finds it. A crash after the settings are gone leaves work in a folder that is no queue;
 * removing once more, or making the queue again, goes on from there.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/holding.h"
#include "rooms/maildir/queue.h"

#define LOCK_WAIT_MS 10000
#define ROUNDS_MAX 20 /* a sender that found the queue just before may still put something in */

struct clearing {
	struct queue *q;
	size_t moved;
};

static bool
note_name(void *ctx, const struct dir_entry *entry)
{
	return entry->name[0] == '.' || names_add(ctx, str_of(entry->name));
}

static enum mr_rc
bury_folder(void *ctx, const struct work_folder *at, struct mr_error *err)
{
	struct clearing *c = ctx;
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	enum mr_rc rc = dir_each(at->fd, note_name, &names, err);
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		struct work_name n;
		if (!work_parse(at->state, str_of(names.v[i]), &n))
			continue;
		n.file.released = (struct mr_str){ 0 };
		rc = mark_to_dead(c->q->md, at->fd, names.v[i], &n.file, work_attempt(&n), err);
		c->moved += rc == MR_OK;
		if (rc == MR_OK && n.file.held && n.file.deadline_s > 0)
			token_drop(c->q->md, n.file.token);
		if (rc == MR_NOTFOUND) /* settled just now, or on its way from one folder to the next */
			rc = MR_OK;
	}
	return rc;
}

static enum mr_rc
bury_all(struct queue *q, unsigned states, size_t *ret, struct mr_error *err)
{
	struct clearing c = { .q = q };
	size_t before;
	unsigned rounds = 0;
	enum mr_rc rc;

	do {
		before = c.moved;
		rc = queue_each_folder(q, states, bury_folder, &c, err);
	} while (rc == MR_OK && c.moved != before && ++rounds < ROUNDS_MAX);
	*ret = c.moved;
	return rc == MR_OK ? commit_flush(q->md, err) : rc;
}

static bool
is_work(void *ctx, const struct dir_entry *entry)
{
	*(bool *)ctx |= entry->name[0] != '.';
	return !*(bool *)ctx;
}

static enum mr_rc
look_for_work(void *ctx, const struct work_folder *at, struct mr_error *err)
{
	bool found = false;

	enum mr_rc rc = dir_each(at->fd, is_work, &found, err);
	if (rc != MR_OK || !found)
		return rc;
	return mr_fail(err, MR_REFUSED,
	    "queue '%s' has work in '%s'\nfinish it, or remove the queue with --force, which moves it to the dead letters",
	    ((struct queue *)ctx)->name, at->path);
}

/* ---- Folders ---- */

static enum mr_rc
remove_folder(void *ctx, const struct work_folder *at, struct mr_error *err)
{
	(void)err;
	(void)sys_rmdir(((struct queue *)ctx)->fd, at->path);
	return MR_OK;
}

/* rmdir refuses what is not empty. */
static void
remove_folders(struct queue *q)
{
	static const char *const hints[] = { "ready/0/.low", "ready/0/.high", "ready/1/.low", "ready/1/.high",
		"ready/2/.low", "ready/2/.high", "ready/3/.low", "ready/3/.high" };
	static const char *const parents[] = { "ready/0", "ready/1", "ready/2", "ready/3", "ready", "done" };
	mr_auto(sys_close_fd) int lock_fd = -1;
	struct mr_error ignored = { 0 };
	char path[NAME_LEN + 8], escaped[NAME_LEN];
	struct stat st;

	/* Whoever makes the queue again has this lock, and must not lose its new folders to us. */
	if (lock_take(q->md->root_fd, "queues/.lock", q->md->file_mode, LOCK_WAIT_MS, &lock_fd, &ignored) != MR_OK ||
	    queue_is_there(q))
		return;
	(void)queue_each_folder(q, QUEUE_ANY, remove_folder, q, &ignored);
	for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
		(void)sys_unlink(q->fd, hints[i]);
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
		(void)sys_rmdir(q->fd, parents[i]);
	if (sys_stat(q->fd, "done", &st) < 0) /* nothing is left whose past it would be */
		past_remove(q, NULL);
	(void)sys_unlink(q->fd, ".lock");
	name_escape(q->name, escaped);
	(void)snprintf(path, sizeof(path), "queues/%s", escaped);
	(void)sys_rmdir(q->md->root_fd, path);
}

/* Something came in between the look and the end: the queue is there again. */
static enum mr_rc
restore(struct queue *q, struct mr_str settings, struct mr_error *why)
{
	struct mr_error err = { 0 };

	if (settings.len > 0 &&
	    file_publish(q->fd, q->fd, "settings", settings, q->md->file_mode, PUBLISH_FULL, &err) != MR_OK)
		(void)mr_hint(why, "its settings could not be put back (%.60s): make the queue again", err.message);
	return why->code;
}

enum mr_rc
maildir_queue_remove(struct mr_room *room, const char *queue, bool to_dead, size_t *ret_dead, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(buf_done) struct buf settings = BUF_INIT;
	size_t dead = 0, failed = 0;

	enum mr_rc rc = queue_open_any(&q, maildir_of(room), queue, err);
	if (rc == MR_OK && !to_dead)
		rc = queue_each_folder(&q, QUEUE_WORK, look_for_work, &q, err);
	if (rc != MR_OK)
		return rc;
	rc = maildir_record_get(room, "queue", "", queue, &settings, err);
	if (rc == MR_OK)
		rc = maildir_record_drop(room, "queue", "", queue, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	if (to_dead)
		rc = bury_all(&q, QUEUE_WORK, &dead, err);
	else if (queue_each_folder(&q, QUEUE_WORK, look_for_work, &q, err) != MR_OK)
		return restore(&q, buf_str(&settings), err);
	else
		rc = MR_OK;
	if (rc == MR_OK)
		rc = bury_all(&q, QUEUE_FAILED, &failed, err);
	*ret_dead = dead;
	if (rc == MR_OK)
		remove_folders(&q);
	return rc;
}
