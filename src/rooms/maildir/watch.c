/* SPDX-License-Identifier: MIT */
/*
 * watch.c - waiting for a change in a mailbox, a queue or a channel. It uses inotify if available, and always a slow
 * poll as well, because deadlines, dying holders and other machines on a shared mount raise no event, and because many
 * agents use up the inotify instances. So a wait ends at an event or after at most two seconds. It returns false, so
 * that the caller need not look again, if no folder changed and no process holds mail of this agent.
 *
 * A watch of the whole room (agent "") is one inotify set over all folders in which mail and work come and go. Only
 * events count: no folder is opened or read again, so the cost does not depend on the number of messages.
 */
#include "rooms/maildir/maildir.h"
#include <dirent.h>
#include <poll.h>

#if defined(__linux__) && !defined(MR_PORTABLE)
#include <sys/inotify.h>
#define HAVE_INOTIFY 1
#else
#define HAVE_INOTIFY 0
#endif

#define WAIT_MAX_MS 2000
#define POLL_FIRST_MS 200
#define FOLDERS_MAX 16
#define TICK_NS 50000000 /* the kernel's clock for mtimes is no finer */

struct watch {
	struct maildir *md;
	char name[MR_ADDRESS_MAX + 16]; /* "bob", "queue:builds", "channel:news" */
	bool all;                       /* the whole room: the name is "" */
	int inotify_fd;                 /* -1: poll only */
	struct {
		int fd;
		char path[LISTED_PATH]; /* relative to the room */
		ino_t inode;
		int64_t changed_ns; /* its mtime when it was last checked */
	} folder[FOLDERS_MAX];
	size_t folders_n;
	bool replaced;          /* a name refers to another folder now */
	bool holds, held_known; /* does any process hold mail of this agent? */
	int64_t pause_ms;       /* of the poll; grows while nothing happens */
};

/* ---- inotify ---- */

static int
open_inotify(void)
{
#if HAVE_INOTIFY
	return inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
#else
	return -1;
#endif
}

/* `leaving`: reports files that leave, not files that arrive. */
static int
watch_folder(const struct watch *w, int fd, const char *path, bool leaving)
{
	int wd = -1;

#if HAVE_INOTIFY
	const uint32_t events = (leaving     ? IN_MOVED_FROM
				    : w->all ? IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE
					     : IN_CREATE | IN_MOVED_TO) |
				IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;
	mr_auto(buf_done) struct buf name = BUF_INIT;

	/* By descriptor: the folder that was opened and checked, even if another has its name now. */
	buf_addf(&name, "/proc/self/fd/%d", fd);
	wd = inotify_add_watch(w->inotify_fd, buf_z(&name), events);
	if (wd < 0) { /* no /proc here */
		buf_clear(&name);
		buf_addf(&name, "%s/%s", w->md->path, path);
		wd = inotify_add_watch(w->inotify_fd, buf_z(&name), events | IN_DONT_FOLLOW);
	}
#else
	(void)w, (void)fd, (void)path, (void)leaving;
#endif
	return wd;
}

/* Reads all events, so that the next wait waits. True: a folder came or went, or that cannot be told. */
static bool
drain_events(struct watch *w)
{
	bool folders = false;

#if HAVE_INOTIFY
	_Alignas(struct inotify_event) char events[4096];
	ssize_t n;

	while ((n = sys_read(w->inotify_fd, events, sizeof events)) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(events + at);

			folders |= (e->mask & (IN_ISDIR | IN_Q_OVERFLOW | IN_IGNORED)) != 0;
			at += (ssize_t)(sizeof(*e) + e->len);
		}
#else
	(void)w;
#endif
	return folders;
}

/* ---- Which folders ---- */

/* path is relative to the room. If there are too many, the poll covers the rest. */
static enum mr_rc
add_folder(struct watch *w, const char *path, bool leaving, struct mr_error *err)
{
	int fd = -1, wd = -1;

	if (w->folders_n == FOLDERS_MAX)
		return MR_OK;
	TRY(dir_open(w->md->root_fd, path, &fd, err));
	if (w->inotify_fd >= 0)
		wd = watch_folder(w, fd, path, leaving);
	if (wd < 0)
		sys_close_fd(&w->inotify_fd);
	struct stat st;

	w->folder[w->folders_n].inode = sys_stat_fd(fd, &st) == 0 ? st.st_ino : 0;
	w->folder[w->folders_n].changed_ns = -1;
	text_join(w->folder[w->folders_n].path, LISTED_PATH, path, NULL);
	w->folder[w->folders_n++].fd = fd;
	return MR_OK;
}

static void
close_folders(struct watch *w)
{
	for (size_t i = 0; i < w->folders_n; i++)
		sys_close_fd(&w->folder[i].fd);
	w->folders_n = 0;
}

/* Checks the mtimes of all folders, by name, because a name may refer to another folder now (renew.c). If an mtime is
 * younger than a clock tick, a further change may not show. */
static bool
has_changed(struct watch *w)
{
	bool changed = false;

	for (size_t i = 0; i < w->folders_n; i++) {
		struct stat st;
		int64_t now = -1;

		if (sys_stat(w->md->root_fd, w->folder[i].path, &st) == 0) {
			now = time_ns(st.st_mtim);
			w->replaced |= w->folder[i].inode != st.st_ino;
		}
		changed |= now != w->folder[i].changed_ns || now < 0 || clock_now_ns() - now < TICK_NS;
		w->folder[i].changed_ns = now;
	}
	w->held_known = w->held_known && !changed;
	return changed || w->replaced;
}

/* cur/ as well as new/: mail clients deliver there, and released mail may come back there. held/ for takeovers. A
 * command that also waits for nudges has made their folder; until it exists the poll covers it. */
static enum mr_rc
add_agent_folders(struct watch *w, struct mr_error *err)
{
	static const enum box_folder boxes[] = { BOX_NEW, BOX_CUR, BOX_HELD };
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	char escaped[NAME_LEN];

	TRY(mailbox_open(&box, w->md, w->name, err));
	for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
		const struct path path = path_of("agents/", box.agent, "/", mailbox_folder_name(boxes[i]), NULL);
		int made = -1;

		TRY(mailbox_folder(&box, boxes[i], &made, err)); /* makes it if it is missing */
		TRY(add_folder(w, path.z, false, err));
	}
	name_escape(w->name, escaped);
	(void)add_folder(w, path_of("nudges/", escaped, NULL).z, false, IGNORED);
	return MR_OK;
}

/* Watches the folders that have these names now. A folder that was replaced before inotify watched it would report
 * nothing. */
static enum mr_rc
watch_agent(struct watch *w, struct mr_error *err)
{
	enum mr_rc rc;

	do {
		close_folders(w);
		w->replaced = false;
		rc = add_agent_folders(w, err);
		(void)has_changed(w);
	} while (rc == MR_OK && w->replaced);
	return rc;
}

/* ready/<p> reports new buckets, the newest bucket new work, claimed/ a claim that ended. The poll covers buckets that
 * are removed meanwhile, and work that comes back into an older one. */
static enum mr_rc
add_queue_folders(struct watch *w, const char *queue, struct mr_error *err)
{
	static const char *const folders[] = { "claimed", "delayed", "ready" };
	mr_auto(queue_done) struct queue q = QUEUE_INIT;
	char escaped[NAME_LEN];

	TRY(queue_open(&q, w->md, queue, err));
	name_escape(queue, escaped);
	for (size_t i = 0; i < 3; i++)
		(void)add_folder(w, path_of("queues/", escaped, "/", folders[i], NULL).z, i == 0, IGNORED);
	for (unsigned p = 0; p < QUEUE_PRIORITIES; p++) {
		mr_auto(buckets_done) struct buckets buckets = BUCKETS_INIT;
		const char priority[2] = { (char)('0' + p) };

		if (buckets_read(&q, p, &buckets, IGNORED) != MR_OK || buckets.fd < 0)
			continue;
		const struct path ready = path_of("queues/", escaped, "/ready/", priority, NULL);

		(void)add_folder(w, ready.z, false, IGNORED);
		if (buckets.n > 0)
			(void)add_folder(
			    w, path_of(ready.z, "/", bucket_name(buckets.v[buckets.n - 1]).z, NULL).z, false, IGNORED);
	}
	(void)has_changed(w);
	return MR_OK;
}

/* ---- The whole room ---- */

#define DEPTH_MAX 8 /* agents/rig/type/name/new */

struct walk {
	const struct watch *w;
	int fd; /* of the folder whose entries are walked */
	unsigned depth;
};

static bool
watch_below(void *ctx, const struct dir_entry *entry)
{
	static const char *const leaves[] = { "new", "cur", "held", "lives", "posts", "claimed", "failed", "done",
		NULL };
	const struct walk *above = ctx;
	mr_auto(sys_close_fd) int fd = -1;

	if (entry->name[0] == '.' || strcmp(entry->name, "tmp") == 0 || strcmp(entry->name, "past") == 0 ||
	    (entry->type != DT_DIR && entry->type != DT_UNKNOWN) ||
	    dir_open(above->fd, entry->name, &fd, IGNORED) != MR_OK)
		return true;
	(void)watch_folder(above->w, fd, entry->name, false);
	if (above->depth < DEPTH_MAX && !name_is_one_of(entry->name, leaves))
		(void)dir_each(fd, watch_below, &(struct walk){ above->w, fd, above->depth + 1 }, IGNORED);
	return true;
}

/* Adds a watch for each folder; a folder that is watched already gets the same watch again. */
static void
watch_all(const struct watch *w)
{
	static const char *const tops[] = { "agents", "queues", "channels", "dead" };

	for (size_t i = 0; i < sizeof tops / sizeof tops[0] && w->inotify_fd >= 0; i++)
		(void)watch_below(
		    &(struct walk){ w, w->md->root_fd, 0 }, &(struct dir_entry){ .name = tops[i], .type = DT_DIR });
}

static bool
wait_all(struct watch *w, int64_t wait_ms)
{
	struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };

	if (poll(&p, w->inotify_fd >= 0, (int)wait_ms) <= 0) /* without events, any time may be right to look */
		return w->inotify_fd < 0;
	if (drain_events(w))
		watch_all(w); /* before the caller looks, so that no change is missed */
	return true;
}

static bool
note_any(void *ctx, const struct dir_entry *entry)
{
	(void)entry;
	*(bool *)ctx = true;
	return false;
}

/* Held mail comes back when the holder dies or its time is up, without a change in any folder. It is taken from new/ or
 * cur/, so without a change there the answer stays the same. */
static bool
holds_mail(struct watch *w)
{
	mr_auto(mr_names_done) struct mr_names lives = { 0 };
	mr_auto(sys_close_fd) int held_fd = -1;

	if (w->held_known)
		return w->holds;
	w->holds = dir_open_names(w->md->root_fd, path_of("agents/", w->name, "/held", NULL).z, &held_fd, &lives,
		       IGNORED) != MR_OK;
	for (size_t i = 0; i < lives.n && !w->holds; i++) {
		mr_auto(sys_close_fd) int fd = -1;

		w->holds = dir_open(held_fd, lives.v[i], &fd, IGNORED) != MR_OK ||
			   dir_each_once(fd, note_any, &w->holds, IGNORED) != MR_OK || w->holds;
	}
	w->held_known = true;
	return w->holds;
}

/* ---- Waiting ---- */

enum mr_rc
maildir_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err)
{
	struct watch *w = calloc(1, sizeof *w);
	const char *name;
	enum mr_rc rc = MR_OK;

	TRY(mr_got(w, err));
	w->md = maildir_of(room);
	w->inotify_fd = open_inotify();
	w->pause_ms = POLL_FIRST_MS;
	text_join(w->name, sizeof w->name, agent, NULL);
	w->all = agent[0] == '\0';
	if (w->all) {
		watch_all(w);
		*ret_watch = w;
		return MR_OK;
	}
	switch (target_kind(w->name, &name)) {
	case TARGET_QUEUE:
		rc = add_queue_folders(w, name, err);
		break;
	case TARGET_CHANNEL:
		rc = channel_name_check(name, err);
		if (rc == MR_OK)
			rc = add_folder(w, path_of("channels/", name, "/posts", NULL).z, false, err);
		(void)has_changed(w);
		break;
	case TARGET_AGENT:
		rc = watch_agent(w, err);
	}
	if (rc != MR_OK) {
		maildir_watch_close(room, w);
		return rc;
	}
	*ret_watch = w; /* the changes so far are noted: the caller scans after this */
	return MR_OK;
}

void
maildir_watch_close(struct mr_room *room, void *watch)
{
	struct watch *w = watch;

	(void)room;
	if (!w)
		return;
	sys_close_fd(&w->inotify_fd);
	close_folders(w);
	free(w);
}

bool
maildir_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms)
{
	struct watch *w = watch;
	int64_t wait_ms = timeout_ms < 0 ? 0 : timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS;
	int64_t end_ms = clock_boot_ms() + wait_ms;
	bool changed = false;
	const char *name;
	enum target_kind kind = target_kind(w->name, &name);

	(void)room;
	if (w->all)
		return wait_all(w, wait_ms);
	if (w->inotify_fd >= 0) {
		struct pollfd p = { .fd = w->inotify_fd, .events = POLLIN };

		if (poll(&p, 1, (int)wait_ms) > 0) {
			(void)drain_events(w);
			changed = true;
		}
		changed |= has_changed(w);
	}
	while (w->inotify_fd < 0) {
		int64_t left_ms = end_ms - clock_boot_ms();

		if (left_ms <= 0)
			break;
		(void)poll(NULL, 0, (int)(left_ms < w->pause_ms ? left_ms : w->pause_ms));
		changed = has_changed(w);
		if (changed) {
			w->pause_ms = POLL_FIRST_MS;
			break;
		}
		w->pause_ms = w->pause_ms * 3 / 2 < WAIT_MAX_MS ? w->pause_ms * 3 / 2 : WAIT_MAX_MS;
	}
	/* A queue gets new buckets and loses old ones, and an agent gets a new folder in place of a large one. Watch
	 * them before the caller looks again, so that no change is missed; if the queue or the agent is gone, the
	 * caller will see it. */
	if (kind == TARGET_QUEUE) {
		close_folders(w);
		(void)add_queue_folders(w, name, IGNORED);
	} else if (kind == TARGET_AGENT && w->replaced) {
		(void)watch_agent(w, IGNORED);
	}
	return changed || kind != TARGET_AGENT || holds_mail(w);
}
