/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - mail for one recipient, an agent or a queue (queue_ready.c), without a key.
 *
 *	open unnamed in new/ - write - fsync - link - fsync - fsync of new/
 *
 * A crash before the link leaves nothing: an unnamed file dies with its process. A crash after it
 * leaves the whole message, because its bytes were flushed before it had a name. The second fsync
 * writes the link count where no journal does; the third makes the name durable. Only then is it
 * accepted (promise 1). With Sync: fast the first two are one sync_file_range, see storage.c. It is a link
 * and not a rename, so a taken name is never overwritten (promise 3).
 *
 * An error after the link: the name is taken back, and the send is refused with nothing visible. If a
 * reader was faster, or the disk no longer lets us, then it is there and stays: in doubt.
 */
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/maildir/claim.h"
#include <errno.h>

#define NEW_IDS_MAX 5
#define KEEP_WAIT_MS 30000

void
deliver_new_id(struct mr_message *msg)
{
	bool own_thread = msg->thread && strcmp(msg->thread, msg->id) == 0;

	id_new(msg->id);
	if (own_thread)
		msg->thread = msg->id;
}

bool
deliver_needs_copy(int error)
{
	return error == EXDEV || error == EMLINK || error == EPERM || error == EOPNOTSUPP;
}

bool
deliver_sent_place(struct maildir *md, const char *sender, const char *id, char ret_name[NAME_LEN + 8], int *ret_cur_fd)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct mr_error ignored = { 0 };
	char path[MR_ADDRESS_MAX + 16], base[NAME_LEN];

	if (!sender || sender[0] == '\0')
		return false;
	/* Nearly always it is there. */
	(void)snprintf(path, sizeof path, "%.160s/.Sent/cur", sender);
	if (dir_reach(md->agents_fd, path, ret_cur_fd, &ignored) != MR_OK &&
	    (mailbox_open(&box, md, sender, &ignored) != MR_OK ||
		mailbox_subfolder(&box, ".Sent", true, ret_cur_fd, &ignored) != MR_OK))
		return false;
	name_for_id(id, base);
	(void)snprintf(ret_name, NAME_LEN + 8, "%s:2,S", base);
	return true;
}

/* Through the open file and not by its name in new/, which a quick reader may have changed already. */
static void
link_sent(struct maildir *md, const char *sender, const char *id, struct staged *file)
{
	mr_auto(sys_close_fd) int cur_fd = -1;
	struct mr_error ignored = { 0 };
	char name[NAME_LEN + 8];

	if (deliver_sent_place(md, sender, id, name, &cur_fd))
		(void)stage_link(file, cur_fd, name, &ignored);
}

enum mr_rc
deliver_open(struct mr_room *room, const char *agent, bool make, struct mailbox *box, struct mr_error *err)
{
	enum mr_rc rc = mailbox_open(box, maildir_of(room), agent, err);

	if (rc != MR_NOTFOUND || !make)
		return rc;
	struct mr_agent nobody_yet = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

	(void)snprintf(nobody_yet.name, sizeof nobody_yet.name, "%s", agent);
	rc = maildir_add_agent(room, &nobody_yet, err);
	if (rc != MR_OK && rc != MR_EXISTS)
		return rc;
	return mailbox_open(box, maildir_of(room), agent, err);
}

/* The name is there but its durability failed. Gone again: refused. Still there: in doubt. */
static enum mr_rc
take_back(const char *to, int folder_fd, const char *name, struct mr_error *err)
{
	if (sys_unlink(folder_fd, name) == 0) {
		if (sys_fsync(folder_fd) < 0)
			return mr_hint(err, "nothing was delivered; after a power cut the message may "
					    "show up all the same");
		return err->code;
	}
	err->code = MR_INDOUBT;
	(void)mr_wrap(err, "'%s' has the message, but it may not survive a power cut", to);
	return mr_hint(err, "do not send it again; check the disk, then see: mailroom doctor");
}

enum mr_rc
deliver_make_durable(
    struct maildir *md, const char *to, int file_fd, int folder_fd, const char *name, struct mr_error *err)
{
	if (maildir_settle_name(md, file_fd, folder_fd) < 0) {
		(void)mr_fail_errno(err, "cannot make '%s' durable", name);
		return take_back(to, folder_fd, name, err);
	}
	return MR_OK;
}

/* Was the agent pruned while we delivered? The pruner takes the name away first and moves mail after
 * that, so if the name is still there it will find ours; if not, it may have looked already. */
static enum mr_rc
check_still_there(struct mailbox *box, int new_fd, const char *name, struct mr_error *err)
{
	struct stat st;

	if (sys_stat(box->fd, "agent", &st) == 0 || errno != ENOENT)
		return MR_OK;
	bool ours = sys_unlink(new_fd, name) == 0;

	(void)mr_fail(err, MR_NOTFOUND, "agent '%s' was removed just now", box->agent);
	return ours ? err->code : mr_hint(err, "a copy of the message is among the dead letters");
}

/* MR_EXISTS: another message has this id. */
static enum mr_rc
publish(struct mailbox *box, const char *id, struct mr_str text, struct staged *file, struct mr_error *err)
{
	int new_fd, tmp_fd;
	char name[NAME_LEN];

	TRY(mailbox_folder(box, BOX_NEW, &new_fd, err));
	TRY(mailbox_folder(box, BOX_TMP, &tmp_fd, err));
	TRY(stage_open(file, new_fd, tmp_fd, box->md->message_mode, err));
	TRY(stage_write(file, text, err));
	TRY(maildir_settle_bytes(box->md, file, err));
	name_for_id(id, name);
	TRY(stage_link(file, new_fd, name, err));
	TRY(check_still_there(box, new_fd, name, err));
	return deliver_make_durable(box->md, box->agent, file->fd, new_fd, name, err);
}

struct recipient { /* a mailbox, or a queue */
	struct mailbox box;
	struct queue queue;
	bool is_queue;
};

static void
recipient_done(struct recipient *r)
{
	mailbox_done(&r->box);
	queue_done(&r->queue);
}

static enum mr_rc
open_recipient(struct mr_room *room, const struct delivery *what, struct recipient *r, struct mr_error *err)
{
	const char *name;

	r->is_queue = target_kind(what->to->v[0], &name) == TARGET_QUEUE;
	if (r->is_queue)
		return queue_open(&r->queue, maildir_of(room), name, err);
	return deliver_open(room, name, what->make_mailboxes, &r->box, err);
}

/* ---- Imports ---- */

/* What has no id of its own gets one that the next import finds again. */
static void
keep_id(struct mr_message *msg)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	buf_addf(&name, "%s\n%s\n", msg->from ? msg->from : "", msg->subject ? msg->subject : "");
	buf_add(&name, (struct mr_str){ msg->body, msg->body ? msg->body_len : 0 });
	id_from_name(msg->date_ms, buf_str(&name), msg->id);
}

/* A dead letter does not say whose copy it was, so it counts only where there was but one. */
static unsigned
where_it_may_be(const struct mr_message *msg)
{
	unsigned own = MR_INBOX | MR_HELD | MR_ARCHIVE;

	return msg->to.n + msg->cc.n <= 1 ? own | MR_DEAD : own;
}

/* MR_EXISTS: the mailbox has it. The lock makes looking and delivering one step among imports: else two of them,
 * with a reader in between who moves the copy of the first out of new/, would leave two. */
static enum mr_rc
keep_begin(struct recipient *to, struct delivery *what, int *ret_lock, struct mr_error *err)
{
	struct arena *own = NULL;
	struct listed at;
	enum mr_rc rc;

	if (to->is_queue)
		return mr_fail(err, MR_REFUSED, "cannot import mail into '%s': only into mailboxes", what->to->v[0]);
	rc = lock_take(to->box.md->agents_fd, ".keep", to->box.md->file_mode, KEEP_WAIT_MS, ret_lock, err);
	if (rc != MR_OK)
		return rc;
	rc = list_find(&to->box, what->msg->id, where_it_may_be(what->msg), &own, &at, err);
	arena_free(own);
	if (rc == MR_NOTFOUND) {
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	return rc == MR_OK ? mr_fail(err, MR_EXISTS, "'%s' has the message '%s' already", to->box.agent, what->msg->id)
			   : rc;
}

static enum mr_rc
deliver_one(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	mr_auto(recipient_done) struct recipient to = { .box = MAILBOX_INIT, .queue = QUEUE_INIT };
	mr_auto(sys_close_fd) int lock_fd = -1;
	char first[4000];
	mr_auto(buf_done) struct buf text = BUF_IN(first);
	struct mr_message *msg = what->msg;
	enum mr_rc rc = open_recipient(room, what, &to, err);

	if (rc == MR_OK && what->keep)
		rc = keep_begin(&to, what, &lock_fd, err);
	if (rc == MR_EXISTS && what->keep)
		(void)snprintf(ret->id, sizeof ret->id, "%s", msg->id);
	if (rc != MR_OK)
		return rc;
	for (unsigned tries = 0;; tries++) {
		mr_auto(stage_done) struct staged file = STAGED_INIT;

		buf_clear(&text);
		TRY(message_write(msg, room->name, &text, err));
		rc = to.is_queue ? queue_publish(&to.queue, msg, buf_str(&text), &file, err)
				 : publish(&to.box, msg->id, buf_str(&text), &file, err);
		if (rc == MR_EXISTS && !what->keep && tries < NEW_IDS_MAX) {
			deliver_new_id(msg);
			continue;
		}
		if (rc == MR_OK || rc == MR_INDOUBT) {
			(void)snprintf(ret->id, sizeof ret->id, "%s", msg->id);
			link_sent(maildir_of(room), what->sender, msg->id, &file);
		}
		return rc == MR_OK ? rc : mr_wrap(err, "deliver to '%s'", what->to->v[0]);
	}
}

enum mr_rc
maildir_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	const char *name;

	if (what->to->n == 0)
		return mr_fail(err, MR_REFUSED, "cannot deliver a message to nobody");
	if (what->keep && !id_valid(str_of(what->msg->id)))
		keep_id(what->msg);
	if (what->msg->id[0] == '\0')
		deliver_new_id(what->msg);
	if (what->keep && (what->to->n != 1 || what->key))
		return mr_fail(err, MR_REFUSED, "cannot import a message for several at once, or with a key");
	/* A post gets a number that is never given back, so it is recorded first. */
	if (what->to->n == 1 && !what->key && target_kind(what->to->v[0], &name) != TARGET_CHANNEL)
		return deliver_one(room, what, ret, err);
	return fanout_deliver(room, what, ret, err);
}
