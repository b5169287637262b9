/* SPDX-License-Identifier: MIT */
/* store.c - putting a new version of a file in the place of the old one; saving what was found broken. */
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <errno.h>
#include <fcntl.h>

/* ---- Beside, then over ---- */

enum mr_rc
fresh_open(struct fresh *f, int dir_fd, const char *file, mode_t mode, bool ticket, struct mr_error *err)
{
	char random[17], name[TEAM_NAME_LEN];

	do {
		random_hex(random, ticket ? 16 : 8);
		if (ticket)
			(void)snprintf(name, sizeof name, FILE_CARRY "%s.tmp", random);
		else
			(void)snprintf(name, sizeof name, "%.200s.tmp.%s", file, random);
		f->fd = sys_open(dir_fd, name, O_RDWR | O_CREAT | O_EXCL, mode);
	} while (f->fd < 0 && errno == EEXIST);
	if (f->fd < 0)
		return mr_fail_errno(err, "cannot make '%s'", name);
	f->dir_fd = dir_fd;
	memcpy(f->name, name, sizeof f->name);
	return MR_OK;
}

enum mr_rc
fresh_write(struct fresh *f, struct mr_str bytes, struct mr_error *err)
{
	if (sys_write_all(f->fd, bytes.ptr, bytes.len) < 0)
		return mr_fail_errno(err, "cannot write '%s'", f->name);
	return MR_OK;
}

enum mr_rc
fresh_sync(struct fresh *f, struct mr_error *err)
{
	if (sys_fsync(f->fd) < 0)
		return mr_fail_errno(err, "cannot flush '%s'", f->name);
	return MR_OK;
}

enum mr_rc
fresh_publish(struct fresh *f, const char *file, struct mr_error *err)
{
	if (sys_rename(f->dir_fd, f->name, f->dir_fd, file) < 0)
		return mr_fail_errno(err, "cannot replace '%s'", file);
	f->name[0] = '\0';
	if (sys_fsync(f->dir_fd) == 0)
		return MR_OK;
	/* It is visible, and another may have read it or written after it: it cannot be taken back. */
	int error = errno;

	(void)mr_fail(err, MR_INDOUBT, "'%s' was changed, but the change may not survive a power cut", file);
	err->sys_errno = error;
	return mr_hint(err, "look at the disk; the change is there: do not repeat it");
}

void
fresh_done(struct fresh *f)
{
	sys_close_fd(&f->fd);
	f->fd = -1;
	if (f->name[0])
		(void)sys_unlink(f->dir_fd, f->name);
	f->name[0] = '\0';
}

enum mr_rc
store_replace(struct team_lock *l, int dir_fd, const char *file, mode_t mode, struct mr_str bytes, struct mr_error *err)
{
	mr_auto(fresh_done) struct fresh f = FRESH_INIT;

	TRY(fresh_open(&f, dir_fd, file, mode, false, err));
	TRY(fresh_write(&f, bytes, err));
	TRY(fresh_sync(&f, err));
	TRY(team_lock_keep(l, err));
	return fresh_publish(&f, file, err);
}

/* ---- What was found broken ---- */

/* The raw bytes, durable, before anything is written over them. */
static enum mr_rc
save_aside(const struct mr_room *room, const struct inbox *in, struct mr_error *err)
{
	const struct teams *t = teams_of(room);
	mr_auto(sys_close_fd) int state_fd = -1, fd = -1;
	mr_auto(buf_done) struct buf name = BUF_INIT;
	char id[MR_ID_LEN + 1];

	if (!room->state_dir) {
		(void)inbox_corrupt(in, err);
		return mr_hint(err, "it is left as it is: there is no state directory to keep a copy of it in");
	}
	id_new(id);
	buf_adds(&name, "teams-");
	teams_sanitise(&name, str_of(t->team), SANITISE_INBOX);
	name.len = name.len > 80 ? 80 : name.len;
	buf_addc(&name, '-');
	teams_sanitise(&name, str_of(in->agent), SANITISE_INBOX);
	name.len = name.len > 180 ? 180 : name.len;
	buf_addf(&name, "-%s.json", id);
	if (!buf_ok(&name))
		return mr_nomem(err);
	if (dir_make(AT_FDCWD, room->state_dir, 0700, true, &state_fd, err) != MR_OK ||
	    dir_make(state_fd, "salvage", 0700, true, &fd, err) != MR_OK ||
	    file_publish(fd, fd, buf_z(&name), buf_str(&in->text), 0600, PUBLISH_FULL, err) != MR_OK)
		return mr_wrap(err, "cannot save the broken inbox of '%s' aside", in->agent);
	return MR_OK;
}

static void
forget_entries(struct inbox *in)
{
	free(in->v);
	free(in->order);
	in->v = NULL;
	in->order = NULL;
	in->n = in->order_n = 0;
}

enum mr_rc
store_read_locked(struct mr_room *room, struct inbox *in, int dir_fd, const char *file, struct mr_error *err)
{
	/* Under the lock the original does not write, but it makes a new file before it has the lock, and others
	 * know no lock. */
	for (unsigned pause_ms = 5;; pause_ms *= 2) {
		forget_entries(in);
		TRY(inbox_read(in, dir_fd, file, err));
		if (in->state == INBOX_MISSING)
			return MR_OK;
		TRY(inbox_parse(in, err));
		if (in->state != INBOX_TORN || pause_ms > 80)
			break;
		team_nap_us(pause_ms * 1000);
	}
	if (in->state == INBOX_ALIEN)
		return inbox_corrupt(in, err);
	bool lossy = in->state == INBOX_TORN || (in->state == INBOX_CLEARED && in->n > 0);

	return lossy && in->text.len > 0 ? save_aside(room, in, err) : MR_OK;
}
