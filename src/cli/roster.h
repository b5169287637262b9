/* SPDX-License-Identifier: MIT */
/* roster.h - the agents of a room with the state of their mailboxes, sorted by name; for who, stats and bare mailroom.
 */
#ifndef CLI_ROSTER_H
#define CLI_ROSTER_H

#include "cli/cli.h"

struct roster_entry {
	struct mr_agent agent; /* its strings belong to the roster */
	enum mr_presence presence;
	struct mr_counts counts;
	bool lives; /* the room knows who lives */
};
struct roster { /* finish with roster_done */
	struct roster_entry *v;
	size_t n, room_for;
	bool lives;
	struct arena *own;
	bool failed; /* out of memory */
};
/* With `counts`, also looks into every mailbox. */
enum mr_rc roster_load(struct cli *cli, bool counts, struct roster *ret, struct mr_error *err);
void roster_done(struct roster *roster);
/* "live", "idle", "gone", "never" for a mailbox that waits for its first life, "unknown" in a room without lives */
const char *roster_state(const struct roster_entry *entry);
/* Mail in the room's dead letters, counted up to `limit`. */
enum mr_rc dead_letters(struct cli *cli, size_t limit, size_t *ret, struct mr_error *err);

#endif
