/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - fork, exec, and a loop that writes input and reads output until the program ends.
 *
 * The child is a process group of its own, so that its own children end with it when the time is up. A program may end
 * while one of its children keeps its output open: the end of the program counts, not that of the pipe. The errno of a
 * failed exec comes back through a pipe that closes when exec succeeds.
 */
#include "base/spawn.h"
#include "base/process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLICE_MS 100   /* interval for noticing an end while its output is still open */
#define GRACE_MS 1000  /* between SIGTERM and SIGKILL */
#define LINGER_MS 2000 /* after SIGKILL: an unkillable program is left alone */
#define READ_SIZE 16384
#define NOT_DONE (-1)

extern char **environ;

enum { IN, OUT, ERR, WHY, GO, PIPES }; /* IN and GO: we write */

struct running {
	pid_t pid;
	int fd[PIPES]; /* our ends; -1: closed */
	const struct spawn *what;
	size_t written;
	int status; /* NOT_DONE until it has ended */
	int64_t deadline_ms;
	int hurry; /* signals sent so far */
};

/* ---- The child ---- */

/* Our environment without entries that begin like one of `without`, and without those that `more` replaces. NULL: out
 * of memory. */
static char **
merge_env(const char *const *more, const char *const *without)
{
	size_t ours = 0, extra = 0, n = 0;

	while (environ && environ[ours])
		ours++;
	while (more && more[extra])
		extra++;
	char **env = calloc(ours + extra + 1, sizeof *env);

	for (size_t i = 0; env && i < ours; i++) {
		bool replaced = false;

		for (size_t k = 0; without && without[k]; k++)
			replaced |= strncmp(environ[i], without[k], strlen(without[k])) == 0;
		for (size_t k = 0; k < extra && !replaced; k++) {
			size_t name = strcspn(more[k], "=") + 1;

			replaced = strncmp(environ[i], more[k], name) == 0;
		}
		if (!replaced)
			env[n++] = environ[i];
	}
	for (size_t k = 0; env && k < extra; k++)
		env[n++] = (char *)(uintptr_t)more[k];
	return env;
}

static void
fail_in_child(int why_fd, int error)
{
	ssize_t ignored = write(why_fd, &error, sizeof error);

	(void)ignored;
	_exit(127);
}

/* Between fork and exec only async-signal-safe calls are allowed: another thread may have held any lock. */
static void
become(const struct spawn *what, char **env, int our_go_fd, const int theirs[PIPES])
{
	static const int ignored[] = { SIGPIPE, SIGXFSZ, SIGINT, SIGTERM };
	sigset_t none;

	(void)setpgid(0, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		(void)signal(ignored[i], SIG_DFL);
	for (int i = IN; i <= ERR; i++)
		if (dup2(theirs[i], i) < 0)
			fail_in_child(theirs[WHY], errno);
	if (what->dir && chdir(what->dir) < 0)
		fail_in_child(theirs[WHY], errno);
	environ = env;
	if (what->started) {
		char word;

		(void)sys_close(our_go_fd); /* first: otherwise the end of the pipe would never be seen */
		if (sys_read(theirs[GO], &word, 1) != 1)
			_exit(127);
	}
	(void)execvp(what->argv[0], (char *const *)(uintptr_t)what->argv);
	fail_in_child(theirs[WHY], errno);
}

/* ---- Starting ---- */

static void
close_all(int fds[PIPES])
{
	for (int i = 0; i < PIPES; i++)
		sys_close_fd(&fds[i]);
}

static bool
make_pipes(int ours[PIPES], int theirs[PIPES])
{
	for (int i = 0; i < PIPES; i++) {
		int raw[2], ends[2];

		/* O_CLOEXEC at once: another thread may fork now, and its program would keep the pipe open. */
		if (pipe2(raw, O_CLOEXEC) < 0)
			return false;
		for (int k = 0; k < 2; k++) { /* above 2, so that the child's dup2 never overwrites one of these */
			ends[k] = fcntl(raw[k], F_DUPFD_CLOEXEC, 3);
			(void)sys_close(raw[k]);
		}
		bool we_write = i == IN || i == GO;

		ours[i] = ends[we_write ? 1 : 0];
		theirs[i] = ends[we_write ? 0 : 1];
		if (ours[i] < 0 || theirs[i] < 0)
			return false;
		if (i < WHY)
			(void)fcntl(ours[i], F_SETFL, fcntl(ours[i], F_GETFL) | O_NONBLOCK);
	}
	return true;
}

/* A reader that closed its end must not end this process: SIGPIPE is blocked and consumed. */
static ssize_t
write_quietly(int fd, struct mr_str bytes)
{
	static const struct timespec at_once = { 0 };
	sigset_t pipe_only, before, pending;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)sigpending(&pending);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	ssize_t n = write(fd, bytes.ptr, bytes.len);
	int error = n < 0 ? errno : 0;

	if (error == EPIPE && sigismember(&pending, SIGPIPE) == 0)
		(void)sigtimedwait(&pipe_only, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return n;
}

static enum mr_rc
start(const struct spawn *what, struct running *run, struct mr_error *err)
{
	int theirs[PIPES] = { -1, -1, -1, -1, -1 };
	char **env = merge_env(what->env, what->without);
	int error = 0;

	TRY(mr_got(env, err));
	enum mr_rc rc = make_pipes(run->fd, theirs) ? MR_OK : mr_fail_errno(err, "cannot make a pipe");

	if (rc == MR_OK)
		run->pid = fork();
	if (rc == MR_OK && run->pid == 0)
		become(what, env, run->fd[GO], theirs);
	if (rc == MR_OK && run->pid < 0)
		rc = mr_fail_errno(err, "cannot start a process for '%s'", what->argv[0]);
	close_all(theirs);
	free(env);
	TRY(rc);
	(void)setpgid(run->pid, run->pid); /* by both, because either may be first */
	if (what->started) {               /* if GO is never written, it ends by itself */
		rc = what->started(what->started_ctx, (int64_t)run->pid, err);
		if (rc == MR_OK)
			(void)write_quietly(run->fd[GO], STR("g"));
		sys_close_fd(&run->fd[GO]);
		if (rc != MR_OK) {
			(void)waitpid(run->pid, NULL, 0);
			return rc;
		}
	}
	if (sys_read(run->fd[WHY], &error, sizeof error) == (ssize_t)sizeof error) {
		(void)waitpid(run->pid, NULL, 0);
		if (error == ENOENT && what->dir && access(what->dir, X_OK) < 0)
			return mr_fail(err, MR_NOTFOUND, "cannot run '%s': no folder '%s'", what->argv[0], what->dir);
		if (error == ENOENT || error == ENOTDIR)
			return mr_fail(err, MR_NOTFOUND, "cannot run '%s': there is no such program", what->argv[0]);
		if (error == EACCES || error == ENOEXEC)
			return mr_fail(err, MR_REFUSED, "cannot run '%s': it is not an executable file", what->argv[0]);
		errno = error;
		return mr_fail_errno(err, "cannot run '%s'", what->argv[0]);
	}
	return MR_OK;
}

/* ---- Writing and reading ---- */

static void
take_output(struct running *run, int which, struct buf *kept, bool *cut)
{
	size_t limit = run->what->output_max ? run->what->output_max : SPAWN_OUTPUT_MAX;
	char bytes[READ_SIZE];

	for (;;) {
		ssize_t n = read(run->fd[which], bytes, sizeof bytes);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			sys_close_fd(&run->fd[which]);
			return;
		}
		size_t room = limit > kept->len ? limit - kept->len : 0, take = (size_t)n < room ? (size_t)n : room;

		buf_add(kept, (struct mr_str){ bytes, take });
		*cut |= take < (size_t)n;
	}
}

static void
move_bytes(struct running *run, struct spawned *ret, int timeout_ms)
{
	struct mr_str rest = str_from(run->what->input, run->written);
	bool has_input = !run->what->enough || rest.len > 0; /* or its end to send */
	struct pollfd p[3] = {
		{ .fd = has_input ? run->fd[IN] : -1, .events = POLLOUT },
		{ .fd = run->fd[OUT], .events = POLLIN },
		{ .fd = run->fd[ERR], .events = POLLIN },
	};

	if (poll(p, 3, timeout_ms) <= 0)
		return;
	if (p[IN].revents) {
		ssize_t n = rest.len > 0 ? write_quietly(run->fd[IN], rest) : 0;

		if (n > 0)
			run->written += (size_t)n;
		if ((n < 0 && errno == EPIPE) || (run->written == run->what->input.len && !run->what->enough))
			sys_close_fd(&run->fd[IN]);
	}
	if (p[OUT].revents)
		take_output(run, OUT, &ret->out, &ret->cut);
	if (p[OUT].revents && run->what->enough && run->what->enough(run->what->enough_ctx, &ret->out))
		sys_close_fd(&run->fd[IN]);
	if (p[ERR].revents)
		take_output(run, ERR, &ret->err, &ret->cut);
}

/* ---- Ending ---- */

/* True: it cannot be ended. */
static bool
press_if_late(struct running *run, struct spawned *ret)
{
	static const struct {
		int signal, then_ms;
	} steps[] = { { SIGTERM, GRACE_MS }, { SIGKILL, LINGER_MS } };
	int64_t now = clock_boot_ms();
	bool stopped = run->hurry == 0 && run->what->stop && run->what->stop(run->what->stop_ctx);

	if (!stopped && (run->deadline_ms == 0 || now < run->deadline_ms))
		return false;
	ret->timed_out = true;
	if (run->hurry == (int)(sizeof steps / sizeof steps[0]))
		return true;
	(void)kill(-run->pid, steps[run->hurry].signal);
	run->deadline_ms = now + steps[run->hurry].then_ms;
	run->hurry++;
	return false;
}

static void
follow(struct running *run, struct spawned *ret)
{
	int status;

	for (;;) {
		pid_t got = waitpid(run->pid, &status, WNOHANG);

		if (got == run->pid)
			run->status = status;
		if (got == run->pid || (got < 0 && errno == ECHILD))
			break;
		bool silent = run->fd[IN] < 0 && run->fd[OUT] < 0 && run->fd[ERR] < 0;
		int64_t pause = silent ? SLICE_MS / 20 : SLICE_MS; /* it closed all its output: its end is near */
		int64_t left = run->deadline_ms - clock_boot_ms();

		if (run->deadline_ms != 0 && left < pause)
			pause = left > 0 ? left : 0;
		move_bytes(run, ret, (int)pause);
		if (press_if_late(run, ret))
			return;
	}
	/* Its last output is still in the pipes; other processes that have them open are not waited for. */
	if (run->fd[OUT] >= 0)
		take_output(run, OUT, &ret->out, &ret->cut);
	if (run->fd[ERR] >= 0)
		take_output(run, ERR, &ret->err, &ret->cut);
	if (ret->timed_out)
		(void)kill(-run->pid, SIGKILL); /* children that it left behind */
}

enum mr_rc
spawn_run(const struct spawn *what, struct spawned *ret, struct mr_error *err)
{
	struct running run = { .fd = { -1, -1, -1, -1, -1 }, .what = what, .status = NOT_DONE };

	enum mr_rc rc = start(what, &run, err);

	if (rc == MR_OK) {
		run.deadline_ms = what->limit_ms > 0 ? clock_boot_ms() + what->limit_ms : 0;
		follow(&run, ret);
		ret->exit_code = run.status != NOT_DONE && WIFEXITED(run.status) ? WEXITSTATUS(run.status) : -1;
		ret->signal = run.status != NOT_DONE && WIFSIGNALED(run.status) ? WTERMSIG(run.status) : 0;
		if (ret->out.failed || ret->err.failed)
			rc = mr_nomem(err);
	}
	close_all(run.fd);
	return rc;
}

void
spawned_describe(const struct spawned *ran, int64_t limit_ms, struct buf *out)
{
	char limit[24];

	if (ran->timed_out && limit_ms > 0) {
		duration_text(limit_ms, limit);
		buf_addf(out, "did not end within %s", limit);
	} else if (ran->timed_out) {
		buf_adds(out, "stopped");
	} else if (ran->signal != 0) {
		buf_addf(out, "signal %d", ran->signal);
	} else {
		buf_addf(out, "exit %d", ran->exit_code);
	}
}

void
spawned_done(struct spawned *ran)
{
	buf_done(&ran->out);
	buf_done(&ran->err);
}

bool
spawned_with(const struct mr_process *p, const char *entry)
{
	mr_auto(buf_done) struct buf name = BUF_INIT, value = BUF_INIT;
	size_t len = strcspn(entry, "=");

	buf_add(&name, (struct mr_str){ entry, len });
	return buf_ok(&name) && entry[len] == '=' && process_variable(p, buf_z(&name), &value) &&
	       strcmp(buf_z(&value), entry + len + 1) == 0;
}
