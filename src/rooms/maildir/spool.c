/* SPDX-License-Identifier: MIT */
/*
 * spool.c - a fan-out under way: the recipients' folders, a link in each, the counter, the syncs. The
 * states and crash points are told in fanout.c; recover.c does the same for a sender that died.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>


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
	(void)snprintf(job->id, sizeof job->id, "%s", id);
	(void)snprintf(job->message, sizeof job->message, "%s.mr", id);
}

/* ---- Recipients' folders ---- */

static enum mr_rc
prepare_folders(struct spool_job *job, struct mr_error *err)
{
	struct rlimit limit;

	if (job->folder_fd)
		return MR_OK;
	job->folder_fd = malloc(job->to.n * sizeof *job->folder_fd);
	if (!job->folder_fd)
		return mr_nomem(err);
	for (size_t i = 0; i < job->to.n; i++)
		job->folder_fd[i] = -1;
	/* Half of what the process may open: the rest is its own and for what we do in between. */
	job->open_max = 64;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		job->open_max = limit.rlim_cur > 8192 ? 4096 : (size_t)limit.rlim_cur / 2;
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

static enum mr_rc
take_new(struct mailbox *box, int *ret_fd, struct mr_error *err)
{
	if (mailbox_folder(box, BOX_NEW, ret_fd, err) != MR_OK)
		return err->code;
	box->folder[BOX_NEW] = -1; /* ours now */
	return MR_OK;
}

/* Two calls for what mailbox_open does in four: a fan-out to a thousand is mostly this. */
static bool
open_new_quickly(const struct maildir *md, const char *agent, int *ret_fd)
{
	char path[MR_ADDRESS_MAX + 8];
	struct stat st;
	int fd;

	(void)snprintf(path, sizeof path, "%.160s/new", agent);
	fd = sys_open(md->agents_fd, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return false;
	(void)snprintf(path, sizeof path, "%.160s/agent", agent);
	if (sys_stat(md->agents_fd, path, &st) < 0 || !S_ISREG(st.st_mode)) {
		(void)sys_close(fd);
		return false;
	}
	*ret_fd = fd;
	return true;
}

/* MR_NOTFOUND: nobody there (any more). */
static enum mr_rc
open_new(struct spool_job *job, const char *agent, int *ret_fd, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;

	if (open_new_quickly(job->md, agent, ret_fd))
		return MR_OK;
	if (deliver_open(job->room, agent, job->make_mailboxes, &box, err) != MR_OK)
		return err->code;
	return take_new(&box, ret_fd, err);
}

enum mr_rc
spool_check_recipients(struct spool_job *job, struct mr_error *err)
{
	if (prepare_folders(job, err) != MR_OK)
		return err->code;
	for (size_t i = 0; i < job->to.n; i++) {
		int fd;

		if (open_new(job, job->to.v[i], &fd, err) != MR_OK)
			return mr_wrap(err, "deliver to '%s'", job->to.v[i]);
		keep_folder(job, i, fd);
		if (job->open_n > job->open_max)
			drop_folder(job, i);
	}
	return MR_OK;
}

/* ---- One link each ---- */

/* Not by link: another file system, too many links, a kernel or sandbox that links only one's own
 * files. A further copy is as good, it only takes space. */
static bool
needs_copy(int error)
{
	return error == EXDEV || error == EMLINK || error == EPERM || error == EOPNOTSUPP;
}

/* agent "": the dead letters. */
static enum mr_rc
give_copy(struct spool_job *job, const char *agent, int new_fd, const char *name, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	int tmp_fd;

	if ((agent[0] ? mailbox_open_any(&box, job->md, agent, err) :
	    mailbox_open_dead(&box, job->md, err)) != MR_OK ||
	    mailbox_folder(&box, BOX_TMP, &tmp_fd, err) != MR_OK ||
	    file_read(job->spool_fd, job->message, SIZE_MAX, &text, err) != MR_OK)
		return err->code;
	return file_publish(new_fd, tmp_fd, name, buf_str(&text), job->md->message_mode,
	    job->md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);
}

static bool
same_file(int a_fd, const char *a, int b_fd, const char *b)
{
	struct stat sa, sb;

	return sys_stat(a_fd, a, &sa) == 0 && sys_stat(b_fd, b, &sb) == 0 &&
	    sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

static enum mr_rc
give_into(struct spool_job *job, const char *agent, int new_fd, struct mr_error *err)
{
	char name[NAME_LEN];

	name_for_id(job->id, name);
	if (sys_link(job->spool_fd, job->message, new_fd, name) == 0)
		return MR_OK;
	if (errno == EEXIST)
		return same_file(job->spool_fd, job->message, new_fd, name) ? MR_OK :
		    mr_fail(err, MR_EXISTS, "another message is named '%s'", name);
	if (!needs_copy(errno))
		return mr_fail_errno(err, "cannot publish '%s'", name);
	return give_copy(job, agent, new_fd, name, err);
}

/* For a recipient who was pruned meanwhile: to where the rest of its unread mail went. */
static enum mr_rc
give_dead(struct spool_job *job, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	int new_fd;

	if (mailbox_open_dead(&dead, job->md, err) != MR_OK ||
	    mailbox_folder(&dead, BOX_NEW, &new_fd, err) != MR_OK ||
	    give_into(job, "", new_fd, err) != MR_OK)
		return err->code;
	if (job->md->sync && (sys_fsync(job->message_fd) < 0 || sys_fsync(new_fd) < 0))
		return mr_fail_errno(err, "cannot make message '%s' durable", job->id);
	return MR_OK;
}

/* Does this recipient have the message already? A dead letter does not say whose copy it was, so it
 * counts only where there was one recipient: twice is better than never. */
static enum mr_rc
has_it(struct spool_job *job, const char *agent, bool *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT, dead = MAILBOX_INIT;
	struct arena *own = NULL;
	struct listed at;

	if (mailbox_open(&box, job->md, agent, err) != MR_OK)
		return err->code;
	enum mr_rc rc = list_find(&box, job->id, MR_INBOX | MR_HELD | MR_ARCHIVE, &own, &at, err);

	if (rc == MR_NOTFOUND && job->to.n == 1) {
		rc = mailbox_open_dead(&dead, job->md, err);
		if (rc == MR_OK)
			rc = list_find(&dead, job->id, MR_INBOX, &own, &at, err);
	}
	arena_free(own);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*ret = rc == MR_OK;
	return MR_OK;
}

/* Pruned between our look and our link? Then nobody may ever look there again (see deliver.c). */
static enum mr_rc
move_if_pruned(struct spool_job *job, const char *agent, int new_fd, struct mr_error *err)
{
	char path[MR_ADDRESS_MAX + 8], name[NAME_LEN];
	struct stat st;

	(void)snprintf(path, sizeof path, "%.160s/agent", agent);
	if (sys_stat(job->md->agents_fd, path, &st) == 0 || errno != ENOENT)
		return MR_OK;
	if (give_dead(job, err) != MR_OK)
		return err->code;
	name_for_id(job->id, name);
	(void)sys_unlink(new_fd, name); /* gone: the pruner was faster, to the same place */
	return MR_OK;
}

static enum mr_rc
give_one(struct spool_job *job, size_t i, struct mr_error *err)
{
	const char *agent = job->to.v[i];
	enum mr_rc rc = MR_OK;
	bool has = false;

	if (job->folder_fd[i] < 0) {
		rc = open_new(job, agent, &job->folder_fd[i], err);
		job->open_n += rc == MR_OK;
	}
	if (rc == MR_OK && job->search)
		rc = has_it(job, agent, &has, err);
	if (rc == MR_NOTFOUND && (job->search || i > 0)) {
		drop_folder(job, i);
		return give_dead(job, err);
	}
	if (rc == MR_OK && !has)
		rc = give_into(job, agent, job->folder_fd[i], err);
	if (rc == MR_OK && !has)
		rc = move_if_pruned(job, agent, job->folder_fd[i], err);
	if (job->open_n > job->open_max)
		drop_folder(job, i);
	return rc;
}

/* Everyone's, also those that a sender linked before it died: it died before it synced. */
static enum mr_rc
sync_folders(struct spool_job *job, struct mr_error *err)
{
	char path[MR_ADDRESS_MAX + 8];

	if (!job->md->sync)
		return MR_OK;
	/* The file first: on a file system without a journal its link count must not lag behind its
	 * names. With one, this is the commit, and the folders have little left to do. */
	if (sys_fsync(job->message_fd) < 0)
		return mr_fail_errno(err, "cannot flush message '%s'", job->id);
	for (size_t i = 0; i < job->to.n; i++) {
		(void)snprintf(path, sizeof path, "%.160s/new", job->to.v[i]);
		if (job->folder_fd[i] < 0) {
			job->folder_fd[i] = sys_open(job->md->agents_fd, path, O_RDONLY | O_DIRECTORY, 0);
			job->open_n += job->folder_fd[i] >= 0;
		}
		if (job->folder_fd[i] < 0 && errno == ENOENT)
			continue; /* its folders are gone, and whoever removed them took the mail */
		if (job->folder_fd[i] < 0 || sys_fsync(job->folder_fd[i]) < 0)
			return mr_fail_errno(err, "cannot make message '%s' durable in 'agents/%s'", job->id,
			    path);
		drop_folder(job, i);
	}
	return MR_OK;
}

enum mr_rc
spool_give_all(struct spool_job *job, struct mr_error *err)
{
	char digits[SPOOL_COUNTER_DIGITS + 1];

	if (prepare_folders(job, err) != MR_OK)
		return err->code;
	while (job->next < job->to.n) {
		if (give_one(job, job->next, err) != MR_OK)
			return mr_wrap(err, "deliver to '%s'", job->to.v[job->next]);
		job->next++;
		/* Not synced and free to fail: it only spares whoever completes this after a kill a
		 * search, and it is not believed after another boot. */
		(void)snprintf(digits, sizeof digits, "%010zu", job->next % 10000000000u);
		(void)sys_pwrite_all(job->record_fd, digits, SPOOL_COUNTER_DIGITS, job->counter_at);
	}
	return sync_folders(job, err);
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
