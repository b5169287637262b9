/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting for mail. Armed before the caller looks, so that nothing falls in between; beside the kernel's
 * events always a look at least once a second, for a folder that was replaced, a shared mount, or a machine that has no
 * watches left.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/sys.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__linux__) && !defined(MR_PORTABLE)
#include <sys/inotify.h>
#define HAVE_INOTIFY 1
#else
#define HAVE_INOTIFY 0
#endif

#define LOOK_AGAIN_MS 1000
#define POLL_MS 200

struct watch {
	int inbox_fd, inotify_fd; /* inotify_fd -1: poll */
};

static void
watch_free(struct watch *w)
{
	if (!w)
		return;
	sys_close_fd(&w->inbox_fd);
	sys_close_fd(&w->inotify_fd);
	free(w);
}

static void
arm(struct watch *w)
{
#if HAVE_INOTIFY
	const uint32_t events = IN_MOVED_TO | IN_CREATE | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	char path[64];

	w->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", w->inbox_fd);
	if (w->inotify_fd >= 0 && inotify_add_watch(w->inotify_fd, path, events) < 0)
		sys_close_fd(&w->inotify_fd), w->inotify_fd = -1;
#else
	w->inotify_fd = -1;
#endif
}

static enum mr_rc
watch_open(struct handoff *h, const char *mailbox, struct watch **ret, struct mr_error *err)
{
	struct watch *w = calloc(1, sizeof *w);
	char path[HANDOFF_ID_MAX + 16];
	int root_fd = -1;

	if (!w)
		return mr_nomem(err);
	w->inbox_fd = w->inotify_fd = -1;
	(void)snprintf(path, sizeof path, "%s/inbox", mailbox);
	if (handoff_id_check(mailbox, err) != MR_OK || handoff_root(h, true, &root_fd, err) != MR_OK ||
	    dir_make(root_fd, path, 0700, true, &w->inbox_fd, err) != MR_OK) {
		watch_free(w);
		return err->code;
	}
	arm(w);
	*ret = w;
	return MR_OK;
}

static void
watch_wait(struct watch *w, int64_t timeout_ms)
{
	struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };
	int64_t most = w->inotify_fd >= 0 ? LOOK_AGAIN_MS : POLL_MS;
	char events[4096];

	if (timeout_ms < 0)
		return;
	if (poll(&p, w->inotify_fd >= 0 ? 1 : 0, (int)(timeout_ms < most ? timeout_ms : most)) > 0)
		while (sys_read(w->inotify_fd, events, sizeof events) > 0)
			; /* all of them, so that the next wait waits */
}

enum mr_rc
handoff_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(registry_done) struct registry r = { 0 };
	char mailbox[HANDOFF_ID_MAX + 1];
	struct watch *w = NULL;

	TRY(handoff_registry_read(h, &r, err));
	TRY(handoff_mailbox_of(h, &r, agent, mailbox, NULL, err));
	TRY(watch_open(h, mailbox, &w, err));
	*ret_watch = w;
	return MR_OK;
}

void
handoff_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	(void)room;
	watch_wait(watch, timeout_ms);
}

void
handoff_watch_close(struct mr_room *room, void *watch)
{
	(void)room;
	watch_free(watch);
}

static enum mr_rc
wait_with(struct handoff *h, struct watch *w, const char *mailbox, int64_t timeout_ms, struct mr_error *err)
{
	int64_t end_ms = clock_boot_ms() + timeout_ms;

	for (;;) {
		mr_auto(handoff_list_done) struct handoff_list list = { 0 };

		TRY(handoff_list(h, mailbox, MR_INBOX, &list, err));
		if (list.n > 0)
			return MR_OK;
		int64_t left_ms = end_ms - clock_boot_ms();

		if (left_ms <= 0)
			return mr_fail(err, MR_EMPTY, "no mail for '%s'", mailbox);
		watch_wait(w, left_ms);
	}
}

enum mr_rc
handoff_wait(struct handoff *h, const char *mailbox, int64_t timeout_ms, struct mr_error *err)
{
	struct watch *w = NULL;

	TRY(watch_open(h, mailbox, &w, err));
	enum mr_rc rc = wait_with(h, w, mailbox, timeout_ms, err);

	watch_free(w);
	return rc;
}
