/* SPDX-License-Identifier: MIT */
/*
 * session.c - one voice for each session. Two files in the state folder, named by a hash of session and room:
 *
 * telling/<hash> is the lock of the process that tells the session something. A harness runs all hooks that match a
 * moment side by side, and ours may be among them twice: in the user's settings and in the project's, or in a plugin.
 * What the one before has told is remembered then, and not new any more. The file says which start was told last, and
 * when; and when the session was told anything last, so that the next process knows whether it must look again.
 *
 *	00000000000012345678 SessionStart         startup             \n     the start
 *	00000000000012345999\n                                               the last telling, in ms of the boot clock
 *
 * waiters/<hash> has the mark of the newest waiter. The harness starts one at the beginning of a session and at every
 * stop, and does not mind how many there are; one that finds another's mark leaves. The file is also the lock under
 * which a waiter tells the session something: the mark is read again, and what the older one has just told is
 * remembered before the newer one looks.
 */
#include "cli/hook/hook.h"

#include "base/file.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define TELLING_WAIT_MS 2000
#define SAME_MOMENT_MS 1000
#define NOTE_MAX 200
#define DIGITS 20
#define START_LEN (DIGITS + 1 + 20 + 1 + 20 + 1)
#define MARK_LEN 16
#define WAITER_WAIT_MS 3000
#define BELL_LOOK_MS 2000
#define BUSY_MS 500 /* another process rings, or tells what we would */

/* The folder of the session's file, and its name there; -1: none. */
static int
open_folder(const struct hook *h, const char *folder, bool make, char ret_name[65])
{
	const struct mr_env *env = &h->cli->env;
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	int fd = -1;

	if (!env->state_dir || !env->session)
		return -1;
	buf_addf(&whole, "%s\n%s", env->session, mr_room_spec(h->cli->room));
	sha256_hex(buf_str(&whole), ret_name);
	return buf_ok(&whole) && dir_below(env->state_dir, folder, make, false, &fd, IGNORED) == MR_OK ? fd : -1;
}

void
session_forget(const struct hook *h)
{
	static const char *const folders[] = { "waiters", "telling" };
	char name[65];

	for (size_t i = 0; i < 2; i++) {
		mr_auto(sys_close_fd) int folder = open_folder(h, folders[i], false, name);

		if (folder >= 0)
			(void)sys_unlink(folder, name);
	}
}

/* ---- Telling ---- */

/* Always as long, so that it is written over whole. */
static void
add_start(const struct event *event, struct buf *out)
{
	buf_addf(out, " %-20.20s %-20.20s\n", event->name, event->source);
}

static int64_t
time_at(const struct buf *note, size_t at)
{
	uint64_t ms = 0;

	if (note->len < at + DIGITS || !str_to_u64((struct mr_str){ note->ptr + at, DIGITS }, &ms))
		return -1;
	return (int64_t)ms;
}

bool
telling_begin(struct hook *h, int64_t read_ms)
{
	mr_auto(buf_done) struct buf note = BUF_INIT, start = BUF_INIT;
	char name[65];
	mr_auto(sys_close_fd) int folder = h->telling < 0 ? open_folder(h, "telling", true, name) : -1;

	if (folder < 0)
		return false;
	if (lock_take(folder, name, 0600, TELLING_WAIT_MS, &h->telling, IGNORED) != MR_OK) {
		h->telling = -1; /* told twice is better than not at all */
		return false;
	}
	add_start(&h->event, &start);
	if (file_read_fd(h->telling, NOTE_MAX, &note, IGNORED) != MR_OK)
		return false;
	int64_t start_ms = time_at(&note, 0), now_ms = clock_boot_ms();

	h->repeat = start_ms >= 0 && start_ms <= now_ms && now_ms - start_ms < SAME_MOMENT_MS &&
		    note.len >= START_LEN && start.len == START_LEN - DIGITS &&
		    memcmp(note.ptr + DIGITS, start.ptr, start.len) == 0;
	return time_at(&note, START_LEN) >= read_ms;
}

void
telling_note(const struct hook *h)
{
	mr_auto(buf_done) struct buf note = BUF_INIT;
	bool start = h->event.moment == MOMENT_START;
	long long now_ms = clock_boot_ms();

	if (h->telling < 0)
		return;
	if (start) {
		buf_addf(&note, "%0*lld", DIGITS, now_ms);
		add_start(&h->event, &note);
	}
	buf_addf(&note, "%0*lld\n", DIGITS, now_ms);
	if (buf_ok(&note) && sys_pwrite_all(h->telling, note.ptr, note.len, start ? 0 : START_LEN) < 0)
		log_line(h, "what a session was told cannot be written down");
}

/* ---- Waiting beside an idle session ---- */

struct waiter {
	struct hook *hook;
	int folder; /* -1: it cannot be written, and waiters do not know of each other */
	char name[65], mark[MARK_LEN + 1];
	pid_t parent;
};

static int
lock(const struct waiter *w)
{
	int fd = -1;

	if (w->folder >= 0 && lock_take(w->folder, w->name, 0600, WAITER_WAIT_MS, &fd, IGNORED) != MR_OK)
		log_line(w->hook, "the file of this session's waiter cannot be locked");
	return fd;
}

static bool
is_newest(const struct waiter *w)
{
	mr_auto(buf_done) struct buf mark = BUF_INIT;

	return w->folder < 0 ||
	       (file_read(w->folder, w->name, MARK_LEN, &mark, IGNORED) == MR_OK && strcmp(buf_z(&mark), w->mark) == 0);
}

/* As long as the session is there, and the harness reads what we would say. */
static bool
stay(void *ctx)
{
	const struct waiter *w = ctx;
	struct cli *cli = w->hook->cli;
	const struct mr_process *harness = &cli->env.process;
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct pollfd err = { .fd = 2 };

	cli_carry_first(cli, 0);
	/* A server that has many sessions outlives them: ask whether it still has this one. */
	if (w->hook->harness->bell == BELL_QUEUE && mr_room_has(cli->room, MR_HAS_LIVES) &&
	    mr_agent_get(cli->room, cli->self.agent, &agent, IGNORED) == MR_OK && mr_agent_presence(&agent) == MR_GONE)
		return false;
	return is_newest(w) && (poll(&err, 1, 0) <= 0 || !(err.revents & (POLLERR | POLLHUP | POLLNVAL))) &&
	       getppid() == w->parent && (harness->pid == 0 || process_state(harness) != PROCESS_DEAD);
}

/* Locks go with the process, and what was not said to be shown is shown again. */
static void
end_quietly(int signal_number)
{
	(void)signal_number;
	_exit(EXIT_DONE);
}

static void
notify_operator(void *ctx, const struct mr_receipt *receipt, const char *subject)
{
	const struct waiter *w = ctx;

	if (receipt->notify)
		cli_notify(w->hook->cli, receipt, w->hook->cli->self.agent, subject);
}

/* MR_EMPTY: another process told it. MR_REFUSED: there is a newer waiter. */
static enum mr_rc
wake(struct waiter *w, const struct mr_wake_options *options, struct mr_error *err)
{
	struct cli *cli = w->hook->cli;
	mr_auto(sys_close_fd) int held = lock(w);
	enum bell bell = w->hook->harness->bell;
	struct mr_wake *what = NULL;

	if (!is_newest(w))
		return mr_fail(err, MR_REFUSED, "there is a newer waiter");
	TRY(mr_wake_open(cli->room, &cli->self, options, false, &what, err));
	enum mr_rc rc = ring_bell(w->hook, what, err);

	if (rc == MR_INDOUBT) { /* it rang: it is a wake all the same */
		log_line(w->hook, err->message);
		rc = MR_OK;
	}
	mr_wake_close(what);
	if (held >= 0 && rc != MR_BUSY && (bell == BELL_EXIT || bell == BELL_PLUGIN))
		(void)sys_unlink(w->folder, w->name); /* the next stop begins anew */
	return rc;
}

static int
wait_and_wake(struct waiter *w, int64_t gather_ms)
{
	struct cli *cli = w->hook->cli;
	struct mr_wake_options options = {
		.format = hook_format(w->hook), .gather_ms = gather_ms, .stay = stay, .told = notify_operator, .ctx = w
	};
	struct mr_error err = { 0 };
	mr_auto(sys_close_fd) int fd = lock(w);
	enum bell bell = w->hook->harness->bell;
	enum mr_rc rc;

	if (fd >= 0 && sys_pwrite_all(fd, w->mark, MARK_LEN, 0) < 0)
		log_line(w->hook, "the file of this session's waiter cannot be written");
	sys_close_fd(&fd);
	do {
		/* A ring that is not answered yet is enough. One waiter rings as often as need be; the others end with
		 * what they say. */
		while ((bell == BELL_QUEUE || bell == BELL_PLUGIN) && mr_bell_open(cli->room, &cli->self)) {
			if (!stay(w))
				return EXIT_DONE;
			(void)poll(NULL, 0, BELL_LOOK_MS);
		}
		err = (struct mr_error){ 0 };
		rc = mr_wake_wait(cli->room, &cli->self, &options, &err);
		if (rc == MR_EMPTY)
			return EXIT_DONE;
		if (rc == MR_OK)
			rc = wake(w, &options, &err);
		if (rc == MR_BUSY)
			(void)poll(NULL, 0, BUSY_MS);
	} while (rc == MR_EMPTY || rc == MR_BUSY || (rc == MR_OK && (bell == BELL_QUEUE || bell == BELL_SOCKET)));
	if (rc != MR_OK && rc != MR_REFUSED)
		log_line(w->hook, err.message);
	return rc == MR_OK ? HOOK_WAKES : EXIT_DONE;
}

int
waiter_run(struct hook *h, int64_t gather_ms)
{
	struct waiter w = { .hook = h, .parent = getppid() };
	struct mr_arrival arrival = { 0 };
	struct mr_error err = { 0 };

	if (env_is_headless() || !ring_has_door(h))
		return EXIT_DONE;
	enum mr_rc rc = hook_know_self(h, false, &arrival, &err);

	if (rc != MR_OK && rc != MR_NOTFOUND && rc != MR_UNTRUSTED)
		log_line(h, err.message);
	if (rc != MR_OK || !h->cli->env.session)
		return EXIT_DONE;
	env_find_process(h->cli);
	time_limit(h, 0);
	(void)signal(SIGTERM, end_quietly);
	(void)signal(SIGINT, end_quietly);
	(void)signal(SIGHUP, end_quietly);
	random_hex(w.mark, MARK_LEN);
	w.folder = open_folder(h, "waiters", true, w.name);
	int code = wait_and_wake(&w, gather_ms);

	sys_close_fd(&w.folder);
	return code;
}
