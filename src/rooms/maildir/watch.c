/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting for a change in a mailbox. inotify where it can be had; beside it always a slow poll, because
 * deadlines, dying holders and other machines on a shared mount raise no event, and because a fleet of agents runs
 * out of inotify instances. So a wait ends at an event or after at most two seconds, and the caller looks again.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/maildir.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__linux__) && !defined(MR_PORTABLE)
#include <sys/inotify.h>
#define HAVE_INOTIFY 1
#else
#define HAVE_INOTIFY 0
#endif

#define WAIT_MAX_MS 2000
#define POLL_FIRST_MS 200

/* cur/ as well as new/: mail clients deliver there, and released mail may come back there. held/ for takeovers. */
static const enum box_folder watched[] = { BOX_NEW, BOX_CUR, BOX_HELD };
#define WATCHED (sizeof(watched) / sizeof(watched[0]))

struct watch {
	struct mailbox box;
	int inotify_fd;             /* -1: poll only */
	int64_t changed_ns[WATCHED]; /* mtimes when last looked at */
	int64_t pause_ms;           /* of the poll; grows while nothing happens */
};

static int64_t
changed_ns(struct watch *w, size_t i)
{
	struct stat st;

	if (sys_stat_fd(w->box.folder[watched[i]], &st) < 0)
		return -1;
	return (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

static bool
has_changed(struct watch *w)
{
	bool changed = false;

	for (size_t i = 0; i < WATCHED; i++) {
		int64_t now = changed_ns(w, i);
		changed |= now != w->changed_ns[i];
		w->changed_ns[i] = now;
	}
	return changed;
}

#if HAVE_INOTIFY
static bool
add_watch(int inotify_fd, struct watch *w, enum box_folder which)
{
	static const char *const names[BOX_FOLDERS] = { [BOX_NEW] = "new", [BOX_CUR] = "cur", [BOX_HELD] = "held" };
	const uint32_t events = IN_CREATE | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	mr_auto(buf_done) struct buf path = BUF_INIT;

	/* By descriptor: the folder that was opened and checked, whatever has its name now. */
	buf_addf(&path, "/proc/self/fd/%d", w->box.folder[which]);
	if (buf_ok(&path) && inotify_add_watch(inotify_fd, buf_z(&path), events) >= 0)
		return true;
	buf_clear(&path); /* no /proc here */
	buf_addf(&path, "%s/agents/%s/%s", w->box.md->path, w->box.agent, names[which]);
	return buf_ok(&path) && inotify_add_watch(inotify_fd, buf_z(&path), events | IN_DONT_FOLLOW) >= 0;
}

static int
arm(struct watch *w)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	for (size_t i = 0; i < WATCHED && fd >= 0; i++)
		if (!add_watch(fd, w, watched[i]))
			sys_close_fd(&fd), fd = -1;
	return fd;
}
#else
static int
arm(struct watch *w)
{
	(void)w;
	return -1;
}
#endif

enum mr_rc
maildir_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	struct watch *w = calloc(1, sizeof(*w));
	int fd = -1;

	if (w == NULL)
		return mr_nomem(err);
	w->box = MAILBOX_INIT;
	w->inotify_fd = -1;
	w->pause_ms = POLL_FIRST_MS;
	enum mr_rc rc = mailbox_open(&w->box, maildir_of(room), agent, err);
	for (size_t i = 0; i < WATCHED && rc == MR_OK; i++)
		rc = mailbox_folder(&w->box, watched[i], &fd, err);
	if (rc != MR_OK) {
		maildir_watch_close(room, w);
		return rc;
	}
	(void)has_changed(w); /* from here on: the caller scans after this */
	w->inotify_fd = arm(w);
	*ret_watch = w;
	return MR_OK;
}

/* Takes all events out, so that the next wait waits. */
static void
drain_events(int fd)
{
	char events[4096];

	while (sys_read(fd, events, sizeof(events)) > 0)
		continue;
}

static void
wait_by_polling(struct watch *w, int64_t timeout_ms)
{
	int64_t end_ms = clock_boot_ms() + timeout_ms;

	for (;;) {
		int64_t left_ms = end_ms - clock_boot_ms();
		if (left_ms <= 0)
			return;
		(void)poll(NULL, 0, (int)(left_ms < w->pause_ms ? left_ms : w->pause_ms));
		if (has_changed(w)) {
			w->pause_ms = POLL_FIRST_MS;
			return;
		}
		w->pause_ms = w->pause_ms * 3 / 2 < WAIT_MAX_MS ? w->pause_ms * 3 / 2 : WAIT_MAX_MS;
	}
}

void
maildir_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct watch *w = watch;
	int64_t wait_ms = timeout_ms < 0 ? 0 : timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS;

	(void)room;
	if (w->inotify_fd < 0) {
		wait_by_polling(w, wait_ms);
		return;
	}
	struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };
	if (poll(&p, 1, (int)wait_ms) > 0)
		drain_events(w->inotify_fd);
}

void
maildir_watch_close(struct mr_room *room, void *watch)
{
	struct watch *w = watch;

	(void)room;
	if (w == NULL)
		return;
	sys_close_fd(&w->inotify_fd);
	mailbox_done(&w->box);
	free(w);
}
