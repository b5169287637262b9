/* SPDX-License-Identifier: MIT */
/*
 * link.h - what the files of links and carrying share.
 *
 *	link.c           the record of a link: making, listing, removing
 *	link_names.c     who of us is called what over there, and the mailbox that stands for him
 *	link_address.c   AGENT@LINK as a recipient
 *	carry.c          one link, both ways
 *	carry_out.c      the queue of outgoing mail, one message after the other
 *	carry_one.c      one message to one recipient over there, exactly once
 *	carry_plan.c     how far it is
 *	carry_in.c       the mailboxes that stand for us over there
 *	carry_place.c    which message of ours one of theirs answers
 *	carry_memory.c   which message here is which one there: threads
 *	carry_notice.c   telling a sender what became of his mail
 *	carry_lost.c     mail that is gone over there before anybody read it
 */
#ifndef OFFICE_LINK_H
#define OFFICE_LINK_H

#include "office/address/resolve.h"

#define LINK_KIND "link"          /* records: the links themselves */
#define CARRYING_KIND "carrying"  /* of a link: how far a message is on its way to one recipient */
#define CARRIED_KIND "carried"    /* of a link: the newest messages of two correspondents */
#define LINK_QUEUE_PREFIX "link-" /* their outgoing mail waits in such a queue */
#define LINK_CLAIMERS "@carry"    /* no agent is called so */

/* AGENT@LINK has at most MR_ADDRESS_MAX bytes, like every address. */

/* ---- link.c ---- */

/* MR_UNSUPPORTED: this kind of room can have no links. */
enum mr_rc link_able(const struct mr_room *room, struct mr_error *err);
bool link_exists(struct mr_room *room, const char *name);
void link_queue_of(const char *name, char ret[MR_NAME_MAX + 1]);
/* "queue:link-NAME" -> NAME; NULL: it is none. */
const char *link_of_target(const char *target);
/* Does the user's configuration let this room exchange mail with that one? MR_REFUSED, with what to type. */
enum mr_rc link_allowed(struct mr_room *room, const struct mr_link *link, struct mr_error *err);
/* Opens the other room, if it is allowed. MR_NOTFOUND: it is not there any more. */
enum mr_rc link_open(struct mr_room *room, const struct mr_link *link, struct mr_room **ret, struct mr_error *err);

/* ---- link_names.c ---- */

const char *link_foreign_of(const struct mr_link *link, const char *local); /* NULL: not known over there */
const char *link_local_of(const struct mr_link *link, const char *foreign); /* NULL: none of us */
/* The name under which `local` writes over there; entered in the table and given a mailbox when it is new. */
enum mr_rc link_proxy(struct mr_room *room, struct mr_room *there, const char *link, const char *local,
    char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);

/* May the carrier use that mailbox over there? Only one that this link made for `local`, or that the user's
 * configuration lets it adopt. The table of names lies in this room and proves nothing; the mark lies over there.
 * MR_EXISTS: it is somebody's. MR_NOTFOUND: there is no such mailbox. */
enum mr_rc link_is_stand_in(struct mr_room *room, struct mr_room *there, const char *link, const char *local,
    const char *foreign, struct mr_error *err);
/* The same for a door that has not opened the other room. */
bool link_is_marked(struct mr_room *room, const struct mr_link *link, const struct mr_link_name *name);

/* Has he a mailbox there? MR_NOTFOUND: no. */
enum mr_rc link_lives_there(struct mr_room *there, const char *name, struct mr_error *err);

/* ---- link_address.c ---- */

/* `agent` is what stands before the last @, as it was written. */
enum mr_rc link_resolve(struct resolver *r, struct mr_str agent, struct mr_str link, struct mr_error *err);
/* Makes the mailboxes of recipients over there that have none (--hold). */
enum mr_rc link_hold(struct mr_room *room, const struct mr_names *away, struct mr_error *err);
/* After a send: carries what it put into the queues of links, and shows the recipients instead of the queues. What did
 * not work is a sentence in `trouble`, never an error: the mail is stored. */
void link_after_delivery(struct mr_room *room, const char *id, struct mr_names *targets, const struct mr_names *to,
    const struct mr_names *cc, struct mr_names *trouble);

/* ---- carry.c ---- */

struct stuck { /* who cannot write there now, or be written to */
	char name[MR_ADDRESS_MAX + 1];
	struct mr_error why;
};
struct carrier { /* one link under way */
	struct mr_room *room, *there;
	struct mr_link link;
	char queue[MR_NAME_MAX + 1];
	const char *own; /* NULL, or the only message of which the caller wants to hear */
	bool own_waits;
	mr_carry_trouble_fn *trouble;
	void *ctx;
	struct mr_carried count;
	struct stuck *stuck;
	size_t stuck_n, in_vain; /* recipients one after the other */
};
void carrier_trouble(const struct carrier *c, struct mr_error *err);
/* Carries what waits to go out, and tells only of the message `id`: does it still wait? */
enum mr_rc carry_after_send(struct mr_room *room, const char *link, const char *id, mr_carry_trouble_fn *trouble,
    void *ctx, bool *ret_waits, struct mr_error *err);
/* Where mail for somebody goes: an agent of this room, or the queue of his link. MR_NOTFOUND: no such link. */
enum mr_rc carry_target(struct mr_room *room, const char *address, char ret[MR_ADDRESS_MAX + 8], struct mr_error *err);
/* Trying again later may help, and the sender need not know. */
bool carry_is_temporary(enum mr_rc rc);
/* Gives `ret` the extra headers of a message, and the trail of rooms that it was carried through, with this step.
 * MR_REFUSED: it goes in circles. */
enum mr_rc carry_headers(const struct mr_message *msg, const char *step, struct mr_room *to, struct mr_message *ret,
    struct arena **own, struct mr_error *err);

/* ---- carry_out.c, carry_one.c, carry_plan.c, carry_in.c, carry_lost.c ---- */

enum mr_rc carry_out(struct carrier *c, struct mr_error *err);
/* One message of the queue to one recipient, AGENT@LINK, as far as it is not there. MR_EXISTS and what is temporary:
 * it waits. Anything else: it can never arrive. */
enum mr_rc carry_one(struct carrier *c, const struct mr_message *msg, const char *recipient, struct mr_error *err);
/* Was it delivered to him, or was he found to be unable to get it? */
enum carry_state { CARRY_NEW, CARRY_ON_THE_WAY, CARRY_DONE, CARRY_FAILED };
enum mr_rc carry_state(
    struct carrier *c, const char *id, const char *recipient, enum carry_state *ret, struct mr_error *err);
enum mr_rc carry_note_failed(struct carrier *c, const char *id, const char *recipient, struct mr_error *err);
void carry_forget(struct carrier *c, const char *id, const char *recipient);
enum mr_rc carry_in(struct carrier *c, struct mr_error *err);
/* `there` NULL: the whole room is gone. */
enum mr_rc carry_lost(struct carrier *c, struct mr_error *err);

/* ---- carry_memory.c ---- */

enum carried_state {
	CARRIED_SENT, /* delivered over there, not known to be read */
	CARRIED_READ,
	CARRIED_LOST, /* gone unread, and the sender knows */
	CARRIED_GOT,  /* came from there */
};
struct carried_line { /* one message: here and there */
	enum carried_state state;
	bool answered;
	const char *id, *thread;          /* here */
	const char *there, *there_thread; /* over there */
	const char *spoken;               /* what that room calls it, where that is not its id; "" */
	char subject[17];                 /* hash of its subject without "Re:" */
};
struct memory { /* of two correspondents, oldest first; finish with memory_done */
	const char *local, *foreign;
	struct carried_line *v;
	size_t n;
	struct arena *own;
};
void memory_done(struct memory *m);
/* Nothing is remembered: MR_OK, n is 0. */
enum mr_rc memory_load(struct mr_room *room, const char *link, const char *local, const char *foreign,
    struct memory *ret, struct mr_error *err);
/* Every pair of this link. */
typedef enum mr_rc memory_fn(void *ctx, const struct memory *m, struct mr_error *err);
enum mr_rc memory_each(struct mr_room *room, const char *link, memory_fn *fn, void *ctx, struct mr_error *err);
/* Adds the line, or replaces the one of the same message. `answers`: the id of the message here that it answers, or
 * "": that one is answered, and read. */
enum mr_rc memory_note(struct mr_room *room, const char *link, const char *local, const char *foreign,
    const struct carried_line *line, const char *answers, struct mr_error *err);
const struct carried_line *memory_by_id(const struct memory *m, const char *id);
const struct carried_line *memory_by_there(const struct memory *m, const char *spoken);
void memory_subject(const char *subject, char ret[17]);
/* What is known of a message of `from` to AGENT@LINK: "carried", "read" or "vanished", with a sentence. NULL: nothing.
 */
const char *memory_evidence(
    struct mr_room *room, const char *from, const char *address, const char *id, struct buf *evidence);

/* ---- carry_notice.c ---- */

struct notice {
	const char *from;   /* in whose name */
	const char *to;     /* who sent it: an agent, or AGENT@LINK */
	const char *story;  /* what happened, a sentence */
	const char *reason; /* "": none */
	const char *advice; /* what to do, a sentence */
	const char *key;    /* the same notice is sent once */
};
/* `about` has its text if it is to be sent back. MR_OK also when there is nobody to tell: a notice about a notice, a
 * sender who is gone. */
enum mr_rc notice_send(
    struct mr_room *room, const struct notice *notice, const struct mr_message *about, struct mr_error *err);

#endif
