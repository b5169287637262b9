/* SPDX-License-Identifier: MIT */
/*
 * sys_open.c - the opening part of sys.h: beneath a folder, through no symbolic link, with exactly the requested mode;
 * unnamed files and how they get a name; files of the kernel.
 *
 * A single name needs no openat2: without a slash and with O_NOFOLLOW it cannot lead elsewhere.
 */
#include "base/buf.h"
#include "base/fault.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MR_PORTABLE
#include <sys/random.h>
#ifdef SYS_openat2
#define HAVE_OPENAT2 1
#endif
#endif

#define ALWAYS (O_CLOEXEC | O_NOCTTY)
#if defined(O_PATH) && !defined(MR_PORTABLE)
#define REACH O_PATH
#else
#define REACH O_RDONLY
#endif
#define PASS_THROUGH (REACH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- Beneath, and through no link ---- */

static int
open_stepwise(int dir_fd, const char *path, int flags, mode_t mode)
{
	int at = dir_fd;

	for (;;) {
		char part[NAME_MAX + 1];
		size_t n = strcspn(path, "/");
		const char *rest = path + n + strspn(path + n, "/");
		int fd = -1;

		if (n > NAME_MAX) {
			errno = ENAMETOOLONG;
		} else {
			int last = path[n] == '/' ? O_DIRECTORY : 0;

			memcpy(part, path, n);
			part[n] = '\0';
			fd = *rest == '\0' ? openat(at, part, flags | last | O_NOFOLLOW | ALWAYS, mode)
					   : openat(at, part, PASS_THROUGH);
		}
		if (at != dir_fd)
			(void)sys_close(at);
		if (fd < 0 || *rest == '\0')
			return fd;
		at = fd;
		path = rest;
	}
}

static int
open_beneath(int dir_fd, const char *path, int flags, mode_t mode)
{
	if (strchr(path, '/') == NULL)
		return openat(dir_fd, path, flags | O_NOFOLLOW | ALWAYS, mode);
#ifdef HAVE_OPENAT2
	static atomic_bool unavailable; /* no such system call: cached */
	const struct {
		uint64_t flags, mode, resolve;
	} how = {
		.flags = (uint64_t)(flags | (flags & REACH ? O_CLOEXEC : ALWAYS)), /* openat2 refuses unknown flags */
		.mode = (flags & O_CREAT) != 0 ? mode : 0,
		.resolve = 0x02 | 0x04 | 0x08, /* NO_MAGICLINKS, NO_SYMLINKS, BENEATH */
	};

	if (!unavailable) {
		int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
		if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
			return fd;
		/* EPERM may be a sandbox that filters the call, or about this file: the component-by-component way will
		 * tell. */
		unavailable = errno == ENOSYS;
	}
#endif
	return open_stepwise(dir_fd, path, flags, mode);
}

/* ---- Exactly that mode ---- */

static int
settle_mode(int fd, mode_t mode)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && (st.st_mode & 07777) == mode)
		return 0;
	return sys_chmod_fd(fd, mode);
}

static int
open_checked(int dir_fd, const char *path, int flags, mode_t mode, bool *ret_made)
{
	bool create = flags & O_CREAT, exclusive = flags & O_EXCL;

	*ret_made = create && exclusive;
	if (path[0] == '/' && dir_fd == AT_FDCWD) /* the usual way to open a room's own folder */
		return openat(AT_FDCWD, path, flags | ALWAYS, mode);
	if (path[0] == '/' || (strstr(path, "..") && str_is_among(STR(".."), path, "/"))) {
		errno = EXDEV; /* it leads out; openat2 says the same */
		return -1;
	}
	/* O_CREAT without O_EXCL is split in two cases, because only a file that we made gets its mode set. */
	while (create && !exclusive) {
		int fd = open_beneath(dir_fd, path, flags & ~O_CREAT, 0);

		if (fd >= 0 || errno != ENOENT)
			return fd;
		fd = open_beneath(dir_fd, path, flags | O_EXCL, mode);
		*ret_made = true;
		if (fd >= 0 || errno != EEXIST)
			return fd;
		*ret_made = false;
	}
	return open_beneath(dir_fd, path, flags, mode);
}

int
sys_open(int dir_fd, const char *path, int flags, mode_t mode)
{
	/* Reading a folder would update its access time in a transaction of the file system, with the folder locked: a
	 * delivery into it would wait for another process's fsync. Only the owner may use O_NOATIME. */
	int quietly = flags & O_DIRECTORY && !(flags & REACH) ? O_NOATIME : 0;
	bool made = false;

	int fd = (int)RETRYING(POINT_OTHER, open_checked(dir_fd, path, flags | quietly, mode, &made));
	if (fd < 0 && errno == EPERM && quietly)
		fd = (int)RETRYING(POINT_OTHER, open_checked(dir_fd, path, flags, mode, &made));
	if (made)
		(void)record_file(fd, RECORD_CREATE, fd, dir_fd, path);
	if (fd >= 0 && made && settle_mode(fd, mode) < 0) {
		int saved = errno;
		if (strchr(path, '/') == NULL)
			(void)sys_unlink(dir_fd, path);
		(void)sys_close(fd);
		errno = saved;
		return -1;
	}
	return fd;
}

int
sys_open_reach(int dir_fd, const char *path)
{
	return sys_open(dir_fd, path, REACH | O_DIRECTORY, 0);
}

int
sys_open_user(const char *path, int flags)
{
	return (int)RETRYING(POINT_OTHER, openat(AT_FDCWD, path, O_RDONLY | ALWAYS | flags));
}

/* ---- Unnamed files ---- */

int
sys_open_unnamed(int dir_fd, mode_t mode)
{
#if defined(O_TMPFILE) && !defined(MR_PORTABLE)
	if (sys_break_is(BREAK_NO_UNNAMED)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	int fd = (int)RETRYING(POINT_OTHER, openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
	(void)record_file(fd, RECORD_UNNAMED, fd, -1, NULL);
	if (fd >= 0 && settle_mode(fd, mode) < 0)
		sys_close_fd(&fd);
	struct stat st;

	/* EISDIR, EINVAL, ENOENT: kernels and file systems that do not know the flag. ext4 also returns EPERM in a
	 * folder that was removed while it was open: the caller finds that out when the file gets its name. */
	if (fd < 0 && (errno == EISDIR || errno == EINVAL || errno == ENOENT ||
			  (errno == EPERM && fstat(dir_fd, &st) == 0 && st.st_nlink == 0)))
		errno = EOPNOTSUPP;
	return fd;
#else
	(void)dir_fd;
	(void)mode;
	errno = EOPNOTSUPP;
	return -1;
#endif
}

int
sys_open_memory(void)
{
#if defined(SYS_memfd_create)
	return (int)syscall(SYS_memfd_create, "mailroom", 1u /* MFD_CLOEXEC */);
#else
	errno = ENOSYS;
	return -1;
#endif
}

#ifndef MR_PORTABLE
/* Could this error mean that this way of naming is not available, and not that the name is impossible? */
static bool
way_is_barred(int error)
{
	return error == ENOENT || error == EACCES || error == EPERM || error == ENOSYS || error == EINVAL ||
	       error == ELOOP || error == EOPNOTSUPP;
}

/* By the descriptor alone, which older kernels allow only with a capability; else by its name in /proc, which sandboxes
 * may lack, and which is slower. The way that worked once is kept, so that its later errors concern the name and reach
 * the caller unchanged. */
enum { UNKNOWN, BY_PROC, BY_EMPTY_PATH };
static atomic_int way;

static int
link_some_way(int fd, int dir_fd, const char *name)
{
	struct stat st;
	char path[40];

	if (way != BY_PROC) {
		if (linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) == 0) {
			way = BY_EMPTY_PATH;
			return 0;
		}
		if (way == BY_EMPTY_PATH || !way_is_barred(errno))
			return -1;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW) == 0) {
		way = BY_PROC;
		return 0;
	}
	if (way == UNKNOWN && way_is_barred(errno)) /* or is the folder gone? */
		errno = fstat(dir_fd, &st) == 0 && st.st_nlink == 0 ? ENOENT : EOPNOTSUPP;
	return -1;
}
#endif

int
sys_link_unnamed(int fd, int dir_fd, const char *name)
{
#ifndef MR_PORTABLE
	return record_names(
	    (int)RETRYING(POINT_OTHER, link_some_way(fd, dir_fd, name)), RECORD_LINK, -1, NULL, dir_fd, name);
#else
	(void)fd;
	(void)dir_fd;
	(void)name;
	errno = EOPNOTSUPP;
	return -1;
#endif
}

/* By the descriptor, if that is known to work, the kernel need not look up the name: a fan-out links one file a
 * thousand times. */
int
sys_link_open(int fd, int from_fd, const char *from, int to_fd, const char *to)
{
#ifndef MR_PORTABLE
	if (way == BY_EMPTY_PATH) {
		int result = (int)RETRYING(POINT_OTHER, linkat(fd, "", to_fd, to, AT_EMPTY_PATH));

		return record_names(result, RECORD_LINK, from_fd, from, to_fd, to);
	}
#else
	(void)fd;
#endif
	return sys_link(from_fd, from, to_fd, to);
}

/* ---- Files of the kernel ---- */

ssize_t
sys_kernel_read(const char *path, char *ret, size_t n)
{
	size_t len = 0;
	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC); /* open of musl sets O_CLOEXEC by a second call */

	if (fd < 0)
		return -1;
	while (len < n - 1) {
		ssize_t got = read(fd, ret + len, n - 1 - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			(void)sys_close(fd);
			return -1;
		}
		if (got == 0)
			break;
		len += (size_t)got;
	}
	(void)sys_close(fd);
	ret[len] = '\0';
	return (ssize_t)len;
}

uint64_t
sys_kernel_inode(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

bool
sys_random(void *buf, size_t n)
{
	unsigned char *bytes = buf;
	int fd = -1;

#ifndef MR_PORTABLE
	while (n > 0) {
		ssize_t got = getrandom(bytes, n, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break;
		bytes += got;
		n -= (size_t)got;
	}
#endif
	if (n > 0)
		fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	while (n > 0) {
		ssize_t got = read(fd, bytes, n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		bytes += got;
		n -= (size_t)got;
	}
	sys_close_fd(&fd);
	return n == 0;
}

/* ---- Closing ---- */

#define MANY_FILES 4096

void
sys_close_from(int first)
{
#if !defined(MR_PORTABLE) && defined(SYS_close_range)
	if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
		return;
#endif
	for (int fd = first; fd < MANY_FILES; fd++)
		(void)close(fd);
}
