/* SPDX-License-Identifier: MIT */
/*
 * box.c - mailboxes as folders: mail/<id> and mail/<id>/archive below <state>. They appear with the first message. A
 * folder that we make is readable for those for whom the folder around it is: the other programs may run under
 * another account.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/sys.h"
#include "rooms/chipset/chipset.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#define LOCK_WAIT_MS 10000
#define LOCK_PAUSE_US 2000

void
chipset_box_path(struct buf *out, const char *id, enum mr_folder folder)
{
	buf_addf(out, "mail/%s%s", id, folder == MR_ARCHIVE ? "/archive" : "");
}

/* ---- Opening ---- */

/* Each time anew: whoever deletes the folder and makes it again must not leave us with the old one. */
enum mr_rc
chipset_open_below(struct chipset *cs, const char *path, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int root = -1;
	enum mr_rc rc = dir_open(AT_FDCWD, cs->path, &root, err);

	if (rc == MR_OK)
		rc = dir_open(root, path, ret_fd, err);
	return rc;
}

enum mr_rc
chipset_box_open(struct chipset *cs, const char *id, enum mr_folder folder, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	chipset_box_path(&path, id, folder);
	if (!buf_ok(&path))
		return mr_nomem(err);
	return chipset_open_below(cs, buf_z(&path), ret_fd, err);
}

/* ---- Making ---- */

mode_t
chipset_folder_mode(int around_fd)
{
	struct stat st;

	return sys_stat_fd(around_fd, &st) == 0 ? 0700 | (st.st_mode & 0055) : 0700;
}

mode_t
chipset_file_mode(int box_fd)
{
	return chipset_folder_mode(box_fd) & 0644;
}

static enum mr_rc
make_within(int around_fd, const char *name, int *ret_fd, struct mr_error *err)
{
	enum mr_rc rc = dir_open(around_fd, name, ret_fd, err);

	return rc == MR_NOTFOUND ? dir_make(around_fd, name, chipset_folder_mode(around_fd), true, ret_fd, err) : rc;
}

/* <state> itself, in the nearest folder above it that is there. */
enum mr_rc
chipset_state_make(struct chipset *cs, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf above = BUF_INIT;
	mr_auto(sys_close_fd) int around = -1;
	enum mr_rc rc = dir_open(AT_FDCWD, cs->path, ret_fd, err);

	if (rc != MR_NOTFOUND)
		return rc;
	buf_adds(&above, cs->path);
	while (rc == MR_NOTFOUND && above.len > 1) {
		while (above.len > 1 && above.ptr[above.len - 1] != '/')
			above.len--;
		while (above.len > 1 && above.ptr[above.len - 1] == '/')
			above.len--;
		above.ptr[above.len] = '\0';
		rc = dir_open(AT_FDCWD, buf_z(&above), &around, err);
	}
	if (rc != MR_OK)
		return rc;
	return dir_make(AT_FDCWD, cs->path, chipset_folder_mode(around), true, ret_fd, err);
}

enum mr_rc
chipset_box_make(struct chipset *cs, const char *id, enum mr_folder folder, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int state = -1, mail = -1, box = -1;
	enum mr_rc rc = chipset_box_open(cs, id, folder, ret_fd, err);

	if (rc != MR_NOTFOUND)
		return rc;
	rc = chipset_state_make(cs, &state, err);
	if (rc == MR_OK)
		rc = make_within(state, "mail", &mail, err);
	if (rc == MR_OK)
		rc = make_within(mail, id, &box, err);
	if (rc == MR_OK && folder == MR_ARCHIVE)
		return make_within(box, "archive", ret_fd, err);
	if (rc != MR_OK)
		return rc;
	*ret_fd = box;
	box = -1;
	return MR_OK;
}

enum mr_rc
chipset_box_publish(struct chipset *cs, const char *id, struct mr_str note, struct mr_error *err)
{
	mr_auto(sys_close_fd) int state = -1, mail = -1;
	enum mr_rc rc = chipset_state_make(cs, &state, err);

	if (rc == MR_OK)
		rc = make_within(state, "mail", &mail, err);
	return rc == MR_OK ? dir_publish(mail, id, chipset_folder_mode(mail), CHIPSET_NOTE, note, NULL, err) : rc;
}

/* ---- Order among ourselves, and durability ---- */

enum mr_rc
chipset_box_lock(int box_fd, const char *id, struct mr_error *err)
{
	int64_t end_ms = clock_boot_ms() + LOCK_WAIT_MS;

	while (sys_flock(box_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return mr_fail_errno(err, "cannot lock the mailbox of '%s'", id);
		if (clock_boot_ms() >= end_ms) {
			return mr_fail(err, MR_BUSY,
			    "the mailbox of '%s' is locked by another process\ntry again in a moment; the lock goes when that process ends",
			    id);
		}
		lock_pause_us(LOCK_PAUSE_US);
	}
	return MR_OK;
}

/* To the end of the list, wherever it was: a move adds where mail went to, then where it came from, and they are synced
 * in that order. */
void
chipset_dirty(struct chipset *cs, const char *id, enum mr_folder folder, int fd)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	struct mr_names *list = &cs->dirty;

	chipset_box_path(&path, id, folder);
	for (size_t i = 0; i + 1 < list->n; i++)
		if (strcmp(list->v[i], buf_z(&path)) == 0) {
			char *moved = list->v[i];

			memmove(&list->v[i], &list->v[i + 1], (list->n - i - 1) * sizeof *list->v);
			list->v[list->n - 1] = moved;
		}
	if (list->n > 0 && strcmp(list->v[list->n - 1], buf_z(&path)) == 0)
		return;
	if (!buf_ok(&path) || !names_add(list, buf_str(&path)))
		(void)sys_fsync(fd); /* no memory to put it off */
}

enum mr_rc
chipset_flush(struct mr_room *room, struct mr_error *err)
{
	struct chipset *cs = chipset_of(room);
	enum mr_rc first = MR_OK;

	for (size_t i = 0; i < cs->dirty.n; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		struct mr_error one = { 0 };
		enum mr_rc rc = chipset_open_below(cs, cs->dirty.v[i], &fd, &one);

		if (rc == MR_OK && sys_fsync(fd) < 0)
			rc = mr_fail_errno(&one, "cannot make '%s' durable", cs->dirty.v[i]);
		if (rc != MR_OK && rc != MR_NOTFOUND && first == MR_OK) { /* a folder that is gone holds nothing */
			first = rc;
			*err = one;
		}
	}
	mr_names_done(&cs->dirty);
	cs->dirty = (struct mr_names){ 0 };
	return first;
}
