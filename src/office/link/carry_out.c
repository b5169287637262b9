/* SPDX-License-Identifier: MIT */
/*
 * carry_out.c - the queue of mail that goes to one other room.
 *
 * A message is claimed for as long as this process lives, carried to each recipient, and settled. After a kill at any
 * point the claim is over; the next carrier claims the message and finds in the records below which recipients have it.
 * A message that must wait (the other room is full, locked, away) goes to the end of the queue, so that it does not
 * come again at once and block the rest. It is never given up: each carry reports it.
 *
 * If a message can never arrive, its sender is told, with the text, before it is marked as failed: after a kill in
 * between, the next carrier tells it again with the same key, so it is told once. If nobody got it, it becomes a dead
 * letter.
 *
 * One message goes to one recipient exactly once, at whatever point a carrier is killed. A record of this room
 * ("carrying", named after the message and the recipient) has its progress, each step durable before the next begins:
 *
 *	            nothing has happened
 *	As: ...     planned: under which name, as an answer to what. The plan is never changed: the table of names and
 *	            the correspondence may change, and a repeated delivery must be the same
 *	Ticket: ... all is written there, and not visible; the next step is a rename
 *	Done: ...   it is there
 *	Failed:     it can never arrive, and its sender was told
 *
 * A room with keys needs no ticket: repeating with the same key returns the message. In other rooms, a carrier that
 * finds a ticket asks whether it was published. Only the holder of the message's claim does that, so nobody publishes
 * meanwhile. After an error the ticket is first removed from the record, durably, and then the leftover file there: the
 * other way round, a missing file would mean that it was published.
 *
 * The record is removed after the message is settled in its queue. A kill in between leaves a record; a later carry
 * drops it.
 */
#include "base/error.h"
#include "base/id.h"
#include "message/address.h"
#include "office/mail/mail.h"
#include "office/link/link.h"
#include "office/work/work.h"
#include <stddef.h>
#include <stdlib.h>

#define TRIES_MAX 16        /* recipients in a row who cannot get mail now: then the room is the cause */
#define SEND_WAITING_MAX 64 /* messages that a send skips to carry its own; carry looks at all */

struct plan { /* the lines of the record; all "" if there is none */
	const char *to, *as, *reply_to, *thread, *ticket, *id, *done, *native, *failed;
};
static const struct record_field plan_fields[] = {
	{ "To", RECORD_TEXT, offsetof(struct plan, to) },
	{ "As", RECORD_TEXT, offsetof(struct plan, as) },
	{ "Reply-To", RECORD_TEXT, offsetof(struct plan, reply_to) },
	{ "Thread", RECORD_TEXT, offsetof(struct plan, thread) },
	{ "Ticket", RECORD_TEXT, offsetof(struct plan, ticket) },
	{ "Id", RECORD_TEXT, offsetof(struct plan, id) },
	{ "Done", RECORD_TEXT, offsetof(struct plan, done) },
	{ "Spoken", RECORD_TEXT, offsetof(struct plan, native) },
	{ "Failed", RECORD_TEXT, offsetof(struct plan, failed) },
};

struct journey { /* one message to one recipient; finish with journey_done */
	struct carrier *c;
	const struct mr_message *msg;
	const char *recipient;
	char there[MR_ADDRESS_MAX + 1]; /* the recipient without @LINK */
	char name[64];                  /* of the record */
	struct record lines;
	struct plan plan;
	char ticket[ROOM_TICKET_MAX + 1]; /* the ticket of this try */
	struct delivered got;
	struct arena *own;
};

static void
journey_done(struct journey *j)
{
	record_done(&j->lines);
	arena_free(j->own);
}

/* Records of kind CARRYING_KIND: "<id>-<hash of the recipient>". */
static void
record_name(const char *id, const char *recipient, char ret[64])
{
	(void)snprintf(ret, 64, "%s-%.16s", id, hash_name("%s", recipient).z);
}

static void
drop(const struct carrier *c, const char *name)
{
	(void)c->room->driver->record_drop(c->room, CARRYING_KIND, c->link.name, name, IGNORED);
}

static enum mr_rc
load(struct journey *j, struct mr_error *err)
{
	struct mr_str agent, link;

	address_split(str_of(j->recipient), &agent, &link);
	(void)snprintf(j->there, sizeof(j->there), "%.*s", (int)agent.len, agent.ptr);
	record_name(j->msg->id, j->recipient, j->name);
	record_done(&j->lines);
	TRY(mr_unless(
	    office_record(j->c->room, CARRYING_KIND, j->c->link.name, j->name, &j->lines, err), MR_NOTFOUND, err));
	record_read(&j->lines, RECORD_FIELDS(plan_fields), &j->plan);
	j->plan.to = j->recipient;
	return MR_OK;
}

static enum mr_rc
save(struct journey *j, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;

	record_write(&text, RECORD_FIELDS(plan_fields), &j->plan);
	TRY(mr_got(buf_ok(&text), err));
	return j->c->room->driver->record_put(j->c->room, CARRYING_KIND, j->c->link.name, j->name, buf_str(&text), err);
}

/* ---- Planning ---- */

static enum mr_rc
make_plan(struct journey *j, struct mr_error *err)
{
	mr_auto(correspondence_done) struct correspondence m = { 0 };
	struct carrier *c = j->c;
	const struct mr_message *msg = j->msg;
	const struct carried_line *l = NULL;
	char as[MR_ADDRESS_MAX + 1];

	TRY(link_proxy(c->room, c->there, c->link.name, msg->from, as, err));
	/* A message that starts a thread here starts one there. */
	j->plan.thread = strcmp(msg->thread, msg->id) == 0 ? "" : msg->thread;
	if (*msg->reply_to) /* the thread of the message that this one answers */
		TRY(correspondence_find(c->room, c->link.name, msg->from, j->there,
		    &(struct carried_line){ .id = msg->reply_to }, &m, &l, err));
	if (l) {
		j->plan.reply_to = *l->native ? l->native : l->there;
		j->plan.thread = l->there_thread;
	}
	j->plan.as = as;
	TRY(save(j, err));
	return load(j, err);
}

/* ---- Delivering ---- */

/* Removes the leftovers of an older ticket. */
static void
tidy(struct journey *j, const char *ticket)
{
	struct mr_room *there = j->c->there;
	bool published;

	if (*ticket)
		(void)there->driver->settle_ticket(there, ticket, &published, IGNORED);
}

static enum mr_rc
note_ticket(void *ctx, const char *ticket, struct mr_error *err)
{
	struct journey *j = ctx;
	char before[ROOM_TICKET_MAX + 1];

	if (strlen(ticket) > ROOM_TICKET_MAX)
		return mr_fail(err, MR_REFUSED, "the ticket '%.40s...' is too long", ticket);
	memcpy(before, j->ticket, sizeof(before));
	(void)snprintf(j->ticket, sizeof(j->ticket), "%s", ticket);
	j->plan.ticket = j->ticket;
	/* Save the ids that the driver has told so far, for a carrier after a kill. */
	j->plan.id = j->got.id;
	j->plan.native = j->got.native_id;
	TRY(save(j, err));
	tidy(j, before);
	return MR_OK;
}

static enum mr_rc
deliver(struct journey *j, struct mr_error *err)
{
	mr_auto(translated_done) struct translated t = { 0 };
	struct mr_message carried;
	struct mr_room *there = j->c->there;
	char *name = j->there, key[96];
	struct mr_names to = { &name, 1 };
	bool keys = there->driver->abilities & ROOM_KEYS;

	/* The plan is in this room, so the sender that it names is checked in the other room each time. */
	TRY(link_is_stand_in(j->c->room, there, j->c->link.name, j->msg->from, j->plan.as, err));
	TRY(carry_compose(j->c, CARRY_WAY_OUT, j->msg, j->plan.as, &carried, &j->own, err));
	(void)snprintf(carried.id, sizeof(carried.id), "%s", j->msg->id);
	carried.thread = j->plan.thread;
	carried.reply_to = j->plan.reply_to;
	TRY(translate(there, &carried, &t, err));
	(void)snprintf(key, sizeof(key), "carry:%s:%.32s", j->msg->id, hash_name("%s", j->recipient).z);
	struct delivery what = {
		.msg = &t.msg,
		.to = &to,
		.sender = j->plan.as,
		.key = keys ? key : NULL,
		.key_is_all = true, /* the names of its other recipients may have changed since */
		.carried = true,
		.staged = keys ? NULL : note_ticket,
		.staged_ctx = keys ? NULL : j,
	};

	enum mr_rc rc = there->driver->deliver(there, &what, &j->got, err);

	delivered_done(&j->got);
	if (rc != MR_OK && rc != MR_INDOUBT && *j->ticket) {
		/* Nobody has it. If that cannot be saved, the next try asks about the ticket. */
		j->plan.ticket = j->plan.id = j->plan.native = "";
		if (save(j, IGNORED) == MR_OK)
			tidy(j, j->ticket);
	}
	return rc;
}

struct search { /* for a message that was published before a kill */
	struct journey *j;
	struct correspondence known; /* other messages between these two agents */
};

static bool
note_if_it(void *ctx, const struct mr_message *msg)
{
	struct search *s = ctx;
	const char *native = mr_message_header(msg, "Message-ID");

	if (strcmp(msg->from, s->j->plan.as) != 0 || strcmp(msg->subject, s->j->msg->subject) != 0 ||
	    correspondence_by_there(&s->known, msg->id))
		return true;
	(void)snprintf(s->j->got.id, sizeof(s->j->got.id), "%s", msg->id);
	(void)snprintf(s->j->got.native_id, sizeof(s->j->got.native_id), "%s", native ? native : "");
	return false;
}

/* After a kill or an error behind the ticket: is the message there? If so, finds its name there, so that its answer
 * finds its thread. If its reader took it already, only the subject can tell. */
static enum mr_rc
settle_ticket(struct journey *j, bool *ret_published, struct mr_error *err)
{
	struct mr_room *there = j->c->there;
	struct search s = { .j = j };
	struct scan_request want = {
		.folders = office_folders(there, MR_INBOX | MR_ARCHIVE), .depth = SCAN_HEADERS, .order = SCAN_NEWEST
	};

	if (!*j->plan.ticket || !ROOM_HAS(there, settle_ticket))
		return MR_OK;
	if (there->driver->settle_ticket(there, j->plan.ticket, ret_published, err) != MR_OK)
		return mr_wrap(err, "cannot find out whether '%s' was delivered", j->msg->id);
	if (!*ret_published)
		return MR_OK;
	(void)snprintf(j->got.id, sizeof(j->got.id), "%s", j->plan.id);
	(void)snprintf(j->got.native_id, sizeof(j->got.native_id), "%s", j->plan.native);
	if (!*j->plan.native &&
	    correspondence_load(j->c->room, j->c->link.name, j->msg->from, j->there, &s.known, IGNORED) == MR_OK)
		(void)there->driver->scan(there, j->there, &want, note_if_it, &s, IGNORED);
	correspondence_done(&s.known);
	return MR_OK;
}

/* Does the steps that are left. MR_EXISTS and temporary errors: it waits. Any other: it can never arrive. */
static enum mr_rc
travel(struct journey *j, struct mr_error *err)
{
	mr_auto(correspondence_done) struct correspondence m = { 0 };
	bool published = false;

	if (!*j->plan.as) {
		/* A power cut may bring a message back into the queue that it had left: the correspondence, which is
		 * durable before that, shows that it was carried. */
		TRY(correspondence_load(j->c->room, j->c->link.name, j->msg->from, j->there, &m, err));
		if (correspondence_by_id(&m, j->msg->id))
			return MR_OK;
		TRY(make_plan(j, err));
	}
	if (!*j->plan.done) {
		TRY(settle_ticket(j, &published, err));
		if (!published)
			TRY(deliver(j, err));
		j->plan.ticket = j->plan.id = "";
		j->plan.done = j->got.id[0] ? j->got.id : "unknown";
		j->plan.native = j->got.native_id;
		TRY(save(j, err));
		j->c->count.out++;
	}
	/* For the thread of the answer, and to find out what happened to it. */
	const struct plan *p = &j->plan;
	const char *there = strcmp(p->done, "unknown") == 0 ? "" : p->done;
	struct carried_line l = {
		.state = *there ? CARRIED_SENT : CARRIED_READ,
		.id = j->msg->id,
		.thread = j->msg->thread,
		.there = there,
		.there_thread = *p->thread   ? p->thread
				: *p->native ? p->native
					     : there,
		.native = p->native,
	};

	correspondence_subject(j->msg->subject, l.subject);
	return correspondence_note(j->c->room, j->c->link.name, j->msg->from, j->there, &l, j->msg->reply_to, err);
}

/* ---- One message ---- */

struct item { /* a claimed message; finish with item_done */
	struct carrier *c;
	struct claim hold;
	struct mr_message msg;
	struct mr_names recipients; /* in the other room */
	size_t arrived, waiting;
};

static void
item_done(struct item *i)
{
	mr_message_done(&i->msg);
	mr_names_done(&i->recipients);
}

static bool
find_recipients(struct item *i, const struct mr_names *names)
{
	for (size_t n = 0; n < names->n; n++) {
		struct mr_str agent, room;

		address_split(str_of(names->v[n]), &agent, &room);
		if (str_eq(room, str_of(i->c->link.name)) && agent.len > 0 && !names_has(&i->recipients, names->v[n]) &&
		    !names_add(&i->recipients, str_of(names->v[n])))
			return false;
	}
	return true;
}

static enum mr_rc
fail(struct item *i, struct journey *j, const char *why, struct mr_error *err)
{
	mr_auto(notice_done) struct notice n = { .from = j->recipient, .to = i->msg.from, .reason = why };

	buf_addf(&n.story, "This message could not be delivered to %s, and it will not be tried again.", j->recipient);
	buf_adds(&n.advice, "Correct the cause and send it again.");
	buf_addf(&n.key, "failed:%s:%s", i->msg.id, j->recipient);
	TRY(notice_send(i->c->room, &n, &i->msg, err));
	i->c->count.failed++;
	record_read(&(struct record){ 0 }, RECORD_FIELDS(plan_fields), &j->plan); /* clears the plan */
	j->plan.failed = "yes";
	return save(j, err);
}

static void
say(struct item *i, const char *recipient, const struct mr_error *why)
{
	struct mr_error said = *why;

	if (i->c->own && strcmp(i->c->own, i->msg.id) != 0)
		return; /* its sender was told, and carry reports it to the operator */
	(void)mr_wrap(&said, "%s to '%s'", i->msg.id, recipient);
	carrier_trouble(i->c, &said);
}

/* If one sender or one recipient cannot do it now, it cannot do it a moment later either: the rest of its mail waits in
 * order without another try, and delays no other mail. */
static enum mr_rc
carry_to(struct item *i, const char *recipient, struct mr_error *err)
{
	mr_auto(journey_done) struct journey j = { .c = i->c, .msg = &i->msg, .recipient = recipient };
	const struct stuck *stuck = NULL;
	struct mr_error why = { 0 };

	for (size_t n = 0; n < i->c->stuck_n && !stuck; n++)
		if (strcmp(i->c->stuck[n].name, recipient) == 0 || strcmp(i->c->stuck[n].name, i->msg.from) == 0)
			stuck = &i->c->stuck[n];

	TRY(load(&j, err));
	if (*j.plan.failed)
		return MR_OK;
	if (stuck && !*j.plan.done) {
		i->waiting++;
		if (i->c->own)
			say(i, recipient, &stuck->why);
		return MR_OK;
	}
	enum mr_rc rc = travel(&j, &why);

	if (rc == MR_OK) {
		i->arrived++;
		i->c->in_vain = 0;
		return MR_OK;
	}
	say(i, recipient, &why);
	bool temporary =
	    rc == MR_IO || rc == MR_FULL || rc == MR_NOMEM || rc == MR_BUSY || rc == MR_INDOUBT || rc == MR_CORRUPT;

	if (!temporary && rc != MR_EXISTS)
		return fail(i, &j, why.message, err);
	/* A name that is taken there can be changed: then the mail goes out. */
	struct carrier *c = i->c;

	i->waiting++;
	c->in_vain += temporary;
	TRY(mr_got(array_grow(&c->stuck, c->stuck_n, &c->stuck_cap, sizeof(*c->stuck)), err));
	struct stuck *last = &c->stuck[c->stuck_n++];

	(void)snprintf(last->name, sizeof(last->name), "%s", temporary ? recipient : i->msg.from);
	last->why = why;
	return MR_OK;
}

static enum mr_rc
settle(struct item *i, enum settle how, struct mr_error *err)
{
	struct mr_room *room = i->c->room;
	char name[64];

	TRY(room->driver->settle(room, &i->hold, how, err));
	TRY(office_flush(room, err));
	for (size_t n = 0; n < i->recipients.n; n++) {
		record_name(i->msg.id, i->recipients.v[n], name);
		drop(i->c, name);
	}
	return MR_OK;
}

/* MR_BUSY: it waits, and stays claimed until the others had their turn. */
static enum mr_rc
carry_item(struct carrier *c, const struct claim *hold, struct mr_error *err)
{
	mr_auto(item_done) struct item i = { .c = c, .hold = *hold };
	enum mr_rc rc = room_fetch_work(c->room, box_queue(c->box.z), hold->id, &i.msg, err);

	if (rc == MR_CORRUPT) { /* the sender is unknown; it is kept with the failed work */
		carrier_trouble(c, err);
		c->count.failed++;
		return settle(&i, SETTLE_DEAD, err);
	}
	if (rc != MR_OK) /* not found: purged at the same time */
		return mr_unless(rc, MR_NOTFOUND, err);
	TRY(mr_got(find_recipients(&i, &i.msg.to) && find_recipients(&i, &i.msg.cc), err));
	if (i.recipients.n == 0) {
		/* It came in over this link for an agent that is not here any more: see carry_in.c. */
		const char *away = i.msg.to.n > 0 ? i.msg.to.v[0] : OPERATOR;
		mr_auto(notice_done) struct notice n = {
			.from = strchr(away, ':') ? OPERATOR : away, .to = i.msg.from, .reason = ""
		};

		buf_addf(&n.story, "%s no longer exists and did not get this message.", away);
		buf_adds(&n.advice, "It is kept among the dead letters of the other room.");
		buf_addf(&n.key, "not-here:%s", i.msg.id);
		c->count.failed++;
		TRY(notice_send(c->room, &n, &i.msg, err));
		return settle(&i, SETTLE_DEAD, err);
	}
	for (size_t n = 0; n < i.recipients.n; n++)
		TRY(carry_to(&i, i.recipients.v[n], err));
	if (i.waiting > 0) {
		c->count.waiting += i.waiting;
		c->own_waits |= c->own && strcmp(c->own, i.msg.id) == 0;
		return MR_BUSY;
	}
	return settle(&i, i.arrived > 0 ? SETTLE_DONE : SETTLE_DEAD, err);
}

/* ---- Leftovers ---- */

struct leftovers {
	struct carrier *c;
	struct mr_names names;
};

static bool
drop_leftover(void *ctx, const struct queue_item *item)
{
	struct leftovers *l = ctx;

	for (size_t i = 0; i < l->names.n; i++)
		if (str_starts(str_of(l->names.v[i]), item->id))
			drop(l->c, l->names.v[i]);
	return true;
}

/* Records of waiting mail alone are no reason to look through all that was ever carried. Drops only records of mail
 * that is settled for good: a message that moves from state to state may be seen in none of them, and without its
 * record it would be delivered again. */
static void
drop_leftovers(struct carrier *c, const struct claims *waiting)
{
	mr_auto(mr_names_done) struct mr_names all = { 0 };
	struct leftovers l = { .c = c };

	(void)office_records(c->room, CARRYING_KIND, c->link.name, &all, IGNORED);
	for (size_t i = 0; i < all.n; i++) {
		bool waits = false;

		if (str_starts(str_of(all.v[i]), "in-")) { /* of an older version, for incoming mail */
			drop(c, all.v[i]);
			continue;
		}
		for (size_t w = 0; w < waiting->n && !waits; w++)
			waits = str_starts(str_of(all.v[i]), waiting->v[w].id);
		if (!waits && !names_add(&l.names, str_of(all.v[i])))
			break;
	}
	if (l.names.n > 0)
		(void)c->room->driver->each_claim(
		    c->room, c->box.z, QUEUE_DONE | QUEUE_FAILED, drop_leftover, &l, IGNORED);
	mr_names_done(&l.names);
}

/* ---- The queue ---- */

enum mr_rc
carry_out(struct carrier *c, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	mr_auto(claims_done) struct claims waiting = { 0 };
	struct claim_terms terms = { .kind = CLAIM_HANDLE, .session = "", .claimer = OPERATOR, .by_priority = true };
	enum mr_rc rc = MR_OK;

	TRY(mr_queue_get(c->room, box_queue(c->box.z), &queue, err));
	office_queue_sweep(c->room, &queue);
	while (c->in_vain < TRIES_MAX && !(c->own && waiting.n >= SEND_WAITING_MAX)) {
		struct claim hold = { 0 };

		rc = c->room->driver->claim(c->room, c->box.z, NULL, &terms, &hold, err);
		if (rc != MR_OK)
			break;
		rc = carry_item(c, &hold, err);
		if (rc == MR_OK)
			continue;
		if (!claims_add(&waiting, &hold) && rc == MR_BUSY)
			rc = mr_nomem(err);
		if (rc != MR_BUSY)
			break;
	}
	if (c->own && (c->in_vain >= TRIES_MAX || waiting.n >= SEND_WAITING_MAX))
		c->own_waits = true;   /* its turn may still come */
	if (!(c->own && c->own_waits)) /* otherwise not all waiting mail was seen: the next carry tidies up */
		drop_leftovers(c, &waiting);
	/* If it is cut off here, a dead process holds the claims, and the next carrier puts them back. */
	for (size_t i = 0; i < waiting.n; i++)
		(void)c->room->driver->settle(c->room, &waiting.v[i], SETTLE_BACK, IGNORED);
	if (waiting.n > 0)
		(void)office_flush(c->room, IGNORED);
	return mr_unless(mr_unless(rc, MR_EMPTY, err), MR_BUSY, err);
}
