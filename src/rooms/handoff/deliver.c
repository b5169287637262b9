/* SPDX-License-Identifier: MIT */
/*
 * deliver.c - putting mail into inboxes.
 *
 * The original's readers take every name that ends in .md in inbox/ for a whole message, and its writers rename over
 * what is there. So ours is complete and durable before it has that name, takes the name only if it is free, and when
 * it is not takes another: the same second, the same eight digits and the same subject must not destroy mail.
 */
#include "rooms/handoff/handoff.h"

#include "base/clock.h"
#include "base/id.h"
#include "base/sys.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define TRIES 20

unsigned
handoff_lacks(struct mr_room *room, const struct mr_message *msg)
{
	unsigned lacks = 0;

	(void)room;
	if (msg->cc.n > 0)
		lacks |= FIELD_CC;
	if (msg->type && msg->type[0])
		lacks |= FIELD_TYPE;
	if (msg->priority != MR_NORMAL)
		lacks |= FIELD_PRIORITY;
	if (msg->thread && msg->thread[0] && strcmp(msg->thread, msg->id) != 0)
		lacks |= FIELD_THREAD;
	if (msg->by_ms)
		lacks |= FIELD_BY;
	if (msg->to.n > 1)
		lacks |= FIELD_TO;
	for (size_t i = 0; i < msg->headers_n; i++)
		if (!ascii_caseeq(msg->headers[i].name, "Message-ID"))
			lacks |= FIELD_HEADERS;
	return lacks;
}

/* ---- One file into one mailbox ---- */

struct box { /* the folders that a delivery needs */
	int tmp_fd, inbox_fd;
};
#define BOX_INIT ((struct box){ -1, -1 })

static void
box_done(struct box *b)
{
	sys_close_fd(&b->tmp_fd);
	sys_close_fd(&b->inbox_fd);
}

static enum mr_rc
box_folder(struct handoff *h, const char *id, const char *folder, int *ret_fd, struct mr_error *err)
{
	char path[HANDOFF_ID_MAX + 16];
	int root_fd = -1;

	TRY(handoff_root(h, true, &root_fd, err));
	(void)snprintf(path, sizeof path, "%s/%s", id, folder);
	return dir_make(root_fd, path, 0700, true, ret_fd, err);
}

static enum mr_rc
box_open(struct box *b, struct handoff *h, const char *id, struct mr_error *err)
{
	TRY(handoff_id_check(id, err));
	TRY(box_folder(h, id, "tmp", &b->tmp_fd, err));
	return box_folder(h, id, "inbox", &b->inbox_fd, err);
}

enum mr_rc
handoff_make_mailbox(struct handoff *h, const char *id, struct mr_error *err)
{
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(sys_close_fd) int archive_fd = -1;

	TRY(box_open(&box, h, id, err));
	return box_folder(h, id, "archive", &archive_fd, err);
}

struct sending {
	struct handoff *h;
	const struct delivery *what; /* NULL: a plain letter */
	struct letter letter;
	char msg_id[HANDOFF_UUID_LEN + 1];
	char name[HANDOFF_NAME_MAX + 1];
	int64_t mtime_ns; /* 0: now */
};

/* Through a temporary name: with a ticket it tells after a kill whether the mail was published. */
static enum mr_rc
publish_prepared(struct sending *s, const struct box *box, const char *id, struct mr_str bytes, struct mr_error *err)
{
	const bool ticket = s->what && s->what->staged;
	char temporary[HANDOFF_NAME_MAX + 32], text[ROOM_TICKET_MAX], random[9];

	/* Two imports of one message have the same name in mind: only the inbox may decide between them. */
	random_hex(random, 8);
	(void)snprintf(temporary, sizeof temporary, "%s%s.%s", ticket ? FILE_CARRY : "", s->name, random);
	(void)snprintf(text, sizeof text, "%s/%s", id, temporary);
	if (ticket)
		file_void_clean(box->tmp_fd);
	enum mr_rc rc = file_prepare(box->tmp_fd, temporary, bytes, 0600, s->mtime_ns, err);

	if (rc != MR_OK)
		return rc;
	if (ticket)
		rc = s->what->staged(s->what->staged_ctx, text, err);
	if (rc == MR_OK)
		rc = file_prepared_publish(box->tmp_fd, temporary, box->inbox_fd, s->name, err);
	if (rc != MR_OK && !ticket) /* with a ticket, gone would mean published: settle_ticket removes it */
		(void)sys_unlink(box->tmp_fd, temporary);
	return rc;
}

static enum mr_rc
publish(struct sending *s, const struct box *box, const char *id, struct mr_error *err)
{
	mr_auto(buf_done) struct buf bytes = BUF_INIT;

	s->letter.msg_id = str_of(s->msg_id);
	s->letter.to = str_of(id);
	TRY(letter_write(&s->letter, &bytes, err));
	if (s->mtime_ns || (s->what && s->what->staged))
		return publish_prepared(s, box, id, buf_str(&bytes), err);
	return file_publish(box->inbox_fd, box->tmp_fd, s->name, buf_str(&bytes), 0600, PUBLISH_FULL, err);
}

static void
mint(struct sending *s)
{
	mr_auto(buf_done) struct buf subject = BUF_INIT;
	int64_t now_ns = clock_now_ns();

	buf_add(&subject, s->letter.subject);
	handoff_msg_id_at(now_ns, s->msg_id);
	handoff_file_name(now_ns / 1000000, s->msg_id, buf_z(&subject), s->name);
}

static enum mr_rc
send_new(struct sending *s, const char *id, struct mr_error *err)
{
	mr_auto(box_done) struct box box = BOX_INIT;
	enum mr_rc rc = box_open(&box, s->h, id, err);

	for (int i = 0; rc == MR_OK && i < TRIES; i++) {
		rc = publish(s, &box, id, err);
		if (rc != MR_EXISTS)
			return rc;
		mint(s);
		rc = MR_OK;
	}
	return rc != MR_OK ? rc : mr_fail(err, MR_IO, "found no free name in the inbox of '%s'", id);
}

enum mr_rc
handoff_post(struct handoff *h, struct handoff_post *post, struct mr_error *err)
{
	struct sending s = { .h = h,
		.letter = { .from = str_of(post->from),
		    .subject = str_of(post->subject),
		    .reply_to = str_of(post->reply_to),
		    .body = post->body } };

	TRY(handoff_id_check(post->from, err));
	mint(&s);
	TRY(send_new(&s, post->to, err));
	memcpy(post->msg_id, s.msg_id, sizeof s.msg_id);
	memcpy(post->name, s.name, sizeof s.name);
	return MR_OK;
}

/* ---- Imports ---- */

/* Whose message has this name in that folder? MR_NOTFOUND: nobody's. MR_EXISTS: this very one's. MR_OK: another's. */
static enum mr_rc
look_at(struct sending *s, const char *id, const char *folder, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	char path[HANDOFF_ID_MAX + HANDOFF_NAME_MAX + 32];
	struct letter there;
	int root_fd = -1;

	(void)snprintf(path, sizeof path, "%s/%s/%s", id, folder, s->name);
	TRY(handoff_root(s->h, true, &root_fd, err));
	TRY(file_read(root_fd, path, HANDOFF_FILE_MAX, &text, err));
	if (letter_parse(buf_str(&text), &there) && str_eq(there.msg_id, str_of(s->msg_id)))
		return mr_fail(err, MR_EXISTS, "'%s' is in the %s of '%s' already", s->name, folder, id);
	return MR_OK;
}

static enum mr_rc
send_kept(struct sending *s, const char *id, struct mr_error *err)
{
	mr_auto(box_done) struct box box = BOX_INIT;
	mr_auto(buf_done) struct buf seed = BUF_INIT;
	const struct mr_message *msg = s->what->msg;

	buf_addf(&seed, "%s %" PRId64 " %s", msg->id, msg->date_ms, msg->from);
	if (!buf_ok(&seed))
		return mr_nomem(err);
	TRY(box_open(&box, s->h, id, err));
	for (unsigned i = 0, tries = 0; tries < TRIES; tries++) {
		handoff_msg_id_from(msg->date_ms, buf_str(&seed), i, s->msg_id);
		handoff_file_name(msg->date_ms, s->msg_id, msg->subject, s->name);
		/* The inbox first: what is archived meanwhile is then seen at least once. */
		enum mr_rc inbox = look_at(s, id, "inbox", err), archive = MR_NOTFOUND;

		if (inbox != MR_EXISTS)
			archive = look_at(s, id, "archive", err);
		if (inbox == MR_EXISTS || archive == MR_EXISTS)
			return MR_EXISTS;
		if (inbox == MR_OK || archive == MR_OK) {
			i++; /* another message has that name */
			continue;
		}
		if (inbox != MR_NOTFOUND || archive != MR_NOTFOUND)
			return err->code;
		enum mr_rc rc = publish(s, &box, id, err);

		if (rc != MR_EXISTS) /* else another was faster: look what it put there */
			return rc;
	}
	return mr_fail(err, MR_IO, "found no free name in the inbox of '%s'", id);
}

/* ---- A delivery ---- */

static enum mr_rc
make_missing(struct mr_room *room, const struct mr_names *missing, struct mr_error *err)
{
	for (size_t i = 0; i < missing->n; i++) {
		struct mr_agent agent = { .worktree = "", .session = "", .host = "", .role = "", .wake = "" };

		(void)snprintf(agent.name, sizeof agent.name, "%s", missing->v[i]);
		enum mr_rc rc = handoff_add_agent(room, &agent, err);

		if (rc != MR_OK && rc != MR_EXISTS)
			return rc;
	}
	return MR_OK;
}

static enum mr_rc
resolve_sender(struct handoff *h, const struct registry *r, const char *from, char ret_id[HANDOFF_ID_MAX + 1],
    struct mr_error *err)
{
	enum mr_rc rc = handoff_mailbox_of(h, r, from, ret_id, NULL, err);

	if (rc != MR_NOTFOUND)
		return rc;
	return mr_fail(err, MR_REFUSED,
	    "'%s' has no mailbox in this room, so nobody could answer\n"
	    "register first: mailroom --room handoff:%s register %s",
	    from, h->path, from);
}

/* Ids of all recipients, before anything is written. Those that do not exist are put into ret_missing. */
static enum mr_rc
resolve_all(struct handoff *h, const struct registry *r, const struct delivery *what, struct mr_names *ret_ids,
    struct mr_names *ret_missing, struct mr_error *err)
{
	for (size_t i = 0; i < what->to->n; i++) {
		char id[HANDOFF_ID_MAX + 1];
		enum mr_rc rc = handoff_mailbox_of(h, r, what->to->v[i], id, NULL, err);

		if (rc == MR_NOTFOUND && what->make_mailboxes) {
			if (!names_add(ret_missing, str_of(what->to->v[i])))
				return mr_nomem(err);
			continue;
		}
		if (rc != MR_OK)
			return rc;
		if (!names_add(ret_ids, str_of(id)))
			return mr_nomem(err);
	}
	return MR_OK;
}

static enum mr_rc
find_ends(struct mr_room *room, const struct delivery *what, char ret_from[HANDOFF_ID_MAX + 1],
    struct mr_names *ret_ids, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);

	for (int round = 0;; round++) {
		mr_auto(registry_done) struct registry r = { 0 };
		mr_auto(mr_names_done) struct mr_names missing = { 0 };

		mr_names_done(ret_ids);
		*ret_ids = (struct mr_names){ 0 };
		TRY(handoff_registry_read(h, &r, err));
		TRY(resolve_all(h, &r, what, ret_ids, &missing, err));
		if (missing.n > 0 && round == 0) {
			TRY(make_missing(room, &missing, err));
			continue;
		}
		if (missing.n > 0)
			return mr_fail(err, MR_NOTFOUND, "no agent '%s' in this room", missing.v[0]);
		return resolve_sender(h, &r, what->msg->from, ret_from, err);
	}
}

/* Some have it: the rest is named, for there is nobody who would complete it. */
static enum mr_rc
stopped(const struct delivery *what, size_t at, struct delivered *ret, struct mr_error *err)
{
	struct mr_error cause = *err;

	for (size_t i = at; i < what->to->n; i++)
		if (!names_add(&ret->missing, str_of(what->to->v[i])))
			return mr_nomem(err);
	return mr_fail(err, MR_INDOUBT,
	    "delivered to %zu of %zu, then: %s\nsend it again to those only who have not got it", at, what->to->n,
	    cause.message);
}

static void
tell(struct sending *s, struct delivery *what, struct delivered *ret)
{
	handoff_message_id(s->name, 0, ret->id);
	memcpy(what->msg->id, ret->id, sizeof ret->id);
	(void)snprintf(ret->spoken, sizeof ret->spoken, "%s", s->msg_id);
}

enum mr_rc
handoff_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names ids = { 0 };
	const struct mr_message *msg = what->msg;
	char from[HANDOFF_ID_MAX + 1] = "";
	size_t there = 0;

	TRY(find_ends(room, what, from, &ids, err));
	struct sending s = { .h = handoff_of(room), .what = what };

	s.letter = (struct letter){ .from = str_of(from),
		.subject = str_of(msg->subject),
		.reply_to = str_of(msg->reply_to ? msg->reply_to : ""),
		.body = { msg->body, msg->body_len } };
	if ((what->keep || what->carried) && msg->date_ms > 0)
		s.mtime_ns = msg->date_ms * 1000000;
	mint(&s);
	for (size_t i = 0; i < ids.n; i++) {
		enum mr_rc rc = what->keep ? send_kept(&s, ids.v[i], err) : send_new(&s, ids.v[i], err);

		there += rc == MR_EXISTS;
		if (rc != MR_OK && rc != MR_EXISTS)
			return i > there ? stopped(what, i, ret, err) : rc;
		if (i == 0 && !what->keep)
			tell(&s, what, ret);
	}
	if (what->keep)
		tell(&s, what, ret);
	return there == ids.n ? MR_EXISTS : MR_OK;
}

/* ---- After a kill ---- */

enum mr_rc
handoff_settle_ticket(struct mr_room *room, const char *ticket, bool *ret_published, struct mr_error *err)
{
	struct handoff *h = handoff_of(room);
	mr_auto(sys_close_fd) int tmp_fd = -1;
	const char *slash = strchr(ticket, '/');
	char path[HANDOFF_ID_MAX + 16];
	int root_fd = -1;

	if (!slash || !handoff_id_ok((struct mr_str){ ticket, (size_t)(slash - ticket) }) || strchr(slash + 1, '/') ||
	    !str_starts(str_of(slash + 1), FILE_CARRY))
		return mr_fail(err, MR_CORRUPT, "'%s' is no ticket of this room", ticket);
	(void)snprintf(path, sizeof path, "%.*s/tmp", (int)(slash - ticket), ticket);
	enum mr_rc rc = handoff_root(h, false, &root_fd, err);

	if (rc == MR_OK)
		rc = dir_open(root_fd, path, &tmp_fd, err);
	if (rc == MR_NOTFOUND) { /* the whole mailbox was removed, and the temporary file with it */
		*ret_published = false;
		return MR_OK;
	}
	if (rc != MR_OK)
		return rc;
	return file_prepared_void(tmp_fd, slash + 1, ret_published, err);
}
