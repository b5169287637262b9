/* SPDX-License-Identifier: MIT */
/*
 * postgres.h - what the files of the driver for PostgreSQL share. A room is one schema of a database; every slot is one
 * SQL function (functions.sql): one statement, one transaction, one round trip. No transaction is open while an agent
 * works.
 *
 *	postgres.c   the table of operations; the spec; opening a room; what is known of its storage
 *	make.c       making and upgrading a room; roles and logins
 *	ahead.c      what need not be asked for (essay)
 *	call.c       a call's arguments and rows
 *	conn.c       connecting, and why not
 *	wire.c       one exchange with the server
 *	run.c        a call whose answer may be lost (essay)
 *	agents.c     names and lives
 *	deliver.c    sending
 *	content.c    bodies with attachments
 *	mail.c       scan, fetch, mark, remove; posts of channels
 *	claim.c      claims on mail and on work
 *	records.c    records and their locks; queues and channels as places
 *	watch.c      waiting
 *	local.c      what this machine keeps: the newest server that it met, messages in doubt
 *	care.c       where a message is; doctor
 *	tables.sql, step2.sql to step6.sql, functions.sql   compiled in by tools/gen-sql
 */
#ifndef ROOMS_POSTGRES_POSTGRES_H
#define ROOMS_POSTGRES_POSTGRES_H

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "message/message.h"
#include "room/room.h"
#include <libpq-fe.h>

#define PG_SCHEMA_MAX 40
#define PG_ARGS_MAX 20
#define PG_OFTEN_MAX 16
#define LOOK_AGAIN_MS ((int64_t)3600 * 1000) /* for what the settings do not keep */
#define LOOK_SOON_MS 1000
#define PG_FORMAT 3    /* of the schema: a newer one is refused. 1: without table chunk; 2: other arguments of send() */
#define PG_MIGRATION 6 /* what this program needs: tables.sql is 1 */

struct pg_watch {
	char name[MR_ADDRESS_MAX + 16]; /* "bob", "queue:builds", "channel:news"; "": the whole room */
	char channel[48];               /* of LISTEN */
	bool rung;
	int64_t pause_ms; /* until the next look without a ring; grows */
	uint64_t print;   /* the whole room: what watch_room said last */
	struct pg_watch *next;
};

struct pg_lock { /* a record lock that this handle has */
	char *kind, *owner, *name;
	struct pg_lock *next;
};

/*
 * What was learned with another answer, so that it need not be asked for: a command asks within milliseconds, over a
 * network that takes longer. It stands for a second or a few, and until this handle changes something of it or is
 * woken.
 */
struct pg_memo {
	char *small;      /* lines "kind name": small_records() of the owner; NULL: not known */
	int64_t until_ms; /* by the boot clock */
	char owner[MR_ADDRESS_MAX + 1];
	/* of an agent */
	bool told_looked; /* at what was told already: another process may tell more, and the next look asks */
	unsigned life;
	char *session;
};

struct pg_seen {           /* a server, as hello() tells of it */
	int64_t timeline;  /* grows by one with every promotion; 0: not known */
	int64_t position;  /* in the write-ahead log, bytes */
	char system[48];   /* number of the cluster and of the database in it */
	bool acknowledged; /* noted that something was, behind that position */
};

struct pg_held {    /* what this handle did to a letter since it was listed */
	bool ahead; /* held together with another one, and not asked for yet */
	bool claimed, gone;
	unsigned attempt, flags;
	enum mr_priority priority;
	bool look;
	int64_t since_ms;
	char token[MR_TOKEN_LEN + 1];
};

struct pg_ends { /* ends of holds that the next flush, or the next call of another kind, tells the server */
	struct mr_names ids, hows, ahead;
	char box[MR_ADDRESS_MAX + 1];
};

struct pg_letters { /* a list of names, with the text of the first ones */
	PGresult *rows;
	int n;
	struct pg_held *held; /* one for each row */
	int64_t until_ms;
	char box[MR_ADDRESS_MAX + 1];
};

struct pg_spool { /* a long body in a temporary file; finish with pg_spool_done */
	struct staged file;
	int folder;
	uint64_t bytes;
};
#define PG_SPOOL_INIT ((struct pg_spool){ .file = STAGED_INIT, .folder = -1 })

struct pg_call { /* finish with pg_call_done */
	const char *function;
	const char *values[PG_ARGS_MAX];
	int lengths[PG_ARGS_MAX], formats[PG_ARGS_MAX];
	int n;
	int again;                      /* the argument that says "asked again", or -1 */
	bool reads;                     /* changes nothing: a lost answer leaves nothing in doubt */
	bool session;                   /* needs a session of its own */
	bool value;                     /* the function returns one value: as an expression it is cheaper to call */
	int64_t wait_ms;                /* the server may wait so long before it answers */
	const struct mr_names *poke[3]; /* agents, queues, channels to wake behind it; NULL: none */
	struct arena *own;
	bool failed; /* out of memory */
	bool asked_again;
	bool tells;               /* the caller says that the server was away */
	struct pg_call *before;   /* NULL, or another one that goes in front of it in the same pipeline */
	struct pg_spool *content; /* NULL, or a body that goes in front of it, in the same transaction */
	PGresult *rows;           /* binary */
};

#define PG_BATCH_MAX 256
struct pg_batch { /* calls of one pipeline, each in front of the next; by calloc */
	struct pg_call v[PG_BATCH_MAX];
	size_t n;
	struct arena *own;
};

struct postgres { /* room->state */
	struct mr_room *room;
	PQconninfoOption *options; /* of the spec */
	PQconninfoOption
	    *pool; /* of MAILROOM_POOL: for all that needs no session of its own; NULL: none, or not any more */
	char schema[PG_SCHEMA_MAX + 1];
	PGconn *conn;                 /* NULL: none */
	int64_t owner;                /* the process that connected: after a fork the connection is the parent's */
	bool making;                  /* the room need not be there */
	bool answered;                /* a room was opened: from now on a lost connection is made anew */
	bool pooled;                  /* between us and the server is a pool: nothing may be kept with the session */
	bool guarded;                 /* a login acts for some agents only: senders are proven */
	char acts[120];               /* those of this login */
	unsigned pending;             /* answers that nobody waited for, and that were not read yet */
	bool told_away;               /* that the server was away is on the list of what the command says at its end */
	bool warned;                  /* a WARNING came: the server may not have waited for its standby */
	char token[MR_TOKEN_LEN + 1]; /* of all claims that last as long as this handle; "": none yet */
	struct pg_watch *watches;
	struct pg_lock *locks;
	struct remote *remotes; /* messages whose content is at the server (content.c) */
	struct pg_seen seen;    /* of the server that we are connected to */
	int64_t apart_ms;       /* the clock of the database is ahead of ours by so much */
	int64_t away_ms;        /* how long the server did not answer, during the last call */
	int64_t shift_ms;       /* test builds: what wall() of the session is shifted by */
	struct mr_storage storage;
	struct pg_memo room_memo, self_memo;
	struct mr_names listed;  /* agents that this login acts for, in this order; */
	size_t glanced;          /* the mail of the first so many was looked at together */
	struct mr_names others;  /* agents that it does not act for */
	struct mr_names expects; /* what the words of the command are about, the acting agent first; empty: not known */
	struct pg_kept *kept;    /* answers, by what was asked */
	struct pg_letters letters;
	struct mr_names ahead; /* ids of what was held together with others, and not ended */
	struct pg_ends ends;
	char sweeps[MR_ADDRESS_MAX + 1]; /* a mailbox that is swept with the next call; "": none */
	bool tidies, look_due;           /* it may change the room; and what is kept no longer is to be looked for */
	int64_t look_ms;                 /* by the boot clock: a handle that lives long looks then */
	struct {                         /* functions that were called on this connection */
		const char *function;
		unsigned times;
	} often[PG_OFTEN_MAX];
	unsigned trips; /* round trips so far, without those of connecting */
};

static inline struct postgres *
pg_of(struct mr_room *room)
{
	return room->state;
}

extern const char pg_tables_sql[], pg_step2_sql[], pg_step3_sql[], pg_step4_sql[], pg_step5_sql[], pg_step6_sql[],
    pg_functions_sql[];

/* ---- call.c ---- */
#define PG_CALL(name) ((struct pg_call){ .function = (name), .again = -1 })
#define PG_READ(name) ((struct pg_call){ .function = (name), .again = -1, .reads = true })
/* The next arguments of a call: PG_BIND(&c, TEXT(name), INT(life), AGAIN). They are not copied, but numbers, names and
 * processes. */
struct pg_arg {
	enum {
		PG_ARG_TEXT,
		PG_ARG_INT,
		PG_ARG_BYTES,
		PG_ARG_NAMES,
		PG_ARG_PROCESS, /* four: pid, start, namespace, boot */
		PG_ARG_PLACE,   /* two: the kind and the name of an agent, "queue:NAME" or "channel:NAME" */
		PG_ARG_AGAIN    /* says that it is asked again */
	} kind;
	union {
		const char *text; /* NULL: NULL */
		int64_t number;
		struct mr_str bytes;
		const struct mr_names *names; /* empty: NULL */
		const struct mr_process *process;
	};
};
#define TEXT(z) ((struct pg_arg){ .kind = PG_ARG_TEXT, .text = (z) })
#define INT(n) ((struct pg_arg){ .kind = PG_ARG_INT, .number = (int64_t)(n) })
#define BOOL(b) ((struct pg_arg){ .kind = PG_ARG_TEXT, .text = (b) ? "t" : "f" })
#define BYTES(...) ((struct pg_arg){ .kind = PG_ARG_BYTES, .bytes = __VA_ARGS__ })
#define NAMES(v) ((struct pg_arg){ .kind = PG_ARG_NAMES, .names = (v) })
#define PROCESS(p) ((struct pg_arg){ .kind = PG_ARG_PROCESS, .process = (p) })
#define PLACE(box) ((struct pg_arg){ .kind = PG_ARG_PLACE, .text = (box) })
#define AGAIN ((struct pg_arg){ .kind = PG_ARG_AGAIN })
#define PG_BIND(c, ...)                                                                                                \
	pg_bind(c, (const struct pg_arg[]){ __VA_ARGS__ },                                                             \
	    sizeof((const struct pg_arg[]){ __VA_ARGS__ }) / sizeof(struct pg_arg))
void pg_bind(struct pg_call *c, const struct pg_arg *args, size_t n);
void pg_array(struct pg_call *c, const struct mr_str *v, size_t n, bool bytes); /* text[] or bytea[] */
void pg_call_done(struct pg_call *c);

int64_t pg_get_int(const struct pg_call *c, int row, int column);      /* also bool; NULL: 0 */
const char *pg_get_text(const struct pg_call *c, int row, int column); /* NULL: "" */
struct mr_str pg_get_bytes(const struct pg_call *c, int row, int column);
struct mr_process pg_get_process(const struct pg_call *c, int row, int column);
/* The column `rc` of functions.sql: of the first row. A row that is not there, or says nothing, is no success. */
enum { PG_NOTHING = -1, PG_DONE = 0, PG_EMPTY = 1, PG_NOTFOUND = 2, PG_REFUSED = 3, PG_EXISTS = 5, PG_BUSY = 6 };
int64_t pg_rc(const struct pg_call *c);

/* ---- conn.c ---- */
enum mr_rc pg_connect(struct postgres *pg, struct mr_error *err);
/* Until `until_ms` by the boot clock, where it may help. */
enum mr_rc pg_connect_until(struct postgres *pg, int64_t until_ms, struct mr_error *err);
void pg_disconnect(struct postgres *pg);
void pg_leave_pool(struct postgres *pg);
/* What each host of the list in the spec is, in words; returns how many can be written to. */
unsigned pg_each_host(const struct postgres *pg, struct buf *ret_line);
/* The error of a statement of `what`. */
enum mr_rc pg_fail(struct postgres *pg, const PGresult *rows, const char *what, struct mr_error *err);
const char *pg_state_of(const PGresult *rows); /* its SQLSTATE; "": none */

/* ---- wire.c ---- */
enum pg_asked { PG_ASKED_DONE, PG_ASKED_LOST, PG_ASKED_AWAY /* nothing was done */, PG_ASKED_REPEAT, PG_ASKED_FAILED };
/* Once, on the connection that is there. */
enum pg_asked pg_ask(struct postgres *pg, struct pg_call *c, struct mr_error *err);
/* How long a server that is gone is waited for; half as long again counts one as gone that does not answer. */
int64_t pg_patience_ms(const struct postgres *pg);
void pg_notices(struct postgres *pg); /* rings the watches that the server told of */
/* Sends it, and does not wait for the answer: for what is done as well as can be. */
void pg_send_off(struct mr_room *room, struct pg_call *c);
/* Text of several statements, as one transaction if it says so. */
enum mr_rc pg_script(struct postgres *pg, const char *sql, const char *what, struct mr_error *err);
#ifdef MR_FAULT_ENV
void pg_follow_clock(struct postgres *pg);
#endif

/* ---- run.c ---- */
/* On failure *err says why, whatever happened on the way; on success it is untouched. */
enum mr_rc pg_run(struct mr_room *room, struct pg_call *c, struct mr_error *err);

/* ---- ahead.c ---- */
void pg_forget(struct pg_memo *memo);
void pg_forget_all(struct postgres *pg);
/* NULL, or the memo of that owner if it still stands. */
const struct pg_memo *pg_memo(const struct postgres *pg, const char *owner);
void pg_remember(struct postgres *pg, const char *owner, const struct pg_call *c, int row, int column);
/* The row of life_newest(). False: out of memory. */
bool pg_remember_life(struct postgres *pg, const char *name, const struct pg_call *c);
bool pg_is_small(const char *kind, const char *owner); /* is it among small_records()? */
enum pg_known { PG_UNKNOWN, PG_MISSING, PG_THERE };
enum pg_known pg_small_record(
    struct postgres *pg, const char *kind, const char *owner, const char *name, struct buf *ret);
bool pg_expect(struct postgres *pg, const struct mr_names *expects); /* false: out of memory */
/* Is the answer to this call known? */
bool pg_kept_find(struct postgres *pg, struct pg_call *c);
void pg_keep_copy(struct postgres *pg, const struct pg_call *c);
void pg_kept_done(struct postgres *pg);
struct pg_call *pg_batch_add(struct pg_batch *b, const char *function); /* NULL: it is full */
void pg_batch_keep(struct postgres *pg, struct pg_batch *b);            /* the answers; and frees it */
struct pg_batch *pg_expected(struct postgres *pg);                      /* NULL: nothing is */
void pg_expect_sent(struct pg_batch *b, const char *agent, const struct mr_message *msg);
void pg_ask_ahead(struct mr_room *room, struct pg_batch *b); /* wire.c; and frees it */
void pg_letters_keep(struct postgres *pg, const char *box, struct pg_call *c);
/* NULL: not among them. */
struct pg_held *pg_letter_held(struct postgres *pg, const char *box, const char *id, int *ret_row);
void pg_letter_gone(struct postgres *pg, const char *box, const char *id);
void pg_letters_done(struct postgres *pg);
bool pg_was_ahead(struct postgres *pg, const char *id); /* held by a page; and is not any more */
void pg_end_hold(struct postgres *pg, const char *box, const char *id, const char *how); /* with the next flush */

/* ---- claim.c ---- */
void pg_add_sweep(struct postgres *pg, struct pg_call *c, const struct mr_names *dead); /* and owes it no more */
/* The rows of a sweep: claims of this machine whose holders are dead are put back, too; *ret_more: some were. */
enum mr_rc pg_swept(struct mr_room *room, const char *agent, struct pg_call *c, bool *ret_more, struct mr_error *err);

/* ---- postgres.c ---- */
/* What hello() said: is it a room that this program can use? */
enum mr_rc pg_greeted(struct postgres *pg, const struct pg_call *c, struct mr_error *err);
/* hello() is not there: why. */
enum mr_rc pg_no_room(struct postgres *pg, struct mr_error *err);

/* ---- make.c ---- */
enum mr_rc pg_make(struct postgres *pg, const struct mr_init_options *how, struct mr_error *err);

/* ---- content.c ---- */
enum mr_rc pg_spool_open(struct mr_room *room, struct pg_spool *s, struct mr_error *err);
void pg_spool_done(struct pg_spool *s);
enum mr_rc pg_spool_each(const struct pg_spool *s, bytes_fn *to, void *ctx, struct mr_error *err);
/* The body of msg behind its header block in `text`; a long one goes into the spool, and in the text is its outline. */
enum mr_rc pg_content_gather(
    struct mr_room *room, const struct mr_message *msg, struct buf *text, struct pg_spool *spool, struct mr_error *err);
/* What is behind the first `at` bytes of the stored message, for msg->content. On failure it is done with msg. */
enum mr_rc pg_content_attach(
    struct mr_room *room, const char *box, uint64_t at, uint64_t bytes, struct mr_message *msg, struct mr_error *err);
void pg_contents_close(struct postgres *pg); /* messages that are still there have no attachments any more */
/* The message of that header block; msg->id says which. */
enum mr_rc pg_content_read(struct mr_room *room, const char *box, struct mr_str head, struct mr_str outline,
    int64_t total, struct mr_message *msg, struct mr_error *err);

/* ---- local.c ---- */
/* A folder of what this machine keeps of the room. MR_NOTFOUND: it keeps nothing. */
enum mr_rc pg_folder(const struct mr_room *room, const char *below, bool make, int *ret_fd, struct mr_error *err);
/* Is that server the newest that this machine has met? MR_IO: an old primary; MR_REFUSED: a copy. */
enum mr_rc pg_seen_check(struct mr_room *room, const struct pg_seen *now, struct mr_error *err);
/* `acknowledged`: something was, after that position. */
void pg_seen_note(struct mr_room *room, struct pg_seen *now, bool acknowledged);
/* Which host of the list in the spec served last; 0: the first, or not known. */
size_t pg_host_last(const struct mr_room *room);
void pg_host_note(const struct mr_room *room, size_t host, size_t last);
/* Keeps a call of send() that is in doubt, durably; names: its agents, queues, channels. */
enum mr_rc pg_outbox_keep(
    struct mr_room *room, struct pg_call *c, const struct mr_names *const names[3], struct mr_error *err);
/* Asks for what was kept. MR_OK: none is left. */
enum mr_rc pg_outbox_send(struct mr_room *room, struct mr_error *err);
void pg_outbox_tell(struct mr_room *room, const char *id, place_fn *fn, void *ctx);

/* ---- agents.c ---- */
enum mr_rc pg_no_agent(const char *name, struct mr_error *err);
enum mr_rc pg_agent_remove(struct mr_room *room, const char *name, size_t *ret_dead, struct mr_error *err);

/* ---- records.c ---- */
void pg_lock_free(struct pg_lock *lock);

/* ---- watch.c ---- */
bool pg_watch_rang(const void *watch); /* did the last wait end by a ring? */

/* ---- deliver.c ---- */
struct pg_sent { /* what send() says of one message: "RC ID NOTE" */
	int rc;
	char id[MR_ID_LEN + 1];
	const char *note; /* in the rows */
};
struct pg_sent pg_sent(const struct pg_call *c, int row);

/* ---- care.c ---- */
void pg_retain(struct mr_room *room); /* what the settings of the room do not keep */

/* ---- The slots ---- */
#define SLOT(name, params, args, missing, ...) enum mr_rc pg_slot_##name params;
#define SLOT_VOID(name, params, args, ...) void pg_slot_##name params;
#define SLOT_VALUE(type, name, params, args, missing, ...) type pg_slot_##name params;
#include "room/slots.h"

#endif
