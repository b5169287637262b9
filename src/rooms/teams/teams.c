/* SPDX-License-Identifier: MIT */
/* teams.c - the driver of kind 'teams': inbox files of Claude Code agent teams. See teams.h. */
#include "rooms/teams/teams.h"
#include "base/storage.h"

static enum mr_rc
teams_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	return storage_of_path(teams_of(room)->root, ret, err);
}

const struct room_driver room_teams = {
	.kind = "teams",
	.abilities = ROOM_READ_STATE | ROOM_REGISTER | ROOM_TYPES | ROOM_OPEN_BOXES,
	.lead = "team-lead",

	.open = teams_open,
	.close = teams_close,
	.make = teams_make,
	.storage = teams_storage,

	.each_agent = teams_each_agent,
	.find_agent = teams_find_agent,
	.add_agent = teams_add_agent,
	.remove_agent = teams_remove_agent,
	.spell = teams_spell,

	.lacks = teams_lacks,
	.deliver = teams_deliver,
	.settle_ticket = teams_settle_ticket,
	.clear = teams_clear,
	.scan = teams_scan,
	.fetch = teams_fetch,
	.fetch_raw = teams_fetch_raw,
	.mark = teams_mark,
	.flush = teams_flush,

	.watch = teams_watch,
	.watch_wait = teams_watch_wait,
	.watch_close = teams_watch_close,

	.each_place = teams_each_place,
	.inspect = teams_inspect,
};
