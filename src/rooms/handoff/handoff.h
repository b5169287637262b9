/* SPDX-License-Identifier: MIT */
/*
 * handoff.h - the mailboxes of the mailbox skill: one root, a registry of names, and for each agent
 *
 *	<root>/registry.json          name -> id, harness, inbox, pid, created; one line an entry
 *	<root>/.registry.lock         flock(2) around each change of it
 *	<root>/<id>/tmp inbox archive message files; inbox = unread, archive = consumed
 *
 *	format.c     file names, ids and the bytes of a message (pure)
 *	registry.c   the registry, as bytes and on disk; registering, finding and removing agents
 *	mail.c       what is in a mailbox, and moving it between inbox and archive
 *	deliver.c    sending
 *	handoff.c    the table, the root, the doctor, the verbs of the original
 */
#ifndef ROOMS_HANDOFF_HANDOFF_H
#define ROOMS_HANDOFF_HANDOFF_H

#include "base/error.h"
#include "rooms/kit/kit.h"

#define HANDOFF_ID_MAX KIT_ID_MAX
#define HANDOFF_NAME_MAX 200 /* bytes of a message's file name that we make */
#define HANDOFF_UUID_LEN 36
#define HANDOFF_FILE_MAX (MR_BODY_MAX + ((size_t)64 << 10))
#define HANDOFF_FOLDERS (MR_INBOX | MR_ARCHIVE)

struct handoff {
	struct kit_room kit; /* its path is the root's */
	int root_fd;         /* -1: it is not there yet; see handoff_root */
};
static inline struct handoff *
handoff_of(const struct mr_room *room)
{
	return room->state;
}
/* The root's descriptor, borrowed. Missing: MR_NOTFOUND, or made when `make`. */
enum mr_rc handoff_root(struct handoff *h, bool make, struct mr_error *err);
/* The folder <id>/<name>. Missing: MR_NOTFOUND, or made when `make`. */
enum mr_rc handoff_dir(
    struct handoff *h, const char *id, const char *name, bool make, int *ret_fd, struct mr_error *err);

/* ---- registry.c ---- */
struct registry_entry {
	const char *name, *id, *harness, *inbox, *created; /* never NULL */
	const char *pid;                                   /* a JSON number */
	const char *more; /* further members, each with a comma before it: ,"key":value */
};
struct registry {
	struct registry_entry *v;
	size_t n, cap;
	bool broken; /* it was no JSON: only what could be recovered is here */
	bool failed; /* out of memory */
	struct arena *own;
};
void registry_done(struct registry *r);
/* Any layout. An entry without an id is dropped, as no reader knows what to do with it. MR_NOMEM only. */
enum mr_rc registry_parse(struct mr_str text, struct registry *ret, struct mr_error *err);
/* The one layout that the original's line reader understands. `root` fills in an inbox that is missing. */
void registry_write(const struct registry *r, const char *root, struct buf *out);
const struct registry_entry *registry_named(const struct registry *r, struct mr_str name);
const struct registry_entry *registry_with_id(const struct registry *r, struct mr_str id); /* the first of them */
/* Strings are copied. */
enum mr_rc registry_add(struct registry *r, const struct registry_entry *entry, struct mr_error *err);
void registry_remove(struct registry *r, const struct registry_entry *entry);

enum mr_rc handoff_registry_read(struct handoff *h, struct registry *ret, struct mr_error *err); /* none: empty */
/* For a change: takes the lock, which goes when *ret_lock is closed, and reads. */
enum mr_rc handoff_registry_lock(struct handoff *h, int *ret_lock, struct registry *ret, struct mr_error *err);
enum mr_rc handoff_registry_store(struct handoff *h, const struct registry *r, struct mr_error *err);

bool handoff_id_ok(struct mr_str id); /* a folder of the root that mail may be written to */
enum mr_rc handoff_id_check(const char *id, struct mr_error *err);
/* A name that the original can register and find again. */
enum mr_rc handoff_name_check(struct mr_str name, struct mr_error *err);
bool handoff_has_mailbox(struct handoff *h, const char *id); /* its folder is there */
/* The mailbox behind an address: a registered name, or the id of a folder. MR_NOTFOUND: neither. MR_REFUSED: registered
 * with an id that leads out of the room. ret_entry (may be NULL) is NULL for a folder without a name. */
enum mr_rc handoff_mailbox_of(struct handoff *h, const struct registry *r, const char *address,
    char ret_id[HANDOFF_ID_MAX + 1], const struct registry_entry **ret_entry, struct mr_error *err);
void handoff_inbox_path(const struct handoff *h, const char *id, struct buf *out); /* as the registry has it */
/* Does the registry name another inbox than the one of this root? */
bool handoff_is_elsewhere(const struct handoff *h, const struct registry_entry *e);

/* Takes the name for that id. MR_EXISTS: taken. strict: the rules of a new agent of ours, too. */
struct registering {
	const char *name, *id, *harness;
	int64_t pid;
	bool strict;
};
enum mr_rc handoff_register(struct handoff *h, const struct registering *who, struct mr_error *err);

/* ---- format.c ---- */
void handoff_uuid(char ret[HANDOFF_UUID_LEN + 1]);
/* For a message sent at that moment: its first 32 bits grow within a second. */
void handoff_msg_id_at(int64_t ns, char ret[HANDOFF_UUID_LEN + 1]);
/* For an import: follows from the seed; `attempt` when that one was taken by another message. */
void handoff_msg_id_from(int64_t ms, struct mr_str seed, unsigned attempt, char ret[HANDOFF_UUID_LEN + 1]);
/* <stamp>-<first 8 digits of msg_id>-<slug>.md */
void handoff_file_name(int64_t ms, const char *msg_id, const char *subject, char ret[HANDOFF_NAME_MAX + 1]);
bool handoff_name_is_mail(const char *name, enum mr_folder folder);
/* The id of the message with that name; mtime_ms counts only for names of another form. */
void handoff_message_id(const char *name, int64_t mtime_ms, char ret[MR_ID_LEN + 1]);
bool handoff_name_has_stamp(const char *name);

struct letter {
	struct mr_str from, msg_id, subject, reply_to, to, body;
	struct mr_str head; /* all lines of the front matter; empty when there is none */
};
bool letter_parse(struct mr_str text, struct letter *ret); /* false: nothing in it says that it is a message */
bool handoff_key_known(struct mr_str key);                 /* it is one of the fields above */
/* MR_REFUSED: a field that cannot stand on a line. */
enum mr_rc letter_write(const struct letter *letter, struct buf *out, struct mr_error *err);

/* ---- mail.c ---- */
extern const struct kit_format handoff_format;
enum { BOX_OF_AGENT, BOX_WITH_ID }; /* how a mailbox is opened: what is given is an address, or the mailbox's id */
/* MR_NOTFOUND: it is not in that folder. Durable. */
enum mr_rc handoff_move_file(
    struct handoff *h, const char *mailbox, const char *name, enum mr_folder from, struct mr_error *err);

/* ---- deliver.c ---- */
/* One letter to one mailbox, whose folders are made; retried with a new msg_id when the name is taken. */
enum mr_rc handoff_post(struct handoff *h, const char *from_id, const char *to_id, const char *subject,
    const char *reply_to, struct mr_str body, char ret_name[HANDOFF_NAME_MAX + 1], struct mr_error *err);
enum mr_rc handoff_make_mailbox(struct handoff *h, const char *id, struct mr_error *err);

/* ---- The operations of room/slots.h that this driver has are handoff_<name> ---- */
#define SLOT(name, parameters, ...) enum mr_rc handoff_##name parameters;
#define SLOT_VOID(name, parameters, ...) void handoff_##name parameters;
#define SLOT_VALUE(type, name, parameters, ...) type handoff_##name parameters;
#include "room/slots.h"

#endif
