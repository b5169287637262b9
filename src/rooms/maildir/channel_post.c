/* SPDX-License-Identifier: MIT */
/* channel_post.c - a message gets its number in a channel. */
#include "rooms/maildir/channel.h"

#include "base/error.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>

#define FILE_LIMIT ((size_t)64 << 20)

static bool
same_file(int fd, const char *name, const struct stat *st)
{
	struct stat there;

	return sys_stat(fd, name, &there) == 0 && there.st_dev == st->st_dev && there.st_ino == st->st_ino;
}

/* Not by link: another file system, too many links, a sandbox that links only one's own files. */
static bool
needs_copy(int error)
{
	return error == EXDEV || error == EMLINK || error == EPERM || error == EOPNOTSUPP;
}

struct posting {
	const struct channel *c;
	int from_fd;
	const char *from;
	struct staged copy; /* only where a link is not possible */
	bool copies;
};

static enum mr_rc
prepare_copy(struct posting *p, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	const struct channel *c = p->c;

	p->copies = true;
	TRY(file_read(p->from_fd, p->from, FILE_LIMIT, &text, err));
	TRY(stage_open(&p->copy, c->posts_fd, c->fd, c->md->message_mode, err));
	TRY(stage_write(&p->copy, buf_str(&text), err));
	return c->md->sync ? stage_sync(&p->copy, err) : MR_OK;
}

/* MR_EXISTS: another was faster. Nothing fails once the name is there: it could not be taken back, because the number
 * may have been read and a later post may stand on it. */
static enum mr_rc
take_number(struct posting *p, const struct stat *from, uint64_t number, struct mr_error *err)
{
	const struct channel *c = p->c;
	char name[POST_NAME_LEN];

	post_name(number, name);
	if (!p->copies) {
		if (sys_link(p->from_fd, p->from, c->posts_fd, name) == 0)
			return MR_OK;
		if (errno == EEXIST)
			return same_file(c->posts_fd, name, from) ? MR_OK
								  : mr_fail(err, MR_EXISTS, "post '%s' is taken", name);
		if (!needs_copy(errno))
			return mr_fail_errno(err, "cannot publish '%s'", name);
		TRY(prepare_copy(p, err));
	}
	TRY(stage_link(&p->copy, c->posts_fd, name, err));
	/* Its bytes were flushed; now its link count, for a file system without a journal. A disk that fails here fails
	 * the caller too, who syncs the folder. */
	if (c->md->sync)
		(void)sys_fsync(p->copy.fd);
	return MR_OK;
}

static enum mr_rc
post(struct posting *p, const struct stat *from, struct mr_error *err)
{
	struct mr_error taken = { 0 };
	struct post_ends known = { 0 };

	TRY(post_last(p->c, &known.last, err));
	enum mr_rc rc;

	do {
		taken = (struct mr_error){ 0 };
		rc = take_number(p, from, ++known.last, &taken);
	} while (rc == MR_EXISTS);
	if (rc != MR_OK) {
		*err = taken;
		return rc;
	}
	if (known.last == 1 || !post_exists(p->c, known.last - 1))
		known.first = known.last;
	post_ends_note(p->c, &known);
	return MR_OK;
}

enum mr_rc
channel_give(struct mr_room *room, const char *channel, int from_fd, const char *from, const char *id, int *ret_fd,
    struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	struct posting p = { .c = &c, .from_fd = from_fd, .from = from, .copy = STAGED_INIT };
	struct stat st;

	if (sys_stat(from_fd, from, &st) < 0)
		return mr_fail_errno(err, "cannot look at message '%s'", id);
	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_SHARED, err));
	enum mr_rc rc = post(&p, &st, err);

	stage_done(&p.copy);
	if (rc != MR_OK)
		return mr_wrap(err, "cannot post message '%s' in channel '%s'", id, channel);
	*ret_fd = c.posts_fd;
	c.posts_fd = -1;
	return MR_OK;
}

/* ---- Was it posted before a crash? ---- */

static enum mr_rc
same_bytes(int a_fd, const char *a, int b_fd, const char *b, bool *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf left = BUF_INIT, right = BUF_INIT;

	TRY(file_read(a_fd, a, FILE_LIMIT, &left, err));
	TRY(file_read(b_fd, b, FILE_LIMIT, &right, err));
	*ret = str_eq(buf_str(&left), buf_str(&right));
	return MR_OK;
}

enum mr_rc
channel_has(struct maildir *md, const char *channel, int from_fd, const char *from, bool *ret, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	mr_auto(post_list_done) struct post_list list = { 0 };
	struct stat ours, there;
	bool found = false;

	if (sys_stat(from_fd, from, &ours) < 0)
		return mr_fail_errno(err, "cannot look at message '%s'", from);
	/* Retention must not remove what we are looking at, and the folder must not lose names while it is read. */
	TRY(channel_open(&c, md, channel, CHANNEL_SHARED, err));
	TRY(post_list_read(&c, 0, &list, err));
	for (size_t i = list.n; i > 0 && !found; i--) {
		char name[POST_NAME_LEN];

		post_name(list.v[i - 1], name);
		if (sys_stat(c.posts_fd, name, &there) < 0)
			continue;
		found = there.st_dev == ours.st_dev && there.st_ino == ours.st_ino;
		/* A copy has the same bytes, and they have the id in them. */
		if (!found && S_ISREG(there.st_mode) && there.st_size == ours.st_size &&
		    same_bytes(from_fd, from, c.posts_fd, name, &found, err) != MR_OK)
			return mr_wrap(err, "channel '%s'", channel);
	}
	*ret = found;
	return MR_OK;
}
