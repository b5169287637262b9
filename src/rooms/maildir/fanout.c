/* SPDX-License-Identifier: MIT */
/*
 * fanout.c - mail for several recipients, or with a key: accepted for all or for none.
 *
 * One file, one write, one link for each recipient. A record in spool/ with all recipients, durable before the first
 * link, makes it one unit. The states of a send, and what a crash in each leaves:
 *
 *	1 nothing       both files are staged: unnamed, so a crash leaves nothing.
 *	2 message       spool/<id>.mr has its name. A crash leaves litter that nobody reads; it is removed
 *	                after 36 hours (a living sender is between 2 and 3 for microseconds).
 *	3 recorded      spool/<id> too, and both are synced with their folder. A crash from here on is
 *	                completed by any later command (recover.c). The sender had no answer yet, so either
 *	                end is right, and "delivered" is the one that loses nothing.
 *	4 keyed         with a key: keys/<sender>/<hash> is a link to the record, synced. Never before 3 is
 *	                durable: a key whose record is gone means "delivered", so a key that outlives its
 *	                record without a delivery would swallow the retry.
 *	5 under way     some recipients have their link; the counter in the record says how many, at least.
 *	6 everywhere    all links are made. If an agent was removed meanwhile, its copy goes to the dead letters;
 *	                then the file and each folder are synced. Now it is accepted.
 *	7 finished      the record is unlinked, then the message. Not synced: a record that comes back
 *	                after a power cut finds that everybody has the message, and goes again.
 *
 * The record is flocked from before it has a name until it is gone, so a process that gets the lock knows that the
 * sender is dead, and nobody completes a send that is alive.
 *
 * Errors. Up to the first link everything is removed again, first the key (4), then the record, then the message: the
 * send is refused, and nothing is visible. If the record cannot be removed it will be rolled forward, so the result is
 * in doubt. So is every error after the first link: nothing is removed then, because somebody may have read the
 * message; the record stays and the other recipients will get it.
 *
 * Removals. Removing an agent unlinks `agent`, then appends a byte to agents/.lock, then moves the mail. A fan-out
 * reads the length of that file before it looks at its recipients and again after its last link. If it is unchanged, no
 * agent was removed, or the removal will find our copy; else each recipient is checked again. A caller that read it
 * before it resolved the addresses (delivery.removals) has checked each recipient already: then one check is enough.
 */
#include "base/process.h"
#include "message/message.h"
#include "rooms/maildir/maildir.h"
#include <inttypes.h>
#include <sys/file.h>
#include <sys/resource.h>

#define ROUNDS_MAX 10
#define OPEN_MAX 32768u /* new/ of more recipients than that is opened again for its sync */
#define REOPEN_MAX 10
#define NOTE_PROGRESS_EVERY 16 /* a note costs every send, but only a killed send is searched */

/* ---- A job ---- */

void
spool_init(struct spool_job *job, struct mr_room *room)
{
	*job = (struct spool_job){
		.room = room, .md = maildir_of(room), .spool_fd = -1, .record_fd = -1, .message_fd = -1
	};
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
spool_open(struct spool_job *job, struct mr_error *err)
{
	return maildir_folder(job->md, job->md->root_fd, "spool", true, &job->spool_fd, err);
}

void
spool_set_id(struct spool_job *job, const char *id)
{
	text_join(job->id, sizeof job->id, id, NULL);
	text_join(job->message, sizeof job->message, id, ".mr", NULL);
	name_for_id(id, job->name);
}

size_t
spool_open_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 64;
	return limit.rlim_cur > 2 * OPEN_MAX ? OPEN_MAX : (size_t)limit.rlim_cur / 2;
}

enum mr_rc
spool_remove(struct spool_job *job, struct mr_error *err)
{
	/* The record first: a message without a record is litter, a record without its message could never be
	 * completed. */
	if (sys_unlink(job->spool_fd, job->id) < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove the record of message '%s'", job->id);
	(void)sys_unlink(job->spool_fd, job->message);
	return MR_OK;
}

/* ---- One recipient: an agent's new/, a queue, a channel, or the dead letters ---- */

/* Opens new/ of an agent; with `check` only if that is registered, and made first where that is wanted. */
static enum mr_rc
open_new(struct spool_job *job, const char *agent, bool check, int *ret_fd, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct stat st;

	/* Two calls in place of the four of mailbox_open: most of a fan-out to a thousand is this. */
	int fd = sys_open(job->md->agents_fd, path_of(agent, "/new", NULL).z, O_RDONLY | O_DIRECTORY, 0);

	if (fd >= 0 && (!check || (sys_stat(job->md->agents_fd, path_of(agent, "/agent", NULL).z, &st) == 0 &&
				      S_ISREG(st.st_mode)))) {
		*ret_fd = fd;
		return MR_OK;
	}
	sys_close_fd(&fd);
	TRY(deliver_open(job->room, agent, job->make_mailboxes, &box, err));
	TRY(mailbox_folder(&box, BOX_NEW, ret_fd, err));
	(void)mailbox_take(&box, BOX_NEW);
	return MR_OK;
}

/* agent "": the dead letters. */
static enum mr_rc
link_into(struct spool_job *job, const char *agent, int new_fd, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	int tmp_fd;

	if (sys_link_open(job->message_fd, job->spool_fd, job->message, new_fd, job->name) == 0)
		return MR_OK;
	if (errno == EEXIST)
		return file_is_same(job->spool_fd, job->message, new_fd, job->name)
			   ? MR_OK
			   : mr_fail(err, MR_EXISTS, "another message is named '%s'", job->name);
	if (!deliver_needs_copy(errno))
		return mr_fail_errno(err, "cannot publish '%s'", job->name);
	TRY(agent[0] ? mailbox_open_any(&box, job->md, agent, err) : mailbox_open_dead(&box, job->md, err));
	TRY(mailbox_folder(&box, BOX_TMP, &tmp_fd, err));
	return file_publish_copy(
	    job->spool_fd, job->message, new_fd, tmp_fd, job->name, job->md->message_mode, job->md->publish, err);
}

/* For a recipient that was removed meanwhile: into the dead letters, like the rest of its unread mail. */
static enum mr_rc
give_dead(struct spool_job *job, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox dead = MAILBOX_INIT;
	int new_fd;

	TRY(mailbox_open_dead(&dead, job->md, err));
	TRY(mailbox_folder(&dead, BOX_NEW, &new_fd, err));
	TRY(link_into(job, "", new_fd, err));
	if (job->md->sync && (sys_fsync(job->message_fd) < 0 || sys_fsync(new_fd) < 0))
		return mr_fail_errno(err, "cannot make message '%s' durable", job->id);
	return MR_OK;
}

/* Pruned between our look and our link? Then nobody may ever look in that folder again. */
static enum mr_rc
move_if_pruned(struct spool_job *job, const char *agent, int new_fd, struct mr_error *err)
{
	if (!deliver_is_removed(job->md, agent))
		return MR_OK;
	TRY(give_dead(job, err));
	(void)sys_unlink(new_fd, job->name); /* gone: the pruner moved it to the same place */
	return MR_OK;
}

enum mr_rc
spool_agent_has(struct spool_job *job, const char *agent, bool *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT, dead = MAILBOX_INIT;
	mr_auto(arena_done) struct arena *own = NULL;
	struct listed at;

	TRY(mailbox_open(&box, job->md, agent, err));
	enum mr_rc rc = list_find(&box, job->id, MR_INBOX | MR_HELD | MR_ARCHIVE, &own, &at, err);

	/* A dead letter does not say whose copy it was, so it counts only if there was one recipient: delivering twice
	 * is better than losing it. */
	if (rc == MR_NOTFOUND && job->to.n == 1) {
		TRY(mailbox_open_dead(&dead, job->md, err));
		rc = list_find(&dead, job->id, MR_INBOX, &own, &at, err);
	}
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*ret = rc == MR_OK;
	return MR_OK;
}

/* Gives it the message, unless it has it. *fd is its folder, opened here if it is -1; the caller syncs it. */
static enum mr_rc
give_target(struct spool_job *job, const char *to, int *fd, struct mr_error *err)
{
	const char *name;
	bool has = false;

	switch (target_kind(to, &name)) {
	case TARGET_AGENT:
		if (*fd < 0)
			TRY(open_new(job, name, job->removals == 0, fd, err));
		if (job->search)
			TRY(spool_agent_has(job, name, &has, err));
		if (has)
			return MR_OK;
		for (int tries = 0; link_into(job, name, *fd, err) != MR_OK; tries++) {
			struct stat st;

			if (err->sys_errno != ENOENT || tries == REOPEN_MAX ||
			    (sys_stat_fd(*fd, &st) == 0 && st.st_nlink))
				return err->code;
			sys_close_fd(fd); /* new/ was replaced since it was opened: renew.c */
			TRY(open_new(job, name, true, fd, err));
		}
		return job->removals == 0 || job->search ? move_if_pruned(job, name, *fd, err) : MR_OK;
	case TARGET_QUEUE:
		if (job->search)
			TRY(queue_has(job->md, name, job->id, &has, fd, err));
		return has ? MR_OK : queue_give(job->room, name, job->spool_fd, job->message, job->id, fd, err);
	case TARGET_CHANNEL:
		break;
	}
	if (job->search)
		TRY(channel_has(job->md, name, job->spool_fd, job->message, &has, err));
	return has ? channel_open_posts(job->md, name, fd, err)
		   : channel_give(job->room, name, job->spool_fd, job->message, job->id, fd, err);
}

/* Opens the folder that has to be synced for this recipient; -1: its folders are gone, and the removal took the mail.
 */
static enum mr_rc
reopen_target(struct spool_job *job, const char *to, int *ret_fd, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;
	const char *name;
	bool has;

	switch (target_kind(to, &name)) {
	case TARGET_AGENT: /* without a check for its registration: only the folder matters */
		rc = dir_open(job->md->agents_fd, path_of(name, "/new", NULL).z, ret_fd, err);
		break;
	case TARGET_QUEUE:
		rc = queue_has(job->md, name, job->id, &has, ret_fd, err);
		break;
	case TARGET_CHANNEL:
		rc = channel_open_posts(job->md, name, ret_fd, err);
		break;
	}
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* ---- All recipients ---- */

static enum mr_rc
prepare_folders(struct spool_job *job, struct mr_error *err)
{
	if (job->folder_fd)
		return MR_OK;
	job->folder_fd = malloc(job->to.n * sizeof *job->folder_fd);
	TRY(mr_got(job->folder_fd, err));
	for (size_t i = 0; i < job->to.n; i++)
		job->folder_fd[i] = -1;
	job->open_max = spool_open_max();
	return MR_OK;
}

static void
close_folder(struct spool_job *job, size_t i)
{
	job->open_n -= job->folder_fd[i] >= 0;
	sys_close_fd(&job->folder_fd[i]);
}

static enum mr_rc
sync_one(struct spool_job *job, size_t i, struct mr_error *err)
{
	if (job->folder_fd[i] >= 0 && job->md->sync && sys_fsync(job->folder_fd[i]) < 0)
		return mr_fail_errno(err, "cannot make message '%s' durable for '%s'", job->id, job->to.v[i]);
	close_folder(job, i);
	return MR_OK;
}

static enum mr_rc
give_one(struct spool_job *job, size_t i, struct mr_error *err)
{
	const char *to = job->to.v[i], *name;

	job->open_n -= job->folder_fd[i] >= 0;
	enum mr_rc rc = give_target(job, to, &job->folder_fd[i], err);

	/* The first one may still be refused; a later one may have been removed since it was accepted. */
	if (rc == MR_NOTFOUND && (job->search || i > 0)) {
		sys_close_fd(&job->folder_fd[i]);
		rc = give_dead(job, err);
	}
	job->open_n += job->folder_fd[i] >= 0;
	if (rc != MR_OK || job->open_n <= job->open_max)
		return rc;
	/* An agent's folder can be found again for the sync; the place in a queue cannot. */
	if (target_kind(to, &name) != TARGET_AGENT)
		return sync_one(job, i, err);
	close_folder(job, i);
	return MR_OK;
}

/* Not synced, and allowed to fail: it only spares the completion after a kill a search, and it does not count after
 * another boot. */
static void
note_progress(const struct spool_job *job, size_t next)
{
	char digits[SPOOL_COUNTER_DIGITS + 1];

	(void)text_number(digits, next % 10000000000u, SPOOL_COUNTER_DIGITS);
	(void)sys_pwrite_all(job->record_fd, digits, SPOOL_COUNTER_DIGITS, job->counter_at);
}

static enum mr_rc
recheck_removed(struct spool_job *job, struct mr_error *err)
{
	for (size_t i = 0; i < job->to.n; i++) {
		mr_auto(sys_close_fd) int own_fd = -1;
		int fd = job->folder_fd[i];
		enum mr_rc rc = MR_OK;
		const char *name;

		if (target_kind(job->to.v[i], &name) != TARGET_AGENT)
			continue;
		if (fd < 0) {
			rc = reopen_target(job, job->to.v[i], &own_fd, err);
			fd = own_fd;
		}
		if (rc == MR_OK && fd >= 0)
			rc = move_if_pruned(job, name, fd, err);
		if (rc != MR_OK) {
			note_progress(job, i); /* the completion starts at this one again */
			return mr_wrap(err, "deliver to '%s'", job->to.v[i]);
		}
	}
	return MR_OK;
}

/* Also of those that a sender linked before it died: it died before it synced. */
static enum mr_rc
sync_folders(struct spool_job *job, struct mr_error *err)
{
	/* The file first: on a file system without a journal its link count must not lag behind its names. With a
	 * journal this is the commit, and syncing the folders is cheap. */
	if (!commit_is_fast(job->md, job->message_fd) && sys_fsync(job->message_fd) < 0)
		return mr_fail_errno(err, "cannot flush message '%s'", job->id);
	for (size_t i = 0; i < job->to.n; i++) {
		if (job->folder_fd[i] < 0) {
			if (reopen_target(job, job->to.v[i], &job->folder_fd[i], err) != MR_OK)
				return mr_wrap(err, "cannot make message '%s' durable for '%s'", job->id, job->to.v[i]);
			job->open_n += job->folder_fd[i] >= 0;
		}
		TRY(sync_one(job, i, err));
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
	if (job->removals != 0 && job->removals != maildir_removals(job->room))
		TRY(recheck_removed(job, err));
	return job->md->sync ? sync_folders(job, err) : MR_OK;
}

void
spool_keep_sent(const struct spool_job *job, const char *sender)
{
	mr_auto(sys_close_fd) int sent_fd = -1;

	if (deliver_open_sent(job->md, sender, job->id, &sent_fd))
		(void)sys_link(job->spool_fd, job->message, sent_fd, deliver_sent_name(job->id).z);
}

/* ---- The sender ---- */

struct sending {
	struct spool_job job;
	struct delivery *what;
	struct staged message, record;
	const char *digest; /* with a key */
};

static void
sending_done(struct sending *s)
{
	s->job.record_fd = s->job.message_fd = -1; /* they belong to the staged files */
	stage_done(&s->message);
	stage_done(&s->record); /* releases the lock; both may have a temporary name in spool/ */
	spool_done(&s->job);
}

/* Before anything is written: opens every recipient's mailbox, and makes missing ones if wanted. `looked`: the caller
 * knows that every agent is registered. */
static enum mr_rc
check_recipients(struct spool_job *job, bool looked, struct mr_error *err)
{
	TRY(prepare_folders(job, err));
	for (size_t i = 0; i < job->to.n; i++) {
		mr_auto(sys_close_fd) int posts_fd = -1;
		mr_auto(queue_done) struct queue queue = QUEUE_INIT;
		enum mr_rc rc = MR_OK;
		const char *name;

		switch (target_kind(job->to.v[i], &name)) {
		case TARGET_AGENT:
			rc = open_new(job, name, !looked, &job->folder_fd[i], err);
			break;
		case TARGET_QUEUE:
			rc = queue_open(&queue, job->md, name, IGNORED) == MR_OK ? MR_OK : queue_missing(name, err);
			break;
		case TARGET_CHANNEL:
			if (channel_open_posts(job->md, name, &posts_fd, IGNORED) != MR_OK)
				rc = mr_fail(err, MR_NOTFOUND, "no channel '%s'\nsee: mailroom channel list", name);
		}
		if (rc != MR_OK)
			return mr_wrap(err, "deliver to '%s'", job->to.v[i]);
		job->open_n += job->folder_fd[i] >= 0;
		if (job->open_n > job->open_max)
			close_folder(job, i);
	}
	return MR_OK;
}

/* State 1. */
static enum mr_rc
stage_both(struct sending *s, struct mr_error *err)
{
	mr_auto(buf_done) struct buf record = BUF_INIT;
	const struct delivery *what = s->what;
	struct maildir *md = s->job.md;

	TRY(header_add(&record, "Id", str_of(what->msg->id), err));
	buf_addf(&record, "Name: %s\n", s->job.name);
	for (size_t i = 0; i < what->to->n; i++)
		TRY(header_add(&record, "To", str_of(what->to->v[i]), err));
	buf_addf(&record, "From: %s\n", what->sender ? what->sender : "");
	if (what->key)
		buf_addf(&record, "Digest: %s\nKey: %s\n", s->digest, what->key);
	if (s->job.removals)
		buf_addf(&record, "Removals: %" PRIu64 "\n", s->job.removals);
	buf_addf(&record, "Boot: %s\nMake-Mailboxes: %s\nNext: 0000000000\n", boot_id(),
	    what->make_mailboxes ? "yes" : "no");
	if (!buf_ok(&record))
		return mr_nomem(err);
	TRY(stage_open(&s->message, s->job.spool_fd, s->job.spool_fd, md->message_mode, err));
	TRY(deliver_write(&s->message, s->job.room, what->msg, err));
	TRY(commit_bytes(md, &s->message, err));
	TRY(stage_open(&s->record, s->job.spool_fd, s->job.spool_fd, md->file_mode, err));
	TRY(stage_write(&s->record, buf_str(&record), err));
	TRY(commit_bytes(md, &s->record, err));
	s->job.counter_at = (off_t)record.len - SPOOL_COUNTER_DIGITS - 1;
	if (sys_flock(s->record.fd, LOCK_EX) < 0)
		return mr_fail_errno(err, "cannot lock the record of message '%s'", s->job.id);
	return MR_OK;
}

/* States 2 and 3. MR_EXISTS: the id is taken. */
static enum mr_rc
publish_both(struct sending *s, struct mr_error *err)
{
	struct spool_job *job = &s->job;
	int locked_fd = s->record.fd;
	struct stat st;

	TRY(stage_link(&s->message, job->spool_fd, job->message, err));
	if (stage_link(&s->record, job->spool_fd, job->id, err) != MR_OK) {
		(void)sys_unlink(job->spool_fd, job->message);
		return err->code;
	}
	job->record_fd = s->record.fd;
	job->message_fd = s->message.fd;
	/* If an unnamed file cannot get a name, a named copy was made and is not locked yet: another command may have
	 * completed the send for us meanwhile. */
	if (job->record_fd != locked_fd) {
		if (sys_flock(job->record_fd, LOCK_EX) < 0)
			return mr_fail_errno(err, "cannot lock the record of message '%s'", job->id);
		job->search = true;
		if (sys_stat(job->spool_fd, job->id, &st) < 0 && errno == ENOENT)
			job->next = job->to.n;
	}
	if (job->md->sync && ((!commit_is_fast(job->md, s->message.fd) && sys_fsync(s->message.fd) < 0) ||
				 commit_name(job->md, s->record.fd, job->spool_fd) < 0))
		return mr_fail_errno(err, "cannot make the record of message '%s' durable", job->id);
	return MR_OK;
}

static enum mr_rc
in_doubt(struct sending *s, struct delivered *ret, struct mr_error *err)
{
	for (size_t i = s->job.next; i < s->what->to->n; i++)
		(void)names_add(&ret->missing, str_of(s->what->to->v[i]));
	err->code = MR_INDOUBT;
	(void)mr_wrap(err, "message '%s' has reached %zu of %zu", s->job.id, s->job.next, s->what->to->n);
	return mr_hint(err, "it will be completed by a later command; do not send it again");
}

/* Undoes everything, else the send is in doubt. The key goes first: see state 4. */
static enum mr_rc
withdraw(struct sending *s, struct delivered *ret, struct mr_error *err)
{
	const struct delivery *what = s->what;

	if ((what->key && key_drop(&s->job, what->sender, what->key, IGNORED) != MR_OK) ||
	    spool_remove(&s->job, IGNORED) != MR_OK)
		return in_doubt(s, ret, err);
	if (s->job.md->sync && sys_fsync(s->job.spool_fd) < 0)
		return mr_hint(err, "nothing was delivered; after a power cut the message may show up anyway");
	return err->code;
}

/* One attempt with the message's present id. MR_EXISTS: that id is taken, or the key was. */
static enum mr_rc
send_once(struct mr_room *room, struct delivery *what, const char *digest, struct delivered *ret, struct mr_error *err)
{
	mr_auto(sending_done) struct sending s = {
		.what = what, .message = STAGED_INIT, .record = STAGED_INIT, .digest = digest
	};
	struct spool_job *job = &s.job;

	spool_init(job, room);
	spool_set_id(job, what->msg->id);
	name_new(job->id, what->msg->priority, what->look, job->name);
	job->to = *what->to;
	job->make_mailboxes = what->make_mailboxes;
	job->removals = what->removals ? what->removals : maildir_removals(room);
	TRY(check_recipients(job, what->removals != 0, err));
	TRY(spool_open(job, err));
	TRY(stage_both(&s, err));
	if (publish_both(&s, err) != MR_OK)
		return job->record_fd < 0 ? err->code : withdraw(&s, ret, err);
	if (what->key && key_take(job, what->sender, what->key, err) != MR_OK)
		return withdraw(&s, ret, err);
	if (spool_give_all(job, err) != MR_OK)
		return job->next == 0 ? withdraw(&s, ret, err) : in_doubt(&s, ret, err);
	spool_keep_sent(job, what->sender);
	(void)spool_remove(job, IGNORED); /* everybody has it; a later command tidies up */
	return MR_OK;
}

enum mr_rc
fanout_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct mr_message *msg = what->msg;
	char digest[65] = "";
	enum mr_rc rc = MR_OK;

	if (what->key) {
		TRY(key_check(what->key, err));
		message_digest(msg, digest);
		if (!digest[0])
			return mr_fail(err, MR_IO, "cannot read the attachments");
	}
	for (unsigned round = 0; round < ROUNDS_MAX; round++) {
		if (what->key) {
			char known[MR_ID_LEN + 1] = "";

			rc = key_find(room, what->sender, what->key, what->key_is_all ? NULL : digest, known, err);
			if (rc != MR_NOTFOUND) {
				ret->repeated = rc == MR_OK;
				if (rc == MR_OK || rc == MR_INDOUBT)
					memcpy(ret->id, known, sizeof known);
				return rc;
			}
		}
		rc = send_once(room, what, digest, ret, err);
		if (rc != MR_EXISTS) {
			memcpy(ret->id, msg->id, sizeof ret->id);
			break;
		}
		deliver_new_id(msg);
	}
	if (rc == MR_OK && what->key)
		key_expire(room, what->sender);
	return rc;
}
