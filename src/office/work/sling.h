/* SPDX-License-Identifier: MIT */
/*
 * sling.h - what a room knows about work that is kept elsewhere (beads), by lines of its settings:
 *
 *	Sling: COMMAND           gets BEAD RIG and options, gives the bead to a worker of the rig
 *	Bead-Status: COMMAND     gets BEAD, prints its status; what it does not know is not open
 *	Bead-Prefixes: gt=gastown, bd=beads
 */
#ifndef OFFICE_SLING_H
#define OFFICE_SLING_H

#include "office/office.h"

/* The id of a bead: also the name of a record, and never an option. MR_REFUSED. */
enum mr_rc sling_check_bead(const char *bead, struct mr_error *err);
/* "open", "closed", ...; "" when nobody knows. */
void sling_status(struct mr_room *room, const char *bead, char ret[32]);
/* The rig whose beads begin so, the longest prefix counts; empty: none. */
struct mr_str sling_rig_of(const struct mr_room *room, const char *bead);

#endif
