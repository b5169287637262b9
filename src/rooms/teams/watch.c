/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting for a change of an inbox. inotify tells of the folder; only events of that one file count, so that
 * a busy team does not wake everybody. Beside it always a slow look at the file itself: the folder may not be there
 * yet, may be made anew, and there may be no inotify.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/teams/teams.h"
#include <poll.h>

#if defined(__linux__) && !defined(MR_PORTABLE)
#include <sys/inotify.h>
#define HAVE_INOTIFY 1
#else
#define HAVE_INOTIFY 0
#endif

#define WAIT_MAX_MS 2000
#define POLL_MS 250

struct watch {
	char file[TEAM_NAME_LEN];
	int inotify_fd;  /* -1: poll only */
	uint64_t folder; /* inode of the folder that is watched; 0: none */
	struct stat seen;
};

/* The file as it is now; zeroed when it is not there. */
static void
look(const struct teams *t, const struct watch *w, struct stat *ret, int *ret_dir)
{
	struct mr_error ignored = { 0 };

	*ret = (struct stat){ 0 };
	if (teams_open_inboxes(t, ret_dir, &ignored) == MR_OK && sys_stat(*ret_dir, w->file, ret) < 0)
		*ret = (struct stat){ 0 };
}

static bool
has_changed(const struct stat *a, const struct stat *b)
{
	return a->st_ino != b->st_ino || a->st_size != b->st_size || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
	       a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

#if HAVE_INOTIFY
static void
arm(struct watch *w, int dir_fd)
{
	const uint32_t events = IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	struct stat st;
	char path[64];

	if (dir_fd < 0 || sys_stat_fd(dir_fd, &st) < 0 || st.st_ino == w->folder)
		return;
	if (w->inotify_fd < 0)
		w->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", dir_fd);
	if (w->inotify_fd >= 0 && inotify_add_watch(w->inotify_fd, path, events) >= 0)
		w->folder = st.st_ino;
}

/* Takes all events out: was one of our file, or of the folder itself? */
static bool
is_woken(struct watch *w)
{
	char events[4096];
	struct inotify_event e;
	bool woken = false;
	ssize_t n;

	while ((n = sys_read(w->inotify_fd, events, sizeof events)) > 0)
		for (size_t at = 0; at + sizeof e <= (size_t)n; at += sizeof e + e.len) {
			memcpy(&e, events + at, sizeof e);
			woken |= e.len == 0 || strcmp(events + at + sizeof e, w->file) == 0;
		}
	return woken;
}
#else
static void
arm(struct watch *w, int dir_fd)
{
	(void)w;
	(void)dir_fd;
}

static bool
is_woken(struct watch *w)
{
	(void)w;
	return false;
}
#endif

enum mr_rc
teams_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	mr_auto(sys_close_fd) int dir_fd = -1;
	struct watch *w = calloc(1, sizeof *w);

	if (!w)
		return mr_nomem(err);
	w->inotify_fd = -1;
	teams_inbox_name(agent, w->file);
	look(teams_of(room), w, &w->seen, &dir_fd); /* from here on: the caller scans after this */
	arm(w, dir_fd);
	*ret_watch = w;
	return MR_OK;
}

void
teams_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct watch *w = watch;
	int64_t wait_ms = timeout_ms < 0 ? 0 : timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS;
	int64_t end_ms = clock_boot_ms() + wait_ms;

	for (;;) {
		mr_auto(sys_close_fd) int dir_fd = -1;
		int64_t left_ms = end_ms - clock_boot_ms();
		int64_t pause_ms = w->folder && w->inotify_fd >= 0 ? left_ms : left_ms < POLL_MS ? left_ms : POLL_MS;
		struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };
		struct stat now;

		if (poll(&p, w->inotify_fd >= 0 ? 1 : 0, pause_ms > 0 ? (int)pause_ms : 0) > 0 && is_woken(w))
			return;
		look(teams_of(room), w, &now, &dir_fd);
		bool changed = has_changed(&now, &w->seen);

		w->seen = now;
		arm(w, dir_fd); /* the folder may be a new one */
		if (changed || clock_boot_ms() >= end_ms)
			return;
	}
}

void
teams_watch_close(struct mr_room *room, void *watch)
{
	struct watch *w = watch;

	(void)room;
	if (!w)
		return;
	sys_close_fd(&w->inotify_fd);
	free(w);
}
