/* SPDX-License-Identifier: MIT */
/* dnd.c - do not disturb: a record that is there while it is on, with since when. */
#include "base/clock.h"
#include "base/error.h"
#include "office/nudge/nudge.h"
#include "office/who/who.h"

#define DND "dnd"
#define DND_NAME "on"

static enum mr_rc
find_agent(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	if (!ROOM_HAS(room, record_put) || !ROOM_HAS(room, record_drop) || !ROOM_HAS(room, record_get))
		return office_lacks(room, "memory for who is not to be disturbed", err);
	enum mr_rc rc = agent_spelled(room, given, ret, err);

	if (rc == MR_OK)
		rc = agent_exists(room, ret, err);
	return rc == MR_NOTFOUND ? agent_unknown(room, ret, err) : rc;
}

enum mr_rc
mr_dnd_set(struct mr_room *room, const char *agent, bool on, struct mr_error *err)
{
	char name[MR_ADDRESS_MAX + 1], now[RFC3339_LEN + 1], text[RFC3339_LEN + 16];
	bool was = false;
	int64_t since;
	enum mr_rc rc = find_agent(room, agent, name, err);

	if (rc == MR_OK)
		rc = mr_dnd_get(room, name, &was, &since, err);
	if (rc != MR_OK || was == on)
		return rc;
	time_rfc3339(clock_now_ms(), now);
	(void)snprintf(text, sizeof text, "Since: %s\n", now);
	if (on)
		return room->driver->record_put(room, DND, name, DND_NAME, str_of(text), err);
	rc = room->driver->record_drop(room, DND, name, DND_NAME, err);
	return rc == MR_NOTFOUND ? MR_OK : rc; /* another was quicker */
}

enum mr_rc
mr_dnd_get(struct mr_room *room, const char *agent, bool *ret_on, int64_t *ret_since_ms, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	mr_auto(record_done) struct record lines = { 0 };
	struct mr_error ignored = { 0 };
	char name[MR_ADDRESS_MAX + 1];
	enum mr_rc rc = find_agent(room, agent, name, err);

	if (rc != MR_OK)
		return rc;
	rc = room->driver->record_get(room, DND, name, DND_NAME, &text, err);
	if (rc != MR_OK && rc != MR_NOTFOUND)
		return rc;
	*ret_on = rc == MR_OK;
	*ret_since_ms = 0;
	const char *since =
	    record_parse(buf_str(&text), &lines, &ignored) == MR_OK ? record_get(&lines, "Since") : NULL;

	if (since)
		(void)time_parse_rfc3339(str_of(since), ret_since_ms);
	return MR_OK;
}

bool
dnd_is_on(struct mr_room *room, const char *agent)
{
	struct mr_error ignored = { 0 };
	int64_t since;
	bool on = false;

	return ROOM_HAS(room, record_get) && mr_dnd_get(room, agent, &on, &since, &ignored) == MR_OK && on;
}
