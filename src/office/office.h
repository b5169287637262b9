/* SPDX-License-Identifier: MIT */
/*
 * office.h - what the files of the post office share. All policy is here: who gets a message, what may be
 * sent, in which order work is handed out. A room is reached only through the slots of its driver; a slot
 * that a kind of room does not have says so itself (room/calls.c).
 *
 * A folder for each idea, each with one header that says what lives there and what it may call.
 */
#ifndef OFFICE_OFFICE_H
#define OFFICE_OFFICE_H

#include "base/buf.h"
#include "base/sys.h"
#include "room/room.h"
#include "mailroom-hooks.h"
#include "mailroom-town.h"

#define OPERATOR "operator"
#define SUCCESSOR_TYPE "HANDOFF" /* an agent's note to its next life */
/* Where mr_resolve_id and mr_fetch look when they are told 0. */
#define ALL_FOLDERS ((unsigned)(MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT))

struct resolver;
struct linked_rooms { /* what sending asks of links to other rooms: link/link.h has it, a higher folder */
	/* AGENT@LINK as a recipient; `agent` is the part before the last @, as it was written. */
	enum mr_rc (*resolve)(struct resolver *r, struct mr_str agent, struct mr_str link, struct mr_error *err);
	/* Makes the mailboxes of recipients over there that have none (--hold). */
	enum mr_rc (*hold)(struct mr_room *room, const struct mr_names *away, struct mr_error *err);
	/* After a send: carries what it put into the queues of links, and shows the recipients instead of the queues. A
	 * failure is a sentence in `trouble` (NULL: nothing is carried), never an error: the mail is stored. */
	void (*delivered)(struct mr_room *room, const char *id, struct mr_names *targets, const struct mr_names *to,
	    const struct mr_names *cc, struct mr_names *trouble);
	/* What the carriers wrote down of a message to AGENT@LINK: a state in a word, and a sentence; NULL: nothing. */
	const char *(*evidence)(
	    struct mr_room *room, const char *from, const char *to, const char *id, struct buf *out);
};

struct office {                    /* what the office keeps with an open room */
	struct user_config *user;  /* rules/config.h; NULL until it is attached */
	struct types_store *types; /* types/types.h */
	const struct linked_rooms *links;
};

/* open.c: mr_room_options.data_dir with absolute paths; NULL where none was given. Borrowed. */
const char *office_data_dirs(struct mr_room *room);

/* ---- office.c: what every folder asks of a room ---- */

/* MR_REFUSED when a newer life of the agent exists. A self without a life (0) is never fenced. */
enum mr_rc office_not_fenced(struct mr_room *room, const struct mr_self *self, struct mr_error *err);
/* Does this room know lives? The rooms of other programs do not: there nobody is fenced, gone or live. */
static inline bool
office_has_lives(const struct mr_room *room)
{
	return ROOM_HAS(room, take_life);
}
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
/* For a scan, with a struct mr_names: notes the id. */
bool office_note_id(void *names, const struct mr_message *msg);
/* driver->flush */
enum mr_rc office_flush(struct mr_room *room, struct mr_error *err);
/* The names of all agents. */
enum mr_rc office_agents(struct mr_room *room, struct mr_names *ret, struct mr_error *err);
struct places { /* finish with mr_list_done */
	void *own;
	struct place_of *v;
	size_t n;
};
/* All copies of that message, and one on its way. */
enum mr_rc office_places(struct mr_room *room, const char *id, struct places *ret, struct mr_error *err);

/* One wait loop. The watch is armed before the first look, so that what comes in between rings it:
 *
 *	mr_auto(waiter_end) struct waiter waiter = waiter_begin(room, agent, timeout_ms);
 *	do { look } while (not found && waiter_pause(&waiter));
 */
struct waiter {
	struct mr_room *room;
	void *watch;     /* NULL: there is none, look at intervals */
	const char *box; /* it is that of this mailbox, borrowed until waiter_end; NULL: of something else */
	int64_t deadline_ms, pause_ms;
	bool endless;
	bool same; /* nothing changed since the look before: a look now would find the same */
};
/* `whom` as for driver->watch; NULL: nothing rings. timeout_ms < 0: for ever; 0: one look. */
struct waiter waiter_begin(struct mr_room *room, const char *whom, int64_t timeout_ms);
bool waiter_pause(struct waiter *w); /* false: the time is up; else look again */
/* The watch of a mailbox stays with the room: the kernel takes milliseconds to take one down, and what has come shall
 * not wait. */
void waiter_end(struct waiter *w);

/* open.c: in between, on a full disk, the room's reserve may be used.
 *
 *	mr_auto(relief_end) struct relief relief = relief_begin(room);
 */
struct relief {
	const struct sys_relief *before;
};
struct relief relief_begin(struct mr_room *room);
void relief_end(struct relief *r);

/* ---- agent.c ---- */

/* MR_NOTFOUND: nobody registered that name. */
enum mr_rc agent_exists(struct mr_room *room, const char *name, struct mr_error *err);
/* For what is said once a life: true the first time. False where it cannot be remembered. */
bool agent_said_first(struct mr_room *room, const struct mr_self *self, const char *what);
/* The address that a person means, or that a message has, in a room where names are spelled in other letters or looked
 * up. It need not exist. */
enum mr_rc agent_spelled(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);

/* A small file of header lines outside of any room, which this user alone can write: the configuration, the binding of
 * a session. `what` is how errors call it. MR_NOTFOUND, MR_REFUSED, MR_CORRUPT. */
enum mr_rc office_own_file(
    int folder, const char *path, const char *what, size_t max, struct record *ret, struct mr_error *err);
/* A folder for what must not be put into the room of another program: <state>/<name>. MR_NOTFOUND: there is none. */
enum mr_rc office_state(const struct mr_room *room, const char *name, bool make, int *ret_fd, struct mr_error *err);

/* ---- office.c: records of the room ---- */

/* Drops all records of that kind and owner, and what is beside them. Best effort. */
void office_drop_records(struct mr_room *room, const char *kind, const char *owner);
/* The names of all records of that kind and owner; the driver has record_each. */
enum mr_rc office_records(
    struct mr_room *room, const char *kind, const char *owner, struct mr_names *ret, struct mr_error *err);
/* The lines of one; the driver has record_get. MR_NOTFOUND, MR_CORRUPT. */
enum mr_rc office_record(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct record *ret, struct mr_error *err);

#endif
