/* SPDX-License-Identifier: MIT */
/* dead.h - what dead.c (finding and dropping dead letters) and dead_retry.c (delivering them again) share. */
#ifndef OFFICE_DEAD_H
#define OFFICE_DEAD_H

#include "office/address/address.h"

/* May self act on dead letters: the operator, or whoever is registered. */
enum mr_rc dead_check_hand(struct mr_room *room, const struct mr_self *self, struct mr_error *err);
/* A letter of the room does not say whose copy it was. Of its recipients, those who have theirs need no second one,
 * nor those whose dead copy was delivered again or dropped before; what went to a channel is there. */
enum mr_rc dead_owners(struct mr_room *room, const struct mr_message *letter, const char *queue, struct mr_names *ret,
    char ret_again[MR_ID_LEN + 1], struct mr_error *err);

#endif
