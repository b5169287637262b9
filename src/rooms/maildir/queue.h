/* SPDX-License-Identifier: MIT */
/*
 * queue.h - what the queue_*.c files share. On disk:
 *
 *	queues/<name>/settings                       its record; a folder without one is no queue
 *	queues/<name>/ready/<p>/<bucket>/<file>      p: 0 urgent, 1 high, 2 normal, 3 low; buckets: queue_bucket.c
 *	queues/<name>/ready/<p>/.low .high           the ends of the buckets, remembered
 *	queues/<name>/delayed/<not before, ms>.p<p>.<file>
 *	queues/<name>/claimed/h.<token>.<deadline>.<attempt>.p<p>.<file>
 *	queues/<name>/done/<YYYY-MM>/<file>          month (UTC) of the id
 *	queues/<name>/failed/<file>
 *	queues/<name>/past/<YYYY-MM>/<id>.<token>.<attempt>.<ended, ms>.<how>   claims that are over: past.c
 *	queues/<name>/.lock                          flock: settings, and claims where their number is limited
 *
 * <file> is `<unix seconds>.<id>.mr`, with `,A=<n>` once a claim came to nothing and `,B=...` once it was released. "/"
 * in a name is "%2F". Temporary files are made beside the settings, so that what is in the folders is work and nothing
 * else.
 */
#ifndef ROOMS_MAILDIR_QUEUE_H
#define ROOMS_MAILDIR_QUEUE_H

#include "rooms/maildir/maildir.h"

#define QUEUE_PRIORITIES 4u
#define QUEUE_WORK ((unsigned)QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED) /* what is still to be done */
#define QUEUE_ANY (QUEUE_WORK | QUEUE_DONE | QUEUE_FAILED)

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
unsigned queue_digit(enum mr_priority priority);
enum mr_priority queue_priority(unsigned digit);

/* ---- queue_name.c (pure) ---- */
struct work_name {             /* the parts of a name in any folder of a queue */
	struct file_name file; /* held names: with token, deadline, attempt */
	unsigned p;            /* QUEUE_CLAIMED, QUEUE_DELAYED */
	int64_t not_before_ms; /* QUEUE_DELAYED */
};
/* False: no name of work in that state. Points into `name`. */
bool work_parse(enum queue_state state, struct mr_str name, struct work_name *ret);
/* `file` is the name that it has in ready/. False: too long. */
bool work_claimed_name(
    const char *token, int64_t deadline_s, unsigned attempt, unsigned p, const char *file, char ret[NAME_LEN]);
bool work_delayed_name(int64_t not_before_ms, unsigned p, const char *file, char ret[NAME_LEN]);
unsigned work_attempt(const struct work_name *n); /* how often it was claimed */

/* ---- queue_bucket.c ---- */
struct buckets { /* of one priority, ascending; finish with buckets_done */
	int fd;  /* ready/<p> */
	uint32_t *v;
	size_t n;
	bool failed; /* out of memory */
};
#define BUCKETS_INIT ((struct buckets){ .fd = -1 })
/* None, also no folder: MR_OK and n is 0; fd is -1 in the latter case unless `make`. */
enum mr_rc buckets_read(const struct queue *q, unsigned p, bool make, struct buckets *ret, struct mr_error *err);
/* Only the lowest or the highest one, mostly without reading them all. */
enum bucket_end { BUCKET_LOWEST, BUCKET_HIGHEST };
enum mr_rc bucket_end(
    const struct queue *q, unsigned p, enum bucket_end end, bool make, struct buckets *ret, struct mr_error *err);
/* Remembers an end that was just seen in a list. Best effort. */
void bucket_note(const struct queue *q, const struct buckets *b, enum bucket_end end, uint32_t number);
void buckets_done(struct buckets *b);
enum mr_rc bucket_open(const struct buckets *b, size_t i, int *ret_fd, struct mr_error *err); /* MR_NOTFOUND: gone */
/* The last one of the list is the highest, and as full as it may become: makes the next one. Best effort. */
void bucket_rotate(const struct queue *q, const struct buckets *b);
/* An empty one that is not the highest. Best effort. */
void bucket_remove(const struct buckets *b, size_t i);
/* Puts work into a bucket: new work into the highest, what comes back into the lowest. `put` links or renames into
 * that folder, MR_NOTFOUND when it cannot because something is missing; if it is the bucket, the next one is tried.
 * *ret_fd (or NULL) is the bucket that was taken. */
typedef enum mr_rc bucket_put_fn(void *ctx, int bucket_fd, struct mr_error *err);
enum mr_rc bucket_put(const struct queue *q, unsigned p, enum bucket_end end, bucket_put_fn *put, void *ctx,
    int *ret_fd, struct mr_error *err);

/* ---- queue_walk.c ---- */
struct work_folder {
	enum queue_state state;
	unsigned p; /* QUEUE_READY */
	int fd;
	const char *path; /* "ready/2/00000003", relative to the queue */
};
/* Anything but MR_OK ends the walk and is returned. */
typedef enum mr_rc work_folder_fn(void *ctx, const struct work_folder *at, struct mr_error *err);
enum mr_rc queue_each_folder(
    const struct queue *q, unsigned states, work_folder_fn *fn, void *ctx, struct mr_error *err);
/* Names in a folder, without those that begin with a dot. */
enum mr_rc queue_names_in(int fd, struct mr_names *ret, struct mr_error *err);
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
void work_at_done(struct work_at *at);
/* MR_NOTFOUND: in no folder, although it was looked for until nothing moved meanwhile. */
enum mr_rc queue_find(const struct queue *q, const char *id, struct work_at *ret, struct mr_error *err);

/* ---- past.c ---- */
void past_remove(const struct queue *q, const char *id); /* NULL: all. Best effort */

/* ---- queue_send.c ---- */
/* A single new message: text is written into `file`, which becomes work of the queue, durable. MR_EXISTS: the id is
 * taken. */
enum mr_rc queue_publish(
    struct queue *q, const struct mr_message *msg, struct mr_str text, struct staged *file, struct mr_error *err);

#endif
