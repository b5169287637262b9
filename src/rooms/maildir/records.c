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
 * Each is replaced by an atomic rename: readers see the complete old or new value, and need no lock. A command that
 * changes a value which others may change too takes the .lock of groups/, queues/, channels/ or records/<kind>/<owner>/
 * (record_edit_begin). All queues share one lock: with a lock in each queue's folder, asking for a missing queue would
 * make its folder.
 */
#include "rooms/maildir/maildir.h"
#include <unistd.h>

#define RECORD_MAX                                                                                                     \
	((size_t)64 << 20) /* the longest is the list of announced mail of a large backlog, 27 bytes a message */
#define WORD_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Kinds with a folder of their own at the top, where a person finds them. */
static const struct top_kind {
	const char *kind, *folder;
	/* NULL: the record is the file <name>; else it is <name>/settings, and this makes that folder and its parts. */
	enum mr_rc (*make)(struct mr_room *room, const char *name, struct mr_error *err);
} top_kinds[] = {
	{ "group", "groups", NULL },
	{ "link", "links", NULL },
	{ "type", "types", NULL },
	{ "queue", "queues", maildir_queue_make },
	{ "channel", "channels", maildir_channel_make },
};

struct record_path {
	const struct top_kind *top; /* or NULL */
	bool has_folder;            /* the record is the settings in a folder of its own */
	struct path folder;         /* the folder with the .lock */
	struct path dir;            /* the folder with the file: `folder`, or one of its own */
	char file[NAME_LEN];
};

static bool
plain_word(const char *s)
{
	size_t n = strlen(s);

	return n >= 1 && n <= 80 && s[0] != '.' && strspn(s, WORD_CHARACTERS) == n;
}

/* A queue may be RIG/NAME, and RIG is a component of an address. */
static bool
name_fits(const struct top_kind *top, const char *s)
{
	const char *slash = top && strcmp(top->kind, "queue") == 0 ? strchr(s, '/') : NULL;

	if (!slash)
		return plain_word(s);
	return slash > s && slash - s <= 64 && s[0] != '.' && strspn(s, WORD_CHARACTERS "+") == (size_t)(slash - s) &&
	       plain_word(slash + 1);
}

/* name "": only the folder. */
static enum mr_rc
find_path(const char *kind, const char *owner, const char *name, struct record_path *ret, struct mr_error *err)
{
	char escaped[NAME_LEN];

	*ret = (struct record_path){ .top = NULL };
	if (!plain_word(kind))
		return mr_fail(err, MR_REFUSED, "kind of record '%s' is not a plain word", kind);
	for (size_t i = 0; i < sizeof top_kinds / sizeof top_kinds[0] && owner[0] == '\0'; i++)
		if (strcmp(top_kinds[i].kind, kind) == 0)
			ret->top = &top_kinds[i];
	if (name[0] && !name_fits(ret->top, name))
		return mr_fail(err, MR_REFUSED,
		    "'%.160s' cannot name a record\n1-80 characters A-Z a-z 0-9 . _ -, not beginning with a dot", name);
	name_escape(owner, escaped); /* "records/due/rig%2Fbob" */
	if (ret->top)
		ret->folder = path_of(ret->top->folder, NULL);
	else if (strcmp(kind, "nudge") == 0)
		ret->folder = path_of("nudges/", escaped, NULL);
	else
		ret->folder = path_of("records/", kind, "/", escaped, NULL);
	if (name[0] && ret->top)
		name_escape(name, ret->file);
	else
		text_join(ret->file, sizeof ret->file, name, NULL);
	ret->dir = ret->folder;
	ret->has_folder = ret->top && ret->top->make;
	if (ret->has_folder && name[0]) {
		ret->dir = path_of(ret->folder.z, "/", ret->file, NULL);
		text_join(ret->file, sizeof ret->file, "settings", NULL);
	}
	return MR_OK;
}

enum mr_rc
maildir_record_put(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_str text,
    struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	struct record_path path;
	struct stat st;
	enum mr_rc rc = find_path(kind, owner, name, &path, err);

	/* Makes the folders first, so that a command which finds the settings finds a working queue or channel. */
	if (rc == MR_OK && path.has_folder && sys_stat(md->root_fd, path_of(path.dir.z, "/settings", NULL).z, &st) < 0)
		rc = path.top->make(room, name, err);
	if (rc != MR_OK || maildir_folder(md, md->root_fd, path.dir.z, !path.has_folder, &fd, err) != MR_OK ||
	    file_replace(fd, path.file, text, md->file_mode, err) != MR_OK)
		return mr_wrap(err, "cannot keep record '%s/%s'", kind, name);
	if (room_is_over(kind, owner))
		retain_some(room, true);
	return MR_OK;
}

enum mr_rc
maildir_record_get(
    struct mr_room *room, const char *kind, const char *owner, const char *name, struct buf *ret, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	struct record_path path;
	enum mr_rc rc = find_path(kind, owner, name, &path, err);

	if (rc == MR_OK)
		rc = file_read(md->root_fd, path_of(path.dir.z, "/", path.file, NULL).z, RECORD_MAX, ret, err);
	/* Does another user of a shared room deny access to the folder of this record? Then the record counts as
	 * missing, so that a name does not look taken or ambiguous because of it. */
	if (rc != MR_OK && maildir_is_shared(md) && sys_access(md->root_fd, path.folder.z, X_OK) < 0 &&
	    shared_skip(md, err, "%s", path.folder.z))
		rc = MR_NOTFOUND;
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no record '%s/%s'", kind, name);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot read record '%s/%s'", kind, name);
}

/* Removes the folder of an owner without records: first its locks, if no process holds them, then itself. */
static enum mr_rc
drop_folder(struct maildir *md, const struct record_path *path, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;

	TRY(dir_open_names(md->root_fd, path->folder.z, &fd, &names, err));
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(sys_close_fd) int lock_fd = -1;

		if (names.v[i][0] == '.' && str_ends(str_of(names.v[i]), ".lock") &&
		    lock_take(fd, names.v[i], md->file_mode, 0, &lock_fd, IGNORED) == MR_OK)
			(void)sys_unlink(fd, names.v[i]);
	}
	(void)sys_rmdir(md->root_fd, path->folder.z); /* fails while it has records */
	return MR_OK;
}

static enum mr_rc
drop(struct maildir *md, const struct record_path *path, struct mr_error *err)
{
	mr_auto(sys_close_fd) int lock_fd = -1, fd = -1;

	if (!path->file[0])
		return path->top ? mr_fail(err, MR_NOTFOUND, "no record has that name") : drop_folder(md, path, err);
	TRY(dir_open(md->root_fd, path->dir.z, &fd, err));
	if (path->top)
		TRY(lock_take(md->root_fd, path_of(path->folder.z, "/.lock", NULL).z, md->file_mode, LOCK_WAIT_MS,
		    &lock_fd, err));
	if (sys_unlink(fd, path->file) < 0)
		return errno == ENOENT ? mr_fail(err, MR_NOTFOUND, "no file '%s'", path->file)
				       : mr_fail_errno(err, "cannot remove '%s'", path->file);
	if (md->sync && sys_fsync(fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of '%s' durable", path->file);
	if (path->has_folder) /* only if it is empty: the work was removed before */
		(void)sys_rmdir(md->root_fd, path->dir.z);
	return MR_OK;
}

enum mr_rc
maildir_record_drop(struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_error *err)
{
	struct record_path path;
	enum mr_rc rc = find_path(kind, owner, name, &path, err);

	if (rc == MR_OK)
		rc = drop(maildir_of(room), &path, err);
	if (rc == MR_NOTFOUND)
		return mr_fail(err, MR_NOTFOUND, "no record '%s/%s'", kind, name);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot drop record '%s/%s'", kind, name);
}

/* ---- Locks ---- */

enum mr_rc
maildir_record_lock(struct mr_room *room, const char *kind, const char *owner, const char *name, int64_t wait_ms,
    void **ret_lock, struct mr_error *err)
{
	mr_auto(sys_close_fd) int folder_fd = -1, lock_fd = -1;
	struct maildir *md = maildir_of(room);
	struct record_path path;
	char file[NAME_LEN];

	TRY(find_path(kind, owner, name, &path, err));
	(void)snprintf(file, sizeof file, name[0] ? ".%.80s.lock" : ".%slock", name);
	TRY(dir_make(md->root_fd, path.folder.z, md->dir_mode, md->sync, &folder_fd, err));
	TRY(lock_take(folder_fd, file, md->file_mode, wait_ms, &lock_fd, err));
	int *fd = malloc(sizeof *fd);

	TRY(mr_got(fd, err));
	*fd = sys_take_fd(&lock_fd);
	*ret_lock = fd;
	return MR_OK;
}

void
maildir_record_unlock(struct mr_room *room, void *lock)
{
	(void)room;
	if (lock)
		sys_close_fd(lock);
	free(lock);
}

/* ---- Listing ---- */

struct record_list {
	struct maildir *md;
	const struct record_path *path;
	int fd;
	struct mr_names *names;
	bool failed; /* out of memory */
};

/* Notes an entry of the folder that is a readable record. */
static bool
note_record(void *ctx, const struct dir_entry *entry)
{
	struct record_list *l = ctx;
	char name[NAME_LEN];
	struct stat st;

	/* Skips the lock, and the temporary name of a value that is being replaced: both begin with a dot. */
	if (!name_unescape(entry->name, name) || !name_fits(l->path->top, name))
		return true;
	const struct path file = path_of(entry->name, l->path->has_folder ? "/settings" : "", NULL);

	if (maildir_is_shared(l->md) && sys_access(l->fd, file.z, R_OK) < 0)
		(void)shared_skip(l->md, &(struct mr_error){ .sys_errno = errno }, "%s/%s", l->path->folder.z, file.z);
	else if (!l->path->top || (sys_stat(l->fd, file.z, &st) == 0 && S_ISREG(st.st_mode)))
		l->failed = !names_add(l->names, str_of(name));
	return !l->failed;
}

enum mr_rc
maildir_record_each(struct mr_room *room, const char *kind, const char *owner, bool (*fn)(void *ctx, const char *name),
    void *ctx, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };
	mr_auto(sys_close_fd) int fd = -1;
	struct maildir *md = maildir_of(room);
	struct record_path path;

	TRY(find_path(kind, owner, "", &path, err));
	fd = sys_open(md->root_fd, path.folder.z, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0 && errno == ENOENT) /* as of most kinds */
		return MR_OK;
	if (fd < 0)
		TRY(shared_pass(md, dir_open(md->root_fd, path.folder.z, &fd, err), err, "%s", path.folder.z));
	if (fd < 0)
		return MR_OK;
	/* Reads all names first: fn may drop records, and reading a folder that changes skips entries. */
	struct record_list l = { .md = md, .path = &path, .fd = fd, .names = &names };

	TRY(dir_each_once(fd, note_record, &l, err));
	TRY(mr_got(!l.failed, err));
	names_sort(&names);
	for (size_t i = 0; i < names.n && fn(ctx, names.v[i]); i++)
		;
	return MR_OK;
}
