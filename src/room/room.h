/* SPDX-License-Identifier: MIT */
/*
 * room.h - the contract between the post office and the kinds of room.
 *
 * A driver is one struct of operations. The office never asks which driver it has: it asks for
 * abilities, and answers MR_UNSUPPORTED itself where a slot is NULL. No slot takes a path or a file
 * descriptor, assumes that a scan is cheap, or that a mark is a rename: a database fits as well as
 * folders. Agents are named by checked, normal addresses; ids are full ids.
 *
 * Every slot: ret_ parameters untouched on failure (but where said), err always filled in.
 */
#ifndef ROOM_ROOM_H
#define ROOM_ROOM_H

#include "base/buf.h"
#include "message/header.h"
#include <sys/stat.h>

enum room_ability {
	ROOM_READ_STATE = 1, /* remembers what was read */
	ROOM_THREADS = 2,
	ROOM_PRIORITIES = 4,
	ROOM_ARCHIVE = 8,
	ROOM_REGISTER = 16, /* has registered agents and lives */
	ROOM_HOLDS = 32,    /* recv, done, drain by several */
	ROOM_SENT = 64,
	ROOM_KEYS = 128, /* send --key, --replace-key */
	ROOM_PIN = 256,
	ROOM_TYPES = 512,
	ROOM_PURGE = 1024,
	ROOM_QUEUES = 2048,      /* work queues: `to` of a delivery may have "queue:NAME" */
	ROOM_CHANNELS = 4096,    /* channels: ... "channel:NAME" */
	ROOM_REPLY_PATHS = 8192, /* send --reply-path: deliver takes reply_path, fetch_answer looks there */
	ROOM_OPEN_BOXES = 16384, /* who was never written to has an empty mailbox, not none: looking is no error */
};

#define ROOM_IDENTITY_LEN 32
#define ROOM_PLACE_LEN 48
struct mr_room {
	const struct room_driver *driver;
	void *state;                                /* the driver's own */
	char *spec;                                 /* "maildir:/path" */
	char *name;                                 /* what stands after @ */
	struct record settings;                     /* lines of the room's settings; empty where a kind has none */
	char *state_dir;                            /* where mailroom keeps what is no room's own, absolute; or NULL */
	char identity[ROOM_IDENTITY_LEN + 1];       /* random, from the room's settings; "": the kind has none */
	char place[ROOM_PLACE_LEN];                 /* tells the room's folder from a copy at its path; or "" */
	struct user_config *user;                   /* the office's: the user's configuration of it; or NULL */
	void (*forget_user)(struct mr_room *room);  /* frees it; set with user */
	char *data_dir;                             /* mr_room_options.data_dir, or NULL */
	void *types;                                /* the office's: message types that were read; or NULL */
	void (*forget_types)(struct mr_room *room); /* frees them; set with types */
	bool must_exist;                            /* mr_room_options.must_exist, for open */
	struct mr_names barred;                     /* mr_room_barred: filled in by the driver */
	mr_trace_fn *trace;                         /* or NULL */
	void *trace_ctx;
	const struct room_driver *inner; /* the driver that is wrapped */
	void *wrap_state;
};

/* ---- What is passed in and out ---- */

struct delivery {                  /* one accepted send */
	struct mr_message *msg;    /* id may be changed by the driver when it collides */
	const struct mr_names *to; /* checked, each once, in order; also "queue:NAME", "channel:NAME" */
	const char *sender;        /* whose .Sent gets a copy; "" for none */
	const char *key;           /* or NULL */
	bool key_is_all;           /* with that key it is the same send, whatever the text says by now */
	bool make_mailboxes;       /* --hold */
	uint64_t removals;         /* every agent in `to` was found after this was asked; 0: look for yourself */
	bool keep;    /* an import: stored with its own date, under the identity that follows from date, sender and id.
		       * MR_EXISTS: it is there already, whatever became of it; ret->id is filled in then, too. */
	bool carried; /* it comes from another room */
	bool only;    /* an answer to one question, in a format where it ends older ones of the same sender, too */
	struct mr_names *superseded; /* gets the ids of those that it ended; or NULL */
	const char *reply_path; /* of a client without a mailbox: the folder where an answer shall be put; or NULL */
	/* For whoever must know after a kill whether it was delivered, one recipient only (not with ROOM_KEYS: there a
	 * key tells). Called once all is written and durable but not visible yet; only MR_OK goes on. The ticket is
	 * for settle_ticket. It may be called again, with another ticket, when the first try was in vain. Whatever goes
	 * wrong afterwards, the driver removes nothing: what settle_ticket looks for is gone only if it was published.
	 */
	enum mr_rc (*staged)(void *ctx, const char *ticket, struct mr_error *err);
	void *staged_ctx;
};
#define ROOM_SPOKEN_MAX 255
#define ROOM_TICKET_MAX 700
struct delivered {
	char id[MR_ID_LEN + 1];
	char spoken[ROOM_SPOKEN_MAX + 1]; /* what this room calls the message, where that is not the id; else "" */
	bool repeated;                    /* the key was known */
	struct mr_names missing;          /* with MR_INDOUBT; the caller frees it */
};

struct parcel {               /* one of many deliveries */
	struct delivery what; /* one agent, without key, keep, make_mailboxes, reply_path and staged */
	struct delivered got;
	enum mr_rc rc; /* what deliver would have returned */
	struct mr_error err;
};

enum hold_kind { HOLD_PROCESS, /* as long as this process lives */ HOLD_LEASE /* until the deadline */ };
struct hold_terms {
	enum hold_kind kind;
	unsigned life;             /* of the holder */
	int64_t lease_ms;          /* HOLD_LEASE */
	struct mr_process process; /* of the holder's harness, if known: while it lives the lease does not run out */
	const char *session;       /* or "" */
};
struct hold {
	char agent[MR_ADDRESS_MAX + 1];
	char id[MR_ID_LEN + 1];
	char token[MR_TOKEN_LEN + 1];
	unsigned life;
	unsigned attempt;    /* 1: first time */
	int64_t deadline_ms; /* wall clock; 0 for HOLD_PROCESS */
	enum hold_kind kind;
	unsigned flags;                 /* of the message, as it was */
	char queue[MR_ADDRESS_MAX + 1]; /* the queue that it was claimed from; "": the agent's own mail */
	int64_t since_ms;               /* when it was claimed; 0: unknown */
	bool over;                      /* from queue_each: the time is up or the holder is dead */
	/* Given with SETTLE_LATER and kept with the past of the work; NULL: not told. */
	const char *reason;
	const char *only_for;  /* an agent: nobody else may claim it until then */
	int64_t only_until_ms; /* wall clock */
};

enum queue_state { QUEUE_READY = 1, QUEUE_DELAYED = 2, QUEUE_CLAIMED = 4, QUEUE_DONE = 8, QUEUE_FAILED = 16 };
struct queue_item {
	enum queue_state state;
	char id[MR_ID_LEN + 1];
	enum mr_priority priority;
	unsigned attempt;                  /* how often it was claimed */
	int64_t not_before_ms;             /* QUEUE_DELAYED */
	int64_t released_ms;               /* QUEUE_READY: when it was released; 0: it was not */
	char only_for[MR_ADDRESS_MAX + 1]; /* QUEUE_READY: nobody else can claim it now; "": everybody can */
	int64_t only_until_ms;
	const struct hold *hold; /* QUEUE_CLAIMED, else NULL */
};
struct claim_terms {
	struct hold_terms hold;
	const char *claimer; /* agent */
	bool by_priority;
	unsigned max_claims; /* 0: no limit; counted and taken under a lock of the queue */
};
enum settle {           /* how a hold ends */
	SETTLE_BACK,    /* to where it was, attempt counted */
	SETTLE_LATER,   /* released: behind all that waits, not to its holder while there is other work; no attempt */
	SETTLE_SEEN,    /* shown: into the inbox, seen */
	SETTLE_ARCHIVE, /* shown and archived */
	SETTLE_DONE,    /* worked off: archived, acked */
	SETTLE_DEAD,    /* failed: dead letters */
};
struct past_claim {              /* on work of a queue, and over */
	const struct hold *hold; /* agent, life, attempt, token, since_ms, and what was given with SETTLE_LATER */
	enum settle how;
	int64_t ended_ms;
};

/* What a message may have that not every format can hold. */
enum room_field {
	FIELD_SUBJECT = 1,
	FIELD_CC = 2,
	FIELD_TYPE = 4,
	FIELD_PRIORITY = 8,
	FIELD_THREAD = 16,
	FIELD_REPLY_TO = 32,
	FIELD_HEADERS = 64, /* extra ones */
	FIELD_BY = 128,
	FIELD_TO = 256,     /* that there are other recipients */
	FIELD_BINARY = 512, /* a body that is no text: a NUL byte, or no UTF-8 */
};

enum scan_depth { SCAN_NAMES /* id, flags, folder, attempt, token */, SCAN_HEADERS, SCAN_BODIES };
struct scan_request {
	unsigned folders; /* enum mr_folder */
	enum scan_depth depth;
	bool newest_first;     /* by id; across the folders asked for */
	bool unread_only;      /* only without MR_SEEN: lets a driver skip work */
	bool one_is_enough;    /* any message will do, whichever: lets a driver stop at the first it meets */
	bool glance;           /* asked at every prompt: lets a driver remember that there was nothing */
	const char *id_suffix; /* only ids that end so; NULL: all */
	mr_trouble_fn *trouble;
	void *trouble_ctx;
};

struct place_of {              /* one copy of a message */
	const char *agent;     /* "" for the room's own folders */
	enum mr_folder folder; /* 0: only the evidence counts (pending fan-out) */
	unsigned flags;
	const char *state;    /* "unread", "read", "archived", "held", "sent", "dead", "pending"; in a queue
			       * "ready", "delayed", "claimed", "done", "failed"; in a channel "posted" */
	const char *evidence; /* a sentence with what was found where */
};
typedef void place_fn(void *ctx, const struct place_of *place);

struct room_driver {
	const char *kind;   /* "maildir", as in maildir:/path */
	unsigned abilities; /* enum room_ability */

	/* ---- Opening ---- */
	/* Required. Sets room->state, ->name, ->settings. MR_NOTFOUND, MR_REFUSED (newer format, another user's).
	 * Where nothing need be there: MR_NOTFOUND only with room->must_exist. */
	enum mr_rc (*open)(struct mr_room *room, const char *where, struct mr_error *err);
	void (*close)(struct mr_room *room); /* also after a failed open */
	/* The place of a room that was opened without being there, which else the first message makes. There already:
	 * MR_OK. Durable. NULL: what was opened is there. */
	enum mr_rc (*make)(struct mr_room *room, struct mr_error *err);
	/* Completes what crashed commands left behind, as far as nobody is working on it; cheap when
	 * there is nothing. NULL: nothing is ever left behind. */
	enum mr_rc (*recover)(struct mr_room *room, struct mr_error *err);
	/* The disk is full, and this command empties a mailbox: frees a part of what the room keeps for that. False:
	 * nothing is left of it. NULL: nothing is kept. The driver makes it again by itself. */
	bool (*spend_reserve)(struct mr_room *room);
	/* NULL: unknown. */
	enum mr_rc (*storage)(struct mr_room *room, struct mr_storage *ret, struct mr_error *err);

	/* ---- Who lives here ---- */
	enum mr_rc (*each_agent)(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err);
	/* MR_NOTFOUND: nobody registered that name. */
	enum mr_rc (*find_agent)(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err);
	/* Only whether it is registered, for a fan-out to a thousand. NULL: find_agent tells. */
	enum mr_rc (*has_agent)(struct mr_room *room, const char *name, struct mr_error *err);
	/* A number that changes whenever an agent is removed; 0: unknown. Asked before the recipients of a fan-out are
	 * looked up, it spares another look at each of them (delivery.removals). NULL: unknown. */
	uint64_t (*removals)(struct mr_room *room);
	/* Only the number of its newest life (0: none yet), for every command's own. NULL: find_agent tells. */
	enum mr_rc (*newest_life)(struct mr_room *room, const char *name, unsigned *ret, struct mr_error *err);
	/* With ROOM_REGISTER: makes the mailbox and takes the name. MR_EXISTS: taken (one winner among many);
	 * MR_REFUSED: differs from another name only in case. agent->life is ignored. A kind without lives, whose
	 * mailboxes have ids of their own: agent->session is the id that the mailbox shall have, or "". Durable. The
	 * role is kept with the mailbox and comes back from find_agent, at once with it or not at all: links tell by
	 * it whose mailbox it is. */
	enum mr_rc (*add_agent)(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err);
	/* Gives an agent another role, in one step, durable. MR_REFUSED: it is another user's. NULL: an agent keeps the
	 * role that it was made with. */
	enum mr_rc (*set_role)(struct mr_room *room, const char *name, const char *role, struct mr_error *err);
	/* Takes life `agent->life` with agent's process, session, worktree, host. MR_EXISTS: another took that
	 * number. Then fences the life before: its held mail comes back, *ret_returned says how much. Durable. */
	enum mr_rc (*take_life)(
	    struct mr_room *room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err);
	/* Rewrites what is known of a life (process after a resume). */
	enum mr_rc (*update_life)(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err);
	/* MR_REFUSED when a newer life than `life` exists. Cheap: called by every command that acts. session NULL, or
	 * the one that the life must name: else MR_NOTFOUND, with or without such a life. */
	enum mr_rc (*check_life)(
	    struct mr_room *room, const char *name, unsigned life, const char *session, struct mr_error *err);
	void (*seen)(struct mr_room *room, const char *name, unsigned life); /* best effort */
	/* Takes the name away first, then moves the unread mail to dead letters until nothing is left. Numbers of
	 * lives survive. A kind without dead letters: MR_REFUSED while there is unread mail, unless `force`, which
	 * deletes it and counts it. */
	enum mr_rc (*remove_agent)(
	    struct mr_room *room, const char *name, bool force, size_t *ret_dead, struct mr_error *err);
	/* Something said once per life (the storage warning): true the first time. NULL: never. */
	bool (*once)(struct mr_room *room, const char *name, unsigned life, const char *what);

	/* What a person writes for an agent where names have other letters, or are looked up ("Old Bob", a path): its
	 * address; what is an address already stands for itself. It need not exist. MR_REFUSED: it cannot be a name
	 * here. NULL: an address is written as it is. */
	enum mr_rc (*spell)(
	    struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err);
	/* The agent to whom this room belongs, where it is one agent's: who acts when nothing else says. NULL: none. */
	const char *(*owner)(struct mr_room *room);

	/* ---- Mail ---- */
	/* Which of the fields that this message has can this format not hold (enum room_field)? NULL: it holds all. The
	 * office refuses those of a sender here, and states those of a carried message in its body. */
	unsigned (*lacks)(struct mr_room *room, const struct mr_message *msg);
	/* Required. MR_OK: whole, visible and durable for everyone in `to`; an err that is MR_OK, too, but has a hint:
	 * what else did not go well, said to the sender. MR_INDOUBT: some have it, the rest will (ret is filled in).
	 * Anything else: nobody has it. With a key: MR_REFUSED when it was used for another content, unless key_is_all.
	 * A format with ids of its own: msg->reply_to is in that form, as the header Message-ID of the message answered
	 * had it. */
	enum mr_rc (*deliver)(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err);
	/* Each parcel as deliver does it, all of them durable together: cheaper. They become visible in any order.
	 * NULL: one at a time. */
	void (*deliver_many)(struct mr_room *room, struct parcel *parcels, size_t n);
	/* After a kill behind `staged`: was it published? What is left of one that was not is removed. */
	enum mr_rc (*settle_ticket)(
	    struct mr_room *room, const char *ticket, bool *ret_published, struct mr_error *err);
	/* With ROOM_REPLY_PATHS: the answer to the message that this room calls `id` (delivered.spoken), put into the
	 * folder `dir` of a client without a mailbox. With `take` it is removed. MR_NOTFOUND: it is not there yet. */
	enum mr_rc (*fetch_answer)(struct mr_room *room, const char *dir, const char *id, bool take,
	    struct mr_message *ret, struct mr_error *err);
	/* Removes all mail of an agent's inbox, read or not. A mailbox that does not exist is not made. */
	enum mr_rc (*clear)(struct mr_room *room, const char *agent, size_t *ret_removed, struct mr_error *err);
	/* Required. fn gets each message once, in order of ids. A mailbox that does not exist is MR_NOTFOUND. */
	enum mr_rc (*scan)(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn,
	    void *ctx, struct mr_error *err);
	/* Required. Looks in `folders` (0: everywhere of that agent). */
	enum mr_rc (*fetch)(struct mr_room *room, const char *agent, const char *id, unsigned folders,
	    enum scan_depth depth, struct mr_message *ret, struct mr_error *err);
	enum mr_rc (*fetch_raw)(
	    struct mr_room *room, const char *agent, const char *id, struct buf *ret, struct mr_error *err);
	/* With ROOM_READ_STATE. MR_NOTFOUND when it is not in inbox or archive, MR_BUSY when held. */
	enum mr_rc (*mark)(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear,
	    struct mr_error *err);
	/* With ROOM_ARCHIVE: MR_INBOX <-> MR_ARCHIVE, MR_INBOX -> MR_DEAD. Marks are kept. */
	enum mr_rc (*move)(
	    struct mr_room *room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err);
	/* Makes marks, moves and settles since the last flush durable. NULL: they already are. */
	enum mr_rc (*flush)(struct mr_room *room, struct mr_error *err);

	/* ---- Holds, with ROOM_HOLDS ---- */
	/* Takes unread mail out of the inbox. MR_NOTFOUND: not in the inbox; MR_BUSY: another holds it. */
	enum mr_rc (*hold)(struct mr_room *room, const char *agent, const char *id, const struct hold_terms *terms,
	    struct hold *ret, struct mr_error *err);
	/* MR_NOTFOUND: that hold is over (expired, taken over, settled): the fence. */
	enum mr_rc (*settle)(struct mr_room *room, const struct hold *hold, enum settle how, struct mr_error *err);
	enum mr_rc (*extend)(struct mr_room *room, struct hold *hold, int64_t lease_ms, struct mr_error *err);
	/* The holds of an agent, of all lives. */
	enum mr_rc (*each_hold)(struct mr_room *room, const char *agent, bool (*fn)(void *ctx, const struct hold *hold),
	    void *ctx, struct mr_error *err);
	/* Puts back what expired or whose holder died. Cheap when nothing is held. */
	enum mr_rc (*sweep)(struct mr_room *room, const char *agent, struct mr_error *err);

	/* ---- Waiting ---- */
	/* Arms before the caller scans. NULL: the office polls. `agent` may be "queue:NAME" or "channel:NAME". */
	enum mr_rc (*watch)(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err);
	/* Something may have changed, or the time is up: either way look again. */
	void (*watch_wait)(struct mr_room *room, void *watch, int64_t timeout_ms);
	/* After watch_wait: did unread mail of the agent come in this very moment? True, with its headers in *ret, only
	 * if it is there and can be read; false proves nothing. NULL: look. */
	bool (*watch_saw_mail)(struct mr_room *room, void *watch, struct mr_message *ret);
	void (*watch_close)(struct mr_room *room, void *watch);

	/* ---- Records of the post office: small named values (due answers, tombstones, later groups ...) ---- */
	/* kind is a word such as "due"; owner an agent or ""; name 1-80 bytes [A-Za-z0-9._-]. Each op is atomic and
	 * durable. */
	enum mr_rc (*record_put)(struct mr_room *room, const char *kind, const char *owner, const char *name,
	    struct mr_str text, struct mr_error *err); /* replaces */
	enum mr_rc (*record_get)(struct mr_room *room, const char *kind, const char *owner, const char *name,
	    struct buf *ret, struct mr_error *err);
	enum mr_rc (*record_drop)(struct mr_room *room, const char *kind, const char *owner, const char *name,
	    struct mr_error *err); /* MR_NOTFOUND when it is not there */
	enum mr_rc (*record_each)(struct mr_room *room, const char *kind, const char *owner,
	    bool (*fn)(void *ctx, const char *name), void *ctx, struct mr_error *err); /* none: MR_OK */

	/* Reads a record (empty text, exists false, when there is none), lets `edit` change the text, writes it: all
	 * under a lock, so that of any number of changes at once none is lost. What edit returns is returned; only
	 * MR_OK writes. The kinds group, queue and channel (owner "") are what a person finds under groups/, queues/
	 * and channels/. */
	enum mr_rc (*record_change)(struct mr_room *room, const char *kind, const char *owner, const char *name,
	    enum mr_rc (*edit)(void *ctx, bool exists, struct buf *text, struct mr_error *err), void *ctx,
	    struct mr_error *err);

	/* A lock of that name beside the records of that kind and owner, not the one of record_change; the kernel lets
	 * it go when this process ends. wait_ms 0: tries once. MR_BUSY: another has it. */
	enum mr_rc (*record_lock)(struct mr_room *room, const char *kind, const char *owner, const char *name,
	    int64_t wait_ms, void **ret_lock, struct mr_error *err);
	void (*record_unlock)(struct mr_room *room, void *lock);

	/* ---- Nudges, where another program's room has a place for them; elsewhere they are records ---- */
	/* Replaces the last one: that is the format's rule. */
	enum mr_rc (*nudge_put)(
	    struct mr_room *room, const char *to, const struct mr_nudge *nudge, struct mr_error *err);
	/* MR_NOTFOUND: there is none. Strings are kept in *own. */
	enum mr_rc (*nudge_get)(
	    struct mr_room *room, const char *agent, struct mr_nudge *ret, struct arena **own, struct mr_error *err);

	/* ---- Work queues, with ROOM_QUEUES. Settings are records of kind "queue"; these know only the work. ---- */
	enum mr_rc (*queue_make)(
	    struct mr_room *room, const char *queue, struct mr_error *err); /* exists already: MR_OK */
	/* MR_REFUSED with work in it (ready, delayed or claimed), unless to_dead, which moves that to dead letters
	 * first and counts it. Failed work goes there in any case. */
	enum mr_rc (*queue_remove)(
	    struct mr_room *room, const char *queue, bool to_dead, size_t *ret_dead, struct mr_error *err);
	/* One winner a message. MR_EMPTY: nothing is ready. MR_BUSY: max_claims are live. The cost does not grow with
	 * what waits. */
	enum mr_rc (*queue_claim)(struct mr_room *room, const char *queue, const struct claim_terms *terms,
	    struct hold *ret, struct mr_error *err);
	/* Like settle. SETTLE_BACK: ready again; SETTLE_DONE: done; SETTLE_DEAD: failed. MR_NOTFOUND: that claim is
	 * over. Durable after flush. SETTLE_LATER needs hold->agent. What is known of the claim becomes its past. */
	enum mr_rc (*queue_settle)(
	    struct mr_room *room, const struct hold *hold, enum settle how, struct mr_error *err);
	enum mr_rc (*queue_extend)(struct mr_room *room, struct hold *hold, int64_t lease_ms, struct mr_error *err);
	/* Items in any of the states. Only for claims is the cost bounded by their number. */
	enum mr_rc (*queue_each)(struct mr_room *room, const char *queue, unsigned states,
	    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err);
	enum mr_rc (*queue_fetch)(
	    struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err);
	/* The claim with this token, in whatever queue: hold->queue is set. MR_NOTFOUND: over, or never was. */
	enum mr_rc (*queue_find_claim)(struct mr_room *room, const char *token, struct hold *ret, struct mr_error *err);

	/* The claims on `id` that are over, in the order of their ends: in that queue, or with queue "" on agents' own
	 * mail; or with id NULL the one with that token, in whatever queue or mailbox. As far as there is evidence:
	 * none is MR_OK, a power cut may take some, and those on own mail are kept for a month or two. */
	enum mr_rc (*queue_past)(struct mr_room *room, const char *queue, const char *id, const char *token,
	    void (*fn)(void *ctx, const struct past_claim *past), void *ctx, struct mr_error *err);

	/* ---- Channels, with ROOM_CHANNELS. Settings are records of kind "channel". ---- */
	enum mr_rc (*channel_make)(struct mr_room *room, const char *channel, struct mr_error *err);
	enum mr_rc (*channel_remove)(struct mr_room *room, const char *channel, struct mr_error *err);
	/* Posts after that number, in order; numbers become visible in order, so a cursor never skips one. */
	enum mr_rc (*channel_scan)(struct mr_room *room, const char *channel, uint64_t after, enum scan_depth depth,
	    bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err);
	/* First and last number that are there; 0, 0 when there is none. */
	enum mr_rc (*channel_range)(struct mr_room *room, const char *channel, uint64_t *ret_first, uint64_t *ret_last,
	    size_t *ret_count, struct mr_error *err);
	/* Removes the posts below that number (a retained copy; subscribers keep theirs). */
	enum mr_rc (*channel_drop)(
	    struct mr_room *room, const char *channel, uint64_t below, size_t *ret_removed, struct mr_error *err);

	/* ---- Evidence and care ---- */
	/* Removes a dead letter of the room, or with `queue` (else "") failed work of that queue; nobody else's copy.
	 * Durable. */
	enum mr_rc (*dead_drop)(struct mr_room *room, const char *queue, const char *id, struct mr_error *err);
	enum mr_rc (*each_place)(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err);
	/* With ROOM_PURGE: removes every copy. */
	enum mr_rc (*purge)(struct mr_room *room, const char *id, size_t *ret_removed, struct mr_error *err);
	enum mr_rc (*inspect)(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err);

	/* The verbs of the program whose format this is, for a face that its users know: what it prints is added to
	 * out. args ends with NULL. NULL: there is no such face. */
	enum mr_rc (*face)(struct mr_room *room, const char *verb, const char *const *args, struct mr_str input,
	    struct buf *out, struct mr_error *err);
};

/* registry.c: the list of drivers; the only file that names them. */
const struct room_driver *room_driver_named(struct mr_str kind);
const struct room_driver *const *room_drivers(void); /* NULL-terminated */

/* trace.c: a driver around a driver that tells each call. Call after open; close goes through. */
void room_wrap_trace(struct mr_room *room);

/* What tells an open folder from another one at its path: its device and inode. File systems without a device of their
 * own (btrfs, overlay) get another number with each mount: there the identity of the file system stands for it. */
const char *room_place(int fd, const struct stat *st, char ret[ROOM_PLACE_LEN]);

/* open.c: spec -> open room (without recovery and policy; the office adds those). */
/* Of the options (NULL: none) only state_dir and must_exist count here. */
enum mr_rc room_open_spec(
    const char *spec, const struct mr_room_options *options, struct mr_room **ret, struct mr_error *err);
void room_free(struct mr_room *room);

#endif
