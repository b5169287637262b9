/* SPDX-License-Identifier: MIT */
/*
 * chipset.h - the driver of kind 'chipset': the mail folders of the mail-async skill, <state>/mail/<id>/.
 *
 *	name.c      ids of agents, names of files and the time in them
 *	letter.c    a message file -> struct mr_message (pure)
 *	write.c     struct mr_message -> a message file, and the change of "read" in somebody's bytes (pure)
 *	box.c       mailboxes: opening, making, locking
 *	list.c      what is in a mailbox
 *	scan.c      looking          mark.c   read marks        move.c   archive and back
 *	deliver.c   sending          keep.c   imports           agents.c who lives here
 *	place.c     why              watch.c  waiting           nudge.c  nudge/<id>/latest.json
 *	inspect.c   doctor
 *
 * The other programs here take no lock, share one temporary name, and write over what has the same name. So nothing of
 * ours relies on a lock: a message gets a name that nobody has (link, never rename over), and a mark is an exchange
 * with the very file that was read, which fails when that file is gone.
 */
#ifndef ROOMS_CHIPSET_CHIPSET_H
#define ROOMS_CHIPSET_CHIPSET_H

#include "base/clock.h"
#include "base/file.h"
#include "message/json_read.h"
#include "room/known.h"

#define CHIPSET_ID_MAX 64                      /* the format allows 200; an address has 64 */
#define CHIPSET_MESSAGE_MAX ((size_t)64 << 10) /* of what we write: the format's own limit */
#define CHIPSET_READ_MAX ((size_t)16 << 20)    /* of what others wrote, who keep no limit */
#define CHIPSET_NAME_MAX 255
#define CHIPSET_TRIES 1000                    /* names that may be taken, a millisecond each */
#define CHIPSET_MARK_PREFIX ".mailroom-mark-" /* of temporary files; stale ones are removed */

struct chipset {
	char *path;            /* of <state>, absolute */
	struct mr_names dirty; /* folders below it that have changes not yet known to be durable, in order */
	struct known known;    /* only names with a time in them, whose id no change of the file changes */
};

static inline struct chipset *
chipset_of(const struct mr_room *room)
{
	return room->state;
}

/* ---- name.c ---- */
/* What is wrong with it as an agent's id, as the end of a sentence; NULL: nothing. */
const char *chipset_id_problem(struct mr_str id);
/* The id behind an address. MR_REFUSED: it cannot be one here. */
enum mr_rc chipset_id(const char *address, char ret[CHIPSET_ID_MAX + 1], struct mr_error *err);

struct chipset_name {
	int64_t ms;
	struct mr_str sender;
};
/* "2026-07-01T08-15-30.250Z-lead-01.json", with any number of digits, any zone, colons or dashes, or only a day.
 * False: it has no such time. */
bool chipset_name_parse(struct mr_str name, struct chipset_name *ret);
void chipset_name_make(int64_t ms, const char *sender, char ret[CHIPSET_NAME_MAX + 1]);
bool chipset_is_message(const char *name); /* ends in .json */
/* Can it be what "in_reply_to" names? */
bool chipset_name_plain(struct mr_str name);
/* The id that follows from a name with a time in it; false: it has none. */
bool chipset_name_id(struct mr_str name, char ret_id[MR_ID_LEN + 1]);

/* ---- letter.c ---- */
struct chipset_origin {
	const char *box; /* id of the mailbox's agent */
	const char *name;
	enum mr_folder folder;
	int64_t mtime_ms;
};
/* The one object in the text. MR_CORRUPT: it is none. */
enum mr_rc chipset_object(struct mr_str text, struct json_value *ret, struct mr_error *err);
/* Follows from the name; from the "timestamp" where the name has no time. Reading and archiving do not change it. */
void chipset_message_id(const char *name, const struct json_value *object, char ret[MR_ID_LEN + 1]);
bool chipset_is_read(struct json_value object);
enum mr_rc chipset_letter(struct mr_str text, const struct chipset_origin *at, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err);

/* ---- write.c ---- */
struct chipset_words { /* of the format, beside the message */
	const char *from, *to;
	int64_t ms;
	const char *imported; /* the id that it had elsewhere, or "" */
	bool read;
};
void chipset_write(struct buf *out, const struct mr_message *msg, const struct chipset_words *words);
/* The same bytes with another "read". False: it is so already, nothing was added. */
bool chipset_set_read(struct mr_str text, struct json_value object, bool read, struct buf *out);

/* ---- box.c ---- */
void chipset_box_path(struct buf *out, const char *id, enum mr_folder folder); /* "mail/bob/archive" */
/* MR_NOTFOUND: there is none. */
enum mr_rc chipset_state_make(struct chipset *cs, int *ret_fd, struct mr_error *err);
enum mr_rc chipset_open_below(struct chipset *cs, const char *path, int *ret_fd, struct mr_error *err);
enum mr_rc chipset_box_open(
    struct chipset *cs, const char *id, enum mr_folder folder, int *ret_fd, struct mr_error *err);
/* Made where it is missing, open to those to whom the folder around it is. */
/* A mailbox that says from its first moment what it is for: STAND_IN in it. MR_EXISTS. */
#define CHIPSET_NOTE ".mailroom-stand-in"
enum mr_rc chipset_box_publish(struct chipset *cs, const char *id, struct mr_str note, struct mr_error *err);
enum mr_rc chipset_box_make(
    struct chipset *cs, const char *id, enum mr_folder folder, int *ret_fd, struct mr_error *err);
mode_t chipset_folder_mode(int around_fd);
mode_t chipset_file_mode(int box_fd);
/* Orders our own changes in a mailbox; goes with the descriptor. MR_BUSY after ten seconds. */
enum mr_rc chipset_box_lock(int box_fd, const char *id, struct mr_error *err);
void chipset_dirty(struct chipset *cs, const char *id, enum mr_folder folder, int fd);
enum mr_rc chipset_flush(struct mr_room *room, struct mr_error *err);

/* ---- list.c ---- */
struct chipset_entry {
	char *name;
	char id[MR_ID_LEN + 1];
	enum mr_folder folder;
};
struct chipset_list { /* finish with chipset_list_done */
	struct chipset_entry *v;
	size_t n, cap;
	int inbox_fd, archive_fd; /* -1: there is none */
	struct arena *own;
};
#define CHIPSET_LIST_INIT ((struct chipset_list){ .inbox_fd = -1, .archive_fd = -1 })
void chipset_list_done(struct chipset_list *list);
int chipset_list_fd(const struct chipset_list *list, enum mr_folder folder);
/* In order of ids, the inbox first. only_id NULL: all. A mailbox that is not there is an empty one. */
enum mr_rc chipset_list(struct chipset *cs, const char *id, unsigned folders, const char *only_id,
    struct chipset_list *ret, struct mr_error *err);
/* MR_NOTFOUND. *ret_at belongs to the list, which has the descriptors. */
enum mr_rc chipset_find(struct chipset *cs, const char *agent, const char *message_id, unsigned folders,
    struct chipset_list *list, const struct chipset_entry **ret_at, struct mr_error *err);
enum mr_rc chipset_file_read(int fd, const char *name, struct buf *ret, struct mr_error *err);

/* ---- keep.c ---- */
/* Which time is free for this import, or taken by itself (MR_EXISTS)? */
enum mr_rc chipset_keep_place(int box_fd, const char *from, const char *id, int64_t *ms, struct mr_error *err);

/* ---- The table ---- */
enum mr_rc chipset_each_agent(struct mr_room *room, mr_agent_fn *fn, void *ctx, struct mr_error *err);
enum mr_rc chipset_find_agent(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err);
enum mr_rc chipset_add_agent(struct mr_room *room, const struct mr_agent *agent, struct mr_error *err);
/* Ids that have a mailbox, in order, also those that no address can name. */
enum mr_rc chipset_each_box(struct chipset *cs, bool (*fn)(void *ctx, const char *id), void *ctx, struct mr_error *err);
enum mr_rc chipset_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err);
enum mr_rc chipset_settle_ticket(struct mr_room *room, const char *ticket, bool *ret_published, struct mr_error *err);
unsigned chipset_lacks(struct mr_room *room, const struct mr_message *msg);
enum mr_rc chipset_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn,
    void *ctx, struct mr_error *err);
enum mr_rc chipset_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders,
    enum scan_depth depth, struct mr_message *ret, struct mr_error *err);
enum mr_rc chipset_fetch_raw(
    struct mr_room *room, const char *agent, const char *id, struct buf *ret, struct mr_error *err);
enum mr_rc chipset_mark(
    struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, struct mr_error *err);
enum mr_rc chipset_move(
    struct mr_room *room, const char *agent, const char *id, enum mr_folder to, struct mr_error *err);
enum mr_rc chipset_watch(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err);
void chipset_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms);
void chipset_watch_close(struct mr_room *room, void *watch);
enum mr_rc chipset_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err);
enum mr_rc chipset_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err);

/* ---- nudge.c ---- */
enum mr_rc chipset_nudge_put(struct mr_room *room, const char *to, const struct mr_nudge *nudge, struct mr_error *err);
enum mr_rc chipset_nudge_get(
    struct mr_room *room, const char *agent, struct mr_nudge *ret, struct arena **own, struct mr_error *err);

#endif
