/* SPDX-License-Identifier: MIT */
/* types_store.h - what the files behind types.h share: the types that a handle has read. */
#ifndef OFFICE_TYPES_STORE_H
#define OFFICE_TYPES_STORE_H

#include "office/types/types.h"

struct types_wrong { /* a type file that cannot be used */
	char *path;
	struct mr_error why;
};
struct types_store {
	struct type_def **v; /* each stays where it is: callers borrow them */
	size_t n, cap;
	struct types_wrong *wrong;
	size_t wrong_n;
	bool own_read, all_read; /* the room's own; and those of the packs */
	bool packs_known;
	int data_fd;                     /* types/ of the data folder; -1: there is none */
	struct mr_names packs;           /* that count, in their order */
	const struct room_driver *below; /* types_of.c: the driver around which `table` is */
	struct room_driver table;
};
struct types_store *types_store(struct mr_room *room, struct mr_error *err); /* made if need be; NULL: out of memory */
const struct type_def *types_find(const struct types_store *s, const char *name, bool any_case); /* of those read */
/* Parses it and keeps it. ret may be NULL. */
enum mr_rc types_keep(struct types_store *s, struct mr_str text, const char *pack, const char *name,
    const struct type_def **ret, struct mr_error *err);
enum mr_rc types_note_wrong(
    struct types_store *s, const char *pack, const char *name, const struct mr_error *why, struct mr_error *err);
enum mr_rc types_know_packs(struct types_store *s, struct mr_room *room, struct mr_error *err);
enum mr_rc types_names_in(int fd, struct mr_names *ret, struct mr_error *err); /* of a folder, sorted, no dot files */
/* By exactly that name; reads its file and no other. */
enum mr_rc types_get_exact(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err);
enum mr_rc types_read_own(struct mr_room *room, struct mr_error *err);
enum mr_rc types_read_all(struct mr_room *room, struct mr_error *err);
/* The room's own, and of the packs those whose names begin like this, in any case. */
enum mr_rc types_read_called(struct mr_room *room, struct mr_str head, struct mr_error *err);
/* The file of a type, the room's own first. MR_NOTFOUND. *ret_pack is borrowed. */
enum mr_rc types_file(
    struct mr_room *room, const char *name, struct buf *ret, const char **ret_pack, struct mr_error *err);
void types_reread(struct mr_room *room); /* what was read and borrowed is gone: after a type was written */

/* What can be read of a message's fields, whatever is wrong with the others. */
void types_fields_at_all(struct mr_room *room, const struct mr_message *msg, struct type_values *ret);

/* Could a subject be one of a type that came with mailroom? Their forms begin with a word in capitals, a bracket or a
 * sign, or have a colon behind words with a capital each; for all other mail, the most of it, no type file is read. And
 * that first word, unless it is in brackets, is the one that the type's name begins with: no other file is read. */
bool types_subject_may(struct mr_str subject);
/* What a subject alone says; NULL: nothing. */
const struct type_def *types_of_subject(struct mr_room *room, const char *subject);
/* From now on whatever is read through the handle has a type, also where only its subject says so. */
enum mr_rc types_attach(struct mr_room *room, struct mr_error *err);

#endif
