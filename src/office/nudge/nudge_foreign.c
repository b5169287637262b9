/* SPDX-License-Identifier: MIT */
/*
 * nudge_foreign.c - nudges in the room of a program that has its own place for them: the last one stays there, and
 * every reader remembers for itself which one it has seen. We remember it in the state folder, by the time in it.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/id.h"
#include "base/sys.h"
#include "office/nudge/nudge.h"
#include "office/who/who.h"
#include <fcntl.h>

#define FOLDER "nudges-seen"
#define SEEN_MAX ((size_t)4096)

/* MR_NOTFOUND: nothing was seen yet, or nothing can be remembered. */
static enum mr_rc
open_memory(struct mr_room *room, const char *agent, bool make, int *ret_fd, char ret_name[65], struct mr_error *err)
{
	mr_auto(buf_done) struct buf both = BUF_INIT;

	if (!room->state_dir)
		return mr_fail(err, MR_NOTFOUND, "no folder to remember which nudges were seen");
	buf_addf(&both, "%s\n%s", room->spec, agent);
	if (!buf_ok(&both))
		return mr_nomem(err);
	sha256_hex(buf_str(&both), ret_name);
	return dir_below(room->state_dir, FOLDER, make, false, ret_fd, err);
}

static int64_t
last_seen_ms(struct mr_room *room, const char *agent)
{
	mr_auto(sys_close_fd) int fd = -1;
	mr_auto(buf_done) struct buf text = BUF_INIT;
	struct mr_error ignored = { 0 };
	char name[65];
	int64_t ms = INT64_MIN;

	if (open_memory(room, agent, false, &fd, name, &ignored) != MR_OK ||
	    file_read(fd, name, SEEN_MAX, &text, &ignored) != MR_OK ||
	    !time_parse_rfc3339((struct mr_str){ buf_z(&text), strcspn(buf_z(&text), "\n") }, &ms))
		return INT64_MIN;
	return ms;
}

enum mr_rc
nudge_foreign_get(
    struct mr_room *room, const char *agent, struct mr_nudge *ret, struct arena **own, struct mr_error *err)
{
	enum mr_rc rc = room->driver->face->nudge_get(room, agent, ret, own, err);

	if (rc == MR_NOTFOUND || (rc == MR_OK && ret->at_ms <= last_seen_ms(room, agent)))
		return mr_fail(err, MR_EMPTY, "no nudges for '%s'", agent);
	return rc;
}

enum mr_rc
nudge_foreign_seen(struct mr_room *room, const char *agent, const struct mr_nudge *nudge, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;
	char name[65], stamp[RFC3339_LEN + 1];

	if (nudge->at_ms <= last_seen_ms(room, agent))
		return MR_OK;
	time_rfc3339(nudge->at_ms, stamp);
	TRY(open_memory(room, agent, true, &fd, name, err));
	return file_replace(fd, name, str_of(stamp), 0600, err);
}
