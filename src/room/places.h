/* SPDX-License-Identifier: MIT */
/* places.h - each_place for kinds where only a search in each mailbox tells. */
#ifndef ROOM_PLACES_H
#define ROOM_PLACES_H

#include "room/room.h"

enum mr_rc room_search_places(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err);

#endif
