/* SPDX-License-Identifier: MIT */
/* places.c - where the copies of a message are, for kinds where only a search in each mailbox tells. */
#include "room/places.h"
#include "base/error.h"

struct search {
	struct mr_room *room;
	const char *id;
	place_fn *fn;
	void *ctx;
};

static const char *
state_of(const struct mr_room *room, const struct mr_message *msg)
{
	if (msg->folder == MR_SENT)
		return "sent";
	if (msg->folder == MR_ARCHIVE && (room->driver->abilities & ROOM_ARCHIVE))
		return "archived";
	return msg->flags & MR_SEEN ? "read" : "unread";
}

/* What cannot be read there is no evidence of anything. */
static bool
look_in(void *ctx, const struct mr_agent *agent)
{
	const struct search *s = ctx;
	mr_auto(mr_message_done) struct mr_message msg = { 0 };
	mr_auto(buf_done) struct buf evidence = BUF_INIT;
	struct mr_error ignored = { 0 };

	if (s->room->driver->fetch(s->room, agent->name, s->id, 0, SCAN_HEADERS, &msg, &ignored) != MR_OK)
		return true;
	const char *state = state_of(s->room, &msg);

	buf_addf(&evidence, "it is %s, where %s mail is kept", msg.path, state);
	s->fn(s->ctx, &(struct place_of){ .agent = agent->name,
			  .folder = msg.folder,
			  .flags = msg.flags,
			  .state = state,
			  .evidence = buf_z(&evidence) });
	return true;
}

enum mr_rc
room_search_places(struct mr_room *room, const char *id, place_fn *fn, void *ctx, struct mr_error *err)
{
	struct search s = { room, id, fn, ctx };

	return room->driver->each_agent(room, look_in, &s, err);
}
