/* SPDX-License-Identifier: MIT */
/*
 * sys.c - the system calls that touch the disk, except those that open files: sys_open.c.
 *
 * Each function is one fault point per attempt. If a fallback takes two calls that a crash can separate (link and
 * unlink), it is built from two functions, so that tests can crash there, too.
 */
#include "base/fault.h"
#include "base/sys.h"

#include <errno.h>
#include <stdatomic.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Should a failed call be tried again? ---- */

static _Thread_local const struct sys_relief *relief;

const struct sys_relief *
sys_relief_set(const struct sys_relief *next)
{
	const struct sys_relief *before = relief;

	relief = next;
	return before;
}

bool
point_again(enum point_kind kind)
{
	const struct sys_relief *use = relief;
	int error = errno;

	if (error == EINTR)
		return true;
	if ((error != ENOSPC && error != EDQUOT) || kind == POINT_SYNC || use == NULL)
		return false;
	relief = NULL; /* its own calls must not ask for it */
	bool freed = use->free_some(use->ctx);
	relief = use;
	errno = error;
	return freed;
}

/* For calls that only Linux has. */
__attribute__((unused)) static int
not_here(int fd)
{
	(void)fd;
	errno = ENOSYS;
	return -1;
}

/* ---- Bytes ---- */

ssize_t
sys_read(int fd, void *buf, size_t n)
{
	return RETRYING(POINT_OTHER, read(fd, buf, n));
}

ssize_t
sys_pread(int fd, void *buf, size_t n, off_t at)
{
	return RETRYING(POINT_OTHER, pread(fd, buf, n, at));
}

int
sys_copy(int from_fd, int to_fd, size_t n)
{
	off_t at = 0;

#if defined(SYS_copy_file_range) && !defined(MR_PORTABLE)
	while (n > 0) {
		long long from = at;
		ssize_t done = RETRYING(
		    POINT_OTHER, syscall(SYS_copy_file_range, from_fd, &from, to_fd, (long long *)NULL, n, 0U));

		if (done < 0 && errno != ENOSYS && errno != EXDEV && errno != EINVAL && errno != EOPNOTSUPP &&
		    errno != EPERM)
			return -1;
		if (done <= 0)
			break;
		(void)record_bytes(done, to_fd, -1);
		at += done;
		n -= (size_t)done;
	}
#endif
	char part[32768]; /* through our own memory, if the kernel cannot copy between these two files */

	while (n > 0) {
		ssize_t got = sys_pread(from_fd, part, n < sizeof part ? n : sizeof part, at);

		if (got == 0)
			errno = EIO; /* shorter than it was */
		if (got <= 0 || sys_write_all(to_fd, part, (size_t)got) < 0)
			return -1;
		at += got;
		n -= (size_t)got;
	}
	return 0;
}

/* at < 0: at the descriptor's own position */
static ssize_t
write_at(int fd, const void *buf, size_t n, off_t at)
{
	for (;;) {
		enum point_verdict verdict = point_before(POINT_WRITE);
		size_t part = verdict == POINT_HALF && n > 1 ? n / 2 : n;
		ssize_t done = -1;

		if (verdict != POINT_FAIL)
			done = point_after(at < 0 ? write(fd, buf, part) : pwrite(fd, buf, part, at));
		if (done >= 0 || !point_again(POINT_WRITE))
			return record_bytes(done, fd, at);
	}
}

ssize_t
sys_write(int fd, const void *buf, size_t n)
{
	return write_at(fd, buf, n, -1);
}

int
sys_pwrite_all(int fd, const void *buf, size_t n, off_t at)
{
	const char *bytes = buf;

	while (n > 0) {
		ssize_t done = write_at(fd, bytes, n, at);
		if (done == 0)
			errno = EIO; /* no progress and no error: do not loop for ever */
		if (done <= 0)
			return -1;
		bytes += done;
		n -= (size_t)done;
		if (at >= 0)
			at += done;
	}
	return 0;
}

int
sys_allocate(int fd, size_t n)
{
	static const char zeros[4096];
	struct stat st;

#if defined(SYS_fallocate) && defined(__LP64__) && !defined(MR_PORTABLE)
	int result = (int)RETRYING(POINT_OTHER, syscall(SYS_fallocate, fd, 0, (off_t)0, (off_t)n));

	if (result == 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != EPERM))
		return record_file(result, RECORD_CHANGE, fd, -1, NULL);
#endif
	if (sys_stat_fd(fd, &st) < 0)
		return -1;
	for (size_t at = (size_t)st.st_size; at < n;) {
		size_t part = n - at < sizeof zeros ? n - at : sizeof zeros;

		if (sys_pwrite_all(fd, zeros, part, (off_t)at) < 0)
			return -1;
		at += part;
	}
	return 0;
}

int
sys_fsync(int fd)
{
	if (sys_break_skips_sync(fd))
		return 0;
	int result = record_file((int)RETRYING(POINT_SYNC, fsync(fd)), RECORD_SYNC, fd, -1, NULL);

	if (result < 0 && errno == EINVAL) {
		/* Some file systems write folders through and have no fsync for them. */
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
			return 0;
		errno = EINVAL;
	}
	return result;
}

int
sys_write_out(int fd)
{
#if defined(SYNC_FILE_RANGE_WRITE) && !defined(MR_PORTABLE)
	const unsigned all = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;

	if (sys_break_is(BREAK_NO_WRITE_OUT))
		return 0;
	return record_file((int)RETRYING(POINT_OTHER, sync_file_range(fd, 0, 0, all)), RECORD_WRITE_OUT, fd, -1, NULL);
#else
	return not_here(fd);
#endif
}

int
sys_sync_whole(int fd)
{
#if defined(SYS_syncfs) && !defined(MR_PORTABLE)
	if (sys_break_skips_all_syncs())
		return 0;
	return record_file((int)RETRYING(POINT_SYNC, syscall(SYS_syncfs, fd)), RECORD_SYNC_ALL, fd, -1, NULL);
#else
	return not_here(fd);
#endif
}

int
sys_close(int fd)
{
	int saved = errno;

	/* Linux frees the descriptor even on EINTR; important data was synced and checked before. */
	(void)close(fd);
	errno = saved;
	return 0;
}

void
sys_close_fd(int *fd)
{
	if (*fd >= 0)
		(void)sys_close(*fd);
	*fd = -1;
}

/* ---- Names ---- */

int
sys_link(int from_fd, const char *from, int to_fd, const char *to)
{
	int result = (int)RETRYING(POINT_OTHER, linkat(from_fd, from, to_fd, to, 0));

	return record_names(result, RECORD_LINK, from_fd, from, to_fd, to);
}

int
sys_rename(int from_fd, const char *from, int to_fd, const char *to)
{
	int result = (int)RETRYING(POINT_OTHER, renameat(from_fd, from, to_fd, to));

	return record_names(result, RECORD_RENAME, from_fd, from, to_fd, to);
}

int
sys_rename_new(int from_fd, const char *from, int to_fd, const char *to)
{
	struct stat st;

#if defined(SYS_renameat2) && !defined(MR_PORTABLE)
	const unsigned rename_noreplace = 1;

	int result = (int)RETRYING(POINT_OTHER, syscall(SYS_renameat2, from_fd, from, to_fd, to, rename_noreplace));
	/* EINVAL: this file system lacks it; EPERM: a sandbox filters the call, or the file may not be moved, which the
	 * fallback then reports again. */
	if (result == 0 || (errno != ENOSYS && errno != EINVAL && errno != EPERM))
		return record_names(result, RECORD_RENAME, from_fd, from, to_fd, to);
#endif
	/* The kernel cannot refuse to overwrite here. link + unlink would be exact, but a kill in between leaves the
	 * mail under both names: it is doubled, which is worse than the small risk of a look before the rename. The
	 * names of messages are unique, so every process that moves to this name moves this very message, and only one
	 * rename succeeds. */
	if (sys_stat(to_fd, to, &st) == 0) {
		errno = EEXIST;
		return -1;
	}
	return errno == ENOENT ? sys_rename(from_fd, from, to_fd, to) : -1;
}

int
sys_rename_exchange(int a_fd, const char *a, int b_fd, const char *b)
{
#if defined(SYS_renameat2) && !defined(MR_PORTABLE)
	const unsigned rename_exchange = 2;

	int result = (int)RETRYING(POINT_OTHER, syscall(SYS_renameat2, a_fd, a, b_fd, b, rename_exchange));
	if (result < 0 && (errno == EINVAL || errno == EPERM))
		errno = ENOSYS;
	return record_names(result, RECORD_EXCHANGE, a_fd, a, b_fd, b);
#else
	(void)a, (void)b_fd, (void)b;
	return not_here(a_fd);
#endif
}

int
sys_unlink(int dir_fd, const char *name)
{
	return record_names(
	    (int)RETRYING(POINT_OTHER, unlinkat(dir_fd, name, 0)), RECORD_UNLINK, dir_fd, name, -1, NULL);
}

int
sys_rmdir(int dir_fd, const char *name)
{
	return record_names(
	    (int)RETRYING(POINT_OTHER, unlinkat(dir_fd, name, AT_REMOVEDIR)), RECORD_UNLINK, dir_fd, name, -1, NULL);
}

int
sys_mkdir(int dir_fd, const char *name, mode_t mode)
{
	struct stat st;

	if (RETRYING(POINT_OTHER, mkdirat(dir_fd, name, mode)) < 0)
		return -1;
	(void)record_names(0, RECORD_MKDIR, dir_fd, name, -1, NULL);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & 07777) == mode)
		return 0;
	/* Not fchmodat by name: in a room that a group shares, another member could put a link in the folder's place
	 * and have us change the mode of another file of ours. */
	int fd = sys_open(dir_fd, name, O_RDONLY | O_DIRECTORY, 0), result = -1;

	if (fd >= 0)
		result = sys_chmod_fd(fd, mode);
	else if (errno == EACCES) /* a umask removed the owner's own bits */
		result = (int)RETRYING(POINT_OTHER, fchmodat(dir_fd, name, mode, AT_SYMLINK_NOFOLLOW));
	int saved = errno;

	sys_close_fd(&fd);
	if (result < 0)
		(void)sys_rmdir(dir_fd, name);
	errno = saved;
	return result;
}

/* ---- File attributes ---- */

int
sys_chmod_fd(int fd, mode_t mode)
{
	return record_file((int)RETRYING(POINT_OTHER, fchmod(fd, mode)), RECORD_CHANGE, fd, -1, NULL);
}

int
sys_chown_fd(int fd, uid_t owner, gid_t group)
{
	return record_file((int)RETRYING(POINT_OTHER, fchown(fd, owner, group)), RECORD_CHANGE, fd, -1, NULL);
}

int
sys_stat(int dir_fd, const char *name, struct stat *st)
{
	return (int)RETRYING(POINT_OTHER, fstatat(dir_fd, name, st, AT_SYMLINK_NOFOLLOW));
}

int
sys_stat_target(const char *path, struct stat *st)
{
	return (int)RETRYING(POINT_OTHER, fstatat(AT_FDCWD, path, st, 0));
}

int
sys_stat_fd(int fd, struct stat *st)
{
	return (int)RETRYING(POINT_OTHER, fstat(fd, st));
}

int
sys_access(int dir_fd, const char *path, int mode)
{
	return (int)RETRYING(POINT_OTHER, faccessat(dir_fd, path, mode, getuid() != geteuid() ? AT_EACCESS : 0));
}

int
sys_touch(int dir_fd, const char *name, unsigned mark)
{
	struct timespec now, times[2] = { { .tv_nsec = UTIME_NOW } };

	(void)clock_gettime(CLOCK_REALTIME, &now); /* through the vDSO, without a system call */
	times[1] = (struct timespec){ now.tv_sec, now.tv_nsec / 1000000 * 1000000 + (long)mark };
	return (int)RETRYING(POINT_OTHER, utimensat(dir_fd, name, mark > 0 ? times : NULL, AT_SYMLINK_NOFOLLOW));
}

int
sys_set_mtime(int fd, int64_t ns)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) } };

	return record_file((int)RETRYING(POINT_OTHER, futimens(fd, times)), RECORD_CHANGE, fd, -1, NULL);
}

int
sys_flock(int fd, int operation)
{
	if (sys_break_is(BREAK_NO_LOCKS))
		return 0;
	return (int)RETRYING(POINT_OTHER, flock(fd, operation));
}

ssize_t
sys_getdents(int fd, void *buf, size_t n)
{
#if defined(SYS_getdents64) && !defined(MR_PORTABLE)
	return RETRYING(POINT_OTHER, syscall(SYS_getdents64, fd, buf, n));
#else
	(void)buf, (void)n;
	return not_here(fd);
#endif
}

uid_t
sys_euid(void)
{
	static atomic_uint known; /* uid + 1, so that 0 means "not read yet" */

	if (known == 0)
		known = (unsigned)geteuid() + 1;
	return (uid_t)(known - 1);
}
