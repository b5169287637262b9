/* SPDX-License-Identifier: MIT */
/*
 * carry_in.c - the mailboxes in the other room that stand for our agents: their unread mail is delivered here, then
 * marked as read there.
 *
 *	1  read it there, and find its place in our threads
 *	2  deliver it here, with a key made of link, name and id: a second carrier, later or at the same time, delivers
 *	   nothing twice. If it is here already, its place is the one that it was delivered with
 *	3  record in the correspondence which message there is which one here
 *	4  mark it as read there, durably
 *
 * After a kill before 4 it is read again; 2 then finds the message. Keys are kept for a week only, and 3 finds it as
 * well: mail in a mailbox that can be read but not written is not carried again every week.
 *
 * Mail for an agent that is not here any more goes into this link's own queue of outgoing mail, unchanged: carry_out.c
 * finds no recipient there, tells its sender, and makes it a dead letter.
 */
#include "office/mail/mail.h"
#include "office/link/link.h"

struct arrival { /* a message in the other room for an agent of this room; finish with arrival_done */
	struct carrier *c;
	const char *local, *proxy;
	struct mr_message msg; /* as it is there */
	const char *sender;    /* over there */
	char from[2 * MR_ADDRESS_MAX + 2];
	struct mr_message carried;
	char answers[MR_ID_LEN + 1]; /* our message that it answers, or "" */
	char id[MR_ID_LEN + 1];      /* here */
	struct arena *own;
};

static void
arrival_done(struct arrival *a)
{
	mr_message_done(&a->msg);
	arena_free(a->own);
}

/* ---- The message of ours that it answers ---- */

static enum mr_rc
answer(struct arrival *a, const char *id, const char *thread, struct mr_error *err)
{
	(void)snprintf(a->answers, sizeof(a->answers), "%s", id);
	a->carried.reply_to = a->answers;
	a->carried.thread = arena_dup(&a->own, str_of(thread));
	return mr_got(a->carried.thread, err);
}

/* For formats without references: the newest message to that agent with its subject, else the newest that it has not
 * answered. */
static const struct carried_line *
guess_answered(const struct arrival *a, const struct correspondence *m)
{
	bool knows_threads = a->c->there->driver->abilities & ROOM_THREADS;
	const struct carried_line *open = NULL;
	char subject[17];

	if (knows_threads && strncasecmp(a->msg.subject, "Re:", 3) != 0)
		return NULL;
	correspondence_subject(a->msg.subject, subject);
	for (size_t i = m->n; i > 0; i--) {
		const struct carried_line *l = &m->v[i - 1];

		if (l->state == CARRIED_GOT)
			continue;
		if (strcmp(l->subject, subject) == 0)
			return l;
		if (!open && !l->answered)
			open = l;
	}
	return knows_threads ? NULL : open;
}

/* Fills in carried.thread, carried.reply_to and answers. */
static enum mr_rc
place(struct arrival *a, const struct correspondence *m, struct mr_error *err)
{
	const char *native = mr_message_header(&a->msg, "Message-ID"), *thread = a->msg.thread;
	mr_auto(correspondence_done) struct correspondence found = { 0 };
	const struct carried_line *l = NULL;

	if (strcmp(thread, a->msg.id) == 0 || (native && strcmp(thread, native) == 0)) /* it starts one */
		thread = "";
	a->carried.thread = thread;
	if (*a->msg.reply_to) /* an answer may come from another agent than the one that was asked */
		TRY(correspondence_find(a->c->room, a->c->link.name, a->local, a->sender,
		    &(struct carried_line){ .there = a->msg.reply_to }, &found, &l, err));
	else
		l = guess_answered(a, m);
	if (l)
		return answer(a, l->id, *l->thread ? l->thread : l->id, err);
	for (size_t i = m->n; i > 0 && *thread; i--)
		if (strcmp(m->v[i - 1].there_thread, thread) == 0) {
			a->carried.thread = arena_dup(&a->own, str_of(m->v[i - 1].thread));
			return mr_got(a->carried.thread, err);
		}
	return MR_OK;
}

/* ---- Delivering ---- */

static enum mr_rc
deliver_to(struct arrival *a, char *target, struct mr_error *err)
{
	mr_auto(translated_done) struct translated t = { 0 };
	struct mr_room *room = a->c->room;
	struct delivered got = { 0 };
	struct mr_names to = { &target, 1 };
	char key[MR_LINK_NAME_MAX + MR_ID_LEN + 88];

	TRY(translate(room, &a->carried, &t, err));
	/* The same for every carrier, even if the mail was diverted because it could not be delivered. */
	(void)snprintf(key, sizeof(key), "link:%s:%.80s:%s", a->c->link.name, a->proxy, a->msg.id);
	struct delivery what = {
		.msg = &t.msg,
		.to = &to,
		.sender = LINK_CLAIMERS,
		.key = key,
		.key_is_all = true, /* the correspondence may know more now than at the first delivery */
		.carried = true,
	};
	enum mr_rc rc = room->driver->deliver(room, &what, &got, err);

	delivered_done(&got);
	if (rc != MR_OK)
		return rc;
	a->c->count.in += !got.repeated;
	(void)snprintf(a->id, sizeof(a->id), "%s", got.id);
	mr_auto(mr_message_done) struct mr_message here = { 0 };

	if (got.repeated && room->driver->fetch(room, a->local, a->id, 0, SCAN_HEADERS, &here, IGNORED) == MR_OK)
		return answer(a, here.reply_to, here.thread, err);
	return MR_OK;
}

static enum mr_rc
deliver(struct arrival *a, struct mr_error *err)
{
	struct mr_names *to = &a->carried.to;

	/* If the recipient is in a third room the message must name it, or that link would not know it. */
	if (!names_has(to, a->local) && !names_has(&a->carried.cc, a->local)) {
		to->v[to->n] = arena_dup(&a->own, str_of(a->local)); /* carry_compose left one place */
		TRY(mr_got(to->v[to->n], err));
		to->n++;
	}
	struct room_box target;
	enum mr_rc rc = carry_target(a->c->room, a->local, &target, err);

	if (rc == MR_OK)
		rc = deliver_to(a, target.z, err);
	if (rc != MR_NOTFOUND)
		return rc;
	*err = (struct mr_error){ 0 };
	return deliver_to(a, a->c->box.z, err);
}

static enum mr_rc
remember(struct arrival *a, struct mr_error *err)
{
	const char *native = mr_message_header(&a->msg, "Message-ID");
	bool derived = office_has_lives(a->c->there); /* there the id is made of it */
	struct carried_line l = {
		.state = CARRIED_GOT,
		.id = a->id,
		.thread = *a->carried.thread ? a->carried.thread : a->id,
		.there = a->msg.id,
		.there_thread = *a->msg.thread ? a->msg.thread : a->msg.id,
		.native = native && !derived ? native : "",
	};

	if (!*a->id)
		return MR_OK;
	correspondence_subject(a->msg.subject, l.subject);
	if (*a->answers) /* the answer that was due has arrived */
		due_drop(a->c->room, a->local, a->answers);
	return correspondence_note(a->c->room, a->c->link.name, a->local, a->sender, &l, a->answers, err);
}

static enum mr_rc
mark_read(struct arrival *a, struct mr_error *err)
{
	struct mr_room *there = a->c->there;
	const struct room_driver *d = there->driver;
	enum mr_rc rc = MR_OK;

	if (DRIVER_HAS(d, mark) && (d->abilities & ROOM_READ_STATE))
		rc = d->mark(there, a->proxy, a->msg.id, MR_SEEN, 0, 0, err);
	else if (d->abilities & ROOM_ARCHIVE)
		rc = d->mark(there, a->proxy, a->msg.id, 0, 0, MR_ARCHIVE, err);
	TRY(mr_unless(rc, MR_NOTFOUND, err)); /* another carrier was faster, or its owner removed it */
	return office_flush(there, err);
}

static enum mr_rc
take(struct arrival *a, struct mr_error *err)
{
	mr_auto(correspondence_done) struct correspondence m = { 0 };
	bool got = false;

	a->sender = *a->msg.from ? a->msg.from : "unknown";
	(void)snprintf(a->from, sizeof(a->from), "%.160s@%s", a->sender, a->c->link.name);
	TRY(mr_unless(correspondence_load(a->c->room, a->c->link.name, a->local, a->sender, &m, err), MR_CORRUPT, err));
	for (size_t i = 0; i < m.n && !got; i++)
		got = m.v[i].state == CARRIED_GOT && strcmp(m.v[i].there, a->msg.id) == 0;
	if (!got) {
		enum mr_rc rc = carry_compose(a->c, CARRY_WAY_IN, &a->msg, a->from, &a->carried, &a->own, err);
		if (rc == MR_OK)
			rc = place(a, &m, err);
		if (rc == MR_REFUSED) { /* it goes in circles: it stays there, marked as read, and is reported once */
			carrier_trouble(a->c, err);
			return mark_read(a, err);
		}
		TRY(rc);
		TRY(deliver(a, err));
		TRY(remember(a, err));
	}
	return mark_read(a, err);
}

/* ---- One mailbox ---- */

static void
note_trouble(void *ctx, const char *path, const struct mr_error *err)
{
	struct mr_error said = *err;

	(void)mr_wrap(&said, "'%.120s'", path);
	carrier_trouble(ctx, &said);
}

static enum mr_rc
take_mailbox(struct carrier *c, const struct mr_link_name *name, struct mr_error *err)
{
	mr_auto(mr_names_done) struct mr_names unread = { 0 };
	struct scan_request want = {
		.folders = MR_INBOX, .depth = SCAN_NAMES, .unread_only = true, .trouble = note_trouble, .trouble_ctx = c
	};
	enum mr_rc rc = link_is_stand_in(c->room, c->there, c->link.name, name->local, name->foreign, err);

	if (rc == MR_OK)
		rc = c->there->driver->scan(c->there, name->foreign, &want, office_note_id, &unread, err);
	for (size_t i = 0; i < unread.n && rc == MR_OK; i++) {
		mr_auto(arrival_done) struct arrival a = { .c = c, .local = name->local, .proxy = name->foreign };
		struct mr_error why = { 0 };
		enum mr_rc one = link_is_stand_in(c->room, c->there, c->link.name, a.local, a.proxy, &why);

		if (one == MR_OK)
			one = c->there->driver->fetch(
			    c->there, a.proxy, unread.v[i], MR_INBOX, SCAN_BODIES, &a.msg, &why);
		if (one == MR_OK)
			one = take(&a, &why);
		else if (one == MR_NOTFOUND) /* another process took it at the same time */
			continue;
		/* A message that cannot be carried now stays unread there; go on with the others. */
		if (one != MR_OK) {
			(void)mr_wrap(&why, "%s from '%s'", unread.v[i], a.from[0] ? a.from : c->link.name);
			carrier_trouble(c, &why);
		}
	}
	/* Its owner removed it; the next outgoing mail makes it again. */
	return mr_unless(rc, MR_NOTFOUND, err);
}

enum mr_rc
carry_in(struct carrier *c, struct mr_error *err)
{
	for (size_t i = 0; i < c->link.names_n; i++) {
		enum mr_rc rc = take_mailbox(c, &c->link.names[i], err);

		if (rc == MR_NOMEM)
			return rc;
		if (rc != MR_OK)
			carrier_trouble(c, err);
	}
	return MR_OK;
}
