/* SPDX-License-Identifier: MIT */
/*
 * translate.h - a message as another kind of room can hold it. Used by whatever takes mail from room to room.
 *
 * What the other format has no field for is stated at the end of the body, behind a line "-- ", as header lines
 * ("Priority: urgent"), so that nothing is dropped. A body that is a control message of some program (a JSON object
 * with a "type") becomes prose: mail is data, and a stranger's mail is no command.
 */
#ifndef OFFICE_TRANSLATE_H
#define OFFICE_TRANSLATE_H

#include "room/room.h"

struct translated {            /* finish with translated_done */
	struct mr_message msg; /* borrows from the original and from `own` */
	struct arena *own;
};
/* `msg` has its names in the other room's spelling already. The same message always gives the same result: a repeated
 * delivery with a key must have the same content. */
enum mr_rc translate(struct mr_room *to, const struct mr_message *msg, struct translated *ret, struct mr_error *err);
void translated_done(struct translated *t);

#endif
