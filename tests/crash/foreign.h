/* SPDX-License-Identifier: MIT */
/* foreign.h - worlds with a room of another system. */
#ifndef TESTS_CRASH_FOREIGN_H
#define TESTS_CRASH_FOREIGN_H

#include "crash.h"

#define TEXT "line one\nline two: the end of the message is here" /* formats differ in the last line break */
#define OURS 2 /* messages of ours that wait for bob, beside one of theirs */

struct kind {
	const char *name;
	const char *where, *reader; /* below the world's folder: who sends, who reads (the same room mostly) */
	const char *const *folders; /* that must be there */
	const char *theirs;         /* file with their message */
	const char *bytes;          /* of it, or in it; %s: the world's folder */
};

void setup_teams(struct world *w);
void setup_chipset(struct world *w);
void setup_handoff(struct world *w);
void setup_workspace(struct world *w);

struct mr_room *foreign_open(const struct world *w, const char *where);
struct mr_self foreign_self(struct mr_room *room, const char *agent);
/* From alice to bob. With ret_id it must work. */
enum mr_rc foreign_send(struct world *w, char ret_id[MR_ID_LEN + 1]);
/* Their message is as it was, byte for byte. */
void foreign_check_theirs(const struct world *w);
void foreign_settle(const struct world *w);
void foreign_let_time_pass(const struct world *w);

#endif
