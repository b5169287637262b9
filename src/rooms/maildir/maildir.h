/* SPDX-License-Identifier: MIT */
/*
 * maildir.h - what the files of the native driver share. The layout is drawn in docs/NATIVE-ROOM.md.
 *
 *	maildir.c   the table of operations; opening: the room's settings, format and owner
 *	name.c      file names <-> id, flags, attempt, held names (pure)
 *	mailbox.c   an agent's folders, opened lazily; the last mailbox stays open (essay on what may be stale)
 *	agents.c    names: find, each, add and remove (under agents/.lock); lives: newest, take, seen
 *	list.c      reading folders while others move files (essay on races)
 *	find.c      one message by its id
 *	newest.c    the newest names of a month, kept by mailroom-serve
 *	scan.c      scan and fetch, from a file to a message
 *	stores.c    for an index: what changed, and where the index is kept
 *	mark.c      marks, moves, archive by month, filing old seen mail
 *	renew.c     replaces large folders by new ones (essay on states and crash points)
 *	claim.c     claims on mail and on work: take, settle, extend, list, find again (essay on races)
 *	token.c     holds/<token>: the holder of a claim, and whether it lives; past/: claims that have ended
 *	deliver.c   one recipient; many messages, one recipient each, made durable together
 *	fanout.c    several recipients (essay on states and crash points)
 *	recover.c   what dead commands left: sends in spool/ are rolled forward, held mail is given back
 *	keys.c      send keys
 *	queue.c     a queue's folders: names of work, walking, finding, reading, removing
 *	queue_ready.c  buckets of waiting work (essay): work that comes in, taking the next one
 *	channel.c   channels (essay on numbers)
 *	commit.c    the one module that makes changes durable
 *	watch.c     inotify
 *	reserve.c   space that is reserved for a full disk
 *	retain.c    removes old mail by the room's settings (essay on what is never removed)
 *	over.c      ... and old bookkeeping of the room: records, keys, mailboxes of removed agents
 *	shared.c    several users in one room: proof of senders, files without access (essay)
 *	records.c   small values of the post office
 *	pack.c      an old month of an archive in one compressed file (essay on its form and on crash points)
 *	copies.c    every copy of a message: where it is, purge; dropping a dead letter
 *	inspect.c   doctor; inspect_tree.c: its walk over every file
 */
#ifndef ROOMS_MAILDIR_MAILDIR_H
#define ROOMS_MAILDIR_MAILDIR_H

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/full.h"
#include "base/id.h"
#include "base/sys.h"
#include "room/room.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define LOCK_WAIT_MS 10000 /* for locks that another command holds only briefly */
#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define PAUSE_MAX_MS (30 * DAY_MS) /* since the last look of a retention: after a longer one the clock may be wrong */

/* Times of a file. */
static inline int64_t
time_ns(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static inline int64_t
time_ms(struct timespec t)
{
	return time_ns(t) / 1000000;
}

struct dirty { /* a folder to sync at the next flush; fd is owned (dup) */
	int fd;
	bool target, source; /* mail came in, went out */
	dev_t dev;
	ino_t ino;
};

/* The last two change their name: held/<life> of one life, cur/ of one month. */
enum box_folder { BOX_NEW, BOX_CUR, BOX_TMP, BOX_HELD, BOX_LIFE, BOX_MONTH, BOX_FOLDERS };
struct mailbox { /* an agent's folder, open; by value, finish with mailbox_done, which keeps it for the next one */
	struct maildir *md;
	char agent[MR_ADDRESS_MAX + 1];
	int fd;                  /* agents/<address>; used only to reach its entries (dir_reach) */
	int folder[BOX_FOLDERS]; /* -1 until used */
	int64_t opened_ms;       /* boot clock */
	bool registered;         /* the file `agent` existed */
	unsigned life;           /* of BOX_LIFE */
	ino_t life_inode;
	char month[24]; /* of BOX_MONTH */
};
#define MAILBOX_INIT ((struct mailbox){ .fd = -1, .folder = { -1, -1, -1, -1, -1, -1 } })

struct imports { /* imports that the mailbox of the last import has already; finish with imports_done */
	char agent[MR_ADDRESS_MAX + 1];
	off_t length; /* of agents/.keep */
	struct mr_names ids;
	struct nameset set;
};
void imports_done(struct imports *known);

struct maildir {     /* room->state */
	int root_fd; /* .mailroom; this and the next serve only to reach their entries (dir_reach) */
	int agents_fd;
	char *path; /* absolute; for messages only */
	mode_t dir_mode, file_mode, message_mode;
	dev_t dev;                 /* the room's device; */
	bool counts_folders;       /* there, link count = 2 + subfolders: ext4, xfs, tmpfs, zfs */
	bool sync;                 /* false: Sync: none */
	enum publish_sync publish; /* likewise, for small files */
	bool wants_fast;           /* Sync: auto or fast; commit_is_fast decides */
	enum { FAST_UNKNOWN, FAST_NO, FAST_YES } fast;
	dev_t fast_dev;      /* of the file system that commit_is_fast checked */
	struct dirty *dirty; /* flushed early when there are DIRTY_MAX */
	size_t dirty_n, dirty_cap;
	int process_hold_fd; /* holds/<token> locked by this process, or -1; one token serves all its process holds */
	char process_token[MR_TOKEN_LEN + 1];
	int dirty_errno;                /* an early sync failed: the next flush says so */
	char moved[MR_ADDRESS_MAX + 1]; /* mailbox with marks or claims since the last flush, or "": see mark.c */
	size_t moved_n;                 /* how many */
	bool moved_seen;                /* some of that mail became seen in cur/ */
	bool held_many;                 /* renew_held at close */
	struct mr_names *barred;        /* room->barred */
	bool reserve_spent;             /* this handle spent some of it: make it again */
	bool reserve_looked;            /* it was checked once whether it is whole */
	int64_t retain_next_ms;         /* the next look at old mail is not before this: retain.c */
	struct imports imports;         /* deliver.c */
	struct mailbox kept;            /* the last one that was finished, for reuse by the next operation: mailbox.c */
	struct buf text;                /* buffer for reading messages, for reuse: scan.c */
};

static inline struct maildir *
maildir_of(struct mr_room *room)
{
	return room->state;
}

/* ---- name.c (pure, fuzzed) ---- */
#define NAME_LEN 256
#define NAME_WHO_LEN 16
#define NAME_RELEASED_LEN 96
struct file_name {          /* the parts of a name in new/, cur/ or held/N/ */
	struct mr_str base; /* without ",A=n" and without ":2,flags"; with ",P=" and ",L=" */
	struct mr_str tail; /* what other programs put behind our ",A=n" (",U=7"); mostly empty */
	char id[MR_ID_LEN + 1];
	bool ours;              /* <seconds>.<ulid>.mr */
	int priority;           /* enum mr_priority, by ",P=" of a name of ours; else MR_NORMAL */
	bool look;              /* ",L=1" of a name of ours: delivery.look */
	unsigned attempt;       /* ,A=n; 0 when absent */
	bool has_info;          /* ":2," is there: it belongs into cur/ */
	struct mr_str flags;    /* letters, as stored */
	struct mr_str released; /* the value of ",B=" at the end of the base name: see name_released; mostly empty */
	bool a_is_ours;         /* 'a' is $MailroomDone in that folder (found by the caller), else a foreign letter */
	/* held names only */
	bool held;
	char token[MR_TOKEN_LEN + 1];
	int64_t deadline_s;
	unsigned hold_attempt;
};
bool name_parse(struct mr_str name, struct file_name *ret); /* false: not a message (starts with ".", empty) */
bool name_parse_held(struct mr_str name, struct file_name *ret);
/* When mail was released, in milliseconds; for work of a queue also by whom, for whom it is reserved (both as name_who
 * writes them) and until when (seconds). "" and 0: not stored. False: it was not released. */
struct released {
	int64_t at_ms, only_until_s;
	char by[NAME_WHO_LEN + 1], only_for[NAME_WHO_LEN + 1];
};
bool name_released(const struct file_name *n, struct released *ret);
void name_released_text(const struct released *r, char ret[NAME_RELEASED_LEN]);
void name_who(const char *agent, char ret[NAME_WHO_LEN + 1]);      /* 64 bits of the hash of its name */
unsigned name_flags(const struct file_name *n, bool acked_mapped); /* MR_SEEN ... */
/* "<seconds>.<id>.mr", with ",P=<p>" unless the priority is normal, and with `look` ",L=1" */
void name_new(const char *id, enum mr_priority priority, bool look, char ret[NAME_LEN]);
static inline void
name_for_id(const char *id, char ret[NAME_LEN]) /* for normal mail */
{
	name_new(id, MR_NORMAL, false, ret);
}
/* "base[,A=n]:2,flags": unknown letters are kept, ours are set by `flags`. with_info false: no ":2," (new/). False: the
 * name would be too long. */
bool name_build(const struct file_name *n, unsigned attempt, unsigned flags, bool with_info, char ret[NAME_LEN]);
bool name_build_held(
    const char *token, int64_t deadline_s, unsigned attempt, struct mr_str original, char ret[NAME_LEN]);
#define ARCHIVE_FOLDER ".Archive"
#define SENT_FOLDER ".Sent" /* without a month: in rooms of older versions; it is read, and nothing is added */
void name_month(const char *folder, int64_t at_ms, char ret[24]); /* ".Archive.2026-11", ".Sent.2026-11" */
/* "/" -> "%2F", for agents' names used as one file name; "" -> "_". name_unescape reverses it; false: not written by
 * name_escape. */
bool name_unescape(const char *name, char ret[NAME_LEN]);
bool name_is_one_of(const char *name, const char *const *names); /* which end with NULL */
void name_escape(const char *agent, char ret[NAME_LEN]);

/* A path that is built for one call: sys_stat(fd, path_of("lives/", life, NULL).z, &st) */
#define PATH_SPACE 1024
struct path {
	char z[PATH_SPACE];
};
struct path path_of(const char *part, ...) __attribute__((sentinel));

/* ---- mailbox.c ---- */
/* Opens a folder below dir_fd; `make` creates it if it is missing. */
enum mr_rc maildir_folder(
    struct maildir *md, int dir_fd, const char *path, bool make, int *ret_fd, struct mr_error *err);
/* Opens a folder and reads the names in it, in order, without those that begin with a dot. It reads all of them before
 * the caller moves the first, because a folder must not change while it is read. ret_fd may be NULL. If there is no
 * folder: MR_OK, no names, and *ret_fd is unchanged. */
enum mr_rc names_in(int dir_fd, const char *path, int *ret_fd, struct mr_names *ret, struct mr_error *err);
/* MR_NOTFOUND: no agent is registered there (no file `agent`). */
enum mr_rc mailbox_open(struct mailbox *box, struct maildir *md, const char *agent, struct mr_error *err);
/* Without the check for `agent`: the folders may belong to a pruned agent. */
enum mr_rc mailbox_open_any(struct mailbox *box, struct maildir *md, const char *agent, struct mr_error *err);
enum mr_rc mailbox_folder(struct mailbox *box, enum box_folder which, int *ret_fd, struct mr_error *err); /* borrowed */
bool mailbox_has_part(const char *name);                /* one of the folders that every mailbox has */
const char *mailbox_folder_name(enum box_folder which); /* "new" */
/* held/ has no folder in it, so nothing is held; one system call. False also if the file system cannot tell. */
bool mailbox_holds_nothing(const struct mailbox *box);
/* held/<life>; `make` creates it. Borrowed until the next call with another life. */
enum mr_rc mailbox_held(struct mailbox *box, unsigned life, bool make, int *ret_fd, struct mr_error *err);
/* cur/ of a Maildir++ folder such as ".Sent.2026-11" or ".Archive.2026-11", likewise. */
enum mr_rc mailbox_subfolder(struct mailbox *box, const char *name, bool make, int *ret_cur_fd, struct mr_error *err);
/* The descriptor belongs to the caller from now on. */
int mailbox_take(struct mailbox *box, enum box_folder which);
/* Makes tmp new cur held lives in an agent's folder. */
enum mr_rc mailbox_make(struct maildir *md, const char *agent, struct mr_error *err);
void mailbox_done(struct mailbox *box);  /* the handle keeps the descriptors of an agent's mailbox */
void mailbox_close(struct mailbox *box); /* closes them all */
/* For use when something was not in its place: looks up the names of all folders again. True: one was removed since it
 * was opened. */
bool mailbox_refresh(struct mailbox *box);
/* The meaning of the letter 'a' in a folder (".Archive.2026-11", or "" for the inbox), as its dovecot-keywords says. */
enum keyword { KEYWORD_NOBODYS, KEYWORD_OURS, KEYWORD_FOREIGN };
enum keyword mailbox_keyword(struct mailbox *box, const char *subfolder);
/* Assigns 'a' to us if it is unassigned. False: another program uses it, or the file cannot be written. */
bool mailbox_map_acked(struct mailbox *box, const char *subfolder);
/* dead/ of the room as a mailbox: same folders. */
enum mr_rc mailbox_open_dead(struct mailbox *box, struct maildir *md, struct mr_error *err);

/* ---- list.c ---- */
struct packed_at { /* where a packed message is: pack.c; length 0: it is a file */
	uint64_t offset;
	uint32_t length, size;
};
struct listed { /* one message found in a folder; name points into the list's arena */
	char id[MR_ID_LEN + 1];
	const char *name;      /* file name in its folder */
	unsigned char folder;  /* enum mr_folder */
	unsigned char box;     /* BOX_NEW or BOX_CUR; not for MR_HELD */
	unsigned char pass;    /* list.c: the last pass that saw it */
	unsigned life;         /* MR_HELD: held/<life> */
	const char *subfolder; /* MR_ARCHIVE, MR_SENT: ".Archive.2026-11"; MR_INBOX: NULL, or "held/.gone.new.R" */
	unsigned flags;
	unsigned attempt;
	signed char priority; /* enum mr_priority, if the name tells it */
	bool look;            /* delivery.look */
	int64_t released_ms;  /* 0: not */
	struct packed_at packed;
};
/* Fills in what the parts of the name tell. `acked`: the letter 'a' in it is ours. */
void listed_fill(struct listed *l, const struct file_name *parts, bool acked);
struct listing {
	struct listed *v;
	size_t n, cap;
	size_t total;          /* how many there are; more than n with scan_request.most or .wants */
	bool exact;            /* nothing moved while new/ and cur/ were read; then: */
	int64_t changed_ns[2]; /* their times of change, by enum box_folder */
	struct arena *own;     /* the names; */
	struct arena *folders; /* the subfolders */
};
/* Everything in `folders` (id_suffix NULL: all ids), unsorted. Repeats until nothing moved meanwhile or enough passes
 * agree. A copy moves between inbox, held and archive, so an id comes once for these three, and once each for sent and
 * dead. */
enum mr_rc list_folders(struct mailbox *box, unsigned folders, bool unread_only, const char *id_suffix,
    struct listing *ret, struct mr_error *err);
/* The same, sorted as the scan wants it, and no more than `most`. */
enum mr_rc list_wanted(
    struct mailbox *box, unsigned folders, const struct scan_request *want, struct listing *ret, struct mr_error *err);
void listing_done(struct listing *l);
void listing_sort(struct listing *l, enum scan_order order); /* of two with one id, sent and dead come last */
/* Adds the messages in inbox and held (subfolder NULL), in that Maildir++ folder, or of the dead letters in that
 * folder. */
enum mr_rc list_add(struct mailbox *box, unsigned folders, const char *subfolder, const struct scan_request *want,
    struct listing *ret, struct mr_error *err);
/* The names of the month folders in `folders` (MR_ARCHIVE, MR_SENT), oldest month first, of one month the archive
 * first; the caller frees them. */
enum mr_rc list_months(struct mailbox *box, unsigned folders, struct mr_names *ret, struct mr_error *err);
const char *list_month_of(const char *name); /* of such a folder: ".2026-11"; "" if it has none */
/* Adds the messages of one of them. */
enum mr_rc list_month(
    struct mailbox *box, const char *name, const struct scan_request *want, struct listing *ret, struct mr_error *err);
/* The same from names that are kept in memory (newest.c, in mailroom-serve alone). False: the folder has to be read. */
bool newest_list(
    struct mailbox *box, const char *folder, const struct scan_request *want, struct listing *ret) FULL_ONLY;
/* Is the time of that archive folder outside of the wanted span? */
bool list_skips_month(const char *name, const struct scan_request *want);
/* The state of new/ and cur/ from their attributes: it differs after each change, if the change before is older than a
 * clock tick. */
void list_state(const struct mailbox *box, char ret[SCAN_STATE_LEN], int64_t ret_changed_ns[2]);
#define LISTED_PATH (MR_ADDRESS_MAX + NAME_LEN + 32)
/* The folder of a listed message, or the pack that it is in, relative to the room. */
struct path list_path(const struct mailbox *box, const struct listed *at);
/* Opens that folder (owned by the caller). MR_REFUSED: it is a pack. */
enum mr_rc list_open_folder(struct mailbox *box, const struct listed *at, int *ret_fd, struct mr_error *err);

/* ---- find.c ---- */
/* The most likely place of a message with this id: new/, under the name of normal mail. */
void list_guess(const char *id, char ret_name[NAME_LEN], struct listed *ret);
/* One message by full id: likely names first, then the folders. MR_NOTFOUND only when no folder changed meanwhile. */
enum mr_rc list_find(struct mailbox *box, const char *id, unsigned folders, struct arena **own, struct listed *ret,
    struct mr_error *err);

/* ---- scan.c: from a file to a message ---- */
/* MR_NOTFOUND: it was moved. MR_REFUSED: a link, or no file. */
enum mr_rc message_open(int dir_fd, const char *name, int *ret_fd, struct stat *ret_st, struct mr_error *err);
/* Reads the file into *msg: headers, with SCAN_BODIES everything, with SCAN_RAW only its bytes. `text` is the read
 * buffer. */
enum mr_rc message_read(struct mr_room *room, int fd, const struct stat *st, enum scan_depth depth, const char *path,
    struct buf *text, struct mr_message *msg, struct mr_error *err);
/* A copy of `path` that lives as long as the message; the message is freed on failure. */
enum mr_rc message_keep_path(struct mr_message *msg, const char *path, struct mr_error *err);
static inline void
arena_done(struct arena **own) /* for mr_auto */
{
	arena_free(*own);
}

/* ---- pack.c ---- */
#define PACK_FILE "mbox.gz" /* in the folder of its month */
#define KEPT_LOCK "look"    /* of the records ROOM_KEPT: see pack.c on races */
typedef bool pack_fn(void *ctx, const char *name, struct packed_at at); /* NULL: only whether it can be read */
/* The names of the files that are packed in a folder such as agents/bob/.Archive.2026-01. MR_NOTFOUND: there is no
 * pack. MR_CORRUPT. */
enum mr_rc pack_each(struct maildir *md, const char *folder, pack_fn *fn, void *ctx, struct mr_error *err);
enum mr_rc pack_check(struct maildir *md, const char *folder, struct mr_error *err);
/* A packed message as a file of its own in memory; *ret_st is that of the pack, except for the size. MR_NOTFOUND: the
 * pack was replaced meanwhile. */
enum mr_rc pack_open_message(
    int pack_fd, const struct listed *at, int *ret_fd, struct stat *ret_st, struct mr_error *err);
enum mr_rc pack_lock(struct mr_room *room, void **ret_lock, struct mr_error *err);
void pack_unlock(void **lock); /* for mr_auto; NULL: not locked */
/* With the lock: removes a message from a pack, and the leftovers of a killed command. */
enum mr_rc pack_purge(struct mailbox *box, const char *subfolder, const char *id, size_t *ret_n, struct mr_error *err);
void pack_sweep(struct mailbox *box, const char *subfolder);
/* Writes every readable message of a damaged pack into files, durably, and reports the ids of the others. The pack
 * stays. MR_UNSUPPORTED: without zlib. */
enum mr_rc pack_salvage(struct mr_room *room, const char *folder, size_t *ret_saved,
    void (*lost)(void *ctx, const char *id), void *ctx, struct mr_error *err);

/* ---- commit.c: all durable changes go through here ---- */
/* rename that never overwrites; both folders are synced (target first) at the next flush. MR_NOTFOUND: the
 * source is gone (someone else moved it); MR_EXISTS. */
enum mr_rc commit_move(
    struct maildir *md, int from_fd, const char *from, int to_fd, const char *to, struct mr_error *err);
enum mr_rc commit_flush(struct maildir *md, struct mr_error *err);
void commit_forget(struct maildir *md); /* closes the recorded folders, syncs nothing */
/* One commit for bytes and name (Sync: fast): is it asked for, and safe for this file? */
bool commit_is_fast(struct maildir *md, int fd);
/* Called before a staged file gets its name: puts its bytes on the disk, as the room's settings want it. */
enum mr_rc commit_bytes(struct maildir *md, struct staged *file, struct mr_error *err);
/* Called after it got its name. -1: errno; with sync none it does nothing. */
int commit_name(struct maildir *md, int file_fd, int folder_fd);

/* ---- mark.c ---- */
/* Renames a message to the name that its parts make in to_fd (see name_build). If another file has that name,
 * ",D=<random>" is appended: two mailboxes' copies of one message may meet in dead/. MR_NOTFOUND: the source is
 * gone. */
enum mr_rc mark_rename(struct maildir *md, int from_fd, const char *from, int to_fd, const struct file_name *n,
    unsigned attempt, unsigned flags, bool with_info, struct mr_error *err);
/* Marks of a message that moves from one folder to another ("" is the inbox), where 'a' may have another meaning: sets
 * n->a_is_ours, returns MR_ACKED if the mark is kept. */
unsigned mark_carry_acked(struct mailbox *box, const char *from, const char *to, struct file_name *n);
/* Like mark_rename, into the room's dead letters: dead/cur, or dead/new if the name has no ":2,". */
enum mr_rc mark_to_dead(struct maildir *md, int from_fd, const char *from, const struct file_name *n, unsigned attempt,
    struct mr_error *err);
/* Mail of that mailbox was marked or taken: the next flush checks its folders. `seen`: it is now seen in cur/. */
void mark_note(struct mailbox *box, bool seen);

/* ---- renew.c ---- */
#define GONE_PREFIX ".gone."     /* in held/: mail in such a folder is on its way back */
#define MOVING_PREFIX ".moving." /* in new/ or cur/: some of its mail is in held/.gone.<folder>.<same suffix> */
/* Replaces large folders of the mailbox, of which a command moved so many messages. An error: the moves may not survive
 * a power cut. */
enum mr_rc renew_folders(struct mailbox *box, size_t moved, struct mr_error *err);
void renew_held(
    struct mailbox *box); /* a held/<life> that is large and empty: a handle that holds mail leaves it to its close */
/* Is this folder in held/ a leftover of a renewal? Then renew_finish completes it, if its process is dead. */
bool renew_is_leftover(const char *gone);
enum mr_rc renew_finish(struct mailbox *box, int held_fd, const char *gone, struct mr_error *err);

/* ---- agents.c, recover.c ---- */
/* Addresses of all mailboxes, sorted by bytes; with `registered` only those that have an `agent` file. */
enum mr_rc agents_collect(struct maildir *md, bool registered, struct mr_names *ret, struct mr_error *err);
/* Removes a mailbox without agent and mail in which nothing happened since then. Best effort. */
void agents_retire(struct maildir *md, const char *name, int64_t before_ms);
/* Moves the unread mail of a folder without an agent to the dead letters; *ret is the number. */
enum mr_rc agents_empty_unregistered(struct maildir *md, const char *name, size_t *ret, struct mr_error *err);
/* The number of a file in lives/ or a folder in held/. 0 stands for an agent that has not registered yet, which can
 * hold mail, too. */
bool life_number(const char *name, unsigned *ret);
/* 0: none yet. likely: the caller's guess of the newest life; if it is right, lives/ is usually not read. */
enum mr_rc life_newest(struct mailbox *box, unsigned likely, unsigned *ret, struct mr_error *err);
/* Renames held/<M> of every life M < before away, then puts back the mail in them, whose number is added to *ret. */
enum mr_rc life_fence(struct mailbox *box, unsigned before, size_t *ret, struct mr_error *err);

/* ---- deliver.c, fanout.c ---- */
/* Opens cur/ of the sender's .Sent of that month. False: there is no such sender, no copy is wanted (""), or it failed.
 * The copy is a courtesy: it is never synced, and no reason to fail. */
bool deliver_open_sent(struct maildir *md, const char *sender, const char *id, int *ret_cur_fd);
struct path deliver_sent_name(const char *id); /* of that copy */
/* Opens the recipient's mailbox; makes it first when `make` and there is none. */
enum mr_rc deliver_open(struct mr_room *room, const char *agent, bool make, struct mailbox *box, struct mr_error *err);
/* The message's bytes into the staged file, attachments in pieces. */
enum mr_rc deliver_write(struct staged *file, struct mr_room *room, const struct mr_message *msg, struct mr_error *err);
/* Makes the new name durable. On an error it takes the file back (refused), or it is too late for that (in doubt). */
enum mr_rc deliver_make_durable(
    struct maildir *md, const char *to, int file_fd, int folder_fd, const char *name, struct mr_error *err);
/* Did a link fail because of another file system, too many links, or a kernel or sandbox that only links a user's own
 * files? Then a copy does as well; it only takes more space. */
bool deliver_needs_copy(int error);
/* Was the agent pruned? One system call. */
bool deliver_is_removed(const struct maildir *md, const char *agent);
/* Sets a new id after a collision, and a new thread if the message began it. */
void deliver_new_id(struct mr_message *msg);
/* Several recipients, or a key. */
enum mr_rc fanout_deliver(struct mr_room *room, struct delivery *what, struct delivered *ret, struct mr_error *err);

/* ---- fanout.c, recover.c: a fan-out under way ---- */
#define SPOOL_COUNTER_DIGITS 10 /* "Next: 0000000000" */
struct spool_job {              /* by value, finish with spool_done: closing it releases the record's lock */
	struct mr_room *room;
	struct maildir *md;
	int spool_fd;   /* spool/ */
	int record_fd;  /* spool/<id>, flocked by us */
	int message_fd; /* spool/<id>.mr */
	char id[MR_ID_LEN + 1];
	char message[MR_ID_LEN + 4]; /* "<id>.mr" */
	char name[NAME_LEN];         /* of the message in a mailbox */
	off_t counter_at;            /* of the digits after "Next: " in the record */
	struct mr_names to;          /* owned if read from a record, else borrowed: see `lines` */
	struct record lines;         /* the record that was read; empty for one that we wrote */
	bool make_mailboxes;
	uint64_t removals;       /* maildir_removals before the recipients were looked at; 0: look at each again */
	bool search;             /* rolling forward: skip recipients that have the id already */
	size_t next;             /* recipients before this one have it */
	int *folder_fd;          /* new/ of each recipient, or -1: kept open from first use to its sync, if */
	size_t open_n, open_max; /* there are enough descriptors */
};
/* Half of the descriptors that the process may open; the rest is for the process itself and for the steps in
 * between. */
size_t spool_open_max(void);
void spool_init(struct spool_job *job, struct mr_room *room);
void spool_done(struct spool_job *job);
enum mr_rc spool_open(struct spool_job *job, struct mr_error *err); /* spool/, made if missing */
void spool_set_id(struct spool_job *job, const char *id);
/* Begins a job with the record of `id`, locked and read; call spool_done also on failure. MR_NOTFOUND: there is no such
 * record any more; MR_BUSY: another process worked on it for all of wait_ms; MR_CORRUPT: it is no record, or its
 * message is missing. */
enum mr_rc spool_lock(
    struct spool_job *job, struct mr_room *room, const char *id, int64_t wait_ms, struct mr_error *err);
/* Links the message to each recipient from job->next on, then syncs their folders. On an error job->next says how far
 * it came. */
enum mr_rc spool_give_all(struct spool_job *job, struct mr_error *err);
/* Gives the sender its copy, as deliver_open_sent says. */
void spool_keep_sent(const struct spool_job *job, const char *sender);
/* Ends the job: removes the record, then the message. MR_OK also if only the message was left. */
enum mr_rc spool_remove(struct spool_job *job, struct mr_error *err);
/* Completes a locked record and removes it. *ret_lost: its key belongs to another send, so nothing was delivered. */
enum mr_rc spool_roll_forward(struct spool_job *job, bool *ret_lost, struct mr_error *err);

/* Does this recipient have the message already? */
enum mr_rc spool_agent_has(struct spool_job *job, const char *agent, bool *ret, struct mr_error *err);
enum target_kind { TARGET_AGENT, TARGET_QUEUE, TARGET_CHANNEL };
enum target_kind target_kind(const char *to, const char **ret_name); /* "queue:NAME": the name behind the colon */

/* ---- keys.c ---- */
enum mr_rc key_check(const char *key, struct mr_error *err);
/* Takes the key for the record spool/<id> of the job, durably. MR_EXISTS: another record has it. */
enum mr_rc key_take(struct spool_job *job, const char *sender, const char *key, struct mr_error *err);
/* Gives a key back that is a link to our record. MR_OK also when it is not ours. */
enum mr_rc key_drop(struct spool_job *job, const char *sender, const char *key, struct mr_error *err);
/* The send that used this key. MR_NOTFOUND: none. MR_OK: that send is complete (now), its id is in ret_id. MR_REFUSED:
 * the key was used for another message (digest NULL: any message matches). MR_BUSY: it is still being delivered.
 * MR_INDOUBT: it could not be completed; ret_id is set. */
enum mr_rc key_find(struct mr_room *room, const char *sender, const char *key, const char *digest,
    char ret_id[MR_ID_LEN + 1], struct mr_error *err);
/* Once a day: removes this sender's keys that are older than Keep-Keys:, and their folder when it is empty. */
void key_expire(struct mr_room *room, const char *sender);

/* ---- token.c ---- */
/* Ends all claims of this handle: removes holds/<token> and releases its lock. For maildir_close. */
void token_close(struct maildir *md);

/* ---- shared.c: several users in one room ---- */
static inline bool
maildir_is_shared(const struct maildir *md)
{
	return (md->dir_mode & S_IRWXG) != 0;
}
/* Does this error only say that another user gives no access to `path`? Then it is noted in room->barred, err is
 * emptied, and the caller goes on without it. */
bool shared_skip(struct maildir *md, struct mr_error *err, const char *fmt, ...) MR_PRINTF(3, 4);
/* Returns rc, but MR_OK with err emptied if `path` is missing (MR_NOTFOUND) or shared_skip allows to go on. */
enum mr_rc shared_pass(struct maildir *md, enum mr_rc rc, struct mr_error *err, const char *fmt, ...) MR_PRINTF(4, 5);
/* The same check in advance, for an agent of which more than the mailbox is needed. */
bool shared_skip_agent(struct maildir *md, const char *agent);
/* MR_REFUSED: mail cannot be delivered to this agent; err says why. */
enum mr_rc shared_check_agent(struct maildir *md, const char *agent, struct mr_error *err);
/* The proof of a message that names that agent as sender, from the attributes of its file. */
enum mr_proof shared_proof(struct maildir *md, const char *from, const struct stat *st);
/* Does the agent belong to another user, or cannot that be told? False if the room is not shared. */
bool shared_is_others(struct maildir *md, const char *agent);
/* Adds the line Uid: of a registration or a life; nothing in a room that is not shared. */
void shared_add_user(const struct maildir *md, struct buf *out);

/* ---- reserve.c: space that is reserved for a full disk ---- */
#define RESERVE_FILES 32
bool reserve_spend(void *md); /* for sys_relief: frees one file of the reserve; false: none is left */
/* Makes the missing files, as far as they fit. */
enum mr_rc reserve_make(struct maildir *md, struct mr_error *err);
/* The same if this handle spent some, or if there is plenty of space. Best effort, cheap if none is missing. */
void reserve_refill(struct maildir *md);
size_t reserve_missing(struct maildir *md); /* number of files */

/* ---- retain.c ---- */
/* When it is time to look, removes some of what the room's settings do not keep, and of old bookkeeping. Best effort.
 * `begin`: something was written that only this function removes. In a room without settings where `begin` never
 * happened, it costs one system call. */
void retain_some(struct mr_room *room, bool begin);

/* ---- over.c: old bookkeeping ---- */
/* Adds its places, as paths in the room. False: some could not be found out. */
bool over_places(struct maildir *md, struct mr_names *ret);
/* If this path is one of them, or a mailbox: removes at most so many old files there and returns their number.
 * *ret_doubt: a file is from the future, so the clock may be wrong. */
size_t over_clear(struct mr_room *room, const char *place, size_t most, bool *ret_doubt);

/* ---- inspect_tree.c ---- */
struct findings;
enum mr_rc inspect_tree(struct mr_room *room, struct findings *f, struct mr_error *err);

/* ---- queue.c, channel.c: targets of a delivery other than agents ("queue:NAME", "channel:NAME") ---- */
/* Links from_fd/from (a durable message file with this id) to where the target keeps its mail, not synced; the caller
 * syncs and closes *ret_fd, that folder. MR_NOTFOUND: no such queue or channel. In a channel it does not search for the
 * message first: a command that may repeat a send asks channel_has before. */
enum mr_rc queue_give(struct mr_room *room, const char *queue, int from_fd, const char *from, const char *id,
    int *ret_fd, struct mr_error *err);
enum mr_rc channel_give(struct mr_room *room, const char *channel, int from_fd, const char *from, const char *id,
    int *ret_fd, struct mr_error *err);
enum mr_rc maildir_channel_make(struct mr_room *room, const char *channel, struct mr_error *err);
enum mr_rc maildir_channel_remove(struct mr_room *room, const char *channel, struct mr_error *err);
/* Its folder posts/, owned by the caller. */
enum mr_rc channel_open_posts(struct maildir *md, const char *channel, int *ret_fd, struct mr_error *err);
/* For roll forward: is this message there in any state? If so, *ret_fd is its folder, which the caller syncs and
 * closes. */
enum mr_rc queue_has(
    struct maildir *md, const char *queue, const char *id, bool *ret, int *ret_fd, struct mr_error *err);
enum mr_rc channel_has(
    struct maildir *md, const char *channel, int from_fd, const char *from, bool *ret, struct mr_error *err);

/* ---- Claims on mail and on work ---- */
/*
 * A mailbox is a queue with one claimer. On disk the two differ:
 *
 *	agents/<address>/held/<life>/h.<token>.<deadline>.<attempt>.<name it had>
 *
 *	queues/<name>/settings                       its record; a folder without one is no queue
 *	queues/<name>/ready/<p>/<bucket>/<file>      p: 0 urgent, 1 high, 2 normal, 3 low; buckets: queue_ready.c
 *	queues/<name>/ready/<p>/.low .high           the first and last bucket, cached
 *	queues/<name>/delayed/<hour>/<not before, ms>.p<p>.<file>   hour: of that time, since 1970; earlier versions
 *	                                                            had them in delayed/ itself
 *	queues/<name>/claimed/h.<token>.<deadline>.<attempt>.p<p>.<file>
 *	queues/<name>/done/<YYYY-MM>/<file>          month (UTC) of the id
 *	queues/<name>/failed/<file>
 *	queues/<name>/past/<YYYY-MM>/<id>.<token>.<attempt>.<ended, ms>.<how>   claims that are over: token.c
 *	queues/<name>/.lock                          flock: settings, and claims where their number is limited
 *
 * <file> is `<unix seconds>.<id>.mr`, with `,A=<n>` after a claim that ended without result, and `,B=...` after a
 * release. "/" in a name is "%2F". Temporary files are made beside the settings, so that the folders hold nothing but
 * work.
 */
#define QUEUE_PRIORITIES 4u
#define QUEUE_WORK ((unsigned)QUEUE_READY | QUEUE_DELAYED | QUEUE_CLAIMED) /* work that is still to be done */
#define QUEUE_ANY (QUEUE_WORK | QUEUE_DONE | QUEUE_FAILED)

/* ---- Of slots ---- */
enum mr_rc maildir_agent_remove(struct mr_room *room, const char *name, size_t *ret_dead, struct mr_error *err);
enum mr_rc maildir_queue_make(struct mr_room *room, const char *queue, struct mr_error *err);
enum mr_rc maildir_queue_remove(
    struct mr_room *room, const char *queue, bool to_dead, size_t *ret_dead, struct mr_error *err);
enum mr_rc maildir_queue_fetch(struct mr_room *room, const char *queue, const char *id, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err);

/* ---- queue.c ---- */
struct queue { /* open; by value, finish with queue_done */
	struct maildir *md;
	char name[MR_ADDRESS_MAX + 1];
	int fd; /* queues/<name> */
};
#define QUEUE_INIT ((struct queue){ .fd = -1 })
/* MR_NOTFOUND: no such queue (any more). */
enum mr_rc queue_open(struct queue *q, struct maildir *md, const char *name, struct mr_error *err);
/* Without the check for settings: the leftovers of a removed queue. */
enum mr_rc queue_open_any(struct queue *q, struct maildir *md, const char *name, struct mr_error *err);
static inline void
queue_done(struct queue *q)
{
	sys_close_fd(&q->fd);
}
bool queue_is_there(const struct queue *q);                       /* its settings exist right now */
enum mr_rc queue_missing(const char *name, struct mr_error *err); /* the sentence for MR_NOTFOUND */
/* Opens a folder of the queue; creates it if it is missing. */
enum mr_rc queue_folder(const struct queue *q, const char *path, int *ret_fd, struct mr_error *err);
/* Names of all folders in queues/, also of removed queues; the caller frees them. */
enum mr_rc queue_names(struct maildir *md, struct mr_names *ret, struct mr_error *err);

struct work_name {             /* the parts of a name in any folder of a queue */
	struct file_name file; /* claimed names: with token, deadline, attempt */
	unsigned p;            /* QUEUE_CLAIMED, QUEUE_DELAYED */
	int64_t not_before_ms; /* QUEUE_DELAYED */
};
/* Pure. False: no name of work in that state. Points into `name`. */
bool work_parse(enum queue_state state, struct mr_str name, struct work_name *ret);
/* `file` is its name in ready/. False: too long. */
bool work_claimed_name(
    const char *token, int64_t deadline_s, unsigned attempt, unsigned p, const char *file, char ret[NAME_LEN]);
bool work_delayed_name(int64_t not_before_ms, unsigned p, const char *file, char ret[NAME_LEN]);
unsigned work_attempt(const struct work_name *n); /* how often it was claimed */

/* The agent for which released work is reserved now. The name has only a hash, so the agents of the room are listed,
 * once (into `agents`). False: work for all, also because that agent was removed. "?": the agents cannot be listed. */
bool queue_only_for(
    struct maildir *md, struct mr_names *agents, const struct released *r, char ret[MR_ADDRESS_MAX + 1]);
struct work_at { /* one message found; finish with work_at_done */
	enum queue_state state;
	unsigned p;    /* not set for done and failed, whose names do not tell it */
	int fd;        /* its folder */
	char path[48]; /* of the folder */
	char name[NAME_LEN];
};
#define WORK_AT_INIT ((struct work_at){ .fd = -1 })
/* Calls fn for all work in those states. All names of a folder are read first, so fn may move the files. Any result but
 * MR_OK ends the walk and is returned. */
typedef enum mr_rc work_fn(void *ctx, const struct work_at *at, const struct work_name *n, struct mr_error *err);
enum mr_rc queue_each_work(const struct queue *q, unsigned states, work_fn *fn, void *ctx, struct mr_error *err);
static inline void
work_at_done(struct work_at *at)
{
	sys_close_fd(&at->fd);
}
/* MR_NOTFOUND: it is in no folder, even after repeating the search until nothing moved meanwhile. */
enum mr_rc queue_find(const struct queue *q, const char *id, struct work_at *ret, struct mr_error *err);
enum mr_rc queue_each(struct maildir *md, const char *queue, unsigned states,
    bool (*fn)(void *ctx, const struct queue_item *item), void *ctx, struct mr_error *err);

/* ---- queue_ready.c ---- */
struct buckets { /* of one priority, ascending; finish with buckets_done */
	int fd;  /* ready/<p> */
	uint32_t *v;
	size_t n;
};
#define BUCKETS_INIT ((struct buckets){ .fd = -1 })
struct path bucket_name(uint32_t number);
void buckets_done(struct buckets *b);
/* None or no folder: MR_OK and n is 0; without a folder fd is -1. */
enum mr_rc buckets_read(const struct queue *q, unsigned p, struct buckets *ret, struct mr_error *err);
enum bucket_end { BUCKET_LOWEST, BUCKET_HIGHEST };
/* Call it when the last bucket of the list, the highest, is full: makes the next one. Best effort. */
void bucket_rotate(const struct queue *q, const struct buckets *b);
/* Is that a folder of delayed/, and when does its hour begin? */
bool work_is_hour(const char *name, int64_t *ret_ms);
/* Puts work into a bucket: new work into the highest, returned work into the lowest. `put` links or renames into that
 * folder and returns MR_NOTFOUND if something is missing; if that is the bucket, the next one is tried. *ret_fd (or
 * NULL) is the bucket that was used. */
typedef enum mr_rc bucket_put_fn(void *ctx, int bucket_fd, struct mr_error *err);
enum mr_rc bucket_put(const struct queue *q, unsigned p, enum bucket_end end, bucket_put_fn *put, void *ctx,
    int *ret_fd, struct mr_error *err);
/* A single new message: it is written into `file`, which becomes work of the queue, durable. MR_EXISTS: the id is
 * taken. */
enum mr_rc queue_publish(
    struct mr_room *room, struct queue *q, const struct mr_message *msg, struct staged *file, struct mr_error *err);

/* The next work that is ready. `claim` has agent, box, life and kind. */
enum mr_rc queue_claim_next(
    struct maildir *md, const char *queue, const struct claim_terms *terms, struct claim *claim, struct mr_error *err);

/* ---- token.c ---- */
/* Makes holds/<token> of a new claim, which has agent, box, life and kind: fills in token, deadline_ms, since_ms. All
 * claims that last as long as this handle share one file: made once, locked, and visible when this returns. */
enum mr_rc token_take(struct maildir *md, const struct claim_terms *terms, struct claim *claim, struct mr_error *err);
/* Reads the holder from the file: agent, life, box, since_ms, kind. MR_NOTFOUND: there is no file. */
enum mr_rc token_read(struct maildir *md, const char *token, struct claim *claim, struct mr_error *err);
/* Writes the new deadline of a lease and keeps the rest. */
enum mr_rc token_extend(struct maildir *md, const struct claim *claim, int64_t lease_ms, struct mr_error *err);
/* Adds the details of a release to the file. */
enum mr_rc token_note(struct maildir *md, const struct claim *claim, struct mr_error *err);
struct lease_time {
	bool shares_clock; /* the record is of this boot, and its clock can be read here */
	int64_t boot_now_ms, boot_deadline_ms;
	int64_t now_ms, deadline_ms; /* by the wall clock */
};
bool lease_time_is_up(const struct lease_time *t);
/* Has the claim ended, because its holder is dead or its time is up? In doubt, no. */
bool token_is_over(struct maildir *md, const struct file_name *held);
void token_drop(struct maildir *md, const char *token); /* best effort: a file without mail has no meaning */
/* The file of a dead process, locked so that it cannot be reused while it is removed. -1: its process lives, it is a
 * lease or another agent's, or that cannot be told. agent NULL: any agent's. */
int token_of_dead(int holds_fd, const char *token, const char *agent);
/* A lease is at most as long as the office allows. */
int64_t lease_clamp(int64_t lease_ms);
/* Whole seconds, rounded up, so that a name never promises less than was asked for. */
int64_t lease_deadline_s(int64_t lease_ms);
/* The claim has ended: moves the data of holds/<token> into the past/ of the queue, or with NULL of the agents' own
 * mail. Best effort. */
void past_keep(struct maildir *md, const struct queue *q, const struct file_name *n, enum settle how);
/* Removes the past/ of work that was removed; ids sorted, or NULL: all. Best effort. */
void past_remove(const struct queue *q, const struct mr_names *ids);

/* ---- recover.c ---- */
/* Puts back the mail that dead processes and old lives of the agent held; their files in holds/ stay. */
enum mr_rc sweep_mail(struct maildir *md, const char *agent, struct mr_error *err);

/* ---- claim.c ---- */
/* Reads id, token, attempt, deadline_ms and kind from a name in held/ or claimed/. */
void claim_from_name(const struct file_name *n, struct claim *ret);
/* Ends a claim on mail: renames held_fd/name (parts n) to where `how` says. MR_NOTFOUND: another process ended it. */
enum mr_rc mail_end(
    struct mailbox *box, int held_fd, const char *name, struct file_name *n, enum settle how, struct mr_error *err);

/* ---- channel.c ---- */
struct channel { /* by value, finish with channel_done */
	struct maildir *md;
	const char *name; /* borrowed */
	int fd;           /* channels/<name> */
	int posts_fd;
	int lock_fd; /* .ends, or -1: not locked */
};
#define CHANNEL_INIT ((struct channel){ .fd = -1, .posts_fd = -1, .lock_fd = -1 })

enum channel_lock { CHANNEL_UNLOCKED, CHANNEL_SHARED, CHANNEL_ALONE };
/* MR_NOTFOUND: no such channel. MR_BUSY: another process held the lock for ten seconds. */
enum mr_rc channel_open(
    struct channel *c, struct maildir *md, const char *name, enum channel_lock lock, struct mr_error *err);
void channel_done(struct channel *c);
enum mr_rc channel_name_check(const char *name, struct mr_error *err);

struct posts { /* the posts of the folder; numbers are 0 if there are none */
	uint64_t first, last;
	uint64_t next; /* the first from `from` on */
	size_t n;
};
/* Reads the whole folder. */
enum mr_rc channel_posts(const struct channel *c, uint64_t from, struct posts *ret, struct mr_error *err);

/* The number of the post with that id; 0: there is none. Without `all` it looks only where the id belongs by its time;
 * a late post is elsewhere. */
enum mr_rc channel_find(
    struct mr_room *room, const char *channel, const char *id, bool all, uint64_t *ret, struct mr_error *err);
/* An empty file takes the place of a post, so that its number stays taken. *removed is added to. */
enum mr_rc channel_blank_post(
    struct maildir *md, const char *channel, uint64_t number, size_t *removed, struct mr_error *err);

/* Removes the posts below that number (a retained copy; subscribers keep theirs). */
enum mr_rc channel_drop(
    struct mr_room *room, const char *channel, uint64_t below, size_t *ret_removed, struct mr_error *err);

/* ---- The operations of room/slots.h that this driver has are maildir_<name> ---- */
#define SLOT(name, parameters, ...) enum mr_rc maildir_##name parameters;
#define SLOT_VOID(name, parameters, ...) void maildir_##name parameters;
#define SLOT_VALUE(type, name, parameters, ...) type maildir_##name parameters;
#include "room/slots.h"

/* ---- Those of struct room_files ---- */
enum mr_rc maildir_each_store(struct mr_room *room, const char *agent, store_fn *fn, void *ctx, struct mr_error *err);
enum mr_rc maildir_index_folder(struct mr_room *room, bool make, char **ret, struct mr_error *err);
enum mr_rc maildir_pack(struct mr_room *room, const char *agent, const char *month, bool unpack, struct mr_packed *ret,
    struct mr_error *err);

#endif
