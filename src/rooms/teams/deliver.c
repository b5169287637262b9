/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - one more entry in an inbox. A file that is laid out as the original does it is not parsed: the kernel
 * copies all of it but the closing bracket into the next version, behind which the entry is written. So a send costs
 * what a copy in memory and a sync cost, not what reading and writing JSON cost.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/text.h"
#include "message/foreign.h"
#include "rooms/teams/teams.h"
#include <fcntl.h>

#define HEAD "[\n  {"
#define TAIL "\n  }\n]"
#define BRACKET 2              /* the end of TAIL that the new entry takes the place of */
#define TIE_WINDOW (128 << 10) /* bytes at the end in which the same moment is looked for */
#define TRIES 4

struct posting { /* one inbox */
	struct mr_room *room;
	const struct delivery *what;
	const char *agent;
	char file[TEAM_NAME_LEN];
	struct letter *letter;
	int dir_fd;
	struct team_lock lock;
};

static void
posting_done(struct posting *p)
{
	team_lock_done(&p->lock);
	sys_close_fd(&p->dir_fd);
}

/* ---- The fast way ---- */

static bool
bytes_are(int fd, off_t at, const char *want, size_t n)
{
	char got[16];

	return sys_pread(fd, got, n, at) == (ssize_t)n && memcmp(got, want, n) == 0;
}

static bool
is_plain(int fd, off_t size)
{
	const size_t head = sizeof HEAD - 1, tail = sizeof TAIL - 1;

	return size >= (off_t)(head + tail) && bytes_are(fd, 0, HEAD, head) &&
	       bytes_are(fd, size - (off_t)tail, TAIL, tail);
}

/* Is there mail of the very same millisecond? Then only parsing tells whether it is the same mail. */
static enum mr_rc
maybe_tied(const struct posting *p, int fd, off_t size, bool *ret, struct mr_error *err)
{
	size_t n = size < TIE_WINDOW ? (size_t)size : TIE_WINDOW;
	mr_auto(free_ptr) char *window = malloc(n);
	char when[RFC3339_LEN + 1];

	if (!window)
		return mr_nomem(err);
	ssize_t got = sys_pread(fd, window, n, size - (off_t)n);

	if (got < 0)
		return mr_fail_errno(err, "cannot read '%s'", p->file);
	time_rfc3339(p->letter->date_ms, when);
	*ret = memmem(window, (size_t)got, when, strlen(when)) != NULL;
	return MR_OK;
}

static enum mr_rc
copy_and_add(const struct posting *p, int fd, off_t size, struct fresh *f, struct mr_error *err)
{
	mr_auto(buf_done) struct buf end = BUF_INIT;

	buf_adds(&end, ",\n");
	letter_add(p->letter, &end);
	buf_adds(&end, "\n]");
	if (!buf_ok(&end))
		return mr_nomem(err);
	if (sys_copy(fd, 0, f->fd, (size_t)size - BRACKET) < 0)
		return mr_fail_errno(err, "cannot copy '%s'", p->file);
	return fresh_write(f, buf_str(&end), err);
}

/* *ret_done stays false where the file has another form. */
static enum mr_rc
add_fast(const struct posting *p, struct fresh *f, bool *ret_done, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(p->dir_fd, p->file, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;
	bool tied = true;

	if (fd < 0 || sys_stat_fd(fd, &st) < 0 || !S_ISREG(st.st_mode) || (uintmax_t)st.st_size > INBOX_MAX ||
	    p->what->keep || !is_plain(fd, st.st_size))
		return MR_OK;
	TRY(maybe_tied(p, fd, st.st_size, &tied, err));
	if (tied)
		return MR_OK;
	TRY(fresh_open(f, p->dir_fd, p->file, st.st_mode & 0777, p->what->staged != NULL, err));
	TRY(copy_and_add(p, fd, st.st_size, f, err));
	*ret_done = true;
	return MR_OK;
}

/* ---- The careful way ---- */

#define SAME_MOMENT_MS 1000

/* Sender, time and text are what the original takes for the identity of a message: no two may share it. And what was
 * sent one after the other within a millisecond is read in that order. */
static enum mr_rc
settle_date(const struct posting *p, struct inbox *in, struct mr_error *err)
{
	int64_t last_ms = in->n > 0 ? in->v[in->n - 1].date_ms : 0, ahead_ms = last_ms - p->letter->date_ms;

	if (!p->what->keep && ahead_ms >= 0 && ahead_ms < SAME_MOMENT_MS)
		letter_date(p->letter, last_ms + 1);
	while (inbox_find(in, p->letter->id)) {
		if (p->what->keep)
			return mr_fail(err, MR_EXISTS, "'%s' has that message already", p->agent);
		letter_date(p->letter, p->letter->date_ms + 1);
	}
	return MR_OK;
}

static enum mr_rc
add_slowly(const struct posting *p, struct fresh *f, struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = inbox_new(p->agent);
	mr_auto(buf_done) struct buf text = BUF_INIT;
	bool changed = false;

	if (!in)
		return mr_nomem(err);
	TRY(store_read_locked(p->room, in, p->dir_fd, p->file, err));
	TRY(settle_date(p, in, err));
	TRY(edit_inbox(in, p->letter, &text, &changed, err));
	mode_t mode = in->state == INBOX_MISSING ? 0600 : in->st.st_mode & 0777;

	TRY(fresh_open(f, p->dir_fd, p->file, mode, p->what->staged != NULL, err));
	return fresh_write(f, buf_str(&text), err);
}

/* ---- Publishing ---- */

/* The temporary file is durable, name and all, before anybody relies on its being there. */
static enum mr_rc
tell_ticket(const struct posting *p, const struct fresh *f, bool *ret_told, struct mr_error *err)
{
	if (!p->what->staged)
		return MR_OK;
	file_void_clean(p->dir_fd);
	if (sys_fsync(p->dir_fd) < 0)
		return mr_fail_errno(err, "cannot make '%s' durable", f->name);
	*ret_told = true; /* also when it fails: it may have been written down */
	return p->what->staged(p->what->staged_ctx, f->name, err);
}

static enum mr_rc
check_size(const struct posting *p, const struct fresh *f, struct mr_error *err)
{
	struct stat st;

	if (sys_stat_fd(f->fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at '%s'", f->name);
	if ((uintmax_t)st.st_size <= INBOX_MAX)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "the inbox of '%s' is full: %zu MB\nits reader must empty it first", p->agent,
	    INBOX_MAX / 1000000);
}

static enum mr_rc
add_locked(struct posting *p, struct mr_error *err)
{
	mr_auto(fresh_done) struct fresh f = FRESH_INIT;
	bool done = false, told = false;
	enum mr_rc rc = add_fast(p, &f, &done, err);

	if (rc == MR_OK && !done)
		rc = add_slowly(p, &f, err);
	if (rc == MR_OK)
		rc = check_size(p, &f, err);
	if (rc == MR_OK)
		rc = fresh_sync(&f, err);
	if (rc == MR_OK)
		rc = tell_ticket(p, &f, &told, err);
	if (rc == MR_OK)
		rc = team_lock_keep(&p->lock, err);
	if (rc == MR_OK)
		rc = fresh_publish(&f, p->file, err);
	if (told) /* gone, it would say that it was published: settle_ticket removes what is left */
		f.name[0] = '\0';
	return rc;
}

/* The lock was taken from us while we wrote: is our entry there? An empty inbox was read and emptied by its owner.
 * MR_INDOUBT: it cannot be read, so nobody knows, and a second try could double it. */
static enum mr_rc
look_for_entry(const struct posting *p, bool *ret, struct mr_error *err)
{
	mr_auto(inbox_unref) struct inbox *in = NULL;
	struct mr_error why = { 0 };

	if (inbox_load(teams_of(p->room), p->agent, false, &in, &why) == MR_OK) {
		*ret = in->n == 0 || inbox_find(in, p->letter->id);
		return MR_OK;
	}
	(void)mr_fail(err, MR_INDOUBT, "the lock of the inbox of '%s' was lost, and it cannot be read back: %s",
	    p->agent, why.message);
	err->sys_errno = why.sys_errno;
	return mr_hint(err, "see whether the message is there before sending it again");
}

/* Who writes again at once keeps away for a while: a client of the original tries only 11 times in 0.7 s. */
static void
keep_away(struct teams *t, const struct posting *p)
{
	int64_t past_ms = clock_boot_ms() - t->last_ms;
	int64_t away_ms = p->what->keep ? team_random(4, 9) : team_random(20, 50);

	if (strcmp(t->last, p->file) == 0 && past_ms < away_ms)
		team_nap_us((unsigned)(away_ms - past_ms) * 1000);
}

static enum mr_rc
try_append(struct posting *p, bool *ret_lost, struct mr_error *err)
{
	struct teams *t = teams_of(p->room);
	enum mr_rc rc = teams_make_inboxes(t, &p->dir_fd, err);

	if (rc == MR_OK)
		rc = team_lock_take(&p->lock, p->dir_fd, p->file, t->patience_ms, err);
	if (rc == MR_OK)
		rc = add_locked(p, err);
	bool taken = p->lock.kernel_fd >= 0;
	bool ours = team_lock_release(&p->lock);

	memcpy(t->last, p->file, sizeof t->last);
	t->last_ms = clock_boot_ms();
	*ret_lost = taken && !ours;
	return rc;
}

enum mr_rc
teams_append(
    struct mr_room *room, const struct delivery *what, const char *agent, struct letter *letter, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	for (int i = 0; i < TRIES; i++) {
		mr_auto(posting_done) struct posting p = { room, what, agent, "", letter, -1, TEAM_LOCK_INIT };
		bool lost = false;

		teams_inbox_name(agent, p.file);
		keep_away(teams_of(room), &p);
		rc = try_append(&p, &lost, err);
		if (rc == MR_NOTFOUND && i + 1 < TRIES)
			continue;              /* the team's folder was removed and is made anew */
		if (!lost || rc == MR_INDOUBT) /* in doubt it is visible: a second try would double it */
			return rc;
		bool there = false;

		if (rc == MR_OK && look_for_entry(&p, &there, err) != MR_OK)
			return err->code;
		if (there)
			return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	return mr_fail(err, MR_INDOUBT,
	    "the inbox of '%s' was written over by a program that keeps no lock\n"
	    "see whether the message is there before sending it again",
	    agent);
}

/* ---- The slots ---- */

static void
fill_receipt(const struct letter *letter, struct delivery *what, struct delivered *ret)
{
	memcpy(ret->id, letter->id, sizeof ret->id);
	(void)snprintf(ret->spoken, sizeof ret->spoken, "%s", letter->msg_id);
	memcpy(what->msg->id, letter->id, sizeof what->msg->id);
	what->msg->date_ms = letter->date_ms;
}

/* One after the other, there is no spool: once somebody has it, a failure leaves the rest without. */
static enum mr_rc
fail_rest(const struct delivery *what, size_t from, struct delivered *ret, struct mr_error *err)
{
	struct mr_error first = *err;

	for (size_t i = from; i < what->to->n; i++)
		if (!names_add(&ret->missing, str_of(what->to->v[i])))
			return mr_nomem(err);
	(void)mr_fail(err, MR_INDOUBT, "%zu of %zu have it, '%s' and those after do not: %s", from, what->to->n,
	    what->to->v[from], first.message);
	err->sys_errno = first.sys_errno;
	return mr_hint(err, "send it again to those only");
}

enum mr_rc
teams_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	mr_auto(letter_done) struct letter letter = { 0 };
	enum mr_rc rc = MR_OK;

	TRY(teams_check_recipients(room, what->to, what->make_mailboxes, err));
	TRY(letter_make(&letter, what, err));
	for (size_t i = 0; i < what->to->n; i++) {
		rc = teams_append(room, what, what->to->v[i], &letter, err);
		if (rc == MR_EXISTS) /* of an import: the others may lack it */
			continue;
		if (rc != MR_OK && rc != MR_INDOUBT && i > 0)
			rc = fail_rest(what, i, ret, err);
		if (rc != MR_OK)
			break;
	}
	if (rc == MR_OK || rc == MR_INDOUBT || rc == MR_EXISTS)
		fill_receipt(&letter, what, ret);
	return rc;
}

enum mr_rc
teams_settle_ticket(struct mr_room *room, const char *ticket, bool *ret_published, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = teams_open_inboxes(teams_of(room), &fd, err);

	if (!str_starts(str_of(ticket), FILE_CARRY) || strchr(ticket, '/'))
		return mr_fail(err, MR_CORRUPT, "'%.60s' is no ticket of a team's inbox", ticket);
	if (rc == MR_NOTFOUND) { /* the team is gone, and with it whatever it had */
		*ret_published = true;
		return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	return file_prepared_void(fd, ticket, ret_published, err);
}

static bool
has_other_headers(const struct mr_message *msg)
{
	for (size_t i = 0; i < msg->headers_n; i++)
		if (!ascii_caseeq(msg->headers[i].name, "Color"))
			return true;
	return false;
}

unsigned
teams_lacks(struct mr_room *room, const struct mr_message *msg)
{
	mr_auto(buf_done) struct buf type = BUF_INIT;
	struct mr_str body = { msg->body ? msg->body : "", msg->body ? msg->body_len : 0 };
	bool control = entry_control_type(body, &type);

	(void)room;
	return (msg->cc.n > 0 ? FIELD_CC : 0U) | (msg->priority != MR_NORMAL ? FIELD_PRIORITY : 0U) |
	       (msg->thread && msg->thread[0] && strcmp(msg->thread, msg->id) != 0 ? FIELD_THREAD : 0U) |
	       (msg->reply_to && msg->reply_to[0] ? FIELD_REPLY_TO : 0U) | (msg->by_ms ? FIELD_BY : 0U) |
	       (has_other_headers(msg) ? FIELD_HEADERS : 0U) | (utf8_valid(body) ? 0U : FIELD_BINARY) |
	       (msg->to.n > 1 ? FIELD_TO : 0U) |
	       (msg->type && msg->type[0] && !(control && strcmp(msg->type, buf_z(&type)) == 0) ? FIELD_TYPE : 0U);
}
