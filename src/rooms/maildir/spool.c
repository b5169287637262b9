/* SPDX-License-Identifier: MIT */
/*
 * spool.c - a fan-out under way: the recipients' folders, a link in each (target.c), the counter, the syncs.
 * The states and crash points are told in fanout.c; recover.c does the same for a sender that died.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <sys/resource.h>

/* Every send would pay for a note, and only what was killed is searched. */
#define NOTE_PROGRESS_EVERY 16

void
spool_init(struct spool_job *job, struct mr_room *room)
{
	*job = (struct spool_job){ .room = room, .md = maildir_of(room) };
	job->spool_fd = job->record_fd = job->message_fd = -1;
}

void
spool_done(struct spool_job *job)
{
	for (size_t i = 0; job->folder_fd && i < job->to.n; i++)
		sys_close_fd(&job->folder_fd[i]);
	free(job->folder_fd);
	if (job->lines.n > 0)
		free(job->to.v); /* the names are in the record */
	record_done(&job->lines);
	sys_close_fd(&job->message_fd);
	sys_close_fd(&job->record_fd);
	sys_close_fd(&job->spool_fd);
}

enum mr_rc
spool_open(struct spool_job *job, bool make, struct mr_error *err)
{
	struct maildir *md = job->md;
	enum mr_rc rc = dir_open(md->root_fd, "spool", &job->spool_fd, err);

	if (rc == MR_NOTFOUND && make)
		rc = dir_make(md->root_fd, "spool", md->dir_mode, md->sync, &job->spool_fd, err);
	return rc;
}

void
spool_set_id(struct spool_job *job, const char *id)
{
	text_join(job->id, sizeof job->id, id, NULL);
	text_join(job->message, sizeof job->message, id, ".mr", NULL);
	name_for_id(id, job->name);
}

/* ---- Recipients' folders ---- */

size_t
spool_open_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 64;
	return limit.rlim_cur > 8192 ? 4096 : (size_t)limit.rlim_cur / 2;
}

static enum mr_rc
prepare_folders(struct spool_job *job, struct mr_error *err)
{
	if (job->folder_fd)
		return MR_OK;
	job->folder_fd = malloc(job->to.n * sizeof *job->folder_fd);
	if (!job->folder_fd)
		return mr_nomem(err);
	for (size_t i = 0; i < job->to.n; i++)
		job->folder_fd[i] = -1;
	job->open_max = spool_open_max();
	return MR_OK;
}

static void
keep_folder(struct spool_job *job, size_t i, int fd)
{
	job->folder_fd[i] = fd;
	job->open_n++;
}

static void
drop_folder(struct spool_job *job, size_t i)
{
	if (job->folder_fd[i] < 0)
		return;
	sys_close_fd(&job->folder_fd[i]);
	job->open_n--;
}

enum mr_rc
spool_check_recipients(struct spool_job *job, struct mr_error *err)
{
	TRY(prepare_folders(job, err));
	for (size_t i = 0; i < job->to.n; i++) {
		int fd = -1;

		if (target_open(job, job->to.v[i], &fd, err) != MR_OK)
			return mr_wrap(err, "deliver to '%s'", job->to.v[i]);
		if (fd >= 0)
			keep_folder(job, i, fd);
		if (job->open_n > job->open_max)
			drop_folder(job, i);
	}
	return MR_OK;
}

/* ---- One link each ---- */

static enum mr_rc
sync_one(struct spool_job *job, size_t i, struct mr_error *err)
{
	int fd = job->folder_fd[i];
	enum mr_rc rc = MR_OK;

	if (fd >= 0 && job->md->sync && sys_fsync(fd) < 0)
		rc = mr_fail_errno(err, "cannot make message '%s' durable for '%s'", job->id, job->to.v[i]);
	drop_folder(job, i);
	return rc;
}

static enum mr_rc
give_one(struct spool_job *job, size_t i, struct mr_error *err)
{
	const char *to = job->to.v[i], *name;
	bool was_open = job->folder_fd[i] >= 0;

	/* The first one may still be refused; who comes later may have been removed since it was accepted. */
	enum mr_rc rc = target_give(job, to, job->search || i > 0, &job->folder_fd[i], err);
	if (job->folder_fd[i] >= 0 && !was_open)
		job->open_n++;
	else if (job->folder_fd[i] < 0 && was_open)
		job->open_n--;
	if (rc != MR_OK || job->open_n <= job->open_max)
		return rc;
	/* An agent's folder is found again for the sync; where in a queue it went may not. */
	if (target_kind(to, &name) != TARGET_AGENT)
		return sync_one(job, i, err);
	drop_folder(job, i);
	return MR_OK;
}

/* Everyone's, also those that a sender linked before it died: it died before it synced. */
static enum mr_rc
sync_folders(struct spool_job *job, struct mr_error *err)
{
	if (!job->md->sync)
		return MR_OK;
	/* The file first: on a file system without a journal its link count must not lag behind its
	 * names. With one, this is the commit, and the folders have little left to do. */
	if (!maildir_is_fast(job->md, job->message_fd) && sys_fsync(job->message_fd) < 0)
		return mr_fail_errno(err, "cannot flush message '%s'", job->id);
	for (size_t i = 0; i < job->to.n; i++) {
		if (job->folder_fd[i] < 0) {
			if (target_reopen(job, job->to.v[i], &job->folder_fd[i], err) != MR_OK)
				return mr_wrap(err, "cannot make message '%s' durable for '%s'", job->id, job->to.v[i]);
			job->open_n += job->folder_fd[i] >= 0;
		}
		TRY(sync_one(job, i, err));
	}
	return MR_OK;
}

/* Not synced and free to fail: it only spares whoever completes this after a kill a search, and it is not believed
 * after another boot. */
static void
note_progress(const struct spool_job *job, size_t next)
{
	char digits[SPOOL_COUNTER_DIGITS + 1];

	(void)text_number(digits, next % 10000000000u, SPOOL_COUNTER_DIGITS);
	(void)sys_pwrite_all(job->record_fd, digits, SPOOL_COUNTER_DIGITS, job->counter_at);
}

/* Who is removed while we send loses the name first, then we can see that somebody was removed, then the mail is
 * looked for. So if we see nothing behind the last link, all of our links will be found; else each is looked at. */
static enum mr_rc
recheck_removed(struct spool_job *job, struct mr_error *err)
{
	if (job->removals == 0 || job->removals == maildir_removals(job->room))
		return MR_OK;
	for (size_t i = 0; i < job->to.n; i++) {
		if (target_recheck(job, job->to.v[i], job->folder_fd[i], err) == MR_OK)
			continue;
		note_progress(job, i); /* whoever completes it looks at this one again, and at the rest */
		return mr_wrap(err, "deliver to '%s'", job->to.v[i]);
	}
	return MR_OK;
}

enum mr_rc
spool_give_all(struct spool_job *job, struct mr_error *err)
{
	TRY(prepare_folders(job, err));
	while (job->next < job->to.n) {
		if (give_one(job, job->next, err) != MR_OK) {
			note_progress(job, job->next);
			return mr_wrap(err, "deliver to '%s'", job->to.v[job->next]);
		}
		job->next++;
		if (job->next % NOTE_PROGRESS_EVERY == 0 || job->next == job->to.n)
			note_progress(job, job->next);
	}
	return recheck_removed(job, err) == MR_OK ? sync_folders(job, err) : err->code;
}

enum mr_rc
spool_remove(struct spool_job *job, struct mr_error *err)
{
	/* The record first: a message without a record is litter, a record without its message
	 * would be a promise that nobody can keep. */
	if (sys_unlink(job->spool_fd, job->id) < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove the record of message '%s'", job->id);
	(void)sys_unlink(job->spool_fd, job->message);
	return MR_OK;
}
