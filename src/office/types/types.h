/* SPDX-License-Identifier: MIT */
/*
 * types.h - the message types that a room knows: those of the packs that come with mailroom (files in the data folder,
 * share/mailroom/types/PACK/TYPE), over them those of the room itself (types/TYPE, records of kind "type"). Which packs
 * count is a setting of the room (Types: gastown chipset); by default all of them do. They are read when first needed
 * and kept with the handle.
 */
#ifndef OFFICE_TYPES_H
#define OFFICE_TYPES_H

#include "message/type.h"
#include "room/room.h"

/* MR_NOTFOUND comes with near names. *ret is borrowed from the handle. */
enum mr_rc types_get(struct mr_room *room, const char *name, const struct type_def **ret, struct mr_error *err);
/* The type of a message: what Mailroom-Type says, else what its subject looks like; NULL: plain mail, or a type that
 * nobody has described. */
const struct type_def *types_of(struct mr_room *room, const struct mr_message *msg);
/* Gives a message that does not say its type the one that its subject looks like. */
void types_give(struct mr_room *room, struct mr_message *msg);
/* In order of pack and name; type files that are wrong are told to `trouble` (may be NULL) and left out. */
typedef bool types_fn(void *ctx, const struct type_def *def);
enum mr_rc types_each(struct mr_room *room, types_fn *fn, mr_trouble_fn *trouble, void *ctx, struct mr_error *err);
/* Fields of a message by its type: MR_OK with none for plain mail. MR_CORRUPT, MR_REFUSED: one is wrong (named). */
enum mr_rc types_fields(
    struct mr_room *room, const struct mr_message *msg, struct type_values *ret, struct mr_error *err);
/* The same, and whether a program may act on it: in a team only on what members send, and on an answer only if `agent`,
 * whose mail it is, has asked. MR_REFUSED says why not. */
enum mr_rc types_usable(struct mr_room *room, const char *agent, const struct mr_message *msg, struct type_values *ret,
    struct mr_error *err);
/* Remembers, where the room keeps no copy of what is sent, that the message asks these for an answer. */
void types_note_asked(
    struct mr_room *room, const struct type_def *def, const struct mr_message *msg, const struct mr_names *to);
/* Did `asker` ever ask `answerer` what these fields say is answered? True of a type that answers nothing. MR_REFUSED:
 * there is no such request. */
enum mr_rc types_check_answer(struct mr_room *room, const struct type_def *def, const struct type_values *values,
    const char *asker, const char *answerer, struct mr_error *err);
/* May this sender send that type to this recipient? True also when the type has no routes. Roles are the last or middle
 * words of addresses: rig/witness is a witness, rig/polecats/nux and rig/nux are polecats, mayor is the mayor. */
bool types_route_fits(const struct type_def *def, const char *sender, const char *recipient);
void types_forget(struct mr_room *room); /* for room_free: frees what is kept with the handle */

#endif
