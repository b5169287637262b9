/* SPDX-License-Identifier: MIT */
/* types_send.h - a draft that names a type: made or checked by the type's definition before it is sent. */
#ifndef OFFICE_TYPES_SEND_H
#define OFFICE_TYPES_SEND_H

#include "office/address/address.h"
#include "office/office.h"
#include "office/types/types.h"

struct typed { /* finish with typed_done; draft borrows from the one given, and from here */
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
/* With fields, or without a text, subject and text are made from the type; a text of its own is checked. MR_REFUSED
 * names the field. */
enum mr_rc typed_compose(
    struct typed *t, const struct mr_draft *given, const struct typed_from *from, struct mr_error *err);
/* Control messages are orders: only who is on the list of members gives them. */
enum mr_rc typed_check_member(
    struct mr_room *room, const char *sender, const struct mr_message *msg, struct mr_error *err);
void typed_done(struct typed *t);

#endif
