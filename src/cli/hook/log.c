/* SPDX-License-Identifier: MIT */
/*
 * log.c - why a hook did nothing. One line each in <state>/hook.log; a full one becomes hook.log.old, so there are
 * never more than two of LOG_MAX. What the harness sent, and the environment, are never written: they hold secrets.
 *
 * When the time is up a line comes from a signal handler, which may take no memory: what it needs is made before.
 */
#include "cli/hook/hook.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/sys.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define LOG "hook.log"
#define LOG_OLD LOG ".old"
#define LOG_MAX ((off_t)64 << 10)
#define LINE_MAX_BYTES 600

static const char *folder; /* to the end of the process */
static const char *harness = "?", *event = "?";

void
log_begin(struct cli *cli, const char *harness_name)
{
	const char *state = env_state_dir(cli);

	harness = harness_name;
	if (!folder && state)
		folder = strdup(state);
}

void
log_event(const char *event_name)
{
	event = event_name;
}

static void
add_line(int dir, const char *text)
{
	mr_auto(sys_close_fd) int fd = -1;
	char line[LINE_MAX_BYTES], when[RFC3339_LEN + 1];
	struct stat st;

	if (sys_stat(dir, LOG, &st) == 0 && st.st_size > LOG_MAX)
		(void)sys_rename(dir, LOG, dir, LOG_OLD);
	fd = sys_open(dir, LOG, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	time_rfc3339(clock_now_ms(), when);
	int len = snprintf(line, sizeof line, "%s %s %s: %s", when, harness, event, text);
	size_t n = len < 0 ? 0 : (size_t)len < sizeof line - 1 ? (size_t)len : sizeof line - 2;

	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = ' ';
	line[n] = '\n';
	(void)sys_write_all(fd, line, n + 1);
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

void
log_from_handler(const char *text)
{
	mr_auto(sys_close_fd) int dir = -1;
	struct mr_error ignored = { 0 };

	if (folder && dir_open(AT_FDCWD, folder, &dir, &ignored) == MR_OK)
		add_line(dir, text);
}

void
log_error(const struct mr_error *err)
{
	log_line(err->message);
}
