/* SPDX-License-Identifier: MIT */
/* run.c - one command, with what may happen to it. */
#include "chaos.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint32_t
dice(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

double
now_s(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void
become(const struct order *o, const char *const *argv, int out)
{
	const char *full[40] = { o->bin };
	size_t n = 1;
	int in = open(o->input ? o->input : "/dev/null", O_RDONLY), null = open("/dev/null", O_RDWR);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (*argv && n < 39)
		full[n++] = *argv++;
	full[n] = NULL;
	if (chdir(o->dir) < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(null, 2) < 0)
		_exit(126);
	(void)unsetenv("MAILROOM_FAULT");
	(void)unsetenv("MAILROOM_TEST_CLOCK_OFFSET_MS");
	if (o->fault)
		(void)setenv("MAILROOM_FAULT", o->fault, 1);
	if (o->clock)
		(void)setenv("MAILROOM_TEST_CLOCK_OFFSET_MS", o->clock, 1);
	(void)execv(o->bin, (char *const *)(uintptr_t)full);
	_exit(127);
}

static pid_t
child_of(pid_t pid)
{
	char path[64], text[32] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	if (fd >= 0)
		(void)close(fd);
	return (pid_t)strtol(text, NULL, 10);
}

/* Reads what it prints, as its reader would; kills it when its time has come. */
static void
listen_to(pid_t pid, int fd, const struct order *o, const char *const *argv, struct answer *ret)
{
	size_t n = 0;
	double end = now_s() + (o->kill_after_us ? o->kill_after_us / 1e6 : 20);
	bool killed = false;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		double left = end - now_s();
		struct timespec wait = { .tv_sec = left > 0 ? (time_t)left : 0 };
		wait.tv_nsec = left > 0 ? (long)((left - (double)wait.tv_sec) * 1e9) : 0;
		int got = ppoll(&p, 1, killed ? NULL : &wait, NULL);
		if (got == 0 && !killed) {
			pid_t child = o->kill_child ? child_of(pid) : 0;
			(void)kill(child > 1 ? child : pid, SIGKILL);
			killed = true;
			if (child > 1)
				atomic_fetch_add(&model->killed, 1);
			if (!o->kill_after_us)
				(void)snprintf(model->crash, sizeof(model->crash),
				    "'%s %s %s' under '%s' did not end within 20 s", argv[0], argv[1],
				    argv[1] && argv[2] ? argv[2] : "", o->fault ? o->fault : "");
			continue;
		}
		char scrap[4096];
		bool room = n + 1 < sizeof(ret->out);
		ssize_t len = read(fd, room ? ret->out + n : scrap, room ? sizeof(ret->out) - 1 - n : sizeof(scrap));
		if (len <= 0 && errno != EINTR)
			break;
		if (len == 0)
			break;
		n += room && len > 0 ? (size_t)len : 0;
	}
	ret->out[n] = '\0';
}

void
run_command(const struct order *o, const char *const *argv, struct answer *ret)
{
	int pipes[2], status = 0;

	ret->exit_code = 126;
	ret->out[0] = '\0';
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0)
		become(o, argv, pipes[1]);
	(void)close(pipes[1]);
	errno = 0;
	if (pid > 0)
		listen_to(pid, pipes[0], o, argv, ret);
	(void)close(pipes[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	ret->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	atomic_fetch_add(&model->commands, 1);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		atomic_fetch_add(&model->killed, 1);
	else if (WIFSIGNALED(status) || ret->exit_code >= 99) {
		atomic_fetch_add(&model->crashed, 1);
		(void)snprintf(model->crash, sizeof(model->crash), "'%s %s' under '%s' ended with status %x", argv[0],
		    argv[1] ? argv[1] : "", o->fault ? o->fault : "", (unsigned)status);
	} else if (ret->exit_code != 0 && ret->exit_code != 3)
		atomic_fetch_add(&model->failed, 1);
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

void
remove_tree(const char *path)
{
	(void)nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
