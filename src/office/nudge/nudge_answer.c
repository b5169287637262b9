/* SPDX-License-Identifier: MIT */
/*
 * nudge_answer.c - the answer to a nudge that wants one, in the room of a program where the answer is a nudge itself,
 * of the kind nudge_response. There the next nudge replaces it, so it is looked for often; and whether somebody has
 * seen it already does not matter.
 */
#include "base/clock.h"
#include "base/error.h"
#include "office/nudge/nudge.h"
#include "office/who/who.h"
#include <poll.h>
#include <stdlib.h>

#define ANSWER "nudge_response"
#define LOOK_MS 100

static bool
is_answer(const struct mr_nudge *nudge, const char *from, int64_t since_ms)
{
	return strcmp(nudge->kind, ANSWER) == 0 && strcmp(nudge->from, from) == 0 && nudge->at_ms >= since_ms;
}

enum mr_rc
mr_nudge_answer(struct mr_room *room, const struct mr_self *self, const char *from, int64_t since_ms, int64_t wait_ms,
    char **ret_text, struct mr_error *err)
{
	int64_t end_ms = clock_boot_ms() + wait_ms;
	char agent[MR_ADDRESS_MAX + 1];

	if (!ROOM_FACE_HAS(room, nudge_get))
		return office_lacks(room, "nudges that want an answer; ask with mail", err);
	TRY(agent_spelled(room, from, agent, err));
	for (;;) {
		struct mr_nudge nudge = { 0 };
		struct arena *own = NULL;
		struct mr_error ignored = { 0 };
		bool came = room->driver->face->nudge_get(room, self->agent, &nudge, &own, &ignored) == MR_OK &&
			    is_answer(&nudge, agent, since_ms);

		if (came)
			*ret_text = strdup(nudge.text);
		arena_free(own);
		if (came)
			return *ret_text ? MR_OK : mr_nomem(err);
		if (clock_boot_ms() >= end_ms)
			return mr_fail(err, MR_EMPTY, "no answer from '%s'", agent);
		(void)poll(NULL, 0, LOOK_MS);
	}
}
