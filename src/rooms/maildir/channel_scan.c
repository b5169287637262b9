/* SPDX-License-Identifier: MIT */
/*
 * channel_scan.c - reading a channel from a number on.
 *
 * It goes from number to number by opening the next, so that reading costs what is new and a post that arrives
 * meanwhile comes in its turn. Only when the next is not there, and that is not surely the end, is the folder read.
 * What cannot be read, or is missing where nothing may be missing, does not stop the others; the scan ends with the
 * first such trouble as its error.
 */
#include "rooms/maildir/channel.h"

#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "message/message.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#define FILE_LIMIT ((size_t)64 << 20)
#define FIRST_READ ((size_t)8 << 10) /* holds the headers of nearly all mail */

struct scanning {
	struct mr_room *room;
	struct channel *c;
	enum scan_depth depth;
	bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg);
	void *ctx;
	struct buf text;
	uint64_t durable;        /* numbers up to this one survive a power cut */
	bool stopped;            /* fn wants no more */
	struct mr_error trouble; /* the first */
};

static void
note_trouble(struct scanning *s, const struct mr_error *err)
{
	if (s->trouble.code == MR_OK)
		s->trouble = *err;
}

static enum mr_rc
read_text(struct scanning *s, int fd, struct mr_error *err)
{
	buf_clear(&s->text);
	if (s->depth == SCAN_BODIES)
		return file_read_fd(fd, FILE_LIMIT, &s->text, err);
	do {
		size_t more = s->text.len > 0 ? s->text.len : FIRST_READ;

		if (!buf_reserve(&s->text, more))
			return mr_nomem(err);
		ssize_t got = sys_read(fd, s->text.ptr + s->text.len, more);

		if (got < 0)
			return mr_fail_errno(err, "cannot read");
		s->text.len += (size_t)got;
		s->text.ptr[s->text.len] = '\0';
		if (got == 0)
			break;
	} while (!message_headers_complete(buf_str(&s->text)));
	return MR_OK;
}

static enum mr_rc
parse(struct scanning *s, const char *name, const struct stat *st, struct mr_message *ret, struct mr_error *err)
{
	struct mr_message msg = {
		.from = "", .subject = "", .type = "", .thread = "", .reply_to = "", .replace_key = "", .path = ""
	};
	char path[NAME_LEN];

	TRY(message_parse(
	    buf_str(&s->text), s->room->name, s->depth == SCAN_BODIES ? MESSAGE_ALL : MESSAGE_HEADERS, &msg, err));
	msg.proof = shared_proof(maildir_of(s->room), msg.from, st);
	if (msg.id[0] == '\0')
		id_from_name((int64_t)st->st_mtim.tv_sec * 1000, str_of(name), msg.id);
	(void)snprintf(path, sizeof path, "channels/%.80s/posts/%s", s->c->name, name);
	struct arena *own = msg.own;

	msg.path = arena_dup(&own, str_of(path));
	msg.own = own;
	msg.size_bytes = (size_t)st->st_size;
	if (msg.path == NULL) {
		mr_message_done(&msg);
		return mr_nomem(err);
	}
	*ret = msg;
	return MR_OK;
}

/* Whoever is shown a number goes on after it. So it must not be lost to a power cut and given to another post. */
static void
make_durable(struct scanning *s, uint64_t number)
{
	uint64_t last = post_ends_guess(s->c).last;

	if (!s->c->md->sync || number <= s->durable)
		return;
	s->durable = last > number && post_exists(s->c, last) ? last : number;
	(void)sys_fsync(s->c->posts_fd); /* a disk that fails here will tell the poster, who waits for the same */
}

/* MR_NOTFOUND: no such post. */
static enum mr_rc
show(struct scanning *s, uint64_t number, struct mr_error *err)
{
	struct mr_message msg = { 0 };
	struct stat st;
	char name[POST_NAME_LEN];

	post_name(number, name);
	/* Without O_NONBLOCK a planted pipe would keep us here for ever. */
	mr_auto(sys_close_fd) int fd = sys_open(s->c->posts_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

	if (fd < 0 && errno == ENOENT)
		return mr_fail(err, MR_NOTFOUND, "no post %" PRIu64, number);
	if (fd < 0 || sys_stat_fd(fd, &st) < 0)
		return mr_fail_errno(err, "cannot read post %" PRIu64, number);
	if (!S_ISREG(st.st_mode))
		return mr_fail(err, MR_CORRUPT, "post %" PRIu64 " is not a file", number);
	if (st.st_size == 0)
		return MR_OK; /* purged */
	if (read_text(s, fd, err) != MR_OK || parse(s, name, &st, &msg, err) != MR_OK)
		return mr_wrap(err, "post %" PRIu64, number);
	make_durable(s, number);
	s->stopped = !s->fn(s->ctx, number, &msg);
	mr_message_done(&msg);
	return MR_OK;
}

/* `number` was not there. *ret: where to go on, 0: that was the end. */
static enum mr_rc
go_on(struct scanning *s, uint64_t number, uint64_t *ret, struct mr_error *err)
{
	mr_auto(post_list_done) struct post_list list = { 0 };
	struct post_ends ends = post_ends_guess(s->c);
	size_t up = 0;

	*ret = 0;
	/* The one before is there, so retention has not passed us, and nobody has noted a later one. */
	if (number > 1 && ends.last < number && post_exists(s->c, number - 1))
		return MR_OK;
	/* Retention noted where it stopped. */
	if (ends.first > number && post_exists(s->c, ends.first) && !post_exists(s->c, ends.first - 1)) {
		*ret = ends.first;
		return MR_OK;
	}
	TRY(post_list_read(s->c, 0, &list, err));
	while (up < list.n && list.v[up] < number)
		up++;
	if (up == list.n)
		return MR_OK;
	if (up == 0 || list.v[up] == number) {
		*ret = list.v[up]; /* those before it went by retention; or it was posted just now */
		return MR_OK;
	}
	/* Lower ones are there, and higher ones, but not this. Posted while the folder was read, or gone by retention
	 * since then? Removal begins at the lowest, so if that is still there, this one should be. */
	*ret = number;
	if (post_exists(s->c, number) || !post_exists(s->c, list.v[0]))
		return MR_OK;
	struct mr_error missing = { 0 };

	(void)mr_fail(&missing, MR_CORRUPT, "post %" PRIu64 " is missing between others", number);
	(void)mr_hint(&missing, "a file was removed by hand; use retention, which removes the oldest first");
	note_trouble(s, &missing);
	*ret = list.v[up];
	return MR_OK;
}

static enum mr_rc
walk(struct scanning *s, uint64_t after, struct mr_error *err)
{
	uint64_t number = after + 1;

	while (!s->stopped) {
		struct mr_error failure = { 0 };
		enum mr_rc rc = show(s, number, &failure);

		if (rc == MR_NOMEM)
			return mr_nomem(err);
		if (rc != MR_NOTFOUND) {
			if (rc != MR_OK)
				note_trouble(s, &failure);
			/* Where nothing can be opened any more, no number would ever be the end. */
			if (rc != MR_OK && rc != MR_CORRUPT && !post_exists(s->c, number))
				break;
			number++;
			continue;
		}
		TRY(go_on(s, number, &number, err));
		if (number == 0)
			break;
	}
	return MR_OK;
}

enum mr_rc
maildir_channel_scan(struct mr_room *room, const char *channel, uint64_t after, enum scan_depth depth,
    bool (*fn)(void *ctx, uint64_t number, const struct mr_message *msg), void *ctx, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	struct scanning s = { .room = room, .c = &c, .depth = depth, .fn = fn, .ctx = ctx, .text = BUF_INIT };

	if (after == UINT64_MAX)
		return MR_OK;
	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_UNLOCKED, err));
	enum mr_rc rc = walk(&s, after, err);

	buf_done(&s.text);
	if (rc == MR_OK && s.trouble.code != MR_OK) {
		*err = s.trouble;
		rc = err->code;
	}
	return rc == MR_OK ? rc : mr_wrap(err, "channel '%s'", channel);
}
