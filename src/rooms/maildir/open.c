/* SPDX-License-Identifier: MIT */
/*
 * open.c - the room's settings, format and owner. Every command pays for this, so it is few system
 * calls: the folder, its owner, `room`, and agents/.
 */
#include "base/error.h"
#include "base/sys.h"
#include "message/address.h"
#include "rooms/maildir/maildir.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define ROOM_FILE_MAX ((size_t)64 << 10)
#define FORMAT_NEWEST 1

static enum mr_rc
no_room(const char *where, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no room in '%s'\nmake one with: mailroom init", where);
}

static bool
in_group(gid_t group)
{
	gid_t groups[256];
	int n = getgroups(256, groups);

	for (int i = 0; i < n; i++)
		if (groups[i] == group)
			return true;
	return group == getegid();
}

/* Files that we make would be ours, and closed to the room's owner: two users spoil a room that was
 * not made for sharing. */
static enum mr_rc
check_owner(const struct stat *st, bool shared, const char *where, struct mr_error *err)
{
	if (st->st_uid == sys_euid() || (shared && in_group(st->st_gid)))
		return MR_OK;
	(void)mr_fail(err, MR_REFUSED, "room '%s' belongs to another user (uid %ld)", where, (long)st->st_uid);
	if (shared)
		return mr_hint(err, "it is shared with group %ld: become a member of it", (long)st->st_gid);
	return mr_hint(err, "make your own with: mailroom init, or let its owner set Share: group");
}

/* Absolute from the start: a relative path may go up or through links, which is the caller's right for
 * the room itself and nobody's inside it (sys_open). */
static char *
absolute(const char *where)
{
	struct buf path = BUF_INIT;
	char *cwd = where[0] == '/' ? NULL : getcwd(NULL, 0);

	if (cwd) {
		buf_adds(&path, cwd);
		buf_addc(&path, '/');
		free(cwd);
		while (where[0] == '.' && where[1] == '/')
			where += 2;
	}
	struct mr_str rest = str_of(where);

	while (rest.len > 1 && rest.ptr[rest.len - 1] == '/')
		rest.len--;
	buf_add(&path, rest);
	return buf_take(&path);
}

/* The folder that has the room instead of the room. */
static enum mr_rc
step_inside(struct maildir *md, struct mr_error *err)
{
	struct buf path = BUF_INIT;
	int below = -1;

	if (dir_reach(md->root_fd, ".mailroom", &below, err) != MR_OK)
		return err->code == MR_NOTFOUND ? no_room(md->path, err) : err->code;
	(void)sys_close(md->root_fd);
	md->root_fd = below;
	buf_adds(&path, md->path);
	buf_adds(&path, "/.mailroom");
	free(md->path);
	md->path = buf_take(&path);
	return md->path ? MR_OK : mr_nomem(err);
}

static enum mr_rc
find_root(struct maildir *md, const char *where, struct buf *settings, struct mr_error *err)
{
	md->path = absolute(where);
	if (!md->path)
		return mr_nomem(err);
	md->root_fd = sys_open_reach(AT_FDCWD, md->path);
	if (md->root_fd < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			return no_room(md->path, err);
		return mr_fail_errno(err, "cannot open room '%s'", md->path);
	}
	enum mr_rc rc = file_read(md->root_fd, "room", ROOM_FILE_MAX, settings, err);

	if (rc == MR_NOTFOUND) {
		TRY(step_inside(md, err));
		rc = file_read(md->root_fd, "room", ROOM_FILE_MAX, settings, err);
	}
	if (rc == MR_NOTFOUND)
		return no_room(md->path, err);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot open room '%s'", md->path);
}

static bool
setting_is(const struct mr_room *room, const char *name, const char *value)
{
	const char *found = record_get(&room->settings, name);

	return found && ascii_caseeq(found, value);
}

static enum mr_rc
check_settings(struct mr_room *room, struct maildir *md, struct mr_error *err)
{
	int64_t format = record_int(&room->settings, "Format", 0);

	if (format < 1)
		return mr_fail(err, MR_CORRUPT, "cannot open room '%s': its file 'room' has no Format:", md->path);
	if (format > FORMAT_NEWEST)
		return mr_fail(err, MR_REFUSED,
		    "cannot open room '%s': made by a newer mailroom (Format: %lld, this one knows %d)\ninstall a newer mailroom",
		    md->path, (long long)format, FORMAT_NEWEST);
	struct stat st;
	bool shared = setting_is(room, "Share", "group");

	if (sys_stat_fd(md->root_fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at room '%s'", md->path);
	TRY(check_owner(&st, shared, md->path, err));
	const char *identity = record_get(&room->settings, "Identity");

	(void)room_place(md->root_fd, &st, room->place);
	if (identity && strlen(identity) == ROOM_IDENTITY_LEN)
		memcpy(room->identity, identity, sizeof room->identity);
	md->dir_mode = shared ? 02770 : 0700;
	md->file_mode = shared ? 0660 : 0600;
	md->message_mode = shared ? 0440 : 0400;
	md->sync = !setting_is(room, "Sync", "none");
	md->wants_fast = setting_is(room, "Sync", "fast");
	return MR_OK;
}

/* What is shown after @, and the spec with the whole path. The name is one part of an address; a room whose file says
 * anything else is called "room", and `doctor` tells. */
static enum mr_rc
name_room(struct mr_room *room, struct maildir *md, struct mr_error *err)
{
	const char *name = record_get(&room->settings, "Name");
	struct mr_error ignored = { 0 };
	struct buf spec = BUF_INIT;

	if (!name || strchr(name, '/') || address_check(str_of(name), &ignored) != MR_OK)
		name = "room";
	buf_adds(&spec, "maildir:");
	buf_adds(&spec, md->path);
	char *whole = buf_take(&spec);

	room->name = strdup(name);
	if (!room->name || !whole) {
		free(whole);
		return mr_nomem(err);
	}
	free(room->spec);
	room->spec = whole;
	return MR_OK;
}

enum mr_rc
maildir_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	mr_auto(buf_done) struct buf settings = BUF_INIT;
	struct maildir *md = calloc(1, sizeof *md);

	if (!md)
		return mr_nomem(err);
	md->root_fd = md->agents_fd = md->process_hold_fd = -1;
	md->barred = &room->barred;
	room->state = md;
	TRY(find_root(md, where, &settings, err));
	if (record_parse(buf_str(&settings), &room->settings, err) != MR_OK)
		return mr_wrap(err, "cannot open room '%s'", md->path);
	TRY(check_settings(room, md, err));
	if (dir_reach(md->root_fd, "agents", &md->agents_fd, err) != MR_OK) {
		/* Made again where someone removed it: an empty room is better than a dead one. */
		if (err->code != MR_NOTFOUND ||
		    dir_make(md->root_fd, "agents", md->dir_mode, md->sync, &md->agents_fd, err) != MR_OK)
			return mr_wrap(err, "cannot open room '%s'", md->path);
	}
	return name_room(room, md, err);
}

void
maildir_close(struct mr_room *room)
{
	struct maildir *md = maildir_of(room);

	if (!md)
		return;
	commit_forget(md);
	hold_close(md);
	if (md->reserve_spent) /* once more: the file of a hold was in its way */
		reserve_keep(md);
	sys_close_fd(&md->agents_fd);
	sys_close_fd(&md->root_fd);
	free(md->path);
	free(md);
	room->state = NULL;
}
