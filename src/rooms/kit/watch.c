/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting for a change of a folder. The watch is armed before the caller looks, so no change is missed. The
 * folder may be missing, or be removed and made again meanwhile: its nearest existing parent is watched, and looked up
 * anew after each wait. The wait also ends at least once a second, because the folder may be on a shared mount; without
 * events (the machine may be out of inotify watches) the caller looks a few times a second.
 *
 * A watch of the whole room (agent "") is one inotify set over the folders that the driver would watch for each agent.
 * It ends at an event, or when a folder appears; otherwise it reports that nothing changed.
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
#endif

#define LOOK_AGAIN_MS 1000
#define POLL_MS 100
#define AGENTS_MS 3000 /* interval for looking up new agents without an event */

struct watch {
	char *path;       /* of a folder; NULL: the folders of all agents */
	int inotify_fd;   /* -1: poll */
	int newest;       /* its highest inotify watch: a new folder gets a higher number */
	int64_t added_ms; /* when the folders of all agents were looked up */
};

static int
inotify_new(void)
{
#ifdef IN_CREATE
	return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
#else
	return -1;
#endif
}

/* Watches the folder, or its nearest existing parent, by descriptor: the folder that was opened, even if another has
 * its name now. True: it was not watched before. */
static bool
add_folder(struct watch *w, const char *folder)
{
	int number = -1;
#ifdef IN_CREATE
	const uint32_t news =
	    IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF;
	mr_auto(buf_done) struct buf path = BUF_INIT;
	char opened[64];

	buf_adds(&path, folder);
	mr_auto(sys_close_fd) int fd = sys_open(AT_FDCWD, buf_z(&path), O_RDONLY | O_DIRECTORY, 0);

	while (fd < 0 && path.len > 1) {
		struct mr_str above = kit_trim_slashes(buf_str(&path));

		buf_cut(&path, above.len - kit_last_part(above).len);
		fd = sys_open(AT_FDCWD, buf_z(&path), O_RDONLY | O_DIRECTORY, 0);
	}
	(void)snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
	if (fd >= 0)
		number = inotify_add_watch(w->inotify_fd, opened, IN_ONLYDIR | news);
	if (w->path && number > w->newest && w->newest >= 0) /* another folder: the old one is not needed any more */
		(void)inotify_rm_watch(w->inotify_fd, w->newest);
#else
	(void)folder;
#endif
	bool came = number > w->newest;

	w->newest = came ? number : w->newest;
	return came;
}

enum mr_rc
kit_watch(const struct buf *path, void **ret_watch, struct mr_error *err)
{
	struct watch *w = calloc(1, sizeof *w);
	char *copy = w && buf_ok(path) ? strdup(buf_z(path)) : NULL;

	if (!copy) {
		free(w);
		return mr_nomem(err);
	}
	*w = (struct watch){ .path = copy, .inotify_fd = inotify_new(), .newest = -1 };
	(void)add_folder(w, w->path);
	*ret_watch = w;
	return MR_OK;
}

static enum mr_rc
watched(struct mr_room *room, const char *agent, struct buf *ret, struct mr_error *err)
{
	const struct kit_format *format = kit_room(room)->format;
	mr_auto(kit_box_close) struct kit_box *box = NULL;

	if (format->watched)
		return format->watched(room, agent, ret, err);
	TRY(kit_box_open(room, agent, 0, &box, err));
	kit_path(box, MR_INBOX, ret);
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
	mr_auto(buf_done) struct buf folder = BUF_INIT;

	if (watched(a->room, agent->name, &folder, IGNORED) == MR_OK)
		a->came |= add_folder(a->all, buf_z(&folder));
	return true;
}

/* True: a new folder is watched. */
static bool
add_agents(struct mr_room *room, struct watch *all)
{
	struct adding a = { room, all, false };

	all->added_ms = clock_boot_ms();
	(void)room->driver->each_agent(room, true, add_agent, &a, IGNORED);
	return a.came;
}

enum mr_rc
kit_watch_agent(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	mr_auto(buf_done) struct buf folder = BUF_INIT;

	if (agent[0]) {
		TRY(watched(room, agent, &folder, err));
		return kit_watch(&folder, ret_watch, err);
	}
	struct watch *w = calloc(1, sizeof *w);

	TRY(mr_got(w, err));
	w->newest = -1;
	w->inotify_fd = inotify_new();
	if (w->inotify_fd < 0) {
		free(w);
		return mr_fail(err, MR_UNSUPPORTED, "the kernel reports no changes of folders");
	}
	(void)add_agents(room, w);
	*ret_watch = w;
	return MR_OK;
}

/* A folder may have appeared, or the watched one may be gone or new: settle that before the caller looks. */
bool
kit_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct watch *w = watch;
	const int64_t most = w->newest >= 0 ? LOOK_AGAIN_MS : POLL_MS, ms = timeout_ms < most ? timeout_ms : most;
	struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };
	char events[4096];
	bool woken = poll(&p, 1, ms > 0 ? (int)ms : 0) > 0;

	while (woken && sys_read(w->inotify_fd, events, sizeof events) > 0)
		;
	if (w->path) {
		(void)add_folder(w, w->path);
		return true;
	}
	if (woken || clock_boot_ms() - w->added_ms > AGENTS_MS)
		woken |= add_agents(room, w);
	return woken;
}

void
kit_watch_close(struct mr_room *room, void *watch)
{
	struct watch *w = watch;

	(void)room;
	if (!w)
		return;
	sys_close_fd(&w->inotify_fd);
	free(w->path);
	free(w);
}
