/* SPDX-License-Identifier: MIT */
/*
 * waiter.c - beside an idle session, until there is something to wake it for. The harness starts one at the beginning
 * of a session and at every stop, and does not mind how many there are; we do.
 *
 * <state>/waiters/<hash of session and room> has the mark of the newest one. Who finds another's mark there leaves.
 * The same file is the lock of whoever tells the session something: the mark is read again, and what the older one has
 * just told is remembered before the newer one looks.
 */
#include "cli/hook/hook.h"

#include "base/file.h"
#include "base/id.h"
#include "base/process.h"
#include "base/sys.h"
#include "helptext.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#define MARK_LEN 16
#define LOCK_WAIT_MS 3000

struct waiter {
	struct cli *cli;
	int folder; /* -1: it cannot be written, and nobody knows of anybody */
	char name[65], mark[MARK_LEN + 1];
	pid_t parent;
};

/* ---- One a session ---- */

static void
open_folder(struct waiter *w, bool make)
{
	mr_auto(buf_done) struct buf whole = BUF_INIT;
	struct mr_error err = { 0 };

	buf_addf(&whole, "%s\n%s", w->cli->env.session, mr_room_spec(w->cli->room));
	sha256_hex(buf_str(&whole), w->name);
	random_hex(w->mark, MARK_LEN);
	if (!w->cli->env.state_dir || !buf_ok(&whole) ||
	    dir_below(w->cli->env.state_dir, "waiters", make, false, &w->folder, &err) != MR_OK)
		w->folder = -1;
}

static int
lock(const struct waiter *w)
{
	struct mr_error ignored = { 0 };
	int fd = -1;

	if (w->folder >= 0 && lock_take(w->folder, w->name, 0600, LOCK_WAIT_MS, &fd, &ignored) != MR_OK)
		log_line("the file of this session's waiter cannot be locked");
	return fd;
}

static void
leave_mark(const struct waiter *w)
{
	mr_auto(sys_close_fd) int fd = lock(w);

	if (fd >= 0 && sys_pwrite_all(fd, w->mark, MARK_LEN, 0) < 0)
		log_line("the file of this session's waiter cannot be written");
}

static bool
is_newest(const struct waiter *w)
{
	mr_auto(buf_done) struct buf mark = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (w->folder < 0)
		return true;
	return file_read(w->folder, w->name, MARK_LEN, &mark, &ignored) == MR_OK && strcmp(buf_z(&mark), w->mark) == 0;
}

/* ---- As long as the session is there ---- */

/* Nobody reads what we would say: the harness was killed. */
static bool
is_heard(void)
{
	struct pollfd err = { .fd = 2 };

	return poll(&err, 1, 0) <= 0 || !(err.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static bool
stay(void *ctx)
{
	const struct waiter *w = ctx;
	const struct mr_process *harness = &w->cli->env.process;

	cli_bring(w->cli, 0);

	return is_newest(w) && is_heard() && getppid() == w->parent &&
	       (harness->pid == 0 || process_state(harness) != PROCESS_DEAD);
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

	cli_notify(w->cli, receipt, w->cli->self.agent, subject);
}

/* ---- Waking ---- */

/* MR_EMPTY: somebody else told it. MR_REFUSED: there is a newer one. */
static enum mr_rc
wake(struct waiter *w, const struct mr_wake_options *options, struct mr_error *err)
{
	mr_auto(sys_close_fd) int held = lock(w);
	struct mr_wake *what = NULL;

	if (!is_newest(w))
		return mr_fail(err, MR_REFUSED, "there is a newer waiter");
	enum mr_rc rc = mr_wake_open(w->cli->room, &w->cli->self, options, &what, err);

	if (rc != MR_OK)
		return rc;
	mr_auto(buf_done) struct buf text = BUF_INIT;

	answer_without_tags(str_of(mr_wake_text(what)), &text);
	if (!buf_ok(&text))
		rc = mr_nomem(err);
	else if (sys_write_all(2, buf_z(&text), buf_str(&text).len) < 0)
		rc = mr_fail_errno(err, "the harness did not take the text");
	else if (mr_wake_shown(what, err) != MR_OK)
		log_error(err); /* it was told: it is a wake all the same */
	mr_wake_close(what);
	if (held >= 0)
		(void)sys_unlink(w->folder, w->name); /* the next stop begins anew */
	return rc;
}

static int
wait_and_wake(struct waiter *w, int64_t gather_ms)
{
	struct mr_wake_options options = {
		.format = moment_format(w->cli), .gather_ms = gather_ms, .stay = stay, .told = notify_operator, .ctx = w
	};
	struct mr_error err = { 0 };
	enum mr_rc rc;

	leave_mark(w);
	do {
		rc = mr_wake_wait(w->cli->room, &w->cli->self, &options, &err);
		if (rc == MR_EMPTY || rc == MR_REFUSED)
			return EXIT_DONE;
		if (rc == MR_OK)
			rc = wake(w, &options, &err);
	} while (rc == MR_EMPTY);
	if (rc == MR_OK)
		return EXIT_WAKE;
	if (rc != MR_REFUSED)
		log_error(&err);
	return EXIT_DONE;
}

void
waiter_dismiss(struct cli *cli)
{
	struct waiter w = { .cli = cli, .folder = -1 };

	if (!cli->env.session)
		return;
	open_folder(&w, false);
	if (w.folder >= 0)
		(void)sys_unlink(w.folder, w.name);
	sys_close_fd(&w.folder);
}

int
waiter_run(struct cli *cli, const struct event *event)
{
	struct waiter w = { .cli = cli, .folder = -1, .parent = getppid() };
	struct mr_arrival arrival = { 0 };
	const struct hook_options *o = cli->opts;
	struct mr_error err = { 0 };

	if (env_is_headless())
		return EXIT_DONE;
	enum mr_rc rc = moment_know_self(cli, event, false, &arrival, &err);

	if (rc != MR_OK && rc != MR_NOTFOUND && rc != MR_UNTRUSTED)
		log_error(&err);
	if (rc != MR_OK || !cli->env.session)
		return EXIT_DONE;
	env_find_process(cli);
	time_limit(0);
	(void)signal(SIGTERM, end_quietly);
	(void)signal(SIGINT, end_quietly);
	(void)signal(SIGHUP, end_quietly);
	open_folder(&w, true);
	int code = wait_and_wake(&w, o->gather_ms);

	sys_close_fd(&w.folder);
	return code;
}
