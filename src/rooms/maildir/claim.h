/* SPDX-License-Identifier: MIT */
/*
 * claim.h - claims on mail and on work: what these files share.
 *
 *	claim.c        claims: take mail of a mailbox, settle, extend, list, find again (essay on races)
 *	token.c        holds/<token>: who holds, and still does; past/: what it said of claims that are over
 *	sweep.c        giving back what nobody holds any more; what an older life held
 *	queue.c        a queue's folders: names of work, walking, finding, reading, removing
 *	queue_ready.c  buckets of waiting work (essay): work that comes in, taking the next one
 *
 * A mailbox is a queue with one claimer. On disk the two differ:
 *
 *	agents/<address>/held/<life>/h.<token>.<deadline>.<attempt>.<name it had>
 *
 *	queues/<name>/settings                       its record; a folder without one is no queue
 *	queues/<name>/ready/<p>/<bucket>/<file>      p: 0 urgent, 1 high, 2 normal, 3 low; buckets: queue_ready.c
 *	queues/<name>/ready/<p>/.low .high           the ends of the buckets, remembered
 *	queues/<name>/delayed/<not before, ms>.p<p>.<file>
 *	queues/<name>/claimed/h.<token>.<deadline>.<attempt>.p<p>.<file>
 *	queues/<name>/done/<YYYY-MM>/<file>          month (UTC) of the id
 *	queues/<name>/failed/<file>
 *	queues/<name>/past/<YYYY-MM>/<id>.<token>.<attempt>.<ended, ms>.<how>   claims that are over: token.c
 *	queues/<name>/.lock                          flock: settings, and claims where their number is limited
 *
 * <file> is `<unix seconds>.<id>.mr`, with `,A=<n>` once a claim came to nothing and `,B=...` once it was released. "/"
 * in a name is "%2F". Temporary files are made beside the settings, so that what is in the folders is work and nothing
 * else.
 */
#ifndef ROOMS_MAILDIR_CLAIM_H
#define ROOMS_MAILDIR_CLAIM_H

#include "rooms/maildir/maildir.h"

#define QUEUE_PRIORITIES 4u
#define QUEUE_WORK ((unsigned)QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED) /* what is still to be done */
#define QUEUE_ANY (QUEUE_WORK | QUEUE_DONE | QUEUE_FAILED)

/* ---- Of slots ---- */
enum mr_rc maildir_queue_make(struct mr_room *room, const char *queue, struct mr_error *err);
enum mr_rc maildir_queue_remove(
    struct mr_room *room, const char *queue, bool to_dead, size_t *ret_dead, struct mr_error *err);
enum mr_rc maildir_queue_fetch(
    struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err);

/* ---- queue.c ---- */
struct queue { /* open; by value, finish with queue_done */
	struct maildir *md;
	char name[MR_ADDRESS_MAX + 1];
	int fd; /* queues/<name> */
};
#define QUEUE_INIT ((struct queue){ .fd = -1 })
/* MR_NOTFOUND: no such queue (any more). */
enum mr_rc queue_open(struct queue *q, struct maildir *md, const char *name, struct mr_error *err);
/* Without the check for settings: what a removed queue has left. */
enum mr_rc queue_open_any(struct queue *q, struct maildir *md, const char *name, struct mr_error *err);
void queue_done(struct queue *q);
bool queue_is_there(const struct queue *q);                       /* its settings, right now */
enum mr_rc queue_missing(const char *name, struct mr_error *err); /* the sentence for MR_NOTFOUND */
/* Opens a folder of it, makes it where it is missing. */
enum mr_rc queue_folder(const struct queue *q, const char *path, int *ret_fd, struct mr_error *err);
/* Names of all folders in queues/, also of removed queues; the caller frees them. */
enum mr_rc queue_names(struct maildir *md, struct mr_names *ret, struct mr_error *err);
/* Names in a folder, without those that begin with a dot, in order. All of them before the first is moved: a folder is
 * not read while its files are. */
enum mr_rc names_in(int fd, struct mr_names *ret, struct mr_error *err);

struct work_name {             /* the parts of a name in any folder of a queue */
	struct file_name file; /* claimed names: with token, deadline, attempt */
	unsigned p;            /* QUEUE_CLAIMED, QUEUE_DELAYED */
	int64_t not_before_ms; /* QUEUE_DELAYED */
};
/* Pure. False: no name of work in that state. Points into `name`. */
bool work_parse(enum queue_state state, struct mr_str name, struct work_name *ret);
/* `file` is the name that it has in ready/. False: too long. */
bool work_claimed_name(
    const char *token, int64_t deadline_s, unsigned attempt, unsigned p, const char *file, char ret[NAME_LEN]);
bool work_delayed_name(int64_t not_before_ms, unsigned p, const char *file, char ret[NAME_LEN]);
unsigned work_attempt(const struct work_name *n); /* how often it was claimed */

/* For whom alone released work is now; the name has only a hash, so the agents of the room are asked, once (`agents`).
 * False: for everybody, also because that agent was removed. "?": the agents cannot be listed. */
bool queue_only_for(
    struct maildir *md, struct mr_names *agents, const struct released *r, char ret[MR_ADDRESS_MAX + 1]);
struct work_at { /* one message found; finish with work_at_done */
	enum queue_state state;
	unsigned p;    /* not for done and failed, whose names do not tell */
	int fd;        /* its folder */
	char path[48]; /* of the folder */
	char name[NAME_LEN];
};
#define WORK_AT_INIT ((struct work_at){ .fd = -1 })
/* All work in those states. The names of a folder are read before the first is told: fn may move it. Anything but MR_OK
 * ends the walk and is returned. */
typedef enum mr_rc work_fn(void *ctx, const struct work_at *at, const struct work_name *n, struct mr_error *err);
enum mr_rc queue_each_work(const struct queue *q, unsigned states, work_fn *fn, void *ctx, struct mr_error *err);
void work_at_done(struct work_at *at);
/* MR_NOTFOUND: in no folder, although it was looked for until nothing moved meanwhile. */
enum mr_rc queue_find(const struct queue *q, const char *id, struct work_at *ret, struct mr_error *err);
enum mr_rc queue_each(struct maildir *md, const char *queue, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err);

/* ---- queue_ready.c ---- */
struct buckets { /* of one priority, ascending; finish with buckets_done */
	int fd;  /* ready/<p> */
	uint32_t *v;
	size_t n, cap;
	bool failed; /* out of memory */
};
#define BUCKETS_INIT ((struct buckets){ .fd = -1 })
void buckets_done(struct buckets *b);
/* None, also no folder: MR_OK and n is 0; fd is -1 in the latter case. */
enum mr_rc buckets_read(const struct queue *q, unsigned p, struct buckets *ret, struct mr_error *err);
enum bucket_end { BUCKET_LOWEST, BUCKET_HIGHEST };
/* The last one of the list is the highest, and as full as it may become: makes the next one. Best effort. */
void bucket_rotate(const struct queue *q, const struct buckets *b);
/* Puts work into a bucket: new work into the highest, what comes back into the lowest. `put` links or renames into
 * that folder, MR_NOTFOUND when it cannot because something is missing; if it is the bucket, the next one is tried.
 * *ret_fd (or NULL) is the bucket that was taken. */
typedef enum mr_rc bucket_put_fn(void *ctx, int bucket_fd, struct mr_error *err);
enum mr_rc bucket_put(const struct queue *q, unsigned p, enum bucket_end end, bucket_put_fn *put, void *ctx,
    int *ret_fd, struct mr_error *err);
/* A single new message: text is written into `file`, which becomes work of the queue, durable. MR_EXISTS: the id is
 * taken. */
enum mr_rc queue_publish(
    struct queue *q, const struct mr_message *msg, struct mr_str text, struct staged *file, struct mr_error *err);

/* The next work that is ready. `claim` has agent, box, life and kind. */
enum mr_rc queue_claim_next(
    struct maildir *md, const char *queue, const struct claim_terms *terms, struct claim *claim, struct mr_error *err);

/* ---- token.c ---- */
/* Makes holds/<token> of a new claim, which has agent, box, life and kind: fills in token, deadline_ms, since_ms. All
 * claims that last as long as this handle share one file: made once, locked, and visible when this returns. */
enum mr_rc token_take(struct maildir *md, const struct claim_terms *terms, struct claim *claim, struct mr_error *err);
/* What the file says of the holder: agent, life, box, since_ms, kind. MR_NOTFOUND: there is none. */
enum mr_rc token_read(struct maildir *md, const char *token, struct claim *claim, struct mr_error *err);
/* Writes the new deadline of a lease, keeping what else is known of its holder. */
enum mr_rc token_extend(struct maildir *md, const struct claim *claim, int64_t lease_ms, struct mr_error *err);
/* Adds what a release says to the file. */
enum mr_rc token_note(struct maildir *md, const struct claim *claim, struct mr_error *err);
struct lease_time {
	bool shares_clock; /* the record is of this boot, and its clock can be read here */
	int64_t boot_now_ms, boot_deadline_ms;
	int64_t now_ms, deadline_ms; /* by the wall clock */
};
bool lease_time_is_up(const struct lease_time *t);
/* Is the claim over: its holder dead, its time up? In doubt it is not. */
bool token_is_over(struct maildir *md, const struct file_name *held);
void token_drop(struct maildir *md, const char *token); /* best effort: a file without mail means nothing */
/* The file of a process that is dead, locked so that it cannot come alive while it is removed. -1: its process lives,
 * it is a lease, another agent's, or it cannot be judged. agent NULL: anybody's. */
int token_of_dead(int holds_fd, const char *token, const char *agent);
/* A lease is at most as long as the office allows. */
int64_t lease_clamp(int64_t lease_ms);
/* Whole seconds, rounded up: a name never promises less than was asked for. */
int64_t lease_deadline_s(int64_t lease_ms);
/* The claim is over: what holds/<token> says of it moves into the past of the queue, or with NULL of the agents' own
 * mail. Best effort. */
void past_keep(struct maildir *md, const struct queue *q, const struct file_name *n, enum settle how);
void past_remove(const struct queue *q, const char *id); /* NULL: all. Best effort */

/* ---- sweep.c ---- */
/* Gives the mail back that the agent's dead processes and old lives held; their files in holds/ stay. */
enum mr_rc sweep_mail(struct maildir *md, const char *agent, struct mr_error *err);

/* ---- claim.c ---- */
/* What a name in held/ or claimed/ says: id, token, attempt, deadline_ms, kind. */
void claim_from_name(const struct file_name *n, struct claim *ret);
/* Ends a claim on mail: renames held_fd/name (parts n) to where `how` says. MR_NOTFOUND: someone else ended it. */
enum mr_rc mail_end(
    struct mailbox *box, int held_fd, const char *name, struct file_name *n, enum settle how, struct mr_error *err);

#endif
