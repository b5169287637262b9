/* SPDX-License-Identifier: MIT */
/*
 * recover.c - completes or undoes what dead commands left behind; every command calls it.
 *
 * Unfinished sends in spool/: their record is read, locked and rolled forward (fanout.c explains the states of a send).
 * Held mail of dead holders, expired leases and lives that were taken over is put back. Any process may do both at any
 * time; claim.c explains why that takes nothing from a living holder. Every command calls it, so with nothing left
 * behind it costs only a few system calls.
 */
#include "base/findings.h"
#include "base/process.h"
#include "rooms/maildir/maildir.h"
#include <sys/file.h>

#define RECORD_MAX ((size_t)64 << 20)
#define RETURN_ROUNDS 10
#define TOKENS_MAX 8 /* if there are more, a sweep does not search for dead ones; doctor does */

/* ---- Locking and reading a record ---- */

static enum mr_rc
no_record(struct spool_job *job, const char *what, struct mr_error *err)
{
	return mr_fail(err, MR_CORRUPT, "'spool/%s' %s\nlook at it, and at: mailroom doctor", job->id, what);
}

static enum mr_rc
read_record(struct spool_job *job, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	uint64_t next = 0;

	TRY(file_read_fd(job->record_fd, RECORD_MAX, &text, err));
	size_t tail = sizeof "Next: " - 1 + SPOOL_COUNTER_DIGITS + 1;
	struct mr_str end = buf_str(&text);

	if (end.len < tail)
		return no_record(job, "is cut off", err);
	job->counter_at = (off_t)(end.len - SPOOL_COUNTER_DIGITS - 1);
	end = (struct mr_str){ end.ptr + end.len - tail, tail };
	if (!str_starts(end, "Next: ") || !str_ends(end, "\n") ||
	    !str_to_u64((struct mr_str){ end.ptr + 6, SPOOL_COUNTER_DIGITS }, &next))
		return no_record(job, "is cut off", err);
	TRY(record_parse(buf_str(&text), &job->lines, err));
	const char *id = record_get(&job->lines, "Id"), *boot = record_get(&job->lines, "Boot");
	const char *make = record_get(&job->lines, "Make-Mailboxes");
	const char *removals = record_get(&job->lines, "Removals"); /* the value before the sender's first link */

	if (!id || strcmp(id, job->id) != 0)
		return no_record(job, "has another id inside", err);
	/* The names stay in the record's memory; only the array is allocated. */
	job->to.v = calloc(job->lines.n, sizeof *job->to.v);
	TRY(mr_got(job->to.v, err));
	for (size_t i = 0; i < job->lines.n; i++)
		if (ascii_caseeq(job->lines.lines[i].name, "To"))
			job->to.v[job->to.n++] = (char *)(uintptr_t)job->lines.lines[i].value;
	if (job->to.n == 0)
		return no_record(job, "names no recipient", err);
	const char *name = record_get(&job->lines, "Name"); /* older versions wrote none: then it is a normal one */
	struct file_name parts;

	if (name && name_parse(str_of(name), &parts) && parts.ours && strcmp(parts.id, job->id) == 0)
		name_new(job->id, (enum mr_priority)parts.priority, parts.look, job->name);
	job->make_mailboxes = make && ascii_caseeq(make, "yes");
	if (removals && !str_to_u64(str_of(removals), &job->removals))
		job->removals = 0;
	job->search = true;
	/* Links and counter are in one page cache until the machine stops; after a power cut the counter may be on the
	 * disk without the links. */
	if (boot && boot[0] && strcmp(boot, boot_id()) == 0 && next <= job->to.n)
		job->next = (size_t)next;
	return MR_OK;
}

enum mr_rc
spool_lock(struct spool_job *job, struct mr_room *room, const char *id, int64_t wait_ms, struct mr_error *err)
{
	struct stat held;

	spool_init(job, room);
	spool_set_id(job, id);
	TRY(dir_open(job->md->root_fd, "spool", &job->spool_fd, err));
	job->record_fd = sys_open(job->spool_fd, id, O_RDWR, 0);
	if (job->record_fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "no delivery of '%s' is under way", id);
	if (job->record_fd < 0)
		return mr_fail_errno(err, "cannot open 'spool/%s'", id);
	if ((wait_ms > 0 ? lock_within(job->record_fd, LOCK_EX, wait_ms)
			 : sys_flock(job->record_fd, LOCK_EX | LOCK_NB)) < 0)
		return errno == EWOULDBLOCK ? mr_fail(err, MR_BUSY, "message '%s' is still being delivered", id)
					    : mr_fail_errno(err, "cannot lock the record of message '%s'", id);
	/* The previous holder of the lock may have finished; then our file has no name any more. */
	if (sys_stat_fd(job->record_fd, &held) < 0)
		return mr_fail_errno(err, "cannot look at 'spool/%s'", id);
	if (!file_is_same(job->record_fd, NULL, job->spool_fd, id))
		return mr_fail(err, MR_NOTFOUND, "no delivery of '%s' is under way", id);
	if (!S_ISREG(held.st_mode))
		return no_record(job, "is not a file", err);
	TRY(read_record(job, err));
	job->message_fd = sys_open(job->spool_fd, job->message, O_RDONLY, 0);
	if (job->message_fd < 0 && errno == ENOENT)
		return no_record(job, "has lost its message", err);
	return job->message_fd < 0 ? mr_fail_errno(err, "cannot open 'spool/%s'", job->message) : MR_OK;
}

/* ---- Rolling forward ---- */

enum mr_rc
spool_roll_forward(struct spool_job *job, bool *ret_lost, struct mr_error *err)
{
	const char *sender = record_get(&job->lines, "From"), *key = record_get(&job->lines, "Key");
	struct stat st;

	*ret_lost = false;
	if (sys_stat(job->md->root_fd, path_of("records/purged/_/", job->id, NULL).z, &st) == 0)
		return spool_remove(job, err);
	if (key) {
		enum mr_rc rc = key_take(job, sender ? sender : "", key, err);

		/* It died before it had the key, so before its first link; a retry has the key. */
		if (rc == MR_EXISTS) {
			*ret_lost = true;
			return spool_remove(job, err);
		}
		if (rc != MR_OK)
			return rc;
	}
	TRY(spool_give_all(job, err));
	spool_keep_sent(job, sender);
	return spool_remove(job, err);
}

/* A record whose message is gone. The two are made and removed together, and a power cut may keep one change and lose
 * the other. Before the first link nobody has the message and its sender got no answer; after the last sync everybody
 * has it: in both cases only the record has to be removed. Any other state was not made by us. */
static bool
is_only_litter(struct spool_job *job)
{
	size_t agents = 0, have = 0;

	for (size_t i = 0; i < job->to.n; i++) {
		const char *name;
		bool has = false;

		if (target_kind(job->to.v[i], &name) != TARGET_AGENT)
			continue;
		enum mr_rc rc = spool_agent_has(job, name, &has, IGNORED);

		if (rc != MR_OK && rc != MR_NOTFOUND)
			return false;
		agents += rc == MR_OK;
		have += has;
	}
	return have == 0 || have == agents;
}

static enum mr_rc
recover_one(struct mr_room *room, const char *id, struct mr_error *err)
{
	mr_auto(spool_done) struct spool_job job;
	bool lost;

	enum mr_rc rc = spool_lock(&job, room, id, 0, err);

	if (rc == MR_CORRUPT && job.to.n > 0 && job.message_fd < 0 && is_only_litter(&job))
		return spool_remove(&job, err);
	/* Busy: its sender lives. Gone: it finished just now. Corrupt: kept for doctor and a person. */
	if (rc == MR_BUSY || rc == MR_NOTFOUND || rc == MR_CORRUPT)
		return MR_OK;
	if (rc == MR_OK)
		rc = spool_roll_forward(&job, &lost, err);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot complete the delivery of '%s'", id);
}

/* A message gets its name just before its record, and its sender has it open all the time. Its age alone would not tell
 * an orphan from a message that is about to get its record, because the clock may have been set forward. */
static void
remove_orphan(int spool_fd, const char *name)
{
	struct stat st;
	struct mr_str whole = str_of(name);
	char record[NAME_LEN];

	if (sys_stat(spool_fd, name, &st) < 0 || !S_ISREG(st.st_mode) ||
	    (int64_t)st.st_mtime * 1000 > clock_now_ms() - FINDINGS_STRAY_MS || findings_in_use(spool_fd, name))
		return;
	if (str_ends(whole, ".mr")) {
		(void)snprintf(record, sizeof record, "%.*s", (int)(whole.len - 3), name);
		if (sys_stat(spool_fd, record, &st) == 0 || errno != ENOENT)
			return;
	}
	(void)sys_unlink(spool_fd, name);
}

/* ---- Held mail ---- */

/* Puts it back where it was. If another process was faster, that is fine and not counted. */
static enum mr_rc
give_back(struct mailbox *box, int held_fd, const char *name, struct file_name *n, size_t *count, struct mr_error *err)
{
	enum mr_rc rc = mail_end(box, held_fd, name, n, SETTLE_BACK, err);

	*count += rc == MR_OK;
	return rc == MR_NOTFOUND ? MR_OK : rc;
}

/* ---- A life that was taken over ---- */

/* Puts back all mail in the folder of a fenced life, and removes the folder. */
static enum mr_rc
empty_gone(struct mailbox *box, int held_fd, const char *gone, size_t *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	size_t first = *ret, before = SIZE_MAX;

	enum mr_rc rc = dir_open(held_fd, gone, &fd, err);
	if (rc == MR_NOTFOUND || rc == MR_REFUSED || /* emptied by another process; a planted link is left alone */
	    (rc != MR_OK && shared_skip(box->md, err, "agents/%s/held/%s", box->agent, gone)))
		return MR_OK;
	TRY(rc);
	/* Repeats until nothing arrived late. */
	for (int round = 0; round < RETURN_ROUNDS && *ret != before; round++) {
		mr_auto(mr_names_done) struct mr_names names = { 0 };

		before = *ret;
		TRY(dir_names(fd, &names, err));
		for (size_t i = 0; i < names.n; i++) {
			struct file_name n;
			bool held = name_parse_held(str_of(names.v[i]), &n);

			/* A file that a person put there has no token: it goes back under its own name. */
			if (!held && !name_parse(str_of(names.v[i]), &n))
				continue;
			if (!held)
				n.hold_attempt = n.attempt;
			TRY(give_back(box, fd, names.v[i], &n, ret, err));
		}
	}
	/* Without a journal the removal of the folder may reach the disk before the mail's new names do. */
	if (*ret > first)
		TRY(commit_flush(box->md, err));
	(void)sys_rmdir(held_fd, gone); /* not empty: it holds something foreign, and stays */
	return MR_OK;
}

enum mr_rc
life_fence(struct mailbox *box, unsigned before, size_t *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	int held_fd;

	TRY(mailbox_folder(box, BOX_HELD, &held_fd, err));
	TRY(dir_names(held_fd, &names, err));
	/* First renames all of them away, then empties them. */
	for (size_t i = 0; i < names.n; i++) {
		char random[7], gone[64];
		unsigned life;

		if (!life_number(names.v[i], &life) || life >= before)
			continue;
		random_hex(random, 6);
		(void)snprintf(gone, sizeof gone, GONE_PREFIX "%.20s.%s", names.v[i], random);
		if (sys_rename(held_fd, names.v[i], held_fd, gone) == 0) {
			if (!names_add(&names, str_of(gone)))
				return mr_nomem(err);
		} else if (errno != ENOENT) { /* else another fence was faster */
			return mr_fail_errno(err, "cannot fence 'held/%s'", names.v[i]);
		}
	}
	for (size_t i = 0; i < names.n; i++)
		if (renew_is_leftover(names.v[i]))
			TRY(renew_finish(box, held_fd, names.v[i], err));
		else if (str_starts(str_of(names.v[i]), GONE_PREFIX))
			TRY(empty_gone(box, held_fd, names.v[i], ret, err));
	return MR_OK;
}

/* ---- Holders that died, leases that ran out ---- */

static enum mr_rc
sweep_life(struct mailbox *box, unsigned life, size_t *count, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	char judged[MR_TOKEN_LEN + 1] = ""; /* the last token: a dead process may have held hundreds of messages */
	bool over = false;
	unsigned newest = 0;
	int fd = -1;

	enum mr_rc rc = mailbox_held(box, life, false, &fd, err);
	if (rc == MR_OK)
		rc = dir_names(fd, &names, err);
	TRY(shared_pass(box->md, rc, err, "agents/%s/held/%u", box->agent, life));
	if (names.n == 0)
		return MR_OK;
	TRY(life_newest(box, life, &newest, err));
	if (life < newest) /* a takeover was cut off before it fenced this life */
		return life_fence(box, newest, count, err);
	for (size_t i = 0; i < names.n; i++) {
		struct file_name n;

		if (!name_parse_held(str_of(names.v[i]), &n))
			continue;
		if (strcmp(judged, n.token) != 0) {
			over = token_is_over(box->md, &n);
			memcpy(judged, n.token, sizeof(judged));
		}
		if (!over)
			continue;
		TRY(give_back(box, fd, names.v[i], &n, count, err));
		if (n.deadline_s == 0)
			token_drop(box->md,
			    n.token); /* its lock is free: the process is dead, whether or not the file exists */
	}
	return MR_OK;
}

enum mr_rc
sweep_mail(struct maildir *md, const char *agent, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	size_t count = 0;

	enum mr_rc rc = mailbox_open_any(&box, md, agent, err);
	if (rc == MR_OK && mailbox_holds_nothing(&box))
		return MR_OK;
	if (rc == MR_OK)
		rc = dir_names_in(box.fd, mailbox_folder_name(BOX_HELD), &names, err);
	if (rc == MR_NOTFOUND && box.fd >= 0) /* a copying tool dropped the empty folder */
		rc = MR_OK;
	for (size_t i = 0; i < names.n && rc == MR_OK; i++) {
		unsigned life = 0;

		if (str_starts(str_of(names.v[i]), GONE_PREFIX)) /* a takeover was cut off after it */
			rc = life_fence(&box, 0, &count, err);
		else if (life_number(names.v[i], &life))
			rc = sweep_life(&box, life, &count, err);
	}
	if (rc == MR_OK && count > 0)
		rc = commit_flush(md, err);
	return rc == MR_OK ? rc : mr_wrap(err, "give back held mail of '%s'", agent);
}

/* A command that was killed before it held anything, or after it settled everything, leaves its file in holds/. Only
 * files of this agent's dead processes are removed: mail that other agents' commands held has not been put back yet. */
static enum mr_rc
sweep_agent(struct maildir *md, const char *agent, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names tokens = { 0 }, dead = { 0 };
	mr_auto(sys_close_fd) int holds_fd = -1;

	if (dir_names_in(md->root_fd, "holds", &tokens, IGNORED) != MR_OK || tokens.n == 0 || tokens.n > TOKENS_MAX ||
	    dir_open(md->root_fd, "holds", &holds_fd, IGNORED) != MR_OK)
		return sweep_mail(md, agent, err);
	/* If a process died before the sweep, the sweep finds everything that it held. */
	for (size_t i = 0; i < tokens.n; i++) {
		mr_auto(sys_close_fd) int fd = token_of_dead(holds_fd, tokens.v[i], agent);

		if (fd >= 0)
			(void)names_add(&dead, str_of(tokens.v[i]));
	}
	TRY(sweep_mail(md, agent, err));
	for (size_t i = 0; i < dead.n; i++) {
		mr_auto(sys_close_fd) int fd = token_of_dead(holds_fd, dead.v[i], agent);

		if (fd >= 0)
			(void)sys_unlink(holds_fd, dead.v[i]);
	}
	return MR_OK;
}

/* ---- All that was left behind ---- */

enum mr_rc
maildir_sweep(struct mr_room *room, const char *agent, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	struct maildir *md = maildir_of(room);
	enum mr_rc rc = MR_OK;

	if (agent)
		return sweep_agent(md, agent, err);
	TRY(mr_unless(dir_open_names(md->root_fd, "spool", &fd, &names, err), MR_NOTFOUND, err));
	/* One that cannot be completed must not keep the others waiting; the first error is told. */
	for (size_t i = 0; i < names.n; i++) {
		struct mr_error one = { 0 };

		if (id_valid(str_of(names.v[i])) && recover_one(room, names.v[i], &one) != MR_OK && rc == MR_OK) {
			*err = one;
			rc = one.code;
		}
	}
	for (size_t i = 0; i < names.n; i++)
		if (str_ends(str_of(names.v[i]), ".mr") || str_ends(str_of(names.v[i]), ".tmp"))
			remove_orphan(fd, names.v[i]);
	return rc;
}
