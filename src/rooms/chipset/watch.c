/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting for mail. inotify on the mailbox, or on the nearest folder above it that is there, as it appears
 * with the first message; beside it a look every second, for shared mounts and for fleets that ran out of inotify.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/chipset/chipset.h"
#include <fcntl.h>
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
#define POLL_MS 200

struct watch {
	struct chipset *cs;
	char box[CHIPSET_ID_MAX + 1];
	int inotify_fd; /* -1: poll only */
	int folder_fd;  /* what is watched */
	bool is_box;    /* the mailbox itself, not a folder above it */
	int64_t changed_ns;
};

static int64_t
change_of(int fd)
{
	struct stat st;

	return sys_stat_fd(fd, &st) == 0 && st.st_nlink > 0
		   ? (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec
		   : -1;
}

/* The mailbox, or what there is of the path to it. */
static enum mr_rc
open_nearest(struct watch *w, struct mr_error *err)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s/mail/%s", w->cs->path, w->box);
	if (!buf_ok(&path))
		return mr_nomem(err);
	enum mr_rc rc = chipset_box_open(w->cs, w->box, MR_INBOX, &w->folder_fd, err);

	w->is_box = rc == MR_OK;
	while (rc == MR_NOTFOUND && path.len > 1) {
		while (path.len > 1 && path.ptr[path.len - 1] != '/')
			path.len--;
		while (path.len > 1 && path.ptr[path.len - 1] == '/')
			path.len--;
		path.ptr[path.len] = '\0';
		rc = dir_open(AT_FDCWD, buf_z(&path), &w->folder_fd, err);
	}
	return rc;
}

#if HAVE_INOTIFY
static void
arm(struct watch *w)
{
	const uint32_t events = IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	char path[64];

	sys_close_fd(&w->inotify_fd);
	w->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", w->folder_fd);
	if (w->inotify_fd >= 0 && inotify_add_watch(w->inotify_fd, path, events) < 0) {
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

static enum mr_rc
begin(struct watch *w, struct mr_error *err)
{
	sys_close_fd(&w->folder_fd);
	w->folder_fd = -1;

	TRY(open_nearest(w, err));
	w->changed_ns = change_of(w->folder_fd);
	arm(w);
	return MR_OK;
}

enum mr_rc
chipset_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	struct watch *w = calloc(1, sizeof *w);

	if (!w)
		return mr_nomem(err);
	w->cs = chipset_of(room);
	w->inotify_fd = w->folder_fd = -1;
	enum mr_rc rc = chipset_id(agent, w->box, err);

	if (rc == MR_OK)
		rc = begin(w, err);
	if (rc != MR_OK) {
		chipset_watch_close(room, w);
		return rc;
	}
	*ret_watch = w;
	return MR_OK;
}

static void
wait_by_polling(struct watch *w, int64_t wait_ms)
{
	int64_t end_ms = clock_boot_ms() + wait_ms;

	for (int64_t left_ms; (left_ms = end_ms - clock_boot_ms()) > 0;) {
		(void)poll(NULL, 0, (int)(left_ms < POLL_MS ? left_ms : POLL_MS));
		int64_t now = change_of(w->folder_fd);

		if (now != w->changed_ns) {
			w->changed_ns = now;
			return;
		}
	}
}

static void
drain_events(const struct watch *w)
{
	char events[4096];

	while (sys_read(w->inotify_fd, events, sizeof events) > 0)
		;
}

/* The mailbox may have come, or gone and come again: what is watched is settled before the caller looks. */
void
chipset_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct watch *w = watch;
	struct mr_error ignored = { 0 };
	int64_t wait_ms = timeout_ms < 0 ? 0 : timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS;
	struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };

	(void)room;
	if (w->inotify_fd < 0)
		wait_by_polling(w, wait_ms);
	else if (poll(&p, 1, (int)wait_ms) > 0)
		drain_events(w);
	if (!w->is_box || change_of(w->folder_fd) < 0)
		(void)begin(w, &ignored); /* cannot be watched now: the next wait tries again */
}

void
chipset_watch_close(struct mr_room *room, void *watch)
{
	struct watch *w = watch;

	(void)room;
	if (!w)
		return;
	sys_close_fd(&w->inotify_fd);
	sys_close_fd(&w->folder_fd);
	free(w);
}
