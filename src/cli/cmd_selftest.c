/* SPDX-License-Identifier: MIT */
/* cmd_selftest.c - mailroom's promises, tried on the user's own disk. Without --crash: what the disk and the kernel
 * under a folder can do, one by one. What mailroom cannot do without is a failure; for everything else it has another
 * way, and says which. */
#include "base/file.h"
#include "base/id.h"
#include "base/process.h"
#include "base/storage.h"
#include "base/sys.h"
#include "cli/selftest/selftest.h"
#include "helptext.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/inotify.h>
#endif

#define PREFIX ".mailroom-selftest-"
#define EVENT_MS 1000

/* ---- The scratch folder ---- */

/* In `dir`, or NULL: beside the room, else in the working folder. */
static enum mr_rc
scratch_make(struct cli *cli, const char *dir, struct scratch *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;
	mr_auto(mr_place_done) struct mr_place place = { 0 };
	char random[13];

	/* Beside the room that a command would use here. Rooms of other programs get nothing of ours. */
	if (!dir && cli_find_room(cli, cli->room_option, true, &place, IGNORED) == MR_OK &&
	    str_starts(str_of(place.spec), "maildir:/"))
		buf_add(&path, (struct mr_str){ place.spec + 8, (size_t)(strrchr(place.spec, '/') - place.spec) - 8 });
	else
		buf_adds(&path, cli_folder(cli, dir ? dir : "."));
	random_hex(random, 12);
	buf_addf(&path, "/" PREFIX "%s", random);
	TRY(mr_got(buf_ok(&path), err));
	if (sys_mkdir(AT_FDCWD, buf_z(&path), 0700) < 0) {
		(void)mr_fail_errno(err, "cannot make '%s'", buf_z(&path));
		return mr_hint(err, "--dir DIR names a folder on the disk to test");
	}
	enum mr_rc rc = dir_open(AT_FDCWD, buf_z(&path), &ret->fd, err);

	ret->path = buf_take(&path);
	return rc;
}

/* ---- The tries: 0, or -1 and errno ---- */

static int
put(int dir_fd, const char *name, const char *text)
{
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	return fd < 0 || sys_write_all(fd, text, strlen(text)) < 0 ? -1 : sys_fsync(fd);
}

static int
try_write(int dir_fd)
{
	mr_auto(buf_done) struct buf back = BUF_INIT;
	struct mr_error err = { 0 };

	if (put(dir_fd, "a", "text\n") < 0)
		return -1;
	if (file_read(dir_fd, "a", 100, &back, &err) == MR_OK && str_eq(buf_str(&back), STR("text\n")))
		return 0;
	errno = EIO;
	return -1;
}

static int
try_mode(int dir_fd)
{
	struct stat st;

	if (sys_stat(dir_fd, "a", &st) < 0)
		return -1;
	errno = EPERM;
	return (st.st_mode & 0777) == 0600 ? 0 : -1;
}

/* Into another folder, as a message goes to a mailbox; what is there already is never overwritten. */
static int
try_link(int dir_fd)
{
	mr_auto(sys_close_fd) int other = -1;

	if (sys_mkdir(dir_fd, "folder", 0700) < 0 ||
	    (other = sys_open(dir_fd, "folder", O_RDONLY | O_DIRECTORY, 0)) < 0 ||
	    sys_link(dir_fd, "a", other, "linked") < 0)
		return -1;
	bool refused = sys_link(dir_fd, "a", other, "linked") < 0 && errno == EEXIST;

	errno = EEXIST;
	return refused ? 0 : -1;
}

static int
try_rename(int dir_fd)
{
	if (put(dir_fd, "b", "b") < 0)
		return -1;
	if (sys_rename_new(dir_fd, "b", dir_fd, "a") == 0 || errno != EEXIST)
		return errno = errno ? errno : EEXIST, -1;
	return sys_rename_new(dir_fd, "b", dir_fd, "folder/c");
}

static int
try_exchange(int dir_fd)
{
	return put(dir_fd, "x", "x") < 0 ? -1 : sys_rename_exchange(dir_fd, "x", dir_fd, "a");
}

static int
try_unnamed(int dir_fd)
{
	mr_auto(sys_close_fd) int fd = sys_open_unnamed(dir_fd, 0600);

	return fd < 0 || sys_write_all(fd, "u", 1) < 0 ? -1 : sys_link_unnamed(fd, dir_fd, "unnamed");
}

/* Two who open a file exclude each other, and the kernel lets go for one that dies. */
static int
try_lock(int dir_fd)
{
	mr_auto(sys_close_fd) int mine = -1;
	int status = 1, ends[2];
	char ready;

	if (put(dir_fd, "lock", "") < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = sys_open(dir_fd, "lock", O_RDWR, 0);

		if (fd >= 0 && sys_flock(fd, LOCK_EX | LOCK_NB) == 0)
			(void)!write(ends[1], "y", 1);
		(void)close(ends[1]);
		(void)pause();
		_exit(0);
	}
	(void)close(ends[1]);
	bool held = pid > 0 && read(ends[0], &ready, 1) == 1;

	(void)close(ends[0]);
	mine = sys_open(dir_fd, "lock", O_RDWR, 0);
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
try_watch(int dir_fd)
{
#ifdef __linux__
	mr_auto(sys_close_fd) int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	char self[40];
	struct pollfd wait = { .fd = watch, .events = POLLIN };

	(void)snprintf(self, sizeof self, "/proc/self/fd/%d", dir_fd);
	if (watch < 0 || inotify_add_watch(watch, self, IN_CREATE | IN_MOVED_TO) < 0 || put(dir_fd, "seen", "") < 0)
		return -1;
	errno = ETIMEDOUT;
	return poll(&wait, 1, EVENT_MS) == 1 ? 0 : -1;
#else
	(void)dir_fd;
	errno = ENOSYS;
	return -1;
#endif
}

static int
try_case(int dir_fd)
{
	struct stat st;

	if (sys_stat(dir_fd, "A", &st) < 0 && errno == ENOENT)
		return 0;
	errno = EEXIST;
	return -1;
}

static int
try_processes(int dir_fd)
{
	struct mr_process self;

	(void)dir_fd;
	errno = ENOENT;
	return process_describe((int64_t)getpid(), &self) && boot_id()[0] ? 0 : -1;
}

static const struct attempt {
	const char *name, *what;
	int (*run)(int dir_fd);
	const char *without; /* what mailroom does without it; NULL: it cannot */
} attempts[] = {
	{ "write", "write a file, sync it, read it back", try_write, NULL },
	{ "sync", "sync a folder", sys_fsync, NULL },
	{ "modes", "a file keeps its mode", try_mode, "others on this machine may read the mail" },
	{ "link", "link a file into another folder, never over another", try_link, NULL },
	{ "rename", "rename into another folder, never over another", try_rename, NULL },
	{ "flock", "locks exclude, and go with the process that had them", try_lock, NULL },
	{ "unnamed", "files without a name until they are whole", try_unnamed,
	    "messages are written in tmp/ first: a kill leaves files there, which doctor finds" },
	{ "exchange", "two files change names in one step", try_exchange, "marks in chipset rooms take two steps" },
	{ "inotify", "a change in a folder is reported", try_watch, "wait looks every second" },
	{ "case", "'a' and 'A' are two names", try_case, "names that differ only in case are refused anyway" },
	{ "processes", "processes are told apart by more than their number", try_processes,
	    "a name stays taken after a kill until takeover" },
};

/* ---- Telling ---- */

static void
tell(struct cli *cli, const char *name, const char *verdict, enum style style, const char *what, const char *more)
{
	if (out_json(cli, kv_str("test", name), kv_str("result", verdict), kv_str("what", what), kv_opt("more", more)))
		return;
	out_styled(cli, &cli->out, style, verdict);
	buf_addf(&cli->out, "%*s%s: %s%s%s\n", (int)(9 - strlen(verdict)), "", name, what, more[0] ? "; " : "", more);
}

static int
run_attempts(struct cli *cli, const struct scratch *s)
{
	struct mr_storage storage = { 0 };
	size_t missing = 0, other = 0;

	if (storage_of(s->fd, s->path, &storage, &cli->err) != MR_OK)
		tell(cli, "storage", "unknown", STYLE_YELLOW, cli->err.message, "");
	else if (storage.power_safe)
		tell(cli, "storage", "ok", STYLE_GREEN, storage.file_system, "accepted mail survives a power cut");
	else
		tell(cli, "storage", "without", STYLE_YELLOW, storage.file_system, storage.reason);
	for (const struct attempt *t = attempts; t < attempts + sizeof attempts / sizeof attempts[0]; t++) {
		mr_auto(buf_done) struct buf more = BUF_INIT;
		int64_t begin = clock_now_ns();
		int failed = t->run(s->fd) == 0 ? 0 : errno;

		if (failed == 0) {
			if (t->run == try_write || t->run == sys_fsync)
				buf_addf(&more, "%.2f ms", (double)(clock_now_ns() - begin) / 1e6);
			tell(cli, t->name, "ok", STYLE_GREEN, t->what, buf_z(&more));
			continue;
		}
		buf_addf(&more, "%s%s%s", strerror(failed), t->without ? ": " : "", t->without ? t->without : "");
		missing += t->without == NULL;
		other += t->without != NULL;
		tell(cli, t->name, t->without ? "without" : "MISSING", t->without ? STYLE_YELLOW : STYLE_RED, t->what,
		    buf_z(&more));
	}
	if (!cli->json && missing > 0)
		buf_adds(&cli->out, "a room cannot be kept here\n");
	else if (!cli->json)
		buf_addf(&cli->out, "a room can be kept here%s\n",
		    other > 0 ? "; what is marked 'without' is done another way" : "");
	return missing > 0 ? EXIT_FAILED : EXIT_DONE;
}

int
cmd_selftest(struct cli *cli, const struct selftest_options *o)
{
	struct scratch scratch = { .fd = -1 };
	uint32_t random = 0;
	bool keep = false;

	random_bytes(&random, sizeof random);
	TRY_CLI(scratch_make(cli, o->dir, &scratch, &cli->err));
	int code = o->crash ? crash_run(cli, &scratch, o->time_ms, o->seed >= 0 ? (uint64_t)o->seed : random, &keep)
			    : run_attempts(cli, &scratch);

	if (!keep)
		dir_remove_tree(AT_FDCWD, scratch.path);
	sys_close_fd(&scratch.fd);
	free(scratch.path);
	return code;
}
