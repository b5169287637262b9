/* SPDX-License-Identifier: MIT */
/*
 * office.h - what the files of the post office share. All policy is here: who gets a message, what may be sent, in
 * which order work is handed out. A room is used only through the slots of its driver; a missing slot returns
 * MR_UNSUPPORTED itself (room/calls.c).
 *
 * Each subfolder holds one idea and has one header, which says what is in it and what it may call.
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
/* The folders that mr_resolve_id and mr_fetch search if they get 0. */
#define ALL_FOLDERS ((unsigned)(MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT))

struct resolver;
struct linked_rooms { /* calls from sending to links, which are in a higher folder (link/link.h) */
	/* AGENT@LINK as a recipient; `agent` is the part before the last @, as written. */
	enum mr_rc (*resolve)(struct resolver *r, struct mr_str agent, struct mr_str link, struct mr_error *err);
	/* Makes missing mailboxes of recipients in linked rooms (--hold). */
	enum mr_rc (*hold)(struct mr_room *room, const struct mr_names *away, struct mr_error *err);
	/* After a send: carries the mail that it put into the queues of links, and replaces the queues by the
	 * recipients. A failure is a sentence in `trouble` (NULL: nothing is carried), never an error, because the mail
	 * is stored. */
	void (*delivered)(struct mr_room *room, const char *id, struct mr_names *targets, const struct mr_names *to,
	    const struct mr_names *cc, struct mr_names *trouble);
	/* The state of a message to AGENT@LINK as the carriers recorded it: a word, and a sentence; NULL: nothing. */
	const char *(*evidence)(
	    struct mr_room *room, const char *from, const char *to, const char *id, struct buf *out);
};

struct office {                    /* kept by the office with an open room */
	struct user_config *user;  /* rules/config.h; NULL until it is attached */
	struct types_store *types; /* types/types.h */
	const struct linked_rooms *links;
};

/* open.c: mr_room_options.data_dir with absolute paths; NULL: none was given. Borrowed. */
const char *office_data_dirs(struct mr_room *room);

/* ---- office.c: shared questions about a room ---- */

/* MR_REFUSED: a newer life of the agent exists. A self without a life (0) is never fenced. */
enum mr_rc office_not_fenced(struct mr_room *room, const struct mr_self *self, struct mr_error *err);
/* Does this room have lives? Rooms of other programs do not: no agent there is fenced, gone or live. */
static inline bool
office_has_lives(const struct mr_room *room)
{
	return ROOM_HAS(room, take_life);
}
/* An agent's name as people write it: in rooms of other programs "Old Bob" for the address Old%20Bob. */
void office_name(const struct mr_room *room, const char *address, struct buf *out);
/* Do several users share it (Share: group)? Then its content may be another user's work. */
bool office_shares_room(const struct mr_room *room);
/* The part of these folders that this kind of room has; some rooms keep read mail in a folder although they have no
 * archive. */
unsigned office_folders(const struct mr_room *room, unsigned folders);
/* Scans a mailbox that may not exist: empty in a room where such mailboxes are empty (ROOM_OPEN_BOXES), else
 * MR_NOTFOUND. */
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
/* All copies of that message, and an unfinished send of it. */
enum mr_rc office_places(struct mr_room *room, const char *id, struct places *ret, struct mr_error *err);

/* A wait loop. The watch is armed before the first look, so that no change in between is missed:
 *
 *	mr_auto(waiter_end) struct waiter waiter = waiter_begin(room, agent, timeout_ms);
 *	do { look } while (not found && waiter_pause(&waiter)); */
struct waiter {
	struct mr_room *room;
	void *watch;     /* NULL: none, look at intervals */
	const char *box; /* the mailbox that it watches, borrowed until waiter_end; NULL: something else */
	int64_t deadline_ms, pause_ms;
	bool endless;
	bool same; /* nothing changed since the last look: another look would find the same */
};
/* `whom` as for driver->watch; NULL: no watch. timeout_ms < 0: for ever; 0: one look. */
struct waiter waiter_begin(struct mr_room *room, const char *whom, int64_t timeout_ms);
bool waiter_pause(struct waiter *w); /* false: the time is up; true: look again */
/* The watch of a mailbox stays with the room, because closing it takes the kernel milliseconds, and new mail should not
 * wait for that. */
void waiter_end(struct waiter *w);

/* open.c: between these calls the room's reserve may be used on a full disk.
 *
 *	mr_auto(relief_end) struct relief relief = relief_begin(room); */
struct relief {
	const struct sys_relief *before;
};
struct relief relief_begin(struct mr_room *room);
void relief_end(struct relief *r);

/* ---- agent.c ---- */

/* MR_NOTFOUND: that name is not registered. */
enum mr_rc agent_exists(struct mr_room *room, const char *name, struct mr_error *err);
/* For a notice that is shown once a life: true the first time. False if that cannot be recorded. */
bool agent_said_first(struct mr_room *room, const struct mr_self *self, const char *what);
/* The address for a name that a person wrote or a message has, in a room whose names have other letters or are looked
 * up. It need not exist. */
enum mr_rc agent_spelled(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);

/* A small file of header lines outside of any room that only this user can write: the configuration, the binding of a
 * session. `what` names it in errors. MR_NOTFOUND, MR_REFUSED, MR_CORRUPT. */
enum mr_rc office_own_file(
    int folder, const char *path, const char *what, size_t max, struct record *ret, struct mr_error *err);
/* A folder for data that must not be put into the room of another program: <state>/<name>. MR_NOTFOUND: there is
 * none. */
enum mr_rc office_state(const struct mr_room *room, const char *name, bool make, int *ret_fd, struct mr_error *err);

/* ---- office.c: records of the room ---- */

/* Drops all records of that kind and owner, and their locks. Best effort. */
void office_drop_records(struct mr_room *room, const char *kind, const char *owner);
/* The names of all records of that kind and owner; the driver has record_each. */
enum mr_rc office_records(
    struct mr_room *room, const char *kind, const char *owner, struct mr_names *ret, struct mr_error *err);
/* The lines of one; the driver has record_get. MR_NOTFOUND, MR_CORRUPT. */
enum mr_rc office_record(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct record *ret, struct mr_error *err);

#endif
