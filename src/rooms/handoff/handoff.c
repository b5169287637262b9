/* SPDX-License-Identifier: MIT */
/*
 * handoff.c - the table of the driver for the mailbox skill's mailboxes, and their root.
 *
 * The root has a well-known name in /tmp, so anybody on the machine may be there first: a link, another user's folder
 * and one that others can write to are refused. One that is missing is made by the first command that writes.
 */
#include "rooms/handoff/handoff.h"

#include "base/storage.h"
#include "base/sys.h"
#include "room/places.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static enum mr_rc
check_root(const struct handoff *h, const struct stat *st, struct mr_error *err)
{
	if (st->st_uid != geteuid())
		return mr_fail(err, MR_REFUSED,
		    "the mailboxes in '%s' belong to another user (uid %ld)\n"
		    "use a root of your own: --room handoff:PATH, and MB_TEST_ROOT for the skill itself",
		    h->path, (long)st->st_uid);
	/* Many systems give each user a group of their own and umask 002: that is nobody else. */
	if (st->st_mode & S_IWOTH || (st->st_mode & S_IWGRP && st->st_gid != getegid()))
		return mr_fail(err, MR_REFUSED,
		    "others can write to '%s', so they could put mail there or take it away\nlook who did, then: chmod go-w %s",
		    h->path, h->path);
	return MR_OK;
}

static enum mr_rc
open_root(struct handoff *h, struct mr_error *err)
{
	struct stat st;

	h->root_fd = sys_open(AT_FDCWD, h->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (h->root_fd >= 0 && sys_stat_fd(h->root_fd, &st) == 0)
		return check_root(h, &st, err);
	if (errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "no folder '%s'", h->path);
	if (errno == ELOOP || errno == ENOTDIR || errno == EXDEV)
		return mr_fail(err, MR_REFUSED,
		    "'%s' is no folder, or behind a symbolic link\n"
		    "a link in the place of the root may be somebody else's: look at it before you go on",
		    h->path);
	return mr_fail_errno(err, "cannot open '%s'", h->path);
}

enum mr_rc
handoff_root(struct handoff *h, bool make, int *ret_fd, struct mr_error *err)
{
	mr_auto(sys_close_fd) int made = -1;

	if (h->root_fd < 0 && make && dir_make(AT_FDCWD, h->path, 0700, true, &made, err) != MR_OK)
		return err->code;
	if (h->root_fd < 0 && open_root(h, err) != MR_OK) {
		sys_close_fd(&h->root_fd);
		h->root_fd = -1;
		return err->code;
	}
	*ret_fd = h->root_fd;
	return MR_OK;
}

/* What stands after @: the last part of the path, as far as it can. */
static char *
name_of(const char *path)
{
	struct buf name = BUF_INIT;
	const char *last = strrchr(path, '/');

	for (const char *p = last ? last + 1 : path; *p; p++)
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
		    (name.len > 0 && strchr("._+-", *p)))
			buf_addc(&name, *p);
	if (name.len == 0)
		buf_adds(&name, "handoff");
	return buf_take(&name);
}

static enum mr_rc
set_place(struct mr_room *room, struct handoff *h, const char *where, struct mr_error *err)
{
	struct buf path = BUF_INIT, spec = BUF_INIT;
	struct mr_str trimmed = str_of(where);

	while (trimmed.len > 1 && trimmed.ptr[trimmed.len - 1] == '/')
		trimmed.len--;
	buf_add(&path, trimmed);
	h->path = buf_take(&path);
	if (!h->path)
		return mr_nomem(err);
	buf_addf(&spec, "handoff:%s", h->path);
	char *whole = buf_take(&spec);

	room->name = name_of(h->path);
	if (!whole || !room->name) {
		free(whole);
		return mr_nomem(err);
	}
	free(room->spec);
	room->spec = whole;
	return MR_OK;
}

/* A root that is missing is no error, for the original makes it too; but a typing error in the way there is. */
static enum mr_rc
check_parent(const struct handoff *h, struct mr_error *err)
{
	mr_auto(buf_done) struct buf parent = BUF_INIT;
	mr_auto(sys_close_fd) int fd = -1;
	const char *slash = strrchr(h->path, '/');

	buf_add(&parent, slash == h->path ? STR("/") : (struct mr_str){ h->path, (size_t)(slash - h->path) });
	if (!buf_ok(&parent))
		return mr_nomem(err);
	return dir_open(AT_FDCWD, buf_z(&parent), &fd, err);
}

static enum mr_rc
handoff_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	struct handoff *h = calloc(1, sizeof *h);
	int fd = -1;

	if (!h)
		return mr_nomem(err);
	h->root_fd = -1;
	room->state = h;
	if (where[0] != '/' || where[1] == '\0')
		return mr_fail(err, MR_REFUSED, "cannot open '%s': not the absolute path of a folder", room->spec);
	TRY(set_place(room, h, where, err));
	enum mr_rc rc = handoff_root(h, false, &fd, err);

	if (rc == MR_NOTFOUND && !room->must_exist)
		rc = check_parent(h, err);
	return rc == MR_OK ? MR_OK : mr_wrap(err, "cannot open room '%s'", h->path);
}

static enum mr_rc
handoff_make(struct mr_room *room, struct mr_error *err)
{
	int fd = -1;

	return handoff_root(handoff_of(room), true, &fd, err);
}

static void
handoff_close(struct mr_room *room)
{
	struct handoff *h = handoff_of(room);

	if (!h)
		return;
	sys_close_fd(&h->root_fd);
	known_done(&h->known);
	free(h->path);
	free(h);
	room->state = NULL;
}

static enum mr_rc
handoff_storage(struct mr_room *room, struct mr_storage *ret, struct mr_error *err)
{
	return storage_of_path(handoff_of(room)->path, ret, err);
}

const struct room_driver room_handoff = {
	.kind = "handoff",
	.abilities = ROOM_READ_STATE | ROOM_ARCHIVE | ROOM_REGISTER,
	.open = handoff_open,
	.close = handoff_close,
	.make = handoff_make,
	.storage = handoff_storage,
	.each_agent = handoff_each_agent,
	.find_agent = handoff_find_agent,
	.add_agent = handoff_add_agent,
	.remove_agent = handoff_remove_agent,
	.spell = handoff_spell,
	.lacks = handoff_lacks,
	.deliver = handoff_deliver,
	.settle_ticket = handoff_settle_ticket,
	.scan = handoff_scan,
	.fetch = handoff_fetch,
	.fetch_raw = handoff_fetch_raw,
	.mark = handoff_mark,
	.move = handoff_move,
	.watch = handoff_watch,
	.watch_wait = handoff_watch_wait,
	.watch_close = handoff_watch_close,
	.each_place = room_search_places,
	.inspect = handoff_inspect,
	.face = handoff_face,
};
