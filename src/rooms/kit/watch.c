/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting for a change of a folder. It is armed before the caller looks, so nothing falls in between. Beside
 * the kernel's events the wait ends at least once a second: the folder may be replaced, be on a shared mount, or the
 * machine may be out of inotify watches, and then the caller looks a few times a second.
 *
 * A watch of the whole room (agent "") is one inotify set over the folders that the driver would watch for each agent.
 * It ends at an event, or when a folder came; else it says that nothing changed.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/kit/kit.h"
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#if defined(__linux__) && !defined(MR_PORTABLE)
#include <sys/inotify.h>
#define HAVE_INOTIFY 1
#else
#define HAVE_INOTIFY 0
#endif

#define LOOK_AGAIN_MS 1000
#define POLL_MS 100
#define AGENTS_MS 3000 /* whether there are new ones is looked up so often without an event */

struct watch {
	char *path;
	const char *file; /* behind path, or NULL */
	int inotify_fd;   /* -1: poll */
	int folder_fd;    /* what is watched; -1: nothing */
	bool nearest;     /* it is a folder above the one that is wanted */
	bool all;         /* the whole room: no folder of its own, but those of all agents */
	int newest;       /* of its inotify watches: a folder that was not there has a higher number */
	int64_t added_ms;
};

/* Opens the folder, or what there is of the way to it; -1: nothing. */
static int
open_nearest(const char *folder, bool *ret_above)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_adds(&path, folder);
	int fd = sys_open(AT_FDCWD, buf_z(&path), O_RDONLY | O_DIRECTORY, 0);

	for (*ret_above = fd < 0; fd < 0 && path.len > 1;) {
		while (path.len > 1 && path.ptr[path.len - 1] != '/')
			path.len--;
		while (path.len > 1 && path.ptr[path.len - 1] == '/')
			path.len--;
		path.ptr[path.len] = '\0';
		fd = sys_open(AT_FDCWD, buf_z(&path), O_RDONLY | O_DIRECTORY, 0);
	}
	return fd;
}

/* By descriptor: the folder that was opened, whatever has its name now. The number of the watch, or -1. */
static int
add_folder(int inotify_fd, int folder_fd, bool all)
{
	int number = -1;

#if HAVE_INOTIFY
	const uint32_t news = IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE;
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", folder_fd);
	if (folder_fd >= 0)
		number = inotify_add_watch(inotify_fd, path,
		    IN_ONLYDIR | news | (all ? IN_MOVED_FROM | IN_DELETE : IN_DELETE_SELF | IN_MOVE_SELF));
#else
	(void)inotify_fd, (void)folder_fd, (void)all;
#endif
	return number;
}

static void
arm(struct watch *w)
{
	sys_close_fd(&w->inotify_fd);
	sys_close_fd(&w->folder_fd);
	w->inotify_fd = -1;
	w->folder_fd = open_nearest(w->path, &w->nearest);
#if HAVE_INOTIFY
	w->inotify_fd = w->folder_fd >= 0 ? inotify_init1(IN_NONBLOCK | IN_CLOEXEC) : -1;
	if (w->inotify_fd >= 0 && add_folder(w->inotify_fd, w->folder_fd, false) < 0) {
		sys_close_fd(&w->inotify_fd);
		w->inotify_fd = -1;
	}
#endif
}

enum mr_rc
kit_watch(const struct buf *path, const char *file, void **ret_watch, struct mr_error *err)
{
	struct buf both = BUF_INIT;

	TRY(mr_got(buf_ok(path), err));
	struct watch *w = calloc(1, sizeof *w);

	TRY(mr_got(w, err));
	buf_addf(&both, "%s%c%s", buf_z(path), '\0', file ? file : "");
	w->inotify_fd = w->folder_fd = -1;
	w->path = buf_take(&both);
	if (!w->path) {
		free(w);
		return mr_nomem(err);
	}
	w->file = file ? w->path + strlen(w->path) + 1 : NULL;
	arm(w);
	*ret_watch = w;
	return MR_OK;
}

/* ---- The whole room ---- */

struct adding {
	struct mr_room *room;
	struct watch *all;
	bool came;
};

static bool
add_agent(void *ctx, const struct mr_agent *agent)
{
	struct adding *a = ctx;
	mr_auto(buf_done) struct buf folder = BUF_INIT, file = BUF_INIT;
	bool above = false;

	if (kit_room(a->room)->format->watched(a->room, agent->name, &folder, &file, IGNORED) != MR_OK)
		return true;
	mr_auto(sys_close_fd) int fd = open_nearest(buf_z(&folder), &above);
	int wd = add_folder(a->all->inotify_fd, fd, true);

	a->came |= wd > a->all->newest;
	a->all->newest = wd > a->all->newest ? wd : a->all->newest;
	return true;
}

/* True: a folder is watched that was not. */
static bool
add_agents(struct mr_room *room, struct watch *all)
{
	struct adding a = { room, all, false };

	all->added_ms = clock_boot_ms();
	(void)room->driver->each_agent(room, true, add_agent, &a, IGNORED);
	return a.came;
}

static enum mr_rc
watch_all(struct mr_room *room, void **ret_watch, struct mr_error *err)
{
	int fd = -1;

#if HAVE_INOTIFY
	fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
#endif
	if (fd < 0)
		return mr_fail(err, MR_UNSUPPORTED, "the kernel tells nothing of folders");
	struct watch *w = calloc(1, sizeof *w);

	if (!w) {
		sys_close_fd(&fd);
		return mr_nomem(err);
	}
	w->inotify_fd = fd;
	w->folder_fd = -1;
	w->all = true;
	(void)add_agents(room, w);
	*ret_watch = w;
	return MR_OK;
}

enum mr_rc
kit_watch_agent(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	mr_auto(buf_done) struct buf folder = BUF_INIT, file = BUF_INIT;

	if (!agent[0])
		return watch_all(room, ret_watch, err);
	TRY(kit_room(room)->format->watched(room, agent, &folder, &file, err));
	return kit_watch(&folder, file.len > 0 ? buf_z(&file) : NULL, ret_watch, err);
}

/* Takes all events out. True: one was of the file that is waited for, or of the folder itself. */
static bool
was_woken(const struct watch *w)
{
	char events[4096];
	bool woken = false;
	ssize_t n;

	while ((n = sys_read(w->inotify_fd, events, sizeof events)) > 0) {
#if HAVE_INOTIFY
		struct inotify_event e;

		for (size_t at = 0; at + sizeof e <= (size_t)n; at += sizeof e + e.len) {
			memcpy(&e, events + at, sizeof e);
			woken |= !w->file || w->nearest || e.len == 0 || strcmp(events + at + sizeof e, w->file) == 0;
		}
#endif
	}
	return woken;
}

bool
kit_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct watch *w = watch;
	const int64_t most = w->inotify_fd >= 0 ? LOOK_AGAIN_MS : POLL_MS;
	int64_t end_ms = clock_boot_ms() + (timeout_ms < most ? timeout_ms : most), left_ms;
	struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };
	struct stat st;
	bool woken = false;

	while ((left_ms = end_ms - clock_boot_ms()) > 0)
		if (poll(&p, w->inotify_fd >= 0 ? 1 : 0, (int)left_ms) > 0 && was_woken(w)) {
			woken = true;
			break;
		}
	if (w->all) {
		if (woken || clock_boot_ms() - w->added_ms > AGENTS_MS)
			woken |= add_agents(room, w);
		return woken;
	}
	/* The folder may have come, or gone and come again: what is watched is settled before the caller looks. */
	if (w->nearest || w->folder_fd < 0 || sys_stat_fd(w->folder_fd, &st) < 0 || st.st_nlink == 0)
		arm(w);
	return true;
}

void
kit_watch_close(struct mr_room *room, void *watch)
{
	struct watch *w = watch;

	(void)room;
	if (!w)
		return;
	sys_close_fd(&w->inotify_fd);
	sys_close_fd(&w->folder_fd);
	free(w->path);
	free(w);
}
