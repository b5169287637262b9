/* SPDX-License-Identifier: MIT */
/*
 * kit.h - what a driver for the files of another program needs, whatever their format.
 *
 *	kit.c      opening and closing, names and specs, building a message and an agent
 *	list.c     mailboxes without an index: a listing of items, one look at all of them, finding one; the doctor
 *	send.c     unsupported fields, one message to several, tickets, moving and flushing
 *	watch.c    waiting for a change of a folder
 *
 * A driver is a table of the special parts of its format (struct kit_format): how a mailbox is opened, how its items
 * are listed, how one of them is read. The state of its rooms begins with a struct kit_room, its open mailbox with a
 * struct kit_box. The slots that follow from that are here; a driver puts them into its own table by name.
 *
 * The kit knows no format and no driver. It calls room, message and base; drivers call the kit and never each other.
 * docs/ADDING-A-ROOM.md builds a driver from it step by step.
 */
#ifndef ROOMS_KIT_KIT_H
#define ROOMS_KIT_KIT_H

#include "base/file.h"
#include "base/findings.h"
#include "message/json_read.h"
#include "room/room.h"
#include <limits.h>

/* ---- Items: list.c ---- */
struct kit_item { /* one message */
	char id[MR_ID_LEN + 1];
	const char *path; /* for people: FOLDER/NAME */
	const char *name; /* the end of it: what follows the folder */
	enum mr_folder folder;
	unsigned flags;   /* if the listing tells */
	size_t rank;      /* order among equal ids: that of adding, unless the driver sets it */
	int64_t mtime_ns; /* if the driver needs it */
	const void *more; /* the driver's own, in items.own; or NULL */
};
struct kit_items { /* zeroed is empty; finish with kit_items_done */
	struct kit_item *v;
	size_t n, cap;
	struct arena *own;
	bool failed; /* out of memory */
};
/* NULL: out of memory. The caller fills in the rest. */
struct kit_item *kit_add(struct kit_items *items, const char *folder_path, const char *name, enum mr_folder folder);
void kit_sort(struct kit_items *items);
/* In sorted items: the first with that id, or NULL. */
struct kit_item *kit_with_id(const struct kit_items *items, const char *id);
void kit_items_done(struct kit_items *items);

/* ---- A driver ---- */
struct kit_room { /* the beginning of the state of an open room */
	const struct kit_format *format;
	char *path;            /* of its folder or file, absolute */
	struct mr_names dirty; /* folders with changes that are not yet durable */
	/* The items of the last look at a whole mailbox. */
	char *known_mailbox;
	struct kit_items known;
};
static inline struct kit_room *
kit_room(const struct mr_room *room)
{
	return room->state;
}

#define KIT_ID_MAX 200
struct kit_box { /* an open mailbox; the beginning of the driver's own struct */
	struct mr_room *room;
	const char *agent;               /* its address; borrowed */
	unsigned how;                    /* how it is opened: 0: unchanged, else as the driver defines */
	char id[KIT_ID_MAX + 1];         /* its name in the format; set by `open` if the driver needs it */
	int inbox_fd, other_fd;          /* its folders; -1: there is none */
	const struct scan_request *want; /* of the current scan, or NULL */
	/* Set by `open`: a file of the mailbox with an error, which a scan of the mailbox reports; or NULL. */
	const char *odd;
	struct mr_error odd_why;
};

struct kit_format {       /* what the kit needs from a driver */
	unsigned folders; /* folders of its mailboxes */
	unsigned unread;  /* folders that can hold unread mail; 0: all of them */
	size_t box_size;  /* of the struct that begins with a kit_box; 0: just the kit_box */
	/* Both may be NULL. After a failure `close` gets what was filled in; the kit closes the two folders. */
	enum mr_rc (*open)(struct kit_box *box, struct mr_error *err);
	void (*close)(struct kit_box *box);
	/* Adds the items of these folders in any order. only_id: other items may be left out; NULL: all. NULL if
	 * `folder` below is enough. */
	enum mr_rc (*list)(struct kit_box *box, const struct scan_request *want, const char *only_id,
	    struct kit_items *ret, struct mr_error *err);
	/* For mailboxes with one folder for the inbox and one for the archive. Opens one of the two (MR_NOTFOUND: there
	 * is none, which is no error), and tells whether a name in item->folder is a message: then it sets the id. */
	enum mr_rc (*folder)(struct kit_box *box, enum mr_folder folder, int *ret_fd, struct mr_error *err);
	bool (*note)(struct kit_box *box, const struct dir_entry *entry, const char *only_id, struct kit_item *item);
	/* Are two neighbours in the sorted list the same message? Then its place is the one where it was seen last, or
	 * first. NULL: items with the same id are. */
	bool (*same)(const struct kit_box *box, const struct kit_item *a, const struct kit_item *b);
	bool last_counts;
	/* MR_NOTFOUND: it is gone, which is no error. If an item of an earlier listing was moved, or another message
	 * has its name, *msg has the actual folder and id. */
	enum mr_rc (*read)(struct kit_box *box, const struct kit_item *item, enum scan_depth depth,
	    struct mr_message *ret, struct mr_error *err);
	/* For kit_mark: set_read marks an item as read or unread, which may move it (item->folder); move moves it to a
	 * folder. Only formats with an archive have `move`. */
	enum mr_rc (*set_read)(struct kit_box *box, struct kit_item *item, bool read, struct mr_error *err);
	enum mr_rc (*move)(struct kit_box *box, const struct kit_item *item, enum mr_folder to, struct mr_error *err);
	/* The folder of a ticket, as kit_publish got it. MR_NOTFOUND: the folder is gone and the file with it:
	 * published, if gone_is_published. Any other failure: not a ticket of this format. */
	enum mr_rc (*open_ticket)(struct mr_room *room, const char *folder, int *ret_fd, struct mr_error *err);
	bool gone_is_published;
	/* The folder to watch for mail of an agent; NULL: that of its inbox. */
	enum mr_rc (*watched)(struct mr_room *room, const char *agent, struct buf *ret, struct mr_error *err);
	/* Adds the evidence that a message is there; NULL: the kit describes its place. */
	void (*describe)(const struct mr_message *msg, struct buf *evidence);
	/* Adds the absolute path of a folder; NULL: the path for people is below the room's path. */
	void (*place)(struct kit_box *box, enum mr_folder folder, struct buf *out);
	/* The path of a folder, for people; needed with `folder`, and for kit_inspect. */
	void (*folder_path)(const struct kit_box *box, enum mr_folder folder, struct buf *out);
	/* For kit_inspect; each may be NULL. Reports oddities of a readable message. */
	void (*inspect_mail)(struct findings *f, const struct mr_message *msg);
	/* Checks other parts of the room, before the mailboxes. */
	enum mr_rc (*inspect_room)(struct mr_room *room, struct findings *f, struct mr_error *err);
};

/* ---- Opening: kit.c ---- */
/* Sets room->state to `size` zeroed bytes, which begin with a kit_room, and room->spec to KIND:PATH. */
enum mr_rc kit_open(
    struct mr_room *room, size_t size, const struct kit_format *format, struct mr_str path, struct mr_error *err);
/* Sets room->name to that name as an address; to `otherwise` if it cannot be one. */
enum mr_rc kit_set_name(struct mr_room *room, struct mr_str name, const char *otherwise, struct mr_error *err);
/* The last part of a path; slashes at its end do not count. */
struct mr_str kit_last_part(struct mr_str path);
struct mr_str kit_trim_slashes(struct mr_str path);
bool kit_is_plain(struct mr_str name); /* nothing but A-Z a-z 0-9 . _ - */
static inline int64_t
kit_mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}
/* An agent of which only the name is known. */
struct mr_agent kit_agent(const char *name);
/* The text of a small file, kept in *own; "" if it is missing. */
const char *kit_note(int dir_fd, const char *name, struct arena **own);
/* Slots. A driver with more to free calls kit_close last. */
void kit_close(struct mr_room *room);
enum mr_rc kit_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err);
/* Slots of a room that belongs to one agent of the same name (room->owner). */
enum mr_rc kit_find_owner(struct mr_room *room, const char *name, struct mr_agent *ret, struct mr_error *err);
enum mr_rc kit_each_owner(struct mr_room *room, bool names_only, mr_agent_fn *fn, void *ctx, struct mr_error *err);

/* ---- Building a message: kit.c ---- */
struct kit_message { /* out of memory is reported at the end */
	struct mr_message msg;
	struct arena *own;
	size_t headers_cap, envelope_cap;
	bool failed;
};
struct kit_message kit_message(const char *id, enum mr_folder folder, unsigned flags);
/* A copy that lives as long as the message. Never NULL. */
const char *kit_keep(struct kit_message *m, struct mr_str s);
const char *kit_keep_buf(struct kit_message *m, const struct buf *text);
/* The name as an address; "" if it cannot be one. */
const char *kit_keep_address(struct kit_message *m, struct mr_str name);
void kit_to(struct kit_message *m, const char *address);
/* Adds a line to msg.headers, or to msg.envelope. The name is a literal or kept by kit_keep. */
void kit_header(struct kit_message *m, const char *name, const char *value);
void kit_envelope(struct kit_message *m, const char *name, const char *value);
void kit_body(struct kit_message *m, struct mr_str body);
/* A message for SCAN_RAW: just the stored bytes. */
enum mr_rc kit_raw(const struct kit_item *item, struct mr_str bytes, struct mr_message *ret, struct mr_error *err);
enum mr_rc kit_message_end(struct kit_message *m, struct mr_message *ret, struct mr_error *err);

/* ---- Reading: list.c ---- */
/* Opens a mailbox; close it with kit_box_close (for mr_auto). */
enum mr_rc kit_box_open(
    struct mr_room *room, const char *agent, unsigned how, struct kit_box **ret, struct mr_error *err);
void kit_box_close(struct kit_box **box);
/* The descriptor of a folder (kit_format.folder), -1: missing. Another process, or our own move of a message, may
 * create it while the box is open. */
int kit_folder(struct kit_box *box, enum mr_folder folder);
/* Adds the absolute path of a folder. */
void kit_path(struct kit_box *box, enum mr_folder folder, struct buf *out);
/* All items of these folders, sorted. */
enum mr_rc kit_list(struct kit_box *box, unsigned folders, struct kit_items *ret, struct mr_error *err);
/* Finds one item; it belongs to *items or to the last listing, and is valid until the next one. MR_NOTFOUND. */
enum mr_rc kit_find(struct kit_box *box, const char *id, unsigned folders, struct kit_items *items,
    struct kit_item **ret, struct mr_error *err);
/* Reports an error of an item to the caller of the scan. */
void kit_trouble(const struct kit_box *box, const char *path, const struct mr_error *why);
/* Slots. */
enum mr_rc kit_scan(struct mr_room *room, const char *agent, const struct scan_request *want, mr_message_fn *fn,
    void *ctx, struct mr_error *err);
enum mr_rc kit_fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err);
enum mr_rc kit_mark(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear,
    enum mr_folder to, struct mr_error *err);
enum mr_rc kit_each_place(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err);
enum mr_rc kit_inspect(struct mr_room *room, bool fix, mr_finding_fn *fn, void *ctx, struct mr_error *err);
/* For a driver's own inspection: reports our temporary files in a folder, by their names (NULL: all). `path` is the
 * folder's, for people. */
void kit_leftovers(struct findings *f, int fd, const char *path, bool (*is_ours)(const char *name));
bool kit_pass_over(void *ctx, const struct mr_message *msg);

/* ---- Sending: send.c ---- */
/* The text with the bytes from `from` up to `to`, both in it, replaced; every other byte is unchanged. */
void kit_splice(struct mr_str text, const char *from, const char *to, struct mr_str with, struct buf *out);
/* Adds the text with the new value of that member of the object in it. A missing member is appended, laid out like the
 * first member or like the last. False: the object has that value already (missing counts as false), and nothing was
 * added. */
enum kit_layout { KIT_LIKE_FIRST, KIT_LIKE_LAST };
bool kit_set_flag(
    struct mr_str text, struct json_value object, const char *key, bool value, enum kit_layout layout, struct buf *out);
/* The text of a member, kept in *own; "" if it is missing. *failed: out of memory. */
const char *kit_json_text(struct json_value object, const char *key, struct arena **own, bool *failed);
/* The fields that this message uses beyond sender, recipient, subject and text (enum room_field); the driver clears
 * those that its format has. Headers in `known` (NULL-terminated) do not count. */
unsigned kit_fields(const struct mr_message *msg, const char *const *known);
struct mr_str kit_text(const struct mr_message *msg); /* the body; empty where there is none */
/* Delivers to one recipient after the other by `send`, which fills in *ret; the sender gets the result of the first. An
 * import that all recipients have is MR_EXISTS. A failure after the first recipient is MR_INDOUBT, and ret->missing has
 * the others. */
typedef enum mr_rc kit_send_fn(void *sending, const char *to, struct delivered *ret, struct mr_error *err);
enum mr_rc kit_deliver(
    const struct delivery *what, kit_send_fn *send, void *sending, struct delivered *ret, struct mr_error *err);
/* A name for a file that is not complete yet. Other programs ignore names that begin with a dot. */
#define KIT_TEMPORARY ".mailroom-"
struct kit_temporary {
	char z[48];
};
struct kit_temporary kit_temporary(const char *prefix); /* it begins with KIT_TEMPORARY; FILE_CARRY for a ticket */
bool kit_is_temporary(const char *name);                /* one of these, or FILE_VOID */
struct kit_file {
	int tmp_fd, dir_fd; /* where it is written, and where it appears */
	const char *name;
	struct mr_str bytes;
	mode_t mode;
	int64_t mtime_ns; /* 0: now */
	struct stat *st;  /* of the file, filled in; or NULL */
};
/* Publishes a file, complete and durable, without overwriting another (MR_EXISTS). If `what` (or NULL) asks for a
 * ticket, that is FOLDER/NAME, and after an error the temporary file stays, because its absence would mean that the
 * message was published. */
enum mr_rc kit_publish(
    const struct kit_file *file, const struct delivery *what, const char *folder, struct mr_error *err);
/* The slot, by kit_format.open_ticket. */
enum mr_rc kit_settle_ticket(struct mr_room *room, const char *ticket, bool *ret_published, struct mr_error *err);

/* Replaces a known file by a complete one, in one step: the two exchange names, and the old one is removed. If the
 * replaced file is not the known one (*ret_done is false), they are exchanged back, and ours is removed. -1 and errno:
 * nothing was changed, ENOENT: there is no such file. */
typedef bool kit_is_old_fn(const void *ctx, int fd, const char *name);
int kit_exchange(
    int fd, const char *temporary, const char *name, kit_is_old_fn *is_old, const void *ctx, bool *ret_done);

/* Renames a file to the first free name of WANTED, WANTED.1, WANTED.2 ..., from that number on. -1 and errno; EEXIST:
 * too many are taken. */
int kit_rename_free(
    int from_fd, const char *name, int to_fd, const char *wanted, unsigned first, char ret[NAME_MAX + 1]);
/* Moves a file without overwriting another. If the name is taken by the same bytes, the message is there already; if by
 * others, the file gets a number before its ending ("" or ".json"), if the name is short enough. 0, or -1 and errno. */
int kit_move(int from_fd, const char *name, int to_fd, const char *ending, size_t longest);

/* Notes a folder with changes that are not yet durable; call it first for the folder that gained a name, then for the
 * one that lost it. */
void kit_dirty(struct kit_box *box, enum mr_folder folder);
/* The slot. */
enum mr_rc kit_flush(struct mr_room *room, struct mr_error *err);

/* ---- Waiting: watch.c ---- */
/* Watches a folder, or its nearest existing parent. */
enum mr_rc kit_watch(const struct buf *path, void **ret_watch, struct mr_error *err);
/* The slots, by kit_format.watched. */
enum mr_rc kit_watch_agent(struct mr_room *room, const char *agent, void **ret_watch, struct mr_error *err);
bool kit_watch_wait(struct mr_room *room, void *watch, int64_t timeout_ms);
void kit_watch_close(struct mr_room *room, void *watch);

#endif
