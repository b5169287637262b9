/* SPDX-License-Identifier: MIT */
/*
 * file.h - safe and durable files on top of sys.h.
 *
 * staged: a complete, durable file without a place yet. It can be linked into any number of folders,
 * which is how one message reaches a thousand mailboxes. Contents are flushed before the first name
 * exists, so that no crash and no reader ever sees a torn file.
 *
 *	stage_open(&s, dir_fd, tmp_fd, mode)   unnamed in dir_fd, else a named one in tmp_fd
 *	stage_write(&s, bytes); stage_sync(&s)
 *	stage_link(&s, dir_fd, name)           never overwrites; the same inode already there is success
 *	stage_done(&s)                         removes the temporary name, if one was needed
 *
 * file_publish is all of it in one call, for one name: write, fsync, link, fsync, fsync of the folder.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/buf.h"
#include <sys/stat.h>
#include <sys/types.h>

struct staged {
	int fd;        /* -1: nothing staged */
	int tmp_fd;    /* folder of the temporary name; borrowed */
	char name[64]; /* temporary name in tmp_fd, or "" while unnamed */
	bool linked;   /* has at least one real name */
};
#define STAGED_INIT ((struct staged){ .fd = -1, .tmp_fd = -1 })

/* dir_fd: where the (first) link will go, so that a sandbox that refuses cross-folder links is content. */
enum mr_rc stage_open(struct staged *s, int dir_fd, int tmp_fd, mode_t mode, struct mr_error *err);
enum mr_rc stage_write(struct staged *s, struct mr_str bytes, struct mr_error *err);
enum mr_rc stage_sync(struct staged *s, struct mr_error *err);
/* The bytes of that file. */
enum mr_rc stage_copy(struct staged *s, int dir_fd, const char *name, struct mr_error *err);
/* MR_EXISTS: another file has that name. On a system where the unnamed file cannot be named, the
 * bytes are copied into a named one in tmp_fd first. errno stays in err->sys_errno (EXDEV, EMLINK). */
enum mr_rc stage_link(struct staged *s, int dir_fd, const char *name, struct mr_error *err);
void stage_done(struct staged *s);

enum publish_sync { PUBLISH_FULL, PUBLISH_NOSYNC };
/* A new file with these bytes, whole and durable, or nothing. MR_EXISTS if the name is taken. If
 * making the name durable fails, the name is taken back. */
enum mr_rc file_publish(int dir_fd, int tmp_fd, const char *name, struct mr_str bytes, mode_t mode,
    enum publish_sync sync, struct mr_error *err);
/* Its two halves, for what is not in memory: a copy of a file, or what was staged in pieces. */
enum mr_rc file_publish_copy(int from_fd, const char *from, int dir_fd, int tmp_fd, const char *name, mode_t mode,
    enum publish_sync sync, struct mr_error *err);
enum mr_rc stage_publish(struct staged *s, int dir_fd, const char *name, enum publish_sync sync, struct mr_error *err);
/* Small files that change: written beside and renamed over, durable. Callers hold the folder's lock. */
enum mr_rc file_replace(int dir_fd, const char *name, struct mr_str bytes, mode_t mode, struct mr_error *err);

/* The same in two steps, for a caller that must know after a kill whether it was published: the rename that publishes
 * takes the temporary name away, so a name that is still there says no, one that is gone says yes. file_prepare makes
 * the temporary file durable, name and all (MR_EXISTS: that name is taken); file_prepared_publish never overwrites
 * (MR_EXISTS: the name is taken, the temporary file is still there) and is durable. mtime_ns 0: now. */
enum mr_rc file_prepare(
    int dir_fd, const char *temporary, struct mr_str bytes, mode_t mode, int64_t mtime_ns, struct mr_error *err);
enum mr_rc file_prepared_publish(int tmp_fd, const char *temporary, int dir_fd, const char *name, struct mr_error *err);

/* A temporary file that a later process must find after a kill is called FILE_CARRY... Only this function removes it:
 * it renames it to FILE_VOID..., so that a process that prepared it and only slept can no longer publish it, and a
 * second call gives the same answer. *ret_published: neither name is there. */
#define FILE_CARRY ".mailroom-carry-"
#define FILE_VOID ".mailroom-void-"
enum mr_rc file_prepared_void(int tmp_fd, const char *temporary, bool *ret_published, struct mr_error *err);
/* Is it a file of FILE_VOID that is older than a week? No process asks for it any more. */
bool file_void_is_old(int tmp_fd, const char *name);
/* Removes those. Best effort. */
void file_void_clean(int tmp_fd);

/* Reads a whole regular file. MR_NOTFOUND, MR_REFUSED (over the limit, a link, not a regular file). ret_st: what that
 * very file is; may be NULL. */
enum mr_rc file_read_stat(
    int dir_fd, const char *name, size_t limit, struct buf *ret, struct stat *ret_st, struct mr_error *err);
static inline enum mr_rc
file_read(int dir_fd, const char *name, size_t limit, struct buf *ret, struct mr_error *err)
{
	return file_read_stat(dir_fd, name, limit, ret, NULL, err);
}
/* What is open, from its position. A size that was just looked up asks for no more than is there; < 0: to the end. */
enum mr_rc file_read_sized(int fd, off_t size, size_t limit, struct buf *ret, struct mr_error *err);
static inline enum mr_rc
file_read_fd(int fd, size_t limit, struct buf *ret, struct mr_error *err)
{
	return file_read_sized(fd, -1, limit, ret, err);
}

/* Are these one file, by device and inode? Name NULL: the open file itself. False also when one cannot be seen. */
bool file_is_same(int a_fd, const char *a, int b_fd, const char *b);

/* Do they hold the same bytes? */
enum mr_rc file_equals(int a_fd, const char *a, int b_fd, const char *b, bool *ret, struct mr_error *err);

/* MR_NOTFOUND if it is not there, MR_REFUSED if it is a link or no folder. */
enum mr_rc dir_open(int dir_fd, const char *path, int *ret_fd, struct mr_error *err);
/* The same for a folder that is only the way to what is beneath it: see sys_open_reach. */
enum mr_rc dir_reach(int dir_fd, const char *path, int *ret_fd, struct mr_error *err);
/* Makes every missing folder on the path with that mode and opens the last. With `durable`, the
 * parent of each folder made is synced. */
enum mr_rc dir_make(int dir_fd, const char *path, mode_t mode, bool durable, int *ret_fd, struct mr_error *err);

/* A folder of our own below `root`, which may itself be reached through links; below it none is followed. Others may
 * write there (a sandbox may write the state folder), and a link in the place of a folder would lead our files
 * elsewhere. With `make` both are made, 0700. */
enum mr_rc dir_below(const char *root, const char *path, bool make, bool durable, int *ret_fd, struct mr_error *err);

/* A new folder `name` that has the file `note` in it from its first moment, and the folders `below` (NULL-terminated,
 * or NULL): made under another name and renamed. MR_EXISTS. Durable. */
enum mr_rc dir_publish(int dir_fd, const char *name, mode_t mode, const char *note, struct mr_str text,
    const char *const *below, struct mr_error *err);

/* ---- Reading a folder ---- */
struct dir_entry {
	const char *name;
	unsigned char type; /* DT_*, DT_UNKNOWN when the file system does not say */
};
typedef bool dir_fn(void *ctx, const struct dir_entry *entry); /* false stops */
/* All entries but "." and "..", unsorted, with a large buffer. The fd's position is rewound first. */
enum mr_rc dir_each(int dir_fd, dir_fn *fn, void *ctx, struct mr_error *err);
/* The same through the descriptor itself, which was just opened, is not shared, and is read once. */
enum mr_rc dir_each_once(int dir_fd, dir_fn *fn, void *ctx, struct mr_error *err);
/* The names of all entries, unsorted, for a caller that moves or removes some of them. Added to *ret. */
enum mr_rc dir_names(int dir_fd, struct mr_names *ret, struct mr_error *err);
/* Of the folder `path` in it, where nothing else is wanted of that one. */
enum mr_rc dir_names_in(int dir_fd, const char *path, struct mr_names *ret, struct mr_error *err);

/* Removes that and all beneath it, as far as it can; links are not followed. For folders of our own making. */
void dir_remove_tree(int dir_fd, const char *name);

/* ---- Locks (flock): released by the kernel when the process dies, seen across pid namespaces ---- */
/* Opens (makes) dir_fd/name and locks it. wait_ms 0: try once; MR_BUSY if another has it. ret_fd is
 * the lock: close it to let go. */
enum mr_rc lock_take(int dir_fd, const char *name, mode_t mode, int64_t wait_ms, int *ret_fd, struct mr_error *err);
/* Locks what is open. -1: errno; EWOULDBLOCK when the time is up. */
int lock_within(int fd, int64_t wait_ms);
/* Between two tries of a lock that is not taken by lock_take; counts as waiting for one. */
void lock_pause_us(unsigned us);
/* How long this thread waited for locks since it asked last; only waits count, not locks. */
int64_t lock_waited_us(void);
/* Is it locked by someone else right now? A missing file is not. */
bool lock_is_held(int dir_fd, const char *name);

/* ---- Paths; each NULL is out of memory ---- */
/* The folder of a native room. It has a stub .git of its own, which is no repository. */
#define ROOM_FOLDER ".mailroom"
/* An absolute path without links, "." or ".."; one that does not exist is only made absolute. */
char *path_full(const char *cwd, const char *path);
char *path_join(const char *folder, const char *name);
char *path_parent(const char *path);     /* of an absolute path; the parent of "/" is "/" */
const char *path_name(const char *path); /* last component, borrowed */

#endif
