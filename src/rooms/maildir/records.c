/* SPDX-License-Identifier: MIT */
/*
 * records.c - small named values of the post office: records/<kind>/<owner>/<name>. Each is replaced
 * by an atomic rename, so no lock is needed: readers see the old value or the new one, whole.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>

#define RECORD_MAX ((size_t)1 << 20)

static bool
plain_word(const char *s)
{
	size_t n = strlen(s);

	if (n < 1 || n > 80 || s[0] == '.')
		return false;
	return strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n;
}

/* "records/due/rig%2Fbob" */
static enum mr_rc
folder_path(const char *kind, const char *owner, char ret[NAME_LEN * 2], struct mr_error *err)
{
	char escaped[NAME_LEN];

	if (!plain_word(kind))
		return mr_fail(err, MR_REFUSED, "kind of record '%s' is no plain word", kind);
	name_escape(owner, escaped);
	(void)snprintf(ret, NAME_LEN * 2, "records/%s/%s", kind, escaped);
	return MR_OK;
}

static enum mr_rc
open_folder(struct mr_room *room, const char *kind, const char *owner, const char *name, bool make,
    int *ret_fd, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	char path[NAME_LEN * 2];

	if (name && !plain_word(name)) {
		(void)mr_fail(err, MR_REFUSED, "'%s' cannot name a record", name);
		return mr_hint(err, "1-80 characters A-Z a-z 0-9 . _ -, not beginning with a dot");
	}
	if (folder_path(kind, owner, path, err) != MR_OK)
		return err->code;
	if (make)
		return dir_make(md->root_fd, path, md->dir_mode, md->sync, ret_fd, err);
	return dir_open(md->root_fd, path, ret_fd, err);
}

enum mr_rc
maildir_record_put(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct mr_str text, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	if (open_folder(room, kind, owner, name, true, &fd, err) != MR_OK ||
	    file_replace(fd, name, text, maildir_of(room)->file_mode, err) != MR_OK)
		return mr_wrap(err, "cannot keep record '%s/%s'", kind, name);
	return MR_OK;
}

enum mr_rc
maildir_record_get(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct buf *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = open_folder(room, kind, owner, name, false, &fd, err);

	if (rc == MR_OK)
		rc = file_read(fd, name, RECORD_MAX, ret, err);
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no record '%s/%s'", kind, name);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot read record '%s/%s'", kind, name);
}

enum mr_rc
maildir_record_drop(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = open_folder(room, kind, owner, name, false, &fd, err);

	if (rc == MR_OK && sys_unlink(fd, name) < 0)
		rc = errno == ENOENT ? MR_NOTFOUND : mr_fail_errno(err, "cannot remove '%s'", name);
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no record '%s/%s'", kind, name);
	if (rc == MR_OK && maildir_of(room)->sync && sys_fsync(fd) < 0)
		rc = mr_fail_errno(err, "cannot make the removal of '%s' durable", name);
	return rc;
}

struct record_walk {
	struct mr_names names;
	bool failed;
};

static bool
collect_record(void *ctx, const struct dir_entry *entry)
{
	struct record_walk *walk = ctx;

	/* A value being replaced has a temporary name beside it. */
	if (plain_word(entry->name))
		walk->failed |= !names_add(&walk->names, str_of(entry->name));
	return !walk->failed;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum mr_rc
maildir_record_each(struct mr_room *room, const char *kind, const char *owner,
    bool (*fn)(void *ctx, const char *name), void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct record_walk walk = { 0 };
	enum mr_rc rc = open_folder(room, kind, owner, NULL, false, &fd, err);

	if (rc == MR_NOTFOUND)
		return MR_OK;
	/* Names first: fn may drop records, and a folder that changes under a reader skips entries. */
	if (rc == MR_OK)
		rc = dir_each(fd, collect_record, &walk, err);
	if (rc == MR_OK && walk.failed)
		rc = mr_nomem(err);
	if (rc == MR_OK && walk.names.n > 0) {
		qsort(walk.names.v, walk.names.n, sizeof *walk.names.v, by_bytes);
		for (size_t i = 0; i < walk.names.n && fn(ctx, walk.names.v[i]); i++)
			;
	}
	mr_names_done(&walk.names);
	return rc;
}
