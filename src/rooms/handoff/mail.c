/* SPDX-License-Identifier: MIT */
/*
 * mail.c - the messages of a mailbox: listing, reading, and moving between inbox and archive, which is all the read
 * state that there is.
 *
 * Others move files between inbox/ and archive/ while we read. What any pass of the kit over the two saw counts, where
 * the last one saw it. A file that is gone when we open it is looked for in the other folder.
 */
#include "rooms/handoff/handoff.h"

#include "base/sys.h"
#include "message/front.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>

struct box {
	struct kit_box kit;
	struct registry registry;
};

static const char *
folder_name(enum mr_folder folder)
{
	return folder == MR_ARCHIVE ? "archive" : "inbox";
}

static enum mr_rc
box_open(struct kit_box *kit, struct mr_error *err)
{
	struct registry *r = &((struct box *)kit)->registry;
	const struct registry_entry *entry = NULL;

	(void)snprintf(kit->id, sizeof kit->id, "%s", kit->agent);
	if (kit->how == BOX_WITH_ID)
		return handoff_id_check(kit->agent, err);
	TRY(handoff_registry_read(handoff_of(kit->room), r, err));
	TRY(handoff_mailbox_of(handoff_of(kit->room), r, kit->agent, kit->id, &entry, err));
	/* The root was moved or copied: senders that follow the registry's paths write elsewhere. */
	if (!entry || !handoff_is_elsewhere(handoff_of(kit->room), entry))
		return MR_OK;
	kit->odd = "registry.json";
	(void)mr_fail(&kit->odd_why, MR_CORRUPT,
	    "the registry says that the inbox of '%s' is '%.200s'\n"
	    "mail sent there is not seen here; `mailroom doctor --fix` writes the paths of this root",
	    kit->agent, entry->inbox);
	return MR_OK;
}

/* A missing folder is made when it is needed. */
static enum mr_rc
open_folder(struct kit_box *kit, enum mr_folder folder, int *ret_fd, struct mr_error *err)
{
	return handoff_dir(handoff_of(kit->room), kit->id, folder_name(folder), false, ret_fd, err);
}

static void
folder_path(const struct kit_box *kit, enum mr_folder folder, struct buf *out)
{
	buf_addf(out, "%s/%s", kit->id, folder_name(folder));
}

static void
box_close(struct kit_box *kit)
{
	registry_done(&((struct box *)kit)->registry);
}

/* ---- Listing ---- */

static bool
note(struct kit_box *kit, const struct dir_entry *e, const char *only_id, struct kit_item *item)
{
	struct stat st = { 0 };

	(void)only_id;
	if (!handoff_name_is_mail(e->name, item->folder))
		return false;
	/* Links and folders are no mail. A name with a time in it needs no stat. */
	if (e->type != DT_REG || !handoff_name_has_stamp(e->name))
		if (sys_stat(kit_folder(kit, item->folder), e->name, &st) < 0 || !S_ISREG(st.st_mode))
			return false;
	handoff_message_id(e->name, kit_mtime_ns(&st) / 1000000, item->id);
	return true;
}

/* ---- Reading ---- */

/* A file that is gone from its folder is in the other one. */
static enum mr_rc
read_file(struct kit_box *kit, const struct kit_item *item, struct buf *ret, struct stat *st,
    enum mr_folder *ret_folder, struct mr_error *err)
{
	enum mr_rc rc = MR_NOTFOUND;

	*ret_folder = item->folder;
	for (int round = 0; round < 2 && rc == MR_NOTFOUND; round++) {
		if (round > 0)
			*ret_folder = *ret_folder == MR_INBOX ? MR_ARCHIVE : MR_INBOX;
		if (kit_folder(kit, *ret_folder) >= 0)
			rc = file_read_stat(kit_folder(kit, *ret_folder), item->name, HANDOFF_FILE_MAX, ret, st, err);
	}
	return rc == MR_NOTFOUND ? mr_fail(err, MR_NOTFOUND, "'%s' is gone", item->name) : rc;
}

static enum mr_rc
read_item(struct kit_box *kit, const struct kit_item *item, enum scan_depth depth, struct mr_message *ret,
    struct mr_error *err)
{
	const struct box *box = (struct box *)kit;
	mr_auto(buf_done) struct buf text = BUF_INIT, path = BUF_INIT;
	struct kit_message m = kit_message(item->id, item->folder, item->folder == MR_ARCHIVE ? MR_SEEN : 0);
	enum mr_folder folder;
	struct letter letter;
	struct stat st;

	if (depth == SCAN_NAMES)
		return kit_message_end(&m, ret, err);
	TRY(read_file(kit, item, &text, &st, &folder, err));
	if (depth == SCAN_RAW)
		return kit_raw(item, buf_str(&text), ret, err);
	if (!letter_parse(buf_str(&text), &letter))
		return mr_fail(err, MR_CORRUPT,
		    "'%s' has no sender and no msg_id in it\n"
		    "it is not a message of this format: look at it, then move it out of the inbox",
		    item->name);
	handoff_message_id(item->name, kit_mtime_ns(&st) / 1000000, m.msg.id);
	m.msg.folder = folder;
	m.msg.flags = folder == MR_ARCHIVE ? MR_SEEN : 0;
	const struct registry_entry *sender = registry_with_id(&box->registry, letter.from);

	/* An id as its first name, else as itself. */
	m.msg.from = sender ? kit_keep_address(&m, str_of(sender->name)) : "";
	if (!m.msg.from[0])
		m.msg.from = kit_keep_address(&m, letter.from);
	m.msg.subject = kit_keep(&m, letter.subject);
	m.msg.reply_to = kit_keep(&m, letter.reply_to);
	m.msg.thread = kit_keep(&m, str_of(m.msg.id));
	m.msg.date_ms = kit_mtime_ns(&st) / 1000000;
	m.msg.size_bytes = text.len;
	buf_addf(&path, "%s/%s/%s", box->kit.id, folder_name(folder), item->name);
	m.msg.path = kit_keep_buf(&m, &path);
	kit_to(&m, box->kit.agent);
	if (letter.msg_id.len > 0)
		kit_header(&m, "Message-ID", kit_keep(&m, letter.msg_id));
	for (struct mr_str rest = letter.head, key, value; front_next(&rest, &key, &value);)
		if (!handoff_key_known(key))
			kit_header(&m, kit_keep(&m, key), kit_keep(&m, value));
	if (depth == SCAN_BODIES)
		kit_body(&m, letter.body);
	TRY(kit_message_end(&m, ret, err));
	if (letter.to.len > 0 && !str_eq(letter.to, str_of(box->kit.id)) && kit->want &&
	    (folder & kit->want->folders)) {
		struct mr_error astray = { 0 };

		(void)mr_fail(&astray, MR_CORRUPT,
		    "'%s' says that it is for another mailbox\nit is shown anyway: the folder decides", item->name);
		kit_trouble(kit, item->path, &astray);
	}
	return MR_OK;
}

static enum mr_rc
open_ticket(struct mr_room *room, const char *folder, int *ret_fd, struct mr_error *err)
{
	TRY(handoff_id_check(folder, err));
	return handoff_dir(handoff_of(room), folder, "tmp", false, ret_fd, err);
}

/* ---- Moving. The original renames over what is there; we never do. Each move is durable when it returns. ---- */

enum mr_rc
handoff_move_file(struct handoff *h, const char *mailbox, const char *name, enum mr_folder from, struct mr_error *err)
{
	mr_auto(sys_close_fd) int from_fd = -1, to_fd = -1;
	const enum mr_folder to = from == MR_INBOX ? MR_ARCHIVE : MR_INBOX;

	TRY(handoff_id_check(mailbox, err));
	TRY(handoff_dir(h, mailbox, folder_name(from), false, &from_fd, err));
	TRY(handoff_dir(h, mailbox, folder_name(to), true, &to_fd, err));
	/* A number behind the name says that another message has the name; readers of an inbox do not list such names.
	 */
	if (from == MR_ARCHIVE && !handoff_name_is_mail(name, MR_INBOX))
		return mr_fail(err, MR_REFUSED, "'%s' cannot go back: its name was taken by another message", name);
	if (kit_move(from_fd, name, to_fd, "", NAME_MAX) < 0) {
		if (errno == ENOENT)
			return mr_fail(err, MR_NOTFOUND, "'%s' is not in the %s", name, folder_name(from));
		return mr_fail_errno(err, "cannot move '%s'", name);
	}
	/* The new place first: a power cut in between leaves two names, not none. */
	if (sys_fsync(to_fd) < 0 || sys_fsync(from_fd) < 0)
		return mr_fail_errno(err, "cannot make the move of '%s' durable", name);
	return MR_OK;
}

static enum mr_rc
move_item(struct kit_box *box, const struct kit_item *item, enum mr_folder to, struct mr_error *err)
{
	(void)to; /* there is no third place: moved by another meanwhile it is there already */
	return mr_unless(
	    handoff_move_file(handoff_of(box->room), box->id, item->name, item->folder, err), MR_NOTFOUND, err);
}

static enum mr_rc
set_read(struct kit_box *box, struct kit_item *item, bool read, struct mr_error *err)
{
	const enum mr_folder to = read ? MR_ARCHIVE : MR_INBOX;

	if (item->folder != to)
		TRY(move_item(box, item, to, err));
	item->folder = to;
	return MR_OK;
}

const struct kit_format handoff_format = {
	.folders = HANDOFF_FOLDERS,
	.unread = MR_INBOX,
	.box_size = sizeof(struct box),
	.open = box_open,
	.close = box_close,
	.folder = open_folder,
	.note = note,
	.last_counts = true,
	.read = read_item,
	.folder_path = folder_path,
	.set_read = set_read,
	.move = move_item,
	.open_ticket = open_ticket,
};
