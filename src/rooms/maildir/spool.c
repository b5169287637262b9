/* SPDX-License-Identifier: MIT */
/*
 * spool.c - a fan-out under way: its record, its links, and rolling it forward after a crash. The states
 * and crash points are told in fanout.c.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>

#define RECORD_MAX ((size_t)64 << 20)
#define COUNTER_DIGITS 10
#define LOCK_POLL_MS 5

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
	char digits[COUNTER_DIGITS + 1];

	if (prepare_folders(job, err) != MR_OK)
		return err->code;
	while (job->next < job->to.n) {
		if (give_one(job, job->next, err) != MR_OK)
			return mr_wrap(err, "deliver to '%s'", job->to.v[job->next]);
		job->next++;
		/* Not synced and free to fail: it only spares whoever completes this after a kill a
		 * search, and it is not believed after another boot. */
		(void)snprintf(digits, sizeof digits, "%010zu", job->next % 10000000000u);
		(void)sys_pwrite_all(job->record_fd, digits, COUNTER_DIGITS, job->counter_at);
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

/* ---- Reading a record ---- */

static enum mr_rc
no_record(struct spool_job *job, const char *what, struct mr_error *err)
{
	(void)mr_fail(err, MR_CORRUPT, "'spool/%s' %s", job->id, what);
	return mr_hint(err, "look at it, and at: mailroom doctor");
}

/* The names stay in the record's memory; only the array is ours. */
static enum mr_rc
collect_recipients(struct spool_job *job, struct mr_error *err)
{
	job->to.v = calloc(job->lines.n, sizeof *job->to.v);
	if (!job->to.v)
		return mr_nomem(err);
	for (size_t i = 0; i < job->lines.n; i++)
		if (ascii_caseeq(job->lines.lines[i].name, "To"))
			job->to.v[job->to.n++] = (char *)(uintptr_t)job->lines.lines[i].value;
	return job->to.n > 0 ? MR_OK : no_record(job, "names no recipient", err);
}

static enum mr_rc
read_record(struct spool_job *job, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	uint64_t next = 0;

	if (file_read_fd(job->record_fd, RECORD_MAX, &text, err) != MR_OK)
		return err->code;
	size_t tail = sizeof "Next: " - 1 + COUNTER_DIGITS + 1;
	struct mr_str end = buf_str(&text);

	if (end.len < tail)
		return no_record(job, "is cut off", err);
	job->counter_at = (off_t)(end.len - COUNTER_DIGITS - 1);
	end = (struct mr_str){ end.ptr + end.len - tail, tail };
	if (!str_starts(end, "Next: ") || !str_ends(end, "\n") ||
	    !str_to_u64((struct mr_str){ end.ptr + 6, COUNTER_DIGITS }, &next))
		return no_record(job, "is cut off", err);
	if (record_parse(buf_str(&text), &job->lines, err) != MR_OK)
		return err->code;
	const char *id = record_get(&job->lines, "Id"), *boot = record_get(&job->lines, "Boot");
	const char *make = record_get(&job->lines, "Make-Mailboxes");

	if (!id || strcmp(id, job->id) != 0)
		return no_record(job, "has another id inside", err);
	if (collect_recipients(job, err) != MR_OK)
		return err->code;
	job->make_mailboxes = make && ascii_caseeq(make, "yes");
	job->search = true;
	/* Links and counter are in one page cache until the machine stops; after that the counter
	 * may have reached the disk and the links not. */
	if (boot && boot[0] && strcmp(boot, boot_id()) == 0 && next <= job->to.n)
		job->next = (size_t)next;
	return MR_OK;
}

/* ---- Locking one ---- */

static void
nap(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL);
}

static enum mr_rc
wait_for_lock(int fd, const char *id, int64_t wait_ms, struct mr_error *err)
{
	int64_t end = clock_boot_ms() + wait_ms;

	while (sys_flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return mr_fail_errno(err, "cannot lock the record of message '%s'", id);
		if (clock_boot_ms() >= end)
			return mr_fail(err, MR_BUSY, "message '%s' is still being delivered", id);
		nap(LOCK_POLL_MS);
	}
	return MR_OK;
}

enum mr_rc
spool_lock(struct spool_job *job, const char *id, int64_t wait_ms, struct mr_error *err)
{
	struct stat held, named;

	spool_set_id(job, id);
	job->record_fd = sys_open(job->spool_fd, id, O_RDWR, 0);
	if (job->record_fd < 0) {
		if (errno == ENOENT)
			return mr_fail(err, MR_NOTFOUND, "no delivery of '%s' is under way", id);
		return mr_fail_errno(err, "cannot open 'spool/%s'", id);
	}
	if (wait_for_lock(job->record_fd, id, wait_ms, err) != MR_OK)
		return err->code;
	/* Whoever had the lock before may have finished: then we hold a file without a name. */
	if (sys_stat_fd(job->record_fd, &held) < 0)
		return mr_fail_errno(err, "cannot look at 'spool/%s'", id);
	if (sys_stat(job->spool_fd, id, &named) < 0 || held.st_ino != named.st_ino ||
	    held.st_dev != named.st_dev)
		return mr_fail(err, MR_NOTFOUND, "no delivery of '%s' is under way", id);
	if (!S_ISREG(held.st_mode))
		return no_record(job, "is not a file", err);
	if (read_record(job, err) != MR_OK)
		return err->code;
	job->message_fd = sys_open(job->spool_fd, job->message, O_RDONLY, 0);
	if (job->message_fd < 0 && errno == ENOENT)
		return no_record(job, "has lost its message", err);
	return job->message_fd < 0 ? mr_fail_errno(err, "cannot open 'spool/%s'", job->message) : MR_OK;
}

/* ---- Rolling forward ---- */

static bool
was_purged(const struct spool_job *job)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof path, "records/purged/_/%s", job->id);
	return sys_stat(job->md->root_fd, path, &st) == 0;
}

enum mr_rc
spool_roll_forward(struct spool_job *job, bool *ret_lost, struct mr_error *err)
{
	const char *sender = record_get(&job->lines, "From"), *key = record_get(&job->lines, "Key");
	mr_auto(sys_close_fd) int sent_fd = -1;
	char sent_name[NAME_LEN + 8];

	*ret_lost = false;
	if (was_purged(job))
		return spool_remove(job, err);
	if (key) {
		enum mr_rc rc = key_take(job, sender ? sender : "", key, err);

		/* It died before it had the key, so before the first link; the key went to a retry. */
		if (rc == MR_EXISTS) {
			*ret_lost = true;
			return spool_remove(job, err);
		}
		if (rc != MR_OK)
			return rc;
	}
	if (spool_give_all(job, err) != MR_OK)
		return err->code;
	if (deliver_sent_place(job->md, sender, job->id, sent_name, &sent_fd))
		(void)sys_link(job->spool_fd, job->message, sent_fd, sent_name);
	return spool_remove(job, err);
}
