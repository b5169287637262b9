/* SPDX-License-Identifier: MIT */
/*
 * bare.c - the same work without mailroom: only the system calls that the promises of a delivery need, on
 * folders that are open already. This is the floor; what mailroom takes above it is its own.
 */
#include "bench.h"
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TEXT_BYTES (BODY_BYTES + 260) /* the body and the headers that a message has */
#define FAN_OUT_OPEN 256              /* folders kept open between link and sync */

double
now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void
encode32(char *to, size_t n, uint64_t value)
{
	static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

	while (n-- > 0) {
		to[n] = digits[value & 31];
		value >>= 5;
	}
}

void
letter_name(char ret[LETTER_NAME_MAX], int64_t time_ms, const char *flags)
{
	static uint64_t count;
	char id[MR_ID_LEN + 1] = { 0 };

	encode32(id, 10, (uint64_t)time_ms);
	encode32(id + 10, 4, (uint64_t)getpid()); /* of several processes in one folder */
	encode32(id + 14, 12, ++count);
	(void)snprintf(ret, LETTER_NAME_MAX, "%lld.%s.mr%s", (long long)(time_ms / 1000), id, flags);
}

static int
open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		die("cannot open '%s'", path);
	return fd;
}

void
bare_box_open(struct bare_box *box, const char *path)
{
	char *new = path_of("%s/new", path), *sent = path_of("%s/sent", path);

	make_folder(path);
	make_folder(new);
	make_folder(sent);
	box->new_fd = open_folder(new);
	box->sent_fd = open_folder(sent);
	free(new);
	free(sent);
}

static void
must(bool ok, const char *what)
{
	if (!ok)
		die("bare %s failed", what);
}

static int
write_letter(int dir_fd)
{
	static char text[TEXT_BYTES];
	int fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0400);

	if (text[0] == '\0')
		memset(text, 'x', sizeof(text));
	must(fd >= 0, "open");
	must(write(fd, text, sizeof(text)) == (ssize_t)sizeof(text), "write");
	must(fsync(fd) == 0, "fsync");
	return fd;
}

/* The shorter way that newer kernels, and root, have; else by /proc. */
static void
name_letter(int fd, int dir_fd, const char *name)
{
	static bool barred;
	char path[32];

	if (!barred && linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) == 0)
		return;
	barred = true;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW) == 0, "link");
}

double
bare_send(const struct bare_box *box)
{
	char name[LETTER_NAME_MAX];
	double began = now_us();

	letter_name(name, (int64_t)time(NULL) * 1000, "");
	int fd = write_letter(box->new_fd);
	name_letter(fd, box->new_fd, name);
	must(fsync(fd) == 0 && fsync(box->new_fd) == 0, "fsync");
	(void)strcat(name, ":2,S");
	name_letter(fd, box->sent_fd, name);
	(void)close(fd);
	return now_us() - began;
}

/* Links first, syncs behind: after the first commit of a journal the other folders are nearly free. */
double
bare_fan_out(int base_fd, size_t n)
{
	char name[LETTER_NAME_MAX], folder[32];
	int open_fds[FAN_OUT_OPEN];
	double began = now_us();

	letter_name(name, (int64_t)time(NULL) * 1000, "");
	int fd = write_letter(base_fd);
	for (size_t first = 0; first < n; first += FAN_OUT_OPEN) {
		size_t end = n - first < FAN_OUT_OPEN ? n - first : FAN_OUT_OPEN;

		for (size_t i = 0; i < end; i++) {
			(void)snprintf(folder, sizeof(folder), "%zu/new", first + i);
			open_fds[i] = openat(base_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			must(open_fds[i] >= 0, "open");
			name_letter(fd, open_fds[i], name);
		}
		for (size_t i = 0; i < end; i++) {
			must(fsync(open_fds[i]) == 0, "fsync");
			(void)close(open_fds[i]);
		}
	}
	(void)close(fd);
	return now_us() - began;
}

static void
read_folder(int dir_fd, bool contents)
{
	static char text[65536];
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fdopendir(fd);

	must(dir != NULL, "opendir");
	for (struct dirent *e; (e = readdir(dir)) != NULL;) {
		if (e->d_name[0] == '.' || !contents)
			continue;
		int file = openat(fd, e->d_name, O_RDONLY | O_CLOEXEC);

		must(file >= 0 && read(file, text, sizeof(text)) > 0, "read");
		(void)close(file);
	}
	(void)closedir(dir);
}

double
bare_inbox(int new_fd, int cur_fd)
{
	double began = now_us();

	read_folder(new_fd, true);
	read_folder(cur_fd, false);
	return now_us() - began;
}

int
run_program(const struct bench *b, const char *const *argv, const char *output)
{
	/* The caller's variables would say which harness session this is; here nobody is in one. */
	char *home = path_of("HOME=%s", b->work);
	char *environment[] = { home, (char[]){ "PATH=/usr/bin:/bin" }, (char *)(uintptr_t)b->variable, NULL };
	posix_spawn_file_actions_t files;
	int status = -1;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawn_file_actions_addopen(&files, 0, b->input ? b->input : "/dev/null", O_RDONLY, 0);
	(void)posix_spawn_file_actions_addopen(
	    &files, 1, output ? output : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environment) != 0)
		die("cannot start '%s'", argv[0]);
	(void)waitpid(pid, &status, 0);
	(void)posix_spawn_file_actions_destroy(&files);
	free(home);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

double
run_timed(const struct bench *b, const char *const *argv)
{
	double began = now_us();

	if (run_program(b, argv, NULL) != 0)
		die("'%s' failed", argv[0]);
	return now_us() - began;
}
