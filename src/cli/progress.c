/* SPDX-License-Identifier: MIT */
/* progress.c - one line on a terminal that says how far a long command is: count, rate, time left. It is drawn on
 * stderr ten times a second at most, not at all in a run that is over before that, and wiped away at the end. Ctrl-C
 * ends the run between two messages; a second one kills as usual. */
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/sys.h"
#include "cli/cli.h"

enum { FIRST_MS = 300, EVERY_MS = 100, BAR_MAX = 30, BAR_MIN = 10, AROUND_BAR = 60 };

static volatile sig_atomic_t asked;

static void
ask_stop(int signal)
{
	(void)signal;
	asked = 1;
}

void
stop_heed(int flags)
{
	struct sigaction action = { .sa_handler = ask_stop, .sa_flags = flags };

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
}

bool
stop_asked(void *ctx)
{
	(void)ctx;
	return asked != 0;
}

void
progress_begin(struct cli *cli, struct mr_room *room)
{
	struct progress *p = &cli->progress;
	struct winsize size = { 0 };

	/* In JSON on a terminal the line would stand between the answers. */
	*p = (struct progress){ .wanted = !cli->sink && ioctl(2, TIOCGWINSZ, &size) == 0 && !(cli->json && isatty(1)) };
	p->columns = size.ws_col > 0 ? size.ws_col : 80;
	p->begun_ms = clock_boot_ms();
	p->next_ms = p->begun_ms + FIRST_MS;
	mr_room_on_progress(room, progress_step, cli);
	if (!cli->sink) /* a call of a server is ended by the server */
		stop_heed(SA_RESTART | (int)SA_RESETHAND);
}

bool
progress_step(void *ctx, const char *what, size_t done, size_t total)
{
	struct cli *cli = ctx;
	struct progress *p = &cli->progress;
	mr_auto(buf_done) struct buf line = BUF_INIT, name = BUF_INIT;
	size_t width = p->columns > AROUND_BAR + BAR_MAX   ? BAR_MAX
		       : p->columns > AROUND_BAR + BAR_MIN ? p->columns - AROUND_BAR
							   : 0;
	int64_t now = p->wanted ? clock_boot_ms() : 0, took = now - p->begun_ms;

	if (!p->wanted || now < p->next_ms || asked)
		return !asked;
	p->next_ms = now + EVERY_MS;
	p->drawn = true;
	buf_adds(&line, "\r");
	if (total > 0 && width > 0) {
		buf_addc(&line, '[');
		for (size_t i = 0; i < width; i++)
			buf_addc(&line, i * total < done * width ? '#' : ' ');
		buf_adds(&line, "] ");
	}
	buf_addf(&line, "%zu", done);
	if (total > 0)
		buf_addf(&line, " of %zu", total);
	if (took > 0)
		buf_addf(&line, "  %llu/s", (unsigned long long)done * 1000 / (unsigned long long)took);
	if (total > done && done > 0)
		buf_addf(
		    &line, "  %s left", lasting((int64_t)((double)took / (double)done * (double)(total - done))).text);
	(void)fence_add(&name, utf8_cut(str_of(what), 16), FENCE_LINE, 0);
	buf_addf(&line, "  %s\033[K", buf_z(&name));
	if (buf_ok(&line))
		(void)sys_write_all(2, line.ptr, line.len);
	return true;
}

void
progress_count(struct cli *cli, size_t n, const char *done)
{
	mr_auto(buf_done) struct buf line = BUF_INIT;

	buf_addf(&line, "\rmailroom: %zu messages %s", n, done);
	cli->progress.drawn = buf_ok(&line) && sys_write_all(2, line.ptr, line.len) == 0;
}

void
progress_clear(struct cli *cli)
{
	static const char wipe[] = "\r\033[K";

	if (cli->progress.drawn)
		(void)sys_write_all(2, wipe, sizeof(wipe) - 1);
	cli->progress.drawn = false;
}
