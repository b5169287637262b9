/* SPDX-License-Identifier: MIT */
/*
 * sys.h - every system call that touches the disk, in one place (sys.c, and sys_open.c for what opens). Nothing else in
 * the tree calls open, fopen, stat, fsync, link, rename or unlink: tools/check-layers refuses it.
 *
 * Two reasons. (1) Tests: each call is a numbered fault point. A plan makes call N fail, write
 * short, or kill the process just before or just after it; see tests/support/sys_fault.h. (2) Linux-only calls have
 * their POSIX fallback here, chosen at run time (a kernel or sandbox that refuses) or at build time (-Dportable=true).
 *
 * All functions return -1 and set errno like the calls they stand for. EINTR is retried inside,
 * except where said.
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
/* A file that the user or the harness named, for reading: links and all, not a name in a room. O_NONBLOCK in flags:
 * opening a FIFO does not wait. */
int sys_open_user(const char *path, int flags);
/* A folder of which only what is beneath it will be opened, looked at, linked or removed (O_PATH): half the price. It
 * can be neither read nor synced nor locked; a caller that must opens "." in it. */
int sys_open_reach(int dir_fd, const char *path);
/* An unnamed file in dir (O_TMPFILE). errno EOPNOTSUPP: use a named one. */
int sys_open_unnamed(int dir_fd, mode_t mode);
/* A file in memory alone, that is gone when it is closed. */
int sys_open_memory(void);
/* Gives an unnamed file a name: AT_EMPTY_PATH, else /proc/self/fd. errno EOPNOTSUPP when neither
 * works here; EEXIST when the name is taken. Never overwrites. */
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
/* Its first n bytes, to where to_fd stands; by the kernel alone where it can. */
int sys_copy(int from_fd, int to_fd, size_t n);
/* The file has that many bytes, zeros behind those it had, and the space for them is its own from now on. */
int sys_allocate(int fd, size_t n);
int sys_fsync(int fd);
/* The bytes of a file on their way to the disk, and there: its length and names are not, and nothing tells the disk to
 * keep what it got. As good as a sync only before a sync of a folder, where storage_order_doubt knows of none. */
int sys_write_out(int fd);
/* Everything of that file system, of all writers. Only where storage_syncs_whole says that it is as good. */
int sys_sync_whole(int fd);
int sys_link(int from_fd, const char *from, int to_fd, const char *to); /* no symlink followed */
int sys_link_open(
    int fd, int from_fd, const char *from, int to_fd, const char *to);        /* the same of a file that is open */
int sys_rename(int from_fd, const char *from, int to_fd, const char *to);     /* may overwrite */
int sys_rename_new(int from_fd, const char *from, int to_fd, const char *to); /* EEXIST, never overwrites;
			 RENAME_NOREPLACE, else a look and a rename */
/* Swaps two files that both exist (ENOENT else), in one step. errno ENOSYS where the system cannot. */
int sys_rename_exchange(int a_fd, const char *a, int b_fd, const char *b);
int sys_unlink(int dir_fd, const char *name);
int sys_rmdir(int dir_fd, const char *name);
int sys_mkdir(int dir_fd, const char *name, mode_t mode); /* exactly that mode, whatever the umask */
int sys_chmod_fd(int fd, mode_t mode);
int sys_chown_fd(int fd, uid_t owner, gid_t group);
int sys_stat(int dir_fd, const char *name, struct stat *st); /* does not follow links */
int sys_stat_target(const char *path, struct stat *st);      /* a path of the user: links are followed */
int sys_stat_fd(int fd, struct stat *st);
int sys_access(int dir_fd, const char *path, int mode); /* may we, as we are now: R_OK | W_OK | X_OK; only a look */
/* Both times to now; mark > 0: to this millisecond, and so many nanoseconds behind it. */
int sys_touch(int dir_fd, const char *name, unsigned mark);
int sys_set_mtime(int fd, int64_t ns);
int sys_flock(int fd, int operation);              /* LOCK_*; EWOULDBLOCK as in flock(2) */
ssize_t sys_getdents(int fd, void *buf, size_t n); /* getdents64; ENOSYS in a portable build */

/* ---- A full disk ---- */
/* For a command that makes room: while one is set in this thread, a call that finds no space or no inode (ENOSPC,
 * EDQUOT) asks it to free some and, as long as it does, is tried again. A sync is not: what it could not write is lost,
 * and asking again would not say so. */
struct sys_relief {
	bool (*free_some)(void *ctx); /* false: nothing is left to free */
	void *ctx;
};
/* Borrowed until the next call; NULL: none. Returns the one before, so that the caller can set it back. */
const struct sys_relief *sys_relief_set(const struct sys_relief *relief);

/* ---- What the kernel shows as files: no disk, so no fault points ---- */
/* Up to n - 1 bytes of a file such as /proc/self/stat, NUL-terminated; -1 if it is not there. */
ssize_t sys_kernel_read(const char *path, char *ret, size_t n);
/* Inode of what a kernel link such as /proc/self/ns/pid leads to; 0 if it cannot be seen. */
uint64_t sys_kernel_inode(const char *path);
/* Fills buf from getrandom, else /dev/urandom; false if neither is there. */
bool sys_random(void *buf, size_t n);

uid_t sys_euid(void);       /* of this process; asked once */
void sys_close_fd(int *fd); /* for mr_auto: closes *fd when >= 0 */
static inline int
sys_take_fd(int *fd) /* out of one that is mr_auto: the caller's from now on */
{
	int taken = *fd;

	*fd = -1;
	return taken;
}
void sys_close_from(int first); /* that one and all above it: for a child that wants nothing of its parent's */

#endif
