/* SPDX-License-Identifier: MIT */
/*
 * sys.h - every system call that touches the disk, in one place (sys.c, and sys_open.c for opening). Nothing else in
 * the tree calls open, fopen, stat, fsync, link, rename or unlink: tools/check-layers refuses it.
 *
 * Two reasons. (1) Tests: each call is a numbered fault point. A plan makes call N fail, write short, or kill the
 * process just before or just after it; see tests/support/sys_fault.h. (2) Linux-only calls have their POSIX fallback
 * here, chosen at run time (a kernel or sandbox that refuses) or at build time (-Dportable=true).
 *
 * All functions return -1 and set errno like the calls they stand for. EINTR is retried inside, except where said.
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Relative to dir_fd, beneath it, no symbolic link followed in any component (openat2, else
 * component by component). O_CLOEXEC is added. */
#ifndef O_NOATIME
#define O_NOATIME 0
#endif
int sys_open(int dir_fd, const char *path, int flags, mode_t mode);
/* Opens a file that the user or the harness named, for reading; follows links. Not for names in a room. O_NONBLOCK in
 * flags: opening a FIFO does not wait. */
int sys_open_user(const char *path, int flags);
/* A folder that only serves to open, stat, link or remove files in it (O_PATH): half the price. It cannot be read,
 * synced or locked; a caller that must do so opens "." in it. */
int sys_open_reach(int dir_fd, const char *path);
/* An unnamed file in dir (O_TMPFILE). errno EOPNOTSUPP: use a named one. */
int sys_open_unnamed(int dir_fd, mode_t mode);
/* A file that exists only in memory and is gone when it is closed. */
int sys_open_memory(void);
/* Gives an unnamed file a name: AT_EMPTY_PATH, else /proc/self/fd. errno EOPNOTSUPP: neither works here; EEXIST: the
 * name is taken. Never overwrites. */
int sys_link_unnamed(int fd, int dir_fd, const char *name);
int sys_close(int fd); /* never fails for the caller; not a fault point for errors */
ssize_t sys_read(int fd, void *buf, size_t n);
ssize_t sys_pread(int fd, void *buf, size_t n, off_t at);
ssize_t sys_write(int fd, const void *buf, size_t n);            /* may be short */
int sys_pwrite_all(int fd, const void *buf, size_t n, off_t at); /* at < 0: at the descriptor's own position */
static inline int
sys_write_all(int fd, const void *buf, size_t n)
{
	return sys_pwrite_all(fd, buf, n, -1);
}
/* Copies the first n bytes to the position of to_fd; inside the kernel if possible. */
int sys_copy(int from_fd, int to_fd, size_t n);
/* Gives the file that many bytes, with zeros after its own, and allocates the space for them. */
int sys_allocate(int fd, size_t n);
int sys_fsync(int fd);
/* Writes the bytes of a file out and waits for that; not its length and names, and without a flush of the disk's cache.
 * As good as a sync only if a sync of a folder follows and storage_order_doubt has no doubt. */
int sys_write_out(int fd);
/* Syncs everything of that file system, of all writers. Only if storage_syncs_whole says that it is as good. */
int sys_sync_whole(int fd);
int sys_link(int from_fd, const char *from, int to_fd, const char *to);              /* no symlink followed */
int sys_link_open(int fd, int from_fd, const char *from, int to_fd, const char *to); /* the same for an open file */
int sys_rename(int from_fd, const char *from, int to_fd, const char *to);            /* may overwrite */
int sys_rename_new(int from_fd, const char *from, int to_fd,
    const char *to); /* EEXIST, never overwrites; RENAME_NOREPLACE, else a look and a rename */
/* Swaps two existing files (else ENOENT) in one step. errno ENOSYS: the system cannot. */
int sys_rename_exchange(int a_fd, const char *a, int b_fd, const char *b);
int sys_unlink(int dir_fd, const char *name);
int sys_rmdir(int dir_fd, const char *name);
int sys_mkdir(int dir_fd, const char *name, mode_t mode); /* exactly that mode, independent of the umask */
int sys_chmod_fd(int fd, mode_t mode);
int sys_chown_fd(int fd, uid_t owner, gid_t group);
int sys_stat(int dir_fd, const char *name, struct stat *st); /* does not follow links */
int sys_stat_target(const char *path, struct stat *st);      /* a path of the user: follows links */
int sys_stat_fd(int fd, struct stat *st);
int sys_access(int dir_fd, const char *path, int mode); /* is the access allowed: R_OK | W_OK | X_OK; only a look */
/* Sets both times to now; mark > 0: to this millisecond, plus so many nanoseconds. */
int sys_touch(int dir_fd, const char *name, unsigned mark);
int sys_set_mtime(int fd, int64_t ns);
int sys_flock(int fd, int operation);              /* LOCK_*; EWOULDBLOCK as in flock(2) */
ssize_t sys_getdents(int fd, void *buf, size_t n); /* getdents64; ENOSYS in a portable build */

/* ---- A full disk ---- */
/* For a command that frees space: while one is set in this thread, a call that finds no space or no inode (ENOSPC,
 * EDQUOT) asks it to free some and is tried again as long as it does. A sync is not tried again: the unwritten data is
 * lost, and a second sync would not report that. */
struct sys_relief {
	bool (*free_some)(void *ctx); /* false: nothing is left to free */
	void *ctx;
};
/* Borrowed until the next call; NULL: none. Returns the one before, so that the caller can restore it. */
const struct sys_relief *sys_relief_set(const struct sys_relief *relief);

/* ---- Files of the kernel: not on a disk, so no fault points ---- */
/* Up to n - 1 bytes of a file such as /proc/self/stat, NUL-terminated; -1 if it is not there. */
ssize_t sys_kernel_read(const char *path, char *ret, size_t n);
/* Inode of the target of a kernel link such as /proc/self/ns/pid; 0 if it cannot be read. */
uint64_t sys_kernel_inode(const char *path);
/* Fills buf from getrandom, else /dev/urandom; false if neither exists. */
bool sys_random(void *buf, size_t n);

uid_t sys_euid(void);       /* of this process; read once */
void sys_close_fd(int *fd); /* for mr_auto: closes *fd when >= 0 */
static inline int
sys_take_fd(int *fd) /* takes it out of an mr_auto variable: the caller owns it */
{
	int taken = *fd;

	*fd = -1;
	return taken;
}
void sys_close_from(int first); /* that one and all above it: for a child that inherits none */

#endif
