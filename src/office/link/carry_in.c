/* SPDX-License-Identifier: MIT */
/*
 * carry_in.c - the mailboxes that stand for us over there: their unread mail is delivered here, then marked as read
 * there.
 *
 *	1  read over there
 *	2  its place in our threads noted in a record: repeated with a key, a delivery must be the same, and the memory
 *	   of carry_memory.c may know more by then
 *	3  delivered here, with a key made of link, name and id: whoever does it again, or at the same time, delivers
 *	   nothing twice
 *	4  remembered: which message there is which one here
 *	5  marked as read over there, durably; the record goes
 *
 * Killed before 5 it is read again; 3 then says which message it was. Keys are kept for a week only, and 4 tells as
 * well: a mailbox that can be read and not written is not carried again every week.
 *
 * Mail for somebody who is not here any more goes into this link's own queue of outgoing mail, as it is: carry_out.c
 * finds nobody over there that it is for, tells its sender, and makes it a dead letter.
 */
#include "base/id.h"
#include "message/address.h"
#include "message/message.h"
#include "office/link/arrival.h"
#include "office/link/translate.h"

static void
arrival_done(struct arrival *a)
{
	mr_message_done(&a->msg);
	arena_free(a->own);
}

/* ---- The message as it is here ---- */

/* Another format may have anything where ours has a line of text. */
static const char *
one_line(struct arrival *a, const char *text)
{
	mr_auto(buf_done) struct buf clean = BUF_INIT;

	if (header_value_valid(str_of(text)))
		return text;
	header_clean(&clean, str_of(text));
	return buf_ok(&clean) ? arena_dup(&a->own, str_trim(buf_str(&clean))) : NULL;
}

static enum mr_rc
map_names(struct arrival *a, const struct mr_names *from, struct mr_names *ret, struct mr_error *err)
{
	const struct mr_link *link = &a->c->link;

	*ret = (struct mr_names){ 0 };
	ret->v = arena_alloc(&a->own, (from->n + 1) * sizeof(*ret->v));
	if (!ret->v)
		return mr_nomem(err);
	for (size_t i = 0; i < from->n; i++) {
		mr_auto(buf_done) struct buf name = BUF_INIT;
		const char *ours = link_local_of(link, from->v[i]);

		if (ours)
			buf_adds(&name, ours);
		else if (strchr(from->v[i], '@')) /* of a room that we need not know */
			buf_adds(&name, from->v[i]);
		else
			buf_addf(&name, "%s@%s", from->v[i], link->name);
		ret->v[i] = buf_ok(&name) ? arena_dup(&a->own, buf_str(&name)) : NULL;
		if (!ret->v[i])
			return mr_nomem(err);
		ret->n++;
	}
	return MR_OK;
}

static enum mr_rc
compose(struct arrival *a, const struct memory *m, struct mr_error *err)
{
	const struct mr_message *msg = &a->msg;
	mr_auto(buf_done) struct buf step = BUF_INIT;
	enum mr_rc rc;

	a->carried = (struct mr_message){
		.from = a->from,
		.subject = one_line(a, msg->subject),
		.date_ms = msg->date_ms,
		.type = one_line(a, msg->type_by_subject ? "" : msg->type),
		.priority = msg->priority,
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.by_ms = msg->by_ms,
		.body = msg->body,
		.body_len = msg->body_len,
		.path = "",
	};
	if (!a->carried.subject || !a->carried.type)
		return mr_nomem(err);
	id_new(a->carried.id);
	buf_addf(&step, "%s/%s", a->c->link.name, a->c->room->name);
	rc = map_names(a, &msg->to, &a->carried.to, err);
	if (rc == MR_OK)
		rc = map_names(a, &msg->cc, &a->carried.cc, err);
	if (rc == MR_OK)
		rc = carry_headers(msg, buf_z(&step), a->c->room, &a->carried, &a->own, err);
	return rc == MR_OK ? arrival_place(a, m, err) : rc;
}

/* For a recipient of a third room the message must name him, or that link would not know whom it is for. */
static enum mr_rc
name_recipient(struct arrival *a, struct mr_error *err)
{
	if (names_has(&a->carried.to, a->local) || names_has(&a->carried.cc, a->local))
		return MR_OK;
	a->carried.to.v[a->carried.to.n] = arena_dup(&a->own, str_of(a->local)); /* map_names left room */
	if (!a->carried.to.v[a->carried.to.n])
		return mr_nomem(err);
	a->carried.to.n++;
	return MR_OK;
}

/* ---- Delivering ---- */

static enum mr_rc
deliver_to(struct arrival *a, const char *given, struct mr_error *err)
{
	mr_auto(translated_done) struct translated t = { 0 };
	mr_auto(buf_done) struct buf key = BUF_INIT, target = BUF_INIT;
	struct mr_room *room = a->c->room;
	struct delivered got = { 0 };
	enum mr_rc rc = translate(room, &a->carried, &t, err);

	if (rc != MR_OK)
		return rc;
	buf_adds(&target, given);
	/* The same for whoever carries it, and whatever it became when it could not be delivered. */
	buf_addf(&key, "link:%s:%.80s:%s", a->c->link.name, a->proxy, a->msg.id);
	if (!buf_ok(&target) || !buf_ok(&key))
		return mr_nomem(err);
	struct mr_names to = { &target.ptr, 1 };
	struct delivery what = {
		.msg = &t.msg, .to = &to, .sender = LINK_CLAIMERS, .key = buf_z(&key), .carried = true
	};

	rc = room->driver->deliver(room, &what, &got, err);
	mr_names_done(&got.missing);
	if (rc != MR_OK)
		return rc;
	a->c->count.in += !got.repeated;
	(void)snprintf(a->id, sizeof(a->id), "%s", got.id);
	return MR_OK;
}

static enum mr_rc
deliver(struct arrival *a, struct mr_error *err)
{
	char target[MR_ADDRESS_MAX + 8];
	struct mr_error why = { 0 };
	enum mr_rc rc = carry_target(a->c->room, a->local, target, &why);

	if (rc == MR_OK)
		rc = deliver_to(a, target, &why);
	if (rc != MR_NOTFOUND) {
		*err = why;
		return rc;
	}
	(void)snprintf(target, sizeof(target), "queue:%s", a->c->queue);
	return deliver_to(a, target, err);
}

static enum mr_rc
remember(struct arrival *a, const char *sender, struct mr_error *err)
{
	const char *spoken = mr_message_header(&a->msg, "Message-ID");
	bool native = office_has_lives(a->c->there); /* there it is made of the id */
	struct carried_line l = {
		.state = CARRIED_GOT,
		.id = a->id,
		.thread = *a->carried.thread ? a->carried.thread : a->id,
		.there = a->msg.id,
		.there_thread = *a->msg.thread ? a->msg.thread : a->msg.id,
		.spoken = spoken && !native ? spoken : "",
	};

	if (!*a->id)
		return MR_OK;
	memory_subject(a->msg.subject, l.subject);
	if (*a->answers) /* whoever asked for it by a time has it */
		due_drop(a->c->room, a->local, a->answers);
	return memory_note(a->c->room, a->c->link.name, a->local, sender, &l, a->answers, err);
}

static enum mr_rc
mark_read(struct arrival *a, struct mr_error *err)
{
	struct mr_room *there = a->c->there;
	const struct room_driver *d = there->driver;
	enum mr_rc rc = MR_OK;

	if (DRIVER_HAS(d, mark) && (d->abilities & ROOM_READ_STATE))
		rc = d->mark(there, a->proxy, a->msg.id, MR_SEEN, 0, err);
	else if (DRIVER_HAS(d, move) && (d->abilities & ROOM_ARCHIVE))
		rc = d->move(there, a->proxy, a->msg.id, MR_ARCHIVE, err);
	if (rc == MR_NOTFOUND) /* another carrier was quicker, or its owner cleared it */
		rc = MR_OK;
	return rc == MR_OK ? office_flush(there, err) : rc;
}

static bool
was_got(const struct memory *m, const char *there)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].state == CARRIED_GOT && strcmp(m->v[i].there, there) == 0)
			return true;
	return false;
}

static enum mr_rc
take(struct arrival *a, struct mr_error *err)
{
	mr_auto(memory_done) struct memory m = { 0 };
	const char *sender = *a->msg.from ? a->msg.from : "unknown";
	enum mr_rc rc = memory_load(a->c->room, a->c->link.name, a->local, sender, &m, err);

	(void)snprintf(a->from, sizeof(a->from), "%.160s@%s", sender, a->c->link.name);
	if (rc == MR_CORRUPT) {
		*err = (struct mr_error){ 0 };
		rc = MR_OK;
	}
	if (rc == MR_OK && !was_got(&m, a->msg.id)) {
		rc = compose(a, &m, err);
		if (rc == MR_REFUSED) { /* it goes in circles: it stays where it is, read, and is said once */
			carrier_trouble(a->c, err);
			return mark_read(a, err);
		}
		if (rc == MR_OK)
			rc = name_recipient(a, err);
		if (rc == MR_OK)
			rc = deliver(a, err);
		if (rc == MR_OK)
			rc = remember(a, sender, err);
	}
	if (rc == MR_OK)
		rc = mark_read(a, err);
	if (rc == MR_OK)
		arrival_placed(a);
	return rc;
}

/* ---- One mailbox ---- */

struct mailbox_walk {
	struct carrier *c;
	struct candidates unread;
};

static bool
note_unread(void *ctx, const struct mr_message *msg)
{
	struct mailbox_walk *w = ctx;

	return candidates_add(&w->unread, msg);
}

static void
note_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct mailbox_walk *w = ctx;
	struct mr_error said = *err;

	(void)mr_wrap(&said, "'%.120s'", path);
	carrier_trouble(w->c, &said);
}

static enum mr_rc
take_one(struct carrier *c, const struct mr_link_name *name, const char *id, struct mr_error *err)
{
	mr_auto(arrival_done) struct arrival a = { .c = c, .local = name->local, .proxy = name->foreign };
	enum mr_rc rc = link_is_stand_in(c->room, c->there, c->link.name, a.local, a.proxy, err);

	if (rc == MR_OK)
		rc = c->there->driver->fetch(c->there, a.proxy, id, MR_INBOX, SCAN_BODIES, &a.msg, err);
	if (rc == MR_NOTFOUND) { /* taken by another this very moment */
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc == MR_OK)
		rc = take(&a, err);
	return rc == MR_OK ? MR_OK : mr_wrap(err, "%s from '%s'", id, a.from[0] ? a.from : c->link.name);
}

static enum mr_rc
take_mailbox(struct carrier *c, const struct mr_link_name *name, struct mr_error *err)
{
	struct mailbox_walk walk = { .c = c };
	struct scan_request want = { .folders = MR_INBOX,
		.depth = SCAN_NAMES,
		.unread_only = true,
		.trouble = note_trouble,
		.trouble_ctx = &walk };
	enum mr_rc rc = link_is_stand_in(c->room, c->there, c->link.name, name->local, name->foreign, err);

	if (rc == MR_OK)
		rc = c->there->driver->scan(c->there, name->foreign, &want, note_unread, &walk, err);
	if (rc == MR_NOTFOUND) { /* its owner removed it; it is made again with the next mail that goes out */
		*err = (struct mr_error){ 0 };
		rc = MR_OK;
	}
	if (rc == MR_OK && walk.unread.failed)
		rc = mr_nomem(err);
	for (size_t i = 0; i < walk.unread.n && rc == MR_OK; i++) {
		struct mr_error one = { 0 };

		/* One that cannot be carried now stays unread there, and the others go on. */
		if (take_one(c, name, walk.unread.v[i].id, &one) != MR_OK)
			carrier_trouble(c, &one);
	}
	candidates_done(&walk.unread);
	return rc;
}

enum mr_rc
carry_in(struct carrier *c, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	for (size_t i = 0; i < c->link.names_n; i++) {
		rc = take_mailbox(c, &c->link.names[i], err);
		if (rc == MR_NOMEM)
			return rc;
		if (rc != MR_OK)
			carrier_trouble(c, err);
	}
	arrival_tidy(c);
	return MR_OK;
}
