/* SPDX-License-Identifier: MIT */
/*
 * log.c - what a hook reads, how long it may take, and why it did nothing.
 *
 * Standard input is read to its end: a harness that is still writing when its hook stops reading may take that for an
 * error. The time is limited because a harness waits for its hooks: one that hangs (a lock, a dead network file system,
 * an input that never ends) hangs the agent.
 *
 * The log is one line each in <state>/hook.log; a full one becomes hook.log.old, so there are never more than two of
 * LOG_MAX. What the harness sent, and the environment, are never written: they hold secrets. When the time is up a line
 * comes from a signal handler. It may neither take memory nor open files, and a file system that hangs is one reason
 * why it runs: the log is opened and the line written down before; the handler sets its time and calls write(2). Where
 * no log is there yet, or none can be opened, the line goes to standard error.
 */
#include "cli/hook/hook.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/sys.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define LOG "hook.log"
#define LOG_MAX ((off_t)64 << 10)
#define LINE_MAX_BYTES 600
#define FIRST_PIECE (((size_t)1 << 10) - 1) /* holds most events */
#define PIECE ((size_t)32 << 10)

enum mr_rc
input_read(struct buf *ret, struct mr_error *err)
{
	for (;;) {
		size_t left = ret->cap > ret->len ? ret->cap - ret->len - 1 : 0;
		size_t want = ret->cap == 0 ? FIRST_PIECE : left >= FIRST_PIECE / 2 ? left : PIECE;

		if (!buf_reserve(ret, want))
			return mr_nomem(err);
		ssize_t n = sys_read(0, ret->ptr + ret->len, want);

		if (n < 0)
			return mr_fail_errno(err, "cannot read the event");
		if (n == 0)
			break;
		size_t room = INPUT_MAX - ret->len; /* what is over is read and dropped */

		ret->len += (size_t)n < room ? (size_t)n : room;
	}
	ret->ptr[ret->len] = '\0';
	return MR_OK;
}

/* ---- Lines ---- */

/* One line without its time: " HARNESS EVENT: TEXT\n". */
static size_t
compose(const struct hook *h, char *ret, size_t size, const char *text)
{
	int len = snprintf(ret, size, " %s %s: %s", h->harness->name, h->event.name ? h->event.name : "?", text);
	size_t n = len < 0 ? 0 : (size_t)len < size - 1 ? (size_t)len : size - 2;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)ret[i] < ' ' || ret[i] == 0x7f)
			ret[i] = ' ';
	ret[n] = '\n';
	ret[n + 1] = '\0';
	return n + 1;
}

void
log_line(const struct hook *h, const char *text)
{
	mr_auto(sys_close_fd) int dir = -1, fd = -1;
	mr_auto(buf_done) struct buf fenced = BUF_INIT;
	char line[LINE_MAX_BYTES];
	struct stat st;

	(void)fence_add(&fenced, str_of(text), FENCE_LINE, 0);
	if (!h->log_dir || dir_make(AT_FDCWD, h->log_dir, 0700, false, &dir, IGNORED) != MR_OK)
		return;
	if (sys_stat(dir, LOG, &st) == 0 && st.st_size > LOG_MAX)
		(void)sys_rename(dir, LOG, dir, LOG ".old");
	fd = sys_open(dir, LOG, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	time_rfc3339(clock_now_ms(), line);
	size_t n = RFC3339_LEN + compose(h, line + RFC3339_LEN, sizeof line - RFC3339_LEN, buf_z(&fenced));

	(void)sys_write_all(fd, line, n);
}

/* ---- The time limit ---- */

static struct {                        /* for the signal handler */
	char lines[2][LINE_MAX_BYTES]; /* it may come while the other one is written */
	char *volatile line;
	int fd;
} late;

/* Only calls that signal-safety(7) lists, and arithmetic. Nothing that this process has done so far needs an end of its
 * own: locks go with it, and what it did not say it was shown is shown again. */
static void
time_is_up(int signal_number)
{
	char *line = late.line, when[RFC3339_LEN + 1];

	(void)signal_number;
	time_rfc3339(clock_now_ms(), when);
	memcpy(line, when, RFC3339_LEN);
	(void)!write(late.fd, line, RFC3339_LEN + strlen(line + RFC3339_LEN));
	_exit(EXIT_DONE);
}

void
time_limit_named(const struct hook *h)
{
	char *line = late.line == late.lines[0] ? late.lines[1] : late.lines[0];

	(void)compose(h, line + RFC3339_LEN, LINE_MAX_BYTES - RFC3339_LEN, "the time is up");
	late.line = line;
}

void
time_limit(const struct hook *h, int seconds)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	if (!late.line) {
		late.fd = -1;
		buf_addf(&path, "%s/" LOG, h->log_dir ? h->log_dir : "");
		if (h->log_dir && buf_ok(&path))
			late.fd = sys_open(AT_FDCWD, buf_z(&path), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0);
		late.fd = late.fd < 0 ? 2 : late.fd;
		time_limit_named(h);
	}
	(void)signal(SIGALRM, seconds > 0 ? time_is_up : SIG_IGN);
	(void)alarm((unsigned)seconds);
}
