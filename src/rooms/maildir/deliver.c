/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - mail for one recipient, an agent or a queue (queue_ready.c), without a key; and many such messages at
 * once.
 *
 *	open unnamed in new/ - write - fsync - link - fsync - fsync of new/
 *
 * A crash before the link leaves nothing: an unnamed file dies with its process. A crash after it leaves the whole
 * message, because its bytes were flushed before it had a name. The second fsync writes the link count where no journal
 * does; the third makes the name durable. Only then is it accepted (promise 1). With Sync: fast the first two are one
 * sync_file_range, see commit.c. It is a link and not a rename, so a taken name is never overwritten (promise 3).
 *
 * An error after the link: the name is removed, and the send is refused with nothing visible. If a reader was faster,
 * or the disk refuses the removal, the message stays: in doubt.
 *
 * Many messages, each for one agent, go through the same states, each step for all of them before the next step:
 *
 *	1 written   unnamed files in spool/, which is on the same file system as every mailbox. A crash leaves nothing.
 *	2 flushed   one sync of the whole file system, where that is known to be as good as one of each file.
 *	            Nothing has a name before all bytes are on the disk: never a torn message.
 *	3 named     a link each into its new/. A crash from here on leaves of each message the whole of it, or
 *	            nothing; none was accepted yet, so either is right for each.
 *	4 durable   the second sync of everything (link counts, folders), then one of each new/ for itself. Now
 *	            all are accepted, and none of them earlier.
 *
 * A sync of a single file or folder follows each sync of the whole file system: without a journal ext4 flushes the
 * disk's cache before it has written the last folders, and the single sync flushes it again.
 *
 * A message that cannot be written or named in this way is sent by itself afterwards. A flush that fails in 2 refuses
 * all, nothing is visible. One that fails in 4 takes back all of them, because the kernel says only once that something
 * was lost, and not what; a message that was read already is in doubt.
 */
#include "base/storage.h"
#include "room/content.h"
#include "rooms/maildir/maildir.h"

#define NEW_IDS_MAX 5
#define IMPORT_WAIT_MS 30000
#define WHOLE_MIN 4 /* for fewer messages, syncing each file is faster than a sync that includes foreign data */

/* ---- For every way to deliver ---- */

enum target_kind
target_kind(const char *to, const char **ret_name)
{
	bool queue = str_starts(str_of(to), "queue:"), channel = str_starts(str_of(to), "channel:");

	*ret_name = queue || channel ? strchr(to, ':') + 1 : to;
	return queue ? TARGET_QUEUE : channel ? TARGET_CHANNEL : TARGET_AGENT;
}

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

struct path
deliver_sent_name(const char *id)
{
	char base[NAME_LEN];

	name_for_id(id, base);
	return path_of(base, ":2,S", NULL);
}

bool
deliver_open_sent(struct maildir *md, const char *sender, const char *id, int *ret_cur_fd)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	char month[24];

	if (!sender || sender[0] == '\0')
		return false;
	name_month(SENT_FOLDER, id_time_ms(id), month);
	/* Nearly always it is there. */
	if (dir_reach(md->agents_fd, path_of(sender, "/", month, "/cur", NULL).z, ret_cur_fd, IGNORED) != MR_OK &&
	    (mailbox_open(&box, md, sender, IGNORED) != MR_OK ||
		mailbox_subfolder(&box, month, true, ret_cur_fd, IGNORED) != MR_OK))
		return false;
	if (box.md)
		*ret_cur_fd = mailbox_take(&box, BOX_MONTH);
	return true;
}

enum mr_rc
deliver_open(struct mr_room *room, const char *agent, bool make, struct mailbox *box, struct mr_error *err)
{
	enum mr_rc rc = mailbox_open(box, maildir_of(room), agent, err);

	if (rc != MR_NOTFOUND || !make)
		return rc;
	struct mr_agent nobody_yet = room_agent(agent);

	rc = maildir_add_agent(room, &nobody_yet, err);
	if (rc != MR_OK && rc != MR_EXISTS)
		return rc;
	return mailbox_open(box, maildir_of(room), agent, err);
}

bool
deliver_is_removed(const struct maildir *md, const char *agent)
{
	struct stat st;

	return sys_stat(md->agents_fd, path_of(agent, "/agent", NULL).z, &st) < 0 && errno == ENOENT;
}

static enum mr_rc
write_piece(void *ctx, struct mr_str bytes, struct mr_error *err)
{
	return stage_write(ctx, bytes, err);
}

enum mr_rc
deliver_write(struct staged *file, struct mr_room *room, const struct mr_message *msg, struct mr_error *err)
{
	char first[4000];
	mr_auto(buf_done) struct buf text = BUF_IN(first);

	TRY(message_write(msg, room->name, &text, err));
	TRY(stage_write(file, buf_str(&text), err));
	return msg->content ? message_write_content(msg, write_piece, file, err) : MR_OK;
}

static enum mr_rc
in_doubt(const char *to, struct mr_error *err)
{
	err->code = MR_INDOUBT;
	(void)mr_wrap(err, "'%s' has the message, but it may not survive a power cut", to);
	return mr_hint(err, "do not send it again; check the disk, then see: mailroom doctor");
}

static enum mr_rc
may_come_back(struct mr_error *err)
{
	return mr_hint(err, "nothing was delivered; after a power cut the message may show up anyway");
}

enum mr_rc
deliver_make_durable(
    struct maildir *md, const char *to, int file_fd, int folder_fd, const char *name, struct mr_error *err)
{
	if (commit_name(md, file_fd, folder_fd) == 0)
		return MR_OK;
	(void)mr_fail_errno(err, "cannot make '%s' durable", name);
	if (sys_unlink(folder_fd, name) < 0)
		return in_doubt(to, err);
	return sys_fsync(folder_fd) < 0 ? may_come_back(err) : err->code;
}

/* ---- One message ---- */

/* MR_EXISTS: another message has this id. */
static enum mr_rc
publish(
    struct mr_room *room, struct mailbox *box, const struct delivery *what, struct staged *file, struct mr_error *err)
{
	int new_fd, tmp_fd;
	char name[NAME_LEN];

	TRY(mailbox_folder(box, BOX_NEW, &new_fd, err));
	TRY(mailbox_folder(box, BOX_TMP, &tmp_fd, err));
	TRY(stage_open(file, new_fd, tmp_fd, box->md->message_mode, err));
	TRY(deliver_write(file, room, what->msg, err));
	TRY(commit_bytes(box->md, file, err));
	name_new(what->msg->id, what->msg->priority, what->look, name);
	TRY(stage_link(file, new_fd, name, err));
	/* Was the agent pruned meanwhile? Pruning removes the name first and moves mail after that. So if the name
	 * still exists, the pruner will find our mail; if not, it may have passed already. */
	if (deliver_is_removed(box->md, box->agent)) {
		bool ours = sys_unlink(new_fd, name) == 0;

		(void)mr_fail(err, MR_NOTFOUND, "agent '%s' was removed just now", box->agent);
		return ours ? err->code : mr_hint(err, "a copy of the message is among the dead letters");
	}
	return deliver_make_durable(box->md, box->agent, file->fd, new_fd, name, err);
}

/* ---- Imports ---- */

void
imports_done(struct imports *known)
{
	nameset_done(&known->set);
	mr_names_done(&known->ids);
	*known = (struct imports){ 0 };
}

/* Reads the folders of the mailbox, unless they were read for the import before and nobody else imported since: each
 * import makes agents/.keep, which is locked, a byte longer. */
static enum mr_rc
read_known(struct mailbox *box, off_t length, struct mr_error *err)
{
	mr_auto(listing_done) struct listing all = { 0 };
	struct imports *known = &box->md->imports;

	if (known->length == length && strcmp(known->agent, box->agent) == 0)
		return MR_OK;
	imports_done(known);
	TRY(list_folders(box, MR_INBOX | MR_HELD | MR_ARCHIVE | MR_DEAD, false, NULL, &all, err));
	for (size_t i = 0; i < all.n; i++)
		TRY(mr_got(nameset_add_once(&known->set, &known->ids, all.v[i].id), err));
	text_join(known->agent, sizeof known->agent, box->agent, NULL);
	known->length = length;
	return MR_OK;
}

/* MR_EXISTS: the mailbox has the message. The lock makes looking and delivering one step among imports; otherwise two
 * of them could both deliver, if a reader moved the first copy out of new/ in between. */
static enum mr_rc
begin_import(struct mailbox *box, const struct mr_message *msg, int *ret_lock, struct mr_error *err)
{
	mr_auto(arena_done) struct arena *own = NULL;
	struct imports *known = &box->md->imports;
	unsigned folders = MR_INBOX | MR_HELD | MR_ARCHIVE;
	enum mr_rc rc = MR_NOTFOUND;
	struct listed at;
	struct stat st;

	if (msg->to.n + msg->cc.n <= 1) /* a dead letter does not say whose copy it was */
		folders |= MR_DEAD;
	TRY(lock_take(box->md->agents_fd, ".keep", box->md->file_mode, IMPORT_WAIT_MS, ret_lock, err));
	if (sys_stat_fd(*ret_lock, &st) < 0)
		return mr_fail_errno(err, "cannot look at 'agents/.keep'");
	TRY(read_known(box, st.st_size, err));
	if (nameset_has(&known->set, msg->id)) /* it had it; it was purged meanwhile, or could not be delivered */
		rc = list_find(box, msg->id, folders, &own, &at, err);
	if (rc == MR_OK)
		return mr_fail(err, MR_EXISTS, "'%s' already has the message '%s'", box->agent, msg->id);
	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	if (sys_pwrite_all(*ret_lock, ".", 1, st.st_size) < 0)
		return mr_fail_errno(err, "cannot record that a message is imported");
	known->length++;
	return mr_got(nameset_add_once(&known->set, &known->ids, msg->id), err);
}

static enum mr_rc
deliver_one(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(queue_done) struct queue queue = QUEUE_INIT;
	mr_auto(sys_close_fd) int lock_fd = -1;
	struct maildir *md = maildir_of(room);
	struct mr_message *msg = what->msg;
	const char *to = what->to->v[0], *name;
	bool is_queue = target_kind(to, &name) == TARGET_QUEUE;

	TRY(is_queue ? queue_open(&queue, md, name, err) : deliver_open(room, name, what->make_mailboxes, &box, err));
	if (what->keep && is_queue)
		return mr_fail(err, MR_REFUSED, "cannot import mail into '%s': only into mailboxes", to);
	if (what->keep) {
		enum mr_rc rc = begin_import(&box, msg, &lock_fd, err);

		if (rc == MR_EXISTS)
			memcpy(ret->id, msg->id, sizeof ret->id);
		if (rc != MR_OK)
			return rc;
	}
	for (unsigned tries = 0;; tries++) {
		mr_auto(stage_done) struct staged file = STAGED_INIT;
		mr_auto(sys_close_fd) int sent_fd = -1;

		enum mr_rc rc =
		    is_queue ? queue_publish(room, &queue, msg, &file, err) : publish(room, &box, what, &file, err);

		if (rc == MR_EXISTS && !what->keep && tries < NEW_IDS_MAX) {
			deliver_new_id(msg);
			continue;
		}
		if (rc == MR_IO && err->sys_errno == ENOENT && tries < NEW_IDS_MAX && mailbox_refresh(&box))
			continue; /* new/ was replaced since it was opened */
		if (rc == MR_OK || rc == MR_INDOUBT) {
			memcpy(ret->id, msg->id, sizeof ret->id);
			/* Through the open file, not by its name in new/, which a quick reader may have changed. */
			if (deliver_open_sent(md, what->sender, msg->id, &sent_fd))
				(void)stage_link(&file, sent_fd, deliver_sent_name(msg->id).z, IGNORED);
		}
		return rc == MR_OK ? rc : mr_wrap(err, "deliver to '%s'", to);
	}
}

static void deliver_many(struct mr_room *room, struct parcel *parcels, size_t n);

enum mr_rc
maildir_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	struct mr_message *msg = what->msg;
	const char *name;

	retain_some(room, false);
	if (what->many_n > 0) {
		deliver_many(room, what->many, what->many_n);
		return MR_OK;
	}
	if (what->to->n == 0)
		return mr_fail(err, MR_REFUSED, "cannot deliver a message to nobody");
	if (what->keep && !id_valid(str_of(msg->id))) {
		/* An import without an id of its own gets one that the next import finds again. */
		mr_auto(buf_done) struct buf text = BUF_INIT;

		buf_addf(&text, "%s\n%s\n", msg->from ? msg->from : "", msg->subject ? msg->subject : "");
		buf_add(&text, (struct mr_str){ msg->body, msg->body ? msg->body_len : 0 });
		id_from_name(msg->date_ms, buf_str(&text), msg->id);
	}
	if (msg->id[0] == '\0')
		deliver_new_id(msg);
	if (what->keep && (what->to->n != 1 || what->key))
		return mr_fail(err, MR_REFUSED, "cannot import a message for several at once, or with a key");
	/* A post gets a number that is never given back, so it is recorded first. */
	if (what->to->n == 1 && !what->key && target_kind(what->to->v[0], &name) != TARGET_CHANNEL)
		return deliver_one(room, what, ret, err);
	return fanout_deliver(room, what, ret, err);
}

/* ---- Many messages ---- */

struct box {
	const char *agent;
	int new_fd;
	bool used;
};
struct item {
	struct parcel *parcel;
	struct staged file;
	struct box *box;
	char name[NAME_LEN];
	bool named, taken_back;
};
struct batch {
	struct mr_room *room;
	struct maildir *md;
	int spool_fd, sent_fd; /* sent_fd: cur/ of the month's folder of what the sender sent, or -1 */
	struct item *items;
	size_t n;
	struct box *boxes;
	size_t boxes_n;
	size_t open_max; /* files and folders */
	bool whole;      /* syncs are of the whole file system */
};

static void
batch_done(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		stage_done(&b->items[i].file);
	for (size_t i = 0; i < b->boxes_n; i++)
		sys_close_fd(&b->boxes[i].new_fd);
	free(b->items);
	free(b->boxes);
	sys_close_fd(&b->sent_fd);
	sys_close_fd(&b->spool_fd);
}

/* Opens everything that is needed up to the end first, because the files may use up the descriptors. */
static bool
batch_open(struct batch *b, const struct parcel *first, size_t n)
{
	struct spool_job job;

	spool_init(&job, b->room);
	if (spool_open(&job, IGNORED) != MR_OK)
		return false;
	b->spool_fd = job.spool_fd;
	b->open_max = spool_open_max();
	(void)deliver_open_sent(b->md, first->what.sender, first->what.msg->id, &b->sent_fd);
	b->items = calloc(n, sizeof(*b->items));
	b->boxes = calloc(n, sizeof(*b->boxes));
	return b->items && b->boxes;
}

static struct box *
box_of(struct batch *b, const char *agent)
{
	for (size_t i = b->boxes_n; i-- > 0;) /* usually that of the message before */
		if (strcmp(b->boxes[i].agent, agent) == 0)
			return &b->boxes[i];
	int fd = deliver_is_removed(b->md, agent)
		     ? -1
		     : sys_open(b->md->agents_fd, path_of(agent, "/new", NULL).z, O_RDONLY | O_DIRECTORY, 0);

	if (fd < 0)
		return NULL;
	b->boxes[b->boxes_n] = (struct box){ .agent = agent, .new_fd = fd };
	return &b->boxes[b->boxes_n++];
}

/* State 1. False: that one must be sent by itself, or after these. */
static bool
batch_add(struct batch *b, struct parcel *parcel)
{
	struct item *item = &b->items[b->n];
	const char *agent;

	*item = (struct item){ .parcel = parcel, .file = STAGED_INIT };
	if (b->n + b->boxes_n + 2 > b->open_max || parcel->what.to->n != 1 ||
	    target_kind(parcel->what.to->v[0], &agent) != TARGET_AGENT ||
	    (b->n > 0 && strcmp(parcel->what.sender, b->items[0].parcel->what.sender) != 0))
		return false;
	item->box = box_of(b, agent);
	if (!item->box || stage_open(&item->file, b->spool_fd, b->spool_fd, b->md->message_mode, IGNORED) != MR_OK)
		return false;
	if (deliver_write(&item->file, b->room, parcel->what.msg, IGNORED) != MR_OK) {
		stage_done(&item->file);
		return false;
	}
	name_new(parcel->what.msg->id, parcel->what.msg->priority, parcel->what.look, item->name);
	b->n++;
	return true;
}

/* State 2, and the first half of 4: the files, or the whole file system. */
static bool
sync_files(const struct batch *b, bool only_named)
{
	if (b->whole)
		return sys_sync_whole(b->items[0].file.fd) == 0;
	for (size_t i = 0; i < b->n; i++)
		if ((!only_named || b->items[i].named) && sys_fsync(b->items[i].file.fd) < 0)
			return false;
	return true;
}

static bool
sync_boxes(const struct batch *b)
{
	bool fine = true;

	for (size_t i = 0; i < b->boxes_n; i++)
		if (b->boxes[i].used && sys_fsync(b->boxes[i].new_fd) < 0)
			fine = false;
	return fine;
}

/* State 3, and then: was an agent pruned meanwhile? One look for each, after the last link into its mailbox. */
static void
name_all(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct item *item = &b->items[i];

		item->named = stage_link(&item->file, item->box->new_fd, item->name, IGNORED) == MR_OK;
		item->box->used |= item->named;
	}
	for (size_t k = 0; k < b->boxes_n; k++) {
		if (!b->boxes[k].used || !deliver_is_removed(b->md, b->boxes[k].agent))
			continue;
		for (size_t i = 0; i < b->n; i++) {
			struct item *item = &b->items[i];

			if (item->box != &b->boxes[k] || !item->named)
				continue;
			item->named = false;
			if (sys_unlink(item->box->new_fd, item->name) == 0)
				continue; /* sent by itself, which reports that the agent is gone */
			item->parcel->rc = mr_fail(&item->parcel->err, MR_NOTFOUND,
			    "agent '%s' was removed just now\na copy of the message is among the dead letters",
			    item->box->agent);
		}
	}
}

static void
take_back(struct batch *b, const struct mr_error *why)
{
	for (size_t i = 0; i < b->n; i++) {
		struct item *item = &b->items[i];

		if (!item->named)
			continue;
		item->parcel->err = *why;
		item->taken_back = sys_unlink(item->box->new_fd, item->name) == 0;
		item->named = !item->taken_back;
		if (item->named)
			(void)in_doubt(item->box->agent, &item->parcel->err);
	}
	bool synced = sync_boxes(b);

	for (size_t i = 0; i < b->n; i++) {
		if (b->items[i].taken_back && !synced)
			(void)may_come_back(&b->items[i].parcel->err);
		b->items[i].parcel->rc = b->items[i].parcel->err.code;
	}
}

static void
send_alone(struct mr_room *room, struct parcel *p)
{
	p->err = (struct mr_error){ 0 };
	p->rc = maildir_deliver(room, &p->what, &p->got, &p->err);
}

/* States 2 to 4 of the written messages. */
static void
batch_publish(struct batch *b)
{
	struct mr_error err = { 0 };

	b->whole = b->md->sync && b->n >= WHOLE_MIN && storage_syncs_whole(b->spool_fd);
	if (b->md->sync && (!sync_files(b, false) || (b->whole && sys_fsync(b->items[0].file.fd) < 0))) {
		(void)mr_fail_errno(&err, "cannot flush %zu messages", b->n);
		for (size_t i = 0; i < b->n; i++) {
			b->items[i].parcel->err = err;
			b->items[i].parcel->rc = err.code;
		}
		return;
	}
	name_all(b);
	if (b->md->sync && !(sync_files(b, true) && sync_boxes(b))) {
		(void)mr_fail_errno(&err, "cannot make %zu messages durable", b->n);
		take_back(b, &err);
	}
	for (size_t i = 0; i < b->n; i++) {
		struct item *item = &b->items[i];
		const char *id = item->parcel->what.msg->id;

		if (!item->named)
			continue;
		memcpy(item->parcel->got.id, id, sizeof item->parcel->got.id);
		if (b->sent_fd >= 0)
			(void)stage_link(&item->file, b->sent_fd, deliver_sent_name(id).z, IGNORED);
	}
	for (size_t i = 0; i < b->n; i++)
		if (!b->items[i].named && b->items[i].parcel->rc == MR_OK)
			send_alone(b->room, b->items[i].parcel);
}

static void
deliver_many(struct mr_room *room, struct parcel *parcels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		parcels[i].got = (struct delivered){ 0 };
		parcels[i].rc = MR_OK;
		parcels[i].err = (struct mr_error){ 0 };
		if (parcels[i].what.msg->id[0] == '\0')
			deliver_new_id(parcels[i].what.msg);
	}
	/* As many as can be open at once; the rest follows in the next round. */
	for (size_t done = 0; done < n;) {
		mr_auto(batch_done) struct batch b = {
			.room = room, .md = maildir_of(room), .spool_fd = -1, .sent_fd = -1
		};

		if (n - done > 1 && batch_open(&b, &parcels[done], n - done))
			while (done + b.n < n && batch_add(&b, &parcels[done + b.n]))
				continue;
		if (b.n > 0)
			batch_publish(&b);
		else
			send_alone(room, &parcels[done]);
		done += b.n > 0 ? b.n : 1;
	}
}
