/* SPDX-License-Identifier: MIT */
/*
 * newest.c - the newest names of a month, for a process that looks at the same mailboxes again and again. Only
 * mailroom-serve has this file.
 *
 * A folder has no order, so to find ten names of today all names of its month are read: a page would cost by the
 * history of the room. Here the newest names of a folder are kept, and inotify tells what comes and goes. The kernel
 * puts an event into the queue before the call that made it returns, so what is taken out of the queue first is all
 * that happened before the question. Nobody waits for these events, and no thread is woken by them.
 *
 * A folder is read as list.c does it where this cannot be sure: packed months, names of other programs (their ids tell
 * no time), rooms of several users, and file systems that may change on another machine.
 */
#include <limits.h>
#include <pthread.h>
#include <sys/inotify.h>

#include "base/storage.h"
#include "rooms/maildir/maildir.h"

#define MONTHS 256
#define NAMES_EACH 4096u  /* of a folder; up to half as many more */
#define NAMES_ALL 100000u /* of all folders: some 10 MB */

struct name {
	char *text;
	unsigned char id_at, box;
};
struct month { /* place NULL: none */
	char *place;
	int wd[2]; /* by enum box_folder */
	ino_t inode;
	uint64_t asked;
	struct name *v; /* by id, the oldest first */
	size_t n, cap;
	char cut[MR_ID_LEN + 1]; /* the newest id that was left out; "": none was */
};

static struct {
	pthread_mutex_t lock;
	int fd;
	uint64_t asked;
	size_t names;
	struct month months[MONTHS];
} all = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static void
drop_names(struct month *m, size_t from, size_t n)
{
	for (size_t i = from; i < from + n; i++)
		free(m->v[i].text);
	if (n > 0)
		memmove(m->v + from, m->v + from + n, (m->n - from - n) * sizeof *m->v);
	m->n -= n;
	all.names -= n;
}

static void
forget(struct month *m)
{
	if (!m->place)
		return;
	for (int i = 0; i < 2; i++)
		(void)inotify_rm_watch(all.fd, m->wd[i]);
	drop_names(m, 0, m->n);
	free(m->v);
	free(m->place);
	*m = (struct month){ 0 };
}

/* It came, or it left. False: the folder cannot be kept. */
static bool
note_name(struct month *m, unsigned box, const char *text, bool here)
{
	struct file_name parts;
	size_t from = 0, to = m->n;

	if (!name_parse(str_of(text), &parts))
		return true; /* no message */
	if (!parts.ours)
		return false;
	if (memcmp(parts.id, m->cut, MR_ID_LEN) <= 0)
		return true;
	const struct name new = { .id_at = (unsigned char)(strcspn(text, ".") + 1), .box = (unsigned char)box };

	while (from < to) {
		size_t middle = (from + to) / 2;
		const struct name *n = &m->v[middle];
		int order = memcmp(n->text + n->id_at, text + new.id_at, MR_ID_LEN) ?: strcmp(n->text, text)
				?: (int)n->box - (int)box;

		if (order == 0 && !here)
			drop_names(m, middle, 1);
		if (order == 0)
			return true;
		if (order < 0)
			from = middle + 1;
		else
			to = middle;
	}
	if (!here)
		return true;
	if (!array_grow(&m->v, m->n, &m->cap, sizeof *m->v))
		return false;
	memmove(m->v + from + 1, m->v + from, (m->n - from) * sizeof *m->v);
	m->v[from] = new;
	m->v[from].text = strdup(text);
	m->n++;
	all.names++;
	if (!m->v[from].text)
		return false;
	if (m->n > NAMES_EACH + NAMES_EACH / 2) {
		const struct name *last = &m->v[m->n - NAMES_EACH - 1];

		memcpy(m->cut, last->text + last->id_at, MR_ID_LEN);
		drop_names(m, 0, m->n - NAMES_EACH);
	}
	return true;
}

/* Takes in what happened since the last question. */
static void
hear(void)
{
	_Alignas(struct inotify_event) char events[8192];
	ssize_t n;

	while ((n = sys_read(all.fd, events, sizeof events)) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(events + at);

			for (struct month *m = all.months; m < all.months + MONTHS; m++) {
				bool lost = (e->mask & IN_Q_OVERFLOW) != 0;

				if (!m->place || (!lost && e->wd != m->wd[BOX_NEW] && e->wd != m->wd[BOX_CUR]))
					continue;
				if (lost || e->len == 0 ||
				    !note_name(m, e->wd == m->wd[BOX_NEW] ? BOX_NEW : BOX_CUR, e->name,
					(e->mask & (IN_CREATE | IN_MOVED_TO)) != 0))
					forget(m);
			}
			at += (ssize_t)(sizeof(*e) + e->len);
		}
}

struct reading {
	struct month *month;
	unsigned box;
	bool fine;
};

static bool
read_name(void *ctx, const struct dir_entry *entry)
{
	struct reading *r = ctx;

	r->fine = note_name(r->month, r->box, entry->name, true);
	return r->fine;
}

/* From now on inotify tells; then what is there is read, and an event may tell it again. */
static bool
begin(struct month *m, struct mailbox *box, const char *folder, const char *place)
{
	static const char *const local[] = { "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "zfs", "tmpfs", "overlayfs",
		NULL };
	struct mr_storage storage = { 0 };

	if (all.fd < 0)
		all.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (all.fd < 0 || storage_of(box->md->root_fd, box->md->path, &storage, IGNORED) != MR_OK ||
	    !name_is_one_of(storage.file_system, local) || !(m->place = strdup(place)))
		return false;
	m->wd[BOX_NEW] = m->wd[BOX_CUR] = -1;
	for (unsigned which = BOX_NEW; which <= BOX_CUR; which++) {
		mr_auto(sys_close_fd) int fd = -1;
		const struct path path = path_of(folder, "/", mailbox_folder_name(which), NULL);
		struct reading r = { m, which, true };
		struct stat st;
		char name[40];

		if (dir_open(box->fd, path.z, &fd, IGNORED) != MR_OK || sys_stat_fd(fd, &st) < 0)
			return false;
		m->inode = st.st_ino;
		(void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
		m->wd[which] = inotify_add_watch(
		    all.fd, name, IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF);
		if (m->wd[which] < 0 || dir_each_once(fd, read_name, &r, IGNORED) != MR_OK || !r.fine)
			return false;
	}
	hear();
	return m->place != NULL;
}

static struct month *
longest_unasked(const struct month *but)
{
	struct month *found = NULL;

	for (struct month *m = all.months; m < all.months + MONTHS; m++)
		if (m != but && (but ? m->place != NULL : true) && (!found || m->asked < found->asked))
			found = m;
	return found;
}

static struct month *
month_of(struct mailbox *box, const char *folder)
{
	char place[PATH_MAX + LISTED_PATH];
	struct stat st;

	text_join(place, sizeof place, box->md->path, "/", box->agent, "/", folder, NULL);
	for (struct month *m = all.months; m < all.months + MONTHS; m++) {
		if (!m->place || strcmp(m->place, place) != 0)
			continue;
		if (sys_stat(box->fd, path_of(folder, "/cur", NULL).z, &st) == 0 && st.st_ino == m->inode)
			return m;
		forget(m);
	}
	struct month *m = longest_unasked(NULL);

	forget(m);
	if (!begin(m, box, folder, place)) {
		forget(m);
		return NULL;
	}
	for (struct month *other; all.names > NAMES_ALL && (other = longest_unasked(m));)
		forget(other);
	return m;
}

/* Adds what is wanted of it. False: names that were left out may be wanted, too. */
static bool
add_names(const struct month *m, struct mailbox *box, const char *folder, const struct scan_request *want,
    struct listing *ret)
{
	bool newest = want->order == SCAN_NEWEST, acked = false, asked = false,
	     sent = str_starts(str_of(folder), SENT_FOLDER);
	const char *subfolder = arena_dup(&ret->folders, str_of(folder));
	size_t before = ret->n;

	for (size_t i = m->n; i > 0 && subfolder && !(newest && want->most > 0 && ret->n - before == want->most); i--) {
		const struct name *n = &m->v[i - 1];
		struct listed found = { .folder = sent ? MR_SENT : MR_ARCHIVE, .box = n->box, .subfolder = subfolder };
		char id[MR_ID_LEN + 1];
		struct file_name parts;

		memcpy(id, n->text + n->id_at, MR_ID_LEN);
		id[MR_ID_LEN] = '\0';
		int64_t at_ms = id_time_ms(id);

		if (at_ms < want->since_ms)
			return true;
		if ((want->before_ms && at_ms >= want->before_ms) || (want->wants && !want->wants(want->wants_ctx, id)))
			continue;
		(void)name_parse(str_of(n->text), &parts);
		bool has_a = parts.flags.ptr && memchr(parts.flags.ptr, 'a', parts.flags.len) != NULL;

		if (has_a && !asked)
			acked = mailbox_keyword(box, folder) == KEYWORD_OURS;
		asked |= has_a;
		listed_fill(&found, &parts, has_a && acked);
		found.name = arena_dup(&ret->own, str_of(n->text));
		if (!found.name || !array_grow(&ret->v, ret->n, &ret->cap, sizeof *ret->v))
			return false;
		ret->v[ret->n++] = found;
	}
	bool enough = newest && want->most > 0 && ret->n - before == want->most;

	return subfolder && (enough || !m->cut[0] || want->since_ms > id_time_ms(m->cut));
}

bool
newest_list(struct mailbox *box, const char *folder, const struct scan_request *want, struct listing *ret)
{
	size_t before = ret->n;
	struct stat st;

	if ((want->order != SCAN_NEWEST && want->order != SCAN_OLDEST) || want->id_suffix || want->unread_only ||
	    want->ret_total || maildir_is_shared(box->md) ||
	    sys_stat(box->fd, path_of(folder, "/" PACK_FILE, NULL).z, &st) == 0)
		return false;
	(void)pthread_mutex_lock(&all.lock);
	if (all.fd >= 0)
		hear();
	struct month *m = month_of(box, folder);
	bool known = m && add_names(m, box, folder, want, ret);

	if (m)
		m->asked = ++all.asked;
	(void)pthread_mutex_unlock(&all.lock);
	if (!known)
		ret->n = before;
	return known;
}
