/* SPDX-License-Identifier: MIT */
/* watch.c - waiting for something in an inbox: inotify where it can be had, and a look every second in any case, since
 * a file may become complete without an event. */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/workspace/workspace.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__linux__) && !defined(MR_PORTABLE)
#include <sys/inotify.h>
#define HAVE_INOTIFY 1
#else
#define HAVE_INOTIFY 0
#endif

#define WAIT_MAX_MS 1000
#define POLL_MS 100

struct watch {
	struct box box;
	int inotify_fd; /* -1: poll */
};

#if HAVE_INOTIFY
static void
arm(struct watch *w)
{
	const uint32_t events = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	char path[64];

	w->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (w->inotify_fd < 0)
		return;
	/* By descriptor: the folder that was opened, whatever has its name now. */
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", w->box.inbox_fd);
	if (inotify_add_watch(w->inotify_fd, path, events) < 0) {
		sys_close_fd(&w->inotify_fd);
		w->inotify_fd = -1;
	}
}
#else
static void
arm(struct watch *w)
{
	w->inotify_fd = -1;
}
#endif

enum mr_rc
workspace_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	struct watch *w = calloc(1, sizeof *w);

	if (!w)
		return mr_nomem(err);
	w->inotify_fd = -1;
	if (box_open(&w->box, workspace_of(room), agent, BOX_MAKE_OWN, err) != MR_OK) {
		workspace_watch_close(room, w);
		return err->code;
	}
	arm(w);
	*ret_watch = w;
	return MR_OK;
}

void
workspace_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct watch *w = watch;
	int most = w->inotify_fd < 0 ? POLL_MS : WAIT_MAX_MS;
	int wait_ms = timeout_ms < 0 ? 0 : timeout_ms < most ? (int)timeout_ms : most;
	struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };
	char events[4096];

	(void)room;
	if (poll(&p, w->inotify_fd < 0 ? 0 : 1, wait_ms) > 0)
		while (sys_read(w->inotify_fd, events, sizeof events) > 0)
			;
}

void
workspace_watch_close(struct mr_room *room, void *watch)
{
	struct watch *w = watch;

	(void)room;
	if (!w)
		return;
	sys_close_fd(&w->inotify_fd);
	box_done(&w->box);
	free(w);
}
