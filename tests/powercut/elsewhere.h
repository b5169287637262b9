/* SPDX-License-Identifier: MIT */
/*
 * elsewhere.h - the rooms of other systems in the power-cut campaign, beside the room itself in its parent folder, and
 * the rooms that mail is carried to. "%s" is that folder.
 */
#ifndef TESTS_POWERCUT_ELSEWHERE_H
#define TESTS_POWERCUT_ELSEWHERE_H

#include "cut.h"

struct elsewhere {
	const char *sender, *reader; /* specs of the room, as both see it */
	const char *to;              /* whom alice writes to; bob reads */
	const char *box;             /* where that is found: a folder, all of it */
};
static const struct elsewhere elsewhere[WORKERS] = {
	[W_TEAM] = { "teams:%s/teams/town", "teams:%s/teams/town", "bob", "%s/teams/town/inboxes" },
	[W_CHIPSET] = { "chipset:%s/state", "chipset:%s/state", "bob", "%s/state/mail/bob" },
	[W_HANDOFF] = { "handoff:%s/root", "handoff:%s/root", "bob", "%s/root/bob" },
	[W_WORKSPACE] = { "workspace:%s/ws/alice", "workspace:%s/ws/bob", "%s/ws/bob", "%s/ws/bob" },
};

/* Made before the work begins, as those systems would. */
static const char *const elsewhere_folders[] = { "teams", "teams/town", "teams/town/inboxes", "teams/crew",
	"teams/crew/inboxes", "state", "state/mail", "state/mail/bob", "root", "root/alice", "root/alice/inbox",
	"root/bob", "root/bob/tmp", "root/bob/inbox", "root/bob/archive", "ws", "ws/alice", "ws/alice/.mailbox",
	"ws/alice/.mailbox/inbox", "ws/alice/.mailbox/scratch", "ws/bob", "ws/bob/.mailbox", "ws/bob/.mailbox/inbox",
	"ws/bob/.mailbox/scratch", "blue", NULL };

/* Carried: by turns to a room of our own kind and to a team. */
struct carried {
	const char *to, *box;
};
static const struct carried carried[2] = { { "carol@blue", "%s/blue/.mailroom/agents/carol" },
	{ "dan@crew", "%s/teams/crew/inboxes" } };

static inline void
place(const char *pattern, const char *folder, char ret[512])
{
	const char *here = strstr(pattern, "%s");

	(void)snprintf(ret, 512, "%.*s%s%s", (int)(here ? here - pattern : 0), pattern, here ? folder : "",
	    here ? here + 2 : pattern);
}

#endif
