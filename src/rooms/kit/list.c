/* SPDX-License-Identifier: MIT */
/*
 * list.c - mailboxes without an index. A listing collects all items, sorts them by id and reads those that are wanted.
 * The last listing is kept as a hint for finding one message afterwards; the driver checks whether the message is still
 * there. So marking ten thousand messages does not list the folder ten thousand times.
 */
#include "base/error.h"
#include "base/sys.h"
#include "rooms/kit/kit.h"
#include <fcntl.h>
#include <stdlib.h>

/* The inbox before the archive, so that a message that moves in between is seen twice and not missed. */
static const enum mr_folder both[] = { MR_INBOX, MR_ARCHIVE };
#define PASSES 4 /* over both, until neither changed meanwhile */

/* ---- Items ---- */

struct kit_item *
kit_add(struct kit_items *items, const char *folder_path, const char *name, enum mr_folder folder)
{
	mr_auto(buf_done) struct buf path = BUF_INIT;

	buf_addf(&path, "%s%s%s", folder_path, folder_path[0] ? "/" : "", name);
	const char *kept = buf_ok(&path) ? arena_dup(&items->own, buf_str(&path)) : NULL;

	if (!kept || !array_grow(&items->v, items->n, &items->cap, sizeof *items->v)) {
		items->failed = true;
		return NULL;
	}
	struct kit_item *item = &items->v[items->n];

	*item = (struct kit_item){
		.path = kept, .name = kept + path.len - strlen(name), .folder = folder, .rank = items->n++
	};
	return item;
}

static int
by_id(const void *a, const void *b)
{
	const struct kit_item *left = a, *right = b;
	int order = strcmp(left->id, right->id);

	return order ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

void
kit_sort(struct kit_items *items)
{
	if (items->n > 1)
		qsort(items->v, items->n, sizeof *items->v, by_id);
}

struct kit_item *
kit_with_id(const struct kit_items *items, const char *id)
{
	size_t low = 0, high = items->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(items->v[middle].id, id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < items->n && strcmp(items->v[low].id, id) == 0 ? &items->v[low] : NULL;
}

void
kit_items_done(struct kit_items *items)
{
	free(items->v);
	arena_free(items->own);
	*items = (struct kit_items){ 0 };
}

/* ---- A mailbox ---- */

enum mr_rc
kit_box_open(struct mr_room *room, const char *agent, unsigned how, struct kit_box **ret, struct mr_error *err)
{
	const struct kit_format *format = kit_room(room)->format;
	struct kit_box *box = *ret = calloc(1, format->box_size ? format->box_size : sizeof *box);

	TRY(mr_got(box, err));
	box->room = room;
	box->agent = agent;
	box->how = how;
	box->inbox_fd = box->other_fd = -1;
	if (format->open)
		TRY(format->open(box, err));
	for (size_t i = 0; i < 2 && format->folder; i++) {
		enum mr_rc rc = format->folder(box, both[i], i == 0 ? &box->inbox_fd : &box->other_fd, err);

		if (rc != MR_OK && rc != MR_NOTFOUND)
			return rc;
	}
	return MR_OK;
}

void
kit_box_close(struct kit_box **ref)
{
	struct kit_box *box = *ref;

	*ref = NULL;
	if (!box)
		return;
	if (kit_room(box->room)->format->close)
		kit_room(box->room)->format->close(box);
	sys_close_fd(&box->inbox_fd);
	sys_close_fd(&box->other_fd);
	free(box);
}

void
kit_trouble(const struct kit_box *box, const char *path, const struct mr_error *why)
{
	if (box->want && box->want->trouble)
		box->want->trouble(box->want->trouble_ctx, path, why);
}

/*
 * ---- A mailbox of two folders ----
 *
 * A file that moves from an unread folder into one that was read already would be missed, so the folders are read again
 * until neither changed meanwhile.
 */

int
kit_folder(struct kit_box *box, enum mr_folder folder)
{
	int *fd = folder == MR_ARCHIVE ? &box->other_fd : &box->inbox_fd;

	if (*fd < 0 && kit_room(box->room)->format->folder(box, folder, fd, IGNORED) != MR_OK)
		*fd = -1;
	return *fd;
}

void
kit_path(struct kit_box *box, enum mr_folder folder, struct buf *out)
{
	const struct kit_room *room = kit_room(box->room);

	if (room->format->place) {
		room->format->place(box, folder, out);
		return;
	}
	buf_addf(out, "%s/", room->path);
	room->format->folder_path(box, folder, out);
}

struct collecting {
	struct kit_box *box;
	struct kit_items *items;
	enum mr_folder folder;
	const char *path, *only_id;
};

static bool
collect(void *ctx, const struct dir_entry *entry)
{
	const struct collecting *c = ctx;
	struct kit_item found = { .folder = c->folder };

	if (!kit_room(c->box->room)->format->note(c->box, entry, c->only_id, &found))
		return true;
	struct kit_item *item = kit_add(c->items, c->path, entry->name, c->folder);

	if (!item)
		return false;
	memcpy(item->id, found.id, sizeof item->id);
	item->rank = found.rank ? found.rank : item->rank;
	return true;
}

/* The times of the folders' last change; a missing one never changes. A move gives both the same time. */
static void
look_at_changes(struct kit_box *box, int64_t ret_ns[2])
{
	for (size_t i = 0; i < 2; i++) {
		struct stat st = { 0 };

		(void)(kit_folder(box, both[i]) >= 0 && sys_stat_fd(kit_folder(box, both[i]), &st) == 0);
		ret_ns[i] = kit_mtime_ns(&st);
	}
}

static enum mr_rc
list_folders(struct kit_box *box, const struct scan_request *want, const char *only_id, struct kit_items *ret,
    struct mr_error *err)
{
	const struct kit_format *format = kit_room(box->room)->format;
	int64_t seen[2] = { -1, -1 }, now[2] = { 0 };

	for (unsigned pass = 0; pass < PASSES && (seen[0] != now[0] || seen[1] != now[1]); pass++) {
		look_at_changes(box, seen);
		for (size_t i = 0; i < 2; i++) {
			mr_auto(buf_done) struct buf path = BUF_INIT;

			format->folder_path(box, both[i], &path);
			struct collecting c = { box, ret, both[i], buf_z(&path), only_id };

			if ((want->folders & both[i]) && kit_folder(box, both[i]) >= 0 &&
			    dir_each(kit_folder(box, both[i]), collect, &c, err) != MR_OK)
				return mr_wrap(err, "the mailbox of '%s'", box->id);
		}
		look_at_changes(box, now);
	}
	return MR_OK;
}

static enum mr_rc
list(struct kit_box *box, const struct scan_request *want, const char *only_id, struct kit_items *ret,
    struct mr_error *err)
{
	const struct kit_format *format = kit_room(box->room)->format;
	size_t kept = 0;

	TRY((format->list ? format->list : list_folders)(box, want, only_id, ret, err));
	kit_sort(ret);
	for (size_t i = 0; i < ret->n; i++) {
		const struct kit_item *last = kept > 0 ? &ret->v[kept - 1] : NULL;
		bool same =
		    last && (format->same ? format->same(box, last, &ret->v[i]) : strcmp(last->id, ret->v[i].id) == 0);

		if (!same)
			ret->v[kept++] = ret->v[i];
		else if (format->last_counts)
			ret->v[kept - 1] = ret->v[i];
	}
	ret->n = kept;
	return mr_got(!ret->failed, err);
}

enum mr_rc
kit_list(struct kit_box *box, unsigned folders, struct kit_items *ret, struct mr_error *err)
{
	const struct scan_request want = { .folders = folders };

	return list(box, &want, NULL, ret, err);
}

/* An item of the last listing, if that message is still there. */
static struct kit_item *
find_known(struct kit_box *box, const char *id, unsigned folders)
{
	struct kit_room *room = kit_room(box->room);
	bool looked = room->known_mailbox && strcmp(room->known_mailbox, box->agent) == 0;
	struct kit_item *item = looked ? kit_with_id(&room->known, id) : NULL;

	for (; item && item < room->known.v + room->known.n && strcmp(item->id, id) == 0; item++) {
		mr_auto(mr_message_done) struct mr_message msg = { 0 };

		if (room->format->read(box, item, SCAN_HEADERS, &msg, IGNORED) != MR_OK || strcmp(msg.id, id) != 0 ||
		    !(msg.folder & folders))
			continue;
		item->folder = msg.folder;
		return item;
	}
	return NULL;
}

enum mr_rc
kit_find(struct kit_box *box, const char *id, unsigned folders, struct kit_items *items, struct kit_item **ret,
    struct mr_error *err)
{
	const struct scan_request want = { .folders = folders };

	*ret = find_known(box, id, folders);
	if (*ret)
		return MR_OK;
	kit_items_done(items);
	TRY(list(box, &want, id, items, err));
	*ret = kit_with_id(items, id);
	return *ret ? MR_OK : mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, box->agent);
}

/* ---- The slots ---- */

enum mr_rc
kit_scan(struct mr_room *room, const char *agent, const struct scan_request *asked, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	struct kit_room *known = kit_room(room);
	const struct kit_format *format = known->format;
	mr_auto(kit_box_close) struct kit_box *box = NULL;
	mr_auto(kit_items_done) struct kit_items items = { 0 };
	struct scan_request want = *asked;

	want.folders &= want.unread_only && format->unread ? format->unread : format->folders;
	if (!agent[0] ||
	    !(asked->folders & format->folders)) /* the room's own folders, and folders that the format lacks */
		return MR_OK;
	TRY(kit_box_open(room, agent, 0, &box, err));
	box->want = &want;
	if (box->odd)
		kit_trouble(box, box->odd, &box->odd_why);
	TRY(list(box, &want, NULL, &items, err));
	for (size_t i = 0; i < items.n; i++) {
		const struct kit_item *item = &items.v[want.order == SCAN_NEWEST ? items.n - 1 - i : i];
		mr_auto(mr_message_done) struct mr_message msg = { 0 };
		struct mr_error why = { 0 };

		if (want.id_suffix && !str_ends(str_of(item->id), want.id_suffix))
			continue;
		enum mr_rc rc = format->read(box, item, want.depth, &msg, &why);

		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc != MR_OK && rc != MR_NOTFOUND)
			kit_trouble(box, item->path, &why);
		/* It may have moved between the listing and this read: a request for unread mail must not get it. */
		if (rc == MR_OK && (msg.folder & want.folders) && !(want.unread_only && (msg.flags & MR_SEEN)) &&
		    !fn(ctx, &msg))
			break;
	}
	/* Kept, so that the next search does not list it again. */
	free(known->known_mailbox);
	kit_items_done(&known->known);
	known->known_mailbox = strdup(box->agent);
	known->known = items;
	items = (struct kit_items){ 0 };
	return MR_OK;
}

enum mr_rc
kit_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	const struct kit_format *format = kit_room(room)->format;
	mr_auto(kit_box_close) struct kit_box *box = NULL;
	mr_auto(kit_items_done) struct kit_items items = { 0 };
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct kit_item *item = NULL;

	folders = folders ? folders : format->folders;
	TRY(kit_box_open(room, agent, 0, &box, err));
	TRY(kit_find(box, id, folders, &items, &item, err));
	TRY(format->read(box, item, depth, &msg, err));
	if (!(msg.folder & folders)) /* moved meanwhile */
		return mr_fail(err, MR_NOTFOUND, "no message '%s' for '%s'", id, agent);
	*ret = msg;
	msg = (struct mr_message){ 0 };
	return MR_OK;
}

/* There is no mark for "answered" in other programs' formats; the answer itself shows it. */
enum mr_rc
kit_mark(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, enum mr_folder to,
    struct mr_error *err)
{
	const struct kit_format *format = kit_room(room)->format;
	mr_auto(kit_box_close) struct kit_box *box = NULL;
	mr_auto(kit_items_done) struct kit_items items = { 0 };
	struct kit_item *item = NULL;

	if ((set | clear) & (MR_PINNED | MR_TRASHED))
		return room_lacks(room, "marks other than 'read'", err);
	if (to && (!format->move || (to != MR_INBOX && to != MR_ARCHIVE)))
		return room_lacks(room, "such folder", err);
	TRY(kit_box_open(room, agent, 0, &box, err));
	TRY(kit_find(box, id, format->folders & (MR_INBOX | MR_ARCHIVE), &items, &item, err));
	if ((set | clear) & MR_SEEN)
		TRY(format->set_read(box, item, set & MR_SEEN, err));
	return to && item->folder != to ? format->move(box, item, to, err) : MR_OK;
}

struct search {
	struct mr_room *room;
	const char *id;
	place_fn *fn;
	void *ctx;
};

/* An unreadable mailbox is no evidence. */
static bool
look_in(void *ctx, const struct mr_agent *agent)
{
	const struct search *s = ctx;
	const struct room_driver *d = s->room->driver;
	const struct kit_format *format = kit_room(s->room)->format;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	const char *state = "unread";

	if (d->fetch(s->room, agent->name, s->id, 0, SCAN_HEADERS, &msg, IGNORED) != MR_OK)
		return true;
	if (msg.folder == MR_SENT)
		state = "sent";
	else if (msg.folder == MR_ARCHIVE && (d->abilities & ROOM_ARCHIVE))
		state = "archived";
	else if (msg.flags & MR_SEEN)
		state = "read";
	if (format->describe)
		format->describe(&msg, &evidence);
	else
		buf_addf(&evidence, "it is %s, where %s mail is kept", msg.path, state);
	s->fn(s->ctx, &(struct place_of){ .agent = agent->name,
			  .folder = msg.folder,
			  .flags = msg.flags,
			  .state = state,
			  .evidence = buf_z(&evidence) });
	return true;
}

enum mr_rc
kit_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct search s = { room, id, fn, ctx };

	return room->driver->each_agent(room, true, look_in, &s, err);
}

/* ---- The doctor ---- */

void
kit_leftovers(struct findings *f, int fd, const char *path, bool (*is_ours)(const char *name))
{
	mr_auto(mr_names_done) struct mr_names names = { 0 };

	(void)dir_names(fd, &names, IGNORED);
	for (size_t i = 0; i < names.n; i++) {
		mr_auto(buf_done) struct buf whole = BUF_INIT;

		if (is_ours && !is_ours(names.v[i]))
			continue;
		buf_addf(&whole, "%s/%s", path, names.v[i]);
		findings_leftover(f, fd, names.v[i], buf_z(&whole));
	}
}

bool
kit_pass_over(void *ctx, const struct mr_message *msg)
{
	(void)ctx;
	(void)msg;
	return true;
}

struct inspection {
	struct mr_room *room;
	struct findings f;
	struct mr_error *err;
	enum mr_rc rc;
};

static void
tell_trouble(void *ctx, const char *path, const struct mr_error *why)
{
	findings_say(ctx,
	    &(struct mr_finding){ MR_PROBLEM, "mail", path, NULL,
		"a writer of another program was killed, or wrote something else",
		"it is kept and skipped; look at it, then repair or remove it", false },
	    "%s: %s", path, why->message);
}

static bool
inspect_message(void *ctx, const struct mr_message *msg)
{
	struct inspection *x = ctx;
	const struct kit_format *format = kit_room(x->room)->format;

	if (format->inspect_mail)
		format->inspect_mail(&x->f, msg);
	return true;
}

static bool
inspect_agent(void *ctx, const struct mr_agent *agent)
{
	struct inspection *x = ctx;
	const struct kit_format *format = kit_room(x->room)->format;
	mr_auto(kit_box_close) struct kit_box *box = NULL;
	const struct scan_request want = {
		.folders = format->unread ? format->unread : format->folders,
		.depth = SCAN_HEADERS,
		.trouble = tell_trouble,
		.trouble_ctx = &x->f,
	};

	x->rc = kit_box_open(x->room, agent->name, 0, &box, x->err);
	for (int other = 0; other < 2 && x->rc == MR_OK && format->folder_path; other++) {
		mr_auto(buf_done) struct buf path = BUF_INIT;
		int fd = other ? box->other_fd : box->inbox_fd;

		format->folder_path(box, other ? MR_ARCHIVE : MR_INBOX, &path);
		if (fd >= 0)
			kit_leftovers(&x->f, fd, buf_z(&path), kit_is_temporary);
	}
	if (x->rc == MR_OK)
		x->rc = x->room->driver->scan(x->room, agent->name, &want, inspect_message, x, x->err);
	if (x->rc == MR_NOTFOUND) { /* removed meanwhile */
		x->rc = MR_OK;
		*x->err = (struct mr_error){ 0 };
	}
	return x->rc == MR_OK;
}

enum mr_rc
kit_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err)
{
	struct inspection x = { .room = room, .f = findings_begin(fix, fn, ctx), .err = err };
	mr_auto(sys_close_fd) int fd = -1;

	findings_keep_in_state(&x.f, room->state_dir);
	if (dir_open(AT_FDCWD, kit_room(room)->path, &fd, IGNORED) == MR_OK)
		findings_space(&x.f, fd);
	if (kit_room(room)->format->inspect_room)
		x.rc = kit_room(room)->format->inspect_room(room, &x.f, err);
	enum mr_rc rc = x.rc == MR_OK ? room->driver->each_agent(room, true, inspect_agent, &x, err) : MR_OK;

	rc = rc == MR_OK ? x.rc : rc;
	if (rc == MR_OK && x.f.told == 0)
		findings_say(
		    &x.f, &(struct mr_finding){ .severity = MR_FINE, .code = "mail" }, "every message can be read");
	findings_end(&x.f);
	return rc;
}
