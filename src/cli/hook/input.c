/* SPDX-License-Identifier: MIT */
/*
 * input.c - standard input, to its end: a harness that is still writing when its hook stops reading may take that for
 * an error. And the time limit of it all: a harness waits for its hooks, so one that hangs (a lock, a dead network
 * file system, an input that never ends) hangs the agent.
 */
#include "cli/hook/hook.h"

#include "base/sys.h"
#include <signal.h>
#include <unistd.h>

#define FIRST_PIECE (((size_t)1 << 10) - 1) /* holds most events, in a page that is there anyway */
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
		size_t room = INPUT_MAX - ret->len; /* what is over is read and forgotten */

		ret->len += (size_t)n < room ? (size_t)n : room;
	}
	ret->ptr[ret->len] = '\0';
	return MR_OK;
}

/* Nothing that this process has done so far needs an end of its own: locks go with it, and what it did not say it was
 * shown is shown again. */
static void
time_is_up(int signal_number)
{
	(void)signal_number;
	log_late();
	_exit(EXIT_DONE);
}

void
time_limit(int seconds)
{
	(void)signal(SIGALRM, seconds > 0 ? time_is_up : SIG_IGN);
	(void)alarm((unsigned)seconds);
}
