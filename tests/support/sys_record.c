/* SPDX-License-Identifier: MIT */
/* sys_record.c - see sys_record.h. Paths are what the kernel calls the folder at that moment, so that a folder that was
 * renamed is still the same one; files are told by their inode. */
#include "support/sys_record.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static int record_fd = -1;

int
sys_record_to(const char *path)
{
	if (record_fd >= 0)
		(void)close(record_fd);
	record_fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	return path && record_fd < 0 ? -1 : 0;
}

static void
full_path(int dir_fd, const char *name, char ret[2 * PATH_MAX])
{
	char link[40], dir[PATH_MAX] = "";

	ret[0] = '\0';
	if (name == NULL)
		return;
	if (dir_fd == AT_FDCWD)
		(void)snprintf(link, sizeof(link), "/proc/self/cwd");
	else
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dir_fd);
	if (name[0] != '/' && readlink(link, dir, sizeof(dir) - 1) < 0)
		return;
	(void)snprintf(ret, 2 * PATH_MAX, "%s%s%s", dir, name[0] == '/' ? "" : "/", name);
}

static void
fill(struct record_head *head, const struct stat *st)
{
	head->inode = (uint64_t)st->st_ino;
	head->mode = (uint32_t)st->st_mode;
	head->mtime_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* One call, so that processes that share the file do not mix. */
static void
put(struct record_head *head, const char *a, const char *b, const void *bytes)
{
	head->magic = RECORD_MAGIC;
	head->a_len = (uint32_t)strlen(a);
	head->b_len = (uint32_t)strlen(b);
	struct iovec parts[4] = { { head, sizeof(*head) }, { (char *)(uintptr_t)a, head->a_len },
		{ (char *)(uintptr_t)b, head->b_len }, { (char *)(uintptr_t)bytes, head->bytes_len } };
	size_t want = sizeof(*head) + head->a_len + head->b_len + head->bytes_len;

	if (writev(record_fd, parts, 4) != (ssize_t)want) {
		(void)fprintf(stderr, "mailroom: the record of calls cannot be written\n");
		abort();
	}
}

int
record_names(int result, enum record_call kind, int a_fd, const char *a, int b_fd, const char *b)
{
	struct record_head head = { .kind = kind };
	char from[2 * PATH_MAX], to[2 * PATH_MAX];
	int saved = errno;
	struct stat st;

	if (result < 0 || record_fd < 0)
		return result;
	full_path(a_fd, a, from);
	full_path(b_fd, b, to);
	if (b && fstatat(b_fd, b, &st, AT_SYMLINK_NOFOLLOW) == 0)
		fill(&head, &st);
	else if (kind == RECORD_MKDIR && fstatat(a_fd, a, &st, AT_SYMLINK_NOFOLLOW) == 0)
		fill(&head, &st);
	put(&head, from, to, "");
	errno = saved;
	return result;
}

int
record_file(int result, enum record_call kind, int fd, int dir_fd, const char *name)
{
	struct record_head head = { .kind = kind };
	char path[2 * PATH_MAX];
	int saved = errno;
	struct stat st;

	if (result < 0 || record_fd < 0 || fstat(fd, &st) < 0)
		return result;
	full_path(dir_fd, name, path);
	fill(&head, &st);
	put(&head, path, "", "");
	errno = saved;
	return result;
}

/* Read back: the kernel may have copied them without our seeing any. */
ssize_t
record_bytes(ssize_t n, int fd, off_t at)
{
	struct record_head head = { .kind = RECORD_WRITE, .bytes_len = n > 0 ? (uint32_t)n : 0 };
	int saved = errno;
	struct stat st, own;

	/* Standard output may be the record itself. */
	if (n <= 0 || record_fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fstat(record_fd, &own) < 0 ||
	    own.st_ino == st.st_ino)
		return n;
	if (at < 0)
		at = lseek(fd, 0, SEEK_CUR) - n;
	char link[40], *bytes = malloc((size_t)n);

	/* Through /proc: the descriptor itself may be for writing only. */
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	int again = open(link, O_RDONLY | O_CLOEXEC);
	if (bytes && again >= 0 && pread(again, bytes, (size_t)n, at) == n) {
		fill(&head, &st);
		head.at = (uint64_t)at;
		put(&head, "", "", bytes);
	}
	if (again >= 0)
		(void)close(again);
	free(bytes);
	errno = saved;
	return n;
}
