/* SPDX-License-Identifier: MIT */
/*
 * carry_out.c - the queue of mail that goes to one other room.
 *
 * A message is claimed for as long as this process lives, carried to each recipient over there (carry_one.c), and
 * settled. Killed at any point, the claim is over and the next carrier claims it, and finds in the records of
 * carry_one.c who has it. What waits for something (the other room is full, locked, away) goes back at the end, so that
 * it does not come again at once and keep the rest from going. It is never given up: it says so each time.
 *
 * What can never arrive is told to its sender, with the text, before it is noted as failed: killed in between, the next
 * tells it again with the same key, which tells nothing twice. If nobody got it, it becomes a dead letter.
 */
#include "base/error.h"
#include "message/address.h"
#include "office/link/link.h"
#include <stdlib.h>

#define TRIES_MAX 16 /* of recipients who cannot get mail now, one after the other: then it is the room, not they */
#define SEND_WAITING_MAX 64 /* that a send passes by to carry its own; carry looks at all */

struct item { /* a message that was claimed */
	struct carrier *c;
	struct hold hold;
	struct mr_message msg;
	struct mr_names recipients; /* over there */
	size_t arrived, failed, waiting;
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

/* ---- What can never arrive ---- */

static enum mr_rc
tell_failed(struct item *i, const char *recipient, const char *why, struct mr_error *err)
{
	mr_auto(buf_done) struct buf story = BUF_INIT, key = BUF_INIT;

	buf_addf(&story, "This message could not be delivered to %s, and it will not be tried again.", recipient);
	buf_addf(&key, "failed:%s:%s", i->msg.id, recipient);
	if (!buf_ok(&story) || !buf_ok(&key))
		return mr_nomem(err);
	struct notice notice = {
		.from = recipient,
		.to = i->msg.from,
		.story = buf_z(&story),
		.reason = why,
		.advice = "Put right what is wrong and send it again.",
		.key = buf_z(&key),
	};

	return notice_send(i->c->room, &notice, &i->msg, err);
}

/* It came in over this link for somebody who is not here any more: see carry_in.c. */
static enum mr_rc
tell_not_here(struct item *i, struct mr_error *err)
{
	mr_auto(buf_done) struct buf story = BUF_INIT, key = BUF_INIT;
	const char *whom = i->msg.to.n > 0 ? i->msg.to.v[0] : OPERATOR;

	buf_addf(&story, "%s is not there any more and did not get this message.", whom);
	buf_addf(&key, "not-here:%s", i->msg.id);
	if (!buf_ok(&story) || !buf_ok(&key))
		return mr_nomem(err);
	struct notice notice = {
		.from = strchr(whom, ':') ? OPERATOR : whom,
		.to = i->msg.from,
		.story = buf_z(&story),
		.reason = "",
		.advice = "It is kept among the dead letters of the other room.",
		.key = buf_z(&key),
	};

	return notice_send(i->c->room, &notice, &i->msg, err);
}

/* ---- One message ---- */

static void
say(struct item *i, const char *recipient, const struct mr_error *why)
{
	struct mr_error said = *why;

	if (i->c->own && strcmp(i->c->own, i->msg.id) != 0)
		return; /* its sender was told, and carry tells the operator */
	(void)mr_wrap(&said, "%s to '%s'", i->msg.id, recipient);
	carrier_trouble(i->c, &said);
}

/* What one sender or one recipient cannot do now, he cannot do a moment later either: the rest of his mail waits
 * without another try, in its order, and takes nobody else's turn. */
static const struct stuck *
find_stuck(const struct item *i, const char *recipient)
{
	for (size_t n = 0; n < i->c->stuck_n; n++)
		if (strcmp(i->c->stuck[n].name, recipient) == 0 || strcmp(i->c->stuck[n].name, i->msg.from) == 0)
			return &i->c->stuck[n];
	return NULL;
}

static enum mr_rc
note_stuck(struct carrier *c, const char *name, const struct mr_error *why, struct mr_error *err)
{
	struct stuck *grown = realloc(c->stuck, (c->stuck_n + 1) * sizeof(*grown));

	if (!grown)
		return mr_nomem(err);
	c->stuck = grown;
	(void)snprintf(grown[c->stuck_n].name, sizeof(grown->name), "%s", name);
	grown[c->stuck_n++].why = *why;
	return MR_OK;
}

static enum mr_rc
carry_to(struct item *i, const char *recipient, struct mr_error *err)
{
	enum carry_state state = CARRY_NEW;
	const struct stuck *stuck = find_stuck(i, recipient);
	struct mr_error why = { 0 };
	enum mr_rc rc = carry_state(i->c, i->msg.id, recipient, &state, err);

	if (rc != MR_OK)
		return rc;
	if (state == CARRY_FAILED) {
		i->failed++;
		return MR_OK;
	}
	if (stuck && state != CARRY_DONE) {
		i->waiting++;
		if (i->c->own)
			say(i, recipient, &stuck->why);
		return MR_OK;
	}
	rc = carry_one(i->c, &i->msg, recipient, &why);
	if (rc == MR_OK) {
		i->arrived++;
		i->c->in_vain = 0;
		return MR_OK;
	}
	say(i, recipient, &why);
	/* A name that is taken over there can be changed: then it goes. */
	if (carry_is_temporary(rc) || rc == MR_EXISTS) {
		i->waiting++;
		i->c->in_vain += rc != MR_EXISTS;
		return note_stuck(i->c, rc == MR_EXISTS ? i->msg.from : recipient, &why, err);
	}
	rc = tell_failed(i, recipient, why.message, err);
	if (rc == MR_OK)
		rc = carry_note_failed(i->c, i->msg.id, recipient, err);
	i->failed += rc == MR_OK;
	i->c->count.failed += rc == MR_OK;
	return rc;
}

static enum mr_rc
settle(struct item *i, enum settle how, struct mr_error *err)
{
	struct mr_room *room = i->c->room;
	enum mr_rc rc = room->driver->queue_settle(room, &i->hold, how, err);

	if (rc == MR_OK)
		rc = office_flush(room, err);
	if (rc == MR_OK)
		for (size_t n = 0; n < i->recipients.n; n++)
			carry_forget(i->c, i->msg.id, i->recipients.v[n]);
	return rc;
}

/* MR_BUSY: it waits, and stays claimed until the others had their turn. */
static enum mr_rc
carry_item(struct item *i, struct mr_error *err)
{
	enum mr_rc rc = MR_OK;

	if (!find_recipients(i, &i->msg.to) || !find_recipients(i, &i->msg.cc))
		return mr_nomem(err);
	if (i->recipients.n == 0) {
		rc = tell_not_here(i, err);
		i->c->count.failed++;
		return rc == MR_OK ? settle(i, SETTLE_DEAD, err) : rc;
	}
	for (size_t n = 0; n < i->recipients.n && rc == MR_OK; n++)
		rc = carry_to(i, i->recipients.v[n], err);
	if (rc != MR_OK)
		return rc;
	if (i->waiting > 0) {
		i->c->count.waiting += i->waiting;
		i->c->own_waits |= i->c->own && strcmp(i->c->own, i->msg.id) == 0;
		return MR_BUSY;
	}
	return settle(i, i->arrived > 0 ? SETTLE_DONE : SETTLE_DEAD, err);
}

static enum mr_rc
take_item(struct carrier *c, const struct hold *hold, struct mr_error *err)
{
	mr_auto(item_done) struct item i = { .c = c, .hold = *hold };
	enum mr_rc rc = c->room->driver->queue_fetch(c->room, c->queue, hold->id, &i.msg, err);

	if (rc == MR_NOTFOUND) { /* purged this very moment */
		*err = (struct mr_error){ 0 };
		return MR_OK;
	}
	if (rc == MR_CORRUPT) { /* nobody can be told; kept with the failed work */
		carrier_trouble(c, err);
		c->count.failed++;
		return settle(&i, SETTLE_DEAD, err);
	}
	return rc == MR_OK ? carry_item(&i, err) : rc;
}

/* ---- Leftovers ---- */

struct leftovers {
	struct carrier *c;
	const struct claims *waiting;
	struct mr_names names;
};

static bool
note_leftover(void *ctx, const char *name)
{
	struct leftovers *l = ctx;

	for (size_t i = 0; i < l->waiting->n; i++)
		if (str_starts(str_of(name), l->waiting->v[i].id))
			return true; /* on its way, not left over */
	return names_add(&l->names, str_of(name));
}

static bool
drop_leftover(void *ctx, const struct queue_item *item)
{
	struct leftovers *l = ctx;
	struct mr_room *room = l->c->room;
	struct mr_error ignored = { 0 };

	for (size_t i = 0; i < l->names.n; i++)
		if (str_starts(str_of(l->names.v[i]), item->id))
			(void)room->driver->record_drop(room, CARRYING_KIND, l->c->link.name, l->names.v[i], &ignored);
	return true;
}

/* Records of what waits are no reason to look through all that was ever carried. Only of what is settled for good: a
 * message that moves from state to state may not be seen in any of them, and without its record it would be delivered
 * again. */
static void
drop_leftovers(struct carrier *c, const struct claims *waiting)
{
	struct leftovers l = { .c = c, .waiting = waiting };
	struct mr_error ignored = { 0 };

	(void)c->room->driver->record_each(c->room, CARRYING_KIND, c->link.name, note_leftover, &l, &ignored);
	if (l.names.n > 0)
		(void)c->room->driver->queue_each(
		    c->room, c->queue, QUEUE_DONE | QUEUE_FAILED, drop_leftover, &l, &ignored);
	mr_names_done(&l.names);
}

/* ---- The queue ---- */

static void
put_back(struct carrier *c, struct claims *waiting)
{
	struct mr_error ignored = { 0 };

	/* Cut off here, they are claimed by a process that is gone: the next carrier puts them back. */
	for (size_t i = 0; i < waiting->n; i++)
		(void)c->room->driver->queue_settle(c->room, &waiting->v[i], SETTLE_BACK, &ignored);
	if (waiting->n > 0)
		(void)office_flush(c->room, &ignored);
	claims_done(waiting);
}

enum mr_rc
carry_out(struct carrier *c, struct mr_error *err)
{
	mr_auto(mr_queue_done) struct mr_queue queue = { 0 };
	struct claims waiting = { 0 };
	struct claim_terms terms = {
		.hold = { .kind = HOLD_PROCESS, .session = "" }, .claimer = OPERATOR, .by_priority = true
	};
	enum mr_rc rc = mr_queue_get(c->room, c->queue, &queue, err);

	if (rc != MR_OK)
		return rc;
	office_queue_sweep(c->room, &queue);
	while (c->in_vain < TRIES_MAX && !(c->own && waiting.n >= SEND_WAITING_MAX)) {
		struct hold hold = { 0 };

		rc = c->room->driver->queue_claim(c->room, c->queue, &terms, &hold, err);
		if (rc != MR_OK)
			break;
		rc = take_item(c, &hold, err);
		if (rc == MR_OK)
			continue;
		if (!claims_add(&waiting, &hold) && rc == MR_BUSY)
			rc = mr_nomem(err);
		if (rc != MR_BUSY)
			break;
	}
	c->own_waits |=
	    c->own && (c->in_vain >= TRIES_MAX || waiting.n >= SEND_WAITING_MAX); /* its turn may be to come */
	if (!(c->own && c->own_waits)) /* else not all that waits was seen: the next carry tidies up */
		drop_leftovers(c, &waiting);
	put_back(c, &waiting);
	if (rc != MR_EMPTY && rc != MR_BUSY)
		return rc;
	*err = (struct mr_error){ 0 };
	return MR_OK;
}
