/* SPDX-License-Identifier: MIT */
/*
 * token.c - holds/<token>: who holds mail, and whether it still does. hold.c says why it is safe.
 *
 * A process hold is one file a room handle, locked as long as the handle is open. The kernel lets go of the
 * lock when the process dies, in whatever way and in whatever pid namespace. It need not survive a power
 * cut: the lock does not either. A lease is one file a hold; if a power cut takes it, the deadline in
 * the held name decides.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "rooms/maildir/holding.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define RECORD_LIMIT ((size_t)16 << 10)
#define TOKEN_TRIES 5

static enum mr_rc
open_holds(struct maildir *md, int *ret_fd, struct mr_error *err)
{
	enum mr_rc rc = dir_open(md->root_fd, "holds", ret_fd, err);
	if (rc == MR_NOTFOUND)
		rc = dir_make(md->root_fd, "holds", md->dir_mode, md->sync, ret_fd, err);
	return rc;
}

/* ---- The record ---- */

static enum mr_rc
add_number(struct buf *out, const char *name, int64_t value, struct mr_error *err)
{
	char number[24];

	(void)snprintf(number, sizeof(number), "%lld", (long long)value);
	return header_add(out, name, str_of(number), err);
}

/* Which clock the deadline is of. Without a boot id the host and the clock's own progress must do; in a time namespace
 * that cannot be known nothing says which clock it is, and then the wall clock decides. */
static enum mr_rc
add_boot(struct buf *out, int64_t lease_ms, struct mr_error *err)
{
	int64_t now_ms = 0;

	enum mr_rc rc = MR_OK;
	if (!boot_clock_ms(&now_ms)) {
		now_ms = clock_boot_ms();
	} else if (boot_id()[0] != '\0') {
		rc = header_add(out, "Boot", str_of(boot_id()), err);
	} else {
		rc = header_add(out, "Host", str_of(host_name()), err);
		if (rc == MR_OK)
			rc = add_number(out, "Boot-Began", now_ms, err);
	}
	return rc != MR_OK ? rc : add_number(out, "Boot-Deadline", now_ms + lease_ms, err);
}

struct holder {
	const char *agent, *session; /* session: or NULL */
	const char *queue;           /* that the work came from; "": the agent's own mail */
	const struct mr_process *process;
	unsigned life;
	int64_t since_ms; /* 0: not told */
};

static enum mr_rc
add_word(struct buf *out, const char *name, const char *value, struct mr_error *err)
{
	return value == NULL || value[0] == '\0' ? MR_OK : header_add(out, name, str_of(value), err);
}

static enum mr_rc
write_record(struct buf *out, const struct holder *h, struct mr_error *err)
{
	mr_auto(buf_done) struct buf who = BUF_INIT;

	TRY(header_add(out, "Agent", str_of(h->agent), err));
	TRY(add_number(out, "Life", h->life, err));
	TRY(add_word(out, "Queue", h->queue, err));
	TRY(add_word(out, "Session", h->session, err));
	if (h->since_ms > 0 && add_number(out, "Since", h->since_ms, err) != MR_OK)
		return err->code;
	if (h->process->pid != 0) {
		process_format(h->process, &who);
		TRY(header_add(out, "Process", buf_str(&who), err));
	}
	return buf_ok(out) && buf_ok(&who) ? MR_OK : mr_nomem(err);
}

static enum mr_rc
read_record(int holds_fd, const char *token, struct record *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	enum mr_rc rc = file_read(holds_fd, token, RECORD_LIMIT, &text, err);
	return rc == MR_OK ? record_parse(buf_str(&text), ret, err) : rc;
}

/* ---- Process holds ---- */

static bool
is_visible_as(int fd, int holds_fd, const char *token)
{
	struct stat ours, there;

	return sys_stat_fd(fd, &ours) == 0 && sys_stat(holds_fd, token, &there) == 0 && ours.st_ino == there.st_ino &&
	       ours.st_dev == there.st_dev;
}

/* Locked first, then visible. */
static enum mr_rc
publish_locked(
    struct maildir *md, int holds_fd, const char *token, struct mr_str record, int *ret_fd, struct mr_error *err)
{
	mr_auto(stage_done) struct staged s = STAGED_INIT;

	TRY(stage_open(&s, holds_fd, holds_fd, md->file_mode, err));
	TRY(stage_write(&s, record, err));
	if (sys_flock(s.fd, LOCK_EX) < 0)
		return mr_fail_errno(err, "cannot lock a hold");
	enum mr_rc rc = stage_link(&s, holds_fd, token, err);
	if (rc != MR_OK)
		return rc;
	/* Where the unnamed file could not be named it was copied, and the copy is not locked yet. Nothing is
	 * held under the token so far, but who tidies holds/ may just have removed it. */
	if (sys_flock(s.fd, LOCK_EX) < 0)
		return mr_fail_errno(err, "cannot lock a hold");
	if (!is_visible_as(s.fd, holds_fd, token))
		return mr_fail(err, MR_EXISTS, "hold '%s' was removed", token);
	*ret_fd = fcntl(s.fd, F_DUPFD_CLOEXEC, 0); /* the same open file: the lock stays when s.fd is closed */
	if (*ret_fd >= 0)
		return MR_OK;
	rc = mr_fail_errno(err, "cannot keep a hold");
	(void)sys_unlink(holds_fd, token);
	return rc;
}

enum mr_rc
token_for_process(struct maildir *md, const char *agent, const struct hold_terms *terms, char ret[MR_TOKEN_LEN + 1],
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(buf_done) struct buf record = BUF_INIT;
	struct mr_process self = { 0 };
	char token[MR_TOKEN_LEN + 1];

	if (md->process_token[0] == '\0') {
		(void)process_describe((int64_t)getpid(), &self);
		enum mr_rc rc = open_holds(md, &holds_fd, err);
		if (rc == MR_OK)
			rc = write_record(&record,
			    &(struct holder){
				.agent = agent, .session = terms->session, .life = terms->life, .process = &self },
			    err);
		if (rc != MR_OK)
			return rc;
		rc = MR_EXISTS;
		for (int tries = 0; tries < TOKEN_TRIES && rc == MR_EXISTS; tries++) {
			token_new(token);
			rc = publish_locked(md, holds_fd, token, buf_str(&record), &md->process_hold_fd, err);
		}
		if (rc != MR_OK)
			return rc;
		memcpy(md->process_token, token, sizeof(token));
	}
	memcpy(ret, md->process_token, sizeof(md->process_token));
	return MR_OK;
}

void
hold_close(struct maildir *md)
{
	if (md->process_token[0] == '\0')
		return;
	token_drop(md, md->process_token);
	sys_close_fd(&md->process_hold_fd);
	md->process_hold_fd = -1;
	md->process_token[0] = '\0';
}

/* ---- Leases ---- */

enum mr_rc
token_for_lease(struct maildir *md, const char *agent, const char *queue, const struct hold_terms *terms,
    int64_t lease_ms, char ret[MR_TOKEN_LEN + 1], struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(buf_done) struct buf record = BUF_INIT;
	struct holder holder = { .agent = agent,
		.session = terms->session,
		.queue = queue,
		.process = &terms->process,
		.life = terms->life,
		.since_ms = clock_now_ms() };
	char token[MR_TOKEN_LEN + 1];

	enum mr_rc rc = open_holds(md, &holds_fd, err);
	if (rc == MR_OK)
		rc = write_record(&record, &holder, err);
	if (rc == MR_OK)
		rc = add_boot(&record, lease_ms, err);
	if (rc != MR_OK)
		return rc;
	rc = MR_EXISTS;
	for (int tries = 0; tries < TOKEN_TRIES && rc == MR_EXISTS; tries++) {
		token_new(token);
		rc = file_publish(holds_fd, holds_fd, token, buf_str(&record), md->file_mode, PUBLISH_NOSYNC, err);
	}
	if (rc == MR_OK)
		memcpy(ret, token, sizeof(token));
	return rc;
}

enum mr_rc
token_extend(struct maildir *md, const struct hold *hold, int64_t lease_ms, struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record old = { 0 };
	struct mr_process process = { 0 };
	struct mr_error ignored = { 0 };

	enum mr_rc rc = open_holds(md, &holds_fd, err);
	if (rc != MR_OK)
		return rc;
	(void)read_record(holds_fd, hold->token, &old, &ignored); /* lost in a power cut: what is left is in `hold` */
	const char *who = record_get(&old, "Process");
	if (who != NULL && !process_parse(str_of(who), &process))
		process = (struct mr_process){ 0 };
	rc = write_record(&text,
	    &(struct holder){ .agent = hold->agent,
		.session = record_get(&old, "Session"),
		.queue = hold->queue,
		.process = &process,
		.life = hold->life,
		.since_ms = record_int(&old, "Since", hold->since_ms) },
	    err);
	if (rc == MR_OK)
		rc = add_boot(&text, lease_ms, err);
	if (rc == MR_OK)
		rc = file_replace(holds_fd, hold->token, buf_str(&text), md->file_mode, err);
	return rc;
}

/* Without the lines of a release that came to nothing: what is said now counts. */
static enum mr_rc
keep_lines(struct mr_str text, struct buf *out, struct mr_error *err)
{
	static const char *const said[] = { "Reason:", "Only-For:", "Only-Until:" };
	bool keep = true;

	while (text.len > 0) {
		const char *end = memchr(text.ptr, '\n', text.len);
		size_t len = end ? (size_t)(end - text.ptr) + 1 : text.len;

		keep |= text.ptr[0] != ' ' && text.ptr[0] != '\t'; /* else it belongs to the line before */
		for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
			keep &= !str_starts(text, said[i]);
		if (keep)
			buf_add(out, (struct mr_str){ text.ptr, len });
		text = (struct mr_str){ text.ptr + len, text.len - len };
	}
	return buf_ok(out) ? MR_OK : mr_nomem(err);
}

enum mr_rc
token_note(struct maildir *md, const struct hold *hold, struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(buf_done) struct buf old = BUF_INIT, text = BUF_INIT;
	struct mr_process unknown = { 0 };

	enum mr_rc rc = open_holds(md, &holds_fd, err);
	if (rc == MR_OK)
		rc = file_read(holds_fd, hold->token, RECORD_LIMIT, &old, err);
	if (rc == MR_OK)
		rc = keep_lines(buf_str(&old), &text, err);
	else if (rc == MR_NOTFOUND) /* lost in a power cut */
		rc = write_record(&text,
		    &(struct holder){ .agent = hold->agent,
			.queue = hold->queue,
			.process = &unknown,
			.life = hold->life,
			.since_ms = hold->since_ms },
		    err);
	if (rc == MR_OK)
		rc = add_word(&text, "Reason", hold->reason, err);
	if (rc == MR_OK)
		rc = add_word(&text, "Only-For", hold->only_for, err);
	if (rc == MR_OK && hold->only_for != NULL)
		rc = add_number(&text, "Only-Until", hold->only_until_ms, err);
	return rc == MR_OK ? file_replace(holds_fd, hold->token, buf_str(&text), md->file_mode, err) : rc;
}

enum mr_rc
token_read(struct maildir *md, const char *token, struct hold *hold, struct mr_error *err)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	mr_auto(record_done) struct record r = { 0 };

	enum mr_rc rc = dir_open(md->root_fd, "holds", &holds_fd, err);
	if (rc == MR_OK)
		rc = read_record(holds_fd, token, &r, err);
	if (rc != MR_OK)
		return rc;
	const char *agent = record_get(&r, "Agent"), *queue = record_get(&r, "Queue");
	int64_t life = record_int(&r, "Life", 0);
	(void)snprintf(hold->agent, sizeof(hold->agent), "%s", agent != NULL ? agent : "");
	(void)snprintf(hold->queue, sizeof(hold->queue), "%s", queue != NULL ? queue : "");
	hold->life = life > 0 && life <= UINT32_MAX ? (unsigned)life : 0;
	hold->since_ms = record_int(&r, "Since", 0);
	hold->kind = record_get(&r, "Boot-Deadline") != NULL ? HOLD_LEASE : HOLD_PROCESS;
	return MR_OK;
}

/* ---- Is it over? ---- */

/* Was the record made in this boot? Without boot ids: on this host, and its clock has not begun anew since. A reboot
 * can go unnoticed then only if this boot is older than that one was, and the lease merely ends later. */
static bool
is_of_this_boot(const struct record *r, int64_t boot_now_ms)
{
	const char *boot = record_get(r, "Boot"), *host = record_get(r, "Host");

	if (boot != NULL)
		return boot[0] != '\0' && strcmp(boot, boot_id()) == 0;
	return host != NULL && host[0] != '\0' && strcmp(host, host_name()) == 0 &&
	       boot_now_ms >= record_int(r, "Boot-Began", INT64_MAX);
}

bool
lease_time_is_up(const struct lease_time *t)
{
	/* Within one boot nobody can set the clock that counts. */
	return t->shares_clock ? t->boot_now_ms >= t->boot_deadline_ms : t->now_ms >= t->deadline_ms + CLOCK_GRACE_MS;
}

/* A process that cannot be judged from here keeps nothing beyond its time: its own commands and hooks extend it. Nor
 * does a server, which is still there when the session is not. */
static bool
lease_is_over(int holds_fd, const struct file_name *held)
{
	mr_auto(record_done) struct record r = { 0 };
	struct mr_error ignored = { 0 };
	struct mr_process process;
	struct lease_time t = { .now_ms = clock_now_ms(), .deadline_ms = held->deadline_s * 1000 };

	if (read_record(holds_fd, held->token, &r, &ignored) != MR_OK)
		return lease_time_is_up(&t);
	t.boot_deadline_ms = record_int(&r, "Boot-Deadline", 0);
	t.shares_clock = t.boot_deadline_ms > 0 && boot_clock_ms(&t.boot_now_ms) && is_of_this_boot(&r, t.boot_now_ms);
	if (!lease_time_is_up(&t))
		return false;
	const char *who = record_get(&r, "Process");
	return who == NULL || !process_parse(str_of(who), &process) || process_state(&process) != PROCESS_ALIVE ||
	       process_codex(&process) == CODEX_SHARED;
}

bool
token_is_over(struct maildir *md, const struct file_name *held)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	struct mr_error ignored = { 0 };

	if (md->process_token[0] != '\0' && strcmp(held->token, md->process_token) == 0)
		return false;
	enum mr_rc rc = dir_open(md->root_fd, "holds", &holds_fd, &ignored);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return false; /* cannot be judged now (no descriptors left): mail stays where it is */
	if (held->deadline_s == 0)
		return rc == MR_NOTFOUND || !lock_is_held(holds_fd, held->token);
	return lease_is_over(holds_fd, held);
}

/* Its maker had the lock before the file had this name; where that is not possible, it looks for the name once it has
 * the lock. So a free lock is a dead process, and with or without the file all mail under the token goes back. */
int
token_of_dead(int holds_fd, const char *token, const char *agent)
{
	mr_auto(sys_close_fd) int fd = sys_open(holds_fd, token, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	mr_auto(record_done) struct record r = { 0 };
	struct mr_error ignored = { 0 };

	if (fd < 0 || sys_flock(fd, LOCK_EX | LOCK_NB) < 0 || !is_visible_as(fd, holds_fd, token) ||
	    read_record(holds_fd, token, &r, &ignored) != MR_OK || record_get(&r, "Boot-Deadline") != NULL)
		return -1;
	const char *whose = record_get(&r, "Agent");
	if (whose == NULL || (agent != NULL && strcmp(whose, agent) != 0))
		return -1;
	int dead = fd;
	fd = -1;
	return dead;
}

void
token_drop(struct maildir *md, const char *token)
{
	mr_auto(sys_close_fd) int holds_fd = -1;
	struct mr_error ignored = { 0 };

	if (dir_open(md->root_fd, "holds", &holds_fd, &ignored) == MR_OK)
		(void)sys_unlink(holds_fd, token);
}
