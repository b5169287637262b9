/* SPDX-License-Identifier: MIT */
/*
 * log.c - why a hook did nothing. One line each in <state>/hook.log; a full one becomes hook.log.old, so there are
 * never more than two of LOG_MAX. What the harness sent, and the environment, are never written: they hold secrets.
 *
 * When the time is up a line comes from a signal handler. It may neither take memory nor open files, and a file system
 * that hangs is one reason why it runs: the log is opened and the line written down before; the handler sets its time
 * and calls write(2). Where no log is there yet, or none can be opened, the line goes to standard error.
 */
#include "cli/hook/hook.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/sys.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOG "hook.log"
#define LOG_OLD LOG ".old"
#define LOG_MAX ((off_t)64 << 10)
#define LINE_MAX_BYTES 600

static const char *folder; /* to the end of the process */
static const char *harness = "?", *event = "?";
static char late_lines[2][LINE_MAX_BYTES]; /* the handler may come while the other one is written */
static char *volatile late_line;
static int late_fd = 2;

/* One line without its time: " HARNESS EVENT: TEXT\n". */
static size_t
compose(char *ret, size_t size, const char *text)
{
	int len = snprintf(ret, size, " %s %s: %s", harness, event, text);
	size_t n = len < 0 ? 0 : (size_t)len < size - 1 ? (size_t)len : size - 2;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)ret[i] < ' ' || ret[i] == 0x7f)
			ret[i] = ' ';
	ret[n] = '\n';
	ret[n + 1] = '\0';
	return n + 1;
}

static void
prepare_late(void)
{
	char *line = late_line == late_lines[0] ? late_lines[1] : late_lines[0];

	(void)compose(line + RFC3339_LEN, LINE_MAX_BYTES - RFC3339_LEN, "the time is up");
	late_line = line;
}

void
log_begin(struct cli *cli, const char *harness_name)
{
	const char *state = env_state_dir(cli);
	mr_auto(buf_done) struct buf path = BUF_INIT;

	harness = harness_name;
	if (!folder && state)
		folder = strdup(state);
	buf_addf(&path, "%s/" LOG, folder ? folder : "");
	if (folder && buf_ok(&path) && late_fd == 2)
		late_fd = sys_open(AT_FDCWD, buf_z(&path), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0);
	late_fd = late_fd < 0 ? 2 : late_fd;
	prepare_late();
}

void
log_event(const char *event_name)
{
	event = event_name;
	prepare_late();
}

static void
add_line(int dir, const char *text)
{
	mr_auto(sys_close_fd) int fd = -1;
	char line[LINE_MAX_BYTES];
	struct stat st;

	if (sys_stat(dir, LOG, &st) == 0 && st.st_size > LOG_MAX)
		(void)sys_rename(dir, LOG, dir, LOG_OLD);
	fd = sys_open(dir, LOG, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	time_rfc3339(clock_now_ms(), line);
	size_t n = RFC3339_LEN + compose(line + RFC3339_LEN, sizeof line - RFC3339_LEN, text);

	(void)sys_write_all(fd, line, n);
}

void
log_line(const char *text)
{
	mr_auto(sys_close_fd) int dir = -1;
	mr_auto(buf_done) struct buf fenced = BUF_INIT;
	struct mr_error ignored = { 0 };

	(void)fence_add(&fenced, str_of(text), FENCE_LINE, 0);
	if (folder && dir_make(AT_FDCWD, folder, 0700, false, &dir, &ignored) == MR_OK)
		add_line(dir, buf_z(&fenced));
}

/* In a handler: only calls that signal-safety(7) lists, and arithmetic. */
void
log_late(void)
{
	char *line = late_line, when[RFC3339_LEN + 1];

	if (!line)
		return;
	time_rfc3339(clock_now_ms(), when);
	memcpy(line, when, RFC3339_LEN);
	(void)!write(late_fd, line, RFC3339_LEN + strlen(line + RFC3339_LEN));
}

void
log_error(const struct mr_error *err)
{
	log_line(err->message);
}
