/* SPDX-License-Identifier: MIT */
/*
 * mark.c - "read" is a field inside the message, so a mark makes a new file. It takes the place of the old one by an
 * exchange: if somebody archived or removed the message meanwhile, there is nothing to exchange with and nothing comes
 * back to life. What the exchange gave us is looked at: if it is not the file that we read, somebody else replaced it
 * in between, and gets his file back before we try again.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/chipset/chipset.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define REPLACED_TRIES 20

struct marking {
	int box_fd;
	const char *name;
	bool read;
	struct stat seen; /* the file whose bytes we changed */
	char temporary[64];
};

static bool
same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static enum mr_rc
gone(const struct marking *m, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND,
	    "'%s' is gone: archived or removed by another\nlook again with: mailroom inbox --all", m->name);
}

/* The bytes, and which file they are of. */
static enum mr_rc
read_now(struct marking *m, struct buf *text, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(m->box_fd, m->name, O_RDONLY | O_NONBLOCK, 0);

	if (fd < 0 && errno == ENOENT)
		return gone(m, err);
	if (fd < 0 || sys_stat_fd(fd, &m->seen) < 0)
		return mr_fail_errno(err, "cannot read '%s'", m->name);
	if (!S_ISREG(m->seen.st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is no file", m->name);
	enum mr_rc rc = file_read_fd(fd, CHIPSET_READ_MAX, text, err);

	return rc == MR_OK ? rc : mr_wrap(err, "'%s'", m->name);
}

/* With the mode and the time of the old one: a mark is no news. */
static enum mr_rc
write_beside(struct marking *m, struct mr_str bytes, struct mr_error *err)
{
	char random[17];

	random_hex(random, 16);
	(void)snprintf(m->temporary, sizeof m->temporary, "%s%s.tmp", CHIPSET_MARK_PREFIX, random);
	mr_auto(sys_close_fd) int fd =
	    sys_open(m->box_fd, m->temporary, O_RDWR | O_CREAT | O_EXCL, m->seen.st_mode & 0777);

	if (fd < 0)
		return mr_fail_errno(err, "cannot make '%s'", m->temporary);
	if (sys_write_all(fd, bytes.ptr, bytes.len) == 0 &&
	    sys_set_mtime(fd, (int64_t)m->seen.st_mtim.tv_sec * 1000000000 + m->seen.st_mtim.tv_nsec) == 0 &&
	    sys_fsync(fd) == 0)
		return MR_OK;
	(void)mr_fail_errno(err, "cannot write '%s'", m->temporary);
	(void)sys_unlink(m->box_fd, m->temporary);
	return err->code;
}

/* Where the system cannot exchange: as near as it gets. */
static int
look_and_rename(const struct marking *m)
{
	struct stat st;

	if (sys_stat(m->box_fd, m->name, &st) < 0)
		return -1;
	return sys_rename(m->box_fd, m->temporary, m->box_fd, m->name);
}

/* Somebody's newer file is under our temporary name: back with it. If ours was archived in this very moment, his takes
 * the free name; that name being taken once more, his own next look will show him which is there. */
static void
give_back(const struct marking *m)
{
	if (sys_rename_exchange(m->box_fd, m->temporary, m->box_fd, m->name) == 0)
		(void)sys_unlink(m->box_fd, m->temporary);
	else
		(void)sys_rename_new(m->box_fd, m->temporary, m->box_fd, m->name);
}

static enum mr_rc
put_in_place(const struct marking *m, bool *ret_replaced, struct mr_error *err)
{
	struct stat taken;

	*ret_replaced = false;
	if (sys_rename_exchange(m->box_fd, m->temporary, m->box_fd, m->name) == 0) {
		*ret_replaced = sys_stat(m->box_fd, m->temporary, &taken) == 0 && !same_file(&taken, &m->seen);
		if (*ret_replaced)
			give_back(m);
		else
			(void)sys_unlink(m->box_fd, m->temporary);
		return MR_OK;
	}
	if (errno == ENOSYS && look_and_rename(m) == 0)
		return MR_OK;
	enum mr_rc rc = errno == ENOENT ? gone(m, err) : mr_fail_errno(err, "cannot mark '%s'", m->name);

	(void)sys_unlink(m->box_fd, m->temporary);
	return rc;
}

static enum mr_rc
mark_once(struct marking *m, bool *ret_changed, bool *ret_again, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT, changed = BUF_INIT;
	struct json_value object;
	enum mr_rc rc = read_now(m, &text, err);

	*ret_again = *ret_changed = false;
	if (rc != MR_OK)
		return rc;
	if (chipset_object(buf_str(&text), &object, err) != MR_OK)
		return mr_wrap(err, "'%s' is unreadable", m->name);
	if (!chipset_set_read(buf_str(&text), object, m->read, &changed))
		return MR_OK;
	if (!buf_ok(&changed))
		return mr_nomem(err);
	rc = write_beside(m, buf_str(&changed), err);
	if (rc == MR_OK)
		rc = put_in_place(m, ret_again, err);
	*ret_changed = rc == MR_OK && !*ret_again;
	return rc;
}

static enum mr_rc
mark_file(struct marking *m, bool *ret_changed, struct mr_error *err)
{
	bool again = true;
	enum mr_rc rc = MR_OK;

	for (int tries = 0; again && tries < REPLACED_TRIES; tries++) {
		rc = mark_once(m, ret_changed, &again, err);
		if (rc != MR_OK)
			return rc;
	}
	if (!again)
		return MR_OK;
	return mr_fail(err, MR_BUSY, "'%s' is being changed by another program\ntry again in a moment", m->name);
}

/* The other marks have no place in the format: that mail was answered is seen from the answer; the office asks for the
 * rest only where a room has them. */
enum mr_rc
chipset_mark(
    struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err)
{
	mr_auto(chipset_list_done) struct chipset_list list = CHIPSET_LIST_INIT;
	struct chipset *cs = chipset_of(room);
	const struct chipset_entry *at = NULL;
	char box[CHIPSET_ID_MAX + 1];
	bool changed = false;

	if ((set | clear) & (MR_PINNED | MR_TRASHED))
		return mr_fail(err, MR_UNSUPPORTED, "a chipset room remembers only what was read");
	enum mr_rc rc = chipset_find(cs, agent, id, MR_INBOX | MR_ARCHIVE, &list, &at, err);

	if (rc == MR_OK)
		rc = chipset_id(agent, box, err);
	if (rc != MR_OK || !((set | clear) & MR_SEEN))
		return rc;
	struct marking m = { .box_fd = chipset_list_fd(&list, at->folder), .name = at->name, .read = set & MR_SEEN };

	rc = chipset_box_lock(list.inbox_fd, box, err);
	if (rc == MR_OK)
		rc = mark_file(&m, &changed, err);
	if (rc == MR_OK && changed)
		chipset_dirty(cs, box, at->folder, m.box_fd);
	return rc;
}
