/* SPDX-License-Identifier: MIT */
/*
 * room.h - the contract between the post office and the kinds of room.
 *
 * A driver is one struct of operations. The office never asks which driver it has: it asks for abilities. A slot that a
 * driver leaves out returns MR_UNSUPPORTED or does nothing (slots.h says which). Slots take no path and no file
 * descriptor, and do not assume that a scan is cheap or that a mark is a rename, so that a database fits as well as
 * folders. Agents are named by checked, normal addresses; ids are full ids.
 *
 * On failure every slot leaves its ret_ parameters untouched, unless its comment says otherwise, and fills in err.
 */
#ifndef ROOM_ROOM_H
#define ROOM_ROOM_H

#include "base/buf.h"
#include "base/sys.h"
#include "mailroom-town.h"
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
	ROOM_REPLY_PATHS = 8192, /* send --reply-path: face has expect_answer and fetch_answer */
	ROOM_OPEN_BOXES = 16384, /* a mailbox that never got mail is empty, not missing: looking is no error */
	ROOM_DEAD = 32768,       /* dead letters: MR_DEAD, REMOVE_DEAD */
	ROOM_CLEAR = 65536,      /* REMOVE_INBOX */
	ROOM_RAW = 131072,       /* SCAN_RAW */
	ROOM_BATCH = 262144,     /* delivery.many */
	ROOM_NAMES =
	    524288, /* SCAN_NAMES reports priority and look, and scan_request is obeyed: lists are made from names */
	ROOM_ATTACHMENTS = 1048576, /* writes mr_message.content (content_write), and fills it in on fetch */
	ROOM_FETCH = 2097152,       /* a fetch by id costs no more than the message, however many there are */
	ROOM_PLAIN_NAMES = 4194304, /* its own programs take no names with other characters than A-Z a-z 0-9 _ - */
	ROOM_NAMELESS = 8388608,    /* belongs to one agent, and nothing in it says which */
};

#define ROOM_KEY_MAX 200 /* bytes of a key of a send */
#define ROOM_IDENTITY_LEN 32
#define ROOM_PLACE_LEN 48

/* ---- What is passed in and out ---- */

typedef bool mr_agent_fn(void *ctx, const struct mr_agent *agent); /* false stops */

struct delivery {                  /* one accepted send */
	struct mr_message *msg;    /* its id may change: delivered.id is the stored one */
	const struct mr_names *to; /* checked, each once, in order; also "queue:NAME", "channel:NAME" */
	const char *sender;        /* whose .Sent gets a copy; "" for none */
	const char *key;           /* or NULL */
	bool key_is_all;           /* the key alone identifies the send, even if the text differs */
	bool make_mailboxes;       /* --hold */
	uint64_t removals; /* result of the slot `removals` before the agents in `to` were found; 0: check each again */
	bool keep; /* An import: stored with its own date, under an identity made of date, sender and id. MR_EXISTS: it
		      was imported before, even if it is gone by now; ret->id is filled in then, too. */
	bool carried; /* it comes from another room */
	bool look;    /* its place in a list depends on more than its priority: mr_message.look of SCAN_NAMES */
	bool only;    /* in a format where an answer closes older questions, too: close only the one that it answers */
	struct mr_names *superseded; /* gets the ids of the questions that it closed; or NULL */
	/* For a caller that must know after a kill whether the message was delivered; one recipient only. (With
	 * ROOM_KEYS use a key instead.) Called when everything is written and durable but not visible yet; the driver
	 * goes on only on MR_OK. struct delivered holds what is known of the ids by then (id "": nothing). The ticket
	 * is for settle_ticket. If the first try fails, staged may be called again with another ticket. On later
	 * failures the driver removes nothing: the staged file may be gone only if it was published. */
	enum mr_rc (*staged)(void *ctx, const char *ticket, struct mr_error *err);
	void *staged_ctx;
	/* With ROOM_BATCH: many messages, made durable together, which is cheaper; they become visible in any order.
	 * Only these two fields count then; each message is delivered by itself and has its result in its parcel. */
	struct parcel *many;
	size_t many_n;
};
#define ROOM_NATIVE_ID_MAX 255
#define ROOM_TICKET_MAX 700
struct delivered {
	char id[MR_ID_LEN + 1];
	char
	    native_id[ROOM_NATIVE_ID_MAX + 1]; /* what this room calls the message, where that is not the id; else "" */
	bool repeated;                         /* the key was known */
	struct mr_names missing;               /* with MR_INDOUBT */
	struct mr_names warnings;              /* with MR_OK: partial failures, a sentence each */
};
void delivered_done(struct delivered *got); /* calls.c */

struct parcel {               /* one of many deliveries */
	struct delivery what; /* one agent, without key, keep, make_mailboxes and staged */
	struct delivered got;
	enum mr_rc rc; /* what deliver would have returned */
	struct mr_error err;
};

/* A claim on one message of a box: mail that an agent is shown or works on, or work of a queue. A box is a mailbox,
 * named by its agent, or "queue:NAME"; a mailbox is a queue with one claimer. */
enum claim_kind {
	CLAIM_HANDLE,
	/* until this handle is closed or its process ends */ CLAIM_LEASE /* until the deadline */
};
#define LEASE_MAX_MS ((int64_t)366 * 24 * 3600 * 1000)
struct claim_terms {
	enum claim_kind kind;
	const char *claimer;       /* work of a queue: the agent. Mail is claimed by the agent that owns the box */
	unsigned life;             /* of the claimer */
	int64_t lease_ms;          /* CLAIM_LEASE; at most LEASE_MAX_MS */
	struct mr_process process; /* of the claimer's harness, if known: while it lives the lease does not run out */
	const char *session;       /* or "" */
	bool by_priority;          /* of work of a queue */
	unsigned max_claims;       /* 0: no limit; counted and taken under a lock of the queue */
};
struct claim {
	char box[MR_ADDRESS_MAX + 8]; /* where the message is */
	char agent[MR_ADDRESS_MAX + 1];
	char id[MR_ID_LEN + 1];
	char token[MR_TOKEN_LEN + 1];
	unsigned life;
	unsigned attempt;    /* 1: first time */
	int64_t deadline_ms; /* wall clock; 0 for CLAIM_HANDLE */
	enum claim_kind kind;
	unsigned flags;            /* of the message, as it was; */
	enum mr_priority priority; /* as SCAN_NAMES tells it; */
	bool look;                 /* likewise */
	int64_t since_ms;          /* when it was claimed; 0: unknown */
	bool over;                 /* work of a queue: the time is up or the holder is dead */
	/* Given with SETTLE_LATER and kept in the history of the work; NULL: none. */
	const char *reason;
	const char *only_for;  /* an agent: nobody else may claim it until then */
	int64_t only_until_ms; /* wall clock */
};
/* "build" of "queue:build"; NULL: the box is a mailbox. */
static inline const char *
box_queue(const char *box)
{
	return strncmp(box, "queue:", 6) == 0 ? box + 6 : NULL;
}
/* "queue:build", "channel:news"; for the length of one call: slot(room, room_box("queue", name).z, ...) */
struct room_box {
	char z[MR_ADDRESS_MAX + 16];
};
struct room_box room_box(const char *kind, const char *name);

enum queue_state { QUEUE_READY = 1, QUEUE_DELAYED = 2, QUEUE_CLAIMED = 4, QUEUE_DONE = 8, QUEUE_FAILED = 16 };
struct queue_item { /* one message of a box; mail is reported only while it is claimed */
	enum queue_state state;
	char id[MR_ID_LEN + 1];
	enum mr_priority priority;
	unsigned attempt;                  /* how often it was claimed */
	int64_t not_before_ms;             /* QUEUE_DELAYED */
	int64_t released_ms;               /* QUEUE_READY: when it was released; 0: it was not */
	char only_for[MR_ADDRESS_MAX + 1]; /* QUEUE_READY: nobody else can claim it now; "": everybody can */
	int64_t only_until_ms;
	const struct claim *claim; /* QUEUE_CLAIMED, else NULL */
};
enum settle {           /* how a claim ends */
	SETTLE_BACK,    /* back to where it was; the attempt counts */
	SETTLE_LATER,   /* released: behind all that waits, to its holder only if there is no other work; no attempt */
	SETTLE_SEEN,    /* mail that was shown: into the inbox, seen */
	SETTLE_ARCHIVE, /* mail that was shown and archived */
	SETTLE_DONE,    /* worked off: mail is archived and acked */
	SETTLE_DEAD,    /* failed: mail goes to the dead letters */
};
struct past_claim {                /* a claim that is over */
	const struct claim *claim; /* box, agent, life, attempt, token, since_ms, and the fields of SETTLE_LATER */
	enum settle how;
	int64_t ended_ms;
};

/* Parts of a message that some formats cannot store. */
enum room_field {
	FIELD_SUBJECT = 1,
	FIELD_CC = 2,
	FIELD_TYPE = 4,
	FIELD_PRIORITY = 8,
	FIELD_THREAD = 16,
	FIELD_REPLY_TO = 32,
	FIELD_HEADERS = 64, /* extra ones */
	FIELD_BY = 128,
	FIELD_TO = 256,           /* other recipients */
	FIELD_ATTACHMENTS = 1024, /* checked through ROOM_ATTACHMENTS: room_cannot_hold */
	FIELD_BINARY = 512,       /* a body that is no text: a NUL byte, or no UTF-8 */
};

enum scan_depth {
	SCAN_NAMES, /* id, flags, folder, attempt, token, released_ms; with ROOM_NAMES priority and look */
	SCAN_HEADERS,
	SCAN_BODIES,
	SCAN_RAW, /* only for fetch: body is the message as stored; if content is set, the rest of it is there */
};
enum scan_order {    /* across the folders asked for */
	SCAN_OLDEST, /* by id */
	SCAN_NEWEST,
	/* With ROOM_NAMES, in an order told by the names. Mail with `look` comes first: the caller finds its place. */
	SCAN_URGENCY, /* the more urgent first, then the newer */
	SCAN_WORK,    /* released work last; else the more urgent first, then the older */
};
#define SCAN_STATE_LEN 128
struct scan_state {                /* of an inbox; only a look at the mail tells what changes it */
	char text[SCAN_STATE_LEN]; /* in: from an earlier scan; out: of this scan, "" if mail moved meanwhile */
	bool same;                 /* out: nothing changed since the earlier scan, and nothing was scanned */
};
struct scan_request {
	unsigned folders; /* enum mr_folder */
	enum scan_depth depth;
	enum scan_order order;
	bool unread_only;      /* only without MR_SEEN: lets a driver skip work */
	bool one_is_enough;    /* any one message is enough: the driver may stop at the first */
	const char *id_suffix; /* only ids that end so; NULL: all */
	/* With id_suffix and SCAN_NAMES: adds the ids with that suffix in a store of each_store, if an index knows
	 * them; false: it does not. Or NULL. */
	bool (*ends)(void *ctx, const char *store, struct mr_names *ret);
	void *ends_ctx;
	const char *store; /* only this one of each_store, whose folders are the ones asked for; NULL: all */
	/* For counts, with SCAN_NAMES of inbox and held: each name is reported at once, in any order, without keeping
	 * it, and maybe with a date and no id. A message that moves meanwhile may be reported twice or not at all. With
	 * SCAN_HEADERS this applies to mail without a type; other mail is reported in full. A driver may ignore it. */
	bool glance;
	/* The rest lets a driver with ROOM_NAMES save time and memory; others may ignore it. */
	bool nearest; /* stop at the nearest place with a match: inbox and held, then a month at a time */
	size_t most;  /* at most so many, plus those with `look`; 0: all */
	int64_t since_ms, before_ms; /* skip mail whose id has a time outside; 0: no limit */
	/* Asked for each name, maybe more than once, in any order. False: the message is counted, not shown. */
	bool (*wants)(void *ctx, const char *id);
	void *wants_ctx;
	/* NULL, or set to the number of all matches before the first is shown. A driver without ROOM_NAMES may leave it
	 * untouched. */
	size_t *ret_total;
	struct scan_state *state; /* or NULL; likewise */
	mr_trouble_fn *trouble;
	void *trouble_ctx;
};

struct removal { /* removes, durably */
	enum {
		REMOVE_EVERYWHERE, /* every copy of `id` */
		REMOVE_DEAD,       /* the dead letter `id`, or with `box` (else "") failed work of that queue */
		REMOVE_POSTS,      /* of the channel `box` those below a number: its own copies, not the subscribers' */
		REMOVE_INBOX,      /* all mail of the agent `box`, read or not; does not make a missing mailbox */
	} what;
	const char *box, *id;
	uint64_t below;
};

struct mail_store {       /* a part of a mailbox that changes independently: the inbox, a month of the archive */
	const char *name; /* "" for inbox and held mail together */
	unsigned folders; /* enum mr_folder */
	uint64_t stamp;   /* changes when mail comes in or goes out */
	bool moving;      /* it changed a moment ago: a further change may not change the stamp */
};
typedef bool store_fn(void *ctx, const struct mail_store *store); /* false stops */

struct place_of {              /* one copy of a message */
	const char *agent;     /* "" for the room's own folders */
	enum mr_folder folder; /* 0: only the evidence counts (pending fan-out) */
	unsigned flags;
	const char *state;    /* "unread", "read", "archived", "held", "sent", "dead", "pending"; in a queue
			       * "ready", "delayed", "claimed", "done", "failed"; in a channel "posted" */
	const char *evidence; /* the evidence, a sentence */
};
typedef void place_fn(void *ctx, const struct place_of *place);

/* What one kind has beyond mail, for the users of its program. Each may be NULL. These are not slots, because nothing
 * else asks for them. */
struct room_face {
	/* Runs a verb of that program and adds its output to out. args ends with NULL. */
	enum mr_rc (*run)(struct mr_room *room, const char *verb, const char *const *args, struct mr_str input,
	    struct buf *out, struct mr_error *err);
	/* For a client without a mailbox: the next delivery asks for its answer in that folder. */
	enum mr_rc (*expect_answer)(struct mr_room *room, const char *folder, struct mr_error *err);
	/* The answer in that folder to the message with that native id. With `take` it is removed. MR_NOTFOUND: it is
	 * not there yet. */
	enum mr_rc (*fetch_answer)(struct mr_room *room, const char *folder, const char *id, bool take,
	    struct mr_message *ret, struct mr_error *err);
	/* Where that program has a place for nudges; elsewhere they are records. It replaces the last one: that is the
	 * format's rule. */
	enum mr_rc (*nudge_put)(
	    struct mr_room *room, const char *to, const struct mr_nudge *nudge, struct mr_error *err);
	/* MR_NOTFOUND: there is none. Strings are kept in *own. */
	enum mr_rc (*nudge_get)(
	    struct mr_room *room, const char *agent, struct mr_nudge *ret, struct arena **own, struct mr_error *err);
};

/* What a kind has whose mail lies in files, beside its table of slots: only mailroom-full asks for it. All or none. */
struct room_files {
	/* For an index of the mail: the parts of a mailbox, those first that mail leaves for the others. */
	enum mr_rc (*each_store)(
	    struct mr_room *room, const char *agent, store_fn *fn, void *ctx, struct mr_error *err);
	/* The folder that an index may be kept in, as a path without links; the caller frees it. With `make` it is
	 * made. MR_NOTFOUND: it is not there. MR_REFUSED: it is not this user's alone, or must not be. */
	enum mr_rc (*index_folder)(struct mr_room *room, bool make, char **ret, struct mr_error *err);
	/* Puts a month of the archive ("2026-01") into one compressed file, or back into files. Every slot goes on as
	 * before, but marks and moves of packed mail are MR_REFUSED. MR_REFUSED also: too near a month. */
	enum mr_rc (*pack)(struct mr_room *room, const char *agent, const char *month, bool unpack,
	    struct mr_packed *ret, struct mr_error *err);
};

struct room_driver {
	const char *kind;               /* "maildir", as in maildir:/path */
	unsigned abilities;             /* enum room_ability */
	const char *lead;               /* the agent that the others notify when they are idle; NULL: none */
	const char *agent_variable;     /* names the agent for the kind's own programs; NULL: none */
	const struct room_face *face;   /* or NULL */
	const struct room_files *files; /* or NULL */

#define SLOT(name, params, args, missing, ...) enum mr_rc(*name) params;
#define SLOT_VOID(name, params, args, ...) void(*name) params;
#define SLOT_VALUE(type, name, params, args, missing, ...) type(*name) params;
#include "room/slots.h"
};

struct mr_room {
	const struct room_driver *driver;
	void *state;                          /* the driver's own */
	char *spec;                           /* "maildir:/path" */
	char *name;                           /* the part after '@' */
	struct record settings;               /* lines of the room's settings; empty where a kind has none */
	char *state_dir;                      /* where mailroom keeps files of its own, absolute; or NULL */
	char identity[ROOM_IDENTITY_LEN + 1]; /* random, from the room's settings; "": the kind has none */
	char place[ROOM_PLACE_LEN]; /* identifies the room's folder, so that a copy at its path differs; or "" */
	const char *owner;        /* the agent that the room belongs to, and that acts if nothing else says; or NULL */
	struct sys_relief relief; /* the room's reserve for a full disk: frees it, and makes it again; or {0} */
	struct office *office;    /* what the office keeps with the handle; or NULL */
	void (*office_free)(struct mr_room *room); /* frees it; set with office */
	char *data_dir;                            /* mr_room_options.data_dir, or NULL */
	bool no_index;                             /* mr_room_options.no_index */
	bool must_exist;                           /* mr_room_options.must_exist, for open */
	const struct mr_init_options *making;      /* mr_room_options.init, for open: MR_EXISTS if it is there */
	const char *pool;                          /* for open: mr_room_options.pool */
	const struct mr_names *expects; /* for open: what will be asked for, the acting agent first; or NULL */
	struct mr_names barred;         /* mr_room_barred: filled in by the driver */
	void *watch;                    /* of the last wait, for the next one of the same agent; or NULL */
	char watched[MR_ADDRESS_MAX + 1];
	mr_progress_fn *progress; /* mr_room_on_progress; or NULL */
	void *progress_ctx;
	mr_trace_fn *trace; /* or NULL */
	void *trace_ctx;
	struct room_driver table;        /* the driver's own, stubs in its gaps */
	const struct room_driver *inner; /* the driver that is wrapped */
	void *wrap_state;
};

/* calls.c: stand-ins for the slots that a driver leaves out. */
extern const struct room_driver room_missing;
/* The driver's table with all slots filled. */
void room_fill(struct room_driver *ret, const struct room_driver *driver);
/* Does this room's driver implement that slot itself? */
#define DRIVER_HAS(table, slot) ((table)->slot != room_missing.slot)
#define ROOM_HAS(room, slot) DRIVER_HAS((room)->driver, slot)
#define ROOM_FACE_HAS(room, op) ((room)->driver->face && (room)->driver->face->op)
/* The fields of this message that the room cannot store: the result of `unsupported`, and attachments. */
unsigned room_cannot_hold(struct mr_room *room, const struct mr_message *msg);
/* MR_UNSUPPORTED: "a teams room has no <what>". */
enum mr_rc room_lacks(const struct mr_room *room, const char *what, struct mr_error *err);

/* calls.c: changes a record under its lock, so that no concurrent change is lost:
 *
 *	mr_auto(record_edit_done) struct record_edit e = { 0 };
 *
 *	TRY(record_edit_begin(&e, room, kind, owner, name, err));
 *	... change e.text
 *	return record_edit_save(&e, err);
 *
 * Without record_edit_save nothing is written. The kinds group, queue and channel (owner "") are stored under groups/,
 * queues/ and channels/, where a person finds them. */
struct record_edit {
	struct mr_room *room;
	const char *kind, *owner, *name; /* borrowed */
	bool exists, locked;
	struct buf text; /* empty when there is none */
	struct buf before;
	void *lock;
};
enum mr_rc record_edit_begin(struct record_edit *e, struct mr_room *room, const char *kind, const char *owner,
    const char *name, struct mr_error *err);
/* Writes the text if it changed, and releases the lock. */
enum mr_rc record_edit_save(struct record_edit *e, struct mr_error *err);
void record_edit_done(struct record_edit *e);
/* calls.c: an agent of which only the name is known; every other string is "". */
struct mr_agent room_agent(const char *name);
/* calls.c: fetches work of a queue, with its text. */
enum mr_rc room_fetch_work(
    struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err);

/* calls.c: how much finished mail a room keeps, by its settings (Keep-Archive: and others): a time ("90d", "12w",
 * "48h"; at least a day), a number of messages ("10000"), or a size ("500M", "2G"). NULL, "" and "all": everything.
 * False: the value is wrong; then everything is kept. */
struct room_keep {
	enum { KEEP_ALL, KEEP_TIME, KEEP_COUNT, KEEP_SIZE } by;
	int64_t limit; /* milliseconds, messages, bytes */
};
bool room_keep_parse(const char *value, struct room_keep *ret);
#define ROOM_KEEP_ALLOWED                                                                                              \
	"a time of at least a day (90d, 12w), a number of messages (10000), a size (500M, 2G) or 'all'"
/* What is kept by such a limit: the setting, and the name of the record (kind ROOM_KEPT) that says what was removed.
 * Each line of that record is "Removed: YYYY-MM when before value": mail that was sent in that month and before that
 * time was removed, last at `when`, by that value of the setting. */
#define ROOM_KEPT "kept"
#define ROOM_PACKED "packed" /* a record of that kind: an archive was packed, MR_HAS_PACKS */
enum room_shelf { SHELF_ARCHIVE, SHELF_SENT, SHELF_DONE, SHELF_DEAD, ROOM_SHELVES };
extern const struct room_shelf_name {
	const char *setting, *record, *what;
} room_shelves[ROOM_SHELVES];

/* calls.c: records of finished things, which no command drops. They are removed that long after their last change, so
 * that their number does not grow for ever. */
#define ROOM_OVER_MS ((int64_t)90 * 24 * 3600 * 1000) /* for all without a time of their own */
#define ROOM_OVERS 4
extern const struct room_over {
	const char *kind, *owner;
	int64_t keep_ms;
} room_overs[ROOM_OVERS];
bool room_is_over(const char *kind, const char *owner);

/* Progress of a long call. False: stop. It is cheap enough to be called for every message. */
static inline bool
room_step(const struct mr_room *room, const char *what, size_t done, size_t total)
{
	return !room->progress || room->progress(room->progress_ctx, what, done, total);
}

/* registry.c: the list of drivers; the only file that names them. */
const struct room_driver *room_driver_named(struct mr_str kind);
const struct room_driver *const *room_drivers(void); /* NULL-terminated */
/* A kind whose driver is only in mailroom-full. */
bool room_kind_needs_full(struct mr_str kind);

/* trace.c: wraps a driver in one that reports each call. Call after open; close goes through. */
void room_wrap_trace(struct mr_room *room);

/* Identifies an open folder, so that another one at its path differs: by device and inode. File systems without a
 * device of their own (btrfs, overlay) get a new number with each mount; there the identity of the file system is used
 * instead. */
const char *room_place(int fd, const struct stat *st, char ret[ROOM_PLACE_LEN]);

/* open.c: spec -> open room (without recovery and policy; the office adds those). */
/* Only state_dir and must_exist of the options (NULL: none) are used here. */
enum mr_rc room_open_spec(
    const char *spec, const struct mr_room_options *options, struct mr_room **ret, struct mr_error *err);
void room_forget_watch(struct mr_room *room);

#endif
