/* SPDX-License-Identifier: MIT */
/*
 * memory.h - what one life was told, each kind of thing a small text: what was announced, what a stop was held up for,
 * which work was offered. A new life knows nothing.
 *
 *	records/<kind>/<agent>/life-<n>                      native rooms
 *	<state>/<kind>/<hash of room, agent, session>        rooms of other programs, in which nothing may be left
 */
#ifndef OFFICE_MEMORY_H
#define OFFICE_MEMORY_H

#include "office/office.h"

/* MR_NOTFOUND: nothing is remembered. */
enum mr_rc memory_read(
    struct mr_room *room, const struct mr_self *self, const char *kind, struct buf *ret, struct mr_error *err);
/* With `first`, the first of this life, what earlier lives were told is forgotten. */
enum mr_rc memory_write(struct mr_room *room, const struct mr_self *self, const char *kind, struct mr_str text,
    bool first, struct mr_error *err);
void memory_forget(struct mr_room *room, const struct mr_self *self, const char *kind);

/* The same as a set of words, a line each. */
void memory_words(struct mr_room *room, const struct mr_self *self, const char *kind, struct mr_names *ret);
enum mr_rc memory_put_words(struct mr_room *room, const struct mr_self *self, const char *kind,
    const struct mr_names *words, struct mr_error *err);

#endif
