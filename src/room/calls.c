/* SPDX-License-Identifier: MIT */
/* calls.c - calls that are made of slots, and what drivers share to fill them. */
#include "base/error.h"
#include "room/room.h"

enum mr_rc
room_fetch_work(struct mr_room *room, const char *queue, const char *id, struct mr_message *ret, struct mr_error *err)
{
	char box[MR_ADDRESS_MAX + 16];

	(void)snprintf(box, sizeof(box), "queue:%s", queue);
	return room->driver->fetch(room, box, id, 0, SCAN_BODIES, ret, err);
}

enum mr_rc
room_raw(struct mr_room *room, const char *agent, const char *id, room_raw_fn *read, struct mr_message *ret,
    struct mr_error *err)
{
	mr_auto(buf_done) struct buf bytes = BUF_INIT;
	struct arena *own = NULL;

	TRY(read(room, agent, id, &bytes, err));
	*ret = (struct mr_message){ .from = "",
		.subject = "",
		.type = "",
		.thread = "",
		.reply_to = "",
		.replace_key = "",
		.path = "",
		.body = arena_dup(&own, buf_str(&bytes)),
		.body_len = bytes.len,
		.own = own };
	return ret->body ? MR_OK : mr_nomem(err);
}

void
delivered_done(struct delivered *got)
{
	mr_names_done(&got->missing);
	mr_names_done(&got->warnings);
}
