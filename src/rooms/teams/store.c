/* SPDX-License-Identifier: MIT */
/*
 * store.c - changing a file: its lock, putting a new version in the place of the old one, saving what was found broken.
 *
 * The lock of an inbox is an empty folder beside it, whose mtime says that its holder is alive.
 * The original makes it with mkdir, gives up after 0.7 s, and takes one over that is older than 10 s with stat, rmdir
 * and mkdir, so that two can win. Ours:
 *
 * 1. Our own processes queue at a kernel lock first (flock of the folder of the inboxes: no file, nothing to clean up).
 *    So one of ours at most stands at the lock of the original, and a stale one is never taken over by two of us.
 * 2. mkdir; while another holds it, sleep and try again, long enough for any crashed holder to become stale.
 * 3. A stale lock is renamed away, and only if what was caught is what was judged (inode, mtime) it is removed; a fresh
 *    one that came in between goes back.
 * 4. A lock with our mode was made by one of ours. We have the kernel lock, so its maker is dead: it is taken over at
 *    once, no ten seconds of silence after a kill.
 * 5. After queueing behind one of ours we wait a few milliseconds more before mkdir, for a client of the original that
 *    tries only now and then; else a crowd of ours would starve it.
 *
 * Nothing is ever put into the folder, and the mtime of another's lock is never touched.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#define OUR_MODE ((mode_t)01700) /* mkdir never gives the sticky bit by itself */
#define REFRESH_MS 4000
#define COURTESY_US_MIN 4000
#define COURTESY_US_MAX 9000

unsigned
team_random(unsigned from, unsigned to)
{
	unsigned r = 0;

	random_bytes(&r, sizeof r);
	return from + r % (to - from + 1);
}

/* ---- Our own ---- */

/* A descriptor of its own: the lock belongs to it, not to a process that shares the handle after a fork. */
static enum mr_rc
take_kernel_lock(struct team_lock *l, int64_t deadline_ms, struct mr_error *err)
{
	struct stat st;

	l->kernel_fd = sys_open(l->dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (l->kernel_fd < 0)
		return mr_fail_errno(err, "cannot open the folder of '%s'", l->name);
	bool queued = sys_flock(l->kernel_fd, LOCK_EX | LOCK_NB) < 0;
	int64_t left_ms = deadline_ms - clock_boot_ms();

	if (queued && (errno != EWOULDBLOCK || lock_within(l->kernel_fd, LOCK_EX, left_ms > 0 ? left_ms : 0) < 0)) {
		if (errno != EWOULDBLOCK)
			return mr_fail_errno(err, "cannot lock the folder of '%s'", l->name);
		return mr_fail(err, MR_BUSY,
		    "another mailroom command is changing this team's inboxes\n"
		    "try again in a moment; the lock ends with that process");
	}
	if (sys_stat_fd(l->kernel_fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at the folder of '%s'", l->name);
	if (st.st_nlink == 0)
		return mr_fail(err, MR_NOTFOUND, "the folder of '%s' was removed", l->name);
	if (queued)
		lock_pause_us(team_random(COURTESY_US_MIN, COURTESY_US_MAX));
	return MR_OK;
}

/* ---- The original's ---- */

/* Renamed away first: only if what was caught is what was judged it is removed. */
static void
take_over(const struct team_lock *l, const struct stat *judged)
{
	char aside[TEAM_NAME_LEN + 32], random[9];
	struct stat caught;

	random_hex(random, 8);
	(void)snprintf(aside, sizeof aside, "%s.stale.%s", l->name, random);
	if (sys_rename(l->dir_fd, l->name, l->dir_fd, aside) < 0)
		return; /* another process was faster */
	if (sys_stat(l->dir_fd, aside, &caught) == 0 && caught.st_ino == judged->st_ino &&
	    kit_mtime_ns(&caught) == kit_mtime_ns(judged))
		(void)sys_rmdir(l->dir_fd, aside); /* with something inside it stays, for the doctor */
	else if (sys_rename_new(l->dir_fd, aside, l->dir_fd, l->name) < 0) /* back, unless the place is taken by now */
		(void)sys_rmdir(l->dir_fd, aside);
}

static enum mr_rc
give_up(const struct team_lock *l, const struct stat *st, struct mr_error *err)
{
	char when[RFC3339_LEN + 1];

	time_rfc3339(kit_mtime_ns(st) / 1000000, when);
	if (!S_ISDIR(st->st_mode))
		return mr_fail(err, MR_BUSY,
		    "'%s' is not a folder, as a lock must be, and has been in the place of one since %s\n"
		    "no program can write to that inbox before it is gone: find out whose it is, then remove it",
		    l->name, when);
	return mr_fail(err, MR_BUSY,
	    "'%s' is held by another program of this team, last seen alive %s\n"
	    "try again; a holder that died is taken over 10 seconds after its last sign of life",
	    l->name, when);
}

/* One try. MR_EMPTY: again. */
static enum mr_rc
try_once(struct team_lock *l, bool last, struct mr_error *err)
{
	struct stat st;

	if (sys_mkdir(l->dir_fd, l->name, OUR_MODE) == 0) {
		l->held = true;
		if (sys_stat(l->dir_fd, l->name, &st) < 0)
			return mr_fail_errno(err, "cannot look at lock '%s'", l->name);
		l->inode = st.st_ino;
		l->mtime_ns = kit_mtime_ns(&st);
		l->since_ms = clock_boot_ms();
		return MR_OK;
	}
	if (errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "the folder of '%s' was removed", l->name);
	if (errno != EEXIST)
		return mr_fail_errno(err, "cannot make lock '%s'", l->name);
	if (sys_stat(l->dir_fd, l->name, &st) < 0)
		return errno == ENOENT ? MR_EMPTY : mr_fail_errno(err, "cannot look at lock '%s'", l->name);
	bool folder = S_ISDIR(st.st_mode);
	bool old = kit_mtime_ns(&st) < clock_now_ns() - (int64_t)TEAM_LOCK_STALE_MS * 1000000;

	if (last || (!folder && old))
		return give_up(l, &st, err);
	if (folder && (old || (st.st_mode & 07777) == OUR_MODE))
		take_over(l, &st);
	else
		lock_pause_us(team_random(1000, 15000));
	return MR_EMPTY;
}

enum mr_rc
team_lock_take(struct team_lock *l, int dir_fd, const char *file, int64_t patience_ms, struct mr_error *err)
{
	int64_t deadline_ms = clock_boot_ms() + patience_ms;
	enum mr_rc rc;

	*l = TEAM_LOCK_INIT;
	l->dir_fd = dir_fd;
	(void)snprintf(l->name, sizeof l->name, "%.240s.lock", file);
	rc = take_kernel_lock(l, deadline_ms, err);
	if (rc == MR_OK)
		do
			rc = try_once(l, clock_boot_ms() >= deadline_ms, err);
		while (rc == MR_EMPTY);
	if (rc != MR_OK)
		team_lock_done(l);
	return rc;
}

static bool
is_ours(const struct team_lock *l)
{
	struct stat st;

	return sys_stat(l->dir_fd, l->name, &st) == 0 && st.st_ino == l->inode && kit_mtime_ns(&st) == l->mtime_ns;
}

/* Is it still ours? Refreshes it in time. MR_BUSY: it was taken away. */
static enum mr_rc
team_lock_keep(struct team_lock *l, struct mr_error *err)
{
	struct stat st;

	if (!is_ours(l)) {
		l->held = false;
		return mr_fail(err, MR_BUSY, "the lock '%s' was taken over by another program", l->name);
	}
	if (clock_boot_ms() - l->since_ms < REFRESH_MS)
		return MR_OK;
	if (sys_touch(l->dir_fd, l->name, 0) < 0 || sys_stat(l->dir_fd, l->name, &st) < 0)
		return mr_fail_errno(err, "cannot refresh lock '%s'", l->name);
	l->mtime_ns = kit_mtime_ns(&st);
	l->since_ms = clock_boot_ms();
	return MR_OK;
}

bool
team_lock_release(struct team_lock *l)
{
	bool ours = l->held && is_ours(l);

	if (ours)
		(void)sys_rmdir(l->dir_fd, l->name);
	l->held = false;
	sys_close_fd(&l->kernel_fd);
	l->kernel_fd = -1;
	return ours;
}

void
team_lock_done(struct team_lock *l)
{
	(void)team_lock_release(l);
}

/* ---- Beside, then over ---- */

/* *ret_name is "" if there is nothing to remove. */
static enum mr_rc
write_beside(const struct team_lock *l, const struct fresh *f, char ret_name[TEAM_NAME_LEN], struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char random[9], name[TEAM_NAME_LEN];

	ret_name[0] = '\0';
	do {
		random_hex(random, 8);
		if (f->staged)
			(void)snprintf(name, sizeof name, "%s", kit_temporary(FILE_CARRY).z);
		else
			(void)snprintf(name, sizeof name, "%.200s.tmp.%s", f->file, random);
		fd = sys_open(l->dir_fd, name, O_RDWR | O_CREAT | O_EXCL, f->mode);
	} while (fd < 0 && errno == EEXIST);
	if (fd < 0)
		return mr_fail_errno(err, "cannot make '%s'", name);
	memcpy(ret_name, name, sizeof name);
	if (f->copied > 0 && sys_copy(f->from_fd, fd, f->copied) < 0)
		return mr_fail_errno(err, "cannot copy '%s'", f->file);
	if (sys_write_all(fd, f->bytes.ptr, f->bytes.len) < 0)
		return mr_fail_errno(err, "cannot write '%s'", name);
	return sys_fsync(fd) < 0 ? mr_fail_errno(err, "cannot flush '%s'", name) : MR_OK;
}

enum mr_rc
store_replace(struct team_lock *l, const struct fresh *f, struct mr_error *err)
{
	char name[TEAM_NAME_LEN];
	bool told = false; /* of the ticket: gone, the name would say that the message was published */
	enum mr_rc rc = write_beside(l, f, name, err);

	if (rc == MR_OK && f->staged) {
		/* Sync the folder, so that the temporary name is durable before the ticket is noted. */
		file_void_clean(l->dir_fd);
		if (sys_fsync(l->dir_fd) < 0)
			rc = mr_fail_errno(err, "cannot make '%s' durable", name);
		told = rc == MR_OK;
		if (told)
			rc = f->staged->staged(f->staged->staged_ctx, name, err);
	}
	if (rc == MR_OK)
		rc = team_lock_keep(l, err);
	if (rc == MR_OK && sys_rename(l->dir_fd, name, l->dir_fd, f->file) < 0)
		rc = mr_fail_errno(err, "cannot replace '%s'", f->file);
	if (rc != MR_OK && name[0] && !told)
		(void)sys_unlink(l->dir_fd, name);
	if (rc != MR_OK || sys_fsync(l->dir_fd) == 0)
		return rc;
	/* It is visible, and another may have read it or written after it: it cannot be taken back. */
	int error = errno;

	rc = mr_fail(err, MR_INDOUBT,
	    "'%s' was changed, but the change may not survive a power cut\n"
	    "check the disk; the change is made: do not repeat it",
	    f->file);
	err->sys_errno = error;
	return rc;
}

/* ---- What was found broken ---- */

enum mr_rc
store_read_locked(struct mr_room *room, struct inbox *in, int dir_fd, const char *file, struct mr_error *err)
{
	mr_auto(sys_close_fd) int state_fd = -1, fd = -1;
	mr_auto(buf_done) struct buf name = BUF_INIT;
	char id[MR_ID_LEN + 1];

	/* Under the lock the original does not write, but it makes a new file before it has the lock, and others
	 * know no lock. */
	TRY(inbox_read(in, dir_fd, file, 80, err));
	if (in->state == INBOX_ALIEN)
		return inbox_corrupt(in, err);
	bool lossy = in->state == INBOX_TORN || (in->state == INBOX_CLEARED && in->n > 0);

	if (!lossy || in->text.len == 0)
		return MR_OK;
	/* The raw bytes are saved, durable, before anything is written over them. */
	if (!room->state_dir) {
		(void)inbox_corrupt(in, err);
		return mr_hint(err, "it is left as it is: there is no state directory to keep a copy of it in");
	}
	id_new(id);
	buf_adds(&name, "teams-");
	teams_sanitise(&name, str_of(teams_of(room)->team), SANITISE_INBOX);
	name.len = name.len > 80 ? 80 : name.len;
	buf_addc(&name, '-');
	teams_sanitise(&name, str_of(in->agent), SANITISE_INBOX);
	name.len = name.len > 180 ? 180 : name.len;
	buf_addf(&name, "-%s.json", id);
	TRY(mr_got(buf_ok(&name), err));
	if (dir_make(AT_FDCWD, room->state_dir, 0700, true, &state_fd, err) != MR_OK ||
	    dir_make(state_fd, "salvage", 0700, true, &fd, err) != MR_OK ||
	    file_publish(fd, fd, buf_z(&name), buf_str(&in->text), 0600, PUBLISH_FULL, err) != MR_OK)
		return mr_wrap(err, "cannot save the broken inbox of '%s' aside", in->agent);
	return MR_OK;
}
