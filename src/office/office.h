/* SPDX-License-Identifier: MIT */
/*
 * office.h - what the files of the post office share. All policy is here: who gets a message, what may be
 * sent, in which order work is handed out. A room is reached only through the slots of its driver; where a
 * slot is NULL or an ability is missing the office says so (office_lacks), never the driver.
 */
#ifndef OFFICE_OFFICE_H
#define OFFICE_OFFICE_H

#include "base/buf.h"
#include "room/room.h"
#include <regex.h>

#define OPERATOR "operator"

/* ---- state.c: may this self act ---- */

/* MR_UNSUPPORTED: "a teams room has no <what>". */
enum mr_rc office_lacks(const struct mr_room *room, const char *what, struct mr_error *err);
/* MR_REFUSED when a newer life of the agent exists. A self without a life (0) is never fenced. */
enum mr_rc office_not_fenced(struct mr_room *room, const struct mr_self *self, struct mr_error *err);
/* driver->flush, where there is one. */
enum mr_rc office_flush(struct mr_room *room, struct mr_error *err);

/* After `msg` was delivered under that id: the agents' unread mail from the same sender with the same replace
 * key and a smaller id is marked seen and archived. Best effort; says how many. */
size_t state_retire(
    struct mr_room *room, const struct mr_message *msg, const struct mr_names *agents, const char *id);

/* ---- recipients.c: from addresses to agents ---- */

struct recipients {               /* finish with recipients_done */
	struct mr_names to, cc;   /* agents, nobody twice, also not across the two */
	struct mr_names all;      /* both, in order */
	struct mr_names not_live; /* of all: whose life is gone or who never lived; never the operator */
	bool missing;             /* some have no mailbox yet: it is to be made (--hold) */
};
/* `hold` (or the room's Unknown-Recipients: hold) lets unknown names through. */
enum mr_rc recipients_resolve(struct mr_room *room, const char *sender, const char *const *to,
    const char *const *cc, bool hold, struct recipients *ret, struct mr_error *err);
void recipients_done(struct recipients *r);

/* ---- lookup.c: ids ---- */

/* Where mr_resolve_id and mr_fetch look when they are told 0. */
#define ALL_FOLDERS ((unsigned)(MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT))
#define SHORT_ID_MIN 6

/* The inside of "<id@room>" in lower case, checked to be a full id or the end of one; ret_full says which. */
enum mr_rc lookup_spelling(const struct mr_room *room, const char *given, char ret[MR_ID_LEN + 1],
    bool *ret_full, struct mr_error *err);
/* In the agent's own mailbox first, then in everyone's. */
enum mr_rc lookup_anywhere(struct mr_room *room, const char *agent, const char *given,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err);

/* What others call a message: our id, or the Message-ID that another program gave it. NULL: out of memory. */
const char *lookup_spoken_id(const struct mr_room *room, const struct mr_message *msg, struct arena **own);

/* ---- filter.c: does a message pass ---- */

struct matcher { /* finish with matcher_done; borrows the filter */
	const struct mr_filter *filter;
	const char *from;     /* normal form, or NULL */
	struct mr_str thread; /* empty: any */
	char reply_to[MR_ID_LEN + 1];
	const char *reply_to_spoken; /* the same message as its writer calls it, or NULL */
	struct mr_names words; /* lower case */
	regex_t regex;
	bool has_regex;
	enum scan_depth depth; /* what must be read to decide */
	struct arena *own;
};
/* filter may be NULL. Looks up the thread of a message id, and short ids, in that agent's mailbox. */
enum mr_rc matcher_init(struct matcher *m, struct mr_room *room, const char *agent,
    const struct mr_filter *filter, struct mr_error *err);
bool matcher_fits(const struct matcher *m, const struct mr_message *msg);
void matcher_done(struct matcher *m);

/* ---- scan.c ---- */

struct candidate {
	char id[MR_ID_LEN + 1];
	enum mr_priority priority;
	enum mr_folder folder;
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

/* Tells the sender of `failed` why, durably. MR_OK also when there is nobody to tell. */
enum mr_rc bounce_send(struct mr_room *room, const struct mr_self *self, const struct mr_message *failed,
    const char *reason, struct mr_error *err);
/* References of an answer to `original`: its own and its id, at most 20, the first kept. */
void references_of(struct buf *out, const struct mr_room *room, const struct mr_message *original);

/* ---- due.c ---- */

enum mr_rc due_put(
    struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err);
/* Best effort: a leftover is found out by mr_overdue. */
void due_drop(struct mr_room *room, const char *sender, const char *id);

#endif
