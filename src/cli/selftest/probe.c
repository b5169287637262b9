/* SPDX-License-Identifier: MIT */
/* probe.c - what the disk and the kernel under a folder can do, tried one by one. What mailroom cannot do without is a
 * failure; for everything else it has another way, and says which. */
#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/storage.h"
#include "base/sys.h"
#include "cli/selftest/selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/inotify.h>
#endif

#define EVENT_MS 1000

struct probing {
	struct cli *cli;
	int fd; /* the scratch folder */
	size_t missing, other;
};

/* ---- The tries: 0, or -1 and errno ---- */

static int
put(int dir_fd, const char *name, const char *text)
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	return fd < 0 || sys_write_all(fd, text, strlen(text)) < 0 ? -1 : sys_fsync(fd);
}

static int
try_write(struct probing *p)
{
	mr_auto(buf_done) struct buf back = BUF_INIT;
	struct mr_error err = { 0 };

	if (put(p->fd, "a", "text\n") < 0)
		return -1;
	if (file_read(p->fd, "a", 100, &back, &err) == MR_OK && str_eq(buf_str(&back), STR("text\n")))
		return 0;
	errno = EIO;
	return -1;
}

static int
try_folder_sync(struct probing *p)
{
	return sys_fsync(p->fd);
}

static int
try_mode(struct probing *p)
{
	struct stat st;

	if (sys_stat(p->fd, "a", &st) < 0)
		return -1;
	errno = EPERM;
	return (st.st_mode & 0777) == 0600 ? 0 : -1;
}

/* Into another folder, as a message goes to a mailbox; what is there already is never overwritten. */
static int
try_link(struct probing *p)
{
	mr_auto(sys_close_fd) int other = -1;

	if (sys_mkdir(p->fd, "folder", 0700) < 0 ||
	    (other = sys_open(p->fd, "folder", O_RDONLY | O_DIRECTORY, 0)) < 0 ||
	    sys_link(p->fd, "a", other, "linked") < 0)
		return -1;
	bool refused = sys_link(p->fd, "a", other, "linked") < 0 && errno == EEXIST;

	errno = EEXIST;
	return refused ? 0 : -1;
}

static int
try_rename(struct probing *p)
{
	if (put(p->fd, "b", "b") < 0)
		return -1;
	if (sys_rename_new(p->fd, "b", p->fd, "a") == 0 || errno != EEXIST)
		return errno = errno ? errno : EEXIST, -1;
	return sys_rename_new(p->fd, "b", p->fd, "folder/c");
}

static int
try_exchange(struct probing *p)
{
	return put(p->fd, "x", "x") < 0 ? -1 : sys_rename_exchange(p->fd, "x", p->fd, "a");
}

static int
try_unnamed(struct probing *p)
{
	mr_auto(sys_close_fd) int fd = sys_open_unnamed(p->fd, 0600);

	return fd < 0 || sys_write_all(fd, "u", 1) < 0 ? -1 : sys_link_unnamed(fd, p->fd, "unnamed");
}

/* Two who open a file exclude each other, and the kernel lets go for one that dies. */
static int
try_lock(struct probing *p)
{
	mr_auto(sys_close_fd) int mine = -1;
	int status = 1, ends[2];
	char ready;

	if (put(p->fd, "lock", "") < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = sys_open(p->fd, "lock", O_RDWR, 0);

		if (fd >= 0 && sys_flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)!write(ends[1], "y", 1);
		(void)close(ends[1]);
		(void)pause();
		_exit(0);
	}
	(void)close(ends[1]);
	bool held = pid > 0 && read(ends[0], &ready, 1) == 1;

	(void)close(ends[0]);
	mine = sys_open(p->fd, "lock", O_RDWR, 0);
	bool excluded = held && mine >= 0 && sys_flock(mine, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;

	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, &status, 0);
	}
	if (!excluded)
		return errno = ENOLCK, -1;
	return sys_flock(mine, LOCK_EX | LOCK_NB);
}

static int
try_watch(struct probing *p)
{
#ifdef __linux__
	mr_auto(sys_close_fd) int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char self[40];
	struct pollfd wait = { .fd = watch, .events = POLLIN };

	(void)snprintf(self, sizeof self, "/proc/self/fd/%d", p->fd);
	if (watch < 0 || inotify_add_watch(watch, self, IN_CREATE | IN_MOVED_TO) < 0 || put(p->fd, "seen", "") < 0)
		return -1;
	errno = ETIMEDOUT;
	return poll(&wait, 1, EVENT_MS) == 1 ? 0 : -1;
#else
	(void)p;
	errno = ENOSYS;
	return -1;
#endif
}

static int
try_case(struct probing *p)
{
	struct stat st;

	if (sys_stat(p->fd, "A", &st) < 0 && errno == ENOENT)
		return 0;
	errno = EEXIST;
	return -1;
}

static int
try_processes(struct probing *p)
{
	struct mr_process self;

	(void)p;
	errno = ENOENT;
	return process_describe((int64_t)getpid(), &self) && boot_id()[0] ? 0 : -1;
}

static const struct
try {
	const char *name, *what;
	int (*run)(struct probing * p);
	const char *without; /* what mailroom does without it; NULL: it cannot */
}
tries[] = {
	{ "write", "write a file, sync it, read it back", try_write, NULL },
	{ "sync", "sync a folder", try_folder_sync, NULL },
	{ "modes", "a file keeps its mode", try_mode, "others on this machine may read the mail" },
	{ "link", "link a file into another folder, never over another", try_link, NULL },
	{ "rename", "rename into another folder, never over another", try_rename, NULL },
	{ "flock", "locks exclude, and go with the process that had them", try_lock, NULL },
	{ "unnamed", "files without a name until they are whole", try_unnamed,
	    "messages are written in tmp/ first: a kill leaves files there, which doctor finds" },
	{ "exchange", "two files change names in one step", try_exchange, "marks in chipset rooms take two steps" },
	{ "inotify", "a change in a folder is told", try_watch, "wait looks every second" },
	{ "case", "'a' and 'A' are two names", try_case, "names that differ only in case are refused anyway" },
	{ "processes", "processes are told apart by more than their number", try_processes,
	    "a name stays taken after a kill until takeover" },
};

/* ---- Telling ---- */

static void
tell(struct probing *p, const char *name, const char *verdict, enum style style, const char *what, const char *more)
{
	struct cli *cli = p->cli;

	if (cli->json) {
		struct json j = JSON_INIT(&cli->out);

		json_open(&j, '{');
		json_key_str(&j, "test", name);
		json_key_str(&j, "result", verdict);
		json_key_str(&j, "what", what);
		json_key_str(&j, "more", more[0] ? more : NULL);
		out_json_line(cli, &j);
		return;
	}
	out_styled(cli, &cli->out, style, verdict);
	buf_addf(&cli->out, "%*s%s: %s%s%s\n", (int)(9 - strlen(verdict)), "", name, what, more[0] ? "; " : "", more);
}

static void
run_one(struct probing *p, const struct try *t)
{
	mr_auto(buf_done) struct buf more = BUF_INIT;
	int64_t begin = clock_now_ns();
	int failed = t->run(p) == 0 ? 0 : errno;

	if (failed == 0) {
		if (t->run == try_write || t->run == try_folder_sync)
			buf_addf(&more, "%.2f ms", (double)(clock_now_ns() - begin) / 1e6);
		tell(p, t->name, "ok", STYLE_GREEN, t->what, buf_z(&more));
		return;
	}
	buf_addf(&more, "%s", strerror(failed));
	if (t->without)
		buf_addf(&more, ": %s", t->without);
	p->missing += t->without == NULL;
	p->other += t->without != NULL;
	tell(p, t->name, t->without ? "without" : "MISSING", t->without ? STYLE_YELLOW : STYLE_RED, t->what,
	    buf_z(&more));
}

static void
tell_storage(struct probing *p, const struct scratch *s)
{
	struct mr_storage storage = { 0 };
	struct mr_error err = { 0 };

	if (storage_of(s->fd, s->path, &storage, &err) != MR_OK)
		tell(p, "storage", "unknown", STYLE_YELLOW, err.message, "");
	else if (storage.power_safe)
		tell(p, "storage", "ok", STYLE_GREEN, storage.file_system, "accepted mail survives a power cut");
	else
		tell(p, "storage", "without", STYLE_YELLOW, storage.file_system, storage.reason);
}

int
probe_run(struct cli *cli, const struct scratch *s)
{
	struct probing p = { .cli = cli, .fd = s->fd };

	tell_storage(&p, s);
	for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++)
		run_one(&p, &tries[i]);
	if (!cli->json && p.missing > 0)
		buf_adds(&cli->out, "a room cannot be kept here\n");
	else if (!cli->json)
		buf_addf(&cli->out, "a room can be kept here%s\n",
		    p.other > 0 ? "; what is without is done another way" : "");
	return p.missing > 0 ? EXIT_FAILED : EXIT_DONE;
}
