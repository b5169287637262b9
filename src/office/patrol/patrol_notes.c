/* SPDX-License-Identifier: MIT */
/*
 * patrol_notes.c - where a patrol keeps what it knows. A native room has records. The room of another program is not
 * ours to put files into, so there it is
 *
 *	<state>/patrol/<hash of the room>/<kind>/<hash of the owner>/<name>
 *
 * outside the room; patrols that shall know of each other there must run under one user.
 */
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/patrol/patrol.h"
#include <fcntl.h>
#include <stdlib.h>

#define NOTE_MAX ((size_t)1 << 20)
#define LOCK_NAME "patrol"

static bool
has_records(const struct mr_room *room)
{
	const struct room_driver *d = room->driver;

	return d->record_put && d->record_get && d->record_drop && d->record_each && d->record_lock && d->record_unlock;
}

enum mr_rc
notes_able(const struct mr_room *room, struct mr_error *err)
{
	if (has_records(room) || room->state_dir)
		return MR_OK;
	(void)office_lacks(room, "place where a patrol could remember what it did", err);
	return mr_hint(err, "set HOME or XDG_STATE_HOME: it is kept below that");
}

void
notes_name(const char *text, char ret[33])
{
	char hash[65];

	sha256_hex(str_of(text), hash);
	(void)snprintf(ret, 33, "%.32s", hash);
}

/* ---- Outside the room ---- */

static enum mr_rc
open_folder(
    const struct mr_room *room, const char *kind, const char *owner, bool make, int *ret_fd, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char here[33], whose[33];

	notes_name(room->spec, here);
	notes_name(owner, whose);
	buf_addf(&path, "patrol/%s/%s/%s", here, kind, whose);
	return buf_ok(&path) ? dir_below(room->state_dir, buf_z(&path), make, true, ret_fd, err) : mr_nomem(err);
}

static bool
collect_file(void *ctx, const struct dir_entry *entry)
{
	return entry->name[0] == '.' || names_add(ctx, str_of(entry->name));
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum mr_rc
file_names(const struct mr_room *room, const char *kind, const char *owner, struct mr_names *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = open_folder(room, kind, owner, false, &fd, err);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	if (rc == MR_OK)
		rc = dir_each(fd, collect_file, ret, err);
	if (rc == MR_OK && ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_bytes);
	return rc;
}

/* ---- Both ---- */

enum mr_rc
notes_get(
    struct mr_room *room, const char *kind, const char *owner, const char *name, struct buf *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	if (has_records(room))
		return room->driver->record_get(room, kind, owner, name, ret, err);
	enum mr_rc rc = open_folder(room, kind, owner, false, &fd, err);

	return rc == MR_OK ? file_read(fd, name, NOTE_MAX, ret, err) : rc;
}

enum mr_rc
notes_put(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	if (has_records(room))
		return room->driver->record_put(room, kind, owner, name, text, err);
	enum mr_rc rc = open_folder(room, kind, owner, true, &fd, err);

	return rc == MR_OK ? file_replace(fd, name, text, 0600, err) : rc;
}

void
notes_drop(struct mr_room *room, const char *kind, const char *owner, const char *name)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_error ignored = { 0 };

	if (has_records(room))
		(void)room->driver->record_drop(room, kind, owner, name, &ignored);
	else if (open_folder(room, kind, owner, false, &fd, &ignored) == MR_OK)
		(void)sys_unlink(fd, name);
}

static bool
collect_name(void *ctx, const char *name)
{
	return names_add(ctx, str_of(name));
}

enum mr_rc
notes_names(struct mr_room *room, const char *kind, const char *owner, struct mr_names *ret, struct mr_error *err)
{
	if (has_records(room))
		return room->driver->record_each(room, kind, owner, collect_name, ret, err);
	return file_names(room, kind, owner, ret, err);
}

enum mr_rc
notes_lock(
    struct mr_room *room, const char *kind, const char *owner, int64_t wait_ms, void **ret_lock, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder_fd = -1;

	if (has_records(room))
		return room->driver->record_lock(room, kind, owner, LOCK_NAME, wait_ms, ret_lock, err);
	int *fd = malloc(sizeof(*fd));

	if (!fd)
		return mr_nomem(err);
	*fd = -1;
	enum mr_rc rc = open_folder(room, kind, owner, true, &folder_fd, err);

	if (rc == MR_OK)
		rc = lock_take(folder_fd, "." LOCK_NAME ".lock", 0600, wait_ms, fd, err);
	if (rc == MR_OK)
		*ret_lock = fd;
	else
		free(fd);
	return rc;
}

void
notes_unlock(struct mr_room *room, void *lock)
{
	if (!lock)
		return;
	if (has_records(room)) {
		room->driver->record_unlock(room, lock);
		return;
	}
	sys_close_fd(lock);
	free(lock);
}

enum mr_rc
notes_load(struct mr_room *room, const char *kind, const char *owner, const char *name, struct record *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = notes_get(room, kind, owner, name, &text, err);

	if (rc == MR_OK)
		rc = record_parse(buf_str(&text), ret, err);
	if (rc != MR_NOTFOUND && rc != MR_CORRUPT)
		return rc;
	*err = (struct mr_error){ 0 };
	*ret = (struct record){ 0 };
	return MR_OK;
}
