/* SPDX-License-Identifier: MIT */
/*
 * wake.c - from just before a message gets its name to the return of the process that waits for it. Both
 * sides are a child that sleeps: one in a bare read of inotify, one in mr_wait. The child writes the time at
 * which it came back into memory shared with the parent; pipes keep the two in step.
 */
#include "bench.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ASLEEP_NS 4000000 /* until the child surely sleeps; it looks through its folders first */
#define WAIT_MS 20000
#define LETTER "letter-wake" /* the message that comes, again and again under another name */

struct sleeper {
	const char *folder;  /* new/ that it watches */
	struct bench *bench; /* NULL: bare inotify */
	int inotify_fd;
	struct mr_room *room;
	volatile double *woke_us; /* shared */
	int go[2], back[2];
	int new_fd;
};
struct pair {
	struct sleeper bare, ours;
};

static void
sleep_once(struct sleeper *s)
{
	char events[4096];
	struct mr_error err = { 0 };

	if (!s->bench) {
		if (read(s->inotify_fd, events, sizeof(events)) <= 0)
			die("cannot read from inotify");
		return;
	}
	check(mr_wait(s->room, "walt", NULL, WAIT_MS, NULL, &err), &err, "wait");
}

_Noreturn static void
be_sleeper(struct sleeper *s)
{
	struct mr_error err = { 0 };
	char byte;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)close(s->go[1]);
	(void)close(s->back[0]);
	if (s->bench) {
		check(mr_room_open(".mailroom", NULL, &s->room, &err), &err, "open");
	} else {
		s->inotify_fd = inotify_init1(IN_CLOEXEC);
		if (inotify_add_watch(s->inotify_fd, s->folder, IN_CREATE | IN_MOVED_TO) < 0)
			die("cannot watch '%s'", s->folder);
	}
	byte = 'r'; /* it watches: what comes from now on is seen, however busy the machine is */
	while (write(s->back[1], &byte, 1) == 1 && read(s->go[0], &byte, 1) == 1) {
		sleep_once(s);
		*s->woke_us = now_us();
	}
	_exit(0);
}

static pid_t
start_sleeper(struct sleeper *s)
{
	void *shared = mmap(NULL, sizeof(double), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED || pipe2(s->go, O_CLOEXEC) < 0 || pipe2(s->back, O_CLOEXEC) < 0)
		die("cannot start a waiting process");
	s->woke_us = shared;
	s->new_fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid_t pid = fork();
	char byte;

	if (pid < 0)
		die("cannot fork");
	if (pid == 0)
		be_sleeper(s);
	(void)close(s->go[0]);
	(void)close(s->back[1]);
	if (read(s->back[0], &byte, 1) != 1)
		die("the waiting process is gone");
	return pid;
}

static double
wake(struct sleeper *s)
{
	char name[LETTER_NAME_MAX], byte = 'g';

	letter_name(name, (int64_t)time(NULL) * 1000, "");
	if (write(s->go[1], &byte, 1) != 1)
		die("the waiting process is gone");
	(void)nanosleep(&(struct timespec){ .tv_nsec = ASLEEP_NS }, NULL);
	double began = now_us();

	if (linkat(AT_FDCWD, LETTER, s->new_fd, name, 0) < 0)
		die("cannot link a message");
	if (read(s->back[0], &byte, 1) != 1)
		die("the waiting process is gone");
	(void)unlinkat(s->new_fd, name, 0);
	return *s->woke_us - began;
}

static double
wake_bare(void *ctx)
{
	return wake(&((struct pair *)ctx)->bare);
}

static double
wake_ours(void *ctx)
{
	return wake(&((struct pair *)ctx)->ours);
}

static void
stop_sleeper(struct sleeper *s, pid_t pid)
{
	(void)waitpid(pid, NULL, 0);
	(void)close(s->back[0]);
	(void)close(s->new_fd);
}

static void
write_letter_file(void)
{
	FILE *letter = fopen(LETTER, "w");

	if (!letter || fputs("From: alice@bench\nTo: walt@bench\n\nhi\n", letter) < 0 || fclose(letter) != 0)
		die("cannot write '%s'", LETTER);
}

void
rows_wake(struct bench *b)
{
	struct pair pair = { .bare = { .folder = "bare-wake/new" },
		.ours = { .folder = ".mailroom/agents/walt/new", .bench = b } };
	struct comparison row = { .name = "wake-up",
		.what = "from the link of a message to the return of mr_wait",
		.note = "bare: a blocking read of inotify",
		.budget = 2.5,
		.reason =
		    "a control message ends nobody's wait, so the message that came is opened and its header lines "
		    "are read before the wait ends; poll, open, read and close behind a bare read of inotify make "
		    "1.4 to 1.7 by themselves",
		.ops = 40,
		.bare = wake_bare,
		.ours = wake_ours,
		.ctx = &pair };
	struct bare_box box;

	register_agent(b, "walt");
	write_letter_file();
	bare_box_open(&box, "bare-wake");
	pid_t bare = start_sleeper(&pair.bare), ours = start_sleeper(&pair.ours);

	compare(&row);
	/* Both before the first is waited for: the second has inherited the first one's pipe. */
	(void)close(pair.bare.go[1]);
	(void)close(pair.ours.go[1]);
	stop_sleeper(&pair.bare, bare);
	stop_sleeper(&pair.ours, ours);
	(void)close(box.new_fd);
	(void)close(box.sent_fd);
}
