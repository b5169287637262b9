/* SPDX-License-Identifier: MIT */
/*
 * mail.c - what is in a mailbox: names that end in .json, in the inbox and in its archive. The format has no index, so
 * a look at a mailbox costs by all that is in it. Planted files are reported and passed over.
 *
 * "read" is a field inside the message, so a mark makes a new file. It takes the place of the old one by an exchange:
 * if the message was archived or removed meanwhile, there is nothing to exchange with and nothing comes back to life.
 * What the exchange gave us is compared with the file that was read: if it is another one, another program replaced it
 * in between; it goes back, and the mark is tried again.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "rooms/chipset/chipset.h"
#include <dirent.h>
#include <errno.h>
#include <sys/file.h>

#define LOCK_WAIT_MS 10000
#define REPLACED_TRIES 20

/* A mailbox that is not there is an empty one. */
static enum mr_rc
box_open(struct kit_box *box, struct mr_error *err)
{
	return chipset_id(box->agent, box->id, err);
}

static enum mr_rc
open_folder(struct kit_box *box, enum mr_folder folder, int *ret_fd, struct mr_error *err)
{
	enum mr_rc rc = chipset_folder(box->room, box->id, folder, false, ret_fd, err);

	return rc == MR_OK || rc == MR_NOTFOUND ? rc : mr_wrap(err, "the mailbox of '%s'", box->id);
}

static void
folder_path(const struct kit_box *box, enum mr_folder folder, struct buf *out)
{
	chipset_box_path(out, box->id, folder);
}

/* ---- Listing ---- */

static bool
read_object(int fd, const char *name, struct buf *text, struct json_value *ret)
{
	return file_read(fd, name, CHIPSET_READ_MAX, text, IGNORED) == MR_OK &&
	       chipset_object(buf_str(text), ret, IGNORED) == MR_OK;
}

/* Only a name without a time makes us look inside. */
static bool
note(struct kit_box *box, const struct dir_entry *entry, const char *only_id, struct kit_item *item)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json_value object;
	struct chipset_name parts;

	if (entry->type == DT_DIR || !str_ends(str_of(entry->name), ".json"))
		return false;
	item->rank = item->folder; /* what several passes saw of one file stands together */
	if (!chipset_name_parse(str_of(entry->name), &parts)) {
		bool whole = read_object(kit_folder(box, item->folder), entry->name, &text, &object);

		chipset_message_id(entry->name, whole ? &object : NULL, item->id);
		return true;
	}
	/* A name whose time is another cannot have that id: no hash is needed to see it. */
	if (only_id && (parts.ms > 0 ? parts.ms : 0) != id_time_ms(only_id))
		return false;
	id_from_name(parts.ms, str_of(entry->name), item->id);
	return true;
}

static bool
read_as_unread(const struct kit_box *box, const struct kit_item *item, struct buf *ret)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct json_value object;

	if (!read_object(item->folder == MR_ARCHIVE ? box->other_fd : box->inbox_fd, item->name, &text, &object))
		return false;
	if (!chipset_set_read(buf_str(&text), object, false, ret))
		buf_add(ret, buf_str(&text));
	return buf_ok(ret);
}

/* Mark-read of the original brings archived mail back into the inbox: that is one message, shown once. Another message
 * that merely got the name again is another. */
static bool
is_same_message(const struct kit_box *box, const struct kit_item *a, const struct kit_item *b)
{
	mr_auto(buf_done) struct buf left = BUF_INIT, right = BUF_INIT;

	if (strcmp(a->id, b->id) != 0 || strcmp(a->name, b->name) != 0)
		return false;
	return a->folder == b->folder || (read_as_unread(box, a, &left) && read_as_unread(box, b, &right) &&
					     str_eq(buf_str(&left), buf_str(&right)));
}

static enum mr_rc
read_item(struct kit_box *box, const struct kit_item *item, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct stat st;

	TRY(file_read_stat(kit_folder(box, item->folder), item->name, CHIPSET_READ_MAX, &text, &st, err));
	if (depth == SCAN_RAW)
		return kit_raw(item, buf_str(&text), ret, err);
	struct chipset_origin at = {
		.box = box->id, .name = item->name, .folder = item->folder, .mtime_ms = kit_mtime_ns(&st) / 1000000
	};
	enum mr_rc rc = chipset_letter(buf_str(&text), &at, depth, ret, err);

	return rc == MR_OK ? rc : mr_wrap(err, "'%s'", item->name);
}

/* ---- For the kit ---- */

static enum mr_rc
open_ticket(struct mr_room *room, const char *folder, int *ret_fd, struct mr_error *err)
{
	if (chipset_id_problem(str_of(folder)))
		return mr_fail(err, MR_REFUSED, "'%.80s' is not a mailbox of a chipset room", folder);
	return chipset_folder(room, folder, MR_INBOX, false, ret_fd, err);
}

static void
describe(const struct mr_message *msg, struct buf *evidence)
{
	buf_addf(evidence, "it is %s, which says that it was %sread", msg->path, msg->flags & MR_SEEN ? "" : "not ");
}

static void
inspect_mail(struct findings *f, const struct mr_message *msg)
{
	const char *note = mr_message_header(msg, "Mailroom-Note");

	if (note)
		findings_say(f,
		    &(struct mr_finding){ MR_PROBLEM, "mail", msg->path, NULL,
			"two senders wrote through one temporary file", "ask both to send again", false },
		    "%s: %s", msg->path, note);
}

/* ---- Changing ---- */

/* Orders our own changes in a mailbox: the lock goes with the descriptor. */
static enum mr_rc
lock_box(int box_fd, const char *id, struct mr_error *err)
{
	if (lock_within(box_fd, LOCK_EX, LOCK_WAIT_MS) == 0)
		return MR_OK;
	if (errno != EWOULDBLOCK)
		return mr_fail_errno(err, "cannot lock the mailbox of '%s'", id);
	return mr_fail(err, MR_BUSY,
	    "the mailbox of '%s' is locked by another process\n"
	    "try again in a moment; the lock ends with that process",
	    id);
}

static enum mr_rc
gone(const char *name, const char *how, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND,
	    "'%s' is gone: %s or removed by another program\nlook again with: mailroom inbox --all", name, how);
}

static bool
is_file(const void *ctx, int fd, const char *name)
{
	const struct stat *file = ctx;
	struct stat st;

	return sys_stat(fd, name, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* With the mode and the time of the old one: a mark is no news. */
static enum mr_rc
put_in_place(
    int fd, const char *name, const struct stat *old, struct mr_str bytes, bool *ret_done, struct mr_error *err)
{
	const struct kit_temporary temporary = kit_temporary(KIT_TEMPORARY "mark-");

	TRY(file_prepare(fd, temporary.z, bytes, old->st_mode & 0777, kit_mtime_ns(old), err));
	if (kit_exchange(fd, temporary.z, name, is_file, old, ret_done) == 0)
		return MR_OK;
	/* Where the system cannot exchange: as near as it gets. */
	*ret_done = errno == ENOSYS && is_file(old, fd, name) && sys_rename(fd, temporary.z, fd, name) == 0;
	if (*ret_done)
		return MR_OK;
	enum mr_rc rc = errno == ENOENT ? gone(name, "archived", err) : mr_fail_errno(err, "cannot mark '%s'", name);

	(void)sys_unlink(fd, temporary.z);
	return rc;
}

static enum mr_rc
set_read(struct kit_box *box, struct kit_item *item, bool read, struct mr_error *err)
{
	int fd = kit_folder(box, item->folder);
	const char *name = item->name;

	TRY(lock_box(box->inbox_fd, box->id, err));
	for (int tries = 0; tries < REPLACED_TRIES; tries++) {
		mr_auto(buf_done) struct buf text = BUF_INIT, changed = BUF_INIT;
		struct json_value object;
		bool done = false;
		struct stat old;

		if (file_read_stat(fd, name, CHIPSET_READ_MAX, &text, &old, err) != MR_OK)
			return err->code == MR_NOTFOUND ? gone(name, "archived", err) : mr_wrap(err, "'%s'", name);
		if (chipset_object(buf_str(&text), &object, err) != MR_OK)
			return mr_wrap(err, "'%s' is unreadable", name);
		if (!chipset_set_read(buf_str(&text), object, read, &changed))
			return MR_OK;
		TRY(mr_got(buf_ok(&changed), err));
		TRY(put_in_place(fd, name, &old, buf_str(&changed), &done, err));
		if (done) {
			kit_dirty(box, item->folder);
			return MR_OK;
		}
	}
	return mr_fail(err, MR_BUSY, "'%s' is being changed by another program\ntry again in a moment", name);
}

/* ---- To the archive and back ---- */

static enum mr_rc
move_item(struct kit_box *box, const struct kit_item *item, enum mr_folder to, struct mr_error *err)
{
	mr_auto(sys_close_fd) int to_fd = -1;

	TRY(chipset_folder(box->room, box->id, to, true, &to_fd, err));
	/* The mailbox itself is what every change of ours locks. */
	TRY(lock_box(box->inbox_fd, box->id, err));
	/* NAME.1.json has another id. */
	if (kit_move(kit_folder(box, item->folder), item->name, to_fd, ".json", CHIPSET_NAME_MAX) < 0)
		return errno == ENOENT ? gone(item->name, "moved", err)
				       : mr_fail_errno(err, "cannot move '%s'", item->name);
	kit_dirty(box, to); /* where it is now first: a power cut in between leaves two, not none */
	kit_dirty(box, item->folder);
	return MR_OK;
}

const struct kit_format chipset_format = {
	.folders = MR_INBOX | MR_ARCHIVE,
	.open = box_open,
	.folder = open_folder,
	.note = note,
	.same = is_same_message,
	.read = read_item,
	.set_read = set_read,
	.move = move_item,
	.open_ticket = open_ticket,
	.gone_is_published = true,
	.describe = describe,
	.folder_path = folder_path,
	.inspect_mail = inspect_mail,
	.inspect_room = chipset_inspect_names,
};
