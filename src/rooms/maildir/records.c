/* SPDX-License-Identifier: MIT */
/*
 * records.c - small named values of the post office.
 *
 *	records/<kind>/<owner>/<name>      all kinds but
 *	nudges/<owner>/<name>              nudge
 *	groups/<name>                      group
 *	links/<name>                       link
 *	types/<name>                       type
 *	queues/<name>/settings             queue; "/" in the name is "%2F"
 *	channels/<name>/settings           channel
 *
 * Each is replaced by an atomic rename: readers see the old value or the new one, whole, and need no lock. Who
 * changes a value that others change too has the .lock of groups/, queues/, channels/ or records/<kind>/<owner>/.
 * It is one lock for all queues: with one in each queue's folder, asking for a queue that is not there would make
 * its folder.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/claim.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define RECORD_MAX ((size_t)1 << 20)
#define LOCK_WAIT_MS 10000
#define WORD_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* The kinds that have their own place: what a person finds there is what they made. */
static const struct office_kind {
	const char *kind, *folder;
	bool has_folder; /* the record is <name>/settings, else <name> */
	enum mr_rc (*make)(struct mr_room *room, const char *name, struct mr_error *err);
} office_kinds[] = {
	{ "group", "groups", false, NULL },
	{ "link", "links", false, NULL },
	{ "type", "types", false, NULL },
	{ "queue", "queues", true, maildir_queue_make },
	{ "channel", "channels", true, maildir_channel_make },
};

struct record_place {
	const struct office_kind *office; /* or NULL */
	char folder[NAME_LEN * 2];        /* that has the .lock */
	char file[NAME_LEN * 2];          /* below it */
};

static bool
plain_word(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= 80 && s[0] != '.' && strspn(s, WORD_CHARACTERS) == n;
}

/* A queue may be RIG/NAME, and RIG is a component of an address. */
static bool
queue_word(const char *s)
{
	const char *slash = strchr(s, '/');

	if (slash == NULL)
		return plain_word(s);
	return slash > s && slash - s <= 64 && s[0] != '.' && strspn(s, WORD_CHARACTERS "+") == (size_t)(slash - s) &&
	       plain_word(slash + 1);
}

static const struct office_kind *
office_kind_of(const char *kind, const char *owner)
{
	for (size_t i = 0; i < sizeof office_kinds / sizeof office_kinds[0]; i++)
		if (owner[0] == '\0' && strcmp(office_kinds[i].kind, kind) == 0)
			return &office_kinds[i];
	return NULL;
}

static bool
name_fits(const struct office_kind *office, const char *name)
{
	return office != NULL && strcmp(office->kind, "queue") == 0 ? queue_word(name) : plain_word(name);
}

/* name NULL: only the folder. */
static enum mr_rc
find_place(const char *kind, const char *owner, const char *name, struct record_place *ret, struct mr_error *err)
{
	char escaped[NAME_LEN] = "";

	if (!plain_word(kind))
		return mr_fail(err, MR_REFUSED, "kind of record '%s' is no plain word", kind);
	*ret = (struct record_place){ .office = office_kind_of(kind, owner) };
	if (name != NULL && !name_fits(ret->office, name))
		return mr_fail(err, MR_REFUSED,
		    "'%.160s' cannot name a record\n1-80 characters A-Z a-z 0-9 . _ -, not beginning with a dot", name);
	if (ret->office != NULL) {
		text_join(ret->folder, sizeof ret->folder, ret->office->folder, NULL);
		if (name != NULL)
			name_escape(name, escaped);
		text_join(ret->file, sizeof ret->file, escaped, ret->office->has_folder ? "/settings" : "", NULL);
		return MR_OK;
	}
	name_escape(owner, escaped); /* "records/due/rig%2Fbob" */
	if (strcmp(kind, "nudge") == 0)
		text_join(ret->folder, sizeof ret->folder, "nudges/", escaped, NULL);
	else
		text_join(ret->folder, sizeof ret->folder, "records/", kind, "/", escaped, NULL);
	text_join(ret->file, sizeof ret->file, name != NULL ? name : "", NULL);
	return MR_OK;
}

static enum mr_rc
open_folder(struct mr_room *room, const struct record_place *place, bool make, int *ret_fd, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);

	if (make)
		return dir_make(md->root_fd, place->folder, md->dir_mode, md->sync, ret_fd, err);
	return dir_open(md->root_fd, place->folder, ret_fd, err);
}

static bool
record_exists(int folder_fd, const struct record_place *place)
{
	struct stat st;

	return sys_stat(folder_fd, place->file, &st) == 0;
}

/* Under the lock where one is needed. */
static enum mr_rc
write_record(struct mr_room *room, const struct record_place *place, int folder_fd, const char *name,
    struct mr_str text, struct mr_error *err)
{
	mr_auto(sys_close_fd) int own_fd = -1;
	char escaped[NAME_LEN];
	mode_t mode = maildir_of(room)->file_mode;

	if (place->office == NULL || !place->office->has_folder)
		return file_replace(folder_fd, place->file, text, mode, err);
	/* The folders first: whoever finds the settings finds a queue or channel that works. */
	if (!record_exists(folder_fd, place) && place->office->make(room, name, err) != MR_OK)
		return err->code;
	name_escape(name, escaped);
	TRY(dir_open(folder_fd, escaped, &own_fd, err));
	return file_replace(own_fd, "settings", text, mode, err);
}

static enum mr_rc
take_lock(struct mr_room *room, int folder_fd, int *ret_fd, struct mr_error *err)
{
	return lock_take(folder_fd, ".lock", maildir_of(room)->file_mode, LOCK_WAIT_MS, ret_fd, err);
}

enum mr_rc
maildir_record_put(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1, lock_fd = -1;
	struct record_place place;

	if (find_place(kind, owner, name, &place, err) != MR_OK || open_folder(room, &place, true, &fd, err) != MR_OK ||
	    (place.office != NULL && take_lock(room, fd, &lock_fd, err) != MR_OK) ||
	    write_record(room, &place, fd, name, text, err) != MR_OK)
		return mr_wrap(err, "cannot keep record '%s/%s'", kind, name);
	return MR_OK;
}

/* Has another user of a shared room closed the folder in which this record would be? Then nobody knows of any, and a
 * name must not pass for taken, or be ambiguous, because of it. */
static bool
closes_all(struct maildir *md, const struct record_place *place, struct mr_error *err)
{
	return maildir_is_shared(md) && sys_access(md->root_fd, place->folder, X_OK) < 0 &&
	       shared_skip(md, err, "%s", place->folder);
}

enum mr_rc
maildir_record_get(
    struct mr_room *room, const char *kind, const char *owner, const char *name, struct buf *ret, struct mr_error *err)
{
	char path[2 * sizeof(((struct record_place *)0)->folder)];
	struct maildir *md = maildir_of(room);
	struct record_place place;
	enum mr_rc rc = find_place(kind, owner, name, &place, err);

	if (rc == MR_OK) {
		text_join(path, sizeof path, place.folder, "/", place.file, NULL);
		rc = file_read(md->root_fd, path, RECORD_MAX, ret, err);
	}
	if (rc != MR_OK && closes_all(md, &place, err))
		rc = MR_NOTFOUND;
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no record '%s/%s'", kind, name);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot read record '%s/%s'", kind, name);
}

enum mr_rc
maildir_record_change(struct mr_room *room, const char *kind, const char *owner, const char *name,
    enum mr_rc (*edit)(void *ctx, bool exists, struct buf *text, struct mr_error *err), void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1, lock_fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT, before = BUF_INIT;
	struct record_place place;
	struct mr_error ignored = { 0 };

	if (find_place(kind, owner, name, &place, err) != MR_OK || open_folder(room, &place, true, &fd, err) != MR_OK ||
	    take_lock(room, fd, &lock_fd, err) != MR_OK)
		return mr_wrap(err, "cannot change record '%s/%s'", kind, name);
	enum mr_rc rc = file_read(fd, place.file, RECORD_MAX, &text, &ignored);

	if (rc != MR_OK && rc != MR_NOTFOUND) {
		*err = ignored;
		return mr_wrap(err, "cannot read record '%s/%s'", kind, name);
	}
	bool exists = rc == MR_OK;

	buf_add(&before, buf_str(&text));
	rc = edit(ctx, exists, &text, err);
	if (rc != MR_OK)
		return rc;
	if (!buf_ok(&text) || !buf_ok(&before))
		return mr_nomem(err);
	if (exists && str_eq(buf_str(&text), buf_str(&before)))
		return MR_OK;
	if (write_record(room, &place, fd, name, buf_str(&text), err) != MR_OK)
		return mr_wrap(err, "cannot keep record '%s/%s'", kind, name);
	return MR_OK;
}

/* Unlinks it durably. */
static enum mr_rc
drop_file(struct mr_room *room, int fd, const char *file, struct mr_error *err)
{
	if (sys_unlink(fd, file) < 0)
		return errno == ENOENT ? mr_fail(err, MR_NOTFOUND, "no file '%s'", file)
				       : mr_fail_errno(err, "cannot remove '%s'", file);
	if (maildir_of(room)->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of '%s' durable", file);
	return MR_OK;
}

enum mr_rc
maildir_record_drop(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1, lock_fd = -1, own_fd = -1;
	struct record_place place;
	char escaped[NAME_LEN];
	enum mr_rc rc = find_place(kind, owner, name, &place, err);

	if (rc == MR_OK)
		rc = open_folder(room, &place, false, &fd, err);
	if (rc == MR_OK && place.office != NULL)
		rc = take_lock(room, fd, &lock_fd, err);
	name_escape(name, escaped);
	if (rc == MR_OK && place.office != NULL && place.office->has_folder) {
		rc = dir_open(fd, escaped, &own_fd, err);
		if (rc == MR_OK)
			rc = drop_file(room, own_fd, "settings", err);
		if (rc == MR_OK)
			(void)sys_rmdir(fd, escaped); /* only if nothing else is in it: the work was removed before */
	} else if (rc == MR_OK) {
		rc = drop_file(room, fd, place.file, err);
	}
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no record '%s/%s'", kind, name);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot drop record '%s/%s'", kind, name);
}

/* ---- Locks of whoever works with records for longer than one change ---- */

enum mr_rc
maildir_record_lock(struct mr_room *room, const char *kind, const char *owner, const char *name, int64_t wait_ms,
    void **ret_lock, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder_fd = -1;
	struct record_place place;
	char file[NAME_LEN];
	int *fd = malloc(sizeof *fd);

	if (fd == NULL)
		return mr_nomem(err);
	*fd = -1;
	(void)snprintf(file, sizeof file, ".%.80s.lock", name);
	enum mr_rc rc = find_place(kind, owner, name, &place, err);

	if (rc == MR_OK)
		rc = open_folder(room, &place, true, &folder_fd, err);
	if (rc == MR_OK)
		rc = lock_take(folder_fd, file, maildir_of(room)->file_mode, wait_ms, fd, err);
	if (rc == MR_OK)
		*ret_lock = fd;
	else
		free(fd);
	return rc;
}

void
maildir_record_unlock(struct mr_room *room, void *lock)
{
	(void)room;
	if (lock != NULL)
		sys_close_fd(lock);
	free(lock);
}

/* ---- Listing ---- */

struct record_walk {
	struct maildir *md;
	const char *folder;
	const struct office_kind *office;
	int folder_fd;
	struct mr_names names;
	bool failed;
};

/* "rig%2Fwork" -> "rig/work". False: not written by name_escape. */
static bool
unescape(const char *name, char ret[NAME_LEN])
{
	size_t len = 0;

	for (const char *p = name; *p != '\0'; p++) {
		if (len + 1 >= NAME_LEN)
			return false;
		if (*p == '%' && strncmp(p, "%2F", 3) != 0)
			return false;
		ret[len++] = *p == '%' ? '/' : *p;
		p += *p == '%' ? 2 : 0;
	}
	ret[len] = '\0';
	return true;
}

static bool
collect_record(void *ctx, const struct dir_entry *entry)
{
	struct record_walk *walk = ctx;
	char name[NAME_LEN], path[NAME_LEN * 2];
	struct stat st;

	/* A value being replaced has a temporary name beside it, and the lock is here: both begin with a dot. */
	if (!unescape(entry->name, name) || !name_fits(walk->office, name))
		return true;
	(void)snprintf(
	    path, sizeof path, "%s%s", entry->name, walk->office && walk->office->has_folder ? "/settings" : "");
	if (maildir_is_shared(walk->md) && sys_access(walk->folder_fd, path, R_OK) < 0) {
		struct mr_error closed = { .sys_errno = errno };

		(void)shared_skip(walk->md, &closed, "%s/%s", walk->folder, path);
		return true;
	}
	if (walk->office != NULL && (sys_stat(walk->folder_fd, path, &st) < 0 || !S_ISREG(st.st_mode)))
		return true;
	walk->failed |= !names_add(&walk->names, str_of(name));
	return !walk->failed;
}

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

enum mr_rc
maildir_record_each(struct mr_room *room, const char *kind, const char *owner, bool (*fn)(void *ctx, const char *name),
    void *ctx, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct record_place place;
	struct record_walk walk = { .md = maildir_of(room), .folder = place.folder };
	enum mr_rc rc = find_place(kind, owner, NULL, &place, err);

	if (rc == MR_OK) {
		fd = sys_open(maildir_of(room)->root_fd, place.folder, O_RDONLY | O_DIRECTORY, 0);
		if (fd < 0 && errno == ENOENT) /* mostly: no words for it */
			return MR_OK;
		if (fd < 0)
			rc = open_folder(room, &place, false, &fd, err);
	}
	if (rc == MR_NOTFOUND || (rc != MR_OK && shared_skip(walk.md, err, "%s", place.folder)))
		return MR_OK;
	walk.office = place.office;
	walk.folder_fd = fd;
	/* Names first: fn may drop records, and a folder that changes under a reader skips entries. */
	if (rc == MR_OK)
		rc = dir_each_once(fd, collect_record, &walk, err);
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
