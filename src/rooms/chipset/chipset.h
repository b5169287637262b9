/* SPDX-License-Identifier: MIT */
/*
 * chipset.h - the driver of kind 'chipset': the mail folders of the mail-async skill, <state>/mail/<id>/.
 *
 *	format.c    ids of agents, names of files and the time in them, a message as bytes and back (pure)
 *	chipset.c   opening, folders, agents, nudges
 *	mail.c      what is in a mailbox; read marks; to the archive and back
 *	deliver.c   sending and imports
 *
 * The other programs here take no lock, share one temporary name, and write over what has the same name. So nothing of
 * ours relies on a lock: a message gets a name that is free (link, never rename over), and a mark is an exchange
 * with the very file that was read, which fails when that file is gone.
 */
#ifndef ROOMS_CHIPSET_CHIPSET_H
#define ROOMS_CHIPSET_CHIPSET_H

#include "base/clock.h"
#include "rooms/kit/kit.h"

#define CHIPSET_ID_MAX 64                      /* the format allows 200; an address has 64 */
#define CHIPSET_MESSAGE_MAX ((size_t)64 << 10) /* of what we write: the format's own limit */
#define CHIPSET_READ_MAX ((size_t)16 << 20)    /* of what others wrote, who keep no limit */
#define CHIPSET_NAME_MAX 255

/* ---- format.c ---- */
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
/* Can it be what "in_reply_to" names? */
bool chipset_name_plain(struct mr_str name);
/* The id that follows from a name with a time in it; false: it has none. */
bool chipset_name_id(struct mr_str name, char ret_id[MR_ID_LEN + 1]);
void chipset_box_path(struct buf *out, const char *id, enum mr_folder folder); /* "mail/bob/archive" */

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

struct chipset_words { /* of the format, beside the message */
	const char *from, *to;
	int64_t ms;
	const char *imported; /* the id that it had elsewhere, or "" */
	bool read;
};
/* "key": value, with a comma before it unless it is the first behind "{\n". */
void chipset_member(struct buf *out, const char *key, struct mr_str value);
void chipset_write(struct buf *out, const struct mr_message *msg, const struct chipset_words *words);
/* The same bytes with another "read". False: it is so already, nothing was added. */
bool chipset_set_read(struct mr_str text, struct json_value object, bool read, struct buf *out);

/* ---- chipset.c ---- */
/* The folder of a mailbox below <state>. Missing: MR_NOTFOUND, or with `make` made, with the permissions of the folder
 * around it is. */
enum mr_rc chipset_folder(
    struct mr_room *room, const char *id, enum mr_folder folder, bool make, int *ret_fd, struct mr_error *err);
mode_t chipset_file_mode(int box_fd);
enum mr_rc chipset_inspect_names(struct mr_room *room, struct findings *f, struct mr_error *err);
extern const struct kit_format chipset_format; /* mail.c */

/* ---- The operations of room/slots.h that this driver has are chipset_<name> ---- */
#define SLOT(name, parameters, ...) enum mr_rc chipset_##name parameters;
#define SLOT_VOID(name, parameters, ...) void chipset_##name parameters;
#define SLOT_VALUE(type, name, parameters, ...) type chipset_##name parameters;
#include "room/slots.h"

#endif
