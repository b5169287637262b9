/* SPDX-License-Identifier: MIT */
/*
 * mail.h - sending, finding, listing, marking, answering and removing mail.
 *
 *	draft.c      makes a message of a draft, and refuses everything that can be refused
 *	send.c       delivers it: one, an answer, many at once (outgoing.h is between the two)
 *	attach.c     attachments: from files into a message, from a message into files
 *	lookup.c     ids and the ends of ids; fetching what an id means
 *	filter.c     does a message pass?       scan.c       going through a mailbox
 *	lint.c       applies the rules of rules/hygiene.h to a message that is sent, and to mail that was sent lately
 *	held.c       claims of agents, on mail and on work
 *	marks.c      marks and the archive; retiring mail that a newer message replaces
 *	answers.c    answers that are due, answers in a folder
 *	notice.c     mail of the post office itself: bounces and other notices
 *	dead.c       dead letters               purge.c      removing a message for good
 *	channel.c    channels
 *
 * May call address, who, types and rules.
 */
#ifndef OFFICE_MAIL_H
#define OFFICE_MAIL_H

#include "base/error.h"
#include "message/query.h"
#include "office/office.h"
#include <regex.h>

/* ---- send.c ---- */

/* mr_send; the fields (enum room_field) in `implied` came from the answered message, not from the sender: those that
 * this room cannot store are left out and not refused. */
enum mr_rc send_draft(struct mr_room *room, const struct mr_self *self, const struct mr_draft *draft, unsigned implied,
    struct mr_receipt *ret, struct mr_error *err);

/* ---- held.c: claims ---- */

struct claims { /* finish with claims_done */
	struct claim *v;
	size_t n, cap;
	bool failed; /* out of memory */
};
bool claims_add(struct claims *c, const struct claim *claim);
void claims_done(struct claims *c);
/* Adds all claims of a box. */
enum mr_rc claims_in(struct mr_room *room, const char *box, struct claims *ret, struct mr_error *err);
/* All claims on work, in every queue. */
enum mr_rc claims_on_work(struct mr_room *room, struct claims *ret, struct mr_error *err);
/* The leases of this life, on its own mail and on work of queues. */
enum mr_rc claims_held(struct mr_room *room, const struct mr_self *self, struct claims *ret, struct mr_error *err);
/* This agent's claims on work of queues whose ids end in `suffix` (NULL: all). */
enum mr_rc claim_held_work(
    struct mr_room *room, const char *agent, const char *suffix, struct claims *ret, struct mr_error *err);
/* Is that claim over: its time is up, its process died, a newer life began, or its holder was pruned? */
bool office_claim_over(struct mr_room *room, const struct claim *claim);
/* The claimed message, as its holder sees it: mail with its headers, work with its body. */
enum mr_rc claim_message(struct mr_room *room, const struct claim *claim, struct mr_message *ret, struct mr_error *err);

/* ---- lookup.c: ids ---- */

/* The folders that mr_resolve_id and mr_fetch search if they get 0. */
#define SHORT_ID_MIN 6

/* The inside of "<id@room>" in lower case, checked to be a full id or the end of one; ret_full says which. */
enum mr_rc lookup_spelling(
    const struct mr_room *room, const char *given, char ret[MR_ID_LEN + 1], bool *ret_full, struct mr_error *err);
bool lookup_is_id(const struct mr_room *room, const char *given); /* spelled like one, or like the end of one */

/* Searching by the end of an id: found_add for each match, then found_one. */
#define FOUND_SHOWN 5
struct found_ids {
	char v[FOUND_SHOWN + 1][MR_ID_LEN + 1]; /* one more than is listed: there are others */
	size_t n;
};
void found_add(struct found_ids *found, const char *id);
/* MR_REFUSED lists them: "several <what> end in ...". n is at least 1. */
enum mr_rc found_one(const struct found_ids *found, const char *what, const char *given, char ret_id[MR_ID_LEN + 1],
    struct mr_error *err);

/* In the agent's own mailbox first, then in everyone's. */
enum mr_rc lookup_anywhere(
    struct mr_room *room, const char *agent, const char *given, char ret_id[MR_ID_LEN + 1], struct mr_error *err);

/* Fetches by a full id an agent's own mail, sent mail included; */
enum mr_rc lookup_own(struct mr_room *room, const char *agent, const char *id, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err);
/* other messages that the agent may see, with text: work that it holds, or a dead letter; false: none; */
bool lookup_elsewhere(struct mr_room *room, const char *agent, const char *id, struct mr_message *ret);
/* any agent's copy, with its headers, if the sender has none. */
enum mr_rc lookup_anyones(struct mr_room *room, const char *id, struct mr_message *ret, struct mr_error *err);
/* The message that is answered: in the agent's mailbox, held by it, or (by its full id) done in a queue. */
enum mr_rc lookup_original(
    struct mr_room *room, const char *agent, const char *given, struct mr_message *ret, struct mr_error *err);
/* A thread by its word or root, or by any message of the agent's in it. */
enum mr_rc lookup_thread(struct mr_room *room, const char *agent, const char *given, struct arena **own,
    const char **ret, struct mr_error *err);
/* The id by which others know a message: our id, or the Message-ID of another program. NULL: out of memory. */
const char *lookup_native_id(const struct mr_room *room, const struct mr_message *msg, struct arena **own);

/* ---- filter.c: does a message pass? ---- */

#define SUCCESSOR_TYPE "HANDOFF"
/* A note to the next life that the agent wrote to itself, by its type or its subject. */
bool successor_is_own(const struct mr_message *msg, const char *agent);

struct matcher { /* finish with matcher_done; borrows the filter, room and agent */
	struct mr_room *room;
	const char *agent;
	const struct mr_filter *filter;
	const char *from;   /* normal form, or NULL */
	const char *thread; /* or NULL */
	char reply_to[MR_ID_LEN + 1];
	const char *reply_to_native; /* its writer's id of the same message, or NULL */
	int64_t since_ms, before_ms; /* of the filter and the query; 0: none */
	struct query query;          /* with names and threads as in this room's messages */
	regex_t regex;
	bool has_regex;
	enum scan_depth depth; /* what must be read to decide */
	bool by_name;          /* with ROOM_NAMES the name decides, except for mail with `look` */
	struct arena *own;
};
/* filter may be NULL. Looks up the thread of a message id, and short ids, in that agent's mailbox. */
enum mr_rc matcher_init(
    struct matcher *m, struct mr_room *room, const char *agent, const struct mr_filter *filter, struct mr_error *err);
/* MR_UNSUPPORTED: an answer to that message would not tell which message it answers. */
enum mr_rc filter_can_tell_answers(struct mr_room *room, const struct mr_message *question, struct mr_error *err);
bool matcher_fits(const struct matcher *m, const struct mr_message *msg);
/* Lets the scan skip messages whose id has a time outside. */
void matcher_span(const struct matcher *m, struct scan_request *want);
void matcher_done(struct matcher *m);

/* ---- scan.c ---- */

/* Up to this number unread mail is opened even if names would do: names of earlier versions do not tell everything. */
#define LOOK_MAX 64
struct candidate {
	char id[MR_ID_LEN + 1];
	enum mr_priority priority; /* as the name tells it, until it was opened */
	enum mr_folder folder;
	int64_t released_ms;     /* 0: it was not */
	bool look;               /* as the name tells it */
	bool handoff;            /* the agent's note to itself: sorts first */
	struct mr_message *copy; /* or NULL: it was not opened yet */
};
struct candidates { /* finish with candidates_done */
	struct candidate *v;
	size_t n, cap;
	bool failed; /* out of memory */
};
bool candidates_add(struct candidates *c, const struct mr_message *msg);
/* Fetches it, and corrects what its name told. MR_NOTFOUND: it was moved, or is not unread any more. */
enum mr_rc candidate_open(struct mr_room *room, const char *agent, struct candidate *c, enum scan_depth depth,
    bool unread_only, struct mr_error *err);
void candidate_close(struct candidate *c);
void candidates_sort(struct candidate *v, size_t n, enum mr_order order);
void candidates_done(struct candidates *c);
/* Puts back expired claims before a look. Best effort: a room that cannot be written can still be read. */
void scan_sweep(struct mr_room *room, const char *agent);

/* ---- marks.c ---- */

/* After `msg` was delivered under that id: marks as seen and archives the agents' unread mail from the same sender with
 * the same replace key and a smaller id. Best effort; returns how many. */
size_t mail_retire(struct mr_room *room, const struct mr_message *msg, const struct mr_names *agents, const char *id);

/* ---- notice.c ---- */

struct office_notice {
	const char *from;
	unsigned life; /* of from; 0: unknown */
	const struct mr_names *to;
	const struct buf *subject, *body;
	const char *type;
	const char *id;  /* NULL: a new one */
	const char *key; /* a notice with the same key is sent once, if the room has keys; or NULL */
	const struct mr_message
	    *about; /* the answered message: thread, priority and references are taken from it; or NULL */
};
/* Durable. MR_OK also when the delivery is in doubt: any later command completes it. */
enum mr_rc notice_deliver(struct mr_room *room, const struct office_notice *notice, struct mr_error *err);

#define BOUNCE_TYPE "bounce"
struct bounce {
	const char *from;   /* the agent that could not do it, or held it last */
	unsigned life;      /* of from; 0: unknown */
	const char *reason; /* "": none given */
	const char *key;    /* the same bounce by several processes is sent once; NULL: not needed */
};
/* Tells the sender of `failed` the reason, durably; the text begins with that sentence. MR_OK also if there is nobody
 * to tell: a bounce never bounces, and no mail goes to a sender that is gone. */
enum mr_rc bounce_deliver(struct mr_room *room, const struct bounce *bounce, const struct mr_message *failed,
    struct mr_error *err, const char *fmt, ...) MR_PRINTF(5, 6);
/* The same for mail that self gave up. An agent does not notify itself. */
enum mr_rc bounce_send(struct mr_room *room, const struct mr_self *self, const struct mr_message *failed,
    const char *reason, const char *key, struct mr_error *err);
/* The sender was an agent and is not any more. */
bool bounce_sender_gone(struct mr_room *room, const struct mr_message *failed);
/* Tells the senders of an agent's unread mail that it is leaving the room, except those that are leaving, too. */
enum mr_rc bounce_unread(struct mr_room *room, const char *agent, const struct mr_names *leaving, struct mr_error *err);
/* References of an answer to `original`: its own and its id, at most 20, the first kept. */
void references_of(struct buf *out, const struct mr_room *room, const struct mr_message *original);

/* ---- answers.c ---- */

enum mr_rc due_put(struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err);
/* The answers that the sender waits for, also those that came meanwhile; or with `overdue` only late ones that did not
 * come, after dropping the settled ones. The others stay until due_drop. */
enum mr_rc due_list(struct mr_room *room, const char *sender, bool overdue, struct mr_dues *ret, struct mr_error *err);
/* Was it never sent, or answered? Opens the mail of the sender. */
bool due_settled(struct mr_room *room, const char *sender, const char *id);
/* Best effort: mr_overdue finds a leftover. */
void due_drop(struct mr_room *room, const char *sender, const char *id);
/* Records where the answer to a sent message is to be put, for mr_answer_wait. */
enum mr_rc answer_expect(
    struct mr_room *room, const char *id, const char *native, const char *dir, struct mr_error *err);

/* ---- dead.c: outcomes of dead letters, kept for mr_why ---- */

struct letter_end {
	const char *again;  /* the id under which it was delivered again; "": dropped */
	const char *by;     /* who did that */
	const char *at;     /* when */
	struct mr_names of; /* owners of these copies, as far as known: agents, "queue:Q" */
};
struct letter_ends { /* finish with mr_list_done */
	void *own;
	struct letter_end *v;
	size_t n;
};
/* Sorted. None: MR_OK. */
enum mr_rc letter_ends(struct mr_room *room, const char *id, struct letter_ends *ret, struct mr_error *err);

/* ---- purge.c ---- */

struct tombstone { /* of a message that was purged; strings live in the record */
	const char *by, *at, *reason;
	bool unfinished; /* the purge was cut off: repeating it completes it */
};
/* False: nothing shows that it was purged. Finish *own with record_done in any case. */
bool tombstone_get(struct mr_room *room, const char *id, struct tombstone *ret, struct record *own);

/* ---- channel.c ---- */

/* After a delivery, for the channels among its targets: removes the oldest posts beyond their limits. Best effort,
 * because the post was accepted. */
void channel_after_delivery(struct mr_room *room, const struct mr_names *targets);

/* ---- lint.c ---- */

/* `original` is the message that msg answers (id "": none). With `keyed` it may be a retry, and earlier mail does not
 * count. Findings are added to ret_warnings, a sentence each; MR_REFUSED if the room refuses. */
enum mr_rc hygiene_check(struct mr_room *room, const struct mr_self *self, const struct mr_message *msg,
    const struct mr_message *original, bool keyed, struct mr_names *ret_warnings, struct mr_error *err);

#endif
