/* SPDX-License-Identifier: MIT */
/*
 * kept.h - what a message says never changes (promise 3); what may change is in its name. So a process that looks at
 * the same mail again and again keeps what it read, and opens only mail that is new. Only mailroom-serve has this file.
 */
#ifndef ROOM_KEPT_H
#define ROOM_KEPT_H

#include "base/error.h"
#include "base/full.h"

/* A copy of what was read, with its body if that is asked for: the caller fills in what the name says. `place` is
 * whose copy it is. From any thread. */
bool kept_find(const char *place, const char *id, bool body, struct mr_message *ret) FULL_ONLY;
/* Short ones without attachments are kept, as long as there is room. */
void kept_add(const char *place, const struct mr_message *msg) FULL_ONLY;

#endif
