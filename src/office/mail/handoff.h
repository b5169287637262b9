/* SPDX-License-Identifier: MIT */
/* handoff.h - what an agent writes to its own next life. */
#ifndef OFFICE_HANDOFF_H
#define OFFICE_HANDOFF_H

#include "office/office.h"

#define HANDOFF "HANDOFF"

/* A hand-off that the agent wrote to itself, by its type or its subject. */
bool handoff_is_own(const struct mr_message *msg, const char *agent);
/* handoff_collect.c: what the agent has in hand, as sections behind the text. Best effort. `dir` is where it works. */
void handoff_collect(struct mr_room *room, const struct mr_self *self, const char *dir, struct buf *out);

/* handoff_git.c: the worktree around that folder, or here; nothing outside of one. */
void handoff_git(struct buf *out, const char *dir);

#endif
