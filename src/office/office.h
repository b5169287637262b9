/* SPDX-License-Identifier: MIT */
/*
 * office.h - what the files of the post office share. All policy is here: who gets a message, what may be
 * sent, in which order work is handed out. A room is reached only through the slots of its driver; where a
 * slot is NULL or an ability is missing the office says so (office_lacks), never the driver.
 */
#ifndef OFFICE_OFFICE_H
#define OFFICE_OFFICE_H

#include "base/buf.h"
#include "base/sys.h"
#include "room/room.h"
#include "mailroom-hooks.h"
#include "mailroom-town.h"
#include <regex.h>

#define OPERATOR "operator"

/* data.c: mr_room_options.data_dir with absolute paths; NULL where none was given. Borrowed. */
const char *office_data_dirs(struct mr_room *room);

/* ---- state.c: may this self act ---- */

/* MR_UNSUPPORTED: "a teams room has no <what>". */
enum mr_rc office_lacks(const struct mr_room *room, const char *what, struct mr_error *err);
/* MR_REFUSED when a newer life of the agent exists. A self without a life (0) is never fenced. */
enum mr_rc office_not_fenced(struct mr_room *room, const struct mr_self *self, struct mr_error *err);
/* Does this room know lives? The rooms of other programs do not: there nobody is fenced, gone or live. */
bool office_has_lives(const struct mr_room *room);
/* An agent as its people write it: in the rooms of other programs "Old Bob" where the address is Old%20Bob. */
void office_name(const struct mr_room *room, const char *address, struct buf *out);
/* Do several users share it (Share: group)? Then what lies in it may be another user's work. */
bool office_shares_room(const struct mr_room *room);
/* Of these folders those that this kind of room has; in some, what was read lies in one although there is no archive.
 */
unsigned office_folders(const struct mr_room *room, unsigned folders);
/* A scan of a mailbox that nobody made: empty where such a one is, MR_NOTFOUND elsewhere. */
enum mr_rc office_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn,
    void *ctx, struct mr_error *err);
/* driver->flush, where there is one. */
enum mr_rc office_flush(struct mr_room *room, struct mr_error *err);

/* relief.c: in between, on a full disk, the room's reserve may be used.
 *
 *	mr_auto(relief_end) struct relief relief = { 0 };
 *	relief_begin(&relief, room);
 */
struct relief {
	struct sys_relief how; /* its ctx is the room; NULL: not begun */
	const struct sys_relief *before;
};
void relief_begin(struct relief *r, struct mr_room *room);
void relief_end(struct relief *r);

/* After `msg` was delivered under that id: the agents' unread mail from the same sender with the same replace
 * key and a smaller id is marked seen and archived. Best effort; says how many. */
size_t state_retire(struct mr_room *room, const struct mr_message *msg, const struct mr_names *agents, const char *id);

/* ---- agent.c ---- */

/* MR_NOTFOUND: nobody registered that name. */
enum mr_rc agent_exists(struct mr_room *room, const char *name, struct mr_error *err);
/* The address that a person means, or that a message has, in a room where names are spelled in other letters or looked
 * up. It need not exist. */
enum mr_rc agent_spelled(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);

/* ---- send.c ---- */

/* mr_send; the fields (enum room_field) in `implied` came from the message that it answers, not from the sender: what
 * of them this room cannot hold is left out and not refused. */
enum mr_rc send_draft(struct mr_room *room, const struct mr_self *self, const struct mr_draft *draft, unsigned implied,
    struct mr_receipt *ret, struct mr_error *err);

/* ---- fields.c ---- */

/* Can this room hold what the draft asks for in `msg`, which was composed from it? MR_UNSUPPORTED. */
enum mr_rc fields_check(
    struct mr_room *room, const struct mr_draft *draft, unsigned implied, struct mr_message *msg, struct mr_error *err);

/* ---- answer.c ---- */

/* Remembers where the answer to a sent message shall be put, for mr_answer_wait. */
enum mr_rc answer_expect(
    struct mr_room *room, const char *id, const char *spoken, const char *dir, struct mr_error *err);

/* ---- lookup.c: ids ---- */

/* Where mr_resolve_id and mr_fetch look when they are told 0. */
#define ALL_FOLDERS ((unsigned)(MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT))
#define SHORT_ID_MIN 6

/* The inside of "<id@room>" in lower case, checked to be a full id or the end of one; ret_full says which. */
enum mr_rc lookup_spelling(
    const struct mr_room *room, const char *given, char ret[MR_ID_LEN + 1], bool *ret_full, struct mr_error *err);
/* In the agent's own mailbox first, then in everyone's. */
enum mr_rc lookup_anywhere(
    struct mr_room *room, const char *agent, const char *given, char ret_id[MR_ID_LEN + 1], struct mr_error *err);

/* Anybody's copy, with its headers, where the sender has none: by its full id. MR_NOTFOUND. */
enum mr_rc lookup_anyones(struct mr_room *room, const char *id, struct mr_message *ret, struct mr_error *err);

/* From a queue: work that is in this agent's hands, by its full id. MR_NOTFOUND. */
enum mr_rc lookup_claimed(
    struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err);
/* What is being answered: in the agent's mailbox, in its hands, or (by its full id) done in a queue. */
enum mr_rc lookup_original(
    struct mr_room *room, const char *agent, const char *given, struct mr_message *ret, struct mr_error *err);

/* What others call a message: our id, or the Message-ID that another program gave it. NULL: out of memory. */
const char *lookup_spoken_id(const struct mr_room *room, const struct mr_message *msg, struct arena **own);

/* ---- filter.c: does a message pass ---- */

struct matcher { /* finish with matcher_done; borrows the filter, room and agent */
	struct mr_room *room;
	const char *agent;
	const struct mr_filter *filter;
	const char *from;     /* normal form, or NULL */
	struct mr_str thread; /* empty: any */
	char reply_to[MR_ID_LEN + 1];
	const char *reply_to_spoken; /* the same message as its writer calls it, or NULL */
	struct mr_names words;       /* lower case */
	regex_t regex;
	bool has_regex;
	enum scan_depth depth; /* what must be read to decide */
	struct arena *own;
};
/* filter may be NULL. Looks up the thread of a message id, and short ids, in that agent's mailbox. */
enum mr_rc matcher_init(
    struct matcher *m, struct mr_room *room, const char *agent, const struct mr_filter *filter, struct mr_error *err);
/* MR_UNSUPPORTED: an answer to that message would not say what it answers. */
enum mr_rc filter_can_tell_answers(struct mr_room *room, const struct mr_message *question, struct mr_error *err);
bool matcher_fits(const struct matcher *m, const struct mr_message *msg);
void matcher_done(struct matcher *m);

/* ---- scan.c ---- */

struct candidate {
	char id[MR_ID_LEN + 1];
	enum mr_priority priority;
	enum mr_folder folder;
	int64_t released_ms;     /* 0: it was not */
	bool handoff;            /* what the agent wrote to itself: before everything else */
	struct mr_message *copy; /* or NULL: it is fetched when its turn comes */
};
struct candidates { /* finish with candidates_done */
	struct candidate *v;
	size_t n, cap;
	bool failed; /* out of memory */
};
bool candidates_add(struct candidates *c, const struct mr_message *msg);
void candidates_sort(struct candidates *c, enum mr_order order);
void candidates_done(struct candidates *c);
/* Puts back what expired before anyone looks. Best effort: a room that cannot be written can still be read.
 */
void scan_sweep(struct mr_room *room, const char *agent);
/* Is there any message, by names alone? For whoever is about to say that there is none: see scan.c. */
bool scan_finds_names(struct mr_room *room, const char *agent, unsigned folders, bool unread_only);

/* ---- bounce.c ---- */

struct bounce {
	const char *from;   /* who could not do it, or held it last */
	unsigned life;      /* of from; 0: unknown */
	const char *story;  /* a sentence */
	const char *reason; /* "": none given */
	const char
	    *key; /* tells one bounce from another, so that several who send it send one; NULL: does not matter */
};
/* Tells the sender of `failed` why, durably. MR_OK also when there is nobody to tell: a bounce never bounces, and
 * a sender that is gone is not written to. */
enum mr_rc bounce_deliver(
    struct mr_room *room, const struct bounce *bounce, const struct mr_message *failed, struct mr_error *err);
/* The same for mail that self gave up. Nobody writes to itself that it failed. */
enum mr_rc bounce_send(struct mr_room *room, const struct mr_self *self, const struct mr_message *failed,
    const char *reason, const char *key, struct mr_error *err);
#define BOUNCE_TYPE "bounce"
/* The sender was an agent and is none any more. */
bool bounce_sender_gone(struct mr_room *room, const struct mr_message *failed);
/* Tells the senders of an agent's unread mail that it is leaving the room; but not those who are leaving, too. */
enum mr_rc bounce_unread(struct mr_room *room, const char *agent, const struct mr_names *leaving, struct mr_error *err);
/* References of an answer to `original`: its own and its id, at most 20, the first kept. */
void references_of(struct buf *out, const struct mr_room *room, const struct mr_message *original);

/* ---- why.c: what became of dead letters, kept for whoever asks why ---- */

struct letter_end {
	const char *again;  /* the id under which it was delivered again; "": dropped */
	const char *by;     /* who did that */
	const char *at;     /* when; letter_note_end takes the time itself */
	struct mr_names of; /* whose copies these were, as far as that is known: agents, "queue:Q" */
};
typedef void letter_end_fn(void *ctx, const struct letter_end *end);
/* In order. None: MR_OK. */
enum mr_rc letter_ends(struct mr_room *room, const char *id, letter_end_fn *fn, void *ctx, struct mr_error *err);
/* Durable. Noting the same retry twice notes it once. */
enum mr_rc letter_note_end(struct mr_room *room, const char *id, const struct letter_end *end, struct mr_error *err);

/* ---- purge.c ---- */

struct tombstone { /* of a message that was purged; strings live in the record */
	const char *by, *at, *reason;
	bool unfinished; /* the purge was cut off: repeating it completes it */
};
/* MR_NOTFOUND: it was not purged. *own is finished with record_done, also on failure. */
enum mr_rc tombstone_get(
    struct mr_room *room, const char *id, struct tombstone *ret, struct record *own, struct mr_error *err);

/* ---- due.c ---- */

enum mr_rc due_put(struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err);
/* Tells those that are overdue, and forgets none of them: that is due_drop, once they were told. */
enum mr_rc due_each(struct mr_room *room, const char *sender, mr_due_fn *fn, void *ctx, struct mr_error *err);
/* Best effort: a leftover is found out by mr_overdue. */
void due_drop(struct mr_room *room, const char *sender, const char *id);

/* ---- settings.c: records of the room ---- */

/* The names of all records of that kind and owner; the driver has record_each. */
enum mr_rc office_records(
    struct mr_room *room, const char *kind, const char *owner, struct mr_names *ret, struct mr_error *err);
/* The lines of one; the driver has record_get. MR_NOTFOUND, MR_CORRUPT. */
enum mr_rc office_record(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct record *ret, struct mr_error *err);

/* ---- settings.c: the records behind queues and channels; kind is "queue" or "channel" ---- */

/* The name without its prefix, checked. ret has room for MR_ADDRESS_MAX + 1. */
enum mr_rc settings_name(const char *kind, const char *given, char *ret, struct mr_error *err);
/* MR_NOTFOUND comes with near names. */
enum mr_rc settings_load(
    struct mr_room *room, const char *kind, const char *name, struct record *ret, struct mr_error *err);
enum mr_rc settings_names(struct mr_room *room, const char *kind, struct mr_names *ret, struct mr_error *err);
/* Adds Created: and Created-By: to the lines and takes the name. MR_EXISTS. */
enum mr_rc settings_create(
    struct mr_room *room, const char *kind, const char *name, const char *by, struct buf *lines, struct mr_error *err);
struct settings_edit {
	enum { SETTINGS_SET /* the only line of that field */, SETTINGS_ADD, SETTINGS_REMOVE } how;
	const char *field, *value;
};
/* *ret_changed (may be NULL) is false when it was so already. */
enum mr_rc settings_change(struct mr_room *room, const char *kind, const char *name, struct settings_edit edit,
    bool *ret_changed, struct mr_error *err);

/* ---- queue.c, queue_recv.c ---- */

#define LEASE_MAX_MS ((int64_t)366 * 24 * 3600 * 1000)
enum mr_rc office_queue_able(const struct mr_room *room, struct mr_error *err); /* MR_UNSUPPORTED */
/* May this agent claim? "*" is everybody; else whole parts of the address, also by its short spelling. */
bool office_lets_claim(const char *claimers, const char *agent);
/* Ends the claims that are over: back to ready, or failed, after its sender was told, when all attempts are used
 * up. Best effort. */
void office_queue_sweep(struct mr_room *room, const struct mr_queue *queue);
/* The same for the claims of one agent in all queues; says how many are ready again. With dry_run: how many would
 * be if the agent were gone. */
size_t office_return_work(struct mr_room *room, const char *agent, bool dry_run);
/* Is that claim over: its time is up, its process died, a newer life began, or its holder was pruned? */
bool office_claim_over(struct mr_room *room, const struct hold *hold);

struct claims { /* finish with claims_done */
	struct hold *v;
	size_t n, cap;
	bool failed; /* out of memory */
};
bool claims_add(struct claims *c, const struct hold *hold);
void claims_done(struct claims *c);

/* ---- claim.c, claim_find.c ---- */

enum mr_rc claim_able(const struct mr_room *room, struct mr_error *err); /* MR_UNSUPPORTED */
/* `what` is a token, or the end of an id. MR_REFUSED: another's or an older life's; MR_NOTFOUND: it is over. */
enum mr_rc claim_find(
    struct mr_room *room, const struct mr_self *self, const char *what, struct hold *ret, struct mr_error *err);
/* The process, if one is known: while it lives the lease does not run out. */
void claim_describe_holder(struct mr_room *room, const struct mr_self *self, struct hold_terms *terms);
void claim_fill(const struct hold *hold, struct mr_claim *ret);
/* The claims on work of queues that are in this agent's hands and whose ids end so (NULL: all). */
enum mr_rc claim_held_work(
    struct mr_room *room, const char *agent, const char *suffix, struct claims *ret, struct mr_error *err);

/* ---- retention.c ---- */

/* After a delivery, for the channels among its targets: what their limits let go, goes. Best effort: the post was
 * accepted. */
void retention_after_delivery(struct mr_room *room, const struct mr_names *targets);

#endif
