/* SPDX-License-Identifier: MIT */
/* greeting.c - what a session is told at its start. Stated as facts: what reads like orders from nowhere is taken for
 * an attack by the models. */
#include "cli/hook/hook.h"
#include "message/foreign.h"

static void
count(void *ctx, const char *path, const struct mr_error *err)
{
	(void)path;
	(void)err;
	++*(size_t *)ctx;
}

static void
add_unread(struct cli *cli, struct buf *out)
{
	struct mr_error ignored = { 0 };
	size_t unread = 0, unreadable = 0;

	if (mr_check_all(cli->room, cli->self.agent, count, &unreadable, &unread, &ignored) != MR_OK)
		return;
	if (unread == 0) {
		buf_adds(out, unreadable > 0 ? "No unread mail that can be read. " : "No unread mail. ");
		return;
	}
	out_count(out, unread, "unread message");
	buf_adds(out, ": mailroom inbox. ");
}

/* What the model remembers of itself is wrong now. */
static void
add_former(const struct mr_arrival *arrival, struct buf *out)
{
	bool same = strcmp(arrival->was, arrival->self.agent) == 0;

	if (!arrival->was[0])
		return;
	fence_addf(out, "Before, this session was '%s', life %u; another session took that name since. ", arrival->was,
	    arrival->was_life);
	if (same)
		buf_addf(out,
		    "That one is gone, and this session has the name again, as life %u: mail and work here may be "
		    "meant "
		    "for the one in between.\n",
		    arrival->self.life);
	else
		fence_addf(out, "Mail to '%s' goes to that one now, and no longer comes here.\n", arrival->was);
}

static void
add_maybe(const struct mr_arrival *arrival, struct buf *out)
{
	if (arrival->maybe[0])
		fence_addf(out,
		    "Before /clear it may have been one of '%s'; the harness does not say which. If the user says "
		    "which one "
		    "this terminal was: mailroom takeover NAME.\n",
		    arrival->maybe);
}

void
greeting_add(struct cli *cli, const struct harness *harness, const struct mr_arrival *arrival, struct buf *out)
{
	mr_auto(buf_done) struct buf name = BUF_INIT;

	if (mr_room_has_lives(cli->room))
		buf_adds(&name, arrival->self.agent);
	else
		foreign_from_address(arrival->self.agent, &name);
	fence_addf(out, "<system-reminder>\nThis session is the agent '%s' of the mailroom '%s'", buf_z(&name),
	    mr_room_name(cli->room));
	if (arrival->self.life > 0)
		buf_addf(out, ", life %u", arrival->self.life);
	buf_adds(out, ": other agents write to it by that name, with `mailroom send`.\n");
	add_former(arrival, out);
	add_maybe(arrival, out);
	if (!harness_says_session(harness))
		fence_addf(out, "Nothing tells a shell here which session it belongs to: mailroom --as '%s' ...\n",
		    buf_z(&name));
	add_unread(cli, out);
	if (arrival->returned > 0) {
		out_count(out, arrival->returned, "message");
		buf_adds(out, " that the last life had in its hands came back. ");
	}
	buf_adds(out, "`mailroom describe` explains the commands. Helpers (subagents) share this mailbox: they may "
		      "send, and leave read, drain and recv to this session.\n</system-reminder>\n");
}
