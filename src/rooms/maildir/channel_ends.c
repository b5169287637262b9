/* SPDX-License-Identifier: MIT */
/* channel_ends.c - a channel's numbers: which are there, where they begin and end, retention. */
#include "rooms/maildir/channel.h"

#include "base/error.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ENDS_DIGITS 12 /* "000000000001 000000000042\n" */

/* ---- Numbers ---- */

void
post_name(uint64_t number, char ret[POST_NAME_LEN])
{
	(void)snprintf(ret, POST_NAME_LEN, "%0*" PRIu64, ENDS_DIGITS, number);
}

bool
post_exists(const struct channel *c, uint64_t number)
{
	char name[POST_NAME_LEN];
	struct stat st;

	post_name(number, name);
	return sys_stat(c->posts_fd, name, &st) == 0;
}

struct list_walk {
	struct post_list *list;
	uint64_t from;
};

static bool
collect_post(void *ctx, const struct dir_entry *entry)
{
	struct list_walk *walk = ctx;
	struct post_list *list = walk->list;
	char again[POST_NAME_LEN];
	uint64_t number = 0;

	if (!str_to_u64(str_of(entry->name), &number) || number == 0 || number < walk->from)
		return true;
	post_name(number, again);
	if (strcmp(again, entry->name) != 0) /* "7" is not our spelling of 7 */
		return true;
	if (list->n == list->cap) {
		size_t cap = list->cap * 2 + 64;
		uint64_t *grown = realloc(list->v, cap * sizeof *grown);

		list->failed = grown == NULL;
		if (grown == NULL)
			return false;
		list->v = grown;
		list->cap = cap;
	}
	list->v[list->n++] = number;
	return true;
}

static int
by_number(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

enum mr_rc
post_list_read(const struct channel *c, uint64_t from, struct post_list *ret, struct mr_error *err)
{
	struct list_walk walk = { .list = ret, .from = from };

	ret->n = 0;
	if (dir_each(c->posts_fd, collect_post, &walk, err) != MR_OK)
		return mr_wrap(err, "channel '%s'", c->name);
	if (ret->failed)
		return mr_nomem(err);
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof *ret->v, by_number);
	return MR_OK;
}

void
post_list_done(struct post_list *list)
{
	free(list->v);
	*list = (struct post_list){ 0 };
}

/* ---- Where it begins and ends, without reading the folder ---- */

struct post_ends
post_ends_guess(const struct channel *c)
{
	mr_auto(sys_close_fd) int own_fd = -1;
	struct post_ends guess = { 0 };
	char text[ENDS_DIGITS * 2 + 1];
	int fd = c->lock_fd;

	if (fd < 0)
		fd = own_fd = sys_open(c->fd, CHANNEL_ENDS, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0 || sys_pread(fd, text, sizeof text, 0) != (ssize_t)sizeof text)
		return guess;
	if (!str_to_u64((struct mr_str){ text, ENDS_DIGITS }, &guess.first) ||
	    !str_to_u64((struct mr_str){ text + ENDS_DIGITS + 1, ENDS_DIGITS }, &guess.last))
		return (struct post_ends){ 0 };
	return guess;
}

void
post_ends_note(const struct channel *c, const struct post_ends *known)
{
	struct post_ends ends = post_ends_guess(c);
	char first[POST_NAME_LEN], last[POST_NAME_LEN], text[2 * POST_NAME_LEN + 2];

	/* Not locked against other posters, not synced, free to fail: whoever reads it checks it. */
	ends.first = known->first > 0 ? known->first : ends.first;
	ends.last = known->last > 0 ? known->last : ends.last;
	post_name(ends.first, first);
	post_name(ends.last, last);
	if (strlen(first) + strlen(last) != (size_t)ENDS_DIGITS * 2)
		return;
	int n = snprintf(text, sizeof text, "%s %s\n", first, last);
	(void)sys_pwrite_all(c->lock_fd, text, (size_t)n, 0);
}

static enum mr_rc
read_floor(const struct channel *c, uint64_t *ret, struct mr_error *err)
{
	mr_auto(buf_done) struct buf text = BUF_INIT;
	enum mr_rc rc = file_read(c->fd, CHANNEL_FLOOR, 64, &text, err);

	if (rc == MR_NOTFOUND) {
		*ret = 0;
		return MR_OK;
	}
	if (rc != MR_OK)
		return mr_wrap(err, "channel '%s'", c->name);
	struct mr_str digits = buf_str(&text);

	while (digits.len > 0 && digits.ptr[digits.len - 1] == '\n')
		digits.len--;
	if (str_to_u64(digits, ret))
		return MR_OK;
	return mr_fail(err, MR_CORRUPT,
	    "'channels/%s/%s' is no number\nwrite the number of the channel's newest post into it, so that none comes twice",
	    c->name, CHANNEL_FLOOR);
}

enum mr_rc
post_last(const struct channel *c, uint64_t *ret, struct mr_error *err)
{
	mr_auto(post_list_done) struct post_list list = { 0 };
	uint64_t last = post_ends_guess(c).last, floor = 0;

	/* If that post is there, all up to the newest are: they are removed from the other end. */
	if (last == 0 || !post_exists(c, last)) {
		TRY(read_floor(c, &floor, err));
		TRY(post_list_read(c, 0, &list, err));
		last = list.n > 0 ? list.v[list.n - 1] : 0;
		last = last > floor ? last : floor;
	}
	while (post_exists(c, last + 1))
		last++;
	*ret = last;
	return MR_OK;
}

/* False: the guess is wrong or incomplete. */
static bool
find_ends_quickly(const struct channel *c, struct post_ends *ret)
{
	struct post_ends ends = post_ends_guess(c);

	if (ends.first == 0 || ends.last < ends.first || !post_exists(c, ends.first) || !post_exists(c, ends.last))
		return false;
	if (ends.first > 1 && post_exists(c, ends.first - 1))
		return false;
	while (post_exists(c, ends.last + 1))
		ends.last++;
	*ret = ends;
	return true;
}

enum mr_rc
maildir_channel_range(struct mr_room *room, const char *channel, uint64_t *ret_first, uint64_t *ret_last,
    size_t *ret_count, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	mr_auto(post_list_done) struct post_list list = { 0 };
	struct post_ends ends = { 0 };

	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_UNLOCKED, err));
	if (find_ends_quickly(&c, &ends)) {
		*ret_first = ends.first;
		*ret_last = ends.last;
		*ret_count = (size_t)(ends.last - ends.first + 1);
		return MR_OK;
	}
	TRY(post_list_read(&c, 0, &list, err));
	*ret_first = list.n > 0 ? list.v[0] : 0;
	*ret_last = list.n > 0 ? list.v[list.n - 1] : 0;
	*ret_count = list.n;
	return MR_OK;
}

/* ---- Retention ---- */

/* The next number that is there, 0: none. Mostly the very next; only where a post is missing is the folder read. */
static enum mr_rc
next_post(const struct channel *c, uint64_t from, uint64_t *ret, struct mr_error *err)
{
	mr_auto(post_list_done) struct post_list list = { 0 };

	if (post_exists(c, from)) {
		*ret = from;
		return MR_OK;
	}
	TRY(post_list_read(c, from, &list, err));
	*ret = list.n > 0 ? list.v[0] : 0;
	return MR_OK;
}

static enum mr_rc
write_floor(const struct channel *c, uint64_t last, struct mr_error *err)
{
	char name[POST_NAME_LEN], text[POST_NAME_LEN + 1];

	post_name(last, name);
	(void)snprintf(text, sizeof text, "%s\n", name);
	return file_replace(c->fd, CHANNEL_FLOOR, str_of(text), c->md->file_mode, err);
}

enum mr_rc
maildir_channel_drop(
    struct mr_room *room, const char *channel, uint64_t below, size_t *ret_removed, struct mr_error *err)
{
	mr_auto(channel_done) struct channel c = CHANNEL_INIT;
	uint64_t last = 0, number = 0;
	char name[POST_NAME_LEN];
	size_t removed = 0;

	TRY(channel_open(&c, maildir_of(room), channel, CHANNEL_ALONE, err));
	TRY(post_last(&c, &last, err));
	/* What is above the floor stays, whatever was asked: its number would come again. */
	if (below > last && last > 0 && write_floor(&c, last, err) != MR_OK)
		return err->code;
	below = below > last ? last + 1 : below;
	uint64_t first = post_ends_guess(&c).first;

	/* Upwards from the first. Not synced: what a power cut brings back goes with the next drop. */
	if (first == 0 || !post_exists(&c, first) || (first > 1 && post_exists(&c, first - 1)))
		first = 1;
	for (number = first;; number++) {
		TRY(next_post(&c, number, &number, err));
		if (number == 0 || number >= below)
			break;
		post_name(number, name);
		if (sys_unlink(c.posts_fd, name) < 0)
			return mr_fail_errno(err, "cannot remove post %" PRIu64 " of channel '%s'", number, channel);
		removed++;
	}
	if (number > 0)
		post_ends_note(&c, &(struct post_ends){ .first = number });
	*ret_removed = removed;
	return MR_OK;
}
