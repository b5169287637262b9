/* SPDX-License-Identifier: MIT */
/* channel.h - an open channel; channel.c tells how channels work. */
#ifndef ROOMS_MAILDIR_CHANNEL_H
#define ROOMS_MAILDIR_CHANNEL_H

#include "rooms/maildir/maildir.h"

struct channel { /* by value, finish with channel_done */
	struct maildir *md;
	const char *name; /* borrowed */
	int fd;           /* channels/<name> */
	int posts_fd;
	int lock_fd; /* .ends, or -1: not locked */
};
#define CHANNEL_INIT ((struct channel){ .fd = -1, .posts_fd = -1, .lock_fd = -1 })

enum channel_lock { CHANNEL_UNLOCKED, CHANNEL_SHARED, CHANNEL_ALONE };
/* MR_NOTFOUND: no such channel. MR_BUSY: another has the lock and did not let go within ten seconds. */
enum mr_rc channel_open(
    struct channel *c, struct maildir *md, const char *name, enum channel_lock lock, struct mr_error *err);
void channel_done(struct channel *c);
enum mr_rc channel_name_check(const char *name, struct mr_error *err);

struct posts { /* what the folder has; numbers are 0 where there is none */
	uint64_t first, last;
	uint64_t next; /* the first from `from` on */
	size_t n;
};
/* Reads the whole folder. */
enum mr_rc channel_posts(const struct channel *c, uint64_t from, struct posts *ret, struct mr_error *err);

/* The number of the post with that id; 0: there is none. */
enum mr_rc channel_find(struct mr_room *room, const char *channel, const char *id, uint64_t *ret, struct mr_error *err);
/* An empty file takes the place of a post, so that its number stays taken. *removed is added to. */
enum mr_rc channel_blank_post(
    struct maildir *md, const char *channel, uint64_t number, size_t *removed, struct mr_error *err);

/* Removes the posts below that number (a retained copy; subscribers keep theirs). */
enum mr_rc channel_drop(
    struct mr_room *room, const char *channel, uint64_t below, size_t *ret_removed, struct mr_error *err);

#endif
