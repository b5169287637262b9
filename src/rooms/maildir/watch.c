/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting for a change in a mailbox, a queue or a channel. inotify where it can be had; beside it always a
 * slow poll, because deadlines, dying holders and other machines on a shared mount raise no event, and because a
 * fleet of agents runs out of inotify instances. So a wait ends at an event or after at most two seconds, and the
 * caller looks again.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "rooms/maildir/channel.h"
#include "rooms/maildir/queue.h"
#include "rooms/maildir/reader.h"
#include <inttypes.h>
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

#define FOLDERS_MAX 16

struct watched { /* a folder; fd -1: not used */
	int fd;
	char *path;         /* absolute; for systems without /proc */
	int64_t changed_ns; /* its mtime when last looked at */
	bool leaving;       /* what goes away counts, not what comes */
	int wd;             /* of inotify; -1: none */
};

struct watch {
	struct maildir *md;
	char name[MR_ADDRESS_MAX + 16]; /* "bob", "queue:builds", "channel:news" */
	int inotify_fd;                 /* -1: poll only */
	struct watched folder[FOLDERS_MAX];
	size_t folders_n;
	int64_t pause_ms;    /* of the poll; grows while nothing happens */
	char came[NAME_LEN]; /* a name that came into new/ during the last wait, or "" */
};

/* ---- Which folders ---- */

static bool
is_watched(const struct watch *w, const struct stat *st)
{
	struct stat there;

	for (size_t i = 0; i < w->folders_n; i++)
		if (sys_stat_fd(w->folder[i].fd, &there) == 0 && there.st_dev == st->st_dev &&
		    there.st_ino == st->st_ino)
			return true;
	return false;
}

/* path is relative to the room. One that is watched already, or one too many, is left out. */
static enum mr_rc
add_folder(struct watch *w, const char *path, bool leaving, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf absolute = BUF_INIT;
	struct stat st;

	if (w->folders_n == FOLDERS_MAX)
		return MR_OK;
	TRY(dir_open(w->md->root_fd, path, &fd, err));
	if (sys_stat_fd(fd, &st) < 0 || is_watched(w, &st))
		return MR_OK;
	buf_addf(&absolute, "%s/%s", w->md->path, path);
	char *kept = buf_take(&absolute);

	if (kept == NULL)
		return mr_nomem(err);
	w->folder[w->folders_n++] =
	    (struct watched){ .fd = fd, .path = kept, .changed_ns = -1, .leaving = leaving, .wd = -1 };
	fd = -1;
	return MR_OK;
}

/* Whoever waits for nudges as well has made the folder; the poll does for who comes before it is there. */
static void
add_nudges(struct watch *w)
{
	struct mr_error ignored = { 0 };
	char escaped[NAME_LEN], path[NAME_LEN + 16];

	name_escape(w->name, escaped);
	(void)snprintf(path, sizeof path, "nudges/%s", escaped);
	(void)add_folder(w, path, false, &ignored);
}

/* cur/ as well as new/: mail clients deliver there, and released mail may come back there. held/ for takeovers. */
static enum mr_rc
add_agent_folders(struct watch *w, struct mr_error *err)
{
	static const struct {
		enum box_folder which;
		const char *name;
	} boxes[] = { { BOX_NEW, "new" }, { BOX_CUR, "cur" }, { BOX_HELD, "held" } };
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	enum mr_rc rc = mailbox_open(&box, w->md, w->name, err);

	for (size_t i = 0; i < sizeof boxes / sizeof boxes[0] && rc == MR_OK; i++) {
		char path[MR_ADDRESS_MAX + 16];
		int ignored = -1;

		rc = mailbox_folder(&box, boxes[i].which, &ignored, err); /* makes it where it is missing */
		(void)snprintf(path, sizeof path, "agents/%s/%s", box.agent, boxes[i].name);
		if (rc == MR_OK)
			rc = add_folder(w, path, false, err);
	}
	if (rc == MR_OK)
		add_nudges(w);
	return rc;
}

/* ready/<p> tells of new buckets, the newest bucket of new work; claimed/ of a place that became free. A bucket that
 * is gone when we come to it, and work that comes back into an older one, are left to the poll. */
static enum mr_rc
add_queue_folders(struct watch *w, const char *queue, struct mr_error *err)
{
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	struct mr_error ignored = { 0 };
	char escaped[NAME_LEN], path[NAME_LEN * 2];

	TRY(queue_open(&q, w->md, queue, err));
	name_escape(queue, escaped);
	for (size_t i = 0; i < 3; i++) {
		static const char *const folders[] = { "claimed", "delayed", "ready" };

		(void)snprintf(path, sizeof path, "queues/%s/%s", escaped, folders[i]);
		if (add_folder(w, path, i == 0, &ignored) == MR_NOMEM)
			return mr_nomem(err);
	}
	for (unsigned p = 0; p < QUEUE_PRIORITIES; p++) {
		mr_auto(buckets_done) struct buckets buckets = BUCKETS_INIT;

		if (buckets_read(&q, p, false, &buckets, &ignored) != MR_OK || buckets.fd < 0)
			continue;
		int n = snprintf(path, sizeof path, "queues/%s/ready/%u", escaped, p);

		(void)add_folder(w, path, false, &ignored);
		if (buckets.n == 0)
			continue;
		(void)snprintf(path + n, sizeof path - (size_t)n, "/%08" PRIu32, buckets.v[buckets.n - 1]);
		(void)add_folder(w, path, false, &ignored);
	}
	return MR_OK;
}

static enum mr_rc
add_folders(struct watch *w, struct mr_error *err)
{
	char path[NAME_LEN + 32];

	if (str_starts(str_of(w->name), "queue:"))
		return add_queue_folders(w, w->name + strlen("queue:"), err);
	if (!str_starts(str_of(w->name), "channel:"))
		return add_agent_folders(w, err);
	const char *channel = w->name + strlen("channel:");

	TRY(channel_name_check(channel, err));
	(void)snprintf(path, sizeof path, "channels/%s/posts", channel);
	return add_folder(w, path, false, err);
}

static void
close_folders(struct watch *w)
{
	for (size_t i = 0; i < w->folders_n; i++) {
		sys_close_fd(&w->folder[i].fd);
		free(w->folder[i].path);
	}
	w->folders_n = 0;
}

/* ---- Waiting ---- */

static bool
has_changed(struct watch *w)
{
	bool changed = false;

	for (size_t i = 0; i < w->folders_n; i++) {
		struct watched *f = &w->folder[i];
		struct stat st;
		int64_t now = -1;

		if (sys_stat_fd(f->fd, &st) == 0)
			now = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		changed |= now != f->changed_ns;
		f->changed_ns = now;
	}
	return changed;
}

#if HAVE_INOTIFY
static bool
watch_folder(int inotify_fd, struct watched *folder)
{
	const uint32_t events =
	    (folder->leaving ? IN_MOVED_FROM : IN_CREATE | IN_MOVED_TO) | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	char path[64];

	/* By descriptor: the folder that was opened and checked, whatever has its name now. */
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", folder->fd);
	folder->wd = inotify_add_watch(inotify_fd, path, events);
	if (folder->wd < 0) /* no /proc here */
		folder->wd = inotify_add_watch(inotify_fd, folder->path, events | IN_DONT_FOLLOW);
	return folder->wd >= 0;
}

/* The last name that came into new/, which is an agent's first folder. */
static void
note_names(struct watch *w, const char *events, size_t n)
{
	struct inotify_event e;

	for (size_t at = 0; at + sizeof e <= n; at += sizeof e + e.len) {
		memcpy(&e, events + at, sizeof e);
		if (e.len > 0 && e.len <= sizeof w->came && w->folders_n > 0 && e.wd == w->folder[0].wd)
			memcpy(w->came, events + at + sizeof e, e.len);
	}
}

static void
arm(struct watch *w)
{
	if (w->inotify_fd < 0)
		w->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	for (size_t i = 0; i < w->folders_n && w->inotify_fd >= 0; i++)
		if (!watch_folder(w->inotify_fd, &w->folder[i]))
			sys_close_fd(&w->inotify_fd), w->inotify_fd = -1;
}
#else
static void
arm(struct watch *w)
{
	w->inotify_fd = -1;
}

static void
note_names(struct watch *w, const char *events, size_t n)
{
	(void)w;
	(void)events;
	(void)n;
}
#endif

/* Takes all events out, so that the next wait waits. A read that could have held one more has had them all. */
static void
drain_events(struct watch *w)
{
	char events[4096];
	const size_t one_more = 512; /* bytes; an event and the longest name */
	ssize_t n;

	do {
		n = sys_read(w->inotify_fd, events, sizeof(events));
		if (n > 0)
			note_names(w, events, (size_t)n);
	} while (n > (ssize_t)(sizeof(events) - one_more));
}

/* ---- One that ended is kept for the next: closing an inotify takes the kernel milliseconds ---- */

static bool
is_still_there(const struct watch *w, const struct watched *f)
{
	const char *in_room = f->path + strlen(w->md->path) + 1;
	struct stat opened, named;

	return sys_stat_fd(f->fd, &opened) == 0 && sys_stat(w->md->root_fd, in_room, &named) == 0 &&
	       opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* The one that was kept, if it looks where a new one would; it then watches since before the caller's next scan. */
static struct watch *
take_kept(struct maildir *md, const char *agent)
{
	struct watch *w = md->kept_watch;
	bool fits = w != NULL && strcmp(w->name, agent) == 0;

	for (size_t i = 0; fits && i < w->folders_n; i++)
		fits = is_still_there(w, &w->folder[i]);
	if (!fits)
		return NULL;
	md->kept_watch = NULL;
	w->pause_ms = POLL_FIRST_MS;
	drain_events(w);
	(void)has_changed(w);
	size_t had = w->folders_n;

	add_nudges(w); /* which may not have been there */
	if (w->folders_n > had)
		arm(w);
	return w;
}

static void
free_watch(struct watch *w)
{
	if (w == NULL)
		return;
	sys_close_fd(&w->inotify_fd);
	close_folders(w);
	free(w);
}

void
maildir_watch_forget(struct maildir *md)
{
	free_watch(md->kept_watch);
	md->kept_watch = NULL;
}

/* A queue's folders come and go: its watch is not worth keeping. */
void
maildir_watch_close(struct mr_room *room, void *watch)
{
	struct watch *w = watch;

	(void)room;
	if (w == NULL || w->inotify_fd < 0 || strchr(w->name, ':') != NULL) {
		free_watch(w);
		return;
	}
	maildir_watch_forget(w->md);
	w->md->kept_watch = w;
}

/* ---- Watching ---- */

enum mr_rc
maildir_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	struct watch *w = take_kept(maildir_of(room), agent);

	if (w != NULL) {
		*ret_watch = w;
		return MR_OK;
	}
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return mr_nomem(err);
	w->md = maildir_of(room);
	w->inotify_fd = -1;
	w->pause_ms = POLL_FIRST_MS;
	(void)snprintf(w->name, sizeof w->name, "%s", agent);
	enum mr_rc rc = add_folders(w, err);
	if (rc != MR_OK) {
		free_watch(w);
		return rc;
	}
	(void)has_changed(w); /* from here on: the caller scans after this */
	arm(w);
	*ret_watch = w;
	return MR_OK;
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

/* A queue gets new buckets and loses old ones. Before the caller looks again, so that nothing falls in between. */
static void
renew(struct watch *w)
{
	struct mr_error ignored = { 0 };

	if (!str_starts(str_of(w->name), "queue:"))
		return;
	close_folders(w);
	(void)add_folders(w, &ignored); /* gone meanwhile: the caller will see */
	(void)has_changed(w);
	if (w->inotify_fd >= 0)
		arm(w);
}

void
maildir_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct watch *w = watch;
	int64_t wait_ms = timeout_ms < 0 ? 0 : timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS;

	(void)room;
	w->came[0] = '\0';
	if (w->inotify_fd < 0) {
		wait_by_polling(w, wait_ms);
	} else {
		struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };
		if (poll(&p, 1, (int)wait_ms) > 0)
			drain_events(w);
	}
	renew(w);
}

/* Reads the very file that the kernel told of, through the folder that is open: whoever waits is in a hurry. */
bool
maildir_watch_saw_mail(struct mr_room *room, void *watch, struct mr_message *ret)
{
	const struct watch *w = watch;
	struct mailbox box = MAILBOX_INIT; /* lent: the folder stays the watch's */
	mr_auto(reader_done) struct reader reader = READER_INIT(room, &box);
	struct listed came = { .name = w->came, .folder = MR_INBOX, .box = BOX_NEW };
	struct mr_error ignored = { 0 };
	struct file_name parts;

	if (w->came[0] == '\0' || strchr(w->name, ':') != NULL || !name_parse(str_of(w->came), &parts))
		return false;
	memcpy(came.id, parts.id, sizeof(came.id));
	came.attempt = parts.attempt;
	box.md = w->md;
	box.folder[BOX_NEW] = w->folder[0].fd;
	(void)snprintf(box.agent, sizeof(box.agent), "%.160s", w->name);
	return reader_read(&reader, &came, SCAN_HEADERS, ret, &ignored) == MR_OK && ret->size_bytes > 0;
}
