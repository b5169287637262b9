/* SPDX-License-Identifier: MIT */
/*
 * fanout.c - mail for several recipients, or with a key: accepted for all or for none.
 *
 * One file, one write, a link each. What makes it whole is a record in spool/ that says who is to get
 * it, durable before the first link. The states of a send, and what a crash in each leaves:
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
 *	6 everywhere    all links are made. If somebody was removed meanwhile, the copy goes to the dead letters;
 *	                then the file and each folder are synced. Now it is accepted.
 *	7 finished      the record is unlinked, then the message. Not synced: a record that comes back
 *	                after a power cut finds that everybody has the message, and goes again.
 *
 * The record is flocked from before it has a name until it is gone, so whoever gets the lock knows
 * that its sender is dead, and nobody completes a send that is alive.
 *
 * Errors. Up to the first link everything is taken back, key first (4), then record, then message:
 * refused, nothing is visible. If the record cannot be removed it will be rolled forward, so that is
 * in doubt, and so is every error after the first link: never taken back, because somebody may have
 * read it; the record stays and the rest will get it.
 */
#include "base/error.h"
#include "base/process.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <inttypes.h>
#include <sys/file.h>

#define ROUNDS_MAX 10

struct sending {
	struct spool_job job;
	struct delivery *what;
	struct staged message, record;
	const char *digest; /* with a key */
};

static void
sending_done(struct sending *s)
{
	s->job.record_fd = s->job.message_fd = -1; /* they are the staged files' */
	stage_done(&s->message);
	stage_done(&s->record); /* lets the lock go; both may have a temporary name in spool/ */
	spool_done(&s->job);
}

static enum mr_rc
write_record(const struct sending *s, struct buf *out, struct mr_error *err)
{
	const struct delivery *what = s->what;

	TRY(header_add(out, "Id", str_of(what->msg->id), err));
	for (size_t i = 0; i < what->to->n; i++)
		TRY(header_add(out, "To", str_of(what->to->v[i]), err));
	buf_addf(out, "From: %s\n", what->sender ? what->sender : "");
	if (what->key)
		buf_addf(out, "Digest: %s\nKey: %s\n", s->digest, what->key);
	if (s->job.removals)
		buf_addf(out, "Removals: %" PRIu64 "\n", s->job.removals);
	buf_addf(
	    out, "Boot: %s\nMake-Mailboxes: %s\nNext: 0000000000\n", boot_id(), what->make_mailboxes ? "yes" : "no");
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
stage(struct sending *s, struct staged *file, struct mr_str text, mode_t mode, struct mr_error *err)
{
	TRY(stage_open(file, s->job.spool_fd, s->job.spool_fd, mode, err));
	TRY(stage_write(file, text, err));
	return maildir_settle_bytes(s->job.md, file, err);
}

/* State 1. */
static enum mr_rc
stage_both(struct sending *s, struct mr_error *err)
{
	mr_auto(buf_done) struct buf message = BUF_INIT, record = BUF_INIT;
	struct maildir *md = s->job.md;

	TRY(message_write(s->what->msg, s->job.room->name, &message, err));
	TRY(write_record(s, &record, err));
	TRY(stage(s, &s->message, buf_str(&message), md->message_mode, err));
	TRY(stage(s, &s->record, buf_str(&record), md->file_mode, err));
	s->job.counter_at = (off_t)record.len - SPOOL_COUNTER_DIGITS - 1;
	if (sys_flock(s->record.fd, LOCK_EX) < 0)
		return mr_fail_errno(err, "cannot lock the record of message '%s'", s->job.id);
	return MR_OK;
}

static enum mr_rc
sync_spool(struct sending *s, struct mr_error *err)
{
	struct maildir *md = s->job.md;

	if (!md->sync)
		return MR_OK;
	if ((!maildir_is_fast(md, s->message.fd) && sys_fsync(s->message.fd) < 0) ||
	    maildir_settle_name(md, s->record.fd, s->job.spool_fd) < 0)
		return mr_fail_errno(err, "cannot make the record of message '%s' durable", s->job.id);
	return MR_OK;
}

/* Where an unnamed file cannot get a name, a named copy was made and is not locked yet: someone may have
 * completed the send for us meanwhile. */
static enum mr_rc
relock(struct spool_job *job, struct mr_error *err)
{
	struct stat st;

	if (sys_flock(job->record_fd, LOCK_EX) < 0)
		return mr_fail_errno(err, "cannot lock the record of message '%s'", job->id);
	job->search = true;
	if (sys_stat(job->spool_fd, job->id, &st) < 0 && errno == ENOENT)
		job->next = job->to.n;
	return MR_OK;
}

/* States 2 and 3. MR_EXISTS: the id is taken. */
static enum mr_rc
publish_both(struct sending *s, struct mr_error *err)
{
	struct spool_job *job = &s->job;
	int locked_fd = s->record.fd;

	TRY(stage_link(&s->message, job->spool_fd, job->message, err));
	if (stage_link(&s->record, job->spool_fd, job->id, err) != MR_OK) {
		(void)sys_unlink(job->spool_fd, job->message);
		return err->code;
	}
	job->record_fd = s->record.fd;
	job->message_fd = s->message.fd;
	if (job->record_fd != locked_fd && relock(job, err) != MR_OK)
		return err->code;
	return sync_spool(s, err);
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

/* Back to nothing, or else in doubt. The key goes first: see state 4. */
static enum mr_rc
withdraw(struct sending *s, struct delivered *ret, struct mr_error *err)
{
	struct mr_error second = { 0 };
	const struct delivery *what = s->what;

	if ((what->key && key_drop(&s->job, what->sender, what->key, &second) != MR_OK) ||
	    spool_remove(&s->job, &second) != MR_OK)
		return in_doubt(s, ret, err);
	if (s->job.md->sync && sys_fsync(s->job.spool_fd) < 0)
		return mr_hint(err, "nothing was delivered; after a power cut the message may show up "
				    "all the same");
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
	mr_auto(sys_close_fd) int sent_fd = -1;
	char sent_name[NAME_LEN + 8];

	spool_init(job, room);
	spool_set_id(job, what->msg->id);
	job->to = *what->to;
	job->make_mailboxes = what->make_mailboxes;
	job->removals = what->removals;
	TRY(spool_check_recipients(job, err));
	TRY(spool_open(job, true, err));
	TRY(stage_both(&s, err));
	if (publish_both(&s, err) != MR_OK)
		return job->record_fd < 0 ? err->code : withdraw(&s, ret, err);
	if (what->key && key_take(job, what->sender, what->key, err) != MR_OK)
		return withdraw(&s, ret, err);
	if (spool_give_all(job, err) != MR_OK)
		return job->next == 0 ? withdraw(&s, ret, err) : in_doubt(&s, ret, err);
	if (deliver_sent_place(job->md, what->sender, job->id, sent_name, &sent_fd))
		(void)sys_link(job->spool_fd, job->message, sent_fd, sent_name);
	struct mr_error later = { 0 };

	(void)spool_remove(job, &later); /* everybody has it; a later command tidies up */
	return MR_OK;
}

enum mr_rc
fanout_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct mr_message *msg = what->msg;
	char digest[65] = "";
	enum mr_rc rc = MR_OK;

	if (what->key && key_check(what->key, err) != MR_OK)
		return err->code;
	if (what->key)
		message_digest(msg, digest);
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
