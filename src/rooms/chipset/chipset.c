/* SPDX-License-Identifier: MIT */
/* chipset.c - the driver of kind 'chipset': the mail folders of the mail-async skill. */
#include "rooms/chipset/chipset.h"

#include "base/error.h"
#include "base/storage.h"
#include "base/sys.h"
#include "message/foreign.h"
#include <fcntl.h>
#include <stdlib.h>

/* The folder need not be there, unless that is asked for: a mailbox appears with its first message. */
static enum mr_rc
check_place(const char *path, bool must_exist, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	if (path[0] != '/')
		return mr_fail(err, MR_REFUSED,
		    "'%s' is no absolute path\na chipset room is chipset:PATH, PATH being its state folder", path);
	enum mr_rc rc = dir_open(AT_FDCWD, path, &fd, err);

	if (rc == MR_NOTFOUND && must_exist)
		return mr_fail(err, MR_NOTFOUND, "no folder '%s'", path);
	return rc == MR_OK || rc == MR_NOTFOUND ? MR_OK : mr_wrap(err, "cannot open room '%s'", path);
}

static enum mr_rc
chipset_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct chipset *cs = calloc(1, sizeof *cs);
	struct buf path = BUF_INIT, spec = BUF_INIT;
	struct mr_str rest = str_of(where);

	if (!cs)
		return mr_nomem(err);
	room->state = cs;
	while (rest.len > 1 && rest.ptr[rest.len - 1] == '/')
		rest.len--;
	buf_add(&path, rest);
	cs->path = buf_take(&path);
	room->name = strdup("chipset");
	if (!cs->path || !room->name)
		return mr_nomem(err);
	TRY(check_place(cs->path, room->must_exist, err));
	buf_addf(&spec, "chipset:%s", cs->path);
	char *whole = buf_take(&spec);

	if (!whole)
		return mr_nomem(err);
	free(room->spec);
	room->spec = whole;
	return MR_OK;
}

static enum mr_rc
chipset_make(struct mr_room *room, struct mr_error *err)
{
	mr_auto(sys_close_fd) int fd = -1;

	return chipset_state_make(chipset_of(room), &fd, err);
}

static void
chipset_close(struct mr_room *room)
{
	struct chipset *cs = chipset_of(room);

	if (!cs)
		return;
	mr_names_done(&cs->dirty);
	known_done(&cs->known);
	free(cs->path);
	free(cs);
	room->state = NULL;
}

static enum mr_rc
chipset_spell(struct mr_room *room, const char *given, char ret[MR_ADDRESS_MAX + 1], struct mr_error *err)
{
	char id[CHIPSET_ID_MAX + 1];
	enum mr_rc rc = chipset_id(given, id, err);

	(void)room;
	return rc == MR_OK ? foreign_to_address(str_of(id), ret, err) : rc;
}

static enum mr_rc
chipset_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	return storage_of_path(chipset_of(room)->path, ret, err);
}

const struct room_driver room_chipset = {
	.kind = "chipset",
	.abilities = ROOM_READ_STATE | ROOM_PRIORITIES | ROOM_ARCHIVE | ROOM_TYPES | ROOM_OPEN_BOXES,
	.open = chipset_open,
	.close = chipset_close,
	.make = chipset_make,
	.storage = chipset_storage,
	.each_agent = chipset_each_agent,
	.find_agent = chipset_find_agent,
	.add_agent = chipset_add_agent,
	.spell = chipset_spell,
	.lacks = chipset_lacks,
	.deliver = chipset_deliver,
	.settle_ticket = chipset_settle_ticket,
	.scan = chipset_scan,
	.fetch = chipset_fetch,
	.fetch_raw = chipset_fetch_raw,
	.mark = chipset_mark,
	.move = chipset_move,
	.flush = chipset_flush,
	.watch = chipset_watch,
	.watch_wait = chipset_watch_wait,
	.watch_close = chipset_watch_close,
	.each_place = chipset_each_place,
	.inspect = chipset_inspect,
	.nudge_put = chipset_nudge_put,
	.nudge_get = chipset_nudge_get,
};
