/* SPDX-License-Identifier: MIT */
/*
 * bell.c - the server wakes an idle session of Claude Code where no hook does: they are switched off, or only the
 * server was set up. It writes to the session's own socket, which Claude Code tells to what it starts; the words come
 * to the model as those of another session, never as the user's. All of that is no documented interface, so hooks come
 * first: while a process waits for mail of this agent (the waiter of its hooks, `mailroom wait`) the server is silent.
 *
 * The session's entry in Claude Code's registry (sessions/PID.json in its folder) names the session, which is another
 * one after /clear, and whether it is idle. A message to a session that refuses such mail vanishes without an answer.
 * So it counts as told only when the session is seen to become busy.
 * A harness that was started in a shell of the session inherits the variables: only a server that the session itself
 * runs may ring.
 */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/sys.h"
#include "cli/hook/hook.h"
#include "cli/mcp/mcp.h"
#include "cli/peer/peer.h"

#define HARNESS "claude-code"
#define DOOR HARNESS "-socket"
#define LOOK_MS 2000
#define TAKEN_MS 8000 /* so long a session may take to begin the turn */
#define SEEN_POLL_MS 100
#define REFUSED_MS (10 * 60 * 1000) /* between two tries at a session that does not take it */

struct socket_bell {
	const struct harness_socket *door;
	int64_t pid;
	char session[64]; /* of the last look */
};

/* Is the session idle, as far as its entry tells? */
static bool
is_idle(struct socket_bell *b)
{
	struct registry_entry entry;
	mr_auto(sys_close_fd) int registry = -1;

	if (registry_open(&registry, IGNORED) != MR_OK || !registry_read(registry, b->pid, &entry) || !entry.session[0])
		return false;
	memcpy(b->session, entry.session, sizeof entry.session);
	return strcmp(entry.status, "idle") == 0;
}

static enum mr_rc
ring(void *ctx, const char *text, struct mr_error *err)
{
	struct socket_bell *b = ctx;
	int64_t end_ms = clock_boot_ms() + TAKEN_MS;

	TRY(ring_socket(b->door, b->session, text, err));
	while (is_idle(b)) {
		if (clock_boot_ms() >= end_ms)
			return mr_fail(err, MR_REFUSED, "the session took the ring and began no turn");
		(void)poll(NULL, 0, SEEN_POLL_MS);
	}
	return MR_OK;
}

/* As long as we are that agent: asked again after each ring, and now and then. */
static void
stand_by(struct cli *cli, struct socket_bell *b)
{
	const struct mr_wake_options options = { .format = MR_INJECT_REMINDER };

	for (int looks = 0; looks < 30; looks++) {
		struct mr_wake *what = NULL;
		struct mr_error err = { 0 };

		cli_carry_first(cli, 0);
		(void)poll(NULL, 0, LOOK_MS);
		if (!is_idle(b) || mr_wake_open(cli->room, &cli->self, &options, true, &what, &err) != MR_OK)
			continue;
		(void)poll(NULL, 0,
		    LOOK_MS); /* what else comes is told with it; and a turn that has just ended starts a waiter */
		mr_wake_close(what);
		if (!is_idle(b) || mr_wake_open(cli->room, &cli->self, &options, true, &what, &err) != MR_OK)
			continue;
		enum mr_rc rc = mr_wake_ring(what, DOOR, true, ring, b, &err);

		mr_wake_close(what);
		if (rc != MR_OK && rc != MR_BUSY && rc != MR_INDOUBT)
			(void)poll(NULL, 0, REFUSED_MS);
		return;
	}
}

int64_t
bell_session(void)
{
	const char *path = env_get(harness_named(HARNESS)->socket->path), *slash = path ? strrchr(path, '/') : NULL;
	struct mr_process above;
	uint64_t pid = 0;

	if (!slash || env_is_headless() || !process_harness(&above) ||
	    !str_to_u64((struct mr_str){ slash + 1, strspn(slash + 1, "0123456789") }, &pid))
		return 0;
	return above.pid == (int64_t)pid ? above.pid : 0;
}

_Noreturn void
bell_run(struct mcp_server *s, int fd)
{
	struct socket_bell b = { .door = harness_named(HARNESS)->socket, .pid = s->session_pid };

	child_begin(s, fd);
	for (;;) {
		struct cli cli;

		if (child_opens(&cli, s, NULL) && mr_room_has(cli.room, MR_HAS_LIVES))
			stand_by(&cli, &b);
		else
			(void)poll(NULL, 0, LOOK_MS);
		cli_done(&cli);
	}
}
