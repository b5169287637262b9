/* SPDX-License-Identifier: MIT */
/* outgoing.h - a send under way: draft.c prepares it, send.c delivers it. */
#ifndef OFFICE_OUTGOING_H
#define OFFICE_OUTGOING_H

#include "office/mail/mail.h"
#include "office/address/address.h"
#include "office/types/types.h"

struct outgoing { /* the message's strings are borrowed from here and from the draft; it must not be moved */
	struct mr_room *room;
	const struct mr_self *self;
	const struct mr_draft *draft; /* as given; once prepared, as its type made it */
	struct typed typed;
	unsigned implied; /* enum room_field: nobody asked for these */
	struct recipients who;
	struct mr_message original; /* what it answers; id "" when it answers nothing */
	struct mr_message msg;
	bool judged; /* the room has rules for mail (rules/hygiene.h) */
	struct arena *own;
	struct mr_content *attached; /* of files: ours, unlike that of draft->mime */
	struct mr_names superseded;  /* mr_receipt.superseded */
	/* The letter before it in a batch, or NULL: what was looked up for that is not looked up again. */
	const struct outgoing *before;
	struct mr_sent *sent; /* of a batch: where what became of it is told */
};

/* Checks and composes. room, self, draft, implied and before are set, the rest is zero. */
enum mr_rc outgoing_prepare(struct outgoing *l, struct mr_error *err);
void outgoing_done(struct outgoing *l);
/* attach.c: gives the message what the draft attaches. Files stay open until the content is freed. */
enum mr_rc outgoing_attach(struct outgoing *l, struct mr_error *err);

#endif
