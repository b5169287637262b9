/* SPDX-License-Identifier: MIT */
/* dead.c - taking a dead letter away for good: from dead/, or from the failed work of a queue. Other copies
 * of the message stay with whoever has them. */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/queue.h"
#include <errno.h>

static enum mr_rc
remove_from(struct maildir *md, int fd, const char *name, struct mr_error *err)
{
	if (sys_unlink(fd, name) < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove the dead letter '%s'", name);
	if (md->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of '%s' durable", name);
	return MR_OK;
}

/* Two mailboxes' copies of one message may have met here: both go. */
static enum mr_rc
drop_letters(struct maildir *md, const char *id, size_t *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	mr_auto(listing_done) struct listing list = { 0 };
	enum mr_rc rc = mailbox_open_dead(&dead, md, err);

	if (rc == MR_OK)
		rc = list_folders(&dead, MR_INBOX, false, id, &list, err);
	for (size_t i = 0; rc == MR_OK && i < list.n; i++) {
		mr_auto(sys_close_fd) int fd = -1;

		if (strcmp(list.v[i].id, id) != 0)
			continue;
		rc = list_open_folder(&dead, &list.v[i], &fd, err);
		if (rc == MR_OK)
			rc = remove_from(md, fd, list.v[i].name, err);
		++*ret;
	}
	return rc;
}

struct failed_search {
	const char *id;
	struct mr_names names;
};

static bool
note_failed(void *ctx, const struct dir_entry *entry)
{
	struct failed_search *s = ctx;
	struct work_name n;

	if (!work_parse(QUEUE_FAILED, str_of(entry->name), &n) || strcmp(n.file.id, s->id) != 0)
		return true;
	return names_add(&s->names, str_of(entry->name));
}

static enum mr_rc
drop_failed(struct maildir *md, const char *queue, const char *id, size_t *ret, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	struct failed_search s = { .id = id };
	enum mr_rc rc = queue_open(&q, md, queue, err);

	if (rc == MR_OK)
		rc = queue_folder(&q, "failed", &fd, err);
	if (rc == MR_OK)
		rc = dir_each(fd, note_failed, &s, err);
	for (size_t i = 0; rc == MR_OK && i < s.names.n; i++, ++*ret)
		rc = remove_from(md, fd, s.names.v[i], err);
	mr_names_done(&s.names);
	return rc;
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
