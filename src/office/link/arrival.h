/* SPDX-License-Identifier: MIT */
/* arrival.h - what carry_in.c (mail that comes from another room) and carry_place.c (its place in our threads) share.
 */
#ifndef OFFICE_ARRIVAL_H
#define OFFICE_ARRIVAL_H

#include "office/link/link.h"

struct arrival { /* one message over there for one of us */
	struct carrier *c;
	const char *local, *proxy;
	struct mr_message msg; /* as it is there */
	char from[2 * MR_ADDRESS_MAX + 2];
	struct mr_message carried;
	char answers[MR_ID_LEN + 1]; /* our message that it answers, or "" */
	char id[MR_ID_LEN + 1];      /* here */
	struct arena *own;
};

/* Fills in carried.thread, carried.reply_to and answers: as it was found before, or now, and then durably noted. */
enum mr_rc arrival_place(struct arrival *a, const struct memory *m, struct mr_error *err);
/* It is here, and read over there: the note goes. */
void arrival_placed(struct arrival *a);
/* Notes that a kill left behind. */
void arrival_tidy(struct carrier *c);

#endif
