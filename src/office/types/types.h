/* SPDX-License-Identifier: MIT */
/*
 * types.h - the message types that a room knows: those of the packs that come with mailroom (files in the data folder,
 * share/mailroom/types/PACK/TYPE), overridden by those of the room itself (types/TYPE, records of kind "type"). A
 * setting of the room selects packs (Types: gastown chipset); by default all are used. They are read when first needed
 * and kept with the handle.
 *
 *	types.c       reading type files; the public interface to types
 *	types_of.c    which type a message has, where mail comes out of a driver; bodies that are commands of some
 *	              program; the fields of a message
 *	types_send.c  a draft that names a type; answers that need a request
 *
 * May call address and who; all other folders may call it. message/type.h describes the content of a type file.
 */
#ifndef OFFICE_TYPES_H
#define OFFICE_TYPES_H

#include "message/type.h"
#include "office/office.h"

/* ---- types.c ---- */

struct types_wrong { /* a type file that cannot be used */
	const char *path;
	struct mr_error why;
};
struct types_store {         /* what a handle has read */
	struct type_def **v; /* each stays where it is: callers borrow them */
	size_t n, cap;
	struct roll wrong;       /* of struct types_wrong */
	bool own_read, all_read; /* the room's own were read; those of the packs */
	bool packs_known;
	int data_fd;                     /* types/ of the data folder; -1: there is none */
	struct mr_names packs;           /* in effect, in their order */
	const struct room_driver *below; /* types_of.c: the driver that `table` wraps */
	struct room_driver table;
};
const struct type_def *types_find(const struct types_store *s, const char *name, bool any_case); /* of those read */
/* *ret is borrowed from the handle. MR_NOTFOUND: the hint lists similar names. */
enum mr_rc types_get(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err);
/* By exactly that name; reads only that file. */
enum mr_rc types_get_exact(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err);
/* Reads the room's own types, and those of the packs whose names begin with `head`, in any case. types_read_all: all of
 * them. */
enum mr_rc types_read_called(struct mr_room *room, struct mr_str head, struct mr_error *err);
enum mr_rc types_read_all(struct mr_room *room, struct mr_error *err);
/* Does a type name its handler, as it should, or give a command? */
bool types_handler_is_name(const char *handler);
void types_reread(struct mr_room *room); /* forgets all types (borrowed pointers end): after a type was written */

/* ---- types_of.c ---- */

/* From now on every message that is read through the handle has a type, even if only its subject shows it. */
enum mr_rc types_attach(struct mr_room *room, struct mr_error *err);
void types_detach(struct mr_room *room); /* frees the types that were read */
/* The type of a message: from Mailroom-Type, else from its subject; NULL: plain mail, or a type without a
 * definition. */
const struct type_def *types_of(struct mr_room *room, const struct mr_message *msg);
/* Sets the type of a message without Mailroom-Type from its subject. */
void types_give(struct mr_room *room, struct mr_message *msg);
/* The type that a subject alone shows; NULL: none. */
const struct type_def *types_of_subject(struct mr_room *room, const char *subject);
/* Could this subject be of a type that came with mailroom? Their forms begin with a word in capitals, a bracket or a
 * sign, or have a colon after capitalised words; for most other mail no type file is read. That first word, unless it
 * is in brackets, begins the name of the type, so no other file is read. */
bool types_subject_may(struct mr_str subject);
/* The fields of a message by its type: MR_OK with none for plain mail. MR_CORRUPT, MR_REFUSED: one is wrong (err names
 * it); ret is filled in then, too. */
enum mr_rc types_fields(
    struct mr_room *room, const struct mr_message *msg, struct type_values *ret, struct mr_error *err);
/* The same, and may a program act on it? In a team only if a member sent it, and on an answer only if `agent`, the
 * owner of the mail, has asked. MR_REFUSED: no, and why. */
enum mr_rc types_usable(struct mr_room *room, const char *agent, const struct mr_message *msg, struct type_values *ret,
    struct mr_error *err);

/* Control messages of some program: JSON objects with a "type". A stranger that can write into a mailbox could give
 * commands with them, so mail from other rooms never counts as one. */
bool control_is(struct mr_str body);
/* Adds a line that names the sender, then the body indented by four spaces, so that it is no JSON any more. */
void control_as_prose(struct buf *out, const char *from, struct mr_str body);

/* ---- types_send.c ---- */

struct typed { /* free the bufs and the warnings; draft borrows from the given draft and from here */
	struct mr_draft draft;
	const struct type_def *def; /* NULL: plain mail, or a type without a definition */
	unsigned implied;           /* enum room_field: parts that come from the type, not from the sender */
	struct buf subject, body;
	bool no_subject;          /* it is for programs: do not make a subject from the text */
	struct mr_names warnings; /* a sentence each */
};
struct typed_from { /* the context of a message with a type */
	struct mr_room *room;
	const struct mr_self *self;
	const struct recipients *who;
	const struct mr_message *original; /* the message that it answers; id "": none */
	unsigned implied;                  /* of send_draft */
};
/* For a draft with a type or with fields. With fields, or without a text, subject and text are made from the type; a
 * given text is checked. MR_REFUSED names the wrong field. */
enum mr_rc typed_compose(
    struct typed *t, const struct mr_draft *given, const struct typed_from *from, struct mr_error *err);
/* Control messages are orders: in a team only agents on the list of members may send them. */
enum mr_rc typed_check_member(
    struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err);
/* In a room that keeps no sent mail: records that the message asks these agents for an answer. */
void types_note_asked(
    struct mr_room *room, const struct type_def *def, const struct mr_message *msg, const struct mr_names *to);
/* Did `asker` ever ask `answerer` the question that these fields answer? True for a type that is no answer. MR_REFUSED:
 * there is no such request. */
enum mr_rc types_check_answer(struct mr_room *room, const struct type_def *def, const struct type_values *values,
    const char *asker, const char *answerer, struct mr_error *err);

#endif
