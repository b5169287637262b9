/* SPDX-License-Identifier: MIT */
/* maildir.c - the native room's table of operations; maildir.h says which file has which. */
#include "rooms/maildir/maildir.h"

extern const struct room_driver room_maildir;

const struct room_driver room_maildir = {
	.kind = "maildir",
	.abilities = ROOM_READ_STATE | ROOM_THREADS | ROOM_PRIORITIES | ROOM_ARCHIVE | ROOM_REGISTER | ROOM_HOLDS |
		     ROOM_SENT | ROOM_KEYS | ROOM_PIN | ROOM_TYPES | ROOM_PURGE | ROOM_QUEUES | ROOM_CHANNELS,

	.open = maildir_open,
	.close = maildir_close,
	.recover = maildir_recover,
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

	.hold = maildir_hold,
	.settle = maildir_settle,
	.extend = maildir_extend,
	.each_hold = maildir_each_hold,
	.sweep = maildir_sweep,

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

	.channel_make = maildir_channel_make,
	.channel_remove = maildir_channel_remove,
	.channel_scan = maildir_channel_scan,
	.channel_range = maildir_channel_range,
	.channel_drop = maildir_channel_drop,

	.queue_make = maildir_queue_make,
	.queue_remove = maildir_queue_remove,
	.queue_claim = maildir_queue_claim,
	.queue_settle = maildir_queue_settle,
	.queue_past = maildir_queue_past,
	.queue_extend = maildir_queue_extend,
	.queue_each = maildir_queue_each,
	.queue_fetch = maildir_queue_fetch,
	.queue_find_claim = maildir_queue_find_claim,

	.each_place = maildir_each_place,
	.dead_drop = maildir_dead_drop,
	.purge = maildir_purge,
	.inspect = maildir_inspect,
};
