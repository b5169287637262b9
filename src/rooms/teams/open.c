/* SPDX-License-Identifier: MIT */
/* open.c - from <root>/<team> to a room. Nothing need be there yet, unless that is asked for: the first send makes it.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/foreign.h"
#include "rooms/teams/teams.h"

#define PATIENCE_MS 30000 /* more than a dead holder's lock needs to become stale */
#define SANITISED_MAX 200

static enum mr_rc
refuse_where(const char *where, struct mr_error *err)
{
	return mr_fail(err, MR_REFUSED,
	    "'%s' is not the folder of all teams and the name of a team\nwrite teams:TEAM, or teams:/path/of/teams/TEAM",
	    where);
}

static char *
sanitised(const char *team, enum sanitise how, const char *below)
{
	struct buf path = BUF_INIT;

	teams_sanitise(&path, str_of(team), how);
	buf_adds(&path, below);
	return buf_take(&path);
}

/* What stands after @ in addresses: one part of an address. */
static char *
room_name(const char *team)
{
	char address[MR_ADDRESS_MAX + 1];
	struct mr_error ignored = { 0 };

	return foreign_to_address(str_of(team), address, &ignored) == MR_OK ? strdup(address) : strdup("team");
}

enum mr_rc
teams_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct teams *t = calloc(1, sizeof *t);
	const char *slash = strrchr(where, '/');

	if (!t)
		return mr_nomem(err);
	room->state = t;
	if (where[0] != '/' || !slash[1] || strlen(slash + 1) > SANITISED_MAX)
		return refuse_where(where, err);
	t->root = slash == where ? strdup("/") : strndup(where, (size_t)(slash - where));
	t->team = strdup(slash + 1);
	t->patience_ms = PATIENCE_MS;
	if (!t->root || !t->team)
		return mr_nomem(err);
	t->inboxes = sanitised(t->team, SANITISE_INBOX, "/inboxes");
	t->config_dir = sanitised(t->team, SANITISE_CONFIG, "");
	room->name = room_name(t->team);
	if (!t->inboxes || !t->config_dir || !room->name)
		return mr_nomem(err);
	return room->must_exist ? teams_exists(t, err) : MR_OK;
}

enum mr_rc
teams_make(struct mr_room *room, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	return teams_make_inboxes(teams_of(room), &fd, err);
}

void
teams_close(struct mr_room *room)
{
	struct teams *t = teams_of(room);

	if (!t)
		return;
	inbox_drop(t->cache);
	free(t->marks);
	free(t->root);
	free(t->team);
	free(t->inboxes);
	free(t->config_dir);
	free(t);
	room->state = NULL;
}
