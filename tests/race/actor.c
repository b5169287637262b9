/* SPDX-License-Identifier: MIT */
/* actor.c - a command that stops before every call that matters. See race.h. */
#include "race.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_US 3000 /* a wait is looked at that often */
#define ASLEEP_LOOKS 2   /* asleep in so many looks: it waits for somebody */
#define KNOCKS 4         /* so many calls of flock in a row: it asks again and again for a lock that another has */

/* What another process could notice, or what could notice another: names, folders, locks, bytes. */
static bool
matters(uint64_t number)
{
	switch (number) {
#ifdef SYS_open
	case SYS_open:
	case SYS_stat:
	case SYS_lstat:
	case SYS_access:
	case SYS_rename:
	case SYS_link:
	case SYS_unlink:
	case SYS_mkdir:
	case SYS_rmdir:
	case SYS_chmod:
#endif
	case SYS_openat:
	case SYS_openat2:
	case SYS_newfstatat:
	case SYS_statx:
	case SYS_faccessat:
	case SYS_renameat2:
#ifdef SYS_renameat
	case SYS_renameat:
#endif
	case SYS_linkat:
	case SYS_unlinkat:
	case SYS_mkdirat:
	case SYS_getdents64:
	case SYS_flock:
	case SYS_fsync:
	case SYS_fdatasync:
	case SYS_write:
	case SYS_pwrite64:
	case SYS_pread64:
	case SYS_copy_file_range:
	case SYS_utimensat:
	case SYS_fchmod:
		return true;
	default:
		return false;
	}
}

static void
on_alarm(int number)
{
	(void)number;
}

void
actors_patience(bool on)
{
	struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART: it is there to break waits */
	struct itimerval every = { { 0, on ? PATIENCE_US : 0 }, { 0, on ? PATIENCE_US : 0 } };

	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_REAL, &every, NULL);
}

static bool
asleep(pid_t pid)
{
	char path[40], text[256] = "";

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	const char *end = n > 0 ? strrchr(text, ')') : NULL;
	return end && strncmp(end, ") S", 3) == 0;
}

/* True: it stopped or ended. False: it sleeps, or `looks` were not enough. */
static bool
await(struct actor *a, unsigned looks)
{
	for (unsigned sleeping = 0; looks > 0;) {
		pid_t got = waitpid(a->pid, &a->status, __WALL);
		if (got == a->pid)
			return true;
		if (got < 0 && errno != EINTR) {
			a->ended = true;
			return true;
		}
		looks--;
		sleeping = asleep(a->pid) ? sleeping + 1 : 0;
		if (sleeping >= ASLEEP_LOOKS)
			return false;
	}
	return false;
}

/* Stopped: is it before a call that matters? */
static bool
at_step(struct actor *a)
{
	struct __ptrace_syscall_info info = { 0 };

	if (WSTOPSIG(a->status) != (SIGTRAP | 0x80))
		return false;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, a->pid, (void *)sizeof(info), &info) <= 0)
		return false;
	if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !matters(info.entry.nr))
		return false;
	a->knocks = info.entry.nr == SYS_flock ? a->knocks + 1 : 0;
	return true;
}

static void
go_on(struct actor *a)
{
	int sig = WIFSTOPPED(a->status) ? WSTOPSIG(a->status) : 0;

	if (sig == SIGTRAP || sig == (SIGTRAP | 0x80) || sig == SIGSTOP)
		sig = 0;
	(void)ptrace(PTRACE_SYSCALL, a->pid, NULL, (void *)(uintptr_t)sig);
	a->running = true;
}

enum reach
actor_step(struct actor *a)
{
	if (a->ended)
		return REACH_END;
	if (!a->running)
		go_on(a);
	for (;;) {
		if (!await(a, 700))
			return REACH_BLOCKED;
		a->running = false;
		if (a->ended || WIFEXITED(a->status) || WIFSIGNALED(a->status)) {
			a->ended = true;
			return REACH_END;
		}
		if (at_step(a)) {
			a->steps++;
			if (a->knocks < KNOCKS)
				return REACH_STEP;
			a->knocks = 0;
			return REACH_BLOCKED;
		}
		go_on(a);
	}
}

static _Noreturn void
become(const struct actor *a, const char *const *argv, const char *dir)
{
	int out = open(a->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), null = open("/dev/null", O_RDWR);
	char err[200];

	(void)snprintf(err, sizeof(err), "%s.err", a->out);
	int errors = open(err, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0 || errors < 0 || chdir(dir) < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(errors, 2) < 0)
		_exit(126);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(125);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

bool
actor_start(struct actor *a, const char *const *argv, const char *dir)
{
	const char *out = a->out;

	*a = (struct actor){ .out = out };
	a->pid = fork();
	if (a->pid == 0)
		become(a, argv, dir);
	if (a->pid < 0)
		return false;
	while (waitpid(a->pid, &a->status, 0) < 0 && errno == EINTR)
		;
	if (!WIFSTOPPED(a->status)) {
		a->ended = true;
		return false;
	}
	if (ptrace(PTRACE_SETOPTIONS, a->pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
		return false;
	return true;
}

void
actor_kill(struct actor *a)
{
	if (a->ended)
		return;
	(void)kill(a->pid, SIGKILL);
	while (waitpid(a->pid, &a->status, __WALL) != a->pid || WIFSTOPPED(a->status))
		if (errno == ECHILD)
			break;
	a->ended = a->killed = true;
}

bool
actors_finish(struct actor *a, struct actor *b)
{
	struct actor *both[] = { a, b };
	unsigned idle = 0;

	for (unsigned i = 0;; i++) {
		struct actor *one = both[i % 2];
		bool rest = (a && !a->ended) || (b && !b->ended);
		if (!rest)
			return true;
		if (!one || one->ended)
			continue;
		enum reach reach = actor_step(one);
		while (reach == REACH_STEP)
			reach = actor_step(one);
		idle = reach == REACH_BLOCKED ? idle + 1 : 0;
		if (idle > 1500) /* about ten seconds */
			return false;
	}
}

int
actor_exit(const struct actor *a)
{
	if (a->killed)
		return -1;
	return WIFEXITED(a->status) ? WEXITSTATUS(a->status) : -2;
}
