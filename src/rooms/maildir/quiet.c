/* SPDX-License-Identifier: MIT */
/*
 * quiet.c - "there was nothing in this folder", remembered where it costs one look.
 *
 * Hooks ask at every prompt and every tool call whether there is mail, and mostly there is none. Reading new/, cur/ and
 * spool/ each time is a good part of such a command. Whoever has read a folder that held still, and found nothing for
 * himself in it, therefore writes a mark into the folder's access time, made from its modification time. Any change of
 * the folder moves the modification time, and the mark does not fit any more; so does the access time when somebody
 * reads it (relatime). A mark that does not fit means: read the folder.
 *
 * When is a mark that fits a lie? Only if the folder changed and its modification time did not. Times advance in ticks
 * of up to 10 ms, on old file systems of up to 2 s: so a folder that changed in the last 3 s gets no mark, and every
 * change after it shows. The mark is far from any time that a clock, `touch`, tar or a copy would put there. What it
 * says travels with the folder: a copy that keeps both times keeps what is in it, too.
 */
#include "base/clock.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"

#define SETTLED_NS ((int64_t)3 * 1000000000)
#define MARK_BACK_NS ((int64_t)1000000007 * 1000000000) /* 31 years before the change that it stands for */

static int64_t
nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool
quiet_is(int dir_fd, const char *folder)
{
	struct stat st;

	return sys_stat(dir_fd, folder, &st) == 0 && S_ISDIR(st.st_mode) &&
	       nanoseconds(st.st_atim) == nanoseconds(st.st_mtim) - MARK_BACK_NS;
}

void
quiet_mark(int dir_fd, const char *folder, int64_t changed_ns)
{
	if (changed_ns > MARK_BACK_NS && clock_now_ns() - changed_ns > SETTLED_NS)
		(void)sys_set_atime(dir_fd, folder, changed_ns - MARK_BACK_NS); /* not ours, read-only: no mark */
}
