/* SPDX-License-Identifier: MIT */
/*
 * scan.c - scan and fetch: names first (list.c), then one message at a time.
 *
 * Between listing and reading a message may move. Then it is looked up again in the requested folders, and skipped only
 * if it is in none of them. The archive is streamed a month at a time, so that memory is bounded by one month; it is
 * read after the inbox because mail moves that way. A scan of both may miss mail that moves out of the archive
 * meanwhile.
 *
 * A link, a pipe, a device or a huge file that somebody planted in a mailbox is refused with a reason; it is never
 * followed, waited for or read.
 */
#include "room/content.h"
#include "room/kept.h"
#include "rooms/maildir/maildir.h"
#include <limits.h>

#define FIND_TRIES 20
#define RAW_LIMIT ((size_t)128 << 20)
#define TEXT_KEPT ((size_t)64 << 10)

/* ---- From a file to a message ---- */

enum mr_rc
message_open(int dir_fd, const char *name, int *ret_fd, struct stat *ret_st, struct mr_error *err)
{
	/* Without O_NONBLOCK a planted pipe would block the open for ever. With O_NOATIME, which only the owner of a
	 * file may use, the first read of a message does not change its inode. */
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
	mr_auto(sys_close_fd) int fd = sys_open(dir_fd, name, flags | O_NOATIME, 0);

	if (fd < 0 && errno == EPERM)
		fd = sys_open(dir_fd, name, flags, 0);
	if (fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "'%s' no longer exists", name);
	if (fd < 0 && (errno == ELOOP || errno == EMLINK))
		return mr_fail(err, MR_REFUSED, "'%s' is a symbolic link, which is not followed", name);
	if (fd < 0 || sys_stat_fd(fd, ret_st) < 0)
		return mr_fail_errno(err, "cannot read '%s'", name);
	if (!S_ISREG(ret_st->st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is not a file", name);
	*ret_fd = sys_take_fd(&fd);
	return MR_OK;
}

enum mr_rc
message_read(struct mr_room *room, int fd, const struct stat *st, enum scan_depth depth, const char *path,
    struct buf *text, struct mr_message *msg, struct mr_error *err)
{
	msg->size_bytes = (size_t)st->st_size;
	if (depth == SCAN_RAW) {
		struct arena *own = NULL;

		buf_clear(text);
		TRY(file_read_fd(fd, RAW_LIMIT, text, err));
		msg->body = arena_dup(&own, buf_str(text));
		msg->body_len = text->len;
		msg->own = own;
		return mr_got(msg->body, err);
	}
	TRY(content_read(
	    fd, (size_t)st->st_size, room->name, depth == SCAN_BODIES ? MESSAGE_ALL : MESSAGE_HEADERS, text, msg, err));
	msg->proof = shared_proof(maildir_of(room), msg->from, st);
	return message_keep_path(msg, path, err);
}

enum mr_rc
message_keep_path(struct mr_message *msg, const char *path, struct mr_error *err)
{
	struct arena *own = msg->own;

	msg->path = arena_dup(&own, str_of(path));
	msg->own = own;
	if (msg->path)
		return MR_OK;
	mr_message_done(msg);
	return mr_nomem(err);
}

/* ---- From a listing to messages ---- */

struct scan { /* one scan or fetch under way */
	struct mr_room *room;
	struct mailbox box;
	int folder_fd;              /* of the last message: usually the next one is in it, too */
	struct path folder;         /* the path of that folder */
	char path[LISTED_PATH * 2]; /* of the last message */
	struct buf text;            /* reused for each message, and kept by the handle */
	const struct scan_request *want;
	mr_message_fn *fn;
	void *ctx;
	char last_id[MR_ID_LEN + 1];  /* skips the second copy of a message in two folders */
	char untold[LISTED_PATH * 2]; /* the pack that this program cannot read */
	bool stopped;
};

static struct scan
scan_begin(struct mr_room *room)
{
	struct scan s = { .room = room, .box = MAILBOX_INIT, .folder_fd = -1, .text = maildir_of(room)->text };

	maildir_of(room)->text = BUF_INIT;
	return s;
}

static void
scan_done(struct scan *s)
{
	struct buf *kept = &maildir_of(s->room)->text;

	sys_close_fd(&s->folder_fd);
	mailbox_done(&s->box);
	buf_done(kept); /* of a nested scan */
	*kept = s->text;
	if (kept->cap > TEXT_KEPT || kept->failed)
		buf_done(kept);
}

/* Dead letters belong to the room: for them alone the agent does not matter. */
static enum mr_rc
open_box(struct scan *s, const char *agent, unsigned folders, struct mr_error *err)
{
	if (folders == MR_DEAD)
		return mailbox_open_dead(&s->box, maildir_of(s->room), err);
	return mailbox_open(&s->box, maildir_of(s->room), agent, err);
}

static const char *
note_path(struct scan *s, const struct listed *at)
{
	text_join(s->path, sizeof s->path, list_path(&s->box, at).z, at->packed.length ? "" : "/",
	    at->packed.length ? "" : at->name, NULL);
	return s->path;
}

/* MR_NOTFOUND: it was moved since it was listed. */
static enum mr_rc
open_listed(struct scan *s, const struct listed *at, int *ret_fd, struct stat *ret_st, struct mr_error *err)
{
	int folder_fd = -1;

	if ((at->folder == MR_INBOX || (at->folder == MR_DEAD && !s->box.agent[0])) && !at->subfolder) {
		TRY(mailbox_folder(&s->box, (enum box_folder)at->box, &folder_fd, err));
		return message_open(folder_fd, at->name, ret_fd, ret_st, err);
	}
	const struct path folder = list_path(&s->box, at);

	if (s->folder_fd < 0 || strcmp(folder.z, s->folder.z) != 0) {
		sys_close_fd(&s->folder_fd);
		TRY(at->packed.length ? message_open(s->box.md->root_fd, folder.z, &s->folder_fd, ret_st, err)
				      : dir_open(s->box.md->root_fd, folder.z, &s->folder_fd, err));
		s->folder = folder;
	}
	if (at->packed.length) {
		enum mr_rc rc = pack_open_message(s->folder_fd, at, ret_fd, ret_st, err);

		if (rc == MR_NOTFOUND)
			sys_close_fd(&s->folder_fd);
		return rc;
	}
	return message_open(s->folder_fd, at->name, ret_fd, ret_st, err);
}

/* With SCAN_NAMES it reads only the name, and msg->path is borrowed until the next call. */
static enum mr_rc
read_listed(
    struct scan *s, const struct listed *at, enum scan_depth depth, struct mr_message *ret, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	struct mr_message msg = message_blank(at->id);
	struct file_name parts;
	struct stat st;

	msg.path = note_path(s, at);
	msg.flags = at->flags;
	msg.attempt = at->attempt;
	msg.priority = depth == SCAN_NAMES ? (enum mr_priority)at->priority : MR_NORMAL;
	msg.look = at->look;
	msg.released_ms = at->released_ms;
	msg.folder = (enum mr_folder)at->folder;
	if (at->folder == MR_HELD && name_parse_held(str_of(at->name), &parts))
		memcpy(msg.token, parts.token, sizeof msg.token);
	*ret = msg;
	if (depth == SCAN_NAMES)
		return MR_OK;
	/* Only for a name that was just listed: a fetch guesses names, and only opening shows whether one exists. The
	 * kept text does not include the proof. */
	bool keeps = kept_find && s->want && !(at->folder & MR_DEAD) && !maildir_is_shared(s->box.md);
	char place[PATH_MAX + LISTED_PATH];

	text_join(place, sizeof place, s->box.md->path, at->folder == MR_SENT ? "/sent/" : "/", s->box.agent, NULL);
	if (keeps && kept_find(place, at->id, depth == SCAN_BODIES, ret)) {
		ret->flags = msg.flags;
		ret->attempt = msg.attempt;
		ret->look = msg.look;
		ret->released_ms = msg.released_ms;
		ret->folder = msg.folder;
		memcpy(ret->token, msg.token, sizeof ret->token);
		return message_keep_path(ret, s->path, err);
	}
	TRY(open_listed(s, at, &fd, &st, err));
	if (message_read(s->room, fd, &st, depth, s->path, &s->text, &msg, err) != MR_OK)
		return mr_wrap(err, "'%s'", at->name);
	*ret = msg;
	if (keeps)
		kept_add(place, &msg);
	return MR_OK;
}

/* Reads it where it was listed, else where it is now. MR_NOTFOUND: it is in none of the folders. */
static enum mr_rc
read_or_find(struct scan *s, struct listed *at, unsigned folders, enum scan_depth depth, struct arena **own,
    struct mr_message *ret, struct mr_error *err)
{
	enum mr_rc rc = read_listed(s, at, depth, ret, err);

	for (int tries = 0; rc == MR_NOTFOUND && tries < FIND_TRIES; tries++) {
		TRY(list_find(&s->box, at->id, folders, own, at, err));
		rc = read_listed(s, at, depth, ret, err);
	}
	return rc;
}

static enum mr_rc
emit(struct scan *s, const struct listed *at, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(arena_done) struct arena *own = NULL;
	struct listed now = *at;
	struct mr_error trouble = { 0 };

	if (strcmp(s->last_id, at->id) == 0)
		return MR_OK;
	enum mr_rc rc = read_or_find(s, &now, s->want->folders, s->want->depth, &own, &msg, &trouble);

	if (rc == MR_NOTFOUND || (rc == MR_OK && s->want->unread_only && (msg.flags & MR_SEEN)))
		return MR_OK; /* gone, or read by another process since it was listed */
	if (rc == MR_NOMEM)
		return mr_nomem(err);
	if (rc != MR_OK) {
		bool told = rc == MR_UNSUPPORTED && strcmp(s->untold, note_path(s, &now)) == 0; /* for that pack */

		if (rc == MR_UNSUPPORTED)
			memcpy(s->untold, s->path, sizeof s->untold);
		if (s->want->trouble && !told)
			s->want->trouble(s->want->trouble_ctx, note_path(s, &now), &trouble);
		return MR_OK;
	}
	memcpy(s->last_id, at->id, sizeof s->last_id);
	s->stopped = !s->fn(s->ctx, &msg);
	return MR_OK;
}

/* Adds the messages that the index reports as wanted: one look at a name each. *ret_known false: the index cannot tell,
 * or one of them moved, and nothing is added. */
static enum mr_rc
list_known(struct scan *s, const char *folder, struct listing *ret, bool *ret_known, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	unsigned folders = str_starts(str_of(folder), SENT_FOLDER) ? MR_SENT : MR_ARCHIVE;
	size_t before = ret->n;

	*ret_known = s->want->ends && s->want->ends(s->want->ends_ctx, folder, &ids);
	for (size_t i = 0; i < ids.n && *ret_known; i++) {
		TRY(mr_got(array_grow(&ret->v, ret->n, &ret->cap, sizeof *ret->v), err));
		enum mr_rc rc = list_find(&s->box, ids.v[i], folders, &ret->own, &ret->v[ret->n], err);

		TRY(mr_unless(rc, MR_NOTFOUND, err));
		*ret_known = rc == MR_OK;
		ret->n = *ret_known ? ret->n + 1 : before;
	}
	return MR_OK;
}

/* Emits a month of the archive and of sent mail, with the messages of the other folders that sort before its last
 * one. */
static enum mr_rc
emit_month(struct scan *s, char *const *folders, size_t n, const struct listing *rest, size_t *at, struct mr_error *err)
{
	mr_auto(listing_done) struct listing archived = { 0 };

	for (size_t i = 0; i < n; i++) {
		bool known = list_skips_month(folders[i], s->want);

		if (!known)
			TRY(list_known(s, folders[i], &archived, &known, err));
		if (!known)
			TRY(list_month(&s->box, folders[i], s->want, &archived, err));
	}
	listing_sort(&archived, s->want->order);
	if (s->want->ret_total)
		*s->want->ret_total += archived.total;
	for (size_t i = 0; i < archived.n && !s->stopped;) {
		const struct listed *next = *at < rest->n ? &rest->v[*at] : NULL;
		int order = next ? memcmp(next->id, archived.v[i].id, MR_ID_LEN) : 0;
		bool other = s->want->order == SCAN_NEWEST ? order > 0 : order < 0;

		if (next && order == 0) /* mail to oneself: the sent copy comes last */
			other = next->folder != MR_SENT;
		TRY(emit(s, other ? &rest->v[(*at)++] : &archived.v[i++], err));
	}
	return MR_OK;
}

struct first {
	struct listed at;
	char name[NAME_LEN];
};

static bool
note_first(void *ctx, const struct dir_entry *entry)
{
	struct first *first = ctx;
	struct file_name parts;

	if (!name_parse(str_of(entry->name), &parts) || parts.has_info)
		return true;
	text_join(first->name, sizeof first->name, entry->name, NULL);
	first->at = (struct listed){ .folder = MR_INBOX, .box = BOX_NEW, .name = first->name };
	listed_fill(&first->at, &parts, false);
	return false;
}

/* One look into new/ for a waiting agent: a file there is unread mail, even if others move meanwhile. If it finds none,
 * the full listing decides, which takes four passes over a folder that changed just now. */
static enum mr_rc
emit_any(struct scan *s, struct mr_error *err)
{
	struct first first = { 0 };
	int new_fd = -1;

	TRY(mailbox_folder(&s->box, BOX_NEW, &new_fd, err));
	TRY(dir_each(new_fd, note_first, &first, err));
	return first.at.name ? emit(s, &first.at, err) : MR_OK;
}

/* ---- A glance ---- */

struct glance {
	struct scan *s;
	enum mr_folder folder;
};

static bool
glance_name(void *ctx, const struct dir_entry *entry)
{
	const struct glance *g = ctx;
	struct listed at = { .folder = (unsigned char)g->folder, .name = entry->name };
	struct mr_message msg;
	struct file_name parts;

	if (!(g->folder == MR_HELD ? name_parse_held : name_parse)(str_of(entry->name), &parts))
		return true;
	listed_fill(&at, &parts, false);
	(void)read_listed(g->s, &at, SCAN_NAMES, &msg, IGNORED); /* uses only the name, so it cannot fail */
	g->s->stopped = !g->s->fn(g->s->ctx, &msg);
	return !g->s->stopped;
}

/* A missing folder is empty. */
static enum mr_rc
glance_folder(struct scan *s, const char *path, enum mr_folder folder, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	enum mr_rc rc = s->stopped ? MR_NOTFOUND : dir_open(s->box.fd, path, &fd, err);

	if (shared_pass(s->box.md, rc, err, "agents/%s/%s", s->box.agent, path) != MR_OK)
		return mr_wrap(err, "mailbox '%s'", s->box.agent);
	if (fd < 0)
		return MR_OK;
	return dir_each_once(fd, glance_name, &(struct glance){ s, folder }, err);
}

/* For one mailbox among thousands: only opens and reads its folders. */
static enum mr_rc
glance(struct scan *s, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names lives = { 0 };
	unsigned life;

	if (s->want->folders & MR_INBOX) {
		TRY(glance_folder(s, "new", MR_INBOX, err));
		TRY(glance_folder(s, "cur", MR_INBOX, err));
	}
	if (!(s->want->folders & MR_HELD) || mailbox_holds_nothing(&s->box))
		return MR_OK;
	if (shared_pass(s->box.md, dir_names_in(s->box.fd, "held", &lives, err), err, "agents/%s/held", s->box.agent) !=
	    MR_OK)
		return mr_wrap(err, "mailbox '%s'", s->box.agent);
	/* ".gone.": a takeover was cut off; a sweep puts the mail back */
	for (size_t i = 0; i < lives.n; i++)
		if (str_starts(str_of(lives.v[i]), GONE_PREFIX) || life_number(lives.v[i], &life))
			TRY(glance_folder(s, path_of("held/", lives.v[i], NULL).z, MR_HELD, err));
	return MR_OK;
}

enum mr_rc
maildir_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(scan_done) struct scan s = scan_begin(room);
	mr_auto(listing_done) struct listing rest = { 0 };
	mr_auto(mr_names_done) struct mr_names months = { 0 };
	bool newest = want->order == SCAN_NEWEST, by_time = newest || want->order == SCAN_OLDEST;
	char state[SCAN_STATE_LEN] = "";
	int64_t changed_ns[2] = { 0 };
	size_t at = 0;

	s.want = want;
	s.fn = fn;
	s.ctx = ctx;
	TRY(open_box(&s, agent, want->folders, err));
	if (want->glance)
		return glance(&s, err);
	if (want->one_is_enough && want->unread_only && want->folders == MR_INBOX && !want->id_suffix)
		TRY(emit_any(&s, err));
	if (s.stopped)
		return MR_OK;
	if (want->state && want->state->text[0]) {
		list_state(&s.box, state, changed_ns);
		want->state->same = strcmp(state, want->state->text) == 0;
		if (want->state->same)
			return MR_OK;
	}
	unsigned by_month = by_time && !want->store ? want->folders & (MR_ARCHIVE | MR_SENT) : 0;

	if (want->store)
		TRY(list_add(&s.box, want->folders, *want->store ? want->store : NULL, want, &rest, err));
	else
		TRY(list_wanted(&s.box, want->folders & ~by_month, want, &rest, err));
	if (want->state) {
		if (rest.exact && rest.total > 0)
			list_state(&s.box, state, changed_ns);
		bool good = rest.exact && rest.total > 0 && memcmp(changed_ns, rest.changed_ns, sizeof changed_ns) == 0;

		text_join(want->state->text, sizeof state, good ? state : "", NULL);
	}
	if (want->nearest && rest.n > 0)
		by_month = 0;
	if (by_month & MR_SENT) /* .Sent of an older version has all months */
		TRY(list_month(&s.box, SENT_FOLDER, want, &rest, err));
	if (by_month && !(want->nearest && rest.n > 0))
		TRY(list_months(&s.box, by_month, &months, err));
	listing_sort(&rest, want->order);
	if (want->ret_total)
		*want->ret_total = rest.total;
	for (size_t left = months.n, n; left > 0 && !s.stopped && !(want->nearest && s.last_id[0]); left -= n) {
		size_t first = newest ? left - 1 : months.n - left;
		const char *month = list_month_of(months.v[first]);

		for (n = 1; n < left && strcmp(month, list_month_of(months.v[newest ? first - n : first + n])) == 0;
		     n++)
			continue;
		TRY(emit_month(&s, &months.v[newest ? first + 1 - n : first], n, &rest, &at, err));
	}
	while (at < rest.n && !s.stopped)
		TRY(emit(&s, &rest.v[at++], err));
	return MR_OK;
}

enum mr_rc
maildir_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(scan_done) struct scan s = scan_begin(room);
	mr_auto(arena_done) struct arena *own = NULL;
	struct mr_message msg = { 0 };
	char name[NAME_LEN];
	struct listed at;

	if (box_queue(agent))
		return maildir_queue_fetch(room, box_queue(agent), id, depth, ret, err);
	TRY(open_box(&s, agent, folders, err));
	list_guess(id, name, &at); /* most fetches are of unread mail; opening it shows whether it exists */
	if (depth == SCAN_NAMES || (folders && !(folders & MR_INBOX)))
		TRY(list_find(&s.box, id, folders, &own, &at, err));
	TRY(read_or_find(&s, &at, folders, depth, &own, &msg, err));
	if (depth == SCAN_NAMES)
		TRY(message_keep_path(&msg, s.path, err));
	*ret = msg;
	return MR_OK;
}
