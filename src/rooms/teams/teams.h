/* SPDX-License-Identifier: MIT */
/*
 * teams.h - the driver for the inbox files of Claude Code agent teams.
 *
 *	<root>/<team>/inboxes/<agent>.json        a JSON array, one object a message; no message has an id
 *	<root>/<team>/inboxes/<agent>.json.lock   an empty folder while somebody changes the file
 *	<root>/<team, spelled otherwise>/config.json  the members
 *
 *	inbox.c    one entry: as a message, as bytes, its id; what we write; a file: what is in it, its next version
 *	store.c    the lock of the original and ours; replacing a file; salvage
 *	mail.c     looking, marking, sending
 *	config.c   config.json
 *	teams.c    opening, names of files, agents, the doctor
 *
 * Every change: lock, read, write beside, fsync, rename, fsync of the folder. Nothing is changed in place, and no byte
 * of another entry is touched. Readers take no lock; others write in place, so a file that cannot be parsed is read
 * again before it counts as broken.
 */
#ifndef ROOMS_TEAMS_TEAMS_H
#define ROOMS_TEAMS_TEAMS_H

#include "rooms/kit/kit.h"

#define TEAM_NAME_LEN 256            /* a name of a file, and what is hung on it */
#define INBOX_MAX ((size_t)48000000) /* bytes; 100,000 usual messages are 37 MB */

struct teams_mark { /* not written yet */
	char agent[MR_ADDRESS_MAX + 1];
	char id[MR_ID_LEN + 1];
	bool seen;
};

struct teams {
	struct kit_room kit; /* its path is the folder of all teams */
	char *team;          /* as people write it */
	char *inboxes;       /* relative to root */
	char *config_dir;    /* relative to root */
	struct inbox *cache;
	struct teams_mark *marks;
	size_t marks_n, marks_cap;
	int64_t patience_ms;      /* with a lock that another has */
	char last[TEAM_NAME_LEN]; /* the inbox that this handle wrote to last */
	int64_t last_ms;          /* and when, clock_boot_ms */
};

static inline struct teams *
teams_of(const struct mr_room *room)
{
	return room->state;
}

/* ---- teams.c ---- */
enum sanitise { SANITISE_INBOX /* all but A-Za-z0-9_- */, SANITISE_CONFIG /* all but A-Za-z0-9; lower case */ };
/* Each UTF-16 unit that is not allowed becomes one dash. */
void teams_sanitise(struct buf *out, struct mr_str raw, enum sanitise how);
/* "bob.json" for an address. */
void teams_inbox_name(const char *agent, char ret[TEAM_NAME_LEN]);
/* Is it the name of an inbox? *ret_stem is what stands before ".json". */
bool teams_is_inbox(const char *file, struct mr_str *ret_stem);
/* The folder t->inboxes or t->config_dir. MR_NOTFOUND: not there yet. */
enum mr_rc teams_open_dir(const struct teams *t, const char *dir, int *ret_fd, struct mr_error *err);
enum mr_rc teams_make_inboxes(const struct teams *t, int *ret_fd, struct mr_error *err);
/* May they be written to? */
enum mr_rc teams_check_recipients(
    struct mr_room *room, const struct mr_names *to, bool make_mailboxes, struct mr_error *err);

/* ---- inbox.c ---- */
struct entry { /* small: a file may have 200,000, of which ten are shown; the fields of those are looked up again */
	struct mr_str raw;
	const char *problem; /* why it is no message, or NULL */
	int64_t date_ms;
	char id[MR_ID_LEN + 1]; /* "": no message, or inbox_moment was not asked for it */
	bool seen;
	bool plain;  /* by its first letters: neither a typed message nor a control message */
	bool marked; /* edit_inbox shall write `seen` */
};
enum mr_rc entry_message(const struct entry *e, const char *agent, const char *path, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err);
/* The type of a body that is a JSON object with such a member, which a team takes for a control message. False: prose.
 * One that cannot be judged counts as control, its type is "". */
bool entry_control_type(struct mr_str body, struct buf *ret_type);

struct letter { /* what is written */
	struct buf from, text, summary, color;
	int64_t date_ms;
	char msg_id[37]; /* of an import, else "" */
	char id[MR_ID_LEN + 1];
};
/* Of an empty one; finish with letter_done in any case. */
enum mr_rc letter_make(struct letter *l, const struct delivery *what, struct mr_error *err);
void letter_date(struct letter *l, int64_t date_ms);      /* the id follows from it */
void letter_add(const struct letter *l, struct buf *out); /* "  {...}", two spaces deep */
void letter_done(struct letter *l);

enum inbox_state {
	INBOX_MISSING,
	INBOX_GOOD,
	INBOX_CLEARED, /* a whole array, then what an overwriting without truncation left of the old text */
	INBOX_TORN,    /* v has the complete objects at its beginning */
	INBOX_ALIEN,   /* something else: left alone */
};
struct inbox {
	unsigned refs;
	char agent[MR_ADDRESS_MAX + 1];
	struct buf text;
	enum inbox_state state;
	const char *problem; /* INBOX_TORN, INBOX_ALIEN: the end of a sentence */
	struct entry *v;     /* as in the file */
	size_t n;
	struct entry **order; /* those that are messages, by id, as far as inbox_moment was asked; else by date */
	size_t order_n;
	struct stat st;
	int64_t read_ns; /* when */
};
struct inbox *inbox_new(const char *agent);
void inbox_unref(struct inbox **in); /* for mr_auto */
/* Parses in->text. Only MR_NOMEM. */
enum mr_rc inbox_parse(struct inbox *in, struct mr_error *err);
/* Reads and parses. A missing file is INBOX_MISSING and MR_OK. What is torn is read again for patience_ms, as others
 * write in place. */
enum mr_rc inbox_read(struct inbox *in, int dir_fd, const char *file, unsigned patience_ms, struct mr_error *err);
/* For looking: without a lock. `cached`: what this handle read before will do if the file has not changed. */
enum mr_rc inbox_load(struct teams *t, const char *agent, bool cached, struct inbox **ret, struct mr_error *err);
/* The entries of the moment of order[at], which are n from `first` on, get their ids and the order of these. */
enum mr_rc inbox_moment(struct inbox *in, size_t at, size_t *ret_first, size_t *ret_n, struct mr_error *err);
/* NULL: none */
struct entry *inbox_find(struct inbox *in, const char *id);
/* Its entries as this handle has marked them. */
void inbox_mark(const struct teams *t, struct inbox *in);
enum mr_rc inbox_corrupt(const struct inbox *in, struct mr_error *err);
/* The text of the file with the marks of its entries, and with one more entry at its end (NULL: none). All other bytes
 * of a good file are kept. *ret_changed: it is another text. */
enum mr_rc edit_inbox(
    const struct inbox *in, const struct letter *more, struct buf *ret, bool *ret_changed, struct mr_error *err);

/* ---- store.c ---- */
struct team_lock {
	int kernel_fd; /* our own processes among each other; -1: not taken */
	int dir_fd;    /* borrowed */
	char name[TEAM_NAME_LEN];
	uint64_t inode;
	int64_t mtime_ns;
	int64_t since_ms; /* clock_boot_ms of the last refresh */
	bool held;
};
#define TEAM_LOCK_INIT ((struct team_lock){ .kernel_fd = -1, .dir_fd = -1 })
#define TEAM_LOCK_STALE_MS 10000
/* Locks the file of that name. MR_BUSY after the patience; MR_NOTFOUND: the folder is gone. */
enum mr_rc team_lock_take(struct team_lock *l, int dir_fd, const char *file, int64_t patience_ms, struct mr_error *err);
/* False: it had been taken away, so another may have written over what we wrote. */
bool team_lock_release(struct team_lock *l);
void team_lock_done(struct team_lock *l);
unsigned team_random(unsigned from, unsigned to); /* both included */

struct fresh { /* the next version of a file */
	const char *file;
	mode_t mode;
	int from_fd; /* the first `copied` bytes of that file, */
	size_t copied;
	struct mr_str bytes;           /* then these */
	const struct delivery *staged; /* that wants a ticket; or NULL */
};
/* Under the lock: writes it beside, named as the original names it or with a ticket by a name that no cleaner removes,
 * and renames it over. Whole and durable. MR_BUSY: the lock was taken away. */
enum mr_rc store_replace(struct team_lock *l, const struct fresh *f, struct mr_error *err);
/* Under the lock: reads and parses; a file that is broken and stays so is copied into the state directory first.
 * After MR_OK in->state is INBOX_MISSING, GOOD, CLEARED or TORN, and in the last case the copy is safe. */
enum mr_rc store_read_locked(
    struct mr_room *room, struct inbox *in, int dir_fd, const char *file, struct mr_error *err);

/* ---- config.c ---- */
struct config {
	struct buf text;
	struct json_value members; /* raw.ptr NULL: none */
	bool there;
	mode_t mode;
};
/* A missing file is MR_OK. MR_CORRUPT: it is no JSON object. Finish with config_done in any case. */
enum mr_rc config_read(const struct teams *t, struct config *ret, struct mr_error *err);
void config_done(struct config *c);
/* The next member with a name that an address can hold. */
bool config_next(const struct config *c, size_t *at, struct json_value *ret, char ret_address[MR_ADDRESS_MAX + 1]);
enum mr_rc config_agent(struct json_value member, const char *address, struct mr_agent *ret, struct mr_error *err);
/* Adds a member, or removes one (the other is NULL), under config.json.lock. MR_EXISTS; MR_NOTFOUND. */
enum mr_rc members_change(const struct teams *t, const struct mr_agent *add, const char *remove, struct mr_error *err);

/* ---- mail.c: the slots ---- */

/* ---- The operations of room/slots.h that this driver has are teams_<name> ---- */
#define SLOT(name, parameters, ...) enum mr_rc teams_##name parameters;
#define SLOT_VOID(name, parameters, ...) void teams_##name parameters;
#define SLOT_VALUE(type, name, parameters, ...) type teams_##name parameters;
#include "room/slots.h"

#endif
