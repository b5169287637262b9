/* SPDX-License-Identifier: MIT */
/*
 * batch.c - many messages, each for one agent, made durable together. Each goes the way of deliver.c, but all take a
 * step before the first takes the next:
 *
 *	1 written   unnamed files in spool/, which is on the same file system as every mailbox. A crash leaves nothing.
 *	2 flushed   one sync of the whole file system, where that is known to be as good as one of each file.
 *	            Nothing has a name before all bytes are on the disk: never a torn message.
 *	3 named     a link each into its new/. A crash from here on leaves of each message the whole of it, or
 *	            nothing; none was accepted yet, so either is right for each.
 *	4 durable   the second sync of everything (link counts, folders), then one of each new/ for itself. Now
 *	            all are accepted, and not one of them earlier.
 *
 * After each sync of the whole file system follows one of a single file or folder: without a journal ext4 tells the
 * disk to keep what it got before it has written the last folders, and the single sync tells it again.
 *
 * Errors. What cannot be written or named here is sent by itself afterwards (deliver.c knows every reason why). A flush
 * that fails in 2 refuses all, nothing is visible. One that fails in 4 takes back all of them, because the kernel says
 * only once that something was lost, and not what: who was read already is in doubt.
 */
#include "base/error.h"
#include "base/storage.h"
#include "base/sys.h"
#include "message/message.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <fcntl.h>

#define WHOLE_MIN 4 /* for fewer, syncing each waits for less that is not ours */

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
	int spool_fd, sent_fd; /* sent_fd: the sender's .Sent/cur, or -1 */
	struct item *items;
	size_t n;
	struct box *boxes;
	size_t boxes_n;
	struct buf text;
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
	buf_done(&b->text);
	sys_close_fd(&b->sent_fd);
	sys_close_fd(&b->spool_fd);
}

/* What is needed to the end is opened first: the files may take all that the process may open. */
static bool
batch_open(struct batch *b, const struct parcel *first, size_t n)
{
	struct spool_job job;
	struct mr_error ignored = { 0 };
	char name[NAME_LEN + 8];

	spool_init(&job, b->room);
	if (spool_open(&job, true, &ignored) != MR_OK)
		return false;
	b->spool_fd = job.spool_fd;
	b->open_max = spool_open_max();
	(void)deliver_sent_place(b->md, first->what.sender, first->what.msg->id, name, &b->sent_fd);
	b->items = calloc(n, sizeof(*b->items));
	b->boxes = calloc(n, sizeof(*b->boxes));
	return b->items && b->boxes;
}

/* ---- 1: written ---- */

static bool
is_registered(const struct batch *b, const char *agent)
{
	char path[MR_ADDRESS_MAX + 8];
	struct stat st;

	text_join(path, sizeof path, agent, "/agent", NULL);
	return sys_stat(b->md->agents_fd, path, &st) == 0 || errno != ENOENT;
}

static struct box *
box_of(struct batch *b, const char *agent)
{
	char path[MR_ADDRESS_MAX + 8];

	for (size_t i = b->boxes_n; i-- > 0;) /* mostly that of the message before */
		if (strcmp(b->boxes[i].agent, agent) == 0)
			return &b->boxes[i];
	text_join(path, sizeof path, agent, "/new", NULL);
	int fd = is_registered(b, agent) ? sys_open(b->md->agents_fd, path, O_RDONLY | O_DIRECTORY, 0) : -1;

	if (fd < 0)
		return NULL;
	b->boxes[b->boxes_n] = (struct box){ .agent = agent, .new_fd = fd };
	return &b->boxes[b->boxes_n++];
}

static bool
add(struct batch *b, struct parcel *parcel)
{
	struct item *item = &b->items[b->n];
	struct mr_error ignored = { 0 };
	const char *agent;

	*item = (struct item){ .parcel = parcel, .file = STAGED_INIT };
	if (b->n + b->boxes_n + 2 > b->open_max)
		return false;
	if (parcel->what.to->n != 1 || target_kind(parcel->what.to->v[0], &agent) != TARGET_AGENT)
		return false;
	if (strcmp(parcel->what.sender, b->n ? b->items[0].parcel->what.sender : parcel->what.sender) != 0)
		return false;
	buf_clear(&b->text);
	item->box = box_of(b, agent);
	if (!item->box || message_write(parcel->what.msg, b->room->name, &b->text, &ignored) != MR_OK ||
	    stage_open(&item->file, b->spool_fd, b->spool_fd, b->md->message_mode, &ignored) != MR_OK)
		return false;
	if (stage_write(&item->file, buf_str(&b->text), &ignored) != MR_OK) {
		stage_done(&item->file);
		return false;
	}
	name_for_id(parcel->what.msg->id, item->name);
	b->n++;
	return true;
}

/* ---- 2: flushed ---- */

static bool
sync_bytes(struct batch *b, struct mr_error *err)
{
	int first_fd = b->items[0].file.fd;
	bool fine = true;

	if (b->whole)
		fine = sys_sync_whole(first_fd) == 0 && sys_fsync(first_fd) == 0;
	for (size_t i = 0; fine && !b->whole && i < b->n; i++)
		fine = sys_fsync(b->items[i].file.fd) == 0;
	if (!fine)
		(void)mr_fail_errno(err, "cannot flush %zu messages", b->n);
	return fine;
}

/* ---- 3: named ---- */

static void
name_all(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct item *item = &b->items[i];
		struct mr_error ignored = { 0 };

		item->named = stage_link(&item->file, item->box->new_fd, item->name, &ignored) == MR_OK;
		item->box->used |= item->named;
	}
}

/* Was an agent pruned meanwhile (see deliver.c)? One look for each, after the last link into its mailbox. */
static void
check_still_there(struct batch *b)
{
	for (size_t k = 0; k < b->boxes_n; k++) {
		if (!b->boxes[k].used || is_registered(b, b->boxes[k].agent))
			continue;
		for (size_t i = 0; i < b->n; i++) {
			struct item *item = &b->items[i];

			if (item->box != &b->boxes[k] || !item->named)
				continue;
			item->named = false;
			if (sys_unlink(item->box->new_fd, item->name) == 0)
				continue; /* sent by itself, where it hears that nobody is there */
			item->parcel->rc = mr_fail(
			    &item->parcel->err, MR_NOTFOUND, "agent '%s' was removed just now", item->box->agent);
			(void)mr_hint(&item->parcel->err, "a copy of the message is among the dead letters");
		}
	}
}

/* ---- 4: durable ---- */

static bool
sync_boxes(const struct batch *b)
{
	bool fine = true;

	for (size_t i = 0; i < b->boxes_n; i++)
		if (b->boxes[i].used && sys_fsync(b->boxes[i].new_fd) < 0)
			fine = false;
	return fine;
}

static bool
sync_names(const struct batch *b, struct mr_error *err)
{
	bool fine = true;

	if (b->whole)
		fine = sys_sync_whole(b->items[0].file.fd) == 0;
	for (size_t i = 0; fine && !b->whole && i < b->n; i++)
		fine = !b->items[i].named || sys_fsync(b->items[i].file.fd) == 0;
	if (fine && sync_boxes(b))
		return true;
	(void)mr_fail_errno(err, "cannot make %zu messages durable", b->n);
	return false;
}

static void
take_back(struct batch *b, const struct mr_error *why)
{
	for (size_t i = 0; i < b->n; i++) {
		struct item *item = &b->items[i];
		struct mr_error *err = &item->parcel->err;

		if (!item->named)
			continue;
		*err = *why;
		if (sys_unlink(item->box->new_fd, item->name) == 0) {
			item->named = false;
			item->taken_back = true;
			continue;
		}
		err->code = MR_INDOUBT;
		(void)mr_wrap(err, "'%s' has the message, but it may not survive a power cut", item->box->agent);
		(void)mr_hint(err, "do not send it again; check the disk, then see: mailroom doctor");
	}
	if (!sync_boxes(b))
		for (size_t i = 0; i < b->n; i++)
			if (b->items[i].taken_back)
				(void)mr_hint(&b->items[i].parcel->err,
				    "nothing was delivered; after a power cut the message may show up all the same");
	for (size_t i = 0; i < b->n; i++)
		b->items[i].parcel->rc = b->items[i].parcel->err.code;
}

/* ---- All of it ---- */

static void
finish(struct item *item, int sent_fd)
{
	const char *id = item->parcel->what.msg->id;
	struct mr_error ignored = { 0 };
	char name[NAME_LEN + 8];

	text_join(item->parcel->got.id, sizeof item->parcel->got.id, id, NULL);
	text_join(name, sizeof name, item->name, ":2,S", NULL);
	if (sent_fd >= 0)
		(void)stage_link(&item->file, sent_fd, name, &ignored);
}

static void
send_alone(struct mr_room *room, struct parcel *p)
{
	p->err = (struct mr_error){ 0 };
	p->rc = maildir_deliver(room, &p->what, &p->got, &p->err);
}

/* States 2 to 4 of what was written. */
static void
publish(struct batch *b)
{
	struct mr_error err = { 0 };

	b->whole = b->md->sync && b->n >= WHOLE_MIN && storage_syncs_whole(b->spool_fd);
	if (b->md->sync && !sync_bytes(b, &err)) {
		for (size_t i = 0; i < b->n; i++) {
			b->items[i].parcel->err = err;
			b->items[i].parcel->rc = err.code;
		}
		return;
	}
	name_all(b);
	check_still_there(b);
	if (b->md->sync && !sync_names(b, &err))
		take_back(b, &err);
	for (size_t i = 0; i < b->n; i++)
		if (b->items[i].named)
			finish(&b->items[i], b->sent_fd);
	for (size_t i = 0; i < b->n; i++)
		if (!b->items[i].named && b->items[i].parcel->rc == MR_OK)
			send_alone(b->room, b->items[i].parcel);
}

/* As many as can be written at once: where files run out, the rest comes after these. */
static size_t
deliver_some(struct mr_room *room, struct parcel *parcels, size_t n)
{
	mr_auto(batch_done) struct batch b = {
		.room = room, .md = maildir_of(room), .spool_fd = -1, .sent_fd = -1, .text = BUF_INIT
	};

	if (n > 1 && batch_open(&b, parcels, n))
		while (b.n < n && add(&b, &parcels[b.n]))
			continue;
	size_t done = b.n;

	if (done > 0)
		publish(&b);
	else
		send_alone(room, &parcels[0]);
	return done > 0 ? done : 1;
}

void
maildir_deliver_many(struct mr_room *room, struct parcel *parcels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		parcels[i].got = (struct delivered){ 0 };
		parcels[i].rc = MR_OK;
		parcels[i].err = (struct mr_error){ 0 };
		if (parcels[i].what.msg->id[0] == '\0')
			deliver_new_id(parcels[i].what.msg);
	}
	for (size_t done = 0; done < n;)
		done += deliver_some(room, parcels + done, n - done);
}
