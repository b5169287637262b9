/* SPDX-License-Identifier: MIT */
/* surroundings.c - disks that are full or read-only, other machines, no /proc, no links. Most of it needs root; all
 * mounts are made in a mount namespace of our own, so that they end with us. */
#include "chaos.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const around_names[AROUND_N] = { "plain", "other machines", "no /proc", "no cross-folder links",
	"full disk", "read-only disk", "clock steps" };

static bool
own_mounts(void)
{
	static bool done;

	if (!done && (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return false;
	done = true;
	return true;
}

static bool
mount_disk(struct chaos *c, const char *options)
{
	return mount("chaos", c->dir, "tmpfs", 0, options) == 0;
}

bool
around_enter(struct chaos *c)
{
	bool works = true;

	if (c->around == AROUND_FULL)
		works = own_mounts() && mount_disk(c, "size=2m");
	else if (c->around == AROUND_READ_ONLY)
		works = own_mounts() && mount_disk(c, "size=64m");
	else if (c->around == AROUND_SPACES || c->around == AROUND_NO_PROC)
		works = own_mounts();
	if (!works)
		(void)printf("chaos: %s: skipped, %s (root is needed)\n", around_names[c->around], strerror(errno));
	return works;
}

void
around_leave(struct chaos *c)
{
	if (c->around == AROUND_FULL || c->around == AROUND_READ_ONLY)
		(void)umount2(c->dir, MNT_DETACH);
}

/* ---- A worker's own world ---- */

static void
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		(void)fprintf(stderr, "chaos: cannot write '%s'\n", path);
	if (fd >= 0)
		(void)close(fd);
}

/* Another machine that shares the folder: its own process numbers, its own boot. */
static void
be_another_machine(unsigned number)
{
	char path[64], id[40];

	(void)snprintf(path, sizeof(path), "/tmp/mailroom-boot.%d.%u", (int)getpid(), number);
	(void)snprintf(id, sizeof(id), "%08x-0000-4000-8000-00000000%04x\n", 0xabc0 + number, number);
	if (unshare(CLONE_NEWNS) < 0 || mount("proc", "/proc", "proc", 0, NULL) < 0)
		_exit(77);
	write_file(path, id);
	if (mount(path, "/proc/sys/kernel/random/boot_id", NULL, MS_BIND, NULL) < 0)
		_exit(77);
	(void)unlink(path);
}

static void
hide_proc(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("empty", "/proc", "tmpfs", 0, "size=4k") < 0)
		_exit(77);
}

/* A sandbox that gives no right to refer: a file can be linked or renamed only within its folder, else EXDEV. What it
 * does handle, making block devices, nobody misses. */
static void
refuse_links(void)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK };
	long rules = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

	if (rules < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_landlock_restrict_self, rules, 0) < 0)
		_exit(77);
	(void)close((int)rules);
}

pid_t
around_worker(struct chaos *c, unsigned number, void (*work_there)(struct chaos *, unsigned))
{
	bool machine = c->around == AROUND_SPACES;
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (machine) { /* the next child is process 1 there; its children are the commands */
		int status = 0;
		if (unshare(CLONE_NEWPID) < 0)
			_exit(77);
		pid_t first = fork();
		if (first != 0) {
			while (waitpid(first, &status, 0) < 0 && errno == EINTR)
				;
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
		}
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_another_machine(number);
	}
	if (c->around == AROUND_NO_PROC)
		hide_proc();
	if (c->around == AROUND_NO_LINKS)
		refuse_links();
	work_there(c, number);
	_exit(0);
}

/* ---- What happens to the disk meanwhile ---- */

static void
fill(const struct chaos *c, size_t bytes)
{
	static char zeros[1 << 16];
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/filler", c->dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	for (size_t n = 0; fd >= 0 && n < bytes; n += sizeof(zeros))
		if (write(fd, zeros, sizeof(zeros)) <= 0)
			break;
	if (fd >= 0)
		(void)close(fd);
}

void
around_disturb(struct chaos *c, uint64_t *state)
{
	bool bad = dice(state) % 2;

	if (c->around == AROUND_FULL)
		fill(c, bad ? 4u << 20 : 0);
	if (c->around == AROUND_READ_ONLY)
		(void)mount(NULL, c->dir, NULL, MS_REMOUNT | (bad ? MS_RDONLY : 0), "size=64m");
}

void
around_calm(struct chaos *c)
{
	if (c->around == AROUND_READ_ONLY)
		(void)mount(NULL, c->dir, NULL, MS_REMOUNT, "size=64m");
	if (c->around == AROUND_FULL) {
		fill(c, 0);
		(void)mount(NULL, c->dir, NULL, MS_REMOUNT, "size=64m"); /* recovery needs room, too */
	}
}
