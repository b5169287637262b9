/* SPDX-License-Identifier: MIT */
/* doctor_sessions.c - bindings of harness sessions whose process, and whose life or room, are gone. Nobody else clears
 * them away, and every /clear looks through them. A session may be resumed, so they are kept for a month. */
#include "base/process.h"
#include "base/sys.h"
#include "office/room/doctor.h"
#include <errno.h>
#include <fcntl.h>

#define KEPT_MS ((int64_t)30 * 24 * 3600 * 1000)

static bool
room_is_gone(const char *spec)
{
	const char *colon = strchr(spec, ':');
	struct stat st;

	return colon && colon[1] == '/' && sys_stat(AT_FDCWD, colon + 1, &st) < 0 && errno == ENOENT;
}

/* In this very room: a newer life took the name, the name is gone, or nobody acts as it. */
static bool
life_is_gone(struct mr_room *room, const struct binding *b)
{
	mr_auto(mr_agent_done) struct mr_agent agent = { 0 };
	struct mr_error err = { 0 };

	if (!office_has_lives(room) || !ROOM_HAS(room, find_agent))
		return false;
	enum mr_rc rc = room->driver->find_agent(room, b->agent, &agent, &err);

	if (rc != MR_OK)
		return rc == MR_NOTFOUND;
	return agent.life != b->life || mr_agent_presence(&agent) == MR_GONE ||
	       terminal_is(b->session); /* whose terminal was closed; the life goes on without it */
}

static bool
examine_session(void *ctx, int folder, const char *name, const struct binding *b)
{
	struct examination *x = ctx;
	bool here = session_is_in(b, x->room->spec);
	struct stat st;

	if (sys_stat(folder, name, &st) < 0 || findings_age_ms(&st) < KEPT_MS ||
	    (b->process.pid && process_state(&b->process) != PROCESS_DEAD) ||
	    !(here ? life_is_gone(x->room, b) : room_is_gone(b->room)))
		return true;
	findings_take(&x->f, folder, name,
	    &(struct mr_finding){ .severity = MR_NOTE,
		.code = "sessions",
		.path = name,
		.why = here ? "its process is gone, and so is that life" : "its process is gone, and so is its room",
		.fix = "mailroom doctor --fix moves it to the attic of the state folder" },
	    "the session '%s' was '%s' more than 30 days ago", name, b->agent);
	return true;
}

void
doctor_sessions(struct examination *x)
{
	struct mr_error ignored = { 0 };

	if (!x->room->state_dir)
		return;
	/* Whoever binds a session at this moment waits for us. */
	mr_auto(sys_close_fd) int lock = x->f.fix ? session_lock(x->room->state_dir) : -1;

	if (x->f.fix && lock < 0)
		return;
	(void)session_each(x->room->state_dir, examine_session, x, &ignored);
}
