/* SPDX-License-Identifier: MIT */
/* mem.c - the table of the in-memory driver: each open of mem:NAME is a new, empty room. */
#include "base/error.h"
#include "message/address.h"
#include "support/mem/mem.h"

static enum mr_rc
mem_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	const char *name = where[0] != '\0' ? where : "mem";

	if (address_check(str_of(name), err) != MR_OK || strchr(name, '/')) {
		(void)mr_fail(err, MR_REFUSED, "cannot open '%s': not a name for a room", room->spec);
		return mr_hint(err, "mem:NAME, with a NAME of letters, digits and . _ + -");
	}
	room->state = calloc(1, sizeof(struct mem));
	room->name = strdup(name);
	if (!room->state || !room->name)
		return mr_nomem(err);
	return MR_OK;
}

static void
mem_close(struct mr_room *room)
{
	struct mem *mem = mem_of(room);

	if (!mem)
		return;
	for (size_t i = 0; i < mem->boxes_n; i++) {
		mem_box_done(mem->boxes[i]);
		free(mem->boxes[i]);
	}
	free(mem->boxes);
	mem_box_done(&mem->dead);
	for (size_t i = 0; i < mem->keys_n; i++) {
		free(mem->keys[i].sender);
		free(mem->keys[i].key);
	}
	free(mem->keys);
	for (size_t i = 0; i < mem->records_n; i++)
		mem_record_done(&mem->records[i]);
	free(mem->records);
	for (size_t i = 0; i < mem->queues_n; i++)
		mem_queue_done(&mem->queues[i]);
	free(mem->queues);
	for (size_t i = 0; i < mem->channels_n; i++)
		mem_channel_done(&mem->channels[i]);
	free(mem->channels);
	free(mem);
	room->state = NULL;
}

static enum mr_rc
mem_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	(void)room;
	(void)err;
	*ret = (struct mr_storage){ .file_system = "memory",
		.reason = "the room is in the memory of one process and ends with it" };
	return MR_OK;
}

static enum mr_rc
fetch(struct mr_room *room, const char *agent, const char *id, unsigned folders, enum scan_depth depth,
    struct mr_message *ret, struct mr_error *err)
{
	if (str_starts(str_of(agent), "queue:"))
		return mem_queue_fetch(room, agent + strlen("queue:"), id, ret, err);
	if (depth == SCAN_RAW)
		return mem_fetch_raw(room, agent, id, ret, err);
	return mem_fetch(room, agent, id, folders, depth, ret, err);
}

static enum mr_rc
mark(struct mr_room *room, const char *agent, const char *id, unsigned set, unsigned clear, enum mr_folder to,
    struct mr_error *err)
{
	if (set || clear || !to)
		TRY(mem_mark(room, agent, id, set, clear, err));
	return to ? mem_move(room, agent, id, to, err) : MR_OK;
}

static enum mr_rc
remove_mail(struct mr_room *room, const struct removal *what, size_t *ret_removed, struct mr_error *err)
{
	size_t removed = 0;

	if (what->what == REMOVE_INBOX)
		return room_lacks(room, "way to clear an inbox", err);
	if (what->what == REMOVE_DEAD)
		return mem_dead_drop(room, what->box, what->id, err);
	TRY(what->what == REMOVE_POSTS ? mem_channel_drop(room, what->box, what->below, &removed, err)
				       : mem_purge(room, what->id, &removed, err));
	if (ret_removed)
		*ret_removed = removed;
	return MR_OK;
}

const struct room_driver room_mem = {
	.kind = "mem",
	.abilities = ROOM_READ_STATE | ROOM_THREADS | ROOM_PRIORITIES | ROOM_ARCHIVE | ROOM_REGISTER | ROOM_HOLDS |
		     ROOM_SENT | ROOM_KEYS | ROOM_PIN | ROOM_TYPES | ROOM_PURGE | ROOM_DEAD | ROOM_RAW | ROOM_QUEUES |
		     ROOM_CHANNELS | ROOM_NAMES | ROOM_FETCH,
	.open = mem_open,
	.close = mem_close,
	.storage = mem_storage,
	.each_agent = mem_each_agent,
	.find_agent = mem_find_agent,
	.add_agent = mem_add_agent,
	.take_life = mem_take_life,
	.update_agent = mem_update_agent,
	.check_life = mem_check_life,
	.seen = mem_seen,
	.deliver = mem_deliver,
	.scan = mem_scan,
	.fetch = fetch,
	.mark = mark,
	.remove = remove_mail,
	.claim = mem_claim,
	.settle = mem_settle,
	.extend = mem_extend,
	.each_claim = mem_each_claim,
	.find_claim = mem_find_claim,
	.sweep = mem_sweep,
	.make_box = mem_make_box,
	.remove_box = mem_remove_box,
	.record_put = mem_record_put,
	.record_get = mem_record_get,
	.record_drop = mem_record_drop,
	.record_each = mem_record_each,
	.record_lock = mem_record_lock,
	.record_unlock = mem_record_unlock,
	.channel_scan = mem_channel_scan,
	.channel_range = mem_channel_range,
	.each_place = mem_each_place,
};
