/* SPDX-License-Identifier: MIT */
/*
 * file.h - safe and durable files on top of sys.h.
 *
 * staged: a complete, durable file without a name yet. It can be linked into any number of folders, which is how one
 * message reaches a thousand mailboxes. Contents are flushed before the first name exists, so that no crash and no
 * reader ever sees a torn file.
 *
 *	stage_open(&s, dir_fd, tmp_fd, mode)   unnamed in dir_fd, else a named one in tmp_fd
 *	stage_write(&s, bytes); stage_sync(&s)
 *	stage_link(&s, dir_fd, name)           never overwrites; the same inode already there is success
 *	stage_done(&s)                         removes the temporary name, if one was needed
 *
 * file_publish does all of this in one call, for one name: write, fsync, link, fsync, fsync of the folder.
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

/* dir_fd: the folder of the (first) link, because some sandboxes refuse links between folders. */
enum mr_rc stage_open(struct staged *s, int dir_fd, int tmp_fd, mode_t mode, struct mr_error *err);
enum mr_rc stage_write(struct staged *s, struct mr_str bytes, struct mr_error *err);
enum mr_rc stage_sync(struct staged *s, struct mr_error *err);
/* Copies the bytes of that file. */
enum mr_rc stage_copy(struct staged *s, int dir_fd, const char *name, struct mr_error *err);
/* MR_EXISTS: another file has that name. If the system cannot name the unnamed file, the bytes are first copied into a
 * named one in tmp_fd. errno is kept in err->sys_errno (EXDEV, EMLINK). */
enum mr_rc stage_link(struct staged *s, int dir_fd, const char *name, struct mr_error *err);
void stage_done(struct staged *s);

enum publish_sync { PUBLISH_FULL, PUBLISH_NOSYNC };
/* Makes a new file with these bytes, complete and durable, or none. MR_EXISTS: the name is taken. If making the name
 * durable fails, the name is removed. */
enum mr_rc file_publish(int dir_fd, int tmp_fd, const char *name, struct mr_str bytes, mode_t mode,
    enum publish_sync sync, struct mr_error *err);
/* The two halves, for content that is not in memory: a copy of a file, or a file that was staged in pieces. */
enum mr_rc file_publish_copy(int from_fd, const char *from, int dir_fd, int tmp_fd, const char *name, mode_t mode,
    enum publish_sync sync, struct mr_error *err);
enum mr_rc stage_publish(struct staged *s, int dir_fd, const char *name, enum publish_sync sync, struct mr_error *err);
/* For small files that change: writes a new file and renames it over the old one, durably. Callers hold the folder's
 * lock. */
enum mr_rc file_replace(int dir_fd, const char *name, struct mr_str bytes, mode_t mode, struct mr_error *err);

/* The same in two steps, for a caller that must know after a kill whether the file was published: the rename that
 * publishes removes the temporary name, so if that name exists, it was not. file_prepare makes the temporary file
 * durable, with its name (MR_EXISTS: that name is taken); file_prepared_publish never overwrites (MR_EXISTS: the name
 * is taken, the temporary file still exists) and is durable. mtime_ns 0: now. */
enum mr_rc file_prepare(
    int dir_fd, const char *temporary, struct mr_str bytes, mode_t mode, int64_t mtime_ns, struct mr_error *err);
enum mr_rc file_prepared_publish(int tmp_fd, const char *temporary, int dir_fd, const char *name, struct mr_error *err);

/* A temporary file that a later process must find after a kill is named FILE_CARRY... Only this function removes it: it
 * renames it to FILE_VOID..., so that a process that prepared it and only slept cannot publish it any more, and a
 * second call gives the same answer. *ret_published: neither name exists. */
#define FILE_CARRY ".mailroom-carry-"
#define FILE_VOID ".mailroom-void-"
enum mr_rc file_prepared_void(int tmp_fd, const char *temporary, bool *ret_published, struct mr_error *err);
/* Is it a FILE_VOID file that is older than a week? No process asks for it any more. */
bool file_void_is_old(int tmp_fd, const char *name);
/* Removes those. Best effort. */
void file_void_clean(int tmp_fd);

/* Reads a whole regular file. MR_NOTFOUND, MR_REFUSED (over the limit, a link, not a regular file). ret_st (may be
 * NULL): the attributes of that very file. */
enum mr_rc file_read_stat(
    int dir_fd, const char *name, size_t limit, struct buf *ret, struct stat *ret_st, struct mr_error *err);
static inline enum mr_rc
file_read(int dir_fd, const char *name, size_t limit, struct buf *ret, struct mr_error *err)
{
	return file_read_stat(dir_fd, name, limit, ret, NULL, err);
}
/* Reads an open file from its position. A known size saves the read at the end; < 0: unknown. */
enum mr_rc file_read_sized(int fd, off_t size, size_t limit, struct buf *ret, struct mr_error *err);
static inline enum mr_rc
file_read_fd(int fd, size_t limit, struct buf *ret, struct mr_error *err)
{
	return file_read_sized(fd, -1, limit, ret, err);
}

/* Are these the same file, by device and inode? Name NULL: the open file itself. False also if one cannot be read. */
bool file_is_same(int a_fd, const char *a, int b_fd, const char *b);

/* Do they hold the same bytes? */
enum mr_rc file_equals(int a_fd, const char *a, int b_fd, const char *b, bool *ret, struct mr_error *err);

/* MR_NOTFOUND: it is missing; MR_REFUSED: it is a link or not a folder. */
enum mr_rc dir_open(int dir_fd, const char *path, int *ret_fd, struct mr_error *err);
/* The same for a folder that only serves to reach its entries: see sys_open_reach. */
enum mr_rc dir_reach(int dir_fd, const char *path, int *ret_fd, struct mr_error *err);
/* Makes every missing folder on the path with that mode and opens the last. `durable`: syncs the parent of each new
 * folder. */
enum mr_rc dir_make(int dir_fd, const char *path, mode_t mode, bool durable, int *ret_fd, struct mr_error *err);

/* A folder of our own below `root`. The path to `root` may have links; below it none is followed, because others may
 * write there (a sandbox may write the state folder), and a link in place of a folder would lead our files elsewhere.
 * `make` creates both, 0700. */
enum mr_rc dir_below(const char *root, const char *path, bool make, bool durable, int *ret_fd, struct mr_error *err);

/* A new folder `name` that from the beginning has the file `note`, and the folders `below` (NULL-terminated, or NULL):
 * made under another name and renamed. MR_EXISTS. Durable. */
enum mr_rc dir_publish(int dir_fd, const char *name, mode_t mode, const char *note, struct mr_str text,
    const char *const *below, struct mr_error *err);

/* ---- Reading a folder ---- */
struct dir_entry {
	const char *name;
	unsigned char type; /* DT_*, DT_UNKNOWN if the file system does not tell */
};
typedef bool dir_fn(void *ctx, const struct dir_entry *entry); /* false stops */
/* All entries but "." and "..", unsorted, with a large buffer. The fd's position is rewound first. */
enum mr_rc dir_each(int dir_fd, dir_fn *fn, void *ctx, struct mr_error *err);
/* The same through the descriptor itself, which must be newly opened, not shared, and read only once. */
enum mr_rc dir_each_once(int dir_fd, dir_fn *fn, void *ctx, struct mr_error *err);
/* Adds the names of all entries, unsorted, to *ret, for a caller that moves or removes some of them. */
enum mr_rc dir_names(int dir_fd, struct mr_names *ret, struct mr_error *err);
/* The same for the folder `path` in it; ret_fd NULL: the folder is closed again. */
enum mr_rc dir_open_names(int dir_fd, const char *path, int *ret_fd, struct mr_names *ret, struct mr_error *err);
enum mr_rc dir_names_in(int dir_fd, const char *path, struct mr_names *ret, struct mr_error *err);

/* Removes that folder and everything in it, as far as possible; does not follow links. For folders of our own
 * making. */
void dir_remove_tree(int dir_fd, const char *name);

/* ---- Locks (flock): released by the kernel when the process dies, seen across pid namespaces ---- */
/* Opens (makes) dir_fd/name and locks it. wait_ms 0: try once; MR_BUSY: another process has the lock. Closing ret_fd
 * releases it. */
enum mr_rc lock_take(int dir_fd, const char *name, mode_t mode, int64_t wait_ms, int *ret_fd, struct mr_error *err);
/* Locks an open file: `how` is LOCK_EX or LOCK_SH. 0: locked. -1: errno; EWOULDBLOCK: the time is up. */
int lock_within(int fd, int how, int64_t wait_ms);
/* Waits between two attempts at a lock that is not taken by lock_take; counts as waiting for a lock. */
void lock_pause_us(unsigned us);
/* How long this thread waited for locks since the last call. */
int64_t lock_waited_us(void);
/* Does another process hold the lock right now? False for a missing file. */
bool lock_is_held(int dir_fd, const char *name);

/* ---- Paths; each NULL is out of memory ---- */
/* The folder of a native room. It has a stub .git of its own, which is not a repository. */
#define ROOM_FOLDER ".mailroom"
/* An absolute path without links, "." or ".."; a path that does not exist is only made absolute. */
char *path_full(const char *cwd, const char *path);
char *path_join(const char *folder, const char *name);
char *path_parent(const char *path);     /* of an absolute path; the parent of "/" is "/" */
const char *path_name(const char *path); /* last component, borrowed */

#endif
