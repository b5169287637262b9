/* SPDX-License-Identifier: MIT */
/*
 * kept.h - the content of a message never changes (promise 3); only its name does. So a process that looks at the same
 * mail repeatedly keeps what it read, and opens only new mail. Only mailroom-serve has this file.
 */
#ifndef ROOM_KEPT_H
#define ROOM_KEPT_H

#include "base/error.h"
#include "base/full.h"

/* A copy of what was read, with its body if that is asked for; the caller fills in what the name says. `place` is the
 * mailbox of the copy. May be called from any thread. */
bool kept_find(const char *place, const char *id, bool body, struct mr_message *ret) FULL_ONLY;
/* Keeps short messages without attachments, as long as there is room. */
void kept_add(const char *place, const struct mr_message *msg) FULL_ONLY;

#endif
