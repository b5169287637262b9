/* SPDX-License-Identifier: MIT */
/* progress.c - see progress.h. Drawn ten times a second at most, and not at all in a run that is over before that. */
#include "cli/progress.h"

#include "base/clock.h"
#include "base/sys.h"
#include "base/text.h"
#include <sys/ioctl.h>

enum { FIRST_MS = 300, EVERY_MS = 100, BAR_MAX = 40, BAR_MIN = 10, AROUND_BAR = 40 };

struct progress
progress_begin(const struct cli *cli)
{
	struct winsize size = { 0 };
	struct progress p = { .wanted = !cli->json && ioctl(2, TIOCGWINSZ, &size) == 0, .columns = 80 };

	if (p.wanted && size.ws_col > 0)
		p.columns = size.ws_col;
	p.next_ms = clock_boot_ms() + FIRST_MS;
	return p;
}

void
progress_draw(struct progress *p, size_t done, size_t total, const char *what)
{
	mr_auto(buf_done) struct buf line = BUF_INIT, name = BUF_INIT;
	size_t width = p->columns > AROUND_BAR + BAR_MAX   ? BAR_MAX
		       : p->columns > AROUND_BAR + BAR_MIN ? p->columns - AROUND_BAR
							   : BAR_MIN;
	int64_t now = p->wanted ? clock_boot_ms() : 0;

	if (!p->wanted || now < p->next_ms || total == 0)
		return;
	p->next_ms = now + EVERY_MS;
	p->drawn = true;
	buf_adds(&line, "\r[");
	for (size_t i = 0; i < width; i++)
		buf_addc(&line, i * total < done * width ? '#' : ' ');
	(void)fence_add(&name, utf8_cut(str_of(what), 16), FENCE_LINE, 0);
	buf_addf(&line, "] %zu of %zu  %s\033[K", done, total, buf_z(&name));
	if (buf_ok(&line))
		(void)sys_write_all(2, line.ptr, line.len);
}

void
progress_clear(struct progress *p)
{
	static const char wipe[] = "\r\033[K";

	if (p->drawn)
		(void)sys_write_all(2, wipe, sizeof(wipe) - 1);
	p->drawn = false;
}
