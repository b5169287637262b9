/* SPDX-License-Identifier: MIT */
/*
 * types.h - the message types that a room knows: those of the packs that come with mailroom (files in the data folder,
 * share/mailroom/types/PACK/TYPE), over them those of the room itself (types/TYPE, records of kind "type"). Which packs
 * count is a setting of the room (Types: gastown chipset); by default all of them do. They are read when first needed
 * and kept with the handle.
 *
 *	types.c       reading type files; the public interface to types
 *	types_of.c    which type a message has, where mail comes out of a driver; bodies that are commands of some
 *	              program; the fields of a message
 *	types_send.c  a draft that names a type; answers that need a request
 *
 * May call address and who; everything else may call it. What a type file says is message/type.h.
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
	bool own_read, all_read; /* the room's own; and those of the packs */
	bool packs_known;
	int data_fd;                     /* types/ of the data folder; -1: there is none */
	struct mr_names packs;           /* that count, in their order */
	const struct room_driver *below; /* types_of.c: the driver around which `table` is */
	struct room_driver table;
};
const struct type_def *types_find(const struct types_store *s, const char *name, bool any_case); /* of those read */
/* MR_NOTFOUND comes with near names. *ret is borrowed from the handle. */
enum mr_rc types_get(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err);
/* By exactly that name; reads its file and no other. */
enum mr_rc types_get_exact(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err);
/* The room's own, and of the packs those whose names begin with `head`, in any case. types_read_all: all of them. */
enum mr_rc types_read_called(struct mr_room *room, struct mr_str head, struct mr_error *err);
enum mr_rc types_read_all(struct mr_room *room, struct mr_error *err);
/* Does a type name its handler, as it should, or is that a command? */
bool types_handler_is_name(const char *handler);
void types_reread(struct mr_room *room); /* what was read and borrowed is gone: after a type was written */

/* ---- types_of.c ---- */

/* From now on every message that is read through the handle has a type, also where only its subject says so. */
enum mr_rc types_attach(struct mr_room *room, struct mr_error *err);
void types_detach(struct mr_room *room); /* frees what was read */
/* The type of a message: what Mailroom-Type says, else what its subject looks like; NULL: plain mail, or a type that
 * nobody has described. */
const struct type_def *types_of(struct mr_room *room, const struct mr_message *msg);
/* Gives a message that does not say its type the one that its subject looks like. */
void types_give(struct mr_room *room, struct mr_message *msg);
/* What a subject alone says; NULL: nothing. */
const struct type_def *types_of_subject(struct mr_room *room, const char *subject);
/* Could a subject be one of a type that came with mailroom? Their forms begin with a word in capitals, a bracket or a
 * sign, or have a colon behind words with a capital each; for all other mail, the most of it, no type file is read. And
 * that first word, unless it is in brackets, is the one that the type's name begins with: no other file is read. */
bool types_subject_may(struct mr_str subject);
/* Fields of a message by its type: MR_OK with none for plain mail. MR_CORRUPT, MR_REFUSED: one is wrong (named); ret
 * has what could be read then, too. */
enum mr_rc types_fields(
    struct mr_room *room, const struct mr_message *msg, struct type_values *ret, struct mr_error *err);
/* The same, and whether a program may act on it: in a team only on what members send, and on an answer only if `agent`,
 * whose mail it is, has asked. MR_REFUSED says why not. */
enum mr_rc types_usable(struct mr_room *room, const char *agent, const struct mr_message *msg, struct type_values *ret,
    struct mr_error *err);

/* Control messages of some program: JSON objects with a "type". A stranger that can write into a mailbox could command
 * with them, so mail from elsewhere never is one. */
bool control_is(struct mr_str body);
/* A line that says from whom it is, then the body indented by four spaces: no JSON any more. */
void control_as_prose(struct buf *out, const char *from, struct mr_str body);

/* ---- types_send.c ---- */

struct typed { /* its owner frees the bufs and the warnings; draft borrows from the one given, and from here */
	struct mr_draft draft;
	const struct type_def *def; /* NULL: plain mail, or a type that nobody has described */
	unsigned implied;           /* enum room_field: what the sender did not ask for but the type has by itself */
	struct buf subject, body;
	bool no_subject;          /* it is for programs: no line of the text makes one */
	struct mr_names warnings; /* a sentence each */
};
struct typed_from { /* where a message of the type stands */
	struct mr_room *room;
	const struct mr_self *self;
	const struct recipients *who;
	const struct mr_message *original; /* what it answers; id "" when it answers nothing */
	unsigned implied;                  /* of send_draft */
};
/* For a draft with a type or with fields. With fields, or without a text, subject and text are made from the type; a
 * text of its own is checked. MR_REFUSED names the field. */
enum mr_rc typed_compose(
    struct typed *t, const struct mr_draft *given, const struct typed_from *from, struct mr_error *err);
/* Of a message with a type. Control messages are orders: only an agent on the list of members gives them. */
enum mr_rc typed_check_member(
    struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err);
/* Remembers, where the room keeps no copy of what is sent, that the message asks these for an answer. */
void types_note_asked(
    struct mr_room *room, const struct type_def *def, const struct mr_message *msg, const struct mr_names *to);
/* Did `asker` ever ask `answerer` what these fields say is answered? True of a type that answers nothing. MR_REFUSED:
 * there is no such request. */
enum mr_rc types_check_answer(struct mr_room *room, const struct type_def *def, const struct type_values *values,
    const char *asker, const char *answerer, struct mr_error *err);

#endif
