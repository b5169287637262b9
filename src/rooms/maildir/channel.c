/* SPDX-License-Identifier: MIT */
/* channel.c - a channel's folder: its lock, its ends, making and removing it. channel.h tells how it works. */
#include "rooms/maildir/channel.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>

#define LOCK_WAIT_MS 10000
#define LOCK_PAUSE_MAX_MS 20

enum mr_rc
channel_name_check(const char *name, struct mr_error *err)
{
	size_t n = strlen(name);

	/* A little wider than what the office lets people choose; what matters here is that it stays in its folder. */
	if (n >= 1 && n <= 80 && name[0] != '.' &&
	    strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == n)
		return MR_OK;
	return mr_fail(err, MR_REFUSED, "'%.80s' cannot name a channel", name);
}

static void
folder_of(const char *channel, char ret[NAME_LEN])
{
	(void)snprintf(ret, NAME_LEN, "channels/%.80s", channel);
}

/* ---- Opening ---- */

void
channel_done(struct channel *c)
{
	sys_close_fd(&c->fd);
	sys_close_fd(&c->posts_fd);
	sys_close_fd(&c->lock_fd);
	*c = CHANNEL_INIT;
}

static enum mr_rc
no_channel(const char *name, struct mr_error *err)
{
	return mr_fail(err, MR_NOTFOUND, "no channel '%s'", name);
}

/* A lock on a file that lost its name keeps nobody out: then the channel was removed while we waited. */
static enum mr_rc
check_lock(const struct channel *c, struct mr_error *err)
{
	struct stat ours, there;

	if (sys_stat_fd(c->lock_fd, &ours) < 0)
		return mr_fail_errno(err, "cannot look at the lock of channel '%s'", c->name);
	if (sys_stat(c->fd, CHANNEL_ENDS, &there) < 0) {
		if (errno == ENOENT)
			return no_channel(c->name, err);
		return mr_fail_errno(err, "cannot look at the lock of channel '%s'", c->name);
	}
	return ours.st_dev == there.st_dev && ours.st_ino == there.st_ino ? MR_OK : no_channel(c->name, err);
}

static enum mr_rc
take_lock(struct channel *c, int how, struct mr_error *err)
{
	int64_t end_ms = clock_boot_ms() + LOCK_WAIT_MS;

	c->lock_fd = sys_open(c->fd, CHANNEL_ENDS, O_RDWR | O_CREAT | O_NONBLOCK, c->md->file_mode);
	if (c->lock_fd < 0)
		return errno == ENOENT ? no_channel(c->name, err)
				       : mr_fail_errno(err, "cannot open the lock of channel '%s'", c->name);
	for (int pause_ms = 1; sys_flock(c->lock_fd, how | LOCK_NB) < 0;) {
		if (errno != EWOULDBLOCK)
			return mr_fail_errno(err, "cannot lock channel '%s'", c->name);
		if (clock_boot_ms() >= end_ms) {
			return mr_fail(err, MR_BUSY,
			    "channel '%s' is locked by another process\ntry again in a moment; the lock goes when that process ends",
			    c->name);
		}
		lock_pause_us((unsigned)pause_ms * 1000);
		pause_ms = pause_ms * 2 < LOCK_PAUSE_MAX_MS ? pause_ms * 2 : LOCK_PAUSE_MAX_MS;
	}
	return check_lock(c, err);
}

enum mr_rc
channel_open(struct channel *c, struct maildir *md, const char *name, enum channel_lock lock, struct mr_error *err)
{
	mr_auto(channel_done) struct channel opened = CHANNEL_INIT;
	char folder[NAME_LEN];

	opened.md = md;
	opened.name = name;
	if (channel_name_check(name, err) != MR_OK)
		return no_channel(name, err);
	folder_of(name, folder);
	enum mr_rc rc = dir_open(md->root_fd, folder, &opened.fd, err);

	if (rc == MR_OK && lock != CHANNEL_UNLOCKED)
		rc = take_lock(&opened, lock == CHANNEL_ALONE ? LOCK_EX : LOCK_SH, err);
	/* After the lock: who removes a channel renames posts/ away while having it alone. */
	if (rc == MR_OK)
		rc = dir_open(opened.fd, "posts", &opened.posts_fd, err);
	if (rc == MR_NOTFOUND)
		return no_channel(name, err);
	if (rc != MR_OK)
		return mr_wrap(err, "channel '%s'", name);
	*c = opened;
	opened = CHANNEL_INIT;
	return MR_OK;
}

bool
channel_exists(struct maildir *md, const char *channel)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	struct mr_error ignored = { 0 };

	return channel_open(&c, md, channel, CHANNEL_UNLOCKED, &ignored) == MR_OK;
}

/* ---- Making and removing ---- */

enum mr_rc
maildir_channel_make(struct mr_room *room, const char *channel, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(sys_close_fd) int fd = -1;
	char path[NAME_LEN + 8], folder[NAME_LEN];

	TRY(channel_name_check(channel, err));
	folder_of(channel, folder);
	(void)snprintf(path, sizeof path, "%s/posts", folder);
	if (dir_make(md->root_fd, path, md->dir_mode, md->sync, &fd, err) != MR_OK)
		return mr_wrap(err, "cannot make channel '%s'", channel);
	return MR_OK;
}

struct removal {
	int parent_fd, fd;
	bool failed;
};

static bool
remove_file(void *ctx, const struct dir_entry *entry)
{
	struct removal *r = ctx;

	r->failed |= sys_unlink(r->fd, entry->name) < 0 && errno != ENOENT;
	return true;
}

static bool
remove_gone_folder(void *ctx, const struct dir_entry *entry)
{
	struct removal *r = ctx;
	struct mr_error ignored = { 0 };

	if (!str_starts(str_of(entry->name), ".gone."))
		return true;
	mr_auto(sys_close_fd) int fd = -1;
	struct removal inner = { .parent_fd = r->fd };

	if (dir_open(r->fd, entry->name, &fd, &ignored) != MR_OK)
		return true;
	inner.fd = fd;
	/* A reader of a folder from which files go may miss some: until it is empty. */
	for (int tries = 0; tries < 5 && !inner.failed; tries++) {
		(void)dir_each(fd, remove_file, &inner, &ignored);
		if (sys_rmdir(r->fd, entry->name) == 0)
			return true;
	}
	r->failed = true;
	return true;
}

enum mr_rc
maildir_channel_remove(struct mr_room *room, const char *channel, struct mr_error *err)
{
	struct maildir *md = maildir_of(room);
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	char gone[32] = ".gone.", folder[NAME_LEN];

	TRY(channel_open(&c, md, channel, CHANNEL_ALONE, err));
	/* One rename, so that after a crash the channel is there or not. Its settings are the office's. */
	random_hex(gone + strlen(gone), 12);
	if (sys_rename_new(c.fd, "posts", c.fd, gone) < 0)
		return mr_fail_errno(err, "cannot remove channel '%s'", channel);
	struct removal r = { .fd = c.fd };

	if (sys_unlink(c.fd, CHANNEL_FLOOR) < 0 && errno != ENOENT)
		return mr_fail_errno(err, "cannot remove channel '%s'", channel);
	if (md->sync && sys_fsync(c.fd) < 0)
		return mr_fail_errno(err, "cannot make the removal of channel '%s' durable", channel);
	TRY(dir_each(c.fd, remove_gone_folder, &r, err));
	if (r.failed)
		return mr_fail(err, MR_IO,
		    "channel '%s' is removed, but not all its files\nwhat is left in 'channels/%s' can be removed by hand",
		    channel, channel);
	(void)sys_unlink(c.fd, CHANNEL_ENDS);
	folder_of(channel, folder);
	(void)sys_rmdir(md->root_fd, folder); /* unless the settings are still there */
	return MR_OK;
}
