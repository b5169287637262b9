/* SPDX-License-Identifier: MIT */
/*
 * folder.c - a plain Maildir of some other program, to be read only: for imports. It is one agent's, who has no name in
 * it; the agent is called like the folder. Subfolders .Archive* are its archive, other ones are left alone. Nothing is
 * moved from new/ to cur/, nothing is marked, nothing is locked.
 *
 * Its program may rename a message at any moment (new/ to cur/, other flags): one that is gone from where it was listed
 * is listed again.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "room/content.h"
#include "rooms/kit/kit.h"
#include <errno.h>
#include <fcntl.h>

#define FIND_TRIES 20
#define SUBFOLDER_MAX 200

/* ---- Opening ---- */

static bool
has(int fd, const char *name, mode_t kind)
{
	struct stat st;

	return sys_stat(fd, name, &st) == 0 && (st.st_mode & S_IFMT) == kind;
}

static const struct kit_format format;

static enum mr_rc
folder_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = sys_open(AT_FDCWD, where, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return mr_fail_errno(err, "cannot open the folder '%s'", where);
	if (!has(fd, "cur", S_IFDIR) || !has(fd, "new", S_IFDIR))
		return mr_fail(err, MR_NOTFOUND,
		    "'%s' is not a Maildir: it has no folders cur and new\ngive the folder that has cur, new and tmp in it",
		    where);
	if (has(fd, "agent", S_IFREG))
		return mr_fail(err, MR_REFUSED,
		    "'%s' is an agent's mailbox of a room\nname the room that it is in, and the agent", where);
	TRY(kit_open(room, sizeof(struct kit_room), &format, str_of(where), err));
	TRY(kit_set_name(room, kit_last_part(str_of(where)), "mail", err));
	room->owner = room->name;
	return MR_OK;
}

static enum mr_rc
folder_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	(void)what;
	(void)ret;
	return mr_fail(err, MR_UNSUPPORTED,
	    "'%s' is a folder of another program: it is only read\n"
	    "copy its mail into a room: mailroom import --from folder:PATH --agent NAME",
	    room->name);
}

/* The folder itself, for as long as one look takes. */
static enum mr_rc
box_open(struct kit_box *box, struct mr_error *err)
{
	return dir_open(AT_FDCWD, kit_room(box->room)->path, &box->inbox_fd, err);
}

/* ---- Listing ---- */

/* Names begin with the second of the delivery. Mail of ours (<seconds>.<id>.mr) keeps its id. */
static void
name_id(struct mr_str base, char ret[MR_ID_LEN + 1])
{
	uint64_t seconds = 0;
	size_t digits = 0;

	while (digits < base.len && ascii_digit(base.ptr[digits]))
		digits++;
	struct mr_str id = { base.ptr + digits + 1, MR_ID_LEN };

	if (base.len == digits + 1 + MR_ID_LEN + 3 && str_ends(base, ".mr") && id_valid(id)) {
		(void)snprintf(ret, MR_ID_LEN + 1, "%.*s", MR_ID_LEN, id.ptr);
		return;
	}
	if (!str_to_u64((struct mr_str){ base.ptr, digits }, &seconds) || seconds > UINT64_C(281474976710))
		seconds = 0; /* an id has 48 bits of milliseconds: this is no time */
	id_from_name((int64_t)seconds * 1000, base, ret);
}

/* A message is its name without the flags: that stays while its program moves and marks it. */
static bool
add_item(struct kit_items *items, const char *dir, const char *name, enum mr_folder folder,
    const struct scan_request *want, const char *only_id)
{
	static const struct {
		char letter;
		unsigned flag;
	} known[] = { { 'S', MR_SEEN }, { 'R', MR_REPLIED }, { 'F', MR_PINNED }, { 'T', MR_TRASHED } };
	const char *info = strstr(name, ":2,");
	char id[MR_ID_LEN + 1];
	unsigned flags = 0;

	for (size_t i = 0; info && i < sizeof(known) / sizeof(known[0]); i++)
		flags |= strchr(info + 3, known[i].letter) ? known[i].flag : 0;
	name_id((struct mr_str){ name, info ? (size_t)(info - name) : strlen(name) }, id);
	if (name[0] == '.' || (want->unread_only && (flags & MR_SEEN)) || (only_id && strcmp(id, only_id) != 0))
		return true;
	struct kit_item *item = kit_add(items, dir, name, folder);

	if (!item)
		return false;
	item->flags = flags;
	memcpy(item->id, id, sizeof(id));
	return true;
}

/* new/ before cur/: a message moves that way. */
static enum mr_rc
list_folder(const struct kit_box *box, const char *sub, enum mr_folder folder, const struct scan_request *want,
    const char *only_id, struct kit_items *ret, struct mr_error *err)
{
	static const char *const parts[] = { "new", "cur" };

	for (size_t i = 0; i < 2; i++) {
		mr_auto(sys_close_fd) int fd = -1;
		mr_auto(mr_names_done) struct mr_names names = { 0 };
		char dir[SUBFOLDER_MAX + 8];

		(void)snprintf(dir, sizeof(dir), "%s%s%s", sub, sub[0] ? "/" : "", parts[i]);
		enum mr_rc rc = dir_open(box->inbox_fd, dir, &fd, err);

		if (rc == MR_NOTFOUND && sub[0]) /* a subfolder that is none */
			continue;
		if (rc == MR_OK)
			rc = dir_names(fd, &names, err);
		TRY(rc);
		for (size_t j = 0; j < names.n; j++)
			if (!add_item(ret, dir, names.v[j], folder, want, only_id))
				return mr_nomem(err);
	}
	return MR_OK;
}

static enum mr_rc
list(struct kit_box *box, const struct scan_request *want, const char *only_id, struct kit_items *ret,
    struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names subs = { 0 };

	if (want->folders & MR_INBOX)
		TRY(list_folder(box, "", MR_INBOX, want, only_id, ret, err));
	if (want->folders & MR_ARCHIVE)
		TRY(dir_names(box->inbox_fd, &subs, err));
	for (size_t i = 0; i < subs.n; i++)
		if (str_starts(str_of(subs.v[i]), ".Archive") && strlen(subs.v[i]) < SUBFOLDER_MAX)
			TRY(list_folder(box, subs.v[i], MR_ARCHIVE, want, only_id, ret, err));
	return MR_OK;
}

/* ---- Reading ---- */

static enum mr_rc
read_file(const struct kit_box *box, const struct kit_item *item, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(sys_close_fd) int fd = sys_open(box->inbox_fd, item->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	struct kit_message m = { .msg = { .flags = item->flags, .folder = item->folder } };
	struct stat st;

	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return errno == ENOENT ? mr_fail(err, MR_NOTFOUND, "'%s' no longer exists", item->path)
				       : mr_fail_errno(err, "cannot read '%s'", item->path);
	if (!S_ISREG(st.st_mode))
		return mr_fail(err, MR_REFUSED, "'%s' is not a file", item->path);
	memcpy(m.msg.id, item->id, sizeof(m.msg.id));
	TRY(content_read(
	    fd, (size_t)st.st_size, "", depth == SCAN_BODIES ? MESSAGE_ALL : MESSAGE_HEADERS, &text, &m.msg, err));
	m.own = m.msg.own;
	m.msg.size_bytes = (size_t)st.st_size;
	m.msg.path = kit_keep(&m, str_of(item->path));
	return kit_message_end(&m, ret, err);
}

static enum mr_rc
read_item(struct kit_box *box, const struct kit_item *item, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	const struct scan_request want = { .folders = MR_INBOX | MR_ARCHIVE };
	enum mr_rc rc = read_file(box, item, depth, ret, err);

	for (int tries = 1; rc == MR_NOTFOUND && tries < FIND_TRIES; tries++) {
		mr_auto(kit_items_done) struct kit_items items = { 0 };

		TRY(list(box, &want, item->id, &items, err));
		if (items.n == 0)
			return mr_fail(err, MR_NOTFOUND, "no message '%s' in '%s'", item->id, box->agent);
		rc = read_file(box, &items.v[items.n - 1], depth, ret, err); /* where it was seen last */
	}
	return rc == MR_NOTFOUND ? mr_fail(err, MR_BUSY, "message '%s' keeps being renamed", item->id) : rc;
}

static const struct kit_format format = {
	.folders = MR_INBOX | MR_ARCHIVE,
	.open = box_open,
	.list = list,
	.last_counts = true,
	.read = read_item,
};

const struct room_driver room_folder = {
	.kind = "folder",
	.abilities = ROOM_ARCHIVE | ROOM_THREADS | ROOM_PRIORITIES | ROOM_TYPES | ROOM_NAMELESS,
	.open = folder_open,
	.close = kit_close,
	.each_agent = kit_each_owner,
	.find_agent = kit_find_owner,
	.deliver = folder_deliver,
	.scan = kit_scan,
	.fetch = kit_fetch,
};
