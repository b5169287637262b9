/* SPDX-License-Identifier: MIT */
/*
 * scan.c - scan and fetch: names first (list.c), then one message at a time (read.c).
 *
 * Between listing and reading a message may move. Then it is looked up again in the folders asked for; only
 * if it is in none of them it is left out. The archive is streamed a month at a time, so that memory is bounded by
 * one month; it is read after the inbox because that is the way mail moves. Mail that is taken out of the
 * archive during a scan of both may be missed by that scan.
 */
#include "base/error.h"
#include "rooms/maildir/reader.h"

#define FIND_TRIES 20

struct scan { /* one scan under way */
	struct reader reader;
	const struct scan_request *want;
	mr_message_fn *fn;
	void *ctx;
	char last_id[MR_ID_LEN + 1]; /* a message comes once, also when it is in two folders */
	bool stopped;
};

static void
report(struct scan *s, const struct listed *at, const struct mr_error *what)
{
	if (s->want->trouble != NULL)
		s->want->trouble(s->want->trouble_ctx, reader_path(&s->reader, at), what);
}

/* Reads it where it was listed, else wherever it is now. MR_NOTFOUND: in none of the folders. */
static enum mr_rc
read_or_find(struct reader *r, const struct listed *at, unsigned folders, enum scan_depth depth, struct arena **own,
    struct listed *ret_at, struct mr_message *ret, struct mr_error *err)
{
	struct listed now = *at;
	enum mr_rc rc = reader_read(r, &now, depth, ret, err);

	for (int tries = 0; rc == MR_NOTFOUND && tries < FIND_TRIES; tries++) {
		rc = list_find(r->box, at->id, folders, own, &now, err);
		if (rc != MR_OK)
			break;
		rc = reader_read(r, &now, depth, ret, err);
	}
	*ret_at = now;
	return rc;
}

static enum mr_rc
emit(struct scan *s, const struct listed *at, struct mr_error *err)
{
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	struct arena *own = NULL;
	struct listed now = *at;
	struct mr_error trouble = { 0 };

	if (strcmp(s->last_id, at->id) == 0)
		return MR_OK;
	enum mr_rc rc = read_or_find(&s->reader, at, s->want->folders, s->want->depth, &own, &now, &msg, &trouble);
	if (rc == MR_NOMEM) {
		*err = trouble;
	} else if (rc != MR_OK && rc != MR_NOTFOUND) {
		report(s, &now, &trouble);
		rc = MR_OK;
	} else if (rc == MR_NOTFOUND || (s->want->unread_only && (msg.flags & MR_SEEN))) {
		rc = MR_OK; /* gone, or read by another since it was listed */
	} else {
		memcpy(s->last_id, at->id, sizeof(s->last_id));
		s->stopped = !s->fn(s->ctx, &msg);
	}
	arena_free(own);
	return rc;
}

static bool
comes_before(const struct scan *s, const struct listed *a, const struct listed *b)
{
	int order = memcmp(a->id, b->id, MR_ID_LEN);

	return s->want->newest_first ? order > 0 : order < 0;
}

/* Emits a month of the archive and, in between, what of the other folders belongs before its last. */
static enum mr_rc
emit_month(struct scan *s, const char *month, const struct listing *rest, size_t *at, struct mr_error *err)
{
	mr_auto(listing_done) struct listing archived = { 0 };

	enum mr_rc rc = list_month(s->reader.box, month, s->want->unread_only, s->want->id_suffix, &archived, err);
	listing_sort(&archived, s->want->newest_first);
	for (size_t i = 0; i < archived.n && rc == MR_OK && !s->stopped;) {
		bool other = *at < rest->n && comes_before(s, &rest->v[*at], &archived.v[i]);
		rc = other ? emit(s, &rest->v[(*at)++], err) : emit(s, &archived.v[i++], err);
	}
	return rc;
}

/* ---- Is there any? ---- */

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
	(void)snprintf(first->name, sizeof(first->name), "%s", entry->name);
	first->at =
	    (struct listed){ .folder = MR_INBOX, .box = BOX_NEW, .attempt = parts.attempt, .name = first->name };
	memcpy(first->at.id, parts.id, sizeof(first->at.id));
	return false;
}

/* One look into new/ for whoever waits: a file there is unread mail, whatever else moves meanwhile. Nothing there
 * proves nothing, and the whole listing decides. */
static enum mr_rc
emit_any(struct scan *s, struct mr_error *err)
{
	struct first first = { 0 };
	int new_fd = -1;
	enum mr_rc rc = mailbox_folder(s->reader.box, BOX_NEW, &new_fd, err);

	if (rc == MR_OK)
		rc = dir_each(new_fd, note_first, &first, err);
	return rc == MR_OK && first.at.name != NULL ? emit(s, &first.at, err) : rc;
}

static bool
wants_any(const struct scan_request *want)
{
	return want->one_is_enough && want->depth != SCAN_BODIES && want->unread_only && want->folders == MR_INBOX &&
	       want->id_suffix == NULL;
}

static const char *const glance_at[] = { "new", "cur" };

static bool
wants_glance(const struct scan_request *want)
{
	return want->glance && want->unread_only && want->folders == MR_INBOX && want->id_suffix == NULL;
}

static bool
glance_is_enough(const struct maildir *md, const char *agent)
{
	char path[MR_ADDRESS_MAX + 8];

	for (size_t i = 0; i < 2; i++) {
		text_join(path, sizeof path, agent, "/", glance_at[i], NULL);
		if (!quiet_is(md->agents_fd, path))
			return false;
	}
	return true;
}

static enum mr_rc
emit_all(struct scan *s, struct mr_error *err)
{
	mr_auto(listing_done) struct listing rest = { 0 };
	mr_auto(mr_names_done) struct mr_names months = { 0 };
	const struct scan_request *want = s->want;
	size_t at = 0;

	enum mr_rc rc = list_folders(
	    s->reader.box, want->folders & ~(unsigned)MR_ARCHIVE, want->unread_only, want->id_suffix, &rest, err);
	for (size_t i = 0; rc == MR_OK && wants_glance(want) && rest.n == 0 && i < 2; i++)
		quiet_mark(s->reader.box->fd, glance_at[i], rest.still_ns[i]);
	if (rc == MR_OK && (want->folders & MR_ARCHIVE))
		rc = list_months(s->reader.box, &months, err);
	listing_sort(&rest, want->newest_first);
	for (size_t i = 0; i < months.n && rc == MR_OK && !s->stopped; i++)
		rc = emit_month(s, months.v[want->newest_first ? months.n - 1 - i : i], &rest, &at, err);
	while (at < rest.n && rc == MR_OK && !s->stopped)
		rc = emit(s, &rest.v[at++], err);
	return rc;
}

/* The dead letters are the room's: for them alone it does not matter who asks. */
static enum mr_rc
open_box(struct mailbox *box, struct mr_room *room, const char *agent, unsigned folders, struct mr_error *err)
{
	if (folders == MR_DEAD)
		return mailbox_open_dead(box, maildir_of(room), err);
	return mailbox_open(box, maildir_of(room), agent, err);
}

enum mr_rc
maildir_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn, void *ctx,
    struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	struct scan s = { .reader = READER_INIT(room, &box), .want = want, .fn = fn, .ctx = ctx };

	if (wants_glance(want) && agent[0] != '\0' && strlen(agent) <= MR_ADDRESS_MAX) {
		sweep_at_a_glance(room, agent);
		if (glance_is_enough(maildir_of(room), agent))
			return MR_OK;
	}
	enum mr_rc rc = open_box(&box, room, agent, want->folders, err);
	if (rc == MR_OK && wants_any(want))
		rc = emit_any(&s, err);
	if (rc == MR_OK && !s.stopped)
		rc = emit_all(&s, err);
	reader_done(&s.reader);
	return rc;
}

enum mr_rc
maildir_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(reader_done) struct reader reader = READER_INIT(room, &box);
	struct arena *own = NULL;
	struct listed at, now;
	struct mr_message msg = { 0 };

	enum mr_rc rc = open_box(&box, room, agent, folders, err);
	if (rc == MR_OK)
		rc = list_find(&box, id, folders, &own, &at, err);
	if (rc == MR_OK)
		rc = read_or_find(&reader, &at, folders, depth, &own, &now, &msg, err);
	if (rc == MR_OK && depth == SCAN_NAMES) /* its path is only borrowed */
		rc = reader_own_path(&reader, &now, &msg, err);
	arena_free(own);
	if (rc == MR_OK)
		*ret = msg;
	return rc;
}

enum mr_rc
maildir_fetch_raw(struct mr_room *room, const char *agent, const char *id, struct buf *ret, struct mr_error *err)
{
	mr_auto(mailbox_done) struct mailbox box = MAILBOX_INIT;
	mr_auto(reader_done) struct reader reader = READER_INIT(room, &box);
	struct arena *own = NULL;
	struct listed at;

	enum mr_rc rc = mailbox_open(&box, maildir_of(room), agent, err);
	if (rc != MR_OK)
		return rc;
	for (int tries = 0; tries < FIND_TRIES; tries++) {
		rc = list_find(&box, id, 0, &own, &at, err);
		if (rc != MR_OK)
			break;
		rc = reader_raw(&reader, &at, ret, err);
		if (rc != MR_NOTFOUND) /* moved between finding and opening: find it again */
			break;
	}
	arena_free(own);
	return rc;
}
