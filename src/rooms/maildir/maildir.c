/* SPDX-License-Identifier: MIT */
/*
 * maildir.c - the native room: its table of operations, and opening it. Every command opens the room, so it takes only
 * a few system calls: the folder, its owner, `room`, and agents/.
 */
#include "rooms/maildir/maildir.h"
#include "message/address.h"
#include <unistd.h>

#define ROOM_FILE_MAX ((size_t)64 << 10)
#define FORMAT_NEWEST 1
extern const struct room_driver room_maildir;

const struct room_driver room_maildir = {
	.kind = "maildir",
	.abilities = ROOM_READ_STATE | ROOM_THREADS | ROOM_PRIORITIES | ROOM_ARCHIVE | ROOM_REGISTER | ROOM_HOLDS |
		     ROOM_SENT | ROOM_KEYS | ROOM_PIN | ROOM_TYPES | ROOM_PURGE | ROOM_DEAD | ROOM_RAW | ROOM_BATCH |
		     ROOM_ATTACHMENTS | ROOM_QUEUES | ROOM_CHANNELS | ROOM_NAMES | ROOM_FETCH,
	.files = &(const struct room_files){ maildir_each_store, maildir_index_folder, maildir_pack },

	.open = maildir_open,
	.close = maildir_close,
	.storage = maildir_storage,

	.each_agent = maildir_each_agent,
	.removals = maildir_removals,
	.find_agent = maildir_find_agent,
	.add_agent = maildir_add_agent,
	.take_life = maildir_take_life,
	.update_agent = maildir_update_agent,
	.check_life = maildir_check_life,
	.seen = maildir_seen,

	.deliver = maildir_deliver,
	.scan = maildir_scan,
	.fetch = maildir_fetch,
	.mark = maildir_mark,
	.remove = maildir_remove,
	.flush = maildir_flush,

	.claim = maildir_claim,
	.settle = maildir_settle,
	.extend = maildir_extend,
	.each_claim = maildir_each_claim,
	.find_claim = maildir_find_claim,
	.each_past = maildir_each_past,
	.sweep = maildir_sweep,
	.make_box = maildir_make_box,
	.remove_box = maildir_remove_box,

	.watch = maildir_watch,
	.watch_wait = maildir_watch_wait,
	.watch_close = maildir_watch_close,

	.record_put = maildir_record_put,
	.record_get = maildir_record_get,
	.record_drop = maildir_record_drop,
	.record_each = maildir_record_each,
	.record_lock = maildir_record_lock,
	.record_unlock = maildir_record_unlock,

	.channel_scan = maildir_channel_scan,
	.channel_range = maildir_channel_range,

	.each_place = maildir_each_place,
	.each_cost = maildir_each_cost,
	.inspect = maildir_inspect,
};

enum mr_rc
maildir_make_box(struct mr_room *room, const char *box, struct mr_error *err)
{
	const char *name = NULL;

	if (!box[0])
		return MR_OK;
	return target_kind(box, &name) == TARGET_QUEUE ? maildir_queue_make(room, name, err)
						       : maildir_channel_make(room, name, err);
}

enum mr_rc
maildir_remove_box(struct mr_room *room, const char *box, bool force, size_t *ret_dead, struct mr_error *err)
{
	const char *name = NULL;

	switch (target_kind(box, &name)) {
	case TARGET_AGENT: /* forced or not, no mail is lost: it goes to the dead letters */
		return maildir_agent_remove(room, name, ret_dead, err);
	case TARGET_QUEUE:
		return maildir_queue_remove(room, name, force, ret_dead, err);
	case TARGET_CHANNEL:
		break;
	}
	return maildir_channel_remove(room, name, err);
}

static enum mr_rc
no_room(const char *where, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no room in '%s'\nmake one with: mailroom init", where);
}

/* Finds the room, `where` or the folder .mailroom below it: opens it and reads its settings. */
static enum mr_rc
find_root(struct maildir *md, const char *where, struct buf *settings, struct mr_error *err)
{
	/* Absolute from the start: a relative path may go up or through links, which is allowed for the room itself and
	 * not inside it (sys_open). */
	mr_auto(free_ptr) char *cwd = where[0] == '/' ? NULL : getcwd(NULL, 0);
	struct buf path = BUF_INIT;

	if (cwd) {
		buf_addf(&path, "%s/", cwd);
		while (where[0] == '.' && where[1] == '/')
			where += 2;
	}
	struct mr_str rest = str_of(where);

	while (rest.len > 1 && rest.ptr[rest.len - 1] == '/')
		rest.len--;
	buf_add(&path, rest);
	md->path = buf_take(&path);
	TRY(mr_got(md->path, err));
	md->root_fd = sys_open_reach(AT_FDCWD, md->path);
	if (md->root_fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return no_room(md->path, err);
	if (md->root_fd < 0)
		return mr_fail_errno(err, "cannot open room '%s'", md->path);
	enum mr_rc rc = file_read(md->root_fd, "room", ROOM_FILE_MAX, settings, err);

	if (rc == MR_NOTFOUND) {
		int below = -1;

		if (dir_reach(md->root_fd, ".mailroom", &below, err) != MR_OK)
			return err->code == MR_NOTFOUND ? no_room(md->path, err) : err->code;
		sys_close_fd(&md->root_fd);
		md->root_fd = below;
		buf_addf(&path, "%s/.mailroom", md->path);
		free(md->path);
		md->path = buf_take(&path);
		TRY(mr_got(md->path, err));
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
use_settings(struct mr_room *room, struct maildir *md, struct mr_error *err)
{
	int64_t format = record_int(&room->settings, "Format", 0);
	const char *identity = record_get(&room->settings, "Identity"), *name = record_get(&room->settings, "Name");
	bool shared = setting_is(room, "Share", "group");
	struct buf spec = BUF_INIT;
	gid_t groups[256];
	struct stat st;

	if (format < 1)
		return mr_fail(err, MR_CORRUPT, "cannot open room '%s': its file 'room' has no Format:", md->path);
	if (format > FORMAT_NEWEST)
		return mr_fail(err, MR_REFUSED,
		    "cannot open room '%s': made by a newer mailroom (Format: %lld, this one knows %d)\ninstall a newer mailroom",
		    md->path, (long long)format, FORMAT_NEWEST);
	if (sys_stat_fd(md->root_fd, &st) < 0)
		return mr_fail_errno(err, "cannot look at room '%s'", md->path);
	/* Our files would belong to us, and the room's owner could not read them: a room must be made for sharing. */
	int n = shared ? getgroups(256, groups) : 0;
	bool member = shared && st.st_gid == getegid();

	for (int i = 0; i < n; i++)
		member |= groups[i] == st.st_gid;
	if (!member && st.st_uid != sys_euid()) {
		(void)mr_fail(
		    err, MR_REFUSED, "room '%s' belongs to another user (uid %ld)", md->path, (long)st.st_uid);
		if (shared)
			return mr_hint(err, "it is shared with group %ld: become a member of it", (long)st.st_gid);
		return mr_hint(err, "make your own with: mailroom init, or let its owner set Share: group");
	}
	md->dev = st.st_dev;
	md->counts_folders = st.st_nlink > 2; /* it holds agents/ and holds/ */
	(void)room_place(md->root_fd, &st, room->place);
	if (identity && strlen(identity) == ROOM_IDENTITY_LEN)
		memcpy(room->identity, identity, sizeof room->identity);
	md->dir_mode = shared ? 02770 : 0700;
	md->file_mode = shared ? 0660 : 0600;
	md->message_mode = shared ? 0440 : 0400;
	md->sync = !setting_is(room, "Sync", "none");
	md->publish = md->sync ? PUBLISH_FULL : PUBLISH_NOSYNC;
	md->wants_fast = md->sync && !setting_is(room, "Sync", "full"); /* auto, fast, or no setting */
	/* The part after '@' is one component of an address; a room whose file has another value is called "room", and
	 * `doctor` reports it. */
	if (!name || strchr(name, '/') || address_check(str_of(name), IGNORED) != MR_OK)
		name = "room";
	room->name = strdup(name);
	buf_addf(&spec, "maildir:%s", md->path);
	free(room->spec);
	room->spec = buf_take(&spec);
	return room->name && room->spec ? MR_OK : mr_nomem(err);
}

enum mr_rc
maildir_open(struct mr_room *room, const char *where, struct mr_error *err)
{
	char first[1000];
	mr_auto(buf_done) struct buf settings = BUF_IN(first);
	struct maildir *md = calloc(1, sizeof *md);

	TRY(mr_got(md, err));
	md->root_fd = md->agents_fd = md->process_hold_fd = -1;
	md->kept = MAILBOX_INIT;
	md->barred = &room->barred;
	room->state = md;
	room->relief = (struct sys_relief){ .free_some = reserve_spend, .ctx = md };
	TRY(find_root(md, where, &settings, err));
	if (record_parse(buf_str(&settings), &room->settings, err) != MR_OK)
		return mr_wrap(err, "cannot open room '%s'", md->path);
	TRY(use_settings(room, md, err));
	enum mr_rc rc = dir_reach(md->root_fd, "agents", &md->agents_fd, err);

	if (rc == MR_NOTFOUND) /* make it again if somebody removed it, so that the room still works */
		rc = dir_make(md->root_fd, "agents", md->dir_mode, md->sync, &md->agents_fd, err);
	return rc == MR_OK ? rc : mr_wrap(err, "cannot open room '%s'", md->path);
}

void
maildir_close(struct mr_room *room)
{
	struct maildir *md = maildir_of(room);

	if (!md)
		return;
	if (md->dirty_n > 0)
		commit_forget(md);
	if (md->process_token[0] != '\0')
		token_close(md);
	if (md->reserve_spent) /* again: the file of a hold used up its place */
		reserve_refill(md);
	if (md->held_many && md->kept.md)
		renew_held(&md->kept);
	mailbox_close(&md->kept);
	buf_done(&md->text);
	if (md->imports.ids.n > 0)
		imports_done(&md->imports);
	free(md->dirty);
	sys_close_fd(&md->agents_fd);
	sys_close_fd(&md->root_fd);
	free(md->path);
	free(md);
	room->state = NULL;
}
