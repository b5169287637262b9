/* SPDX-License-Identifier: MIT */
/*
 * link.h - links to other rooms, and carrying mail over them exactly once (docs/CARRYING.md).
 *
 *	link.c            the record of a link: making, listing, removing; AGENT@LINK as a recipient
 *	link_names.c      which name an agent of this room has over there, and the mailbox that stands for it
 *	carry.c           one link, both ways; shared parts of both; notices to senders; mail that was removed unread
 *	carry_out.c       the queue of outgoing mail: one message to one recipient, each step durable before the next
 *	carry_in.c        the mailboxes that stand for agents of this room over there, and their mail in our threads
 *	correspondence.c  which message here is which one there
 *	translate.c       a message as another kind of room can hold it
 *	export.c, export_names.c   all mail of a room into another, and agents of one as agents of the other
 *
 * May call address, who, mail, work, rules and types. Sending and resolving, which are in lower folders, call it
 * through struct linked_rooms.
 */
#ifndef OFFICE_LINK_H
#define OFFICE_LINK_H

#include "office/address/address.h"

#define LINK_KIND "link"          /* records: the links themselves */
#define CARRYING_KIND "carrying"  /* of a link: the progress of a message to one recipient */
#define CARRIED_KIND "carried"    /* of a link: the newest messages of two correspondents */
#define KNOWN_KIND "known"        /* of a link: the agents that were seen there, a line each */
#define LINK_QUEUE_PREFIX "link-" /* their outgoing mail waits in such a queue */
#define LINK_CLAIMERS "@carry"    /* no agent has that name */

/* AGENT@LINK has at most MR_ADDRESS_MAX bytes, like every address. */

/* ---- link.c ---- */

/* MR_UNSUPPORTED: this kind of room cannot have links. */
enum mr_rc link_able(const struct mr_room *room, struct mr_error *err);
struct room_box link_box(const char *name); /* "queue:link-NAME", where its outgoing mail waits */
/* "queue:link-NAME" -> NAME; NULL: another target. */
const char *link_of_target(const char *target);
/* Mail that waits there: how many messages, and since when (0: none). Best effort. */
size_t link_waiting(struct mr_room *room, const char *name, int64_t *ret_since_ms);
/* Opens the other room, if the user's configuration allows it. MR_REFUSED: it does not; the hint is the line to type.
 * MR_NOTFOUND: the room is gone. */
enum mr_rc link_open(struct mr_room *room, const struct mr_link *link, struct mr_room **ret, struct mr_error *err);
void link_close(struct mr_room **there); /* for mr_auto */
/* Records the agents of that room, for the time when the room is away. Best effort. */
void link_remember(struct mr_room *room, struct mr_room *there, const char *link);
/* Makes a link of the lines; its strings are moved from them. MR_CORRUPT. */
enum mr_rc link_parse(struct record *lines, const char *name, struct mr_link *ret, struct mr_error *err);

extern const struct linked_rooms linked_rooms; /* of every room that is open for use */

/* ---- link_names.c ---- */

const char *link_foreign_of(const struct mr_link *link, const char *local); /* NULL: unknown in the other room */
const char *link_local_of(const struct mr_link *link, const char *foreign); /* NULL: no agent of this room */
/* The name under which `local` writes there; a new name is entered in the table and gets a mailbox. */
enum mr_rc link_proxy(struct mr_room *room, struct mr_room *there, const char *link, const char *local,
    char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);
/* May the carrier use that mailbox in the other room? Only one that this link made for `local`, or that the user's
 * configuration lets it adopt. The table of names is in this room and proves nothing; the mark is in the other room.
 * MR_EXISTS: it belongs to another agent. MR_NOTFOUND: there is no such mailbox. */
enum mr_rc link_is_stand_in(struct mr_room *room, struct mr_room *there, const char *link, const char *local,
    const char *foreign, struct mr_error *err);
/* The same for a caller that has not opened the other room; of one that is away nothing else is known. */
bool link_is_marked(struct mr_room *room, const struct mr_link *link, const struct mr_link_name *name);
/* For an agent of this room that is gone, when no record of its mail is left: removes its name, and its mailbox there
 * if nothing in it is unread. Best effort. */
void link_forget_name(struct mr_room *room, struct mr_room *there, const struct mr_link *link, const char *local);
/* The ids of its unread mail there, in those folders. */
enum mr_rc link_unread(
    struct mr_room *there, const char *name, unsigned folders, struct mr_names *ret, struct mr_error *err);
/* MR_NOTFOUND: it has no mailbox there. */
enum mr_rc link_lives_there(struct mr_room *there, const char *name, struct mr_error *err);

/* ---- carry.c ---- */

struct stuck { /* an agent that cannot send or receive there now */
	char name[MR_ADDRESS_MAX + 1];
	struct mr_error why;
};
struct carrier { /* one link under way */
	struct mr_room *room, *there;
	struct mr_link link;
	struct room_box box; /* of the waiting mail */
	const char *own;     /* NULL, or the only message that the caller asks about */
	bool own_waits;
	mr_carry_trouble_fn *trouble;
	void *ctx;
	struct mr_carried count;
	struct stuck *stuck;
	size_t stuck_n, stuck_cap;
	size_t in_vain;                  /* failed recipients in a row */
	struct mr_names talking, silent; /* agents of this room with a correspondence; agents that had one until now */
};
void carrier_trouble(const struct carrier *c, struct mr_error *err);
/* Carries the waiting mail, and reports only on the message `id`: does it still wait? */
enum mr_rc carry_after_send(struct mr_room *room, const char *link, const char *id, mr_carry_trouble_fn *trouble,
    void *ctx, bool *ret_waits, struct mr_error *err);
/* The target of mail for an address: an agent of this room, or the queue of its link. MR_NOTFOUND: no such link. */
enum mr_rc carry_target(struct mr_room *room, const char *address, struct room_box *ret, struct mr_error *err);
/* The message for the other side, from `from`, with every name as it is known there, the trail of rooms that carried
 * it, and a new id; without thread and answered message. MR_REFUSED: it goes in circles. */
enum carry_way { CARRY_WAY_OUT, CARRY_WAY_IN };
enum mr_rc carry_compose(const struct carrier *c, enum carry_way way, const struct mr_message *msg, const char *from,
    struct mr_message *ret, struct arena **own, struct mr_error *err);

enum mr_rc carry_out(struct carrier *c, struct mr_error *err);
enum mr_rc carry_in(struct carrier *c, struct mr_error *err);

struct notice {             /* tells a sender what happened to its mail; finish with notice_done */
	const char *from;   /* the sender of the notice */
	const char *to;     /* the sender of the mail: an agent, or AGENT@LINK */
	const char *reason; /* "": none */
	struct buf story;   /* what happened, a sentence */
	struct buf advice;  /* what to do, a sentence */
	struct buf key;     /* a notice with the same key is sent once */
};
void notice_done(struct notice *n);
/* `about` has its text if that is to be sent back. MR_OK also if there is nobody to tell: for a notice about a notice,
 * or a sender that is gone. */
enum mr_rc notice_send(
    struct mr_room *room, const struct notice *n, const struct mr_message *about, struct mr_error *err);

/* ---- correspondence.c ---- */

enum carried_state {
	CARRIED_SENT, /* delivered there, not known to be read */
	CARRIED_READ,
	CARRIED_LOST, /* removed unread, and the sender was told */
	CARRIED_GOT,  /* came from there */
};
struct carried_line { /* one message, its ids here and there */
	enum carried_state state;
	bool answered;
	const char *id, *thread;          /* here */
	const char *there, *there_thread; /* in the other room */
	const char *native;               /* that room's name for it, if that is not its id; "" */
	char subject[17];                 /* hash of its subject without "Re:" */
};
struct correspondence { /* of two correspondents, oldest first; finish with correspondence_done */
	const char *local, *foreign;
	struct carried_line *v;
	size_t n;
	struct arena *own;
};
void correspondence_done(struct correspondence *m);
/* No record: MR_OK, n is 0. */
enum mr_rc correspondence_load(struct mr_room *room, const char *link, const char *local, const char *foreign,
    struct correspondence *ret, struct mr_error *err);
/* Calls fn for every pair of this link. */
typedef enum mr_rc correspondence_fn(void *ctx, const struct correspondence *m, struct mr_error *err);
enum mr_rc correspondence_each(
    struct mr_room *room, const char *link, correspondence_fn *fn, void *ctx, struct mr_error *err);
/* Finds the line of the message with like->id here, or, if that is NULL, of the message like->there of the other room
 * that was written to or by `local`: in the conversation of the two, else in any over this link. The line is in *ret;
 * NULL: there is none. */
enum mr_rc correspondence_find(struct mr_room *room, const char *link, const char *local, const char *foreign,
    const struct carried_line *like, struct correspondence *ret, const struct carried_line **ret_line,
    struct mr_error *err);
/* Adds the line, or replaces the one of the same message. `answers`: the id of the message here that it answers, or "";
 * that message is marked as answered and read. */
enum mr_rc correspondence_note(struct mr_room *room, const char *link, const char *local, const char *foreign,
    const struct carried_line *line, const char *answers, struct mr_error *err);
/* May it be dropped, by its lines and by what is unread in the mailbox there that stands for `local`? */
bool correspondence_may_end(const struct correspondence *m, const struct mr_names *unread_there);
/* False: it is still needed, or cannot be removed. */
bool correspondence_forget(struct mr_room *room, const char *link, const struct correspondence *m);
const struct carried_line *correspondence_by_id(const struct correspondence *m, const char *id);
const struct carried_line *correspondence_by_there(const struct correspondence *m, const char *native);
void correspondence_subject(const char *subject, char ret[17]);
/* What is known of a message of `from` to AGENT@LINK: "carried", "read" or "vanished", with a sentence. NULL:
 * nothing. */
const char *correspondence_evidence(
    struct mr_room *room, const char *from, const char *address, const char *id, struct buf *evidence);

/* ---- translate.c ---- */

struct translated {            /* finish with translated_done */
	struct mr_message msg; /* borrows from the original and from `own` */
	struct arena *own;
};
/* A message in the form that another kind of room can store, for every way of taking mail from room to room. Fields
 * that the other format lacks are stated at the end of the body, after a line "-- ", as header lines ("Priority:
 * urgent"). A body that is a control message of some program (a JSON object with a "type") becomes prose: mail is data,
 * and a stranger's mail is no command. `msg` has its names in the other room's spelling already. The same message
 * always gives the same result, because a repeated delivery with a key must have the same content. */
enum mr_rc translate(struct mr_room *to, const struct mr_message *msg, struct translated *ret, struct mr_error *err);
void translated_done(struct translated *t);

#endif
