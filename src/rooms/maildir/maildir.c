/* SPDX-License-Identifier: MIT */
/* maildir.c - the native room's table of operations; maildir.h says which file has which. */
#include "base/error.h"
#include "rooms/maildir/claim.h"

extern const struct room_driver room_maildir;

static enum mr_rc
make_box(struct mr_room *room, const char *box, struct mr_error *err)
{
	const char *name = NULL;

	return target_kind(box, &name) == TARGET_QUEUE ? maildir_queue_make(room, name, err)
						       : maildir_channel_make(room, name, err);
}

static enum mr_rc
remove_box(struct mr_room *room, const char *box, bool to_dead, size_t *ret_dead, struct mr_error *err)
{
	const char *name = NULL;

	return target_kind(box, &name) == TARGET_QUEUE ? maildir_queue_remove(room, name, to_dead, ret_dead, err)
						       : maildir_channel_remove(room, name, err);
}

const struct room_driver room_maildir = {
	.kind = "maildir",
	.abilities = ROOM_READ_STATE | ROOM_THREADS | ROOM_PRIORITIES | ROOM_ARCHIVE | ROOM_REGISTER | ROOM_HOLDS |
		     ROOM_SENT | ROOM_KEYS | ROOM_PIN | ROOM_TYPES | ROOM_PURGE | ROOM_QUEUES | ROOM_CHANNELS,

	.open = maildir_open,
	.close = maildir_close,
	.storage = maildir_storage,
	.spend_reserve = maildir_spend_reserve,

	.each_agent = maildir_each_agent,
	.find_agent = maildir_find_agent,
	.has_agent = maildir_has_agent,
	.removals = maildir_removals,
	.newest_life = maildir_newest_life,
	.add_agent = maildir_add_agent,
	.set_role = maildir_set_role,
	.take_life = maildir_take_life,
	.update_life = maildir_update_life,
	.check_life = maildir_check_life,
	.seen = maildir_seen,
	.remove_agent = maildir_remove_agent,
	.once = maildir_once,

	.deliver = maildir_deliver,
	.deliver_many = maildir_deliver_many,
	.scan = maildir_scan,
	.fetch = maildir_fetch,
	.fetch_raw = maildir_fetch_raw,
	.mark = maildir_mark,
	.move = maildir_move,
	.flush = maildir_flush,

	.claim = maildir_claim,
	.settle = maildir_settle,
	.extend = maildir_extend,
	.each_claim = maildir_each_claim,
	.find_claim = maildir_find_claim,
	.each_past = maildir_each_past,
	.sweep = maildir_sweep,
	.make_box = make_box,
	.remove_box = remove_box,

	.watch = maildir_watch,
	.watch_wait = maildir_watch_wait,
	.watch_saw_mail = maildir_watch_saw_mail,
	.watch_close = maildir_watch_close,

	.record_put = maildir_record_put,
	.record_get = maildir_record_get,
	.record_drop = maildir_record_drop,
	.record_each = maildir_record_each,
	.record_change = maildir_record_change,
	.record_lock = maildir_record_lock,
	.record_unlock = maildir_record_unlock,

	.channel_scan = maildir_channel_scan,
	.channel_range = maildir_channel_range,
	.channel_drop = maildir_channel_drop,

	.queue_fetch = maildir_queue_fetch,

	.each_place = maildir_each_place,
	.dead_drop = maildir_dead_drop,
	.purge = maildir_purge,
	.inspect = maildir_inspect,
};
