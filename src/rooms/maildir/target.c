/* SPDX-License-Identifier: MIT */
/*
 * target.c - one recipient of a fan-out: a link of the message into an agent's new/, a queue, a channel; or into the
 * dead letters, when that recipient was removed after the message was accepted.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/claim.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum target_kind
target_kind(const char *to, const char **ret_name)
{
	static const struct {
		const char *prefix;
		enum target_kind kind;
	} prefixes[] = {
		{ "queue:", TARGET_QUEUE },
		{ "channel:", TARGET_CHANNEL },
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		if (str_starts(str_of(to), prefixes[i].prefix)) {
			*ret_name = to + strlen(prefixes[i].prefix);
			return prefixes[i].kind;
		}
	}
	*ret_name = to;
	return TARGET_AGENT;
}

/* ---- Links and copies ---- */

/* agent "": the dead letters. */
static enum mr_rc
give_copy(struct spool_job *job, const char *agent, int new_fd, const char *name, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	int tmp_fd;

	if ((agent[0] ? mailbox_open_any(&box, job->md, agent, err) : mailbox_open_dead(&box, job->md, err)) != MR_OK ||
	    mailbox_folder(&box, BOX_TMP, &tmp_fd, err) != MR_OK ||
	    file_read(job->spool_fd, job->message, SIZE_MAX, &text, err) != MR_OK)
		return err->code;
	return file_publish(new_fd, tmp_fd, name, buf_str(&text), job->md->message_mode,
	    job->md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC, err);
}

static enum mr_rc
give_into(struct spool_job *job, const char *agent, int new_fd, struct mr_error *err)
{
	const char *name = job->name;

	if (sys_link_open(job->message_fd, job->spool_fd, job->message, new_fd, name) == 0)
		return MR_OK;
	if (errno == EEXIST)
		return file_is_same(job->spool_fd, job->message, new_fd, name)
			   ? MR_OK
			   : mr_fail(err, MR_EXISTS, "another message is named '%s'", name);
	if (!deliver_needs_copy(errno))
		return mr_fail_errno(err, "cannot publish '%s'", name);
	return give_copy(job, agent, new_fd, name, err);
}

/* For a recipient who was removed meanwhile: to where the rest of its unread mail went. */
static enum mr_rc
give_dead(struct spool_job *job, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	int new_fd;

	TRY(mailbox_open_dead(&dead, job->md, err));
	TRY(mailbox_folder(&dead, BOX_NEW, &new_fd, err));
	TRY(give_into(job, "", new_fd, err));
	if (job->md->sync && (sys_fsync(job->message_fd) < 0 || sys_fsync(new_fd) < 0))
		return mr_fail_errno(err, "cannot make message '%s' durable", job->id);
	return MR_OK;
}

/* ---- Agents ---- */

static enum mr_rc
take_new(struct mailbox *box, int *ret_fd, struct mr_error *err)
{
	TRY(mailbox_folder(box, BOX_NEW, ret_fd, err));
	box->folder[BOX_NEW] = -1; /* ours now */
	return MR_OK;
}

/* One or two calls for what mailbox_open does in four: a fan-out to a thousand is mostly this. */
static bool
open_new_quickly(const struct spool_job *job, const char *agent, int *ret_fd)
{
	const struct maildir *md = job->md;
	char path[MR_ADDRESS_MAX + 8];
	struct stat st;
	int fd;

	text_join(path, sizeof path, agent, "/new", NULL);
	fd = sys_open(md->agents_fd, path, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return false;
	text_join(path, sizeof path, agent, "/agent", NULL);
	if (job->removals == 0 && (sys_stat(md->agents_fd, path, &st) < 0 || !S_ISREG(st.st_mode))) {
		(void)sys_close(fd);
		return false;
	}
	*ret_fd = fd;
	return true;
}

static enum mr_rc
open_new(struct spool_job *job, const char *agent, int *ret_fd, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;

	if (open_new_quickly(job, agent, ret_fd))
		return MR_OK;
	TRY(deliver_open(job->room, agent, job->make_mailboxes, &box, err));
	return take_new(&box, ret_fd, err);
}

/* A dead letter does not say whose copy it was, so it counts only where there was one recipient: twice is better than
 * never. */
enum mr_rc
target_agent_has(struct spool_job *job, const char *agent, bool *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT, dead = MAILBOX_INIT;
	struct arena *own = NULL;
	struct listed at;

	TRY(mailbox_open(&box, job->md, agent, err));
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
	char path[MR_ADDRESS_MAX + 8];
	struct stat st;

	text_join(path, sizeof path, agent, "/agent", NULL);
	if (sys_stat(job->md->agents_fd, path, &st) == 0 || errno != ENOENT)
		return MR_OK;
	TRY(give_dead(job, err));
	(void)sys_unlink(new_fd, job->name); /* gone: the pruner was faster, to the same place */
	return MR_OK;
}

static enum mr_rc
give_agent(struct spool_job *job, const char *agent, int *fd, struct mr_error *err)
{
	enum mr_rc rc = *fd >= 0 ? MR_OK : open_new(job, agent, fd, err);
	bool has = false;

	if (rc == MR_OK && job->search)
		rc = target_agent_has(job, agent, &has, err);
	if (rc != MR_OK || has)
		return rc;
	rc = give_into(job, agent, *fd, err);
	return rc == MR_OK && (job->removals == 0 || job->search) ? move_if_pruned(job, agent, *fd, err) : rc;
}

enum mr_rc
target_recheck(struct spool_job *job, const char *to, int fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int own_fd = -1;
	const char *name;

	if (target_kind(to, &name) != TARGET_AGENT)
		return MR_OK;
	if (fd < 0 && target_reopen(job, to, &own_fd, err) != MR_OK)
		return err->code;
	fd = fd < 0 ? own_fd : fd;
	return fd < 0 ? MR_OK : move_if_pruned(job, name, fd, err);
}

/* ---- Queues and channels ---- */

static enum mr_rc
give_queue(struct spool_job *job, const char *queue, int *fd, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;
	bool has = false;

	if (job->search)
		rc = queue_has(job->md, queue, job->id, &has, fd, err);
	return rc != MR_OK || has ? rc : queue_give(job->room, queue, job->spool_fd, job->message, job->id, fd, err);
}

static enum mr_rc
give_channel(struct spool_job *job, const char *channel, int *fd, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;
	bool has = false;

	if (job->search)
		rc = channel_has(job->md, channel, job->spool_fd, job->message, &has, err);
	if (rc == MR_OK && has)
		return channel_open_posts(job->md, channel, fd, err);
	return rc != MR_OK ? rc : channel_give(job->room, channel, job->spool_fd, job->message, job->id, fd, err);
}

/* ---- Any of them ---- */

enum mr_rc
target_open(struct spool_job *job, const char *to, int *ret_fd, struct mr_error *err)
{
	const char *name;

	switch (target_kind(to, &name)) {
	case TARGET_AGENT:
		return open_new(job, name, ret_fd, err);
	case TARGET_QUEUE:
		return queue_exists(job->md, name) ? MR_OK : queue_missing(name, err);
	case TARGET_CHANNEL:
		break;
	}
	mr_auto(sys_close_fd) int posts_fd = -1;

	if (channel_open_posts(job->md, name, &posts_fd, IGNORED) == MR_OK)
		return MR_OK;
	return mr_fail(err, MR_NOTFOUND, "no channel '%s'\nsee: mailroom channel list", name);
}

enum mr_rc
target_give(struct spool_job *job, const char *to, bool may_bury, int *fd, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;
	const char *name;

	switch (target_kind(to, &name)) {
	case TARGET_AGENT:
		rc = give_agent(job, name, fd, err);
		break;
	case TARGET_QUEUE:
		rc = give_queue(job, name, fd, err);
		break;
	case TARGET_CHANNEL:
		rc = give_channel(job, name, fd, err);
		break;
	}
	if (rc != MR_NOTFOUND || !may_bury)
		return rc;
	sys_close_fd(fd);
	*fd = -1;
	return give_dead(job, err);
}

enum mr_rc
target_reopen(struct spool_job *job, const char *to, int *ret_fd, struct mr_error *err)
{
	char path[MR_ADDRESS_MAX + 16];
	enum mr_rc rc = MR_OK;
	const char *name;
	bool has;

	switch (target_kind(to, &name)) {
	case TARGET_AGENT:
		/* Without a look whether it is registered: the folder is what counts. */
		text_join(path, sizeof path, name, "/new", NULL);
		rc = dir_open(job->md->agents_fd, path, ret_fd, err);
		break;
	case TARGET_QUEUE:
		rc = queue_has(job->md, name, job->id, &has, ret_fd, err);
		break;
	case TARGET_CHANNEL:
		rc = channel_open_posts(job->md, name, ret_fd, err);
		break;
	}
	/* Its folders are gone, and whoever removed them took the mail. */
	return rc == MR_NOTFOUND ? MR_OK : rc;
}
