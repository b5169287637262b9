/* SPDX-License-Identifier: MIT */
/* waiters.c - more processes that wait than the kernel wakes: what a look costs each of them. A user namespace of its
 * own takes the last inotify instance from each, as a machine with many waiters does, so that it looks every two
 * seconds. */
#include "growth.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAITERS_MAX 1000
#define SETTLE_S 8 /* the first looks follow each other faster */
#define WATCHED_S 10
#define LOOK_US 50 /* at most */
#define ROOM_AGENTS 5000

static const long waiters[] = { 10, WAITERS_MAX };

static bool
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		(void)close(fd);
	return done;
}

/* Takes the instances away from this process. */
static bool
go_blind(void)
{
	char map[40];

	(void)snprintf(map, sizeof(map), "0 %u 1", (unsigned)getuid());
	return unshare(CLONE_NEWUSER) == 0 && write_file("/proc/self/uid_map", map) &&
	       write_file("/proc/sys/user/max_inotify_instances", "0");
}

static pid_t
start_waiter(struct bench *b, const struct town *t, long i)
{
	char *name = path_of("rig%03ld/a%05ld", i / 10, i), *home = path_of("HOME=%s", b->work);
	pid_t pid = fork();

	if (pid < 0)
		die("cannot fork");
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR);

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)dup2(null, 0), (void)dup2(null, 1), (void)dup2(null, 2);
		if (chdir(t->folder) == 0 && go_blind())
			(void)execle(b->command, "mailroom", "--as", name, "wait", "--timeout", "120", (char *)NULL,
			    (char *const[]){ home, NULL });
		_exit(127);
	}
	free(name), free(home);
	return pid;
}

struct spent { /* of all waiters */
	double cpu_us, looks, peak_kb;
};

static double
number_in(pid_t pid, const char *file, const char *before)
{
	static char text[4096];
	char *path = path_of("/proc/%d/%s", (int)pid, file);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

	if (fd >= 0)
		(void)close(fd);
	free(path);
	text[n > 0 ? n : 0] = '\0';
	const char *at = strstr(text, before);

	return at ? atof(at + strlen(before)) : -1;
}

/* How many could be counted: fewer than n if one has ended, or the kernel does not tell. */
static long
count_spent(const pid_t *pids, long n, struct spent *ret)
{
	*ret = (struct spent){ 0 };
	for (long i = 0; i < n; i++) {
		double ns = number_in(pids[i], "schedstat", ""),
		       looks = number_in(pids[i], "status", "\nvoluntary_ctxt_switches:"),
		       kb = number_in(pids[i], "status", "VmHWM:");

		if (ns < 0 || looks < 0 || kb < 0)
			return i;
		ret->cpu_us += ns / 1e3;
		ret->looks += looks;
		ret->peak_kb = kb > ret->peak_kb ? kb : ret->peak_kb;
	}
	return n;
}

static bool
measure_waiters(struct bench *b, struct town *t, long n)
{
	static pid_t pids[WAITERS_MAX];
	struct spent then, now;

	for (long i = 0; i < n; i++)
		pids[i] = start_waiter(b, t, i);
	(void)sleep(SETTLE_S + (unsigned)(n / 200));
	long counted = count_spent(pids, n, &then);

	(void)sleep(WATCHED_S);
	counted = counted == n ? count_spent(pids, n, &now) : counted;
	for (long i = 0; i < n; i++)
		(void)kill(pids[i], SIGKILL);
	for (long i = 0; i < n; i++)
		(void)waitpid(pids[i], NULL, 0);
	if (counted < n || now.looks <= then.looks) {
		(void)printf(
		    "waiters: not here: waiter %ld of %ld could not start in a user namespace, has ended, or has no "
		    "/proc/PID/schedstat\n",
		    counted, n);
		return true;
	}
	double us = (now.cpu_us - then.cpu_us) / (now.looks - then.looks);
	FILE *out = record_begin("growth");

	record_text(out, "name", "waiters");
	record_text(out, "what", "CPU of one look of wait without inotify");
	record_text(out, "by", "mailroom");
	record_text(out, "of", "waiters");
	record_number(out, "n", (double)n);
	record_number(out, "us", us);
	record_number(out, "peak_kb", now.peak_kb);
	record_flag(out, "bare", false);
	record_number(out, "ms", LOOK_US / 1e3);
	record_flag(out, "met", us <= LOOK_US);
	record_end(out);
	(void)printf("%-20s %-9s %8ld %11.3f ms %8.0f KB  at most %.3f ms%s\n", "waiters", "mailroom", n, us / 1e3,
	    now.peak_kb, LOOK_US / 1e3, us <= LOOK_US ? "" : "  MISSED");
	return us <= LOOK_US;
}

unsigned
rows_waiters(struct bench *b, long most)
{
	struct town *t = town_of(b, AGENTS, most < ROOM_AGENTS ? most < WAITERS_MAX ? WAITERS_MAX : most : ROOM_AGENTS);
	unsigned missed = 0;

	for (size_t i = 0; i < sizeof(waiters) / sizeof(waiters[0]); i++)
		missed += !measure_waiters(b, t, waiters[i]);
	return missed;
}
