/* SPDX-License-Identifier: MIT */
/* outgoing.h - a send under way: draft.c prepares it, send.c delivers it. */
#ifndef OFFICE_OUTGOING_H
#define OFFICE_OUTGOING_H

#include "office/mail/mail.h"
#include "office/address/address.h"
#include "office/types/types.h"

struct outgoing { /* the message borrows its strings from here and from the draft; must not be moved */
	struct mr_room *room;
	const struct mr_self *self;
	const struct mr_draft *draft; /* as given; after the preparation, as its type made it */
	struct typed typed;
	unsigned implied; /* enum room_field: fields that the sender did not ask for */
	struct recipients who;
	struct mr_message original; /* the answered message; id "": none */
	struct mr_message msg;
	bool judged; /* the room has rules for mail (rules/hygiene.h) */
	struct arena *own;
	struct mr_content *attached; /* of files: ours, unlike that of draft->mime */
	struct mr_names superseded;  /* mr_receipt.superseded */
	/* The letter before it in a batch, or NULL: its lookups are reused. */
	const struct outgoing *before;
	struct mr_sent *sent; /* in a batch: where the result goes */
};

/* Checks and composes. room, self, draft, implied and before are set, the rest is zero. */
enum mr_rc outgoing_prepare(struct outgoing *l, struct mr_error *err);
void outgoing_done(struct outgoing *l);
/* attach.c: adds the draft's attachments to the message. Files stay open until the content is freed. */
enum mr_rc outgoing_attach(struct outgoing *l, struct mr_error *err);

#endif
