/* SPDX-License-Identifier: MIT */
/* rival_node.c - the inbox of a team as Node programs write it: one JSON array in one file, rewritten under a lock. */
#include "rival.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HELD "100" /* in the inbox, before the first */

static char *
inbox_of(const struct rival *r)
{
	return path_of("%s/rita.json", r->folder);
}

static bool
start_teams(struct bench *b, const struct rival *r)
{
	char *installed = path_of("%s/build/node/installed", b->top);
	char *filler = path_of("%s/tests/peers/teams-peer.mjs", b->top), *inbox = inbox_of(r);
	const char *const argv[] = { "node", filler, "fill", inbox, HELD, "1024", NULL };
	bool here = is_here("node") && access(installed, R_OK) == 0;

	make_folder(r->folder);
	if (here && run_program(b, argv, NULL) != 0)
		die("cannot fill '%s'", inbox);
	free(installed);
	free(filler);
	free(inbox);
	return here;
}

static void *
open_teams_command(struct bench *b, const struct rival *r, unsigned sender)
{
	char *script = path_of("%s/bench/peer-teams.mjs", b->top), *inbox = inbox_of(r);
	const char *const argv[] = { "node", script, "send", inbox, NULL };
	struct command *c = command_new(argv, NULL);

	(void)sender;
	c->owned[0] = script;
	c->owned[1] = inbox;
	return c;
}

static void *
open_teams(struct bench *b, const struct rival *r, unsigned sender)
{
	struct command *c = open_teams_command(b, r, sender);
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		die("out of memory");
	c->argv[2] = "bench";
	peer_start(p, c->argv);
	command_close(c);
	return p;
}

static double
send_teams(struct bench *b, void *handle)
{
	(void)b;
	return peer_send(handle);
}

static void
close_teams(void *handle)
{
	peer_stop(handle);
	free(handle);
}

const struct rival teams_command = { .name = "team inbox, Node",
	.how = COMMAND,
	.folder = "rival-teams-command",
	.durability =
	    "none: the file is cut to nothing and written again in place, nothing is synced; a crash in between "
	    "takes the whole inbox",
	.note = "the inbox holds " HELD " messages at first",
	.start = start_teams,
	.open = open_teams_command,
	.send = command_send,
	.close = command_close };

const struct rival teams_open = { .name = "team inbox, Node",
	.how = OPEN,
	.folder = "rival-teams-open",
	.durability =
	    "none: the file is cut to nothing and written again in place, nothing is synced; a crash in between "
	    "takes the whole inbox",
	.note = "the inbox holds " HELD " messages at first",
	.window_ms = 2000,
	.start = start_teams,
	.open = open_teams,
	.send = send_teams,
	.close = close_teams };
