/* SPDX-License-Identifier: MIT */
/*
 * mem.h - what the files of the in-memory driver share.
 *
 * A mem room lives and dies with its handle: tests of everything above a room run on it, and it
 * shows in a few hundred lines what a driver has to do. Mail is kept as the RFC 5322 bytes that any
 * other room would store, so that writing and parsing are exercised here too.
 *
 *	mem.c          the table of operations, open, close
 *	mem_box.c      mailboxes and the copies in them
 *	mem_agents.c   names and lives
 *	mem_deliver.c  deliver
 *	mem_mail.c     scan, fetch, mark, move
 *	mem_hold.c     holds
 *	mem_records.c  records
 *	mem_place.c    places, purge
 *	mem_queue.c    work queues: the work in them, and dead letters taken away
 *	mem_claim.c    work queues: claims
 *	mem_channel.c  channels
 *
 * Boxes are never removed before close: a pruned agent's box only loses its name, because numbers
 * of lives survive. Whatever a callback does to the room, no list is walked that it could change:
 * callers walk copies of lists, or lists that only grow.
 */
#ifndef ROOMS_MEM_MEM_H
#define ROOMS_MEM_MEM_H

#include "room/room.h"

#define MEM_ANY_FOLDER (MR_INBOX | MR_HELD | MR_ARCHIVE | MR_SENT | MR_DEAD)

struct mem_letter { /* the bytes of one message, shared by all its copies */
	size_t refs;
	struct buf text;
};

struct mem_copy { /* one message in one mailbox */
	char id[MR_ID_LEN + 1];
	enum mr_folder folder;
	unsigned flags;
	unsigned attempt;    /* how often it was handed over and came back */
	int64_t released_ms; /* 0: it was not */
	enum mr_priority priority;
	bool look;
	struct mem_letter *letter;
	/* while folder is MR_HELD */
	struct claim hold;
	int64_t boot_deadline_ms;
	struct mr_process process;
};

struct mem_life {
	unsigned number;
	int64_t started_ms, seen_ms;
	enum mr_door door;
	struct mr_process process;
	const char *worktree, *session, *host; /* in the box's arena */
};

struct mem_box {
	char name[MR_ADDRESS_MAX + 1];
	bool registered;
	int64_t created_ms;
	const char *role, *wake; /* in own */
	struct mem_life *lives;  /* numbers grow */
	size_t lives_n;
	struct mem_copy *copies; /* in order of ids */
	size_t copies_n, copies_cap;
	struct arena *own;
};

struct mem_key { /* a send key that was used */
	char *sender, *key;
	char digest[65];
	char id[MR_ID_LEN + 1];
};

struct mem_record {
	char *kind, *owner, *name;
	struct buf text;
};

struct mem_work { /* one message in a queue */
	char id[MR_ID_LEN + 1];
	enum queue_state state; /* never QUEUE_DELAYED: that is ready work whose time has not come */
	enum mr_priority priority;
	unsigned attempt;    /* how often it was claimed and not released */
	int64_t released_ms; /* by released_by; 0: it was not */
	char released_by[MR_ADDRESS_MAX + 1], only_for[MR_ADDRESS_MAX + 1];
	int64_t only_until_ms;
	int64_t not_before_ms;
	struct mem_letter *letter;
	/* while state is QUEUE_CLAIMED */
	struct claim hold;
	int64_t boot_deadline_ms;
	struct mr_process process;
};

struct mem_queue {
	char name[MR_ADDRESS_MAX + 1];
	struct mem_work *work; /* in order of ids */
	size_t work_n, work_cap;
};

struct mem_post {
	uint64_t number;
	char id[MR_ID_LEN + 1];
	struct mem_letter *letter; /* NULL: purged, the number stays taken */
};

struct mem_channel {
	char name[MR_ADDRESS_MAX + 1];
	struct mem_post *posts; /* in order of numbers */
	size_t posts_n, posts_cap;
	uint64_t last; /* the last number that was taken, also when its post is gone */
};

struct mem { /* room->state */
	struct mem_box **boxes;
	size_t boxes_n;
	struct mem_box dead;
	struct mem_key *keys;
	size_t keys_n;
	struct mem_record *records;
	size_t records_n;
	struct mem_queue *queues;
	size_t queues_n;
	struct mem_channel *channels;
	size_t channels_n;
};

static inline struct mem *
mem_of(struct mr_room *room)
{
	return room->state;
}

/* ---- mem_box.c ---- */
/* The box of that name, registered or not; NULL: none. */
struct mem_box *mem_box_any(struct mem *mem, const char *name);
/* MR_NOTFOUND when nobody is registered there. */
enum mr_rc mem_box_find(struct mem *mem, const char *name, struct mem_box **ret, struct mr_error *err);
struct mem_box *mem_box_new(struct mem *mem, const char *name); /* not registered; NULL: out of memory */
void mem_box_done(struct mem_box *box);
bool mem_box_reserve(struct mem_box *box, size_t more); /* so that as many puts cannot fail */
/* Takes over the copy and its reference to the letter. Room must be reserved. */
void mem_box_put(struct mem_box *box, const struct mem_copy *copy);
/* The copy with that id in one of `folders`; NULL: none. Good until the box changes. */
struct mem_copy *mem_box_get(struct mem_box *box, const char *id, unsigned folders);
void mem_box_drop(struct mem_box *box, struct mem_copy *copy);
/* Between boxes; MR_NOMEM leaves it where it is. */
enum mr_rc mem_box_move(
    struct mem_box *from, struct mem_copy *copy, struct mem_box *to, enum mr_folder folder, struct mr_error *err);
void mem_letter_done(struct mem_letter *letter); /* gives up one reference */

/* ---- mem_agents.c ---- */
enum mr_rc mem_each_agent(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err);
enum mr_rc mem_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err);
enum mr_rc mem_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err);
enum mr_rc mem_take_life(
    struct mr_room *room, const struct mr_agent *agent, size_t *ret_returned, struct mr_error *err);
enum mr_rc mem_update_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err);
enum mr_rc mem_check_life(struct mr_room *room, const char *name, unsigned life, const char *session,
    unsigned *ret_newest, struct mr_error *err);
void mem_seen(struct mr_room *room, const char *name, unsigned life, enum mr_door door);
enum mr_rc mem_remove_agent(struct mr_room *room, const char *name, size_t *ret_dead, struct mr_error *err);
unsigned mem_newest_life(const struct mem_box *box); /* 0: none yet */

/* ---- mem_deliver.c ---- */
enum mr_rc mem_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err);

/* ---- mem_mail.c ---- */
enum mr_rc mem_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn,
    void *ctx, struct mr_error *err);
enum mr_rc mem_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err);
enum mr_rc mem_fetch_raw(
    struct mr_room *room, const char *agent, const char *id, struct mr_message *ret, struct mr_error *err);
enum mr_rc mem_mark(
    struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err);
enum mr_rc mem_move(struct mr_room *room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err);
const char *mem_folder_word(enum mr_folder folder);

/* ---- mem_hold.c ---- */
enum mr_rc mem_hold(struct mr_room *room, const char *agent, const char *id, const struct claim_terms *terms,
    struct claim *ret, struct mr_error *err);
enum mr_rc mem_mail_settle(struct mr_room *room, const struct claim *hold, enum settle how, struct mr_error *err);
enum mr_rc mem_mail_extend(struct mr_room *room, struct claim *hold, int64_t lease_ms, struct mr_error *err);
enum mr_rc mem_each_hold(struct mr_room *room, const char *agent, bool (*fn)(void *ctx, const struct queue_item *item),
    void *ctx, struct mr_error *err);
enum mr_rc mem_sweep(struct mr_room *room, const char *agent, struct mr_error *err);
/* Gives back everything that is held in a box; says how much. */
size_t mem_hold_return_all(struct mem_box *box);
/* Is the time of a lease up, and its holder's harness gone? */
bool mem_lease_is_over(const struct claim *hold, int64_t boot_deadline_ms, const struct mr_process *process);

/* ---- mem_records.c ---- */
enum mr_rc mem_record_put(struct mr_room *room, const char *kind, const char *owner, const char *name,
    struct mr_str text, struct mr_error *err);
enum mr_rc mem_record_get(
    struct mr_room *room, const char *kind, const char *owner, const char *name, struct buf *ret, struct mr_error *err);
enum mr_rc mem_record_drop(
    struct mr_room *room, const char *kind, const char *owner, const char *name, struct mr_error *err);
enum mr_rc mem_record_each(struct mr_room *room, const char *kind, const char *owner,
    bool (*fn)(void *ctx, const char *name), void *ctx, struct mr_error *err);
enum mr_rc mem_record_lock(struct mr_room *room, const char *kind, const char *owner, const char *name, int64_t wait_ms,
    void **ret_lock, struct mr_error *err);
void mem_record_unlock(struct mr_room *room, void *lock);
void mem_record_done(struct mem_record *record);

/* ---- mem_place.c ---- */
enum mr_rc mem_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err);
enum mr_rc mem_purge(struct mr_room *room, const char *id, size_t *ret_removed, struct mr_error *err);

/* ---- mem_queue.c ---- */
/* "queue:NAME" -> the name; NULL: not that kind of target. */
const char *mem_target(const char *to, const char *prefix);
enum mr_rc mem_queue_find(struct mem *mem, const char *name, struct mem_queue **ret, struct mr_error *err);
struct mem_work *mem_work_get(struct mem_queue *queue, const char *id); /* good until the queue changes */
void mem_work_drop(struct mem_queue *queue, struct mem_work *work);
bool mem_queue_reserve(struct mem_queue *queue); /* so that one put cannot fail */
void mem_queue_put(struct mem_queue *queue, const struct mr_message *msg, struct mem_letter *letter);
void mem_queue_done(struct mem_queue *queue);
enum queue_state mem_work_state(const struct mem_work *work); /* as others see it now */
enum mr_rc mem_queue_make(struct mr_room *room, const char *queue, struct mr_error *err);
enum mr_rc mem_queue_remove(
    struct mr_room *room, const char *queue, bool to_dead, size_t *ret_dead, struct mr_error *err);
enum mr_rc mem_queue_each(struct mr_room *room, const char *queue, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err);
enum mr_rc mem_queue_fetch(
    struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err);
enum mr_rc mem_dead_drop(struct mr_room *room, const char *queue, const char *id, struct mr_error *err);

/* ---- mem_claim.c ---- */
enum mr_rc mem_queue_claim(
    struct mr_room *room, const char *queue, const struct claim_terms *terms, struct claim *ret, struct mr_error *err);
enum mr_rc mem_queue_settle(struct mr_room *room, const struct claim *hold, enum settle how, struct mr_error *err);
enum mr_rc mem_queue_extend(struct mr_room *room, struct claim *hold, int64_t lease_ms, struct mr_error *err);
enum mr_rc mem_claim(struct mr_room *room, const char *box, const char *id, const struct claim_terms *terms,
    struct claim *ret, struct mr_error *err);
enum mr_rc mem_settle(struct mr_room *room, const struct claim *claim, enum settle how, struct mr_error *err);
enum mr_rc mem_extend(struct mr_room *room, struct claim *claim, int64_t lease_ms, struct mr_error *err);
enum mr_rc mem_each_claim(struct mr_room *room, const char *box, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err);
enum mr_rc mem_find_claim(struct mr_room *room, const char *token, struct claim *ret, struct mr_error *err);
enum mr_rc mem_make_box(struct mr_room *room, const char *box, struct mr_error *err);
enum mr_rc mem_remove_box(struct mr_room *room, const char *box, bool to_dead, size_t *ret_dead, struct mr_error *err);

/* ---- mem_channel.c ---- */
enum mr_rc mem_channel_find(struct mem *mem, const char *name, struct mem_channel **ret, struct mr_error *err);
bool mem_channel_reserve(struct mem_channel *channel);
void mem_channel_put(struct mem_channel *channel, const char *id, struct mem_letter *letter);
void mem_channel_done(struct mem_channel *channel);
struct mem_post *mem_post_get(struct mem_channel *channel, const char *id); /* good until the channel changes */
enum mr_rc mem_channel_make(struct mr_room *room, const char *channel, struct mr_error *err);
enum mr_rc mem_channel_remove(struct mr_room *room, const char *channel, struct mr_error *err);
enum mr_rc mem_channel_scan(struct mr_room *room, const char *channel, uint64_t after, enum scan_depth depth,
    bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err);
enum mr_rc mem_channel_range(struct mr_room *room, const char *channel, uint64_t *ret_first, uint64_t *ret_last,
    size_t *ret_count, struct mr_error *err);
enum mr_rc mem_channel_drop(
    struct mr_room *room, const char *channel, uint64_t below, size_t *ret_removed, struct mr_error *err);

#endif
