/* SPDX-License-Identifier: MIT */
/* dead.c - taking a dead letter away for good: from dead/, or from the failed work of a queue. Other copies
 * of the message stay with whoever has them. */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/queue.h"
#include <errno.h>

#define ROUNDS_MAX 20

static enum mr_rc
remove_from(struct maildir *md, int fd, const char *name, struct mr_error *err)
{
	if (sys_unlink(fd, name) < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove the dead letter '%s'", name);
	if (md->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of '%s' durable", name);
	return MR_OK;
}

struct letter_search {
	const char *id;
	struct mr_names names;
};

static bool
note_letter(void *ctx, const struct dir_entry *entry)
{
	struct letter_search *s = ctx;
	struct file_name n; /* failed work is named like mail */

	if (!name_parse(str_of(entry->name), &n) || strcmp(n.id, s->id) != 0)
		return true;
	return names_add(&s->names, str_of(entry->name));
}

static enum mr_rc
drop_from(struct maildir *md, int fd, const char *id, size_t *ret, struct mr_error *err)
{
	struct letter_search s = { .id = id };
	enum mr_rc rc = dir_each(fd, note_letter, &s, err);

	for (size_t i = 0; rc == MR_OK && i < s.names.n; i++, ++*ret)
		rc = remove_from(md, fd, s.names.v[i], err);
	mr_names_done(&s.names);
	return rc;
}

/* Copies of several mailboxes may have met here, each in a file of its own: all of them go. A listing shows one of
 * them, but only a listing finds for sure that none is left while mail programs rename them. */
static enum mr_rc
drop_letters(struct maildir *md, const char *id, size_t *ret, struct mr_error *err)
{
	static const enum box_folder folders[] = { BOX_NEW, BOX_CUR };
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	enum mr_rc rc = mailbox_open_dead(&dead, md, err);

	for (unsigned rounds = 0; rc == MR_OK && rounds < ROUNDS_MAX; rounds++) {
		mr_auto(listing_done) struct listing left = { 0 };

		rc = list_folders(&dead, MR_INBOX, false, id, &left, err);
		if (rc == MR_OK && left.n == 0)
			return MR_OK;
		for (size_t i = 0; i < 2 && rc == MR_OK; i++) {
			int fd = -1;

			rc = mailbox_folder(&dead, folders[i], &fd, err);
			if (rc == MR_OK)
				rc = drop_from(md, fd, id, ret, err);
		}
	}
	return rc == MR_OK ? mr_fail(err, MR_BUSY, "the dead letter '%s' is moved again and again", id) : rc;
}

static enum mr_rc
drop_failed(struct maildir *md, const char *queue, const char *id, size_t *ret, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = queue_open(&q, md, queue, err);

	if (rc == MR_OK)
		rc = queue_folder(&q, "failed", &fd, err);
	return rc == MR_OK ? drop_from(md, fd, id, ret, err) : rc;
}

enum mr_rc
maildir_dead_drop(struct mr_room *room, const char *queue, const char *id, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	size_t found = 0;
	enum mr_rc rc = *queue ? drop_failed(md, queue, id, &found, err) : drop_letters(md, id, &found, err);

	if (rc == MR_OK && found == 0)
		return mr_fail(err, MR_NOTFOUND, "no dead letter '%s'", id);
	return rc;
}
